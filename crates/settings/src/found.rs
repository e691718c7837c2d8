//! What a settings file decides that merely lies in the folder, where it may be anybody's: how *its* server is asked, and
//! nothing that weakens what the person said or keeps.
//!
//! | setting | of a file that nobody named |
//! |---|---|
//! | `ca`, `plain_text`, `token_file` | for the server that the file names; left aside where the person names one |
//! | `token_file` | a file of the same folder |
//! | `keys_dir` | a folder in the same folder |
//! | `server` | gets no token of the person's |
//! | `cache`, `rotate_after` | left aside: a cache holds secrets of registered keys and which epochs were seen, and whoever made the folder could have put them there |
//! | `plain_text` | not for what serves |
//! | `listen`, `metrics` | addresses of this machine alone |
//! | `tls_cert`, `tls_key` | not for a server that the person opens to others: their key is known to whoever left them |
//!
//! Whoever names a file takes all of it.

use std::net::IpAddr;
use std::path::Path;

use crate::{Config, SettingsError};

/// How a server is asked, as settings say.
#[derive(Debug, Default)]
pub struct Asked<'a> {
    /// As `--ca`.
    pub ca: Option<&'a Path>,
    /// As `--token-file`.
    pub token_file: Option<&'a Path>,
    /// As `--plain-text`.
    pub plain_text: bool,
    /// What to tell the person of settings that were left aside.
    pub note: Option<String>,
}

/// What is left aside of a file that nobody named.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// Names of settings.
    names: Vec<&'static str>,
    /// For the server that the file names.
    plain_text: bool,
}

impl Config {
    /// Takes out of a file that nobody named what is not its to say.
    pub(crate) fn set_aside(&mut self) {
        let cache = self.cache.take().map(|_| "cache");
        let rotation = self.rotate_after.take().map(|_| "rotate_after");
        self.aside.names = cache.into_iter().chain(rotation).collect();
        self.aside.plain_text = std::mem::take(&mut self.plain_text);
    }

    /// The file in use for a person, if there is one, and what of it is left aside.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let file = self.file.as_ref()?.display();
        let words = |names: &[&str]| {
            format!("{file} (but for its {}: say --config {file} if it is yours)", names.join(" and "))
        };
        Some(if self.aside.names.is_empty() { file.to_string() } else { words(&self.aside.names) })
    }

    /// How a server is asked: the one of the settings, or another that the person `named`. `token` says whether the person
    /// gave one.
    ///
    /// # Errors
    /// The file merely lies in this folder, and the person's token would go to its server, or a token from outside the folder.
    pub fn asked(&self, named: bool, token: bool) -> Result<Asked<'_>, SettingsError> {
        let (ca, token_file) = (self.ca.as_deref(), self.token_file.as_deref().filter(|_| !token));
        let Some(file) = self.found() else {
            return Ok(Asked { ca, token_file, plain_text: self.plain_text, note: None });
        };
        if named {
            let there = [
                ca.map(|_| "ca"),
                token_file.map(|_| "token_file"),
                self.aside.plain_text.then_some("plain_text"),
            ];
            let names: Vec<&str> = there.into_iter().flatten().collect();
            let note = (!names.is_empty()).then(|| {
                let are = if names.len() == 1 { "is" } else { "are" };
                let (names, file) = (names.join(" and "), file.display());
                format!(
                    "note: {names} of {file} {are} left aside, because it lies in this folder and speaks for the server that it \
                     names alone: say --config {file} if it is yours"
                )
            });
            return Ok(Asked { note, ..Asked::default() });
        }
        let path = file.to_owned();
        if token && self.server.is_some() {
            return Err(SettingsError::TokenAway { path });
        }
        if let Some(token) = token_file.filter(|token| is_outside(Path::new("."), token)) {
            return Err(SettingsError::TokenOutside { path, token: token.to_owned() });
        }
        Ok(Asked { ca, token_file, plain_text: self.aside.plain_text, note: None })
    }

    /// Where a server keeps registered keys: where the person `said`, or where the settings do.
    ///
    /// # Errors
    /// The file merely lies in this folder, and names one outside it.
    pub fn keys_dir<'a>(&'a self, said: Option<&'a Path>) -> Result<Option<&'a Path>, SettingsError> {
        match (said, self.keys_dir.as_deref(), self.found()) {
            (None, Some(keys), Some(file)) if is_outside(Path::new("."), keys) => {
                Err(SettingsError::KeysOutside { path: file.to_owned(), keys: keys.to_owned() })
            }
            (said, set, _) => Ok(said.or(set)),
        }
    }

    /// Where a server listens: as the person `said`, or as the settings do.
    ///
    /// # Errors
    /// The file merely lies in this folder, and names more than this machine.
    pub fn listen<'a>(&'a self, said: Option<&'a str>) -> Result<Option<&'a str>, SettingsError> {
        self.port("listen", said, self.listen.as_deref())
    }

    /// Where a server's metrics are: as the person `said`, or as the settings do.
    ///
    /// # Errors
    /// As [`Config::listen`].
    pub fn metrics<'a>(&'a self, said: Option<&'a str>) -> Result<Option<&'a str>, SettingsError> {
        self.port("metrics", said, self.metrics.as_deref())
    }

    /// A server's certificate and its key: as the person `said`, or as the settings do. `open` says whether more than this machine
    /// reaches it.
    ///
    /// # Errors
    /// The file merely lies in this folder, and the server is open.
    pub fn certificate<'a>(
        &'a self,
        said: [Option<&'a Path>; 2],
        open: bool,
    ) -> Result<[Option<&'a Path>; 2], SettingsError> {
        let set = [self.tls_cert.as_deref(), self.tls_key.as_deref()];
        match self.found() {
            Some(file) if open && said[0].is_none() && set[0].is_some() => {
                Err(SettingsError::Certificate { path: file.to_owned() })
            }
            _ => Ok([said[0].or(set[0]), said[1].or(set[1])]),
        }
    }

    fn port<'a>(
        &'a self,
        what: &'static str,
        said: Option<&'a str>,
        set: Option<&'a str>,
    ) -> Result<Option<&'a str>, SettingsError> {
        match (said, set, self.found()) {
            (None, Some(address), Some(file)) if !is_of_this_machine(address) => {
                Err(SettingsError::Open { what, path: file.to_owned(), address: address.to_owned() })
            }
            _ => Ok(said.or(set)),
        }
    }
}

/// Whether a path lies elsewhere than in a folder itself, links followed. What isn't there yet lies where it would be made.
fn is_outside(folder: &Path, path: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return true };
    let path = folder.join(path);
    let lies_in = |path: &Path| path.parent().map(Path::to_owned);
    let place = match path.canonicalize() {
        Ok(path) => lies_in(&path),
        Err(_) if path.is_symlink() => None,
        Err(_) => lies_in(&path).and_then(|place| place.canonicalize().ok()),
    };
    place.is_none_or(|place| place != folder)
}

/// Whether an address and a port, or a port alone, name this machine to itself.
fn is_of_this_machine(address: &str) -> bool {
    let Some((host, _)) = address.rsplit_once(':') else { return address.parse::<u16>().is_ok() };
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    ip.map_or(host.eq_ignore_ascii_case("localhost"), |ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Config {
        let mut config: Config = toml::from_str(text).unwrap();
        config.file = Some("/there/blindcore.toml".into());
        config.set_aside();
        config
    }

    fn named(text: &str) -> Config {
        Config { file: Some("/there/blindcore.toml".into()), named: true, ..toml::from_str(text).unwrap() }
    }

    const ALL: &str = "server = \"https://a\"\nca = \"a.pem\"\nplain_text = true\ntoken_file = \"no.token\"\ncache = \"c\"\n\
                       rotate_after = \"1e9\"\nlisten = \"0.0.0.0:1\"\nmetrics = \"[::]:1\"\n";

    #[test]
    fn a_found_file_speaks_for_its_own_server() {
        let config = found(ALL);
        let own = config.asked(false, false).unwrap();
        assert!(own.ca.is_some() && own.token_file.is_some() && own.plain_text && own.note.is_none());
        // The person's server, with and without the person's token.
        for token in [false, true] {
            let other = config.asked(true, token).unwrap();
            assert!(other.ca.is_none() && other.token_file.is_none() && !other.plain_text);
            let note = other.note.unwrap();
            assert!(
                note.contains("ca and ")
                    && note.contains("plain_text of /there/blindcore.toml are left aside"),
                "{note}"
            );
            assert_eq!(note.contains("token_file"), !token);
        }
        let refused = config.asked(false, true).unwrap_err().to_string();
        assert!(
            refused.contains("--server") && refused.contains("--config /there/blindcore.toml"),
            "{refused}"
        );
        assert!(found("server = \"https://a\"").asked(true, true).unwrap().note.is_none());
        // What a cache keeps, and what serves, is not its to say.
        assert!(config.cache.is_none() && config.rotate_after.is_none() && !config.plain_text);
        let words = config.in_words().unwrap();
        assert!(words.contains("but for its cache and rotate_after: say --config"), "{words}");
        assert_eq!(found("ca = \"x\"").in_words().unwrap(), "/there/blindcore.toml");
    }

    #[test]
    fn a_named_file_says_all() {
        let config = named(ALL);
        for server in [false, true] {
            let asked = config.asked(server, true).unwrap();
            assert!(
                asked.ca.is_some() && asked.token_file.is_none() && asked.plain_text && asked.note.is_none()
            );
        }
        assert!(config.asked(true, false).unwrap().token_file.is_some());
        assert!(config.cache.is_some() && config.rotate_after.is_some() && config.plain_text);
        assert_eq!(config.listen(None).unwrap(), Some("0.0.0.0:1"));
        assert_eq!(config.metrics(None).unwrap(), Some("[::]:1"));
    }

    #[test]
    fn a_found_file_opens_no_port_to_others() {
        let config = found(ALL);
        for (refused, what) in [(config.listen(None), "listen"), (config.metrics(None), "metrics")] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(&format!("--{what}")) && refused.contains("--config"), "{refused}");
        }
        assert_eq!(config.listen(Some("0.0.0.0:2")).unwrap(), Some("0.0.0.0:2"));
        for own in
            ["127.0.0.1:7700", "127.3.2.1:0", "[::1]:7700", "localhost:80", "9100", "[::ffff:127.0.0.1]:1"]
        {
            assert_eq!(found(&format!("listen = {own:?}")).listen(None).unwrap(), Some(own), "{own}");
        }
        for other in [
            "0.0.0.0:7700",
            "[::]:1",
            ":80",
            "example.org:80",
            "192.168.0.1:1",
            "",
            "127.0.0.1.example.org:80",
            "x",
        ] {
            assert!(found(&format!("metrics = {other:?}")).metrics(None).is_err(), "{other}");
        }
    }

    #[test]
    fn a_server_that_is_open_to_others_has_no_certificate_of_a_found_file() {
        let text = "tls_cert = \"c.pem\"\ntls_key = \"k.pem\"";
        let (cert, key, own) =
            (Some(Path::new("c.pem")), Some(Path::new("k.pem")), Some(Path::new("own.pem")));
        let refused = found(text).certificate([None, None], true).unwrap_err().to_string();
        for words in [
            "tls_cert of /there/blindcore.toml",
            "--tls-cert and --tls-key",
            "--config /there/blindcore.toml",
        ] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
        assert_eq!(found(text).certificate([None, None], false).unwrap(), [cert, key]);
        assert_eq!(found(text).certificate([own, own], true).unwrap(), [own, own]);
        assert_eq!(named(text).certificate([None, None], true).unwrap(), [cert, key]);
        assert_eq!(found("").certificate([None, None], true).unwrap(), [None, None]);
    }

    #[test]
    fn tokens_from_outside_the_folder_go_nowhere() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let folder = dir.path().join("project");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        for file in ["project/a.token", "project/sub/b.token", "c.token"] {
            std::fs::write(dir.path().join(file), "x").unwrap();
        }
        let outside = |file: &str| is_outside(&folder, &folder.join(file));
        assert!(!outside("a.token") && !outside("sub/../a.token") && !outside("none"));
        assert!(outside("../c.token") && outside("sub/../../c.token") && outside("sub/b.token"));
        assert!(is_outside(&folder, elsewhere.path()));
        // What is not there would be made there.
        assert!(outside("../none") && outside("sub/none") && outside("none/none") && outside(".."));
        #[cfg(unix)]
        for to in ["../c.token", "../none"] {
            let link = folder.join("link.token");
            std::os::unix::fs::symlink(to, &link).unwrap();
            assert!(outside("link.token"), "links are followed");
            std::fs::remove_file(link).unwrap();
        }
        let config = found(&format!("token_file = {:?}", elsewhere.path()));
        let refused = config.asked(false, false).unwrap_err().to_string();
        assert!(refused.contains("outside") && refused.contains("--token-file"), "{refused}");
        assert!(config.asked(false, true).is_ok(), "the person's own goes");
    }

    #[test]
    fn keys_are_kept_in_the_folder_that_a_found_file_lies_in() {
        let elsewhere = tempfile::tempdir().unwrap();
        for outside in
            [elsewhere.path().to_owned(), elsewhere.path().join("new"), "../none".into(), "src/none".into()]
        {
            let text = format!("keys_dir = {outside:?}");
            let refused = found(&text).keys_dir(None).unwrap_err().to_string();
            for words in
                ["keys_dir of ", "outside this folder", "--keys-dir", "--config /there/blindcore.toml"]
            {
                assert!(refused.contains(words), "{words}: {refused}");
            }
            // The person's word, and a file's that the person named.
            assert_eq!(found(&text).keys_dir(Some(&outside)).unwrap(), Some(&*outside));
            assert_eq!(named(&text).keys_dir(None).unwrap(), Some(&*outside));
        }
        assert_eq!(found("keys_dir = \"none.keys\"").keys_dir(None).unwrap(), Some(Path::new("none.keys")));
        assert_eq!(found("").keys_dir(None).unwrap(), None);
    }
}
