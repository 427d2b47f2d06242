//! GEMMs.

use std::error::Error;

use tma_kernels::gemm::{
    Activation, GemmOptions, GroupedOptions, Indices, Matrices, MatricesMut, Product, Scales, gemm,
    gemm_array, gemm_grouped, gemm_picked, gemm_scaled,
};
use tma_runtime::Scalar;
use tma_runtime::prelude::*;

use super::super::{Table, number, special};

/// An element type of a test.
pub(crate) trait Element: Scalar {
    fn of(x: f32) -> Self;
    fn value(self) -> f32;
}

macro_rules! elements {
    ($($ty:ty: $of:expr, $value:expr;)+) => { $(
        impl Element for $ty {
            fn of(x: f32) -> Self {
                $of(x)
            }

            fn value(self) -> f32 {
                $value(self)
            }
        }
    )+ };
}

elements! {
    bf16: bf16::from_f32, bf16::to_f32;
    f16: f16::from_f32, f16::to_f32;
    tf32: tf32::from_f32, tf32::to_f32;
    e4m3: e4m3::from_f32, |x: e4m3| x.to_f32();
    e5m2: e5m2::from_f32, |x: e5m2| x.to_f32();
    f32: |x| x, |x| x;
}

/// Rows and columns of C, and K: more than one tile of 64 × 64.
const M: usize = 72;
const N: usize = 80;
const K: usize = 144;

/// Returns a matrix with `columns` columns. Its first row is `first` followed by zeros; all other
/// elements are ones.
fn matrix<T: Element>(first: f32, rows: usize, columns: usize) -> Vec<T> {
    let element = |i: usize| T::of(if i == 0 { first } else { f32::from(i >= columns) });
    (0..rows * columns).map(element).collect()
}

/// Returns the first element of C, which is `a · b` plus zeros. All rows and columns but the first
/// must be finite.
fn first<C: Element>(c: &[C], n: usize) -> f32 {
    let rest = c.iter().enumerate().filter(|(i, _)| i / n > 0 && i % n > 0);
    assert!(rest.clone().all(|(_, x)| x.value().is_finite()), "what follows is not finite");
    c[0].value()
}

/// Computes `a · b` plus products of zeros, with options. `c` is the first element of C before the
/// launch; the others are ones.
fn product<AB: Element + Product<C>, C: Element>(
    device: &Device,
    [a, b, c]: [f32; 3],
    options: GemmOptions<'_, C, 2>,
) -> Result<Vec<C>, Box<dyn Error>> {
    let of_a = device.tensor(&matrix::<AB>(a, M, K), [M, K])?;
    let of_b = device.tensor(&matrix::<AB>(b, N, K), [N, K])?;
    let mut of_c = vec![C::of(1.0); M * N];
    of_c[0] = C::of(c);
    let mut of_c = device.tensor(&of_c, [M, N])?;
    gemm(device, &of_a, &of_b, &mut of_c, GemmOptions { transpose_b: true, ..options })?;
    Ok(of_c.to_vec()?)
}

/// Returns the first element of [`product`].
fn one<AB: Element + Product<C>, C: Element>(
    device: &Device,
    given: [f32; 3],
    options: GemmOptions<'_, C, 2>,
) -> Result<f32, Box<dyn Error>> {
    Ok(product::<AB, C>(device, given, options)?[0].value())
}

fn options<C: Scalar>(alpha: f32, beta: f32, activation: Activation) -> GemmOptions<'static, C, 2> {
    GemmOptions { alpha, beta, activation, ..GemmOptions::default() }
}

/// Adds every special value of a type as an element of A. C is `f32`, so that nothing is rounded.
fn elements<AB: Element + Product<f32>>(
    device: &Device,
    table: &mut Table,
    (name, all): (&str, &[f32]),
) -> Result<(), Box<dyn Error>> {
    for &x in all {
        let x = AB::of(x).value();
        for b in [2.0, 0.0] {
            let found = first(&product::<AB, f32>(device, [x, b, 7.0], GemmOptions::default())?, N);
            let wanted = x * b + 0.0; // sums begin at +0
            table.line("gemm", format!("a `{name}` {} · {}", number(x), number(b)), wanted, found);
        }
    }
    Ok(())
}

pub(crate) fn lines(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    elements::<bf16>(device, table, ("bf16", &special(bf16::MAX.to_f32(), 9.2e-41)))?;
    elements::<f16>(device, table, ("f16", &special(65504.0, 5.97e-8)))?;
    elements::<tf32>(device, table, ("tf32", &special(3.401_162_1e38, 1.175_494_4e-38)))?;
    elements::<e4m3>(device, table, ("e4m3", &[f32::NAN, -0.0, 448.0, 0.001_953_125]))?;
    elements::<e5m2>(device, table, ("e5m2", &[f32::NAN, -0.0, 57344.0, 1.525_878_9e-5]))?;
    beyond(device, table)?;
    factors(device, table)?;
    activations(device, table)?;
    terms(device, table)?;
    batches(device, table)?;
    grouped(device, table)?;
    scaled(device, table)
}

/// Adds results beyond the greatest number of C.
fn beyond(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let found = one::<bf16, bf16>(device, [3.0e38, 2.0, 7.0], GemmOptions::default())?;
    table.line("gemm", "3e38 · 2 into `bf16`", f32::INFINITY, found);
    let found = one::<f16, f16>(device, [6.0e4, -2.0, 7.0], GemmOptions::default())?;
    table.line("gemm", "6e4 · -2 into `f16`", f32::NEG_INFINITY, found);
    Ok(())
}

fn factors(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let nan = f32::NAN;
    for (alpha, beta, [a, c], wanted) in [
        (0.0, 0.0, [nan, nan], 0.0),
        (0.0, 2.0, [f32::INFINITY, 3.0], 6.0),
        (-0.0, 1.0, [nan, 3.0], 3.0),
        (1.0, 0.0, [3.0, nan], 3.0),
        (1.0, -0.0, [3.0, f32::INFINITY], 3.0),
        (1.0, 1.0, [3.0, nan], nan),
        (1.0, 1.0, [f32::INFINITY, f32::NEG_INFINITY], nan),
        (nan, 0.0, [3.0, nan], nan),
        (f32::INFINITY, 0.0, [0.0, nan], nan),
        (f32::INFINITY, 0.0, [3.0, nan], f32::INFINITY),
        (-1.0, 0.0, [0.0, nan], -0.0),
        (1.0, f32::INFINITY, [3.0, 0.0], nan),
        (2f32.powi(126), 0.0, [2f32.powi(100), nan], f32::INFINITY),
        (2f32.powi(-126), 2f32.powi(-126), [2f32.powi(126); 2], 2.0),
    ] {
        let found = one::<bf16, f32>(device, [a, 1.0, c], options(alpha, beta, Activation::None))?;
        let given = format!(
            "alpha = {}, beta = {}, A · B = {}, C = {}",
            number(alpha),
            number(beta),
            number(a),
            number(c)
        );
        table.line("gemm", given, wanted, found);
    }
    Ok(())
}

fn activations(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let (inf, max) = (f32::INFINITY, bf16::MAX.to_f32());
    let huge = bf16::from_f32(1e20).to_f32();
    for (activation, name, cases) in [
        (
            Activation::Relu,
            "relu",
            [(f32::NAN, f32::NAN), (inf, inf), (-inf, 0.0), (max, max), (-max, 0.0), (-0.0, -0.0)],
        ),
        (
            Activation::Gelu,
            "gelu",
            [(f32::NAN, f32::NAN), (inf, inf), (-inf, f32::NAN), (max, max), (-max, -0.0), (-0.0, -0.0)],
        ),
        (
            Activation::Silu,
            "silu",
            [(f32::NAN, f32::NAN), (inf, inf), (-inf, f32::NAN), (max, max), (-max, -0.0), (-0.0, -0.0)],
        ),
    ] {
        for (x, wanted) in cases.into_iter().chain([(huge, huge)]) {
            // Sums begin at +0. To get -0, negate a sum of zeros.
            let (a, alpha) = if x == 0.0 { (0.0, -1.0) } else { (x, 1.0) };
            let found = one::<bf16, f32>(device, [a, 1.0, 7.0], options(alpha, 0.0, activation))?;
            table.line("gemm", format!("{name}({})", number(x)), wanted, found);
        }
    }
    Ok(())
}

/// Adds the special values of residual and bias.
fn terms(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for (x, wanted) in [(f32::NAN, f32::NAN), (f32::INFINITY, f32::INFINITY), (-0.0, 0.0)] {
        let mut residual = vec![0.0f32; M * N];
        residual[0] = x;
        let residual = device.tensor(&residual, [M, N])?;
        let options_of = GemmOptions { residual: Some(residual.view()), ..GemmOptions::default() };
        let found = one::<bf16, f32>(device, [0.0, 0.0, 7.0], options_of)?;
        table.line("gemm", format!("A · B = 0, residual {}", number(x)), wanted, found);

        let mut bias = vec![0.0f32; N];
        bias[0] = x;
        let bias = device.tensor(&bias, [N])?;
        let options_of = GemmOptions { bias: Some(bias.view()), ..GemmOptions::default() };
        let found = one::<bf16, f32>(device, [0.0, 0.0, 7.0], options_of)?;
        table.line("gemm", format!("A · B = 0, bias {}", number(x)), wanted, found);
    }
    Ok(())
}

/// Adds batches by indices and arrays: the same kernel, with the same rules.
fn batches(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for (a, alpha, wanted) in
        [(f32::NAN, 1.0, f32::NAN), (f32::INFINITY, 1.0, f32::INFINITY), (f32::NAN, 0.0, 0.0)]
    {
        let of_a = device.tensor(&matrix::<bf16>(a, M, K), [1, M, K])?;
        let of_b = device.tensor(&matrix::<bf16>(1.0, N, K), [1, N, K])?;
        let mut of_c = device.filled_bytes::<f32, 3>([1, M, N], 0xff)?;
        let options = || GemmOptions { transpose_b: true, alpha, ..GemmOptions::default() };
        gemm_picked(device, &of_a, &of_b, &mut of_c, Indices::default(), options())?;
        let given = format!("alpha = {}, A · B = {}", number(alpha), number(a));
        table.line("gemm_picked", given.clone(), wanted, first(&of_c.to_vec()?, N));

        let of_a = device.tensor(&matrix::<bf16>(a, M, K), [M, K])?;
        let of_b = device.tensor(&matrix::<bf16>(1.0, N, K), [N, K])?;
        let mut of_c = device.filled_bytes::<f32, 2>([M, N], 0xff)?;
        let (all_a, all_b) = (Matrices::new(device, &[of_a.view()])?, Matrices::new(device, &[of_b.view()])?);
        let mut all_c = MatricesMut::new(device, vec![of_c.view_mut()])?;
        gemm_array(device, &all_a, &all_b, &mut all_c, options())?;
        drop(all_c);
        table.line("gemm_array", given, wanted, first(&of_c.to_vec()?, N));
    }
    Ok(())
}

/// Adds groups: a group's NaN stays within its rows.
fn grouped(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for (x, b, wanted) in [
        (f32::NAN, 1.0, f32::NAN),
        (f32::INFINITY, 1.0, f32::INFINITY),
        (f32::INFINITY, 0.0, f32::NAN),
        (f32::NEG_INFINITY, 2.0, f32::NEG_INFINITY),
        (-0.0, 1.0, 0.0),
        (bf16::MAX.to_f32(), 1.0, bf16::MAX.to_f32()),
    ] {
        let of_a = device.tensor(&matrix::<bf16>(x, M, K), [M, K])?;
        let of_b = [matrix::<bf16>(b, N, K), matrix::<bf16>(f32::NAN, N, K)].concat();
        let of_b = device.tensor(&of_b, [2, N, K])?;
        let ends = device.tensor(&[M as u32, M as u32], [2])?; // the second group has no rows
        let mut of_c = device.filled_bytes::<f32, 2>([M, N], 0xff)?;
        let options = GroupedOptions { transpose_b: true, ..GroupedOptions::default() };
        gemm_grouped(device, &of_a, &of_b, &ends, &mut of_c, options)?;
        let given = format!("{} · {}", number(x), number(b));
        table.line("gemm_grouped", given, wanted, first(&of_c.to_vec()?, N));
    }
    Ok(())
}

fn scaled(device: &Device, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let least = 2f32.powi(-18); // the least product of two elements
    for ([a, b], [of_a, of_b], wanted) in [
        ([nan, 1.0], [1.0, 1.0], nan),
        ([0.0, 1.0], [1e25, 1e20], 0.0),
        ([0.0, 1.0], [3.4e38, 3.4e38], 0.0),
        ([1.0, 1.0], [1e25, 1e20], inf),
        ([-1.0, 1.0], [1e25, 1e20], -inf),
        (
            [2f32.powi(-9), 2f32.powi(-9)],
            [2f32.powi(70), 2f32.powi(70)],
            least * 2f32.powi(70) * 2f32.powi(70),
        ),
        ([2f32.powi(-9), 2f32.powi(-9)], [2f32.powi(100), 2f32.powi(100)], inf),
        ([2.0, 1.0], [2f32.powi(100), 2f32.powi(-100)], 2.0),
        ([2.0, 1.0], [2f32.powi(-100), 2f32.powi(100)], 2.0),
        ([2.0, 1.0], [1e-30, 1e-30], 0.0),
        ([2.0, 1.0], [0.0, 3.0], 0.0),
        ([2.0, 1.0], [inf, 3.0], inf),
        ([0.0, 1.0], [inf, 3.0], nan),
        ([2.0, 1.0], [inf, 0.0], nan),
        ([2.0, 1.0], [nan, 3.0], nan),
        ([448.0, 448.0], [1.0, 1.0], 200_704.0),
    ] {
        let (k, steps) = (K, K.div_ceil(128));
        let rows = device.tensor(&matrix::<e4m3>(a, M, k), [M, k])?;
        let columns = device.tensor(&matrix::<e4m3>(b, N, k), [N, k])?;
        // The first row's scale. B has one scale for all columns, and the other rows of A have a
        // scale of 0.
        let mut scales_a = vec![0.0f32; M * steps];
        scales_a[0] = of_a;
        let scales_a = device.tensor(&scales_a, [M, steps])?;
        let mut scales_b = vec![0.0f32; steps];
        scales_b[0] = of_b;
        let scales_b = device.tensor(&scales_b, [1, steps])?;
        let mut of_c = device.filled_bytes::<f32, 2>([M, N], 0xff)?;
        let scales = Scales { a: scales_a.view(), b: scales_b.view() };
        gemm_scaled(device, &rows, &columns, Some(scales), &mut of_c)?;
        let given = format!("A · B = {}, scales {} and {}", number(a * b), number(of_a), number(of_b));
        table.line("gemm_scaled", given, wanted, of_c.to_vec()?[0]);
    }
    Ok(())
}
