//! Bulk copies between global and shared memory, without a tensor map.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::ir::{BulkCopy, CopyKind, Expr, Multicast, ParamId, RemoteCopy, Scalar, Span};
use tma_front::limits::BULK_BYTES;

use super::ptxas::own_memory;
use super::types::pointer;
use super::{Cx, Lower, expr, memory, nvvm, print};
use crate::backend::BackendError;

/// The maximum number of bytes per prefetch. As a prefetch is a hint, a larger one is truncated.
const MOST_PREFETCHED: u64 = (u32::MAX - u32::MAX % BULK_BYTES) as u64;

/// The range of a copy, computed once for all operations.
struct Range<'c> {
    /// The first element, 64 bits: in global memory, or for a remote copy in both arrays.
    index: IntValue<'c>,
    /// The number of elements, 64 bits.
    count: IntValue<'c>,
    element: Scalar,
    /// The span for run-time messages.
    span: Span,
}

/// Emits the first element and the number of elements of a copy.
fn range<'c>(
    cx: &mut Cx<'c, '_>,
    index: &Expr,
    count: &Expr,
    element: Scalar,
    span: Span,
) -> Lower<Range<'c>> {
    let (index, count) = (expr::widened(cx, index)?, expr::widened(cx, count)?);
    Ok(Range { index, count, element, span })
}

/// Lowers a copy between global and shared memory.
pub(super) fn copy(cx: &mut Cx<'_, '_>, copy: &BulkCopy, span: Span) -> Lower<()> {
    let BulkCopy { global, index, count, hint, kind } = copy;
    let (address, len, element) = memory::slice_of(cx, global)?;
    let range = range(cx, index, count, element, span)?;
    within_global(cx, &range, global.param, len)?;
    let from_or_to = memory::element_address(cx, address, element, range.index)?;
    let hinted = hint.is_some();
    let (instruction, mut args): (_, Vec<BasicValueEnum<'_>>) = match kind {
        CopyKind::Load { to, barrier, multicast } => {
            let to = shared_address(cx, &to.array, &to.at, &range)?;
            let barrier = expr::value(cx, barrier).and_then(pointer)?;
            let size = size(cx, &range)?;
            let mut args = vec![to.into(), from_or_to.into(), size.into(), barrier.into()];
            match multicast {
                None => (nvvm::bulk_load(own_memory::is_named(cx), hinted), args),
                Some(Multicast::Mask(mask)) => {
                    args.push(expr::value(cx, mask)?);
                    (nvvm::bulk_load_multicast(hinted), args)
                }
                Some(Multicast::Sliced(_)) => {
                    return Err(BackendError::Unchecked("a bulk copy in slices".to_owned()));
                }
            }
        }
        CopyKind::Store { from } => {
            let from = shared_address(cx, &from.array, &from.at, &range)?;
            (nvvm::bulk_store(hinted), vec![from_or_to.into(), from.into(), size(cx, &range)?.into()])
        }
        CopyKind::Reduce { op, from } => {
            let from = shared_address(cx, &from.array, &from.at, &range)?;
            let instruction = nvvm::bulk_reduce(*op, element, hinted).ok_or_else(|| {
                BackendError::Unchecked(format!("`bulk_reduce_{}` of `{element}`", op.name()))
            })?;
            (instruction, vec![from_or_to.into(), from.into(), size(cx, &range)?.into()])
        }
        CopyKind::Prefetch => {
            let size = prefetch_size(cx, &range)?;
            (nvvm::bulk_prefetch(hinted), vec![from_or_to.into(), size.into()])
        }
    };
    if let Some(hint) = hint {
        args.push(expr::value(cx, hint)?);
    }
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}

/// Lowers a copy or a reduction into the memory of another block.
pub(super) fn remote(cx: &mut Cx<'_, '_>, copy: &RemoteCopy, span: Span) -> Lower<()> {
    let RemoteCopy { op, from, to, at, count, barrier } = copy;
    let Some((element, _)) = from.ty.sequence() else {
        return Err(BackendError::Unchecked(format!("a bulk copy of `{}`", from.ty)));
    };
    let range = range(cx, at, count, element, span)?;
    if cx.checked {
        whole_units(cx, &range, range.count, "the count of a bulk copy")?;
    }
    let from = shared_address(cx, from, at, &range)?;
    let to = shared_address(cx, to, at, &range)?;
    let barrier = expr::value(cx, barrier).and_then(pointer)?;
    let instruction = match op {
        None => nvvm::BULK_COPY_REMOTE,
        Some(op) => nvvm::bulk_reduce_remote(*op, element).ok_or_else(|| {
            BackendError::Unchecked(format!("`bulk_reduce_{}_to` of `{element}`", op.name()))
        })?,
    };
    let size = size(cx, &range)?;
    nvvm::emit(cx, &instruction, &[to.into(), from.into(), size.into(), barrier.into()])?;
    Ok(())
}

/// Checks that the whole range lies in the slice, without a sum that might wrap.
fn within_global<'c>(
    cx: &mut Cx<'c, '_>,
    range: &Range<'c>,
    global: ParamId,
    len: IntValue<'c>,
) -> Lower<()> {
    let name = &cx.kernel.kernel().param(global).name;
    let fits = cx.builder.build_int_compare(IntPredicate::ULE, range.count, len, "")?;
    let last = cx.builder.build_int_sub(len, range.count, "")?;
    let early = cx.builder.build_int_compare(IntPredicate::ULE, range.index, last, "")?;
    let inside = cx.builder.build_and(fits, early, "")?;
    print::assert(cx, inside, &format!("bulk copy out of bounds of `{name}`"), range.span)?;
    if cx.checked {
        let what = format!("the index of a bulk copy of `{name}`");
        whole_units(cx, range, range.index, &what)?;
        whole_units(cx, range, range.count, &format!("the count of a bulk copy of `{name}`"))?;
    }
    Ok(())
}

/// Emits the address of `array[at]`, and checks that as many elements as `range` has follow.
fn shared_address<'c>(
    cx: &mut Cx<'c, '_>,
    array: &Expr,
    at: &Expr,
    range: &Range<'c>,
) -> Lower<PointerValue<'c>> {
    let len = match array.ty.local().sequence() {
        Some((element, len)) if element == range.element => len,
        _ => return Err(BackendError::Unchecked(format!("a bulk copy of `{}`", array.ty))),
    };
    let base = expr::value(cx, array).and_then(pointer)?;
    // Both are 32-bit values: their 64-bit sum does not wrap.
    let at = expr::widened(cx, at)?;
    let end = cx.builder.build_int_add(at, range.count, "")?;
    let len = cx.context.i64_type().const_int(len, false);
    let inside = cx.builder.build_int_compare(IntPredicate::ULE, end, len, "")?;
    print::assert(cx, inside, "bulk copy out of bounds of shared memory", range.span)?;
    if cx.checked {
        whole_units(cx, range, at, "the place of a bulk copy in shared memory")?;
    }
    let offset = cx.builder.build_int_truncate(at, cx.context.i32_type(), "")?;
    memory::element_address(cx, base, range.element, offset)
}

/// Checks that this number of elements is a multiple of 16 bytes.
fn whole_units<'c>(cx: &mut Cx<'c, '_>, range: &Range<'c>, number: IntValue<'c>, what: &str) -> Lower<()> {
    let unit = BULK_BYTES / range.element.bytes();
    let mask = cx.context.i64_type().const_int(u64::from(unit) - 1, false);
    let rest = cx.builder.build_and(number, mask, "")?;
    let whole = cx.builder.build_int_compare(IntPredicate::EQ, rest, mask.get_type().const_zero(), "")?;
    print::assert(cx, whole, &format!("{what} is not a multiple of {unit}, 16 bytes"), range.span)
}

/// Emits the size of the range in bytes, in 32 bits. Shared memory is smaller.
fn size<'c>(cx: &Cx<'c, '_>, range: &Range<'c>) -> Lower<IntValue<'c>> {
    let bytes = wide_size(cx, range)?;
    Ok(cx.builder.build_int_truncate(bytes, cx.context.i32_type(), "")?)
}

/// Emits the size of the range in bytes, limited to that of one prefetch.
fn prefetch_size<'c>(cx: &Cx<'c, '_>, range: &Range<'c>) -> Lower<IntValue<'c>> {
    let bytes = wide_size(cx, range)?;
    let most = bytes.get_type().const_int(MOST_PREFETCHED, false);
    let fits = cx.builder.build_int_compare(IntPredicate::ULE, bytes, most, "")?;
    let bytes = cx.builder.build_select(fits, bytes, most, "").map(BasicValueEnum::into_int_value)?;
    Ok(cx.builder.build_int_truncate(bytes, cx.context.i32_type(), "")?)
}

fn wide_size<'c>(cx: &Cx<'c, '_>, range: &Range<'c>) -> Lower<IntValue<'c>> {
    let bytes = cx.context.i64_type().const_int(u64::from(range.element.bytes()), false);
    Ok(cx.builder.build_int_mul(range.count, bytes, "")?)
}
