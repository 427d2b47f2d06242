//! The lanes of a warp: shuffles, votes, matches and reductions.
//!
//! All 32 lanes of a warp take part in each of these functions, and wait for one another: call them
//! outside of branches that only some lanes take. None of them orders memory;
//! [`sync_warp`](super::sync_warp) does. A value read from a missing lane, because the block has no
//! such thread or because it has returned, is undefined; the simulator reports it.

use super::{Ordered, Scalar, device_only, sealed::Sealed};

/// Integers, which [`warp_reduce_and`], [`warp_reduce_or`] and [`warp_reduce_xor`] are on.
#[diagnostic::on_unimplemented(
    message = "kernels have no bits of `{Self}` to reduce",
    label = "not an integer",
    note = "take the bits of a float first: `x.to_bits()`"
)]
pub trait Bitwise: Sealed + Scalar {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),* $(,)?) => { $(impl $marker for $scalar {})* };
}

mark!(Bitwise: i8, u8, i16, u16, i32, u32, i64, u64, usize);

/// The `value` of the lane whose number is this lane's XOR `mask` (0 to 31). Lanes exchange values
/// in pairs: with mask 1 neighbours, with mask 16 the halves of the warp.
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

/// The `value` of the lane `distance` (0 to 31) below this one; its own in the lanes below
/// `distance`, which have none there.
///
/// PTX: `shfl.sync.up.b32`; else as [`shuffle_xor`].
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

/// The `value` of the lane `distance` (0 to 31) above this one; its own in the last `distance`
/// lanes, which have none there.
///
/// PTX: `shfl.sync.down.b32`; else as [`shuffle_xor`].
#[doc(alias = "__shfl_down_sync")]
#[must_use]
pub fn shuffle_down<T: Scalar>(value: T, distance: u32) -> T {
    device_only()
}

/// The `value` of lane `lane` (0 to 31). Each lane may name another one.
///
/// PTX: `shfl.sync.idx.b32`; else as [`shuffle_xor`].
#[doc(alias = "__shfl_sync")]
#[must_use]
pub fn shuffle_idx<T: Scalar>(value: T, lane: u32) -> T {
    device_only()
}

/// Whether `condition` holds in all lanes of the warp.
///
/// PTX: `vote.sync.all.pred` with all lanes (PTX ISA, "vote.sync").
#[doc(alias = "__all_sync")]
#[must_use]
pub fn vote_all(condition: bool) -> bool {
    device_only()
}

/// Whether `condition` holds in at least one lane of the warp.
///
/// PTX: `vote.sync.any.pred` with all lanes (PTX ISA, "vote.sync").
#[doc(alias = "__any_sync")]
#[must_use]
pub fn vote_any(condition: bool) -> bool {
    device_only()
}

/// The lanes in which `condition` holds: bit `i` is lane `i`.
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

/// The lanes whose `value` has the same bits as this lane's: bit `i` is lane `i`. So `-0.0` and
/// `0.0` differ, and a NaN is equal to itself.
///
/// PTX: `match.any.sync.b32`, or `.b64`, with all lanes (PTX ISA, "match.sync").
#[doc(alias = "__match_any_sync")]
#[must_use]
pub fn match_any<T: Scalar>(value: T) -> u32 {
    device_only()
}

/// All lanes that take part if their `value`s have the same bits, else 0.
///
/// PTX: `match.all.sync.b32`, or `.b64`, with all lanes (PTX ISA, "match.sync").
#[doc(alias = "__match_all_sync")]
#[must_use]
pub fn match_all<T: Scalar>(value: T) -> u32 {
    device_only()
}

/// The sum of the `value`s of all lanes, in each of them; integers wrap.
///
/// Of integers of up to 32 bits, PTX `redux.sync.add` (PTX ISA, "redux.sync"), which leaves out the
/// lanes that a block does not have. Of 64 bits and of floats, five steps of [`shuffle_xor`] by 16,
/// 8, 4, 2 and 1, each an addition: every lane has the same sum, a balanced tree whose first level
/// adds lane `i` and lane `i + 16`. These need whole warps: the block's threads are a multiple of
/// 32 (docs/errors/TMA0215.md).
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

/// The least of the `value`s of all lanes, in each of them; NaNs are left out, as
/// [`min`](super::min) does.
///
/// As [`warp_reduce_add`]: `redux.sync.min`, or five shuffles.
#[doc(alias = "__reduce_min_sync")]
#[must_use]
pub fn warp_reduce_min<T: Ordered>(value: T) -> T {
    device_only()
}

/// The greatest of the `value`s of all lanes, in each of them; NaNs are left out, as
/// [`max`](super::max) does.
///
/// As [`warp_reduce_add`]: `redux.sync.max`, or five shuffles.
#[doc(alias = "__reduce_max_sync")]
#[must_use]
pub fn warp_reduce_max<T: Ordered>(value: T) -> T {
    device_only()
}

/// The bitwise AND of the `value`s of all lanes, in each of them.
///
/// PTX: `redux.sync.and.b32`, twice for 64 bits (PTX ISA, "redux.sync").
#[doc(alias = "__reduce_and_sync")]
#[must_use]
pub fn warp_reduce_and<T: Bitwise>(value: T) -> T {
    device_only()
}

/// The bitwise OR of the `value`s of all lanes, in each of them.
///
/// PTX: `redux.sync.or.b32`, twice for 64 bits (PTX ISA, "redux.sync").
#[doc(alias = "__reduce_or_sync")]
#[must_use]
pub fn warp_reduce_or<T: Bitwise>(value: T) -> T {
    device_only()
}

/// The bitwise XOR of the `value`s of all lanes, in each of them.
///
/// PTX: `redux.sync.xor.b32`, twice for 64 bits (PTX ISA, "redux.sync").
#[doc(alias = "__reduce_xor_sync")]
#[must_use]
pub fn warp_reduce_xor<T: Bitwise>(value: T) -> T {
    device_only()
}
