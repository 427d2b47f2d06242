//! PTX that a package keeps in its sources, for builds without LLVM.
//!
//! The folder `tma-ptx` of the package has a file for each kernel, `NAME-HASH.kept`, with the
//! kernel's name and the hash of its tokens and of all that it shares or imports. It has the PTX of
//! all instances ([`archive`]). A package that has the folder is built from it, unless its own
//! feature `llvm` is on: its author is then changing the kernels. Other packages of the build may
//! compile theirs.
//!
//! A kernel with a file of its hash is neither parsed nor checked: the build that wrote the file
//! has done both. Without such a file the build fails, or, with `TMA_PTX=off`, checks the kernel.
//!
//! With `TMA_KEEP=write:PACKAGE` in the environment, a build with LLVM rewrites the folder of this
//! package, and with `TMA_KEEP=check:PACKAGE` it compares the folder. `cargo tma ptx --keep` and
//! `--check` set these.

mod archive;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tma_front::parse::item::{KernelItem, ModuleItems};

use super::reuse::{self, Lines};
#[cfg(any(feature = "llvm", test))]
use super::store;
use super::{BuildError, file_error};
use crate::{Target, hash};
use archive::{Archive, PREFIX};

pub(super) use archive::Texts;

/// The folder, relative to the package.
pub(super) const FOLDER: &str = "tma-ptx";

/// The environment variable that makes a build write or compare the folder.
pub(super) const VARIABLE: &str = "TMA_KEEP";

/// The variable by which cargo tells a build script that the package's feature `llvm` is on.
/// Source: The Cargo Book, "Environment Variables".
const LLVM_VARIABLE: &str = "CARGO_FEATURE_LLVM";

/// The origin of kept PTX, in fingerprints.
pub(super) const ORIGIN: &str = "kept";

/// The end of the names of kept files.
const EXTENSION: &str = "kept";

/// The use of the folder by a build, besides compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepMode {
    Nothing,
    Write,
    Check,
}

impl KeepMode {
    /// Reads the mode from the environment: that of this package, and not of those around it.
    pub(super) fn here() -> Self {
        let (value, package) = (env::var(VARIABLE), env::var("CARGO_PKG_NAME"));
        Self::of(&value.unwrap_or_default(), &package.unwrap_or_default())
    }

    fn of(value: &str, package: &str) -> Self {
        match value.split_once(':') {
            Some(("write", meant)) if meant == package => Self::Write,
            Some(("check", meant)) if meant == package => Self::Check,
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
        write!(f, "or build with the package's feature `llvm`")
    }
}

/// A kernel with all of its instances.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The name of the kernel's function.
    name: String,
    /// The hash of its tokens.
    hash: u64,
    lines: Lines,
}

impl Subject {
    pub(super) fn new(item: &KernelItem, shared: &ModuleItems) -> Self {
        let name = item.function.sig.ident.to_string();
        Self { name, hash: hash::kernel(item, shared), lines: Lines::of(item, shared) }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    fn path(&self, package: &Path) -> PathBuf {
        package.join(FOLDER).join(self.file())
    }

    /// Returns the name of the kept file.
    fn file(&self) -> String {
        format!("{}-{:016x}.{EXTENSION}", self.name, self.hash)
    }
}

/// Whether the kernels of the package whose build script runs are compiled even if it keeps their
/// PTX: its feature of this name is on.
pub(super) fn is_compiled() -> bool {
    cfg!(feature = "llvm") && env::var_os(LLVM_VARIABLE).is_some()
}

/// Whether the package keeps PTX.
pub(super) fn is_in(package: &Path) -> bool {
    package.join(FOLDER).is_dir()
}

/// Returns the kept PTX of a kernel's instances, with line numbers adjusted to the kernel's current
/// line. If lines within the kernel or its imports have moved, they are those of the time when the
/// PTX was made, except that assertions must name the current ones.
///
/// # Errors
///
/// The reason why the kept PTX cannot be used.
pub(super) fn take(package: &Path, subject: &Subject, target: Target) -> Result<Texts, StaleReason> {
    let Ok(bytes) = fs::read(subject.path(package)) else {
        return Err(if has_earlier(package, subject) { StaleReason::Changed } else { StaleReason::Absent });
    };
    let Archive { lines: kept, texts } = archive::read(&bytes, target)?;
    let lines = subject.lines;
    let moved = |(kernel, ptx): (String, String)| {
        let is_right = kept.positions == lines.positions || !reuse::has_assertion(&ptx);
        Some((kernel, is_right.then(|| reuse::moved(&ptx, kept.name, lines.name))??))
    };
    texts.into_iter().map(moved).collect::<Option<_>>().ok_or(StaleReason::Moved)
}

/// Whether PTX of the same kernel with another hash is kept.
fn has_earlier(package: &Path, subject: &Subject) -> bool {
    let paths = ours(package).unwrap_or_default();
    paths.iter().any(|path| kernel(path) == subject.name)
}

/// Returns the kernel of a kept file.
fn kernel(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-').map_or(&*name, |(kernel, _)| kernel).to_owned()
}

/// The PTX that a build has compiled, by the name of the kept file.
#[derive(Debug, Default)]
pub(super) struct Compiled(BTreeMap<String, CompiledKernel>);

/// The PTX of a kernel, and its source file.
#[derive(Debug)]
struct CompiledKernel {
    subject: Subject,
    source: PathBuf,
    texts: Texts,
}

impl Compiled {
    /// Adds an instance, named `kernel` or `kernel::instance`.
    pub(super) fn add(&mut self, subject: &Subject, source: &Path, kernel: &str, ptx: &str) {
        let new =
            || CompiledKernel { subject: subject.clone(), source: source.to_owned(), texts: Texts::new() };
        let texts = &mut self.0.entry(subject.file()).or_insert_with(new).texts;
        texts.insert(kernel.to_owned(), ptx.to_owned());
    }

    /// Returns how the kept PTX of each kernel differs from that compiled, by instance.
    pub(super) fn check(&self, package: &Path, target: Target) -> Vec<StaleKeptPtx> {
        let mut stale = vec![];
        for CompiledKernel { subject, source, texts } in self.0.values() {
            let location = (source.clone(), subject.lines.name);
            let kept = take(package, subject, target);
            for (kernel, ptx) in texts {
                let reason = match kept.as_ref().map(|kept| kept.get(kernel)) {
                    Err(reason) => reason.clone(),
                    Ok(None) => StaleReason::Absent,
                    Ok(Some(kept)) if kept != ptx => StaleReason::Differs,
                    Ok(Some(_)) => continue,
                };
                stale.push(StaleKeptPtx { kernel: kernel.clone(), location: location.clone(), reason });
            }
            let gone = kept.iter().flatten().filter(|(kernel, _)| !texts.contains_key(*kernel));
            stale.extend(gone.map(|(kernel, _)| StaleKeptPtx {
                kernel: kernel.clone(),
                location: location.clone(),
                reason: StaleReason::Gone,
            }));
        }
        stale
    }

    /// Rewrites the folder: keeps what was compiled, and removes the PTX of kernels that no longer
    /// exist. Files that this did not create are left alone.
    #[cfg(any(feature = "llvm", test))]
    pub(super) fn write(&self, package: &Path, target: Target) -> Result<(), BuildError> {
        let folder = package.join(FOLDER);
        fs::create_dir_all(&folder).map_err(file_error(&folder))?;
        for CompiledKernel { subject, source: _, texts } in self.0.values() {
            // A file that gives the same PTX may have been compressed in another way, or be that of
            // the kernel at another line.
            if take(package, subject, target).as_ref() != Ok(texts) {
                let path = subject.path(package);
                let bytes = archive::write(texts, subject.lines, target).map_err(file_error(&path))?;
                store::write_source(&path, &bytes).map_err(file_error(&path))?;
            }
        }
        // Killed builds have left drafts.
        let drafts = files(package)?.into_iter().filter(|path| store::is_draft_of_source(path));
        for path in self.stale(package)?.into_iter().chain(drafts) {
            fs::remove_file(&path).map_err(file_error(&path))?;
        }
        Ok(())
    }

    /// Returns the kept files of kernels that no longer exist.
    pub(super) fn gone(&self, package: &Path) -> Result<Vec<StaleKeptPtx>, BuildError> {
        let stale_kept = |path: PathBuf| {
            let location = (path.strip_prefix(package).unwrap_or(&path).to_owned(), 1);
            StaleKeptPtx { kernel: kernel(&path), location, reason: StaleReason::Gone }
        };
        Ok(self.stale(package)?.into_iter().map(stale_kept).collect())
    }

    fn stale(&self, package: &Path) -> Result<Vec<PathBuf>, BuildError> {
        let current: BTreeSet<_> = self.0.values().map(|kernel| kernel.subject.path(package)).collect();
        Ok(ours(package)?.into_iter().filter(|path| !current.contains(path)).collect())
    }
}

/// Returns the files that a build has kept, sorted.
fn ours(package: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut paths = files(package)?;
    paths.retain(|path| {
        let is_kept = path.extension().is_some_and(|extension| extension == EXTENSION);
        is_kept && fs::read(path).is_ok_and(|bytes| bytes.starts_with(PREFIX.as_bytes()))
    });
    Ok(paths)
}

/// Returns all files of the folder, sorted. There are none if it is missing.
fn files(package: &Path) -> Result<Vec<PathBuf>, BuildError> {
    if !is_in(package) {
        return Ok(vec![]);
    }
    let folder = package.join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(file_error(&folder))?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(file_error(&folder))?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
