//! Tiles in flight between a producer and its consumers.

use std::marker::PhantomData;
use std::ops::Deref;

use super::{Barrier, Shape, Shared, Swizzle, Tile, TileElement, device_only, sealed::Sealed};

/// The contents of a pipeline's stage: a tuple of 1 to 6 tiles. A tuple of one is `(Tile<..>,)`,
/// with the comma.
#[diagnostic::on_unimplemented(
    message = "a pipeline's stage must be a tuple of tiles, not `{Self}`",
    label = "not a tuple of tiles",
    note = "write `(Tile<..>, Tile<..>)`, or `(Tile<..>,)` for a single tile, with the comma"
)]
pub trait Tiles: Sealed + Copy {}

macro_rules! tiles {
    ($($T:ident $S:ident $W:ident),+) => {
        impl<$($T: TileElement, $S: Shape, $W: Swizzle),+> Sealed for ($(Tile<$T, $S, $W>,)+) {}
        impl<$($T: TileElement, $S: Shape, $W: Swizzle),+> Tiles for ($(Tile<$T, $S, $W>,)+) {}
    };
}

tiles!(T0 S0 W0);
tiles!(T0 S0 W0, T1 S1 W1);
tiles!(T0 S0 W0, T1 S1 W1, T2 S2 W2);
tiles!(T0 S0 W0, T1 S1 W1, T2 S2 W2, T3 S3 W3);
tiles!(T0 S0 W0, T1 S1 W1, T2 S2 W2, T3 S3 W3, T4 S4 W4);
tiles!(T0 S0 W0, T1 S1 W1, T2 S2 W2, T3 S3 W3, T4 S4 W4, T5 S5 W5);

/// A ring of `STAGES` stages in shared memory, each with the tiles `T` and two barriers. One thread
/// fills stages by loads while others read the stages that were filled before.
///
/// A stage's *full* barrier completes when its tiles have arrived, and its *empty* barrier when all
/// consumers have released it. [`Producer`] and [`Consumer`] track the next stage and the parity of
/// its phase, in two registers each. Parities and bytes need not be counted by hand, and a released
/// slot cannot be read again, because it was moved.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(
/// #     a: TensorMap<Tile<bf16, Shape2<128, 64>, Swizzle128>>,
/// #     b: TensorMap<Tile<bf16, Shape2<64, 64>, Swizzle128>>,
/// #     out: Global<f32>,
/// #     k_tiles: u32,
/// # ) {
/// let ring: Pipeline<(Tile<bf16, Shape2<128, 64>, Swizzle128>, Tile<bf16, Shape2<64, 64>, Swizzle128>), 4> = shared();
/// if thread_idx().x == 0 {
///     ring.init(block_dim().x - 32); // every thread of the other warps releases
///     fence_barrier_init();
/// }
/// sync_threads();
///
/// if warp_idx() == 0 {
///     if elect_one() {
///         let mut producer = ring.producer();
///         for k in 0..k_tiles {
///             let slot = producer.acquire();
///             a.load(slot.0, [block_idx().y * 128, k * 64], slot.barrier());
///             b.load(slot.1, [block_idx().x * 64, k * 64], slot.barrier());
///         }
///     }
/// } else {
///     let mut consumer = ring.consumer();
///     let mut sum = 0.0;
///     for _ in 0..k_tiles {
///         let slot = consumer.wait();
///         sum += slot.0.get([0, lane_idx()]).to_f32() * slot.1.get([0, lane_idx()]).to_f32();
///         slot.release();
///     }
///     out.set(thread_idx().x, sum);
/// }
/// # }
/// ```
///
/// The pipeline compiles to the code that one would write with [`Stages`](super::Stages) of tiles
/// and barriers.
pub struct Pipeline<T: Tiles, const STAGES: u32>(PhantomData<T>);

impl<T: Tiles, const STAGES: u32> Clone for Pipeline<T, STAGES> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Tiles, const STAGES: u32> Copy for Pipeline<T, STAGES> {}
impl<T: Tiles, const STAGES: u32> Sealed for Pipeline<T, STAGES> {}
impl<T: Tiles, const STAGES: u32> Shared for Pipeline<T, STAGES> {}

impl<T: Tiles, const STAGES: u32> Pipeline<T, STAGES> {
    /// Initialises the barriers of all stages, which are then empty. `consumers` is the number of
    /// [`release`](FullSlot::release)s that make a stage empty again (1 to 2^20 - 1):
    ///
    /// * the number of consuming threads, if each of them releases;
    /// * the number of consuming warps, if one lane of each releases: `sync_warp()`, then
    ///   `if lane_idx() == 0 { slot.release() }`. It takes fewer arrivals, and is the better choice
    ///   for several warps;
    /// * the number of warpgroups, if the threads of each synchronise first, by a
    ///   [`named_barrier_sync`](super::named_barrier_sync).
    ///
    /// If stages are filled by multicast, count the consumers of all blocks that release to this
    /// one ([`release_cluster`](FullSlot::release_cluster)).
    ///
    /// Call it once, in one thread. Then call [`fence_barrier_init`](super::fence_barrier_init) and
    /// [`sync_threads`](super::sync_threads), as for a barrier, or
    /// [`sync_cluster`](super::sync_cluster) if blocks load or release across the cluster.
    ///
    /// PTX: `mbarrier.init.shared::cta.b64`, twice per stage.
    pub fn init(self, consumers: u32) {
        device_only()
    }

    /// Returns the state of the one thread that fills stages, beginning with the first.
    #[must_use]
    pub fn producer(self) -> Producer<T, STAGES> {
        device_only()
    }

    /// Returns the state of a thread that reads stages, beginning with the first. Each such thread
    /// has its own state.
    #[must_use]
    pub fn consumer(self) -> Consumer<T, STAGES> {
        device_only()
    }

    /// Returns the number of stages, `STAGES`. A constant.
    #[must_use]
    pub fn len(self) -> u32 {
        device_only()
    }

    /// Invalidates the barriers, once no thread waits and no load is pending
    /// ([`drain`](Producer::drain)). The pipeline may then be initialised again, with new states.
    ///
    /// PTX: `mbarrier.inval.shared::cta.b64`, twice per stage.
    pub fn invalidate(self) {
        device_only()
    }
}

/// The position of a [`Pipeline`]'s producer: the stage to fill next, and the parity of its empty
/// barrier, both in registers. A device function takes it by `&mut`.
pub struct Producer<T: Tiles, const STAGES: u32>(PhantomData<T>);

impl<T: Tiles, const STAGES: u32> Producer<T, STAGES> {
    /// Waits until the next stage is empty, announces the bytes of all its tiles to its full
    /// barrier, and advances: [`wait`](Producer::wait) and [`announce`](EmptySlot::announce) in one
    /// call. Every tile of the slot must then be loaded exactly once.
    ///
    /// Call it in one thread. Consumers that *wrote* to the tiles need
    /// [`fence_proxy_async`](super::fence_proxy_async) before they release.
    ///
    /// PTX: a loop of `mbarrier.try_wait.parity`, `mbarrier.arrive.expect_tx`, and to advance, an
    /// addition, a comparison, two selections and an `xor`.
    pub fn acquire(&mut self) -> LoadingSlot<T> {
        device_only()
    }

    /// Waits until the next stage is empty, and advances. It is for a producer that passes data
    /// besides the tiles: its writes before [`announce`](EmptySlot::announce) are visible to the
    /// slot's consumers.
    ///
    /// PTX: a loop of `mbarrier.try_wait.parity`, and to advance, an addition, a comparison, two
    /// selections and an `xor`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     src: TensorMap<Tile<f32, Shape2<8, 8>>>,
    /// #     ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 4>,
    /// #     work: Global<u32>,
    /// # ) {
    /// let rows: SharedArray<u32, 4> = shared(); // beside each stage, where its tile comes from
    /// let mut producer = ring.producer();
    /// let empty = producer.wait();
    /// let row = work.atomic_add(0, 8);
    /// rows.set(empty.stage(), row);
    /// let slot = empty.announce();
    /// src.load(slot.0, [row, 0], slot.barrier());
    /// # }
    /// ```
    pub fn wait(&mut self) -> EmptySlot<T> {
        device_only()
    }

    /// Returns whether [`acquire`](Producer::acquire) would return at once.
    ///
    /// PTX: `mbarrier.test_wait.parity`.
    #[must_use]
    pub fn ready(&self) -> bool {
        device_only()
    }

    /// Waits until consumers have released every slot. Afterwards the tiles may be used for other
    /// purposes, and a block to which others release may end. The state does not change.
    ///
    /// PTX: a loop of `mbarrier.try_wait.parity` for each stage.
    pub fn drain(&self) {
        device_only()
    }
}

/// The position of a [`Pipeline`]'s consumer: the stage to read next, and the parity of its full
/// barrier, both in registers. A device function takes it by `&mut`.
pub struct Consumer<T: Tiles, const STAGES: u32>(PhantomData<T>);

impl<T: Tiles, const STAGES: u32> Consumer<T, STAGES> {
    /// Waits until the next stage is full, and advances. Every consuming thread calls it once per
    /// stage, so that all states agree. Which of the threads release is a separate choice
    /// ([`Pipeline::init`]).
    ///
    /// Another `wait` before the slot is released is allowed as long as the producer has a stage
    /// left. Keep a slot that is still being read asynchronously (by a store or a matmul) in a
    /// variable, and release it later.
    ///
    /// PTX: a loop of `mbarrier.try_wait.parity`, and to advance, an addition, a comparison, two
    /// selections and an `xor`.
    pub fn wait(&mut self) -> FullSlot<T> {
        device_only()
    }

    /// Skips the next `steps` stages without waiting for them: other threads read and release them.
    /// [`Pipeline::init`] counts the releases of one stage, and therefore only those of threads
    /// that read it.
    ///
    /// This is for warpgroups that alternate: each reads the stages of its own tiles, and skips
    /// those of the others.
    ///
    /// PTX: an addition, a division by `STAGES` and an `xor`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 4>, steps: u32, tiles: u32) {
    /// let mut consumer = ring.consumer();
    /// consumer.skip(warpgroup_idx() * steps);
    /// for tile in (warpgroup_idx()..tiles).step_by(2) {
    ///     for k in 0..steps {
    ///         let slot = consumer.wait();
    ///         slot.release();
    ///     }
    ///     consumer.skip(steps); // the other warpgroup's tile
    /// }
    /// # }
    /// ```
    pub fn skip(&mut self, steps: u32) {
        device_only()
    }

    /// Returns whether [`wait`](Consumer::wait) would return at once.
    ///
    /// PTX: `mbarrier.test_wait.parity`.
    #[must_use]
    pub fn ready(&self) -> bool {
        device_only()
    }
}

/// An empty stage, returned by [`Producer::wait`].
#[must_use = "consumers wait for ever for a slot that is not announced"]
pub struct EmptySlot<T: Tiles>(PhantomData<T>);

impl<T: Tiles> EmptySlot<T> {
    /// Announces the bytes of all tiles of the slot to its full barrier, and arrives there. Every
    /// tile must then be loaded exactly once.
    ///
    /// PTX: `mbarrier.arrive.expect_tx.shared::cta.b64`.
    #[doc(alias = "mbarrier.arrive.expect_tx")]
    pub fn announce(self) -> LoadingSlot<T> {
        device_only()
    }

    /// Returns the slot's index in the ring, for data besides the tiles, in
    /// [`Stages`](super::Stages) or a [`SharedArray`](super::SharedArray).
    #[must_use]
    pub fn stage(&self) -> u32 {
        device_only()
    }
}

/// A stage to load, returned by [`Producer::acquire`] or [`EmptySlot::announce`]. Its tiles are
/// `slot.0`, `slot.1` and so on.
#[must_use = "load every tile: the full barrier waits for the bytes of all of them"]
pub struct LoadingSlot<T: Tiles>(PhantomData<T>);

impl<T: Tiles> LoadingSlot<T> {
    /// Returns the barrier on which the loads of the slot's tiles complete.
    #[must_use]
    pub fn barrier(&self) -> Barrier {
        device_only()
    }

    /// Returns the slot's index in the ring.
    #[must_use]
    pub fn stage(&self) -> u32 {
        device_only()
    }
}

impl<T: Tiles> Deref for LoadingSlot<T> {
    type Target = T;

    fn deref(&self) -> &T {
        device_only()
    }
}

/// A stage to read, returned by [`Consumer::wait`]. Its tiles are `slot.0`, `slot.1` and so on.
#[must_use = "a stage that is not released is never refilled"]
pub struct FullSlot<T: Tiles>(PhantomData<T>);

impl<T: Tiles> FullSlot<T> {
    /// Releases the stage: arrives at its empty barrier. After as many releases as set by
    /// [`Pipeline::init`], the producer may fill it again.
    ///
    /// A thread that stored from the tiles must first wait until the store has read them
    /// ([`bulk_wait_group_read`](super::bulk_wait_group_read)).
    ///
    /// If threads have read the slot's tiles ([`Tile::get`](super::Tile::get)), a proxy fence is
    /// needed between their reads and the next load
    /// ([`fence_proxy_async`](super::fence_proxy_async)). The release then begins with that fence,
    /// for this thread and for threads that have synchronised with it since they read. A slot that
    /// only stores have read is released without a fence.
    ///
    /// PTX: `fence.proxy.async.shared::cta` if threads have read, and
    /// `mbarrier.arrive.shared::cta.b64`.
    ///
    /// ```compile_fail,E0382
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 4>) {
    /// let mut consumer = ring.consumer();
    /// let slot = consumer.wait();
    /// slot.release();
    /// let late = slot.0.get([0, 0]); // error: use of moved value
    /// # }
    /// ```
    #[doc(alias = "mbarrier.arrive")]
    pub fn release(self) {
        device_only()
    }

    /// Releases the stage to the block of this `rank` of the cluster: arrives at that block's empty
    /// barrier of the same stage. It is for rings whose stages are filled by multicast. A block may
    /// load into this one only once this block's consumers are done. They therefore release to
    /// every block that loads for them, and [`Pipeline::init`] of each block counts the arrivals
    /// from all.
    ///
    /// A thread arrives once, so distribute the ranks over threads: lane `i` of a warp releases to
    /// block `i`.
    ///
    /// The call only signals that the stage has been read: this thread's earlier writes need not be
    /// visible to that block after its wait. To publish writes, arrive at a
    /// [`remote`](super::remote) barrier.
    ///
    /// Like [`release`](FullSlot::release), it begins with a proxy fence if one is needed.
    ///
    /// PTX: `mapa.shared::cluster.u32` and `mbarrier.arrive.shared::cluster.b64`, whose scope is
    /// the block (PTX ISA, "mbarrier.arrive").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(ring: Pipeline<(Tile<f32, Shape2<16, 32>>,), 4>) {
    /// let mut consumer = ring.consumer();
    /// let slot = consumer.wait();
    /// let mine = slot.0.get([0, lane_idx()]);
    /// sync_warp();
    /// if lane_idx() < 2 {
    ///     slot.release_to(lane_idx()); // in a cluster of two; `init` gets 2 times the consuming warps of a block
    /// }
    /// # }
    /// ```
    #[doc(alias = "mbarrier.arrive")]
    pub fn release_to(self, rank: u32) {
        device_only()
    }

    /// Releases the stage to every block of the cluster including this one, like
    /// [`release_to`](FullSlot::release_to) for each of them, in one thread. [`Pipeline::init`]
    /// then counts the consumers of all blocks of the cluster.
    ///
    /// Like [`release_to`](FullSlot::release_to), it publishes no writes. It begins with one proxy
    /// fence if [`release`](FullSlot::release) does.
    ///
    /// PTX: for each block, `mapa.shared::cluster.u32` and `mbarrier.arrive.shared::cluster.b64`.
    #[doc(alias = "mbarrier.arrive")]
    pub fn release_cluster(self) {
        device_only()
    }

    /// Returns the slot's index in the ring, for data besides the tiles, in
    /// [`Stages`](super::Stages) or a [`SharedArray`](super::SharedArray).
    #[must_use]
    pub fn stage(&self) -> u32 {
        device_only()
    }
}

impl<T: Tiles> Deref for FullSlot<T> {
    type Target = T;

    fn deref(&self) -> &T {
        device_only()
    }
}
