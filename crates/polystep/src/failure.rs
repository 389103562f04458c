//! How a command ends when it does not end well, and the one place where errors are sorted by exit code.
//!
//! The exit code says whose turn it is. 2: the input must change. 1: something failed at run time. 130: the user stopped the
//! command. A reader that closes its pipe has seen enough; that is no failure, so the exit code is 0.
//!
//! Messages may quote files and arguments. Control characters in them are shown escaped, so that no file can drive a
//! terminal, and only a window of a long line is shown.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::ops::Range;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use polystep_core::space::SpaceError;
use polystep_engine::EngineError;
use polystep_learn::LearnError;
use polystep_learn::config::ConfigError;
use polystep_record::RecordError;
use polystep_study::StudyError;

use crate::interrupt;
use crate::printable::{printable, short, window};

/// The exit code by which a child says that another process is at its run. People get 2.
pub const BUSY: u8 = 75;

/// Why a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong: one sentence, where possible with the place.
    BadInput(Report),
    /// Another process is at it.
    InUse(RecordError),
    /// Something failed at run time.
    Runtime(anyhow::Error),
    /// What was asked has been printed in full, and the answer is no.
    AnsweredNo,
    /// Ctrl-C or a termination signal; everything was put away.
    Interrupted,
    /// Whoever read our output has closed it.
    ClosedPipe,
}

/// What every command returns.
pub type Result<T> = std::result::Result<T, Failure>;

/// Bad input that has no place to point at.
pub fn bad_input(sentence: impl Display) -> Failure {
    Failure::BadInput(Report::new(MietteDiagnostic::new(sentence.to_string())))
}

/// Bad input at `span` of `text`, which the user knows as `name` (empty: an argument).
pub fn bad_text(name: &str, text: &str, span: Range<usize>, sentence: impl Display, here: &str) -> Failure {
    let (text, span) = window(text, span);
    // A blank after the text gives "something is missing at the end" a place to stand.
    let text = format!("{text} ");
    let label = LabeledSpan::at(span.start..span.end.max(span.start + 1), here);
    let report = Report::new(MietteDiagnostic::new(sentence.to_string()).with_label(label));
    Failure::BadInput(match name {
        "" => report.with_source_code(text),
        name => report.with_source_code(NamedSource::new(printable(name), text)),
    })
}

/// Bad input in a TOML file, with its line and a caret where the place is known.
pub fn bad_toml(name: &str, text: &str, span: Option<Range<usize>>, message: &str) -> Failure {
    let Some(span) = span else { return bad_input(format!("{name}: {message}")) };
    let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
    bad_text(name, text, span, format!("{name}, line {line}: {message}"), "here")
}

/// A run's TOML that is refused; its message names the line already.
pub fn bad_config(error: ConfigError, name: &str, text: &str) -> Failure {
    match error.span {
        Some(span) => bad_text(name, text, span, format!("{name}, {}", error.message), "here"),
        None => bad_input(error),
    }
}

/// A file with a `[space]` that is refused.
pub fn bad_space(error: SpaceError, name: &str, text: &str) -> Failure {
    match error {
        SpaceError::Toml { message, span: Some(span) } => bad_toml(name, text, Some(span), &message),
        error => bad_input(format!("{name}: {error}")),
    }
}

impl Failure {
    /// Says what happened and gives the exit code.
    pub fn report(self) -> u8 {
        let (text, code) = match self {
            Failure::BadInput(report) => (render(report.as_ref()), 2),
            Failure::InUse(error) => {
                (format!("error: {}\n", short(&error.to_string())), if interrupt::is_child() { BUSY } else { 2 })
            }
            Failure::Runtime(error) => (format!("error: {}\n", short(&sentence(&error))), 1),
            Failure::AnsweredNo => return 1,
            Failure::Interrupted => ("interrupted; nothing half-written is left\n".to_owned(), 130),
            Failure::ClosedPipe => return 0,
        };
        // Nothing is left to be done when even standard error is gone.
        let _ = io::stderr().lock().write_all(text.as_bytes());
        code
    }
}

/// An error with its causes, in one line; a cause that has been told already is not repeated.
fn sentence(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !told.contains(&cause) {
            let colon = if told.is_empty() { "" } else { ": " };
            told = format!("{told}{colon}{cause}");
        }
    }
    told
}

/// Whether a terminal shows colours. `NO_COLOR` asks for none, and a dumb terminal has none.
fn has_colours(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable("TERM").is_none_or(|term| term != "dumb") && variable("NO_COLOR").is_none_or(|wish| wish.is_empty())
}

fn render(diagnostic: &dyn Diagnostic) -> String {
    let mut text = format!("error: {}\n", short(&diagnostic.to_string()));
    if diagnostic.labels().is_none_or(|mut labels| labels.next().is_none()) {
        return text;
    }
    let colours = io::stderr().is_terminal() && has_colours(|name| std::env::var_os(name));
    let theme = if colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(120);
    if handler.render_report(&mut drawn, diagnostic).is_ok() {
        // The handler's own first line repeats the sentence: keep the drawing only.
        if let Some(at) = drawn.find('╭') {
            let line = drawn[..at].rfind('\n').map_or(0, |n| n + 1);
            text.push_str(&drawn[line..]);
        }
    }
    text
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Runtime(error.into()),
        }
    }
}

impl From<RecordError> for Failure {
    /// What cannot be read or understood is bad input. A disk that is full, or a folder that may not be written, is not.
    fn from(error: RecordError) -> Self {
        if error.is_bad_input() { bad_input(error) } else { Failure::Runtime(error.into()) }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Record(error) => error.into(),
            StudyError::Template(_) => Failure::Runtime(error.into()),
            error => bad_input(error),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let closed = |e: &(dyn std::error::Error + 'static)| {
            e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
        };
        if error.chain().any(closed) { Failure::ClosedPipe } else { Failure::Runtime(error) }
    }
}

/// JSON that we write. JSON that we read is the input's fault, and says which file.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::from(anyhow::Error::from(error))
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Failure::Runtime(error.into())
    }
}

impl From<SpaceError> for Failure {
    fn from(error: SpaceError) -> Self {
        bad_input(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        bad_input(error)
    }
}

impl From<LearnError> for Failure {
    fn from(error: LearnError) -> Self {
        match error {
            LearnError::Config(_) | LearnError::Folder(_) | LearnError::Mismatch { .. } => bad_input(error),
            LearnError::Record(error @ RecordError::InUse { .. }) => Failure::InUse(error),
            LearnError::Record(RecordError::Line { .. } | RecordError::Document { .. }) => bad_input(error),
            error => Failure::Runtime(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let full = || io::Error::from_raw_os_error(28);
        let error =
            anyhow::Error::from(full()).context(format!("cannot write a.bin: {}", full())).context("the run stops");
        assert_eq!(sentence(&error), format!("the run stops: cannot write a.bin: {}", full()));
    }

    #[test]
    fn a_dumb_terminal_gets_no_colours() {
        let with = |set: &'static [(&str, &str)]| {
            has_colours(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
        };
        assert!(with(&[]) && with(&[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!with(&[("TERM", "dumb")]) && !with(&[("NO_COLOR", "1")]));
    }

    #[test]
    fn a_long_line_is_cut_around_its_error() {
        let text = format!("a = {}\nb = \u{1b}[31m{}?{}\n", "1".repeat(9000), "2".repeat(9000), "3".repeat(9000));
        let at = text.find('?').unwrap();
        let Failure::BadInput(report) = bad_text("long.toml", &text, at..at + 1, "wrong", "here") else {
            panic!("it is bad input")
        };
        let drawn = render(report.as_ref());
        assert!(drawn.len() < 2000 && drawn.contains("22?33") && !drawn.contains('\u{1b}'), "{drawn}");
        assert!(drawn.contains(" 2 │") && drawn.contains("here"), "{drawn}");
    }
}
