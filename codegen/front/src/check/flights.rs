//! Multiplications in flight: how many groups each wait leaves open, and where an accumulator is
//! known to be zero.
//!
//! Groups of a warpgroup complete in the order in which they were committed (PTX ISA,
//! "wgmma.wait_group"), so a wait for one states how many younger ones may be left. That number
//! must be known at compile time: on all paths to a statement, the same multiplications must be
//! open. A multiplication that is still open where a thread ends is an error.

use super::dataflow::{self, Analysis};
use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::{
    Awaited, ExprKind, Kernel, LeftOperand, LocalId, Loop, Mma, Span, Stmt, StmtId, StmtKind, visit,
};
use crate::limits::count;
use crate::quick::{QuickMap, QuickSet};

/// Facts about the multiplications of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    /// The number of groups that each wait leaves open.
    pending: QuickMap<StmtId, u32>,
    /// The number of groups that are younger than the one that each wait is for.
    younger: QuickMap<StmtId, u32>,
    /// The multiplications that begin a sum.
    first: QuickSet<StmtId>,
    /// The multiplications that continue a flight: an earlier one of the same accumulator is still
    /// in flight.
    continued: QuickSet<StmtId>,
    /// The waits for a flight that began a sum. The flight completes then, and no other with it.
    of_new_sums: QuickSet<StmtId>,
    /// The fragments and metadata that the multiplications of each accumulator read.
    registers: QuickMap<LocalId, Vec<LocalId>>,
    /// The statements in loops at which multiplications are in flight, and all statements in loops
    /// that are entered or left with multiplications in flight.
    in_flight: QuickSet<StmtId>,
}

impl Flights {
    /// Returns how many groups may be open after this wait.
    pub fn pending(&self, wait: StmtId) -> u32 {
        self.pending.get(&wait).copied().unwrap_or(0)
    }

    /// Returns how many groups are younger than the awaited one.
    pub fn younger(&self, wait: StmtId) -> u32 {
        self.younger.get(&wait).copied().unwrap_or(0)
    }

    /// Returns how many groups may be open after any wait.
    pub fn most_pending(&self) -> u32 {
        self.pending.values().copied().max().unwrap_or(0)
    }

    /// Whether the accumulator is zero before this multiplication.
    pub fn is_first(&self, mma: StmtId) -> bool {
        self.first.contains(&mma)
    }

    /// Whether a multiplication of the same accumulator is in flight before this one.
    pub fn is_continued(&self, mma: StmtId) -> bool {
        self.continued.contains(&mma)
    }

    /// Whether a wait is for a flight that began a sum. The flight completes then, and no other
    /// with it.
    pub fn is_of_new_sum(&self, wait: StmtId) -> bool {
        self.of_new_sums.contains(&wait)
    }

    /// Whether a statement is in a loop, and multiplications are in flight there, or where the loop
    /// is entered or left.
    pub fn is_in_flight(&self, stmt: StmtId) -> bool {
        self.in_flight.contains(&stmt)
    }

    /// Returns the fragments and metadata that multiplications of `accumulator` read.
    pub fn registers(&self, accumulator: LocalId) -> &[LocalId] {
        self.registers.get(&accumulator).map_or(&[], Vec::as_slice)
    }
}

/// Follows the multiplications through the kernel, and reports those that are not waited for.
pub(super) fn follow(kernel: &Kernel, sink: &mut Sink) -> Flights {
    let mut sums = QuickSet::default();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Mma(mma) = &stmt.kind {
            sums.insert(mma.accumulator);
        }
    });
    let mut walk = Walk { kernel, sink, flights: Flights::default(), sums, loops: 0 };
    dataflow::run(&mut walk, &kernel.body, State::default());
    walk.flights
}

/// The facts at a point of the kernel.
#[derive(Clone, Default)]
struct State {
    /// The groups in flight, oldest first.
    open: Vec<Group>,
    /// The accumulators that are zero.
    zero: QuickSet<LocalId>,
}

impl State {
    /// Whether multiplications are in flight.
    fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
}

/// A multiplication in flight.
#[derive(Clone)]
struct Group {
    accumulator: LocalId,
    span: Span,
    /// Whether it was in flight at the beginning of an iteration of a loop, except for unrolled
    /// loops that write no sums.
    crosses: bool,
    /// Whether its flight began a sum, and does not complete before it is waited for.
    begins: bool,
}

struct Walk<'k, 's> {
    kernel: &'k Kernel,
    sink: &'s mut Sink,
    flights: Flights,
    /// The accumulators that multiplications add to.
    sums: QuickSet<LocalId>,
    /// The number of loops around the current statement.
    loops: u32,
}

impl Analysis for Walk<'_, '_> {
    type State = State;

    /// Joins the facts of two paths, and reports if different multiplications are open on them.
    fn join(&mut self, mut one: State, other: State, at: &Stmt) -> State {
        one.zero.retain(|local| other.zero.contains(local));
        one.open.iter_mut().zip(&other.open).for_each(|(group, same)| {
            group.crosses |= same.crosses;
            group.begins &= same.begins;
        });
        let differs = |(a, b): (&Group, &Group)| a.accumulator != b.accumulator;
        if one.open.len() != other.open.len() || one.open.iter().zip(&other.open).any(differs) {
            let open = one.open.last().or(other.open.last());
            let open = open.map(|group| group.span);
            self.sink.error(mistake::Mma::OpenOnOnePath { open }, at.origin.span);
            // One report is enough.
            one.open.clear();
        }
        one
    }

    fn transfer(&mut self, stmt: &Stmt, state: &mut State) {
        if self.loops > 0 && state.is_open() {
            self.flights.in_flight.insert(stmt.id);
        }
        if let StmtKind::Mma(mma) = &stmt.kind {
            self.start(stmt, mma, state);
        } else if let StmtKind::MmaWait { accumulator, awaited } = stmt.kind {
            self.wait(stmt.id, accumulator, awaited, state);
        } else if let StmtKind::Assign { local, index, value } = &stmt.kind {
            if index.is_empty() && matches!(value.kind, ExprKind::ZeroAccumulator) {
                state.zero.insert(*local);
            } else {
                state.zero.remove(local);
            }
        }
    }

    fn enter(&mut self, inner: Loop<'_>, state: &mut State) {
        self.loops += 1;
        let mut writes_sums = false;
        for block in inner.blocks() {
            visit::for_each_stmt(block, &mut |stmt| {
                for defined in stmt.facts().defines {
                    // It is not zero at the beginning of every iteration.
                    state.zero.remove(&defined.local);
                    writes_sums |= self.sums.contains(&defined.local);
                }
            });
        }
        // No loop is left of one that is unrolled, but ptxas serialises multiplications beside
        // which it finds a sum changed: C7515.
        if !inner.is_unrolled() || writes_sums {
            state.open.iter_mut().for_each(|group| group.crosses = true);
        }
    }

    fn leave(&mut self, stmt: &Stmt, inner: Loop<'_>, before: &State, after: [Option<State>; 3]) {
        self.loops -= 1;
        if after.iter().flatten().chain([before]).any(State::is_open) {
            for block in inner.blocks() {
                visit::for_each_stmt(block, &mut |stmt| _ = self.flights.in_flight.insert(stmt.id));
            }
        }
        let [end, next, _] = after;
        for iteration in [end, next].into_iter().flatten() {
            self.join(before.clone(), iteration, stmt);
        }
    }

    /// Reports the multiplications that are still in flight where a thread ends.
    fn finish(&mut self, end: &State) {
        for group in &end.open {
            let accumulator = self.kernel.local(group.accumulator).name.clone();
            self.sink.error(mistake::Mma::NeverAwaited { accumulator }, group.span);
        }
    }
}

impl Walk<'_, '_> {
    fn start(&mut self, stmt: &Stmt, mma: &Mma, state: &mut State) {
        let fragment = match mma.left {
            LeftOperand::Registers(fragment) => Some(fragment),
            LeftOperand::Shared(_) => None,
        };
        for local in fragment.into_iter().chain(mma.metadata) {
            let read = self.flights.registers.entry(mma.accumulator).or_default();
            if !read.contains(&local) {
                read.push(local);
            }
        }
        let is_first = state.zero.remove(&mma.accumulator);
        if is_first {
            self.flights.first.insert(stmt.id);
        }
        let before = state.open.iter().rfind(|group| group.accumulator == mma.accumulator);
        if before.is_some() {
            self.flights.continued.insert(stmt.id);
        }
        state.open.push(Group {
            accumulator: mma.accumulator,
            span: stmt.origin.span,
            crosses: false,
            begins: before.map_or(is_first, |before| before.begins),
        });
    }

    fn wait(&mut self, wait: StmtId, accumulator: LocalId, awaited: Awaited, state: &mut State) {
        let mut groups = state.open.iter().rposition(|group| group.accumulator == accumulator);
        if awaited == Awaited::Older {
            let older = groups.and_then(|newest| state.open.get(..newest)).unwrap_or_default();
            groups = older.iter().rposition(|group| group.accumulator == accumulator);
        }
        let (over, younger) = state.open.split_at(groups.map_or(0, |last| last + 1));
        // Required by ptxas: see `lower/ptxas/loop_groups.rs`.
        let crosses = over.iter().any(|group| group.accumulator == accumulator && group.crosses);
        let count = count(younger.len());
        self.flights.younger.insert(wait, count);
        self.flights.pending.insert(wait, if crosses && awaited == Awaited::All { 0 } else { count });
        if over.iter().all(|group| group.accumulator == accumulator && group.begins) {
            self.flights.of_new_sums.insert(wait);
        }
        // Older groups of other accumulators are complete as well, but their flights still
        // have to be waited for. Such a wait may leave as many groups as are younger, which
        // is right for a flight that is complete.
        let others = over.iter().filter(|group| group.accumulator != accumulator);
        let complete = others.map(|group| Group { begins: false, ..group.clone() });
        state.open = complete.chain(younger.iter().cloned()).collect();
    }
}
