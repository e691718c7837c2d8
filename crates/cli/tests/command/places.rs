//! Where the command writes, who may read that, and whom it believes.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Serving, blindcore, code, json, refused, run, stderr, stdout};

fn table(dir: &Path) {
    std::fs::write(dir.join("t.csv"), "k,v\na,1\nb,2\n").unwrap();
}

/// A flag wins over its variable, also where the two say the opposite.
#[test]
fn no_cache_is_no_cache_whatever_the_environment_says() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    json(&run(dir, &["db", "build", "t.csv", "--key", "k", "--out", "t.db", "--json"]));
    let server = Serving::start(dir, &["t.db"]);
    for (more, kept) in [
        (&["--no-cache"][..], None),
        (&["--cache", "other", "--no-cache"], None),
        (&["--cache", "other"], Some("other")),
        (&[], Some("cache")),
    ] {
        let found = server.get(dir, &[&["--table", "t", "--key", "a"], more].concat());
        assert_eq!(code(&found), 0, "{}", stderr(&found));
        for folder in ["cache", "other"] {
            assert_eq!(dir.join(folder).exists(), kept == Some(folder), "{more:?}");
        }
        let _ = std::fs::remove_dir_all(dir.join("other"));
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap()) & 0o777
}

#[cfg(unix)]
#[test]
fn a_build_follows_links_and_obeys_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    let blindcore = env!("CARGO_BIN_EXE_blindcore");
    for (umask, folder, file) in [("077", 0o700, 0o600), ("027", 0o750, 0o640)] {
        let script = format!("umask {umask}; {blindcore} db build t.csv --key k --out there.db --force");
        let output =
            std::process::Command::new("sh").args(["-c", &script]).current_dir(dir).output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(mode(&dir.join("there.db")), folder);
        assert_eq!(mode(&dir.join("there.db/manifest.json")), file);
    }
    std::os::unix::fs::symlink("there.db", dir.join("link.db")).unwrap();
    let output = run(dir, &["db", "build", "t.csv", "--key", "k", "--out", "link.db", "--force"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(dir.join("link.db").is_symlink());
    let manifest = std::fs::read_to_string(dir.join("there.db/manifest.json")).unwrap();
    assert!(manifest.contains("\"epoch\": 3"), "{manifest}");
}

/// A settings file that merely lies in the folder is named, and doesn't decide who gets a person's token.
/// A process that writes past the limit of a file's size is ended by a signal, unless it handles that signal.
#[cfg(unix)]
#[test]
fn a_build_that_meets_a_limit_of_file_size_says_so_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    let build = "ulimit -f 8; exec \"$0\" db build t.csv --key k --out new.db";
    let mut shell = std::process::Command::new("sh");
    let output =
        shell.current_dir(dir).args(["-c", build, env!("CARGO_BIN_EXE_blindcore")]).output().unwrap();
    refused(&output, &["can't be written: ", "; raise the limit of a file's size (ulimit -f)"]);
    assert!(!stderr(&output).contains("/./"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1);
}

#[test]
fn a_token_goes_where_its_owner_says() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    json(&run(dir, &["db", "build", "t.csv", "--key", "k", "--out", "t.db", "--json"]));
    let server = Serving::start(dir, &["t.db"]);
    let settings = |text: &str| std::fs::write(dir.join("blindcore.toml"), text).unwrap();
    settings(&format!("server = {:?}\n", server.url));
    let token = json(&run(dir, &["token", "ada", "--json"]))["token"].as_str().unwrap().to_owned();
    std::fs::write(dir.join("ada.token"), &token).unwrap();
    let ask = ["get", "--table", "t", "--key", "a"];
    let get = |more: &[&str], token: Option<&str>| {
        let mut command = blindcore(dir);
        command.args(ask).args(more).envs(token.map(|token| ("BLINDCORE_TOKEN", token)));
        command.output().unwrap()
    };
    let said = get(&[], None);
    assert_eq!(code(&said), 0, "{}", stderr(&said));
    assert!(
        stderr(&said).contains("settings: ") && stderr(&said).contains("blindcore.toml"),
        "{}",
        stderr(&said)
    );
    for said in [get(&[], Some(&token)), get(&["--token-file", "ada.token"], None)] {
        assert_eq!(code(&said), 2);
        let text = stderr(&said);
        assert!(
            text.contains("--server") && text.contains("blindcore.toml") && !text.contains(&token),
            "{text}"
        );
    }
    // The person names the server or the file; or the file has both.
    assert_eq!(code(&get(&["--server", &server.url], Some(&token))), 0);
    assert_eq!(code(&get(&["--config", "blindcore.toml"], Some(&token))), 0);
    settings(&format!("server = {:?}\ntoken_file = \"ada.token\"\n", server.url));
    assert_eq!(code(&get(&[], None)), 0);
    // What is trusted and how plainly is asked can stand there, too.
    settings(&format!(
        "server = {:?}\npin = \"{}\"\nplain_text = true\nlog_json = true\n",
        server.url,
        "ab".repeat(32)
    ));
    let said = get(&[], None);
    assert!(code(&said) == 2 && stderr(&said).contains("its digest is"), "{}", stderr(&said));
    settings(&format!("server = {:?}\ntrust = \"12\"\n", server.url));
    assert!(stderr(&get(&[], None)).contains("trust of the settings file: \"12\""));
}

/// A settings file that merely lies in the folder sends nothing from outside it, opens no port to others, keeps no keys
/// elsewhere and moves no cache; one that is named does.
#[test]
fn a_settings_file_of_the_folder_is_not_the_persons_word() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, elsewhere) = (dir.path(), tempfile::tempdir().unwrap());
    let outside = elsewhere.path().join("ada.token");
    std::fs::write(&outside, "hunter2\n").unwrap();
    let settings = |text: &str| std::fs::write(dir.join("blindcore.toml"), text).unwrap();
    settings(&format!("server = \"http://127.0.0.1:1\"\ntoken_file = {:?}\n", outside.to_str().unwrap()));
    let tables = run(dir, &["tables"]);
    refused(&tables, &["token_file of ", "ada.token", "outside this folder", "--config"]);
    refused(&run(dir, &["tables", "--config", "blindcore.toml"]), &["nobody listens there"]);
    let named = run(dir, &["tables", "--server", "http://127.0.0.1:1"]);
    refused(&named, &["note: token_file of ", "nobody listens there"]);

    settings("listen = \"0.0.0.0:0\"\nplain_text = true\n");
    refused(&run(dir, &["serve", "none.db"]), &["listen of ", "0.0.0.0:0", "--listen", "--config"]);
    settings("metrics = \"0.0.0.0:0\"\n");
    refused(&run(dir, &["serve", "none.db"]), &["metrics of ", "--metrics"]);
    refused(&run(dir, &["serve", "none.db", "--config", "blindcore.toml"]), &["none.db"]);

    settings(&format!("keys_dir = {:?}\n", elsewhere.path().join("keys")));
    let words = ["keys_dir of ", "outside this folder", "--keys-dir", "--config"];
    refused(&run(dir, &["serve", "none.db"]), &words);
    refused(&run(dir, &["serve", "none.db", "--config", "blindcore.toml"]), &["none.db"]);
    refused(&run(dir, &["serve", "none.db", "--keys-dir", "keys"]), &["none.db"]);

    settings("cache = \"c\"\n");
    let list = |more: &[&str]| {
        let mut command = blindcore(dir);
        command.args(["cache", "list", "--json"]).args(more);
        command.env_remove("BLINDCORE_CACHE").env("XDG_CACHE_HOME", dir.join("own"));
        let listed = command.output().unwrap();
        (json(&listed)["folder"].as_str().unwrap().to_owned(), stderr(&listed))
    };
    let (folder, said) = list(&[]);
    assert!(folder == dir.join("own/blindcore").to_str().unwrap(), "{folder}");
    assert!(said.contains("but for its cache: say --config"), "{said}");
    assert_eq!(list(&["--config", "blindcore.toml"]).0, "c");
}

/// What `serve` and lookups refuse, `doctor` says, by the same checks.
#[test]
fn doctor_names_what_is_wrong_with_settings() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (text, words) in [
        ("devise = \"cpu\"\n", "line 1: unknown setting `devise`"),
        ("threads = \"many\"\n", "whole number"),
        ("listen = \"0.0.0.0:7700\"\n", "serve: "),
        ("gather = 0\n", "serve: gather is 0"),
        ("tls_cert = \"none.crt\"\ntls_key = \"none.key\"\n", "none.crt"),
        ("timeout = 0\n", "get: timeout"),
        ("server = \"http://u:hunter2@host\"\n", "get: \"http://...@host\""),
        ("trust = \"zz\"\n", "get: trust of the settings file"),
        ("ca = \"none.pem\"\n", "none.pem"),
        ("ca = \"\"\n", "line 1: it is empty"),
        ("cache = \"\"\n", "line 1: it is empty"),
        ("metrics = \"9.9.9.9:9\"\n", "serve: metrics of "),
    ] {
        std::fs::write(dir.join("blindcore.toml"), text).unwrap();
        let said = run(dir, &["doctor"]);
        assert_eq!(code(&said), 2, "{text}");
        let text = stdout(&said);
        assert!(text.matches(words).count() <= 1, "it is said once: {text}");
        assert!(
            text.contains(words) && text.contains("would use") && !text.contains("hunter2"),
            "{words}: {text}"
        );
        let said = run(dir, &["doctor", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
        assert!(
            report["settings"]["faults"][0].as_str().unwrap().contains(&words.replace("serve: ", "")),
            "{report}"
        );
    }
}

#[test]
fn what_the_environment_says_is_taken_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    for log in ["verbose", "warn,nonsense", "blindcore_server=loud"] {
        let output = blindcore(dir).args(["serve", "t.db"]).env("BLINDCORE_LOG", log).output().unwrap();
        refused(&output, &["BLINDCORE_LOG", log, "debug"]);
        let output = blindcore(dir).arg("doctor").env("BLINDCORE_LOG", log).output().unwrap();
        assert_eq!(code(&output), 2);
        assert!(String::from_utf8_lossy(&output.stdout).contains("wrong: serve: BLINDCORE_LOG"));
    }
    let ask = ["--table", "t", "--key", "a"];
    refused(
        &run(dir, &[&["get", "--server", "http://me:hunter2@127.0.0.1:1"][..], &ask].concat()),
        &["http://...@127.0.0.1:1", "names a user"],
    );
    #[cfg(unix)]
    {
        let token: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\xfe");
        let mut get = blindcore(dir);
        get.args(["get", "--server", "http://127.0.0.1:1"]).args(ask).env("BLINDCORE_TOKEN", token);
        refused(&get.output().unwrap(), &["BLINDCORE_TOKEN", "UTF-8"]);
    }
}

/// Files that hold secrets are made for their owner alone, and one warning names those that others may read.
#[cfg(unix)]
#[test]
fn secrets_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    let made = json(&run(dir, &["token", "ada", "--out", "ada.token", "--json"]));
    assert!(made["token"].is_null() && mode(&dir.join("ada.token")) == 0o600);
    refused(&run(dir, &["token", "ada", "--out", "ada.token"]), &["ada.token"]);
    json(&run(dir, &["db", "key", "signer.pem", "--json"]));
    let key = ["--insecure-test-key", "--key", "k.key"];
    let sum = |args: &[&str]| run(dir, &[&["sum"], args].concat());
    assert_eq!(code(&sum(&["keygen", "--out", "k.key", "--bits", "512", "--insecure-test-key"])), 0);
    assert_eq!(code(&sum(&[&["public", "--out", "k.pub"][..], &key].concat())), 0);
    std::fs::write(dir.join("n.csv"), "1\n2\n").unwrap();
    assert_eq!(code(&sum(&[&["encrypt", "--in", "n.csv", "--out", "n.ct"][..], &key].concat())), 0);
    let decrypt = [&["decrypt", "--in", "n.ct", "--out", "d.csv"][..], &key].concat();
    assert_eq!(code(&sum(&decrypt)), 0);
    assert_eq!(mode(&dir.join("d.csv")), 0o600, "they were encrypted");
    // Public keys and results are not replaced unless told.
    let again: [&[&str]; 3] =
        [&["public", "--out", "k.pub"], &["encrypt", "--in", "n.csv", "--out", "n.ct"], &decrypt[..5]];
    for args in again {
        let args = [args, &key].concat();
        refused(&sum(&args), &[args[args.len() - 4], "--force"]);
        assert_eq!(code(&sum(&[&args[..], &["--force"]].concat())), 0);
    }
    for file in ["ada.token", "signer.pem", "k.key"] {
        std::fs::set_permissions(dir.join(file), std::fs::Permissions::from_mode(0o640)).unwrap();
    }
    let build = ["db", "build", "t.csv", "--out", "t.db", "--sign", "signer.pem"];
    let tables = ["tables", "--server", "http://127.0.0.1:1", "--token-file", "ada.token"];
    for (args, file) in [
        (&build[..], "signer.pem"),
        (&tables, "ada.token"),
        (&[&["sum"], &decrypt[..], &["--force"]].concat(), "k.key"),
    ] {
        let said = stderr(&run(dir, args));
        let warning = format!("{file} is open to others on this machine; close it: chmod 600");
        assert_eq!(said.matches(&warning).count(), 1, "{said}");
    }
}

/// What is written at the end meets a file that was not there at the start: the pipe holds less than is written to it, so
/// that the command has looked before the other file is made.
#[test]
fn a_file_that_comes_while_a_command_runs_stays() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let key = ["sum", "keygen", "--insecure-test-key", "--bits", "512", "--out", "k.key"];
    assert_eq!(code(&run(dir, &key)), 0);
    let numbers = format!("{}7\n", "0".repeat(60)).repeat(1500);
    for (more, stays) in [(&[][..], true), (&["--force"], false)] {
        let mut child = blindcore(dir)
            .args(["sum", "encrypt", "--insecure-test-key", "--key", "k.key", "--in", "-", "--out", "r.ct"])
            .args(more)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(numbers.as_bytes()).unwrap();
        std::fs::write(dir.join("r.ct"), "precious").unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        if stays {
            refused(&output, &["r.ct is there already, and stays", "another file"]);
        }
        assert_eq!(std::fs::read(dir.join("r.ct")).unwrap() == b"precious", stays);
        std::fs::remove_file(dir.join("r.ct")).unwrap();
    }
    #[cfg(unix)]
    {
        // A link to nothing is in the way, too, which is known before the work.
        std::os::unix::fs::symlink("nothing", dir.join("link.txt")).unwrap();
        let make = ["circuit", "make", "mult8", "--out", "link.txt"];
        refused(&run(dir, &make), &["link.txt is there already; name another file, or say --force"]);
        assert_eq!(code(&run(dir, &[&make[..], &["--force"]].concat())), 0);
        assert!(!dir.join("link.txt").is_symlink());
    }
}
