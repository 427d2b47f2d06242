//! Values other than one register: arrays, constants, device functions, generic kernels.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::samples;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "values::arrays", run: arrays },
    Case { name: "values::instances", run: instances },
    Case { name: "values::module", run: module },
    Case { name: "values::scalars", run: scalars },
];

/// Arrays in registers: filled, nested, indexed by constants and by variables, copied.
#[tma_kernel(threads = 128, local_arrays)]
pub fn value_arrays(input: Global<u32>, out: Global<u32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = input.get(i);
    let mut digits = [0u32; 8];
    for d in unroll(0..8usize) {
        digits[d] = x >> (d * 4) & 15;
    }
    let before = digits;
    digits[(x % 8) as usize] += 100;
    let mut table = [[1u32, 2], [3, 4], [5, 6]];
    table[2][1] *= 7;
    table[(x % 3) as usize][0] ^= 8;
    let row = table[1];
    let mut sum = row[0] + row[1] + table[2][1] + table[(x % 3) as usize][(x % 2) as usize];
    for d in 0..8usize {
        sum = sum * 3 + digits[d] + before[7 - d];
    }
    out.set(i, sum);
}

fn arrays(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let inputs = samples::<u32>(21, n);
    let result = |x: u32| {
        let before: [u32; 8] = std::array::from_fn(|d| x >> (d * 4) & 15);
        let mut digits = before;
        digits[(x % 8) as usize] += 100;
        let mut table = [[1u32, 2], [3, 4], [5, 42]];
        table[(x % 3) as usize][0] ^= 8;
        let first = table[1][0] + table[1][1] + table[2][1] + table[(x % 3) as usize][(x % 2) as usize];
        (0..8).fold(first, |sum, d| sum.wrapping_mul(3).wrapping_add(digits[d] + before[7 - d]))
    };
    let wanted: Vec<u32> = inputs.iter().map(|&x| result(x)).collect();
    let mut out = device.filled_bytes([n], 0xab)?;
    value_arrays::launch(device, blocks(n), &device.tensor(&inputs, [n])?, &mut out)?;
    same("results", &out.to_vec()?, &wanted)
}

/// Const generics of three types, in extents, loops and values.
#[tma_kernel(threads = 64, instances(few = <3, -5, true>, many = <40, 7, false>))]
pub fn value_instances<const N: u32, const OFFSET: i32, const UP: bool>(out: Global<i32>) {
    let values: SharedArray<i32, N> = shared();
    let t = thread_idx().x;
    if t < N {
        values.set(t, t as i32 * OFFSET);
    }
    sync_threads();
    let mut sum = if UP { 1 } else { -1 };
    for k in unroll(0..N) {
        sum += values.get(k) * (k as i32 + 1);
    }
    out.set(t, sum + values.len() as i32);
}

fn instances(device: &Device, _: &Options) -> anyhow::Result<()> {
    let result =
        |n: i32, offset: i32, first: i32| first + n + (0..n).map(|k| k * offset * (k + 1)).sum::<i32>();
    let mut out = device.filled_bytes([64], 0xab)?;
    value_instances::few::launch(device, 1, &mut out)?;
    same("few", &out.to_vec()?, &[result(3, -5, 1); 64])?;
    value_instances::many::launch(device, 1, &mut out)?;
    same("many", &out.to_vec()?, &[result(40, 7, -1); 64])
}

/// Kernels that share constants, a type and functions.
#[tma_module]
pub mod shared_items {
    use tma_runtime::prelude::*;

    const WIDTH: u32 = 1 << 6;
    const HALF: u32 = WIDTH / 2 + LIMITS[1];
    const LIMITS: [u32; 2] = [1000, 0];
    const SCALE: f32 = -0.5;
    type Line = SharedArray<f32, WIDTH>;

    /// Returns early, in a loop and outside of it.
    #[tma_device]
    fn first_factor(n: u32) -> u32 {
        if n < 4 {
            return n;
        }
        let mut d = 2;
        while d * d <= n {
            if n % d == 0 {
                return d;
            }
            d += 1;
        }
        n
    }

    /// Modifies variables of the caller.
    #[tma_device]
    fn swap_if_less(a: &mut f32, b: &mut f32, sorted: &mut [u32; 2], at: usize) {
        if *b < *a {
            let old = *a;
            *a = *b;
            *b = old;
            sorted[at] += 1;
        }
    }

    /// Calls another function, with shared memory and a constant as arguments.
    #[tma_device]
    fn put<const BY: u32>(line: Line, at: u32, value: f32) {
        line.set(at, value * SCALE);
        scaled::<BY>(line, at);
    }

    #[tma_device]
    fn scaled<const BY: u32>(line: Line, at: u32) {
        line.set(at, line.get(at) * BY as f32);
    }

    /// Writes the smallest factor of each thread's number.
    #[tma_kernel(threads = WIDTH)]
    pub fn factors(out: Global<u32>) {
        let n = block_idx().x * WIDTH + thread_idx().x;
        if n < LIMITS[0] {
            out.set(n, first_factor(n));
        }
    }

    /// Sorts neighbours, halves and negates them, and counts the pairs that were swapped.
    #[tma_kernel(threads = HALF)]
    pub fn pairs(x: Global<f32>, out: Global<f32>, exchanged: Global<u32>) {
        let line: Line = shared();
        let t = thread_idx().x;
        let mut a = x.get(2 * t);
        let mut b = x.get(2 * t + 1);
        let mut sorted = [0; 2];
        swap_if_less(&mut a, &mut b, &mut sorted, 1);
        put::<4>(line, 2 * t, a);
        put::<8>(line, 2 * t + 1, b);
        sync_threads();
        for i in (t..WIDTH).step_by(HALF as usize) {
            out.set(i, line.get(i));
        }
        exchanged.set(t, sorted[0] * 100 + sorted[1]);
    }
}

fn module(device: &Device, _: &Options) -> anyhow::Result<()> {
    let least = |n: u32| (2..n).find(|&d| n.is_multiple_of(d)).unwrap_or(n);
    let mut out = device.filled_bytes([1000], 0xab)?;
    shared_items::factors::launch(device, Grid::tiles([1000], [64]), &mut out)?;
    // Numbers below 4 are returned as they are, which agrees with the search.
    same("factors", &out.to_vec()?, &(0..1000).map(least).collect::<Vec<_>>())?;

    let x: Vec<f32> = (0..64).map(|i| (i * 37 % 101) as f32).collect();
    let sorted = x.chunks(2).map(|pair| [pair[0].min(pair[1]) * -2.0, pair[0].max(pair[1]) * -4.0]);
    let wanted: Vec<f32> = sorted.flatten().collect();
    let exchanged: Vec<u32> = x.chunks(2).map(|pair| u32::from(pair[1] < pair[0])).collect();
    let mut out = device.filled_bytes([64], 0xab)?;
    let mut found = device.filled_bytes([32], 0xab)?;
    shared_items::pairs::launch(device, 1, &device.tensor(&x, [64])?, &mut out, &mut found)?;
    same("pairs", &out.to_vec()?, &wanted)?;
    same("exchanges", &found.to_vec()?, &exchanged)
}

/// Scalar parameters of every size, in an order that leaves gaps between them.
#[tma_kernel(threads = 32)]
pub fn value_scalars(
    a: bool,
    b: i64,
    c: u8,
    d: f16,
    e: f64,
    f: i16,
    g: e4m3,
    h: u32,
    i: bf16,
    j: usize,
    k: f32,
    l: i8,
    out: Global<f64>,
) {
    if thread_idx().x == 0 {
        out.set(0, if a { 1.0 } else { 0.0 });
        out.set(1, b as f64);
        out.set(2, c as f64);
        out.set(3, d.to_f64());
        out.set(4, e);
        out.set(5, f as f64);
        out.set(6, g.to_f64());
        out.set(7, h as f64);
        out.set(8, i.to_f64());
        out.set(9, j as f64);
        out.set(10, k as f64);
        out.set(11, l as f64);
    }
}

fn scalars(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut out = device.filled_bytes([12], 0xab)?;
    let (half, brain, small) = (f16::from_f32(-2.5), bf16::from_f32(1e30), e4m3::from_f32(0.75));
    value_scalars::launch(
        device,
        1,
        true,
        -1 << 40,
        200,
        half,
        1e-300,
        -30000,
        small,
        4_000_000_000,
        brain,
        1 << 50,
        0.1,
        -7,
        &mut out,
    )?;
    let wanted = [
        1.0,
        -(2f64.powi(40)),
        200.0,
        -2.5,
        1e-300,
        -30000.0,
        0.75,
        4e9,
        brain.to_f64(),
        2f64.powi(50),
        f64::from(0.1f32),
        -7.0,
    ];
    same("results", &out.to_vec()?, &wanted)
}
