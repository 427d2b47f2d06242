//! The mbarrier, which synchronises threads with the copy engine.

use super::{Phase, device_only};

/// An mbarrier in shared memory (8 bytes; PTX ISA, "Parallel Synchronization and Communication
/// Instructions: mbarrier").
///
/// A barrier goes through phases. A phase completes when two conditions hold: all *arrivals* have
/// been made, as many as [`init`](Barrier::init) set, **and** its *transaction count* is zero. That
/// count is the bytes announced by [`expect_tx`](Barrier::expect_tx) minus the bytes that copies
/// have delivered. The next phase then begins automatically, with the same arrival count. Phases
/// are named by their *parity*: the first is 0, the next 1, then 0 again.
///
/// A barrier that is reused for a sequence of tiles:
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
    /// Initialises the barrier: `count` arrivals (1 to 2^20 - 1) complete each phase. Phase 0
    /// begins.
    ///
    /// Call it once, in one thread, before any other use.
    /// [`fence_barrier_init`](super::fence_barrier_init) then makes it visible to the copy engine,
    /// and [`sync_threads`](super::sync_threads) to the other threads.
    ///
    /// PTX: `mbarrier.init.shared::cta.b64`.
    pub fn init(self, count: u32) {
        device_only()
    }

    /// Arrives: the number of arrivals pending in the current phase decreases by one. This thread's
    /// earlier accesses are visible to threads that wait for the phase.
    ///
    /// PTX: `mbarrier.arrive.shared::cta.b64`.
    #[doc(alias = "mbarrier.arrive")]
    pub fn arrive(self) {
        device_only()
    }

    /// Arrives like `count` threads: the number of arrivals pending in the current phase decreases
    /// by `count` (1 to 2^20 - 1). This is for one thread that arrives on behalf of others, such as
    /// the first lane of a warp after [`sync_warp`](super::sync_warp).
    ///
    /// More arrivals than the phase has pending are undefined behaviour.
    ///
    /// PTX: `mbarrier.arrive.shared::cta.b64` with a count.
    #[doc(alias = "mbarrier.arrive")]
    pub fn arrive_many(self, count: u32) {
        device_only()
    }

    /// Arrives, and returns the state of the phase at which it arrived. To wait for exactly this
    /// phase, pass it to [`wait_token`](Barrier::wait_token). No parity has to be tracked.
    ///
    /// PTX: `mbarrier.arrive.shared::cta.b64` with its result.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(values: SharedArray<f32, 128>, met: Barrier, out: Global<f32>) {
    /// values.set(thread_idx().x, 1.0);
    /// let token = met.arrive_token();
    /// // What needs no other thread's value goes here.
    /// met.wait_token(token);
    /// out.set(thread_idx().x, values.get(127 - thread_idx().x));
    /// # }
    /// ```
    #[doc(alias = "mbarrier.arrive")]
    #[must_use = "use `arrive` if the token is not needed"]
    pub fn arrive_token(self) -> Token {
        device_only()
    }

    /// Arrives, and lowers the arrival count by one from the next phase on. At least one must
    /// remain. This is for a thread that ends while the others continue. The thread must not wait
    /// on the barrier afterwards: the others no longer depend on it, and may be two phases ahead,
    /// where the same parity is current again.
    ///
    /// PTX: `mbarrier.arrive_drop.shared::cta.b64`.
    #[doc(alias = "mbarrier.arrive_drop")]
    pub fn arrive_drop(self) {
        device_only()
    }

    /// Announces `bytes` to the current phase, then arrives: [`expect_tx`](Barrier::expect_tx) and
    /// [`arrive`](Barrier::arrive) as one operation, so that the phase cannot complete in between.
    ///
    /// `bytes` is the sum over all copies that will complete on this phase: for loads, each tile's
    /// [`bytes`](super::Tile::bytes), which is the whole box even if it extends past the tensor's
    /// edge. If the number is too large, the wait never ends; if it is too small, the wait ends
    /// before the data has arrived.
    ///
    /// PTX: `mbarrier.arrive.expect_tx.shared::cta.b64`.
    #[doc(alias = "mbarrier.arrive.expect_tx")]
    pub fn arrive_expect_tx(self, bytes: u32) {
        device_only()
    }

    /// Announces `bytes` to the current phase without arriving. The transaction count holds up to
    /// 2^20 - 1 bytes (PTX ISA, "Contents of the mbarrier object").
    ///
    /// PTX: `mbarrier.expect_tx.relaxed.cta.shared::cta.b64`.
    #[doc(alias = "mbarrier.expect_tx")]
    pub fn expect_tx(self, bytes: u32) {
        device_only()
    }

    /// Waits until the phase of this parity (0 or 1) has completed. Writes of the threads that
    /// arrived, and of completed copies, are visible afterwards.
    ///
    /// The barrier knows only its current phase: `wait(p)` returns at once if the current phase has
    /// the *other* parity. A fresh barrier therefore passes `wait(1)`, which is how a pipeline's
    /// producer finds its stages empty at first. A waiting thread may lag at most one phase behind:
    /// every wait for a phase must come before the next phase completes. To ensure this, the thread
    /// arrives, or synchronises with the others, between its wait and the completion of the next
    /// phase. The simulator reports waits without such an order.
    ///
    /// PTX: a loop of `mbarrier.try_wait.parity.shared::cta.b64`, with `.acquire.cluster` in
    /// kernels with clusters.
    #[doc(alias = "mbarrier.try_wait")]
    pub fn wait(self, parity: u32) {
        device_only()
    }

    /// Waits for the phase of `phase`, and advances it to the next: [`wait`](Barrier::wait) with
    /// the [`parity`](Phase::parity), then [`flip`](Phase::flip).
    ///
    /// PTX: the same as [`wait`](Barrier::wait), and one `xor`.
    pub fn wait_next(self, phase: &mut Phase) {
        device_only()
    }

    /// Waits until the phase of `token` has completed. The token must come from
    /// [`arrive_token`](Barrier::arrive_token) of this barrier, in the current phase or the one
    /// before it. Writes of the threads that arrived and of completed copies are visible
    /// afterwards.
    ///
    /// PTX: a loop of `mbarrier.try_wait.shared::cta.b64`, with `.acquire.cluster` in kernels with
    /// clusters.
    #[doc(alias = "mbarrier.try_wait")]
    pub fn wait_token(self, token: Token) {
        device_only()
    }

    /// Returns whether the phase of this parity has completed. It does not block, and is meant for
    /// a thread that has other work to do in the meantime. If it returns `true`, writes from before
    /// the arrivals are visible, as after [`wait`](Barrier::wait).
    ///
    /// PTX: `mbarrier.test_wait.parity.shared::cta.b64`, with `.acquire.cluster` in kernels with
    /// clusters.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(full: Barrier, out: Global<u32>) {
    /// let mut spare = 0u32;
    /// while !full.test_wait(0) {
    ///     spare += 1; // something useful
    /// }
    /// # }
    /// ```
    #[doc(alias = "mbarrier.test_wait")]
    #[must_use]
    pub fn test_wait(self, parity: u32) -> bool {
        device_only()
    }

    /// Returns whether the phase of this parity has completed. It may suspend the thread up to a
    /// time limit of the hardware; `false` only means that the phase has not completed yet.
    ///
    /// PTX: `mbarrier.try_wait.parity.shared::cta.b64`, with `.acquire.cluster` in kernels with
    /// clusters.
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

    /// Waits like [`try_wait`](Barrier::try_wait), but suspends the thread for up to about
    /// `nanoseconds`: a hint that replaces the hardware's limit.
    ///
    /// PTX: the same as [`try_wait`](Barrier::try_wait), with `suspendTimeHint`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(full: Barrier) {
    /// let came = full.try_wait_for(0, 20_000);
    /// assert!(came, "the tile did not come within 20 microseconds");
    /// # }
    /// ```
    #[doc(alias = "mbarrier.try_wait")]
    #[must_use]
    pub fn try_wait_for(self, parity: u32, nanoseconds: u32) -> bool {
        device_only()
    }

    /// Invalidates the barrier, once no thread and no copy uses it any more. Afterwards it may be
    /// initialised again.
    ///
    /// PTX: `mbarrier.inval.shared::cta.b64`.
    #[doc(alias = "mbarrier.inval")]
    pub fn invalidate(self) {
        device_only()
    }
}

/// The state of a barrier's phase, returned by [`arrive_token`](Barrier::arrive_token) (64 bits in
/// a register; PTX ISA, "Phase of the mbarrier object").
#[derive(Clone, Copy)]
pub struct Token(());
