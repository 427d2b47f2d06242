//! Boxes that the copy engine refuses with an illegal instruction, where it is certain that it
//! will.

use super::low_bits::LowBits;
use super::operations::Rules;
use crate::diag::{Code, Sink};
use crate::ir::{Expr, TileCopy, TileType};
use crate::limits::{box_start_bytes, im2col_offset};

/// More than a box spans, or a column's corners are away from the tensor's.
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
        if far(at, dimension, sink) {
            continue;
        }
        if copy.kind.writes() {
            not_before(at, dimension, variables.of(at), sink);
        }
    }
}

/// Whether a coordinate is a number that the instruction takes for one so far before the tensor
/// that no box reaches it. A few less than 2^32 are a difference that wrapped, and mean what the
/// instruction takes them for.
/// Source: PTX ISA, "cp.async.bulk.tensor", `tensorCoords`, which are of type `.s32`.
fn far(at: &Expr, dimension: usize, sink: &mut Sink) -> bool {
    let positive = i128::from(i32::MAX) + 1..i128::from(u32::MAX - REACH);
    let Some(value) = at.as_int().filter(|value| positive.contains(value)) else { return false };
    let message = format!(
        "the coordinate {value} in dimension {dimension} is 2^31 or more, and copies would take it for {}",
        value as u32 as i32
    );
    sink.error(Code::CoordinateRange, at.span, message)
        .help("start the view nearer to the element; for a coordinate before the tensor, take an `i32`");
    true
}

/// Source: PTX ISA, "Tiled mode", "Bounding Box"; [`box_start_bytes`].
fn innermost(at: &Expr, tile: &TileType, low: LowBits, sink: &mut Sink) {
    let (element, start) = (tile.element, box_start_bytes(tile.swizzle));
    let unit = start / element.bytes();
    let beside = low.bits % u64::from(unit);
    if beside == 0 {
        return;
    }
    let message = match constant(low) {
        Some(value) => {
            let bytes = i64::from(value) * i64::from(element.bytes());
            format!(
                "the innermost coordinate {value} is {bytes} bytes into a row; copies start at multiples of {start}"
            )
        }
        None => {
            let multiple = unit.min(1 << low.known.min(u32::BITS - 1));
            format!(
                "the innermost coordinate is always {beside} more than a multiple of {multiple}, but copies start at \
                 multiples of {start} bytes"
            )
        }
    };
    sink.error(Code::InnerCoordinate, at.span, message)
        .help(format!("make it a multiple of {unit}: {unit} elements of `{element}` are {start} bytes"));
}

/// Source: PTX ISA, "Restriction on Tensor Copy instructions".
fn not_before(at: &Expr, dimension: usize, low: LowBits, sink: &mut Sink) {
    if let Some(value) = constant(low).filter(|value| *value < 0) {
        let message = format!("a box to write starts at {value} in dimension {dimension}, before the tensor");
        sink.error(Code::StoreCoordinate, at.span, message)
            .help("only loads may start before the tensor; write a smaller tile from coordinate 0 on");
    }
}

/// Source: PTX ISA, "im2col mode".
fn offset_within(offset: &Expr, rank: usize, sink: &mut Sink) {
    let most = im2col_offset(rank);
    if let Some(value) = offset.as_int().filter(|value| !(0..=i128::from(most)).contains(value)) {
        let message = format!("an offset of {value} pixels; with {rank} dimensions it is 0 to {most}");
        sink.error(Code::Im2colOffset, offset.span, message)
            .help("move the bounding box by its corners, which the launch gives");
    }
}

/// The coordinate as the hardware takes it, if all of it is known.
fn constant(low: LowBits) -> Option<i32> {
    (low.known >= u32::BITS).then_some(low.bits as u32 as i32)
}
