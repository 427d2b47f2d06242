//! Tensor copies, reductions and prefetches, and bulk groups.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::ir::{CopyKind, Expr, MapRef, Multicast, Span, TileCopy, TileType, Type};
use tma_front::limits::box_start_bytes;

use super::kernel::Param;
use super::ptxas::own_memory;
use super::types::{int, pointer};
use super::{Cx, Lower, cluster, descriptor, expr, nvvm, peers, print, tile};
use crate::backend::BackendError;

/// Lowers a copy that uses a tensor map.
pub(super) fn copy(cx: &mut Cx<'_, '_>, copy: &TileCopy, span: Span) -> Lower<()> {
    let address = map_address(cx, &copy.map)?;
    let param = cx.kernel.kernel().param(copy.map.param);
    let Some(moved) = param.ty.moved() else {
        return Err(BackendError::Unchecked("a copy by what is no tensor map".to_owned()));
    };
    let mut coordinates = hardware_order(cx, &copy.at)?;
    // The copy engine addresses whole pixels, and cannot detect a remainder.
    if cx.checked || moved.pixel_elements().is_some() {
        check_alignment(cx, &param.name, moved, &coordinates, span)?;
    }
    if cx.checked && copy.kind.writes() {
        check_sign(cx, &param.name, &coordinates, span)?;
    }
    count_pixels(cx, moved, &mut coordinates)?;
    let mode = if matches!(param.ty, Type::Im2colMap(..)) { nvvm::Mode::Columns } else { nvvm::Mode::Tile };
    let form = nvvm::TensorCopy { mode, rank: coordinates.len(), hinted: copy.hint.is_some() };
    let panels = Panels::of(moved, &copy.kind)?;
    let slice = own_slice(cx, moved, &copy.kind)?;
    for panel in 0..panels.count {
        let mut location = vec![BasicValueEnum::from(address)];
        location.extend(panels.coordinates(cx, panel, &coordinates)?);
        let place = PanelLocation { location, offset: panels.offset(cx, panel) };
        panel_copy(cx, copy, form, slice.as_ref(), place)?;
    }
    Ok(())
}

/// The panels of a tile. Each is a copy of its own.
struct Panels {
    count: u32,
    /// The number of elements per row of a panel.
    width: u32,
    /// The distance between panels in shared memory, in bytes.
    bytes: u32,
}

impl Panels {
    /// Returns the panels of the tile that a map copies. A slice has a part of each panel of the
    /// whole tile.
    fn of(moved: &TileType, kind: &CopyKind<Expr>) -> Lower<Self> {
        let whole = match kind {
            CopyKind::Load {
                to: Expr { ty: Type::Tile(whole), .. },
                multicast: Some(Multicast::Sliced(_)),
                ..
            } if whole.sliced_dimension() + 1 < whole.rank() => whole,
            CopyKind::Load { .. } | CopyKind::Store { .. } | CopyKind::Reduce { .. } | CopyKind::Prefetch => {
                moved
            }
        };
        let fits = |number: u64| {
            u32::try_from(number).map_err(|_| BackendError::Unchecked(format!("a panel of {number} bytes")))
        };
        Ok(Self {
            count: fits(moved.panels())?,
            width: moved.panel().inner_extent(),
            bytes: fits(whole.panel_bytes())?,
        })
    }

    /// Emits the coordinates of a panel in the tensor, innermost first like `coordinates`.
    fn coordinates<'c>(
        &self,
        cx: &Cx<'c, '_>,
        panel: u32,
        coordinates: &[BasicValueEnum<'c>],
    ) -> Lower<Vec<BasicValueEnum<'c>>> {
        let mut coordinates = coordinates.to_vec();
        if let Some(inner) = coordinates.first_mut().filter(|_| panel > 0) {
            let moved = cx.builder.build_int_add(int(*inner)?, cx.u32_const(panel * self.width), "")?;
            *inner = moved.into();
        }
        Ok(coordinates)
    }

    /// Emits the offset of a panel in the tile, in bytes.
    fn offset<'c>(&self, cx: &Cx<'c, '_>, panel: u32) -> IntValue<'c> {
        cx.u32_const(panel * self.bytes)
    }
}

/// Emits this block's slice, the same in each panel, if the copy is a sliced load. With one block
/// along the axis there is nothing to divide, and the load is an ordinary one.
fn own_slice<'c>(
    cx: &Cx<'c, '_>,
    moved: &TileType,
    kind: &CopyKind<Expr>,
) -> Lower<Option<cluster::Slice<'c>>> {
    let CopyKind::Load { to, multicast: Some(Multicast::Sliced(axis)), .. } = kind else { return Ok(None) };
    let Type::Tile(whole) = &to.ty else {
        return Err(BackendError::Unchecked("a sliced load into what is no tile".to_owned()));
    };
    cluster::slice(cx, moved, whole, *axis)
}

/// The two ends of the copy of a panel.
struct PanelLocation<'c> {
    /// The map's address and the coordinates.
    location: Vec<BasicValueEnum<'c>>,
    /// The offset of the panel in the tile, in bytes.
    offset: IntValue<'c>,
}

/// Emits the copy of one panel.
fn panel_copy<'c>(
    cx: &mut Cx<'c, '_>,
    copy: &TileCopy,
    form: nvvm::TensorCopy,
    slice: Option<&cluster::Slice<'c>>,
    panel: PanelLocation<'c>,
) -> Lower<()> {
    let PanelLocation { mut location, offset } = panel;
    let (instruction, mut args) = match &copy.kind {
        CopyKind::Load { to, barrier, multicast } => {
            let tile = part(cx, to, offset)?;
            match (multicast, slice) {
                (None | Some(Multicast::Sliced(_)), None) => {
                    let mut args = load(cx, location, tile, barrier)?;
                    args.append(&mut hardware_order(cx, &copy.offsets)?);
                    (nvvm::tensor_load(form, own_memory::is_named(cx)), args)
                }
                (Some(Multicast::Mask(mask)), _) => {
                    let mut args = load(cx, location, tile, barrier)?;
                    args.append(&mut hardware_order(cx, &copy.offsets)?);
                    args.push(expr::value(cx, mask)?);
                    (nvvm::tensor_load_multicast(form), args)
                }
                (None | Some(Multicast::Sliced(_)), Some(slice)) => {
                    let args = load_slice(cx, location, tile, barrier, slice)?;
                    (nvvm::tensor_load_multicast(form), args)
                }
            }
        }
        CopyKind::Store { from } => {
            location.push(part(cx, from, offset)?.into());
            (nvvm::tensor_store(form), location)
        }
        CopyKind::Reduce { op, from } => {
            location.push(part(cx, from, offset)?.into());
            (nvvm::tensor_reduce(*op, form), location)
        }
        CopyKind::Prefetch => {
            location.append(&mut hardware_order(cx, &copy.offsets)?);
            (nvvm::tensor_prefetch(form), location)
        }
    };
    if let Some(hint) = &copy.hint {
        args.push(expr::value(cx, hint)?);
    }
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}

/// Emits the address at this offset in bytes in a tile.
fn part<'c>(cx: &mut Cx<'c, '_>, tile: &Expr, offset: IntValue<'c>) -> Lower<PointerValue<'c>> {
    let tile = expr::value(cx, tile).and_then(pointer)?;
    if offset.get_zero_extended_constant() == Some(0) {
        Ok(tile)
    } else {
        tile::byte_offset(cx, tile, offset)
    }
}

/// Lowers the prefetch of a tensor map itself.
pub(super) fn prefetch_map(cx: &mut Cx<'_, '_>, map: &MapRef) -> Lower<()> {
    let address = map_address(cx, map)?;
    nvvm::emit(cx, &nvvm::PREFETCH_TENSOR_MAP, &[address.into()])?;
    Ok(())
}

/// Emits the generic address of a tensor map.
fn map_address<'c>(cx: &mut Cx<'c, '_>, map: &MapRef) -> Lower<PointerValue<'c>> {
    match (expr::param(cx, map.param)?, &map.index) {
        (Param::TensorMap(address), None) => Ok(address),
        (Param::Global { .. }, Some(index)) => descriptor::generic(cx, map.param, index),
        (Param::PeerMaps(maps), Some(rank)) => peers::map(cx, maps, rank),
        (
            Param::TensorMap(_)
            | Param::Global { .. }
            | Param::PeerMaps(_)
            | Param::PeerGlobals { .. }
            | Param::Scalar(_),
            _,
        ) => Err(BackendError::Unchecked("a copy by what is no tensor map".to_owned())),
    }
}

/// Emits the operands of a load: the tile, `location` (map and coordinates), and the mbarrier.
fn load<'c>(
    cx: &mut Cx<'c, '_>,
    location: Vec<BasicValueEnum<'c>>,
    tile: PointerValue<'c>,
    barrier: &Expr,
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
    Ok([tile.into()].into_iter().chain(location).chain([barrier]).collect())
}

/// Emits the operands of the load of this block's slice, including the mask of the receiving
/// blocks. `tile` and `location` are those of the whole tile, and are moved to the start of the
/// slice.
fn load_slice<'c>(
    cx: &mut Cx<'c, '_>,
    mut location: Vec<BasicValueEnum<'c>>,
    tile: PointerValue<'c>,
    barrier: &Expr,
    slice: &cluster::Slice<'c>,
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let tile = tile::byte_offset(cx, tile, slice.bytes)?;
    // The map's address precedes the coordinates.
    if let Some(coordinate) = location.get_mut(1 + slice.dimension) {
        *coordinate = cx.builder.build_int_add(int(*coordinate)?, slice.start, "")?.into();
    }
    let mut args = load(cx, location, tile, barrier)?;
    args.push(slice.mask.into());
    Ok(args)
}

/// Checks that the innermost coordinate is aligned. The message replaces the illegal instruction
/// error that the copy engine would raise.
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

/// Checks that a write does not start before the tensor, for the same reason.
fn check_sign<'c>(
    cx: &mut Cx<'c, '_>,
    map: &str,
    coordinates: &[BasicValueEnum<'c>],
    span: Span,
) -> Lower<()> {
    let coordinates = coordinates.iter().map(|&at| int(at)).collect::<Lower<Vec<IntValue<'c>>>>()?;
    let [inner, outer @ ..] = &*coordinates else { return Ok(()) };
    // The sign bit of the disjunction is set if that of any coordinate is.
    let mut signs = *inner;
    for at in outer {
        signs = cx.builder.build_or(signs, *at, "")?;
    }
    let inside = cx.builder.build_int_compare(IntPredicate::SGE, signs, cx.u32_const(0), "")?;
    let message = format!("a copy into `{map}` starts before the tensor");
    print::assert(cx, inside, &message, span)
}

/// Converts elements, which the language counts along dimension 0 of an interleaved layout, to
/// pixels, which the hardware counts. Source: PTX ISA, "Interleave layout"; observed on an H200.
fn count_pixels<'c>(cx: &Cx<'c, '_>, moved: &TileType, coordinates: &mut [BasicValueEnum<'c>]) -> Lower<()> {
    if let (Some(elements), Some(inner)) = (moved.pixel_elements(), coordinates.first_mut()) {
        let bits = cx.u32_const(elements.trailing_zeros());
        *inner = cx.builder.build_right_shift(int(*inner)?, bits, true, "")?.into();
    }
    Ok(())
}

/// Closes this thread's current bulk group.
pub(super) fn commit_group(cx: &mut Cx<'_, '_>) -> Lower<()> {
    nvvm::emit(cx, &nvvm::BULK_COMMIT_GROUP, &[])?;
    Ok(())
}

/// Waits for all of this thread's bulk groups but the last `pending`.
pub(super) fn wait_group(cx: &mut Cx<'_, '_>, pending: u32, read_only: bool) -> Lower<()> {
    let instruction = if read_only { &nvvm::BULK_WAIT_GROUP_READ } else { &nvvm::BULK_WAIT_GROUP };
    let pending = cx.u32_const(pending).into();
    nvvm::emit(cx, instruction, &[pending])?;
    Ok(())
}

/// Emits coordinates or offsets in the order of the instruction, innermost first.
fn hardware_order<'c>(cx: &mut Cx<'c, '_>, numbers: &[Expr]) -> Lower<Vec<BasicValueEnum<'c>>> {
    let mut numbers = expr::values(cx, numbers)?;
    numbers.reverse();
    Ok(numbers)
}
