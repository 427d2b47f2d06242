//! Sums that are stored from registers to rows of global memory.

use tma_runtime::prelude::*;

use super::{Integral, inputs, product, scalars};
use crate::case::Case;
use crate::compare::same;

/// A case that runs the instance for these generics.
macro_rules! case {
    ($name:literal, $factor:ty, $sum:ty, $stored:ty) => {
        Case {
            name: concat!("mma::store_to_", $name),
            run: |device, _| check::<$factor, $sum, $stored>(device),
        }
    };
}

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    case!("f32", f16, f32, f32),
    case!("bf16", bf16, f32, bf16),
    case!("e5m2", e4m3, f32, e5m2),
    case!("f16", f16, f16, f16),
    case!("i32", i8, i32, i32),
];

/// Each block writes `a · bᵀ`, of 128 × 32 and 48 × 32, to its tile of a matrix that begins at
/// `first` of `c`. The first tile of each row is stored as a whole, the others in two parts.
#[tma_kernel(threads = 256, instances((E, T, O) in [
    (f16, f32, f32), (bf16, f32, bf16), (e4m3, f32, e5m2), (f16, f16, f16), (i8, i32, i32),
]))]
pub fn mma_epilogue<E: Multiply<E, T>, T: StoreAs<O>, O: TileElement>(
    a: Global<E>,
    b: Global<E>,
    c: Global<O>,
    first: u32,
    rows: u32,
    columns: u32,
    stride: u32,
) {
    let left: Tile<E, Shape2<128, 32>, Swizzle32> = shared();
    let right: Tile<E, Shape2<48, 32>, Swizzle32> = shared();
    let out = c.matrix(first, [rows, columns], stride);
    for i in (thread_idx().x..128 * 32).step_by(256) {
        left.set([i / 32, i % 32], a.get(i));
    }
    for i in (thread_idx().x..48 * 32).step_by(256) {
        right.set([i / 32, i % 32], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let me = warpgroup_idx();
    let mut sum = Accumulator::<T, 64, 48>::zero();
    sum.mma(left.band::<64>(me), right, ()).wait();
    let at = [block_idx().y * 128 + me * 64, block_idx().x * 48];
    if block_idx().x == 0 {
        sum.store_to(out, at);
    } else {
        sum.columns::<32>(0).store_to(out, at);
        sum.columns::<16>(2).store_to(out, [at[0], at[1] + 32]);
    }
}

/// The location of a matrix, in elements.
#[derive(Clone, Copy, Debug)]
struct Place {
    first: u32,
    extents: [u32; 2],
    stride: u32,
}

/// Whole tiles; ragged ones; matrices whose pairs are aligned in no row, or in every second one;
/// rows with gaps, and a matrix that begins inside of the slice; an empty matrix.
const PLACES: [Place; 7] = [
    Place { first: 0, extents: [128, 96], stride: 96 },
    Place { first: 0, extents: [200, 74], stride: 74 },
    Place { first: 2, extents: [130, 97], stride: 100 },
    Place { first: 1, extents: [70, 60], stride: 64 },
    Place { first: 0, extents: [65, 75], stride: 75 },
    Place { first: 3, extents: [1, 1], stride: 1 },
    Place { first: 5, extents: [0, 7], stride: 9 },
];

fn check<E, T, O>(device: &Device) -> anyhow::Result<()>
where
    E: Integral + Multiply<E, T>,
    T: Scalar + StoreAs<O>,
    O: Integral + TileElement,
    mma_epilogue::Instance<E, T, O>: mma_epilogue::Compiled,
{
    let (a, b) = (inputs::<E>(31, 128 * 32), inputs::<E>(32, 48 * 32));
    let left = device.tensor(&scalars::<E>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<E>(&b), [b.len()])?;
    let sums = scalars::<O>(&product(&a, &b, 32));
    for place in PLACES {
        let Place { first, extents: [rows, columns], stride } = place;
        let len = (first + rows * stride) as usize + 7;
        let mut c = device.filled_bytes([len], 0xab)?;
        let mut wanted: Vec<O> = c.to_vec()?;
        for row in 0..rows {
            for column in 0..columns {
                let sum = sums.get((row % 128 * 48 + column % 48) as usize).copied();
                if let (Some(element), Some(sum)) =
                    (wanted.get_mut((first + row * stride + column) as usize), sum)
                {
                    *element = sum;
                }
            }
        }
        let grid = Grid::tiles([rows.max(1) as usize, columns as usize], [128, 48]);
        mma_epilogue::launch::<E, T, O>(device, grid, &left, &right, &mut c, first, rows, columns, stride)?;
        same(&format!("{place:?}"), &c.to_vec()?, &wanted)?;
    }
    Ok(())
}
