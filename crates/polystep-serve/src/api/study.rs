//! `/api/runs`, `/api/tables` and `/api/records`: runs while they train, and the paper's tables beside ours.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use polystep_record::Recipe;
use serde::Deserialize;

use super::aside;
use crate::App;
use crate::body::JsonAnswer;
use crate::error::Refusal;
use crate::run_list::{RunDetail, report_page};

/// A report has its own inline styles and scripts. In a sandbox they belong to no origin, so they cannot use the API.
const REPORT_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/// The runs.
pub async fn runs(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    Ok(JsonAnswer(aside(move || Ok(app.runs.list())).await?).into_response())
}

/// One run with its curves.
pub async fn run(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Response, Refusal> {
    Ok(JsonAnswer(aside(move || RunDetail::of(&app.runs.folder(&name)?)).await?).into_response())
}

/// The page about a run.
pub async fn report(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Response, Refusal> {
    let page = aside(move || report_page(&app.runs.folder(&name)?)).await?;
    let mut response = ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
    Ok(response)
}

/// The names of the tables.
pub async fn tables(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    Ok(JsonAnswer(aside(move || app.tables.list()).await?).into_response())
}

/// Whose numbers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRequest {
    recipe: Option<String>,
}

/// A table.
pub async fn table(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    query: Result<Query<TableRequest>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Refusal> {
    let wrong = |_| Refusal::bad_request("ask with ?recipe=fast or ?recipe=paper");
    let recipe = query.map_err(wrong)?.0.recipe.map(|text| text.parse::<Recipe>()).transpose();
    let recipe = recipe.map_err(Refusal::bad_request)?.unwrap_or(Recipe::Fast);
    Ok(JsonAnswer(aside(move || app.tables.table(&name, recipe)).await?).into_response())
}

/// The committed record of a run.
pub async fn record(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Response, Refusal> {
    Ok(JsonAnswer(aside(move || RunDetail::of(&app.tables.record(&name)?)).await?).into_response())
}
