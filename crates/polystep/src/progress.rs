//! Progress of a long command, on standard error: a bar on a terminal, a plain line every ten seconds in a log.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::note;

/// How often a log gets a line.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// A line that is drawn again and again on a terminal, and now and then written to a log.
pub struct LiveLine {
    bar: Option<ProgressBar>,
    written: Option<Instant>,
}

impl LiveLine {
    /// A line drawn by an `indicatif` template, for a work of this length. `first_now`: a log gets its first line at once.
    pub fn new(template: &str, length: u64, first_now: bool) -> Self {
        let style = || ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = io::stderr().is_terminal().then(|| ProgressBar::new(length).with_style(style()));
        LiveLine { bar, written: (!first_now).then(Instant::now) }
    }

    /// How far the work is, in a message for the terminal and in one for the log.
    pub fn update(&mut self, position: u64, message: impl FnOnce() -> String, log: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(message());
        } else if self.written.is_none_or(|written| written.elapsed() >= LOG_EVERY) {
            self.written = Some(Instant::now());
            note(log());
        }
    }

    /// Writes a line that stays, above the live one.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => note(line),
        }
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Counts work done out of a known amount.
pub struct WorkProgress {
    what: String,
    total: u64,
    done: u64,
    line: LiveLine,
    began: Instant,
}

impl WorkProgress {
    /// Progress towards `total` of `what` (a plural noun).
    pub fn new(what: impl Into<String>, total: u64) -> Self {
        let line = LiveLine::new("{bar:20} {human_pos} of {human_len} {msg}, {per_sec:0}, {eta} left", total, false);
        WorkProgress { what: what.into(), total, done: 0, line, began: Instant::now() }
    }

    /// `n` more are done.
    pub fn add(&mut self, n: u64) {
        self.done += n;
        let WorkProgress { what, total, done, began, .. } = &*self;
        let rate = *done as f64 / began.elapsed().as_secs_f64();
        let log = format!("{done} of {total} {what}, {rate:.0} per second");
        self.line.update(self.done, || self.what.clone(), || log);
    }
}
