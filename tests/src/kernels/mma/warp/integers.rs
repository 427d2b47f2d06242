//! Integer matmuls that saturate, and matmuls of bits.

use tma_runtime::prelude::*;

use super::super::integers::{Bits, Byte, bytes, starts, words};
use crate::case::Case;
use crate::compare::same;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::warp_saturating_i8", run: |device, _| check_saturating::<i8, i8>(device) },
    Case { name: "mma::warp_saturating_i8_u8", run: |device, _| check_saturating::<i8, u8>(device) },
    Case { name: "mma::warp_saturating_u8_i8", run: |device, _| check_saturating::<u8, i8>(device) },
    Case { name: "mma::warp_saturating_u8", run: |device, _| check_saturating::<u8, u8>(device) },
    Case { name: "mma::warp_bits_u8", run: |device, _| check_bits::<u8, 48>(device) },
    Case { name: "mma::warp_bits_u64", run: |device, _| check_bits::<u64, 6>(device) },
];

/// `c += a · bᵀ`, of 16 × 48 and 16 × 48, added to existing sums, which saturate after the first 32
/// products and after the other 16.
#[tma_kernel(threads = 32, instances((E, F) in [(i8, i8), (i8, u8), (u8, i8), (u8, u8)]))]
pub fn mma_sync_saturating<E: WarpElement, F: WarpMultiply<E, i32>>(
    a: Global<E>,
    b: Global<F>,
    before: Global<i32>,
    c: Global<i32>,
) {
    let left: Tile<E, Shape2<16, 48>> = shared();
    let right: Tile<F, Shape2<16, 48>> = shared();
    for i in (thread_idx().x..16 * 48).step_by(32) {
        left.set([i / 48, i % 48], a.get(i));
        right.set([i / 48, i % 48], b.get(i));
    }
    sync_warp();
    let mut sum = WarpAccumulator::<i32, 16, 16>::zero();
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        sum[i] = before.get(at[0] * 16 + at[1]);
    }
    sum.mma_sync_saturating(
        WarpLeft::<E, 16, 48>::load(left, [0, 0]),
        WarpRight::<F, 16, 48>::load(right, [0, 0]),
    );
    sum.store_to(c.matrix(0, [16, 16], 16), [0, 0]);
}

fn check_saturating<E, F>(device: &Device) -> anyhow::Result<()>
where
    E: Byte + WarpElement,
    F: Byte + WarpMultiply<E, i32>,
    mma_sync_saturating::Instance<E, F>: mma_sync_saturating::Compiled,
{
    let (a, b) = (bytes::<E>(65, 16 * 48), bytes::<F>(66, 16 * 48));
    let (left, right) = (device.tensor(&a, [a.len()])?, device.tensor(&b, [b.len()])?);
    let before = starts(16 * 16);
    let first = device.tensor(&before, [before.len()])?;
    let mut c = device.filled_bytes([16 * 16], 0xab)?;
    mma_sync_saturating::launch::<E, F>(device, 1, &left, &right, &first, &mut c)?;
    let terms = |i: usize, part: std::ops::Range<usize>| -> i64 {
        let row = |matrix: usize| matrix * 48 + part.start..matrix * 48 + part.end;
        let (a, b) = (a.get(row(i / 16)), b.get(row(i % 16)));
        let pairs = a.into_iter().flatten().zip(b.into_iter().flatten());
        pairs.map(|(&a, &b)| a.into() * b.into()).sum()
    };
    let clamp = |sum: i64| sum.clamp(i32::MIN.into(), i32::MAX.into());
    let sum = |(i, &start): (usize, &i32)| {
        clamp(clamp(i64::from(start) + terms(i, 0..32)) + terms(i, 32..48)) as i32
    };
    let wanted: Vec<i32> = before.iter().enumerate().map(sum).collect();
    anyhow::ensure!(wanted.contains(&i32::MAX), "no sum leaves the range");
    same("the sums", &c.to_vec()?, &wanted)
}

/// `c` is the number of bits that rows of `a` and `b` have in common, `d` the number in which they
/// differ: 16 rows of 384 bits each, in `K` integers.
#[tma_kernel(threads = 32, instances((E, K) in [(u8, 48), (u64, 6)]))]
pub fn mma_sync_bits<E: WarpElement + BitElement, const K: u32>(
    a: Global<E>,
    b: Global<E>,
    c: Global<i32>,
    d: Global<i32>,
) {
    let left: Tile<E, Shape2<16, K>> = shared();
    let right: Tile<E, Shape2<16, K>> = shared();
    for i in (thread_idx().x..16 * K).step_by(32) {
        left.set([i / K, i % K], a.get(i));
        right.set([i / K, i % K], b.get(i));
    }
    sync_warp();
    let x = WarpLeft::<E, 16, K>::load(left, [0, 0]);
    let y = WarpRight::<E, 16, K>::load(right, [0, 0]);
    let mut common = WarpAccumulator::<i32, 16, 16>::zero();
    let mut distance = WarpAccumulator::<i32, 16, 16>::zero();
    common.mma_sync_and_popc(x, y);
    distance.mma_sync_xor_popc(x, y);
    common.store_to(c.matrix(0, [16, 16], 16), [0, 0]);
    distance.store_to(d.matrix(0, [16, 16], 16), [0, 0]);
}

fn check_bits<E: Bits + WarpElement, const K: u32>(device: &Device) -> anyhow::Result<()>
where
    mma_sync_bits::Instance<E, K>: mma_sync_bits::Compiled,
{
    let k = K as usize;
    let (a, b) = (words::<E>(67, 16 * k), words::<E>(68, 16 * k));
    let (left, right) = (device.tensor(&a, [a.len()])?, device.tensor(&b, [b.len()])?);
    let (mut c, mut d) = (device.filled_bytes([256], 0xab)?, device.filled_bytes([256], 0xab)?);
    mma_sync_bits::launch::<E, K>(device, 1, &left, &right, &mut c, &mut d)?;
    let count = |of: fn(E, E) -> i32| -> Vec<i32> {
        let row = |x: &[E], y: &[E]| x.iter().zip(y).map(|(x, y)| of(*x, *y)).sum::<i32>();
        a.chunks(k).flat_map(|x| b.chunks(k).map(move |y| row(x, y))).collect()
    };
    same("bits in common", &c.to_vec()?, &count(E::common))?;
    same("bits that differ", &d.to_vec()?, &count(E::differing))
}
