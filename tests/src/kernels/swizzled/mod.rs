//! Swizzled tiles, of every element type.

mod long_spans;
mod narrow;
mod short_spans;

use tma_runtime::prelude::*;

use crate::case::Case;
use crate::compare::{same, same_bits};
use crate::random::{Sample, noise};

/// What is checked here, in parts.
pub const CASES: [&[Case]; 3] = [short_spans::CASES, long_spans::CASES, narrow::CASES];

/// Launches a kernel that loads `src`, shows it in `seen`, replaces it by `given` and stores that in `dst`.
type Launch<T> = fn(
    &Device,
    Grid,
    &DeviceTensor<T, 2>,
    &mut DeviceTensor<T, 2>,
    &mut DeviceTensor<T, 1>,
    &DeviceTensor<T, 1>,
) -> Result<(), Error>;

fn check<T: Sample>(device: &Device, shape: [usize; 2], launch: Launch<T>) -> anyhow::Result<()> {
    let n = shape[0] * shape[1];
    let (source, given) = (noise::<T>(31, n), noise::<T>(32, n));
    let src = device.tensor(&source, shape)?;
    let mut dst = device.filled_bytes(shape, 0xab)?;
    let mut seen = device.filled_bytes([n], 0xab)?;
    launch(device, Grid::x(1), &src, &mut dst, &mut seen, &device.tensor(&given, [n])?)?;
    same("read by `get`", &seen.to_vec()?, &source)?;
    same_bits(&dst.to_vec()?, &given)
}
