//! Activations, gated or in place, and embeddings.

use tma_kernels::model::{Gate, ModelError, activate, embedding, gated, gated_packed, soft_cap};
use tma_runtime::prelude::*;

use crate::rows::{EMPTY, Element, LAYOUTS, Layout, check, numbers};

/// Returns erf(x) by its series, or by the continued fraction of erfc for large arguments.
fn erf(x: f64) -> f64 {
    if x.abs() < 3.0 {
        let mut term = x;
        let mut sum = x;
        for n in 1..100 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    x.signum() * (1.0 - erfc(x.abs()))
}

/// Returns erfc of an argument of at least 3 (Abramowitz and Stegun, 7.1.14).
fn erfc(x: f64) -> f64 {
    let fraction = (1..200).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

/// Returns (1 + erf(x / √2)) / 2.
pub(super) fn probability(x: f64) -> f64 {
    match x < -4.5 {
        true => erfc(-x / 2f64.sqrt()) / 2.0,
        false => (1.0 + erf(x / 2f64.sqrt())) / 2.0,
    }
}

/// Returns an activated gate.
pub(super) fn activated(gate: Gate, x: f64) -> f64 {
    match gate {
        Gate::Silu => x / (1.0 + (-x).exp()),
        Gate::Gelu => x * probability(x),
        // 1 + tanh(y) = 2 / (1 + e^-2y), without cancellation.
        Gate::GeluTanh => {
            let y = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            x / (1.0 + (-2.0 * y).exp())
        }
    }
}

pub(super) const GATES: [Gate; 3] = [Gate::Silu, Gate::Gelu, Gate::GeluTanh];

#[track_caller]
fn multiplies<T: Element>(activation: Gate, layout: Layout, size: f64) -> Result<(), ModelError> {
    let elements = layout.rows() * layout.columns();
    let (gate, up) = (numbers::<T>(1, elements, size), numbers::<T>(2, elements, 2.0));
    let device = Device::simulator();
    let (of_gate, of_up) = (layout.tensor(&device, &gate)?, layout.tensor(&device, &up)?);
    let mut out = device.filled_bytes::<T, 3>(layout.stored(), 0xff)?;
    gated(&device, activation, layout.view(&of_gate)?, layout.view(&of_up)?, layout.view_mut(&mut out)?)?;
    let found = layout.rows_of(&out)?;
    // Exponents of up to 2^7 have a relative error of 2^-24, and powers that of their exponents.
    for ((gate, up), found) in gate.iter().zip(&up).zip(&found) {
        let wanted = activated(activation, gate.value()) * up.value();
        check(*found, wanted, 2f64.powi(-15), 2f64.powi(-120));
    }
    // The same rows as halves of longer ones.
    let [_, inner, columns] = layout.shape;
    if layout.apart == 0 && layout.shape[0] == 1 {
        let row = |i: usize| [&gate[i * columns..][..columns], &up[i * columns..][..columns]].concat();
        let packed: Vec<T> = (0..inner).flat_map(row).collect();
        let packed = device.tensor(&packed, [inner, 2 * columns])?;
        let mut again = device.zeros::<T, 2>([inner, columns])?;
        gated_packed(&device, activation, &packed, &mut again)?;
        assert_eq!(again.to_vec()?, found);
    }
    Ok(())
}

/// Rows enough for all multiprocessors have more vectors for each thread.
#[test]
fn gates_of_many_rows() -> Result<(), ModelError> {
    let layout = Layout { shape: [1, 9, 5120], apart: 8 };
    multiplies::<bf16>(Gate::Silu, layout, 8.0)?;
    multiplies::<f16>(Gate::GeluTanh, layout, 4.0)?;
    multiplies::<f32>(Gate::Gelu, layout, 8.0)
}

#[test]
fn every_gate_type_and_layout() -> Result<(), ModelError> {
    for gate in GATES {
        for layout in LAYOUTS {
            multiplies::<bf16>(gate, layout, 12.0)?;
        }
        multiplies::<f16>(gate, Layout { shape: [1, 3, 1000], apart: 0 }, 6.0)?;
        multiplies::<f32>(gate, Layout { shape: [2, 2, 101], apart: 0 }, 9.0)?;
        for layout in EMPTY {
            multiplies::<bf16>(gate, layout, 1.0)?;
        }
    }
    multiplies::<f32>(Gate::Silu, Layout { shape: [1, 2, 4100], apart: 4 }, 20.0)
}

#[track_caller]
fn replaces<T: Element>(layout: Layout, cap: f32) -> Result<(), ModelError> {
    let device = Device::simulator();
    let x = numbers::<T>(5, layout.rows() * layout.columns(), 12.0);
    for gate in GATES {
        let mut all = layout.tensor(&device, &x)?;
        activate(&device, gate, layout.view_mut(&mut all)?)?;
        for (x, found) in x.iter().zip(layout.rows_of(&all)?) {
            check(found, activated(gate, x.value()), 2f64.powi(-15), 2f64.powi(-120));
        }
    }
    let mut all = layout.tensor(&device, &x)?;
    soft_cap(&device, layout.view_mut(&mut all)?, cap)?;
    let limit = f64::from(cap);
    for (x, found) in x.iter().zip(layout.rows_of(&all)?) {
        check(found, limit * (x.value() / limit).tanh(), 0.0, limit * 2f64.powi(-21));
    }
    Ok(())
}

#[test]
fn activations_in_place() -> Result<(), ModelError> {
    for layout in LAYOUTS {
        replaces::<bf16>(layout, 5.0)?;
    }
    replaces::<f16>(Layout { shape: [1, 3, 1000], apart: 0 }, 30.0)?;
    replaces::<f32>(Layout { shape: [2, 2, 101], apart: 3 }, 0.75)?;
    EMPTY.into_iter().try_for_each(|layout| replaces::<bf16>(layout, 1.0))
}

#[test]
fn limits_of_special_numbers() -> Result<(), ModelError> {
    let device = Device::simulator();
    let mut x = device.tensor(&[f32::NEG_INFINITY, -1e30, 0.0, 1e30, f32::INFINITY, f32::NAN], [1, 6])?;
    soft_cap(&device, &mut x, 30.0)?;
    let found = x.to_vec()?;
    assert_eq!(found[..5], [-30.0, -30.0, 0.0, 30.0, 30.0]);
    assert!(found[5].is_nan());
    for cap in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = soft_cap(&device, &mut x, cap).expect_err("no limit");
        assert_eq!(error.code(), "TMA0578");
    }
    Ok(())
}

#[test]
fn special_gates() -> Result<(), ModelError> {
    let device = Device::simulator();
    let inputs = [f32::NEG_INFINITY, -1e30, -200.0, -0.0, 0.0, 200.0, 1e30, f32::INFINITY, f32::NAN];
    let gate = device.tensor(&inputs, [1, 9])?;
    let up = device.tensor(&[2.0_f32; 9], [1, 9])?;
    let mut out = device.zeros::<f32, 2>([1, 9])?;
    for activation in GATES {
        gated(&device, activation, &gate, &up, &mut out)?;
        let found = out.to_vec()?;
        assert!(found[..5].iter().all(|x| *x == 0.0), "{activation:?}: {found:?}");
        assert_eq!(found[5..8], [400.0, 2e30, f32::INFINITY], "{activation:?}");
        assert!(found[8].is_nan());
    }
    Ok(())
}

#[test]
fn rows_of_a_table() -> Result<(), ModelError> {
    fn looks_up<T: Element>(columns: usize, apart: usize, scale: f32) -> Result<(), ModelError> {
        let device = Device::simulator();
        let layout = Layout { shape: [1, 7, columns], apart };
        let rows = numbers::<T>(3, 7 * columns, 4.0);
        let table = layout.tensor(&device, &rows)?;
        let [_, stride, _] = layout.strides();
        let table = table.view().with_strides([7, columns], [stride, 1])?;
        // Every second of them.
        let tokens = [6_u32, 9, 0, 9, 7, 9, 3, 9, u32::MAX, 9, 6, 9];
        let of_tokens = device.tensor(&tokens, [6, 2])?;
        let of_tokens = of_tokens.view().with_strides([6], [2])?;
        let mut out = device.filled_bytes::<T, 2>([6, columns], 0xff)?;
        embedding(&device, table, of_tokens, &mut out, scale)?;
        let row = |token: u32| match token {
            0..7 => rows[token as usize * columns..][..columns].to_vec(),
            _ => vec![T::of(0.0); columns],
        };
        let scaled = |x: T| T::of(f64::from(x.value() as f32 * scale));
        let wanted: Vec<T> = tokens.iter().step_by(2).flat_map(|token| row(*token)).map(scaled).collect();
        assert_eq!(out.to_vec()?, wanted, "{columns} columns");
        Ok(())
    }
    for (columns, apart) in [(128, 0), (101, 0), (64, 8), (5120, 0), (8, 1)] {
        looks_up::<bf16>(columns, apart, 1.0)?;
        looks_up::<f16>(columns, apart, 11.3137)?;
        looks_up::<f32>(columns, apart, 0.5)?;
    }
    Ok(())
}

#[test]
fn nothing_to_look_up() -> Result<(), ModelError> {
    let device = Device::simulator();
    for [vocabulary, count, columns] in [[0, 3, 64], [5, 0, 64], [5, 3, 0]] {
        let table = device.zeros::<bf16, 2>([vocabulary, columns])?;
        let tokens = device.zeros([count])?;
        let mut out = device.filled_bytes::<bf16, 2>([count, columns], 0xff)?;
        embedding(&device, &table, &tokens, &mut out, 1.0)?;
        assert!(out.to_vec()?.iter().all(|x| *x == bf16::ZERO));
    }
    let (table, tokens) = (device.zeros::<bf16, 2>([4, 64])?, device.zeros([3])?);
    let mut out = device.zeros::<bf16, 2>([3, 32])?;
    let error = embedding(&device, &table, &tokens, &mut out, 1.0);
    assert_eq!(error.expect_err("rows are longer").code(), "TMA0575");
    let error = gated_packed(&device, Gate::Silu, &table, &mut out);
    assert_eq!(error.expect_err("there are fewer rows").code(), "TMA0575");
    Ok(())
}
