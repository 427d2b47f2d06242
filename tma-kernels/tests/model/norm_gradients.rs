//! Gradients of RMSNorm and LayerNorm.

use tma_kernels::model::{
    GradientWorkspace, ModelError, NormBackwardOptions, layer_norm_backward, rms_norm_backward,
};
use tma_runtime::prelude::*;

use crate::rows::{BATCHES, EMPTY, Element, LAYOUTS, Layout, check, numbers};

/// The terms and factors of rows.
#[derive(Clone, Copy, Debug)]
struct Case {
    centred: bool,
    weight: bool,
    one_plus_weight: bool,
    bias: bool,
    accumulate: bool,
    accumulate_weights: bool,
}

const RMS: Case = Case {
    centred: false,
    weight: true,
    one_plus_weight: false,
    bias: false,
    accumulate: false,
    accumulate_weights: false,
};
const LAYER: Case = Case { centred: true, bias: true, ..RMS };
const ADDED: Case = Case { accumulate: true, accumulate_weights: true, ..LAYER };

const EPSILON: f32 = 1e-3;

/// A row in f64: normalised numbers, the gradient of `x`, and a bound of the gradient's error in
/// parts of it.
struct Row {
    normal: Vec<f64>,
    dx: Vec<f64>,
    size: Vec<f64>,
}

/// Returns the gradients of a row. `h` is the gradient of normalised numbers.
fn differentiated(x: &[f64], h: &[f64], centred: bool) -> Row {
    let count = x.len() as f64;
    let mean = |all: &[f64]| if centred { all.iter().sum::<f64>() / count } else { 0.0 };
    let [of_x, of_h] = [mean(x), mean(h)];
    let squares = x.iter().map(|x| (x - of_x).powi(2)).sum::<f64>() / count;
    let factor = (squares + f64::from(EPSILON)).sqrt().recip();
    let normal: Vec<f64> = x.iter().map(|x| (x - of_x) * factor).collect();
    let slope = normal.iter().zip(h).map(|(n, h)| n * h).sum::<f64>() / count;
    let greatest = h.iter().fold(0.0_f64, |all, h| all.max(h.abs()));
    let of_column = |(n, h): (&f64, &f64)| factor * (h - of_h - n * slope);
    let dx = normal.iter().zip(h).map(of_column).collect();
    // Means have errors in parts of the greatest elements.
    let size = normal.iter().map(|n| factor * greatest * (2.0 + n.abs() + n * n)).collect();
    Row { normal, dx, size }
}

/// The analytic gradient is that of numerical differentiation.
#[test]
fn the_reference_is_a_derivative() {
    let [x, h]: [Vec<f32>; 2] = [numbers(1, 12, 2.0), numbers(2, 12, 1.0)];
    let [x, h] = [x, h].map(|all| all.into_iter().map(f64::from).collect::<Vec<_>>());
    for centred in [false, true] {
        let loss = |x: &[f64]| -> f64 {
            differentiated(x, &h, centred).normal.iter().zip(&h).map(|(n, h)| n * h).sum()
        };
        for (i, dx) in differentiated(&x, &h, centred).dx.iter().enumerate() {
            let moved =
                |by: f64| Vec::from_iter(x.iter().enumerate().map(|(j, x)| if j == i { x + by } else { *x }));
            let numeric = (loss(&moved(1e-5)) - loss(&moved(-1e-5))) / 2e-5;
            assert!((numeric - dx).abs() < 1e-8, "column {i}: {dx}, not {numeric}");
        }
    }
}

#[track_caller]
fn checks<T: Element, G: Element>(layout: Layout, case: Case) {
    compared::<T, G>(layout, case).unwrap_or_else(|error| panic!("{layout:?}, {case:?}: {error}"));
}

#[track_caller]
fn compared<T: Element, G: Element>(layout: Layout, case: Case) -> Result<(), ModelError> {
    let [columns, elements] = [layout.columns(), layout.rows() * layout.columns()];
    let (x, dy) = (numbers::<T>(1, elements, 4.0), numbers::<T>(2, elements, 2.0));
    let (weight, old) = (numbers::<T>(3, columns, 2.0), numbers::<T>(4, elements, 1.0));
    let (old_weight, old_bias) = (numbers::<G>(5, columns, 8.0), numbers::<G>(6, columns, 8.0));
    let device = Device::simulator();
    let (of_x, of_dy) = (layout.tensor(&device, &x)?, layout.tensor(&device, &dy)?);
    let of_weight = device.tensor(&weight, [columns])?;
    let mut workspace = GradientWorkspace::for_norm(&device, [layout.rows(), columns])?;
    let mut found: Vec<[Vec<u64>; 3]> = vec![];
    for run in 0..2 {
        let mut dx = match case.accumulate {
            true => layout.tensor(&device, &old)?,
            false => device.filled_bytes::<T, 3>(layout.stored(), 0xff)?,
        };
        let mut dweight = device.tensor(&old_weight, [columns])?;
        let mut dbias = device.tensor(&old_bias, [columns])?;
        let options = NormBackwardOptions {
            weight: case.weight.then(|| of_weight.view()),
            one_plus_weight: case.one_plus_weight,
            epsilon: EPSILON,
            accumulate: case.accumulate,
            dweight: Some(dweight.view_mut()),
            dbias: case.bias.then(|| dbias.view_mut()),
            accumulate_weights: case.accumulate_weights,
            workspace: (run == 0).then_some(&mut workspace),
        };
        let (x_view, dy_view) = (layout.view(&of_x)?, layout.view(&of_dy)?);
        match case.centred {
            true => layer_norm_backward(&device, x_view, dy_view, layout.view_mut(&mut dx)?, options)?,
            false => rms_norm_backward(&device, x_view, dy_view, layout.view_mut(&mut dx)?, options)?,
        }
        let bits = |all: Vec<f64>| all.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let dx = layout.rows_of(&dx)?.into_iter().map(T::value).collect();
        let [dweight, dbias] = [dweight.to_vec()?, dbias.to_vec()?];
        let [dweight, dbias] = [dweight, dbias].map(|all| all.into_iter().map(G::value).collect());
        found.push([dx, dweight, dbias].map(bits));
    }
    assert!(found[0] == found[1], "other bits the second time");
    let [dx, dweight, dbias] = &found[0];

    let (mut of_weights, mut of_biases) = (vec![[0.0; 2]; columns], vec![[0.0; 2]; columns]);
    for row in 0..layout.rows() {
        let part = row * columns..(row + 1) * columns;
        let values = |all: &[T]| all[part.clone()].iter().map(|x| x.value()).collect::<Vec<_>>();
        let (x, dy, old) = (values(&x), values(&dy), values(&old));
        let plus = if case.one_plus_weight { 1.0 } else { 0.0 };
        let factor = |column: usize| if case.weight { weight[column].value() + plus } else { 1.0 };
        let h: Vec<f64> = dy.iter().enumerate().map(|(column, dy)| dy * factor(column)).collect();
        let of_row = differentiated(&x, &h, case.centred);
        for column in 0..columns {
            let before = if case.accumulate { old[column] } else { 0.0 };
            let wanted = before + of_row.dx[column];
            let found = T::of(f64::from_bits(dx[part.start + column]));
            check(found, wanted, 0.0, (of_row.size[column] + before.abs()) * 2f64.powi(-20));
            let term = dy[column] * of_row.normal[column];
            let size = (dy[column] * (of_row.normal[column].abs() + 1.0)).abs();
            of_weights[column] = [of_weights[column][0] + term, of_weights[column][1] + size];
            of_biases[column] = [of_biases[column][0] + dy[column], of_biases[column][1] + dy[column].abs()];
        }
    }
    for column in 0..columns {
        let before = |old: &[G]| if case.accumulate_weights { old[column].value() } else { 0.0 };
        let compare = |found: &[u64], old: &[G], [wanted, size]: [f64; 2]| {
            let error = (size + before(old).abs()) * 2f64.powi(-20);
            check(G::of(f64::from_bits(found[column])), before(old) + wanted, 0.0, error);
        };
        compare(dweight, &old_weight, of_weights[column]);
        match case.bias {
            true => compare(dbias, &old_bias, of_biases[column]),
            false => assert_eq!(f64::from_bits(dbias[column]), old_bias[column].value()),
        }
    }
    Ok(())
}

#[test]
fn every_layout_and_type() {
    for layout in LAYOUTS {
        checks::<f32, f32>(layout, RMS);
        checks::<f32, f32>(layout, ADDED);
        checks::<bf16, f32>(layout, LAYER);
        checks::<f16, f16>(layout, Case { one_plus_weight: true, ..RMS });
        checks::<bf16, bf16>(layout, Case { accumulate: true, ..RMS });
    }
}

#[test]
fn every_option() {
    for bits in 0..64_u32 {
        let has = |bit: u32| bits >> bit & 1 == 1;
        let [centred, weight, one_plus_weight, bias] = [0, 1, 2, 3].map(has);
        let [accumulate, accumulate_weights] = [4, 5].map(has);
        let case = Case { centred, weight, one_plus_weight, bias, accumulate, accumulate_weights };
        checks::<f32, f32>(Layout { shape: [1, 5, 32], apart: 0 }, case);
    }
}

/// Rows enough that each block has several of them.
#[test]
fn many_rows() {
    for layout in BATCHES {
        checks::<bf16, f32>(layout, ADDED);
        checks::<f16, f32>(layout, RMS);
    }
    // Rows of four vectors for each thread.
    let long = Layout { shape: [1, 9, 16384], apart: 8 };
    checks::<bf16, f32>(long, Case { accumulate: true, one_plus_weight: true, ..RMS });
    checks::<f32, f32>(Layout { shape: [1, 9, 8188], apart: 0 }, Case { bias: false, ..LAYER });
    checks::<f32, bf16>(Layout { shape: [3, 17, 1028], apart: 4 }, LAYER);
    checks::<f32, f32>(Layout { shape: [1, 70, 65], apart: 0 }, ADDED);
    checks::<bf16, f32>(Layout { shape: [1, 3, 4104], apart: 0 }, LAYER);
}

/// Rows that registers have no room for, also more than there are blocks.
#[test]
fn rows_beyond_the_registers() {
    checks::<bf16, f32>(Layout { shape: [1, 6, 16384 + 264], apart: 8 }, ADDED);
    checks::<f16, f16>(Layout { shape: [1, 5, 8200], apart: 0 }, RMS);
    checks::<f32, f32>(Layout { shape: [1, 5, 4100], apart: 0 }, LAYER);
    checks::<bf16, f32>(Layout { shape: [1, 5, 1025], apart: 0 }, ADDED);
    checks::<f16, f32>(Layout { shape: [1, 2, 2049], apart: 0 }, RMS);
    checks::<f32, f32>(Layout { shape: [2, 3, 2051], apart: 1 }, LAYER);
}

#[test]
fn nothing_to_differentiate() {
    for layout in EMPTY {
        checks::<bf16, f32>(layout, RMS);
        checks::<f32, bf16>(layout, ADDED);
    }
}

/// Without gradients of weights, that of `x` has the same bits.
#[test]
fn without_gradients_of_weights() -> Result<(), ModelError> {
    let device = Device::simulator();
    let shape = [7, 264];
    let (x, dy) =
        (device.tensor(&numbers::<bf16>(1, 7 * 264, 4.0), shape)?, numbers::<bf16>(2, 7 * 264, 4.0));
    let dy = device.tensor(&dy, shape)?;
    let (mut dx, mut again) = (device.zeros::<bf16, 2>(shape)?, device.zeros::<bf16, 2>(shape)?);
    let mut dbias = device.zeros::<f32, 1>([264])?;
    layer_norm_backward(&device, &x, &dy, &mut dx, NormBackwardOptions::<_, f32>::default())?;
    let options = NormBackwardOptions { dbias: Some(dbias.view_mut()), ..Default::default() };
    layer_norm_backward(&device, &x, &dy, &mut again, options)?;
    assert_eq!(dx.to_vec()?, again.to_vec()?);
    let wanted: f64 = dy.to_vec()?.iter().step_by(264).map(|dy| dy.to_f64()).sum();
    check(dbias.to_vec()?[0], wanted, 0.0, 2f64.powi(-18));
    Ok(())
}

/// A large mean costs no precision.
#[test]
fn a_large_mean() -> Result<(), ModelError> {
    let device = Device::simulator();
    let shape = [3, 640];
    let x: Vec<f32> = numbers::<f32>(9, 3 * 640, 1.0).iter().map(|x| 4096.0 + x).collect();
    let dy: Vec<f32> = numbers::<f32>(10, 3 * 640, 1.0);
    let mut dx = device.zeros::<f32, 2>(shape)?;
    let options = NormBackwardOptions::<_, f32> { epsilon: EPSILON, ..Default::default() };
    layer_norm_backward(&device, &device.tensor(&x, shape)?, &device.tensor(&dy, shape)?, &mut dx, options)?;
    let found = dx.to_vec()?;
    for row in 0..3 {
        let values = |all: &[f32]| all[row * 640..][..640].iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
        let wanted = differentiated(&values(&x), &values(&dy), true);
        for (column, wanted) in wanted.dx.iter().enumerate() {
            // The mean has an error of some 2^-24 of 4096.
            check(found[row * 640 + column], *wanted, 0.0, 2f64.powi(-10));
        }
    }
    Ok(())
}

#[test]
fn special_values() -> Result<(), ModelError> {
    let device = Device::simulator();
    let row = |special: f32| [vec![special], vec![1.0; 59]].concat();
    let x =
        device.tensor(&[row(f32::NAN), row(f32::INFINITY), vec![2e19; 60], row(0.5)].concat(), [4, 60])?;
    let dy = device.tensor(&[0.5_f32; 240], [4, 60])?;
    let mut dx = device.zeros::<f32, 2>([4, 60])?;
    for centred in [false, true] {
        let options = NormBackwardOptions::<_, f32>::default();
        match centred {
            true => layer_norm_backward(&device, &x, &dy, &mut dx, options)?,
            false => rms_norm_backward(&device, &x, &dy, &mut dx, options)?,
        }
        let found = dx.to_vec()?;
        assert!(found[..120].iter().all(|x| x.is_nan()), "{:?}", &found[..120]);
        if !centred {
            assert!(found[120..180].iter().all(|x| *x == 0.0), "{:?}", &found[120..180]);
        }
        assert!(found[180..].iter().all(|x| x.is_finite()));
    }
    Ok(())
}

/// A captured gradient reads what is there when it runs.
#[test]
fn in_a_graph() -> Result<(), ModelError> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (x, mut dy) = (device.tensor(&[2.0_f32; 3 * 128], [3, 128])?, device.zeros::<f32, 2>([3, 128])?);
    let (mut dx, mut dweight) = (device.zeros::<f32, 2>([3, 128])?, device.zeros::<f32, 1>([128])?);
    let mut workspace = GradientWorkspace::for_norm(&device, [3, 128])?;
    let graph = stream.capture(|capture| {
        let options = NormBackwardOptions {
            dweight: Some(dweight.view_mut()),
            workspace: Some(&mut workspace),
            epsilon: 0.0,
            ..Default::default()
        };
        match rms_norm_backward(capture, &x, &dy, &mut dx, options) {
            Ok(()) => Ok(()),
            Err(ModelError::Runtime(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    })?;
    dy.copy_from(&[3.0; 3 * 128])?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(dweight.to_vec()?, [9.0; 128]);
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), Error> {
    let device = Device::simulator();
    let x = device.zeros::<bf16, 2>([4, 64])?;
    let (long, short) = (device.zeros::<bf16, 1>([128])?, device.zeros::<bf16, 1>([32])?);
    let code = |dy: [usize; 2], dx: [usize; 2], options: NormBackwardOptions<'_, bf16, f32>| {
        let (dy, mut dx) = (device.zeros::<bf16, 2>(dy)?, device.zeros::<bf16, 2>(dx)?);
        let result = rms_norm_backward(&device, &x, &dy, &mut dx, options);
        Ok::<_, Error>(result.map_or_else(|error| error.code(), |()| "none"))
    };
    let plain = NormBackwardOptions::default;
    assert_eq!(code([4, 64], [4, 64], plain())?, "none");
    assert_eq!(code([4, 60], [4, 64], plain())?, "TMA0575");
    assert_eq!(code([4, 64], [4, 60], plain())?, "TMA0575");
    let with_weight = |weight| NormBackwardOptions { weight: Some(weight), ..plain() };
    assert_eq!(code([4, 64], [4, 64], with_weight(short.view()))?, "TMA0575");
    assert_eq!(code([4, 64], [4, 64], with_weight(long.view().with_strides([64], [2])?))?, "TMA0576");
    let mut few = device.zeros::<f32, 1>([32])?;
    let options = NormBackwardOptions { dweight: Some(few.view_mut()), ..plain() };
    assert_eq!(code([4, 64], [4, 64], options)?, "TMA0575");
    let options = NormBackwardOptions { dbias: Some(few.view_mut()), ..plain() };
    assert_eq!(code([4, 64], [4, 64], options)?, "TMA0575");
    for epsilon in [-1.0, f32::NAN, f32::INFINITY] {
        assert_eq!(code([4, 64], [4, 64], NormBackwardOptions { epsilon, ..plain() })?, "TMA0578");
    }
    let mut turned = device.zeros::<bf16, 2>([64, 4])?;
    let dx = turned.view_mut().permute([1, 0])?;
    let error = rms_norm_backward(&device, &x, &x, dx, plain()).expect_err("columns are not adjacent");
    assert_eq!(error.code(), "TMA0576");
    Ok(())
}
