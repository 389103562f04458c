//! How a run looks: one live line on a terminal, plain lines in a log.

use polystep_learn::log::{Event, Observer, Progress};
use polystep_record::{ClassLine, CurriculumLine, MixLine, TaskLine, ValidLine};

use crate::device::peak;
use crate::progress::LiveLine;

/// Draws on standard error.
pub struct Display {
    line: LiveLine,
    peak: Option<f64>,
    /// Proofs and steps of the validation set.
    valid: (usize, usize),
    /// How the tasks of a curriculum stood, last time.
    tasks: Option<String>,
}

impl Display {
    /// A bar on a terminal, else lines.
    pub fn new() -> Self {
        Display {
            line: LiveLine::new("{bar:24} {percent:>3} %  {msg}", 1000, true),
            peak: None,
            valid: (0, 0),
            tasks: None,
        }
    }

    /// A line above the bar, or of the log.
    pub fn say(&self, line: &str) {
        self.line.say(line);
    }
}

impl Observer for Display {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { device, parameters, step, valid } => {
                (self.peak, self.valid) = (peak(device), *valid);
                let from = if *step > 0 { format!(", continuing after step {step}") } else { String::new() };
                self.say(&format!("{:.2}M parameters on {device}{from}", *parameters as f64 / 1e6));
            }
            Event::Progress(p) => {
                let (done, text) = ((1000.0 * p.done.min(1.0)) as u64, || describe(p, self.peak, self.valid.0));
                self.line.update(done, text, text);
            }
            Event::Valid(v) => {
                self.say(&validation(v, self.valid));
                if let Some(tasks) = &self.tasks {
                    self.say(tasks);
                }
            }
            Event::Curriculum(line) => self.tasks = Some(tasks(line)),
            Event::Mix(line) => self.say(&classes(line)),
            Event::Saved { step, path } => self.say(&format!("step {step}: saved {}", path.display())),
            Event::Train(_) | Event::Finished(_) => {}
        }
    }
}

fn validation(v: &ValidLine, (proofs, steps): (usize, usize)) -> String {
    let kinds: Vec<String> = v.by_kind.iter().map(|(kind, share)| format!("{kind} {:.1}", 100.0 * share)).collect();
    format!(
        "step {}: valid{}{} full proofs {:.1} % of {proofs}, steps {:.2} % of {steps} ({}), loss {:.4}{} ({} examples, {:.0} s)",
        v.step,
        if v.averaged { " (averaged weights)" } else { "" },
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

fn describe(p: &Progress, peak: Option<f64>, valid: usize) -> String {
    let mut line = format!("step {} loss {:.4} exact {:.1} % of {}", p.step, p.loss, 100.0 * p.exact, p.since);
    if let Some(full) = p.full_proof {
        line += &format!(" valid {:.1} % of {valid}", 100.0 * full);
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
    let task = |t: &TaskLine| {
        let (right, share) = (100.0 * t.accuracy, 100.0 * t.share);
        format!("{} {right:.0} % of {} right ({share:.1} %)", t.task, TaskLine::EXAM)
    };
    let all: Vec<String> = line.tasks.iter().map(task).collect();
    format!("  tasks at step {} (in brackets: how much of the next examples each gets): {}", line.step, all.join(", "))
}

/// What was learned from, by class.
fn classes(line: &MixLine) -> String {
    let class = |c: &ClassLine| {
        let exam = c.accuracy.map_or(String::new(), |accuracy| format!(" {:.1} % right", 100.0 * accuracy));
        format!("{}{exam} ({:.1} %)", c.class, 100.0 * c.share)
    };
    let all: Vec<String> = line.classes.iter().map(class).collect();
    format!("  classes (in brackets: their shares of the examples so far): {}", all.join(", "))
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
            averaged: false,
            seconds: 12.4,
        };
        assert_eq!(
            validation(&line, (400, 400)),
            "step 400: valid full proofs 49.8 % of 400, steps 49.75 % of 400 (add4 99.1, mul4 0.4), loss 0.8100, best so far \
             (102400 examples, 12 s)"
        );
        assert!(
            validation(&ValidLine { averaged: true, ..line }, (400, 400))
                .starts_with("step 400: valid (averaged weights) full")
        );
    }

    #[test]
    fn a_line_says_all_that_matters() {
        let progress = Progress {
            step: 1200,
            examples: 307_200,
            loss: 0.41234,
            since: 98_304,
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
            describe(&progress, Some(990e12), 1000),
            "step 1200 loss 0.4123 exact 61.2 % of 98304 valid 12.3 % of 1000  98.2k examples/s 8.10M tokens/s \
             20.0 % of peak  0:01:02 left"
        );
    }
}
