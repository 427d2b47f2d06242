//! The copy engine: tile copies, descriptor prefetch, bulk groups.

use inkwell::values::BasicValueEnum;

use super::kernel::Param;
use super::nvvm;
use super::types::pointer;
use super::{Cx, Lower, expr};
use crate::backend::BackendError;
use crate::ir::{Expr, ParamId, TmaOp};

/// Lowers an operation that is given the tensor map `map`.
pub(super) fn operation(cx: &mut Cx<'_, '_>, map: ParamId, op: &TmaOp) -> Lower<()> {
    let Param::TensorMap(map) = expr::param(cx, map)? else {
        return Err(BackendError::Unchecked("a copy by what is no tensor map".to_owned()));
    };
    let map = map.into();
    let (instruction, args) = match op {
        TmaOp::Load { tile, at, barrier } => {
            let tile = expr::value(cx, tile).and_then(pointer)?.into();
            let coordinates = hardware_coordinates(cx, at)?;
            let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
            let args: Vec<_> = [tile, map].into_iter().chain(coordinates).chain([barrier]).collect();
            (nvvm::tile_load(at.len(), names_own_memory(cx)), args)
        }
        TmaOp::Store { at, tile } => {
            let coordinates = hardware_coordinates(cx, at)?;
            let tile = expr::value(cx, tile).and_then(pointer)?.into();
            let args: Vec<_> = [map].into_iter().chain(coordinates).chain([tile]).collect();
            (nvvm::tile_store(at.len()), args)
        }
        TmaOp::PrefetchDescriptor => (nvvm::PREFETCH_TENSOR_MAP, vec![map]),
    };
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}

/// Whether the target's PTX has a load into the block's own memory. Where there is the choice, it is taken: for sm_120a
/// ptxas makes a call with a stack frame of a load into the cluster's.
fn names_own_memory(cx: &Cx<'_, '_>) -> bool {
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
