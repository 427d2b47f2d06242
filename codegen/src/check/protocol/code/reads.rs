//! Reads of global memory whose values go on to shared memory: they are over before what follows the
//! next meeting. Of others only a use tells, which ptxas may put as late as it likes.

use crate::check::protocol::slice::Slice;
use crate::ir::{Expr, Kernel, LocalId, StmtId, StmtKind, visit};
use crate::quick::QuickSet;

/// Those of memory that copies access, too.
pub(super) fn used_in_shared(kernel: &Kernel, slice: &Slice) -> QuickSet<StmtId> {
    let mut reads = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::GlobalGet { dest, global, .. } = &stmt.kind
            && slice.is_shared_with_copies(*global)
        {
            reads.push((stmt.id, *dest));
        }
    });
    reads.retain(|(_, dest)| reaches_shared(kernel, *dest));
    reads.into_iter().map(|(stmt, _)| stmt).collect()
}

/// Whether a variable, or what is computed from it, is written to shared memory.
fn reaches_shared(kernel: &Kernel, from: LocalId) -> bool {
    let mut of: QuickSet<LocalId> = QuickSet::default();
    of.insert(from);
    loop {
        let (before, mut reaches) = (of.len(), false);
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            let reads = |value: &Expr| {
                let mut any = false;
                visit::each_local(value, &mut |local| any |= of.contains(&local));
                any
            };
            if let StmtKind::Assign { local, value, .. } = &stmt.kind
                && reads(value)
            {
                of.insert(*local);
            } else if let StmtKind::Warp { dest, value, .. } = &stmt.kind
                && reads(value)
            {
                of.insert(*dest);
            } else if let StmtKind::Pack { dest, accumulator } = &stmt.kind
                && of.contains(accumulator)
            {
                of.insert(*dest);
            } else if let StmtKind::SharedSet { value, .. } | StmtKind::TileSet { value, .. } = &stmt.kind {
                reaches |= reads(value);
            } else if let StmtKind::StoreAccumulator { accumulator, .. } = &stmt.kind {
                reaches |= of.contains(accumulator);
            } else if let StmtKind::StoreWarp(store) = &stmt.kind {
                reaches |= of.contains(&store.accumulator);
            }
        });
        if reaches || of.len() == before {
            return reaches;
        }
    }
}
