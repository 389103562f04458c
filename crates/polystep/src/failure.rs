//! How a command ends when it does not end well. The exit code says whose turn it is: 2, the input must change; 1, something
//! failed at run time; 130, the user stopped it. A reader that closed its pipe has had enough, which is no failure: exit 0.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};

/// Why a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong: one sentence, where possible with the place.
    BadInput(Report),
    /// Something failed at run time.
    Runtime(anyhow::Error),
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
pub fn bad_text(name: &str, text: &str, span: std::ops::Range<usize>, sentence: impl Display, here: &str) -> Failure {
    // A blank after the text gives "something is missing at the end" a place to stand.
    let text = format!("{text} ");
    let label = LabeledSpan::at(span.start..span.end.max(span.start + 1), here);
    let report = Report::new(MietteDiagnostic::new(sentence.to_string()).with_label(label));
    Failure::BadInput(match name {
        "" => report.with_source_code(text),
        name => report.with_source_code(NamedSource::new(name, text)),
    })
}

impl Failure {
    /// Says what happened and gives the exit code.
    pub fn report(self) -> ExitCode {
        let mut stderr = io::stderr().lock();
        // Nothing is left to be done when even standard error is gone.
        match self {
            Failure::BadInput(report) => {
                let _ = write!(stderr, "{}", render(report.as_ref()));
                ExitCode::from(2)
            }
            Failure::Runtime(error) => {
                let _ = writeln!(stderr, "error: {}", sentence(&error));
                ExitCode::FAILURE
            }
            Failure::Interrupted => {
                let _ = writeln!(stderr, "interrupted; nothing half-written is left");
                ExitCode::from(130)
            }
            Failure::ClosedPipe => ExitCode::SUCCESS,
        }
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

/// Whether standard error shows colours; `NO_COLOR` asks for none.
fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|wish| wish.is_empty())
}

fn render(diagnostic: &dyn Diagnostic) -> String {
    let has_place = diagnostic.labels().is_some_and(|mut labels| labels.next().is_some());
    if !has_place {
        return format!("error: {diagnostic}\n");
    }
    let theme = if colours() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = format!("error: {diagnostic}\n");
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

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let closed = |e: &(dyn std::error::Error + 'static)| {
            e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
        };
        if error.chain().any(closed) { Failure::ClosedPipe } else { Failure::Runtime(error) }
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
}
