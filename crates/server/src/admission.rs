//! What happens to a request before anything of its body is read: it is let through as a client's, or refused.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{Request, State as Extract};
use axum::middleware::Next;
use axum::response::Response;

use crate::clients::{ClientId, Peer};
use crate::front::Front;
use crate::permit::MemoryPermit;
use crate::refusal::{answer, is_grpc};

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
