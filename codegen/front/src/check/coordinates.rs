//! Boxes that the copy engine certainly refuses with an illegal instruction.

use super::low_bits::LowBits;
use super::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::{Expr, TileCopy, TileType};
use crate::limits::{box_start_bytes, im2col_offset};

/// A number greater than the span of a box, and than the distance of a column's corners from those
/// of the tensor.
const REACH: u32 = 1 << 16;

pub(super) fn tile_copy(rules: &Rules<'_>, copy: &TileCopy, sink: &mut Sink) {
    let Some(tile) = rules.kernel.param(copy.map.param).ty.moved() else { return };
    let variables = &rules.variables;
    for offset in &copy.offsets {
        offset_within(offset, copy.at.len(), sink);
    }
    if let Some(inner) = copy.at.last() {
        innermost(inner, tile, variables.of(inner), sink);
    }
    for (dimension, at) in copy.at.iter().enumerate() {
        let rank = copy.at.len();
        if far(at, dimension, rank, sink) {
            continue;
        }
        if copy.kind.writes() {
            not_before(at, dimension, rank, variables.of(at), sink);
        }
    }
}

/// Reports a coordinate that the instruction takes for a negative one, so far before the tensor
/// that no box reaches it. Returns whether it is one. Numbers just below 2^32 are differences that
/// wrapped, and mean the negative number that the instruction takes them for. Source: PTX ISA,
/// "cp.async.bulk.tensor", `tensorCoords`, which are of type `.s32`.
fn far(at: &Expr, dimension: usize, rank: usize, sink: &mut Sink) -> bool {
    let positive = i128::from(i32::MAX) + 1..i128::from(u32::MAX - REACH);
    let Some(value) = at.as_int().filter(|value| positive.contains(value)) else { return false };
    sink.error(mistake::Copy::Far { value, dimension, rank }, at.span);
    true
}

/// Checks the innermost coordinate. Source: PTX ISA, "Tiled mode", "Bounding Box";
/// [`box_start_bytes`].
fn innermost(at: &Expr, tile: &TileType, low: LowBits, sink: &mut Sink) {
    let (element, start) = (tile.element, box_start_bytes(tile.swizzle));
    if let Some(misalignment) = low.misalignment(start / element.bytes(), constant(low).map(i128::from)) {
        sink.error(mistake::Copy::Inner { at: misalignment, element, start }, at.span);
    }
}

/// Checks that a copy does not write before the tensor. Source: PTX ISA, "Restriction on Tensor
/// Copy instructions".
fn not_before(at: &Expr, dimension: usize, rank: usize, low: LowBits, sink: &mut Sink) {
    if let Some(value) = constant(low).filter(|value| *value < 0) {
        sink.error(mistake::Copy::BeforeTensor { value, dimension, rank }, at.span);
    }
}

/// Checks an im2col offset. Source: PTX ISA, "im2col mode".
fn offset_within(offset: &Expr, rank: usize, sink: &mut Sink) {
    let most = im2col_offset(rank);
    if let Some(value) = offset.as_int().filter(|value| !(0..=i128::from(most)).contains(value)) {
        sink.error(mistake::Copy::Im2colOffset { value, rank }, offset.span);
    }
}

/// Returns the coordinate as the hardware takes it, if all of its bits are known.
fn constant(low: LowBits) -> Option<i32> {
    (low.known >= u32::BITS).then_some(low.bits as u32 as i32)
}
