//! Golden files: output of a test that is kept and compared.
//!
//! A test fails where its output differs from the file, and shows the difference. With `BLESS=1` in
//! the environment it writes the file instead.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use similar::TextDiff;

/// The environment variable that accepts new output.
const VARIABLE: &str = "BLESS";

/// Whether new output is accepted: `BLESS` is set, and neither empty nor `0`.
pub fn blesses() -> bool {
    env::var(VARIABLE).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// Compares the file at `path` with `found`. A missing file counts as an empty one.
///
/// With `BLESS=1` writes the file, and the folders above it, if it differs.
///
/// # Errors
///
/// [`Mismatch::Differs`] with the difference, or [`Mismatch::Unwritable`].
pub fn compare(path: &Path, found: &str) -> Result<(), Mismatch> {
    // A checkout may have CRLF line ends.
    let kept = fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n");
    if kept == found {
        return Ok(());
    }
    let path = path.to_owned();
    if !blesses() {
        let difference = TextDiff::from_lines(kept.as_str(), found)
            .unified_diff()
            .context_radius(3)
            .header("kept", "found")
            .to_string();
        return Err(Mismatch::Differs { path, difference });
    }
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| fs::write(&path, found)) {
        Ok(()) => Ok(()),
        Err(error) => Err(Mismatch::Unwritable { path, error }),
    }
}

/// Compares several files, and panics with all differences.
///
/// # Panics
///
/// If a file differs or cannot be written, as [`compare`] says.
pub fn assert_all(files: impl IntoIterator<Item = (PathBuf, String)>) {
    let compared = files.into_iter().map(|(path, found)| compare(&path, &found));
    let wrong: Vec<_> = compared.filter_map(Result::err).map(|wrong| wrong.to_string()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reason why a file does not hold the output that was found.
#[derive(Debug)]
pub enum Mismatch {
    /// The output is another one.
    Differs {
        /// The file.
        path: PathBuf,
        /// A unified diff from the kept output to the output that was found.
        difference: String,
    },
    /// The new output was accepted, and could not be written.
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl Display for Mismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs { path, difference } => {
                write!(f, "{} differs; {VARIABLE}=1 accepts the new output:\n{difference}", path.display())
            }
            Self::Unwritable { path, error } => write!(f, "cannot write {}: {error}", path.display()),
        }
    }
}

impl Error for Mismatch {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Differs { .. } => None,
            Self::Unwritable { error, .. } => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_file_and_shows_the_lines() {
        if blesses() {
            return;
        }
        let path = env::temp_dir().join(format!("golden-{}.txt", std::process::id()));
        fs::write(&path, "one\ntwo\n").unwrap();
        assert!(compare(&path, "one\ntwo\n").is_ok());
        fs::write(&path, "one\r\ntwo\r\n").unwrap();
        assert!(compare(&path, "one\ntwo\n").is_ok(), "line ends do not matter");
        let wrong = compare(&path, "one\nthree\n").unwrap_err().to_string();
        assert!(wrong.contains(&*path.to_string_lossy()) && wrong.contains("-two\n+three\n"), "{wrong}");
        assert!(wrong.contains("BLESS=1"), "{wrong}");
        fs::remove_file(&path).unwrap();
        assert!(matches!(compare(&path, "one\n"), Err(Mismatch::Differs { .. })), "no file");
    }
}
