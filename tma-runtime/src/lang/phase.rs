//! Tracking of the phase that a thread waits for.

use super::device_only;

/// The phase of a barrier that a thread waits for next: a parity, in a register.
///
/// A barrier distinguishes phases only by their parity: 0, 1, 0, 1 and so on. Each waiting thread
/// has to know the next phase, and a `Phase` tracks it:
///
/// ```text
/// barrier   phase 0     | phase 1     | phase 2     | phase 3     | ..
/// parity        0       |     1       |     0       |     1       | ..
///                       ^             ^             ^             ^
/// wait_next            1st           2nd           3rd           4th     each returns when the phase is complete
/// ```
///
/// One `Phase` belongs to one thread and one barrier, from the barrier's
/// [`init`](super::Barrier::init) on. It must not miss a phase: a thread that skips one wait waits
/// for the wrong phase from then on.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(src: TensorMap<Tile<f16, Shape2<128, 64>>>, tile: Tile<f16, Shape2<128, 64>>, full: Barrier, tiles: u32) {
/// let mut phase = Phase::new();
/// for k in 0..tiles {
///     if thread_idx().x == 0 {
///         full.arrive_expect_tx(tile.bytes());
///         src.load(tile, [0, k * 64], full);
///     }
///     full.wait_next(&mut phase);
///     // Here every thread may read `tile`.
///     sync_threads();
/// }
/// # }
/// ```
pub struct Phase(());

#[expect(clippy::new_without_default, reason = "kernels have no traits to call")]
impl Phase {
    /// Returns the first phase of a barrier: parity 0.
    #[must_use]
    pub fn new() -> Self {
        device_only()
    }

    /// Returns parity 1: the phase before the first, which counts as completed on a fresh barrier.
    /// A wait for it returns at once, which is what a producer needs while its buffers are still
    /// empty.
    #[must_use]
    pub fn opposite() -> Self {
        device_only()
    }

    /// Returns the parity, 0 or 1, for methods such as [`try_wait`](super::Barrier::try_wait).
    #[must_use]
    pub fn parity(&self) -> u32 {
        device_only()
    }

    /// Advances to the next phase.
    ///
    /// PTX: `xor.b32`.
    pub fn flip(&mut self) {
        device_only()
    }
}
