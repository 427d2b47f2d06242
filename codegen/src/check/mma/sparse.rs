//! Sparse operands: their metadata, and what they are multiplied by.

use tma_model::mma::Operand;

use super::Matrix;
use crate::diag::{Sink, mistake};
use crate::ir::{MMA_ROWS, SharedOperand, Span, TileSwizzle, Type};

/// Registers of metadata for 64 rows that are multiplied by so many instructions: each selector is
/// for one of them.
pub(crate) const fn metadata_of_band(element: Operand, steps: u32) -> u32 {
    steps.div_ceil(element.selectors())
}

/// A sparse left operand, and what is multiplied by it.
pub(super) fn operands(metadata: &Type, left: &Matrix, right: &SharedOperand, span: Span, sink: &mut Sink) {
    let steps = left.depth * left.element.bits() / 256;
    let wanted = left.rows / MMA_ROWS * metadata_of_band(left.element, steps);
    if let Type::Array(_, found) = metadata
        && *found != wanted
    {
        let (element, rows, depth) = (left.element, left.rows, 2 * left.depth);
        sink.error(mistake::Mma::Metadata { element, found: *found, wanted, rows, depth }, span);
    }
    // An instruction reads 64 bytes of a row of the right operand.
    if !right.ty.transposed && right.ty.tile.swizzle == TileSwizzle::B32 {
        sink.error(mistake::Mma::SparseSpan(right.ty.clone()), span);
    }
}
