//! The slice of a kernel that its synchronisation depends on: the effects on shared memory and
//! barriers, the control flow around them, and the variables that these read. Sums of floats and
//! coordinates of tensors are left out.

use tma_front::check::uniform::Reach;
use tma_front::ir::{
    Accessor, BarrierOp, Block, DefinedValue, Expr, Facts, Flow, JumpTarget, Kernel, Label, LocalId, Loop,
    MemoryAccess, ParamId, ParamKind, Scalar, Span, Stmt, StmtId, StmtKind, Synchronization, visit,
};
use tma_front::quick::{QuickMap, QuickSet};

use crate::global::{GlobalAccess, reduction, with_repeated_stores};

/// The statements and variables that matter.
#[derive(Debug, Default)]
pub(super) struct Slice {
    kept: QuickSet<StmtId>,
    needed: QuickSet<LocalId>,
    labels: QuickSet<Label>,
    /// Whether numbers that matter pass through shared arrays.
    reads_shared: bool,
    /// The parameters whose global memory copies access and threads write, or copies write and
    /// others access, or copies may write repeatedly.
    shared_with_copies: QuickSet<ParamId>,
    /// The parameters whose memory statements access, and the first access to each.
    accessed: QuickMap<ParamId, Span>,
    reach: Reach,
}

impl Slice {
    /// Computes the slice of a kernel: the smallest one that contains its effects and is closed.
    pub(super) fn of(kernel: &Kernel) -> Self {
        let mut slice = Self { reach: Reach::of(kernel), ..Self::default() };
        let accesses = GlobalAccess::all(kernel);
        slice.shared_with_copies = shared_with_copies(kernel, &accesses);
        slice.shared_with_copies.extend(with_repeated_stores(kernel, &accesses));
        let own = (0..).map(ParamId).take(kernel.params.len());
        let own = own.filter(|id| slice.shared_with_copies.contains(&kernel.holder_of(*id)));
        slice.shared_with_copies.extend(own.collect::<Vec<_>>());
        for access in &accesses {
            slice.accessed.entry(access.param).or_insert(access.stmt.origin.span);
        }
        loop {
            let before = slice.size();
            slice.block(&kernel.body);
            if slice.size() == before {
                return slice;
            }
        }
    }

    /// Whether a statement matters.
    pub(super) fn keeps(&self, stmt: &Stmt) -> bool {
        self.kept.contains(&stmt.id)
    }

    /// Whether a variable matters.
    pub(super) fn needs(&self, local: LocalId) -> bool {
        self.needed.contains(&local)
    }

    /// Whether all threads of a warp reach a statement together.
    pub(super) fn is_whole_warp(&self, stmt: StmtId) -> bool {
        self.reach.is_whole_warp(stmt)
    }

    /// Returns the first access to the memory of a parameter, other than by `sync_grid`.
    pub(super) fn accessed(&self, param: ParamId) -> Option<Span> {
        self.accessed.get(&param).copied()
    }

    /// Returns a location where the lane index of the elected thread makes a difference, or may.
    pub(super) fn numbered(&self) -> Option<Span> {
        self.reach.numbered()
    }

    /// Returns the condition that may bring one block to a `sync_grid` and not others.
    pub(super) fn by_block(&self, stmt: StmtId) -> Option<Span> {
        self.reach.by_block(stmt)
    }

    /// Whether copies share this global memory with threads or with each other, and some access
    /// writes it.
    pub(super) fn is_shared_with_copies(&self, param: ParamId) -> bool {
        self.shared_with_copies.contains(&param)
    }

    /// Whether values stored in shared arrays matter.
    pub(super) fn reads_shared(&self) -> bool {
        self.reads_shared
    }

    fn size(&self) -> (usize, usize, usize, bool) {
        (self.kept.len(), self.needed.len(), self.labels.len(), self.reads_shared)
    }

    fn block(&mut self, block: &Block) -> bool {
        let mut any = false;
        // The operands of a statement are mostly computed before it.
        for stmt in block.stmts.iter().rev() {
            any |= self.stmt(stmt);
        }
        any
    }

    fn stmt(&mut self, stmt: &Stmt) -> bool {
        let mut inner = false;
        for block in visit::blocks(&stmt.kind) {
            inner |= self.block(block);
        }
        let facts = stmt.facts();
        let is_kept = inner || self.is_effect(stmt, &facts);
        // Values in shared arrays may turn out to matter later.
        let may_read_more = matches!(stmt.kind, StmtKind::SharedGet { .. } | StmtKind::SharedSet { .. });
        if is_kept && (self.kept.insert(stmt.id) || may_read_more) {
            self.read(stmt, &facts);
        }
        is_kept
    }

    /// Whether an access matters by itself.
    fn is_followed(&self, access: &MemoryAccess<'_>) -> bool {
        access.object.global().is_none_or(|param| self.is_shared_with_copies(param))
    }

    /// Whether a statement matters by itself.
    fn is_effect(&self, stmt: &Stmt, facts: &Facts<'_>) -> bool {
        // Matrices are not followed, and ranges only with their loops.
        let is_needed = facts.defines.iter().any(|definition| match definition.value {
            DefinedValue::Matrix | DefinedValue::Range(_) => false,
            DefinedValue::Expr(_)
            | DefinedValue::Load
            | DefinedValue::Atomic(_)
            | DefinedValue::Phase
            | DefinedValue::Election
            | DefinedValue::Lanes(..)
            | DefinedValue::Ptx(_) => self.needs(definition.local),
        });
        let is_opaque = matches!(&stmt.kind, StmtKind::Ptx(ptx) if ptx.has_effects());
        if is_needed || is_opaque || facts.accesses.iter().any(|access| self.is_followed(access)) {
            return true;
        }
        if facts.is_of_warp() {
            // If a whole warp arrives, the rendezvous cannot fail.
            return !self.reach.is_whole_warp(stmt.id);
        }
        let ends = match facts.flow {
            Flow::Jump(JumpTarget::Return) | Flow::Trap => true,
            Flow::Jump(JumpTarget::After(label) | JumpTarget::NextIteration(label)) => {
                self.labels.contains(&label)
            }
            Flow::Fallthrough | Flow::If(..) | Flow::Match(..) | Flow::Loop(_) | Flow::Labelled(..) => false,
        };
        let synchronises = match facts.synchronization {
            Synchronization::Signals | Synchronization::Waits(_) => true,
            Synchronization::None | Synchronization::Grids => false,
        };
        let asserts = matches!(&stmt.kind, StmtKind::Assert { condition, .. } if is_integral(condition));
        ends || synchronises || asserts
    }

    fn need(&mut self, expr: &Expr) {
        visit::each_local(expr, &mut |local| _ = self.needed.insert(local));
    }

    fn need_all<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>) {
        all.into_iter().for_each(|expr| self.need(expr));
    }

    /// Adds the operands of a statement that matters.
    fn read(&mut self, stmt: &Stmt, facts: &Facts<'_>) {
        if let Flow::Loop(Loop { label, .. }) | Flow::Labelled(label, _) = facts.flow {
            self.labels.insert(label);
        }
        self.need_all(facts.controls.iter().copied());
        for access in &facts.accesses {
            self.need_all(access.object.shared());
            if access.by != Accessor::Copy || self.is_followed(access) {
                self.need_all(access.at.iter().copied());
            }
        }
        if let StmtKind::SharedGet { dest, .. } = stmt.kind {
            self.reads_shared |= self.needs(dest);
        } else if let StmtKind::SharedSet { value, .. } = &stmt.kind
            && self.reads_shared
        {
            self.need(value);
        }
    }
}

/// Returns the parameters whose memory copies access and threads write, or copies write and others
/// access.
fn shared_with_copies(kernel: &Kernel, accesses: &[GlobalAccess<'_>]) -> QuickSet<ParamId> {
    let is_shared = |param: ParamId| {
        let has = |by_copy, writes| {
            let is_one = |access: &GlobalAccess<'_>| {
                (access.param, access.by_copy, access.writes) == (param, by_copy, writes)
            };
            accesses.iter().any(is_one)
        };
        let (loaded, stored, read, written) =
            (has(true, false), has(true, true), has(false, false), has(false, true));
        // The elements of two stores to a slice may be known.
        let is_slice =
            matches!(kernel.param(param).kind(), Some(ParamKind::Global(_) | ParamKind::PeerGlobals(_)));
        // The result of reductions by several operations depends on their order.
        let mut reductions = accesses
            .iter()
            .filter(|access| access.param == param)
            .filter_map(|access| reduction(access.stmt));
        let first = reductions.next();
        let is_mixed = reductions.any(|other| Some(other) != first);
        (loaded || stored) && written || stored && (loaded || read || is_slice || is_mixed)
    };
    accesses.iter().map(|access| access.param).filter(|param| is_shared(*param)).collect()
}

/// Returns the parity that an operation waits for.
pub(super) fn parity(op: &BarrierOp) -> Option<&Expr> {
    match op {
        BarrierOp::Wait { parity }
        | BarrierOp::TestWait { parity, .. }
        | BarrierOp::TryWait { parity, .. }
        | BarrierOp::TryWaitFor { parity, .. } => Some(parity),
        BarrierOp::Init { .. }
        | BarrierOp::Invalidate
        | BarrierOp::Arrive
        | BarrierOp::ArriveMany { .. }
        | BarrierOp::ArriveToken { .. }
        | BarrierOp::ArriveDrop
        | BarrierOp::ArriveExpectTx { .. }
        | BarrierOp::ExpectTx { .. }
        | BarrierOp::WaitToken { .. } => None,
    }
}

/// Whether a condition consists of integers and truth values alone.
fn is_integral(condition: &Expr) -> bool {
    let mut integral = true;
    visit::within(condition, &mut |part| {
        let scalar = part.ty.as_scalar();
        integral &= scalar.is_some_and(|scalar| scalar == Scalar::Bool || scalar.integer_range().is_some());
    });
    integral
}
