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

/// What a method returns that takes the place of one that should not be there.
pub struct NoMethod;

/// Implemented for [`NoMethod`] alone.
#[diagnostic::on_unimplemented(
    message = "TMA0120: on a value of a generic type this is a method of a trait, not of the kernel language",
    label = "not the method of the kernel language",
    note = "the kernel would be compiled with the method of the type that the generic stands for",
    note = "call the function instead, as in `sqrt(x)`, and give the generic the bound that it asks for"
)]
pub trait IsNoMethod {}

impl IsNoMethod for NoMethod {}

/// Asks whether no trait has a method: `result` is what the call of that name gave.
pub fn no_method<Found: IsNoMethod>(result: &Found) {}

/// An integer that has the methods of [`Ord`] and no others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Integer;

/// Implemented for [`Integer`] alone.
#[diagnostic::on_unimplemented(
    message = "TMA0120: `min` and `max` of integers are methods of `Ord`, which is not in scope here",
    label = "not the method of `Ord`",
    note = "the kernel would be compiled with the method of `Ord`",
    note = "write `use std::cmp::Ord;`, or call the function of the kernel language, `min(a, b)`"
)]
pub trait IsOrd {}

impl IsOrd for Integer {}

/// Asks whether a method is the one of [`Ord`]: `result` is what the call of that name gave.
pub fn ord_method<Found: IsOrd>(result: Found) {}

/// As [`IsNoMethod`]; and implemented for what a method of [`Ord`] returns on a `T`.
#[diagnostic::on_unimplemented(
    message = "TMA0120: on a value of a generic type this is a method of a trait, not of the kernel language",
    label = "not the method of the kernel language",
    note = "the kernel would be compiled with the method of the type that the generic stands for",
    note = "give the generic the bound `std::cmp::Ord`, or call the function, `min(a, b)`, with `Ordered`"
)]
pub trait IsOrdOrNoMethod<T> {}

impl<T> IsOrdOrNoMethod<T> for NoMethod {}
impl<T: Ord> IsOrdOrNoMethod<T> for T {}

/// Asks whether no trait but [`Ord`] has a method: `result` is what the call of that name gave on a
/// value of `any`.
pub fn ord_or_no_method<T, Found: IsOrdOrNoMethod<T>>(any: fn() -> T, result: &Found) {}

/// Asks whether `Name` is the type `Word`.
pub fn same_type<Word: ?Sized, Name: Is<Word> + ?Sized>() {}
