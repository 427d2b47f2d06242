//! GEMMs with a gate: the first part of a gated multilayer perceptron.

use tma_runtime::Scalar;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::few_rows::GatedRows;
use super::{GemmError, GemmOptions, Product, Workspace, gemm};
use crate::model::{Gate, ModelElement, ModelError, gated_packed};

/// Options of [`gemm_gated`].
#[derive(Debug)]
pub struct GatedOptions<'a, T: Scalar> {
    /// Whether no work that is queued before and has not ended writes B: as
    /// [`GemmOptions::constant_b`].
    pub constant_b: bool,
    /// M × 2 · N elements: memory for the products before the gate. Needed unless the call is a
    /// single launch.
    pub products: Option<TensorViewMut<'a, T, 2>>,
    /// As [`GemmOptions::workspace`], for the GEMM that computes `products`.
    pub workspace: Option<&'a mut Workspace>,
}

impl<T: Scalar> Default for GatedOptions<'_, T> {
    fn default() -> Self {
        Self { constant_b: false, products: None, workspace: None }
    }
}

/// Queues `C = gate(A · B₀ᵀ) ∘ (A · B₁ᵀ)`, element by element: the first part of a gated multilayer
/// perceptron, SwiGLU or GeGLU.
///
/// A is M × K, B is 2 × N × K, the gate's matrix first, and C is M × N, with contiguous columns. Up
/// to 16 rows of A take a single launch, which reads B once, if K is a multiple of 64 and A and B
/// are not memory of other libraries with gaps between rows. Sums are then not rounded before the
/// gate. Otherwise [`gemm`](fn@gemm) computes `products`, to which [`gated_packed`] applies the
/// gate. B₁ must then follow B₀ without a gap, and memory of other libraries must be contiguous.
///
/// The single launch allocates nothing.
///
/// ```
/// use tma_kernels::gemm::{GatedOptions, gemm_gated};
/// use tma_kernels::model::Gate;
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[bf16::from_f32(0.5); 2 * 64], [2, 64])?;
/// let b = device.tensor(&[bf16::from_f32(1.0); 2 * 24 * 64], [2, 24, 64])?;
/// let mut c = device.zeros::<bf16, 2>([2, 24])?;
/// gemm_gated(&device, &a, &b, &mut c, Gate::Silu, GatedOptions::default())?;
/// assert_eq!(c.to_vec()?, [bf16::from_f32(32.0 * 32.0); 2 * 24]); // 32 / (1 + e^-32) · 32
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0546` if the matrices do not match or are too large, `TMA0547` if `products` is missing or
/// B₁ does not follow B₀, `TMA0570` if a workspace that cannot grow is too small, `TMA0576` if C's
/// columns are not contiguous, and the errors of [`launch`](tma_runtime::launch::launch).
pub fn gemm_gated<T: Product<T> + ModelElement>(
    on: &impl LaunchOn,
    a: impl MapArg<T, 2>,
    b: impl MapArg<T, 3>,
    mut c: impl MapArgMut<T, 2>,
    gate: Gate,
    options: GatedOptions<'_, T>,
) -> Result<(), GemmError> {
    let (a, b, c) = (a.view(), b.view(), c.view_mut());
    let ([m, k], [_, n, _]) = (a.shape(), b.shape());
    fits("B", &b.shape(), &[2, n, k])?;
    fits("C", &c.shape(), &[m, n])?;
    if [m, n, k].iter().any(|&extent| extent >= 1 << 30) {
        return Err(GemmError::TooLarge { extents: [m, n, k, 2] });
    }
    if m == 0 || n == 0 {
        return Ok(());
    }
    if n > 1 && c.strides()[1] != 1 {
        return Err(ModelError::Rows { tensor: "out", strides: c.strides().to_vec() }.into());
    }
    let rows = GatedRows { a, b, c, gate };
    if rows.is_supported() {
        return rows.queue(on, options.constant_b);
    }
    let GatedRows { a, b, c, gate } = rows;
    let missing = |what, instead| GemmError::Instance { types: T::NAME, what, instead };
    let Some(mut products) = options.products else {
        let what = "a gate, these extents and no memory for the products";
        return Err(missing(what, "pass `products`, M × 2 · N elements"));
    };
    fits("`products`", &products.shape(), &[m, 2 * n])?;
    let [between, row, _] = b.strides();
    let row = if n == 1 { between } else { row };
    if between != n * row {
        let what = "a gate, these extents and matrices of B that do not follow each other";
        return Err(missing(what, "copy them to one tensor"));
    }
    let gemm_options = GemmOptions {
        transpose_b: true,
        constant_b: options.constant_b,
        workspace: options.workspace,
        ..GemmOptions::default()
    };
    gemm(on, a, b.with_strides([2 * n, k], [row, 1])?, products.reborrow(), gemm_options)?;
    Ok(gated_packed(on, gate, products.as_view(), c)?)
}

fn fits(matrix: &'static str, found: &[usize], wanted: &[usize]) -> Result<(), GemmError> {
    match found == wanted {
        true => Ok(()),
        false => Err(GemmError::Shape { matrix, found: found.into(), wanted: wanted.into() }),
    }
}
