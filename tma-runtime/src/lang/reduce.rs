//! Reductions: a tile is combined with a tensor, element by element.

use super::{
    Coordinate, Shape, Swizzle, TensorMap, Tile, TileElement, bf16, device_only, f16, sealed::Sealed,
};

elements! {
    TileElement,
    "\"cp.reduce.async.bulk.tensor\", the table of operations and element types, except those \
     that an H200 rejects.";

    /// Elements of [`TensorMap::reduce_add`].
    ReduceAdd: "the copy engine does not add elements of type `{Self}`",
        "it adds u32, i32, u64, f16, bf16 and f32", [u32, i32, u64, f16, bf16, f32];
    /// Elements of [`TensorMap::reduce_min`] and [`TensorMap::reduce_max`].
    ReduceOrder: "the copy engine does not compare elements of type `{Self}`",
        "it compares u32, i32, u64, i64, f16 and bf16", [u32, i32, u64, i64, f16, bf16];
    /// Elements of [`TensorMap::reduce_inc`] and [`TensorMap::reduce_dec`].
    ReduceCount: "the copy engine does not count in elements of type `{Self}`",
        "it counts in u32", [u32];
    /// Elements of [`TensorMap::reduce_and`], [`TensorMap::reduce_or`] and
    /// [`TensorMap::reduce_xor`].
    ReduceBits: "the copy engine does not combine the bits of elements of type `{Self}`",
        "it combines those of u32, i32 and u64", [u32, i32, u64];
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident($ptx:literal): $bound:ident;)+) => { $(
        $(#[$doc])*
        ///
        #[doc = concat!(
            "PTX: `cp.reduce.async.bulk.tensor.{1..5}d.global.shared::cta.",
            $ptx,
            ".tile.bulk_group` (PTX ISA, \"cp.reduce.async.bulk.tensor\")."
        )]
        #[doc(alias = "cp.reduce.async.bulk.tensor")]
        pub fn $method<I: Coordinate>(self, at: S::At<I>, tile: Tile<T, S, W>)
        where
            T: $bound,
        {
            device_only()
        }
    )+ };
}

/// # Reductions
///
/// As [`store`](TensorMap::store), but each element is combined atomically with the tensor's
/// (`.relaxed.gpu`): blocks may reduce into the same elements concurrently, in unspecified order. A
/// reduction joins the thread's bulk group, as a store does, and the launcher requires `&mut` of
/// the tensor.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(sums: TensorMap<Tile<f32, Shape2<32, 32>>>, partial: Tile<f32, Shape2<32, 32>>) {
/// fence_proxy_async(); // every thread has written its part of the tile
/// sync_threads();
/// if thread_idx().x == 0 {
///     sums.reduce_add([block_idx().y * 32, 0], partial);
///     bulk_commit_group();
///     bulk_wait_group_read::<0>();
/// }
/// # }
/// ```
impl<T: TileElement, S: Shape, W: Swizzle> TensorMap<Tile<T, S, W>> {
    reductions! {
        /// Starts adding `tile` to the tensor's box at `at`. Integers wrap; floats round to
        /// nearest, ties to even, at each addition. Subnormal f32 numbers may be treated as zero.
        reduce_add("add"): ReduceAdd;
        /// Starts a minimum of `tile` into the tensor's box at `at`.
        reduce_min("min"): ReduceOrder;
        /// Starts a maximum of `tile` into the tensor's box at `at`.
        reduce_max("max"): ReduceOrder;
        /// Starts incrementing the tensor's box at `at`, wrapping to 0 where its element is not
        /// below the tile's.
        reduce_inc("inc"): ReduceCount;
        /// Starts decrementing the tensor's box at `at`, wrapping to the tile's element where its
        /// element is 0 or above that.
        reduce_dec("dec"): ReduceCount;
        /// Starts a bitwise AND of `tile` into the tensor's box at `at`.
        reduce_and("and"): ReduceBits;
        /// Starts a bitwise OR of `tile` into the tensor's box at `at`.
        reduce_or("or"): ReduceBits;
        /// Starts a bitwise XOR of `tile` into the tensor's box at `at`.
        reduce_xor("xor"): ReduceBits;
    }
}
