//! Accesses to global memory, and which of them blocks may make to the same elements.
//!
//! `protocol` follows the threads of a block, or of a cluster. Of others nothing is known but that
//! they do the same. So threads are taken to write elements of their own, which the report says. But
//! what a thread reads at another place than it writes, others may write; and unless all blocks meet
//! in between (`sync_grid`), nothing that is followed orders the two (PTX ISA, "Memory Consistency
//! Model", "Conflict and data-races").

use std::collections::BTreeSet;

use crate::ir::{
    AtomicPlace, Block, CopyKind, Expr, ExprKind, Kernel, Label, LocalId, ParamId, Scalar, Span, Special,
    Stmt, StmtId, StmtKind, visit,
};
use crate::quick::QuickMap;

/// An access to the memory of a parameter.
#[derive(Clone, Debug)]
pub(super) struct Touch<'k> {
    pub(super) stmt: &'k Stmt,
    pub(super) param: ParamId,
    pub(super) by_copy: bool,
    pub(super) writes: bool,
    /// Whether it has an order and a scope.
    is_strong: bool,
    /// The index or coordinates.
    at: Vec<&'k Expr>,
}

impl<'k> Touch<'k> {
    /// By a statement.
    fn of(stmt: &'k Stmt) -> Option<Self> {
        let by_copy = |param, writes: Option<bool>, at| {
            writes.map(|writes| Self { stmt, param, by_copy: true, writes, is_strong: false, at })
        };
        let by_threads =
            |param, writes, at| Some(Self { stmt, param, by_copy: false, writes, is_strong: false, at });
        if let StmtKind::TileCopy(copy) = &stmt.kind {
            let at = copy.map.index.iter().chain(&copy.at).collect();
            by_copy(copy.map.param, writes(&copy.kind), at)
        } else if let StmtKind::BulkCopy(copy) = &stmt.kind {
            by_copy(copy.global, writes(&copy.kind), vec![&copy.index])
        } else if let StmtKind::GlobalGet { global, index, .. } = &stmt.kind {
            by_threads(*global, false, vec![index])
        } else if let StmtKind::GlobalSet { global, index, .. } = &stmt.kind {
            by_threads(*global, true, vec![index])
        } else if let StmtKind::StoreMatrix(store) = &stmt.kind {
            by_threads(store.matrix.global, true, vec![])
        } else if let StmtKind::Atomic(atomic) = &stmt.kind
            && let AtomicPlace::Global(global) = atomic.place
        {
            let touch = by_threads(global, atomic.writes(), vec![&atomic.index]);
            touch.map(|touch| Self { is_strong: true, ..touch })
        } else {
            None
        }
    }

    /// All of a kernel, in the order of its source.
    pub(super) fn all(kernel: &'k Kernel) -> Vec<Self> {
        let mut all = vec![];
        visit::for_each_stmt(&kernel.body, &mut |stmt| all.extend(Self::of(stmt)));
        all
    }
}

/// Whether a copy writes global memory, if it accesses it.
fn writes<S>(kind: &CopyKind<S>) -> Option<bool> {
    match kind {
        CopyKind::Load { .. } => Some(false),
        CopyKind::Store { .. } | CopyKind::Reduce { .. } => Some(true),
        CopyKind::Prefetch => None,
    }
}

/// The parameters in which threads, or copies, write without an order: elements of their own, as far
/// as is judged.
pub(super) fn taken_apart(kernel: &Kernel) -> Vec<ParamId> {
    let touches = Touch::all(kernel);
    let plain = touches.iter().filter(|touch| touch.writes && !touch.is_strong);
    plain.map(|touch| touch.param).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The accesses by which a block may meet what others write, with nothing that is followed between.
pub(super) fn between_blocks(kernel: &Kernel) -> Vec<Span> {
    let touches = Touch::all(kernel);
    let places = Places::of(kernel);
    let together = Together::of(kernel);
    let mut spans = vec![];
    for (index, one) in touches.iter().enumerate().filter(|(_, touch)| !touch.is_strong) {
        let conflicts = |(other, with): (usize, &Touch<'_>)| {
            let is_mixed = with.is_strong && (one.writes || with.writes);
            let is_read = !with.is_strong && with.writes && !one.writes;
            one.param == with.param
                && (is_mixed || is_read && !places.are_same(one, with))
                && together.may(one.stmt.id, with.stmt.id)
                && index != other
        };
        let is_trusted = kernel.is_trusted(one.stmt.origin);
        if !is_trusted && touches.iter().enumerate().any(conflicts) {
            spans.push(one.stmt.origin.span);
        }
    }
    spans
}

/// The writes by which all threads of a block write different values to the same element.
pub(super) fn by_all_threads(kernel: &Kernel) -> Vec<Span> {
    let places = Places::of(kernel);
    let is_one_thread = kernel.launch.thread_count() == 1;
    let mut spans = vec![];
    for stmt in kernel.body.stmts.iter().filter(|stmt| !is_one_thread && !kernel.is_trusted(stmt.origin)) {
        if let StmtKind::GlobalSet { index, value, .. } = &stmt.kind
            && places.is_of_block(index)
            && !places.is_of_block(value)
        {
            spans.push(stmt.origin.span);
        }
    }
    spans
}

/// The variables that are given one value for good.
struct Places<'k> {
    given: QuickMap<LocalId, &'k Expr>,
    /// How often variables are given a value.
    times: QuickMap<LocalId, usize>,
}

/// How deep variables are looked through.
const DEPTH: u32 = 8;

impl<'k> Places<'k> {
    fn of(kernel: &'k Kernel) -> Self {
        let mut places = Self { given: QuickMap::default(), times: QuickMap::default() };
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            if let StmtKind::Assign { local, index, value } = &stmt.kind {
                *places.times.entry(*local).or_default() += 1;
                if index.is_empty() {
                    places.given.insert(*local, value);
                }
            }
        });
        places
    }

    /// Whether a number is certainly the same for all threads of a block.
    fn is_of_block(&self, expr: &Expr) -> bool {
        let mut is_same = true;
        visit::within(expr, &mut |part| {
            is_same &= if let ExprKind::Local(local) = part.kind {
                let given = self.given.get(&local).filter(|_| self.times.get(&local) == Some(&1));
                given.is_some_and(|value| self.is_of_block(value))
            } else if let ExprKind::Special(special) = part.kind {
                !matches!(
                    special,
                    Special::ThreadIdx(_) | Special::LaneIdx | Special::WarpIdx | Special::WarpgroupIdx
                )
            } else {
                true
            };
        });
        is_same
    }

    /// Whether two accesses are certainly to the same elements, as one thread makes them.
    fn are_same(&self, one: &Touch<'_>, other: &Touch<'_>) -> bool {
        let spelt = |touch: &Touch<'_>| -> Option<Vec<String>> {
            touch.at.iter().map(|at| self.spelling(at, DEPTH)).collect()
        };
        let (one, other) = (spelt(one), spelt(other));
        one.is_some_and(|one| !one.is_empty() && other.is_some_and(|other| one == other))
    }

    /// What an index is computed from, if that is the same wherever it is computed.
    fn spelling(&self, expr: &Expr, depth: u32) -> Option<String> {
        if let ExprKind::Local(local) = expr.kind {
            return match self.times.get(&local) {
                // A counter, or what a statement gives.
                None => Some(format!("{local:?}")),
                Some(1) => match self.given.get(&local).filter(|_| depth > 0) {
                    Some(value) => self.spelling(value, depth - 1),
                    None => Some(format!("{local:?}")),
                },
                Some(_) => None,
            };
        }
        let head = if let ExprKind::Binary(op, _, _) = &expr.kind {
            format!("{op:?}")
        } else if let ExprKind::Unary(op, _) = &expr.kind {
            format!("{op:?}")
        } else if let ExprKind::Integer(op, _) = &expr.kind {
            format!("{op:?}")
        } else if let ExprKind::Cast(_) = &expr.kind {
            format!("{:?}", expr.ty.as_scalar().unwrap_or(Scalar::U32))
        } else if visit::operands_of(expr).is_empty() {
            format!("{:?}", expr.kind)
        } else {
            return None;
        };
        let operands: Option<Vec<_>> =
            visit::operands_of(expr).into_iter().map(|part| self.spelling(part, depth)).collect();
        operands.map(|operands| format!("{head}({})", operands.join(", ")))
    }
}

/// Which accesses blocks may make with no meeting of the grid in between.
struct Together {
    /// None if there are no meetings of the grid.
    pairs: Option<BTreeSet<(StmtId, StmtId)>>,
}

impl Together {
    fn of(kernel: &Kernel) -> Self {
        let mut meets = false;
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            meets |= matches!(stmt.kind, StmtKind::SyncGrid { .. });
        });
        let mut walk = Walk::default();
        if meets {
            walk.block(&kernel.body, BTreeSet::new());
        }
        Self { pairs: meets.then_some(walk.pairs) }
    }

    fn may(&self, one: StmtId, other: StmtId) -> bool {
        let is_pair = |pairs: &BTreeSet<_>| pairs.contains(&(one, other)) || pairs.contains(&(other, one));
        self.pairs.as_ref().is_none_or(is_pair)
    }
}

/// A way through a kernel: the accesses since the last meeting of the grid.
#[derive(Default)]
struct Walk {
    pairs: BTreeSet<(StmtId, StmtId)>,
    /// What was accessed where loops and blocks are left, or go on.
    exits: QuickMap<Label, BTreeSet<StmtId>>,
}

impl Walk {
    fn block(&mut self, block: &Block, before: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        block.stmts.iter().fold(before, |since, stmt| self.stmt(stmt, since))
    }

    fn stmt(&mut self, stmt: &Stmt, mut since: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        if Touch::of(stmt).is_some() {
            self.pairs.extend(since.iter().map(|earlier| (*earlier, stmt.id)));
            since.insert(stmt.id);
            return since;
        }
        if let StmtKind::SyncGrid { .. } = stmt.kind {
            return BTreeSet::new();
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
        union(ended, self.exits.get(&label))
    }
}

fn union(mut one: BTreeSet<StmtId>, other: Option<&BTreeSet<StmtId>>) -> BTreeSet<StmtId> {
    one.extend(other.into_iter().flatten());
    one
}
