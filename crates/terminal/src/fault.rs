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

/// The words of what reads numbers, whose expectations are named as types are, as a person says them.
fn in_words(text: &str) -> String {
    let is_negative = |value: &str| {
        value
            .strip_prefix('-')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let odd = match text.split('\'').nth(1).is_some_and(is_negative) {
        true => "it is below 0",
        false => "it is not a whole number",
    };
    let words = [
        ("invalid digit found in string", odd),
        ("cannot parse integer from empty string", "it is empty, and not a whole number"),
        ("invalid float literal", "it is not a number"),
        ("number too large to fit in target type", "it is too large"),
        ("number too small to fit in target type", "it is too small"),
    ];
    let text = words.iter().fold(text.to_owned(), |text, (said, word)| text.replace(said, word));
    // A range, as Rust writes it.
    let range = text.rsplit_once(" is not in ").and_then(|(start, range)| {
        let (least, most) = range.split_once("..=")?;
        Some(format!("{start} is outside {} to {most}", if least.is_empty() { "0" } else { least }))
    });
    range.unwrap_or(text)
}

/// The command that `args` name, and those that lead to it.
fn named<'a>(command: &'a clap::Command, args: &[OsString]) -> Vec<&'a clap::Command> {
    let mut path = vec![command];
    for arg in args {
        path.extend(path[path.len() - 1].find_subcommand(arg));
    }
    path
}

/// The variable of the environment that a value came from: where an option has one and was not given.
fn variable(option: &str, command: &clap::Command, args: &[OsString]) -> Option<String> {
    let long = option.split([' ', '=']).next()?.strip_prefix("--")?;
    let given = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        arg.strip_prefix("--")
            .and_then(|arg| arg.strip_prefix(long))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let path = named(command, args);
    let arg =
        path.iter().flat_map(|command| command.get_arguments()).find(|arg| arg.get_long() == Some(long))?;
    let name = arg.get_env()?;
    let set = || name.to_str().and_then(blindcore_units::variable).is_some();
    (!args.iter().any(given) && set()).then(|| name.to_string_lossy().into_owned())
}

/// What is not UTF-8: an argument, or the variable of an option.
fn not_text(command: &clap::Command, args: &[OsString]) -> Option<String> {
    if let Some(arg) = args.iter().find(|arg| arg.to_str().is_none()) {
        return Some(format!(
            "the argument {} is not UTF-8",
            blindcore_units::quoted(&arg.to_string_lossy())
        ));
    }
    let names = named(command, args)
        .into_iter()
        .flat_map(|command| command.get_arguments())
        .filter_map(|arg| arg.get_env());
    let foreign = |name: &std::ffi::OsStr| {
        let name = name.to_str()?;
        blindcore_units::text_variable(name).is_err().then(|| format!("{name} is not UTF-8"))
    };
    names.into_iter().find_map(foreign)
}

/// What is wrong with a command line, in one line: of `command`, called with `args`.
#[must_use]
pub fn usage(error: &clap::Error, command: &clap::Command, args: &[OsString]) -> Fault {
    let help = help_of(command, args.iter().cloned());
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
    let what =
        missing.map_or_else(|| in_words(&what.join(" ")), |missing| format!("what is missing: {missing}"));
    let option = list(ContextKind::InvalidArg).unwrap_or_default();
    let what = match variable(&option, command, args) {
        Some(name) => what.replace(&format!("'{option}'"), &format!("{name} ({option})")),
        None => what,
    };
    let foreign = (error.kind() == ErrorKind::InvalidUtf8).then(|| not_text(command, args)).flatten();
    let what = foreign.unwrap_or(what);
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
            .arg(Arg::new("n").long("number").value_parser(clap::value_parser!(u8)))
            .arg(Arg::new("wide").long("wide").value_parser(clap::value_parser!(usize)))
            .arg(Arg::new("span").long("span").value_parser(clap::value_parser!(u64).range(1..=9)));
        let command = Command::new("tool").subcommand_required(true).subcommand(make);
        // PATH is set wherever tests run.
        let path = Arg::new("path").long("path").env("PATH").value_parser(clap::value_parser!(usize));
        let command = command.subcommand(Command::new("way").arg(path));
        let said = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(Into::into).collect();
            let whole = ["tool".into()].into_iter().chain(args.iter().cloned());
            let error = command.clone().try_get_matches_from(whole).unwrap_err();
            usage(&error, &command, &args).to_string()
        };
        assert_eq!(said(&["make"]), "what is missing: --out <out>; for help: tool make --help");
        for (args, words) in [
            (
                &["make", "--outt", "x"][..],
                &["'--outt'", "; a similar argument exists: '--out'; for help: tool make --help"][..],
            ),
            (&["make", "--out", "o", "--span", "0"], &["--span", ": 0 is outside 1 to 9; for help"]),
            (&["make", "--number", "x", "--out", "o"], &["--number", ": it is not a whole number; "]),
            (&["make", "--out", "o", "--wide", "99999999999999999999"], &["--wide", ": it is too large; "]),
            (&["way"], &["for PATH (--path <path>): it is not a whole number; "]),
            (&["make", "--number", "300"], &["'300'", "--number", "; for help: tool make --help"]),
            (&["mak"], &["'mak'", "'make'", "; for help: tool --help"]),
            (&[], &["subcommand", "; for help: tool --help"]),
        ] {
            let said = said(args);
            assert!(words.iter().all(|word| said.contains(word)) && !said.contains('\n'), "{said}");
        }
    }
}
