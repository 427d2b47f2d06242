//! The lanes of a warp: shuffles, votes, matches and reductions.
//!
//! All 32 lanes of a warp take part in each of these functions, and wait for each other: call them
//! outside of branches that only some lanes take. They do not order memory;
//! [`sync_warp`](super::sync_warp) does. A value read from a missing lane, because the block has no
//! such thread or the thread has returned, is undefined. The simulator reports it.

use super::{Ordered, Scalar, device_only, sealed::Sealed};

/// Elements of [`warp_reduce_and`], [`warp_reduce_or`] and [`warp_reduce_xor`]: integers.
#[diagnostic::on_unimplemented(
    message = "the bits of `{Self}` cannot be reduced",
    label = "not an integer",
    note = "convert a float to its bits first: `x.to_bits()`"
)]
pub trait Bitwise: Sealed + Scalar {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),* $(,)?) => { $(impl $marker for $scalar {})* };
}

mark!(Bitwise: i8, u8, i16, u16, i32, u32, i64, u64, usize);

/// Returns the `value` of the lane whose number is this lane's XOR `mask` (0 to 31). Lanes exchange
/// values in pairs: with mask 1 adjacent lanes, with mask 16 the halves of the warp.
///
/// PTX: `shfl.sync.bfly.b32` with all lanes, twice for 64 bits; narrower scalars are extended. Only
/// the five lowest bits of a `mask` that is not a constant are used. (PTX ISA, "shfl.sync".)
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(mut greatest: f32) {
/// for step in unroll(0..5) {
///     greatest = max(greatest, shuffle_xor(greatest, 16 >> step)); // of all lanes, in each of them
/// }
/// # }
/// ```
#[doc(alias = "__shfl_xor_sync")]
#[must_use]
pub fn shuffle_xor<T: Scalar>(value: T, mask: u32) -> T {
    device_only()
}

/// Returns the `value` of the lane `distance` (0 to 31) below this one. The lowest `distance` lanes
/// have no such lane, and get their own value.
///
/// PTX: `shfl.sync.up.b32`. Otherwise the rules of [`shuffle_xor`] apply.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(mut sum: u32) {
/// for step in unroll(0..5) {
///     let before = shuffle_up(sum, 1 << step);
///     if lane_idx() >= 1 << step {
///         sum += before; // in the end the sum of the lanes up to this one
///     }
/// }
/// # }
/// ```
#[doc(alias = "__shfl_up_sync")]
#[must_use]
pub fn shuffle_up<T: Scalar>(value: T, distance: u32) -> T {
    device_only()
}

/// Returns the `value` of the lane `distance` (0 to 31) above this one. The highest `distance`
/// lanes have no such lane, and get their own value.
///
/// PTX: `shfl.sync.down.b32`. Otherwise the rules of [`shuffle_xor`] apply.
#[doc(alias = "__shfl_down_sync")]
#[must_use]
pub fn shuffle_down<T: Scalar>(value: T, distance: u32) -> T {
    device_only()
}

/// Returns the `value` of lane `lane` (0 to 31). Each lane may name another one.
///
/// PTX: `shfl.sync.idx.b32`. Otherwise the rules of [`shuffle_xor`] apply.
#[doc(alias = "__shfl_sync")]
#[must_use]
pub fn shuffle_idx<T: Scalar>(value: T, lane: u32) -> T {
    device_only()
}

/// Returns whether `condition` holds in all lanes of the warp.
///
/// PTX: `vote.sync.all.pred` with all lanes (PTX ISA, "vote.sync").
#[doc(alias = "__all_sync")]
#[must_use]
pub fn vote_all(condition: bool) -> bool {
    device_only()
}

/// Returns whether `condition` holds in at least one lane of the warp.
///
/// PTX: `vote.sync.any.pred` with all lanes (PTX ISA, "vote.sync").
#[doc(alias = "__any_sync")]
#[must_use]
pub fn vote_any(condition: bool) -> bool {
    device_only()
}

/// Returns the lanes in which `condition` holds: bit `i` is lane `i`.
///
/// PTX: `vote.sync.ballot.b32` with all lanes (PTX ISA, "vote.sync").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(out: Global<u32>, x: u32) {
/// let kept = ballot(x > 0);
/// let before = (kept & ((1 << lane_idx()) - 1)).count_ones(); // lanes below that keep theirs
/// if x > 0 {
///     out.set(before, x);
/// }
/// # }
/// ```
#[doc(alias = "__ballot_sync")]
#[must_use]
pub fn ballot(condition: bool) -> u32 {
    device_only()
}

/// Returns the lanes whose `value` has the same bits as this lane's: bit `i` is lane `i`. `-0.0`
/// and `0.0` therefore differ, and a NaN is equal to itself.
///
/// PTX: `match.any.sync.b32`, or `.b64`, with all lanes (PTX ISA, "match.sync").
#[doc(alias = "__match_any_sync")]
#[must_use]
pub fn match_any<T: Scalar>(value: T) -> u32 {
    device_only()
}

/// Returns all participating lanes if their `value`s have the same bits, or else 0.
///
/// PTX: `match.all.sync.b32`, or `.b64`, with all lanes (PTX ISA, "match.sync").
#[doc(alias = "__match_all_sync")]
#[must_use]
pub fn match_all<T: Scalar>(value: T) -> u32 {
    device_only()
}

/// Returns the sum of the `value`s of all lanes, in each of them. Integers wrap.
///
/// For integers of up to 32 bits, PTX: `redux.sync.add` (PTX ISA, "redux.sync"), which omits lanes
/// that the block does not have. For 64 bits and for floats, five steps of [`shuffle_xor`] by 16,
/// 8, 4, 2 and 1, each with an addition. Every lane gets the same sum: a balanced tree whose first
/// level adds lane `i` and lane `i + 16`. These types need whole warps: the number of the block's
/// threads must be a multiple of 32 (docs/errors/TMA0215.md).
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(x: Global<f32>, norms: Global<f32>) {
/// let row = block_idx().x;
/// let mut squares = 0.0;
/// for i in 0..4 {
///     let v = x.get(row * 128 + i * 32 + lane_idx());
///     squares = fma(v, v, squares);
/// }
/// norms.set(row, sqrt(warp_reduce_add(squares)));
/// # }
/// ```
#[doc(alias = "__reduce_add_sync")]
#[must_use]
pub fn warp_reduce_add<T: Ordered>(value: T) -> T {
    device_only()
}

/// Returns the minimum of the `value`s of all lanes, in each of them. NaNs are ignored, as by
/// [`min`](super::min).
///
/// The instructions are those of [`warp_reduce_add`]: `redux.sync.min`, or five shuffles.
#[doc(alias = "__reduce_min_sync")]
#[must_use]
pub fn warp_reduce_min<T: Ordered>(value: T) -> T {
    device_only()
}

/// Returns the maximum of the `value`s of all lanes, in each of them. NaNs are ignored, as by
/// [`max`](super::max).
///
/// The instructions are those of [`warp_reduce_add`]: `redux.sync.max`, or five shuffles.
#[doc(alias = "__reduce_max_sync")]
#[must_use]
pub fn warp_reduce_max<T: Ordered>(value: T) -> T {
    device_only()
}

/// Returns the bitwise AND of the `value`s of all lanes, in each of them.
///
/// PTX: `redux.sync.and.b32`, twice for 64 bits (PTX ISA, "redux.sync").
#[doc(alias = "__reduce_and_sync")]
#[must_use]
pub fn warp_reduce_and<T: Bitwise>(value: T) -> T {
    device_only()
}

/// Returns the bitwise OR of the `value`s of all lanes, in each of them.
///
/// PTX: `redux.sync.or.b32`, twice for 64 bits (PTX ISA, "redux.sync").
#[doc(alias = "__reduce_or_sync")]
#[must_use]
pub fn warp_reduce_or<T: Bitwise>(value: T) -> T {
    device_only()
}

/// Returns the bitwise XOR of the `value`s of all lanes, in each of them.
///
/// PTX: `redux.sync.xor.b32`, twice for 64 bits (PTX ISA, "redux.sync").
#[doc(alias = "__reduce_xor_sync")]
#[must_use]
pub fn warp_reduce_xor<T: Bitwise>(value: T) -> T {
    device_only()
}
