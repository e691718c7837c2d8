//! `blindcore token`: makes tokens, which identify clients to a server.

use std::path::{Path, PathBuf};

use anyhow::Context;
use blindcore_files::secret::TOKEN_PREFIX;
use blindcore_files::small::read_text;
use blindcore_files::{Access, Existing, new_file, secret};
use blindcore_server::Tokens;
use serde_json::json;
use zeroize::Zeroizing;

use crate::{Outcome, output};

/// No file with a token is longer.
const MAX_FILE_BYTES: u64 = 4096;

#[derive(clap::Args)]
#[command(after_help = "\
Example:
  blindcore token ada --out ada.token
  blindcore serve people.db --tokens tokens.txt ...     tokens.txt holds the line, and others' lines
  blindcore get --token-file ada.token ...              ada.token holds the token

A token is 256 bits from the operating system and is shown once. The line holds its digest: a reader of a
server's file of tokens can't ask with it.")]
pub(crate) struct Token {
    /// Whose it is: 1 to 64 letters, digits and . _ - @
    name: String,
    /// Write the token to this file, for its owner alone, instead of showing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn make(args: &Token) -> anyhow::Result<Outcome> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes).context("the operating system gives no random bytes")?;
    let digits = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
    let mut token = Zeroizing::new(String::with_capacity(TOKEN_PREFIX.len() + 64));
    token.push_str(TOKEN_PREFIX);
    token.extend(digits.map(|d| char::from_digit(d.into(), 16).expect("below 16")));
    let line = Tokens::line(&args.name, &token).map_err(|why| anyhow::anyhow!("{:?}: {why}", args.name))?;
    if let Some(out) = &args.out {
        let line = Zeroizing::new(format!("{}\n", *token));
        new_file::write(out, Access::Owner, Existing::Keep, line.as_bytes())?;
        output::done(format!("{} is made, and its line for the server is lost; make another", out.display()));
    }
    let shown = args.out.is_none().then_some(&*token);
    if args.json {
        output::json(&json!({"name": args.name, "token": shown, "out": args.out, "line": line}))?;
    } else if args.out.is_some() {
        output::print(&format!("{line}\n"))?;
    } else {
        output::print(&format!(
            "{}\n    the token: for {} alone, and shown this once\n{line}\n    the line for the server's --tokens\n",
            *token, args.name
        ))?;
    }
    Ok(Outcome::Done)
}

/// Says so where others may read or write a file that holds a secret.
pub(crate) fn warn_exposed(what: &str, path: &Path) {
    secret::exposed(what, path).iter().for_each(|warning| output::note(warning));
}

/// The token in a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<blindcore_client::Token> {
    let text = read_text(path, MAX_FILE_BYTES).context("the token can't be read")?;
    warn_exposed("token", path);
    blindcore_client::Token::new(&text).with_context(|| path.display().to_string())
}
