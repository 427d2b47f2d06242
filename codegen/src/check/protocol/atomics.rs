//! Accesses with an order and a scope.

use tma_model::sync::{Access, AccessKind, Proxy};

use super::finding::Why;
use super::run::{Run, Step};
use crate::ir::{Atomic, AtomicPlace, Expr, MemoryScope, Stmt, Type};

impl Run<'_, '_> {
    /// Executes a strong access, which does not race with other strong accesses. The value that it
    /// reads may be anything, and the order that it establishes is not followed.
    pub(super) fn atomic(&mut self, stmt: &Stmt, atomic: &Atomic) -> Step {
        let kind = if atomic.writes() { AccessKind::Write } else { AccessKind::Read };
        let access = Access { proxy: Proxy::Generic, kind, strong: true };
        // Whether threads of other blocks take part is not followed.
        let is_shared_with_others =
            |array: &Expr| matches!(array.ty, Type::Remote(_)) || self.input.code.is_remote;
        if atomic.scope == MemoryScope::Block && atomic.shared().is_none_or(is_shared_with_others) {
            self.doubt(Why::Atomics, stmt.origin.span);
        }
        if let AtomicPlace::Global(param) = atomic.place {
            self.global_access(stmt, param, (&atomic.index, 1), access)?;
        }
        if let Some(array) = atomic.shared() {
            let (block, _, region) = self.elements((array, &atomic.index), 1)?;
            self.visit(stmt.id, block)?;
            let hull = region.hull();
            self.touch(stmt.id, block, (access, region), None)?;
            if atomic.writes() {
                self.blocks[block].numbers.retain(|at, _| !hull.contains(at));
            }
        }
        if let Some(dest) = atomic.dest() {
            self.load_fresh(dest);
        }
        Ok(())
    }
}
