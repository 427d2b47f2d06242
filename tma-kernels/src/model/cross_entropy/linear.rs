//! Cross-entropy of a linear layer's results, which are never in memory as a whole.

use tma_runtime::Scalar;
use tma_runtime::launch::{LaunchOn, MapArgMut};
use tma_runtime::prelude::*;

use super::{CrossEntropyOptions, Tensors};
use crate::gemm::{GemmError, GemmOptions, Product, Workspace, gemm};
use crate::model::rows::fits;
use crate::model::{ModelElement, ModelError};

/// The operands of [`linear_cross_entropy`].
#[derive(Clone, Copy, Debug)]
pub struct LinearOperands<'a, T> {
    /// The rows of hidden states: tokens × depth.
    pub x: TensorView<'a, T, 2>,
    /// The matrix of the layer: columns of logits × depth.
    pub weight: TensorView<'a, T, 2>,
    /// The label of each row.
    pub labels: TensorView<'a, u32, 1>,
}

/// The gradients that [`linear_cross_entropy`] writes.
#[derive(Debug)]
pub struct LinearGradients<'a, T, G = T> {
    /// The gradient of the hidden states, which is written.
    pub x: TensorViewMut<'a, T, 2>,
    /// The gradient of the matrix, to which is added. The sum is rounded to `G` after each piece.
    pub weight: TensorViewMut<'a, G, 2>,
}

/// Memory of [`linear_cross_entropy`], which may be used again by later calls of the same stream.
#[derive(Debug)]
pub struct LinearMemory<'a, T> {
    /// Memory for the logits of some rows: as many rows as are computed at a time, each with at
    /// least as many columns as there are logits, and a multiple of 16 bytes.
    pub logits: TensorViewMut<'a, T, 2>,
    /// Memory for GEMMs whose sums are split.
    pub workspace: &'a mut Workspace,
}

/// Queues the cross-entropy of the logits `x · weightᵀ` with their labels, and the gradients of `x`
/// and of the matrix.
///
/// Rows are computed in pieces: each piece of `x` is multiplied by the matrix, its logits are
/// replaced by their gradients, and these are multiplied with the matrix and with the piece. So the
/// logits of all rows are never in memory, and a piece of some thousand rows keeps the tensor cores
/// as busy as all of them would.
///
/// Logits, and their gradients, are rounded to `T`. Losses and options are those of
/// [`cross_entropy`](super::cross_entropy); set a [`count`](CrossEntropyOptions::count) for the
/// gradient of the mean. Without `gradients`, only losses are computed. Gradients of the matrix are
/// added in a fixed order, and may be `f32`; the depth must then be a multiple of 8. A call
/// allocates nothing if the workspace is large enough, and does not wait.
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, or memory without rows; the errors of
/// [`cross_entropy`](super::cross_entropy) and of [`gemm`](fn@gemm).
pub fn linear_cross_entropy<T: ModelElement + Product<T> + Product<G>, G: Scalar>(
    on: &impl LaunchOn,
    operands: LinearOperands<'_, T>,
    mut losses: impl MapArgMut<f32, 1>,
    gradients: Option<LinearGradients<'_, T, G>>,
    memory: LinearMemory<'_, T>,
    mut options: CrossEntropyOptions<'_>,
) -> Result<(), GemmError> {
    let LinearOperands { x, weight, labels } = operands;
    let LinearMemory { mut logits, workspace } = memory;
    let mut losses = losses.view_mut();
    let ([tokens, depth], [columns, _]) = (x.shape(), weight.shape());
    fits("weight", &weight.shape(), &[columns, depth])?;
    fits("labels", &labels.shape(), &[tokens])?;
    fits("losses", &losses.shape(), &[tokens])?;
    super::check(&options)?; // before the first launch, which changes the logits
    let mut log_sums = options.log_sums.take();
    if let Some(log_sums) = &log_sums {
        fits("log_sums", &log_sums.shape(), &[tokens])?;
    }
    if let Some(gradients) = &gradients {
        fits("gradients.x", &gradients.x.shape(), &[tokens, depth])?;
        fits("gradients.weight", &gradients.weight.shape(), &[columns, depth])?;
    }
    let [rows, width] = logits.shape();
    if tokens > 0 && rows == 0 || width < columns {
        let wanted = vec![rows.max(1), columns];
        return Err(ModelError::Shape { tensor: "memory.logits", found: vec![rows, width], wanted }.into());
    }
    let mut gradients = gradients;
    let mut start = 0;
    while start < tokens {
        let end = tokens.min(start + rows);
        let range = start..end;
        let piece = x.slice([range.clone(), 0..depth])?;
        let mut of_piece = logits.reborrow().slice([0..end - start, 0..columns])?;
        let workspace_of_logits = Some(&mut *workspace);
        let products =
            GemmOptions { transpose_b: true, workspace: workspace_of_logits, ..GemmOptions::default() };
        gemm(on, piece, weight, of_piece.reborrow(), products)?;
        let tensors = match gradients {
            Some(_) => Tensors { logits: None, gradients: Some(of_piece.reborrow()) },
            None => Tensors { logits: Some(of_piece.as_view()), gradients: None },
        };
        let of_rows = CrossEntropyOptions {
            log_sums: match &mut log_sums {
                Some(log_sums) => Some(log_sums.reborrow().slice([range.clone()])?),
                None => None,
            },
            ..constants(&options)
        };
        let of_losses = losses.reborrow().slice([range.clone()])?;
        super::queue(on, tensors, labels.slice([range.clone()])?, of_losses, of_rows)?;
        if let Some(LinearGradients { x, weight: of_weight }) = &mut gradients {
            let of_x = x.reborrow().slice([range, 0..depth])?;
            let to_x = GemmOptions { workspace: Some(&mut *workspace), ..GemmOptions::default() };
            gemm(on, of_piece.as_view(), weight, of_x, to_x)?;
            let to_weight = GemmOptions {
                transpose_a: true,
                beta: 1.0,
                workspace: Some(&mut *workspace),
                ..GemmOptions::default()
            };
            gemm(on, of_piece.as_view(), piece, of_weight.reborrow(), to_weight)?;
        }
        start = end;
    }
    Ok(())
}

/// Returns the options that all pieces share.
fn constants<'a>(options: &CrossEntropyOptions<'a>) -> CrossEntropyOptions<'a> {
    let &CrossEntropyOptions { label_smoothing, z_loss, ignored, count, gradient_factor, .. } = options;
    CrossEntropyOptions { label_smoothing, z_loss, ignored, log_sums: None, count, gradient_factor }
}
