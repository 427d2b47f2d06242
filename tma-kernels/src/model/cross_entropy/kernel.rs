//! The kernels of cross-entropy.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Rows of logits, each of which a cluster of blocks reads.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    /// Threads of a block.
    pub const THREADS: u32 = 256;

    /// Warps of a block.
    const WARPS: u32 = 8;

    /// The elements of a row that each thread keeps in registers. With twice as many of 16 bits,
    /// ptxas has no registers left for loads, and unpacks each vector before it loads the next ones.
    pub const KEPT: usize = 32;

    /// Threads of the blocks that add numbers of all rows.
    const MANY: u32 = 1024;

    /// Warps of these.
    const MANY_WARPS: u32 = 32;

    /// log2(e).
    pub const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;

    /// ln(2).
    pub const LN_2: f32 = 11_629_080.0 / 16_777_216.0;

    /// A row in memory. Vectors begin at multiples of their size, so that a row may have elements
    /// before the first whole vector and after the last.
    #[derive(Clone, Copy)]
    pub struct Row {
        /// The index of its first element.
        pub start: u64,
        /// The elements before the first whole vector.
        pub head: u32,
        /// The column after the last whole vector.
        pub end: u32,
    }

    /// Returns the row that begins at an element. The size of a vector is a power of two.
    #[tma_device]
    pub fn row_at(start: u64, columns: u32, vector: u32) -> Row {
        let over = start as u32 & (vector - 1);
        let head = min((vector - over) & (vector - 1), columns);
        Row { start, head, end: head + ((columns - head) & !(vector - 1)) }
    }

    /// Loads the thread's vectors of a part of a row, from column `first` on. Elements beyond the
    /// whole vectors are -∞. An index is compared with the length by a condition of the load, so
    /// that the loads of several vectors do not wait for each other.
    #[tma_device]
    pub fn fetch<T: TileElement + Number, const K: usize, const V: usize>(
        from: Global<T>,
        row: Row,
        first: u32,
        step: u32,
    ) -> [[f32; V]; K] {
        let mut vectors = [[cast::<T>(f32::NEG_INFINITY); V]; K];
        for k in unroll(0..K) {
            let column = first + k as u32 * step;
            let i = row.start + column as u64;
            if column < row.end && i < from.len().saturating_sub(V as u64 - 1) {
                vectors[k] = from.get_vec::<V>(i);
            }
        }
        let mut x = [[0.0f32; V]; K];
        for k in unroll(0..K) {
            for i in unroll(0..V) {
                x[k][i] = cast::<f32>(vectors[k][i]);
            }
        }
        x
    }

    /// Loads the same from the logits, or from what becomes their gradient.
    #[tma_device]
    pub fn fetch_logits<T: TileElement + Number, const K: usize, const V: usize, const IN_PLACE: u32>(
        logits: Option<Global<T>>,
        gradient: Option<Global<T>>,
        row: Row,
        first: u32,
        step: u32,
    ) -> [[f32; V]; K] {
        let mut x = [[f32::NEG_INFINITY; V]; K];
        if IN_PLACE == 1 {
            if let Some(gradient) = gradient {
                x = fetch::<T, K, V>(gradient, row, first, step);
            }
        } else {
            if let Some(logits) = logits {
                x = fetch::<T, K, V>(logits, row, first, step);
            }
        }
        x
    }

    /// Loads one logit.
    #[tma_device]
    pub fn logit<T: TileElement + Number, const IN_PLACE: u32>(
        logits: Option<Global<T>>,
        gradient: Option<Global<T>>,
        i: u64,
    ) -> f32 {
        let mut x = 0.0f32;
        if IN_PLACE == 1 {
            if let Some(gradient) = gradient {
                x = cast::<f32>(gradient.get(i));
            }
        } else {
            if let Some(logits) = logits {
                x = cast::<f32>(logits.get(i));
            }
        }
        x
    }

    /// Returns the number that powers are relative to, for elements of this maximum.
    #[tma_device]
    pub fn base_of(greatest: f32) -> f32 {
        if greatest == f32::NEG_INFINITY { 0.0 } else { greatest }
    }

    /// Returns the power of an element.
    #[tma_device]
    pub fn power(x: f32, base: f32) -> f32 {
        exp2_ftz((x - base) * LOG2_E)
    }

    /// Returns the distance of a number from another one above it, times half of a factor. Halves
    /// keep the difference finite.
    #[tma_device]
    pub fn distance_below(x: f32, above: f32, factor: f32) -> f32 {
        (0.5 * above - 0.5 * x) * factor
    }

    /// Computes the losses of rows, and the gradients of their logits. A cluster has a row. If there
    /// are no logits, they are where their gradients will be. Otherwise, gradients must begin at as
    /// many elements from a multiple of a vector as logits do.
    ///
    /// A thread keeps `KEPT` elements of its row in registers. Those of longer rows are loaded again
    /// for the gradient, except the last ones.
    #[tma_kernel(threads = THREADS, min_blocks = 3, cluster = launch, unchecked, instances(
        T in [bf16, f16, f32],
        IN_PLACE in [apart = 0, in_place = 1],
        let V = 16 / size_of::<T>(),
        let K = KEPT / V,
    ))]
    pub fn losses<T, const IN_PLACE: u32, const V: usize, const K: usize>(
        logits: Option<Global<T>>,
        gradient: Option<Global<T>>,
        labels: Global<u32>,
        losses: Global<f32>,
        log_sums: Option<Global<f32>>,
        count: Option<Global<u32>>,
        columns: u32,
        ignored: u32,
        smoothing: f32,
        z_loss: f32,
        gradient_factor: f32,
        logits_row: u64,
        gradient_row: u64,
    ) where
        T: TileElement + Number,
    {
        let maxima: SharedArray<f32, WARPS> = shared();
        let sums: SharedArray<f32, WARPS> = shared();
        let distances: SharedArray<f32, WARPS> = shared();
        let counts: SharedArray<f32, WARPS> = shared();
        grid_dependency_wait();
        grid_dependency_launch();
        let blocks = cluster_dim().x;
        let index = block_idx().x / blocks;
        let thread = cluster_rank() * THREADS + thread_idx().x;
        let step = blocks * (THREADS * V as u32);
        let span = K as u32 * step;
        let row = row_at(index as u64 * logits_row, columns, V as u32);
        let label = labels.get(index);
        let is_ignored = label == ignored;
        let is_column = label < columns;
        // Twice the share of an element in a mean.
        let share = 2.0 / cast::<f32>(columns);

        // An element beside the whole vectors.
        let edge_column = if thread < row.head { thread } else { thread - row.head + row.end };
        let is_edge = thread < row.head + (columns - row.end);
        let has_edge = is_edge && !is_ignored;
        let mut edge = f32::NEG_INFINITY;
        if has_edge {
            edge = logit::<T, IN_PLACE>(logits, gradient, row.start + edge_column as u64);
        }
        let mut most = max(edge, f32::NEG_INFINITY); // not NaN
        let mut base = base_of(most);
        let mut sum = power(edge, base);

        // The distances of elements from the greatest one of the thread's first part.
        let mut origin = base;
        let mut distance = 0.0f32;
        let mut elements = 0.0f32;

        let first = row.head + thread * V as u32;
        let mut kept = [[0.0f32; V]; K];
        let end = if is_ignored { 0 } else { row.end };
        let mut start = 0;
        while row.head + start < end {
            kept = fetch_logits::<T, K, V, IN_PLACE>(logits, gradient, row, first + start, step);
            let mut greatest = most;
            for k in unroll(0..K) {
                for i in unroll(0..V) {
                    greatest = max(greatest, kept[k][i]);
                }
            }
            let next = base_of(greatest);
            if greatest > most {
                sum *= power(most, next);
            }
            most = greatest;
            base = next;
            origin = if start == 0 { next } else { origin };
            for k in unroll(0..K) {
                if first + start + k as u32 * step < row.end {
                    if smoothing > 0.0 {
                        for i in unroll(0..V) {
                            distance += distance_below(kept[k][i], origin, share);
                        }
                        elements += V as f32;
                    }
                    let mut powers = 0.0f32;
                    for i in unroll(0..V) {
                        kept[k][i] = power(kept[k][i], base);
                        powers += kept[k][i];
                    }
                    sum += powers;
                }
            }
            start += span;
        }

        if has_edge {
            distance += distance_below(edge, origin, share);
            elements += 1.0;
        }
        // Before the barrier, since the gradient may replace it afterwards.
        let mut of_label = 0.0f32;
        if thread == 0 && is_column && !is_ignored {
            of_label = logit::<T, IN_PLACE>(logits, gradient, row.start + label as u64);
        }
        let mut factor = gradient_factor;
        if let Some(count) = count {
            factor = gradient_factor / cast::<f32>(count.get(0));
        }

        // All warps of the cluster exchange their numbers once.
        let of_warp = warp_reduce_max(most);
        let warp_base = base_of(of_warp);
        let warp_sum = warp_reduce_add(sum * power(most, warp_base));
        distance += distance_below(origin, warp_base, elements * share);
        let warp_distance = warp_reduce_add(distance);
        let warp_elements = warp_reduce_add(elements);
        if lane_idx() == 0 {
            maxima.set(warp_idx(), of_warp);
            sums.set(warp_idx(), warp_sum);
            distances.set(warp_idx(), warp_distance);
            counts.set(warp_idx(), warp_elements);
        }
        sync_cluster();
        let mut of_lane = [f32::NEG_INFINITY; 2];
        let mut lane_sums = [0.0f32; 2];
        let mut lane_distances = [0.0f32; 2];
        let mut lane_elements = [0.0f32; 2];
        for half in unroll(0..2usize) {
            let warp = lane_idx() + 32 * half as u32;
            if warp < blocks * WARPS {
                of_lane[half] = remote(maxima, warp / WARPS).get(warp % WARPS);
                lane_sums[half] = remote(sums, warp / WARPS).get(warp % WARPS);
                lane_distances[half] = remote(distances, warp / WARPS).get(warp % WARPS);
                lane_elements[half] = remote(counts, warp / WARPS).get(warp % WARPS);
            }
        }
        cluster_arrive();
        let of_row = base_of(warp_reduce_max(max(of_lane[0], of_lane[1])));
        let mut scaled = 0.0f32;
        let mut moved = 0.0f32;
        for half in unroll(0..2usize) {
            scaled += lane_sums[half] * power(of_lane[half], of_row);
            let origin = base_of(of_lane[half]);
            moved += lane_distances[half] + distance_below(origin, of_row, lane_elements[half] * share);
        }
        let total = warp_reduce_add(scaled);
        let mean_distance = warp_reduce_add(moved);

        let log_sum = log2(total) * LN_2;
        let log_sum_exp = of_row + log_sum;
        if thread == 0 {
            let mut loss = log_sum;
            if smoothing < 1.0 {
                loss -= (1.0 - smoothing) * (of_label - of_row);
            }
            if smoothing > 0.0 {
                loss += smoothing * mean_distance;
            }
            if z_loss > 0.0 {
                loss += z_loss * log_sum_exp * log_sum_exp;
            }
            if !is_column {
                loss = f32::NAN;
            }
            losses.set(index, if is_ignored { 0.0 } else { loss });
            if let Some(log_sums) = log_sums {
                log_sums.set(index, if is_ignored { 0.0 } else { log_sum_exp });
            }
        }

        if let Some(out) = gradient {
            if !is_column {
                factor = f32::NAN;
            }
            let mut of_power = recip(total) * factor;
            if z_loss > 0.0 {
                of_power = fma(2.0 * z_loss * log_sum_exp, of_power, of_power);
            }
            let mut at_label = (1.0 - smoothing) * factor;
            let mut of_all = -(smoothing * factor / cast::<f32>(columns));
            if is_ignored {
                of_power = 0.0;
                at_label = 0.0;
                of_all = 0.0;
            }
            let to = index as u64 * gradient_row;
            if is_edge {
                let mut y = of_all; // that of an ignored row
                if has_edge {
                    y = fma(power(edge, of_row), of_power, of_all);
                }
                if edge_column == label {
                    y -= at_label;
                }
                out.set(to + edge_column as u64, cast::<T>(y));
            }
            // The powers in registers are relative to the greatest element of the thread. If that is
            // -∞, they are zeros, and the power of 0 could be infinite.
            let of_thread = if most == f32::NEG_INFINITY { 0.0 } else { power(base, of_row) };
            let mut scale = if is_ignored { 0.0 } else { of_power * of_thread };
            start = (row.end - row.head).div_ceil(span) * span;
            while start > 0 {
                start -= span;
                for k in unroll(0..K) {
                    let column = first + start + k as u32 * step;
                    if column < row.end {
                        let mut y = [cast::<T>(0.0f32); V];
                        for i in unroll(0..V) {
                            let mut of_element = fma(kept[k][i], scale, of_all);
                            if column + i as u32 == label {
                                of_element -= at_label;
                            }
                            y[i] = cast::<T>(of_element);
                        }
                        let i = to + column as u64;
                        if i < out.len().saturating_sub(V as u64 - 1) {
                            out.set_vec(i, y);
                        }
                    }
                }
                if start > 0 && !is_ignored {
                    kept =
                        fetch_logits::<T, K, V, IN_PLACE>(logits, gradient, row, first + start - span, step);
                    for k in unroll(0..K) {
                        for i in unroll(0..V) {
                            kept[k][i] = power(kept[k][i], of_row);
                        }
                    }
                    scale = of_power;
                }
            }
        }
        cluster_wait(); // no block ends while others read its shared memory
    }

    /// Counts the labels that are not ignored.
    #[tma_kernel(threads = MANY, unchecked)]
    pub fn count_labels(labels: Global<u32>, count: Global<u32>, ignored: u32) {
        let of_warps: SharedArray<u32, MANY_WARPS> = shared();
        grid_dependency_launch();
        grid_dependency_wait();
        let mut mine = 0u32;
        let mut i = thread_idx().x as u64;
        while i < labels.len() {
            if labels.get(i) != ignored {
                mine += 1;
            }
            i += MANY as u64;
        }
        let of_warp = warp_reduce_add(mine);
        if lane_idx() == 0 {
            of_warps.set(warp_idx(), of_warp);
        }
        sync_threads();
        if warp_idx() == 0 {
            let all = warp_reduce_add(of_warps.get(lane_idx()));
            if lane_idx() == 0 {
                count.set(0, all);
            }
        }
    }

    /// Divides the sum of all losses by the count, or writes 0 if that is 0.
    #[tma_kernel(threads = MANY, unchecked)]
    pub fn mean_loss(losses: Global<f32>, count: Global<u32>, mean: Global<f32>) {
        let of_warps: SharedArray<f64, MANY_WARPS> = shared();
        grid_dependency_launch();
        grid_dependency_wait();
        let mut mine = 0.0f64;
        let mut i = thread_idx().x as u64;
        while i < losses.len() {
            mine += cast::<f64>(losses.get(i));
            i += MANY as u64;
        }
        let of_warp = warp_reduce_add(mine);
        if lane_idx() == 0 {
            of_warps.set(warp_idx(), of_warp);
        }
        sync_threads();
        if warp_idx() == 0 {
            let all = warp_reduce_add(of_warps.get(lane_idx()));
            if lane_idx() == 0 {
                let count = count.get(0);
                let mut result = 0.0f32;
                if count > 0 {
                    result = cast::<f32>(all / cast::<f64>(count));
                }
                mean.set(0, result);
            }
        }
    }
}
