//! Checks of indices and divisors, in checked kernels.
//!
//! Constants have been checked by `check` and cost nothing here. Indices into slices of global
//! memory are checked in every kernel (`memory`), and coordinates of copies next to the copies
//! (`tma`).

use inkwell::values::{BasicValueEnum, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use tma_front::ir::{BinaryOp, Expr, ExprKind, Scalar, Span};
use tma_front::limits::WARP_THREADS;

use super::arith::overflow;
use super::types::Class;
use super::{Cx, Lower, expr, print};
use crate::backend::BackendError;

/// An object with elements.
#[derive(Clone, Copy)]
pub(super) struct Container<'t> {
    pub(super) thing: &'t Expr,
    /// The number of elements.
    pub(super) len: u32,
    /// The elements, as messages call them.
    pub(super) noun: &'t str,
}

/// Emits an index, and the check that it is [within](within) an object.
pub(super) fn index<'c>(cx: &mut Cx<'c, '_>, index: &Expr, container: Container<'_>) -> Lower<IntValue<'c>> {
    let value = expr::int_value(cx, index)?;
    within(cx, value, container, index.span)?;
    Ok(value)
}

/// Checks that an index is less than the number of elements. A negative index fails.
pub(super) fn within<'c>(
    cx: &mut Cx<'c, '_>,
    index: IntValue<'c>,
    container: Container<'_>,
    span: Span,
) -> Lower<()> {
    let Container { thing, len, noun } = container;
    if !cx.checked || index.is_const() {
        return Ok(());
    }
    let end = index.get_type().const_int(len.into(), false);
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, index, end, "")?;
    let message = format!("index out of bounds of {}, {len} {noun}", name(cx, thing));
    print::assert(cx, inside, &message, span)
}

/// A range of rows or columns of a tile.
pub(super) struct Part<'t> {
    pub(super) tile: &'t Expr,
    pub(super) count: u32,
    /// The number of them in the tile.
    pub(super) extent: u32,
    /// Either `rows` or `columns`.
    pub(super) noun: &'static str,
}

/// Checks that the part that begins at `first` lies in its tile.
pub(super) fn part<'c>(cx: &mut Cx<'c, '_>, first: IntValue<'c>, part: &Part<'_>, span: Span) -> Lower<()> {
    if !cx.checked || first.is_const() {
        return Ok(());
    }
    let Part { tile, count, extent, noun } = part;
    let last = first.get_type().const_int(extent.saturating_sub(*count).into(), false);
    let inside = cx.builder.build_int_compare(IntPredicate::ULE, first, last, "")?;
    let message = format!("index out of bounds of {}, {count} of {extent} {noun}", name(cx, tile));
    print::assert(cx, inside, &message, span)
}

/// Checks that `column`, in elements, is the start of a 16-byte chunk.
pub(super) fn chunk<'c>(cx: &mut Cx<'c, '_>, column: IntValue<'c>, element: Scalar, span: Span) -> Lower<()> {
    let unit = 16 / element.bytes();
    if !cx.checked || column.is_const() || unit <= 1 {
        return Ok(());
    }
    let rest = cx.builder.build_and(column, cx.u32_const(unit - 1), "")?;
    let whole = cx.builder.build_int_compare(IntPredicate::EQ, rest, cx.u32_const(0), "")?;
    print::assert(cx, whole, &format!("a part of a tile does not begin at a multiple of {unit}"), span)
}

/// Checks that `id` and `threads` are valid for a named barrier. Id 0 belongs to `sync_threads`.
pub(super) fn named_barrier<'c>(
    cx: &mut Cx<'c, '_>,
    id: (IntValue<'c>, Span),
    threads: (IntValue<'c>, Span),
) -> Lower<()> {
    if !cx.checked {
        return Ok(());
    }
    let last = cx.kernel.barriers().end_of_named() - 1;
    if !id.0.is_const() {
        let from_one = cx.builder.build_int_sub(id.0, cx.u32_const(1), "")?;
        let named = cx.builder.build_int_compare(IntPredicate::ULT, from_one, cx.u32_const(last), "")?;
        print::assert(cx, named, &format!("named barriers are 1 to {last}"), id.1)?;
    }
    if !threads.0.is_const() {
        // A multiple of the warp size has zeros in its lowest bits. For 0 threads all other bits
        // are zero too.
        let bits = cx.u32_const(WARP_THREADS.trailing_zeros());
        let warps = cx.builder.build_right_shift(threads.0, bits, false, "")?;
        let in_them = cx.builder.build_left_shift(warps, bits, "")?;
        let whole = cx.builder.build_int_compare(IntPredicate::EQ, in_them, threads.0, "")?;
        let some = cx.builder.build_int_compare(IntPredicate::NE, warps, cx.u32_const(0), "")?;
        let fits = cx.builder.build_and(whole, some, "")?;
        print::assert(cx, fits, "a named barrier synchronises whole warps", threads.1)?;
    }
    Ok(())
}

/// Checks that `lane` is a valid lane index, distance or mask of lane bits.
pub(super) fn lane<'c>(cx: &mut Cx<'c, '_>, lane: IntValue<'c>, span: Span) -> Lower<()> {
    if !cx.checked || lane.is_const() {
        return Ok(());
    }
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, lane, cx.u32_const(WARP_THREADS), "")?;
    print::assert(cx, inside, &format!("a shuffle by more than the {WARP_THREADS} lanes of a warp"), span)
}

/// Checks that the bounds of a `clamp` are in order. The message is Rust's.
pub(super) fn clamp<'c>(
    cx: &mut Cx<'c, '_>,
    class: Class,
    low: BasicValueEnum<'c>,
    high: BasicValueEnum<'c>,
    span: Span,
) -> Lower<()> {
    if !cx.checked {
        return Ok(());
    }
    let in_order = match (class, low, high) {
        (Class::Int { signed }, BasicValueEnum::IntValue(low), BasicValueEnum::IntValue(high)) => {
            let at_most = if signed { IntPredicate::SLE } else { IntPredicate::ULE };
            cx.builder.build_int_compare(at_most, low, high, "")?
        }
        (Class::Float, BasicValueEnum::FloatValue(low), BasicValueEnum::FloatValue(high)) => {
            cx.builder.build_float_compare(FloatPredicate::OLE, low, high, "")?
        }
        _ => return Err(BackendError::Unchecked("the bounds of a `clamp`".to_owned())),
    };
    // Constants have been checked by `check`.
    if in_order.is_const() {
        Ok(())
    } else {
        print::assert(cx, in_order, "assertion failed: min <= max", span)
    }
}

/// Checks that the result of `a / b` or `a % b` is representable. The messages are rustc's.
pub(super) fn divisor<'c>(
    cx: &mut Cx<'c, '_>,
    op: BinaryOp,
    signed: bool,
    a: IntValue<'c>,
    b: IntValue<'c>,
    span: Span,
) -> Lower<()> {
    if !cx.checked {
        return Ok(());
    }
    let by_zero = if op == BinaryOp::Rem {
        "attempt to calculate the remainder with a divisor of zero"
    } else {
        "attempt to divide by zero"
    };
    let ty = b.get_type();
    // The front end has rejected a constant zero.
    if !b.is_const() {
        let some = cx.builder.build_int_compare(IntPredicate::NE, b, ty.const_zero(), "")?;
        print::assert(cx, some, by_zero, span)?;
    }
    if signed && (!b.is_const() || b.get_sign_extended_constant() == Some(-1)) {
        let divides = cx.builder.build_int_compare(IntPredicate::NE, b, ty.const_all_ones(), "")?;
        let has_opposite = overflow::has_opposite(cx, a)?;
        let fits = cx.builder.build_or(divides, has_opposite, "")?;
        overflow::check(cx, op, fits, span)?;
    }
    Ok(())
}

/// Checks the operand of a logarithm. The message is Rust's.
pub(super) fn positive<'c>(cx: &mut Cx<'c, '_>, signed: bool, value: IntValue<'c>, span: Span) -> Lower<()> {
    if !cx.checked {
        return Ok(());
    }
    let above = if signed { IntPredicate::SGT } else { IntPredicate::UGT };
    let positive = cx.builder.build_int_compare(above, value, value.get_type().const_zero(), "")?;
    print::assert(cx, positive, "argument of integer logarithm must be positive", span)
}

/// Returns the name of an object in the source, as far as a single name describes it.
fn name(cx: &Cx<'_, '_>, thing: &Expr) -> String {
    let kernel = cx.kernel.kernel();
    match &thing.kind {
        ExprKind::Shared(id) => format!("`{}`", kernel.shared_var(*id).name),
        ExprKind::Local(id) => format!("`{}`", kernel.local(*id).name),
        ExprKind::Stage(stages, _) => format!("a stage of {}", name(cx, stages)),
        ExprKind::Index(array, _) => format!("a part of {}", name(cx, array)),
        ExprKind::Remote(thing, _) => format!("{} of another block", name(cx, thing)),
        ExprKind::Const(_)
        | ExprKind::Param(_)
        | ExprKind::GlobalLen(_)
        | ExprKind::Special(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Cast(_)
        | ExprKind::Bits(_)
        | ExprKind::Math(..)
        | ExprKind::Integer(..)
        | ExprKind::Array(_)
        | ExprKind::Repeat(_)
        | ExprKind::CachePolicy(..)
        | ExprKind::Hinted(..)
        | ExprKind::ZeroAccumulator
        | ExprKind::Choice(_)
        | ExprKind::Compound(_)
        | ExprKind::Member(..)
        | ExprKind::Unit
        | ExprKind::Error => "an array".to_owned(),
    }
}
