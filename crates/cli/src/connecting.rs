//! The server that a command asks, and how.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use blindcore_client::{Options, TIMEOUTS, Token, timeout_seconds};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::{output, token};

#[derive(clap::Args)]
pub(crate) struct ServerArgs {
    /// The server: https://HOST:PORT, or http://127.0.0.1:7700 and the like on this machine
    #[arg(long, env = "BLINDCORE_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Authorities that may sign the server's certificate, or that certificate, in PEM; beside Mozilla's list
    #[arg(long, env = "BLINDCORE_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// File of the token that identifies this client; BLINDCORE_TOKEN can hold the token itself
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Seconds that a whole request may take, 1 to 86400 [default: 120; 3600 for a hint, 300 for scores]
    #[arg(long, env = "BLINDCORE_TIMEOUT", value_name = "SECONDS", value_parser = timeout_seconds, allow_hyphen_values = true)]
    pub(crate) timeout: Option<u64>,
    /// Seconds in which a hint's download may bring nothing, or less than 64 KiB [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = timeout_seconds, allow_hyphen_values = true)]
    pub(crate) idle_timeout: Option<u64>,
    /// Ask a server beyond this machine over http://; everybody on the way can then read and change the traffic
    #[arg(long)]
    pub(crate) plain_text: bool,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl ServerArgs {
    /// The server, as flags say or, where they don't, as settings do; one such as is asked for listens at that port.
    pub(crate) fn url(&self, config: &Config, port: u16) -> anyhow::Result<String> {
        let named = self.server.clone().or_else(|| config.server.clone());
        named.with_context(|| {
            format!("no server is named; say --server http://127.0.0.1:{port} or set BLINDCORE_SERVER")
        })
    }

    /// How it is asked.
    pub(crate) fn options(&self, config: &Config) -> anyhow::Result<Options> {
        let variable = blindcore_units::text_variable("BLINDCORE_TOKEN")
            .map_err(anyhow::Error::msg)?
            .map(Zeroizing::new);
        let named = self.server.as_ref().is_some_and(|server| !server.is_empty());
        let asked = config.asked(named, self.token_file.is_some() || variable.is_some())?;
        asked.note.iter().for_each(|note| output::note(note));
        let token = match (self.token_file.as_deref().or(asked.token_file), variable) {
            (Some(path), _) => Some(token::read(path)?),
            (None, Some(token)) => Some(Token::new(&token).context("BLINDCORE_TOKEN")?),
            (None, None) => None,
        };
        let ca = self.ca.as_deref().or(asked.ca).map(Into::into);
        let plain_text = self.plain_text || asked.plain_text;
        let mut options = Options { ca, token, plain_text, ..Options::default() };
        if let Some(seconds) = self.timeout.or(config.timeout) {
            anyhow::ensure!(
                TIMEOUTS.contains(&seconds),
                "timeout of the settings file is {seconds} s, outside 1 to 86400"
            );
            [options.request_timeout, options.hint_timeout] = [Duration::from_secs(seconds); 2];
        }
        options.idle_timeout = self.idle_timeout.map_or(options.idle_timeout, Duration::from_secs);
        Ok(options)
    }
}
