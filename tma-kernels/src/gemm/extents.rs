//! The extents of a GEMM, and its matrices as batches.

use super::{GemmError, GemmOptions};
use tma_runtime::Scalar;
use tma_runtime::prelude::*;

/// The extents of a GEMM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) batches: usize,
    /// Whether elements of C may share memory, because the batch only writes matrices that do not.
    pub(super) may_overlap: bool,
}

impl Extents {
    /// Returns the extents for matrices of these shapes, if they match.
    pub(super) fn of<C: Scalar, const N: usize>(
        a: [usize; N],
        b: [usize; N],
        c: [usize; N],
        options: &GemmOptions<'_, C, N>,
    ) -> Result<Self, GemmError> {
        let batches = c[..N - 2].iter().product();
        let [m, n, k] = [c[N - 2], c[N - 1], a[if options.transpose_a { N - 2 } else { N - 1 }]];
        let [depth, columns] = if options.transpose_b { [b[N - 1], b[N - 2]] } else { [b[N - 2], b[N - 1]] };
        let fits = |matrix, found: &[usize], [rows, columns]: [usize; 2]| {
            let wanted = [&c[..N - 2], &[rows, columns]].concat();
            let found = found.to_vec();
            if found == wanted { Ok(()) } else { Err(GemmError::Shape { matrix, found, wanted }) }
        };
        // If A and B match each other, C is the one that does not.
        if depth == k && a[..N - 2] == b[..N - 2] {
            let wanted =
                [&a[..N - 2], &[a[if options.transpose_a { N - 1 } else { N - 2 }], columns]].concat();
            if c[..] != wanted[..] {
                return Err(GemmError::Shape { matrix: "C", found: c.to_vec(), wanted });
            }
        }
        fits("A", &a, if options.transpose_a { [k, m] } else { [m, k] })?;
        fits("B", &b, if options.transpose_b { [n, k] } else { [k, n] })?;
        if let Some(residual) = &options.residual {
            fits("`residual`", &residual.shape(), [m, n])?;
        }
        if let Some(bias) = &options.bias
            && bias.shape() != [n]
        {
            let (found, wanted) = (bias.shape().to_vec(), vec![n]);
            return Err(GemmError::Shape { matrix: "`bias`", found, wanted });
        }
        let tiles = m.div_ceil(64).saturating_mul(n.div_ceil(64)).saturating_mul(batches);
        if [m, n, k].iter().any(|&extent| extent >= 1 << 31) || tiles >= 1 << 28 {
            return Err(GemmError::TooLarge { extents: [m, n, k, batches] });
        }
        Ok(Self { m, n, k, batches, may_overlap: false })
    }

    /// Returns matrices of zeros for A and for B, in the given numbers, for a GEMM whose K or alpha
    /// is 0: nothing is summed, but tensor maps have no empty tensors.
    pub(super) fn of_zeros<AB: Scalar, C: Scalar, const N: usize>(
        self,
        device: &Device,
        [of_a, of_b]: [usize; 2],
        options: &GemmOptions<'_, C, N>,
    ) -> Result<(Self, [DeviceTensor<AB, 3>; 2]), Error> {
        let k = 16 / size_of::<AB>();
        let zeros = |is_k_last, count, extent: usize| {
            let extent = extent.next_multiple_of(k);
            device.zeros::<AB, 3>(if is_k_last { [count, extent, k] } else { [count, k, extent] })
        };
        let a = zeros(!options.transpose_a, of_a, self.m)?;
        let b = zeros(options.transpose_b, of_b, self.n)?;
        Ok((Self { k, ..self }, [a, b]))
    }
}

/// Returns a tensor as a batch of matrices.
pub(super) fn batch<T: Scalar, const N: usize>(
    view: TensorView<'_, T, N>,
) -> Result<TensorView<'_, T, 3>, Error> {
    let (shape, strides) = batch_layout(view.shape(), view.strides());
    view.with_strides(shape, strides)
}

/// Returns a mutable tensor as a batch of matrices.
pub(super) fn batch_mut<T: Scalar, const N: usize>(
    view: TensorViewMut<'_, T, N>,
) -> Result<TensorViewMut<'_, T, 3>, Error> {
    let (shape, strides) = batch_layout(view.shape(), view.strides());
    view.with_strides(shape, strides)
}

fn batch_layout<const N: usize>(shape: [usize; N], strides: [usize; N]) -> ([usize; 3], [usize; 3]) {
    let [rows, columns, line] = [shape[N - 2], shape[N - 1], strides[N - 2]];
    match N {
        2 => ([1, rows, columns], [rows.saturating_mul(line), line, strides[N - 1]]),
        _ => ([shape[0], rows, columns], [strides[0], line, strides[N - 1]]),
    }
}
