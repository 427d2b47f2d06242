//! The kernel that multiplies groups of rows, each by its own matrix.

use tma_runtime::tma_module;

/// C = A · B for groups of rows of A and C, each with its own B: N × K or, if `MN_B`, K × N.
///
/// Group g is the rows from `ends[g - 1]`, or from 0 for the first one, up to `ends[g]`. Its tiles
/// begin at its first row, whatever that is. Rows of a tile past the group's last row are computed
/// with those of the next group, and not stored: the map for stores of C ends with the group. One
/// warp makes that map and stores; another one loads. Two warpgroups multiply 64 × `N` elements
/// each, and skip parts that are entirely past the group.
///
/// A cluster's two blocks of 128 × `N` are side by side or, if `TALL`, stacked as long as a group
/// has rows for both. They share their loads of A, or of B.
#[tma_module]
pub mod grouped {
    use tma_runtime::prelude::*;

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

    /// A value that stands for no warpgroup.
    const NOBODY: u32 = 2;

    /// Returns the number of clusters' tiles of a group of `rows` rows, `across` blocks wide.
    #[tma_device]
    fn units_of<const TALL: bool>(rows: u32, across: u32) -> u32 {
        let down = rows.div_ceil(128);
        let tall = if TALL { down / 2 } else { 0 };
        tall * across + (down - 2 * tall) * across.div_ceil(2)
    }

    /// Returns a cluster's tile in an iteration, and its idle warpgroup, or `NOBODY`. From `whole`
    /// on a tile is split between two clusters, which compute the rows of one warpgroup each.
    #[tma_device]
    fn share_of(turn: u32, whole: u32) -> [u32; 2] {
        if turn < whole { [turn, NOBODY] } else { [whole + (turn - whole) / 2, (turn - whole) % 2] }
    }

    /// Advances to the group of `unit`: `at` has the group, its first unit and its first row. With
    /// `WHOLE` all lanes of the warp must call it, and the end becomes a uniform register.
    #[tma_device]
    fn seek<const WHOLE: bool, const TALL: bool>(
        at: &mut [u32; 3],
        unit: u32,
        groups: u32,
        ends: SharedArray<u32, MOST_GROUPS>,
        across: u32,
    ) -> u32 {
        let mut end = 0;
        while at[0] < groups {
            end = ends.get(at[0]);
            if WHOLE {
                end = warp_reduce_max(end);
            }
            let units = units_of::<TALL>(end - at[2], across);
            if unit - at[1] < units {
                break;
            }
            at[0] += 1;
            at[1] += units;
            at[2] = end;
        }
        end
    }

    /// Returns the first row and the first column, within the group, of this block's part of the
    /// cluster's tile `inside`; and 1 if the cluster's blocks are side by side. All tiles of two
    /// columns of blocks come before those of the next two.
    #[tma_device]
    fn place<const N: u32, const TALL: bool>(inside: u32, rows: u32, across: u32) -> [u32; 3] {
        let down = rows.div_ceil(128);
        let tall = down / 2;
        let two = inside / down;
        let i = inside % down;
        let me = block_in_cluster().y;
        if TALL && i < tall * min(across - 2 * two, 2) {
            [(i % tall * 2 + me) * 128, (2 * two + i / tall) * N, 0]
        } else {
            // If `TALL`, it is the group's last row. Otherwise each pair of columns begins one row
            // further down. Without this, the same cluster would always get the tiles at the
            // group's end, which take less time.
            let row = if TALL { down - 1 } else { (i + two) % down };
            [row * 128, (2 * two + me) * N, 1]
        }
    }

    /// Waits until clusters have reached the end of `goal` tiles, but reads the count at most
    /// `looks` times. `seen` is the result of an earlier read. Clusters that begin a round together
    /// read the same parts of A and B, which the L2 cache then holds. No result depends on it.
    ///
    /// The lower half of `ended` counts tiles, and the upper half clusters that have none left.
    #[tma_device]
    fn meet(ended: Global<u64>, seen: u32, goal: u32, looks: u32) {
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
        (AB, C, COLS) in [bf16 = (bf16, bf16, 64), f16 = (f16, f16, 64), bf16_f32 = (bf16, f32, 32), f16_f32 = (f16, f32, 32)],
        (TALL, N, STAGES, MN_B, ROWS_B, COLS_B, HALF_B) in [
            t128x256_cluster2x1_nt = (true, 256, 4, false, 256, 64, 128),
            t128x256_cluster2x1_nn = (true, 256, 4, true, 64, 256, 32),
            t128x128_cluster1x2_nt = (false, 128, 6, false, 128, 64, 64),
            t128x128_cluster1x2_nn = (false, 128, 6, true, 64, 128, 32),
        ];
    ))]
    pub fn rows<
        AB,
        C,
        const COLS: u32,
        const TALL: bool,
        const N: u32,
        const STAGES: u32,
        const MN_B: bool,
        const ROWS_B: u32,
        const COLS_B: u32,
        const HALF_B: u32,
    >(
        a: TensorMap<Tile<AB, Shape2<128, 64>, Swizzle128>>,
        a_half: TensorMap<Tile<AB, Shape2<64, 64>, Swizzle128>>,
        b: TensorMap<Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>>,
        b_half: TensorMap<Tile<AB, Shape3<1, HALF_B, COLS_B>, Swizzle128>>,
        c: TensorMap<Tile<C, Shape2<64, COLS>, Swizzle128>>,
        maps: Maps<Tile<C, Shape2<64, COLS>, Swizzle128>>,
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
        Tile<AB, Shape2<64, 64>, Swizzle128>: Left<64, 64, Element = AB>,
        Transposed<Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>, MN_B>: Right<N, 64, Element = AB>,
    {
        let ring: Pipeline<
            (Tile<AB, Shape2<128, 64>, Swizzle128>, Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>),
            STAGES,
        > = shared();
        let outs: Stages<Tile<C, Shape2<64, COLS>, Swizzle128>, 4> = shared(); // two per warpgroup
        let map: SharedMap<Tile<C, Shape2<64, COLS>, Swizzle128>> = shared();
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

        let across = n.div_ceil(N);
        let steps = k.div_ceil(64);
        let clusters = grid_dim().x;
        let mut at = [0u32; 3];
        let mut turn = cluster_idx().x;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 {
                known.wait(0);
                if elect_one() {
                    let whole = first_halved.get(0);
                    let meets = block_in_cluster().y == 0 && steps >= LONG;
                    let mut seen = 0u32;
                    let mut producer = ring.producer();
                    loop {
                        let unit = share_of(turn, whole)[0];
                        let end = seek::<false, TALL>(&mut at, unit, groups, ends, across);
                        if at[0] == groups {
                            break;
                        }
                        let tile = place::<N, TALL>(unit - at[1], end - at[2], across);
                        let row = at[2] + tile[0];
                        if meets {
                            meet(ended, seen, turn - cluster_idx().x, steps / 4);
                        }
                        for step in 0..steps {
                            if meets && step + COUNTED == steps {
                                let _ = ended.atomic_add(0, 1);
                            }
                            if meets && step + LOOKED == steps {
                                seen = ended.atomic_add(0, 0) as u32;
                            }
                            let slot = producer.acquire();
                            let of_b =
                                if MN_B { [at[0], step * 64, tile[1]] } else { [at[0], tile[1], step * 64] };
                            if TALL && tile[2] == 0 {
                                a.load(slot.0, [row, step * 64], slot.barrier());
                                b_half.load_sliced(slot.1, of_b, slot.barrier(), ClusterAxis::Y);
                            } else {
                                a_half.load_sliced(slot.0, [row, step * 64], slot.barrier(), ClusterAxis::Y);
                                b.load(slot.1, of_b, slot.barrier());
                            }
                        }
                        turn += clusters;
                    }
                    producer.drain();
                    if meets && (ended.atomic_add(0, 1 << 32) >> 32) as u32 + 1 == clusters {
                        let _ = ended.atomic_exchange(0, 0); // for the next launch
                    }
                }
            } else if warp_idx() == 1 {
                let mut units = 0u32;
                for group in (lane_idx()..groups).step_by(32) {
                    let start = if group == 0 { 0 } else { row_ends.get(group - 1) };
                    let end = row_ends.get(group);
                    assert!(start <= end && end <= m, "`ends` must be ascending, and at most the rows of A");
                    ends.set(group, end);
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
                    let share = share_of(turn, whole);
                    let unit = share[0];
                    let idle = share[1];
                    let end = seek::<false, TALL>(&mut at, unit, groups, ends, across);
                    if at[0] == groups {
                        break;
                    }
                    let tile = place::<N, TALL>(unit - at[1], end - at[2], across);
                    let row = at[2] + tile[0];
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
                        for j in unroll(0..N / COLS) {
                            for warpgroup in unroll(0..2u32) {
                                let i = warpgroup * 2 + j % 2;
                                filled[i].wait((tiles * (N / COLS / 2) + j / 2) & 1);
                                if row + warpgroup * 64 < end && warpgroup != idle {
                                    maps.at(mine).store([row + warpgroup * 64, tile[1] + j * COLS], outs[i]);
                                    bulk_commit_group();
                                    bulk_wait_group_read::<0>();
                                }
                                stored[i].arrive();
                            }
                        }
                    }
                    tiles += 1;
                    turn += clusters;
                }
                if leader {
                    bulk_wait_group::<0>();
                }
            }
        } else {
            setmaxnreg_inc::<232>();
            let me = warpgroup_idx() - 1;
            let mut tiles = 0u32;
            known.wait(0);
            let whole = warp_reduce_max(first_halved.get(0));
            let mut consumer = ring.consumer();
            loop {
                let share = share_of(turn, whole);
                let unit = share[0];
                let idle = share[1];
                let end = seek::<true, TALL>(&mut at, unit, groups, ends, across);
                if at[0] == groups {
                    break;
                }
                let tile = place::<N, TALL>(unit - at[1], end - at[2], across);
                let row = at[2] + tile[0] + me * 64;
                turn += clusters;
                if row >= end || me == idle {
                    for _ in 0..steps {
                        let slot = consumer.wait();
                        sync_warp(); // all lanes have waited, as a matmul would ensure
                        if elect_one() {
                            slot.release_cluster();
                        }
                    }
                    for j in unroll(0..N / COLS) {
                        stored[me * 2 + j % 2].wait((tiles * (N / COLS / 2) + j / 2) & 1 ^ 1);
                        filled[me * 2 + j % 2].arrive();
                    }
                    tiles += 1;
                    continue;
                }
                let mut sum = Accumulator::<f32, 64, N>::zero();
                let slot = consumer.wait();
                let mut flight = sum.mma(slot.0.band::<64>(me), slot.1.t_if::<MN_B>(), slot);
                for _ in 1..steps {
                    let slot = consumer.wait();
                    let done = flight.mma(slot.0.band::<64>(me), slot.1.t_if::<MN_B>(), slot);
                    if elect_one() {
                        done.release_cluster();
                    }
                }
                let last = flight.wait();
                if elect_one() {
                    last.release_cluster();
                }
                for j in unroll(0..N / COLS) {
                    stored[me * 2 + j % 2].wait((tiles * (N / COLS / 2) + j / 2) & 1 ^ 1);
                    sum.columns::<COLS>(j).store(outs[me * 2 + j % 2]);
                    fence_proxy_async();
                    filled[me * 2 + j % 2].arrive();
                }
                tiles += 1;
            }
        }
    }
}
