//! The build script's side: finds the kernels of a package and writes the PTX that the macros include.
//!
//! Kernels that break a rule are passed over: the macro, which has the spans, reports them. What fails here is
//! only what a macro cannot see: LLVM, and files.

mod checks;
mod reuse;
mod sources;
mod store;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

pub(crate) use sources::FOLDERS;

use crate::parse::file;
use crate::pipeline::{Front, Instance, front};
use crate::target::Goal;
use crate::{Checks, Target, escape, note};

/// Compiles the kernels of the package whose build script calls it, for `sm_90a`; all of `build.rs` in most
/// packages. Ends the build script with an error if there is one.
pub fn build() {
    Build::new().run_or_exit();
}

/// Compiles the kernels of a package, with options.
#[derive(Clone, Debug, Default)]
pub struct Build {
    target: Target,
    checks: Option<Checks>,
    sources: Vec<PathBuf>,
}

/// What became of a package's kernels; each list holds `kernel` or `kernel::instance`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Compiled in this run.
    pub compiled: Vec<String>,
    /// Taken from an earlier run, since nothing in them has changed.
    pub reused: Vec<String>,
    /// Passed over, since they break a rule that the macro reports.
    pub refused: Vec<String>,
}

/// What a build script can fail at.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// It was not called by cargo.
    #[error("TMA0902: `{0}` is not set: `tma_codegen::build()` is called from a build script, by cargo")]
    NoEnvironment(&'static str),
    /// A file could not be read or written.
    #[error("TMA0902: {path}: {error}", path = escape::path(.path))]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file or folder could not be watched.
    #[error(
        "TMA0904: cargo cannot be told to watch `{path}`, since its name {why}: rename what it lies in, or build \
         elsewhere (`CARGO_TARGET_DIR`)",
        path = escape::path(.path)
    )]
    Unwatchable {
        /// Which.
        path: PathBuf,
        /// What is in the way.
        why: &'static str,
    },
    /// LLVM failed.
    #[cfg(feature = "llvm")]
    #[error("{path}:{line}: {error}", path = escape::path(.path))]
    Backend {
        /// The source file.
        path: PathBuf,
        /// The line of the kernel.
        line: usize,
        /// What LLVM said.
        error: crate::backend::BackendError,
    },
}

impl Build {
    /// For the default target, of the sources that cargo knows: `src`, `examples`, `tests`, `benches`.
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

    /// Looks for kernels in a further file or folder, relative to the package.
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(path.into());
        self
    }

    /// As [`Build::run`]; tells cargo of an error and ends the build script.
    pub fn run_or_exit(&self) {
        if let Err(error) = self.run() {
            // One line: cargo reads instructions line by line.
            println!("cargo::error={}", escape::controls(&error.to_string().replace('\n', " ")));
            std::process::exit(1);
        }
    }

    /// Compiles what has changed since the last run, and tells cargo what to watch.
    ///
    /// # Errors
    ///
    /// Outside of a build script, when files cannot be read or written, and when LLVM fails.
    pub fn run(&self) -> Result<Report, BuildError> {
        let variable = |name| env::var_os(name).map(PathBuf::from).ok_or(BuildError::NoEnvironment(name));
        let package = variable("CARGO_MANIFEST_DIR")?;
        let out_dir = variable("OUT_DIR")?;
        println!("cargo::rerun-if-env-changed=TMA_DUMP");
        let roots = sources::roots(&package, &self.sources);
        let note = note::clear(&out_dir).map_err(file_error(&out_dir))?;
        for path in roots.iter().chain([&note]) {
            println!("cargo::rerun-if-changed={}", watched(path, &package)?);
        }
        self.compile(&package, &roots, &out_dir)
    }

    /// Compiles the kernels under `roots` into `out_dir`; `package` is what paths in messages are relative to.
    ///
    /// # Errors
    ///
    /// When files cannot be read or written, and when LLVM fails.
    pub fn compile(&self, package: &Path, roots: &[PathBuf], out_dir: &Path) -> Result<Report, BuildError> {
        let folder = out_dir.join("tma");
        fs::create_dir_all(&folder).map_err(file_error(&folder))?;
        let mut report = Report::default();
        let mut current = HashSet::new();
        for path in sources::rust_files(roots)? {
            let bytes = fs::read(&path).map_err(file_error(&path))?;
            // What is not Rust, rustc reports.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let shown = path.strip_prefix(package).unwrap_or(&path);
            for (item, shared) in file::kernels_in(&text) {
                let front = front(&item, &shared);
                let fingerprint = reuse::fingerprint(&item, &shared, self.goal(), shown);
                self.write_instances(front, fingerprint, shown, out_dir, &mut current, &mut report)?;
            }
        }
        remove_stale(&folder, &current)?;
        Ok(report)
    }

    fn goal(&self) -> Goal {
        Goal { target: self.target, checks: self.checks.unwrap_or_else(checks::of_this_build) }
    }

    fn write_instances(
        &self,
        front: Front,
        fingerprint: reuse::Fingerprint,
        source: &Path,
        out_dir: &Path,
        current: &mut HashSet<PathBuf>,
        report: &mut Report,
    ) -> Result<(), BuildError> {
        for instance in front.instances {
            let checked = match instance {
                Instance::Refused(kernel) => {
                    report.refused.push(kernel.path());
                    continue;
                }
                Instance::Checked(checked) => checked,
            };
            let kernel = checked.kernel();
            let file =
                out_dir.join(crate::abi::ptx_file(&kernel.name, kernel.instance.as_deref(), front.hash));
            // The same kernel stands in another place as well: one PTX serves both.
            if current.contains(&file) {
                report.reused.push(kernel.path());
                continue;
            }
            let old = fs::read_to_string(&file).ok();
            let text = match old.as_deref().and_then(|old| reuse::reuse(old, &fingerprint)) {
                Some(text) => {
                    report.reused.push(kernel.path());
                    text
                }
                None => {
                    report.compiled.push(kernel.path());
                    fingerprint.mark(&ptx(&checked, source, self.goal())?)
                }
            };
            // An unchanged file keeps its date, and whoever includes it is not compiled again.
            if old.as_deref() != Some(&text) {
                store::write(&file, &text).map_err(file_error(&file))?;
            }
            current.insert(file);
        }
        Ok(())
    }
}

#[cfg(feature = "llvm")]
fn ptx(checked: &crate::check::CheckedKernel, source: &Path, goal: Goal) -> Result<String, BuildError> {
    let path = source.to_string_lossy();
    crate::emit::ptx(checked, &crate::backend::Source { path: &path }, goal).map_err(|error| {
        BuildError::Backend { path: source.to_owned(), line: checked.kernel().span.start().line, error }
    })
}

/// Without LLVM the file says so, and the runtime repeats it when the kernel is launched.
#[cfg(not(feature = "llvm"))]
fn ptx(_: &crate::check::CheckedKernel, _: &Path, _: Goal) -> Result<String, BuildError> {
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

    #[test]
    fn what_lies_in_the_package_is_watched_wherever_that_lies() {
        let package = Path::new("/new\nline");
        assert_eq!(watched(&package.join("src"), package).unwrap(), "src");
        assert_eq!(watched(Path::new("/out/tma-missing"), package).unwrap(), "/out/tma-missing");
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
