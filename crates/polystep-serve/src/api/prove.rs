//! `/api/parse`, `/api/prove` and `/api/step`: reading what was typed, proving it, and all about one step.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use polystep_core::Style;
use polystep_learn::prove::{ModelProof, OpenProof, Problem};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::aside;
use crate::App;
use crate::body::{JsonAnswer, JsonBody};
use crate::decoder::{Job, ProofEvent, ProofJob, StepJob};
use crate::error::{Refusal, characters};
use crate::shown::shown_steps;

/// What a person is typing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParseRequest {
    text: String,
}

/// How it was read, or what is wrong with it.
#[derive(Serialize)]
pub struct ParseAnswer {
    ok: bool,
    /// The state in the user's names.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    /// Whether that differs from what was typed in more than spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    rewritten: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// First and last (exclusive) character of what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<[usize; 2]>,
}

/// Reads what a person is typing. What cannot be read is an answer, not an error.
pub async fn parse(JsonBody(ParseRequest { text }): JsonBody<ParseRequest>) -> Result<Response, Refusal> {
    let answer = aside(move || {
        Ok(match Problem::read(&text, Style::default()) {
            Ok(problem) => {
                let plain = || problem.names.rename(&polystep_core::Writing::default().print(&problem.start));
                ParseAnswer {
                    ok: true,
                    rewritten: Some(problem.read_as.is_some()),
                    read_as: Some(problem.read_as.clone().unwrap_or_else(plain)),
                    error: None,
                    span: None,
                }
            }
            Err(error) => ParseAnswer {
                ok: false,
                read_as: None,
                rewritten: None,
                span: Some(characters(&text, &error)),
                error: Some(error.to_string()),
            },
        })
    });
    Ok(JsonAnswer(answer.await?).into_response())
}

/// What is to be proved, and by whom.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProveRequest {
    expr: String,
    /// The name of a model; without it the bundled model that fits.
    model: Option<String>,
}

/// The first event of a proof: what is known before its first step.
#[derive(Serialize)]
struct StartEvent<'a> {
    #[serde(flatten)]
    proof: &'a ModelProof,
    /// The start in infix.
    shown: String,
    /// How many steps there will be.
    lines: usize,
    setting: &'static str,
    granularity: String,
    notation: &'static str,
    /// The exact endpoint as LaTeX, and the start.
    latex: [String; 2],
}

/// A proof that is ready to be decoded.
struct Ready {
    model: crate::catalog::ReadyModel,
    open: OpenProof,
}

/// Reads the request and opens its proof.
fn ready(app: &App, request: &ProveRequest) -> Result<Ready, Refusal> {
    let read = |style| Problem::read(&request.expr, style).map_err(|e| Refusal::typed(&request.expr, &e));
    let mut problem = read(Style::default())?;
    let model = app.catalog.choose(request.model.as_deref(), &problem.start)?;
    let style = model.decoder.trained.home().writing.style;
    if style != Style::default() {
        problem = read(style)?;
    }
    let open = OpenProof::new(&model.decoder.trained, &model.name, &model.why, &problem)?;
    Ok(Ready { model, open })
}

/// Proves an expression: a stream of events if the client accepts one, else one JSON object.
pub async fn prove(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ProveRequest>,
) -> Result<Response, Refusal> {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let streams = accept.contains("text/event-stream");
    let until = Instant::now() + app.time_limit;
    let (start, events) = aside(move || {
        let Ready { model, open } = ready(&app, &request)?;
        let start = start_event(&open)?;
        let (sender, events) = mpsc::channel(open.lines().len() + 2);
        if open.lines().is_empty() {
            let _ = sender.try_send(ProofEvent::End(Box::new(open.finish())));
        } else {
            let shown = shown_steps(open.exact(), open.writing(), open.lines());
            model.decoder.ask(Job::Proof(Box::new(ProofJob { open, shown, events: sender, until })))?;
        }
        Ok((start, events))
    })
    .await?;
    if streams {
        let rest = ReceiverStream::new(events).map(as_event);
        let all = tokio_stream::once(Event::default().event("start").data(start)).chain(rest);
        return Ok(Sse::new(all.map(Ok::<_, std::convert::Infallible>)).into_response());
    }
    collected(events).await.map(|proof| JsonAnswer(proof).into_response())
}

fn start_event(open: &OpenProof) -> Result<String, Refusal> {
    use polystep_core::notation::{latex, print};
    let (writing, exact) = (open.writing(), open.exact());
    let event = StartEvent {
        proof: open.so_far(),
        shown: print(exact.start(), polystep_core::Notation::Infix, writing.style),
        lines: open.lines().len(),
        setting: writing.setting.name(),
        granularity: writing.granularity.to_string(),
        notation: writing.notation.name(),
        latex: [exact.start(), exact.end()].map(|state| latex(state, writing.style)),
    };
    serde_json::to_string(&event).map_err(Refusal::internal)
}

/// The proof at the end of its events.
async fn collected(mut events: mpsc::Receiver<ProofEvent>) -> Result<Box<ModelProof>, Refusal> {
    while let Some(event) = events.recv().await {
        match event {
            ProofEvent::Step(_) => {}
            ProofEvent::End(proof) => return Ok(proof),
            ProofEvent::Failed(sentence) => {
                return Err(Refusal::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, sentence));
            }
        }
    }
    Err(Refusal::internal("the proof broke off: please report it"))
}

/// What a proof came to.
#[derive(Serialize)]
struct EndEvent<'a> {
    right: bool,
    endpoint: &'a str,
    steps_by: &'a polystep_learn::prove::StepsBy,
}

fn as_event(event: ProofEvent) -> Event {
    let written = |name: &str, value: Result<String, serde_json::Error>| match value {
        Ok(text) => Event::default().event(name).data(text),
        Err(error) => Event::default().event("failed").data(error.to_string()),
    };
    match event {
        ProofEvent::Step(step) => written("step", serde_json::to_string(&step)),
        ProofEvent::End(proof) => {
            let ModelProof { right, endpoint, steps_by, .. } = &*proof;
            written("end", serde_json::to_string(&EndEvent { right: *right, endpoint, steps_by }))
        }
        ProofEvent::Failed(error) => written("failed", serde_json::to_string(&serde_json::json!({ "error": error }))),
    }
}

/// A step of a proof.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    expr: String,
    model: Option<String>,
    /// Which step, from 0.
    step: usize,
}

/// The five beams of a step with their verdicts, and the attention of its line.
pub async fn step(
    State(app): State<Arc<App>>,
    JsonBody(StepRequest { expr, model, step }): JsonBody<StepRequest>,
) -> Result<Response, Refusal> {
    let until = Instant::now() + app.time_limit;
    let answer = aside(move || {
        let Ready { model, open } = ready(&app, &ProveRequest { expr, model })?;
        let missing = || Refusal::not_found(format!("this proof has {} steps", open.lines().len()));
        let line = open.lines().get(step).ok_or_else(missing)?.clone();
        let (answer, received) = oneshot::channel();
        model.decoder.ask(Job::Step(StepJob { line, answer, until }))?;
        Ok(received)
    });
    let late = |_| Refusal::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, "the step took too long and was stopped");
    answer.await?.await.map_err(late)?.map(|detail| JsonAnswer(detail).into_response())
}
