//! The slice of a kernel that its synchronisation depends on: the effects on shared memory and
//! barriers, the control flow around them, and the variables that these read. Sums of floats and
//! coordinates of tensors are left out.

use crate::check::global::{GlobalAccess, reduction};
use crate::check::uniform::Reach;
use crate::ir::{
    AtomicMemory, BarrierOp, Block, CopyKind, Expr, Kernel, Label, LeftOperand, LocalId, MapEdit, Multicast,
    ParamId, ParamKind, Scalar, SharedRange, Span, Stmt, StmtId, StmtKind, WarpOp, visit,
};
use crate::quick::{QuickMap, QuickSet};

/// The statements and variables that matter.
#[derive(Debug, Default)]
pub(super) struct Slice {
    kept: QuickSet<StmtId>,
    needed: QuickSet<LocalId>,
    labels: QuickSet<Label>,
    /// Whether numbers that matter pass through shared arrays.
    reads_shared: bool,
    /// The parameters whose global memory copies access and threads write, or copies write and
    /// others access.
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
        let is_kept = inner || self.is_effect(stmt);
        // Values in shared arrays may turn out to matter later.
        let may_read_more = matches!(stmt.kind, StmtKind::SharedGet { .. } | StmtKind::SharedSet { .. });
        if is_kept && (self.kept.insert(stmt.id) || may_read_more) {
            self.read(&stmt.kind);
        }
        is_kept
    }

    /// Whether a statement matters by itself.
    fn is_effect(&self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::TileGet { .. }
            | StmtKind::TileSet { .. }
            | StmtKind::SharedGet { .. }
            | StmtKind::SharedSet { .. }
            | StmtKind::RemoteCopy(_)
            | StmtKind::Barrier { .. }
            | StmtKind::EditMap { .. }
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::Mma(_)
            | StmtKind::MmaWait { .. }
            | StmtKind::StoreAccumulator { .. }
            | StmtKind::LoadFragment(_)
            | StmtKind::StoreWarp(_)
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::NamedBarrierSync { .. }
            | StmtKind::NamedBarrierArrive { .. }
            | StmtKind::SyncGrid { .. }
            | StmtKind::PrintTile { .. }
            | StmtKind::Return
            | StmtKind::Trap => true,
            StmtKind::Assert { condition, .. } => is_integral(condition),
            StmtKind::AcquireMap { .. } => true,
            StmtKind::TileCopy(copy) => !matches!(copy.kind, CopyKind::Prefetch),
            StmtKind::BulkCopy(copy) => !matches!(copy.kind, CopyKind::Prefetch),
            StmtKind::Assign { local, .. } => self.needs(*local),
            StmtKind::GlobalGet { dest, global, .. } => {
                self.needs(*dest) || self.is_shared_with_copies(*global)
            }
            StmtKind::Atomic(atomic) => {
                atomic.dest().is_some_and(|dest| self.needs(dest))
                    || match &atomic.memory {
                        AtomicMemory::Global(param) => self.is_shared_with_copies(*param),
                        AtomicMemory::Shared(_) => true,
                    }
            }
            StmtKind::GlobalSet { global, .. } => self.is_shared_with_copies(*global),
            StmtKind::StoreMatrix(store) => self.is_shared_with_copies(store.matrix.global),
            // If a whole warp arrives, the rendezvous cannot fail.
            StmtKind::ElectOne { dest } | StmtKind::Warp { dest, .. } => {
                self.needs(*dest) || !self.reach.is_whole_warp(stmt.id)
            }
            StmtKind::ReduceRows { .. } | StmtKind::MmaSync(_) => !self.reach.is_whole_warp(stmt.id),
            StmtKind::Break(label) | StmtKind::Continue(label) | StmtKind::Leave(label) => {
                self.labels.contains(label)
            }
            StmtKind::If { .. }
            | StmtKind::Match { .. }
            | StmtKind::Loop { .. }
            | StmtKind::While { .. }
            | StmtKind::For(_)
            | StmtKind::Labelled { .. }
            | StmtKind::PrefetchMap(_)
            | StmtKind::Pack { .. }
            | StmtKind::CheckMatrix(_)
            | StmtKind::GridDependency(_)
            | StmtKind::Printf { .. } => false,
        }
    }

    fn need(&mut self, expr: &Expr) {
        visit::each_local(expr, &mut |local| _ = self.needed.insert(local));
    }

    fn need_all<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>) {
        all.into_iter().for_each(|expr| self.need(expr));
    }

    /// Adds the operands of a statement that matters.
    fn read(&mut self, kind: &StmtKind) {
        match kind {
            StmtKind::Assign { index, value, .. } => {
                self.need_all(index);
                self.need(value);
            }
            StmtKind::If { condition, .. } | StmtKind::Assert { condition, .. } => self.need(condition),
            StmtKind::Match { value, .. } => self.need(value),
            StmtKind::Loop { label, .. } | StmtKind::Labelled { label, .. } => {
                self.labels.insert(*label);
            }
            StmtKind::While { label, condition, .. } => {
                self.labels.insert(*label);
                self.need(condition);
            }
            StmtKind::For(inner) => {
                self.labels.insert(inner.label);
                self.need_all([&inner.start, &inner.end, &inner.step]);
            }
            StmtKind::TileGet { tile, at, .. } | StmtKind::TileSet { tile, at, .. } => {
                self.need(tile);
                self.need_all(at);
            }
            StmtKind::SharedGet { dest, array, index } => {
                self.need_all([array, index]);
                self.reads_shared |= self.needs(*dest);
            }
            StmtKind::SharedSet { array, index, value } => {
                self.need_all([array, index]);
                if self.reads_shared {
                    self.need(value);
                }
            }
            StmtKind::GlobalGet { index, .. } | StmtKind::GlobalSet { index, .. } => self.need(index),
            StmtKind::Atomic(atomic) => {
                self.need_all(atomic.shared());
                self.need(&atomic.index);
            }
            StmtKind::TileCopy(copy) => {
                if self.is_shared_with_copies(copy.map.param) {
                    self.need_all(copy.map.index.iter().chain(&copy.at));
                }
                match &copy.kind {
                    CopyKind::Load { to, barrier, multicast } => {
                        self.need_all([to, barrier]);
                        self.mask(multicast.as_ref());
                    }
                    CopyKind::Store { from } | CopyKind::Reduce { from, op: _ } => self.need(from),
                    CopyKind::Prefetch => {}
                }
            }
            StmtKind::BulkCopy(copy) => {
                self.need(&copy.count);
                if self.is_shared_with_copies(copy.global) {
                    self.need(&copy.index);
                }
                match &copy.kind {
                    CopyKind::Load { to: SharedRange { array, at }, barrier, multicast } => {
                        self.need_all([array, at, barrier]);
                        self.mask(multicast.as_ref());
                    }
                    CopyKind::Store { from: SharedRange { array, at } }
                    | CopyKind::Reduce { from: SharedRange { array, at }, op: _ } => {
                        self.need_all([array, at]);
                    }
                    CopyKind::Prefetch => {}
                }
            }
            StmtKind::RemoteCopy(copy) => {
                self.need_all([&copy.from, &copy.to, &copy.at, &copy.count, &copy.barrier]);
            }
            StmtKind::Barrier { barrier, op, .. } => {
                self.need(barrier);
                self.need_all(operand(op));
            }
            StmtKind::EditMap { map, edit } => {
                self.need(map);
                if let MapEdit::Publish { index, .. } = edit {
                    self.need(index);
                }
            }
            StmtKind::Mma(mma) => {
                self.need(&mma.right.tile);
                if let LeftOperand::Shared(left) = &mma.left {
                    self.need(&left.tile);
                }
            }
            StmtKind::StoreAccumulator { tile, .. } | StmtKind::PrintTile { tile } => self.need(tile),
            StmtKind::LoadFragment(load) => self.need(&load.from.tile),
            StmtKind::StoreWarp(store) => {
                self.need(&store.tile);
                self.need_all(&store.at);
            }
            StmtKind::NamedBarrierSync { id, threads } | StmtKind::NamedBarrierArrive { id, threads } => {
                self.need_all([id, threads]);
            }
            StmtKind::Warp { value, op, .. } => {
                self.need(value);
                if let WarpOp::Shuffle { by, .. } = op {
                    self.need(by);
                }
            }
            StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Leave(_)
            | StmtKind::Return
            | StmtKind::PrefetchMap(_)
            | StmtKind::AcquireMap { .. }
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::MmaWait { .. }
            | StmtKind::Pack { .. }
            | StmtKind::CheckMatrix(_)
            | StmtKind::StoreMatrix(_)
            | StmtKind::ReduceRows { .. }
            | StmtKind::MmaSync(_)
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::ElectOne { .. }
            | StmtKind::Trap
            | StmtKind::Printf { .. } => {}
        }
    }

    fn mask(&mut self, multicast: Option<&Multicast>) {
        if let Some(Multicast::Mask(mask)) = multicast {
            self.need(mask);
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
        let is_slice = matches!(kernel.param(param).kind(), Some(ParamKind::Global(_)));
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

/// Returns the operand of an operation on a barrier.
pub(super) fn operand(op: &BarrierOp) -> Option<&Expr> {
    match op {
        BarrierOp::Init { count: operand }
        | BarrierOp::ArriveMany { count: operand }
        | BarrierOp::ArriveExpectTx { bytes: operand }
        | BarrierOp::ExpectTx { bytes: operand }
        | BarrierOp::Wait { parity: operand }
        | BarrierOp::WaitToken { token: operand }
        | BarrierOp::TestWait { parity: operand, .. }
        | BarrierOp::TryWait { parity: operand, .. }
        | BarrierOp::TryWaitFor { parity: operand, .. } => Some(operand),
        BarrierOp::Invalidate | BarrierOp::Arrive | BarrierOp::ArriveToken { .. } | BarrierOp::ArriveDrop => {
            None
        }
    }
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
