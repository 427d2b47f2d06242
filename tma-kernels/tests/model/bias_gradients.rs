//! Gradients of biases.

use tma_kernels::model::{BiasBackwardOptions, GradientWorkspace, ModelError, bias_backward};
use tma_runtime::prelude::*;

use crate::rows::{Element, Layout, check, numbers};

/// Compares sums of columns with those in f64, and the bits of two calls with each other.
fn adds_up<T: Element, G: Element>(
    shape: [usize; 2],
    apart: usize,
    accumulate: bool,
) -> Result<(), ModelError> {
    let [rows, columns] = shape;
    let device = Device::simulator();
    let layout = Layout { shape: [1, rows, columns], apart };
    let (dy, old) = (numbers::<T>(1, rows * columns, 2.0), numbers::<G>(2, columns, 8.0));
    let of_dy = layout.tensor(&device, &dy)?;
    let view = of_dy.view().with_strides(shape, [columns + apart, 1])?;
    let mut workspace = GradientWorkspace::for_bias(&device, columns)?;
    let mut found = vec![];
    for run in 0..2 {
        let mut dbias = device.tensor(&old, [columns])?;
        let options = BiasBackwardOptions { accumulate, workspace: (run == 0).then_some(&mut workspace) };
        bias_backward(&device, view, &mut dbias, options)?;
        found.push(dbias.to_vec()?);
    }
    assert!(found[0] == found[1], "other bits the second time");
    for (column, found) in found[0].iter().enumerate() {
        let before = if accumulate { old[column].value() } else { 0.0 };
        let terms = || dy.iter().skip(column).step_by(columns).map(|dy| dy.value());
        let (sum, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
        check(*found, before + sum, 0.0, (size + before.abs()) * 2f64.powi(-20));
    }
    Ok(())
}

#[test]
fn every_type_and_layout() -> Result<(), ModelError> {
    let shapes = [[5, 128], [3, 1000], [70, 101], [17, 1], [9, 8], [2, 5120], [67, 520]];
    for (shape, apart) in shapes.into_iter().flat_map(|shape| [(shape, 0), (shape, 3), (shape, 8)]) {
        adds_up::<bf16, f32>(shape, apart, false)?;
        adds_up::<bf16, bf16>(shape, apart, true)?;
        adds_up::<f16, f16>(shape, apart, false)?;
        adds_up::<f32, f32>(shape, apart, true)?;
    }
    adds_up::<f32, bf16>([33, 72], 0, false)?;
    adds_up::<f32, f16>([33, 72], 0, true)?;
    adds_up::<f16, f32>([33, 72], 0, true)?;
    adds_up::<bf16, f16>([33, 72], 0, false)?;
    adds_up::<f16, bf16>([33, 72], 0, true)
}

/// Several slices of rows, of which each thread has more than it loads at a time.
#[test]
fn many_rows() -> Result<(), ModelError> {
    adds_up::<bf16, f32>([3001, 264], 0, true)?;
    adds_up::<f32, f32>([2500, 33], 0, false)?;
    adds_up::<f16, f32>([9000, 8], 0, false)
}

/// Rows that do not exist add nothing.
#[test]
fn without_rows_or_columns() -> Result<(), ModelError> {
    let device = Device::simulator();
    let none = device.zeros::<bf16, 2>([0, 40])?;
    let mut dbias = device.tensor(&[3.0_f32; 40], [40])?;
    let options = BiasBackwardOptions { accumulate: true, ..Default::default() };
    bias_backward(&device, &none, &mut dbias, options)?;
    assert_eq!(dbias.to_vec()?, [3.0; 40]);
    bias_backward(&device, &none, &mut dbias, BiasBackwardOptions::default())?;
    assert_eq!(dbias.to_vec()?, [0.0; 40]);
    let none = device.zeros::<bf16, 2>([4, 0])?;
    bias_backward(&device, &none, &mut device.zeros::<f32, 1>([0])?, BiasBackwardOptions::default())
}

/// A special value affects its own column only.
#[test]
fn special_values() -> Result<(), ModelError> {
    let device = Device::simulator();
    for columns in [16, 15] {
        let mut rows = vec![vec![bf16::ONE; columns]; 3];
        rows[1][0] = bf16::NAN;
        rows[0][1] = bf16::INFINITY;
        rows[2][2] = bf16::NEG_INFINITY;
        (rows[0][3], rows[1][3]) = (bf16::INFINITY, bf16::NEG_INFINITY);
        (rows[0][4], rows[2][4]) = (bf16::MAX, bf16::MAX);
        for row in &mut rows {
            row[5] = bf16::from_f32(-0.0);
        }
        let dy = device.tensor(&rows.concat(), [3, columns])?;
        let mut dbias = device.zeros::<f32, 1>([columns])?;
        bias_backward(&device, &dy, &mut dbias, BiasBackwardOptions::default())?;
        let found = dbias.to_vec()?;
        assert!(found[0].is_nan() && found[3].is_nan(), "{found:?}");
        assert_eq!(found[1..3], [f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!(found[4], f32::INFINITY);
        assert_eq!(found[5].to_bits(), 0.0_f32.to_bits(), "sums begin at +0");
        assert!(found[6..].iter().all(|x| *x == 3.0), "{found:?}");
    }
    Ok(())
}

/// A captured gradient reads what is there when it runs.
#[test]
fn in_a_graph() -> Result<(), ModelError> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let mut dy = device.zeros::<f32, 2>([3, 128])?;
    let mut dbias = device.zeros::<f32, 1>([128])?;
    let mut workspace = GradientWorkspace::for_bias(&device, 128)?;
    let graph = stream.capture(|capture| {
        let options = BiasBackwardOptions { workspace: Some(&mut workspace), ..Default::default() };
        match bias_backward(capture, &dy, &mut dbias, options) {
            Ok(()) => Ok(()),
            Err(ModelError::Runtime(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    })?;
    dy.copy_from(&[3.0; 3 * 128])?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(dbias.to_vec()?, [9.0; 128]);
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), Error> {
    let device = Device::simulator();
    let dy = device.zeros::<bf16, 2>([4, 64])?;
    let mut long = device.zeros::<f32, 1>([128])?;
    let code = |result: Result<(), ModelError>| result.map_or_else(|error| error.code(), |()| "none");
    let options = BiasBackwardOptions::default;
    assert_eq!(code(bias_backward(&device, &dy, &mut long, options())), "TMA0575");
    let apart = long.view_mut().with_strides([64], [2])?;
    assert_eq!(code(bias_backward(&device, &dy, apart, options())), "TMA0576");
    let mut short = device.zeros::<f32, 1>([4])?;
    let turned = dy.view().permute([1, 0])?;
    assert_eq!(code(bias_backward(&device, turned, &mut short, options())), "TMA0576");
    let mut fits = device.zeros::<f32, 1>([64])?;
    assert_eq!(code(bias_backward(&device, &dy, &mut fits, options())), "none");
    Ok(())
}
