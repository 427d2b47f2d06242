//! What the expansion of a kernel asks of its names. It is called by generated code alone, and
//! never run.

/// The macros of kernels and no others, to be imported by a glob: a macro that an import or a
/// definition brings under the same name is then ambiguous (E0659), unless it is the same.
pub mod macros {
    pub use crate::printf;
    pub use core::assert;
}

/// Implemented by each type for itself, so that a bound asks whether two types are one.
#[diagnostic::on_unimplemented(
    message = "TMA0120: this name means something else here than in the kernel language: `{Self}`",
    label = "not the word of the kernel language",
    note = "the kernel would be compiled with `{Word}` in its place",
    note = "rename what hides the word, or import the word itself: `use tma_runtime::prelude::*;`"
)]
pub trait Is<Word: ?Sized> {}

impl<T: ?Sized> Is<T> for T {}

/// Asks whether `name` is the function `word`: each function has a type of its own.
pub fn function<Word, Name: Is<Word>>(word: Word, name: Name) {}

/// As [`function`](function()), for [`cast`](super::cast), whose argument has any type.
pub fn conversion<Word: Fn(u32) -> f32, Name: Is<Word>>(word: Word, name: Name) {}

/// A tile, where it does not matter which.
pub type AnyTile = super::Tile<f32, super::Shape2<8, 8>>;

/// A value of any type, to call methods on.
pub fn any<T>() -> T {
    super::device_only()
}

/// Asks whether `Name` is the type `Word`.
pub fn same_type<Word: ?Sized, Name: Is<Word> + ?Sized>() {}
