//! Convolutions.

use std::error::Error;

use tma_kernels::conv::{ConvOptions, conv2d};
use tma_runtime::prelude::*;

use super::super::{Table, number, special};

/// Returns the first pixel and filter of a convolution of a 4 × 4 image of zeros, whose first
/// element is `pixel`, with one filter of 3 × 3 taps, all of them `tap`, and a padding of zeros.
fn one(
    device: &Device,
    [pixel, tap]: [f32; 2],
    relu: bool,
    bias: Option<f32>,
) -> Result<f32, Box<dyn Error>> {
    let mut images = vec![bf16::ZERO; 4 * 4 * 8];
    images[0] = bf16::from_f32(pixel);
    let images = device.tensor(&images, [1, 4, 4, 8])?;
    let mut filters = vec![bf16::ZERO; 8 * 9 * 8];
    filters.iter_mut().take(9 * 8).step_by(8).for_each(|x| *x = bf16::from_f32(tap));
    let filters = device.tensor(&filters, [8, 3, 3, 8])?;
    let mut output = device.filled_bytes::<bf16, 4>([1, 4, 4, 8], 0xff)?;
    let mut of_bias = vec![bf16::ZERO; 8];
    of_bias[0] = bf16::from_f32(bias.unwrap_or_default());
    let of_bias = device.tensor(&of_bias, [8])?;
    let options =
        ConvOptions { padding: [1; 2], relu, bias: bias.map(|_| of_bias.view()), ..ConvOptions::default() };
    conv2d(device, &images, &filters, &mut output, options)?;
    Ok(output.to_vec()?[0].to_f32())
}

pub(crate) fn lines(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for x in special(bf16::MAX.to_f32(), 9.2e-41) {
        let x = bf16::from_f32(x).to_f32();
        let found = one(device, [x, 1.0], false, None)?;
        table.line("conv2d", format!("a pixel of {}, taps of 1", number(x)), x + 0.0, found);
    }
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let found = one(device, [1.0, inf], false, None)?;
    table.line("conv2d", "taps of ∞ over a padding", nan, found);
    for (x, wanted) in [(nan, nan), (inf, inf), (-inf, 0.0), (-bf16::MAX.to_f32(), 0.0)] {
        let found = one(device, [x, 1.0], true, None)?;
        table.line("conv2d", format!("relu({})", number(x)), wanted, found);
    }
    for (x, wanted) in [(nan, nan), (-inf, -inf), (-0.0, 0.0)] {
        let found = one(device, [0.0, 1.0], false, Some(x))?;
        table.line("conv2d", format!("a pixel of 0, bias {}", number(x)), wanted, found);
    }
    Ok(())
}
