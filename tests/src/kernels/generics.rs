//! Generic device functions and `const fn`, compared with the same functions in plain Rust.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::{noise, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "generics::values", run: values },
    Case { name: "generics::tiles", run: tiles },
    Case { name: "generics::constants", run: constants },
];

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

    /// The result of [`generic_values`] for an input, but for `combined`.
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

/// Constants that functions compute, and structs that are compared and that loops end with.
#[tma_module]
pub mod computed {
    use tma_runtime::prelude::*;

    #[derive(Clone, Copy, PartialEq)]
    struct Digits {
        low: u32,
        high: [u32; 2],
    }

    /// The number of bits of `x`.
    const fn bits(x: u32) -> u32 {
        let mut n = 0;
        while n < 32 && x >> n > 0 {
            n += 1;
        }
        n
    }

    const fn weight(x: u32) -> u32 {
        match x % 4 {
            0 => 3,
            1 | 2 => bits(x) + 1,
            _ => {
                let mut sum = 0;
                let mut i = 0;
                loop {
                    i += 1;
                    if i == 3 {
                        continue;
                    }
                    if i > 6 {
                        break sum;
                    }
                    sum += i * x;
                }
            }
        }
    }

    const fn table() -> [u32; LEN] {
        let mut all = [7; LEN];
        let mut i = 1;
        while i < LEN {
            all[i] = all[i - 1] * 3 + weight(i as u32);
            i += 1;
        }
        all
    }

    const LEN: usize = bits(200) as usize;
    const TABLE: [u32; LEN] = table();
    const THREADS: u32 = 32 * weight(8) + 32;

    #[tma_device]
    fn digits(x: u32) -> Digits {
        let mut n = x;
        loop {
            if n < 1000 {
                break Digits { low: n % 10, high: [n / 10 % 10, n / 100] };
            }
            if n % 7 == 0 {
                break Digits { low: 0, high: [n % 13; 2] };
            }
            n /= 3;
        }
    }

    /// The result of [`computed_constants`] for an input.
    #[tma_device]
    pub fn valued(x: u32) -> u32 {
        let (a, b) = (digits(x), digits(x / 2));
        let (first, len) = 'ends: {
            if a == b {
                break 'ends (TABLE[3], LEN);
            }
            (weight(x % 1000), 2)
        };
        let same = (a.low, b.high) == (b.low, a.high) || (a.low, first) != (3, 10);
        let sum = TABLE[LEN - 1] + TABLE[bits(6) as usize] + first * len as u32;
        if same { sum } else { sum + bits(x) }
    }

    /// Sets `out[i]` to [`valued`] of `input[i]`.
    #[tma_kernel(threads = THREADS)]
    pub fn computed_constants(input: Global<u32>, out: Global<u32>) {
        let i = block_idx().x * THREADS + thread_idx().x;
        out.set(i, valued(input.get(i)));
    }
}

fn constants(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let mut inputs = samples::<u32>(29, n);
    for (i, input) in inputs.iter_mut().enumerate().skip(1).step_by(2) {
        *input = i as u32 % 97;
    }
    let wanted: Vec<u32> = inputs.iter().map(|&x| computed::valued(x)).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    computed::computed_constants::launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
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
