//! A request refused, in the words of gRPC and of HTTP.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use blindcore_wire::{REASON_HEADER, Reason};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// A request refused: what, value, limit and remedy.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    message: String,
    /// Whole seconds after which asking again makes sense.
    retry_after: Option<u64>,
    /// HTTP's status, where another than its reason's says more.
    status: Option<StatusCode>,
}

pub(crate) const HEADER: HeaderName = HeaderName::from_static(REASON_HEADER);

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        let retry_after = matches!(reason, Reason::Busy | Reason::TooMany).then_some(1);
        Self { reason, message: message.into(), retry_after, status: None }
    }

    /// The same under this status of HTTP.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// What it says.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Says when asking again makes sense.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait.as_secs() + 1);
        self
    }

    fn code(&self) -> (Code, StatusCode) {
        match self.reason {
            Reason::UnknownTable | Reason::UnknownPart => (Code::NotFound, StatusCode::NOT_FOUND),
            Reason::StaleEpoch | Reason::WrongParameters | Reason::UnknownKeys => {
                (Code::FailedPrecondition, StatusCode::CONFLICT)
            }
            Reason::WrongSize | Reason::Malformed | Reason::WrongKeys => {
                (Code::InvalidArgument, StatusCode::BAD_REQUEST)
            }
            Reason::TooLarge => (Code::OutOfRange, StatusCode::PAYLOAD_TOO_LARGE),
            Reason::Unauthorized => (Code::Unauthenticated, StatusCode::UNAUTHORIZED),
            Reason::Busy | Reason::TooMany => (Code::ResourceExhausted, StatusCode::TOO_MANY_REQUESTS),
            Reason::TimedOut => (Code::DeadlineExceeded, StatusCode::REQUEST_TIMEOUT),
            Reason::Draining => (Code::Unavailable, StatusCode::SERVICE_UNAVAILABLE),
            _ => (Code::Internal, StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    pub(crate) fn status(&self) -> Status {
        let mut metadata = MetadataMap::new();
        metadata.insert(REASON_HEADER, MetadataValue::from_static(self.reason.as_str()));
        if let Some(seconds) = self.retry_after {
            metadata.insert(RETRY_AFTER.as_str(), seconds.into());
        }
        Status::with_metadata(self.code().0, &self.message, metadata)
    }

    /// The refusal that a body's error carries, if it is one of ours.
    pub(crate) fn find(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut error = Some(error);
        while let Some(this) = error {
            if let Some(status) = this.downcast_ref::<Status>() {
                let reason = status.metadata().get(REASON_HEADER)?.to_str().ok()?.parse().ok()?;
                return Some(Self::new(reason, status.message()));
            }
            error = this.source();
        }
        None
    }
}

/// A refusal of the layers below, such as another method than a path has, in the form of ours. Status and other headers stay.
pub(crate) async fn in_json(response: Response) -> Response {
    let status = response.status();
    let of_ours = |kind: &HeaderValue| {
        [&b"application/json"[..], b"application/grpc"].iter().any(|t| kind.as_bytes().starts_with(t))
    };
    if !(status.is_client_error() || status.is_server_error())
        || response.headers().get(CONTENT_TYPE).is_some_and(of_ours)
    {
        return response;
    }
    let why = match status {
        StatusCode::METHOD_NOT_ALLOWED => "this is asked by another method, which the header allow names",
        status if status.is_client_error() => "the request can't be read; see what it asks for",
        _ => "the server can't answer; ask again later, or another one",
    };
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(CONTENT_TYPE);
    let reason = if status.is_client_error() { Reason::Malformed } else { Reason::Internal };
    let mut refused = Json(json!({ "error": why, "reason": reason.as_str() })).into_response();
    refused.headers_mut().extend(parts.headers);
    *refused.status_mut() = status;
    refused
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error": self.message, "reason": self.reason.as_str() }));
        let mut response = (self.status.unwrap_or(self.code().1), body).into_response();
        response.headers_mut().insert(HEADER, HeaderValue::from_static(self.reason.as_str()));
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if self.reason == Reason::Unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Whether it is to be answered in the words of gRPC.
pub(crate) fn is_grpc<B>(request: &http::Request<B>) -> bool {
    request.headers().get(CONTENT_TYPE).is_some_and(|t| t.as_bytes().starts_with(b"application/grpc"))
}

/// A refusal in the protocol of its request.
pub(crate) fn answer(refusal: Refusal, grpc: bool) -> Response {
    if grpc {
        refusal.status().into_http::<tonic::body::Body>().map(axum::body::Body::new)
    } else {
        refusal.into_response()
    }
}
