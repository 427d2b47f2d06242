//! Compiles source text to checked kernels and to PTX, for tests and tools.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use tma_front::check::{CheckedKernel, TargetKernel, for_target};
#[cfg(feature = "llvm")]
use tma_front::diag;
use tma_front::diag::{Diagnostic, Diagnostics, Located, Sink, render};
use tma_front::parse::item::template::Elsewhere;
use tma_front::parse::item::{depth, file};

use crate::Target;
#[cfg(feature = "llvm")]
use crate::lower::ptxas::{Workaround, Workarounds};
use crate::pipeline::{Instance, Rules, front};
use crate::position;
use crate::templates::{self, Packages};

/// A kernel instance of a source file, without errors.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The kernel.
    pub kernel: CheckedKernel,
    /// The hash in the name of its PTX file.
    pub hash: u64,
    /// The file that its lines refer to, if its module is made from a template in another file.
    /// Like the path of a module, it begins with the package's name, unless the package is the
    /// same.
    pub made_from: Option<PathBuf>,
}

/// The result for a source file whose kernels have no errors.
#[derive(Clone, Debug)]
pub struct Accepted<T> {
    /// The kernel instances.
    pub kernels: Vec<T>,
    /// The warnings.
    pub warnings: Vec<Diagnostic>,
    /// All warnings as text, with the source lines.
    pub rendered: String,
}

/// The reason why a source file was rejected.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The source is not Rust.
    Syntax(syn::Error),
    /// The kernels have errors.
    Rules {
        /// The errors.
        errors: Vec<Diagnostic>,
        /// The warnings.
        warnings: Vec<Diagnostic>,
        /// All errors and warnings as text, with the source lines.
        rendered: String,
    },
    /// LLVM failed.
    #[cfg(feature = "llvm")]
    Backend(crate::backend::BackendError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => {
                let at = error.span().start();
                write!(f, "{}:{}: {error}", at.line, at.column + 1)
            }
            Self::Rules { rendered, .. } => f.write_str(rendered),
            #[cfg(feature = "llvm")]
            Self::Backend(error) => diag::Coded(diag::Code::Backend, error).fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// Parses every kernel of `source` and checks each statement by the rules that hold for all
/// targets. Messages name the source `path`.
///
/// # Errors
/// See [`Failure`].
pub fn check(path: &str, source: &str) -> Result<Accepted<Checked>, Failure> {
    judge(Text { path, source, packages: None }, Rules::Statements, |checked, _| Some(checked))
}

/// Like [`check`], for a file of the package in the folder `package`. Includes the kernels of
/// modules that are made from templates in this package or in `others`, which maps the first names
/// of paths to folders. Errors in such a kernel are reported with the line number only.
///
/// # Errors
/// See [`Failure`].
pub fn check_in(
    package: &Path,
    others: &BTreeMap<String, PathBuf>,
    path: &str,
    source: &str,
) -> Result<Accepted<Checked>, Failure> {
    let packages = Packages::around(package, others);
    judge(Text { path, source, packages: Some(&packages) }, Rules::Statements, |checked, _| Some(checked))
}

/// Like [`check`], with the check of the barrier protocol: rejects all kernels that a build
/// rejects.
///
/// # Errors
/// See [`Failure`].
pub fn check_protocol(path: &str, source: &str) -> Result<Accepted<Checked>, Failure> {
    judge(Text { path, source, packages: None }, Rules::Protocol, |checked, _| Some(checked))
}

/// Like [`check`], with the rules of one target.
///
/// # Errors
/// See [`Failure`].
pub fn check_for(path: &str, source: &str, target: Target) -> Result<Accepted<TargetKernel>, Failure> {
    let text = Text { path, source, packages: None };
    judge(text, Rules::Statements, |checked, sink| for_target(checked.kernel, target, sink))
}

/// A text with kernels.
#[derive(Clone, Copy)]
struct Text<'a> {
    /// The path in messages.
    path: &'a str,
    source: &'a str,
    /// The packages with templates. If they are not known, templates are looked up in the text
    /// alone.
    packages: Option<&'a Packages>,
}

/// The diagnostics of a text.
struct TextDiagnostics<'a> {
    text: Text<'a>,
    found: Diagnostics,
    /// The diagnostics of kernels whose lines are in another file, which is not shown.
    elsewhere: Vec<(PathBuf, Diagnostics)>,
}

impl TextDiagnostics<'_> {
    /// Adds the diagnostics of a kernel. `made_from` is the file of its template, if that is
    /// another one.
    fn extend(&mut self, made_from: Option<&Path>, diagnostics: Diagnostics) {
        match made_from {
            Some(file) => self.elsewhere.push((file.to_owned(), diagnostics)),
            None => self.found.extend(diagnostics),
        }
    }

    fn outcome<T>(self, kernels: Vec<T>) -> Result<Accepted<T>, Failure> {
        let Diagnostics { mut errors, mut warnings } = self.found;
        // Warnings are shown after errors, if there are any.
        let mut rendered = render(errors.iter().chain(&warnings), self.text.path, self.text.source);
        for (file, more) in self.elsewhere {
            for diagnostic in more.errors.iter().chain(&more.warnings) {
                rendered += &format!("{}\n", Located::new(&file, diagnostic));
            }
            errors.extend(more.errors);
            warnings.extend(more.warnings);
        }
        match errors.is_empty() {
            true => Ok(Accepted { kernels, warnings, rendered }),
            false => Err(Failure::Rules { errors, warnings, rendered }),
        }
    }
}

/// Parses and checks every kernel. `last` further checks each one without errors.
fn judge<T>(
    text: Text<'_>,
    rules: Rules<'_>,
    mut last: impl FnMut(Checked, &mut Sink) -> Option<T>,
) -> Result<Accepted<T>, Failure> {
    let mut diagnostics = TextDiagnostics { text, found: Diagnostics::default(), elsewhere: vec![] };
    if let Some(error) = text.source.parse().ok().as_ref().and_then(depth::too_deep) {
        diagnostics.found.errors.push(error);
        return diagnostics.outcome(vec![]);
    }
    let parsed = syn::parse_file(text.source).map_err(Failure::Syntax)?;
    diagnostics.found.errors.extend(file::methods(&parsed).iter().map(position::method));
    let packages = Packages::with_file(text.packages, text.path, &parsed.items);
    let source = packages.source(text.path);
    let imports = |module: &syn::ItemMod, around: &[String]| packages.imports(&source, module, around);
    let find = |path: &syn::Path| match text.packages {
        Some(packages) => packages.find(path),
        None => templates::in_text(&parsed.items, path),
    };
    let all = file::kernels(&parsed, &Elsewhere { template: &find, imports: &imports });
    // The location of other packages is unknown for a mere text. The macro and the build script
    // check modules made from them.
    let is_known = |error: &Diagnostic| text.packages.is_some() || !error.mistake.is_of_packages();
    diagnostics.found.errors.extend(all.mistakes.into_iter().filter(is_known));
    let mut kernels = vec![];
    for (item, shared) in all.kernels {
        let front = front(&item, &shared, rules);
        let made_from = shared.template.as_deref();
        diagnostics.extend(made_from, front.diagnostics);
        let mut sink = Sink::default();
        for instance in front.instances {
            if let Instance::Checked(kernel) = instance {
                sink.enter(kernel.kernel().instance.as_deref());
                let made_from = shared.template.clone();
                kernels.extend(last(Checked { kernel: *kernel, hash: front.hash, made_from }, &mut sink));
            }
        }
        diagnostics.extend(made_from, sink.into_diagnostics());
    }
    diagnostics.outcome(kernels)
}

/// The PTX of a kernel instance.
#[cfg(feature = "llvm")]
#[derive(Clone, Debug)]
pub struct Ptx {
    /// `kernel`, or `kernel::instance`.
    pub name: String,
    /// The symbol of the entry.
    pub entry: String,
    /// The text.
    pub text: String,
}

/// Compiles every kernel of `source` in release mode: only kernels marked `checked` are checked.
/// Messages and line information name the source `path`.
///
/// # Errors
/// See [`Failure`].
#[cfg(feature = "llvm")]
pub fn compile(path: &str, source: &str, target: Target) -> Result<Accepted<Ptx>, Failure> {
    compile_with(path, source, target, crate::Checks::Off)
}

/// Like [`compile`]. `checks` applies to kernels that have neither `checked` nor `unchecked`.
///
/// # Errors
/// See [`Failure`].
#[cfg(feature = "llvm")]
pub fn compile_with(
    path: &str,
    source: &str,
    target: Target,
    checks: crate::Checks,
) -> Result<Accepted<Ptx>, Failure> {
    emitted_all(path, check_for(path, source, target)?, checks, Workarounds::ALL)
}

/// Compiles a kernel that has been checked. Line information refers to `path`.
///
/// # Errors
/// [`Failure::Backend`].
#[cfg(feature = "llvm")]
pub fn compile_kernel(path: &str, kernel: &TargetKernel, checks: crate::Checks) -> Result<Ptx, Failure> {
    emitted(path, kernel, checks, Workarounds::ALL)
}

/// Like [`compile`], without one workaround for ptxas. Only tests of that workaround call it.
///
/// # Errors
/// See [`Failure`].
#[cfg(feature = "llvm")]
#[doc(hidden)]
pub fn compile_without(
    path: &str,
    source: &str,
    target: Target,
    workaround: Workaround,
) -> Result<Accepted<Ptx>, Failure> {
    let workarounds = Workarounds::without(workaround);
    emitted_all(path, check_for(path, source, target)?, crate::Checks::Off, workarounds)
}

#[cfg(feature = "llvm")]
fn emitted_all(
    path: &str,
    accepted: Accepted<TargetKernel>,
    checks: crate::Checks,
    workarounds: Workarounds,
) -> Result<Accepted<Ptx>, Failure> {
    let Accepted { kernels, warnings, rendered } = accepted;
    let kernels = kernels.iter().map(|kernel| emitted(path, kernel, checks, workarounds));
    Ok(Accepted { kernels: kernels.collect::<Result<_, _>>()?, warnings, rendered })
}

#[cfg(feature = "llvm")]
fn emitted(
    path: &str,
    kernel: &TargetKernel,
    checks: crate::Checks,
    workarounds: Workarounds,
) -> Result<Ptx, Failure> {
    let source = crate::backend::Source { path };
    let text = crate::emit::ptx(kernel, &source, checks, workarounds).map_err(Failure::Backend)?;
    let kernel = kernel.kernel().kernel();
    Ok(Ptx { name: kernel.path(), entry: tma_front::abi::entry(kernel), text })
}
