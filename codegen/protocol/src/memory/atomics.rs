//! Accesses with an order and a scope.

use tma_front::ir::{Atomic, AtomicMemory, Expr, MemoryScope, Stmt, Type};
use tma_model::sync::{Access, AccessKind, Proxy};

use crate::finding::UndecidedReason;
use crate::run::{Run, StepResult};

impl Run<'_, '_> {
    /// Executes a strong access, which does not race with other strong accesses. The value that it
    /// reads may be anything, and the order that it establishes is not followed.
    pub(crate) fn atomic(&mut self, stmt: &Stmt, atomic: &Atomic) -> StepResult {
        let kind = if atomic.writes() { AccessKind::Write } else { AccessKind::Read };
        let access = Access { proxy: Proxy::Generic, kind, strong: true };
        // Whether threads of other blocks take part is not followed.
        let is_shared_with_others =
            |array: &Expr| matches!(array.ty, Type::Remote(_)) || self.input.code.is_remote;
        if atomic.scope == MemoryScope::Block && atomic.shared().is_none_or(is_shared_with_others) {
            self.note_undecided(UndecidedReason::Atomics, stmt.origin.span);
        }
        if let AtomicMemory::Global(global) = &atomic.memory {
            self.global_access(stmt, global, &atomic.index, 1, access)?;
        }
        if let Some(array) = atomic.shared() {
            let (block, _, region) = self.elements(array, &atomic.index, 1)?;
            self.use_remote_memory(stmt.id, block)?;
            let hull = region.hull();
            self.access_shared(stmt.id, block, access, region, None)?;
            if atomic.writes() {
                self.state.blocks[block].numbers.retain(|at, _| !hull.contains(at));
            }
        }
        if let Some(dest) = atomic.dest() {
            self.load_fresh(dest);
        }
        Ok(())
    }
}
