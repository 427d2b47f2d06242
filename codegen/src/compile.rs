//! Source text to checked kernels, and to PTX: for tests and tools.

use std::fmt;

use crate::Target;
use crate::check::{CheckedKernel, TargetKernel, for_target};
#[cfg(feature = "llvm")]
use crate::diag;
use crate::diag::{Diagnostic, Diagnostics, Sink, render};
use crate::parse::item::{depth, file};
use crate::pipeline::{Instance, Rules, front};
use crate::{library, place};

/// A kernel instance of a source file that broke no rule.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The kernel.
    pub kernel: CheckedKernel,
    /// The hash that names its PTX.
    pub hash: u64,
}

/// What became of a source file whose kernels break no rule.
#[derive(Clone, Debug)]
pub struct Accepted<T> {
    /// Its kernel instances.
    pub kernels: Vec<T>,
    /// What could be better.
    pub warnings: Vec<Diagnostic>,
    /// All warnings as text, with the lines they are about.
    pub rendered: String,
}

/// Why a source file gave no kernels.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// It is not Rust.
    Syntax(syn::Error),
    /// Its kernels break rules.
    Rules {
        /// Each error.
        errors: Vec<Diagnostic>,
        /// What could be better besides.
        warnings: Vec<Diagnostic>,
        /// All of them as text, with the lines they are about.
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

/// Parses and checks every kernel of `source`, which messages call `path`: by the rules for each
/// statement that hold for every target.
///
/// # Errors
/// See [`Failure`].
pub fn check(path: &str, source: &str) -> Result<Accepted<Checked>, Failure> {
    judge(path, source, Rules::Statements, |checked, _| Some(checked))
}

/// As [`check`], also by the protocol of barriers: what is refused here is refused in a build.
///
/// # Errors
/// See [`Failure`].
pub fn check_protocol(path: &str, source: &str) -> Result<Accepted<Checked>, Failure> {
    judge(path, source, Rules::Protocol, |checked, _| Some(checked))
}

/// As [`check`], also by the rules of one target.
///
/// # Errors
/// See [`Failure`].
pub fn check_for(path: &str, source: &str, target: Target) -> Result<Accepted<TargetKernel>, Failure> {
    judge(path, source, Rules::Statements, |checked, sink| for_target(checked.kernel, target, sink))
}

/// Parses and checks every kernel; `last` judges each that broke no rule so far.
fn judge<T>(
    path: &str,
    source: &str,
    rules: Rules<'_>,
    mut last: impl FnMut(Checked, &mut Sink) -> Option<T>,
) -> Result<Accepted<T>, Failure> {
    let failure = |Diagnostics { errors, warnings }| {
        let rendered = render(errors.iter().chain(&warnings), path, source);
        Failure::Rules { errors, warnings, rendered }
    };
    if let Some(error) = source.parse().ok().as_ref().and_then(depth::too_deep) {
        return Err(failure(Diagnostics { errors: vec![error], warnings: vec![] }));
    }
    let parsed = syn::parse_file(source).map_err(Failure::Syntax)?;
    let mut kernels = vec![];
    let mut found =
        Diagnostics { errors: file::methods(&parsed).iter().map(place::method).collect(), warnings: vec![] };
    let all = file::kernels(&parsed, &|path| library::in_text(&parsed.items, path));
    // Where other packages are is not known of a text: macro and build script judge what is made
    // from theirs.
    found.errors.extend(all.mistakes.into_iter().filter(|error| !error.mistake.is_of_packages()));
    for (item, shared) in all.kernels {
        let front = front(&item, &shared, rules);
        found.extend(front.diagnostics);
        let mut sink = Sink::default();
        for instance in front.instances {
            if let Instance::Checked(kernel) = instance {
                sink.enter(kernel.kernel().instance.as_deref());
                kernels.extend(last(Checked { kernel: *kernel, hash: front.hash }, &mut sink));
            }
        }
        found.extend(sink.into_diagnostics());
    }
    if !found.errors.is_empty() {
        return Err(failure(found));
    }
    let rendered = render(&found.warnings, path, source);
    Ok(Accepted { kernels, warnings: found.warnings, rendered })
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

/// Compiles every kernel of `source`, which messages and line information call `path`, as a release
/// build does: checked are those kernels that say so.
///
/// # Errors
/// See [`Failure`].
#[cfg(feature = "llvm")]
pub fn compile(path: &str, source: &str, target: Target) -> Result<Accepted<Ptx>, Failure> {
    compile_with(path, source, target, crate::Checks::Off)
}

/// As [`compile`]; `checks` says whether kernels are checked that do not say it themselves.
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
    let Accepted { kernels, warnings, rendered } = check_for(path, source, target)?;
    let kernels = kernels.iter().map(|kernel| compile_kernel(path, kernel, checks));
    let kernels = kernels.collect::<Result<_, Failure>>()?;
    Ok(Accepted { kernels, warnings, rendered })
}

/// Compiles a kernel that has been checked, which line information says is of `path`.
///
/// # Errors
/// [`Failure::Backend`].
#[cfg(feature = "llvm")]
pub fn compile_kernel(path: &str, kernel: &TargetKernel, checks: crate::Checks) -> Result<Ptx, Failure> {
    let source = crate::backend::Source { path };
    let text = crate::emit::ptx(kernel, &source, checks).map_err(Failure::Backend)?;
    let kernel = kernel.kernel().kernel();
    Ok(Ptx { name: kernel.path(), entry: crate::abi::entry(kernel), text })
}
