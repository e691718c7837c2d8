//! Access: tokens, and the certificates that new connections are encrypted with; both can change while a server runs.

use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::Request;
use blindcore_wire::Reason;
use http::header::AUTHORIZATION;

use crate::refusal::Refusal;
use crate::{Config, Tokens};

/// What can change while a server runs.
pub(crate) struct Access {
    tls: RwLock<Option<Arc<rustls::ServerConfig>>>,
    tokens: RwLock<Option<Arc<Tokens>>>,
}

impl Access {
    pub(crate) fn new(config: &Config) -> Self {
        Self { tls: RwLock::new(config.tls.clone()), tokens: RwLock::new(config.tokens.clone()) }
    }

    pub(crate) fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_tls(&self, tls: Arc<rustls::ServerConfig>) {
        replace(&self.tls, tls);
    }

    pub(crate) fn set_tokens(&self, tokens: Arc<Tokens>) {
        replace(&self.tokens, tokens);
    }

    /// Whose token a request shows; nobody's where none is asked for.
    pub(crate) fn owner(&self, request: &Request) -> Result<Option<Arc<str>>, Refusal> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(tokens) = tokens else { return Ok(None) };
        let Some(shown) = request.headers().get(AUTHORIZATION) else {
            return Err(Refusal::new(
                Reason::Unauthorized,
                "this server answers only requests with a token; send one as Authorization: Bearer TOKEN (--token-file)",
            ));
        };
        let token = match shown.as_bytes().split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => token.trim_ascii(),
            _ => b"",
        };
        let owner = tokens.owner(token).ok_or_else(|| {
            Refusal::new(Reason::Unauthorized, "the token is none of this server's; ask its operator for one")
        })?;
        Ok(Some(owner))
    }
}

/// Another value for what was there; what wasn't stays away, for a server doesn't become another kind under its clients.
fn replace<T>(place: &RwLock<Option<T>>, value: T) {
    let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
    if place.is_some() {
        *place = Some(value);
    }
}
