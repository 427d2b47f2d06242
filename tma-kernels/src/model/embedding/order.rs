//! The kernel that sorts the positions of tokens by token.

use tma_runtime::tma_module;

/// Sorted positions.
#[tma_module]
pub mod positions {
    use tma_runtime::prelude::*;

    /// Threads of a block that sorts.
    pub const THREADS: u32 = 512;

    /// Bits of a digit, and the number of digits.
    pub const DIGIT_BITS: u32 = 4;
    const DIGITS: u32 = 16;

    /// Counters of a block: one for each digit and thread.
    const COUNTERS: u32 = 8192;

    /// Warps of a block that sorts.
    const WARPS: u32 = 16;

    /// Tokens that a thread loads at a time.
    const TOKENS: u32 = 16;

    /// The position after the sorted ones, and the token of a position without one.
    pub const NONE: u32 = 0xffff_ffff;

    /// Sums of the threads of a block.
    #[derive(Clone, Copy)]
    pub struct Scan {
        /// The sum of the threads before this one.
        pub before: u32,
        /// The sum of all threads.
        pub all: u32,
    }

    /// Returns the sums of a number of each thread. All threads of the block call it.
    #[tma_device]
    pub fn scanned(x: u32, sums: SharedArray<u32, WARPS>) -> Scan {
        let mut up_to = x;
        for step in unroll(0..5u32) {
            let below = shuffle_up(up_to, 1 << step);
            if lane_idx() >= 1 << step {
                up_to += below;
            }
        }
        sync_threads(); // no thread reads the sums of an earlier call any more
        if lane_idx() == 31 {
            sums.set(warp_idx(), up_to);
        }
        sync_threads();
        let of_lane = if lane_idx() < WARPS { sums.get(lane_idx()) } else { 0 };
        let before = warp_reduce_add(if lane_idx() < warp_idx() { of_lane } else { 0 });
        Scan { before: before + up_to - x, all: warp_reduce_add(of_lane) }
    }

    /// Returns every 32nd token from `first` on, of which those from the `end` on are `NONE`. An
    /// index is compared with the length by a condition of the load: with checks in between, loads
    /// would wait for each other.
    #[tma_device]
    pub fn some_tokens(tokens: Global<u32>, first: u32, end: u32, token_step: u64) -> [u32; 16] {
        let mut all = [NONE; 16];
        for k in unroll(0..TOKENS) {
            let i = (first + 32 * k) as u64 * token_step;
            if first + 32 * k < end && i < tokens.len() {
                all[k as usize] = tokens.get(i);
            }
        }
        all
    }

    /// Sorts the positions of tokens below the `vocabulary` into the first `count` elements of
    /// `order`, which has room for twice as many. The others are left out, and there is `NONE` in
    /// place of them at the end.
    ///
    /// Each block has the tokens that share their lowest `bits` bits. It reads all tokens to find
    /// its own, and the number of those before them. It sorts them by the other bits, from the
    /// lowest on, in `passes` of a digit: each thread has a run of positions, and counters of
    /// digits that come after those of the threads before it, so that positions with one digit keep
    /// their order. If there is one for each thread at most, a thread counts those before its own
    /// instead, which takes less time than the barriers of passes.
    #[tma_kernel(threads = THREADS, unchecked)]
    pub fn sort(
        tokens: Global<u32>,
        order: Global<u32>,
        count: u32,
        vocabulary: u32,
        bits: u32,
        passes: u32,
        token_step: u64,
    ) {
        grid_dependency_launch();
        grid_dependency_wait();
        let counters: SharedArray<u32, COUNTERS> = shared();
        let sums: SharedArray<u32, WARPS> = shared();
        let own_tokens: SharedArray<u32, THREADS> = shared();
        let own_positions: SharedArray<u32, THREADS> = shared();
        let thread = thread_idx().x;
        let mask = (1u32 << bits) - 1;
        let bucket = block_idx().x;

        // A warp has a run of positions, and its lanes adjacent ones.
        let each = count.div_ceil(THREADS) * 32;
        let begin = min(warp_idx() * each, count);
        let end = min(begin + each, count);
        let mut lower = 0u32;
        let mut own = 0u32;
        for some in (begin..end).step_by((32 * TOKENS) as usize) {
            let all = some_tokens(tokens, some + lane_idx(), end, token_step);
            for k in unroll(0..TOKENS as usize) {
                if all[k] < vocabulary {
                    lower += if all[k] & mask < bucket { 1 } else { 0 };
                    own += if all[k] & mask == bucket { 1 } else { 0 };
                }
            }
        }
        let start = scanned(lower, sums).all as u64;
        let of_block = scanned(own, sums);
        let total = of_block.all;
        // The last pass writes the first half.
        let mut from = if passes & 1 == 1 { count as u64 } else { 0 };
        let is_short = total <= THREADS;
        let mut of_warp = shuffle_idx(of_block.before, 0);
        own_tokens.set(thread, NONE);
        sync_threads();
        for some in (begin..end).step_by((32 * TOKENS) as usize) {
            let all = some_tokens(tokens, some + lane_idx(), end, token_step);
            for k in unroll(0..TOKENS) {
                let token = all[k as usize];
                let is_own = token < vocabulary && token & mask == bucket;
                let lanes = ballot(is_own);
                if is_own {
                    let position = some + 32 * k + lane_idx();
                    let rank = of_warp + (lanes & ((1u32 << lane_idx()) - 1)).count_ones();
                    if is_short {
                        own_tokens.set(rank, token);
                        own_positions.set(rank, position);
                    } else {
                        order.set(start + from + rank as u64, position);
                    }
                }
                of_warp += lanes.count_ones();
            }
        }

        sync_threads();
        if is_short && thread < total {
            let token = own_tokens.get(thread);
            let mut rank = 0u32;
            for some in (0..total).step_by(4) {
                let four = own_tokens.get_vec::<4>(some);
                for k in unroll(0..4u32) {
                    let other = four[k as usize];
                    rank += if other < token || other == token && some + k < thread { 1 } else { 0 };
                }
            }
            order.set(start + rank as u64, own_positions.get(thread));
        }

        let each = total.div_ceil(THREADS);
        let begin = min(thread * each, total);
        let end = min(begin + each, total);
        let mut shift = bits;
        for _pass in 0..if is_short { 0 } else { passes } {
            let next = count as u64 - from;
            for digit in 0..DIGITS {
                counters.set(digit * THREADS + thread, 0);
            }
            sync_threads();
            // Most threads have one position, which they keep.
            let mut kept = 0u32;
            let mut kept_token = 0u32;
            for i in begin..end {
                let position = order.get(from + start + i as u64);
                let token = tokens.get(position as u64 * token_step);
                let counter = (token >> shift & (DIGITS - 1)) * THREADS + thread;
                counters.set(counter, counters.get(counter) + 1);
                kept = position;
                kept_token = token;
            }
            sync_threads();
            let mut sum = 0u32;
            for i in 0..DIGITS {
                sum += counters.get(thread * DIGITS + i);
            }
            let mut before = scanned(sum, sums).before;
            for i in 0..DIGITS {
                let digits = counters.get(thread * DIGITS + i);
                counters.set(thread * DIGITS + i, before);
                before += digits;
            }
            sync_threads();
            for i in begin..end {
                let mut position = kept;
                let mut token = kept_token;
                if i + 1 < end {
                    position = order.get(from + start + i as u64);
                    token = tokens.get(position as u64 * token_step);
                }
                let counter = (token >> shift & (DIGITS - 1)) * THREADS + thread;
                let rank = counters.get(counter);
                order.set(next + start + rank as u64, position);
                counters.set(counter, rank + 1);
            }
            sync_threads();
            from = next;
            shift += DIGIT_BITS;
        }
        if bucket + 1 == grid_dim().x {
            let mut i = start + (total + thread) as u64;
            while i < count as u64 {
                order.set(i, NONE);
                i += THREADS as u64;
            }
        }
    }
}
