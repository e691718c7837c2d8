//! Where the command's results go: what may be made and what replaced.

use std::path::Path;

use anyhow::Context;
use blindcore_files::Existing;
use blindcore_files::new_file::check_no_secret;

/// That a file can be made here: before the work that fills it.
pub(crate) fn check_place(out: &Path) -> anyhow::Result<()> {
    check_place_of("--out", out)
}

fn check_place_of(option: &str, out: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        out != Path::new("-"),
        "{option} - names no file, and this is not written to standard output; name a file"
    );
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::ensure!(folder.is_dir(), "{option} {}: there is no folder {}", out.display(), folder.display());
    if let Ok(there) = std::fs::metadata(out) {
        anyhow::ensure!(there.is_file(), "{} is there already and is not an ordinary file", out.display());
    }
    Ok(())
}

/// Leave to replace a file.
#[derive(clap::Args)]
pub(crate) struct Force {
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

impl Force {
    /// What becomes of a file that is there when the command is done: one may have come since it was looked for.
    pub(crate) fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Keep }
    }
}

/// That what is written has a place, and replaces nothing that is read, no secret key, no token and, unless told, nothing at all.
pub(crate) fn check_output(out: &Path, leave: &Force, inputs: &[&Path]) -> anyhow::Result<()> {
    check_output_of("--out", out, leave, inputs)
}

/// The same of another option's file.
pub(crate) fn check_output_of(
    option: &str,
    out: &Path,
    leave: &Force,
    inputs: &[&Path],
) -> anyhow::Result<()> {
    check_place_of(option, out)?;
    let taken = || format!("{} is there already; name another file, or say --force", out.display());
    let Ok(there) = out.canonicalize() else {
        // A link to nothing is in the way, too.
        anyhow::ensure!(leave.force || out.symlink_metadata().is_err(), taken());
        return Ok(());
    };
    anyhow::ensure!(
        !inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == there)),
        "{option} {} is read by the same command; name another file",
        out.display()
    );
    check_no_secret(out).context(option.to_owned())?;
    anyhow::ensure!(leave.force, taken());
    Ok(())
}
