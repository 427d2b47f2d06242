//! Non-coherent loads of memory that the kernel also writes.
//!
//! `ld.global.nc` reads through a cache that no write of the same launch updates, so the memory
//! must not change while the kernel runs (PTX ISA, "ld.global.nc"). An access with an order says
//! that it does, even if it is a load.
//!
//! Not checked: writes through other parameters, which the launcher's `&mut` excludes, and writes
//! of other kernels that run at the same time.

use crate::diag::Sink;
use crate::diag::mistake::Atomic;
use crate::ir::{Kernel, LoadPath, MemoryObject, ParamId, Span, Stmt, StmtKind, visit};
use crate::quick::QuickMap;

/// Reports non-coherent loads of slices that are written, or accessed with an order.
pub(in crate::check) fn check(kernel: &Kernel, sink: &mut Sink) {
    let mut loads = vec![];
    let mut changes: QuickMap<ParamId, Span> = QuickMap::default();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::GlobalGet { dest, global, path: LoadPath::NonCoherent, .. } = &stmt.kind {
            loads.push((
                kernel.holder_of(global.param),
                kernel.local(*dest).ty.elements().is_some(),
                stmt.origin.span,
            ));
        }
        for global in changed(stmt) {
            changes.entry(kernel.holder_of(global)).or_insert(stmt.origin.span);
        }
    });
    for (global, is_vector, span) in loads {
        let param = kernel.param(global);
        let change = changes.get(&global).copied();
        if change.is_some() || param.written {
            sink.error(Atomic::NonCoherent { slice: param.name.clone(), is_vector, change }, span);
        }
    }
}

/// Returns the slices that a statement writes or accesses with an order.
fn changed(stmt: &Stmt) -> Vec<ParamId> {
    let accesses = stmt.facts().accesses.into_iter();
    let changes = accesses.filter(|access| access.writes || access.is_strong);
    changes
        .filter_map(|access| match access.object {
            MemoryObject::Global(global) => Some(global),
            MemoryObject::Shared(_) | MemoryObject::Mbarrier(_) | MemoryObject::Map(_) => None,
        })
        .collect()
}
