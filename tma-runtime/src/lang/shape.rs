//! Shapes: the extents of tiles, and the coordinates that match them.

use super::sealed::Sealed;

/// The extents of a [`Tile`](super::Tile), in elements: [`Shape1`] to [`Shape5`].
///
/// Extents are in logical row-major order, outermost first; the last dimension is the contiguous
/// one. The hardware counts dimensions the other way round, and the compiler reverses them. A
/// tensor map's box has 1 to 5 dimensions of 1 to 256 elements each, and the size of its innermost
/// dimension must be a multiple of 16 bytes (CUDA driver API, `cuTensorMapEncodeTiled`: `boxDim`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a tile",
    label = "not a shape",
    note = "write Shape1<A>, Shape2<A, B> .. Shape5<A, B, C, D, E>, outermost extent first"
)]
pub trait Shape: Sealed + Copy {
    /// The extents, outermost first.
    const EXTENTS: &'static [u32];

    /// The type of coordinates, one per dimension, outermost first: an array `[I; RANK]`.
    type At<I: Coordinate>: Copy;
}

/// A coordinate in a tile or tensor: `u32`, or `i32` for a load that may start before the tensor.
///
/// All coordinates of an array have the same type. Bare integer literals take the type of the
/// others.
#[diagnostic::on_unimplemented(
    message = "coordinates must be `u32` or `i32`, not `{Self}`",
    label = "not a coordinate",
    note = "convert it: `index as u32`"
)]
pub trait Coordinate: Sealed + Copy {}

impl Coordinate for u32 {}
impl Coordinate for i32 {}

/// The coordinates of an element of a tile of shape `S`: an array with one per dimension.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the coordinates of an element of `{S}`",
    label = "not an array with one coordinate per dimension",
    note = "write one `u32` or `i32` for each extent of the shape, outermost first: `[row, column]`"
)]
pub trait Coordinates<S: Shape>: Sealed + Copy {}

impl<I: Coordinate, const RANK: usize> Sealed for [I; RANK] {}

macro_rules! shapes {
    ($($(#[$doc:meta])* $shape:ident<$($extent:ident),+>, $rank:literal;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $shape<$(const $extent: u32),+> {}

        impl<$(const $extent: u32),+> Sealed for $shape<$($extent),+> {}

        impl<$(const $extent: u32),+> Shape for $shape<$($extent),+> {
            const EXTENTS: &'static [u32] = &[$($extent),+];
            type At<I: Coordinate> = [I; $rank];
        }

        impl<I: Coordinate, $(const $extent: u32),+> Coordinates<$shape<$($extent),+>> for [I; $rank] {}
    )+ };
}

shapes! {
    /// A row of `A` elements.
    Shape1<A>, 1;
    /// `A` rows of `B` elements.
    Shape2<A, B>, 2;
    /// `A` planes of `B` rows of `C` elements.
    Shape3<A, B, C>, 3;
    /// Four dimensions, outermost first: `D` is the contiguous one.
    Shape4<A, B, C, D>, 4;
    /// Five dimensions, outermost first: `E` is the contiguous one.
    Shape5<A, B, C, D, E>, 5;
}
