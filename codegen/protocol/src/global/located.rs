//! Accesses to global memory, with the numbers of their indices and the conditions that lead to
//! them.

use std::collections::BTreeSet;
use std::rc::Rc;

use tma_front::ir::{
    Arm, Block, ExprKind, Flow, JumpTarget, Kernel, LocalId, Loop, Scalar, SharedId, Stmt, StmtId, StmtKind,
    visit,
};
use tma_front::quick::{QuickMap, QuickSet};

use super::access::GlobalAccess;
use super::numbers::{ValueNumber, ValueNumbers};
use super::unordered::Ordering;

/// An access, its location, and the threads that make it.
pub(super) struct Located<'k> {
    pub(super) access: GlobalAccess<'k>,
    pub(super) indices: Vec<ValueNumber>,
    /// The value that it writes, if it is one value.
    pub(super) value: Option<ValueNumber>,
    /// The result of an atomic operation.
    pub(super) returned: Option<ValueNumber>,
    /// The index, if the loop around the access, which goes through all blocks, were at the
    /// thread's own.
    pub(super) index_at_own_block: Vec<ValueNumber>,
    pub(super) guards: Vec<Guard>,
    /// Whether the guards select one thread of each block.
    pub(super) is_of_one_thread: bool,
}

/// A condition that selects threads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Guard {
    pub(super) condition: ValueNumber,
    pub(super) kind: GuardKind,
    /// The branch that is taken.
    arm: usize,
    /// The operands of the equalities that hold here, except those with 0, and the terms that they
    /// add.
    equated: Rc<[u32]>,
    /// The counts that have counted all other blocks, if this holds.
    all_others: Rc<[u32]>,
}

/// The origin of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardKind {
    /// An `if` or `match`.
    Arm,
    /// A loop, which may have no iterations.
    Loop,
    /// An earlier statement, at which some threads may leave the block.
    AfterExit,
}

impl GlobalSummary<'_> {
    /// Whether the threads that issue a copy also reach the end of a group, or a wait. Both concern
    /// only the copies of their own thread.
    pub(super) fn is_of_the_same(&self, copy: StmtId, group: StmtId) -> bool {
        let made = self.accesses.iter().find(|one| one.access.stmt.id == copy);
        let Some((made, guards)) = made.zip(self.groups.get(&group)) else { return false };
        let leads_there = |guard: &Guard| {
            let is_same = |other: &Guard| other.condition.id == guard.condition.id && other.arm == guard.arm;
            // A loop over the same range has as many iterations.
            let is_lasting = guard.kind == GuardKind::Loop || !guard.condition.by_iteration;
            is_lasting && made.guards.iter().any(is_same)
        };
        guards.iter().all(leads_there)
    }
}

impl Guard {
    /// Returns the condition, if it holds here.
    fn holds(&self) -> Option<u32> {
        (self.kind == GuardKind::Arm && self.arm == 0).then_some(self.condition.id)
    }

    /// Whether a thread that passes this guard does not pass the other one at the same time.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        self.condition.id == other.condition.id && self.arm != other.arm
    }

    /// Whether it selects threads of a block by thread index, and by nothing else.
    pub(super) fn is_of_threads(&self) -> bool {
        let ValueNumber { by_thread, by_block, by_iteration, .. } = self.condition;
        self.kind == GuardKind::Arm && by_thread && !by_block && !by_iteration
    }

    /// Whether the launch or data decide it, and not the index of a thread or block.
    pub(super) fn is_of_launch(&self) -> bool {
        let is_by_index = self.condition.by_thread || self.condition.by_block;
        self.kind == GuardKind::AfterExit || self.kind == GuardKind::Arm && !is_by_index
    }

    /// Whether the guard shows that all other blocks were counted before, by a count that returned
    /// `count`.
    pub(super) fn follows_all_others(&self, count: u32) -> bool {
        self.kind == GuardKind::Arm && self.arm == 0 && self.all_others.contains(&count)
    }

    /// Whether the guard compares how many blocks were counted before, by a count that returned
    /// `count`.
    pub(super) fn is_last_of(&self, count: u32) -> bool {
        self.arm == 0 && self.equated.contains(&count)
    }
}

/// The parts of a kernel that concern the order of blocks, in the order of the source.
#[derive(Default)]
pub(super) struct GlobalSummary<'k> {
    pub(super) accesses: Vec<Located<'k>>,
    /// Statements that may order memory.
    pub(super) orders: Vec<Ordering<'k>>,
    /// The conditions that lead to each end of a group of copies, and to each wait for all groups
    /// of a thread.
    pub(super) groups: QuickMap<StmtId, Vec<Guard>>,
    /// Whether the kernel reads the block's index in the grid.
    pub(super) reads_block_index: bool,
    /// Whether the blocks form a line, as far as the kernel can tell.
    pub(super) blocks_in_line: bool,
}

pub(super) fn all(kernel: &Kernel) -> GlobalSummary<'_> {
    let mut walk = Walk {
        kernel,
        numbers: ValueNumbers::of(kernel),
        guards: vec![],
        ranges: vec![],
        stored: QuickMap::default(),
        loaded: QuickMap::default(),
        set_once: set_once(kernel),
        blocks: vec![],
        summary: GlobalSummary::default(),
    };
    walk.block(&kernel.body);
    let ValueNumbers { reads_block_index, blocks_in_line, .. } = walk.numbers;
    GlobalSummary { reads_block_index, blocks_in_line, ..walk.summary }
}

/// A walk through a kernel.
struct Walk<'k> {
    kernel: &'k Kernel,
    numbers: ValueNumbers,
    guards: Vec<Guard>,
    /// The ranges of the loops around the current statement.
    ranges: Vec<u32>,
    /// The value stored last at an index of a shared array, and the stored value of each loaded
    /// one.
    stored: QuickMap<(SharedId, u32), u32>,
    loaded: QuickMap<u32, u32>,
    /// The shared arrays that a single statement writes.
    set_once: QuickSet<SharedId>,
    /// The counters of the loops around the current statement that go through all blocks.
    blocks: Vec<LocalId>,
    summary: GlobalSummary<'k>,
}

impl<'k> Walk<'k> {
    /// Returns the guard of an arm of a condition.
    fn guard(&self, condition: ValueNumber, arm: usize) -> Guard {
        let loaded = |id: u32| self.loaded.get(&id).copied();
        let equated = self.numbers.equated(condition.id, loaded).into();
        let all_others = self.numbers.counts_of_all_others(condition.id, loaded).into();
        Guard { condition, kind: GuardKind::Arm, arm, equated, all_others }
    }

    /// Returns a guard of which nothing else is known.
    fn unknown(condition: ValueNumber, kind: GuardKind) -> Guard {
        Guard { condition, kind, arm: 0, equated: Rc::from([]), all_others: Rc::from([]) }
    }

    fn block(&mut self, block: &'k Block) {
        let outside = self.guards.len();
        for stmt in &block.stmts {
            self.stmt(stmt);
            // Only some threads may reach the statements after it.
            if leaves(stmt) {
                let condition = self.numbers.fresh();
                self.guards.push(Self::unknown(condition, GuardKind::AfterExit));
            }
        }
        self.guards.truncate(outside);
    }

    fn guarded(&mut self, guard: Guard, block: &'k Block) {
        self.guards.push(guard);
        self.block(block);
        self.guards.pop();
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        if let Some(access) = GlobalAccess::of(self.kernel, stmt) {
            let indices = access.at.iter().map(|at| self.numbers.number(at)).collect();
            let value = if let StmtKind::GlobalSet { value, .. } = &stmt.kind {
                Some(self.numbers.number(value))
            } else {
                None
            };
            let returned = if let StmtKind::Atomic(atomic) = &stmt.kind {
                atomic.dest().map(|dest| self.numbers.local(dest))
            } else {
                None
            };
            let index_at_own_block = self.blocks.last().map_or_else(Vec::new, |&block| {
                access.at.iter().map(|at| self.numbers.with_block(block, at)).collect()
            });
            let conditions: Vec<_> = self.guards.iter().filter_map(Guard::holds).collect();
            let is_of_one_thread = self.numbers.is_of_one_thread(&conditions);
            let guards = self.guards.clone();
            let located =
                Located { access, indices, value, returned, index_at_own_block, guards, is_of_one_thread };
            self.summary.accesses.push(located);
        }
        if let StmtKind::BulkCommitGroup | StmtKind::BulkWaitGroup { pending: 0, read_only: false } =
            stmt.kind
        {
            self.summary.groups.insert(stmt.id, self.guards.clone());
        }
        if let StmtKind::Atomic(_)
        | StmtKind::Fence(_)
        | StmtKind::Sync(_)
        | StmtKind::SyncGrid { .. }
        | StmtKind::GridDependency(_)
        | StmtKind::Barrier { .. } = &stmt.kind
        {
            self.summary.orders.push(Ordering { stmt, guards: self.guards.clone() });
        }
        self.note_shared(stmt);
        if let StmtKind::ElectOne { dest } = &stmt.kind {
            self.numbers.elects(*dest);
        }
        if let StmtKind::Assign { local, index, value } = &stmt.kind
            && index.is_empty()
        {
            self.numbers.assign(*local, value);
        } else if let StmtKind::If { condition, then, otherwise } = &stmt.kind {
            let condition = self.numbers.number(condition);
            for (arm, block) in [then, otherwise].into_iter().enumerate() {
                self.guarded(self.guard(condition, arm), block);
            }
        } else if let StmtKind::Match { value, arms, otherwise } = &stmt.kind {
            let condition = self.numbers.number(value);
            // Arms are identified by their patterns. They are those of this statement, or
            // correspond to those of an `if`.
            let truth = (value.ty.as_scalar() == Some(Scalar::Bool)).then_some(condition);
            let condition = truth.unwrap_or_else(|| self.numbers.like(condition));
            let patterns = arms.iter().map(|arm| Some(&arm.ranges)).chain([None]);
            let blocks = arms.iter().map(|arm| &arm.body).chain([otherwise]);
            for (number, (ranges, block)) in patterns.zip(blocks).enumerate() {
                // Arm 0 means that a condition holds, which no arm of a number does.
                let arm = if truth.is_some() { arm_of_truth(arms, ranges) } else { number + 1 };
                self.guarded(self.guard(condition, arm), block);
            }
        } else if let StmtKind::For(inner) = &stmt.kind {
            let ranges = &self.ranges;
            let outer = |range| ranges.iter().filter(|around| **around == range).count();
            let condition = self.numbers.range(inner, outer);
            self.ranges.push(condition.id);
            let outside = self.blocks.len();
            if self.numbers.goes_through_blocks(inner) {
                self.blocks.push(inner.variable);
            }
            self.guarded(Self::unknown(condition, GuardKind::Loop), &inner.body);
            self.blocks.truncate(outside);
            self.ranges.pop();
        } else if let StmtKind::Loop { .. } | StmtKind::While { .. } = &stmt.kind {
            let condition = self.numbers.fresh();
            for block in visit::blocks(&stmt.kind) {
                self.guarded(Self::unknown(condition, GuardKind::Loop), block);
            }
        } else {
            visit::blocks(&stmt.kind).into_iter().for_each(|block| self.block(block));
        }
    }
}

impl Walk<'_> {
    /// Records values that pass through shared memory to all threads of a block.
    fn note_shared(&mut self, stmt: &Stmt) {
        if let StmtKind::SharedSet { array, index, value } = &stmt.kind
            && let ExprKind::Shared(id) = array.kind
            && self.set_once.contains(&id)
        {
            let [index, value] = [index, value].map(|expr| self.numbers.number(expr).id);
            self.stored.insert((id, index), value);
        } else if let StmtKind::SharedGet { dest, array, index } = &stmt.kind
            && let ExprKind::Shared(id) = array.kind
        {
            let [index, dest] = [self.numbers.number(index).id, self.numbers.local(*dest).id];
            if let Some(stored) = self.stored.get(&(id, index)) {
                self.loaded.insert(dest, *stored);
            }
        }
    }
}

/// Returns the arm of an `if` for the truth values of these ranges, or for those that are left.
fn arm_of_truth(arms: &[Arm], ranges: Option<&Vec<(i128, i128)>>) -> usize {
    let has =
        |ranges: &[(i128, i128)], value| ranges.iter().any(|(low, high)| (*low..=*high).contains(&value));
    let holds = match ranges {
        Some(ranges) => has(ranges, 1),
        None => !arms.iter().any(|arm| has(&arm.ranges, 1)),
    };
    usize::from(!holds)
}

/// Returns the shared arrays that only one statement writes, by any name. A read there returns the
/// value that it wrote.
fn set_once(kernel: &Kernel) -> QuickSet<SharedId> {
    let (mut once, mut again) = (QuickSet::default(), QuickSet::default());
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::SharedSet { array, .. } = &stmt.kind
            && let ExprKind::Shared(id) = array.kind
        {
            if !once.insert(id) {
                again.insert(id);
            }
        } else if !matches!(stmt.kind, StmtKind::SharedGet { .. }) {
            for operand in visit::operands(&stmt.kind) {
                visit::each_shared(operand, &mut |id| _ = again.insert(id));
            }
        }
    });
    once.difference(&again).copied().filter(|&id| !kernel.is_overlapped(id)).collect()
}

/// Whether threads may leave the block that contains a statement.
fn leaves(stmt: &Stmt) -> bool {
    let (mut inside, mut left): (BTreeSet<u32>, BTreeSet<u32>) = (BTreeSet::new(), BTreeSet::new());
    let mut ends = false;
    let mut look = |stmt: &Stmt| match stmt.flow() {
        Flow::Loop(Loop { label, .. }) | Flow::Labelled(label, _) => _ = inside.insert(label.0),
        Flow::Jump(JumpTarget::After(label) | JumpTarget::NextIteration(label)) => {
            left.insert(label.0);
        }
        Flow::Jump(JumpTarget::Return) => ends = true,
        Flow::Fallthrough | Flow::If(..) | Flow::Match(..) | Flow::Trap => {}
    };
    look(stmt);
    for block in visit::blocks(&stmt.kind) {
        visit::for_each_stmt(block, &mut look);
    }
    ends || left.iter().any(|label| !inside.contains(label))
}
