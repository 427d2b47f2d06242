//! Checks the position of a kernel, which its attribute does not know: whether it is in an `impl`,
//! or where nothing imports the built-ins. The source file is read, which takes some microseconds,
//! and parsed only if there is reason to.

use std::fs;

use proc_macro2::Span;
use tma_front::diag::Diagnostic;
use tma_front::diag::mistake::Attribute;
use tma_front::parse::item::file;
use tma_front::parse::item::{KernelItem, ModuleItems};

use crate::hash;
use crate::pipeline::{Rules, front};

/// Returns the error about a kernel's position, if the file around `at` is readable and shows one.
/// The build script generates no PTX for methods, so a kernel that `has_ptx` is not a method.
pub(crate) fn misplaced(kernel: &KernelItem, at: Span, has_ptx: bool) -> Option<Diagnostic> {
    let text = fs::read_to_string(at.local_file()?).ok()?;
    // Nearly every file with kernels has a glob import of the prelude.
    let may_be_method = !has_ptx && (text.contains("impl") || text.contains("trait"));
    if !may_be_method && text.contains("::*") {
        return None;
    }
    let file = syn::parse_file(&text).ok()?;
    let alone = ModuleItems::default();
    let same = |other: &KernelItem| hash::kernel(other, &alone) == hash::kernel(kernel, &alone);
    if file::methods(&file).iter().any(same) {
        return Some(method(kernel));
    }
    let (_, shared) = file::placed_kernels(&file).into_iter().find(|(other, _)| same(other))?;
    // The file's tokens have no usable spans, so the kernel is checked with its own tokens.
    front(kernel, &ModuleItems { lacks_words: shared.lacks_words, ..alone }, Rules::Statements)
        .diagnostics
        .errors
        .into_iter()
        .find(|error| error.mistake.is_of_imports())
}

/// Returns the error for a kernel in an `impl` or a trait.
pub(crate) fn method(kernel: &KernelItem) -> Diagnostic {
    let name = &kernel.function.sig.ident;
    let mistake = Attribute::Method { kernel: name.to_string() };
    Diagnostic::new(mistake, tma_front::ir::Span::of(name))
}
