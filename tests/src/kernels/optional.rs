//! Slices that a launch may leave out.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "optional::every_combination", run: combinations },
    Case { name: "optional::lengths", run: lengths },
];

/// `out = 3 * src + bias`, without a bias `3 * src`; `next` has the elements behind, if it is
/// there.
#[tma_kernel(threads = 128)]
pub fn optional_slices(
    src: Global<u32>,
    bias: Option<Global<u32>>,
    out: Global<u32>,
    next: Option<Global<u32>>,
    added: u32,
) {
    let i = block_idx().x * 128 + thread_idx().x;
    let mut value = 3 * src.get(i) + added;
    if let Some(bias) = bias {
        value += bias.get(thread_idx().x);
    }
    let seen = match next {
        Some(_) => 1000,
        None => 2000,
    };
    out.set(i, value + seen);
    let Some(next) = next else { return };
    sync_threads();
    if bias.is_none() {
        next.set(i, 1);
    } else {
        next.set(i, out.get(block_idx().x * 128 + (thread_idx().x + 1) % 128));
    }
}

fn combinations(device: &Device, _: &Options) -> anyhow::Result<()> {
    let n = 512;
    let (source, added) = (noise::<u32>(91, n), noise::<u32>(92, 128));
    let src = device.tensor(&source, [n])?;
    let bias = device.tensor(&added, [128])?;
    for has_bias in [false, true] {
        for has_next in [false, true] {
            let mut out = device.filled_bytes([n], 0xab)?;
            let mut next = device.filled_bytes([n], 0xab)?;
            let (given, place) = (has_bias.then_some(&bias), has_next.then_some(&mut next));
            optional_slices::launch(device, n as u32 / 128, &src, given, &mut out, place, 7)?;
            let value = |i: usize| {
                let value = source[i].wrapping_mul(3).wrapping_add(7);
                let value = if has_bias { value.wrapping_add(added[i % 128]) } else { value };
                value.wrapping_add(if has_next { 1000 } else { 2000 })
            };
            let wanted: Vec<u32> = (0..n).map(value).collect();
            same("values", &out.to_vec()?, &wanted)?;
            let behind = |i: usize| match (has_next, has_bias) {
                (false, _) => 0xabab_abab,
                (true, false) => 1,
                (true, true) => wanted[i / 128 * 128 + (i + 1) % 128],
            };
            same("the next values", &next.to_vec()?, &(0..n).map(behind).collect::<Vec<u32>>())?;
        }
    }
    Ok(())
}

/// Counts the elements of a slice, or says that there is none.
#[tma_kernel(threads = 32)]
pub fn optional_length(slice: Option<Global<f32>>, out: Global<u64>) {
    if thread_idx().x == 0 {
        out.set(0, if let Some(slice) = slice { slice.len() } else { 99 });
    }
}

fn lengths(device: &Device, _: &Options) -> anyhow::Result<()> {
    let (full, mut out) = (device.zeros::<f32, 1>([5])?, device.zeros([1])?);
    optional_length::launch(device, 1, Some(&full), &mut out)?;
    same("its length", &out.to_vec()?, &[5])?;
    optional_length::launch(device, 1, None::<&DeviceTensor<f32, 1>>, &mut out)?;
    same("no slice", &out.to_vec()?, &[99])
}
