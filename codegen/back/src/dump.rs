//! `TMA_DUMP=ir,llvm,ptx` prints a kernel after each of these stages to standard error.

use std::fmt::Display;

use tma_front::ir::Kernel;

/// Prints the kernel after `parse`, if requested.
pub(crate) fn ir(kernel: &Kernel) {
    stage("ir", kernel);
}

/// Prints the output of `stage`, if requested.
pub(crate) fn stage(stage: &str, text: impl Display) {
    if wanted().split(',').any(|name| name.trim() == stage) {
        eprintln!("{text}");
    }
}

/// Whether any stage was requested.
pub(crate) fn is_wanted() -> bool {
    !wanted().is_empty()
}

fn wanted() -> String {
    std::env::var("TMA_DUMP").unwrap_or_default()
}
