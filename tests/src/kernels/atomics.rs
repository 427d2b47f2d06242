//! Atomics: many threads operate on one element, in any order.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{Sample, noise, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "atomics::i32", run: integers::<i32> },
    Case { name: "atomics::u32", run: integers::<u32> },
    Case { name: "atomics::i64", run: integers::<i64> },
    Case { name: "atomics::u64", run: integers::<u64> },
    Case { name: "atomics::floats", run: floats },
];

/// An integer, and the results of the kernel's first six operations.
pub(super) trait Integer: Sample + AtomicInteger + Ord {
    fn fold(all: [Self; 6], x: Self) -> [Self; 6];
}

macro_rules! integers {
    ($($ty:ty)+) => { $(
        impl Integer for $ty {
            fn fold(all: [Self; 6], x: Self) -> [Self; 6] {
                [all[0].wrapping_add(x), all[1].min(x), all[2].max(x), all[3] & x, all[4] | x, all[5] ^ x]
            }
        }
    )+ };
}

integers!(i32 u32 i64 u64);

fn integers<T: Integer>(device: &Device, options: &Options) -> anyhow::Result<()>
where
    atomics::Instance<T>: atomics::Compiled,
{
    let n = options.elements(1 << 14);
    let values = samples::<T>(91, n);
    let first = noise::<T>(92, 7);
    let start = [first[0], first[1], first[2], first[3], first[4], first[5]];
    let wanted = values.iter().fold(start, |all, &x| T::fold(all, x));

    let mut all = device.tensor(&first, [7])?;
    let mut taken = device.filled_bytes([n], 0xab)?;
    let device_values = device.tensor(&values, [n])?;
    atomics::launch::<T>(device, Grid::tiles([n], [128]), &device_values, &mut all, &mut taken)?;
    let all = all.to_vec()?;
    same("add, min, max, and, or, xor", &all[..6], &wanted)?;

    // Each value that was swapped in was returned to one thread, except for the last.
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

/// Sums of numbers that need no rounding, and tickets: each thread gets its own.
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
