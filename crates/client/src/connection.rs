//! A server, asked over gRPC.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use blindcore_protocol::check_listing;
use blindcore_wire::proto::lookup_client::LookupClient;
use blindcore_wire::{MAX_LISTING_BYTES, proto};
use http::Uri;
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use tower::service_fn;

use crate::connector::{Connector, Said, unreachable};
use crate::error::{chain, refused, spoke};
use crate::registered::KeysInUse;
use crate::token::Authorization;
use crate::{Error, Options, Token};

/// What a URL says without the user's name and password that it may hold: fit for an error.
pub(crate) fn without_user(url: &str) -> String {
    let Some(at) = url.rfind('@') else { return url.to_owned() };
    let start = url.find("//").map(|i| i + 2).filter(|i| *i <= at).unwrap_or(0);
    format!("{}...{}", &url[..start], &url[at..])
}

/// The address in a URL, and whether it asks for TLS.
pub(crate) fn parse(url: &str) -> Result<(Uri, bool), Error> {
    let wrong = |why: &str| Error::Url { url: without_user(url), why: why.to_owned() };
    if url.contains('@') {
        return Err(wrong("it names a user, and a server knows its clients by tokens (--token-file)"));
    }
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
    Ok((uri, encrypted))
}

/// A connection to a server. Clones share it.
#[derive(Clone)]
pub struct Client {
    pub(crate) grpc: LookupClient<InterceptedService<Channel, Authorization>>,
    pub(crate) options: Arc<Options>,
    /// Host and port, for the names of cached hints.
    pub(crate) server: Arc<str>,
    pub(crate) keys: Arc<KeysInUse>,
    said: Said,
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
        let (uri, encrypted) = parse(url)?;
        let server = uri.authority().map_or_else(String::new, ToString::to_string).into();
        let connector = Connector::new(&uri, encrypted, &options, b"h2")?;
        let (limit, said) = (options.connect_timeout, connector.said());
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
        let keys = Arc::default();
        Ok(Self { grpc, options: Arc::new(options), server, keys, said })
    }

    /// Whether a server could be asked with these settings, whether or not one answers: its address, if there is one, the
    /// authorities and the cache's folder are looked at.
    ///
    /// # Errors
    /// As [`Client::connect_with`]; or the cache can't be used.
    pub fn check(url: Option<&str>, options: &Options) -> Result<(), Error> {
        match url.map(parse).transpose()? {
            Some((uri, encrypted)) => drop(Connector::new(&uri, encrypted, options, b"h2")?),
            None => drop(blindcore_tls::client(options.ca.as_deref())?),
        }
        options.cache.check()
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

    /// Waits for an answer no longer than allowed.
    pub(crate) async fn within<T>(
        &self,
        what: &'static str,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<Result<T, Status>, Error> {
        let limit = self.options.request_timeout;
        match timeout(limit, answer).await {
            Ok(Err(_)) if let Some(said) = self.said.get() => Err(spoke(said, what)),
            Ok(answer) => Ok(answer.map(Response::into_inner)),
            Err(_) => {
                let why =
                    format!("no answer within {} s; a longer timeout waits for it", limit.as_secs_f32());
                Err(Error::Network { what, why })
            }
        }
    }
}
