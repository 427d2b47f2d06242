//! Gradients of activations, gated or not, and of softmax.

use tma_kernels::model::{
    Gate, GateGradientsMut, ModelError, SoftmaxOptions, activate_backward, gated_backward,
    gated_packed_backward, soft_cap_backward, softmax_backward,
};
use tma_runtime::prelude::*;

use crate::elementwise::{GATES, activated, probability};
use crate::rows::{BATCHES, EMPTY, Element, LAYOUTS, Layout, check, numbers};

/// Returns the derivative of an activation.
fn slope(gate: Gate, x: f64) -> f64 {
    match gate {
        Gate::Silu => {
            let [s, rest] = [1.0 / (1.0 + (-x).exp()), 1.0 / (1.0 + x.exp())];
            s * (1.0 + x * rest)
        }
        Gate::Gelu => {
            let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            probability(x) + x * density
        }
        Gate::GeluTanh => {
            let root = (2.0 / std::f64::consts::PI).sqrt();
            let y = 2.0 * root * (x + 0.044715 * x.powi(3));
            let [s, rest] = [1.0 / (1.0 + (-y).exp()), 1.0 / (1.0 + y.exp())];
            s * (1.0 + x * rest * 2.0 * root * (1.0 + 3.0 * 0.044715 * x * x))
        }
    }
}

/// The analytic derivatives are those of numerical differentiation.
#[test]
fn the_references_are_derivatives() {
    for gate in GATES {
        for x in [-6.0, -2.9, -1.278, -0.7, -0.0001, 0.0, 0.3, 1.0, 2.5, 7.0] {
            let numeric = (activated(gate, x + 1e-5) - activated(gate, x - 1e-5)) / 2e-5;
            let found = slope(gate, x);
            assert!((found - numeric).abs() < 1e-8, "{gate:?} at {x}: {found}, not {numeric}");
        }
    }
}

/// The error of a derivative: relative, and absolute.
const RELATIVE: f64 = 1.0 / 32768.0;
const ABSOLUTE: f64 = 1.0 / 524_288.0;

#[track_caller]
fn differentiates<T: Element>(activation: Gate, layout: Layout, size: f64) -> Result<(), ModelError> {
    let elements = layout.rows() * layout.columns();
    let (gate, up) = (numbers::<T>(1, elements, size), numbers::<T>(2, elements, 2.0));
    let dy = numbers::<T>(3, elements, 3.0);
    let device = Device::simulator();
    let [of_gate, of_up] = [layout.tensor(&device, &gate)?, layout.tensor(&device, &up)?];
    let of_dy = layout.tensor(&device, &dy)?;
    let mut dgate = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    let mut dup = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    let gradients = GateGradientsMut { gate: layout.view_mut(&mut dgate)?, up: layout.view_mut(&mut dup)? };
    let (gate_view, up_view) = (layout.view(&of_gate)?, layout.view(&of_up)?);
    gated_backward(&device, activation, gate_view, up_view, layout.view(&of_dy)?, gradients)?;
    let [dgate, dup] = [layout.rows_of(&dgate)?, layout.rows_of(&dup)?];
    let mut dx = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    activate_backward(&device, activation, gate_view, layout.view(&of_dy)?, layout.view_mut(&mut dx)?)?;
    let dx = layout.rows_of(&dx)?;
    for i in 0..elements {
        let [gate, up, dy] = [gate[i], up[i], dy[i]].map(T::value);
        let wanted = dy * slope(activation, gate);
        check(dgate[i], wanted * up, RELATIVE, ABSOLUTE * (dy * up).abs());
        check(dx[i], wanted, RELATIVE, ABSOLUTE * dy.abs());
        check(dup[i], activated(activation, gate) * dy, RELATIVE, 2f64.powi(-118));
    }
    // The same rows as halves of longer ones.
    let [_, inner, columns] = layout.shape;
    if layout.apart == 0 && layout.shape[0] == 1 {
        let joined = |a: &[T], b: &[T]| -> Vec<T> {
            (0..inner)
                .flat_map(|i| [&a[i * columns..][..columns], &b[i * columns..][..columns]].concat())
                .collect()
        };
        let packed = device.tensor(&joined(&gate, &up), [inner, 2 * columns])?;
        let dy = device.tensor(&dy, [inner, columns])?;
        let mut again = device.filled_bytes::<T, 2>([inner, 2 * columns], 0xff)?;
        gated_packed_backward(&device, activation, &packed, &dy, &mut again)?;
        assert_eq!(again.to_vec()?, joined(&dgate, &dup));
    }
    Ok(())
}

#[test]
fn every_gate_type_and_layout() -> Result<(), ModelError> {
    for gate in GATES {
        for layout in LAYOUTS.into_iter().chain(EMPTY) {
            differentiates::<bf16>(gate, layout, 12.0)?;
        }
        differentiates::<f16>(gate, Layout { shape: [1, 3, 1000], apart: 0 }, 6.0)?;
        differentiates::<f16>(gate, Layout { shape: [3, 2, 77], apart: 2 }, 6.0)?;
        differentiates::<f32>(gate, Layout { shape: [2, 2, 101], apart: 0 }, 9.0)?;
        differentiates::<f32>(gate, Layout { shape: [1, 3, 4100], apart: 0 }, 30.0)?;
    }
    Ok(())
}

/// Rows enough to pass through shared memory, of which packed ones are a copy each.
#[test]
fn gates_of_many_rows() -> Result<(), ModelError> {
    for gate in GATES {
        for layout in BATCHES {
            differentiates::<bf16>(gate, layout, 12.0)?;
        }
        differentiates::<f16>(gate, Layout { shape: [1, 21, 2056], apart: 0 }, 6.0)?;
        differentiates::<f32>(gate, Layout { shape: [1, 11, 2052], apart: 0 }, 30.0)?;
    }
    limits::<bf16>(BATCHES[0], 30.0)
}

#[test]
fn special_gates() -> Result<(), ModelError> {
    let device = Device::simulator();
    let inputs = [f32::NEG_INFINITY, -1e30, -200.0, 200.0, 1e30, f32::INFINITY, f32::NAN];
    let gate = device.tensor(&inputs, [1, 7])?;
    let (up, dy) = (device.tensor(&[2.0_f32; 7], [1, 7])?, device.tensor(&[4.0_f32; 7], [1, 7])?);
    let (mut dgate, mut dup) = (device.zeros::<f32, 2>([1, 7])?, device.zeros::<f32, 2>([1, 7])?);
    for activation in GATES {
        let gradients = GateGradientsMut { gate: dgate.view_mut(), up: dup.view_mut() };
        gated_backward(&device, activation, &gate, &up, &dy, gradients)?;
        let [dgate, dup] = [dgate.to_vec()?, dup.to_vec()?];
        assert_eq!(dgate[..6], [0.0, 0.0, 0.0, 8.0, 8.0, 8.0], "{activation:?}");
        assert_eq!(dup[..6], [0.0, 0.0, 0.0, 800.0, 4e30, f32::INFINITY], "{activation:?}");
        assert!(dgate[6].is_nan() && dup[6].is_nan());
    }
    let mut dx = device.zeros::<f32, 2>([1, 7])?;
    soft_cap_backward(&device, &gate, &dy, &mut dx, 30.0)?;
    let found = dx.to_vec()?;
    assert!(found[0] == 0.0 && found[1] == 0.0 && found[4..6] == [0.0; 2] && found[6].is_nan(), "{found:?}");
    Ok(())
}

#[track_caller]
fn limits<T: Element>(layout: Layout, cap: f32) -> Result<(), ModelError> {
    let elements = layout.rows() * layout.columns();
    let (x, dy) = (numbers::<T>(5, elements, 12.0), numbers::<T>(6, elements, 2.0));
    let device = Device::simulator();
    let [of_x, of_dy] = [layout.tensor(&device, &x)?, layout.tensor(&device, &dy)?];
    let mut dx = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    soft_cap_backward(&device, layout.view(&of_x)?, layout.view(&of_dy)?, layout.view_mut(&mut dx)?, cap)?;
    for ((x, dy), found) in x.iter().zip(&dy).zip(layout.rows_of(&dx)?) {
        // 1 - tanh² is 1 / cosh².
        let wanted = dy.value() / (x.value() / f64::from(cap)).cosh().powi(2);
        check(found, wanted, RELATIVE, 2f64.powi(-100));
    }
    Ok(())
}

#[test]
fn limited_logits() -> Result<(), ModelError> {
    for layout in LAYOUTS {
        limits::<bf16>(layout, 5.0)?;
    }
    limits::<f16>(Layout { shape: [1, 3, 1000], apart: 0 }, 30.0)?;
    limits::<f32>(Layout { shape: [2, 2, 101], apart: 3 }, 0.75)
}

/// Returns the gradient of softmax, or of its logarithm, from its input.
fn of_softmax(x: &[f64], dy: &[f64], SoftmaxOptions { scale, log }: SoftmaxOptions) -> [Vec<f64>; 2] {
    let scale = f64::from(scale);
    let greatest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| ((x - greatest) * scale).exp()).sum();
    let logs: Vec<f64> = x.iter().map(|x| (x - greatest) * scale - sum.ln()).collect();
    let total: f64 = match log {
        true => dy.iter().sum(),
        false => logs.iter().zip(dy).map(|(log, dy)| log.exp() * dy).sum(),
    };
    let dx = logs.iter().zip(dy).map(|(y, dy)| match log {
        true => scale * (dy - y.exp() * total),
        false => scale * y.exp() * (dy - total),
    });
    let dx = dx.collect();
    [if log { logs } else { logs.iter().map(|log| log.exp()).collect() }, dx]
}

/// The analytic gradient is that of numerical differentiation.
#[test]
fn the_gradient_of_softmax_is_a_derivative() {
    let values = |seed| -> Vec<f64> { numbers::<f32>(seed, 9, 2.0).into_iter().map(f64::from).collect() };
    let [x, dy] = [values(1), values(2)];
    for log in [false, true] {
        let options = SoftmaxOptions { scale: 0.75, log };
        let loss =
            |x: &[f64]| -> f64 { of_softmax(x, &dy, options)[0].iter().zip(&dy).map(|(y, dy)| y * dy).sum() };
        for (i, dx) in of_softmax(&x, &dy, options)[1].iter().enumerate() {
            let moved =
                |by: f64| Vec::from_iter(x.iter().enumerate().map(|(j, x)| if j == i { x + by } else { *x }));
            let numeric = (loss(&moved(1e-5)) - loss(&moved(-1e-5))) / 2e-5;
            assert!((numeric - dx).abs() < 1e-8, "column {i}: {dx}, not {numeric}");
        }
    }
}

/// Compares gradients with those from the same rounded results.
#[track_caller]
fn softmax<T: Element>(layout: Layout, options: SoftmaxOptions) -> Result<(), ModelError> {
    let [columns, elements] = [layout.columns(), layout.rows() * layout.columns()];
    let x: Vec<f64> = numbers::<f32>(7, elements, 4.0).into_iter().map(f64::from).collect();
    let dy = numbers::<T>(8, elements, 2.0);
    let zeros = vec![0.0; columns];
    let of_row =
        |row: &[f64]| of_softmax(row, &zeros, options)[0].iter().map(|y| T::of(*y)).collect::<Vec<_>>();
    let y: Vec<T> = x.chunks(columns.max(1)).flat_map(of_row).collect();
    let device = Device::simulator();
    let [of_y, of_dy] = [layout.tensor(&device, &y)?, layout.tensor(&device, &dy)?];
    let mut dx = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    softmax_backward(&device, layout.view(&of_y)?, layout.view(&of_dy)?, layout.view_mut(&mut dx)?, options)?;
    let (found, scale) = (layout.rows_of(&dx)?, f64::from(options.scale));
    for row in 0..layout.rows() {
        let values =
            |all: &[T]| all[row * columns..][..columns].iter().map(|x| x.value()).collect::<Vec<_>>();
        let (y, dy) = (values(&y), values(&dy));
        let factor = |y: f64| if options.log { 1.0 } else { y };
        let terms = || y.iter().zip(&dy).map(|(y, dy)| factor(*y) * dy);
        let [total, size] = [terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>()];
        for (column, (y, dy)) in y.iter().zip(&dy).enumerate() {
            let wanted = match options.log {
                true => scale * (dy - y.exp() * total),
                false => scale * y * (dy - total),
            };
            let factor = scale * if options.log { y.exp() } else { *y };
            let error = factor * (size + dy.abs()) * 2f64.powi(-19) + scale * dy.abs() * 2f64.powi(-22);
            let error = if options.log { error } else { factor * (size + dy.abs()) * 2f64.powi(-20) };
            check(found[row * columns + column], wanted, 0.0, error);
        }
    }
    Ok(())
}

#[test]
fn softmax_of_every_layout_and_type() -> Result<(), ModelError> {
    for layout in LAYOUTS.into_iter().chain(EMPTY).chain(BATCHES) {
        softmax::<bf16>(layout, SoftmaxOptions::default())?;
        softmax::<f16>(layout, SoftmaxOptions { scale: 0.5, log: true })?;
        softmax::<f32>(layout, SoftmaxOptions { scale: 1.75, log: false })?;
    }
    softmax::<f32>(Layout { shape: [1, 2, 8192 + 4], apart: 0 }, SoftmaxOptions { scale: 1.75, log: true })?;
    softmax::<bf16>(Layout { shape: [1, 2, 16384 + 264], apart: 8 }, SoftmaxOptions::default())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), ModelError> {
    let device = Device::simulator();
    let [x, short] = [device.zeros::<bf16, 2>([4, 64])?, device.zeros::<bf16, 2>([4, 32])?];
    let (mut dx, mut other) = (device.zeros::<bf16, 2>([4, 64])?, device.zeros::<bf16, 2>([4, 32])?);
    let code = |result: Result<(), ModelError>| result.map_or_else(|error| error.code(), |()| "none");
    let silu = Gate::Silu;
    assert_eq!(code(activate_backward(&device, silu, &x, &short, &mut dx)), "TMA0575");
    assert_eq!(code(activate_backward(&device, silu, &x, &x, &mut other)), "TMA0575");
    assert_eq!(code(gated_packed_backward(&device, silu, &x, &short, &mut dx)), "none");
    assert_eq!(code(gated_packed_backward(&device, silu, &x, &short, &mut other)), "TMA0575");
    assert_eq!(code(gated_packed_backward(&device, silu, &x, &x, &mut dx)), "TMA0575");
    let mut gate = device.zeros::<bf16, 2>([4, 64])?;
    let gradients = GateGradientsMut { gate: gate.view_mut(), up: other.view_mut() };
    assert_eq!(code(gated_backward(&device, silu, &x, &x, &x, gradients)), "TMA0575");
    let gradients = GateGradientsMut { gate: gate.view_mut(), up: dx.view_mut() };
    assert_eq!(code(gated_backward(&device, silu, &x, &short, &x, gradients)), "TMA0575");
    let plain = SoftmaxOptions::default();
    assert_eq!(code(softmax_backward(&device, &x, &short, &mut dx, plain)), "TMA0575");
    assert_eq!(code(softmax_backward(&device, &x, &x, &mut other, plain)), "TMA0575");
    let turned = device.zeros::<bf16, 2>([64, 4])?;
    let turned = turned.view().permute([1, 0])?;
    assert_eq!(code(softmax_backward(&device, turned, &x, &mut dx, plain)), "TMA0576");
    assert_eq!(code(activate_backward(&device, silu, &x, turned, &mut dx)), "TMA0576");
    for number in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let options = SoftmaxOptions { scale: number, log: false };
        assert_eq!(code(softmax_backward(&device, &x, &x, &mut dx, options)), "TMA0578");
        assert_eq!(code(soft_cap_backward(&device, &x, &x, &mut dx, number)), "TMA0578");
    }
    Ok(())
}
