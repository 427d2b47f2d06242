//! Checks on the names in a kernel. Only generated code calls it, and it never runs.

/// Only the macros of kernels, to be imported by a glob: a different macro of the same name,
/// imported or defined, is then ambiguous (E0659).
pub mod macros {
    pub use crate::printf;
    pub use core::assert;
}

/// Implemented by each type for itself, so that a bound checks whether two types are the same.
#[diagnostic::on_unimplemented(
    message = "TMA0120: this name means something else here than in the kernel language: `{Self}`",
    label = "not the word of the kernel language",
    note = "the kernel would be compiled with `{Word}` in its place",
    note = "rename what hides the word, or import the word itself: `use tma_runtime::prelude::*;`"
)]
pub trait Is<Word: ?Sized> {}

impl<T: ?Sized> Is<T> for T {}

/// Checks that `name` is the function `word`: each function has its own type.
pub fn function<Word, Name: Is<Word>>(word: Word, name: Name) {}

/// As [`function`](function()), for [`cast`](super::cast), whose argument has any type.
pub fn conversion<Word: Fn(u32) -> f32, Name: Is<Word>>(word: Word, name: Name) {}

/// A value of any type, to call methods on.
pub fn any<T>() -> T {
    super::device_only()
}

/// Checks that `Name` is the type `Word`.
pub fn same_type<Word: ?Sized, Name: Is<Word> + ?Sized>() {}
