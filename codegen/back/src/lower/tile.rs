//! Addresses in shared memory: stages, and elements of swizzled tiles.

use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::check::layout;
use tma_front::ir::{Expr, LocalId, TileSwizzle, TileType, Type};

use super::types::{int, pointer};
use super::vector::{self, Vector};
use super::{Cx, Lower, bounds, expr, locals, memory};
use crate::backend::BackendError;

/// Lowers `dest = tile[at]`.
pub(super) fn get(cx: &mut Cx<'_, '_>, dest: LocalId, tile: &Expr, at: &[Expr]) -> Lower<()> {
    let ty = tile_type(&tile.ty)?;
    let vector = Vector::of(&cx.kernel.kernel().local(dest).ty)?;
    let address = element_address(cx, tile, ty, vector, at)?;
    let value = memory::load_any(cx, address, ty.element, vector)?;
    locals::store(cx, dest, value)
}

/// Lowers `tile[at] = value`.
pub(super) fn set(cx: &mut Cx<'_, '_>, tile: &Expr, at: &[Expr], value: &Expr) -> Lower<()> {
    let ty = tile_type(&tile.ty)?;
    let vector = Vector::of(&value.ty)?;
    let value = expr::value(cx, value)?;
    let address = element_address(cx, tile, ty, vector, at)?;
    memory::store_any(cx, address, value, ty.element, vector)
}

pub(super) fn tile_type(ty: &Type) -> Lower<&TileType> {
    let Type::Tile(tile) = ty.local() else {
        return Err(BackendError::Unchecked(format!("a tile of type `{}`", ty.local())));
    };
    Ok(tile)
}

/// Emits the address of `tile[at]`: row-major, with the 16-byte chunks of a row permuted by the
/// swizzle. A vector lies within one chunk.
fn element_address<'c>(
    cx: &mut Cx<'c, '_>,
    tile: &Expr,
    ty: &TileType,
    vector: Option<Vector>,
    at: &[Expr],
) -> Lower<PointerValue<'c>> {
    let base = expr::value(cx, tile).and_then(pointer)?;
    let values = coordinates(cx, tile, ty, at)?;
    if let (Some(vector), Some(&column), Some(at)) = (vector, values.last(), at.last()) {
        vector::check_multiple(cx, int(column)?, vector, "a tile", at.span)?;
    }
    let (row, column) = row_and_column(cx, ty, &values)?;
    let element_bytes = cx.u32_const(ty.element.bytes());
    let row_pitch = cx.bytes_const(ty.row_pitch())?;
    let row = cx.builder.build_int_mul(row, row_pitch, "row")?;
    let column = cx.builder.build_int_mul(column, element_bytes, "column")?;
    let offset = in_panels(cx, ty, row, column)?;
    byte_offset(cx, base, offset)
}

/// Emits the coordinates of an element, with bounds checks in a checked kernel.
fn coordinates<'c>(
    cx: &mut Cx<'c, '_>,
    tile: &Expr,
    ty: &TileType,
    at: &[Expr],
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let mut indices = vec![];
    for at in at {
        indices.push((expr::int_value(cx, at)?, at.span));
    }
    let mut values = vec![];
    for (dimension, ((index, span), &extent)) in indices.into_iter().zip(&ty.extents).enumerate() {
        let noun = match (dimension, ty.rank()) {
            (_, 1) => "elements".to_owned(),
            (0, 2) => "rows".to_owned(),
            (1, 2) => "columns".to_owned(),
            _ => format!("along dimension {dimension}"),
        };
        values.push(index.into());
        bounds::within(cx, index, bounds::Container { thing: tile, len: extent, noun: &noun }, span)?;
    }
    Ok(values)
}

/// Emits the row in the tile, with all dimensions but the innermost flattened, and the column.
fn row_and_column<'c>(
    cx: &Cx<'c, '_>,
    ty: &TileType,
    at: &[BasicValueEnum<'c>],
) -> Lower<(IntValue<'c>, IntValue<'c>)> {
    let (&column, outer) = at
        .split_last()
        .ok_or_else(|| BackendError::Unchecked("an element of a tile without coordinates".to_owned()))?;
    let mut row = cx.u32_const(0);
    for (&coordinate, &extent) in outer.iter().zip(&ty.extents) {
        row = cx.builder.build_int_mul(row, cx.u32_const(extent), "")?;
        row = cx.builder.build_int_add(row, int(coordinate)?, "")?;
    }
    Ok((row, int(column)?))
}

/// Emits the offset of byte `column` in the row that begins at offset `row` of each panel.
pub(super) fn in_panels<'c>(
    cx: &Cx<'c, '_>,
    ty: &TileType,
    row: IntValue<'c>,
    column: IntValue<'c>,
) -> Lower<IntValue<'c>> {
    if ty.panels() == 1 {
        return swizzled(cx, ty.swizzle, row, column);
    }
    let pitch = cx.bytes_const(ty.row_pitch())?;
    let panel = cx.builder.build_int_unsigned_div(column, pitch, "panel")?;
    let column = cx.builder.build_int_unsigned_rem(column, pitch, "")?;
    let start = cx.builder.build_int_mul(panel, cx.bytes_const(ty.panel_bytes())?, "")?;
    let offset = swizzled(cx, ty.swizzle, row, column)?;
    Ok(cx.builder.build_int_add(start, offset, "")?)
}

/// Emits the offset of byte `column` in the row that begins at offset `row`.
///
/// The hardware permutes 16-byte chunks by address: bits 4 to 6 ^= bits 7 to 9 with a 128-byte
/// span, bits 4 and 5 ^= bits 7 and 8 with a 64-byte span, bit 4 ^= bit 7 with a 32-byte span. A
/// tile is aligned to the period of the pattern, so offsets can be used in place of addresses. Its
/// rows are as long as the span, so the row alone determines the permutation, which stays within
/// it. Interleaved rows have any length, and the whole offset determines it. Source: PTX ISA,
/// "Swizzling Modes".
fn swizzled<'c>(
    cx: &Cx<'c, '_>,
    swizzle: TileSwizzle,
    row: IntValue<'c>,
    column: IntValue<'c>,
) -> Lower<IntValue<'c>> {
    let pattern = |of| {
        let shifted = cx.builder.build_right_shift(of, cx.u32_const(3), false, "")?;
        cx.builder.build_and(shifted, cx.u32_const(swizzle.chunk_bits()), "")
    };
    let permuted = match swizzle {
        TileSwizzle::B32 | TileSwizzle::B64 | TileSwizzle::B128 => {
            let column = cx.builder.build_xor(column, pattern(row)?, "")?;
            cx.builder.build_int_add(row, column, "")?
        }
        TileSwizzle::None | TileSwizzle::Panels16 | TileSwizzle::Interleave16 => {
            cx.builder.build_int_add(row, column, "")?
        }
        TileSwizzle::Interleave32 => {
            let offset = cx.builder.build_int_add(row, column, "")?;
            cx.builder.build_xor(offset, pattern(offset)?, "")?
        }
    };
    Ok(permuted)
}

/// Emits the address of one of `stages`, which begin at `base`.
pub(super) fn stage<'c>(
    cx: &mut Cx<'c, '_>,
    base: PointerValue<'c>,
    stages: &Expr,
    index: &Expr,
) -> Lower<PointerValue<'c>> {
    let Type::Stages(thing, len) = stages.ty.local() else {
        return Err(BackendError::Unchecked(format!("a stage of type `{}`", stages.ty)));
    };
    let index = bounds::index(cx, index, bounds::Container { thing: stages, len: *len, noun: "stages" })?;
    let stride = cx.bytes_const(layout::stride(thing))?;
    let offset = cx.builder.build_int_mul(index, stride, "")?;
    byte_offset(cx, base, offset)
}

/// Emits `base` plus this number of bytes.
pub(super) fn byte_offset<'c>(
    cx: &Cx<'c, '_>,
    base: PointerValue<'c>,
    bytes: IntValue<'c>,
) -> Lower<PointerValue<'c>> {
    // SAFETY: without `inbounds`, the address may be arbitrary.
    Ok(unsafe { cx.builder.build_gep(cx.context.i8_type(), base, &[bytes], "")? })
}
