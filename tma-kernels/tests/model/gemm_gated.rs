//! Gates within GEMMs.

use tma_kernels::gemm::{GatedOptions, GemmError, Product, gemm_gated};
use tma_kernels::model::Gate;
use tma_runtime::prelude::*;

use crate::elementwise::{GATES, activated};
use crate::rows::{Element, numbers};

/// The elements between the rows of C, which stay as they are.
const APART: usize = 3;

/// Compares a GEMM of M × N × K with sums in `f64`.
#[track_caller]
fn check<T: Element + Product<T>>(
    mnk: [usize; 3],
    gate: Gate,
    products_are_stored: bool,
) -> Result<(), GemmError> {
    let (device, [m, n, k]) = (Device::open()?, mnk);
    let (a, b) = (numbers::<T>(1, m * k, 0.5), numbers::<T>(2, 2 * n * k, 0.5));
    let before = numbers::<T>(3, 1, 1.0)[0];
    let (of_a, of_b) = (device.tensor(&a, [m, k])?, device.tensor(&b, [2, n, k])?);
    let mut all = device.tensor(&vec![before; m * (n + APART)], [m, n + APART])?;
    let mut products = device.zeros::<T, 2>([m, 2 * n])?;
    let options = GatedOptions {
        constant_b: m == 5,
        products: products_are_stored.then(|| products.view_mut()),
        workspace: None,
    };
    gemm_gated(&device, &of_a, &of_b, all.view_mut().slice([0..m, 0..n])?, gate, options)?;
    for (i, found) in all.to_vec()?.into_iter().enumerate() {
        let (row, column) = (i / (n + APART), i % (n + APART));
        if column >= n {
            assert_eq!(found.value(), before.value(), "{mnk:?}: row {row}, {column}");
            continue;
        }
        let sums = [0, 1].map(|matrix| {
            let (of_a, of_b) = (&a[row * k..][..k], &b[(matrix * n + column) * k..][..k]);
            let products = of_a.iter().zip(of_b).map(|(a, b)| a.value() * b.value());
            (products.clone().sum::<f64>(), products.map(f64::abs).sum::<f64>())
        });
        let [(x, size), (y, size_of_y)] = sums;
        let wanted = activated(gate, x) * y;
        // The activations have slopes of up to 1.2. Products that are stored are rounded.
        let sum_error = 2f64.powi(-18);
        let rounding = if products_are_stored { 2f64.powi(-9) } else { 0.0 };
        let error_of_x = 1.2 * (size * sum_error + x.abs() * rounding);
        let error_of_y = size_of_y * sum_error + y.abs() * rounding;
        let bound = wanted.abs() * 2f64.powi(-8)
            + error_of_x * y.abs()
            + error_of_y * x.abs()
            + error_of_x * error_of_y;
        let error = (found.value() - wanted).abs();
        assert!(error <= bound, "{mnk:?}, {gate:?}: row {row}, {column}: {found:?}, not {wanted}");
    }
    Ok(())
}

#[test]
fn gates_are_applied_to_sums_of_few_rows() -> Result<(), GemmError> {
    for gate in GATES {
        check::<bf16>([1, 136, 1088], gate, false)?;
        check::<f16>([5, 67, 64], gate, false)?;
        check::<bf16>([16, 40, 320], gate, false)?;
    }
    check::<bf16>([3, 4000, 64], Gate::Silu, false)
}

#[test]
fn gates_are_applied_to_products_of_many_rows() -> Result<(), GemmError> {
    check::<bf16>([20, 24, 128], Gate::Silu, true)?;
    check::<f16>([4, 24, 72], Gate::GeluTanh, true)
}

#[test]
fn gates_without_columns_or_rows() -> Result<(), GemmError> {
    let device = Device::open()?;
    let mut c = device.filled_bytes::<bf16, 2>([2, 8], 0xff)?;
    let (a, b) = (device.zeros::<bf16, 2>([2, 0])?, device.zeros::<bf16, 3>([2, 8, 0])?);
    let mut products = device.filled_bytes::<bf16, 2>([2, 16], 0xff)?;
    let options = GatedOptions { products: Some(products.view_mut()), ..Default::default() };
    gemm_gated(&device, &a, &b, &mut c, Gate::Silu, options)?;
    assert_eq!(c.to_vec()?, [bf16::ZERO; 16]);
    let (a, b) = (device.zeros::<bf16, 2>([0, 64])?, device.zeros::<bf16, 3>([2, 8, 64])?);
    let mut c = device.zeros::<bf16, 2>([0, 8])?;
    gemm_gated(&device, &a, &b, &mut c, Gate::Silu, GatedOptions::default())
}

#[test]
fn gates_of_other_matrices_are_refused() -> Result<(), GemmError> {
    let device = Device::open()?;
    let (a, b) = (device.zeros::<bf16, 2>([20, 64])?, device.zeros::<bf16, 3>([2, 8, 64])?);
    let (mut c, mut products) = (device.zeros::<bf16, 2>([20, 8])?, device.zeros::<bf16, 2>([20, 16])?);
    let mut refused = |b: TensorView<'_, bf16, 3>, products: Option<TensorViewMut<'_, bf16, 2>>| {
        let options = GatedOptions { products, ..Default::default() };
        gemm_gated(&device, &a, b, &mut c, Gate::Silu, options).expect_err("other matrices").to_string()
    };
    let message = refused(b.view(), None);
    assert!(message.starts_with("TMA0547") && message.contains("`products`"), "{message}");
    let message = refused(b.view(), Some(products.view_mut().slice([0..20, 0..8])?));
    assert!(message.starts_with("TMA0546") && message.contains("`products` is [20, 8]"), "{message}");
    let message = refused(b.view().slice([0..1, 0..8, 0..64])?, None);
    assert!(message.starts_with("TMA0546") && message.contains("B is [1, 8, 64]"), "{message}");
    let longer = device.zeros::<bf16, 3>([2, 9, 64])?;
    let message = refused(longer.view().slice([0..2, 0..8, 0..64])?, Some(products.view_mut()));
    assert!(message.starts_with("TMA0547") && message.contains("do not follow"), "{message}");
    Ok(())
}
