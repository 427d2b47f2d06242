//! The copy engine: tile copies, reductions, prefetches, bulk groups.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};

use super::kernel::Param;
use super::types::{int, pointer};
use super::{Cx, Lower, cluster, descriptor, expr, nvvm, print, tile};
use crate::backend::BackendError;
use crate::ir::{ClusterAxis, CopyKind, Expr, MapRef, Multicast, Span, TileCopy, TileType, Type};
use crate::limits::box_start_bytes;

/// Lowers a copy by a tensor map.
pub(super) fn copy(cx: &mut Cx<'_, '_>, copy: &TileCopy, span: Span) -> Lower<()> {
    let address = map_address(cx, &copy.map)?;
    let param = cx.kernel.kernel().param(copy.map.param);
    let Some(moved) = param.ty.moved() else {
        return Err(BackendError::Unchecked("a copy by what is no tensor map".to_owned()));
    };
    let mut coordinates = hardware_order(cx, &copy.at)?;
    // Of pixels the engine takes whole ones, and cannot see what is left over.
    if cx.checked || moved.pixel_elements().is_some() {
        check_alignment(cx, &param.name, moved, &coordinates, span)?;
    }
    if cx.checked && copy.kind.writes() {
        check_sign(cx, &param.name, &coordinates, span)?;
    }
    count_pixels(cx, moved, &mut coordinates)?;
    let mode = if matches!(param.ty, Type::Im2colMap(..)) { nvvm::Mode::Columns } else { nvvm::Mode::Tile };
    let form = nvvm::TensorCopy { mode, rank: coordinates.len(), hinted: copy.hint.is_some() };
    let mut place = vec![BasicValueEnum::from(address)];
    place.append(&mut coordinates);
    let (instruction, mut args) = match &copy.kind {
        CopyKind::Load { to, barrier, multicast } => match multicast {
            None => {
                let mut args = load(cx, place, to, barrier)?;
                args.append(&mut hardware_order(cx, &copy.offsets)?);
                (nvvm::tensor_load(form, names_own_memory(cx)), args)
            }
            Some(Multicast::Mask(mask)) => {
                let mut args = load(cx, place, to, barrier)?;
                args.append(&mut hardware_order(cx, &copy.offsets)?);
                args.push(expr::value(cx, mask)?);
                (nvvm::tensor_load_multicast(form), args)
            }
            Some(Multicast::Sliced(axis)) => {
                let args = load_slice(cx, place, (to, moved), barrier, *axis)?;
                (nvvm::tensor_load_multicast(form), args)
            }
        },
        CopyKind::Store { from } => (nvvm::tensor_store(form), write(cx, place, from)?),
        CopyKind::Reduce { op, from } => (nvvm::tensor_reduce(*op, form), write(cx, place, from)?),
        CopyKind::Prefetch => {
            place.append(&mut hardware_order(cx, &copy.offsets)?);
            (nvvm::tensor_prefetch(form), place)
        }
    };
    if let Some(hint) = &copy.hint {
        args.push(expr::value(cx, hint)?);
    }
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}

/// Lowers the prefetch of a tensor map itself.
pub(super) fn prefetch_map(cx: &mut Cx<'_, '_>, map: &MapRef) -> Lower<()> {
    let address = map_address(cx, map)?;
    nvvm::emit(cx, &nvvm::PREFETCH_TENSOR_MAP, &[address.into()])?;
    Ok(())
}

/// The generic address of a tensor map.
fn map_address<'c>(cx: &mut Cx<'c, '_>, map: &MapRef) -> Lower<PointerValue<'c>> {
    match (expr::param(cx, map.param)?, &map.index) {
        (Param::TensorMap(address), None) => Ok(address),
        (Param::Global { .. }, Some(index)) => descriptor::generic(cx, map.param, index),
        (Param::TensorMap(_) | Param::Global { .. } | Param::Scalar(_), _) => {
            Err(BackendError::Unchecked("a copy by what is no tensor map".to_owned()))
        }
    }
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

/// Those of the load of this block's slice, with the blocks that get it: the tile and the place in
/// the tensor are those of the whole tile, moved to where the slice begins.
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

/// Stops the grid with a message where the copy engine would stop it with an illegal instruction:
/// at an innermost coordinate that is misaligned.
fn check_alignment<'c>(
    cx: &mut Cx<'c, '_>,
    map: &str,
    moved: &TileType,
    coordinates: &[BasicValueEnum<'c>],
    span: Span,
) -> Lower<()> {
    let Some(&inner) = coordinates.first() else { return Ok(()) };
    let start = box_start_bytes(moved.swizzle);
    let unit = start / moved.element.bytes();
    let rest = cx.builder.build_and(int(inner)?, cx.u32_const(unit - 1), "")?;
    let aligned = cx.builder.build_int_compare(IntPredicate::EQ, rest, cx.u32_const(0), "")?;
    let message =
        format!("the innermost coordinate of a copy by `{map}` is no multiple of {unit} ({start} bytes)");
    print::assert(cx, aligned, &message, span)
}

/// Likewise: at a write that starts before the tensor.
fn check_sign<'c>(
    cx: &mut Cx<'c, '_>,
    map: &str,
    coordinates: &[BasicValueEnum<'c>],
    span: Span,
) -> Lower<()> {
    let coordinates = coordinates.iter().map(|&at| int(at)).collect::<Lower<Vec<IntValue<'c>>>>()?;
    let [inner, outer @ ..] = &*coordinates else { return Ok(()) };
    // The sign of all together is negative where one is.
    let mut signs = *inner;
    for at in outer {
        signs = cx.builder.build_or(signs, *at, "")?;
    }
    let inside = cx.builder.build_int_compare(IntPredicate::SGE, signs, cx.u32_const(0), "")?;
    let message = format!("a copy into `{map}` starts before the tensor");
    print::assert(cx, inside, &message, span)
}

/// Along dimension 0 of an interleaved layout the hardware counts pixels, where the language counts
/// elements.
/// Source: PTX ISA, "Interleave layout"; seen on an H200.
fn count_pixels<'c>(cx: &Cx<'c, '_>, moved: &TileType, coordinates: &mut [BasicValueEnum<'c>]) -> Lower<()> {
    if let (Some(elements), Some(inner)) = (moved.pixel_elements(), coordinates.first_mut()) {
        let bits = cx.u32_const(elements.trailing_zeros());
        *inner = cx.builder.build_right_shift(int(*inner)?, bits, true, "")?.into();
    }
    Ok(())
}

/// Whether the target's PTX has a load into the block's own memory. Where there is the choice, it
/// is taken: for sm_120a ptxas makes a call with a stack frame of a load into the cluster's.
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
