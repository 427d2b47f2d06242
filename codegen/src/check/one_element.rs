//! Elements of global memory whose index does not depend on the thread.
//!
//! Two plain accesses to such an element, of which one writes, race unless one thread makes both, or
//! all threads that could make them meet in between (PTX ISA, "Conflict and data-races"). Meetings
//! that only some threads take part in are not followed.

use std::cell::OnceCell;

use super::global::{Located, Pin, Together};
use crate::check::protocol::Why;
use crate::ir::{Axis, ExprKind, Kernel, Span, Special, StmtKind, Sync, visit};

/// The accesses to elements that other threads, or other blocks, may access.
pub(super) fn doubts(kernel: &Kernel, all: &[Located<'_>]) -> Vec<(Why, Span)> {
    let block = OnceCell::new();
    let grid = OnceCell::new();
    let in_block = |pair: [&Located<'_>; 2]| {
        let together = || block.get_or_init(|| Together::of(kernel, is_meeting_of_block));
        kernel.launch.thread_count() > 1 && !is_one_thread(kernel, pair) && may(together(), pair)
    };
    let in_grid = |pair: [&Located<'_>; 2]| {
        let together = || grid.get_or_init(|| Together::of(kernel, is_meeting_of_grid));
        !pair[0].varies.by_block && !is_one_block(kernel, pair) && may(together(), pair)
    };
    let mut found = vec![];
    for (index, one) in all.iter().enumerate().filter(|(_, one)| is_judged(kernel, one)) {
        let conflicts = |other: &&Located<'_>| {
            is_judged(kernel, other)
                && (one.touch.param, &one.place) == (other.touch.param, &other.place)
                && (one.touch.writes || other.touch.writes)
        };
        for other in all[index + 1..].iter().filter(conflicts) {
            let why = if in_block([one, other]) {
                Why::Element
            } else if in_grid([one, other]) {
                Why::Blocks
            } else {
                continue;
            };
            found.push((why, other.touch.stmt.origin.span));
        }
    }
    found
}

/// Whether it is a plain access of a thread, at an index that does not depend on the thread.
fn is_judged(kernel: &Kernel, one: &Located<'_>) -> bool {
    let touch = &one.touch;
    let is_plain = !touch.is_strong() && !touch.by_copy && !kernel.is_trusted(touch.stmt.origin);
    is_plain && !one.place.is_empty() && !one.varies.by_thread
}

fn may(together: &Together, [one, other]: [&Located<'_>; 2]) -> bool {
    together.may(one.touch.stmt.id, other.touch.stmt.id)
}

fn is_meeting_of_block(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Sync(Sync::Threads | Sync::Cluster)) || is_meeting_of_grid(kind)
}

fn is_meeting_of_grid(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::SyncGrid { .. })
}

const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

/// Whether both accesses are made where this index is the same number.
fn is_pinned([one, other]: [&Located<'_>; 2], special: Special) -> bool {
    let is_common = |pin: &Pin| pin.special == special && other.pins.contains(pin);
    one.pins.iter().any(is_common)
}

/// Whether one thread of a block makes both.
fn is_one_thread(kernel: &Kernel, pair: [&Located<'_>; 2]) -> bool {
    let is_known = |(axis, extent)| extent == 1 || is_pinned(pair, Special::ThreadIdx(axis));
    is_pinned(pair, Special::WarpIdx) && is_pinned(pair, Special::LaneIdx)
        || AXES.into_iter().zip(kernel.launch.threads).all(is_known)
}

/// Whether one block makes both: its index is known along the axes that the kernel asks for. Along
/// the others the grid is taken to have one block, since all would do the same.
fn is_one_block(kernel: &Kernel, pair: [&Located<'_>; 2]) -> bool {
    let mut axes = vec![];
    visit::for_each_expr(&kernel.body, &mut |expr| {
        if let ExprKind::Special(special @ Special::BlockIdx(_)) = expr.kind {
            axes.push(special);
        }
    });
    !axes.is_empty() && axes.into_iter().all(|special| is_pinned(pair, special))
}
