//! The examples of the front page, run as a user runs them: programs of their own, over a real socket.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An example's program, which `cargo test` builds beside this one.
fn example(name: &str) -> Command {
    let this = std::env::current_exe().expect("a test has a path");
    let path: PathBuf = this.ancestors().nth(2).expect("target/PROFILE/deps").join("examples").join(name);
    assert!(path.exists(), "{} is missing; `cargo test -p blindcore` builds it", path.display());
    Command::new(path)
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("an example starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Ends a server, whatever the test comes to.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_key_comes_from_a_folder() {
    assert_eq!(output(&mut example("get_from_folder")), "class: \"anticoagulant\"\n");
}

#[test]
fn encrypted_numbers_are_added_and_weighed() {
    let printed = output(&mut example("encrypted_sum"));
    assert_eq!(printed, "twice 3, -4, 5: [6, -8, 10]\n10, 20, 30 times 3, -4, 5: [100]\n");
}

#[test]
fn two_parties_compare_numbers() {
    assert_eq!(output(&mut example("two_parties")), "the first has no more\n");
}

#[test]
fn a_folder_is_served_and_looked_up_in_blocking_and_asynchronously() {
    let scratch = tempfile::tempdir().unwrap();
    let csv = scratch.path().join("drugs.csv");
    std::fs::write(&csv, "name,class\naspirin,NSAID\nwarfarin,anticoagulant\n").unwrap();
    let folder = scratch.path().join("drugs.db");
    let device = blindcore::device("cpu").unwrap();
    blindcore::lookup::build(&csv, "name", &folder, &device).unwrap();

    let mut serve = example("serve_folder");
    serve.arg(&folder).arg("127.0.0.1:0").stdout(Stdio::piped());
    let mut server = Running(serve.spawn().unwrap());
    let mut url = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut url).unwrap();

    let cache = scratch.path().join("cache");
    let ask =
        |key: &str| output(example("look_up").args([url.trim(), "drugs", key]).env("XDG_CACHE_HOME", &cache));
    assert_eq!(ask("aspirin"), "class: \"NSAID\"\nclass: \"NSAID\"\n");
    assert_eq!(ask("ibuprofen"), "not there\nnot there\n");
}
