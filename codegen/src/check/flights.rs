//! Multiplications in flight: how many groups each wait leaves open, and where an accumulator is
//! known to be zero.
//!
//! Groups of a warpgroup complete in the order in which they were committed (PTX ISA,
//! "wgmma.wait_group"), so a wait for one states how many younger ones may be left. That number
//! must be known at compile time: on all paths to a statement, the same multiplications must be
//! open. A multiplication that is still open where a thread ends is an error.

use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::{
    Awaited, Block, ExprKind, Kernel, Label, LeftOperand, LocalId, Span, Stmt, StmtId, StmtKind, visit,
};
use crate::quick::{QuickMap, QuickSet};

/// Facts about the multiplications of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    /// The number of groups that each wait leaves open.
    pending: QuickMap<StmtId, u32>,
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
    let mut walk = Walk { kernel, sink, flights: Flights::default(), exits: QuickMap::default(), loops: 0 };
    let end = walk.block(&kernel.body, Some(State::default()));
    walk.all_over(end.as_ref());
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
    /// Whether it was in flight at the beginning of an iteration of a loop.
    crosses: bool,
    /// Whether its flight began a sum, and does not complete before it is waited for.
    begins: bool,
}

struct Walk<'k, 's> {
    kernel: &'k Kernel,
    sink: &'s mut Sink,
    flights: Flights,
    /// The facts at the jumps that leave each label, and at those that continue its loop.
    exits: QuickMap<Label, Exits>,
    /// The number of loops around the current statement.
    loops: u32,
}

#[derive(Default)]
struct Exits {
    leave: Option<State>,
    next: Option<State>,
}

impl Walk<'_, '_> {
    /// Returns the facts after `block`, or `None` if control does not get there.
    fn block(&mut self, block: &Block, before: Option<State>) -> Option<State> {
        block.stmts.iter().fold(before, |state, stmt| self.stmt(stmt, state?))
    }

    fn stmt(&mut self, stmt: &Stmt, mut state: State) -> Option<State> {
        if self.loops > 0 && state.is_open() {
            self.flights.in_flight.insert(stmt.id);
        }
        match &stmt.kind {
            StmtKind::Mma(mma) => {
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
                Some(state)
            }
            StmtKind::MmaWait { accumulator, awaited } => {
                let mut groups = state.open.iter().rposition(|group| group.accumulator == *accumulator);
                if *awaited == Awaited::Older {
                    let older = groups.and_then(|newest| state.open.get(..newest)).unwrap_or_default();
                    groups = older.iter().rposition(|group| group.accumulator == *accumulator);
                }
                let (over, younger) = state.open.split_at(groups.map_or(0, |last| last + 1));
                // ptxas does not count groups across iterations of loops. It serialises a
                // multiplication whose accumulator is touched while anything is in flight (its
                // C7514, C7518).
                let crosses = over.iter().any(|group| group.accumulator == *accumulator && group.crosses);
                let pending = if crosses && *awaited == Awaited::All { 0 } else { younger.len() };
                self.flights.pending.insert(stmt.id, u32::try_from(pending).unwrap_or(u32::MAX));
                if over.iter().all(|group| group.accumulator == *accumulator && group.begins) {
                    self.flights.of_new_sums.insert(stmt.id);
                }
                // Older groups of other accumulators are complete as well, but their flights still
                // have to be waited for. Such a wait may leave as many groups as are younger, which
                // is right for a flight that is complete.
                let others = over.iter().filter(|group| group.accumulator != *accumulator);
                let complete = others.map(|group| Group { begins: false, ..group.clone() });
                state.open = complete.chain(younger.iter().cloned()).collect();
                Some(state)
            }
            StmtKind::Assign { local, index, value } => {
                let is_zero = index.is_empty() && matches!(value.kind, ExprKind::ZeroAccumulator);
                if is_zero {
                    state.zero.insert(*local);
                } else {
                    state.zero.remove(local);
                }
                Some(state)
            }
            StmtKind::If { condition: _, then, otherwise } => {
                let (one, other) =
                    (self.block(then, Some(state.clone())), self.block(otherwise, Some(state)));
                self.join(one, other, stmt.origin.span)
            }
            StmtKind::Match { value: _, arms, otherwise } => {
                let mut joined = self.block(otherwise, Some(state.clone()));
                for arm in arms {
                    let one = self.block(&arm.body, Some(state.clone()));
                    joined = self.join(joined, one, stmt.origin.span);
                }
                joined
            }
            StmtKind::Loop { label, body } => self.repeat(*label, &[body], state, (false, stmt.origin.span)),
            StmtKind::While { label, header, condition: _, body } => {
                self.repeat(*label, &[header, body], state, (true, stmt.origin.span))
            }
            StmtKind::For(inner) => self.repeat(inner.label, &[&inner.body], state, (true, stmt.origin.span)),
            StmtKind::Labelled { label, body } => {
                self.exits.insert(*label, Exits::default());
                let end = self.block(body, Some(state));
                let left = self.exits.remove(label).and_then(|exits| exits.leave);
                self.join(end, left, stmt.origin.span)
            }
            StmtKind::Break(label) | StmtKind::Leave(label) => {
                let before = self.exits.get_mut(label).and_then(|exits| exits.leave.take());
                let joined = self.join(before, Some(state), stmt.origin.span);
                self.exits.entry(*label).or_default().leave = joined;
                None
            }
            StmtKind::Continue(label) => {
                let before = self.exits.get_mut(label).and_then(|exits| exits.next.take());
                let joined = self.join(before, Some(state), stmt.origin.span);
                self.exits.entry(*label).or_default().next = joined;
                None
            }
            StmtKind::Return => {
                self.all_over(Some(&state));
                None
            }
            StmtKind::Trap => None,
            StmtKind::TileGet { .. }
            | StmtKind::TileSet { .. }
            | StmtKind::SharedGet { .. }
            | StmtKind::SharedSet { .. }
            | StmtKind::GlobalGet { .. }
            | StmtKind::GlobalSet { .. }
            | StmtKind::Atomic(_)
            | StmtKind::TileCopy(_)
            | StmtKind::BulkCopy(_)
            | StmtKind::RemoteCopy(_)
            | StmtKind::PrefetchMap(_)
            | StmtKind::Barrier { .. }
            | StmtKind::EditMap { .. }
            | StmtKind::AcquireMap { .. }
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::Pack { .. }
            | StmtKind::StoreAccumulator { .. }
            | StmtKind::CheckMatrix(_)
            | StmtKind::StoreMatrix(_)
            | StmtKind::ReduceRows { .. }
            | StmtKind::LoadFragment(_)
            | StmtKind::MmaSync(_)
            | StmtKind::StoreWarp(_)
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::NamedBarrierSync { .. }
            | StmtKind::NamedBarrierArrive { .. }
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::ElectOne { .. }
            | StmtKind::Warp { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Printf { .. }
            | StmtKind::PrintTile { .. } => Some(state),
        }
    }

    /// Walks a loop. If it `may_end`, it may be left before its first iteration.
    fn repeat(
        &mut self,
        label: Label,
        bodies: &[&Block],
        mut before: State,
        (may_end, span): (bool, Span),
    ) -> Option<State> {
        // A local that an iteration writes is not zero at the beginning of every iteration.
        for body in bodies {
            visit::for_each_stmt(body, &mut |stmt| {
                if let StmtKind::Mma(mma) = &stmt.kind {
                    before.zero.remove(&mma.accumulator);
                } else if let StmtKind::Assign { local, .. } = &stmt.kind {
                    before.zero.remove(local);
                }
            });
        }
        before.open.iter_mut().for_each(|group| group.crosses = true);
        self.exits.insert(label, Exits::default());
        self.loops += 1;
        let end = bodies.iter().try_fold(before.clone(), |state, body| self.block(body, Some(state)));
        self.loops -= 1;
        let Exits { leave, next } = self.exits.remove(&label).unwrap_or_default();
        if [Some(&before), end.as_ref(), next.as_ref(), leave.as_ref()]
            .into_iter()
            .flatten()
            .any(State::is_open)
        {
            for body in bodies {
                visit::for_each_stmt(body, &mut |stmt| _ = self.flights.in_flight.insert(stmt.id));
            }
        }
        for iteration in [end, next].into_iter().flatten() {
            self.join(Some(before.clone()), Some(iteration), span);
        }
        let ended = may_end.then_some(before);
        self.join(ended, leave, span)
    }

    /// Joins the facts of two paths, and reports if different multiplications are open on them.
    fn join(&mut self, one: Option<State>, other: Option<State>, span: Span) -> Option<State> {
        let (mut one, other) = match (one, other) {
            (Some(one), Some(other)) => (one, other),
            (only, None) | (None, only) => return only,
        };
        one.zero.retain(|local| other.zero.contains(local));
        one.open.iter_mut().zip(&other.open).for_each(|(group, same)| {
            group.crosses |= same.crosses;
            group.begins &= same.begins;
        });
        let differs = |(a, b): (&Group, &Group)| a.accumulator != b.accumulator;
        if one.open.len() != other.open.len() || one.open.iter().zip(&other.open).any(differs) {
            let open = one.open.last().or(other.open.last());
            let open = open.map(|group| group.span);
            self.sink.error(mistake::Mma::OpenOnOnePath { open }, span);
            // One report is enough.
            one.open.clear();
        }
        Some(one)
    }

    /// Reports the multiplications that are still in flight where a thread ends.
    fn all_over(&mut self, end: Option<&State>) {
        for group in end.into_iter().flat_map(|state| &state.open) {
            let accumulator = self.kernel.local(group.accumulator).name.clone();
            self.sink.error(mistake::Mma::NeverAwaited { accumulator }, group.span);
        }
    }
}
