//! Softmax of rows, and its logarithm.

use tma_kernels::model::{ModelError, SoftmaxOptions, softmax};
use tma_runtime::prelude::*;

use crate::rows::{BATCHES, EMPTY, Element, LAYOUTS, Layout, check, numbers};

#[track_caller]
fn checks<T: Element>(layout: Layout, options: SoftmaxOptions, size: f64) -> Result<(), ModelError> {
    let columns = layout.columns();
    let x = numbers::<T>(1, layout.rows() * columns, size);
    let device = Device::simulator();
    let of_x = layout.tensor(&device, &x)?;
    let mut out = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    softmax(&device, layout.view(&of_x)?, layout.view_mut(&mut out)?, options)?;
    let found = layout.rows_of(&out)?;
    for row in 0..layout.rows() {
        let scaled: Vec<f64> =
            x[row * columns..][..columns].iter().map(|x| x.value() * f64::from(options.scale)).collect();
        let greatest = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scaled.iter().map(|x| (x - greatest).exp()).sum();
        for (x, found) in scaled.iter().zip(&found[row * columns..]) {
            let log = x - greatest - sum.ln();
            // Exponents below 2^7 have an error of 2^-17 or less.
            match options.log {
                true => check(*found, log, 2f64.powi(-18), 2f64.powi(-17)),
                false => check(*found, log.exp(), 2f64.powi(-15), 2f64.powi(-126)),
            }
        }
    }
    Ok(())
}

#[test]
fn every_layout_and_type() -> Result<(), ModelError> {
    for layout in LAYOUTS.into_iter().chain(EMPTY) {
        checks::<bf16>(layout, SoftmaxOptions::default(), 8.0)?;
        checks::<f16>(layout, SoftmaxOptions { log: true, ..Default::default() }, 8.0)?;
        checks::<f32>(layout, SoftmaxOptions { scale: 0.3, log: false }, 100.0)?;
        checks::<f32>(layout, SoftmaxOptions { scale: 1.7, log: true }, 8.0)?;
    }
    Ok(())
}

/// Rows of two parts, which are loaded twice.
#[test]
fn rows_beyond_the_registers() -> Result<(), ModelError> {
    for log in [false, true] {
        checks::<bf16>(
            Layout { shape: [1, 2, 16384 + 264], apart: 0 },
            SoftmaxOptions { scale: 1.0, log },
            8.0,
        )?;
    }
    checks::<f32>(Layout { shape: [1, 1, 8192 + 1], apart: 0 }, SoftmaxOptions::default(), 8.0)
}

#[test]
fn batches() -> Result<(), ModelError> {
    let [apart, heads, long] = BATCHES;
    checks::<f32>(apart, SoftmaxOptions { scale: 0.3, log: false }, 100.0)?;
    checks::<f16>(heads, SoftmaxOptions { log: true, ..Default::default() }, 8.0)?;
    checks::<bf16>(long, SoftmaxOptions::default(), 8.0)
}

#[test]
fn special_values_in_batches() -> Result<(), ModelError> {
    const MINUS: f32 = f32::NEG_INFINITY;
    let device = Device::simulator();
    let rows = [[f32::NAN, 1.0], [f32::INFINITY, 1.0], [MINUS; 2], [MINUS, 0.0], [-3e38, 3e38]];
    let x: Vec<f32> = (0..1024).flat_map(|row| rows[row % 5].repeat(16)).collect();
    let x = device.tensor(&x, [1024, 32])?;
    let mut out = device.zeros::<f32, 2>([1024, 32])?;
    for log in [false, true] {
        softmax(&device, &x, &mut out, SoftmaxOptions { scale: 1.0, log })?;
        for (row, found) in out.to_vec()?.chunks(32).enumerate() {
            let [first, second] = if log { [MINUS, -16f32.ln()] } else { [0.0, 1.0 / 16.0] };
            match row % 5 {
                0..3 => assert!(found.iter().all(|x| x.is_nan()), "row {row}: {found:?}"),
                3 => assert!(found[0] == first && (found[1] - second).abs() < 1e-6, "row {row}: {found:?}"),
                _ => assert!((found[1] - second).abs() < 1e-6, "row {row}: {found:?}"),
            }
        }
    }
    Ok(())
}

#[test]
fn special_values() -> Result<(), ModelError> {
    const MINUS: f32 = f32::NEG_INFINITY;
    let device = Device::simulator();
    let x = [
        [f32::NAN, 1.0, 2.0, 3.0],
        [f32::INFINITY, 1.0, 2.0, 3.0],
        [MINUS; 4],
        [MINUS, 0.0, MINUS, 0.0],
        [-3e38, 3e38, -3e38, 3e38],
    ];
    let x = device.tensor(&x.concat(), [5, 4])?;
    let mut out = device.zeros::<f32, 2>([5, 4])?;
    softmax(&device, &x, &mut out, SoftmaxOptions::default())?;
    let found = out.to_vec()?;
    assert!(found[..12].iter().all(|x| x.is_nan()), "{found:?}");
    assert_eq!(found[12..], [0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0, 0.5]);
    softmax(&device, &x, &mut out, SoftmaxOptions { log: true, scale: 1.0 })?;
    let found = out.to_vec()?;
    assert!(found[..12].iter().all(|x| x.is_nan()), "{found:?}");
    assert!(found[12] == MINUS && (found[13] + 2f32.ln()).abs() < 1e-6, "{found:?}");
    Ok(())
}

#[test]
fn a_scale_that_is_not_positive_is_an_error() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.zeros::<f32, 2>([2, 8])?;
    let mut out = device.zeros::<f32, 2>([2, 8])?;
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = softmax(&device, &x, &mut out, SoftmaxOptions { scale, log: false });
        assert_eq!(error.expect_err("not positive").code(), "TMA0578");
    }
    Ok(())
}
