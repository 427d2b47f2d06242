//! The errors of a build script, and their messages.

use std::path::PathBuf;
use std::{fmt, io};

use tma_front::diag::{Code, Coded, Located};
use tma_front::escape;

use super::kept::StaleKeptPtx;

/// The error of a build script.
#[derive(Debug)]
pub enum BuildError {
    /// The caller is not a build script run by cargo, which would set this variable.
    NoEnvironment(&'static str),
    /// A file could not be read or written.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A file or folder cannot be watched by cargo.
    Unwatchable {
        /// The path of the file or folder.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// Kernels use features that the target does not have. The macro cannot report this, as it does
    /// not know the target.
    Target(Vec<Located>),
    /// The PTX kept in the package is not that of its current kernels.
    StaleKeptPtx(Vec<StaleKeptPtx>),
    /// PTX should be kept or compared, but none is compiled, for this reason.
    NothingToKeep(&'static str),
    /// LLVM failed.
    #[cfg(feature = "llvm")]
    Backend {
        /// The source file.
        path: PathBuf,
        /// The line of the kernel.
        line: usize,
        /// The error of LLVM.
        error: crate::backend::BackendError,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEnvironment(variable) => {
                let why = "call `tma_codegen::build()` from a build script run by cargo";
                Coded(Code::Backend, format_args!("`{variable}` is not set: {why}")).fmt(f)
            }
            Self::File { path, error } => {
                Coded(Code::Backend, format_args!("{}: {error}", escape::path(path))).fmt(f)
            }
            Self::Unwatchable { path, why } => {
                let path = escape::path(path);
                let message = format_args!(
                    "cargo cannot watch `{path}`: its name {why}; rename it or its folder, or build elsewhere \
                     (`CARGO_TARGET_DIR`)"
                );
                Coded(Code::Unwatchable, message).fmt(f)
            }
            Self::Target(errors) => {
                let lines: Vec<_> = errors.iter().map(Located::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::StaleKeptPtx(all) => {
                let lines = all.iter().map(|stale_kept| {
                    let (path, line) = &stale_kept.location;
                    format!("{}:{line}: {}", escape::path(path), Coded(Code::KeptPtx, stale_kept))
                });
                f.write_str(&lines.collect::<Vec<_>>().join("\n"))
            }
            Self::NothingToKeep(why) => {
                let message = format_args!(
                    "no PTX is compiled that could be kept or compared: {why}; enable the package's feature \
                     `llvm`, and leave `TMA_PTX` unset"
                );
                Coded(Code::KeptPtx, message).fmt(f)
            }
            #[cfg(feature = "llvm")]
            Self::Backend { path, line, error } => {
                write!(f, "{}:{line}: {}", escape::path(path), Coded(Code::Backend, error))
            }
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            #[cfg(feature = "llvm")]
            Self::Backend { error, .. } => Some(error),
            Self::NoEnvironment(_)
            | Self::Unwatchable { .. }
            | Self::Target(_)
            | Self::StaleKeptPtx(_)
            | Self::NothingToKeep(_) => None,
        }
    }
}
