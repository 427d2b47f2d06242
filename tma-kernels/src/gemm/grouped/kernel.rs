//! The kernel that multiplies groups of rows, each by its own matrix.

use tma_runtime::tma_module;

/// C = A · B for groups of rows of A and C, each with its own B: N × K or, if `MN_B`, K × N.
///
/// Group g is the rows from `ends[g - 1]`, or from 0 for the first one, up to `ends[g]`. Its tiles
/// begin at its first row, whatever that is. Rows of a tile past the group's last row are computed
/// with those of the next group, and not stored: the map for stores of C ends with the group. One
/// warp makes that map and stores; another one loads. Two warpgroups multiply 64 × `BN` elements
/// each, and skip parts that are entirely past the group.
///
/// A cluster's two blocks of 128 × `BN` are side by side or, if `TALL`, stacked as long as a group
/// has rows for both. They share their loads of A, or of B.
#[tma_module]
pub mod grouped {
    use tma_runtime::prelude::*;

    use crate::gemm::device::consumer::{multiply_steps, release_steps};
    use crate::gemm::device::producer::Operand;
    use crate::gemm::device::schedule::{TileCoords, WorkUnit, operand_coords, ring_stages, work_unit};

    /// The maximum number of groups, limited by shared memory.
    const MOST_GROUPS: u32 = 512;

    /// Clusters synchronise after tiles of at least this many steps: with fewer it does not pay.
    const LONG: u32 = 32;

    /// A tile counts as ended this many steps before its end, so that other clusters know of it by
    /// the end of theirs.
    const COUNTED: u32 = 12;

    /// The number of steps before the end at which a cluster first reads the count, and continues
    /// without waiting.
    const LOOKED: u32 = 4;

    /// Returns the number of clusters' tiles of a group of `rows` rows, `across` blocks wide.
    #[tma_device]
    fn units_of<const TALL: bool>(rows: u32, across: u32) -> u32 {
        let down = rows.div_ceil(128);
        let tall = if TALL { down / 2 } else { 0 };
        tall * across + (down - 2 * tall) * across.div_ceil(2)
    }

    /// A group of rows.
    #[derive(Clone, Copy)]
    struct Group {
        /// The group's number: that of its matrix of B.
        index: u32,
        /// The number of its first tile.
        first_tile: u32,
        /// Its first row.
        first_row: u32,
    }

    /// Advances to the group of `tile`, and returns its end. With `WHOLE` all lanes of the warp
    /// must call it, and the end becomes a uniform register.
    #[tma_device]
    fn seek<const WHOLE: bool, const TALL: bool>(
        group: &mut Group,
        tile: u32,
        groups: u32,
        ends: SharedArray<u32, MOST_GROUPS>,
        across: u32,
    ) -> u32 {
        let mut end = 0;
        while group.index < groups {
            end = ends.get(group.index);
            if WHOLE {
                end = warp_reduce_max(end);
            }
            let tiles = units_of::<TALL>(end - group.first_row, across);
            if tile - group.first_tile < tiles {
                break;
            }
            group.index += 1;
            group.first_tile += tiles;
            group.first_row = end;
        }
        end
    }

    /// A block's tile of C, and the arrangement of its cluster.
    #[derive(Clone, Copy)]
    struct GroupTile {
        /// The tile. Its `batch` is the group.
        at: TileCoords,
        /// Whether the cluster's blocks are stacked, not side by side.
        is_stacked: bool,
    }

    /// Returns this block's part of the cluster's tile number `tile`, in a group that ends at
    /// `end`. All tiles of two columns of blocks come before those of the next two.
    #[tma_device]
    fn tile_of_group<const BN: u32, const TALL: bool>(
        group: Group,
        tile: u32,
        end: u32,
        across: u32,
    ) -> GroupTile {
        let inside = tile - group.first_tile;
        let down = (end - group.first_row).div_ceil(128);
        let tall = down / 2;
        let two = inside / down;
        let i = inside % down;
        let rank = block_in_cluster().y;
        if TALL && i < tall * min(across - 2 * two, 2) {
            let row = group.first_row + (i % tall * 2 + rank) * 128;
            let column = (2 * two + i / tall) * BN;
            GroupTile { at: TileCoords { batch: group.index, row, column }, is_stacked: true }
        } else {
            // If `TALL`, it is the group's last row. Otherwise each pair of columns begins one row
            // further down. Without this, the same cluster would always get the tiles at the
            // group's end, which take less time.
            let row = group.first_row + 128 * if TALL { down - 1 } else { (i + two) % down };
            let column = (2 * two + rank) * BN;
            GroupTile { at: TileCoords { batch: group.index, row, column }, is_stacked: false }
        }
    }

    /// Waits until clusters have reached the end of `goal` tiles, but reads the count at most
    /// `looks` times. `seen` is the result of an earlier read. Clusters that begin a round together
    /// read the same parts of A and B, which the L2 cache then holds. No result depends on it.
    ///
    /// The lower half of `ended` counts tiles, and the upper half clusters that have none left.
    #[tma_device]
    fn synchronise(ended: Global<u64>, seen: u32, goal: u32, looks: u32) {
        let mut seen = seen;
        for _ in 0..looks {
            if seen >= goal {
                break;
            }
            seen = ended.atomic_add(0, 0) as u32;
        }
    }

    /// Rows after the last group are not written.
    #[tma_kernel(threads = 384, cluster = [1, 2], unchecked, instances(
        let ROWS_B = if MN_B { 64 } else { BN },
        let COLUMNS_B = if MN_B { BN } else { 64 },
        let SLICE_B = ROWS_B / 2,
        let EPILOGUE_COLUMNS = 128 / size_of::<C>() as u32, // a row of 128 bytes
        let STAGES = ring_stages(128, BN, 4);

        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16), bf16_f32 = (bf16, f32), f16_f32 = (f16, f32)],
        (TALL, BN) in [t128x256_cluster2x1 = (true, 256), t128x128_cluster1x2 = (false, 128)],
        MN_B in [nt = false, nn = true];
    ))]
    pub fn rows<
        AB,
        C,
        const EPILOGUE_COLUMNS: u32,
        const TALL: bool,
        const BN: u32,
        const STAGES: u32,
        const MN_B: bool,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
        const SLICE_B: u32,
    >(
        a: TensorMap<Operand<AB, 128, 64>>,
        a_half: TensorMap<Operand<AB, 64, 64>>,
        b: TensorMap<Operand<AB, ROWS_B, COLUMNS_B>>,
        b_half: TensorMap<Operand<AB, SLICE_B, COLUMNS_B>>,
        c: TensorMap<Tile<C, Shape2<64, EPILOGUE_COLUMNS>, Swizzle128>>,
        maps: Maps<Tile<C, Shape2<64, EPILOGUE_COLUMNS>, Swizzle128>>,
        row_ends: Global<u32>,
        ended: Global<u64>,
        groups: u32,
        m: u32,
        n: u32,
        k: u32,
    ) where
        AB: Multiply<AB, f32>,
        C: TileElement,
        f32: StoreAs<C>,
        Transposed<Tile<AB, Shape2<64, 64>, Swizzle128>, false>: Left<64, 64, Element = AB>,
        Transposed<Operand<AB, ROWS_B, COLUMNS_B>, MN_B>: Right<BN, 64, Element = AB>,
    {
        let ring: Pipeline<(Operand<AB, 128, 64>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES> = shared();
        let buffers: Stages<Tile<C, Shape2<64, EPILOGUE_COLUMNS>, Swizzle128>, 4> = shared(); // two per warpgroup
        let map: SharedMap<Tile<C, Shape2<64, EPILOGUE_COLUMNS>, Swizzle128>> = shared();
        let ends: SharedArray<u32, MOST_GROUPS> = shared();
        let first_halved: SharedArray<u32, 1> = shared();
        let known: Barrier = shared();
        let filled: Stages<Barrier, 4> = shared();
        let stored: Stages<Barrier, 4> = shared();
        if thread_idx().x == 0 {
            a_half.prefetch_descriptor();
            b.prefetch_descriptor();
            if TALL {
                a.prefetch_descriptor();
                b_half.prefetch_descriptor();
            }
            ring.init(2 * 8); // one arrival per multiplying warp of both blocks
            known.init(32);
            for i in 0..4 {
                filled[i].init(128);
                stored[i].init(1);
            }
            fence_barrier_init();
        }
        sync_cluster();

        let across = n.div_ceil(BN);
        let steps = k.div_ceil(64);
        let clusters = grid_dim().x;
        let mut group = Group { index: 0, first_tile: 0, first_row: 0 };
        let mut unit = cluster_idx().x;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 {
                known.wait(0);
                if elect_one() {
                    let whole = first_halved.get(0);
                    let synchronises = block_in_cluster().y == 0 && steps >= LONG;
                    let mut seen = 0u32;
                    let mut producer = ring.producer();
                    loop {
                        let tile = work_unit(unit, whole).tile;
                        let end = seek::<false, TALL>(&mut group, tile, groups, ends, across);
                        if group.index == groups {
                            break;
                        }
                        let GroupTile { at, is_stacked } =
                            tile_of_group::<BN, TALL>(group, tile, end, across);
                        if synchronises {
                            synchronise(ended, seen, unit - cluster_idx().x, steps / 4);
                        }
                        for step in 0..steps {
                            if synchronises && step + COUNTED == steps {
                                let _ = ended.atomic_add(0, 1);
                            }
                            if synchronises && step + LOOKED == steps {
                                seen = ended.atomic_add(0, 0) as u32;
                            }
                            let slot = producer.acquire();
                            let of_a = [0, at.row, step * 64];
                            let of_b = operand_coords::<MN_B>(at.batch, at.column, step * 64);
                            if TALL && is_stacked {
                                a.load(slot.0, of_a, slot.barrier());
                                b_half.load_sliced(slot.1, of_b, slot.barrier(), ClusterAxis::Y);
                            } else {
                                a_half.load_sliced(slot.0, of_a, slot.barrier(), ClusterAxis::Y);
                                b.load(slot.1, of_b, slot.barrier());
                            }
                        }
                        unit += clusters;
                    }
                    producer.drain();
                    if synchronises && (ended.atomic_add(0, 1 << 32) >> 32) as u32 + 1 == clusters {
                        let _ = ended.atomic_exchange(0, 0); // for the next launch
                    }
                }
            } else if warp_idx() == 1 {
                let mut units = 0u32;
                for index in (lane_idx()..groups).step_by(32) {
                    let start = if index == 0 { 0 } else { row_ends.get(index - 1) };
                    let end = row_ends.get(index);
                    assert!(start <= end && end <= m, "`ends` must be ascending, and at most the rows of A");
                    ends.set(index, end);
                    units += units_of::<TALL>(end - start, across);
                }
                units = warp_reduce_add(units);
                // Tiles of the last round, unless it is the first: as in `divide.rs`.
                let last = units % clusters;
                let is_halved = 2 * last <= clusters && units > clusters;
                let whole = if is_halved { units - last } else { units };
                let leader = lane_idx() == 0;
                if leader {
                    first_halved.set(0, whole);
                }
                known.arrive();
                known.wait(0);
                let mine = block_idx().y * grid_dim().x + block_idx().x;
                if leader {
                    map.copy_from(c);
                }
                let mut clipped = 0u32;
                let mut tiles = 0u32;
                loop {
                    let WorkUnit { tile, idle } = work_unit(unit, whole);
                    let end = seek::<false, TALL>(&mut group, tile, groups, ends, across);
                    if group.index == groups {
                        break;
                    }
                    let at = tile_of_group::<BN, TALL>(group, tile, end, across).at;
                    if clipped != end {
                        clipped = end;
                        if leader {
                            bulk_wait_group::<0>(); // no store reads the map that is replaced
                            map.set_extent::<0>(end);
                        }
                        sync_warp();
                        map.publish(maps, mine);
                        if leader {
                            maps.acquire(mine);
                        }
                    }
                    if leader {
                        for j in unroll(0..BN / EPILOGUE_COLUMNS) {
                            for warpgroup in unroll(0..2u32) {
                                let i = warpgroup * 2 + j % 2;
                                filled[i].wait((tiles * (BN / EPILOGUE_COLUMNS / 2) + j / 2) & 1);
                                let row = at.row + warpgroup * 64;
                                if row < end && warpgroup != idle {
                                    maps.at(mine).store([row, at.column + j * EPILOGUE_COLUMNS], buffers[i]);
                                    bulk_commit_group();
                                    bulk_wait_group_read::<0>();
                                }
                                stored[i].arrive();
                            }
                        }
                    }
                    tiles += 1;
                    unit += clusters;
                }
                if leader {
                    bulk_wait_group::<0>();
                }
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let mut tiles = 0u32;
            known.wait(0);
            let whole = warp_reduce_max(first_halved.get(0));
            let mut consumer = ring.consumer();
            loop {
                let WorkUnit { tile, idle } = work_unit(unit, whole);
                let end = seek::<true, TALL>(&mut group, tile, groups, ends, across);
                if group.index == groups {
                    break;
                }
                let row = tile_of_group::<BN, TALL>(group, tile, end, across).at.row + warpgroup * 64;
                unit += clusters;
                if row >= end || warpgroup == idle {
                    release_steps(&mut consumer, steps);
                    for j in unroll(0..BN / EPILOGUE_COLUMNS) {
                        stored[warpgroup * 2 + j % 2]
                            .wait((tiles * (BN / EPILOGUE_COLUMNS / 2) + j / 2) & 1 ^ 1);
                        filled[warpgroup * 2 + j % 2].arrive();
                    }
                    tiles += 1;
                    continue;
                }
                let mut sum = Accumulator::<f32, 64, BN>::zero();
                multiply_steps::<_, _, _, 64, false, MN_B, _, _, _, _, _, true>(
                    &mut sum,
                    &mut consumer,
                    warpgroup,
                    steps,
                    false,
                );
                for j in unroll(0..BN / EPILOGUE_COLUMNS) {
                    stored[warpgroup * 2 + j % 2].wait((tiles * (BN / EPILOGUE_COLUMNS / 2) + j / 2) & 1 ^ 1);
                    sum.columns::<EPILOGUE_COLUMNS>(j).store(buffers[warpgroup * 2 + j % 2]);
                    fence_proxy_async();
                    filled[warpgroup * 2 + j % 2].arrive();
                }
                tiles += 1;
            }
        }
    }
}
