//! Source text to checked kernels, and to PTX: for tests and tools.

use std::fmt;

use crate::check::CheckedKernel;
use crate::diag::{Diagnostic, render};
use crate::parse::{depth, file};
use crate::pipeline::{Instance, front};
use crate::place;

/// A kernel instance of a source file that broke no rule.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The kernel.
    pub kernel: CheckedKernel,
    /// The hash that names its PTX.
    pub hash: u64,
}

/// Why a source file gave no kernels.
#[derive(Debug)]
pub enum Failure {
    /// It is not Rust.
    Syntax(syn::Error),
    /// Its kernels break rules.
    Rules {
        /// Each error.
        errors: Vec<Diagnostic>,
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
            Self::Backend(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// Parses and checks every kernel of `source`, which messages call `path`.
pub fn check(path: &str, source: &str) -> Result<Vec<Checked>, Failure> {
    if let Some(error) = source.parse().ok().as_ref().and_then(depth::too_deep) {
        let errors = vec![error];
        return Err(Failure::Rules { rendered: render(&errors, path, source), errors });
    }
    let parsed = syn::parse_file(source).map_err(Failure::Syntax)?;
    let mut kernels = vec![];
    let mut errors = vec![];
    errors.extend(file::methods(&parsed).iter().map(place::method));
    for (item, shared) in file::kernels(&parsed) {
        let front = front(&item, &shared);
        errors.extend(front.errors);
        kernels.extend(front.instances.into_iter().filter_map(|instance| match instance {
            Instance::Checked(kernel) => Some(Checked { kernel: *kernel, hash: front.hash }),
            Instance::Refused(_) => None,
        }));
    }
    if errors.is_empty() {
        return Ok(kernels);
    }
    let rendered = render(&errors, path, source);
    Err(Failure::Rules { errors, rendered })
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
#[cfg(feature = "llvm")]
pub fn compile(path: &str, source: &str, target: crate::Target) -> Result<Vec<Ptx>, Failure> {
    compile_with(path, source, target, crate::Checks::Off)
}

/// As [`compile`]; `checks` says whether kernels are checked that do not say it themselves.
#[cfg(feature = "llvm")]
pub fn compile_with(
    path: &str,
    source: &str,
    target: crate::Target,
    checks: crate::Checks,
) -> Result<Vec<Ptx>, Failure> {
    let goal = crate::target::Goal { target, checks };
    let compile_one = |checked: Checked| {
        let kernel = checked.kernel.kernel();
        let text = crate::emit::ptx(&checked.kernel, &crate::backend::Source { path }, goal)
            .map_err(Failure::Backend)?;
        Ok(Ptx { name: kernel.path(), entry: crate::abi::entry(kernel), text })
    };
    check(path, source)?.into_iter().map(compile_one).collect()
}
