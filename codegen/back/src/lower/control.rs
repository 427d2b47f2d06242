//! Branches and loops.

use inkwell::IntPredicate;
use inkwell::values::{BasicValue, IntValue, PointerValue};
use tma_front::ir::{Arm, Block, Expr, ExprKind, For, Label, MemoryObject, STEP_BY_ZERO, Scalar, visit};

use super::types::{int, int_const, scalar_of};
use super::{Cx, Exits, Lower, expr, locals, print, stmt};
use crate::backend::BackendError;

pub(super) fn if_(cx: &mut Cx<'_, '_>, condition: &Expr, then: &Block, otherwise: &Block) -> Lower<()> {
    let condition = expr::int_value(cx, condition)?;
    let (yes, no, end) = (cx.new_block("then"), cx.new_block("else"), cx.new_block("end_if"));
    cx.builder.build_conditional_branch(condition, yes, no)?;
    for (block, body) in [(yes, then), (no, otherwise)] {
        cx.builder.position_at_end(block);
        stmt::block(cx, body)?;
        cx.branch_to(end)?;
    }
    cx.builder.position_at_end(end);
    Ok(())
}

/// Lowers to a chain of tests, which LLVM converts to a switch where that is better.
pub(super) fn match_(cx: &mut Cx<'_, '_>, value: &Expr, arms: &[Arm], otherwise: &Block) -> Lower<()> {
    let scalar = scalar_of(&value.ty)?;
    let value = expr::int_value(cx, value)?;
    let end = cx.new_block("end_match");
    for arm in arms {
        let (yes, no) = (cx.new_block("arm"), cx.new_block("next_arm"));
        let matched = in_ranges(cx, value, scalar, &arm.ranges)?;
        cx.builder.build_conditional_branch(matched, yes, no)?;
        cx.builder.position_at_end(yes);
        stmt::block(cx, &arm.body)?;
        cx.branch_to(end)?;
        cx.builder.position_at_end(no);
    }
    stmt::block(cx, otherwise)?;
    cx.branch_to(end)?;
    cx.builder.position_at_end(end);
    Ok(())
}

/// Whether `value` is in one of `ranges`, which include both ends.
fn in_ranges<'c>(
    cx: &Cx<'c, '_>,
    value: IntValue<'c>,
    scalar: Scalar,
    ranges: &[(i128, i128)],
) -> Lower<IntValue<'c>> {
    let ty = value.get_type();
    let mut matched = cx.context.bool_type().const_zero();
    for &(least, most) in ranges {
        let (least_value, most_value) = (int_const(ty, least), int_const(ty, most));
        let holds = if least == most {
            cx.builder.build_int_compare(IntPredicate::EQ, value, least_value, "")?
        } else {
            let above = compare_le(cx, scalar, least_value, value)?;
            let below = compare_le(cx, scalar, value, most_value)?;
            cx.builder.build_and(above, below, "")?
        };
        matched = cx.builder.build_or(matched, holds, "")?;
    }
    Ok(matched)
}

fn compare_le<'c>(cx: &Cx<'c, '_>, scalar: Scalar, a: IntValue<'c>, b: IntValue<'c>) -> Lower<IntValue<'c>> {
    let predicate = if scalar.is_signed() { IntPredicate::SLE } else { IntPredicate::ULE };
    Ok(cx.builder.build_int_compare(predicate, a, b, "")?)
}

pub(super) fn loop_(cx: &mut Cx<'_, '_>, label: Label, body: &Block) -> Lower<()> {
    let (top, end) = (cx.new_block("loop"), cx.new_block("end_loop"));
    cx.exits.insert(label, Exits { leave: end, next: top });
    cx.branch_to(top)?;
    cx.builder.position_at_end(top);
    stmt::block(cx, body)?;
    cx.branch_to(top)?;
    cx.builder.position_at_end(end);
    Ok(())
}

pub(super) fn while_(
    cx: &mut Cx<'_, '_>,
    label: Label,
    header: &Block,
    condition: &Expr,
    body: &Block,
) -> Lower<()> {
    let (top, iteration, end) = (cx.new_block("while"), cx.new_block("iteration"), cx.new_block("end_while"));
    cx.exits.insert(label, Exits { leave: end, next: top });
    cx.branch_to(top)?;
    cx.builder.position_at_end(top);
    stmt::block(cx, header)?;
    let condition = expr::int_value(cx, condition)?;
    cx.builder.build_conditional_branch(condition, iteration, end)?;
    cx.builder.position_at_end(iteration);
    stmt::block(cx, body)?;
    cx.branch_to(top)?;
    cx.builder.position_at_end(end);
    Ok(())
}

pub(super) fn labelled(cx: &mut Cx<'_, '_>, label: Label, body: &Block) -> Lower<()> {
    let end = cx.new_block("end_block");
    cx.exits.insert(label, Exits { leave: end, next: end });
    stmt::block(cx, body)?;
    cx.branch_to(end)?;
    cx.builder.position_at_end(end);
    Ok(())
}

/// Lowers the `break` of a loop, or the end of a labelled block.
pub(super) fn leave(cx: &mut Cx<'_, '_>, label: Label) -> Lower<()> {
    cx.branch_to(exits(cx, label)?.leave)?;
    cx.unreachable_from_here();
    Ok(())
}

/// Lowers `continue`.
pub(super) fn next_iteration(cx: &mut Cx<'_, '_>, label: Label) -> Lower<()> {
    cx.branch_to(exits(cx, label)?.next)?;
    cx.unreachable_from_here();
    Ok(())
}

/// Ends the thread.
pub(super) fn return_(cx: &mut Cx<'_, '_>) -> Lower<()> {
    cx.builder.build_return(None)?;
    cx.unreachable_from_here();
    Ok(())
}

fn exits<'c>(cx: &Cx<'c, '_>, label: Label) -> Lower<Exits<'c>> {
    cx.exits
        .get(&label)
        .copied()
        .ok_or_else(|| BackendError::Unchecked(format!("label {}, which nothing around it has", label.0)))
}

/// Lowers a loop over a range. `check` has rejected `unroll` without bounds known at compile time.
pub(super) fn for_(cx: &mut Cx<'_, '_>, inner: &For) -> Lower<()> {
    match (inner.unroll, inner.start.as_int(), inner.end.as_int(), inner.step.as_int()) {
        (true, Some(start), Some(end), Some(step)) if step > 0 => unrolled(cx, inner, start, end, step),
        _ => counted(cx, inner),
    }
}

/// Emits the body once for every value. Unrolling here, and not in LLVM, works for a body of any
/// size.
fn unrolled(cx: &mut Cx<'_, '_>, inner: &For, start: i128, end: i128, step: i128) -> Lower<()> {
    let ty = cx.bits_type(scalar_of(&inner.start.ty)?);
    let end_loop = cx.new_block("end_unrolled");
    let mut value = start;
    while value < end || (inner.inclusive && value == end) {
        let next = cx.new_block("next_iteration");
        cx.exits.insert(inner.label, Exits { leave: end_loop, next });
        locals::store(cx, inner.variable, int_const(ty, value).as_basic_value_enum())?;
        stmt::block(cx, &inner.body)?;
        cx.branch_to(next)?;
        cx.builder.position_at_end(next);
        value += step;
    }
    cx.branch_to(end_loop)?;
    cx.builder.position_at_end(end_loop);
    Ok(())
}

/// Emits a counted loop. The bounds are evaluated once. Whether another iteration follows is
/// decided by the distance to the end, which cannot overflow, unlike the next value.
fn counted(cx: &mut Cx<'_, '_>, inner: &For) -> Lower<()> {
    let range = range(cx, inner)?;
    if !range.step.is_const() {
        // The behaviour of `step_by` on the host. `check` has rejected a step known to be 0.
        let zero = range.step.get_type().const_zero();
        let some = cx.builder.build_int_compare(IntPredicate::NE, range.step, zero, "")?;
        print::assert(cx, some, STEP_BY_ZERO, inner.step.span)?;
    }
    let (top, next, end_loop) =
        (cx.new_block("for"), cx.new_block("next_iteration"), cx.new_block("end_for"));
    let counter = cx.allocas.build_alloca(range.start.get_type(), "counter")?;
    cx.builder.build_store(counter, range.start)?;
    let some = before_end(cx, &range, inner.inclusive, range.start)?;
    cx.builder.build_conditional_branch(some, top, end_loop)?;

    cx.builder.position_at_end(top);
    let value = count(cx, counter, &range)?;
    if counts_elements(inner) {
        assume_in_range(cx, &range, inner.inclusive, value)?;
    }
    locals::store(cx, inner.variable, value.as_basic_value_enum())?;
    cx.exits.insert(inner.label, Exits { leave: end_loop, next });
    stmt::block(cx, &inner.body)?;
    cx.branch_to(next)?;

    cx.builder.position_at_end(next);
    let value = count(cx, counter, &range)?;
    let stepped = cx.builder.build_int_add(value, cast_step(cx, &range)?, "")?;
    cx.builder.build_store(counter, stepped)?;
    let more = has_next_iteration(cx, &range, inner.inclusive, value, stepped)?;
    cx.builder.build_conditional_branch(more, top, end_loop)?;
    cx.builder.position_at_end(end_loop);
    Ok(())
}

/// The bounds of a range, of the same type, and its step as `usize`.
struct Range<'c> {
    scalar: Scalar,
    start: IntValue<'c>,
    end: IntValue<'c>,
    step: IntValue<'c>,
}

fn range<'c>(cx: &mut Cx<'c, '_>, inner: &For) -> Lower<Range<'c>> {
    Ok(Range {
        scalar: scalar_of(&inner.start.ty)?,
        start: expr::int_value(cx, &inner.start)?,
        end: expr::int_value(cx, &inner.end)?,
        step: expr::widened(cx, &inner.step)?,
    })
}

fn count<'c>(cx: &Cx<'c, '_>, counter: PointerValue<'c>, range: &Range<'c>) -> Lower<IntValue<'c>> {
    int(cx.builder.build_load(range.start.get_type(), counter, "")?)
}

/// Converts the step to the type of the range. A greater step loses its upper bits, but then no
/// further iteration follows.
fn cast_step<'c>(cx: &Cx<'c, '_>, range: &Range<'c>) -> Lower<IntValue<'c>> {
    Ok(cx.builder.build_int_cast_sign_flag(range.step, range.start.get_type(), false, "")?)
}

/// Tells LLVM that the counter is within its range, as the branch to the body has it. LLVM does not
/// conclude that from the distance to the end, and would keep comparisons that say the same: of an
/// index with the length of a slice.
fn assume_in_range<'c>(
    cx: &mut Cx<'c, '_>,
    range: &Range<'c>,
    inclusive: bool,
    value: IntValue<'c>,
) -> Lower<()> {
    if range.end.is_const() {
        return Ok(());
    }
    let inside = before_end(cx, range, inclusive, value)?;
    cx.intrinsic("llvm.assume", &[], &[inside.into()])?;
    Ok(())
}

/// Whether the loop variable itself is the index of a slice. Other loops have no comparison to
/// save, and an assumption could change how LLVM arranges them.
fn counts_elements(inner: &For) -> bool {
    let is_variable = |index: &Expr| {
        let index = if let ExprKind::Cast(value) = &index.kind { value } else { index };
        matches!(index.kind, ExprKind::Local(local) if local == inner.variable)
    };
    let mut found = false;
    visit::for_each_stmt(&inner.body, &mut |stmt| {
        let accesses = stmt.facts().accesses;
        let mut slices = accesses.iter().filter(|access| matches!(access.object, MemoryObject::Global(_)));
        found |= slices.any(|access| access.at.iter().any(|index| is_variable(index)));
    });
    found
}

/// Compares a value with the end of the range.
fn before_end<'c>(
    cx: &Cx<'c, '_>,
    range: &Range<'c>,
    inclusive: bool,
    value: IntValue<'c>,
) -> Lower<IntValue<'c>> {
    if inclusive {
        return compare_le(cx, range.scalar, value, range.end);
    }
    let predicate = if range.scalar.is_signed() { IntPredicate::SLT } else { IntPredicate::ULT };
    Ok(cx.builder.build_int_compare(predicate, value, range.end, "")?)
}

fn has_next_iteration<'c>(
    cx: &Cx<'c, '_>,
    range: &Range<'c>,
    inclusive: bool,
    value: IntValue<'c>,
    stepped: IntValue<'c>,
) -> Lower<IntValue<'c>> {
    if range.step.get_zero_extended_constant() == Some(1) {
        // The form that LLVM optimises best. `value` is within the range, so it reaches the end
        // exactly.
        let reached = if inclusive { value } else { stepped };
        return Ok(cx.builder.build_int_compare(IntPredicate::NE, reached, range.end, "")?);
    }
    let distance = cx.builder.build_int_sub(range.end, value, "")?;
    let distance = cx.builder.build_int_cast_sign_flag(distance, range.step.get_type(), false, "")?;
    let predicate = if inclusive { IntPredicate::UGE } else { IntPredicate::UGT };
    Ok(cx.builder.build_int_compare(predicate, distance, range.step, "")?)
}
