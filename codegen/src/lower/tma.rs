//! The copy engine: tile copies, reductions, prefetches, bulk groups.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue};

use super::kernel::Param;
use super::types::{int, pointer};
use super::{Cx, Lower, cluster, descriptor, expr, nvvm, print, tile};
use crate::backend::BackendError;
use crate::ir::{ClusterAxis, Expr, ParamId, Span, TileType, TmaOp, Type};
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
    let mut coordinates = hardware_order(cx, op.coordinates())?;
    if cx.checked {
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
    let hint = op.hint();
    let hinted = hint.is_some();
    let mut place = vec![BasicValueEnum::from(address)];
    place.append(&mut coordinates);
    let (instruction, mut args) = match op {
        TmaOp::Load { tile, barrier, .. } => {
            (nvvm::tile_load(rank, names_own_memory(cx), hinted), load(cx, place, tile, barrier)?)
        }
        TmaOp::LoadMulticast { tile, barrier, mask, .. } => {
            let mut args = load(cx, place, tile, barrier)?;
            args.push(expr::value(cx, mask)?);
            (nvvm::tile_load_multicast(rank, hinted), args)
        }
        TmaOp::LoadSliced { tile, barrier, axis, .. } => {
            (nvvm::tile_load_multicast(rank, hinted), load_slice(cx, place, (tile, moved), barrier, *axis)?)
        }
        TmaOp::LoadColumn { tile, barrier, mask, .. } => {
            let mut args = load(cx, place, tile, barrier)?;
            args.append(&mut hardware_order(cx, op.offsets())?);
            match mask {
                Some(mask) => {
                    args.push(expr::value(cx, mask)?);
                    (nvvm::column_load_multicast(rank, hinted), args)
                }
                None => (nvvm::column_load(rank, names_own_memory(cx), hinted), args),
            }
        }
        TmaOp::Store { tile, .. } => (nvvm::tile_store(mode, rank, hinted), write(cx, place, tile)?),
        TmaOp::Reduce { op, tile, .. } => {
            (nvvm::tile_reduce(*op, mode, rank, hinted), write(cx, place, tile)?)
        }
        TmaOp::Prefetch { .. } => (nvvm::tile_prefetch(rank, hinted), place),
        TmaOp::PrefetchColumn { .. } => {
            place.append(&mut hardware_order(cx, op.offsets())?);
            (nvvm::column_prefetch(rank, hinted), place)
        }
        TmaOp::PrefetchDescriptor => (nvvm::PREFETCH_TENSOR_MAP, place),
    };
    if let Some(hint) = hint {
        args.push(expr::value(cx, hint)?);
    }
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}

/// The operands of a load: tile, map and place, mbarrier.
fn load<'c>(
    cx: &mut Cx<'c, '_>,
    place: Vec<BasicValueEnum<'c>>,
    tile: &Expr,
    barrier: &Expr,
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let tile = expr::value(cx, tile).and_then(pointer)?.into();
    let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
    Ok([tile].into_iter().chain(place).chain([barrier]).collect())
}

/// Those of the load of this block's slice, with the blocks that get it: the tile and the place in the tensor are those of
/// the whole tile, moved to where the slice begins.
fn load_slice<'c>(
    cx: &mut Cx<'c, '_>,
    mut place: Vec<BasicValueEnum<'c>>,
    (tile, moved): (&Expr, &TileType),
    barrier: &Expr,
    axis: ClusterAxis,
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let Type::Tile(whole) = &tile.ty else {
        return Err(BackendError::Unchecked("a sliced load into what is no tile".to_owned()));
    };
    let slice = cluster::slice(cx, moved, whole, axis)?;
    let tile = expr::value(cx, tile).and_then(pointer)?;
    let tile = tile::byte_offset(cx, tile, slice.bytes)?.into();
    // The map's address comes before the coordinates.
    if let Some(coordinate) = place.get_mut(1 + slice.dimension) {
        *coordinate = cx.builder.build_int_add(int(*coordinate)?, slice.start, "")?.into();
    }
    let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
    Ok([tile].into_iter().chain(place).chain([barrier, slice.mask.into()]).collect())
}

/// The operands of a store or reduction: map and place, tile.
fn write<'c>(
    cx: &mut Cx<'c, '_>,
    mut place: Vec<BasicValueEnum<'c>>,
    tile: &Expr,
) -> Lower<Vec<BasicValueEnum<'c>>> {
    place.push(expr::value(cx, tile).and_then(pointer)?.into());
    Ok(place)
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
    print::assert(cx, aligned, &message, span)
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
    print::assert(cx, inside, &message, span)
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

/// Coordinates or offsets as the instruction takes them: innermost first.
fn hardware_order<'c>(cx: &mut Cx<'c, '_>, numbers: &[Expr]) -> Lower<Vec<BasicValueEnum<'c>>> {
    let mut numbers = expr::values(cx, numbers)?;
    numbers.reverse();
    Ok(numbers)
}
