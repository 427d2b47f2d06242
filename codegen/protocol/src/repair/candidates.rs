//! The changes that are tried, the likeliest first.

use tma_front::diag::mistake::{Protocol, Repair, SourceLocation, ThreadAct};
use tma_front::ir::{
    BarrierOp, Block, Const, CopyKind, Expr, ExprKind, Fence, FencedMemory, Kernel, LocalId, Scope, SharedId,
    Stmt, StmtId, StmtKind, Sync, visit,
};
use tma_front::limits::WARP_THREADS;
use tma_model::rule::Rule;

use super::edit::{Edit, Gap, copies, flipped, parity_of, plus, release};
use super::moves::moves;
use super::openings::{self, Opening, before_stmt, is_alone};
use crate::to_u32;

/// A change, and its description.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) edit: Edit,
    pub(super) repair: Repair,
}

/// A kernel and its violation.
struct Search<'k> {
    kernel: &'k Kernel,
    found: &'k Protocol,
    /// Every statement, in order, with the variable of the `for` loop that directly contains it.
    stmts: Vec<(&'k Stmt, Option<LocalId>)>,
    all: Vec<Candidate>,
}

/// Returns the candidates for a violation.
pub(super) fn candidates(kernel: &Kernel, found: &Protocol) -> Vec<Candidate> {
    let mut stmts = vec![];
    list(&kernel.body, None, &mut stmts);
    let mut search = Search { kernel, found, stmts, all: vec![] };
    match found.rule {
        Rule::Fence => search.fences(),
        Rule::NotVisible => {
            search.insert(|_| Some(StmtKind::Fence(Fence::MbarrierInit)), Repair::InitFence);
            search.barriers();
        }
        Rule::Race => {
            search.parities();
            search.barriers();
            search.waits();
        }
        Rule::ReadBeforeWait => {
            search.waits();
            search.parities();
            search.barriers();
        }
        Rule::Refill => {
            search.groups();
            search.waits_for_stores();
            search.barriers();
            search.waits();
        }
        Rule::Deadlock => {
            search.announcements();
            search.counts();
            search.releases();
            search.arrivals();
            search.parities();
        }
        Rule::Bytes if !found.without.is_empty() => {}
        Rule::Bytes => search.bytes(),
        Rule::Count => {
            search.counts();
            search.parities();
            search.barriers();
        }
        Rule::Overrun => {
            search.parities();
            search.barriers();
        }
        Rule::Leak if found.step.does == ThreadAct::InvalidateUnderCopy => search.waits(),
        Rule::Leak => {
            search.waits_for_stores();
            search.waits();
        }
        Rule::BlockGone => search.barriers(),
        Rule::Divergence => {}
    }
    let parties = search.parties();
    search.all.extend(moves(kernel, &parties));
    search.all
}

/// Returns the fence that makes accesses of threads visible to the asynchronous proxy.
pub(super) fn proxy_fence() -> StmtKind {
    StmtKind::Fence(Fence::ProxyAsync(FencedMemory::Shared(Scope::Cluster)))
}

fn list<'k>(block: &'k Block, variable: Option<LocalId>, into: &mut Vec<(&'k Stmt, Option<LocalId>)>) {
    for stmt in &block.stmts {
        into.push((stmt, variable));
        let inside = if let StmtKind::For(inner) = &stmt.kind {
            Some(inner.variable)
        } else if matches!(stmt.kind, StmtKind::While { .. } | StmtKind::Loop { .. }) {
            None
        } else {
            variable
        };
        visit::blocks(&stmt.kind).into_iter().for_each(|inner| list(inner, inside, into));
    }
}

impl<'k> Search<'k> {
    /// Adds a change, if the source can express it. One of several copies of a statement cannot be
    /// replaced alone.
    fn add(&mut self, edit: Edit, repair: Repair) {
        if let Edit::Replace(stmt, _) = edit
            && copies(&self.kernel.body, stmt).len() > 1
        {
            return;
        }
        self.all.push(Candidate { edit, repair });
    }

    fn add_insert(
        &mut self,
        at: &Opening,
        stmts: Vec<StmtKind>,
        repair: impl FnOnce(SourceLocation) -> Repair,
    ) {
        self.add(Edit::Insert(at.gap, stmts), repair(at.location));
    }

    /// Returns the statements of the violation, the reported one first.
    fn parties(&self) -> Vec<StmtId> {
        std::iter::once(&self.found.step).chain(&self.found.others).map(|step| step.stmt).collect()
    }

    /// Whether a statement is written in the source, and not part of a pipeline's method.
    fn is_written(&self, stmt: &Stmt) -> bool {
        self.kernel.pipeline_call(stmt.origin).is_none()
    }

    /// Returns the positions for a new statement, those next to the violation first.
    fn openings(&self) -> Vec<Opening> {
        openings::openings(&self.kernel.body, &self.parties())
    }

    /// Tries a proxy fence: before the barriers and arrivals that follow the accesses, and
    /// elsewhere.
    fn fences(&mut self) {
        let accesses = self.found.others.first().map(|other| other.stmt);
        let start = self.stmts.iter().position(|(stmt, _)| Some(stmt.id) == accesses).unwrap_or(0);
        let orders: Vec<(usize, StmtId)> = self
            .stmts
            .iter()
            .enumerate()
            .filter(|(_, (stmt, _))| self.is_written(stmt) && tells_others(&stmt.kind))
            .map(|(index, (stmt, _))| (index, stmt.id))
            .collect();
        let (earlier, later): (Vec<_>, Vec<_>) = orders.into_iter().partition(|(index, _)| *index < start);
        for (_, id) in later.into_iter().chain(earlier) {
            if let Some((gap, location)) = before_stmt(&self.kernel.body, None, id) {
                self.add(Edit::Insert(gap, vec![proxy_fence()]), Repair::Fence(location));
            }
        }
        self.insert(|_| Some(proxy_fence()), Repair::Fence);
    }

    /// Tries one statement at each position.
    fn insert(
        &mut self,
        kind: impl Fn(&Opening) -> Option<StmtKind>,
        repair: impl Fn(SourceLocation) -> Repair,
    ) {
        for opening in self.openings() {
            if let Some(kind) = kind(&opening) {
                self.add_insert(&opening, vec![kind], &repair);
            }
        }
    }

    fn barriers(&mut self) {
        let warps = self.found.others.iter().chain([&self.found.step]).flat_map(|step| &step.threads.threads);
        let mut warps: Vec<u32> = warps.map(|thread| thread / WARP_THREADS).collect();
        warps.dedup();
        let mut kinds = vec![];
        if warps.len() == 1 {
            kinds.push(Sync::Warp);
            kinds.push(Sync::Threads);
        } else {
            kinds.push(Sync::Threads);
            kinds.push(Sync::Warp);
        }
        if self.found.launch.cluster != [1, 1, 1] {
            kinds = vec![Sync::Cluster];
        }
        for sync in kinds {
            self.insert(|_| Some(StmtKind::Sync(sync)), |location| Repair::Barrier(sync, location));
        }
        if self.found.launch.cluster != [1, 1, 1]
            && let Some(last) = self.kernel.body.stmts.last()
        {
            let location = SourceLocation::After(last.origin.span);
            let edit = Edit::Insert(Gap::After(last.id), vec![StmtKind::Sync(Sync::Cluster)]);
            self.add(edit, Repair::Barrier(Sync::Cluster, location));
        }
    }

    /// Returns the barrier of the load that takes part, and the variable of the loop around it.
    fn barrier_of_load(&self) -> Option<(&'k Expr, Option<LocalId>)> {
        let parties = self.parties();
        self.stmts.iter().filter(|(stmt, _)| parties.contains(&stmt.id)).find_map(|(stmt, variable)| {
            let barrier = if let StmtKind::TileCopy(copy) = &stmt.kind {
                load_barrier(&copy.kind)
            } else if let StmtKind::BulkCopy(copy) = &stmt.kind {
                load_barrier(&copy.kind)
            } else {
                None
            };
            barrier.map(|barrier| (barrier, *variable))
        })
    }

    /// Tries a wait for the load.
    fn waits(&mut self) {
        let Some((barrier, variable)) = self.barrier_of_load() else { return };
        let parity = parity_of(variable, barrier.span);
        let op = BarrierOp::Wait { parity };
        let wait = StmtKind::Barrier { barrier: barrier.clone(), op, scope: Scope::Block };
        let (name, parity) = (self.words(barrier), self.parity_words(variable));
        let repair = |at| Repair::Wait { barrier: name.clone(), parity: parity.clone(), at };
        self.insert(|_| Some(wait.clone()), repair);
    }

    fn parity_words(&self, variable: Option<LocalId>) -> String {
        variable.map_or("0".to_owned(), |variable| format!("{} & 1", self.kernel.local(variable).name))
    }

    /// Returns the name of a barrier in the source.
    fn words(&self, barrier: &Expr) -> Option<String> {
        if let ExprKind::Shared(id) = barrier.kind {
            let is_part = self.kernel.pipelines.iter().any(|ring| ring.parts().any(|part| part == id));
            return (!is_part).then(|| self.kernel.shared_var(id).name.clone());
        }
        let ExprKind::Stage(stages, index) = &barrier.kind else { return None };
        let index = if let ExprKind::Const(Const::Int(index)) = index.kind {
            index.to_string()
        } else if let ExprKind::Local(local) = index.kind {
            self.kernel.local(local).name.clone()
        } else {
            return None;
        };
        self.words(stages).map(|stages| format!("{stages}[{index}]"))
    }

    fn waits_for_stores(&mut self) {
        let wait = StmtKind::BulkWaitGroup { pending: 0, read_only: true };
        let has_commit = self.stmts.iter().any(|(stmt, _)| matches!(stmt.kind, StmtKind::BulkCommitGroup));
        // The wait follows an existing commit, or comes with one.
        let commits: Vec<&Stmt> = self
            .stmts
            .iter()
            .map(|(stmt, _)| *stmt)
            .filter(|stmt| matches!(stmt.kind, StmtKind::BulkCommitGroup))
            .collect();
        for commit in commits {
            let edit = Edit::Insert(Gap::After(commit.id), vec![wait.clone()]);
            let span = commit.origin.span;
            let at = if is_alone(self.kernel, commit) {
                SourceLocation::After(span)
            } else {
                SourceLocation::AfterCommit(span)
            };
            self.add(edit, Repair::WaitForStores { commit: false, at });
        }
        if has_commit {
            return;
        }
        for opening in self.openings() {
            let stmts = vec![StmtKind::BulkCommitGroup, wait.clone()];
            self.add_insert(&opening, stmts, |at| Repair::WaitForStores { commit: true, at });
        }
    }

    /// Tries to leave fewer groups open.
    fn groups(&mut self) {
        for (stmt, _) in self.stmts.clone() {
            if let StmtKind::BulkWaitGroup { pending, read_only } = stmt.kind {
                for groups in (0..pending).rev() {
                    let kind = StmtKind::BulkWaitGroup { pending: groups, read_only };
                    let at = stmt.origin.span;
                    self.add(Edit::Replace(stmt.id, Box::new(kind)), Repair::Pending { at, groups });
                }
            }
        }
    }

    /// Returns all operations on mbarriers, with the barrier and the variable of the loop around
    /// them.
    fn operations(&self) -> Vec<(&'k Stmt, &'k Expr, &'k BarrierOp, Option<LocalId>)> {
        let operation = |(stmt, variable): &(&'k Stmt, Option<LocalId>)| {
            let StmtKind::Barrier { barrier, op, .. } = &stmt.kind else { return None };
            Some((*stmt, barrier, op, *variable))
        };
        self.stmts.iter().filter_map(operation).collect()
    }

    /// Returns the barrier of the reported operation.
    fn awaited(&self) -> Option<&'k Expr> {
        let operations = self.operations();
        operations.iter().find(|(stmt, ..)| stmt.id == self.found.step.stmt).map(|(_, barrier, ..)| *barrier)
    }

    /// Tries `arrive_expect_tx` instead of `expect_tx`.
    fn announcements(&mut self) {
        for (stmt, barrier, op, _) in self.operations() {
            if let BarrierOp::ExpectTx { bytes } = op
                && let StmtKind::Barrier { scope, .. } = stmt.kind
            {
                let op = BarrierOp::ArriveExpectTx { bytes: bytes.clone() };
                let kind = StmtKind::Barrier { barrier: barrier.clone(), op, scope };
                self.add(Edit::Replace(stmt.id, Box::new(kind)), Repair::ArriveToo(stmt.origin.span));
            }
        }
    }

    /// Tries other counts: all threads of the block, the arrivals so far, or the threads that
    /// arrive.
    fn counts(&mut self) {
        let Some(counts) = self.found.counts else { return };
        let threads = to_u32(self.found.step.threads.threads.len());
        let mut tries =
            vec![self.found.step.threads.all, counts.expected.saturating_sub(counts.pending), threads];
        tries.retain(|count| *count > 0 && *count != counts.expected);
        tries.dedup();
        let named = self.awaited().and_then(root);
        for (stmt, barrier, op, _) in self.operations() {
            let BarrierOp::Init { count } = op else { continue };
            // In a pipeline, the user chooses only the count of the empty barriers.
            let is_full = self.kernel.pipelines.iter().any(|ring| root(barrier) == Some(ring.full));
            if is_full || named.is_some() && root(barrier) != named {
                continue;
            }
            for &number in &tries {
                let count = Expr { kind: ExprKind::Const(Const::Int(i128::from(number))), ..count.clone() };
                let kind = StmtKind::Barrier {
                    barrier: barrier.clone(),
                    op: BarrierOp::Init { count },
                    scope: Scope::Block,
                };
                let repair = Repair::Count { at: stmt.origin.span, count: number };
                self.add(Edit::Replace(stmt.id, Box::new(kind)), repair);
            }
        }
    }

    /// Tries to release slots whose empty barrier is waited for.
    fn releases(&mut self) {
        let Some(empty) = self.awaited().and_then(root) else { return };
        let Some(ring) = self.kernel.pipelines.iter().find(|ring| ring.empty == empty) else { return };
        for (stmt, barrier, op, _) in self.operations() {
            if !matches!(op, BarrierOp::Wait { .. }) || root(barrier) != Some(ring.full) {
                continue;
            }
            for by_lane in [true, false] {
                let edit = Edit::Insert(Gap::AtEnd(stmt.id), release(barrier, [ring.full, empty], by_lane));
                self.add(edit, Repair::Release { waited: stmt.origin.span, by_lane });
            }
        }
    }

    /// Tries arrivals at the barrier that is waited for.
    fn arrivals(&mut self) {
        let Some(barrier) = self.awaited() else { return };
        let Some(name) = self.words(barrier) else { return };
        let arrive =
            StmtKind::Barrier { barrier: barrier.clone(), op: BarrierOp::Arrive, scope: Scope::Block };
        self.insert(|_| Some(arrive.clone()), |at| Repair::Arrive { barrier: name.clone(), at });
    }

    /// Tries to announce as many bytes as were copied.
    fn bytes(&mut self) {
        let Some(counts) = self.found.counts else { return };
        let (Ok(received), Ok(expected)) =
            (i64::try_from(counts.received_bytes), i64::try_from(counts.expected_bytes))
        else {
            return;
        };
        let more = received - expected;
        for (stmt, barrier, op, _) in self.operations() {
            let (BarrierOp::ArriveExpectTx { bytes } | BarrierOp::ExpectTx { bytes }) = op else { continue };
            if more == 0 || !self.is_written(stmt) {
                continue;
            }
            let bytes = plus(bytes, more);
            let op = if let BarrierOp::ExpectTx { .. } = op {
                BarrierOp::ExpectTx { bytes }
            } else {
                BarrierOp::ArriveExpectTx { bytes }
            };
            let StmtKind::Barrier { scope, .. } = stmt.kind else { continue };
            let kind = StmtKind::Barrier { barrier: barrier.clone(), op, scope };
            let repair = Repair::Bytes { at: stmt.origin.span, more };
            self.add(Edit::Replace(stmt.id, Box::new(kind)), repair);
        }
    }

    /// Tries the other parity at each wait, and that of the loop's counter.
    fn parities(&mut self) {
        for (stmt, barrier, op, variable) in self.operations() {
            let BarrierOp::Wait { parity } = op else { continue };
            if !self.is_written(stmt) {
                continue;
            }
            let StmtKind::Barrier { scope, .. } = stmt.kind else { continue };
            let at = stmt.origin.span;
            let wait = |parity| {
                let op = BarrierOp::Wait { parity };
                Edit::Replace(stmt.id, Box::new(StmtKind::Barrier { barrier: barrier.clone(), op, scope }))
            };
            let becomes = if let ExprKind::Const(Const::Int(given)) = parity.kind {
                Some(u32::from(given & 1 == 0))
            } else {
                None
            };
            self.add(wait(flipped(parity)), Repair::Parity { at, becomes });
            if variable.is_some() {
                let words = self.parity_words(variable);
                self.add(wait(parity_of(variable, at)), Repair::ParityOf { at, parity: words });
            }
        }
    }
}

/// Whether a statement releases what its threads have done to other threads.
fn tells_others(kind: &StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::Sync(_)
            | StmtKind::NamedBarrierSync { .. }
            | StmtKind::NamedBarrierArrive { .. }
            | StmtKind::Barrier { op: BarrierOp::Arrive | BarrierOp::ArriveToken { .. }, .. }
    )
}

fn load_barrier<P>(kind: &CopyKind<P>) -> Option<&Expr> {
    match kind {
        CopyKind::Load { barrier, .. } => Some(barrier),
        CopyKind::Store { .. } | CopyKind::Reduce { .. } | CopyKind::Prefetch => None,
    }
}

/// Returns the shared variable that a barrier is, or is one of.
fn root(barrier: &Expr) -> Option<SharedId> {
    if let ExprKind::Shared(id) = barrier.kind {
        return Some(id);
    }
    let (ExprKind::Stage(object, _) | ExprKind::Remote(object, _)) = &barrier.kind else { return None };
    root(object)
}
