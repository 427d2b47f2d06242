//! The build script's side: finds the kernels of a package and writes the PTX that the macros
//! include.
//!
//! Kernels that break a rule are passed over: the macro, which has the spans, reports them. What
//! fails here is only what a macro cannot see: LLVM, files, and what the target does not have,
//! which is reported as `file:line:column`. The macro meets no PTX of such a kernel, for cargo does
//! not go on to it. Warnings are this side's too: a macro of stable Rust cannot show any.

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

use batch::Maker;
pub use error::BuildError;
use kept::Keep;
pub use kept::{Unkept, Why};
use run::Run;
pub(crate) use sources::FOLDERS;

use crate::diag::Located;
use crate::library::{self, Packages};
use crate::target::Goal;
use crate::{Checks, Target, escape, note};

/// Compiles the kernels of the package whose build script calls it, for `sm_90a`; all of `build.rs`
/// in most packages. Ends the build script with an error if there is one.
pub fn build() {
    Build::new().run_or_exit();
}

/// Compiles the kernels of a package, with options.
#[derive(Clone, Debug)]
pub struct Build {
    target: Target,
    checks: Option<Checks>,
    warnings: bool,
    ptx: bool,
    sources: Vec<PathBuf>,
    packages: BTreeMap<String, PathBuf>,
}

/// What became of a package's kernels; each list of kernels holds `kernel` or `kernel::instance`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Compiled in this run.
    pub compiled: Vec<String>,
    /// Taken from an earlier run, since nothing in them has changed.
    pub reused: Vec<String>,
    /// Taken from the package's sources, which keep it for builds without LLVM.
    pub kept: Vec<String>,
    /// Passed over, since they break a rule that the macro reports.
    pub refused: Vec<String>,
    /// What could be better in any of them.
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
    /// For the default target, of the sources that cargo knows: `src`, `examples`, `tests`,
    /// `benches`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes PTX for another target than `sm_90a`.
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// Whether kernels are checked that say neither `checked` nor `unchecked`. Otherwise they are
    /// in builds with debug assertions, which cargo's profile `dev` has and `release` has not.
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = Some(checks);
        self
    }

    /// Whether [`run`](Self::run) prints warnings, which it does unless this says otherwise.
    pub fn warnings(mut self, warnings: bool) -> Self {
        self.warnings = warnings;
        self
    }

    /// Whether PTX is made. It is, unless this or `TMA_PTX=off` in the environment of
    /// [`run`](Self::run) says otherwise: for lints and other builds in which nothing runs. Kernels
    /// are checked in any case; a launch of one without PTX is an error.
    pub fn ptx(mut self, ptx: bool) -> Self {
        self.ptx = ptx;
        self
    }

    /// Looks for kernels in a further file or folder, relative to the package.
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(path.into());
        self
    }

    /// Where a package is whose modules others are made from, by `#[tma_module(from = name::..)]`.
    /// Only needed if cargo does not tell: for names that a manifest gives a dependency, and for
    /// dependencies without `links`.
    pub fn package(mut self, name: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        self.packages.insert(name.into(), folder.into());
        self
    }

    /// As [`Build::run`]; tells cargo of errors and ends the build script.
    pub fn run_or_exit(&self) {
        if let Err(error) = self.run() {
            match &error {
                BuildError::Target(errors) => errors.iter().for_each(|error| tell_cargo("error", error)),
                // One line each.
                other => other.to_string().lines().for_each(|line| tell_cargo("error", &line)),
            }
            std::process::exit(1);
        }
    }

    /// Compiles what has changed since the last run, tells cargo what to watch, and warns.
    ///
    /// # Errors
    ///
    /// Outside of a build script, when files cannot be read or written, when a kernel needs what
    /// the target does not have, and when LLVM fails.
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
        let keep = Keep::here();
        if kept::is_in(&package) || keep != Keep::Nothing {
            println!("cargo::rerun-if-changed={}", kept::FOLDER);
        }
        let packages = Packages::around(&package, &self.packages);
        let maker = Maker::of(self.ptx && batch::is_wanted());
        let report = self.compile_and_keep(&packages, [&package, &out_dir], &roots, (keep, maker))?;
        library::tell(&package);
        for path in packages.files() {
            println!("cargo::rerun-if-changed={}", watched(&path, &package)?);
        }
        if self.warnings {
            report.warnings.iter().for_each(|warning| tell_cargo("warning", warning));
        }
        Ok(report)
    }

    /// Compiles the kernels under `roots` into `out_dir`; `package` is what paths in messages are
    /// relative to.
    ///
    /// # Errors
    ///
    /// When files cannot be read or written, when a kernel needs what the target does not have, and
    /// when LLVM fails. Without LLVM, when the package keeps PTX that is not that of its kernels.
    pub fn compile(&self, package: &Path, roots: &[PathBuf], out_dir: &Path) -> Result<Report, BuildError> {
        let packages = Packages::around(package, &self.packages);
        let maker = Maker::of(self.ptx);
        self.compile_and_keep(&packages, [package, out_dir], roots, (Keep::Nothing, maker))
    }

    fn compile_and_keep(
        &self,
        packages: &Packages,
        [package, out_dir]: [&Path; 2],
        roots: &[PathBuf],
        (keep, maker): (Keep, Maker),
    ) -> Result<Report, BuildError> {
        if let (Keep::Write, Maker::Nobody(why)) = (keep, maker) {
            return Err(BuildError::NothingToKeep(why));
        }
        let goal = Goal { target: self.target, checks: self.checks.unwrap_or_else(checks::of_this_build) };
        let mut run = Run::new([package, out_dir], goal, maker, keep)?;
        for path in sources::rust_files(roots)? {
            let bytes = fs::read(&path).map_err(file_error(&path))?;
            // What is not Rust, rustc reports.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let text = store::with_unix_lines(text);
            let shown = path.strip_prefix(package).unwrap_or(&path);
            run.take_file(&text, shown, packages)?;
        }
        run.finish(packages)
    }
}

/// Prints an instruction to cargo.
fn tell_cargo(instruction: &str, text: &impl fmt::Display) {
    println!("{}", directive(instruction, text));
}

/// An instruction to cargo, which reads them line by line.
fn directive(instruction: &str, text: &impl fmt::Display) -> String {
    format!("cargo::{instruction}={}", escape::controls(&text.to_string().replace('\n', " ")))
}

/// `path` as cargo's directives take it, which are lines of UTF-8 without blanks around them:
/// relative to the package where it lies there, as cargo reads it then, so that it does not matter
/// what the package's folder is called.
fn watched<'p>(path: &'p Path, package: &Path) -> Result<&'p str, BuildError> {
    let unwatchable = |why| BuildError::Unwatchable { path: path.to_owned(), why };
    let text = path.strip_prefix(package).unwrap_or(path).to_str();
    let text = text.ok_or_else(|| unwatchable("is not UTF-8"))?;
    if text.contains('\n') {
        return Err(unwatchable("has a line break"));
    }
    if text.trim() != text {
        return Err(unwatchable("begins or ends with a blank"));
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
    use crate::diag::Diagnostic;
    use crate::diag::mistake::Shared;

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
            line.starts_with("cargo::warning=src/lib.rs:1:1: TMA0015: nothing accesses `a\\r`"),
            "{line}"
        );
        assert!(line.contains("; help: remove it") && !line.contains(['\n', '\r']), "{line}");
    }

    #[test]
    fn what_would_break_a_directive_is_refused() {
        for (name, why) in [
            ("kernels\ncargo::rustc-link-arg=-o", "has a line break"),
            ("kernels ", "begins or ends with a blank"),
        ] {
            let error = watched(&Path::new("/p").join(name), Path::new("/p")).unwrap_err().to_string();
            assert!(error.starts_with("TMA0904: cargo cannot be told to watch `/p/kernels"), "{error}");
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }
}
