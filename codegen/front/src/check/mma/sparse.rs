//! Sparse operands: their metadata, and the operands that they are multiplied by.

use tma_model::mma::Operand;

use super::Matrix;
use crate::diag::{Sink, mistake};
use crate::ir::{MMA_ROWS, SharedOperand, Span, TileSwizzle, Type};

/// Returns the registers of metadata for 64 rows that `steps` instructions multiply. Each selector
/// is for one of the instructions.
pub const fn metadata_of_band(element: Operand, steps: u32) -> u32 {
    steps.div_ceil(element.selectors())
}

/// Checks a sparse left operand, and the right operand that it is multiplied by.
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
