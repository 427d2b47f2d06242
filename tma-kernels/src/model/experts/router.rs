//! The kernels that route tokens to experts.

#![allow(clippy::eq_op, reason = "NaN differs from itself, and kernels have no `is_nan`")]

use tma_runtime::tma_module;

/// Tokens in chunks, each of which a block routes. A warp chooses the experts of a token.
///
/// A token chooses an expert once at most, so that the choices of a chunk are a bit for each expert
/// and token. The rank of a choice among those of its expert is the number of bits of earlier
/// tokens: it does not depend on the order in which warps set them.
#[tma_module]
pub mod tokens {
    use tma_runtime::prelude::*;

    /// Threads of a block: one for each choice of a chunk.
    pub const THREADS: u32 = 1024;

    /// Warps of a block.
    const WARPS: u32 = 32;

    /// Tokens of a chunk.
    pub const CHUNK: u32 = 64;

    /// The greatest number of experts.
    pub const MOST_EXPERTS: u32 = 512;

    /// The greatest number of experts of a token.
    pub const MOST_CHOICES: u32 = 16;

    /// Two words of bits for each expert: one for each half of a chunk.
    const WORDS: u32 = 1024;

    /// log2(e).
    const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;

    /// Returns a number above 0 whose order is that of logits. NaN is above all, and 0 equals -0.
    #[tma_device]
    pub fn key_of(x: f32) -> u32 {
        let mut key = 0xffff_ffffu32;
        if x == x {
            let bits = (x + 0.0).to_bits(); // -0 becomes 0
            key = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
        }
        key
    }

    /// Returns the logit of a key.
    #[tma_device]
    pub fn logit_of(key: u32) -> f32 {
        f32::from_bits(if key >> 31 == 1 { key & 0x7fff_ffff } else { !key })
    }

    /// Returns e^(x - base) of the logit of a key.
    #[tma_device]
    pub fn power_of(key: u32, base: f32) -> f32 {
        exp2_ftz((logit_of(key) - base) * LOG2_E)
    }

    /// The expert of a choice, and its weight.
    #[derive(Clone, Copy)]
    pub struct Choice {
        /// The expert.
        pub expert: u32,
        /// The weight.
        pub weight: f32,
    }

    /// Chooses the experts of a token. Lane i of the warp gets choice i. Each lane has up to
    /// `SLOTS` logits.
    #[tma_device]
    pub fn choices_of<T: TileElement + Number, const SLOTS: usize>(
        logits: Global<T>,
        start: u64,
        experts: u32,
        choices: u32,
        normalise: bool,
    ) -> Choice {
        let mut keys = [0u32; SLOTS];
        let mut greatest = 0u32;
        for i in unroll(0..SLOTS) {
            let expert = lane_idx() + 32 * i as u32;
            if expert < experts {
                keys[i] = key_of(cast::<f32>(logits.get(start + expert as u64)));
            }
        }
        for i in unroll(0..SLOTS) {
            greatest = max(greatest, keys[i]);
        }
        let base = logit_of(warp_reduce_max(greatest));
        let mut sum = 0.0f32;
        if !normalise {
            for i in unroll(0..SLOTS) {
                if keys[i] != 0 {
                    sum += power_of(keys[i], base);
                }
            }
            sum = warp_reduce_add(sum);
        }
        let mut of_lane = Choice { expert: 0, weight: 0.0 };
        for choice in 0..choices {
            let mut most = 0u32;
            for i in unroll(0..SLOTS) {
                most = max(most, keys[i]);
            }
            let best = warp_reduce_max(most);
            let mut first = 0xffff_ffffu32;
            for i in unroll(0..SLOTS) {
                if keys[i] == best {
                    first = min(first, lane_idx() + 32 * i as u32);
                }
            }
            let expert = warp_reduce_min(first);
            for i in unroll(0..SLOTS) {
                if lane_idx() + 32 * i as u32 == expert {
                    keys[i] = 0; // no key of a logit
                }
            }
            let power = power_of(best, base);
            if normalise {
                sum += power;
            }
            if lane_idx() == choice {
                of_lane = Choice { expert, weight: power };
            }
        }
        Choice { weight: of_lane.weight / sum, ..of_lane }
    }

    /// Returns the sum over the threads before this one. All threads of the block call it, once.
    #[tma_device]
    pub fn sum_before(count: u32, sums: SharedArray<u32, WARPS>) -> u32 {
        let mut all = count;
        for step in unroll(0..5u32) {
            let below = shuffle_up(all, 1 << step);
            if lane_idx() >= 1 << step {
                all += below;
            }
        }
        if lane_idx() == 31 {
            sums.set(warp_idx(), all);
        }
        sync_threads();
        let of_warp = if lane_idx() < warp_idx() { sums.get(lane_idx()) } else { 0 };
        warp_reduce_add(of_warp) + all - count
    }

    /// Returns how many tokens of a chunk before this one have their bits.
    #[tma_device]
    pub fn rank_of(low: u32, high: u32, token: u32) -> u32 {
        let before = (1u32 << (token % 32)) - 1;
        if token < 32 { (low & before).count_ones() } else { low.count_ones() + (high & before).count_ones() }
    }

    /// Chooses the experts of tokens. Each block has a chunk. If there is one chunk, it also finds
    /// the row of each choice, and otherwise it leaves the bits of its chunk in `masks`: chunks × 2
    /// × experts.
    #[tma_kernel(threads = THREADS, unchecked, instances(
        T in [bf16, f16, f32],
        SLOTS in [few = 4, many = 16],
    ))]
    pub fn choose<T, const SLOTS: usize>(
        logits: Global<T>,
        chosen: Global<u32>,
        weights: Global<f32>,
        rows: Global<u32>,
        ends: Global<u32>,
        masks: Option<Global<u32>>,
        tokens: u32,
        experts: u32,
        choices: u32,
        normalise: bool,
        logits_row: u64,
        chosen_row: u64,
        weights_row: u64,
        rows_row: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let bits: SharedArray<u32, WORDS> = shared();
        let experts_of: SharedArray<u32, THREADS> = shared();
        let starts: SharedArray<u32, MOST_EXPERTS> = shared();
        let sums: SharedArray<u32, WARPS> = shared();
        let thread = thread_idx().x;
        let first = block_idx().x * CHUNK;
        bits.set(thread, 0);
        sync_threads();
        for half in 0..2u32 {
            let of_chunk = half * WARPS + warp_idx();
            let token = (first + of_chunk) as u64;
            if token < tokens as u64 {
                let choice = choices_of::<T, SLOTS>(logits, token * logits_row, experts, choices, normalise);
                let lane = lane_idx();
                if lane < choices {
                    chosen.set(token * chosen_row + lane as u64, choice.expert);
                    weights.set(token * weights_row + lane as u64, choice.weight);
                    experts_of.set(of_chunk * choices + lane, choice.expert);
                    let word = half * MOST_EXPERTS + choice.expert;
                    bits.fetch_or(word, 1 << (of_chunk % 32), Order::Relaxed, Scope::Block);
                }
            }
        }
        sync_threads();
        if let Some(masks) = masks {
            let to = block_idx().x as u64 * 2 * experts as u64 + thread as u64;
            if thread < experts {
                masks.set(to, bits.get(thread));
                masks.set(to + experts as u64, bits.get(MOST_EXPERTS + thread));
            }
        } else {
            let mut count = 0;
            if thread < experts {
                count = bits.get(thread).count_ones() + bits.get(MOST_EXPERTS + thread).count_ones();
            }
            let start = sum_before(count, sums);
            if thread < experts {
                starts.set(thread, start);
                ends.set(thread, start + count);
            }
            sync_threads();
            let token = thread / choices;
            if token < CHUNK && first + token < tokens {
                let expert = experts_of.get(thread);
                let rank = rank_of(bits.get(expert), bits.get(MOST_EXPERTS + expert), token);
                let to = (first + token) as u64 * rows_row + (thread % choices) as u64;
                rows.set(to, starts.get(expert) + rank);
            }
        }
    }

    /// Finds the row of each choice from the bits of all chunks. Each block has a chunk, and counts
    /// the choices of all of them. `width` adjacent threads, a power of two, have the experts of a
    /// chunk.
    #[tma_kernel(threads = THREADS, unchecked)]
    pub fn place(
        masks: Global<u32>,
        chosen: Global<u32>,
        rows: Global<u32>,
        ends: Global<u32>,
        tokens: u32,
        experts: u32,
        choices: u32,
        width: u32,
        chosen_row: u64,
        rows_row: u64,
    ) {
        grid_dependency_launch();
        grid_dependency_wait();
        let totals: SharedArray<u32, THREADS> = shared();
        let earlier: SharedArray<u32, THREADS> = shared();
        let starts: SharedArray<u32, MOST_EXPERTS> = shared();
        let sums: SharedArray<u32, WARPS> = shared();
        let thread = thread_idx().x;
        let chunk = block_idx().x;
        let chunks = grid_dim().x;
        let expert = thread & (width - 1);
        let group = thread >> width.trailing_zeros();
        let groups = THREADS >> width.trailing_zeros();
        let mut total = 0u32;
        let mut before = 0u32;
        if expert < experts {
            for some in (group..chunks).step_by((4 * groups) as usize) {
                for i in unroll(0..4u32) {
                    let other = some + i * groups;
                    if other < chunks {
                        let from = other as u64 * 2 * experts as u64 + expert as u64;
                        let [low, high] = [masks.get(from), masks.get(from + experts as u64)];
                        let count = low.count_ones() + high.count_ones();
                        total += count;
                        before += if other < chunk { count } else { 0 };
                    }
                }
            }
        }
        totals.set(thread, total);
        earlier.set(thread, before);
        sync_threads();
        let mut of_expert = 0u32;
        let mut of_earlier = 0u32;
        if thread < experts {
            for other in 0..groups {
                of_expert += totals.get(other * width + thread);
                of_earlier += earlier.get(other * width + thread);
            }
        }
        let start = sum_before(of_expert, sums);
        if thread < experts {
            starts.set(thread, start + of_earlier);
            if chunk == 0 {
                ends.set(thread, start + of_expert);
            }
        }
        sync_threads();
        let of_chunk = thread / choices;
        let token = chunk * CHUNK + of_chunk;
        if of_chunk < CHUNK && token < tokens {
            let choice = (thread % choices) as u64;
            let expert = chosen.get(token as u64 * chosen_row + choice);
            let from = chunk as u64 * 2 * experts as u64 + expert as u64;
            let rank = rank_of(masks.get(from), masks.get(from + experts as u64), of_chunk);
            rows.set(token as u64 * rows_row + choice, starts.get(expert) + rank);
        }
    }
}
