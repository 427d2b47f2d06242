//! Accesses to global memory, and which of them blocks may make to the same elements.
//!
//! `protocol` follows the threads of a block, or of a cluster. Of others nothing is known but that
//! they do the same. So threads are taken to write elements of their own, which the report says. But
//! what a thread reads at another place than it writes, others may write; and unless all blocks meet
//! in between (`sync_grid`), nothing that is followed orders the two (PTX ISA, "Memory Consistency
//! Model", "Conflict and data-races").

use std::collections::BTreeSet;

use crate::check::protocol::{Doubt, Why};
use crate::ir::{
    AtomicPlace, Block, CopyKind, Expr, ExprKind, Kernel, Label, LocalId, ParamId, Scalar, Span, Special,
    Stmt, StmtId, StmtKind, visit,
};
use crate::quick::{QuickMap, QuickSet};

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

/// Where what is done with global memory is not followed.
pub(super) fn doubts(kernel: &Kernel) -> Vec<Doubt> {
    let all = Numbered::all(kernel);
    between_blocks(kernel, &all.accesses)
        .chain(all.together.iter().copied())
        .map(|(why, span)| Doubt { why, span })
        .collect()
}

/// An access, and the numbers of its index or coordinates.
struct Located<'k> {
    touch: Touch<'k>,
    place: Vec<u32>,
}

/// The accesses by which a block may meet what others write, with nothing that is followed between.
fn between_blocks<'k>(kernel: &'k Kernel, all: &'k [Located<'k>]) -> impl Iterator<Item = (Why, Span)> + 'k {
    let together = Together::of(kernel);
    let mut written: QuickMap<ParamId, Vec<&Located<'_>>> = QuickMap::default();
    for one in all.iter().filter(|one| one.touch.writes || one.touch.is_strong) {
        written.entry(one.touch.param).or_default().push(one);
    }
    let conflicts = move |one: &Located<'_>, with: &Located<'_>| {
        let is_mixed = with.touch.is_strong && (one.touch.writes || with.touch.writes);
        let is_elsewhere = one.place.is_empty() || one.place != with.place;
        let is_read = !with.touch.is_strong && !one.touch.writes && is_elsewhere;
        (is_mixed || is_read) && together.may(one.touch.stmt.id, with.touch.stmt.id)
    };
    let is_judged = |one: &&Located<'_>| !one.touch.is_strong && !kernel.is_trusted(one.touch.stmt.origin);
    let meets_others = move |one: &&Located<'_>| {
        written.get(&one.touch.param).is_some_and(|others| others.iter().any(|with| conflicts(one, with)))
    };
    let spans = all.iter().filter(is_judged).filter(meets_others).map(|one| one.touch.stmt.origin.span);
    spans.map(|span| (Why::Blocks, span))
}

/// A value: equal numbers are equal values, as one thread computes them.
#[derive(Clone, Copy)]
struct Number {
    id: u32,
    /// Whether all threads of a block certainly have the same.
    is_of_block: bool,
}

/// The accesses of a kernel, located.
#[derive(Default)]
struct Numbered<'k> {
    accesses: Vec<Located<'k>>,
    /// The writes by which all threads of a block write different values to the same element.
    together: Vec<(Why, Span)>,
    /// How often variables are given a value.
    times: QuickMap<LocalId, usize>,
    /// The numbers of variables that are given one value for good.
    given: QuickMap<LocalId, Number>,
    /// The numbers of what was computed, by the operation and its operands.
    known: QuickMap<(String, Vec<u32>), Number>,
    count: u32,
}

impl<'k> Numbered<'k> {
    fn all(kernel: &'k Kernel) -> Self {
        let mut all = Self::default();
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            if let StmtKind::Assign { local, .. } = &stmt.kind {
                *all.times.entry(*local).or_default() += 1;
            }
        });
        let first: QuickSet<StmtId> = kernel.body.stmts.iter().map(|stmt| stmt.id).collect();
        let several = kernel.launch.thread_count() > 1;
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            if let StmtKind::Assign { local, index, value } = &stmt.kind
                && index.is_empty()
                && all.times.get(local) == Some(&1)
            {
                let number = all.number(value);
                all.given.insert(*local, number);
            }
            if let StmtKind::GlobalSet { index, value, .. } = &stmt.kind
                && several
                && first.contains(&stmt.id)
                && !kernel.is_trusted(stmt.origin)
                && all.number(index).is_of_block
                && !all.number(value).is_of_block
            {
                all.together.push((Why::Together, stmt.origin.span));
            }
            if let Some(touch) = Touch::of(stmt) {
                let place = touch.at.iter().map(|at| all.number(at).id).collect();
                all.accesses.push(Located { touch, place });
            }
        });
        all
    }

    /// A value that no other equals.
    fn fresh(&mut self, is_of_block: bool) -> Number {
        self.count += 1;
        Number { id: self.count, is_of_block }
    }

    /// The number of a value. Each operation is looked at once: variables have their numbers.
    fn number(&mut self, expr: &Expr) -> Number {
        if let ExprKind::Local(local) = expr.kind {
            return match (self.given.get(&local), self.times.get(&local)) {
                (Some(number), _) => *number,
                // Given several values in turn.
                (None, Some(2..)) => self.fresh(false),
                // A counter, or what a statement gives.
                (None, None | Some(_)) => self.of((format!("{local:?}"), vec![]), false),
            };
        }
        let operands: Vec<_> =
            visit::operands_of(expr).into_iter().map(|operand| self.number(operand)).collect();
        let is_of_block = operands.iter().all(|operand| operand.is_of_block);
        let (is_leaf, ids) = (operands.is_empty(), operands.iter().map(|operand| operand.id).collect());
        if let ExprKind::Binary(op, ..) = &expr.kind {
            self.of((format!("{op:?}"), ids), is_of_block)
        } else if let ExprKind::Unary(op, _) = &expr.kind {
            self.of((format!("{op:?}"), ids), is_of_block)
        } else if let ExprKind::Integer(op, _) = &expr.kind {
            self.of((format!("{op:?}"), ids), is_of_block)
        } else if let ExprKind::Cast(_) = &expr.kind {
            self.of((format!("{:?}", expr.ty.as_scalar().unwrap_or(Scalar::U32)), ids), is_of_block)
        } else if let ExprKind::Special(
            Special::ThreadIdx(_) | Special::LaneIdx | Special::WarpIdx | Special::WarpgroupIdx,
        ) = &expr.kind
        {
            self.of((format!("{:?}", expr.kind), ids), false)
        } else if is_leaf {
            self.of((format!("{:?}", expr.kind), ids), true)
        } else {
            self.fresh(is_of_block)
        }
    }

    /// The number of an operation.
    fn of(&mut self, operation: (String, Vec<u32>), is_of_block: bool) -> Number {
        if let Some(known) = self.known.get(&operation) {
            return *known;
        }
        let number = self.fresh(is_of_block);
        self.known.insert(operation, number);
        number
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
    /// Loops that were gone through: the accesses before them, and those at their ends. So loops
    /// within loops are not gone through again where nothing has come to them.
    loops: QuickMap<Label, (BTreeSet<StmtId>, BTreeSet<StmtId>)>,
    /// The accesses before loops and blocks are left, or go on.
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
