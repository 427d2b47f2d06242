//! What the lanes of a warp do together: lanes that no warp has, and warps that lack lanes.

use super::operations::Rules;
use crate::diag::{Code, Sink};
use crate::ir::{Expr, ReduceMethod, ShuffleOp, Span, WarpOp, WarpReduceOp};
use crate::limits::WARP_THREADS;

pub(super) fn operation(rules: &Rules<'_>, value: &Expr, op: &WarpOp, span: Span, sink: &mut Sink) {
    match op {
        WarpOp::Shuffle { op, by } => lane(*op, by, sink),
        WarpOp::Reduce(op) => whole_warps(rules, *op, value, span, sink),
        WarpOp::Vote(_) | WarpOp::Match(_) => {}
    }
}

/// Source: PTX ISA, "shfl.sync": of the operand `b` only the five lowest bits are used.
fn lane(op: ShuffleOp, by: &Expr, sink: &mut Sink) {
    let Some(value) = by.as_int().filter(|value| !(0..i128::from(WARP_THREADS)).contains(value)) else {
        return;
    };
    let what = match op {
        ShuffleOp::Xor => "a mask of lanes",
        ShuffleOp::Up | ShuffleOp::Down => "a distance between lanes",
        ShuffleOp::Idx => "a lane",
    };
    let message = format!("{what} is 0 to {}, not {value}", WARP_THREADS - 1);
    sink.error(Code::IndexRange, by.span, message).help(format!("a warp has {WARP_THREADS} lanes"));
}

/// Source: PTX ISA, "shfl.sync": what is read of a lane that does not take part is undefined.
fn whole_warps(rules: &Rules<'_>, op: WarpReduceOp, value: &Expr, span: Span, sink: &mut Sink) {
    let threads = rules.kernel.launch.thread_count();
    let Some(scalar) = value.ty.as_scalar() else { return };
    if threads.is_multiple_of(u64::from(WARP_THREADS)) || op.method(scalar) == ReduceMethod::Instruction {
        return;
    }
    let name = op.name();
    let message = format!(
        "`warp_reduce_{name}` of `{scalar}` reads all {WARP_THREADS} lanes, but with {threads} threads the block's \
         last warp has {}",
        threads % u64::from(WARP_THREADS)
    );
    sink.error(Code::PartialWarp, span, message)
        .note(format!("the kernel has `threads` of {threads} in all"))
        .help(format!("take a multiple of {WARP_THREADS} threads; those without data reduce a value that changes nothing"));
}
