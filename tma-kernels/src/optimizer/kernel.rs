//! The kernels of the optimiser.

#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "a comparison with NaN is false")]
#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Parameters in one tensor, in chunks.
#[tma_module]
pub mod flat {
    use tma_runtime::prelude::*;

    /// The elements of a chunk, which a block has. The last chunk of a parameter may have fewer.
    pub const CHUNK: u32 = 16384;

    /// Parameters begin at multiples of this many elements.
    pub const UNIT: u64 = 64;

    /// Threads of a block.
    const THREADS: u32 = 256;

    /// The threads of the block that begins a step.
    const STEP_THREADS: u32 = 1024;

    /// Warps of that block.
    const STEP_WARPS: u32 = 32;

    /// The loads that each of its threads has in flight.
    const STEP_LOADS: usize = 8;

    /// The index of the learning rate in the numbers of a step.
    pub const RATE: u32 = 0;

    /// The index of the norm of the gradients.
    pub const NORM: u32 = 1;

    /// The index of the factor of the gradients.
    pub const FACTOR: u32 = 2;

    /// The index of the factor of first moments: 1 / (1 - β₁ᵗ).
    pub const FIRST: u32 = 3;

    /// The index of the factor of roots of second moments: 1 / √(1 - β₂ᵗ).
    pub const SECOND: u32 = 4;

    /// The index of the number of steps taken, in the counts.
    pub const TAKEN: u32 = 0;

    /// The index of the number of steps skipped.
    pub const SKIPPED: u32 = 1;

    /// The index of the number that is 1 if this step is taken, and 0 if it is skipped.
    pub const IS_TAKEN: u32 = 2;

    /// The elements of a block.
    #[derive(Clone, Copy)]
    pub struct Chunk {
        /// The index of the first one.
        pub start: u64,
        /// Their number.
        pub count: u32,
        /// The weight decay of the parameter.
        pub weight_decay: f32,
        /// The factor of the learning rate.
        pub rate_factor: f32,
    }

    /// Returns the chunk of this block.
    #[tma_device]
    pub fn chunk_of_block(table: Global<u32>) -> Chunk {
        let [start, count, weight_decay, rate_factor] = table.get_vec::<4>(block_idx().x as u64 * 4);
        Chunk {
            start: start as u64 * UNIT,
            count,
            weight_decay: f32::from_bits(weight_decay),
            rate_factor: f32::from_bits(rate_factor),
        }
    }

    /// Loads a vector, or zeros unless it `exists`. The index is compared with the length by a
    /// condition of the load, so that the loads of several vectors do not wait for each other.
    #[tma_device]
    pub fn fetch<T: TileElement + Number, const V: usize>(from: Global<T>, i: u64, exists: bool) -> [T; V] {
        let mut vector = [cast::<T>(0.0f32); V];
        if exists && i < from.len().saturating_sub(V as u64 - 1) {
            vector = from.get_vec::<V>(i);
        }
        vector
    }

    /// Converts a vector to `f32`.
    #[tma_device]
    pub fn converted<T: TileElement + Number, const V: usize>(vector: [T; V]) -> [f32; V] {
        let mut x = [0.0f32; V];
        for k in unroll(0..V) {
            x[k] = cast::<f32>(vector[k]);
        }
        x
    }

    /// Returns the sum of the squares of this thread's elements of a chunk, in `f64`: of its vectors
    /// among the `whole` ones, and of one of the elements that follow them.
    #[tma_device]
    pub fn exact_squares<T: TileElement + Number, const V: usize>(
        x: Global<T>,
        chunk: Chunk,
        whole: u32,
    ) -> f64 {
        let mut sum = 0.0f64;
        let mut column = thread_idx().x * V as u32;
        while column < whole {
            for k in unroll(0..V) {
                let element = cast::<f64>(x.get(chunk.start + (column + k as u32) as u64));
                sum = fma(element, element, sum);
            }
            column += THREADS * V as u32;
        }
        let last = whole + thread_idx().x;
        if last < chunk.count {
            let element = cast::<f64>(x.get(chunk.start + last as u64));
            sum = fma(element, element, sum);
        }
        sum
    }

    /// Writes the sum of the squares of each chunk to `sums`.
    ///
    /// Squares are added in `f32`. If that overflows in a thread, or if squares lost bits because
    /// they are too small, the thread adds its squares in `f64`. The order of a sum is that of the
    /// elements' indices in the chunk, so it depends on nothing else.
    #[tma_kernel(threads = THREADS, min_blocks = 4, unchecked, instances(
        T in [bf16, f16, f32],
        let V = 16 / size_of::<T>(),
    ))]
    pub fn squares<T, const V: usize>(x: Global<T>, table: Global<u32>, sums: Global<f64>)
    where
        T: TileElement + Number,
    {
        let of_warps: SharedArray<f64, 8> = shared();
        grid_dependency_wait();
        grid_dependency_launch();
        let chunk = chunk_of_block(table);
        let step = THREADS * V as u32;
        let whole = chunk.count & !(V as u32 - 1);
        let mut parts = [0.0f32; V];
        let mut first = 0;
        while first < whole {
            let mut vectors = [[cast::<T>(0.0f32); V]; 4];
            for k in unroll(0..4u32) {
                let column = first + k * step + thread_idx().x * V as u32;
                vectors[k as usize] = fetch::<T, V>(x, chunk.start + column as u64, column < whole);
            }
            for k in unroll(0..4usize) {
                let elements = converted::<T, V>(vectors[k]);
                for i in unroll(0..V) {
                    parts[i] = fma(elements[i], elements[i], parts[i]);
                }
            }
            first += 4 * step;
        }
        let last = whole + thread_idx().x;
        if last < chunk.count {
            let element = cast::<f32>(x.get(chunk.start + last as u64));
            parts[0] = fma(element, element, parts[0]);
        }
        let mut sum = 0.0f32;
        for i in unroll(0..V) {
            sum += parts[i];
        }
        let mut of_thread = cast::<f64>(sum);
        if !(sum > 1e-36 && sum < f32::INFINITY) {
            of_thread = exact_squares::<T, V>(x, chunk, whole);
        }
        let of_warp = warp_reduce_add(of_thread);
        if lane_idx() == 0 {
            of_warps.set(warp_idx(), of_warp);
        }
        sync_threads();
        if thread_idx().x == 0 {
            let mut all = 0.0f64;
            for warp in unroll(0..8u32) {
                all += of_warps.get(warp);
            }
            sums.set(block_idx().x, all);
        }
    }

    /// Returns x to the power n.
    #[tma_device]
    pub fn power(x: f64, n: u32) -> f64 {
        let mut result = 1.0f64;
        let mut base = x;
        let mut rest = n;
        while rest > 0 {
            if rest & 1 == 1 {
                result *= base;
            }
            base *= base;
            rest >>= 1;
        }
        result
    }

    /// Begins a step: computes the norm of the gradients from the sums of squares of all chunks,
    /// decides whether the step is taken, and writes what all updates of the step read.
    #[tma_kernel(threads = STEP_THREADS, unchecked)]
    pub fn begin(
        sums: Option<Global<f64>>,
        rates: Option<Global<f32>>,
        numbers: Global<f32>,
        counts: Global<u32>,
        beta1: f32,
        beta2: f32,
        gradient_factor: f32,
        max_norm: f32,
    ) {
        let of_warps: SharedArray<f64, STEP_WARPS> = shared();
        grid_dependency_launch();
        grid_dependency_wait();
        let mut parts = [0.0f64; STEP_LOADS];
        if let Some(sums) = sums {
            let mut first = thread_idx().x as u64;
            while first < sums.len() {
                for k in unroll(0..STEP_LOADS) {
                    let i = first + (k as u32 * STEP_THREADS) as u64;
                    let mut sum = 0.0f64;
                    if i < sums.len() {
                        sum = sums.get(i);
                    }
                    parts[k] += sum;
                }
                first += (STEP_LOADS as u32 * STEP_THREADS) as u64;
            }
        }
        let mut of_thread = 0.0f64;
        for k in unroll(0..STEP_LOADS) {
            of_thread += parts[k];
        }
        let of_warp = warp_reduce_add(of_thread);
        if lane_idx() == 0 {
            of_warps.set(warp_idx(), of_warp);
        }
        sync_threads();
        if thread_idx().x == 0 {
            let mut all = 0.0f64;
            for warp in unroll(0..STEP_WARPS) {
                all += of_warps.get(warp);
            }
            let scale = cast::<f64>(gradient_factor);
            let exact = sqrt(all) * scale;
            let norm = cast::<f32>(exact);
            let is_taken = norm < f32::INFINITY; // NaN is not
            let mut factor = scale;
            if exact > cast::<f64>(max_norm) {
                factor = scale * (cast::<f64>(max_norm) / exact);
            }
            numbers.set(NORM, norm);
            numbers.set(FACTOR, cast::<f32>(factor));
            counts.set(IS_TAKEN, is_taken as u32);
            if is_taken {
                let step = min(counts.get(TAKEN), 0xffff_fffe) + 1;
                counts.set(TAKEN, step);
                if let Some(rates) = rates {
                    numbers.set(RATE, rates.get(min(step as u64, rates.len()) - 1));
                }
                let first = 1.0 / (1.0 - power(cast::<f64>(beta1), step));
                let second = 1.0 / sqrt(1.0 - power(cast::<f64>(beta2), step));
                numbers.set(FIRST, cast::<f32>(first));
                numbers.set(SECOND, cast::<f32>(second));
            } else {
                counts.set(SKIPPED, counts.get(SKIPPED) + 1);
            }
        }
    }

    /// Sets the learning rate.
    #[tma_kernel(threads = 32, unchecked)]
    pub fn set_rate(numbers: Global<f32>, rate: f32) {
        grid_dependency_launch();
        grid_dependency_wait();
        if thread_idx().x == 0 {
            numbers.set(RATE, rate);
        }
    }

    /// The numbers of an update that all elements of a chunk share.
    #[derive(Clone, Copy)]
    pub struct Rule {
        /// The factor of the gradient.
        pub factor: f32,
        /// The share of the first moment that stays.
        pub beta1: f32,
        /// The share of the second moment that stays.
        pub beta2: f32,
        /// The factor of the first moment.
        pub first: f32,
        /// The factor of the root of the second moment.
        pub second: f32,
        /// The least divisor.
        pub epsilon: f32,
        /// The learning rate.
        pub rate: f32,
        /// The share of a weight that decays.
        pub decay: f32,
    }

    /// Returns a weight and its moments after a step.
    #[tma_device]
    pub fn updated(weight: f32, gradient: f32, first: f32, second: f32, rule: Rule) -> (f32, f32, f32) {
        let scaled = gradient * rule.factor;
        let first = fma(rule.beta1, first, (1.0 - rule.beta1) * scaled);
        let second = fma(rule.beta2, second, (1.0 - rule.beta2) * scaled * scaled);
        let change = first * rule.first / fma(sqrt(second), rule.second, rule.epsilon);
        let decayed = fma(-rule.decay, weight, weight);
        (fma(-rule.rate, change, decayed), first, second)
    }

    /// Stores a vector.
    #[tma_device]
    pub fn store<T: TileElement + Number>(to: Global<T>, i: u64, x: [f32; 4]) {
        let mut vector = [cast::<T>(0.0f32); 4];
        for k in unroll(0..4usize) {
            vector[k] = cast::<T>(x[k]);
        }
        if i < to.len().saturating_sub(3) {
            to.set_vec(i, vector);
        }
    }

    /// Updates the elements of a chunk by AdamW, unless the step is skipped. A thread has a vector of
    /// four elements at a time: with as many threads as fit, enough bytes are in flight. Without
    /// master weights, the parameters are these.
    #[tma_kernel(threads = THREADS, min_blocks = 4, unchecked, instances(
        P in [bf16, f16, f32],
        G in [grad_bf16 = bf16, grad_f16 = f16, grad_f32 = f32],
    ))]
    pub fn adamw<P, G>(
        parameters: Global<P>,
        gradients: Global<G>,
        masters: Option<Global<f32>>,
        firsts: Global<f32>,
        seconds: Global<f32>,
        table: Global<u32>,
        numbers: Global<f32>,
        counts: Global<u32>,
        beta1: f32,
        beta2: f32,
        epsilon: f32,
    ) where
        P: TileElement + Number,
        G: TileElement + Number,
    {
        grid_dependency_wait();
        grid_dependency_launch();
        if counts.get(IS_TAKEN) == 0 {
            return;
        }
        let chunk = chunk_of_block(table);
        let rate = numbers.get(RATE) * chunk.rate_factor;
        let rule = Rule {
            factor: numbers.get(FACTOR),
            beta1,
            beta2,
            first: numbers.get(FIRST),
            second: numbers.get(SECOND),
            epsilon,
            rate,
            decay: rate * chunk.weight_decay,
        };
        let whole = chunk.count & !3;
        let mut column = thread_idx().x * 4;
        while column < whole {
            let i = chunk.start + column as u64;
            let of_gradient = fetch::<G, 4>(gradients, i, true);
            let mut first = fetch::<f32, 4>(firsts, i, true);
            let mut second = fetch::<f32, 4>(seconds, i, true);
            let mut weight = if let Some(masters) = masters {
                fetch::<f32, 4>(masters, i, true)
            } else {
                converted::<P, 4>(fetch::<P, 4>(parameters, i, true))
            };
            let gradient = converted::<G, 4>(of_gradient);
            for k in unroll(0..4usize) {
                (weight[k], first[k], second[k]) = updated(weight[k], gradient[k], first[k], second[k], rule);
            }
            store::<f32>(firsts, i, first);
            store::<f32>(seconds, i, second);
            if let Some(masters) = masters {
                store::<f32>(masters, i, weight);
            }
            store::<P>(parameters, i, weight);
            column += THREADS * 4;
        }
        let last = whole + thread_idx().x;
        if last < chunk.count {
            let i = chunk.start + last as u64;
            let mut weight = cast::<f32>(parameters.get(i));
            if let Some(masters) = masters {
                weight = masters.get(i);
            }
            let gradient = cast::<f32>(gradients.get(i));
            let (weight, first, second) = updated(weight, gradient, firsts.get(i), seconds.get(i), rule);
            firsts.set(i, first);
            seconds.set(i, second);
            if let Some(masters) = masters {
                masters.set(i, weight);
            }
            parameters.set(i, cast::<P>(weight));
        }
    }
}
