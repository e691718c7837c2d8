//! Messages: a kind, a length and bytes. Both sides know every length beforehand, so none is taken from a peer.

use std::io::{ErrorKind, IoSlice, Read, Write};

use super::SessionError;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Message {
    Hello = 1,
    InputLabels = 2,
    Tables = 3,
    Decoding = 4,
    OutputLabels = 5,
    Transfer = 6,
    Done = 7,
    About = 8,
}

impl Message {
    const ALL: [Message; 8] = [
        Message::Hello,
        Message::InputLabels,
        Message::Tables,
        Message::Decoding,
        Message::OutputLabels,
        Message::Transfer,
        Message::Done,
        Message::About,
    ];

    fn name(self) -> &'static str {
        match self {
            Message::Hello => "a hello",
            Message::InputLabels => "labels of inputs",
            Message::Tables => "tables",
            Message::Decoding => "the decoding of outputs",
            Message::OutputLabels => "labels of outputs",
            Message::Transfer => "a proxy transfer",
            Message::Done => "an end",
            Message::About => "what a circuit has",
        }
    }

    /// What is being done while it is waited for or sent.
    fn during(self) -> &'static str {
        match self {
            Message::Hello | Message::About => "during the hello",
            Message::InputLabels => "while labels of inputs were due",
            Message::Tables => "while tables were due",
            Message::Decoding | Message::OutputLabels => "while outputs were due",
            Message::Transfer => "during a proxy transfer",
            Message::Done => "at the end",
        }
    }
}

/// Bytes before a message's own.
const HEADER: usize = 5;

/// Sends a message; it is on its way when [`flush`] returns. Its header goes with it, not before it.
pub(super) fn send<C: Write>(channel: &mut C, message: Message, bytes: &[u8]) -> Result<(), SessionError> {
    let mut header = [message as u8; HEADER];
    let length = u32::try_from(bytes.len()).expect("messages are shorter than 4 GiB");
    header[1..].copy_from_slice(&length.to_le_bytes());
    let mut left = &mut [IoSlice::new(&header), IoSlice::new(bytes)][..];
    while left.iter().any(|part| !part.is_empty()) {
        match channel.write_vectored(left) {
            Ok(0) => return Err(SessionError::io(message.during(), ErrorKind::WriteZero.into())),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(SessionError::io(message.during(), e)),
        }
    }
    Ok(())
}

pub(super) fn flush<C: Write>(channel: &mut C, message: Message) -> Result<(), SessionError> {
    channel.flush().map_err(|e| SessionError::io(message.during(), e))
}

/// Receives a message of exactly this kind and length.
pub(super) fn receive<C: Read>(
    channel: &mut C,
    message: Message,
    bytes: &mut [u8],
) -> Result<(), SessionError> {
    header(channel, message, |length| length == bytes.len(), || format!("of {} B", bytes.len()))?;
    channel.read_exact(bytes).map_err(|e| SessionError::io(message.during(), e))
}

/// Receives a message of this kind that is no longer than `most`, for its parser to check.
pub(super) fn receive_at_most<C: Read>(
    channel: &mut C,
    message: Message,
    most: usize,
) -> Result<Vec<u8>, SessionError> {
    let length = header(channel, message, |length| length <= most, || format!("of at most {most} B"))?;
    let mut bytes = vec![0; length];
    channel.read_exact(&mut bytes).map_err(|e| SessionError::io(message.during(), e))?;
    Ok(bytes)
}

fn header<C: Read>(
    channel: &mut C,
    message: Message,
    fits: impl Fn(usize) -> bool,
    want: impl Fn() -> String,
) -> Result<usize, SessionError> {
    let mut header = [0; HEADER];
    channel.read_exact(&mut header).map_err(|e| SessionError::io(message.during(), e))?;
    if blindcore_tls::is_record(&header) {
        return Err(SessionError::SpeaksTls);
    }
    let kind = Message::ALL.into_iter().find(|m| *m as u8 == header[0]);
    let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if kind != Some(message) || !fits(length) {
        let got = kind.map_or_else(
            || format!("{}, which is not a message of blindcore,", looks_like(header)),
            |kind| format!("{} of {length} B", kind.name()),
        );
        return Err(SessionError::Protocol { got, want: format!("{} {}", message.name(), want()) });
    }
    Ok(length)
}

/// What the first bytes of something else may be.
fn looks_like(start: [u8; HEADER]) -> &'static str {
    const METHODS: [&[u8]; 6] = [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PRI ", b"OPTIO"];
    match &start {
        b"HTTP/" => "an answer of HTTP",
        _ if METHODS.iter().any(|method| start.starts_with(method)) => "a request of HTTP",
        b"SSH-1" | b"SSH-2" => "a greeting of SSH",
        _ if start.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) => "text",
        _ => "other bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_something_else_is_told_what() {
        for (text, words) in [
            ("HTTP/1.1 400 Bad Request\r\n", "an answer of HTTP"),
            ("GET / HTTP/1.1\r\n", "a request of HTTP"),
            ("PRI * HTTP/2.0\r\n", "a request of HTTP"),
            ("SSH-2.0-OpenSSH\r\n", "a greeting of SSH"),
            ("hello there\n", "text"),
            ("\u{ff}\u{ff}\u{ff}", "other bytes"),
        ] {
            let error = receive(&mut text.as_bytes(), Message::Done, &mut []).unwrap_err().to_string();
            let want = format!(
                "the peer sent {words}, which is not a message of blindcore, where an end of 0 B was due"
            );
            assert!(error.starts_with(&want), "{error}");
        }
    }
}
