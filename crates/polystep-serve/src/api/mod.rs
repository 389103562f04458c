//! The JSON API and the page, as routes.

mod check;
mod lists;
mod prove;
mod study;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::error::Refusal;
use crate::{App, guard, page};

/// All routes behind the guard.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/parse", post(prove::parse))
        .route("/api/prove", post(prove::prove))
        .route("/api/step", post(prove::step))
        .route("/api/check", post(check::check))
        .route("/api/models", get(lists::models))
        .route("/api/random", get(lists::random))
        .route("/api/gallery", get(lists::gallery))
        .route("/api/runs", get(study::runs))
        .route("/api/runs/{name}", get(study::run))
        .route("/api/runs/{name}/report", get(study::report))
        .route("/api/tables", get(study::tables))
        .route("/api/tables/{name}", get(study::table))
        .route("/api/records/{name}", get(study::record))
        .fallback(file)
        .layer(middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

/// A file of the page.
async fn file(request: Request) -> Response {
    let get = matches!(request.method().as_str(), "GET" | "HEAD");
    let found = page::file(request.uri().path()).filter(|_| get);
    found.unwrap_or_else(|| Refusal::not_found("there is nothing here: / is the page").into_response())
}

/// Work that is too long for the threads of the network. A panic in it is this request's own.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    let failed = |_| Refusal::internal("this request failed: please report it");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
