//! Attention, forward: softmax(Q · Kᵀ / √128) · V, without ever writing the scores to memory.
//!
//! ```sh
//! cargo run --release -p tma-examples --bin attention --features cuda -- \
//!     --shape 32,4096,4096 --element bf16 --causal yes
//! ```
//!
//! A block has 128 queries of a head and iterates over all keys and values, 128 at a time. One
//! warpgroup loads, and two multiply, each for 64 of the queries. While the tensor cores compute
//! the weighted sum of one block of values, the threads compute the softmax of the next block's
//! scores, and rescale the previous sums whenever a row has a new maximum ("online softmax":
//! Milakov and Gimelshein, arXiv 1805.02867; the schedule is that of FlashAttention-3, arXiv
//! 2407.08608). The second multiplication reads the weights from the registers in which the first
//! one left the scores.
//!
//! With a causal mask a query sees the keys up to its own position, and the last query sees all.
//! Any number of queries and keys is supported, but with a mask at least as many keys as queries.

use anyhow::{Context, bail, ensure};
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

/// The kernel.
#[tma_module]
pub mod forward {
    use tma_runtime::prelude::*;

    /// The tile of a warpgroup's queries: head, queries, elements of a head.
    type Half = Shape3<1, 64, 128>;
    /// The tile of keys or values: head, keys or values, elements of a head.
    type Block = Shape3<1, 128, 128>;

    /// `o = softmax(q · kᵀ · scale / log2(e)) · v` for `keys` keys. If causal, query `i` sees the
    /// keys up to `i + ahead`.
    #[tma_kernel(threads = 384, instances(T in [bf16, f16], CAUSAL in [full = false, causal = true]))]
    pub fn attention<T, const CAUSAL: bool>(
        q: TensorMap<Tile<T, Half, Swizzle128>>,
        k: TensorMap<Tile<T, Block, Swizzle128>>,
        v: TensorMap<Tile<T, Block, Swizzle128>>,
        o: TensorMap<Tile<T, Half, Swizzle128>>,
        keys: u32,
        ahead: u32,
        scale: f32,
    ) where
        T: TransposedElement + Multiply<T, f32>,
        f32: PackAs<T> + StoreAs<T>,
    {
        let queries: Stages<Tile<T, Half, Swizzle128>, 2> = shared();
        let loaded: Barrier = shared();
        let key_ring: Pipeline<(Tile<T, Block, Swizzle128>,), 2> = shared();
        let value_ring: Pipeline<(Tile<T, Block, Swizzle128>,), 2> = shared();
        if thread_idx().x == 0 {
            loaded.init(1);
            key_ring.init(8); // each warp that multiplies
            value_ring.init(8);
            fence_barrier_init();
        }
        sync_threads();

        let head = block_idx().y;
        // The last queries see the most keys, so they come first.
        let row = 128 * if CAUSAL { grid_dim().x - 1 - block_idx().x } else { block_idx().x };
        let seen = if CAUSAL { min(keys, row + 128 + ahead) } else { keys };
        assume(seen > 0); // a query sees at least its own position
        let blocks = seen.div_ceil(128);
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<24>();
            if warp_idx() == 0 && elect_one() {
                loaded.arrive_expect_tx(2 * queries[0].bytes());
                q.load(queries[0], [head, row, 0], loaded);
                q.load(queries[1], [head, row + 64, 0], loaded);
                let mut next_keys = key_ring.producer();
                let mut next_values = value_ring.producer();
                for block in 0..blocks {
                    let slot = next_keys.acquire();
                    k.load(slot.0, [head, block * 128, 0], slot.barrier());
                    let slot = next_values.acquire();
                    v.load(slot.0, [head, block * 128, 0], slot.barrier());
                }
            }
        } else {
            setmaxnreg_inc::<240>();
            let me = warpgroup_idx() - 1;
            let query = queries[me];
            let row = row + 64 * me;
            // From key `whole` on, some row of this warpgroup does not see all keys of a block.
            let whole = if CAUSAL { min(keys, row + 1 + ahead) } else { keys };
            let mut next_key = key_ring.consumer();
            let mut next_value = value_ring.consumer();
            let mut out = Accumulator::<f32, 64, 128>::zero();
            // A finite value: for a row that sees no key of a block, -∞ - -∞ would be NaN.
            let mut top = Rows::<f32, 64>::filled(f32::MIN);
            let mut total = Rows::<f32, 64>::filled(0.0);
            let mut shrink = Rows::<f32, 64>::filled(1.0);
            loaded.wait(0);

            let mut scores = Accumulator::<f32, 64, 128>::zero();
            let key = next_key.wait();
            let done = scores.mma(query, key.0, key).wait();
            if elect_one() {
                done.release();
            }
            if whole < 128 {
                hide::<CAUSAL>(&mut scores, 0, keys, row + ahead);
            }
            softmax(&mut scores, &mut top, &mut total, &mut shrink, scale);
            let mut weights = scores.pack::<T>();
            for block in 1..blocks {
                scores = Accumulator::zero();
                let key = next_key.wait();
                let product = scores.mma(query, key.0, key); // Q · Kᵀ of this block ..
                let value = next_value.wait();
                let sum = out.mma(weights, value.0.t(), value); // .. and P · V of the one before
                let done = product.wait();
                if elect_one() {
                    done.release();
                }
                if whole < block * 128 + 128 {
                    hide::<CAUSAL>(&mut scores, block * 128, keys, row + ahead);
                }
                softmax(&mut scores, &mut top, &mut total, &mut shrink, scale);
                let done = sum.wait();
                if elect_one() {
                    done.release();
                }
                for i in unroll(0..out.len()) {
                    out[i] *= shrink[out.row(i)];
                }
                weights = scores.pack::<T>();
            }
            let value = next_value.wait();
            let _last = out.mma(weights, value.0.t(), value).wait();

            for i in unroll(0..out.len()) {
                out[i] /= total[out.row(i)];
            }
            out.store(query); // only this warpgroup has read the tile
            fence_proxy_async();
            sync_warpgroup();
            if thread_idx().x % 128 == 0 {
                o.store([head, row, 0], query);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
            }
        }
    }

    /// Hides keys of a block that starts at `first`: those from `keys` on, and if causal, those
    /// after `last + i` for row `i`.
    #[tma_device]
    fn hide<const CAUSAL: bool>(scores: &mut Accumulator<f32, 64, 128>, first: u32, keys: u32, last: u32) {
        for i in unroll(0..scores.len()) {
            let at = scores.at(i);
            let key = first + at[1];
            if key >= keys || CAUSAL && key > last + at[0] {
                scores[i] = f32::NEG_INFINITY;
            }
        }
    }

    /// Turns scores into weights, in place: `exp2((score - top) * scale)`, and updates each row's
    /// maximum and sum. Earlier sums must be multiplied by `shrink`.
    #[tma_device]
    fn softmax(
        scores: &mut Accumulator<f32, 64, 128>,
        top: &mut Rows<f32, 64>,
        total: &mut Rows<f32, 64>,
        shrink: &mut Rows<f32, 64>,
        scale: f32,
    ) {
        let greatest = scores.row_max();
        for r in unroll(0..top.len()) {
            let before = top[r];
            top[r] = max(before, greatest[r]);
            shrink[r] = exp2((before - top[r]) * scale);
        }
        for i in unroll(0..scores.len()) {
            scores[i] = exp2((scores[i] - top[scores.row(i)]) * scale);
        }
        let sum = scores.row_sum();
        for r in unroll(0..total.len()) {
            total[r] = total[r] * shrink[r] + sum[r];
        }
    }
}

/// Elements of a head.
const HEAD: usize = 128;

/// The problem, as given on the command line.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of heads, and of queries and keys of each.
    pub shape: [usize; 3],
    /// Whether queries only see the keys up to their own position.
    pub causal: bool,
    /// Type of all elements.
    pub element: &'static str,
    /// Maximum error of an element. The default depends on the type.
    pub tolerance: Option<f64>,
    /// Number of launches that are measured on a GPU.
    pub iterations: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { shape: [32, 4096, 4096], causal: false, element: "bf16", tolerance: None, iterations: 100 }
    }
}

const USAGE: &str =
    "options: --shape HEADS,QUERIES,KEYS  --causal yes|no  --element bf16|f16  --tolerance X  --iterations N";

impl Options {
    /// Parses `--name value` pairs.
    ///
    /// # Errors
    ///
    /// An unknown option, or a value that the option does not accept.
    pub fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut options = Self::default();
        while let Some(name) = words.next() {
            let value = words.next().with_context(|| format!("`{name}` has no value\n{USAGE}"))?;
            match (name.as_str(), value.as_str()) {
                ("--shape", _) => {
                    let extents = value.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
                    let extents = extents.ok().and_then(|extents| extents.try_into().ok());
                    options.shape =
                        extents.with_context(|| format!("`{value}` is not HEADS,QUERIES,KEYS"))?;
                }
                ("--causal", "yes") => options.causal = true,
                ("--causal", "no") => options.causal = false,
                ("--element", "bf16") => options.element = "bf16",
                ("--element", "f16") => options.element = "f16",
                ("--tolerance", _) => options.tolerance = Some(value.parse()?),
                ("--iterations", _) => options.iterations = value.parse()?,
                _ => bail!("there is no option `{name} {value}`\n{USAGE}"),
            }
        }
        Ok(options)
    }

    /// Returns the number of keys that query `i` sees.
    fn seen(&self, i: usize) -> usize {
        let [_, queries, keys] = self.shape;
        if self.causal { i + 1 + keys - queries } else { keys }
    }
}

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Largest error of an element.
    pub error: f64,
    /// Performance, if it was measured.
    pub tflops: Option<f64>,
}

/// An element type, with its expected error.
trait Element: Scalar + TransposedElement + Multiply<Self, f32> {
    const TOLERANCE: f64;
    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! elements {
    ($($ty:ident: $tolerance:literal;)+) => { $(
        impl Element for $ty {
            const TOLERANCE: f64 = $tolerance;

            fn of(value: f64) -> Self {
                Self::from_f64(value)
            }

            fn value(self) -> f64 {
                self.to_f64()
            }
        }
    )+ };
}

elements! {
    bf16: 1e-2;
    f16: 2e-3;
}

/// Computes attention, compares the result with the host's, and measures the performance on a GPU.
///
/// # Errors
///
/// A wrong element, an invalid shape, or an error of the device.
pub fn check(device: &Device, options: &Options) -> anyhow::Result<Outcome> {
    match (options.element, options.causal) {
        ("f16", false) => check_as::<f16, false>(device, options),
        ("f16", true) => check_as::<f16, true>(device, options),
        (_, false) => check_as::<bf16, false>(device, options),
        (_, true) => check_as::<bf16, true>(device, options),
    }
}

fn check_as<T: Element, const CAUSAL: bool>(device: &Device, options: &Options) -> anyhow::Result<Outcome>
where
    forward::attention::Instance<T, CAUSAL>: forward::attention::Compiled,
{
    let [heads, queries, keys] = options.shape;
    ensure!(options.shape.iter().all(|&extent| extent > 0), "every extent is at least 1");
    ensure!(!CAUSAL || keys >= queries, "with a mask there are at least as many keys as queries");
    // The scores are far apart, so that maxima change.
    let q = numbers::<T>(1, heads * queries * HEAD, 4.0);
    let k = numbers::<T>(2, heads * keys * HEAD, 1.0);
    let v = numbers::<T>(3, heads * keys * HEAD, 1.0);
    let of_q = device.tensor(&q, [heads, queries, HEAD])?;
    let of_k = device.tensor(&k, [heads, keys, HEAD])?;
    let of_v = device.tensor(&v, [heads, keys, HEAD])?;
    let mut of_o = device.filled_bytes::<T, 3>([heads, queries, HEAD], 0xff)?;

    let stream = device.stream()?;
    let grid = Grid::new(u32::try_from(queries.div_ceil(128))?, u32::try_from(heads)?, 1);
    let (all, ahead) = (u32::try_from(keys)?, u32::try_from(keys.saturating_sub(queries))?);
    let scale = std::f32::consts::LOG2_E / (HEAD as f32).sqrt();
    let queue = |o: &mut DeviceTensor<T, 3>| {
        forward::attention::launch::<T, CAUSAL>(&stream, grid, &of_q, &of_k, &of_v, o, all, ahead, scale)
    };
    queue(&mut of_o)?;
    stream.synchronize()?;

    // All rows, or a few dozen if there are many.
    let found = values(&of_o.to_vec()?);
    let [q, k, v] = [q, k, v].map(|all| values(&all));
    let rows = heads * queries;
    let step = (rows * keys / (1 << 19)).clamp(1, rows.div_ceil(50));
    let mut error = 0.0_f64;
    for row in (0..rows).step_by(step) {
        let (of_head, seen) = (row / queries * keys * HEAD, options.seen(row % queries) * HEAD);
        let [k, v] = [&k, &v].map(|all| &all[of_head..][..seen]);
        let wanted = reference(&q[row * HEAD..][..HEAD], k, v);
        for (found, wanted) in found[row * HEAD..].iter().zip(wanted) {
            let difference = (found - wanted).abs();
            // A NaN is kept.
            if difference > error || difference.is_nan() {
                error = difference;
            }
        }
    }
    let is_right = error <= options.tolerance.unwrap_or(T::TOLERANCE);
    ensure!(is_right, "{options:?}: an element is wrong by {error:.2e}");

    let is_measured = matches!(device.id(), DeviceId::Cuda(_)) && options.iterations > 0;
    let tflops = if is_measured {
        for _ in 0..options.iterations.div_ceil(4) {
            queue(&mut of_o)?;
        }
        let begin = stream.record()?;
        for _ in 0..options.iterations {
            queue(&mut of_o)?;
        }
        let seconds = f64::from(begin.elapsed_ms(&stream.record()?)?) / 1e3;
        // Two multiplications for each query, each key that it sees, and each element.
        let pairs: usize = (0..queries).map(|i| options.seen(i)).sum();
        let operations = 4.0 * (heads * pairs * HEAD) as f64 * f64::from(options.iterations);
        Some(operations / seconds * 1e-12)
    } else {
        None
    };
    Ok(Outcome { error, tflops })
}

/// Returns numbers of at most this magnitude that look random but are reproducible (the finaliser
/// of MurmurHash3).
fn numbers<T: Element>(seed: u64, len: usize, size: f64) -> Vec<T> {
    let number = |i: usize| {
        let mut x = (i as u64).wrapping_add(seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        T::of(((x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0) * size)
    };
    (0..len).map(number).collect()
}

fn values<T: Element>(all: &[T]) -> Vec<f64> {
    all.iter().map(|element| element.value()).collect()
}

/// Computes one row of the result.
fn reference(query: &[f64], keys: &[f64], values: &[f64]) -> Vec<f64> {
    let dot = |key: &[f64]| query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>();
    let scores: Vec<f64> = keys.chunks(HEAD).map(|key| dot(key) / (HEAD as f64).sqrt()).collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut row = vec![0.0; HEAD];
    for (value, weight) in values.chunks(HEAD).zip(&weights) {
        for (sum, element) in row.iter_mut().zip(value) {
            *sum += weight * element / total;
        }
    }
    row
}

/// Runs each instance with several numbers of queries and keys, and checks each element.
pub fn run(device: &Device) -> anyhow::Result<()> {
    for (shape, causal, element) in [
        ([1, 64, 128], false, "bf16"),
        ([2, 100, 200], true, "bf16"),
        ([1, 192, 333], false, "f16"),
        ([1, 130, 130], true, "f16"),
        ([1, 3, 1], false, "bf16"),
    ] {
        let options = Options { shape, causal, element, iterations: 0, ..Options::default() };
        let error = check(device, &options)?.error;
        let ([heads, queries, keys], mask) = (shape, if causal { ", causal" } else { "" });
        println!(
            "{}: {heads} × {queries} queries over {keys} keys{mask}, {element}: none wrong by more than {error:.1e}",
            device.name()
        );
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let words: Vec<_> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return run(&device);
    }
    let options = Options::parse(words.into_iter())?;
    let Outcome { error, tflops } = check(&device, &options)?;
    print!("{}: {options:?}: none wrong by more than {error:.1e}", device.name());
    println!("{}", tflops.map_or_else(String::new, |tflops| format!(", {tflops:.0} TFLOP/s")));
    Ok(())
}
