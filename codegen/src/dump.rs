//! `TMA_DUMP=ir,llvm,ptx` prints what a kernel looks like after each of these stages, to standard
//! error.

use std::fmt::Display;

use crate::ir::Kernel;

/// The kernel as `parse` made it.
pub(crate) fn ir(kernel: &Kernel) {
    stage("ir", kernel);
}

/// Whatever `stage` made, if it was asked for.
pub(crate) fn stage(stage: &str, text: impl Display) {
    let wanted = std::env::var("TMA_DUMP").unwrap_or_default();
    if wanted.split(',').any(|name| name.trim() == stage) {
        eprintln!("{text}");
    }
}
