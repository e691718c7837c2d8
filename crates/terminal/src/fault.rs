//! An error's words: what is wrong, and what to do.

use std::ffi::OsString;
use std::fmt;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, with the value and the limit.
    pub error: String,
    /// What to do, where anything can be done.
    pub remedy: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        self.remedy.iter().try_for_each(|remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// The words of an error and of its causes. What follows the last semicolon is the remedy: so all messages here are
    /// written.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return fault.clone();
        }
        // Transparent wrappers repeat their source: say each thing once.
        let mut text = error.to_string();
        for cause in error.chain().skip(1) {
            let cause = cause.to_string();
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        let text = blindcore_units::one_line(&text);
        match last_semicolon(&text) {
            Some(at) => Self { error: text[..at].to_owned(), remedy: Some(text[at + 2..].to_owned()) },
            None => Self { error: text, remedy: None },
        }
    }
}

/// Where the last `; ` of a text is that stands in no quotation marks.
fn last_semicolon(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped, mut found) = (false, false, None);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted && text[at..].starts_with("; ") => found = Some(at),
            _ => {}
        }
    }
    found
}

/// How help is asked for of the command that `args` name.
#[must_use]
pub fn help_of(command: &clap::Command, args: impl Iterator<Item = OsString>) -> String {
    let (mut path, mut command) = (command.get_name().to_owned(), command);
    for arg in args {
        if let Some(next) = command.find_subcommand(&arg) {
            path = format!("{path} {}", next.get_name());
            command = next;
        }
    }
    format!("{path} --help")
}

/// What is wrong with a command line, in one line; `help` is how help is asked for.
#[must_use]
pub fn usage(error: &clap::Error, help: &str) -> Fault {
    let list = |kind| match error.get(kind) {
        Some(ContextValue::Strings(all)) => Some(all.join(", ")),
        Some(ContextValue::String(one)) => Some(one.clone()),
        _ => None,
    };
    let missing =
        list(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::MissingRequiredArgument);
    let text = error.render().to_string();
    let (mut what, mut tips) = (Vec::new(), Vec::new());
    let shown = text.lines().take_while(|line| !line.starts_with("Usage:"));
    for line in shown.map(str::trim).filter(|line| !line.starts_with("For more information")) {
        match line.strip_prefix("tip: ") {
            Some(tip) => tips.push(tip.to_owned()),
            None if line.is_empty() => {}
            None => what.push(line.strip_prefix("error: ").unwrap_or(line).to_owned()),
        }
    }
    tips.push(format!("for help: {help}"));
    let what = missing.map_or_else(|| what.join(" "), |missing| format!("what is missing: {missing}"));
    Fault {
        error: blindcore_units::one_line(&what),
        remedy: Some(blindcore_units::one_line(&tips.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn a_remedy_follows_the_last_semicolon_outside_quotation_marks() {
        let fault = |text: &str| Fault::of(&anyhow::anyhow!("{text}"));
        let of = |error: &str, remedy: &str| Fault { error: error.into(), remedy: Some(remedy.into()) };
        assert_eq!(fault("a is 0; b; say 1"), of("a is 0; b", "say 1"));
        assert_eq!(fault("\"a; \\\"b; \" is none; say 1"), of("\"a; \\\"b; \" is none", "say 1"));
        assert_eq!(fault("\"a; b\" is none").remedy, None);
        let cause = anyhow::anyhow!("no key; make one").context("mine.key").context("can't start");
        assert_eq!(Fault::of(&cause).to_string(), "can't start: mine.key: no key; make one");
        let io: Result<(), _> = Err(std::io::Error::other("x"));
        assert_eq!(Fault::of(&io.context("y\nz").unwrap_err()).to_string(), "y z: x");
    }

    #[test]
    fn a_command_line_is_refused_in_one_line() {
        let make = Command::new("make")
            .arg(Arg::new("out").long("out").required(true))
            .arg(Arg::new("n").long("number").value_parser(clap::value_parser!(u8)));
        let command = Command::new("tool").subcommand_required(true).subcommand(make);
        let said = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(Into::into).collect();
            let help = help_of(&command, args.iter().cloned());
            let error =
                command.clone().try_get_matches_from(["tool".into()].into_iter().chain(args)).unwrap_err();
            usage(&error, &help).to_string()
        };
        assert_eq!(said(&["make"]), "what is missing: --out <out>; for help: tool make --help");
        for (args, words) in [
            (
                &["make", "--outt", "x"][..],
                &["'--outt'", "; a similar argument exists: '--out'; for help: tool make --help"][..],
            ),
            (&["make", "--number", "300"], &["'300'", "--number", "; for help: tool make --help"]),
            (&["mak"], &["'mak'", "'make'", "; for help: tool --help"]),
            (&[], &["subcommand", "; for help: tool --help"]),
        ] {
            let said = said(args);
            assert!(words.iter().all(|word| said.contains(word)) && !said.contains('\n'), "{said}");
        }
    }
}
