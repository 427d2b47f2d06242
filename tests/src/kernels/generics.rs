//! Generic device functions, compared with the same functions in plain Rust.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{noise, samples};

/// The cases of this module.
pub const CASES: &[Case] =
    &[Case { name: "generics::values", run: values }, Case { name: "generics::tiles", run: tiles }];

/// The device functions are called by kernels and by the host.
#[tma_module]
pub mod functions {
    use std::ops::{Add, Mul};

    use tma_runtime::prelude::*;

    /// A polynomial at `x`.
    #[tma_device]
    fn polynomial<T, const N: usize>(coefficients: [T; N], x: T) -> T
    where
        T: Copy + Add<Output = T> + Mul<Output = T>,
    {
        let mut sum = coefficients[0];
        for coefficient in coefficients {
            sum = sum * x + coefficient;
        }
        sum
    }

    #[tma_device]
    fn swapped<A: Copy, B: Copy>(pair: (A, B)) -> (B, A) {
        (pair.1, pair.0)
    }

    /// Raises `x` to `least`. Returns whether that changed it.
    #[tma_device]
    fn raise<T: Copy + PartialOrd>(x: &mut T, least: T) -> bool {
        if *x < least {
            *x = least;
            return true;
        }
        false
    }

    /// The remainder by `M` of the sum of both, each times a factor.
    #[tma_device]
    fn combined<T, const M: u32>(pair: (T, T), factor: T) -> u32
    where
        T: Number + Add<Output = T> + Mul<Output = T>,
    {
        let (a, b) = swapped(pair);
        cast::<u32>(polynomial([a, b], factor)) % M
    }

    /// What [`generic_values`] computes of an input.
    #[tma_device]
    pub fn valued(x: u32) -> u32 {
        let (half, low) = swapped((x % 16, (x / 2) as u64));
        let mut wide = polynomial([half, 3, 5], 7);
        let real = polynomial::<f32, _>([1.0, low as f32], 0.5);
        let mut small = x % 100;
        let raised = raise(&mut small, 20) as u32 + raise(&mut wide, 1 << 20) as u32;
        wide as u32 + real as u32 + small * (raised + 1)
    }

    /// Functions with types that are inferred, for integers and floats.
    #[tma_kernel(threads = 128)]
    pub fn generic_values(input: Global<u32>, out: Global<u32>) {
        let i = block_idx().x * 128 + thread_idx().x;
        let x = input.get(i);
        out.set(i, valued(x) + combined::<u32, 1000>((x % 7, 3), 5));
    }

    /// The sum of a row of a tile of any shape and layout.
    #[tma_device]
    fn row_sum<T, const M: u32, const N: u32, W>(tile: Tile<T, Shape2<M, N>, W>, row: u32) -> u32
    where
        T: TileElement + Number,
        W: Swizzle,
    {
        let mut sum = M;
        for column in 0..N {
            sum += cast::<u32>(tile.get([row, column]));
        }
        sum
    }

    /// Sums the rows of tiles of two layouts.
    #[tma_kernel(threads = 32, instances(T in [u16, u32, f32]))]
    pub fn generic_tiles<T: TileElement + Number>(
        wide: TensorMap<Tile<T, Shape2<16, 32>, NoSwizzle>>,
        square: TensorMap<Tile<T, Shape2<8, 8>>>,
        out: Global<u32>,
    ) {
        let a: Tile<T, Shape2<16, 32>> = shared();
        let b: Tile<T, Shape2<8, 8>> = shared();
        let full: Barrier = shared();
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(a.bytes() + b.bytes());
            wide.load(a, [0, 0], full);
            square.load(b, [0, 0], full);
        }
        sync_threads();
        full.wait(0);
        let row = thread_idx().x;
        if row < 16 {
            out.set(row, row_sum(a, row));
        } else if row < 24 {
            out.set(row, row_sum::<T, 8, _, NoSwizzle>(b, row - 16));
        }
    }
}

fn values(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let inputs = samples::<u32>(23, n);
    let wanted = inputs.iter().map(|&x| {
        let combined = (3 * 5 + 3) * 5 + x % 7;
        functions::valued(x).wrapping_add(combined % 1000)
    });
    let wanted: Vec<u32> = wanted.collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    functions::generic_values::launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

fn tiles(device: &Device, _: &Options) -> anyhow::Result<()> {
    let small = |seed, n| noise::<u32>(seed, n).into_iter().map(|x| x % 50).collect::<Vec<_>>();
    let (wide, square) = (small(31, 16 * 32), small(32, 8 * 8));
    let sums = |rows: &[u32], columns: usize, more: u32| {
        rows.chunks(columns).map(|row| row.iter().sum::<u32>() + more).collect::<Vec<_>>()
    };
    let wanted = [sums(&wide, 32, 16), sums(&square, 8, 8)].concat();
    let mut out = device.filled_bytes([24], 0xab)?;

    let reals = |values: &[u32]| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let a = device.tensor(&reals(&wide), [16, 32])?;
    let b = device.tensor(&reals(&square), [8, 8])?;
    functions::generic_tiles::f32::launch(device, 1, &a, &b, &mut out)?;
    same("sums of f32", &out.to_vec()?, &wanted)?;

    let halves = |values: &[u32]| values.iter().map(|&x| x as u16).collect::<Vec<_>>();
    let a = device.tensor(&halves(&wide), [16, 32])?;
    let b = device.tensor(&halves(&square), [8, 8])?;
    functions::generic_tiles::u16::launch(device, 1, &a, &b, &mut out)?;
    same("sums of u16", &out.to_vec()?, &wanted)?;

    let (a, b) = (device.tensor(&wide, [16, 32])?, device.tensor(&square, [8, 8])?);
    functions::generic_tiles::u32::launch(device, 1, &a, &b, &mut out)?;
    same("sums of u32", &out.to_vec()?, &wanted)
}
