//! Pairs of accesses that may execute with no rendezvous of all threads between them.

use std::collections::BTreeSet;

use tma_front::ir::{Block, Flow, JumpTarget, Kernel, Label, Stmt, StmtId, StmtKind, Sync, visit};
use tma_front::quick::QuickMap;

use super::access::GlobalAccess;
use super::located::GlobalSummary;

/// The threads of a rendezvous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// All threads of the grid.
    Grid,
    /// All threads of a block, or more.
    Block,
}

impl Level {
    /// Whether all of these threads synchronise at a statement.
    fn synchronises_at(self, kind: &StmtKind) -> bool {
        let of_block = matches!(kind, StmtKind::Sync(Sync::Threads | Sync::Cluster));
        matches!(kind, StmtKind::SyncGrid { .. }) || of_block && self == Self::Block
    }
}

/// The pairs of accesses that may execute with no rendezvous between them.
pub(super) struct UnseparatedPairs {
    /// `None` if the kernel has no such rendezvous, so that every pair may.
    pairs: Option<BTreeSet<(StmtId, StmtId)>>,
}

impl UnseparatedPairs {
    pub(super) fn of(kernel: &Kernel, summary: &GlobalSummary<'_>, level: Level) -> Self {
        let mut has_any = false;
        visit::for_each_stmt(&kernel.body, &mut |stmt| has_any |= level.synchronises_at(&stmt.kind));
        let mut walk = Walk {
            kernel,
            summary,
            level,
            open: BTreeSet::new(),
            committed: BTreeSet::new(),
            pairs: BTreeSet::new(),
            loops: QuickMap::default(),
            exits: QuickMap::default(),
        };
        if has_any {
            walk.block(&kernel.body, BTreeSet::new());
        }
        Self { pairs: has_any.then_some(walk.pairs) }
    }

    pub(super) fn may(&self, one: StmtId, other: StmtId) -> bool {
        let is_pair = |pairs: &BTreeSet<_>| pairs.contains(&(one, other)) || pairs.contains(&(other, one));
        self.pairs.as_ref().is_none_or(is_pair)
    }
}

/// A walk through a kernel, with the accesses since the last rendezvous.
struct Walk<'k> {
    kernel: &'k Kernel,
    summary: &'k GlobalSummary<'k>,
    level: Level,
    /// The copies into global memory that have not been waited for.
    open: BTreeSet<StmtId>,
    /// The copies whose group has been committed.
    committed: BTreeSet<StmtId>,
    pairs: BTreeSet<(StmtId, StmtId)>,
    /// The loops that were walked: the accesses before them, and those at their ends. A nested loop
    /// is not walked again if no new access precedes it.
    loops: QuickMap<Label, (BTreeSet<StmtId>, BTreeSet<StmtId>)>,
    /// The accesses before jumps that leave or continue a loop or block.
    exits: QuickMap<Label, BTreeSet<StmtId>>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, before: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        block.stmts.iter().fold(before, |since, stmt| self.stmt(stmt, since))
    }

    fn stmt(&mut self, stmt: &Stmt, mut since: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        if let Some(access) = GlobalAccess::of(self.kernel, stmt) {
            self.pairs.extend(since.iter().map(|earlier| (*earlier, stmt.id)));
            since.insert(stmt.id);
            if access.by_copy && access.writes {
                self.open.insert(stmt.id);
                self.committed.remove(&stmt.id);
            }
            return since;
        }
        let is_of_the_same = |copy: &StmtId| self.summary.is_of_the_same(*copy, stmt.id);
        if let StmtKind::BulkCommitGroup = stmt.kind {
            self.committed.extend(self.open.iter().filter(|copy| is_of_the_same(copy)));
        } else if let StmtKind::BulkWaitGroup { pending: 0, read_only: false } = stmt.kind {
            self.open.retain(|copy| !(self.committed.contains(copy) && is_of_the_same(copy)));
        }
        if self.level.synchronises_at(&stmt.kind) {
            // A copy that is not complete continues after the rendezvous.
            since.retain(|earlier| self.open.contains(earlier));
            return since;
        }
        let (label, may_end) = match stmt.flow() {
            Flow::Jump(JumpTarget::After(label) | JumpTarget::NextIteration(label)) => {
                self.exits.entry(label).or_default().extend(&since);
                return since;
            }
            Flow::Labelled(label, body) => {
                let end = self.block(body, since);
                return union(end, self.exits.get(&label));
            }
            Flow::Loop(inner) => (inner.label, inner.may_end()),
            Flow::Fallthrough | Flow::If(..) | Flow::Match(..) | Flow::Jump(_) | Flow::Trap => {
                let arms = visit::blocks(&stmt.kind);
                let ends =
                    arms.iter().map(|arm| self.block(arm, since.clone())).reduce(|a, b| union(a, Some(&b)));
                return ends.unwrap_or(since);
            }
        };
        if let Some((before, ended)) = self.loops.get(&label) {
            if since.is_subset(before) {
                return ended.clone();
            }
            since.extend(before);
        }
        let before = since.clone();
        let mut ended = if may_end { since.clone() } else { BTreeSet::new() };
        // The second iteration begins with the accesses of the first.
        for _ in 0..2 {
            for body in visit::blocks(&stmt.kind) {
                since = self.block(body, since);
                // A loop ends after its condition, which is the first of two blocks.
                ended = if may_end { union(ended, Some(&since)) } else { ended };
            }
            since = union(since, self.exits.get(&label));
        }
        let ended = union(ended, self.exits.get(&label));
        self.loops.insert(label, (before, ended.clone()));
        ended
    }
}

fn union(mut one: BTreeSet<StmtId>, other: Option<&BTreeSet<StmtId>>) -> BTreeSet<StmtId> {
    one.extend(other.into_iter().flatten());
    one
}
