//! Sums that are split among clusters: device functions of the kernel with options.

use tma_runtime::tma_module;

/// The steps of each unit, and the exchange of partial sums through global memory.
#[tma_module]
pub mod split {
    use tma_runtime::prelude::*;

    /// The division of tiles' steps among work units. The first `whole` units are one tile each.
    /// The others divide the steps of all other tiles, laid end to end.
    #[derive(Clone, Copy)]
    pub struct Split {
        /// The units that are one tile each.
        pub whole: u32,
        /// The other units.
        pub sharing_units: u32,
        /// The steps of each of these. The last one may have fewer.
        pub unit_steps: u32,
        /// The steps of all of them.
        pub shared_steps: u32,
        /// The numbers that a tile's steps take. Those past its last step are unused.
        pub tile_stride: u32,
        /// The steps of a tile.
        pub tile_steps: u32,
    }

    /// The steps of a unit that are left.
    #[derive(Clone, Copy)]
    pub struct UnitSteps {
        /// The first one.
        pub next: u32,
        /// The one after the last.
        pub end: u32,
    }

    /// A unit's steps of one tile.
    #[derive(Clone, Copy)]
    pub struct TileSteps {
        /// The tile.
        pub tile: u32,
        /// The number of the tile's own first step.
        pub tile_start: u32,
        /// The first of the unit's steps, counted from there.
        pub first: u32,
        /// How many they are.
        pub count: u32,
    }

    /// Returns the steps of a unit.
    #[tma_device]
    pub fn steps_of(split: Split, unit: u32) -> UnitSteps {
        if unit < split.whole {
            UnitSteps { next: 0, end: split.tile_stride }
        } else {
            let next = (unit - split.whole) * split.unit_steps;
            UnitSteps { next, end: min(next + split.unit_steps, split.shared_steps) }
        }
    }

    /// Takes the steps of the next tile from those of a unit that are left.
    #[tma_device]
    pub fn take_tile(split: Split, unit: u32, left: &mut UnitSteps) -> TileSteps {
        let tile_start = left.next / split.tile_stride * split.tile_stride;
        let tile = if unit < split.whole { unit } else { split.whole + left.next / split.tile_stride };
        let first = left.next - tile_start;
        let count = min(left.end - tile_start, split.tile_steps) - first;
        left.next = tile_start + split.tile_stride;
        TileSteps { tile, tile_start, first, count }
    }

    /// Returns the slot of the partial sums that the `n`-th sharing unit stores for the tile that
    /// begins at step `tile_start`. A unit stores at most two: for the tile in which it begins, and
    /// for a tile in which it ends.
    #[tma_device]
    fn partial_slot(split: Split, n: u32, tile_start: u32) -> u32 {
        if n * split.unit_steps < tile_start { split.sharing_units + n } else { n }
    }

    /// Stores a thread's sums in `partials`, four at a time.
    #[tma_device]
    fn store_partial<const BN: u32>(sum: &Accumulator<f32, 64, BN>, partials: Global<f32>, slot: u32) {
        let first = slot as u64 * (64 * BN) as u64 + (thread_idx().x % 128 * 4) as u64;
        for i in unroll((0..sum.len()).step_by(4)) {
            partials.set_vec(first + i as u64 * 128, [sum[i], sum[i + 1], sum[i + 2], sum[i + 3]]);
        }
    }

    /// Adds the sums that were stored in `slot`.
    #[tma_device]
    fn add_partial<const BN: u32>(sum: &mut Accumulator<f32, 64, BN>, partials: Global<f32>, slot: u32) {
        let first = slot as u64 * (64 * BN) as u64 + (thread_idx().x % 128 * 4) as u64;
        for j in unroll((0..sum.len()).step_by(32)) {
            // All loads are issued before the first one is waited for.
            let mut part = [0.0; 32];
            for i in unroll((0..32usize).step_by(4)) {
                let four = partials.get_vec::<4>(first + (j + i) as u64 * 128);
                for e in unroll(0..4usize) {
                    part[i + e] = four[e];
                }
            }
            for i in unroll(0..32usize) {
                sum[j + i] += part[i];
            }
        }
    }

    /// A warpgroup's part of a tile whose sums are split.
    #[derive(Clone, Copy)]
    pub struct Part {
        /// The number of the sharing unit.
        pub unit: u32,
        /// The number of the tile's first step.
        pub tile_start: u32,
        /// The number of warpgroups with a part of a cluster's tile.
        pub warpgroups: u32,
        /// The number of this warpgroup among them.
        pub own: u32,
        /// The index in `tickets` of the count of parts that have been stored.
        pub counter: u32,
    }

    /// Adds the sums of all parts of a tile, if this warpgroup is the last to finish its part.
    /// Returns whether it is. Otherwise, its sums are stored for the last one.
    #[tma_device]
    pub fn sum_parts<const BN: u32>(
        sum: &mut Accumulator<f32, 64, BN>,
        partials: Global<f32>,
        tickets: Global<u32>,
        ticket: SharedArray<u32, 1>,
        split: Split,
        part: Part,
    ) -> bool {
        let leader = thread_idx().x % 128 == 0;
        let first = part.tile_start / split.unit_steps;
        let parts = (part.tile_start + split.tile_steps - 1) / split.unit_steps + 1 - first;
        let mut earlier = 0;
        if parts == 2 {
            // The last of two need not store its own part: they may be added in either order.
            sync_warpgroup(); // all threads have read the previous ticket
            if leader {
                ticket.set(0, tickets.fetch_add(part.counter, 0, Order::Acquire, Scope::Device));
            }
            sync_warpgroup();
            earlier = ticket.get(0);
        }
        if earlier == 0 {
            let slot = partial_slot(split, part.unit, part.tile_start);
            store_partial::<BN>(sum, partials, slot * part.warpgroups + part.own);
            sync_warpgroup(); // the leader releases the stores of all threads
            if leader {
                ticket.set(0, tickets.fetch_add(part.counter, 1, Order::AcqRel, Scope::Device));
            }
            sync_warpgroup();
            earlier = ticket.get(0);
        }
        if earlier + 1 < parts {
            return false;
        }
        if leader {
            tickets.store(part.counter, 0, Order::Relaxed, Scope::Device); // for the next launch
        }
        if parts == 2 {
            // The other of the units `first` and `first + 1`.
            let slot = partial_slot(split, 2 * first + 1 - part.unit, part.tile_start);
            add_partial::<BN>(sum, partials, slot * part.warpgroups + part.own);
        } else {
            // In the order of the steps, so that the sums are reproducible.
            for i in unroll(0..sum.len()) {
                sum[i] = 0.0;
            }
            for n in first..first + parts {
                let slot = partial_slot(split, n, part.tile_start);
                add_partial::<BN>(sum, partials, slot * part.warpgroups + part.own);
            }
        }
        true
    }
}
