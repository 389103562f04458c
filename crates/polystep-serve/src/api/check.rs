//! `/api/check`: the lines of a proof, each checked against the one before it.

use axum::response::{IntoResponse, Response};
use polystep_core::{Granularity, Notation, Style, Verdict, Writing};
use serde::{Deserialize, Serialize};

use super::aside;
use crate::body::{JsonAnswer, JsonBody};
use crate::error::Refusal;

/// The most lines.
const LINES: usize = 200;

/// The lines of a proof.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// In the strict language: variables are x1 to x8, every factor stands in parentheses.
    lines: Vec<String>,
    /// How large the steps are; `coarse` if nothing is said.
    granularity: Option<String>,
    /// `infix` or `prefix`.
    notation: Option<String>,
}

/// What is to be said about a line.
#[derive(Serialize)]
pub struct CheckedLine {
    verdict: Verdict,
    /// The kind of step that was expected.
    expected: Option<&'static str>,
    sentence: String,
}

/// Checks every line after the first.
pub async fn check(JsonBody(request): JsonBody<CheckRequest>) -> Result<Response, Refusal> {
    let checked = aside(move || checked(&request)).await?;
    let right = checked.iter().all(|line| line.verdict.exact());
    Ok(JsonAnswer(serde_json::json!({ "right": right, "lines": checked })).into_response())
}

fn checked(request: &CheckRequest) -> Result<Vec<CheckedLine>, Refusal> {
    let granularity = request.granularity.as_deref().map(str::parse::<Granularity>).transpose();
    let notation = request.notation.as_deref().map(str::parse::<Notation>).transpose();
    let writing = Writing {
        granularity: granularity.map_err(Refusal::bad_request)?.unwrap_or_default(),
        notation: notation.map_err(Refusal::bad_request)?.unwrap_or_default(),
        ..Writing::default()
    };
    if request.lines.len() < 2 || request.lines.len() > LINES {
        return Err(Refusal::bad_request(format!("lines: give 2 to {LINES} of them")));
    }
    let line = |pair: &[String]| {
        let [before, after] = [&pair[0], &pair[1]];
        let tokens = polystep_core::token::encode(before).map_or(usize::MAX, |tokens| tokens.len());
        if tokens as u64 > polystep_core::typed::MAX_TOKENS {
            let most = polystep_core::typed::MAX_TOKENS;
            return Err(Refusal::unprocessable(format!("{before} is no line of at most {most} tokens")));
        }
        let state = polystep_core::notation::parse(before, writing.notation, Style::default());
        let state = state.map_err(|e| Refusal::unprocessable(format!("{before} cannot be read: {e}")))?;
        let check = writing.check(&state, after).map_err(Refusal::unprocessable)?;
        let expected = check.expected.map(polystep_core::StepKind::name);
        Ok(CheckedLine { verdict: check.verdict, expected, sentence: check.why.to_string() })
    };
    request.lines.windows(2).map(line).collect()
}
