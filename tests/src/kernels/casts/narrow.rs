//! Casts to floats that are narrower than `f32`, of numbers halfway between two of theirs and next
//! to them, for which double rounding would show.

use tma_runtime::prelude::*;

use super::{Exact, Number as Exactly};
use crate::case::{Options, blocks};
use crate::random::Sample;
use crate::rounding::{Format, integer_to_odd};

/// Casts every number to every narrow float.
#[tma_kernel(
    threads = 128,
    instances(
        i16s = <i16>, u16s = <u16>, i32s = <i32>, u32s = <u32>, i64s = <i64>, u64s = <u64>, usizes = <usize>,
        f16s = <f16>, bf16s = <bf16>, f32s = <f32>, f64s = <f64>
    )
)]
pub fn casts_narrow<T: Scalar + Number>(from: Global<T>, to: Global<u32>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        to.set(5 * i, cast::<f16>(x).to_bits() as u32);
        to.set(5 * i + 1, cast::<bf16>(x).to_bits() as u32);
        to.set(5 * i + 2, cast::<e4m3>(x).to_bits() as u32);
        to.set(5 * i + 3, cast::<e5m2>(x).to_bits() as u32);
        to.set(5 * i + 4, cast::<tf32>(x).to_bits());
    }
}

/// The target formats, in the order of the kernel's results.
const TO: [(&str, Format); 5] = [
    ("f16", Format::F16),
    ("bf16", Format::BF16),
    ("e4m3", Format::E4M3),
    ("e5m2", Format::E5M2),
    ("tf32", Format::TF32),
];

/// NaNs whose payload does not fit any narrow float, and one with all bits set.
const NANS: [u32; 4] = [0x7f80_0001, 0xff80_1fff, 0x7fc0_0001, 0x7fff_ffff];

pub(super) fn check(device: &Device, options: &Options) -> anyhow::Result<()> {
    let step = if options.quick { 61 } else { 7 };
    let middles: Vec<_> = TO.iter().flat_map(|(_, format)| format.midpoints(step)).collect();
    macro_rules! integers {
        ($($ty:ident: $instance:ident),+) => { $({
            let from = integers(&middles, |n| <$ty>::try_from(n).ok());
            compare(device, &from, |grid, from, to| casts_narrow::$instance::launch(device, grid, from, to))?;
        })+ };
    }
    integers!(i16: i16s, u16: u16s, i32: i32s, u32: u32s, i64: i64s, u64: u64s, usize: usizes);

    let singles: Vec<_> =
        middles.iter().map(|&x| x as f32).flat_map(|x| [x.next_down(), x, x.next_up()]).collect();
    let singles: Vec<_> = singles.iter().flat_map(|&x| [x, -x]).chain(NANS.map(f32::from_bits)).collect();
    compare(device, &singles, |grid, from, to| casts_narrow::f32s::launch(device, grid, from, to))?;

    let doubles: Vec<_> = middles.iter().flat_map(|x| [x.next_down(), *x, x.next_up()]).collect();
    let nans = NANS.map(|bits| f64::from_bits(u64::from(bits) << 32 | u64::from(bits)));
    let least_nan = f64::from_bits(0x7ff0_0000_0000_0001);
    let doubles: Vec<_> = doubles.iter().flat_map(|&x| [x, -x]).chain(nans).chain([least_nan]).collect();
    compare(device, &doubles, |grid, from, to| casts_narrow::f64s::launch(device, grid, from, to))?;

    let halves: Vec<_> = (0..=u16::MAX).step_by(step as usize).collect();
    let f16s: Vec<_> = halves.iter().map(|&bits| f16::from_bits(bits)).collect();
    compare(device, &f16s, |grid, from, to| casts_narrow::f16s::launch(device, grid, from, to))?;
    let bf16s: Vec<_> = halves.iter().map(|&bits| bf16::from_bits(bits)).collect();
    compare(device, &bf16s, |grid, from, to| casts_narrow::bf16s::launch(device, grid, from, to))
}

/// Returns the integers at `middles` and next to them, with either sign, if the type has them.
fn integers<T>(middles: &[f64], number: impl Fn(i128) -> Option<T>) -> Vec<T> {
    let whole = middles.iter().filter(|x| x.fract() == 0.0 && **x < 2f64.powi(65)).map(|&x| x as i128);
    let signed = whole.flat_map(|n| [n - 1, n, n + 1]).flat_map(|n| [n, -n]);
    // No midpoint is next to the ends of the 64-bit types, of which an `f64` cannot represent the
    // largest ones exactly.
    signed
        .chain([i128::from(i64::MIN), i128::from(i64::MAX), i128::from(u64::MAX)])
        .filter_map(number)
        .collect()
}

/// Casts `from` on the device, and compares with each number rounded once.
fn compare<T: Sample + Exact>(
    device: &Device,
    from: &[T],
    launch: impl Fn(Grid, &DeviceTensor<T, 1>, &mut DeviceTensor<u32, 1>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let n = from.len();
    let mut to = device.filled_bytes([5 * n], 0xab)?;
    launch(blocks(n), &device.tensor(from, [n])?, &mut to)?;
    for (from, found) in from.iter().zip(to.to_vec()?.chunks(5)) {
        for (&(name, format), &found) in TO.iter().zip(found) {
            let exact = match from.exact() {
                Exactly::Bool(x) => f64::from(u8::from(x)),
                Exactly::Integer(n) => integer_to_odd(n),
                Exactly::Float(x) => x,
            };
            // A tf32 has the layout of an f32; its unused bits must be zero.
            let places = if name == "tf32" { 13 } else { 0 };
            let found = u64::from(found);
            anyhow::ensure!(found & ((1 << places) - 1) == 0, "{from:?} to {name} gives {found:#x}");
            let (wanted, found) = (format.round(exact), format.canonical(found >> places));
            anyhow::ensure!(found == wanted, "{from:?} to {name} gives {found:#x}, wanted {wanted:#x}");
        }
    }
    Ok(())
}
