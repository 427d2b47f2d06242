//! Cross-entropy of many rows, which stay in shared memory between the loss and the gradient.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Rows in pieces.
///
/// A cluster has one row after the other, and its blocks have equal shares of it. A share is a
/// sequence of pieces, each of which fills a slot of shared memory. A block walks over its pieces
/// twice: first for the sum, and, once the cluster has added up all sums, for the gradient, which
/// replaces the piece in shared memory. Meanwhile, the copy engine fills the other slots with the
/// pieces of the next rows.
#[tma_module]
pub mod pieces {
    use tma_runtime::prelude::*;

    use crate::model::cross_entropy::kernel::rows::{
        LN_2, Row, base_of, distance_below, logit, power, row_at,
    };
    use crate::model::cross_entropy::running::sums::{Running, add, excess, powers};
    use crate::model::stages::of_stages::{rounded, unpacked};

    /// Threads of a block.
    pub const THREADS: u32 = 256;

    /// Warps of a block.
    const WARPS: u32 = 8;

    /// Vectors of a piece at most: four for each thread.
    pub const VECTORS: u32 = 1024;

    /// The blocks of a multiprocessor, which hide each other's barriers.
    pub const BLOCKS: u32 = 2;

    /// Slots of a block.
    const SLOTS: u32 = 6;

    /// Pieces of a share at most. The other slots have the next row.
    pub const MOST_PIECES: u32 = 4;

    /// How a row is divided.
    #[derive(Clone, Copy)]
    pub struct Shares {
        /// The number of rows.
        pub rows: u32,
        /// The columns of a row.
        pub columns: u32,
        /// The pieces of a block's share.
        pub pieces: u32,
        /// The vectors of a piece.
        pub vectors: u32,
        /// The distance between rows.
        pub stride: u64,
        /// The label of rows that do not count.
        pub ignored: u32,
    }

    /// Adjacent columns of a row.
    #[derive(Clone, Copy)]
    pub struct Piece {
        /// The first column.
        pub column: u32,
        /// The number of columns: whole vectors.
        pub count: u32,
        /// The columns from the first one to the end of the block's share or of the row.
        pub left: u32,
    }

    /// Orders this thread's accesses to the block's slots before those of copies. In a kernel that
    /// reads the arrays of other blocks, `fence_proxy_async()` is for the shared memory of the
    /// cluster, and waits for all earlier accesses to global memory as well. No other block reads
    /// slots.
    #[tma_device]
    pub fn fence_slots() {
        // SAFETY: the instruction only orders accesses.
        unsafe { ptx!("fence.proxy.async.shared::cta;", volatile) };
    }

    /// Returns a piece of this block's share of a row. The last ones may be empty.
    #[tma_device]
    pub fn piece_of(shares: Shares, row: Row, piece: u32, vector: u32) -> Piece {
        let of_piece = shares.vectors * vector;
        let column = min(row.head + (cluster_rank() * shares.pieces + piece) * of_piece, row.end);
        let left = min((shares.pieces - piece) * of_piece, row.end - column);
        Piece { column, count: min(of_piece, left), left }
    }

    /// The next piece that is to be loaded, and its slot.
    #[derive(Clone, Copy)]
    pub struct Cursor {
        /// The row.
        pub row: u32,
        /// The piece of the block's share.
        pub piece: u32,
        /// The slot.
        pub slot: u32,
    }

    /// Returns the first of the cluster's rows, from this one on, that counts.
    #[tma_device]
    pub fn counted(labels: Global<u32>, shares: Shares, first: u32) -> u32 {
        let mut row = first;
        let mut is_found = row >= shares.rows;
        while !is_found {
            if labels.get(row) == shares.ignored {
                row += grid_dim().x / cluster_dim().x;
                is_found = row >= shares.rows;
            } else {
                is_found = true;
            }
        }
        row
    }

    /// Starts the load of the next piece, if there is one, and returns the one after it. One thread
    /// calls it, once nothing else uses the slot.
    #[tma_device]
    pub fn load_next<T: TileElement, const LEN: u32, const V: usize, const IN_PLACE: u32>(
        logits: Option<Global<T>>,
        gradient: Option<Global<T>>,
        labels: Global<u32>,
        shares: Shares,
        cursor: Cursor,
        slots: Stages<SharedArray<T, LEN>, SLOTS>,
        full: Stages<Barrier, SLOTS>,
    ) -> Cursor {
        let mut next = cursor;
        if cursor.row < shares.rows {
            let row = row_at(cursor.row as u64 * shares.stride, shares.columns, V as u32);
            let piece = piece_of(shares, row, cursor.piece, V as u32);
            full[cursor.slot].arrive_expect_tx(piece.count * size_of::<T>() as u32);
            if piece.count > 0 {
                let start = row.start + piece.column as u64;
                if IN_PLACE == 1 {
                    if let Some(from) = gradient {
                        from.bulk_load(slots[cursor.slot], 0, piece.count, start, full[cursor.slot]);
                    }
                } else {
                    if let Some(from) = logits {
                        from.bulk_load(slots[cursor.slot], 0, piece.count, start, full[cursor.slot]);
                    }
                }
            }
            next.slot = if cursor.slot + 1 == SLOTS { 0 } else { cursor.slot + 1 };
            next.piece = cursor.piece + 1;
            if next.piece == shares.pieces {
                next.piece = 0;
                next.row = counted(labels, shares, cursor.row + grid_dim().x / cluster_dim().x);
            }
        }
        next
    }

    /// Computes what [`losses`](super::super::kernel::rows::losses) does, of rows whose shares fit
    /// in shared memory.
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
        pieces: u32,
        vectors: u32,
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
        let full: Stages<Barrier, SLOTS> = shared();
        // Two of each: a row's numbers are read while those of the next one are written.
        let maxima: Stages<SharedArray<f32, WARPS>, 2> = shared();
        let sums: Stages<SharedArray<f32, WARPS>, 2> = shared();
        let distances: Stages<SharedArray<f32, WARPS>, 2> = shared();
        let counts: Stages<SharedArray<f32, WARPS>, 2> = shared();
        let label_logit: SharedArray<f32, WARPS> = shared();
        let leader = thread_idx().x == 0;
        let loader = thread_idx().x == 32; // another warp, so that both work at a time
        let blocks = cluster_dim().x;
        let clusters = grid_dim().x / blocks;
        let shares = Shares { rows, columns, pieces, vectors, stride: logits_row, ignored };
        let thread = cluster_rank() * THREADS + thread_idx().x;
        let is_first = thread == 0;
        // Twice the share of an element in a mean.
        let share = 2.0 / cast::<f32>(columns);
        if leader {
            for i in 0..SLOTS {
                full[i].init(1);
            }
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_wait();
        grid_dependency_launch();

        let mut factor = gradient_factor;
        if let Some(count) = count {
            factor = gradient_factor / cast::<f32>(count.get(0));
        }
        let mut index = block_idx().x / blocks;
        let mut ahead = Cursor { row: index, piece: 0, slot: 0 };
        if loader {
            ahead.row = counted(labels, shares, index);
            for _ in 0..SLOTS - 1 {
                ahead =
                    load_next::<T, LEN, V, IN_PLACE>(logits, gradient, labels, shares, ahead, slots, full);
            }
        }

        let mut slot = 0;
        let mut parity = 0;
        let mut side = 0;
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
                        column += blocks * (THREADS * V as u32);
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

                let mut mine =
                    Running { most: f32::NEG_INFINITY, sum: 0.0, origin: 0.0, distance: 0.0, elements: 0.0 };
                let mut current = slot;
                let mut left = piece_of(shares, row, 0, V as u32).left / V as u32;
                for _ in 0..pieces {
                    let end = min(left, vectors);
                    left -= end;
                    full[current].wait(parity);
                    if end == VECTORS {
                        // Without conditions, which take as many instructions as the sums.
                        let mut x = [[0.0f32; V]; 4];
                        for k in unroll(0..4u32) {
                            let vector = thread_idx().x + k * THREADS;
                            x[k as usize] = unpacked::<FORM, V>(words[current].get_vec::<4>(vector * 4));
                        }
                        mine = add::<V, 4, 1>(mine, x, thread_idx().x, THREADS, end, share, smoothing > 0.0);
                    } else if thread_idx().x < end {
                        let mut x = [[f32::NEG_INFINITY; V]; 4];
                        for k in unroll(0..4u32) {
                            let vector = thread_idx().x + k * THREADS;
                            if vector < end {
                                x[k as usize] = unpacked::<FORM, V>(words[current].get_vec::<4>(vector * 4));
                            }
                        }
                        mine = add::<V, 4, 0>(mine, x, thread_idx().x, THREADS, end, share, smoothing > 0.0);
                    }
                    if gradient.is_none() {
                        fence_slots(); // the next piece replaces what was read
                        sync_threads();
                        if loader {
                            ahead = load_next::<T, LEN, V, IN_PLACE>(
                                logits, gradient, labels, shares, ahead, slots, full,
                            );
                        }
                    }
                    current += 1;
                    if current == SLOTS {
                        current = 0;
                        parity ^= 1;
                    }
                }
                if is_edge {
                    mine = add::<1, 1, 1>(mine, [[edge; 1]; 1], 0, 1, 1, share, smoothing > 0.0);
                }

                // The gradient may replace the logit after the barrier. What is in shared memory has
                // been read.
                if is_first {
                    label_logit.set(0, of_label);
                }

                // All warps of the cluster exchange their numbers.
                let of_warp = warp_reduce_max(mine.most);
                let warp_base = base_of(of_warp);
                let of_thread = mine.sum * excess(base_of(mine.most));
                let warp_sum = warp_reduce_add(of_thread * power(mine.most, warp_base));
                if lane_idx() == 0 {
                    maxima[side].set(warp_idx(), of_warp);
                    sums[side].set(warp_idx(), warp_sum);
                }
                if smoothing > 0.0 {
                    let moved_to_warp = distance_below(mine.origin, warp_base, mine.elements * share);
                    let warp_distance = warp_reduce_add(mine.distance + moved_to_warp);
                    let warp_elements = warp_reduce_add(mine.elements);
                    if lane_idx() == 0 {
                        distances[side].set(warp_idx(), warp_distance);
                        counts[side].set(warp_idx(), warp_elements);
                    }
                }
                sync_cluster();
                let mut of_lane = [f32::NEG_INFINITY; 2];
                let mut lane_sums = [0.0f32; 2];
                for part in unroll(0..2usize) {
                    let warp = lane_idx() + 32 * part as u32;
                    if warp < blocks * WARPS {
                        of_lane[part] = remote(maxima[side], warp / WARPS).get(warp % WARPS);
                        lane_sums[part] = remote(sums[side], warp / WARPS).get(warp % WARPS);
                    }
                }
                let of_row = base_of(warp_reduce_max(max(of_lane[0], of_lane[1])));
                let mut scaled = 0.0f32;
                for part in unroll(0..2usize) {
                    scaled += lane_sums[part] * power(of_lane[part], of_row);
                }
                let total = warp_reduce_add(scaled);
                let mut mean_distance = 0.0f32;
                if smoothing > 0.0 {
                    let mut moved = 0.0f32;
                    for part in unroll(0..2usize) {
                        let warp = lane_idx() + 32 * part as u32;
                        if warp < blocks * WARPS {
                            let elements = remote(counts[side], warp / WARPS).get(warp % WARPS);
                            moved += remote(distances[side], warp / WARPS).get(warp % WARPS);
                            moved += distance_below(base_of(of_lane[part]), of_row, elements * share);
                        }
                    }
                    mean_distance = warp_reduce_add(moved);
                }
                side ^= 1;

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
                    let of_vectors = of_power * excess(of_row);
                    if is_edge {
                        let mut y = fma(power(edge, of_row), of_power, of_all);
                        if edge_column == label {
                            y -= at_label;
                        }
                        out.set(to + edge_column as u64, cast::<T>(y));
                    }
                    for piece in 0..pieces {
                        let of_piece = piece_of(shares, row, piece, V as u32);
                        for k in unroll(0..4u32) {
                            let vector = thread_idx().x + k * THREADS;
                            let column = of_piece.column + vector * V as u32;
                            if vector * (V as u32) < of_piece.count {
                                let mut y = unpacked::<FORM, V>(words[slot].get_vec::<4>(vector * 4));
                                y = powers::<V>(y, of_row);
                                for i in unroll(0..V) {
                                    y[i] = fma(y[i], of_vectors, of_all);
                                }
                                if column <= label && label < column + V as u32 {
                                    for i in unroll(0..V) {
                                        if column + i as u32 == label {
                                            y[i] -= at_label;
                                        }
                                    }
                                }
                                slots[slot].set_vec(vector * V as u32, rounded::<T, V>(y));
                            }
                        }
                        fence_slots();
                        if leader {
                            // The stores of the previous piece, whose slot is next, have read it.
                            bulk_wait_group_read::<0>();
                        }
                        sync_threads();
                        if leader {
                            if of_piece.count > 0 {
                                let start = to + of_piece.column as u64;
                                out.bulk_store(start, slots[slot], 0, of_piece.count);
                            }
                            bulk_commit_group();
                        }
                        if loader {
                            ahead = load_next::<T, LEN, V, IN_PLACE>(
                                logits, gradient, labels, shares, ahead, slots, full,
                            );
                        }
                        slot = if slot + 1 == SLOTS { 0 } else { slot + 1 };
                    }
                } else {
                    slot = current;
                }
            }
            index = next;
            label = next_label;
        }
        if leader {
            bulk_wait_group_read::<0>();
        }
        sync_cluster(); // no block ends while others read its shared memory
    }
}
