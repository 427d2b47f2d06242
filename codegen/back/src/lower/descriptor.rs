//! Modification of tensor maps by a kernel.

use inkwell::IntPredicate;
use inkwell::values::PointerValue;
use tma_front::ir::{Expr, MapEdit, ParamId, Type};
use tma_front::limits::MAP_BYTES;

use super::kernel::Param;
use super::types::{GENERIC, pointer};
use super::{Cx, Lower, expr, memory, nvvm, print, tile};
use crate::backend::BackendError;

/// The size of a map in 64-bit words.
const MAP_WORDS: u32 = MAP_BYTES / 8;

/// Lowers an operation on the map in shared memory.
pub(super) fn edit(cx: &mut Cx<'_, '_>, map: &Expr, edit: &MapEdit) -> Lower<()> {
    let Type::SharedMap(tile) = &map.ty else {
        return Err(BackendError::Unchecked(format!("a map to be changed of type `{}`", map.ty)));
    };
    let rank = tile.rank();
    let map = expr::value(cx, map).and_then(pointer)?;
    let (instruction, args) = match edit {
        MapEdit::CopyFrom { map: from } => return copy(cx, map, *from),
        MapEdit::Address { global, index } => {
            let (address, _) = memory::global_address(cx, &(*global).into(), index)?;
            let address = cx.builder.build_ptr_to_int(address, cx.context.i64_type(), "")?;
            (nvvm::REPLACE_ADDRESS, [map.into(), address.into()])
        }
        MapEdit::Extent { dimension, extent } => {
            let extent = expr::value(cx, extent)?;
            (nvvm::replace_extent(rank - 1 - *dimension as usize), [map.into(), extent])
        }
        MapEdit::Stride { dimension, bytes } => {
            let bytes = expr::value(cx, bytes)?;
            (nvvm::replace_stride(rank - 2 - *dimension as usize), [map.into(), bytes])
        }
        MapEdit::Publish { maps, index } => {
            let to = published(cx, *maps, index)?;
            (nvvm::PUBLISH_MAP, [to.into(), map.into()])
        }
    };
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}

/// Copies a map from a parameter, word by word.
fn copy<'c>(cx: &mut Cx<'c, '_>, to: PointerValue<'c>, from: ParamId) -> Lower<()> {
    let Param::TensorMap(from) = expr::param(cx, from)? else {
        return Err(BackendError::Unchecked("a copy of what is no tensor map".to_owned()));
    };
    let word = cx.context.i64_type();
    for i in 0..MAP_WORDS {
        let at = cx.u32_const(i * 8);
        let source = tile::byte_offset(cx, from, at)?;
        let value = cx.builder.build_load(word, source, "")?;
        let location = tile::byte_offset(cx, to, at)?;
        cx.builder.build_store(location, value)?;
    }
    Ok(())
}

/// Lowers `maps.acquire(index)`.
pub(super) fn acquire(cx: &mut Cx<'_, '_>, maps: ParamId, index: &Expr) -> Lower<()> {
    let map = generic(cx, maps, index)?;
    nvvm::emit(cx, &nvvm::ACQUIRE_MAP, &[map.into()])?;
    Ok(())
}

/// Emits the generic address of `maps[index]`.
pub(super) fn generic<'c>(cx: &mut Cx<'c, '_>, maps: ParamId, index: &Expr) -> Lower<PointerValue<'c>> {
    let address = published(cx, maps, index)?;
    Ok(cx.builder.build_address_space_cast(address, cx.pointer_type(GENERIC), "")?)
}

/// Emits the address of `maps[index]`, after a bounds check.
fn published<'c>(cx: &mut Cx<'c, '_>, maps: ParamId, index: &Expr) -> Lower<PointerValue<'c>> {
    let param = cx.kernel.kernel().param(maps);
    let Param::Global { address, len } = expr::param(cx, maps)? else {
        return Err(BackendError::Unchecked(format!("one of the maps `{}`, which are none", param.name)));
    };
    let span = index.span;
    let index = expr::widened(cx, index)?;
    let words = cx.context.i64_type().const_int(u64::from(MAP_WORDS), false);
    let count = cx.builder.build_int_unsigned_div(len, words, "")?;
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, index, count, "")?;
    print::assert(cx, inside, &format!("index out of bounds of `{}`", param.name), span)?;
    let bytes = cx.context.i64_type().const_int(u64::from(MAP_BYTES), false);
    let offset = cx.builder.build_int_mul(index, bytes, "")?;
    tile::byte_offset(cx, address, offset)
}
