//! Progress of a long command, on standard error: a bar on a terminal, a plain line every ten seconds in a log.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a log gets a line.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Counts work done out of a known amount.
pub struct Progress {
    what: String,
    total: u64,
    done: u64,
    bar: Option<ProgressBar>,
    began: Instant,
    said: Instant,
}

impl Progress {
    /// Progress towards `total` of `what` (a plural noun).
    pub fn new(what: impl Into<String>, total: u64) -> Self {
        let what = what.into();
        let bar = io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{bar:20} {human_pos} of {human_len} {msg}, {per_sec:0}, {eta} left")
                    .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(total).with_style(style).with_message(what.clone())
        });
        let now = Instant::now();
        Progress { what, total, done: 0, bar, began: now, said: now }
    }

    /// `n` more are done.
    pub fn add(&mut self, n: u64) {
        self.done += n;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.said.elapsed() >= LOG_EVERY {
            self.said = Instant::now();
            let rate = self.done as f64 / self.began.elapsed().as_secs_f64();
            // A closed standard error must not end the work.
            let _ = writeln!(io::stderr(), "{} of {} {}, {rate:.0} per second", self.done, self.total, self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
