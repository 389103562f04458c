//! The progress of several children: which run, on which device, how far. On a terminal it is a live table with a line for each
//! child and one for all; otherwise plain lines from time to time.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::device::Device;
use crate::output::note;

/// Without a terminal: how often a line says how far a child is.
const TELL: Duration = Duration::from_secs(60);

/// Shows progress on standard error.
pub struct Board {
    live: Option<(MultiProgress, ProgressBar)>,
}

/// The progress of one child. Dropped, its line goes.
pub struct BoardLine<'a> {
    board: &'a Board,
    bar: Option<ProgressBar>,
    device: Device,
    told: Instant,
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

impl Board {
    /// A board without children.
    pub fn new() -> Board {
        let live = || {
            let all = MultiProgress::new();
            let total = all.add(ProgressBar::new_spinner().with_style(style("{msg}")));
            (all, total)
        };
        Board { live: std::io::stderr().is_terminal().then(live) }
    }

    /// Prints a line above the live lines.
    pub fn say(&self, line: &str) {
        match &self.live {
            Some((all, _)) => drop(all.println(line)),
            None => note(line),
        }
    }

    /// How far all are together: the last line of the table.
    pub fn total(&self, line: String) {
        if let Some((_, total)) = &self.live {
            total.set_message(line);
        }
    }

    /// A line for a child that computes on a device.
    pub fn line(&self, device: Device) -> BoardLine<'_> {
        let bar = self.live.as_ref().map(|(all, total)| {
            let bar = ProgressBar::new_spinner().with_style(style("{spinner} {prefix}  {wide_msg}"));
            all.insert_before(total, bar)
        });
        BoardLine { board: self, bar, device, told: Instant::now() }
    }
}

impl BoardLine<'_> {
    /// Says what the child does and how far it is.
    pub fn tell(&mut self, name: &str, progress: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(format!("{:<7} {name:<44}", self.device));
                bar.set_message(progress.to_owned());
                bar.tick();
            }
            None if self.told.elapsed() >= TELL => {
                self.board.say(&format!("{name} on {}: {progress}", self.device));
                self.told = Instant::now();
            }
            None => {}
        }
    }
}

impl Drop for BoardLine<'_> {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
