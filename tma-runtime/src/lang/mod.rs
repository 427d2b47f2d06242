//! The vocabulary of kernels.
//!
//! rustc type-checks the body of a `#[tma_kernel]` function against this module, which is therefore
//! the language's documentation: hovering over a word in a kernel shows its text. Each item
//! documents its effect on the device, the PTX that it compiles to, and the source of the
//! hardware's rule.
//!
//! **Nothing here runs on the host.** Kernels are compiled to PTX from their source; the functions
//! below exist only for their types, and panic when called outside of a kernel. Handles (tiles,
//! barriers, tensor maps, slices of global memory) are `Copy` and have no size: in a kernel they
//! name an address.
//!
//! | group | words |
//! | --- | --- |
//! | values | `bool i8 u8 i16 u16 i32 u32 i64 u64 usize f32 f64`, [`f16`](struct@f16), [`bf16`], [`tf32`], [`e4m3`], [`e5m2`]; [`cast`] |
//! | shared memory | [`shared`], [`reuse`], [`Tile`], [`Barrier`], [`SharedArray`], [`SharedMap`], [`Stages`] |
//! | barriers and pipelines | [`Token`], [`Phase`], [`Pipeline`], [`Producer`], [`Consumer`], [`EmptySlot`], [`LoadingSlot`], [`FullSlot`] |
//! | shapes and layouts | [`Shape1`] to [`Shape5`], [`NoSwizzle`], [`Panels16`], [`Swizzle32`], [`Swizzle64`], [`Swizzle128`], [`Interleave16`], [`Interleave32`] |
//! | parameters | [`TensorMap`], [`Im2colMap`], [`Maps`], [`Global`], [`Peers`], scalars |
//! | indices | [`thread_idx`], [`block_idx`], [`block_dim`], [`grid_dim`], [`warp_idx`], [`lane_idx`], [`warpgroup_idx`], [`elect_one`] |
//! | clusters | [`cluster_rank`], [`block_in_cluster`], [`cluster_idx`], [`cluster_dim`], [`sync_cluster`], [`cluster_arrive`], [`cluster_wait`], [`remote`], [`Remote`], [`ClusterAxis`] |
//! | tensor cores | [`Accumulator`], [`Flight`], [`Fragment`], [`Rows`], [`Columns`], [`Transposed`], [`Negated`], [`setmaxnreg_inc`], [`setmaxnreg_dec`] |
//! | multiplications by a warp | [`WarpAccumulator`], [`WarpLeft`], [`WarpRight`], [`WarpRows`] |
//! | ordering | [`Order`], [`Scope`], [`sync_threads`], [`sync_warpgroup`], [`sync_warp`], [`named_barrier_sync`], [`named_barrier_arrive`], [`fence`], [`fence_proxy_async`], [`fence_proxy_async_global`], [`fence_barrier_init`] |
//! | warps | [`shuffle_xor`], [`shuffle_up`], [`shuffle_down`], [`shuffle_idx`], [`vote_all`], [`vote_any`], [`ballot`], [`match_any`], [`match_all`], [`warp_reduce_add`], [`warp_reduce_min`], [`warp_reduce_max`], [`warp_reduce_and`], [`warp_reduce_or`], [`warp_reduce_xor`] |
//! | grids | [`sync_grid`], [`grid_dependency_wait`], [`grid_dependency_launch`] |
//! | teams of GPUs | [`Peers`], [`Peer`], [`rank`](fn@rank), [`ranks`](fn@ranks) |
//! | bulk groups | [`bulk_commit_group`], [`bulk_wait_group`], [`bulk_wait_group_read`] |
//! | the L2 cache | [`CachePolicy`], [`l2_evict_first`], [`l2_evict_last`], [`l2_evict_normal`], [`l2_evict_unchanged`] |
//! | sizes | [`size_of`] |
//! | math | [`mul_hi`], [`min`], [`max`], [`abs`], [`fma`], [`sqrt`], [`rsqrt`], [`exp2`], [`exp2_ftz`], [`exp2_half`], [`log2`], [`recip`], [`exp`], [`log`], [`pow`], [`sin`], [`cos`], [`tanh`], [`clamp`], [`copysign`] |
//! | control and debugging | [`unroll`], [`trap`], [`assume`], [`printf!`], [`print_tile`], `assert!`, [`ptx!`], [`trace_span!`] |
//!
//! The traits are the bounds of generics, of which docs/language/kernels.md has tables ("Bounds").
//!
//! Coordinates and extents are written in logical row-major order, outermost first, like Rust
//! arrays.
//!
//! A tile that is copied from a tensor in global memory through shared memory to another tensor:
//!
//! ```
//! # use tma_runtime::prelude::*;
//! # fn tma_copy(
//! #     src: TensorMap<Tile<f16, Shape2<128, 64>>>,
//! #     dst: TensorMap<Tile<f16, Shape2<128, 64>>>,
//! # ) {
//! let tile: Tile<f16, Shape2<128, 64>> = shared();
//! let full: Barrier = shared();
//! let at = dst.block_tile();
//! let leader = thread_idx().x == 0;
//!
//! if leader {
//!     full.init(1); // one arrival completes a phase
//!     fence_barrier_init(); // lets the copy engine see the barrier
//! }
//! sync_threads();
//! if leader {
//!     full.arrive_expect_tx(tile.bytes());
//!     src.load(tile, at, full);
//! }
//! full.wait(0);
//! if leader {
//!     dst.store(at, tile);
//!     bulk_commit_group();
//!     bulk_wait_group_read::<0>(); // shared memory must outlive the store's reading of it
//! }
//! # }
//! ```
//!
//! Sources are sections of the PTX ISA and of the CUDA driver API.

// Bodies never run, and parameter names are for the reader: `at`, not `_at`.
#![expect(unused_variables, reason = "device functions are declared here for their types and documentation")]
#![expect(clippy::len_without_is_empty, reason = "a kernel's lengths are constants above zero, or bounds")]

mod atomic;
mod barrier;
mod bulk;
mod cache;
mod cluster;
mod control;
mod descriptor;
mod global;
mod grid;
mod index;
mod map;
mod math;
mod mma;
#[doc(hidden)]
pub mod names;
mod peers;
mod phase;
mod pipeline;
mod reduce;
mod scalar;
mod shape;
mod shared;
mod sync;
#[cfg(test)]
mod tests;
mod tile;
mod warp;

pub use atomic::{AtomicInteger, AtomicLane, AtomicNumber, AtomicWord, Order, Scope};
pub use barrier::{Barrier, Token};
pub use bulk::{RemoteSequence, Sequence, bulk_commit_group, bulk_wait_group, bulk_wait_group_read};
pub use cache::{CachePolicy, l2_evict_first, l2_evict_last, l2_evict_normal, l2_evict_unchanged};
pub use cluster::{
    ClusterAxis, Remote, block_in_cluster, cluster_arrive, cluster_dim, cluster_idx, cluster_rank,
    cluster_wait, remote, sync_cluster,
};
pub use control::{CountedRange, Printed, assume, print_tile, trap, unroll};
#[doc(hidden)]
pub use control::{
    PtxInput, PtxMemory, PtxScalar, device_printf, device_ptx, device_ptx_input, device_ptx_memory,
    device_ptx_output, device_trace_span,
};
pub use descriptor::{Maps, SharedMap};
pub use global::{Global, GlobalIndex, GlobalMatrix};
pub use grid::{grid_dependency_launch, grid_dependency_wait, sync_grid};
pub use index::{
    Dim3, block_dim, block_idx, elect_one, grid_dim, lane_idx, thread_idx, warp_idx, warpgroup_idx,
};
pub use map::{Im2colMap, Im2colRank, Rank, TensorMap, TileType};
pub use math::{
    Half, Ordered, Precise, Real, Signed, WordInteger, abs, clamp, copysign, cos, exp, exp2, exp2_ftz,
    exp2_half, fma, log, log2, max, min, mul_hi, pow, recip, rsqrt, sin, sqrt, tanh,
};
pub use mma::{
    Accumulator, AccumulatorElement, BitElement, BitsLeft, Columns, Flight, Fragment, Left, MatrixElement,
    MatrixFloat, MatrixShape, MatrixSwizzle, Multiply, Negated, PackAs, Right, Rows, Sparse, StoreAs,
    Transposed, TransposedElement, setmaxnreg_dec, setmaxnreg_inc,
};
pub use mma::{
    AnyMatrix, WarpAccumulator, WarpElement, WarpLeft, WarpMultiply, WarpRight, WarpRows, WarpSource,
    WarpStoreAs, WarpSum, Widen, WidenSource,
};
pub use peers::{Peer, PeerMemory, Peers, rank, ranks};
pub use phase::Phase;
pub use pipeline::{Consumer, EmptySlot, FullSlot, LoadingSlot, Pipeline, Producer, Tiles};
pub use reduce::{
    BulkAdd, BulkBits, BulkCount, BulkOrder, ReduceAdd, ReduceBits, ReduceCount, ReduceOrder, RemoteAdd,
    RemoteInteger,
};
pub use scalar::{Number, Scalar, TileElement, bf16, cast, e4m3, e5m2, f16, size_of, tf32};
pub use shape::{Coordinate, Coordinates, Shape, Shape1, Shape2, Shape3, Shape4, Shape5};
pub use shared::{ReusableMemory, Shared, SharedArray, SharedData, Stages, reuse, shared};
pub use sync::{
    fence, fence_barrier_init, fence_proxy_async, fence_proxy_async_global, named_barrier_arrive,
    named_barrier_sync, sync_threads, sync_warp, sync_warpgroup,
};
pub use tile::{
    Interleave16, Interleave32, NoSwizzle, Panels16, Swizzle, Swizzle32, Swizzle64, Swizzle128, Tile,
};

pub use warp::{
    Bitwise, ballot, match_all, match_any, shuffle_down, shuffle_idx, shuffle_up, shuffle_xor, vote_all,
    vote_any, warp_reduce_add, warp_reduce_and, warp_reduce_max, warp_reduce_min, warp_reduce_or,
    warp_reduce_xor,
};

#[doc(inline)]
pub use crate::{printf, ptx, trace_span};

/// The body of every device function.
#[cold]
#[track_caller]
fn device_only() -> ! {
    panic!("this function belongs to the kernel language: call it only inside a `#[tma_kernel]` function")
}

/// Seals the traits of the language: a kernel may use only the types that the compiler knows.
mod sealed {
    /// Implemented only in this module.
    pub trait Sealed {}
}
