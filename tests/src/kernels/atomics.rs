//! Atomics: what many threads do to one element, whatever their order.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{Sample, noise, samples};

/// A case that runs a kernel of this file on integers.
macro_rules! case {
    ($name:literal, $ty:ident) => {
        Case {
            name: $name,
            run: |device, options| {
                let launch: Launch<$ty> =
                    |on, grid, values, all, taken| atomics::$ty::launch(on, grid, values, all, taken);
                let fold = |all: [$ty; 6], x: $ty| {
                    [all[0].wrapping_add(x), all[1].min(x), all[2].max(x), all[3] & x, all[4] | x, all[5] ^ x]
                };
                check(device, options, launch, fold)
            },
        }
    };
}

/// What is checked here.
pub const CASES: &[Case] = &[
    case!("atomics::i32", i32),
    case!("atomics::u32", u32),
    case!("atomics::i64", i64),
    case!("atomics::u64", u64),
    Case { name: "atomics::floats", run: floats },
];

/// Launches a kernel of this file on values, the element of each operation, and what exchanges took.
type Launch<T> = fn(
    &Device,
    Grid,
    &DeviceTensor<T, 1>,
    &mut DeviceTensor<T, 1>,
    &mut DeviceTensor<T, 1>,
) -> Result<(), Error>;

fn check<T: Sample + Ord>(
    device: &Device,
    options: &Options,
    launch: Launch<T>,
    fold: fn([T; 6], T) -> [T; 6],
) -> anyhow::Result<()> {
    let n = options.elements(1 << 14);
    let values = samples::<T>(91, n);
    let first = noise::<T>(92, 7);
    let start = [first[0], first[1], first[2], first[3], first[4], first[5]];
    let wanted = values.iter().fold(start, |all, &x| fold(all, x));

    let mut all = device.tensor(&first, [7])?;
    let mut taken = device.filled_bytes([n], 0xab)?;
    launch(device, Grid::tiles([n], [128]), &device.tensor(&values, [n])?, &mut all, &mut taken)?;
    let all = all.to_vec()?;
    same("add, min, max, and, or, xor", &all[..6], &wanted)?;

    // Each value that was put there was taken by one thread, but for the last.
    let mut put = [values, vec![first[6]]].concat();
    let mut gone = [taken.to_vec()?, vec![all[6]]].concat();
    put.sort_unstable();
    gone.sort_unstable();
    same("exchanged values, sorted", &gone, &put)
}

/// Every operation on integers.
#[tma_kernel(threads = 128, instances(T in [i32, u32, i64, u64]))]
pub fn atomics<T: AtomicInteger>(values: Global<T>, all: Global<T>, taken: Global<T>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let x = values.get(i);
    all.atomic_add(0, x);
    all.atomic_min(1, x);
    all.atomic_max(2, x);
    all.atomic_and(3, x);
    all.atomic_or(4, x);
    all.atomic_xor(5, x);
    taken.set(i, all.atomic_exchange(6, x));
}

/// Sums of numbers that leave nothing to round, and tickets: each thread gets its own.
#[tma_kernel(threads = 128)]
pub fn atomics_floats(narrow: Global<f32>, wide: Global<f64>, next: Global<usize>, tickets: Global<u32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    narrow.atomic_add(0, i as f32);
    wide.atomic_add(1u64, i as f64 / 4.0);
    let ticket = next.atomic_add(0, 1);
    tickets.set(ticket, i);
}

fn floats(device: &Device, _: &Options) -> anyhow::Result<()> {
    let n = 2048;
    let mut narrow = device.tensor(&[0.5f32], [1])?;
    let mut wide = device.tensor(&[7.0, -1.0], [2])?;
    let mut next = device.zeros([1])?;
    let mut tickets = device.filled_bytes([n], 0xab)?;
    atomics_floats::launch(device, Grid::tiles([n], [128]), &mut narrow, &mut wide, &mut next, &mut tickets)?;
    let sum = (n * (n - 1) / 2) as f64;
    same("f32", &narrow.to_vec()?, &[sum as f32 + 0.5])?;
    same("f64", &wide.to_vec()?, &[7.0, sum / 4.0 - 1.0])?;
    same("usize", &next.to_vec()?, &[n])?;
    let mut tickets = tickets.to_vec()?;
    tickets.sort_unstable();
    same("tickets, sorted", &tickets, &(0..n as u32).collect::<Vec<_>>())
}
