//! The build script's side: finds the kernels of a package and writes the PTX that the macros
//! include.
//!
//! Kernels that break a rule are passed over: the macro, which has the spans, reports them. What
//! fails here is only what a macro cannot see: LLVM, files, and what the target does not have,
//! which is reported as `file:line:column`. The macro meets no PTX of such a kernel, for cargo does
//! not go on to it. Warnings are this side's too: a macro of stable Rust cannot show any.

mod checks;
mod error;
mod kept;
mod reuse;
pub mod sources;
mod store;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

pub use error::BuildError;
use kept::Keep;
pub use kept::{Unkept, Why};
pub(crate) use sources::FOLDERS;

use crate::abi::ptx_file;
use crate::check::{TargetKernel, for_target};
use crate::diag::{Diagnostic, Located, Sink};
use crate::ir::Kernel;
use crate::library::{self, Packages};
use crate::parse::item::file;
use crate::pipeline::{Front, Instance, Rules, front};
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
        let report = self.compile_and_keep(&packages, [&package, &out_dir], &roots, keep)?;
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
        self.compile_and_keep(&packages, [package, out_dir], roots, Keep::Nothing)
    }

    fn compile_and_keep(
        &self,
        packages: &Packages,
        [package, out_dir]: [&Path; 2],
        roots: &[PathBuf],
        keep: Keep,
    ) -> Result<Report, BuildError> {
        if keep == Keep::Write && cfg!(not(feature = "llvm")) {
            return Err(BuildError::NothingToKeep);
        }
        let folder = out_dir.join("tma");
        fs::create_dir_all(&folder).map_err(file_error(&folder))?;
        let mut run = Run {
            goal: self.goal(),
            package,
            out_dir,
            keep,
            current: HashSet::new(),
            unkept: vec![],
            report: Report::default(),
        };
        let mut lacking = vec![];
        for path in sources::rust_files(roots)? {
            let bytes = fs::read(&path).map_err(file_error(&path))?;
            // What is not Rust, rustc reports.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let shown = path.strip_prefix(package).unwrap_or(&path);
            for (item, shared) in file::kernels_in(&text, &|path| packages.find(path)) {
                let shown = shared.template.as_deref().unwrap_or(shown);
                let fingerprint = reuse::fingerprint(&item, &shared, run.goal, shown);
                let is_known = |kernel: &Kernel, hash| {
                    let old = fs::read_to_string(out_dir.join(ptx_file(kernel, hash)));
                    old.is_ok_and(|old| fingerprint.heads(&old))
                };
                let front = front(&item, &shared, Rules::ProtocolUnless(&is_known));
                lacking.extend(run.write_instances(front, fingerprint, shown)?);
            }
        }
        run.leave(packages)?;
        if !lacking.is_empty() {
            return Err(BuildError::Target(lacking));
        }
        let names = run.names();
        match keep {
            Keep::Nothing => {}
            Keep::Write => kept::remove_stale(package, &names)?,
            Keep::Check => run.unkept.extend(kept::gone(package, &names)?),
        }
        if !run.unkept.is_empty() {
            return Err(BuildError::Unkept(run.unkept));
        }
        remove_stale(&folder, &run.current)?;
        Ok(run.report)
    }

    fn goal(&self) -> Goal {
        Goal { target: self.target, checks: self.checks.unwrap_or_else(checks::of_this_build) }
    }
}

/// A run of the build script.
struct Run<'a> {
    goal: Goal,
    package: &'a Path,
    out_dir: &'a Path,
    keep: Keep,
    /// The files that belong to kernels as they are now.
    current: HashSet<PathBuf>,
    /// The kernels whose kept PTX is wanted and is not theirs.
    unkept: Vec<Unkept>,
    report: Report,
}

impl Run<'_> {
    /// Writes the PTX of a kernel's instances. Returns what they need that the target does not
    /// have.
    fn write_instances(
        &mut self,
        front: Front,
        fingerprint: reuse::Fingerprint,
        source: &Path,
    ) -> Result<Vec<Located>, BuildError> {
        let located = |diagnostic: &Diagnostic| Located::new(source, diagnostic);
        self.report.warnings.extend(front.diagnostics.warnings.iter().map(located));
        let mut sink = Sink::default();
        for instance in front.instances {
            let checked = match instance {
                Instance::Refused(kernel) => {
                    self.report.refused.push(kernel.path());
                    continue;
                }
                Instance::Checked(checked) => *checked,
            };
            sink.enter(checked.kernel().instance.as_deref());
            if let Some(kernel) = for_target(checked, self.goal.target, &mut sink) {
                self.write(&kernel, front.hash, &fingerprint, source)?;
            }
        }
        Ok(sink.into_errors().iter().map(located).collect())
    }

    /// Writes the PTX of an instance, unless it is there already.
    fn write(
        &mut self,
        target_kernel: &TargetKernel,
        hash: u64,
        fingerprint: &reuse::Fingerprint,
        source: &Path,
    ) -> Result<(), BuildError> {
        let kernel = target_kernel.kernel().kernel();
        let name = ptx_file(kernel, hash);
        let file = self.out_dir.join(&name);
        // The same kernel stands in another place as well: one PTX serves both.
        if self.current.contains(&file) {
            self.report.reused.push(kernel.path());
            return Ok(());
        }
        let subject = kept::Subject {
            package: self.package,
            file: &name,
            target: self.goal.target,
            line: fingerprint.line(),
        };
        let mut unkept = |why| {
            self.unkept.push(Unkept { kernel: kernel.path(), place: (source.to_owned(), subject.line), why });
        };
        let old = fs::read_to_string(&file).ok();
        let is_taken = cfg!(not(feature = "llvm")) && (kept::is_in(self.package) || self.keep == Keep::Check);
        let text = if is_taken {
            match kept::take(subject) {
                Ok(ptx) => {
                    self.report.kept.push(kernel.path());
                    fingerprint.mark(&ptx)
                }
                Err(why) => {
                    unkept(why);
                    return Ok(());
                }
            }
        } else if let Some(text) = old.as_deref().and_then(|old| reuse::reuse(old, fingerprint)) {
            self.report.reused.push(kernel.path());
            text
        } else {
            self.report.compiled.push(kernel.path());
            fingerprint.mark(&ptx(target_kernel, source, self.goal.checks)?)
        };
        let compiled = text.split_once('\n').map_or("", |(_, ptx)| ptx);
        match self.keep {
            Keep::Write => kept::write(subject, compiled)?,
            Keep::Check if !is_taken => kept::check(subject, compiled).unwrap_or_else(unkept),
            Keep::Check | Keep::Nothing => {}
        }
        // An unchanged file keeps its date, and whoever includes it is not compiled again.
        if old.as_deref() != Some(&text) {
            store::write(&file, &text).map_err(file_error(&file))?;
        }
        self.current.insert(file);
        Ok(())
    }

    /// Writes the templates that the macro needs.
    fn leave(&mut self, packages: &Packages) -> Result<(), BuildError> {
        for (name, text) in packages.left() {
            let file = self.out_dir.join(name);
            if fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                store::write(&file, &text).map_err(file_error(&file))?;
            }
            self.current.insert(file);
        }
        Ok(())
    }

    /// The names of the files of all kernels.
    fn names(&self) -> BTreeSet<String> {
        let is_ptx = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "ptx");
        let names = self.current.iter().filter(is_ptx).filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
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

#[cfg(feature = "llvm")]
fn ptx(kernel: &TargetKernel, source: &Path, checks: Checks) -> Result<String, BuildError> {
    let path = source.to_string_lossy();
    crate::emit::ptx(kernel, &crate::backend::Source { path: &path }, checks).map_err(|error| {
        let line = kernel.kernel().kernel().span.start().line;
        BuildError::Backend { path: source.to_owned(), line, error }
    })
}

/// Without LLVM the file says so, and the runtime repeats it when the kernel is launched.
#[cfg(not(feature = "llvm"))]
fn ptx(_: &TargetKernel, _: &Path, _: Checks) -> Result<String, BuildError> {
    Ok("// no code: `tma-codegen` was built without its feature `llvm`\n".to_owned())
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

fn remove_stale(folder: &Path, current: &HashSet<PathBuf>) -> Result<(), BuildError> {
    for entry in fs::read_dir(folder).map_err(file_error(folder))? {
        let path = entry.map_err(file_error(folder))?.path();
        if !current.contains(&path) {
            fs::remove_file(&path).map_err(file_error(&path))?;
        }
    }
    Ok(())
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
    let path = path.to_owned();
    |error| BuildError::File { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
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
