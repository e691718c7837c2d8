//! The gRPC face.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use blindcore_wire::proto::lookup_server::Lookup;
use blindcore_wire::{PartKind, Reason, proto};
use bytes::Bytes;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use crate::clients::Client;
use crate::permit::MemoryPermit;
use crate::refusal::Refusal;
use crate::sizes::{CHUNK_BYTES, HINT_BUFFERS};
use crate::state::State;
use crate::table::Hint;

/// Reads a range of a hint in pieces, each on its client's account when it leaves. One that can't be read is the last.
pub(crate) fn chunks(
    hint: Arc<dyn Hint>,
    mut range: Range<u64>,
    client: Arc<Client>,
) -> impl Iterator<Item = Result<Bytes, Refusal>> + Send {
    std::iter::from_fn(move || {
        let len = (range.end - range.start).min(CHUNK_BYTES as u64) as usize;
        if len == 0 {
            return None;
        }
        let mut piece = vec![0; len];
        Some(match hint.read_at(range.start, &mut piece) {
            Ok(()) => {
                client.fetched(len);
                range.start += len as u64;
                Ok(piece.into())
            }
            Err(error) => {
                range.start = range.end;
                tracing::error!(%error, "a hint can't be read");
                let message =
                    "the server failed to read this hint; its log says why; ask another one, or later";
                Err(Refusal::new(Reason::Internal, message))
            }
        })
    })
}

pub(crate) struct Grpc(pub(crate) Arc<State>);

impl Grpc {
    /// What the request holds until its answer has left.
    fn held<T>(&self, request: &Request<T>) -> Arc<MemoryPermit> {
        let held = request.extensions().get::<Arc<MemoryPermit>>().cloned();
        held.unwrap_or_else(|| MemoryPermit::new(self.0.front.budget.clone()))
    }
}

/// Whose request it is: nobody gets here whom `admit` didn't see.
fn client<T>(request: &Request<T>) -> Arc<Client> {
    request.extensions().get::<Arc<Client>>().expect("every request is admitted").clone()
}

#[tonic::async_trait]
impl Lookup for Grpc {
    async fn list_tables(
        &self,
        request: Request<proto::ListTablesRequest>,
    ) -> Result<Response<proto::ListTablesResponse>, Status> {
        let held = self.held(&request);
        held.take(self.0.listing_bytes()).map_err(|r| self.0.front.refused(r).status())?;
        let tables = self.0.newest().iter().map(|t| t.summary()).collect();
        Ok(Response::new(proto::ListTablesResponse { tables }))
    }

    async fn get_table(
        &self,
        request: Request<proto::GetTableRequest>,
    ) -> Result<Response<proto::GetTableResponse>, Status> {
        let held = self.held(&request);
        let table = self.0.table(&request.get_ref().name, None);
        let table = table.and_then(|t| held.take(t.description_bytes()).map(|()| t));
        Ok(Response::new(table.map_err(|r| self.0.front.refused(r).status())?.to_proto()))
    }

    type GetHintStream = Pin<Box<dyn Stream<Item = Result<proto::HintChunk, Status>> + Send>>;

    async fn get_hint(
        &self,
        request: Request<proto::GetHintRequest>,
    ) -> Result<Response<Self::GetHintStream>, Status> {
        let client = client(&request);
        let held = self.held(&request);
        let proto::GetHintRequest { table, epoch, part, offset } = request.into_inner();
        let hint = client
            .may_fetch()
            .and_then(|()| held.take_for_hint(HINT_BUFFERS))
            .and_then(|()| self.0.hint(&table, Some(epoch), PartKind::from_proto(part), offset));
        let (hint, range) = hint.map_err(|r| self.0.front.refused(r).status())?;
        let pieces = chunks(hint, range, client);
        let pieces = pieces.map(|piece| piece.map(|data| proto::HintChunk { data }).map_err(|r| r.status()));
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }

    async fn register_keys(
        &self,
        request: Request<proto::RegisterKeysRequest>,
    ) -> Result<Response<proto::RegisterKeysResponse>, Status> {
        let client = client(&request);
        let kept = self.0.register(request.into_inner(), &client).await;
        Ok(Response::new(kept.map_err(|r| self.0.front.refused(r).status())?))
    }

    async fn query(
        &self,
        request: Request<proto::QueryRequest>,
    ) -> Result<Response<proto::QueryResponse>, Status> {
        let held = self.held(&request);
        let client = client(&request);
        let answer = self.0.query(request.into_inner(), &held, &client).await;
        Ok(Response::new(answer.map_err(|r| self.0.front.refused(r).status())?))
    }
}
