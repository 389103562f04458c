//! Why the server does not start, and why a request is refused.

use std::io;
use std::net::SocketAddr;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polystep_learn::LearnError;
use polystep_learn::prove::{ProblemError, ProveError};
use serde::Serialize;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; another --port may be free")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The operating system refuses threads or signals.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    /// A model cannot be read.
    #[error(transparent)]
    Model(#[from] LearnError),
}

/// An answer that says no: a status, one sentence, and where possible a place in what was typed.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    said: Said,
}

#[derive(Debug, Serialize)]
struct Said {
    error: String,
    /// First and last (exclusive) character.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<[usize; 2]>,
}

impl Refusal {
    /// A status and a sentence.
    pub fn new(status: StatusCode, error: impl ToString) -> Refusal {
        Refusal { status, said: Said { error: error.to_string(), span: None } }
    }

    /// The request cannot be understood.
    pub fn bad_request(error: impl ToString) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, error)
    }

    /// The request is understood, but what it asks for cannot be done.
    pub fn unprocessable(error: impl ToString) -> Refusal {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error)
    }

    /// Nothing has this name.
    pub fn not_found(error: impl ToString) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, error)
    }

    /// Too much waits already.
    pub fn busy() -> Refusal {
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many proofs are waiting: try again in a second")
    }

    /// Something is wrong here, not in the request.
    pub fn internal(error: impl ToString) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// What a person typed cannot be read; the place counts characters.
    pub fn typed(text: &str, error: &ProblemError) -> Refusal {
        Refusal {
            said: Said { error: error.to_string(), span: Some(characters(text, error)) },
            ..Refusal::unprocessable("")
        }
    }
}

/// The characters of a text that an error is about.
pub fn characters(text: &str, error: &ProblemError) -> [usize; 2] {
    [error.span.start, error.span.end].map(|at| text.get(..at).map_or(0, |before| before.chars().count()))
}

impl From<ProveError> for Refusal {
    fn from(error: ProveError) -> Refusal {
        match error {
            ProveError::Engine(error) => Refusal::internal(error),
            error => Refusal::unprocessable(error),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::to_string(&self.said).expect("strings and numbers are JSON");
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
