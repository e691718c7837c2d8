//! Where the command writes, who may read that, and whom it believes.

use std::path::Path;

use crate::common::{code, run, stderr};

fn table(dir: &Path) {
    std::fs::write(dir.join("t.csv"), "k,v\na,1\nb,2\n").unwrap();
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
