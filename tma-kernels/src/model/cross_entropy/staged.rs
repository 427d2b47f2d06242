//! Cross-entropy of many rows, which stay in shared memory between the loss and the gradient.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Rows in pieces.
///
/// A cluster has one row after the other, and its blocks have equal shares of it. A share is a
/// sequence of pieces, each of which fills a slot of shared memory. A block walks over its pieces
/// twice: first for the sum, and, once the cluster has added up all sums, for the gradient, which
/// replaces the piece in shared memory. A warp loads pieces into slots that are free, and another
/// one stores those that are done. The other warps wait for each other only once in a row, for the
/// sums.
#[tma_module]
pub mod pieces {
    use tma_runtime::prelude::*;

    use crate::model::cross_entropy::copies::slots::{
        SLOTS, Shares, VECTORS, load_pieces, next_slot, piece_of, release, store_pieces, wait_in_block,
    };
    use crate::model::cross_entropy::kernel::rows::{LN_2, base_of, distance_below, logit, power, row_at};
    use crate::model::cross_entropy::running::sums::{Running, add, excess, powers};
    use crate::model::stages::of_stages::{rounded, unpacked};

    /// Threads of a block that compute.
    const COMPUTING: u32 = 256;

    /// Warps of these. The next one loads, and the last one stores.
    const WARPS: u32 = 8;

    /// The warps that compute in a cluster of four blocks, which are as many as lanes.
    const ALL_WARPS: u32 = 32;

    /// Threads of a block.
    pub const THREADS: u32 = COMPUTING + 64;

    /// The blocks of a multiprocessor, which hide each other's exchange of sums.
    pub const BLOCKS: u32 = 2;

    /// Returns the thread's vectors of a piece that has so many. Those beyond it are -∞, unless
    /// `WHOLE` is 1, and the piece has all.
    #[tma_device]
    pub fn vectors_of<const FORM: u32, const V: usize, const WORDS: u32, const WHOLE: u32>(
        words: SharedArray<u32, WORDS>,
        end: u32,
    ) -> [[f32; V]; 4] {
        let mut x = [[f32::NEG_INFINITY; V]; 4];
        for k in unroll(0..4u32) {
            let vector = thread_idx().x + k * COMPUTING;
            if WHOLE == 1 || vector < end {
                x[k as usize] = unpacked::<FORM, V>(words.get_vec::<4>(vector * 4));
            }
        }
        x
    }

    /// The gradients of a row.
    #[derive(Clone, Copy)]
    pub struct GradientFactors {
        /// The number that powers are relative to.
        pub base: f32,
        /// The factor of powers.
        pub of_power: f32,
        /// The gradient of every element beside that of its power.
        pub of_all: f32,
        /// The part that is subtracted at the label.
        pub at_label: f32,
        /// The column of the label.
        pub label: u32,
    }

    /// Replaces the thread's vectors of a piece, which begins at this column, by their gradients.
    #[tma_device]
    pub fn differentiate<
        T: TileElement + Number,
        const FORM: u32,
        const V: usize,
        const LEN: u32,
        const WORDS: u32,
        const WHOLE: u32,
    >(
        slot: SharedArray<T, LEN>,
        words: SharedArray<u32, WORDS>,
        first: u32,
        end: u32,
        factors: GradientFactors,
    ) {
        // The element at the label is computed by itself: with a condition for each element, all of
        // them would be in local memory.
        let at = factors.label.wrapping_sub(first);
        let is_at_label = at < end * V as u32 && at / V as u32 % COMPUTING == thread_idx().x;
        let mut of_label = [[0.0f32; 1]; 1];
        if is_at_label {
            of_label[0][0] = cast::<f32>(slot.get(at));
        }
        let mut y = powers::<V, 4>(vectors_of::<FORM, V, WORDS, WHOLE>(words, end), factors.base);
        for k in unroll(0..4u32) {
            for i in unroll(0..V) {
                y[k as usize][i] = fma(y[k as usize][i], factors.of_power, factors.of_all);
            }
            let vector = thread_idx().x + k * COMPUTING;
            if WHOLE == 1 || vector < end {
                slot.set_vec(vector * V as u32, rounded::<T, V>(y[k as usize]));
            }
        }
        if is_at_label {
            let power = powers::<1, 1>(of_label, factors.base)[0][0];
            slot.set(at, cast::<T>(fma(power, factors.of_power, factors.of_all) - factors.at_label));
        }
    }

    /// Computes what [`losses`](super::super::kernel::rows::losses) does, of rows whose shares fit
    /// in shared memory. The protocol checker does not decide it, because of its `ptx!`; the tests
    /// on the simulator check its barriers.
    #[tma_kernel(threads = THREADS, min_blocks = BLOCKS, cluster = launch, unchecked, instances(
        (T, FORM) in [bf16 = (bf16, 1), f16 = (f16, 0), f32 = (f32, 0)],
        IN_PLACE in [apart = 0, in_place = 1],
        let V = 16 / size_of::<T>(),
        let LEN = VECTORS * V as u32,
        let WORDS = VECTORS * 4,
    ))]
    pub fn losses_staged<
        T,
        const FORM: u32,
        const IN_PLACE: u32,
        const V: usize,
        const LEN: u32,
        const WORDS: u32,
    >(
        logits: Option<Global<T>>,
        gradient: Option<Global<T>>,
        labels: Global<u32>,
        losses: Global<f32>,
        log_sums: Option<Global<f32>>,
        count: Option<Global<u32>>,
        rows: u32,
        columns: u32,
        vectors: u32,
        pieces: u32,
        ignored: u32,
        smoothing: f32,
        z_loss: f32,
        gradient_factor: f32,
        logits_row: u64,
        gradient_row: u64,
    ) where
        T: TileElement + Number,
    {
        let slots: Stages<SharedArray<T, LEN>, SLOTS> = shared();
        let words: Stages<SharedArray<u32, WORDS>, SLOTS> = reuse(slots);
        let free: Stages<Barrier, SLOTS> = shared();
        let full: Stages<Barrier, SLOTS> = shared();
        let done: Stages<Barrier, SLOTS> = shared();
        // The numbers of all warps of the cluster. There are two of each: those of a row are read
        // while those of the next one are written.
        let maxima: Stages<SharedArray<f32, ALL_WARPS>, 2> = shared();
        let sums: Stages<SharedArray<f32, ALL_WARPS>, 2> = shared();
        let distances: Stages<SharedArray<f32, ALL_WARPS>, 2> = shared();
        let counts: Stages<SharedArray<f32, ALL_WARPS>, 2> = shared();
        let exchanged: Stages<Barrier, 2> = shared();
        let label_logit: SharedArray<f32, 1> = shared();
        let blocks = cluster_dim().x;
        let clusters = grid_dim().x / blocks;
        let shares = Shares { rows, columns, vectors, pieces, stride: logits_row, ignored };
        if thread_idx().x == 0 {
            for i in 0..SLOTS {
                free[i].init(if gradient.is_some() { 1 } else { WARPS });
                full[i].init(1);
                done[i].init(WARPS);
            }
            for i in 0..2u32 {
                exchanged[i].init(blocks * WARPS);
            }
            fence_barrier_init();
        }
        sync_cluster();
        grid_dependency_wait();
        grid_dependency_launch();

        if warp_idx() == WARPS {
            if lane_idx() == 0 {
                if IN_PLACE == 1 {
                    if let Some(from) = gradient {
                        load_pieces::<T, LEN, V>(from, labels, shares, slots, free, full);
                    }
                } else {
                    if let Some(from) = logits {
                        load_pieces::<T, LEN, V>(from, labels, shares, slots, free, full);
                    }
                }
            }
        } else if warp_idx() == WARPS + 1 {
            if lane_idx() == 0 {
                if let Some(to) = gradient {
                    store_pieces::<T, LEN, V>(to, gradient_row, labels, shares, slots, done, free);
                }
            }
        } else {
            let thread = cluster_rank() * COMPUTING + thread_idx().x;
            let is_first = thread == 0;
            // Twice the share of an element in a mean.
            let share = 2.0 / cast::<f32>(columns);
            let mut factor = gradient_factor;
            if let Some(count) = count {
                factor = gradient_factor / cast::<f32>(count.get(0));
            }
            let mut index = block_idx().x / blocks;
            let mut slot = 0;
            let mut parity = 0;
            let mut side = 0;
            let mut side_parity = 0;
            let mut label = labels.get(index);
            while index < rows {
                // The next label arrives while this row is summed.
                let next = index + clusters;
                let next_label = labels.get(min(next, rows - 1));
                let row = row_at(index as u64 * logits_row, columns, V as u32);
                let to = index as u64 * gradient_row;
                // An element beside the whole vectors.
                let edge_column = if thread < row.head { thread } else { thread - row.head + row.end };
                let is_edge = thread < row.head + (columns - row.end);
                if label == ignored {
                    if let Some(out) = gradient {
                        if is_edge {
                            out.set(to + edge_column as u64, cast::<T>(0.0f32));
                        }
                        let mut column = row.head + thread * V as u32;
                        while column < row.end {
                            out.set_vec(to + column as u64, [cast::<T>(0.0f32); V]);
                            column += blocks * (COMPUTING * V as u32);
                        }
                    }
                    if is_first {
                        losses.set(index, 0.0);
                        if let Some(log_sums) = log_sums {
                            log_sums.set(index, 0.0);
                        }
                    }
                } else {
                    let is_column = label < columns;
                    let mut edge = f32::NEG_INFINITY;
                    if is_edge {
                        edge = logit::<T, IN_PLACE>(logits, gradient, row.start + edge_column as u64);
                    }
                    let mut of_label = 0.0f32;
                    if is_first && is_column {
                        of_label = logit::<T, IN_PLACE>(logits, gradient, row.start + label as u64);
                    }

                    let mut mine = Running {
                        most: f32::NEG_INFINITY,
                        sum: 0.0,
                        origin: 0.0,
                        distance: 0.0,
                        elements: 0.0,
                    };
                    let mut current = slot;
                    for piece in 0..pieces {
                        let end = piece_of(shares, row, piece, V as u32).count / V as u32;
                        wait_in_block(full[current], parity);
                        let has_distances = smoothing > 0.0;
                        if end == VECTORS {
                            // Without conditions, which take as many instructions as the sums.
                            let x = vectors_of::<FORM, V, WORDS, 1>(words[current], end);
                            mine =
                                add::<V, 4, 1>(mine, x, thread_idx().x, COMPUTING, end, share, has_distances);
                        } else if thread_idx().x < end {
                            let x = vectors_of::<FORM, V, WORDS, 0>(words[current], end);
                            mine =
                                add::<V, 4, 0>(mine, x, thread_idx().x, COMPUTING, end, share, has_distances);
                        }
                        if gradient.is_none() {
                            release(free[current]);
                        }
                        current = next_slot(current);
                        if current == 0 {
                            parity ^= 1;
                        }
                    }
                    if is_edge {
                        mine = add::<1, 1, 1>(mine, [[edge; 1]; 1], 0, 1, 1, share, smoothing > 0.0);
                    }

                    // The store completes the load of the logit before the exchange, after which
                    // the gradient may replace it.
                    if is_first {
                        label_logit.set(0, of_label);
                    }

                    // Each warp sends its numbers to all blocks of the cluster.
                    let of_warp = warp_reduce_max(mine.most);
                    let warp_base = base_of(of_warp);
                    let of_thread = mine.sum * excess(base_of(mine.most));
                    let warp_sum = warp_reduce_add(of_thread * power(mine.most, warp_base));
                    let mut warp_distance = 0.0f32;
                    let mut warp_elements = 0.0f32;
                    if smoothing > 0.0 {
                        let moved = distance_below(mine.origin, warp_base, mine.elements * share);
                        warp_distance = warp_reduce_add(mine.distance + moved);
                        warp_elements = warp_reduce_add(mine.elements);
                    }
                    let lane = lane_idx();
                    sync_warp(); // all lanes have read the numbers of the row before the last one
                    if lane < blocks {
                        let at = cluster_rank() * WARPS + warp_idx();
                        remote(maxima[side], lane).set(at, of_warp);
                        remote(sums[side], lane).set(at, warp_sum);
                        if smoothing > 0.0 {
                            remote(distances[side], lane).set(at, warp_distance);
                            remote(counts[side], lane).set(at, warp_elements);
                        }
                        remote(exchanged[side], lane).arrive();
                    }
                    exchanged[side].wait(side_parity);
                    let mut of_lane = f32::NEG_INFINITY;
                    let mut lane_sum = 0.0f32;
                    let mut lane_distance = 0.0f32;
                    let mut lane_elements = 0.0f32;
                    if lane < blocks * WARPS {
                        of_lane = maxima[side].get(lane);
                        lane_sum = sums[side].get(lane);
                        if smoothing > 0.0 {
                            lane_distance = distances[side].get(lane);
                            lane_elements = counts[side].get(lane);
                        }
                    }
                    let of_row = base_of(warp_reduce_max(of_lane));
                    let total = warp_reduce_add(lane_sum * power(of_lane, of_row));
                    let mut mean_distance = 0.0f32;
                    if smoothing > 0.0 {
                        let moved = distance_below(base_of(of_lane), of_row, lane_elements * share);
                        mean_distance = warp_reduce_add(lane_distance + moved);
                    }
                    side ^= 1;
                    if side == 0 {
                        side_parity ^= 1;
                    }

                    let log_sum = log2(total) * LN_2;
                    let log_sum_exp = of_row + log_sum;
                    if is_first {
                        let mut loss = log_sum;
                        if smoothing < 1.0 {
                            loss -= (1.0 - smoothing) * (label_logit.get(0) - of_row);
                        }
                        if smoothing > 0.0 {
                            loss += smoothing * mean_distance;
                        }
                        if z_loss > 0.0 {
                            loss += z_loss * log_sum_exp * log_sum_exp;
                        }
                        losses.set(index, if is_column { loss } else { f32::NAN });
                        if let Some(log_sums) = log_sums {
                            log_sums.set(index, log_sum_exp);
                        }
                    }

                    if let Some(out) = gradient {
                        let of_row_factor = if is_column { factor } else { f32::NAN };
                        let mut of_power = recip(total) * of_row_factor;
                        if z_loss > 0.0 {
                            of_power = fma(2.0 * z_loss * log_sum_exp, of_power, of_power);
                        }
                        let at_label = (1.0 - smoothing) * of_row_factor;
                        let of_all = -(smoothing * of_row_factor / cast::<f32>(columns));
                        if is_edge {
                            let mut y = fma(power(edge, of_row), of_power, of_all);
                            if edge_column == label {
                                y -= at_label;
                            }
                            out.set(to + edge_column as u64, cast::<T>(y));
                        }
                        let factors = GradientFactors {
                            base: of_row,
                            of_power: of_power * excess(of_row),
                            of_all,
                            at_label,
                            label,
                        };
                        for piece in 0..pieces {
                            let of_piece = piece_of(shares, row, piece, V as u32);
                            let end = of_piece.count / V as u32;
                            if end == VECTORS {
                                differentiate::<T, FORM, V, LEN, WORDS, 1>(
                                    slots[slot],
                                    words[slot],
                                    of_piece.column,
                                    end,
                                    factors,
                                );
                            } else {
                                differentiate::<T, FORM, V, LEN, WORDS, 0>(
                                    slots[slot],
                                    words[slot],
                                    of_piece.column,
                                    end,
                                    factors,
                                );
                            }
                            release(done[slot]);
                            slot = next_slot(slot);
                        }
                    } else {
                        slot = current;
                    }
                }
                index = next;
                label = next_label;
            }
        }
        sync_cluster(); // no block ends while others write to its shared memory
    }
}
