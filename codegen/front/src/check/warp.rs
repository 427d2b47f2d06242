//! Operations of the lanes of a warp: lanes that do not exist, and warps that lack lanes.

use super::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake::Limits;
use crate::ir::{Expr, ReduceMethod, ShuffleOp, Span, WarpOp, WarpReduceOp};
use crate::limits::WARP_THREADS;

pub(super) fn operation(rules: &Rules<'_>, value: &Expr, op: &WarpOp, span: Span, sink: &mut Sink) {
    match op {
        WarpOp::Shuffle { op, by } => lane(*op, by, sink),
        WarpOp::Reduce(op) => whole_warps(rules, *op, value, span, sink),
        WarpOp::Vote(_) | WarpOp::Match(_) => {}
    }
}

/// Checks a lane index. Source: PTX ISA, "shfl.sync": only the five lowest bits of the operand `b`
/// are used.
fn lane(op: ShuffleOp, by: &Expr, sink: &mut Sink) {
    let Some(value) = by.as_int().filter(|value| !(0..i128::from(WARP_THREADS)).contains(value)) else {
        return;
    };
    sink.error(Limits::Lane { op, value }, by.span);
}

/// Checks that warps are complete. Source: PTX ISA, "shfl.sync": a value that is read from a lane
/// that does not take part is undefined.
fn whole_warps(rules: &Rules<'_>, op: WarpReduceOp, value: &Expr, span: Span, sink: &mut Sink) {
    let threads = rules.kernel.launch.thread_count();
    let Some(scalar) = value.ty.as_scalar() else { return };
    if threads.is_multiple_of(u64::from(WARP_THREADS)) || op.method(scalar) == ReduceMethod::Instruction {
        return;
    }
    let word = format!("warp_reduce_{}", op.name()).into();
    sink.error(Limits::PartialWarp { word, scalar, threads }, span);
}
