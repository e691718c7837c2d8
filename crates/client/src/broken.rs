//! A request that broke, in a person's words: what came of it, and not which library says so. Everything of the transport
//! that reaches a person comes from here.

use std::error::Error as StdError;
use std::io;

use blindcore_protocol::{Error as LookupError, line};
use blindcore_tls::Fault;
use tonic::Status;

use crate::Error;

/// What a status means that no server's rules made: the transport's, or of an answer that is none. Nothing where it is the
/// server's own word.
pub(crate) fn broken(status: &Status, what: &'static str) -> Option<Error> {
    let network = |why: String| Error::Network { what, why };
    let other = |how: &str| LookupError::Protocol { what: format!("{what} {how}") }.into();
    if let Some(cause) = status.source() {
        if breaks_rules(cause) {
            return Some(other(&format!("was asked, and {NOT_HTTP2}")));
        }
        return Some(network(in_words(cause).unwrap_or_else(|| "the connection broke".to_owned())));
    }
    let said = status.message();
    // A page of HTTP is read as a message before its status is looked at.
    let page = ["mapped from HTTP status code ", "while receiving response with status: "];
    let number = page.iter().find_map(|words| said.split_once(words)).map(|(_, number)| number.get(..3));
    if let Some(number) = number.flatten().filter(|number| *number != "200") {
        return Some(match number {
            "429" | "502" | "503" | "504" => network(format!(
                "HTTP status {number} and no answer came, as from a proxy whose server is away or busy"
            )),
            _ => other(&format!(
                "brought HTTP status {number} and no answer, as from a web server that is not a blindcore server"
            )),
        });
    }
    // As the libraries say it that read answers: tonic and prost.
    let damaged = [
        ("protocol error: missing grpc-status", None),
        ("Unexpected EOF decoding", None),
        ("failed to decode Protobuf", Some("brought an answer that is damaged")),
        (
            "protocol error: received message",
            Some("brought an answer that is damaged, or of another kind of server"),
        ),
        ("Error decompressing", Some("brought an answer that is damaged")),
        ("Content is compressed", Some("brought an answer that is compressed, which nobody asked for")),
        ("Missing response message", Some("brought no answer, or not all of it")),
    ];
    let found = damaged.into_iter().find(|(start, _)| said.starts_with(start));
    match found {
        Some((_, Some(how))) => Some(other(how)),
        Some((_, None)) => Some(network("the answer broke off".to_owned())),
        // Of an answer; or a server's own, of what it was sent.
        None if said.starts_with("Error, decoded message length too large") => {
            let mut numbers = said.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
            let (bytes, limit) = (numbers.next()?, numbers.next()?);
            Some(other(&format!("met a message of {bytes} B, where one has {limit} B at most")))
        }
        None => None,
    }
}

/// A server's own words, or that there are none.
pub(crate) fn words(status: &Status) -> String {
    match status.message() {
        "" => "the server gives no reason".to_owned(),
        said => format!("the server says: {}", line(said)),
    }
}

/// Whether this side ended a connection or a request because of what came.
fn breaks_rules(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref().is_some_and(h2::Error::is_library) || error.source().is_some_and(breaks_rules)
}

/// What an error of the transport means. What lies deepest says most: the layers above repeat it in their own words.
pub(crate) fn in_words(error: &(dyn StdError + 'static)) -> Option<String> {
    let deeper = error.source().and_then(in_words);
    deeper.or_else(|| of_cause(error))
}

/// What a cause means, if it means something by itself.
fn of_cause(cause: &(dyn StdError + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return Some(of_io(error));
    }
    if let Some(error) = cause.downcast_ref::<h2::Error>() {
        return Some(of_http2(error));
    }
    let error = cause.downcast_ref::<hyper::Error>()?;
    let words = match () {
        () if error.is_timeout() => "it fell silent",
        () if error.is_parse() => "what answers there does not keep to HTTP",
        () if error.is_closed() || error.is_incomplete_message() || error.is_canceled() => CLOSED,
        () => return None,
    };
    Some(words.to_owned())
}

const CLOSED: &str = "it closed the connection";
const CUT: &str =
    "what came ends before it is whole, as where it is cut or damaged, or is not a blindcore server's";
const NOT_HTTP2: &str = "what answers there does not keep to HTTP/2, as a blindcore server does";

/// What an error of the system means of a connection.
fn of_io(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::ConnectionRefused => "nobody listens there".to_owned(),
        Kind::TimedOut => "no answer in time".to_owned(),
        Kind::UnexpectedEof
        | Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::BrokenPipe
        | Kind::NotConnected => CLOSED.to_owned(),
        _ => match (Fault::find(error), error.get_ref().and_then(|inner| of_cause(inner))) {
            (Some(fault), _) => fault.to_string(),
            (None, Some(inner)) => inner,
            // No word of the system's: the library's own, of a frame that ends before it is whole.
            (None, None) if error.kind() == Kind::Other && error.raw_os_error().is_none() => CUT.to_owned(),
            (None, None) => line(&error.to_string()),
        },
    }
}

/// What an error of HTTP/2 means. What a server says beside it is for those who wrote the server.
fn of_http2(error: &h2::Error) -> String {
    if let Some(error) = error.get_io() {
        return of_io(error);
    }
    let code = error.reason().filter(|reason| *reason != h2::Reason::NO_ERROR).map(u32::from);
    let code = code.map_or_else(String::new, |code| format!(" (code {code} of HTTP/2)"));
    match (error.is_remote(), error.is_go_away()) {
        (true, true) => format!("it ended the connection{code}"),
        (true, false) => format!("it broke the request off{code}"),
        (false, _) if error.is_library() => NOT_HTTP2.to_owned(),
        (false, _) => "the connection broke".to_owned(),
    }
}
