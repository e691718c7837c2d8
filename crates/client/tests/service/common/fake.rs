//! A server that does as a test says.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blindcore_wire::proto;
use blindcore_wire::proto::lookup_server::{Lookup, LookupServer};
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt, iter};
use tonic::{Request, Response, Status};

use super::Made;

/// What is answered to a request.
pub(crate) type Answer =
    Box<dyn Fn(&proto::QueryRequest) -> Result<proto::QueryResponse, Status> + Send + Sync>;

/// How a download goes on that brought nothing yet.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Pieces,
    Silence,
    Drips,
}

/// What the server does, and what it saw.
pub(crate) struct Fake {
    pub(crate) table: proto::GetTableResponse,
    /// Bytes of `records`' hint.
    pub(crate) hint: Bytes,
    pub(crate) keys_hint: Bytes,
    /// Bytes of a piece.
    pub(crate) piece: usize,
    /// After how many bytes each download breaks; those past the list don't.
    pub(crate) cuts: Vec<usize>,
    pub(crate) answer: Answer,
    /// What becomes of a hint behind its pieces: it ends, nothing comes any more, or a byte now and then.
    pub(crate) then: Then,
    /// Where each download started.
    pub(crate) offsets: Mutex<Vec<u64>>,
    /// Part and bytes of each request.
    pub(crate) queries: Mutex<Vec<(i32, usize)>>,
    /// Keys that were registered.
    pub(crate) registrations: Mutex<Vec<Bytes>>,
}

impl Fake {
    pub(crate) fn of(made: &Made) -> Self {
        let keys = made.keys.as_ref();
        Self {
            table: proto::GetTableResponse {
                table: Some(made.description.to_proto()),
                records_queries: 8,
                keys_queries: keys.map_or(0, |_| 8),
                ..Default::default()
            },
            hint: made.records.hint(),
            keys_hint: keys.map(|k| k.hint()).unwrap_or_default(),
            piece: 10_000,
            cuts: Vec::new(),
            answer: Box::new(|_| Err(Status::unimplemented("not in this test"))),
            then: Then::Pieces,
            offsets: Mutex::default(),
            queries: Mutex::default(),
            registrations: Mutex::default(),
        }
    }

    /// Serves until the test ends.
    pub(crate) async fn start(self) -> (SocketAddr, Arc<Self>) {
        let this = Arc::new(self);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = LookupServer::from_arc(this.clone())
            .max_encoding_message_size(usize::MAX)
            .max_decoding_message_size(usize::MAX);
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        (address, this)
    }
}

#[tonic::async_trait]
impl Lookup for Fake {
    async fn list_tables(
        &self,
        _: Request<proto::ListTablesRequest>,
    ) -> Result<Response<proto::ListTablesResponse>, Status> {
        let tables = vec![proto::TableSummary { name: "\u{1b}[2J".into(), ..Default::default() }];
        Ok(Response::new(proto::ListTablesResponse { tables }))
    }

    async fn get_table(
        &self,
        _: Request<proto::GetTableRequest>,
    ) -> Result<Response<proto::GetTableResponse>, Status> {
        Ok(Response::new(self.table.clone()))
    }

    type GetHintStream = Pin<Box<dyn Stream<Item = Result<proto::HintChunk, Status>> + Send>>;

    async fn get_hint(
        &self,
        request: Request<proto::GetHintRequest>,
    ) -> Result<Response<Self::GetHintStream>, Status> {
        let request = request.into_inner();
        let (offset, keys) = (request.offset as usize, request.part == proto::PartKind::Keys as i32);
        let mut offsets = self.offsets.lock().unwrap();
        let cut = self.cuts.get(offsets.len()).copied();
        offsets.push(request.offset);
        drop(offsets);
        let byte = async |_| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(proto::HintChunk { data: Bytes::from_static(b"x") })
        };
        match self.then {
            Then::Silence => return Ok(Response::new(Box::pin(tokio_stream::pending()))),
            Then::Drips => return Ok(Response::new(Box::pin(iter(0..).then(byte)))),
            Then::Pieces => {}
        }
        let rest = if keys { &self.keys_hint } else { &self.hint }.slice(offset..);
        let sent = rest.slice(..cut.unwrap_or(rest.len()).min(rest.len()));
        let mut pieces: Vec<_> = if self.piece == 0 {
            vec![Ok(proto::HintChunk { data: Bytes::new() })]
        } else {
            sent.chunks(self.piece).map(|p| Ok(proto::HintChunk { data: sent.slice_ref(p) })).collect()
        };
        if cut.is_some() {
            pieces.push(Err(Status::unavailable("the cable was pulled")));
        }
        Ok(Response::new(Box::pin(iter(pieces))))
    }

    async fn register_keys(
        &self,
        request: Request<proto::RegisterKeysRequest>,
    ) -> Result<Response<proto::RegisterKeysResponse>, Status> {
        self.registrations.lock().unwrap().push(request.into_inner().keys);
        Ok(Response::new(proto::RegisterKeysResponse {}))
    }

    async fn query(
        &self,
        request: Request<proto::QueryRequest>,
    ) -> Result<Response<proto::QueryResponse>, Status> {
        let request = request.into_inner();
        self.queries.lock().unwrap().push((request.part, request.queries.len()));
        (self.answer)(&request).map(Response::new)
    }
}
