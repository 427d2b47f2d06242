//! The kernels that choose tokens.

#![allow(clippy::eq_op, reason = "NaN differs from itself, and kernels have no `is_nan`")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a comparison with NaN is false")]
#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Rows of logits, each of which a cluster of blocks reads.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::{Part, load, shifted};

    /// Blocks of a cluster.
    pub const BLOCKS: u32 = 8;

    /// Threads of a block.
    pub const THREADS: u32 = 256;

    /// Warps of a block.
    const WARPS: u32 = 8;

    /// Vectors that a thread loads at a time.
    const K: usize = 4;

    /// log2(e).
    const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;

    /// ln(2).
    const LN_2: f32 = 11_629_080.0 / 16_777_216.0;

    /// The greatest score of several elements, and its first column.
    #[derive(Clone, Copy)]
    pub struct Best {
        /// The score.
        pub score: f32,
        /// The column.
        pub column: u32,
        /// Whether there is an element.
        pub exists: bool,
    }

    /// Returns the better one of the best of some columns and another score. Of equal scores the
    /// first one is better, and NaN is better than any number.
    #[tma_device]
    pub fn better(best: Best, score: f32, column: u32) -> Best {
        let has_nan = best.score != best.score;
        let is_better = !best.exists || !has_nan && !(score <= best.score);
        Best {
            score: if is_better { score } else { best.score },
            column: if is_better { column } else { best.column },
            exists: true,
        }
    }

    /// Returns a number whose order is that of the best: by score, then from the last column to the
    /// first. It is 0 if there is no element.
    #[tma_device]
    pub fn ranked(best: Best) -> u64 {
        let mut key = 0xffff_ffffu32; // NaN
        if best.score == best.score {
            let bits = (best.score + 0.0).to_bits(); // -0 becomes 0
            key = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
        }
        if best.exists { (key as u64) << 32 | !best.column as u64 } else { 0 }
    }

    /// Returns the column of a rank.
    #[tma_device]
    pub fn column_of(rank: u64) -> u32 {
        !(rank as u32)
    }

    /// The shared memory of reductions over the cluster.
    #[derive(Clone, Copy)]
    pub struct Scratch {
        /// Ranks of warps.
        pub ranks: SharedArray<u64, WARPS>,
        /// Sums of warps.
        pub sums: SharedArray<f32, WARPS>,
        /// Maxima, or counts of warps.
        pub counts: SharedArray<f32, WARPS>,
    }

    /// Returns the greatest rank, and the sums of two numbers or of one and the maximum of the
    /// other, of all threads of the cluster, which all call it.
    #[tma_device]
    pub fn reduced(scratch: Scratch, rank: u64, sum: f32, other: f32, is_max: bool) -> (u64, f32, f32) {
        let of_rank = warp_reduce_max(rank);
        let of_sum = warp_reduce_add(sum);
        let of_other = if is_max { warp_reduce_max(other) } else { warp_reduce_add(other) };
        sync_cluster(); // no block reads what an earlier call left any more
        if lane_idx() == 0 {
            scratch.ranks.set(warp_idx(), of_rank);
            scratch.sums.set(warp_idx(), of_sum);
            scratch.counts.set(warp_idx(), of_other);
        }
        sync_cluster();
        // Each warp reduces what all warps of the cluster have, two for each lane.
        let block = lane_idx() / 4;
        let warp = lane_idx() % 4 * 2;
        let ranks = remote(scratch.ranks, block);
        let sums = remote(scratch.sums, block);
        let counts = remote(scratch.counts, block);
        let all_ranks = warp_reduce_max(max(ranks.get(warp), ranks.get(warp + 1)));
        let all_sums = warp_reduce_add(sums.get(warp) + sums.get(warp + 1));
        let [a, b] = [counts.get(warp), counts.get(warp + 1)];
        let all_others = if is_max { warp_reduce_max(max(a, b)) } else { warp_reduce_add(a + b) };
        (all_ranks, all_sums, all_others)
    }

    /// Returns the part of a thread, of the row of its cluster.
    #[tma_device]
    pub fn part_of_cluster(vector: u32, row: u32) -> Part {
        let thread = cluster_rank() * THREADS + thread_idx().x;
        Part { row, exists: true, column: thread * vector, step: BLOCKS * THREADS * vector }
    }

    /// Finds the first greatest element of each row, or the logarithm of the probability of a
    /// token: the softmax's logarithm. Each row has a cluster.
    #[tma_kernel(threads = THREADS, cluster = BLOCKS, unchecked, instances(
        T in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn scan<T, const WIDE: usize, const V: usize, const W: usize>(
        x: Global<T>,
        greatest: Option<Global<u32>>,
        tokens: Option<Global<u32>>,
        log_probabilities: Option<Global<f32>>,
        columns: u32,
        x_row: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let ranks: SharedArray<u64, WARPS> = shared();
        let sums: SharedArray<f32, WARPS> = shared();
        let counts: SharedArray<f32, WARPS> = shared();
        let scratch = Scratch { ranks, sums, counts };
        let row = block_idx().x / BLOCKS;
        let from = row as u64 * x_row;
        let first = part_of_cluster(V as u32, row);
        let span = K as u32 * first.step;
        let leader = cluster_rank() == 0 && thread_idx().x == 0;
        if let Some(greatest) = greatest {
            let mut best = Best { score: f32::NEG_INFINITY, column: 0, exists: false };
            for start in (0..columns).step_by(span as usize) {
                let mine = shifted(first, start);
                let x = load::<T, K, V, W>(x, from, mine, columns);
                for k in unroll(0..K) {
                    let column = mine.column + k as u32 * mine.step;
                    if column < columns {
                        for i in unroll(0..V) {
                            best = better(best, x[k][i], column + i as u32);
                        }
                    }
                }
            }
            let (rank, _, _) = reduced(scratch, ranked(best), 0.0, 0.0, false);
            if leader {
                greatest.set(row, column_of(rank));
            }
        }
        if let Some(log_probabilities) = log_probabilities {
            // The sum of powers relative to the greatest element of the thread's.
            let mut most = f32::NEG_INFINITY;
            let mut sum = 0.0f32;
            for start in (0..columns).step_by(span as usize) {
                let mine = shifted(first, start);
                let x = load::<T, K, V, W>(x, from, mine, columns);
                let mut of_part = most;
                for k in unroll(0..K) {
                    if mine.column + k as u32 * mine.step < columns {
                        for i in unroll(0..V) {
                            of_part = max(of_part, x[k][i]);
                        }
                    }
                }
                let base = if of_part == f32::NEG_INFINITY { 0.0 } else { of_part };
                if of_part > most {
                    sum *= exp2_ftz((most - base) * LOG2_E);
                }
                most = of_part;
                for k in unroll(0..K) {
                    if mine.column + k as u32 * mine.step < columns {
                        for i in unroll(0..V) {
                            sum += exp2_ftz((x[k][i] - base) * LOG2_E);
                        }
                    }
                }
            }
            let (_, _, of_row) = reduced(scratch, 0, 0.0, most, true);
            let base = if of_row == f32::NEG_INFINITY { 0.0 } else { of_row };
            if most != f32::NEG_INFINITY {
                sum *= exp2_ftz((most - base) * LOG2_E);
            }
            let (_, all, _) = reduced(scratch, 0, sum, 0.0, false);
            if let Some(tokens) = tokens {
                if leader {
                    let token = tokens.get(row);
                    let mut result = f32::NEG_INFINITY;
                    if token < columns {
                        let x = cast::<f32>(x.get(from + token as u64));
                        result = (x - base) - log2(all) * LN_2;
                    }
                    log_probabilities.set(row, result);
                }
            }
        }
        sync_cluster(); // no block ends while others read its shared memory
    }

    /// Returns four random words: Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy
    /// as 1, 2, 3", 2011.
    #[tma_device]
    pub fn philox(counter: [u32; 4], seed: u64) -> [u32; 4] {
        let mut x = counter;
        let mut low = seed as u32;
        let mut high = (seed >> 32) as u32;
        for _round in unroll(0..10u32) {
            let first = x[0] as u64 * 0xd251_1f53;
            let second = x[2] as u64 * 0xcd9e_8d57;
            x = [
                (second >> 32) as u32 ^ x[1] ^ low,
                second as u32,
                (first >> 32) as u32 ^ x[3] ^ high,
                first as u32,
            ];
            low = low.wrapping_add(0x9e37_79b9);
            high = high.wrapping_add(0xbb67_ae85);
        }
        x
    }

    /// Returns log2 of an exponential random number, -ln(1 - u), of a word. Where u is small, so is
    /// the relative error: these numbers let improbable tokens win.
    #[tma_device]
    pub fn log_exponential(word: u32) -> f32 {
        // Below 1 also for the greatest words: an infinite number would tie with a score of -∞.
        let u = min(fma(cast::<f32>(word), 2.3283064e-10, 1.1641532e-10), 0.99999994);
        let mut sum = fma(u, 0.16666667f32, 0.2);
        sum = fma(sum, u, 0.25);
        sum = fma(sum, u, 0.33333333);
        sum = fma(sum, u, 0.5);
        sum = fma(sum, u, 1.0) * u;
        log2(if u < 0.03125 { sum } else { log2(1.0 - u) * -LN_2 })
    }

    /// How a row is sampled.
    #[derive(Clone, Copy)]
    pub struct Draw {
        /// The factor of logits: log2(e) / temperature.
        pub factor: f32,
        /// Whether the greatest logit is taken.
        pub is_greedy: bool,
        /// The seed of the row.
        pub seed: u64,
        /// The position of the token.
        pub position: u32,
    }

    /// The best score above a logit, and how many elements are above it.
    #[derive(Clone, Copy)]
    pub struct Above {
        /// The best of them.
        pub best: Best,
        /// Their number.
        pub count: f32,
        /// The sum of their powers.
        pub sum: f32,
    }

    /// Scores the elements of a thread above `floor`. Powers are relative to `base`. With `is_all`,
    /// all elements are scored.
    #[tma_device]
    pub fn scored<T: TileElement + Number, const V: usize, const W: usize>(
        x: Global<T>,
        from: u64,
        first: Part,
        columns: u32,
        draw: Draw,
        is_all: bool,
        floor: f32,
        base: f32,
    ) -> Above {
        let mut best = Best { score: f32::NEG_INFINITY, column: 0, exists: false };
        let mut count = 0.0f32;
        let mut sum = 0.0f32;
        for start in (0..columns).step_by(first.step as usize) {
            let mine = shifted(first, start);
            let of_part = load::<T, 1, V, W>(x, from, mine, columns);
            if mine.column < columns {
                let mut words = [0u32; 4];
                for i in unroll(0..V) {
                    let column = mine.column + i as u32;
                    if i % 4 == 0 && !draw.is_greedy {
                        words = philox([column / 4, draw.position, 0, 0], draw.seed);
                    }
                    let logit = of_part[0][i];
                    let word = if V == 1 { word_of(words, column % 4) } else { words[i % 4] };
                    if is_all || logit > floor {
                        let scaled = logit * draw.factor;
                        let noise = if draw.is_greedy { 0.0 } else { log_exponential(word) };
                        best = better(best, scaled - noise, column);
                        count += 1.0;
                        sum += exp2_ftz((logit - base) * draw.factor);
                    }
                }
            }
        }
        Above { best, count, sum }
    }

    /// Returns one of four words.
    #[tma_device]
    pub fn word_of(words: [u32; 4], i: u32) -> u32 {
        let first = if i % 2 == 0 { words[0] } else { words[1] };
        let second = if i % 2 == 0 { words[2] } else { words[3] };
        if i < 2 { first } else { second }
    }

    /// Samples a token of each row. Each row has a cluster.
    ///
    /// The token is that with the greatest sum of its scaled logit and a random number of Gumbel's
    /// distribution, among those that `top_k` and `top_p` leave. The best one of all is found
    /// first. If it is not one of those, neither is any with a lesser logit, and the best one among
    /// the others is next.
    #[tma_kernel(threads = THREADS, cluster = BLOCKS, unchecked, instances(
        T in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
    ))]
    pub fn draw<T, const WIDE: usize, const V: usize, const W: usize>(
        x: Global<T>,
        out: Global<u32>,
        seeds: Global<u64>,
        positions: Global<u32>,
        temperatures: Option<Global<f32>>,
        top_k: Option<Global<u32>>,
        top_p: Option<Global<f32>>,
        columns: u32,
        x_row: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let ranks: SharedArray<u64, WARPS> = shared();
        let sums: SharedArray<f32, WARPS> = shared();
        let counts: SharedArray<f32, WARPS> = shared();
        let scratch = Scratch { ranks, sums, counts };
        let row = block_idx().x / BLOCKS;
        let from = row as u64 * x_row;
        let first = part_of_cluster(V as u32, row);
        let mut temperature = 1.0f32;
        if let Some(temperatures) = temperatures {
            temperature = temperatures.get(row);
        }
        let is_greedy = !(temperature > 1e-20);
        // Above zero also for infinite temperatures: zero times -∞ would be a NaN.
        let factor = if is_greedy { 1.0 } else { max(LOG2_E / temperature, 1.1754944e-38) };
        let draw = Draw { factor, is_greedy, seed: seeds.get(row), position: positions.get(row) };
        let mut most = 0u32; // 0 stands for all tokens
        if let Some(top_k) = top_k {
            most = top_k.get(row);
        }
        let mut probability = 1.0f32;
        if let Some(top_p) = top_p {
            probability = top_p.get(row);
        }
        let has_limit = !is_greedy && (most != 0 || probability < 1.0);

        // The greatest logit, which powers are relative to.
        let mut base = 0.0f32;
        if has_limit {
            let mut greatest = f32::NEG_INFINITY;
            for start in (0..columns).step_by((K as u32 * first.step) as usize) {
                let mine = shifted(first, start);
                let of_part = load::<T, K, V, W>(x, from, mine, columns);
                for k in unroll(0..K) {
                    if mine.column + k as u32 * mine.step < columns {
                        for i in unroll(0..V) {
                            greatest = max(greatest, of_part[k][i]);
                        }
                    }
                }
            }
            let (_, _, of_row) = reduced(scratch, 0, 0.0, greatest, true);
            base = of_row;
        }
        let all = scored::<T, V, W>(x, from, first, columns, draw, true, 0.0, base);
        let (mut rank, total, _) = reduced(scratch, ranked(all.best), all.sum, 0.0, false);
        let mut is_chosen = !has_limit;
        while !is_chosen {
            let floor = cast::<f32>(x.get(from + column_of(rank) as u64));
            let above = scored::<T, V, W>(x, from, first, columns, draw, false, floor, base);
            let (next, sum, count) = reduced(scratch, ranked(above.best), above.sum, above.count, false);
            let is_counted = most == 0 || count < cast::<f32>(most);
            let is_probable = !(sum >= probability * total) || probability >= 1.0;
            is_chosen = next == 0 || is_counted && is_probable;
            rank = if is_chosen { rank } else { next };
        }
        if cluster_rank() == 0 && thread_idx().x == 0 {
            out.set(row, column_of(rank));
        }
        sync_cluster(); // no block ends while others read its shared memory
    }
}
