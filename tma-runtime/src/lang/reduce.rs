//! Reductions: the copy engine combines elements with those in memory, one by one.

use super::{
    Barrier, Coordinate, Global, GlobalIndex, Im2colMap, Im2colRank, NoSwizzle, Peer, Rank, Remote,
    RemoteSequence, Scalar, Sequence, Shape, Shape2, SharedArray, Swizzle, TensorMap, Tile, TileElement,
    bf16, device_only, f16, sealed::Sealed,
};

/// Generates traits for the element types of reductions. `$of` is a supertrait; `$source` completes
/// a sentence.
macro_rules! elements {
    ($of:ident, $source:literal;
     $($(#[$doc:meta])* $name:ident: $message:literal, $list:literal, [$($element:ty),+];)+) => { $(
        $(#[$doc])*
        ///
        #[doc = concat!("Source: PTX ISA, ", $source)]
        #[diagnostic::on_unimplemented(
            message = $message,
            label = "not an element type of this reduction",
            note = $list
        )]
        pub trait $name: $of + Sealed {}
        $(impl $name for $element {})+
    )+ };
}

elements! {
    TileElement,
    "\"cp.reduce.async.bulk.tensor\", the table of operations and element types, except those \
     that an H200 rejects.";

    /// Elements of [`TensorMap::reduce_add`].
    ReduceAdd: "the copy engine cannot add elements of type `{Self}`",
        "supported element types are u32, i32, u64, f16, bf16 and f32", [u32, i32, u64, f16, bf16, f32];
    /// Elements of [`TensorMap::reduce_min`] and [`TensorMap::reduce_max`].
    ReduceOrder: "the copy engine cannot compare elements of type `{Self}`",
        "supported element types are u32, i32, u64, i64, f16 and bf16", [u32, i32, u64, i64, f16, bf16];
    /// Elements of [`TensorMap::reduce_inc`] and [`TensorMap::reduce_dec`].
    ReduceCount: "the copy engine cannot increment or decrement elements of type `{Self}`",
        "the only supported element type is u32", [u32];
    /// Elements of [`TensorMap::reduce_and`], [`TensorMap::reduce_or`] and
    /// [`TensorMap::reduce_xor`].
    ReduceBits: "the copy engine cannot combine the bits of elements of type `{Self}`",
        "supported element types are u32, i32 and u64", [u32, i32, u64];
}

elements! {
    Scalar, "\"cp.reduce.async.bulk\", the table of operations and types.";

    /// Elements of [`Global::bulk_reduce_add`].
    BulkAdd: "the copy engine cannot add elements of type `{Self}`",
        "supported element types are u32, i32, u64, f16, bf16, f32 and f64", [u32, i32, u64, usize, f16, bf16, f32, f64];
    /// Elements of [`Global::bulk_reduce_min`] and [`Global::bulk_reduce_max`].
    BulkOrder: "the copy engine cannot compare elements of type `{Self}`",
        "supported element types are u32, i32, u64, i64, f16 and bf16", [u32, i32, u64, usize, i64, f16, bf16];
    /// Elements of [`Global::bulk_reduce_inc`] and [`Global::bulk_reduce_dec`].
    BulkCount: "the copy engine cannot increment or decrement elements of type `{Self}`",
        "the only supported element type is u32", [u32];
    /// Elements of [`Global::bulk_reduce_and`], [`Global::bulk_reduce_or`] and
    /// [`Global::bulk_reduce_xor`].
    BulkBits: "the copy engine cannot combine the bits of elements of type `{Self}`",
        "supported element types are u32, i32, u64 and i64", [u32, i32, u64, usize, i64];
}

elements! {
    Scalar, "\"cp.reduce.async.bulk\", the table of operations and types.";

    /// Elements of `bulk_reduce_add_to`.
    RemoteAdd: "the copy engine cannot add elements of type `{Self}` in another block",
        "supported element types are u32, i32 and u64", [u32, i32, u64, usize];
    /// Elements of the other reductions into another block, except increment and decrement.
    RemoteInteger: "this reduction into another block does not support elements of type `{Self}`",
        "supported element types are u32 and i32", [u32, i32];
}

/// Generates the methods of every receiver. A row per operation gives its name in PTX, the new
/// value of an element, and each method's name with its element types.
macro_rules! reductions {
    ($(
        $ptx:literal: $becomes:literal,
        $reduce:ident of $Mapped:ident, $bulk_reduce:ident of $Bulk:ident, $to:ident of $Remote:ident;
    )+) => {
        /// # Reductions
        ///
        /// Like [`store`](TensorMap::store), but each element is combined atomically with the
        /// tensor's (`.relaxed.gpu`). Blocks may reduce into the same elements concurrently, in
        /// unspecified order. Like a store, a reduction joins the thread's bulk group, and the
        /// launcher requires `&mut` of the tensor. Sums of floats round to nearest, ties to even,
        /// at each addition. Subnormal f32 numbers may be treated as zero.
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
        impl<T: TileElement, S: Shape, W: Swizzle> TensorMap<Tile<T, S, W>> { $(
            #[doc = concat!(
                "Starts reducing `tile` into the tensor's box at `at`: each",
                " element there becomes ",
                $becomes,
                "."
            )]
            ///
            #[doc = concat!(
                "PTX: `cp.reduce.async.bulk.tensor.{1..5}d.global.shared::cta.",
                $ptx,
                ".tile.bulk_group` (PTX ISA, \"cp.reduce.async.bulk.tensor\")."
            )]
            #[doc(alias = "cp.reduce.async.bulk.tensor")]
            pub fn $reduce<I: Coordinate>(self, at: S::At<I>, tile: Tile<T, S, W>)
            where
                T: $Mapped,
            {
                device_only()
            }
        )+ }

        /// # Reductions
        ///
        /// Like [`store`](Im2colMap::store), but each element is combined with the tensor's, like
        /// in the methods of [`TensorMap`] with the same names.
        impl<T: TileElement, const PIXELS: u32, const CHANNELS: u32, W: Swizzle, const RANK: usize>
            Im2colMap<Tile<T, Shape2<PIXELS, CHANNELS>, W>, RANK>
        where
            Rank<RANK>: Im2colRank,
        { $(
            #[doc = concat!(
                "Starts reducing `tile` into the pixels from `at` on: each",
                " element there becomes ",
                $becomes,
                "."
            )]
            ///
            #[doc = concat!(
                "PTX: `cp.reduce.async.bulk.tensor.{3..5}d.global.shared::cta.",
                $ptx,
                ".im2col_no_offs.bulk_group` (PTX ISA, \"cp.reduce.async.bulk.tensor\")."
            )]
            #[doc(alias = "cp.reduce.async.bulk.tensor")]
            pub fn $reduce<I: Coordinate>(self, at: [I; RANK], tile: Tile<T, Shape2<PIXELS, CHANNELS>, W>)
            where
                T: $Mapped,
            {
                device_only()
            }
        )+ }

        bulk_reductions! { Global<T>, $($ptx: $becomes, $bulk_reduce of $Bulk;)+ }
        bulk_reductions! { Peer<Global<T>>, $($ptx: $becomes, $bulk_reduce of $Bulk;)+ }

        remote_reductions! {
            [T: Scalar, const N: u32] SharedArray<T, N>, $($ptx: $becomes, $to of $Remote;)+
        }
        remote_reductions! {
            [T: TileElement, S: Shape] Tile<T, S, NoSwizzle>, $($ptx: $becomes, $to of $Remote;)+
        }
    };
}

/// Generates the reductions into a slice of global memory.
macro_rules! bulk_reductions {
    ($ty:ty, $($ptx:literal: $becomes:literal, $bulk_reduce:ident of $Bulk:ident;)+) => {
        /// # Bulk reductions
        ///
        /// Like [`bulk_store`](Global::bulk_store), but each element is combined atomically with
        /// the one in memory. Sums of floats round to nearest, ties to even, at each addition.
        /// Subnormal f32 numbers may be treated as zero.
        ///
        /// The scope is that of one GPU (`.relaxed.gpu`), also for memory of another rank: only the
        /// blocks of one rank may reduce into the same elements at the same time.
        impl<T: Scalar> $ty { $(
            #[doc = concat!(
                "Starts reducing `count` elements of `array`, from its element `at` on, into those from `i` on: each",
                " there becomes ",
                $becomes,
                "."
            )]
            ///
            #[doc = concat!(
                "PTX: `cp.reduce.async.bulk.global.shared::cta.bulk_group.",
                $ptx,
                "` (PTX ISA, \"cp.reduce.async.bulk\")."
            )]
            #[doc(alias = "cp.reduce.async.bulk")]
            pub fn $bulk_reduce<I: GlobalIndex>(self, i: I, array: impl Sequence<T>, at: u32, count: u32)
            where
                T: $Bulk,
            {
                device_only()
            }
        )+ }
    };
}

/// Generates the reductions into memory that is shared in a cluster.
macro_rules! remote_reductions {
    ([$($generic:tt)*] $ty:ty, $($ptx:literal: $becomes:literal, $to:ident of $Remote:ident;)+) => {
        /// # Reductions into other blocks
        ///
        /// Like [`bulk_copy_to`](Self::bulk_copy_to), but each element is combined atomically with
        /// the one in the other block.
        impl<$($generic)*> $ty { $(
            #[doc = concat!(
                "Starts reducing into another block: each",
                " element there becomes ",
                $becomes,
                "."
            )]
            ///
            #[doc = concat!(
                "PTX: `cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.",
                $ptx,
                "` (PTX ISA, \"cp.reduce.async.bulk\")."
            )]
            #[doc(alias = "cp.reduce.async.bulk")]
            pub fn $to(self, to: impl RemoteSequence<T>, at: u32, count: u32, barrier: Remote<Barrier>)
            where
                T: $Remote,
            {
                device_only()
            }
        )+ }
    };
}

reductions! {
    "add": "the sum of both; integers wrap",
        reduce_add of ReduceAdd, bulk_reduce_add of BulkAdd, bulk_reduce_add_to of RemoteAdd;
    "min": "the lesser of both",
        reduce_min of ReduceOrder, bulk_reduce_min of BulkOrder, bulk_reduce_min_to of RemoteInteger;
    "max": "the greater of both",
        reduce_max of ReduceOrder, bulk_reduce_max of BulkOrder, bulk_reduce_max_to of RemoteInteger;
    "inc": "one more, or 0 where it is not below the one that is brought",
        reduce_inc of ReduceCount, bulk_reduce_inc of BulkCount, bulk_reduce_inc_to of BulkCount;
    "dec": "one less, or the one that is brought where it is 0 or above that",
        reduce_dec of ReduceCount, bulk_reduce_dec of BulkCount, bulk_reduce_dec_to of BulkCount;
    "and": "the bitwise AND of both",
        reduce_and of ReduceBits, bulk_reduce_and of BulkBits, bulk_reduce_and_to of RemoteInteger;
    "or": "the bitwise OR of both",
        reduce_or of ReduceBits, bulk_reduce_or of BulkBits, bulk_reduce_or_to of RemoteInteger;
    "xor": "the bitwise XOR of both",
        reduce_xor of ReduceBits, bulk_reduce_xor of BulkBits, bulk_reduce_xor_to of RemoteInteger;
}
