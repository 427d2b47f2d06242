//! Modules made from others: functions replaced, instances left out and added.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::{same, same_bits};
use crate::random::{Sample, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[Case { name: "derived::all", run: all }];

/// A template.
#[tma_module]
pub mod terms {
    use tma_runtime::Scalar;
    use tma_runtime::prelude::*;

    /// The term of an element.
    #[tma_device(open)]
    pub fn term(x: u32) -> u32 {
        x ^ x >> 3
    }

    /// Sums the terms of each row of `N`, and of the half row that begins at a thread's row.
    #[tma_kernel(threads = 128, instances(N in [4, 8], let HALF = N / 2))]
    pub fn sum_terms<const N: u32, const HALF: u32>(rows: Global<u32>, out: Global<u32>) {
        let row = block_idx().x * 128 + thread_idx().x;
        let mut sum = 0;
        for i in 0..N {
            sum += term(rows.get(row * N + i));
        }
        for i in 0..HALF {
            sum ^= term(rows.get(row * HALF + i));
        }
        out.set(row, sum);
    }

    /// Reverses each 16 bytes, element by element. Only modules made from this one have it.
    #[tma_kernel(threads = 32, instances(let LANES = 16 / size_of::<T>()))]
    pub fn reverse_lanes<T: Scalar, const LANES: usize>(src: Global<T>, out: Global<T>) {
        let first = (block_idx().x * 32 + thread_idx().x) * LANES as u32;
        let lanes = src.get_vec::<LANES>(first);
        for i in unroll(0..LANES) {
            out.set(first + i as u32, lanes[LANES - 1 - i]);
        }
    }
}

/// Distances from a number instead of terms, for rows of other lengths.
#[tma_module(
    from = crate::kernels::derived::terms,
    only = [],
    instances = [sum_terms(N in [2, 16]), reverse_lanes(T in [u16, f64])]
)]
pub mod distances {
    /// The distance of an element.
    #[tma_device]
    pub fn term(x: u32, from: u32) -> u32 {
        x.abs_diff(from)
    }
}

fn all(device: &Device, _: &Options) -> anyhow::Result<()> {
    const ROWS: usize = 256;
    let numbers = samples::<u32>(41, ROWS * 16);
    let wanted = |n: usize, term: fn(u32) -> u32| {
        let row = |row: usize| {
            let terms = |len: usize| numbers[row * len..][..len].iter().map(|&x| term(x));
            let sum = terms(n).fold(0, u32::wrapping_add);
            terms(n / 2).fold(sum, |sum, term| sum ^ term)
        };
        (0..ROWS).map(row).collect::<Vec<_>>()
    };
    let rows = device.tensor(&numbers, [numbers.len()])?;
    let mut out = device.filled_bytes([ROWS], 0xab)?;
    terms::sum_terms::n_8::launch(device, 2, &rows, &mut out)?;
    same("terms", &out.to_vec()?, &wanted(8, terms::term))?;
    distances::sum_terms::n_2::launch(device, 2, &rows, &mut out, 1000)?;
    same("distances in rows of 2", &out.to_vec()?, &wanted(2, |x| x.abs_diff(1000)))?;
    distances::sum_terms::n_16::launch(device, 2, &rows, &mut out, 1000)?;
    same("distances in rows of 16", &out.to_vec()?, &wanted(16, |x| x.abs_diff(1000)))?;
    reverses::<u16>(device)?;
    reverses::<f64>(device)
}

/// Launches a kernel that the template has no instances of.
fn reverses<T: Sample>(device: &Device) -> anyhow::Result<()> {
    let values = samples::<T>(42, 64 * 16 / size_of::<T>());
    let mut out = device.filled_bytes([values.len()], 0xab)?;
    let key = distances::reverse_lanes::Key {};
    let Some(launcher) = distances::reverse_lanes::find::<T>(key) else { anyhow::bail!("an instance") };
    launcher.launch(device, 2, &device.tensor(&values, [values.len()])?, &mut out)?;
    let wanted: Vec<T> =
        values.chunks(16 / size_of::<T>()).flat_map(|lanes| lanes.iter().rev().copied()).collect();
    same_bits(&out.to_vec()?, &wanted)
}
