//! Accesses to global memory with the numbers of their places, and the conditions that lead to them.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::numbers::{Number, Numbers};
use super::touch::Touch;
use super::unordered::Ordering;
use crate::ir::{Block, ExprKind, Kernel, SharedId, Stmt, StmtKind, visit};
use crate::quick::QuickMap;

/// An access, where it is made, and by whom.
pub(super) struct Located<'k> {
    pub(super) touch: Touch<'k>,
    pub(super) place: Vec<Number>,
    /// What is written by it, if it is one value.
    pub(super) value: Option<Number>,
    /// What an atomic operation returns.
    pub(super) given: Option<Number>,
    pub(super) guards: Vec<Guard>,
}

/// That a condition decides who goes on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Guard {
    pub(super) condition: Number,
    /// Which way.
    arm: usize,
    /// Whether it is that a loop has a turn.
    pub(super) is_of_loop: bool,
    /// The values that are equal to something else than zero here, and what these are sums of.
    equal: Rc<[u32]>,
}

impl Guard {
    /// Whether one who passes this does not pass the other at the same time.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        self.condition.id == other.condition.id && self.arm != other.arm
    }

    /// Whether it asks how many were counted before, by a count that returned this.
    pub(super) fn is_last_of(&self, given: u32) -> bool {
        self.arm == 0 && self.equal.contains(&given)
    }
}

/// What of a kernel concerns the order of blocks, as its source has it.
#[derive(Default)]
pub(super) struct Kept<'k> {
    pub(super) accesses: Vec<Located<'k>>,
    /// Statements that may order memory.
    pub(super) orders: Vec<Ordering<'k>>,
}

pub(super) fn all(kernel: &Kernel) -> Kept<'_> {
    let mut walk = Walk {
        kernel,
        numbers: Numbers::of(kernel),
        guards: vec![],
        ranges: vec![],
        stored: QuickMap::default(),
        loaded: QuickMap::default(),
        kept: Kept::default(),
    };
    walk.block(&kernel.body);
    walk.kept
}

/// A way through a kernel.
struct Walk<'k> {
    kernel: &'k Kernel,
    numbers: Numbers,
    guards: Vec<Guard>,
    /// The ranges of the loops around a place.
    ranges: Vec<u32>,
    /// What was stored last in a shared array, and from which array a value was loaded.
    stored: QuickMap<SharedId, u32>,
    loaded: QuickMap<u32, SharedId>,
    kept: Kept<'k>,
}

impl<'k> Walk<'k> {
    /// The guard of an arm of a condition.
    fn guard(&self, condition: Number, arm: usize) -> Guard {
        let stored = |id| self.loaded.get(&id).and_then(|array| self.stored.get(array)).copied();
        let equal = self.numbers.equal(condition.id, stored).into();
        Guard { condition, arm, is_of_loop: false, equal }
    }

    fn turn(condition: Number) -> Guard {
        Guard { condition, arm: 0, is_of_loop: true, equal: Rc::from([]) }
    }

    fn block(&mut self, block: &'k Block) {
        let outside = self.guards.len();
        for stmt in &block.stmts {
            self.stmt(stmt);
            // Only some threads may come to what is behind it.
            if leaves(stmt) {
                let condition = self.numbers.fresh();
                self.guards.push(Self::turn(condition));
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
        if let Some(touch) = Touch::of(self.kernel, stmt) {
            let place = touch.at.iter().map(|at| self.numbers.number(at)).collect();
            let value = if let StmtKind::GlobalSet { value, .. } = &stmt.kind {
                Some(self.numbers.number(value))
            } else {
                None
            };
            let given = if let StmtKind::Atomic(atomic) = &stmt.kind {
                atomic.dest().map(|dest| self.numbers.local(dest))
            } else {
                None
            };
            self.kept.accesses.push(Located { touch, place, value, given, guards: self.guards.clone() });
        }
        if let StmtKind::Atomic(_)
        | StmtKind::Fence(_)
        | StmtKind::Sync(_)
        | StmtKind::SyncGrid { .. }
        | StmtKind::GridDependency(_)
        | StmtKind::Barrier { .. } = &stmt.kind
        {
            self.kept.orders.push(Ordering { stmt, guards: self.guards.clone() });
        }
        if let StmtKind::SharedSet { array, value, .. } = &stmt.kind
            && let ExprKind::Shared(id) = array.kind
        {
            let number = self.numbers.number(value);
            self.stored.insert(id, number.id);
        }
        if let StmtKind::SharedGet { dest, array, .. } = &stmt.kind
            && let ExprKind::Shared(id) = array.kind
        {
            let number = self.numbers.local(*dest);
            self.loaded.insert(number.id, id);
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
            let blocks = arms.iter().map(|arm| &arm.body).chain([otherwise]);
            for (arm, block) in blocks.enumerate() {
                self.guarded(self.guard(condition, arm), block);
            }
        } else if let StmtKind::For(inner) = &stmt.kind {
            let ranges = &self.ranges;
            let outer = |range| ranges.iter().filter(|around| **around == range).count();
            let condition = self.numbers.range(inner, outer);
            self.ranges.push(condition.id);
            self.guarded(Self::turn(condition), &inner.body);
            self.ranges.pop();
        } else if let StmtKind::Loop { .. } | StmtKind::While { .. } = &stmt.kind {
            let condition = self.numbers.fresh();
            for block in visit::blocks(&stmt.kind) {
                self.guarded(Self::turn(condition), block);
            }
        } else {
            visit::blocks(&stmt.kind).into_iter().for_each(|block| self.block(block));
        }
    }
}

/// Whether threads may leave the block that a statement is in.
fn leaves(stmt: &Stmt) -> bool {
    let (mut inside, mut left): (BTreeSet<u32>, BTreeSet<u32>) = (BTreeSet::new(), BTreeSet::new());
    let mut ends = false;
    let mut look = |stmt: &Stmt| {
        if let StmtKind::Loop { label, .. }
        | StmtKind::While { label, .. }
        | StmtKind::Labelled { label, .. } = &stmt.kind
        {
            inside.insert(label.0);
        } else if let StmtKind::For(inner) = &stmt.kind {
            inside.insert(inner.label.0);
        } else if let StmtKind::Break(label) | StmtKind::Continue(label) | StmtKind::Leave(label) = &stmt.kind
        {
            left.insert(label.0);
        }
        ends |= matches!(stmt.kind, StmtKind::Return);
    };
    look(stmt);
    for block in visit::blocks(&stmt.kind) {
        visit::for_each_stmt(block, &mut look);
    }
    ends || left.iter().any(|label| !inside.contains(label))
}
