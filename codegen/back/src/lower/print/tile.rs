//! `print_tile`: prints a line that describes the tile, and a line per row.
//!
//! Each row is one call of `vprintf`, which prints its text atomically, or several calls if the row
//! has more values than one call takes. Every number is padded to the maximum width of its type, so
//! columns are aligned for any contents.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::ir::{Expr, ExprKind, Scalar, TileType};

use super::{call, promoted};
use crate::lower::types::pointer;
use crate::lower::{Cx, Lower, expr, memory, tile};

/// The maximum number of arguments per call. Source: CUDA C++ Programming Guide, "Formatted
/// Output", limitations.
const ARGUMENTS: usize = 32;

/// Lowers `print_tile`.
pub(in crate::lower) fn print_tile(cx: &mut Cx<'_, '_>, tile: &Expr) -> Lower<()> {
    let ty = tile::tile_type(&tile.ty)?;
    let address = expr::value(cx, tile).and_then(pointer)?;
    title(cx, tile, ty)?;
    let (outer, rows) = match ty.extents[..] {
        [ref outer @ .., rows, _] => (outer, rows),
        _ => (&[][..], 1),
    };
    let slices = outer.iter().product();
    repeat(cx, slices, &mut |cx, slice| {
        heading(cx, slice, outer)?;
        let first = cx.builder.build_int_mul(slice, cx.u32_const(rows), "")?;
        repeat(cx, rows, &mut |cx, row| {
            let row = cx.builder.build_int_add(first, row, "row")?;
            line(cx, address, ty, row)
        })
    })
}

/// Prints the title: `tile: 8 x 16 of f16, Swizzle32`.
fn title(cx: &mut Cx<'_, '_>, tile: &Expr, ty: &TileType) -> Lower<()> {
    let mut indices = vec![];
    let name = name(cx, tile, &mut indices)?;
    let extents: Vec<_> = ty.extents.iter().map(u32::to_string).collect();
    let title = format!("{name}: {} of {}, {}\n", extents.join(" x "), ty.element, ty.swizzle.name());
    call(cx, &title, &indices)
}

/// Returns the name of a tile in the source. The indices of stages become arguments.
fn name<'c>(cx: &mut Cx<'c, '_>, tile: &Expr, indices: &mut Vec<BasicValueEnum<'c>>) -> Lower<String> {
    if let ExprKind::Stage(stages, index) = &tile.kind {
        let stages = name(cx, stages, indices)?;
        indices.push(expr::value(cx, index)?);
        return Ok(stages + "[%u]");
    }
    let kernel = cx.kernel.kernel();
    Ok(if let ExprKind::Shared(id) = tile.kind {
        kernel.shared_var(id).name.clone()
    } else if let ExprKind::Local(id) = tile.kind {
        kernel.local(id).name.clone()
    } else {
        "tile".to_owned()
    })
}

/// Prints the index of a slice of the two innermost dimensions, if there are others: `[1, 0]:`.
fn heading<'c>(cx: &mut Cx<'c, '_>, slice: IntValue<'c>, outer: &[u32]) -> Lower<()> {
    if outer.is_empty() {
        return Ok(());
    }
    let (mut rest, mut at) = (slice, vec![]);
    for &extent in outer.iter().rev() {
        let extent = cx.u32_const(extent);
        at.insert(0, cx.builder.build_int_unsigned_rem(rest, extent, "")?.into());
        rest = cx.builder.build_int_unsigned_div(rest, extent, "")?;
    }
    call(cx, &format!("[{}]:\n", vec!["%u"; outer.len()].join(", ")), &at)
}

/// Prints the values of a row. All dimensions but the innermost are flattened.
fn line<'c>(cx: &mut Cx<'c, '_>, address: PointerValue<'c>, ty: &TileType, row: IntValue<'c>) -> Lower<()> {
    let row = cx.builder.build_int_mul(row, cx.bytes_const(ty.row_pitch())?, "")?;
    let columns: Vec<u32> = (0..ty.inner_extent()).collect();
    let last = columns.chunks(ARGUMENTS).len() - 1;
    for (part, columns) in columns.chunks(ARGUMENTS).enumerate() {
        let (mut format, mut values) = (String::new(), vec![]);
        for column in columns {
            let column = cx.u32_const(column * ty.element.bytes());
            let offset = tile::in_panels(cx, ty, row, column)?;
            let element = tile::byte_offset(cx, address, offset)?;
            let value = memory::load(cx, element, ty.element)?;
            let (value, conversion) = promoted(cx, value, ty.element, false)?;
            format += &format!(" %{}{conversion}", width(ty.element));
            values.push(value);
        }
        format += if part == last { "\n" } else { "" };
        call(cx, &format, &values)?;
    }
    Ok(())
}

/// Returns the maximum width in characters. For integers it is that of the least or the greatest,
/// for floats that of a sign, six digits and an exponent, as printed by `%g`.
const fn width(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::U8 => 3,
        Scalar::I8 => 4,
        Scalar::Bool | Scalar::U16 => 5,
        Scalar::I16 => 6,
        Scalar::U32 => 10,
        Scalar::I32 => 11,
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2 => 12,
        Scalar::F64 => 13,
        Scalar::I64 | Scalar::U64 | Scalar::Usize => 20,
    }
}

/// The body of a loop.
type EmitIteration<'t, 'c, 'k> = &'t mut dyn FnMut(&mut Cx<'c, 'k>, IntValue<'c>) -> Lower<()>;

/// Emits a loop over `0..count`.
fn repeat<'c, 'k>(cx: &mut Cx<'c, 'k>, count: u32, emit: EmitIteration<'_, 'c, 'k>) -> Lower<()> {
    let (top, end) = (cx.new_block("print"), cx.new_block("printed"));
    let counter = cx.allocas.build_alloca(cx.context.i32_type(), "counter")?;
    cx.builder.build_store(counter, cx.u32_const(0))?;
    cx.branch_to(top)?;
    cx.builder.position_at_end(top);
    let number = cx.builder.build_load(cx.context.i32_type(), counter, "")?.into_int_value();
    emit(cx, number)?;
    let next = cx.builder.build_int_add(number, cx.u32_const(1), "")?;
    cx.builder.build_store(counter, next)?;
    let more = cx.builder.build_int_compare(IntPredicate::ULT, next, cx.u32_const(count), "")?;
    cx.builder.build_conditional_branch(more, top, end)?;
    cx.builder.position_at_end(end);
    Ok(())
}
