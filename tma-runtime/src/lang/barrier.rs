//! The mbarrier: where threads and the copy engine meet.

use super::device_only;

/// An mbarrier in shared memory (8 bytes; PTX ISA, "Parallel Synchronization and Communication Instructions:
/// mbarrier").
///
/// A barrier goes through phases. A phase completes when all its *arrivals* have come, as many as
/// [`init`](Barrier::init) said, **and** its *transaction count* is zero: bytes announced by
/// [`expect_tx`](Barrier::expect_tx), less the bytes that copies have delivered. The next phase then begins
/// by itself, with the same arrival count. Phases are named by their *parity*: the first is 0, the next 1,
/// then 0 again.
///
/// A fresh barrier's life, and its reuse over several tiles:
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(src: TensorMap<Tile<f16, Shape2<128, 64>>>, tiles: u32) {
/// let tile: Tile<f16, Shape2<128, 64>> = shared();
/// let full: Barrier = shared();
/// if thread_idx().x == 0 {
///     full.init(1);
///     fence_barrier_init();
/// }
/// sync_threads();
/// for k in 0..tiles {
///     if thread_idx().x == 0 {
///         full.arrive_expect_tx(tile.bytes());
///         src.load(tile, [0, k * 64], full);
///     }
///     full.wait(k & 1);
///     // Here every thread may read `tile`.
///     sync_threads(); // and only when all have, the next load may overwrite it
/// }
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Barrier(());

impl Barrier {
    /// Makes the barrier: `count` arrivals (1 to 2^20 - 1) complete each phase. Phase 0 begins.
    ///
    /// By one thread, once, before any other use. [`fence_barrier_init`](super::fence_barrier_init) then
    /// shows it to the copy engine, and [`sync_threads`](super::sync_threads) to the other threads.
    ///
    /// PTX: `mbarrier.init.shared::cta.b64`.
    pub fn init(self, count: u32) {
        device_only()
    }

    /// Arrives: one arrival fewer is pending in the current phase. What this thread did before is seen by
    /// those that wait for the phase.
    ///
    /// PTX: `mbarrier.arrive.shared::cta.b64`.
    #[doc(alias = "mbarrier.arrive")]
    pub fn arrive(self) {
        device_only()
    }

    /// Announces `bytes` to the current phase, then arrives: [`expect_tx`](Barrier::expect_tx) and
    /// [`arrive`](Barrier::arrive) in one, so that the phase cannot complete in between.
    ///
    /// `bytes` is the sum over all copies that will complete on this phase: for loads, each tile's
    /// [`bytes`](super::Tile::bytes), the whole box even where it hangs over the tensor's edge. Too many and
    /// the wait never ends; too few and it ends before the data is there.
    ///
    /// PTX: `mbarrier.arrive.expect_tx.shared::cta.b64`.
    #[doc(alias = "mbarrier.arrive.expect_tx")]
    pub fn arrive_expect_tx(self, bytes: u32) {
        device_only()
    }

    /// Announces `bytes` to the current phase without arriving. The transaction count holds up to 2^20 - 1
    /// bytes (PTX ISA, "Contents of the mbarrier object").
    ///
    /// PTX: `mbarrier.expect_tx.relaxed.cta.shared::cta.b64`.
    #[doc(alias = "mbarrier.expect_tx")]
    pub fn expect_tx(self, bytes: u32) {
        device_only()
    }

    /// Waits until the phase of this parity (0 or 1) has completed. What arrived threads and completed copies
    /// wrote is visible afterwards.
    ///
    /// The barrier knows its current phase only: `wait(p)` returns at once if the phase under way has the
    /// *other* parity. So a fresh barrier passes `wait(1)`, which is how the producers of a pipeline find
    /// their stages empty at first; and a waiter may fall at most one phase behind.
    ///
    /// PTX: a loop of `mbarrier.try_wait.parity.shared::cta.b64`, with `.acquire.cluster` in kernels with clusters.
    #[doc(alias = "mbarrier.try_wait")]
    pub fn wait(self, parity: u32) {
        device_only()
    }

    /// Asks whether the phase of this parity has completed. May hold the thread a while, up to a limit that
    /// the hardware sets; `false` is not yet a failure.
    ///
    /// PTX: `mbarrier.try_wait.parity.shared::cta.b64`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(full: Barrier) {
    /// let mut tries = 0u32;
    /// while !full.try_wait(0) {
    ///     tries += 1;
    ///     assert!(tries < 1_000_000, "the tile never came");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn try_wait(self, parity: u32) -> bool {
        device_only()
    }

    /// Ends the barrier's life, when no thread and no copy uses it any more. It may then be initialised anew.
    ///
    /// PTX: `mbarrier.inval.shared::cta.b64`.
    #[doc(alias = "mbarrier.inval")]
    pub fn invalidate(self) {
        device_only()
    }
}
