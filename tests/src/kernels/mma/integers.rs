//! Integer matmuls that saturate, and matmuls of bits.

use tma_runtime::prelude::*;

use crate::case::Case;
use crate::compare::same;
use crate::random::hash;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::saturating_i8", run: |device, _| check_saturating::<i8, i8>(device) },
    Case { name: "mma::saturating_u8", run: |device, _| check_saturating::<u8, u8>(device) },
    Case { name: "mma::saturating_u8_i8", run: |device, _| check_saturating::<u8, i8>(device) },
    Case { name: "mma::bits_u8", run: |device, _| check_bits::<u8, 128, 64>(device) },
    Case { name: "mma::bits_loaded", run: |device, _| check_bits_loaded(device) },
    Case { name: "mma::bits_u32", run: |device, _| check_bits::<u32, 32, 16>(device) },
];

/// `c += 2 a · bᵀ` and `d += 2 a · bᵀ`, of 64 × 64 and 64 × 64, added to existing sums: `c`
/// saturates after every 32 products, and `d` wraps.
#[tma_kernel(threads = 128, instances((E, F) in [(i8, i8), (u8, u8), (u8, i8)]))]
pub fn mma_saturating<E: MatrixElement, F: Multiply<E, i32>>(
    a: Global<E>,
    b: Global<F>,
    c: Global<i32>,
    d: Global<i32>,
) {
    let left: Tile<E, Shape2<64, 64>, Swizzle64> = shared();
    let right: Tile<F, Shape2<64, 64>, Swizzle64> = shared();
    for i in (thread_idx().x..64 * 64).step_by(128) {
        left.set([i / 64, i % 64], a.get(i));
        right.set([i / 64, i % 64], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<i32, 64, 64>::zero();
    let mut wrapped = Accumulator::<i32, 64, 64>::zero();
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        sum[i] = c.get(at[0] * 64 + at[1]);
        wrapped[i] = d.get(at[0] * 64 + at[1]);
    }
    let mut flight = sum.mma_saturating(left, right, ());
    flight.mma_saturating(left, right, ());
    flight.wait();
    let mut flight = wrapped.mma(left, right, ());
    flight.mma(left, right, ());
    flight.wait();
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        c.set(at[0] * 64 + at[1], sum[i]);
        d.set(at[0] * 64 + at[1], wrapped[i]);
    }
}

/// An integer of 8 bits.
pub(super) trait Byte: Scalar + MatrixElement + Into<i64> {
    fn of(byte: u8) -> Self;
}

impl Byte for i8 {
    fn of(byte: u8) -> Self {
        byte.cast_signed()
    }
}

impl Byte for u8 {
    fn of(byte: u8) -> Self {
        byte
    }
}

pub(super) fn bytes<T: Byte>(seed: u64, count: u64) -> Vec<T> {
    // Most often the extremes.
    let byte = |i| match hash(seed, i) {
        bits if bits % 4 == 0 => 0x7f,
        bits if bits % 4 == 1 => 0x80,
        bits => bits.to_le_bytes()[1],
    };
    (0..count).map(|i| T::of(byte(i))).collect()
}

/// Initial sums: far from overflow, and close to it at both ends.
pub(super) fn starts(count: usize) -> Vec<i32> {
    (0..count).map(|i| [0, i32::MAX - 1000, i32::MIN + 1000, i32::MAX, i32::MIN][i % 5]).collect()
}

fn check_saturating<E, F>(device: &Device) -> anyhow::Result<()>
where
    E: Byte,
    F: Byte + Multiply<E, i32>,
    mma_saturating::Instance<E, F>: mma_saturating::Compiled,
{
    let (a, b) = (bytes::<E>(21, 64 * 64), bytes::<F>(22, 64 * 64));
    let left = device.tensor(&a, [a.len()])?;
    let right = device.tensor(&b, [b.len()])?;
    let before = starts(64 * 64);
    let (mut c, mut d) = (device.tensor(&before, [before.len()])?, device.tensor(&before, [before.len()])?);
    mma_saturating::launch::<E, F>(device, 1, &left, &right, &mut c, &mut d)?;

    let terms = |i: usize, half: usize| -> i64 {
        let row = |matrix: usize| matrix * 64 + half * 32..matrix * 64 + half * 32 + 32;
        let (a, b) = (a.get(row(i / 64)), b.get(row(i % 64)));
        let pairs = a.into_iter().flatten().zip(b.into_iter().flatten());
        pairs.map(|(&a, &b)| a.into() * b.into()).sum()
    };
    let clamp = |sum: i64| sum.clamp(i32::MIN.into(), i32::MAX.into());
    let all = |add: &dyn Fn(i64, i64) -> i64| -> Vec<i32> {
        let sum = |(i, &start): (usize, &i32)| {
            [0, 1, 0, 1].into_iter().fold(i64::from(start), |sum, half| add(sum, terms(i, half)))
        };
        before.iter().enumerate().map(sum).map(|sum| sum as i32).collect()
    };
    let (saturated, wrapped) = (all(&|sum, more| clamp(sum + more)), all(&|sum, more| sum + more));
    anyhow::ensure!(saturated != wrapped, "no sum leaves the range");
    same("the sums that saturate", &c.to_vec()?, &saturated)?;
    same("the sums that wrap", &d.to_vec()?, &wrapped)
}

/// `c` is the number of bits that rows of `a` and `b` have in common, and `d` twice that of the
/// first half: 64 and 48 rows of 1024 bits, in `K` integers each.
#[tma_kernel(threads = 128, instances((E, K, HALF) in [(u8, 128, 64), (u32, 32, 16)]))]
pub fn mma_bits<E: BitElement, const K: u32, const HALF: u32>(
    a: Global<E>,
    b: Global<E>,
    c: Global<i32>,
    d: Global<i32>,
) {
    let left: Tile<E, Shape2<64, K>, Swizzle64> = shared();
    let right: Tile<E, Shape2<48, K>, Swizzle64> = shared();
    for i in (thread_idx().x..64 * K).step_by(128) {
        left.set([i / K, i % K], a.get(i));
    }
    for i in (thread_idx().x..48 * K).step_by(128) {
        right.set([i / K, i % K], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<i32, 64, 48>::zero();
    let mut half = Accumulator::<i32, 64, 48>::zero();
    sum.mma_and_popc(left, right, ()).wait();
    let mut flight = half.mma_and_popc(left.columns::<HALF>(0), right.columns::<HALF>(0), 1u32);
    let one = flight.mma_and_popc(left.columns::<HALF>(0), right.columns::<HALF>(0), 2u32);
    if one + flight.wait() == 3 {
        for i in unroll(0..sum.len()) {
            let at = sum.at(i);
            c.set(at[0] * 48 + at[1], sum[i]);
            d.set(at[0] * 48 + at[1], half[i]);
        }
    }
}

/// `c` is the number of bits that rows of `a` and `b` have in common: 64 and 48 rows of 1024 bits.
/// The rows of `a` go through registers, half a row at a time.
#[tma_kernel(threads = 128)]
pub fn mma_bits_loaded(a: Global<u8>, b: Global<u8>, c: Global<i32>) {
    let left: Tile<u8, Shape2<64, 128>> = shared();
    let right: Tile<u8, Shape2<48, 128>, Swizzle64> = shared();
    for i in (thread_idx().x..64 * 128).step_by(128) {
        left.set([i / 128, i % 128], a.get(i));
    }
    for i in (thread_idx().x..48 * 128).step_by(128) {
        right.set([i / 128, i % 128], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<i32, 64, 48>::zero();
    let front = Fragment::<u8, 64, 64>::load(left, [0, 0]);
    let mut flight = sum.mma_and_popc(front, right.columns::<64>(0), ());
    let back = Fragment::<u8, 64, 64>::load(left, [0, 64]);
    flight.mma_and_popc(back, right.columns::<64>(1), ());
    flight.wait();
    sum.store_to(c.matrix(0, [64, 48], 48), [0, 0]);
}

/// An integer whose bits are counted.
pub(super) trait Bits: Scalar + BitElement {
    fn of(bits: u64) -> Self;
    fn common(self, other: Self) -> i32;
    fn differing(self, other: Self) -> i32;
}

macro_rules! bits {
    ($($ty:ty)+) => { $(
        impl Bits for $ty {
            fn of(bits: u64) -> Self {
                bits as $ty
            }

            fn common(self, other: Self) -> i32 {
                (self & other).count_ones().cast_signed()
            }

            fn differing(self, other: Self) -> i32 {
                (self ^ other).count_ones().cast_signed()
            }
        }
    )+ };
}

bits!(u8 u32 u64);

/// Returns integers of random bits.
pub(super) fn words<T: Bits>(seed: u64, count: usize) -> Vec<T> {
    (0..count as u64).map(|i| T::of(hash(seed, i))).collect()
}

fn check_bits<E: Bits, const K: u32, const HALF: u32>(device: &Device) -> anyhow::Result<()>
where
    mma_bits::Instance<E, K, HALF>: mma_bits::Compiled,
{
    let k = K as usize;
    let (a, b) = (words::<E>(23, 64 * k), words::<E>(24, 48 * k));
    let (left, right) = (device.tensor(&a, [a.len()])?, device.tensor(&b, [b.len()])?);
    let (mut c, mut d) = (device.filled_bytes([64 * 48], 0xab)?, device.filled_bytes([64 * 48], 0xab)?);
    mma_bits::launch::<E, K, HALF>(device, 1, &left, &right, &mut c, &mut d)?;
    same("bits in common", &c.to_vec()?, &common(&a, &b, k, k))?;
    let twice: Vec<i32> = common(&a, &b, k, k / 2).into_iter().map(|bits| 2 * bits).collect();
    same("of the first half, twice", &d.to_vec()?, &twice)
}

fn check_bits_loaded(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (words::<u8>(25, 64 * 128), words::<u8>(26, 48 * 128));
    let (left, right) = (device.tensor(&a, [a.len()])?, device.tensor(&b, [b.len()])?);
    let mut c = device.filled_bytes([64 * 48], 0xab)?;
    mma_bits_loaded::launch(device, 1, &left, &right, &mut c)?;
    same("bits in common", &c.to_vec()?, &common(&a, &b, 128, 128))
}

/// Counts the bits that each row of `a` has in common with each of `b`. Rows have `k` integers, of
/// which the first `of` count.
fn common<E: Bits>(a: &[E], b: &[E], k: usize, of: usize) -> Vec<i32> {
    let row = |x: &[E], y: &[E]| x.iter().zip(y).take(of).map(|(x, y)| x.common(*y)).sum::<i32>();
    a.chunks(k).flat_map(|x| b.chunks(k).map(move |y| row(x, y))).collect()
}
