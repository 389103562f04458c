//! How a run looks: one live line on a terminal, plain lines in a log.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use polystep_learn::log::Progress;
use polystep_learn::log::{Event, Observer};
use polystep_record::{CurriculumLine, TaskLine, ValidLine};

use crate::device::peak;

/// How often a log gets a line.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Draws on standard error.
pub struct Display {
    bar: Option<ProgressBar>,
    peak: Option<f64>,
    said: Option<Instant>,
    /// How the tasks of a curriculum stood, last time.
    tasks: Option<String>,
}

impl Display {
    /// A bar on a terminal, else lines.
    pub fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}");
            ProgressBar::new(1000).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Display { bar, peak: None, said: None, tasks: None }
    }

    /// A line above the bar, or of the log.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // A closed standard error must not end the run.
            None => drop(writeln!(io::stderr(), "{line}")),
        }
    }

    fn progress(&mut self, p: &Progress) {
        let line = describe(p, self.peak);
        match &self.bar {
            Some(bar) => {
                bar.set_position((1000.0 * p.done.min(1.0)) as u64);
                bar.set_message(line);
            }
            None if self.said.is_none_or(|t| t.elapsed() >= LOG_EVERY) => {
                self.said = Some(Instant::now());
                self.say(&line);
            }
            None => {}
        }
    }
}

impl Observer for Display {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { device, parameters, step } => {
                self.peak = peak(device);
                let from = if *step > 0 { format!(", continuing after step {step}") } else { String::new() };
                self.say(&format!("{:.2}M parameters on {device}{from}", *parameters as f64 / 1e6));
            }
            Event::Progress(p) => self.progress(p),
            Event::Valid(v) => {
                self.say(&validation(v));
                if let Some(tasks) = &self.tasks {
                    self.say(tasks);
                }
            }
            Event::Curriculum(line) => self.tasks = Some(tasks(line)),
            Event::Saved { step, path } => self.say(&format!("step {step}: saved {}", path.display())),
            Event::Train(_) | Event::Finished(_) => {}
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn validation(v: &ValidLine) -> String {
    let kinds: Vec<String> = v.by_kind.iter().map(|(kind, share)| format!("{kind} {:.1}", 100.0 * share)).collect();
    format!(
        "step {}: valid{} full proofs {:.1} %, steps {:.2} % ({}), loss {:.4}{} ({} examples, {:.0} s)",
        v.step,
        if v.raw { " (raw brackets)" } else { "" },
        100.0 * v.full_proof,
        100.0 * v.stepwise,
        kinds.join(", "),
        v.loss.unwrap_or(f64::NAN),
        if v.best { ", best so far" } else { "" },
        v.examples,
        v.seconds,
    )
}

fn describe(p: &Progress, peak: Option<f64>) -> String {
    let mut line = format!("step {} loss {:.4} exact {:.1} %", p.step, p.loss, 100.0 * p.exact);
    if let Some(full) = p.full_proof {
        line += &format!(" valid {:.1} %", 100.0 * full);
    }
    line += &format!("  {} examples/s {} tokens/s", short(p.examples_per_second), short(p.tokens_per_second));
    match peak {
        Some(peak) => line += &format!(" {:.1} % of peak", 100.0 * p.flops_per_second / peak),
        None => line += &format!(" {} FLOP/s", short(p.flops_per_second)),
    }
    if let Some(left) = p.left {
        let left = left.round() as u64;
        line += &format!("  {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
    }
    line
}

/// Exams and shares of a curriculum's tasks.
fn tasks(line: &CurriculumLine) -> String {
    let task = |t: &TaskLine| format!("{} {:.0} % right ({:.1} %)", t.task, 100.0 * t.accuracy, 100.0 * t.share);
    let all: Vec<String> = line.tasks.iter().map(task).collect();
    format!("  tasks at step {}, in brackets their next shares: {}", line.step, all.join(", "))
}

/// 1234567 as `1.23M`.
pub fn short(n: f64) -> String {
    match n {
        n if n >= 1e12 => format!("{:.1}T", n / 1e12),
        n if n >= 1e9 => format!("{:.1}G", n / 1e9),
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validation_tells_the_kinds_apart() {
        let by_kind = [("add4", 0.991), ("mul4", 0.004)].map(|(kind, share)| (kind.to_owned(), share)).into();
        let line = ValidLine {
            step: 400,
            examples: 102_400,
            full_proof: 0.4975,
            stepwise: 0.4975,
            by_kind,
            raw: false,
            loss: Some(0.81),
            best: true,
            seconds: 12.4,
        };
        assert_eq!(
            validation(&line),
            "step 400: valid full proofs 49.8 %, steps 49.75 % (add4 99.1, mul4 0.4), loss 0.8100, best so far \
             (102400 examples, 12 s)"
        );
    }

    #[test]
    fn a_line_says_all_that_matters() {
        let progress = Progress {
            step: 1200,
            examples: 307_200,
            loss: 0.41234,
            exact: 0.612,
            full_proof: Some(0.123),
            lr: 6e-4,
            examples_per_second: 98_213.0,
            tokens_per_second: 8.1e6,
            flops_per_second: 198e12,
            done: 0.05,
            seconds: 4.0,
            left: Some(62.0),
        };
        assert_eq!(
            describe(&progress, Some(990e12)),
            "step 1200 loss 0.4123 exact 61.2 % valid 12.3 %  98.2k examples/s 8.10M tokens/s 20.0 % of peak  0:01:02 left"
        );
    }
}
