//! RMSNorm and LayerNorm.

use tma_kernels::model::{
    ModelError, NormOptions, ScaleBlocks, ScalesMut, layer_norm, quantize, rms_norm, rms_norm_quantized,
};
use tma_runtime::prelude::*;

use crate::rows::{BATCHES, EMPTY, Element, LAYOUTS, Layout, check, numbers};

/// The terms and factors of rows.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    centred: bool,
    weight: bool,
    one_plus_weight: bool,
    bias: bool,
    residual: bool,
    epsilon: f32,
}

const RMS: Case = Case {
    centred: false,
    weight: true,
    one_plus_weight: false,
    bias: false,
    residual: false,
    epsilon: 1e-5,
};
const LAYER: Case = Case { centred: true, bias: true, ..RMS };

#[track_caller]
fn checks<T: Element>(layout: Layout, case: Case, size: f64) {
    let elements = layout.rows() * layout.columns();
    let (x, residual) = (numbers::<T>(1, elements, size), numbers::<T>(2, elements, size / 2.0));
    compared(layout, case, &x, &residual).unwrap_or_else(|error| panic!("{layout:?}, {case:?}: {error}"));
}

#[track_caller]
fn compared<T: Element>(layout: Layout, case: Case, x: &[T], residual: &[T]) -> Result<(), ModelError> {
    let columns = layout.columns();
    let (weight, bias) = (numbers::<T>(3, columns, 2.0), numbers::<T>(4, columns, 1.0));
    let device = Device::simulator();
    let (of_x, mut of_residual) = (layout.tensor(&device, x)?, layout.tensor(&device, residual)?);
    let (of_weight, of_bias) = (device.tensor(&weight, [columns])?, device.tensor(&bias, [columns])?);
    let mut out = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    let mut options = NormOptions { epsilon: case.epsilon, ..Default::default() };
    options.weight = case.weight.then(|| of_weight.view());
    options.one_plus_weight = case.one_plus_weight;
    options.constant_weight = case.residual; // they always are; so both kinds of loads are tested
    options.bias = case.bias.then(|| of_bias.view());
    if case.residual {
        options.residual = Some(layout.view_mut(&mut of_residual)?);
    }
    let (x_view, out_view) = (layout.view(&of_x)?, layout.view_mut(&mut out)?);
    match case.centred {
        true => layer_norm(&device, x_view, out_view, options)?,
        false => rms_norm(&device, x_view, out_view, options)?,
    }
    let (found, sums) = (layout.rows_of(&out)?, layout.rows_of(&of_residual)?);
    for row in 0..layout.rows() {
        let part = row * columns..(row + 1) * columns;
        let (found, sums) = (&found[part.clone()], &sums[part.clone()]);
        let (x, residual) = (&x[part.clone()], &residual[part]);
        // Sums are exact in f32 for these numbers, or rounded twice as in the kernel.
        let added = |(x, other): (&T, &T)| T::of(f64::from((x.value() as f32) + other.value() as f32));
        let summed: Vec<T> = match case.residual {
            true => x.iter().zip(residual).map(added).collect(),
            false => x.to_vec(),
        };
        let kept = if case.residual { &summed[..] } else { residual };
        assert!(sums.iter().zip(kept).all(|(a, b)| a == b || a.value().is_nan()), "the residual");
        let values: Vec<f64> = summed.iter().map(|x| x.value()).collect();
        let mean = if case.centred { values.iter().sum::<f64>() / columns as f64 } else { 0.0 };
        let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        let deviation = (squares + f64::from(case.epsilon)).sqrt();
        for (column, value) in values.iter().enumerate() {
            let plus = if case.one_plus_weight { 1.0 } else { 0.0 };
            let factor = if case.weight { weight[column].value() + plus } else { 1.0 };
            let term = if case.bias { bias[column].value() } else { 0.0 };
            // Means have an error of some 2^-20 of the greatest element.
            let greatest = values.iter().fold(0.0_f64, |all, x| all.max(x.abs()));
            let absolute =
                if case.centred { greatest / deviation * factor.abs() * 2f64.powi(-19) } else { 0.0 };
            let wanted = (value - mean) / deviation * factor;
            check(
                found[column],
                wanted + term,
                2f64.powi(-19),
                absolute + (wanted.abs() + 1.0) * 2f64.powi(-22),
            );
        }
    }
    Ok(())
}

#[test]
fn every_layout_and_type() {
    for layout in LAYOUTS {
        for case in [RMS, LAYER] {
            checks::<bf16>(layout, case, 4.0);
            checks::<f16>(layout, Case { residual: true, ..case }, 4.0);
            checks::<f32>(layout, Case { one_plus_weight: true, ..case }, 4.0);
        }
    }
}

#[test]
fn every_option() {
    for bits in 0..32_u32 {
        let has = |bit: u32| bits >> bit & 1 == 1;
        let [centred, weight, bias, residual, one_plus_weight] = [0, 1, 2, 3, 4].map(has);
        let case = Case { centred, weight, one_plus_weight, bias, residual, epsilon: 1e-3 };
        checks::<bf16>(Layout { shape: [1, 3, 64], apart: 0 }, case, 1.0);
    }
}

/// A single row has more threads than those of several rows.
#[test]
fn single_rows() {
    for columns in [4096, 1000, 8] {
        let layout = Layout { shape: [1, 1, columns], apart: 0 };
        checks::<bf16>(layout, LAYER, 4.0);
        checks::<f16>(layout, Case { residual: true, ..RMS }, 4.0);
    }
    checks::<f32>(Layout { shape: [1, 1, 2048], apart: 0 }, LAYER, 4.0);
}

#[test]
fn batches() {
    let [apart, heads, long] = BATCHES;
    checks::<f16>(apart, Case { residual: true, ..RMS }, 4.0);
    checks::<f32>(apart, Case { one_plus_weight: true, ..LAYER }, 4.0);
    checks::<bf16>(heads, RMS, 4.0);
    checks::<bf16>(long, Case { residual: true, ..LAYER }, 4.0);
}

/// Rows of two parts, which are loaded twice.
#[test]
fn rows_beyond_the_registers() {
    let layout = Layout { shape: [1, 2, 16384 + 264], apart: 8 };
    checks::<bf16>(layout, RMS, 2.0);
    checks::<f16>(layout, Case { residual: true, ..LAYER }, 2.0);
    checks::<f32>(Layout { shape: [1, 1, 8192 + 1], apart: 0 }, LAYER, 2.0);
}

/// The variance of numbers with a large mean does not suffer from cancellation.
#[test]
fn a_large_mean() {
    let x: Vec<f32> = numbers::<f32>(9, 640, 1.0).iter().map(|x| 4096.0 + x).collect();
    let layout = Layout { shape: [1, 5, 128], apart: 0 };
    let case = Case { centred: true, epsilon: 0.0, ..Case::default() };
    compared(layout, case, &x, &x).expect("the shapes match");
}

#[test]
fn special_values() -> Result<(), ModelError> {
    let device = Device::simulator();
    let row = |special: &[f32]| [special, &[1.0; 60]].concat()[..60].to_vec();
    let [nan, inf, huge] = [row(&[f32::NAN]), row(&[f32::INFINITY]), vec![2e19; 60]];
    let x = device.tensor(&[nan, inf, huge, vec![0.0; 60]].concat(), [4, 60])?;
    let mut out = device.zeros::<f32, 2>([4, 60])?;
    rms_norm(&device, &x, &mut out, NormOptions::default())?;
    let found = out.to_vec()?;
    assert!(found[..60].iter().all(|x| x.is_nan()));
    assert!(found[60].is_nan() && found[61..].iter().all(|x| *x == 0.0), "{:?}", &found[60..]);
    layer_norm(&device, &x, &mut out, NormOptions::default())?;
    let found = out.to_vec()?;
    assert!(found[..120].iter().all(|x| x.is_nan()) && found[180..].iter().all(|x| *x == 0.0));
    Ok(())
}

#[test]
fn nothing_to_normalise() {
    for layout in EMPTY {
        checks::<bf16>(layout, RMS, 1.0);
        checks::<f32>(layout, LAYER, 1.0);
    }
}

/// Heads of 128 elements within the rows of queries, keys and values, and rows of four dimensions.
#[test]
fn heads_within_rows() -> Result<(), ModelError> {
    let device = Device::simulator();
    let x = numbers::<bf16>(5, 6 * 4 * 128, 3.0);
    let packed = device.tensor(&x, [6, 4 * 128])?;
    let keys = packed.view().with_strides([2, 3, 2, 128], [3 * 512, 512, 128, 1])?;
    let mut out = device.zeros::<bf16, 4>([2, 3, 2, 128])?;
    rms_norm(&device, keys, &mut out, NormOptions::default())?;
    let first: Vec<bf16> = x.chunks(512).flat_map(|row| row[..256].to_vec()).collect();
    let mut wanted = device.zeros::<bf16, 2>([12, 128])?;
    rms_norm(&device, &device.tensor(&first, [12, 128])?, &mut wanted, NormOptions::default())?;
    assert_eq!(out.to_vec()?, wanted.to_vec()?);
    Ok(())
}

/// A norm that quantises has the bits of a norm and a quantisation.
#[test]
fn quantised_results() -> Result<(), ModelError> {
    fn same<T: Element>(shape: [usize; 2], blocks: ScaleBlocks) -> Result<(), ModelError> {
        let device = Device::simulator();
        let [rows, columns] = shape;
        let x = device.tensor(&numbers::<T>(6, rows * columns, 4.0), shape)?;
        let weight = device.tensor(&numbers::<T>(7, columns, 2.0), [columns])?;
        let options = || NormOptions { weight: Some(weight.view()), ..Default::default() };
        let count = if blocks == ScaleBlocks::Row { 1 } else { columns.div_ceil(128) };
        let [mut scales, mut wanted_scales] = [device.zeros([rows, count])?, device.zeros([rows, count])?];
        let (mut out, mut wanted) = (device.zeros(shape)?, device.zeros(shape)?);
        let mut normal = device.zeros::<T, 2>(shape)?;
        rms_norm_quantized(
            &device,
            &x,
            &mut out,
            ScalesMut { blocks, scales: scales.view_mut() },
            options(),
        )?;
        rms_norm(&device, &x, &mut normal, options())?;
        quantize(&device, &normal, &mut wanted, ScalesMut { blocks, scales: wanted_scales.view_mut() })?;
        assert_eq!(scales.to_vec()?, wanted_scales.to_vec()?, "{shape:?}");
        let bits = |all: Vec<e4m3>| all.iter().map(e4m3::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(out.to_vec()?), bits(wanted.to_vec()?), "{shape:?}");
        Ok(())
    }
    for blocks in [ScaleBlocks::Row, ScaleBlocks::Columns128] {
        for shape in [[3, 256], [2, 1000], [3, 101], [1, 5120], [1, 1024], [36, 1032], [9, 4104]] {
            same::<bf16>(shape, blocks)?;
            same::<f32>(shape, blocks)?;
        }
        same::<f16>([2, 384], blocks)?;
    }
    Ok(())
}

/// A captured norm reads what is there when it runs.
#[test]
fn in_a_graph() -> Result<(), ModelError> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let mut x = device.zeros::<bf16, 2>([3, 128])?;
    let mut out = device.zeros::<bf16, 2>([3, 128])?;
    let graph = stream.capture(|capture| match rms_norm(capture, &x, &mut out, NormOptions::default()) {
        Ok(()) => Ok(()),
        Err(ModelError::Runtime(error)) => Err(error),
        Err(other) => panic!("{other}"),
    })?;
    x.copy_from(&[bf16::from_f32(3.0); 3 * 128])?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert!(out.to_vec()?.iter().all(|x| *x == bf16::ONE));
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.zeros::<bf16, 2>([4, 64])?;
    let [long, short] = [device.zeros::<bf16, 1>([128])?, device.zeros::<bf16, 1>([32])?];
    let code = |shape: [usize; 2], options: NormOptions<'_, bf16, 2>| {
        let mut out = device.zeros::<bf16, 2>(shape)?;
        Ok::<_, Error>(
            rms_norm(&device, &x, &mut out, options).map_or_else(|error| error.code(), |()| "none"),
        )
    };
    let plain = NormOptions::default;
    assert_eq!(code([4, 64], plain())?, "none");
    assert_eq!(code([4, 60], plain())?, "TMA0575");
    assert_eq!(code([4, 64], NormOptions { weight: Some(short.view()), ..plain() })?, "TMA0575");
    let apart = long.view().with_strides([64], [2])?;
    assert_eq!(code([4, 64], NormOptions { bias: Some(apart), ..plain() })?, "TMA0576");
    assert_eq!(code([4, 64], NormOptions { epsilon: -1.0, ..plain() })?, "TMA0578");
    assert_eq!(code([4, 64], NormOptions { epsilon: f32::NAN, ..plain() })?, "TMA0578");
    let mut other = device.zeros::<bf16, 2>([4, 32])?;
    assert_eq!(code([4, 64], NormOptions { residual: Some(other.view_mut()), ..plain() })?, "TMA0575");

    let mut turned = device.zeros::<bf16, 2>([64, 4])?;
    let out = turned.view_mut().permute([1, 0])?;
    assert_eq!(rms_norm(&device, &x, out, plain()).expect_err("columns are not adjacent").code(), "TMA0576");
    let long_rows = device.zeros::<bf16, 2>([1, 16392])?;
    let (mut out, mut scales) = (device.zeros::<e4m3, 2>([1, 16392])?, device.zeros([1, 1])?);
    let scales = ScalesMut { blocks: ScaleBlocks::Row, scales: scales.view_mut() };
    let error = rms_norm_quantized(&device, &long_rows, &mut out, scales, plain());
    assert_eq!(error.expect_err("rows are too long").code(), "TMA0577");
    Ok(())
}
