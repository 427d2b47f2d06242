//! Where a kernel stands, which an attribute is not told: in an `impl`, or where nothing imports
//! the vocabulary. Its source file tells it. Reading a file takes some microseconds; it is parsed
//! only where there is reason to.

use std::fs;

use proc_macro2::Span;

use crate::diag::Diagnostic;
use crate::diag::mistake::Attribute;
use crate::hash;
use crate::parse::item::file;
use crate::parse::item::{KernelItem, ModuleItems};
use crate::pipeline::{Rules, front};

/// What is wrong with the place of a kernel, if the file around `at` can be read and says so. The
/// build script makes PTX of no method, so a kernel that `has_ptx` is none.
pub(crate) fn misplaced(kernel: &KernelItem, at: Span, has_ptx: bool) -> Option<Diagnostic> {
    let text = fs::read_to_string(at.local_file()?).ok()?;
    // Nearly every file with kernels imports everything from somewhere: the prelude.
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
    // An error at the file's tokens would point nowhere: the kernel is judged by its own.
    front(kernel, &ModuleItems { lacks_words: shared.lacks_words, ..alone }, Rules::Statements)
        .diagnostics
        .errors
        .into_iter()
        .find(|error| error.mistake.is_of_imports())
}

/// The error of a kernel in an `impl` or a trait.
pub(crate) fn method(kernel: &KernelItem) -> Diagnostic {
    let name = &kernel.function.sig.ident;
    let mistake = Attribute::Method { kernel: name.to_string() };
    Diagnostic::new(mistake, crate::ir::Span::of(name))
}
