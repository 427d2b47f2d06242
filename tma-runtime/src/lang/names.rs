//! Checks on the names in a kernel. Only generated code calls them, and they never run.

/// The macros of kernels, and nothing else, for a glob import: a different macro of the same name,
/// imported or defined, is then ambiguous (E0659).
pub mod macros {
    pub use crate::{printf, ptx, trace_span};
    pub use core::assert;
}

/// A trait that each type implements for itself, so that a bound checks whether two types are
/// equal.
#[diagnostic::on_unimplemented(
    message = "TMA0120: this name means something else here than in the kernel language: `{Self}`",
    label = "not the item of the kernel language",
    note = "the kernel would be compiled with `{Word}` instead",
    note = "rename the item that shadows it, or import that of the kernel language: `use tma_runtime::prelude::*;`"
)]
pub trait Is<Word: ?Sized> {}

impl<T: ?Sized> Is<T> for T {}

/// Checks that `name` is the function `word`: each function has its own type.
pub fn function<Word, Name: Is<Word>>(word: Word, name: Name) {}

/// Checks names like [`function`](function()), for [`cast`](super::cast), whose argument has any
/// type.
pub fn conversion<Word: Fn(u32) -> f32, Name: Is<Word>>(word: Word, name: Name) {}

/// Checks names like [`function`](function()), for [`reuse`](super::reuse()), whose argument has
/// any reusable type.
pub fn reuse<Word: Fn(AnyTile) -> AnyTile, Name: Is<Word>>(word: Word, name: Name) {}

/// A tile type for places where its parameters do not matter.
pub type AnyTile = super::Tile<f32, super::Shape2<8, 8>>;

/// Returns a value of any type, to call methods on.
pub fn any<T>() -> T {
    super::device_only()
}

/// The result of a method that replaces one that must not exist.
pub struct NoMethod;

/// Implemented for [`NoMethod`] alone.
#[diagnostic::on_unimplemented(
    message = "TMA0120: on a value of a generic type this is a method of a trait, not of the kernel language",
    label = "not the method of the kernel language",
    note = "the kernel would be compiled with the method of the type that the generic stands for",
    note = "call the function instead, as in `sqrt(x)`, and give the generic the bound that the function requires"
)]
pub trait IsNoMethod {}

impl IsNoMethod for NoMethod {}

/// Checks that no trait has a method. `result` is the result of calling that name.
pub fn no_method<Found: IsNoMethod>(result: &Found) {}

/// An integer that has the methods of [`Ord`] and no others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Integer;

/// Implemented for [`Integer`] alone.
#[diagnostic::on_unimplemented(
    message = "TMA0120: `min`, `max` and `clamp` of integers are methods of `Ord`, which is not in scope here",
    label = "not the method of `Ord`",
    note = "the kernel would be compiled with the method of `Ord`",
    note = "add `use std::cmp::Ord;`, or call the function of the kernel language, as in `min(a, b)`"
)]
pub trait IsOrd {}

impl IsOrd for Integer {}

/// Checks that a method is the one of [`Ord`]. `result` is the result of calling that name.
pub fn ord_method<Found: IsOrd>(result: Found) {}

/// A trait like [`IsNoMethod`] that is also implemented for the result of a method of [`Ord`] on a
/// `T`.
#[diagnostic::on_unimplemented(
    message = "TMA0120: on a value of a generic type this is a method of a trait, not of the kernel language",
    label = "not the method of the kernel language",
    note = "the kernel would be compiled with the method of the type that the generic stands for",
    note = "give the generic the bound `std::cmp::Ord`, or call the function, as in `min(a, b)`, with the bound `Ordered`"
)]
pub trait IsOrdOrNoMethod<T> {}

impl<T> IsOrdOrNoMethod<T> for NoMethod {}
impl<T: Ord> IsOrdOrNoMethod<T> for T {}

/// Checks that no trait but [`Ord`] has a method. `result` is the result of calling that name on a
/// value of `any`.
pub fn ord_or_no_method<T, Found: IsOrdOrNoMethod<T>>(any: fn() -> T, result: &Found) {}

/// Checks that `Name` is the type `Word`.
pub fn same_type<Word: ?Sized, Name: Is<Word> + ?Sized>() {}
