//! Which accesses may be made with no meeting of all threads in between.

use std::collections::BTreeSet;

use super::located::Kept;
use super::touch::Touch;
use crate::ir::{Block, Kernel, Label, Stmt, StmtId, StmtKind, Sync, visit};
use crate::quick::QuickMap;

/// Who meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// All threads of the grid.
    Grid,
    /// Those of a block, or of more.
    Block,
}

impl Level {
    /// Whether all of them meet at a statement.
    fn meets(self, kind: &StmtKind) -> bool {
        let of_block = matches!(kind, StmtKind::Sync(Sync::Threads | Sync::Cluster));
        matches!(kind, StmtKind::SyncGrid { .. }) || of_block && self == Self::Block
    }
}

/// Which accesses there may be with no meeting in between.
pub(super) struct Together {
    /// None if nobody meets.
    pairs: Option<BTreeSet<(StmtId, StmtId)>>,
}

impl Together {
    pub(super) fn of(kernel: &Kernel, kept: &Kept<'_>, level: Level) -> Self {
        let mut meets = false;
        visit::for_each_stmt(&kernel.body, &mut |stmt| meets |= level.meets(&stmt.kind));
        let mut walk = Walk {
            kernel,
            kept,
            level,
            open: BTreeSet::new(),
            committed: BTreeSet::new(),
            pairs: BTreeSet::new(),
            loops: QuickMap::default(),
            exits: QuickMap::default(),
        };
        if meets {
            walk.block(&kernel.body, BTreeSet::new());
        }
        Self { pairs: meets.then_some(walk.pairs) }
    }

    pub(super) fn may(&self, one: StmtId, other: StmtId) -> bool {
        let is_pair = |pairs: &BTreeSet<_>| pairs.contains(&(one, other)) || pairs.contains(&(other, one));
        self.pairs.as_ref().is_none_or(is_pair)
    }
}

/// A way through a kernel: the accesses since the last meeting.
struct Walk<'k> {
    kernel: &'k Kernel,
    kept: &'k Kept<'k>,
    level: Level,
    /// The copies into global memory that nothing has waited for yet.
    open: BTreeSet<StmtId>,
    /// Those whose group has ended.
    committed: BTreeSet<StmtId>,
    pairs: BTreeSet<(StmtId, StmtId)>,
    /// Loops that were gone through: the accesses before them, and those at their ends. So loops
    /// within loops are not gone through again where nothing has come to them.
    loops: QuickMap<Label, (BTreeSet<StmtId>, BTreeSet<StmtId>)>,
    /// The accesses before loops and blocks are left, or go on.
    exits: QuickMap<Label, BTreeSet<StmtId>>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, before: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        block.stmts.iter().fold(before, |since, stmt| self.stmt(stmt, since))
    }

    fn stmt(&mut self, stmt: &Stmt, mut since: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        if let Some(touch) = Touch::of(self.kernel, stmt) {
            self.pairs.extend(since.iter().map(|earlier| (*earlier, stmt.id)));
            since.insert(stmt.id);
            if touch.by_copy && touch.writes {
                self.open.insert(stmt.id);
                self.committed.remove(&stmt.id);
            }
            return since;
        }
        let is_of_the_same = |copy: &StmtId| self.kept.is_of_the_same(*copy, stmt.id);
        if let StmtKind::BulkCommitGroup = stmt.kind {
            self.committed.extend(self.open.iter().filter(|copy| is_of_the_same(copy)));
        } else if let StmtKind::BulkWaitGroup { pending: 0, read_only: false } = stmt.kind {
            self.open.retain(|copy| !(self.committed.contains(copy) && is_of_the_same(copy)));
        }
        if self.level.meets(&stmt.kind) {
            // A copy that is not complete goes on behind the meeting.
            since.retain(|earlier| self.open.contains(earlier));
            return since;
        }
        if let StmtKind::Break(label) | StmtKind::Continue(label) | StmtKind::Leave(label) = stmt.kind {
            self.exits.entry(label).or_default().extend(&since);
            return since;
        }
        if let StmtKind::Labelled { label, body } = &stmt.kind {
            let end = self.block(body, since);
            return union(end, self.exits.get(label));
        }
        let (label, may_end) = if let StmtKind::Loop { label, .. } = &stmt.kind {
            (*label, false)
        } else if let StmtKind::While { label, .. } = &stmt.kind {
            (*label, true)
        } else if let StmtKind::For(inner) = &stmt.kind {
            (inner.label, true)
        } else {
            let arms = visit::blocks(&stmt.kind);
            let ends =
                arms.iter().map(|arm| self.block(arm, since.clone())).reduce(|a, b| union(a, Some(&b)));
            return ends.unwrap_or(since);
        };
        if let Some((before, ended)) = self.loops.get(&label) {
            if since.is_subset(before) {
                return ended.clone();
            }
            since.extend(before);
        }
        let before = since.clone();
        let mut ended = if may_end { since.clone() } else { BTreeSet::new() };
        // The second turn begins with what the first has accessed.
        for _ in 0..2 {
            for body in visit::blocks(&stmt.kind) {
                since = self.block(body, since);
                // A loop ends behind its condition, which is the first of two blocks.
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
