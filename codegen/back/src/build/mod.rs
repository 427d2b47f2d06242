//! The build script: finds the kernels of a package and writes the PTX that the macros include.
//!
//! Kernels with errors are skipped: the macro, which has the spans, reports them. The build script
//! itself fails only for reasons that a macro cannot see: LLVM, files, and features that the target
//! lacks, which are reported as `file:line:column`. A macro never needs the PTX of such a kernel,
//! since cargo stops before. Warnings are also reported here, as a macro on stable Rust cannot show
//! any.

mod batch;
mod checks;
mod error;
mod kept;
mod known;
mod reuse;
mod run;
pub mod sources;
mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

use tma_front::diag::Located;
use tma_front::escape;
use tma_front::target::Goal;

use crate::templates::{self, Packages};
use crate::{Checks, Target, note};
use batch::PtxProducer;
use kept::KeepMode;
use run::{Paths, Run};

pub use error::BuildError;
pub use kept::{StaleKeptPtx, StaleReason};
pub(crate) use sources::FOLDERS;

/// Compiles the kernels of the package whose build script calls this, for `sm_90a`. In most
/// packages this is all of `build.rs`. Exits the build script on an error.
pub fn build() {
    Build::new().run_or_exit();
}

/// A builder that compiles the kernels of a package, with options.
#[derive(Clone, Debug)]
pub struct Build {
    target: Target,
    checks: Option<Checks>,
    warnings: bool,
    ptx: bool,
    sources: Vec<PathBuf>,
    packages: BTreeMap<String, PathBuf>,
}

/// The results for a package's kernels, which are listed as `kernel` or `kernel::instance`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The kernels compiled in this run.
    pub compiled: Vec<String>,
    /// The unchanged kernels, whose PTX is from an earlier run.
    pub reused: Vec<String>,
    /// The kernels whose PTX was taken from the package's sources, where its author keeps it.
    pub kept: Vec<String>,
    /// The kernels skipped because of errors, which the macro reports.
    pub refused: Vec<String>,
    /// The warnings for all kernels.
    pub warnings: Vec<Located>,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            target: Target::default(),
            checks: None,
            warnings: true,
            ptx: true,
            sources: vec![],
            packages: BTreeMap::new(),
        }
    }
}

impl Build {
    /// Creates a builder for the default target and for the source folders that cargo knows: `src`,
    /// `examples`, `tests` and `benches`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the target, which is `sm_90a` by default.
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// Sets whether kernels without `checked` or `unchecked` are checked. The default follows debug
    /// assertions, which cargo's profile `dev` has and `release` does not.
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = Some(checks);
        self
    }

    /// Sets whether [`run`](Self::run) prints warnings, which it does by default.
    pub fn warnings(mut self, warnings: bool) -> Self {
        self.warnings = warnings;
        self
    }

    /// Sets whether PTX is produced, which is the default unless the environment of
    /// [`run`](Self::run) has `TMA_PTX=off`. Lints and other builds that run nothing do not need
    /// PTX. Kernels are checked in any case; launching one without PTX is an error.
    pub fn ptx(mut self, ptx: bool) -> Self {
        self.ptx = ptx;
        self
    }

    /// Adds a file or folder, relative to the package, to search for kernels.
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(path.into());
        self
    }

    /// Sets the folder of a package with templates, for `#[tma_module(from = name::..)]`. This is
    /// only needed if cargo does not provide it: for renamed dependencies, and for dependencies
    /// without `links`.
    pub fn package(mut self, name: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        self.packages.insert(name.into(), folder.into());
        self
    }

    /// Like [`Build::run`], but reports errors to cargo and exits the build script.
    pub fn run_or_exit(&self) {
        if let Err(error) = self.run() {
            match &error {
                BuildError::Target(errors) => errors.iter().for_each(|error| tell_cargo("error", error)),
                // One directive per line.
                other => other.to_string().lines().for_each(|line| tell_cargo("error", &line)),
            }
            std::process::exit(1);
        }
    }

    /// Compiles the kernels that changed since the last run, tells cargo what to watch, and warns.
    ///
    /// # Errors
    ///
    /// Fails outside of a build script, if a file cannot be read or written, if a kernel uses a
    /// feature that the target does not have, and if LLVM fails.
    pub fn run(&self) -> Result<Report, BuildError> {
        let variable = |name| env::var_os(name).map(PathBuf::from).ok_or(BuildError::NoEnvironment(name));
        let package = variable("CARGO_MANIFEST_DIR")?;
        let out_dir = variable("OUT_DIR")?;
        println!("cargo::rerun-if-env-changed=TMA_DUMP");
        println!("cargo::rerun-if-env-changed={}", kept::VARIABLE);
        println!("cargo::rerun-if-env-changed={}", batch::VARIABLE);
        let roots = sources::roots(&package, &self.sources);
        let note = note::clear(&out_dir).map_err(file_error(&out_dir))?;
        for path in roots.iter().chain([&note]) {
            println!("cargo::rerun-if-changed={}", watched(path, &package)?);
        }
        let keep = KeepMode::here();
        if keep != KeepMode::Nothing && !kept::is_compiled() {
            // The build would keep, or compare, what it has taken from the folder itself.
            return Err(BuildError::NothingToKeep("the package's feature `llvm` is off, or it has none"));
        }
        if kept::is_in(&package) || keep != KeepMode::Nothing {
            println!("cargo::rerun-if-changed={}", kept::FOLDER);
        }
        // With `links`, which may be added, the script publishes the location of the package.
        println!("cargo::rerun-if-changed=Cargo.toml");
        let packages = Packages::around(&package, &self.packages);
        let producer = PtxProducer::of(self.ptx && batch::is_wanted());
        let report = self.compile_and_keep(
            Paths { package: &package, out_dir: &out_dir },
            &packages,
            &roots,
            keep,
            producer,
        )?;
        templates::publish(&package);
        for path in packages.files() {
            println!("cargo::rerun-if-changed={}", watched(&path, &package)?);
        }
        if packages.lacks_package() {
            // Cargo reruns the script in the next build, as for any missing file: the other package
            // may have `links` by then, which changes nothing that is watched.
            println!("cargo::rerun-if-changed={}", watched(&out_dir.join("tma-unknown-package"), &package)?);
        }
        if self.warnings {
            report.warnings.iter().for_each(|warning| tell_cargo("warning", warning));
        }
        Ok(report)
    }

    /// Compiles the kernels under `roots` into `out_dir`. Paths in messages are relative to
    /// `package`.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written, a kernel uses a feature that the target lacks, or
    /// LLVM fails. Unless the package's feature `llvm` is on, also fails if the package keeps PTX
    /// and this is not that of its kernels.
    pub fn compile(&self, package: &Path, roots: &[PathBuf], out_dir: &Path) -> Result<Report, BuildError> {
        let packages = Packages::around(package, &self.packages);
        let producer = PtxProducer::of(self.ptx);
        self.compile_and_keep(Paths { package, out_dir }, &packages, roots, KeepMode::Nothing, producer)
    }

    fn compile_and_keep(
        &self,
        paths: Paths<'_>,
        packages: &Packages,
        roots: &[PathBuf],
        keep: KeepMode,
        producer: PtxProducer,
    ) -> Result<Report, BuildError> {
        if let (KeepMode::Write | KeepMode::Check, PtxProducer::None(why)) = (keep, producer) {
            return Err(BuildError::NothingToKeep(why));
        }
        let goal = Goal { target: self.target, checks: self.checks.unwrap_or_else(checks::of_this_build) };
        let mut run = Run::new(paths, goal, producer, keep)?;
        for path in sources::rust_files(roots)? {
            let bytes = fs::read(&path).map_err(file_error(&path))?;
            // rustc reports a file that is not Rust.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let text = store::with_unix_lines(text);
            let shown = path.strip_prefix(paths.package).unwrap_or(&path);
            run.take_file(&text, shown, packages)?;
        }
        run.finish(packages)
    }
}

/// Prints a directive for cargo.
fn tell_cargo(instruction: &str, text: &impl fmt::Display) {
    println!("{}", directive(instruction, text));
}

/// Formats a directive for cargo, which reads them line by line.
fn directive(instruction: &str, text: &impl fmt::Display) -> String {
    format!("cargo::{instruction}={}", escape::controls(&text.to_string().replace('\n', " ")))
}

/// Returns `path` in the form of cargo's directives, which are lines of UTF-8 without surrounding
/// whitespace. A path in the package is relative to it, which cargo accepts, so the name of the
/// package's folder does not matter.
fn watched<'p>(path: &'p Path, package: &Path) -> Result<&'p str, BuildError> {
    let unwatchable = |why| BuildError::Unwatchable { path: path.to_owned(), why };
    let text = path.strip_prefix(package).unwrap_or(path).to_str();
    let text = text.ok_or_else(|| unwatchable("is not UTF-8"))?;
    if text.contains('\n') {
        return Err(unwatchable("has a line break"));
    }
    if text.trim() != text {
        return Err(unwatchable("begins or ends with whitespace"));
    }
    Ok(text)
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
    let path = path.to_owned();
    |error| BuildError::File { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma_front::diag::Diagnostic;
    use tma_front::diag::mistake::Shared;

    #[test]
    fn what_lies_in_the_package_is_watched_wherever_that_lies() {
        let package = Path::new("/new\nline");
        assert_eq!(watched(&package.join("src"), package).unwrap(), "src");
        assert_eq!(watched(Path::new("/out/tma-missing"), package).unwrap(), "/out/tma-missing");
    }

    #[test]
    fn a_diagnostic_is_one_line_to_cargo() {
        let unused = Shared::Unused { name: "a\r".to_owned(), bytes: 8, set_up: None };
        let warning = Diagnostic::new(unused, proc_macro2::Span::call_site().into());
        let line = directive("warning", &Located::new(Path::new("src/lib.rs"), &warning));
        assert!(
            line.starts_with("cargo::warning=src/lib.rs:1:1: TMA0015: unused shared memory: `a\\r`"),
            "{line}"
        );
        assert!(line.contains("; help: remove it") && !line.contains(['\n', '\r']), "{line}");
    }

    #[test]
    fn what_would_break_a_directive_is_refused() {
        for (name, why) in [
            ("kernels\ncargo::rustc-link-arg=-o", "has a line break"),
            ("kernels ", "begins or ends with whitespace"),
        ] {
            let error = watched(&Path::new("/p").join(name), Path::new("/p")).unwrap_err().to_string();
            assert!(error.starts_with("TMA0904: cargo cannot watch `/p/kernels"), "{error}");
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }
}
