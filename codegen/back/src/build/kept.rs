//! PTX that a package keeps in its sources, for builds without LLVM.
//!
//! The folder `tma-ptx` of the package has a file for each kernel instance, with the same name as
//! in `OUT_DIR`: the kernel's name and hash. Its first line has the target, the generator and a
//! hash of the rest. Without the feature `llvm`, the file is used if all of this matches; otherwise
//! the build fails. With the feature, kernels are always compiled, since their author is changing
//! them.
//!
//! With `TMA_KEEP=write` in the environment, a build with LLVM rewrites the folder, and with
//! `TMA_KEEP=check` it compares the folder: `cargo tma ptx --keep` and `--check` set these.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::{BuildError, file_error, reuse, store};
use crate::Target;

/// The folder, relative to the package.
pub(super) const FOLDER: &str = "tma-ptx";

/// The environment variable that makes a build write or compare the folder.
pub(super) const VARIABLE: &str = "TMA_KEEP";

const PREFIX: &str = "// kept: ";

/// The use of the folder by a build, besides compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepMode {
    Nothing,
    Write,
    Check,
}

impl KeepMode {
    /// Reads the mode from the environment.
    pub(super) fn here() -> Self {
        match env::var(VARIABLE).as_deref() {
            Ok("write") => Self::Write,
            Ok("check") => Self::Check,
            _ => Self::Nothing,
        }
    }
}

/// A kernel whose kept PTX is not that of the current kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleKeptPtx {
    /// `kernel`, or `kernel::instance`.
    pub kernel: String,
    /// The kernel's file, relative to the package, and its line.
    pub location: (PathBuf, usize),
    /// The problem with the PTX.
    pub reason: StaleReason,
}

/// A problem with kept PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleReason {
    /// There is no kept PTX.
    Absent,
    /// The PTX belongs to an earlier version of the kernel.
    Changed,
    /// The PTX is for another target.
    OtherTarget {
        /// The target of the kept PTX.
        found: String,
        /// The target of the build.
        wanted: Target,
    },
    /// The PTX was produced by another version of the compiler.
    OtherGenerator {
        /// The version that produced it.
        found: String,
    },
    /// The file is truncated, or was edited.
    Damaged,
    /// The kernel has moved within its file, and its code contains line numbers.
    Moved,
    /// Compiling the kernel results in different PTX.
    Differs,
    /// The kernel no longer exists.
    Gone,
}

impl fmt::Display for StaleKeptPtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the PTX of `{}` in `{FOLDER}` ", self.kernel)?;
        match &self.reason {
            StaleReason::Absent => write!(f, "is missing")?,
            StaleReason::Changed => write!(f, "is out of date: the kernel has changed since")?,
            StaleReason::OtherTarget { found, wanted } => {
                write!(f, "is for {found}, but the build is for {wanted}")?;
            }
            StaleReason::OtherGenerator { found } => {
                write!(f, "was written by tma-codegen {found}, but this is {}", env!("CARGO_PKG_VERSION"))?;
            }
            StaleReason::Damaged => write!(f, "is damaged: it was truncated or edited")?,
            StaleReason::Moved => write!(f, "contains source lines that have moved")?,
            StaleReason::Differs => write!(f, "differs from the output of this compiler")?,
            StaleReason::Gone => write!(f, "belongs to no existing kernel")?,
        }
        write!(f, "; run `cargo tma ptx --keep` where LLVM 22 is installed, ")?;
        write!(f, "or build with the feature `llvm` of `tma-codegen`")
    }
}

/// A kernel instance, and the file of its PTX.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    /// The folder of the package.
    pub(super) package: &'a Path,
    /// The name of the form `tma/NAME-HASH.ptx`.
    pub(super) file: &'a str,
    pub(super) target: Target,
    /// The line of the kernel's name.
    pub(super) line: usize,
}

impl Subject<'_> {
    fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(self.file)
    }

    fn path(&self) -> PathBuf {
        self.package.join(FOLDER).join(self.name())
    }

    /// Returns the contents of the file that keeps `ptx`.
    pub(super) fn mark(&self, ptx: &str) -> String {
        let (target, version, hash) = (self.target, env!("CARGO_PKG_VERSION"), reuse::contents(ptx));
        format!("{PREFIX}{target} {version} {} {hash:016x}\n{ptx}", self.line)
    }
}

/// Whether the package keeps PTX.
pub(super) fn is_in(package: &Path) -> bool {
    package.join(FOLDER).is_dir()
}

/// Returns the kept PTX of a kernel, with its line numbers adjusted to the kernel's current line.
///
/// # Errors
///
/// The reason why the kept PTX cannot be used.
pub(super) fn take(subject: Subject<'_>) -> Result<String, StaleReason> {
    let Some(text) = read(&subject.path()) else {
        return Err(if has_earlier(subject) { StaleReason::Changed } else { StaleReason::Absent });
    };
    let (header, ptx) = text.split_once('\n').ok_or(StaleReason::Damaged)?;
    let parts: Vec<_> = header.strip_prefix(PREFIX).unwrap_or_default().split(' ').collect();
    let [target, version, line, hash] = parts[..] else { return Err(StaleReason::Damaged) };
    let line: usize = line.parse().map_err(|_| StaleReason::Damaged)?;
    if u64::from_str_radix(hash, 16) != Ok(reuse::contents(ptx)) {
        return Err(StaleReason::Damaged);
    }
    if target != subject.target.name() {
        return Err(StaleReason::OtherTarget { found: target.to_owned(), wanted: subject.target });
    }
    if !is_compatible(version, env!("CARGO_PKG_VERSION")) {
        return Err(StaleReason::OtherGenerator { found: version.to_owned() });
    }
    reuse::moved(ptx, line, subject.line).ok_or(StaleReason::Moved)
}

/// Reads a kept file. A checkout may have converted its line endings to those of Windows, as git
/// does with `core.autocrlf`. They are not part of the contents.
fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(store::with_unix_lines)
}

/// Whether launchers of one version can use PTX of another. Releases that cargo treats as
/// compatible do not change the parameters or layouts of kernels. Source: The Cargo Book, "SemVer
/// Compatibility".
fn is_compatible(found: &str, own: &str) -> bool {
    let compatible = |version: &str| {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        Some(if major == 0 { (0, minor) } else { (major, 0) })
    };
    compatible(found).is_some() && compatible(found) == compatible(own)
}

/// Whether PTX of the same kernel with another hash is kept.
fn has_earlier(subject: Subject<'_>) -> bool {
    let kernel = |name: &str| name.rsplit_once('-').map(|(kernel, _)| kernel.to_owned());
    let entries = fs::read_dir(subject.package.join(FOLDER)).into_iter().flatten().flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| kernel(&name) == kernel(subject.name()))
}

/// Checks that the kept PTX equals the PTX just compiled, apart from the kernel's line.
///
/// # Errors
///
/// The difference.
pub(super) fn check(subject: Subject<'_>, compiled: &str) -> Result<(), StaleReason> {
    if take(subject)? == compiled { Ok(()) } else { Err(StaleReason::Differs) }
}

/// Keeps the PTX just compiled.
pub(super) fn write(subject: Subject<'_>, compiled: &str) -> Result<(), BuildError> {
    let path = subject.path();
    let folder = subject.package.join(FOLDER);
    fs::create_dir_all(&folder).map_err(file_error(&folder))?;
    let text = subject.mark(compiled);
    if read(&path).as_deref() != Some(&text) {
        store::write(&path, &text).map_err(file_error(&path))?;
    }
    Ok(())
}

/// Removes the kept PTX of kernels that no longer exist. `names` holds the files of existing
/// kernels. Files that [`write`] did not create are left alone.
pub(super) fn remove_stale(package: &Path, names: &BTreeSet<String>) -> Result<(), BuildError> {
    for path in stale(package, names)? {
        fs::remove_file(&path).map_err(file_error(&path))?;
    }
    Ok(())
}

/// Returns the kept files of kernels that no longer exist.
pub(super) fn gone(package: &Path, names: &BTreeSet<String>) -> Result<Vec<StaleKeptPtx>, BuildError> {
    let stale_kept = |path: PathBuf| {
        let kernel = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let location = (path.strip_prefix(package).unwrap_or(&path).to_owned(), 1);
        StaleKeptPtx { kernel, location, reason: StaleReason::Gone }
    };
    Ok(stale(package, names)?.into_iter().map(stale_kept).collect())
}

fn stale(package: &Path, names: &BTreeSet<String>) -> Result<Vec<PathBuf>, BuildError> {
    let folder = package.join(FOLDER);
    let mut found = vec![];
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(&folder).map_err(file_error(&folder))? {
        let path = entry.map_err(file_error(&folder))?.path();
        let is_current = path.file_name().is_some_and(|name| names.contains(&*name.to_string_lossy()));
        let is_ours = || fs::read_to_string(&path).is_ok_and(|text| text.starts_with(PREFIX));
        if !is_current && is_ours() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "// source: src/a.rs:10\n.target sm_90a\n\t.loc\t1 12 5\nret;\n";

    struct Package(PathBuf);

    impl Package {
        fn new(name: &str) -> Self {
            let folder = env::temp_dir().join(format!("tma-kept-{name}-{}", std::process::id()));
            fs::remove_dir_all(&folder).ok();
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn subject<'a>(&'a self, file: &'a str, line: usize) -> Subject<'a> {
            Subject { package: &self.0, file, target: Target::Sm90a, line }
        }
    }

    impl Drop for Package {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn what_is_kept_is_taken_and_its_lines_follow_the_kernel() {
        let package = Package::new("taken");
        let file = "tma/add-00.ptx";
        assert!(!is_in(&package.0));
        write(package.subject(file, 10), PTX).unwrap();
        assert!(is_in(&package.0));
        assert_eq!(take(package.subject(file, 10)), Ok(PTX.to_owned()));
        let moved = PTX.replace(":10", ":13").replace("1 12 5", "1 15 5");
        assert_eq!(take(package.subject(file, 13)), Ok(moved.clone()));
        assert_eq!(check(package.subject(file, 13), &moved), Ok(()));
        assert_eq!(
            check(package.subject(file, 13), &moved.replace("ret", "exit")),
            Err(StaleReason::Differs)
        );
    }

    /// The state that git produces on Windows with `core.autocrlf`.
    #[test]
    fn the_ends_of_lines_are_no_part_of_what_is_kept() {
        let package = Package::new("lines");
        let file = "tma/add-00.ptx";
        let subject = package.subject(file, 10);
        write(subject, PTX).unwrap();
        let text = fs::read_to_string(subject.path()).unwrap().replace('\n', "\r\n");
        fs::write(subject.path(), &text).unwrap();
        assert_eq!(take(subject), Ok(PTX.to_owned()));
        assert_eq!(check(subject, PTX), Ok(()));
        assert_eq!(gone(&package.0, &BTreeSet::new()).unwrap().len(), 1);
        // The contents are equal, so `--keep` leaves the file untouched.
        write(subject, PTX).unwrap();
        assert_eq!(fs::read_to_string(subject.path()).unwrap(), text);
        // A lone carriage return is damage.
        fs::write(subject.path(), text.replace("ret", "\rret")).unwrap();
        assert_eq!(take(subject), Err(StaleReason::Damaged));
    }

    #[test]
    fn what_does_not_agree_is_refused_with_the_reason() {
        let package = Package::new("refused");
        let file = "tma/add-one-00.ptx";
        write(package.subject(file, 10), PTX).unwrap();
        let subject = package.subject(file, 10);
        assert_eq!(take(package.subject("tma/add-one-01.ptx", 10)), Err(StaleReason::Changed));
        assert_eq!(take(package.subject("tma/add-00.ptx", 10)), Err(StaleReason::Absent));
        let other = Subject { target: Target::Sm90, ..subject };
        let wanted = StaleReason::OtherTarget { found: "sm_90a".to_owned(), wanted: Target::Sm90 };
        assert_eq!(take(other), Err(wanted));

        let text = subject.mark(PTX);
        let with = |text: &str| {
            fs::write(subject.path(), text).unwrap();
            take(subject)
        };
        for end in 0..text.len() {
            assert_eq!(with(&text[..end]), Err(StaleReason::Damaged), "{end} of {} bytes", text.len());
        }
        assert_eq!(with(&text.replace("ret", "nop")), Err(StaleReason::Damaged));
        let old = text.replacen(env!("CARGO_PKG_VERSION"), "0.0.9", 1);
        assert_eq!(with(&old), Err(StaleReason::OtherGenerator { found: "0.0.9".to_owned() }));
        // A failed assertion reports its line, which is in the code.
        let asserts = "call __assertfail;\n";
        assert_eq!(with(&subject.mark(asserts)), Ok(asserts.to_owned()));
        write(package.subject(file, 9), asserts).unwrap();
        assert_eq!(take(subject), Err(StaleReason::Moved));
    }

    #[test]
    fn versions_that_cargo_exchanges_agree() {
        for (found, own, agree) in [
            ("0.1.0", "0.1.7", true),
            ("0.1.0", "0.2.0", false),
            ("1.2.0", "1.9.1", true),
            ("1.2.0", "2.2.0", false),
            ("", "0.1.0", false),
        ] {
            assert_eq!(is_compatible(found, own), agree, "{found} and {own}");
        }
    }

    #[test]
    fn only_our_files_of_kernels_that_are_gone_are_removed() {
        let package = Package::new("stale");
        for file in ["tma/gone-00.ptx", "tma/here-00.ptx"] {
            write(package.subject(file, 1), PTX).unwrap();
        }
        fs::write(package.0.join(FOLDER).join("mine.ptx"), PTX).unwrap();
        remove_stale(&package.0, &BTreeSet::from(["here-00.ptx".to_owned()])).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(package.0.join(FOLDER)).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["here-00.ptx", "mine.ptx"]);
    }

    #[test]
    fn the_message_names_the_kernel_and_what_to_do() {
        let stale_kept = StaleKeptPtx {
            kernel: "add::one".to_owned(),
            location: ("src/a.rs".into(), 3),
            reason: StaleReason::Changed,
        };
        let error = BuildError::StaleKeptPtx(vec![stale_kept]).to_string();
        assert!(
            error.starts_with("src/a.rs:3: TMA0905: the PTX of `add::one` in `tma-ptx` is out of date"),
            "{error}"
        );
        assert!(error.contains("`cargo tma ptx --keep`"), "{error}");
    }
}
