//! Checks that the arithmetic of an index has not wrapped, in checked kernels.
//!
//! Integers wrap, and a wrapped index may still be within bounds: a 32-bit `row * stride` is 0
//! where the product is 2^32. An index is therefore computed a second time from its leaves in 64
//! bits, and the results must be equal. `i - 1 + n` may leave the range of its type and return to
//! it. The result is then the same number, and passes.
//!
//! The computation follows sums, differences, products, left shifts by a constant, conversions that
//! keep all bits, and variables that are assigned once. Other expressions are leaves: `(hash * 31)
//! % len` is meant to wrap. 64-bit arithmetic is not followed either. A result that fits its type
//! for all operands is not computed twice.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::ir::{Axis, BinaryOp, Block, Expr, ExprKind, For, LocalId, Scalar, Special, StmtKind, visit};
use tma_front::limits::{WARP_THREADS, WARPGROUP_THREADS};
use tma_front::quick::QuickMap;

use super::types::{int, scalar_of};
use super::{Cx, Lower, arith, cast, debug, expr, locals};

/// An integer, and the exact result of its arithmetic.
#[derive(Clone, Copy)]
pub(super) struct Number<'c> {
    /// The integer, of its own type.
    pub(super) value: IntValue<'c>,
    /// The exact result in 64 bits; `None` if it always equals `value`.
    exact: Option<IntValue<'c>>,
    /// The least and the greatest possible value.
    range: (i128, i128),
}

/// The facts about a variable that is assigned once.
#[derive(Clone, Copy)]
struct Known<'c> {
    /// The alloca of the exact result of its arithmetic; `None` if the variable itself holds it.
    exact: Option<PointerValue<'c>>,
    range: (i128, i128),
}

/// The variables of a kernel.
#[derive(Default)]
pub(super) struct Variables<'c> {
    /// The number of assignments to each variable. Other statements write only temporaries.
    assignments: QuickMap<LocalId, u32>,
    known: QuickMap<LocalId, Known<'c>>,
}

impl Variables<'_> {
    /// Collects the variables of a kernel with this body.
    pub(super) fn of(body: &Block) -> Self {
        let mut assignments = QuickMap::default();
        visit::for_each_stmt(body, &mut |stmt| {
            if let StmtKind::Assign { local, .. } = &stmt.kind {
                *assignments.entry(*local).or_default() += 1;
            } else if let StmtKind::For(inner) = &stmt.kind {
                *assignments.entry(inner.variable).or_default() += 1;
            }
        });
        Self { assignments, known: QuickMap::default() }
    }

    /// Records the range of a loop's counter.
    pub(super) fn enter(&mut self, inner: &For) {
        if let (Some(start), Some(end)) = (inner.start.as_int(), inner.end.as_int())
            && self.assignments.get(&inner.variable) == Some(&1)
        {
            self.known.insert(inner.variable, Known { exact: None, range: (start, start.max(end)) });
        }
    }
}

/// Emits an index, and whether its arithmetic has not wrapped; `None` if it cannot wrap.
pub(super) fn index<'c>(cx: &mut Cx<'c, '_>, expr: &Expr) -> Lower<(IntValue<'c>, Option<IntValue<'c>>)> {
    let scalar = scalar_of(&expr.ty)?;
    if !cx.checked || !scalar.is_integer() {
        return Ok((expr::int_value(cx, expr)?, None));
    }
    let number = number(cx, expr)?;
    let Some(exact) = number.exact else { return Ok((number.value, None)) };
    let value = wide(cx, number.value, scalar)?;
    let not_wrapped = cx.builder.build_int_compare(IntPredicate::EQ, exact, value, "")?;
    Ok((number.value, Some(not_wrapped)))
}

/// Like [`index`], with the value extended to 64 bits.
pub(super) fn widened_index<'c>(
    cx: &mut Cx<'c, '_>,
    expr: &Expr,
) -> Lower<(IntValue<'c>, Option<IntValue<'c>>)> {
    let (value, not_wrapped) = index(cx, expr)?;
    Ok((wide(cx, value, scalar_of(&expr.ty)?)?, not_wrapped))
}

/// Emits `inside`, and that the index has not wrapped.
pub(super) fn and<'c>(
    cx: &Cx<'c, '_>,
    inside: IntValue<'c>,
    not_wrapped: Option<IntValue<'c>>,
) -> Lower<IntValue<'c>> {
    match not_wrapped {
        Some(not_wrapped) => Ok(cx.builder.build_and(inside, not_wrapped, "")?),
        None => Ok(inside),
    }
}

/// Emits the value to assign to a variable. If the variable is assigned once, the exact result of
/// the arithmetic is stored in a separate alloca.
pub(super) fn assigned<'c>(cx: &mut Cx<'c, '_>, local: LocalId, value: &Expr) -> Lower<BasicValueEnum<'c>> {
    let is_integer = value.ty.as_scalar().is_some_and(Scalar::is_integer);
    if !cx.checked || !is_integer || cx.variables.assignments.get(&local) != Some(&1) {
        return expr::value(cx, value);
    }
    let number = number(cx, value)?;
    let exact = match number.exact {
        None => None,
        Some(exact) => {
            // All iterations of an unrolled loop use the same alloca.
            let before = cx.variables.known.get(&local).and_then(|known| known.exact);
            let alloca = match before {
                Some(alloca) => alloca,
                None => cx.allocas.build_alloca(cx.context.i64_type(), "exact")?,
            };
            cx.builder.build_store(alloca, exact)?;
            Some(alloca)
        }
    };
    cx.variables.known.insert(local, Known { exact, range: number.range });
    Ok(number.value.into())
}

fn wide<'c>(cx: &Cx<'c, '_>, value: IntValue<'c>, scalar: Scalar) -> Lower<IntValue<'c>> {
    Ok(cx.builder.build_int_cast_sign_flag(value, cx.context.i64_type(), scalar.is_signed(), "")?)
}

/// Returns the exact result in 64 bits.
fn exact<'c>(cx: &Cx<'c, '_>, number: Number<'c>, scalar: Scalar) -> Lower<IntValue<'c>> {
    number.exact.map_or_else(|| wide(cx, number.value, scalar), Ok)
}

fn number<'c>(cx: &mut Cx<'c, '_>, expr: &Expr) -> Lower<Number<'c>> {
    debug::at_expr(cx, expr.span, |cx| {
        if let ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) = &expr.kind {
            let (a, b) = (number(cx, a)?, number(cx, b)?);
            arithmetic(cx, *op, a, b, scalar_of(&expr.ty)?)
        } else if let ExprKind::Binary(BinaryOp::Shl, a, by) = &expr.kind
            && let Some(by) = by.as_int()
        {
            shifted(cx, a, by)
        } else if let ExprKind::Cast(a) = &expr.kind
            && a.ty.as_scalar().is_some_and(Scalar::is_integer)
        {
            converted(cx, a, expr)
        } else if let ExprKind::Local(local) = &expr.kind
            && let Some(known) = cx.variables.known.get(local).copied()
        {
            variable(cx, *local, known)
        } else {
            leaf(cx, expr)
        }
    })
}

fn variable<'c>(cx: &Cx<'c, '_>, local: LocalId, known: Known<'c>) -> Lower<Number<'c>> {
    let value = locals::load(cx, local).and_then(int)?;
    let exact = match known.exact {
        Some(alloca) => Some(int(cx.builder.build_load(cx.context.i64_type(), alloca, "")?)?),
        None => None,
    };
    Ok(Number { value, exact, range: known.range })
}

/// Emits a sum, a difference or a product.
fn arithmetic<'c>(
    cx: &Cx<'c, '_>,
    op: BinaryOp,
    a: Number<'c>,
    b: Number<'c>,
    scalar: Scalar,
) -> Lower<Number<'c>> {
    let value = arith::integer(cx, op, scalar.is_signed(), a.value, b.value)?;
    let range = bounds(op, a.range, b.range);
    let is_wide = scalar.bytes() == 8;
    if fits(range, scalar) || is_wide && a.exact.is_none() && b.exact.is_none() {
        return Ok(Number { value, exact: None, range: clipped(range, scalar) });
    }
    let operands = (exact(cx, a, scalar)?, exact(cx, b, scalar)?);
    let exact = arith::integer(cx, op, true, operands.0, operands.1)?;
    Ok(Number { value, exact: Some(exact), range })
}

/// Emits `a << by` as a product with a power of two. The amount is taken modulo the width.
fn shifted<'c>(cx: &mut Cx<'c, '_>, a: &Expr, by: i128) -> Lower<Number<'c>> {
    let scalar = scalar_of(&a.ty)?;
    let a = number(cx, a)?;
    let power = 1_u64 << by.rem_euclid(i128::from(scalar.bytes()) * 8);
    let value = a.value.get_type().const_int(power, false);
    // In 64 bits, the highest bit of a signed type is a positive number.
    let exact = (scalar.bytes() < 8).then(|| cx.context.i64_type().const_int(power, false));
    let range = (i128::from(power), i128::from(power));
    arithmetic(cx, BinaryOp::Mul, a, Number { value, exact, range }, scalar)
}

/// Emits a conversion between integers. If it keeps all bits, the exact result is that of its
/// operand.
fn converted<'c>(cx: &mut Cx<'c, '_>, a: &Expr, expr: &Expr) -> Lower<Number<'c>> {
    let (from, to) = (scalar_of(&a.ty)?, scalar_of(&expr.ty)?);
    let a = number(cx, a)?;
    let value = cast::cast(cx, a.value.into(), from, to).and_then(int)?;
    if to.bytes() < from.bytes() || a.exact.is_none() {
        return Ok(Number { value, exact: None, range: clipped(a.range, to) });
    }
    Ok(Number { value, exact: a.exact, range: a.range })
}

fn leaf<'c>(cx: &mut Cx<'c, '_>, expr: &Expr) -> Lower<Number<'c>> {
    let value = expr::int_value(cx, expr)?;
    let whole = of_type(scalar_of(&expr.ty)?);
    let range = if let Some(known) = expr.as_int() {
        (known, known)
    } else if let ExprKind::Special(special) = &expr.kind {
        (0, i128::from(greatest(cx, *special)))
    } else if let ExprKind::Binary(BinaryOp::Rem, _, by) = &expr.kind
        && let (0, Some(by @ 1..)) = (whole.0, by.as_int())
    {
        (0, by - 1)
    } else if let ExprKind::Binary(BinaryOp::And, _, mask) = &expr.kind
        && let Some(mask @ 0..) = mask.as_int()
    {
        (0, mask)
    } else {
        whole
    };
    Ok(Number { value, exact: None, range })
}

/// Returns the greatest value of a special register, for the kernel's launch bounds.
fn greatest(cx: &Cx<'_, '_>, special: Special) -> u32 {
    let [x, y, z] = cx.kernel.kernel().launch.threads;
    let last = |of: u32| of.saturating_sub(1);
    let threads = x.saturating_mul(y).saturating_mul(z);
    match special {
        Special::ThreadIdx(Axis::X) => last(x),
        Special::ThreadIdx(Axis::Y) => last(y),
        Special::ThreadIdx(Axis::Z) => last(z),
        Special::LaneIdx => last(WARP_THREADS),
        Special::WarpIdx => last(threads) / WARP_THREADS,
        Special::WarpgroupIdx => last(threads) / WARPGROUP_THREADS,
        // Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
        Special::BlockIdx(Axis::Y | Axis::Z) | Special::GridDim(Axis::Y | Axis::Z) => u16::MAX.into(),
        Special::BlockIdx(Axis::X) | Special::GridDim(Axis::X) | Special::ClusterIdx(_) => i32::MAX as u32,
        Special::ClusterRank | Special::BlockInCluster(_) | Special::ClusterDim(_) => 16,
    }
}

fn of_type(scalar: Scalar) -> (i128, i128) {
    scalar.integer_range().unwrap_or((i128::from(i64::MIN), i128::from(u64::MAX)))
}

fn fits(range: (i128, i128), scalar: Scalar) -> bool {
    let ((least, most), (low, high)) = (range, of_type(scalar));
    low <= least && most <= high
}

/// Returns the range if it fits the type, otherwise the range of the type.
fn clipped(range: (i128, i128), scalar: Scalar) -> (i128, i128) {
    if fits(range, scalar) { range } else { of_type(scalar) }
}

/// Returns the least and the greatest result for operands in these ranges.
fn bounds(op: BinaryOp, a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    let of = if op == BinaryOp::Add {
        i128::saturating_add
    } else if op == BinaryOp::Sub {
        i128::saturating_sub
    } else {
        i128::saturating_mul
    };
    let each = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| of(a, b));
    (each.into_iter().min().unwrap_or(i128::MIN), each.into_iter().max().unwrap_or(i128::MAX))
}
