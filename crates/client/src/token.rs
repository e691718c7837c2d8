//! What identifies a client to a server.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};
use zeroize::Zeroizing;

use crate::Error;

/// The longest token.
const MAX_TOKEN: usize = 512;

/// A token: a secret between a client and a server that answers to some alone. It has nothing to do with what is looked up.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<String>>);

impl Token {
    /// A token as `blindcore token` printed it; spaces and line ends around it are not part of it.
    ///
    /// # Errors
    /// It is empty, over 512 characters, or has a space or what can't be seen.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(Arc::new(Zeroizing::new(text.to_owned()))))
        } else {
            Err(Error::Token { limit: MAX_TOKEN })
        }
    }

    /// As HTTP's `Authorization` has it.
    pub(crate) fn header(&self) -> HeaderValue {
        let text = Zeroizing::new(format!("Bearer {}", self.0.as_str()));
        let mut value = HeaderValue::try_from(text.as_str()).expect("visible characters");
        value.set_sensitive(true);
        value
    }

    pub(crate) fn metadata(&self) -> MetadataValue<Ascii> {
        let text = Zeroizing::new(format!("Bearer {}", self.0.as_str()));
        let mut value = MetadataValue::try_from(text.as_str()).expect("visible characters");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Shows the token with every request.
#[derive(Clone)]
pub(crate) struct Authorization(pub(crate) Option<MetadataValue<Ascii>>);

impl Interceptor for Authorization {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_checked_and_not_shown() {
        let token = Token::new(" hunter2\r\n").unwrap();
        assert_eq!(format!("{token:?} {:?}", token.metadata()), "Token(..) Sensitive");
        assert_eq!(token.metadata().to_str().unwrap(), "Bearer hunter2");
        for none in ["", " \n", "a b", "a\nb", "café", &"x".repeat(513)] {
            assert!(Token::new(none).is_err(), "{none:?}");
        }
    }
}
