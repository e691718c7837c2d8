//! A server, asked over gRPC.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blindcore_protocol::{Policy, Table, Trust, check_listing};
use blindcore_wire::proto::lookup_client::LookupClient;
use blindcore_wire::{MAX_LISTING_BYTES, MAX_TABLE_BYTES, proto};
use http::Uri;
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use tower::service_fn;

use crate::cache::CacheDir;
use crate::connector::{Connector, unreachable};
use crate::error::{chain, refused};
use crate::hint::Progress;
use crate::token::Authorization;
use crate::{Error, TableClient, Token};

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where hints are kept.
    pub cache: CacheDir,
    /// A PEM file of authorities that may sign the server's certificate, beside Mozilla's list.
    pub ca: Option<PathBuf>,
    /// What identifies this client, if the server answers only to known ones. Never sent over plain text beyond this machine.
    pub token: Option<Token>,
    /// Asks servers beyond this machine over `http://` too, which everybody between can read and change.
    pub plain_text: bool,
    /// Which tables are taken from the server.
    pub trust: Trust,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer, or the next piece of a hint, may take.
    pub request_timeout: Duration,
    /// The largest hint that is fetched, in bytes. It is held in memory.
    pub hint_bytes: u64,
    /// The most queries in a request, whatever the server allows: they and their answers are held in memory.
    pub queries_per_request: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache: CacheDir::User,
            ca: None,
            token: None,
            plain_text: false,
            trust: Trust::Server,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(120),
            hint_bytes: 4 << 30,
            queries_per_request: 64,
        }
    }
}

/// A connection to a server. Clones share it.
#[derive(Clone)]
pub struct Client {
    pub(crate) grpc: LookupClient<InterceptedService<Channel, Authorization>>,
    pub(crate) options: Arc<Options>,
    /// Host and port, for the names of cached hints.
    pub(crate) server: Arc<str>,
}

impl Client {
    /// Connects to `https://HOST:PORT`, or to `http://HOST:PORT` on this machine.
    ///
    /// # Errors
    /// The address is none, nobody answers there, the server's certificate doesn't show that it is `HOST`, or plain text
    /// would leave the machine.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, Options::default()).await
    }

    /// Connects with other settings.
    ///
    /// # Errors
    /// As [`Client::connect`], or the file of certificates can't be used.
    pub async fn connect_with(url: &str, options: Options) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Url { url: url.to_owned(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|e| wrong(&chain(&e)))?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(wrong("only http:// and https:// are spoken")),
            None => return Err(wrong("it starts with neither http:// nor https://")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("it goes on after the port"));
        }
        if uri.port_u16().is_none() && uri.authority().is_some_and(|a| !a.as_str().ends_with(a.host())) {
            return Err(wrong("its port is not a number from 0 to 65535"));
        }
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(wrong("it names a user"));
        }
        let server = uri.authority().map_or_else(String::new, ToString::to_string).into();
        let connector = Connector::new(&uri, encrypted, &options)?;
        let limit = options.connect_timeout;
        // The connector does what `https` asks for: to tonic, whatever it was built with, it is any connection.
        let endpoint = Endpoint::from(Uri::from_static("http://blindcore.invalid"))
            .origin(uri)
            // A hint comes as fast as the network allows, not as windows do.
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20));
        let service = service_fn(move |_: Uri| {
            let connector = connector.clone();
            async move {
                let late = |_| io::Error::from(io::ErrorKind::TimedOut);
                timeout(limit, connector.connect()).await.map_err(late)?
            }
        });
        let channel = endpoint.connect_with_connector(service).await;
        let channel = channel.map_err(|e| unreachable(url, &e))?;
        let shown = Authorization(options.token.as_ref().map(Token::metadata));
        let grpc = LookupClient::with_interceptor(channel, shown);
        Ok(Self { grpc, options: Arc::new(options), server })
    }

    /// The tables that the server has.
    ///
    /// # Errors
    /// The server can't be asked, or its answer makes no sense.
    pub async fn tables(&self) -> Result<Vec<proto::TableSummary>, Error> {
        const WHAT: &str = "the list of tables";
        let mut grpc = self.grpc.clone().max_decoding_message_size(MAX_LISTING_BYTES);
        let tables = grpc.list_tables(proto::ListTablesRequest {});
        let tables = self.within(WHAT, tables).await?.map_err(|s| refused(&s, WHAT, "", 0))?;
        Ok(check_listing(tables)?)
    }

    /// Opens a table: fetches its description and, unless it is cached, its hint.
    ///
    /// # Errors
    /// There is no such table, its description is refused, or its hint can't be had.
    pub async fn table(&self, name: &str) -> Result<TableClient, Error> {
        self.table_with(name, None).await
    }

    /// Opens a table, telling how far its hints are.
    ///
    /// # Errors
    /// As [`Client::table`].
    pub async fn table_with(&self, name: &str, progress: Option<Progress>) -> Result<TableClient, Error> {
        self.open(name, progress, None).await
    }

    /// Opens a table, taking over from `before` what did not change since.
    pub(crate) async fn open(
        &self,
        name: &str,
        progress: Option<Progress>,
        before: Option<&TableClient>,
    ) -> Result<TableClient, Error> {
        const WHAT: &str = "a table's description";
        let request = Table::request(name)?;
        let mut grpc = self.grpc.clone().max_decoding_message_size(MAX_TABLE_BYTES);
        let answer = self.within(WHAT, grpc.get_table(request)).await?;
        let answer = answer.map_err(|s| refused(&s, WHAT, name, 0))?;
        let Options { trust, hint_bytes, queries_per_request, .. } = *self.options;
        let policy = Policy { trust, hint_bytes, queries_per_request };
        let table = Table::open(name, answer, &policy, before.map(TableClient::table))?;
        TableClient::open(self.clone(), table, progress).await
    }

    /// Waits for an answer no longer than allowed.
    pub(crate) async fn within<T>(
        &self,
        what: &'static str,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<Result<T, Status>, Error> {
        let limit = self.options.request_timeout;
        match timeout(limit, answer).await {
            Ok(answer) => Ok(answer.map(Response::into_inner)),
            Err(_) => {
                let why =
                    format!("no answer within {} s; a longer timeout waits for it", limit.as_secs_f32());
                Err(Error::Network { what, why })
            }
        }
    }
}
