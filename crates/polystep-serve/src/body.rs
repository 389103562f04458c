//! Bodies of requests: JSON of at most 64 KB that arrives within ten seconds. And answers as JSON.

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::Refusal;

/// The largest body.
pub const LARGEST: usize = 64 * 1024;

/// The longest that a client may take to send one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A body that was read as JSON.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<JsonBody<T>, Refusal> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        // A form of another site cannot send this type without asking first.
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            let sentence = "the body must be JSON: send the header Content-Type: application/json";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence));
        }
        let bytes = match timeout(PATIENCE, to_bytes(request.into_body(), LARGEST)).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => {
                let sentence = format!("the body is larger than {} KB, or it broke off", LARGEST / 1024);
                return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, sentence));
            }
            Err(_) => return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive")),
        };
        serde_json::from_slice(&bytes).map(JsonBody).map_err(|e| Refusal::bad_request(format!("the body: {e}")))
    }
}

/// A value as a JSON answer.
pub struct JsonAnswer<T>(pub T);

impl<T: Serialize> IntoResponse for JsonAnswer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
            Err(error) => Refusal::internal(error).into_response(),
        }
    }
}
