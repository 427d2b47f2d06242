//! The kernels of the collectives: sums and copies over the ranks of a team.

use tma_runtime::tma_module;

/// Sums over ranks in place and in pieces, and copies to all ranks.
///
/// A vector has `V` elements: 16 bytes. `G` is the number of ranks whose vectors a thread loads
/// together. It divides the number of ranks. `L` is the number of these loads.
#[tma_module]
pub mod collectives {
    use crate::team::barrier::{rounds, sync_team, sync_team_after};
    use tma_runtime::prelude::*;

    /// Threads of a block. One block on each multiprocessor is enough (`min_blocks = 1`): otherwise
    /// ptxas would save registers for more, and split groups of loads.
    pub const THREADS: u32 = 512;

    /// The vectors of each rank that a thread loads together.
    const VECTORS: usize = 4;

    /// Loads a vector.
    ///
    /// The index is compared with the slice's length by a condition of the load instead of a check
    /// that stops the grid, which would end the group of loads.
    #[tma_device(open)]
    fn fetch<T: TileElement + Number, const V: usize>(from: Peer<Global<T>>, i: u64) -> [T; V] {
        let mut vector = [cast::<T>(0.0f32); V];
        if i < from.len().saturating_sub(V as u64 - 1) {
            vector = from.get_vec::<V>(i);
        }
        vector
    }

    /// Stores a vector, like [`fetch`].
    #[tma_device(open)]
    fn put<T: TileElement + Number, const V: usize>(to: Peer<Global<T>>, i: u64, vector: [T; V]) {
        if i < to.len().saturating_sub(V as u64 - 1) {
            to.set_vec(i, vector);
        }
    }

    /// Returns the sums over all ranks of `U` vectors, which are `step` elements apart from element
    /// `first` on.
    ///
    /// The sums are in `f32` and in the order of ranks, so that they do not depend on the rank that
    /// adds. All loads of a group of ranks are in flight at the same time: a thread reads from all of
    /// them at once, so that no rank is the first one for all threads.
    #[tma_device]
    fn sums_of_ranks<
        T: TileElement + Number,
        const G: usize,
        const U: usize,
        const V: usize,
        const L: usize,
    >(
        x: Peers<Global<T>>,
        first: u64,
        step: u64,
    ) -> [[T; V]; U] {
        // -0 + x is x for each x, also for -0.
        let mut sums = [[-0.0f32; V]; U];
        let mut group = 0u32;
        while group < ranks() {
            let mut loaded = [[cast::<T>(0.0f32); V]; L];
            for k in unroll(0..L) {
                loaded[k] = fetch::<T, V>(x.of(group + (k / U) as u32), first + (k % U) as u64 * step);
            }
            for k in unroll(0..L) {
                for i in unroll(0..V) {
                    sums[k % U][i] += cast::<f32>(loaded[k][i]);
                }
            }
            group += G as u32;
        }
        let mut rounded = [[cast::<T>(0.0f32); V]; U];
        for j in unroll(0..U) {
            for i in unroll(0..V) {
                rounded[j][i] = cast::<T>(sums[j][i]);
            }
        }
        rounded
    }

    /// Returns the sum of an element over all ranks.
    #[tma_device]
    fn sum_of_element<T: TileElement + Number>(x: Peers<Global<T>>, i: u64) -> T {
        let mut sum = -0.0f32;
        for r in 0..ranks() {
            sum += cast::<f32>(x.of(r).get(i));
        }
        cast::<T>(sum)
    }

    /// Replaces `U` vectors of all ranks by their sums over the ranks. Each rank begins to store with
    /// another one.
    #[tma_device]
    fn reduce_to_all<
        T: TileElement + Number,
        const G: usize,
        const U: usize,
        const V: usize,
        const L: usize,
    >(
        x: Peers<Global<T>>,
        first: u64,
        step: u64,
    ) {
        let sums = sums_of_ranks::<T, G, U, V, L>(x, first, step);
        for k in 0..ranks() {
            let to = x.of((rank() + 1 + k) % ranks());
            for j in unroll(0..U) {
                put::<T, V>(to, first + j as u64 * step, sums[j]);
            }
        }
    }

    /// Returns the index of this thread in the grid.
    #[tma_device]
    fn index() -> u64 {
        block_idx().x as u64 * THREADS as u64 + thread_idx().x as u64
    }

    /// Returns the number of threads in the grid.
    #[tma_device]
    fn threads() -> u64 {
        grid_dim().x as u64 * THREADS as u64
    }

    /// Replaces the elements of all ranks by their sums. Each rank adds up a part of the elements, and
    /// stores the sums in the memory of all ranks.
    ///
    /// Only one thread of all ranks reads and writes an element, so that nothing else has to be
    /// ordered. The barriers are needed against what comes before and after: the elements of all ranks
    /// must be there, and a rank must not go on before the others have stored its sums. Each block
    /// waits for the same block of other ranks alone. In a kernel that also writes or reads `x` there
    /// is therefore one block.
    #[tma_device]
    pub fn reduce_in_place<T: TileElement + Number, const G: usize, const V: usize, const L: usize>(
        x: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
    ) {
        sync_team(workspace);
        let len = x.own().len();
        let vectors = len / V as u64;
        let part = (vectors + ranks() as u64 - 1) / ranks() as u64;
        let start = min(rank() as u64 * part, vectors);
        let end = min(start + part, vectors);
        let step = threads();
        let mut vector = start + index();
        while vector + (VECTORS as u64 - 1) * step < end {
            reduce_to_all::<T, G, VECTORS, V, L>(x, vector * V as u64, step * V as u64);
            vector += VECTORS as u64 * step;
        }
        while vector < end {
            reduce_to_all::<T, G, 1, V, G>(x, vector * V as u64, 0);
            vector += step;
        }
        // The last rank has the elements after the last vector.
        let last = vectors * V as u64 + index();
        if rank() + 1 == ranks() && last < len {
            let sum = sum_of_element(x, last);
            for r in 0..ranks() {
                x.of(r).set(last, sum);
            }
        }
        sync_team(workspace);
    }

    /// Adds up tensors by [`reduce_in_place`].
    #[tma_kernel(threads = THREADS, min_blocks = 1, unchecked, instances(
        T in [bf16, f16, f32],
        G in [single = 1, pairs = 2, threes = 3, fours = 4],
        let V = 16 / size_of::<T>(),
        let L = G * VECTORS,
    ))]
    pub fn two_shot<T, const G: usize, const V: usize, const L: usize>(
        x: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
    ) where
        T: TileElement + Number,
    {
        reduce_in_place::<T, G, V, L>(x, workspace);
    }

    /// Replaces the elements of this rank by their sums over all ranks. Each block copies its elements
    /// to a slot of the workspace, waits for the same block of the other ranks, and adds up what all
    /// of them have copied.
    ///
    /// A block has two slots of `slot_len` elements, which it uses in turns, so that there is no
    /// second barrier: once a block has passed the barrier with one slot, all ranks have ended the
    /// round before, and nothing reads the other slot any more. The rounds of the block's barrier
    /// select the slot. They are counted on the device, and for each block, so that grids of calls may
    /// differ.
    #[tma_device]
    pub fn reduce_by_slots<T: TileElement + Number, const G: usize, const V: usize>(
        x: Peers<Global<T>>,
        slots: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
        slot_len: u32,
    ) {
        let (own_x, own_slots) = (x.of(rank()), slots.of(rank()));
        let len = own_x.len();
        let vectors = len / V as u64;
        let part = (vectors + grid_dim().x as u64 - 1) / grid_dim().x as u64;
        let start = min(block_idx().x as u64 * part, vectors);
        let count = min(part, vectors - start);
        let before = rounds(workspace);
        let slot = (2 * block_idx().x + before % 2) as u64 * slot_len as u64;
        let mut i = thread_idx().x as u64;
        while i < count {
            let vector = fetch::<T, V>(own_x, (start + i) * V as u64);
            put::<T, V>(own_slots, slot + i * V as u64, vector);
            i += THREADS as u64;
        }
        // The last block has the elements after the last vector.
        let last = vectors * V as u64 + thread_idx().x as u64;
        let last_in_slot = slot + count * V as u64 + thread_idx().x as u64;
        let has_last = block_idx().x + 1 == grid_dim().x && last < len;
        if has_last {
            own_slots.set(last_in_slot, own_x.get(last));
        }
        sync_team_after(workspace, before);
        i = thread_idx().x as u64;
        while i < count {
            let sums = sums_of_ranks::<T, G, 1, V, G>(slots, slot + i * V as u64, 0);
            put::<T, V>(own_x, (start + i) * V as u64, sums[0]);
            i += THREADS as u64;
        }
        if has_last {
            own_x.set(last, sum_of_element(slots, last_in_slot));
        }
    }

    /// Adds up tensors by [`reduce_by_slots`].
    #[tma_kernel(threads = THREADS, min_blocks = 1, unchecked, instances(
        T in [bf16, f16, f32],
        G in [single = 1, pairs = 2, threes = 3, fours = 4],
        let V = 16 / size_of::<T>(),
    ))]
    pub fn one_shot<T, const G: usize, const V: usize>(
        x: Peers<Global<T>>,
        slots: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
        slot_len: u32,
    ) where
        T: TileElement + Number,
    {
        reduce_by_slots::<T, G, V>(x, slots, workspace, slot_len);
    }

    /// Adds up the piece of each rank that belongs to this one: `x` has a piece of the length of `out`
    /// for each rank. Pieces begin at multiples of a vector.
    #[tma_device]
    pub fn reduce_own_piece<T: TileElement + Number, const G: usize, const V: usize, const L: usize>(
        x: Peers<Global<T>>,
        out: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
    ) {
        sync_team(workspace);
        let own = out.of(rank());
        let len = own.len();
        let piece = rank() as u64 * len;
        let vectors = len / V as u64;
        let step = threads();
        let mut vector = index();
        while vector + (VECTORS as u64 - 1) * step < vectors {
            let first = vector * V as u64;
            let sums = sums_of_ranks::<T, G, VECTORS, V, L>(x, piece + first, step * V as u64);
            for j in unroll(0..VECTORS) {
                put::<T, V>(own, first + j as u64 * step * V as u64, sums[j]);
            }
            vector += VECTORS as u64 * step;
        }
        while vector < vectors {
            let first = vector * V as u64;
            let sums = sums_of_ranks::<T, G, 1, V, G>(x, piece + first, 0);
            put::<T, V>(own, first, sums[0]);
            vector += step;
        }
        let last = vectors * V as u64 + index();
        if last < len {
            own.set(last, sum_of_element(x, piece + last));
        }
        // What comes next may overwrite `x`, which all ranks must have read.
        sync_team(workspace);
    }

    /// Adds up pieces by [`reduce_own_piece`].
    #[tma_kernel(threads = THREADS, min_blocks = 1, unchecked, instances(
        T in [bf16, f16, f32],
        G in [single = 1, pairs = 2, threes = 3, fours = 4],
        let V = 16 / size_of::<T>(),
        let L = G * VECTORS,
    ))]
    pub fn reduce_scatter<T, const G: usize, const V: usize, const L: usize>(
        x: Peers<Global<T>>,
        out: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
    ) where
        T: TileElement + Number,
    {
        reduce_own_piece::<T, G, V, L>(x, out, workspace);
    }

    /// Copies this rank's part to its place in the memory of all ranks. Places begin at multiples of a
    /// vector.
    #[tma_device]
    pub fn copy_to_all<T: TileElement + Number, const V: usize>(
        part: Peers<Global<T>>,
        all: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
    ) {
        // Other ranks may still read or write their memory.
        sync_team(workspace);
        let own = part.of(rank());
        let len = own.len();
        let place = rank() as u64 * len;
        let vectors = len / V as u64;
        let step = threads();
        let mut vector = index();
        while vector < vectors {
            let mut loaded = [[cast::<T>(0.0f32); V]; VECTORS];
            for j in unroll(0..VECTORS) {
                loaded[j] = fetch::<T, V>(own, (vector + j as u64 * step) * V as u64);
            }
            for k in 0..ranks() {
                let to = all.of((rank() + 1 + k) % ranks());
                for j in unroll(0..VECTORS) {
                    let i = vector + j as u64 * step;
                    if i < vectors {
                        put::<T, V>(to, place + i * V as u64, loaded[j]);
                    }
                }
            }
            vector += VECTORS as u64 * step;
        }
        let last = vectors * V as u64 + index();
        if last < len {
            let x = own.get(last);
            for r in 0..ranks() {
                all.of(r).set(place + last, x);
            }
        }
        sync_team(workspace);
    }

    /// Gathers parts by [`copy_to_all`].
    #[tma_kernel(threads = THREADS, min_blocks = 1, unchecked, instances(
        T in [bf16, f16, f32],
        let V = 16 / size_of::<T>(),
    ))]
    pub fn all_gather<T, const V: usize>(
        part: Peers<Global<T>>,
        all: Peers<Global<T>>,
        workspace: Peers<Global<u32>>,
    ) where
        T: TileElement + Number,
    {
        copy_to_all::<T, V>(part, all, workspace);
    }
}

/// The same for tensors of which not all begin at multiples of 16 bytes: a vector is accessed by its
/// elements.
#[tma_module(from = crate::team::kernel::collectives, only = ["*_single", "bf16", "f16", "f32"])]
pub mod elements {
    use tma_runtime::prelude::*;

    /// Loads `V` elements.
    #[tma_device]
    fn fetch<T: TileElement + Number, const V: usize>(from: Peer<Global<T>>, i: u64) -> [T; V] {
        let mut vector = [cast::<T>(0.0f32); V];
        if i < from.len().saturating_sub(V as u64 - 1) {
            for k in unroll(0..V) {
                vector[k] = from.get(i + k as u64);
            }
        }
        vector
    }

    /// Stores `V` elements.
    #[tma_device]
    fn put<T: TileElement + Number, const V: usize>(to: Peer<Global<T>>, i: u64, vector: [T; V]) {
        if i < to.len().saturating_sub(V as u64 - 1) {
            for k in unroll(0..V) {
                to.set(i + k as u64, vector[k]);
            }
        }
    }
}
