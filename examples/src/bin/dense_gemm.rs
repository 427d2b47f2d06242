//! Multiplies matrices with the tensor cores: C = A · B, in batches, modelled on the dense GEMM of
//! the tutorials.
//!
//! ```sh
//! cargo run --release -p tma-examples --bin dense_gemm --features cuda -- \
//!     --mnkl 4096,4096,4096,1 --ab bf16 --c f16 --acc f32 --a-major k --b-major n --c-major n
//! ```
//!
//! A block computes 128 × 128 elements of C. All four warps multiply, and one of their threads
//! loads ahead: tiles of A and B pass through a pipeline of three stages, so that two blocks share
//! a multiprocessor. The sums stay in registers until the end. Then they are converted, stored to
//! shared memory, and copied out from there. Extents are arbitrary: elements out of bounds are
//! loaded as zeros, and not stored.
//!
//! The options select an instance of one kernel. An operand is K-major if the elements along K are
//! contiguous in memory, else M-major or N-major. Its tile is loaded unchanged, and transposed by
//! the tensor cores. An M-major C is computed as Cᵀ = Bᵀ · Aᵀ: the operands are swapped. Without
//! options, every instance multiplies small matrices.

use std::ops::Range;

use anyhow::{Context, bail, ensure};
use tma_runtime::launch::{Arg, KernelSpec, launch};
use tma_runtime::prelude::*;
use tma_runtime::{Scalar, layout::DeviceId};

/// The kernel.
#[tma_module]
pub mod gemm {
    use tma_runtime::prelude::*;

    /// Returns row and column of the tile number `tile`. Tiles are ordered in bands of 8 rows, so
    /// that concurrent blocks read the same parts of A and B, which the L2 cache then holds.
    #[tma_device]
    fn tile_coordinates(tile: u32, down: u32, across: u32) -> [u32; 2] {
        let first = tile / (8 * across) * 8;
        let height = min(down - first, 8);
        let rest = tile % (8 * across);
        [first + rest % height, rest / height]
    }

    /// C = A · B, where `a` is M × K, or K × M if `MN_A`; `b` is N × K, or K × N if `MN_B`; and `c`
    /// is M × N, of `down` × `across` tiles. There are `steps` steps of `K` elements.
    #[tma_kernel(threads = 128, instances(
        (AB, C, SUM, K, COLS) in [
            f16_f16_f32 = (f16, f16, f32, 64, 64), f16_bf16_f32 = (f16, bf16, f32, 64, 64),
            f16_f32_f32 = (f16, f32, f32, 64, 32), f16_f16_f16 = (f16, f16, f16, 64, 64),
            bf16_f16_f32 = (bf16, f16, f32, 64, 64), bf16_bf16_f32 = (bf16, bf16, f32, 64, 64),
            bf16_f32_f32 = (bf16, f32, f32, 64, 32),
        ],
        (MN_A, ROWS_A, COLS_A) in [k = (false, 128, 64), mn = (true, 64, 128)],
        (MN_B, ROWS_B, COLS_B) in [k = (false, 128, 64), mn = (true, 64, 128)];

        (AB, C, SUM, K, COLS) in [
            tf32_f16_f32 = (tf32, f16, f32, 32, 64), tf32_bf16_f32 = (tf32, bf16, f32, 32, 64),
            tf32_f32_f32 = (tf32, f32, f32, 32, 32),
        ],
        (MN_A, ROWS_A, COLS_A) in [k = (false, 128, 32)], (MN_B, ROWS_B, COLS_B) in [k = (false, 128, 32)];

        (AB, C, SUM, K, COLS) in [
            e4m3_e4m3_f32 = (e4m3, e4m3, f32, 128, 128), e4m3_e5m2_f32 = (e4m3, e5m2, f32, 128, 128),
            e4m3_f16_f32 = (e4m3, f16, f32, 128, 64), e4m3_bf16_f32 = (e4m3, bf16, f32, 128, 64),
            e4m3_f32_f32 = (e4m3, f32, f32, 128, 32), e4m3_f16_f16 = (e4m3, f16, f16, 128, 64),
            e5m2_e4m3_f32 = (e5m2, e4m3, f32, 128, 128), e5m2_e5m2_f32 = (e5m2, e5m2, f32, 128, 128),
            e5m2_f16_f32 = (e5m2, f16, f32, 128, 64), e5m2_bf16_f32 = (e5m2, bf16, f32, 128, 64),
            e5m2_f32_f32 = (e5m2, f32, f32, 128, 32), e5m2_f16_f16 = (e5m2, f16, f16, 128, 64),
            i8_i32_i32 = (i8, i32, i32, 128, 32), u8_i32_i32 = (u8, i32, i32, 128, 32),
        ],
        (MN_A, ROWS_A, COLS_A) in [k = (false, 128, 128)], (MN_B, ROWS_B, COLS_B) in [k = (false, 128, 128)];
    ))]
    pub fn dense_gemm<
        AB,
        C,
        SUM,
        const K: u32,
        const COLS: u32,
        const MN_A: bool,
        const ROWS_A: u32,
        const COLS_A: u32,
        const MN_B: bool,
        const ROWS_B: u32,
        const COLS_B: u32,
    >(
        a: TensorMap<Tile<AB, Shape3<1, ROWS_A, COLS_A>, Swizzle128>>,
        b: TensorMap<Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>>,
        c: TensorMap<Tile<C, Shape3<1, 128, COLS>, Swizzle128>>,
        down: u32,
        across: u32,
        steps: u32,
    ) where
        AB: Multiply<AB, SUM>,
        C: TileElement,
        SUM: StoreAs<C>,
        Transposed<Tile<AB, Shape3<1, ROWS_A, COLS_A>, Swizzle128>, MN_A>: Left<128, K, Element = AB>,
        Transposed<Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>, MN_B>: Right<128, K, Element = AB>,
    {
        assume(steps > 0);
        let ring: Pipeline<
            (
                Tile<AB, Shape3<1, ROWS_A, COLS_A>, Swizzle128>,
                Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>,
            ),
            3,
        > = shared();
        let out: Tile<C, Shape3<1, 128, COLS>, Swizzle128> = shared();
        let leader = warp_idx() == 0 && elect_one();
        if leader {
            ring.init(4); // each warp releases what it has read
            fence_barrier_init();
        }
        sync_threads();

        let at = tile_coordinates(block_idx().x, down, across);
        let m = at[0] * 128;
        let n = at[1] * 128;
        let batch = block_idx().z;
        let mut producer = ring.producer();
        if leader {
            for step in 0..min(steps, 3) {
                let slot = producer.acquire();
                let k = step * K;
                a.load(slot.0, if MN_A { [batch, k, m] } else { [batch, m, k] }, slot.barrier());
                b.load(slot.1, if MN_B { [batch, k, n] } else { [batch, n, k] }, slot.barrier());
            }
        }

        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<SUM, 128, 128>::zero();
        let slot = consumer.wait();
        let mut flight = sum.mma(slot.0.t_if::<MN_A>(), slot.1.t_if::<MN_B>(), slot);
        for step in 1..steps {
            let slot = consumer.wait();
            let done = flight.mma(slot.0.t_if::<MN_A>(), slot.1.t_if::<MN_B>(), slot);
            if elect_one() {
                done.release();
            }
            if leader && step + 2 < steps {
                let slot = producer.acquire();
                let k = (step + 2) * K;
                a.load(slot.0, if MN_A { [batch, k, m] } else { [batch, m, k] }, slot.barrier());
                b.load(slot.1, if MN_B { [batch, k, n] } else { [batch, n, k] }, slot.barrier());
            }
        }
        let _last = flight.wait();

        for j in unroll(0..128 / COLS) {
            if j > 0 {
                if leader {
                    bulk_wait_group_read::<0>(); // the previous store has read the buffer
                }
                sync_threads();
            }
            sum.columns::<COLS>(j).store(out);
            fence_proxy_async();
            sync_threads();
            if leader {
                c.store([batch, m, n + j * COLS], out);
                bulk_commit_group();
            }
        }
        if leader {
            bulk_wait_group_read::<0>();
        }
    }
}

/// The problem, as given on the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Extents M, N, K, and the number of batches.
    pub mnkl: [usize; 4],
    /// Element types of A and B, of C, and of the sums.
    pub types: [String; 3],
    /// Contiguous dimensions of A, B and C: `k` or `m`, `k` or `n`, `n` or `m`.
    pub major: [char; 3],
    /// Maximum error, relative to the size of sums. The default depends on the types.
    pub tolerance: Option<f64>,
    /// Number of launches that are measured on a GPU.
    pub iterations: u32,
}

impl Default for Options {
    fn default() -> Self {
        let types = ["f16", "f16", "f32"].map(str::to_owned);
        Self { mnkl: [4096, 4096, 4096, 1], types, major: ['k', 'k', 'n'], tolerance: None, iterations: 100 }
    }
}

const USAGE: &str =
    "options: --mnkl M,N,K,L  --ab f16|bf16|tf32|e4m3|e5m2|i8|u8  --c f16|bf16|f32|e4m3|e5m2|i32
         --acc f32|f16|i32  --a-major k|m  --b-major k|n  --c-major n|m  --tolerance X  --iterations N";

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
            let one_of = |letters: &str| {
                let letter = value.chars().next().filter(|&c| value.len() == 1 && letters.contains(c));
                letter
                    .with_context(|| format!("`{name}` takes one of the letters `{letters}`, not `{value}`"))
            };
            match name.as_str() {
                "--mnkl" => {
                    let extents = value.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
                    let extents = extents.ok().and_then(|extents| extents.try_into().ok());
                    options.mnkl = extents.with_context(|| format!("`{value}` is not M,N,K,L"))?;
                }
                "--ab" => options.types[0] = value,
                "--c" => options.types[1] = value,
                "--acc" => options.types[2] = value,
                "--a-major" => options.major[0] = one_of("km")?,
                "--b-major" => options.major[1] = one_of("kn")?,
                "--c-major" => options.major[2] = one_of("nm")?,
                "--tolerance" => options.tolerance = Some(value.parse()?),
                "--iterations" => options.iterations = value.parse()?,
                _ => bail!("there is no option `{name}`\n{USAGE}"),
            }
        }
        ensure!(options.mnkl.iter().all(|&extent| extent > 0), "every extent is at least 1");
        Ok(options)
    }

    /// Returns the same GEMM with an N-major C, which is the form that the kernel computes.
    fn with_n_major_c(&self) -> Self {
        let ([m, n, k, l], [a, b, c]) = (self.mnkl, self.major);
        if c == 'n' {
            return self.clone();
        }
        let turned = |major| if major == 'k' { 'k' } else { 'm' };
        Self { mnkl: [n, m, k, l], major: [turned(b), if a == 'k' { 'k' } else { 'n' }, 'n'], ..self.clone() }
    }

    /// Returns the instance for these options.
    fn kernel(&self) -> anyhow::Result<&'static KernelSpec> {
        let [ab, c, sum] = &self.types;
        let [a, b] = [self.major[0], self.major[1]].map(|major| if major == 'k' { "k" } else { "mn" });
        let name = format!("dense_gemm::{ab}_{c}_{sum}_{a}_{b}");
        let found = gemm::dense_gemm::INSTANCES.iter().find(|kernel| kernel.name == name);
        found.with_context(|| {
            format!(
                "no instance multiplies {ab} in {sum} to {c} with these layouts: only f16 and bf16 may have another \
                 dimension than K contiguous\n{USAGE}"
            )
        })
    }
}

/// The type of a matrix element.
trait Element: Scalar {
    /// The largest relative error of rounding to the type.
    const ROUNDING: f64;

    /// Maps a number from -1 to 1 to an element.
    fn of(unit: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! elements {
    ($($ty:ident, $rounding:expr, $of:expr, $value:expr;)+) => { $(
        impl Element for $ty {
            const ROUNDING: f64 = $rounding;

            fn of(unit: f64) -> Self {
                $of(unit)
            }

            fn value(self) -> f64 {
                $value(self)
            }
        }
    )+ };
}

elements! {
    f16, 1.0 / 2048.0, f16::from_f64, f16::to_f64;
    bf16, 1.0 / 256.0, bf16::from_f64, bf16::to_f64;
    f32, 1.0 / 16_777_216.0, |unit| unit as f32, f64::from;
    tf32, 1.0 / 2048.0, tf32::from_f64, tf32::to_f64;
    e4m3, 1.0 / 16.0, e4m3::from_f64, |x: e4m3| x.to_f64();
    e5m2, 1.0 / 8.0, e5m2::from_f64, |x: e5m2| x.to_f64();
    i8, 0.0, |unit| (unit * 8.0) as i8, f64::from;
    u8, 0.0, |unit| (unit * 4.0 + 4.0) as u8, f64::from;
    i32, 0.0, |unit| (unit * 8.0) as i32, f64::from;
}

/// Returns a number of a sequence that looks random but is reproducible (the finaliser of
/// MurmurHash3).
fn hash(seed: u64, i: usize) -> u64 {
    let mut x = (i as u64).wrapping_add(seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

fn values<T: Element>(elements: Vec<T>) -> Vec<f64> {
    elements.into_iter().map(T::value).collect()
}

/// Matrices of `rows` × `columns`, one for each batch.
struct Matrices<T> {
    values: Vec<f64>,
    tensor: DeviceTensor<T, 3>,
    rows: usize,
    columns: usize,
    /// Whether the elements of a row are contiguous, as opposed to those of a column.
    is_row_major: bool,
}

impl<T: Element> Matrices<T> {
    fn new(
        device: &Device,
        seed: u64,
        [batches, rows, columns]: [usize; 3],
        is_row_major: bool,
    ) -> anyhow::Result<Self> {
        let number = |i| T::of((hash(seed, i) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0);
        let elements: Vec<T> = (0..batches * rows * columns).map(number).collect();
        let shape = if is_row_major { [batches, rows, columns] } else { [batches, columns, rows] };
        let tensor = device.tensor(&elements, shape)?;
        Ok(Self { values: values(elements), tensor, rows, columns, is_row_major })
    }

    fn at(&self, batch: usize, row: usize, column: usize) -> f64 {
        let in_batch = if self.is_row_major { row * self.columns + column } else { column * self.rows + row };
        self.values[batch * self.rows * self.columns + in_batch]
    }
}

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Largest error of an element, relative to the element and to the size of sums.
    pub error: f64,
    /// Error that is expected for the types.
    pub tolerance: f64,
    /// Performance, if it was measured.
    pub tflops: Option<f64>,
}

/// Evaluates `$do` with `$T` as the type of this name.
macro_rules! with_type {
    ($name:expr, [$($ty:ident),+], $T:ident => $do:expr) => {
        match $name.as_str() {
            $(stringify!($ty) => {
                type $T = $ty;
                $do
            })+
            other => bail!("`{other}` is not an element type here\n{USAGE}"),
        }
    };
}

/// Multiplies, compares the result with the host's, and measures the performance on a GPU.
///
/// # Errors
///
/// A missing instance, or an error of the device.
pub fn multiply(device: &Device, options: &Options) -> anyhow::Result<Outcome> {
    let [ab, c, _] = &options.types;
    with_type!(ab, [f16, bf16, tf32, e4m3, e5m2, i8, u8], AB => {
        with_type!(c, [f16, bf16, f32, e4m3, e5m2, i32], C => multiply_as::<AB, C>(device, options))
    })
}

fn multiply_as<AB: Element, C: Element>(device: &Device, options: &Options) -> anyhow::Result<Outcome> {
    let ([m, n, k, l], [a_major, b_major, c_major]) = (options.mnkl, options.major);
    let kernel = options.with_n_major_c().kernel()?;
    let a = Matrices::<AB>::new(device, 1, [l, m, k], a_major == 'k')?;
    let b = Matrices::<AB>::new(device, 2, [l, n, k], b_major == 'k')?;
    let mut c = Matrices::<C>::new(device, 3, [l, m, n], c_major == 'n')?;

    // If C is M-major, the kernel computes its transpose.
    let (left, right) = if c_major == 'n' { (&a, &b) } else { (&b, &a) };
    let (down, across) = (left.rows.div_ceil(128), right.rows.div_ceil(128));
    let grid = Grid::new(u32::try_from(down * across)?, 1, u32::try_from(l)?);
    let steps = k.div_ceil(128 / size_of::<AB>());
    let [down, across, steps] = [down, across, steps].map(|count| count as u32);
    let stream = device.stream()?;
    let queue = |c: &mut Matrices<C>| {
        let [left, right] = [left, right].map(|matrices| Arg::map(matrices.tensor.view()));
        let [down, across, steps] = [down, across, steps].map(Arg::scalar);
        launch(&stream, kernel, grid, &[left, right, Arg::map_mut(c.tensor.view_mut()), down, across, steps])
    };
    c.tensor.fill_bytes(0xff)?;
    queue(&mut c)?;
    stream.synchronize()?;
    c.values = values(c.tensor.to_vec()?);
    let error = error_of(&a, &b, &c, l);

    let is_measured = matches!(device.id(), DeviceId::Cuda(_)) && options.iterations > 0;
    let tflops = if is_measured {
        for _ in 0..options.iterations.div_ceil(4) {
            queue(&mut c)?;
        }
        let begin = stream.record()?;
        for _ in 0..options.iterations {
            queue(&mut c)?;
        }
        let seconds = f64::from(begin.elapsed_ms(&stream.record()?)?) / 1e3;
        Some(2e-12 * (m * n * l) as f64 * k as f64 * f64::from(options.iterations) / seconds)
    } else {
        None
    };
    // The rounding errors of a sum are as random as its products. For products of 8-bit floats, an
    // H200 keeps 13 bits.
    let of_sum = match options.types[2].as_str() {
        "i32" => 0.0,
        "f32" if size_of::<AB>() > 1 => 1.0 / (1 << 22) as f64,
        _ => 1.0 / 2048.0,
    };
    let expected = C::ROUNDING + 4.0 * f64::from(steps * 4).sqrt() * of_sum;
    Ok(Outcome { error, tolerance: options.tolerance.unwrap_or(expected), tflops })
}

/// Returns the largest error of C's elements: of all, or of a few thousand if there are many.
fn error_of<AB: Element, C: Element>(a: &Matrices<AB>, b: &Matrices<AB>, c: &Matrices<C>, l: usize) -> f64 {
    const SAMPLES: usize = 4096;
    let (elements, depth) = (c.values.len(), a.columns);
    let all = elements.saturating_mul(depth) <= 1 << 25;
    let samples: Range<usize> = if all { 0..elements } else { 0..SAMPLES };
    // The size of a sum of this many products of numbers from -1 to 1.
    let size = (depth as f64).sqrt() / 3.0;
    let mut worst = 0.0_f64;
    for i in samples {
        let index = if all { i } else { (hash(4, i) % elements as u64) as usize };
        let (batch, row, column) = (index % l, index / l % c.rows, index / l / c.rows);
        let products = (0..depth).map(|k| a.at(batch, row, k) * b.at(batch, column, k));
        let wanted: f64 = products.sum();
        let error = (c.at(batch, row, column) - wanted).abs() / (wanted.abs() + size);
        // A NaN is kept.
        if error > worst || error.is_nan() {
            worst = error;
        }
    }
    worst
}

/// Multiplies, and fails if an element is wrong.
///
/// # Errors
///
/// Errors of [`multiply`], and the error of a wrong element.
pub fn check(device: &Device, options: &Options) -> anyhow::Result<Outcome> {
    let outcome = multiply(device, options)?;
    let Outcome { error, tolerance, .. } = outcome;
    let is_right = error <= tolerance;
    ensure!(is_right, "{options:?}: an element is wrong by {error:.2e}, more than {tolerance:.2e}");
    Ok(outcome)
}

/// Returns the options for which this instance multiplies matrices of these extents, with a C of
/// either major dimension.
///
/// # Errors
///
/// A kernel that is not an instance of this one.
pub fn options_of(kernel: &KernelSpec, mnkl: [usize; 4], c_major: char) -> anyhow::Result<Options> {
    let words: Vec<_> = kernel.name.trim_start_matches("dense_gemm::").split('_').collect();
    let [ab, c, sum, a, b] = words[..] else { bail!("`{}` is another kernel", kernel.name) };
    // For an M-major C the operands are swapped.
    let [a, b] = if c_major == 'n' { [a, b] } else { [b, a] };
    let major = [if a == "k" { 'k' } else { 'm' }, if b == "k" { 'k' } else { 'n' }, c_major];
    Ok(Options { mnkl, types: [ab, c, sum].map(str::to_owned), major, iterations: 0, ..Options::default() })
}

/// Multiplies small and ragged matrices with every instance, and checks each element.
pub fn run(device: &Device) -> anyhow::Result<()> {
    const SHAPES: [[usize; 4]; 3] = [[144, 112, 80, 1], [16, 160, 336, 1], [48, 32, 16, 2]];
    let mut worst = 0.0_f64;
    for (i, kernel) in gemm::dense_gemm::INSTANCES.iter().enumerate() {
        let options = options_of(kernel, SHAPES[i % SHAPES.len()], ['n', 'm'][i % 2])?;
        worst = worst.max(check(device, &options)?.error);
    }
    let count = gemm::dense_gemm::INSTANCES.len();
    println!("{}: {count} instances multiply, none wrong by more than {worst:.1e}", device.name());
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let words: Vec<_> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return run(&device);
    }
    let options = Options::parse(words.into_iter())?;
    let Outcome { error, tflops, .. } = check(&device, &options)?;
    let ([m, n, k, l], [ab, c, sum]) = (options.mnkl, &options.types);
    print!(
        "{}: {l} of {m} × {n} × {k}, {ab} in {sum} to {c}: none wrong by more than {error:.1e}",
        device.name()
    );
    println!("{}", tflops.map_or_else(String::new, |tflops| format!(", {tflops:.0} TFLOP/s")));
    Ok(())
}
