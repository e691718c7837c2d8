//! What happens to a request before anything of its body is read: it is let through as a client's, or refused.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{Request, State as Extract};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;

use crate::clients::ClientId;
use crate::front::Front;
use crate::permit::MemoryPermit;
use crate::refusal::Refusal;

/// Where a request comes from.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Lets a request through to the tables, or refuses it before anything of its body is read.
pub(crate) async fn admit(Extract(front): Extract<Arc<Front>>, mut request: Request, next: Next) -> Response {
    match front.access.owner(&request) {
        Ok(owner) => {
            let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |p| p.0);
            let client = owner.map_or_else(|| ClientId::from(peer), ClientId::Token);
            let client = front.clients.get(client);
            if let Some(held) = request.extensions().get::<Arc<MemoryPermit>>() {
                held.belongs_to(&client);
            }
            request.extensions_mut().insert(client);
            next.run(request).await
        }
        Err(refusal) => answer(front.refused(refusal), is_grpc(&request)),
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
