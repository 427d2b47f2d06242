//! Clusters: blocks that run at the same time and can access each other's shared memory.

use std::marker::PhantomData;
use std::ops::Index;

use super::{
    Barrier, Coordinate, Dim3, Scalar, Shape, Shared, SharedArray, Stages, Swizzle, Tile, TileElement,
    device_only,
};

/// Returns this block's rank in its cluster, below
/// `cluster_dim().x * cluster_dim().y * cluster_dim().z`. The `x` index varies fastest.
///
/// [`remote`] and masks identify blocks by their rank. Only in kernels with the option
/// `cluster = ..`.
///
/// PTX: `%cluster_ctarank`.
#[doc(alias = "cluster_ctarank")]
#[must_use]
pub fn cluster_rank() -> u32 {
    device_only()
}

/// Returns this block's index in its cluster. PTX: `%cluster_ctaid`.
#[doc(alias = "cluster_ctaid")]
#[must_use]
pub fn block_in_cluster() -> Dim3 {
    device_only()
}

/// Returns the index of this block's cluster in the grid, in clusters. PTX: `%clusterid`.
#[doc(alias = "clusterid")]
#[must_use]
pub fn cluster_idx() -> Dim3 {
    device_only()
}

/// Returns the blocks per cluster in each dimension: constants if the attribute fixes them, else
/// PTX `%cluster_nctaid`.
#[doc(alias = "cluster_nctaid")]
#[must_use]
pub fn cluster_dim() -> Dim3 {
    device_only()
}

/// Synchronises all threads of the cluster. Writes to shared memory of any block before it are
/// visible to all threads after it. Every thread of every block must reach it, so it must not be in
/// a branch that only some threads take.
///
/// Two places need it. Before the first use of another block's shared memory, it ensures that the
/// block has started and initialised its barriers. Before a block ends, it ensures that no other
/// block accesses its memory any more.
///
/// PTX: `barrier.cluster.arrive.release.aligned`, `barrier.cluster.wait.acquire.aligned` (PTX ISA,
/// "barrier.cluster").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let sums: SharedArray<f32, 1> = shared();
/// if thread_idx().x == 0 {
///     sums.set(0, block_idx().x as f32);
/// }
/// sync_cluster();
/// let of_the_first = remote(sums, 0).get(0);
/// sync_cluster(); // no block ends while another reads
/// # }
/// ```
#[doc(alias = "barrier.cluster")]
pub fn sync_cluster() {
    device_only()
}

/// Arrives at the barrier of [`sync_cluster`] without waiting: its first half. This thread's
/// earlier writes are visible after [`cluster_wait`]. Every thread arrives once before it waits.
///
/// PTX: `barrier.cluster.arrive.release`.
#[doc(alias = "barrier.cluster.arrive")]
pub fn cluster_arrive() {
    device_only()
}

/// Waits until all threads of the cluster have arrived: the second half of [`sync_cluster`].
///
/// PTX: `barrier.cluster.wait.acquire`.
#[doc(alias = "barrier.cluster.wait")]
pub fn cluster_wait() {
    device_only()
}

/// Returns the instance of `thing` in the block of this rank. Each block of a cluster has the same
/// variables at the same addresses.
///
/// The block must have started and must not have ended: call [`sync_cluster`] before the first use
/// and after the last. A rank outside of the cluster is a compile error if it is constant, and
/// undefined behaviour otherwise.
///
/// PTX: `mapa.shared::cluster` (PTX ISA, "mapa").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let mine: SharedArray<u32, 128> = shared();
/// let t = thread_idx().x;
/// mine.set(t, t);
/// sync_cluster();
/// let next = (cluster_rank() + 1) % cluster_dim().x;
/// let theirs = remote(mine, next).get(t);
/// sync_cluster();
/// # }
/// ```
#[doc(alias = "mapa")]
#[must_use]
pub fn remote<X: Shared>(thing: X, rank: u32) -> Remote<X> {
    device_only()
}

/// A variable in the shared memory of another block of the cluster, made by [`remote`].
///
/// Tiles and arrays can be read and written, and barriers can be arrived at. Of the copies,
/// [`bulk_copy_to`](SharedArray::bulk_copy_to) and its reductions take remote objects. Loads into
/// other blocks are made by [`load_multicast`](super::TensorMap::load_multicast).
pub struct Remote<X: Shared>(PhantomData<X>);

impl<X: Shared> Clone for Remote<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: Shared> Copy for Remote<X> {}

impl<T: TileElement, S: Shape, W: Swizzle> Remote<Tile<T, S, W>> {
    /// Returns the same as [`Tile::bytes`].
    #[must_use]
    pub fn bytes(self) -> u32 {
        device_only()
    }

    /// Returns the same as [`Tile::rows`].
    #[must_use]
    pub fn rows(self) -> u32 {
        device_only()
    }

    /// Returns the same as [`Tile::cols`].
    #[must_use]
    pub fn cols(self) -> u32 {
        device_only()
    }

    /// Reads an element like [`Tile::get`]. PTX: `ld.shared::cluster`.
    #[must_use]
    pub fn get<I: Coordinate>(self, at: S::At<I>) -> T {
        device_only()
    }

    /// Writes an element like [`Tile::set`]. PTX: `st.shared::cluster`.
    pub fn set<I: Coordinate>(self, at: S::At<I>, value: T) {
        device_only()
    }
}

impl<T: Scalar, const N: u32> Remote<SharedArray<T, N>> {
    /// Returns the same as [`SharedArray::len`].
    #[must_use]
    pub fn len(self) -> u32 {
        device_only()
    }

    /// Reads an element like [`SharedArray::get`]. PTX: `ld.shared::cluster`.
    #[must_use]
    pub fn get(self, i: u32) -> T {
        device_only()
    }

    /// Writes an element like [`SharedArray::set`]. PTX: `st.shared::cluster`.
    pub fn set(self, i: u32, value: T) {
        device_only()
    }
}

impl Remote<Barrier> {
    /// Arrives at the other block's barrier. This thread's earlier accesses are visible to threads
    /// of that block that wait for the phase.
    ///
    /// PTX: `mbarrier.arrive.release.cluster.shared::cluster.b64`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel() {
    /// let value: SharedArray<u32, 1> = shared();
    /// let full: Barrier = shared();
    /// if thread_idx().x == 0 {
    ///     full.init(1);
    ///     fence_barrier_init();
    /// }
    /// sync_cluster();
    /// if cluster_rank() == 0 && thread_idx().x == 0 {
    ///     remote(value, 1).set(0, 42);
    ///     remote(full, 1).arrive();
    /// }
    /// if cluster_rank() == 1 {
    ///     full.wait(0);
    ///     assert!(value.get(0) == 42);
    /// }
    /// # }
    /// ```
    #[doc(alias = "mbarrier.arrive")]
    pub fn arrive(self) {
        device_only()
    }

    /// Announces bytes and arrives like [`Barrier::arrive_expect_tx`], at the other block's
    /// barrier.
    ///
    /// PTX: `mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64`.
    #[doc(alias = "mbarrier.arrive.expect_tx")]
    pub fn arrive_expect_tx(self, bytes: u32) {
        device_only()
    }
}

impl<X: Shared, const N: u32> Remote<Stages<X, N>> {
    /// Returns the same as [`Stages::len`].
    #[must_use]
    pub fn len(self) -> u32 {
        device_only()
    }
}

impl<X: Shared, const N: u32> Index<u32> for Remote<Stages<X, N>> {
    type Output = Remote<X>;

    fn index(&self, stage: u32) -> &Remote<X> {
        device_only()
    }
}

/// The blocks of a cluster that share a [`load_sliced`](super::TensorMap::load_sliced).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterAxis {
    /// The blocks that differ only in `block_in_cluster().x`.
    X,
    /// The blocks that differ only in `block_in_cluster().y`.
    Y,
    /// The blocks that differ only in `block_in_cluster().z`.
    Z,
    /// All blocks of the cluster, by rank.
    All,
}
