//! Vectors of elements in memory: their alignment, as far as it is certain.

use super::low_bits::LowBits;
use super::operations::Rules;
use crate::diag::Sink;
use crate::diag::mistake::{self, VectorNumber};
use crate::ir::{Expr, LocalId, ParamId, Type};

/// Returns the length of a vector that is read into `dest`, or `None` for a single element.
pub(super) fn read(rules: &Rules<'_>, dest: LocalId) -> Option<u32> {
    length(&rules.kernel.local(dest).ty)
}

/// Returns the length of a vector that is written, or `None` for a single element.
pub(super) fn length(value: &Type) -> Option<u32> {
    if let Type::Array(_, len) = value { Some(*len) } else { None }
}

/// Checks a vector in global memory.
pub(super) fn global(rules: &Rules<'_>, global: ParamId, index: &Expr, len: Option<u32>, sink: &mut Sink) {
    let Some(len) = len else { return };
    let slice = rules.kernel.param(global).name.clone();
    whole(index, rules.variables.of(index), len, VectorNumber::GlobalIndex { slice }, sink);
}

/// Checks a vector in a tile.
pub(super) fn tile(rules: &Rules<'_>, tile: &Expr, at: &[Expr], len: Option<u32>, sink: &mut Sink) {
    let (Some(len), Type::Tile(ty), Some(inner)) = (len, tile.ty.local(), at.last()) else { return };
    if !ty.inner_extent().is_multiple_of(len) {
        sink.error(mistake::Tile::VectorRows { tile: ty.clone(), len }, tile.span);
        return;
    }
    whole(inner, rules.variables.of(inner), len, VectorNumber::Coordinate, sink);
}

/// Checks a vector in a shared array.
pub(super) fn shared(rules: &Rules<'_>, array: &Expr, index: &Expr, len: Option<u32>, sink: &mut Sink) {
    let (Some(len), Type::SharedArray(_, elements)) = (len, array.ty.local()) else { return };
    if !elements.is_multiple_of(len) {
        sink.error(mistake::Tile::VectorArray { elements: *elements, len }, array.span);
        return;
    }
    whole(index, rules.variables.of(index), len, VectorNumber::Index, sink);
}

/// Checks the alignment of a vector. Source: PTX ISA, "ld" and "st": an address is a multiple of
/// the size of the access.
fn whole(index: &Expr, low: LowBits, len: u32, number: VectorNumber, sink: &mut Sink) {
    if let Some(at) = low.misalignment(len, index.as_int()) {
        sink.error(mistake::Tile::VectorStart { number, at, len }, index.span);
    }
}
