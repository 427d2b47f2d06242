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
    if wanted().split(',').any(|name| name.trim() == stage) {
        eprintln!("{text}");
    }
}

/// Whether any stage was asked for.
pub(crate) fn is_wanted() -> bool {
    !wanted().is_empty()
}

fn wanted() -> String {
    std::env::var("TMA_DUMP").unwrap_or_default()
}
