//! Accesses to global memory, and which of them blocks may make to the same elements.
//!
//! `protocol` follows the threads of a block, or of a cluster. Of others nothing is known but that
//! they do the same. So threads are taken to write elements of their own, which the report says. But
//! what a thread reads at another place than it writes, others may write; and unless all blocks meet
//! in between (`sync_grid`), nothing that is followed orders the two (PTX ISA, "Memory Consistency
//! Model", "Conflict and data-races"). An element whose index does not depend on the thread belongs
//! to no thread (`one_element`), and a scope that leaves out other blocks orders nothing for them.

use std::collections::BTreeSet;

use super::one_element;
use crate::check::protocol::{Doubt, Why};
use crate::ir::{
    AtomicPlace, BinaryOp, Block, CopyKind, Expr, ExprKind, For, Kernel, Label, LocalId, MemoryScope,
    ParamId, Scalar, Span, Special, Stmt, StmtId, StmtKind, visit,
};
use crate::quick::QuickMap;

/// An access to the memory of a parameter.
#[derive(Clone, Debug)]
pub(super) struct Touch<'k> {
    pub(super) stmt: &'k Stmt,
    pub(super) param: ParamId,
    pub(super) by_copy: bool,
    pub(super) writes: bool,
    /// None of a plain access.
    scope: Option<MemoryScope>,
    /// The index or coordinates.
    at: Vec<&'k Expr>,
}

impl<'k> Touch<'k> {
    /// By a statement.
    fn of(stmt: &'k Stmt) -> Option<Self> {
        let by_copy = |param, writes: Option<bool>, at| {
            writes.map(|writes| Self { stmt, param, by_copy: true, writes, scope: None, at })
        };
        let by_threads =
            |param, writes, at| Some(Self { stmt, param, by_copy: false, writes, scope: None, at });
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
            touch.map(|touch| Self { scope: Some(atomic.scope), ..touch })
        } else {
            None
        }
    }

    /// Whether it has an order and a scope.
    pub(super) fn is_strong(&self) -> bool {
        self.scope.is_some()
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
    let plain = touches.iter().filter(|touch| touch.writes && !touch.is_strong());
    plain.map(|touch| touch.param).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Where what is done with global memory is not followed.
pub(super) fn doubts(kernel: &Kernel) -> Vec<Doubt> {
    let all = Numbered::all(kernel);
    between_blocks(kernel, &all.accesses)
        .chain(all.together.iter().copied())
        .chain(one_element::doubts(kernel, &all.accesses))
        .chain(narrow(&all.accesses))
        .map(|(why, span)| Doubt { why, span })
        .collect()
}

/// The strong accesses to memory that is written whose scopes leave out other blocks.
fn narrow<'k>(all: &'k [Located<'k>]) -> impl Iterator<Item = (Why, Span)> + 'k {
    let is_written = |param| all.iter().any(|one| one.touch.writes && one.touch.param == param);
    let is_narrow = move |one: &&Located<'_>| {
        one.touch.scope.is_some_and(|scope| scope < MemoryScope::Device) && is_written(one.touch.param)
    };
    all.iter().filter(is_narrow).map(|one| (Why::Atomics, one.touch.stmt.origin.span))
}

/// What a value depends on, beside the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Varies {
    pub(super) by_thread: bool,
    pub(super) by_block: bool,
}

impl Varies {
    const UNKNOWN: Self = Self { by_thread: true, by_block: true };

    fn of(special: Special) -> Self {
        match special {
            Special::ThreadIdx(_) | Special::LaneIdx | Special::WarpIdx | Special::WarpgroupIdx => {
                Self { by_thread: true, by_block: false }
            }
            Special::BlockIdx(_)
            | Special::ClusterIdx(_)
            | Special::BlockInCluster(_)
            | Special::ClusterRank => Self { by_thread: false, by_block: true },
            Special::GridDim(_) | Special::ClusterDim(_) => Self::default(),
        }
    }

    fn or(self, other: Self) -> Self {
        let by_thread = self.by_thread || other.by_thread;
        Self { by_thread, by_block: self.by_block || other.by_block }
    }
}

/// A condition that holds of the threads at a statement: this index of theirs is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) special: Special,
    number: u32,
}

/// An access, the numbers of its index or coordinates, and which threads make it.
pub(super) struct Located<'k> {
    pub(super) touch: Touch<'k>,
    pub(super) place: Vec<u32>,
    pub(super) varies: Varies,
    pub(super) pins: Vec<Pin>,
}

/// The accesses by which a block may meet what others write, with nothing that is followed between.
fn between_blocks<'k>(kernel: &'k Kernel, all: &'k [Located<'k>]) -> impl Iterator<Item = (Why, Span)> + 'k {
    let together = Together::of(kernel, |kind| matches!(kind, StmtKind::SyncGrid { .. }));
    let mut written: QuickMap<ParamId, Vec<&Located<'_>>> = QuickMap::default();
    for one in all.iter().filter(|one| one.touch.writes || one.touch.is_strong()) {
        written.entry(one.touch.param).or_default().push(one);
    }
    let conflicts = move |one: &Located<'_>, with: &Located<'_>| {
        let is_mixed = with.touch.is_strong() && (one.touch.writes || with.touch.writes);
        let is_elsewhere = one.place.is_empty() || one.place != with.place;
        let is_read = !with.touch.is_strong() && !one.touch.writes && is_elsewhere;
        (is_mixed || is_read) && together.may(one.touch.stmt.id, with.touch.stmt.id)
    };
    let is_judged = |one: &&Located<'_>| !one.touch.is_strong() && !kernel.is_trusted(one.touch.stmt.origin);
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
    varies: Varies,
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
    /// What the counters of loops depend on.
    counters: QuickMap<LocalId, Varies>,
    /// The numbers that say where a thread is.
    specials: QuickMap<u32, Special>,
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
        all.block(kernel, &kernel.body, &[]);
        all
    }

    /// The statements of a block, where these pins hold.
    fn block(&mut self, kernel: &'k Kernel, block: &'k Block, pins: &[Pin]) {
        let is_first = std::ptr::eq(block, &raw const kernel.body) && kernel.launch.thread_count() > 1;
        for stmt in &block.stmts {
            if let StmtKind::Assign { local, index, value } = &stmt.kind
                && index.is_empty()
                && self.times.get(local) == Some(&1)
            {
                let number = self.number(value);
                self.given.insert(*local, number);
            }
            if let StmtKind::GlobalSet { index, value, .. } = &stmt.kind
                && is_first
                && !kernel.is_trusted(stmt.origin)
                && self.number(index).is_of_block
                && !self.number(value).is_of_block
            {
                self.together.push((Why::Together, stmt.origin.span));
            }
            if let Some(touch) = Touch::of(stmt) {
                let numbers: Vec<_> = touch.at.iter().map(|at| self.number(at)).collect();
                let varies = numbers.iter().fold(Varies::default(), |all, number| all.or(number.varies));
                let place = numbers.iter().map(|number| number.id).collect();
                self.accesses.push(Located { touch, place, varies, pins: pins.to_vec() });
            }
            if let StmtKind::For(inner) = &stmt.kind {
                self.counter(inner);
            }
            if let StmtKind::If { condition, then, otherwise } = &stmt.kind {
                let mut more = pins.to_vec();
                self.pins(condition, &mut more);
                self.block(kernel, then, &more);
                self.block(kernel, otherwise, pins);
            } else {
                visit::blocks(&stmt.kind).into_iter().for_each(|inner| self.block(kernel, inner, pins));
            }
        }
    }

    fn counter(&mut self, inner: &For) {
        let [start, step] = [&inner.start, &inner.step].map(|expr| self.number(expr).varies);
        self.counters.insert(inner.variable, start.or(step));
    }

    /// What holds of a thread where a condition holds.
    fn pins(&mut self, condition: &Expr, pins: &mut Vec<Pin>) {
        let ExprKind::Binary(op, left, right) = &condition.kind else { return };
        if *op == BinaryOp::And {
            self.pins(left, pins);
            self.pins(right, pins);
        } else if *op == BinaryOp::Eq {
            let [left, right] = [left, right].map(|side| self.number(side));
            for (place, number) in [(left, right), (right, left)] {
                if let Some(&special) = self.specials.get(&place.id)
                    && number.varies == Varies::default()
                    && number.is_of_block
                {
                    pins.push(Pin { special, number: number.id });
                }
            }
        }
    }

    /// A value that no other equals.
    fn fresh(&mut self, is_of_block: bool, varies: Varies) -> Number {
        self.count += 1;
        Number { id: self.count, is_of_block, varies }
    }

    /// The number of a value. Each operation is looked at once: variables have their numbers.
    fn number(&mut self, expr: &Expr) -> Number {
        if let ExprKind::Local(local) = expr.kind {
            return match (self.given.get(&local), self.times.get(&local)) {
                (Some(number), _) => *number,
                // Given several values in turn.
                (None, Some(2..)) => self.fresh(false, Varies::UNKNOWN),
                // A counter, or what a statement gives.
                (None, None | Some(_)) => {
                    let varies = self.counters.get(&local).copied().unwrap_or(Varies::UNKNOWN);
                    self.of((format!("{local:?}"), vec![]), false, varies)
                }
            };
        }
        let operands: Vec<_> =
            visit::operands_of(expr).into_iter().map(|operand| self.number(operand)).collect();
        let is_of_block = operands.iter().all(|operand| operand.is_of_block);
        let varies = operands.iter().fold(Varies::default(), |all, operand| all.or(operand.varies));
        let (is_leaf, ids) = (operands.is_empty(), operands.iter().map(|operand| operand.id).collect());
        if let ExprKind::Binary(op, ..) = &expr.kind {
            self.of((format!("{op:?}"), ids), is_of_block, varies)
        } else if let ExprKind::Unary(op, _) = &expr.kind {
            self.of((format!("{op:?}"), ids), is_of_block, varies)
        } else if let ExprKind::Integer(op, _) = &expr.kind {
            self.of((format!("{op:?}"), ids), is_of_block, varies)
        } else if let ExprKind::Cast(_) = &expr.kind {
            self.of((format!("{:?}", expr.ty.as_scalar().unwrap_or(Scalar::U32)), ids), is_of_block, varies)
        } else if let ExprKind::Special(special) = expr.kind {
            let varies = Varies::of(special);
            let number = self.of((format!("{:?}", expr.kind), ids), !varies.by_thread, varies);
            self.specials.insert(number.id, special);
            number
        } else if is_leaf {
            self.of((format!("{:?}", expr.kind), ids), true, varies)
        } else {
            self.fresh(is_of_block, varies)
        }
    }

    /// The number of an operation.
    fn of(&mut self, operation: (String, Vec<u32>), is_of_block: bool, varies: Varies) -> Number {
        if let Some(known) = self.known.get(&operation) {
            return *known;
        }
        let number = self.fresh(is_of_block, varies);
        self.known.insert(operation, number);
        number
    }
}

/// Which accesses threads may make with no meeting of all of them in between.
pub(super) struct Together {
    /// None if there are no meetings.
    pairs: Option<BTreeSet<(StmtId, StmtId)>>,
}

impl Together {
    /// With these statements as meetings.
    pub(super) fn of(kernel: &Kernel, is_meeting: fn(&StmtKind) -> bool) -> Self {
        let mut meets = false;
        visit::for_each_stmt(&kernel.body, &mut |stmt| meets |= is_meeting(&stmt.kind));
        let mut walk = Walk::new(is_meeting);
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
struct Walk {
    is_meeting: fn(&StmtKind) -> bool,
    pairs: BTreeSet<(StmtId, StmtId)>,
    /// Loops that were gone through: the accesses before them, and those at their ends. So loops
    /// within loops are not gone through again where nothing has come to them.
    loops: QuickMap<Label, (BTreeSet<StmtId>, BTreeSet<StmtId>)>,
    /// The accesses before loops and blocks are left, or go on.
    exits: QuickMap<Label, BTreeSet<StmtId>>,
}

impl Walk {
    fn new(is_meeting: fn(&StmtKind) -> bool) -> Self {
        let (pairs, loops, exits) = (BTreeSet::new(), QuickMap::default(), QuickMap::default());
        Self { is_meeting, pairs, loops, exits }
    }

    fn block(&mut self, block: &Block, before: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        block.stmts.iter().fold(before, |since, stmt| self.stmt(stmt, since))
    }

    fn stmt(&mut self, stmt: &Stmt, mut since: BTreeSet<StmtId>) -> BTreeSet<StmtId> {
        if Touch::of(stmt).is_some() {
            self.pairs.extend(since.iter().map(|earlier| (*earlier, stmt.id)));
            since.insert(stmt.id);
            return since;
        }
        if (self.is_meeting)(&stmt.kind) {
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
