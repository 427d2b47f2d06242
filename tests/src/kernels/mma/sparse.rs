//! Sparse left operands: two of each four elements of a row are stored, and of `tf32` one of two.

use tma_runtime::prelude::*;

use super::{Integral, inputs, product, scalars, transposed};
use crate::case::Case;
use crate::compare::same;
use crate::random::hash;

/// A case that runs the instance for these generics.
macro_rules! case {
    ($name:literal, $left:ty, $right:ty, $sum:ty, $half:literal, $depth:literal, $registers:literal) => {
        Case {
            name: concat!("mma::sparse_", $name),
            run: |device, _| check::<$left, $right, $sum, $half, $depth, $registers>(device),
        }
    };
}

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    case!("f16", f16, f16, f32, 64, 128, 2),
    case!("f16_in_f16", f16, f16, f16, 64, 128, 2),
    case!("tf32", tf32, tf32, f32, 32, 64, 2),
    case!("e4m3_e5m2", e4m3, e5m2, f32, 128, 256, 4),
    case!("u8_i8", u8, i8, i32, 128, 256, 4),
    Case { name: "mma::sparse_bands", run: |device, _| check_bands(device) },
    Case { name: "mma::sparse_fragment_f16", run: |device, _| check_fragment::<f16>(device) },
    Case { name: "mma::sparse_fragment_bf16", run: |device, _| check_fragment::<bf16>(device) },
];

/// `c = a · bᵀ`, of 128 × K and 64 × K, where half of `a` is stored. Two warpgroups multiply 64
/// rows each; `C` registers of each thread have the metadata of its rows.
#[tma_kernel(threads = 256, instances((E, F, T, HALF, K, C) in [
    (f16, f16, f32, 64, 128, 2), (f16, f16, f16, 64, 128, 2), (tf32, tf32, f32, 32, 64, 2),
    (e4m3, e5m2, f32, 128, 256, 4), (u8, i8, i32, 128, 256, 4),
]))]
pub fn mma_sparse<
    E: MatrixElement,
    F: Multiply<E, T>,
    T: AccumulatorElement + Scalar,
    const HALF: u32,
    const K: u32,
    const C: usize,
>(
    a: Global<E>,
    b: Global<F>,
    metadata: Global<u32>,
    c: Global<T>,
) {
    let left: Tile<E, Shape2<128, HALF>, Swizzle128> = shared();
    let right: Tile<F, Shape2<64, K>, Swizzle128> = shared();
    for i in (thread_idx().x..128 * HALF).step_by(256) {
        left.set([i / HALF, i % HALF], a.get(i));
    }
    for i in (thread_idx().x..64 * K).step_by(256) {
        right.set([i / K, i % K], b.get(i));
    }
    let mut places = [0u32; C];
    for i in unroll(0..C) {
        places[i] = metadata.get((warpgroup_idx() * C as u32 + i as u32) * 128 + thread_idx().x % 128);
    }
    fence_proxy_async();
    sync_threads();
    let me = warpgroup_idx();
    let mut sum = Accumulator::<T, 64, 64>::zero();
    sum.mma(left.band::<64>(me).sparse(places), right, ()).wait();
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        c.set((me * 64 + at[0]) * 64 + at[1], sum[i]);
    }
}

/// Returns the number of elements of a group, and of those that are stored.
fn group<E: Scalar>() -> [usize; 2] {
    if size_of::<E>() == 4 { [2, 1] } else { [4, 2] }
}

/// Returns a matrix of rows of `k` elements, of which half are zero, and for each group the four
/// bits of metadata that select the others.
pub(super) fn sparse<E: Integral>(seed: u64, rows: usize, k: usize) -> (Vec<i32>, Vec<u32>) {
    const PAIRS: [u32; 6] = [0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110];
    let [of, _] = group::<E>();
    let mut matrix = inputs::<E>(seed, rows * k);
    let mut bits = vec![];
    for (number, elements) in (0..).zip(matrix.chunks_mut(of)) {
        let drawn = hash(seed + 1, number);
        let four = if of == 2 { [0b0100, 0b1110][(drawn % 2) as usize] } else { PAIRS[(drawn % 6) as usize] };
        for (place, element) in (0..).zip(elements) {
            // An element of tf32 counts as two.
            let is_there =
                if of == 2 { four >> 1 & 1 == place } else { four & 3 == place || four >> 2 == place };
            if !is_there {
                *element = 0;
            }
        }
        bits.push(four);
    }
    (matrix, bits)
}

/// Returns the elements that are stored.
pub(super) fn compressed<E: Scalar>(matrix: &[i32], bits: &[u32]) -> Vec<i32> {
    let [of, _] = group::<E>();
    let there = |(elements, four): (&[i32], &u32)| -> Vec<i32> {
        let places = if of == 2 { vec![four >> 1 & 1] } else { vec![four & 3, four >> 2] };
        places.into_iter().filter_map(|place| elements.get(place as usize).copied()).collect()
    };
    matrix.chunks(of).zip(bits).flat_map(there).collect()
}

/// Returns the registers of metadata: for each 64 rows, `registers` of 128 threads each.
pub(super) fn registers<E: Scalar>(bits: &[u32], rows: usize, registers: usize) -> Vec<u32> {
    let groups = bits.len() / rows;
    let is_narrow = size_of::<E>() == 1;
    let bits_at = |row: usize, group: usize| bits.get(row * groups + group).copied().unwrap_or_default();
    let word = |band: usize, register: usize, thread: usize| -> u32 {
        let (lane, warp) = (thread % 32, thread / 32);
        let row = band * 64 + warp * 16 + lane / 4;
        (0..8)
            .map(|nibble| {
                let (row, group) = if is_narrow {
                    (row + 8 * (lane % 2), register * 16 + lane % 4 / 2 * 8 + nibble)
                } else {
                    (row + 8 * (nibble / 4), register * 16 + lane % 4 * 4 + nibble % 4)
                };
                bits_at(row, group) << (4 * nibble)
            })
            .sum()
    };
    let bands = (0..rows / 64).flat_map(|band| (0..registers).map(move |register| (band, register)));
    bands.flat_map(|(band, register)| (0..128).map(move |thread| word(band, register, thread))).collect()
}

fn check<E, F, T, const HALF: u32, const K: u32, const C: usize>(device: &Device) -> anyhow::Result<()>
where
    E: Integral + MatrixElement,
    F: Integral + Multiply<E, T>,
    T: Integral + AccumulatorElement,
    mma_sparse::Instance<E, F, T, HALF, K, C>: mma_sparse::Compiled,
{
    let k = K as usize;
    let (a, bits) = sparse::<E>(41, 128, k);
    let b = inputs::<F>(43, 64 * k);
    let half = compressed::<E>(&a, &bits);
    let left = device.tensor(&scalars::<E>(&half), [half.len()])?;
    let right = device.tensor(&scalars::<F>(&b), [b.len()])?;
    let words = registers::<E>(&bits, 128, C);
    let metadata = device.tensor(&words, [words.len()])?;
    let mut c = device.filled_bytes([128 * 64], 0xab)?;
    mma_sparse::launch::<E, F, T, HALF, K, C>(device, 1, &left, &right, &metadata, &mut c)?;
    same("the product", &c.to_vec()?, &scalars::<T>(&product(&a, &b, k)))
}

/// `c = -a · b + a · b₁`, of 128 × 128, 128 × 32 and 128 × 32, where half of `a` is stored. One
/// warpgroup multiplies both bands, and the right operands have contiguous columns. The second
/// matmul keeps its metadata while other values are written to the variable of the metadata; these
/// values are written to `others`.
#[tma_kernel(threads = 128)]
pub fn mma_sparse_bands(
    a: TensorMap<Tile<bf16, Shape2<128, 64>, Swizzle128>>,
    b: TensorMap<Tile<bf16, Shape2<128, 32>, Swizzle64>>,
    metadata: Global<u32>,
    c: Global<f32>,
    others: Global<u32>,
) {
    let left: Tile<bf16, Shape2<128, 64>, Swizzle128> = shared();
    let rights: Stages<Tile<bf16, Shape2<128, 32>, Swizzle64>, 2> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(left.bytes() + 2 * rights[0].bytes());
        a.load(left, [0, 0], full);
        b.load(rights[0], [0, 0], full);
        b.load(rights[1], [128, 0], full);
    }
    let mut places = [0u32; 4];
    for i in unroll(0..4u32) {
        places[i as usize] = metadata.get(i * 128 + t);
    }
    let out = c.matrix(0, [128, 32], 32);
    sync_threads();
    full.wait(0);
    let mut sum = Accumulator::<f32, 128, 32>::zero();
    let mut flight = sum.mma(-left.sparse(places), rights[0].t(), ());
    flight.mma(left.sparse(places), rights[1].t(), ());
    for i in unroll(0..4usize) {
        places[i] = !places[i];
    }
    flight.wait();
    sum.store_to(out, [0, 0]);
    for i in unroll(0..4u32) {
        others.set(i * 128 + t, places[i as usize]);
    }
}

fn check_bands(device: &Device) -> anyhow::Result<()> {
    let (a, bits) = sparse::<bf16>(45, 128, 128);
    let b = inputs::<bf16>(47, 2 * 128 * 32);
    let half = compressed::<bf16>(&a, &bits);
    let left = device.tensor(&scalars::<bf16>(&half), [128, 64])?;
    let right = device.tensor(&scalars::<bf16>(&b), [256, 32])?;
    let words = registers::<bf16>(&bits, 128, 2);
    let metadata = device.tensor(&words, [words.len()])?;
    let mut c = device.filled_bytes([128 * 32], 0xab)?;
    let mut others = device.filled_bytes([words.len()], 0)?;
    mma_sparse_bands::launch(device, 1, &left, &right, &metadata, &mut c, &mut others)?;
    same("the other values", &others.to_vec()?, &words.iter().map(|word| !word).collect::<Vec<_>>())?;
    let (first, second) = b.split_at(128 * 32);
    let products = [first, second].map(|b| product(&a, &transposed(b, 32), 128));
    let wanted: Vec<_> = products[0].iter().zip(&products[1]).map(|(one, other)| other - one).collect();
    same("the sum of products", &c.to_vec()?, &scalars::<f32>(&wanted))
}

/// `c = p · dᵀ + p · e`, of 128 × 128, 32 × 128 and 128 × 32. The stored half of `p` is the matmul
/// `a · bᵀ`, of 128 × 32 and 64 × 32, which stays in registers. Two warpgroups multiply 64 rows
/// each.
#[tma_kernel(threads = 256, instances(E in [f16, bf16]))]
pub fn mma_sparse_fragment<E: TransposedElement + Multiply<E, f32>>(
    factors: Global<E>,
    values: Global<E>,
    metadata: Global<u32>,
    c: Global<f32>,
) where
    f32: PackAs<E>,
{
    let left: Tile<E, Shape2<128, 32>, Swizzle64> = shared();
    let right: Tile<E, Shape2<64, 32>, Swizzle64> = shared();
    let first: Tile<E, Shape2<32, 128>, Swizzle128> = shared();
    let second: Tile<E, Shape2<128, 32>, Swizzle64> = shared();
    let t = thread_idx().x;
    for i in (t..128 * 32).step_by(256) {
        left.set([i / 32, i % 32], factors.get(i));
        first.set([i / 128, i % 128], values.get(i));
        second.set([i / 32, i % 32], values.get(128 * 32 + i));
    }
    for i in (t..64 * 32).step_by(256) {
        right.set([i / 32, i % 32], factors.get(128 * 32 + i));
    }
    fence_proxy_async();
    sync_threads();
    let me = warpgroup_idx();
    let word = me * 256 + t % 128;
    let places = [metadata.get(word), metadata.get(word + 128)];
    let mut half = Accumulator::<f32, 64, 64>::zero();
    half.mma(left.band::<64>(me), right, ()).wait();
    let mut sum = Accumulator::<f32, 64, 32>::zero();
    let weights: Sparse<Fragment<E, 64, 64>, 128> = half.pack::<E>().sparse(places);
    let mut flight = sum.mma(weights, first, ());
    flight.mma(half.pack::<E>().sparse(places), second.t(), ());
    flight.wait();
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        c.set((me * 64 + at[0]) * 32 + at[1], sum[i]);
    }
}

fn check_fragment<E>(device: &Device) -> anyhow::Result<()>
where
    E: Integral + TransposedElement + Multiply<E, f32>,
    f32: PackAs<E>,
    mma_sparse_fragment::Instance<E>: mma_sparse_fragment::Compiled,
{
    let factors = inputs::<E>(51, (128 + 64) * 32);
    let values = inputs::<E>(53, 2 * 128 * 32);
    let (_, bits) = sparse::<E>(55, 128, 128);
    let words = registers::<E>(&bits, 128, 2);
    let (a, b) = factors.split_at(128 * 32);
    let (d, e) = values.split_at(128 * 32);
    let mut whole = vec![0; 128 * 128];
    for ((there, four), group) in product(a, b, 32).chunks(2).zip(&bits).zip(whole.chunks_mut(4)) {
        for (element, place) in there.iter().zip([four & 3, four >> 2]) {
            group[place as usize] = *element;
        }
    }
    let factors = device.tensor(&scalars::<E>(&factors), [factors.len()])?;
    let tensor = device.tensor(&scalars::<E>(&values), [values.len()])?;
    let metadata = device.tensor(&words, [words.len()])?;
    let mut c = device.filled_bytes([128 * 32], 0xab)?;
    mma_sparse_fragment::launch::<E>(device, 1, &factors, &tensor, &metadata, &mut c)?;
    let products = [product(&whole, d, 128), product(&whole, &transposed(e, 32), 128)];
    let wanted: Vec<_> = products[0].iter().zip(&products[1]).map(|(one, other)| one + other).collect();
    same("the sum of products", &c.to_vec()?, &scalars::<f32>(&wanted))
}
