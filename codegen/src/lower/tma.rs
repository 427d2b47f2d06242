//! The copy engine: tile copies, reductions, prefetches, bulk groups.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue};

use super::kernel::Param;
use super::types::{int, pointer};
use super::{Cx, Lower, cluster, debug, descriptor, expr, nvvm, print, tile};
use crate::backend::BackendError;
use crate::ir::{Expr, ParamId, Span, TileType, TmaOp, Type};
use crate::limits::box_start_bytes;

/// Lowers an operation that is given the tensor map `map`, or one of several.
pub(super) fn operation(
    cx: &mut Cx<'_, '_>,
    (map, index): (ParamId, Option<&Expr>),
    op: &TmaOp,
    span: Span,
) -> Lower<()> {
    let ty = &cx.kernel.kernel().param(map).ty;
    let address = match (expr::param(cx, map)?, index) {
        (Param::TensorMap(address), None) => Some(address),
        (Param::Global { .. }, Some(index)) => Some(descriptor::generic(cx, map, index)?),
        _ => None,
    };
    let (Some(address), Some(moved)) = (address, ty.moved()) else {
        return Err(BackendError::Unchecked("a copy by what is no tensor map".to_owned()));
    };
    let rank = op.coordinates().len();
    let mut coordinates = hardware_coordinates(cx, op.coordinates())?;
    if cx.kernel.kernel().checked {
        check_alignment(cx, map, moved, &coordinates, span)?;
        check_sign(cx, map, op, &coordinates, span)?;
    } else if moved.pixel_elements().is_some() {
        // The engine is given pixels, and cannot see what is left over.
        check_alignment(cx, map, moved, &coordinates, span)?;
    }
    count_pixels(cx, moved, &mut coordinates)?;
    let mode = match ty {
        Type::Im2colMap(..) => nvvm::Mode::Columns,
        _ => nvvm::Mode::Tile,
    };
    let map_and_place = [address.into()].into_iter().chain(coordinates);
    let (instruction, mut args, hint): (_, Vec<BasicValueEnum<'_>>, _) = match op {
        TmaOp::LoadColumn { tile, barrier, mask, hint, .. } => {
            let tile = expr::value(cx, tile).and_then(pointer)?.into();
            let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
            let offsets = hardware_coordinates(cx, op.offsets())?;
            let args = [tile].into_iter().chain(map_and_place).chain([barrier]).chain(offsets);
            match mask {
                Some(mask) => {
                    let args = args.chain([expr::value(cx, mask)?]).collect();
                    (nvvm::column_load_multicast(rank, hint.is_some()), args, hint.as_ref())
                }
                None => {
                    let instruction = nvvm::column_load(rank, names_own_memory(cx), hint.is_some());
                    (instruction, args.collect(), hint.as_ref())
                }
            }
        }
        TmaOp::Load { tile, barrier, hint, .. } => {
            let tile = expr::value(cx, tile).and_then(pointer)?.into();
            let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
            let args = [tile].into_iter().chain(map_and_place).chain([barrier]).collect();
            (nvvm::tile_load(rank, names_own_memory(cx), hint.is_some()), args, hint.as_ref())
        }
        TmaOp::LoadMulticast { tile, barrier, mask, hint, .. } => {
            let tile = expr::value(cx, tile).and_then(pointer)?.into();
            let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
            let mask = expr::value(cx, mask)?;
            let args = [tile].into_iter().chain(map_and_place).chain([barrier, mask]).collect();
            (nvvm::tile_load_multicast(rank, hint.is_some()), args, hint.as_ref())
        }
        TmaOp::LoadSliced { tile, barrier, axis, hint, .. } => {
            let slice = cluster::slice(cx, moved, *axis)?;
            let tile = expr::value(cx, tile).and_then(pointer)?;
            let tile = tile::byte_offset(cx, tile, slice.bytes)?.into();
            let mut map_and_place: Vec<_> = map_and_place.collect();
            if let Some(outermost) = map_and_place.last_mut() {
                *outermost = cx.builder.build_int_add(int(*outermost)?, slice.rows, "")?.into();
            }
            let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
            let args = [tile].into_iter().chain(map_and_place).chain([barrier, slice.mask.into()]);
            (nvvm::tile_load_multicast(rank, hint.is_some()), args.collect(), hint.as_ref())
        }
        TmaOp::Store { tile, hint, .. } => {
            let tile = expr::value(cx, tile).and_then(pointer)?.into();
            (
                nvvm::tile_store(mode, rank, hint.is_some()),
                map_and_place.chain([tile]).collect(),
                hint.as_ref(),
            )
        }
        TmaOp::Reduce { op, tile, hint, .. } => {
            let tile = expr::value(cx, tile).and_then(pointer)?.into();
            let instruction = nvvm::tile_reduce(*op, mode, rank, hint.is_some());
            (instruction, map_and_place.chain([tile]).collect(), hint.as_ref())
        }
        TmaOp::Prefetch { hint, .. } => {
            (nvvm::tile_prefetch(rank, hint.is_some()), map_and_place.collect(), hint.as_ref())
        }
        TmaOp::PrefetchColumn { hint, .. } => {
            let offsets = hardware_coordinates(cx, op.offsets())?;
            (
                nvvm::column_prefetch(rank, hint.is_some()),
                map_and_place.chain(offsets).collect(),
                hint.as_ref(),
            )
        }
        TmaOp::PrefetchDescriptor => (nvvm::PREFETCH_TENSOR_MAP, map_and_place.collect(), None),
    };
    if let Some(hint) = hint {
        args.push(expr::value(cx, hint)?);
    }
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}

/// Stops the grid with a message where the copy engine would stop it with an illegal instruction: at an innermost
/// coordinate that is misaligned.
fn check_alignment<'c>(
    cx: &mut Cx<'c, '_>,
    map: ParamId,
    moved: &TileType,
    coordinates: &[BasicValueEnum<'c>],
    span: Span,
) -> Lower<()> {
    let Some(&inner) = coordinates.first() else { return Ok(()) };
    let start = box_start_bytes(moved.swizzle);
    let unit = start / moved.element.bytes();
    let rest = cx.builder.build_and(int(inner)?, cx.u32_const(unit - 1), "")?;
    let aligned = cx.builder.build_int_compare(IntPredicate::EQ, rest, cx.u32_const(0), "")?;
    let name = &cx.kernel.kernel().param(map).name;
    let message =
        format!("the innermost coordinate of a copy by `{name}` is no multiple of {unit} ({start} bytes)");
    print::assert(cx, aligned, &message, debug::line_of(span))
}

/// Likewise: at a write that starts before the tensor.
fn check_sign<'c>(
    cx: &mut Cx<'c, '_>,
    map: ParamId,
    op: &TmaOp,
    coordinates: &[BasicValueEnum<'c>],
    span: Span,
) -> Lower<()> {
    let coordinates = coordinates.iter().map(|&at| int(at)).collect::<Lower<Vec<IntValue<'c>>>>()?;
    let [inner, outer @ ..] = &*coordinates else { return Ok(()) };
    if !op.writes() {
        return Ok(());
    }
    // The sign of all together is negative where one is.
    let mut signs = *inner;
    for at in outer {
        signs = cx.builder.build_or(signs, *at, "")?;
    }
    let inside = cx.builder.build_int_compare(IntPredicate::SGE, signs, cx.u32_const(0), "")?;
    let name = &cx.kernel.kernel().param(map).name;
    let message = format!("a copy into `{name}` starts before the tensor");
    print::assert(cx, inside, &message, debug::line_of(span))
}

/// Along dimension 0 of an interleaved layout the hardware counts pixels, where the language counts elements.
/// Source: PTX ISA, "Interleave layout"; seen on an H200.
fn count_pixels<'c>(cx: &Cx<'c, '_>, moved: &TileType, coordinates: &mut [BasicValueEnum<'c>]) -> Lower<()> {
    if let (Some(elements), Some(inner)) = (moved.pixel_elements(), coordinates.first_mut()) {
        let bits = cx.u32_const(elements.trailing_zeros());
        *inner = cx.builder.build_right_shift(int(*inner)?, bits, true, "")?.into();
    }
    Ok(())
}

/// Whether the target's PTX has a load into the block's own memory. Where there is the choice, it is taken: for sm_120a
/// ptxas makes a call with a stack frame of a load into the cluster's.
pub(super) fn names_own_memory(cx: &Cx<'_, '_>) -> bool {
    cx.target.ptx_version() >= 86
}

/// Closes this thread's bulk group.
pub(super) fn commit_group(cx: &mut Cx<'_, '_>) -> Lower<()> {
    nvvm::emit(cx, &nvvm::BULK_COMMIT_GROUP, &[])?;
    Ok(())
}

/// Waits for this thread's bulk groups but the last `pending`.
pub(super) fn wait_group(cx: &mut Cx<'_, '_>, pending: u32, read_only: bool) -> Lower<()> {
    let instruction = if read_only { &nvvm::BULK_WAIT_GROUP_READ } else { &nvvm::BULK_WAIT_GROUP };
    let pending = cx.u32_const(pending).into();
    nvvm::emit(cx, instruction, &[pending])?;
    Ok(())
}

/// The coordinates as the instruction takes them: innermost first.
fn hardware_coordinates<'c>(cx: &mut Cx<'c, '_>, at: &[Expr]) -> Lower<Vec<BasicValueEnum<'c>>> {
    let mut coordinates = expr::values(cx, at)?;
    coordinates.reverse();
    Ok(coordinates)
}
