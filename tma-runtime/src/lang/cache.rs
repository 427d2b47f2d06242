//! Cache policies: hints about the data that the L2 cache should keep.
//!
//! A policy changes no result, and the hardware may ignore it.

use std::marker::PhantomData;

use super::device_only;

/// A policy for the L2 cache: 64 bits in a register. Copies take it from
/// [`TensorMap::hint`](super::TensorMap::hint).
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(
/// #     weights: TensorMap<Tile<bf16, Shape2<64, 64>>>,
/// #     stream: TensorMap<Tile<bf16, Shape2<64, 64>>>,
/// #     x: Tile<bf16, Shape2<64, 64>>,
/// #     y: Tile<bf16, Shape2<64, 64>>,
/// #     full: Barrier,
/// # ) {
/// let keep = l2_evict_last(1.0); // every block reads the weights
/// let pass = l2_evict_first(1.0); // nobody reads these again
/// weights.hint(keep).load(x, [0, 0], full);
/// stream.hint(pass).load(y, [block_idx().x * 64, 0], full);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CachePolicy(PhantomData<u64>);

macro_rules! policies {
    ($($(#[$doc:meta])* $policy:ident: $ptx:literal;)+) => { $(
        $(#[$doc])*
        ///
        /// `fraction` is the share of accesses, above 0 and up to 1, that get this priority. The
        /// others leave the priority of their lines unchanged. A constant is checked at compile
        /// time.
        ///
        #[doc = concat!("PTX: `createpolicy.fractional.L2::", $ptx, ".b64` (PTX ISA, \"createpolicy\").")]
        #[doc(alias = "createpolicy")]
        #[must_use]
        pub fn $policy(fraction: f32) -> CachePolicy {
            device_only()
        }
    )+ };
}

policies! {
    /// Evicts these lines first, for data that is read or written once.
    l2_evict_first: "evict_first";
    /// Evicts these lines last, for data that many blocks read, or that is read again soon.
    l2_evict_last: "evict_last";
    /// Sets the priority of accesses without a hint.
    l2_evict_normal: "evict_normal";
    /// Keeps the current priority of these lines.
    l2_evict_unchanged: "evict_unchanged";
}
