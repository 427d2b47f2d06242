//! Values by number: equal numbers are equal values, as one thread computes them.

use crate::ir::{
    BinaryOp, Expr, ExprKind, For, IntegerOp, Kernel, LocalId, MathOp, Scalar, Special, StmtKind, UnaryOp,
    visit,
};
use crate::quick::QuickMap;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) id: u32,
    /// What it is, if it is known.
    pub(super) int: Option<i128>,
    /// Whether threads of a block may have different ones.
    pub(super) by_thread: bool,
    /// Whether blocks may have different ones.
    pub(super) by_block: bool,
    /// Whether a thread may have another one in each turn of a loop.
    pub(super) by_turn: bool,
    /// Whether different threads of a block may have the same, although it is made of their numbers.
    folds: bool,
}

impl Number {
    /// Whether it is a block's place in the grid that decides it.
    pub(super) const fn is_of_blocks_alone(self) -> bool {
        self.by_block && !self.by_thread
    }

    /// Whether each thread of a block has another one.
    pub(super) fn is_own(self) -> bool {
        self.by_thread && !self.folds
    }
}

/// The numbers of a kernel's values.
#[derive(Default)]
pub(super) struct Numbers {
    /// Whether the block's threads are in a line, so that one index tells them apart.
    in_line: bool,
    /// How often variables are given a value.
    times: QuickMap<LocalId, usize>,
    /// The numbers of variables that are given one value for good.
    given: QuickMap<LocalId, Number>,
    /// The numbers of what was computed, by the operation and its operands.
    known: QuickMap<(Operation, Vec<u32>), Number>,
    /// The conjunctions, comparisons and sums among these, by their numbers: what they are of.
    conjunctions: QuickMap<u32, Vec<Number>>,
    compared: QuickMap<u32, Vec<Number>>,
    sums: QuickMap<u32, Vec<Number>>,
    count: u32,
}

impl Numbers {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let extents = kernel.launch.threads.iter().filter(|extent| **extent > 1);
        let mut all = Self { in_line: extents.count() < 2, ..Self::default() };
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            if let StmtKind::Assign { local, .. } = &stmt.kind {
                *all.times.entry(*local).or_default() += 1;
            }
        });
        all
    }

    /// Notes what a variable is given.
    pub(super) fn assign(&mut self, local: LocalId, value: &Expr) {
        if self.times.get(&local) == Some(&1) {
            let number = self.number(value);
            self.given.insert(local, number);
        }
    }

    /// The range of a loop, and what its variable is. Two loops over the same range give the same
    /// values; of loops in each other over one range each is told from the other by `outer`, the number
    /// of such loops around it.
    pub(super) fn range(&mut self, inner: &For, outer: impl Fn(u32) -> usize) -> Number {
        let operands = [&inner.start, &inner.end, &inner.step].map(|expr| self.number(expr));
        let range = self.of_parts(Operation::Range { inclusive: inner.inclusive }, &operands, false);
        let counter = self.of_parts(Operation::Counter { outer: outer(range.id) }, &[range], false);
        // Threads that begin with numbers of their own are taken to go on with such.
        let [start, ..] = operands;
        self.given.insert(inner.variable, Number { by_turn: true, folds: !start.is_own(), ..counter });
        range
    }

    /// A value that no other equals, and of which nothing is known.
    pub(super) fn fresh(&mut self) -> Number {
        self.count += 1;
        Number { id: self.count, int: None, by_thread: true, by_block: true, by_turn: true, folds: true }
    }

    /// The number of a value. Each operation is looked at once: variables have their numbers.
    pub(super) fn number(&mut self, expr: &Expr) -> Number {
        if let ExprKind::Local(local) = expr.kind {
            return self.local(local);
        }
        let operands: Vec<_> =
            visit::operands_of(expr).into_iter().map(|operand| self.number(operand)).collect();
        let Some(operation) = operation(expr) else { return self.fresh() };
        let number = self.of_parts(operation, &operands, folds(&expr.kind));
        if let ExprKind::Special(special) = &expr.kind {
            let number = Number {
                by_thread: matches!(
                    special,
                    Special::ThreadIdx(_) | Special::LaneIdx | Special::WarpIdx | Special::WarpgroupIdx
                ),
                by_block: matches!(
                    special,
                    Special::BlockIdx(_)
                        | Special::ClusterIdx(_)
                        | Special::BlockInCluster(_)
                        | Special::ClusterRank
                ),
                folds: !(self.in_line && matches!(special, Special::ThreadIdx(_))),
                ..number
            };
            return number;
        }
        if let ExprKind::Binary(BinaryOp::Eq, ..) = &expr.kind {
            self.compared.insert(number.id, operands);
        } else if let ExprKind::Binary(BinaryOp::And, ..) = &expr.kind {
            self.conjunctions.insert(number.id, operands);
        } else if let ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, ..) | ExprKind::Cast(_) = &expr.kind {
            self.sums.insert(number.id, operands);
        }
        Number { int: expr.as_int(), ..number }
    }

    /// The number of what a variable holds now.
    pub(super) fn local(&mut self, local: LocalId) -> Number {
        match (self.given.get(&local), self.times.get(&local)) {
            (Some(number), _) => *number,
            // Given several values in turn.
            (None, Some(2..)) => self.fresh(),
            // What a statement gives.
            (None, None | Some(_)) => {
                let fresh = self.fresh();
                self.given.insert(local, fresh);
                fresh
            }
        }
    }

    /// What is equal to something else than zero if a condition holds, and what that is a sum of.
    /// `stored` tells what a value is that was loaded.
    pub(super) fn equal(&self, condition: u32, stored: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
        let parts = |of: &QuickMap<u32, Vec<Number>>, id| -> Vec<u32> {
            let stored = stored(id);
            of.get(&id).into_iter().flatten().map(|part| part.id).chain(stored).collect()
        };
        let conditions = reached(vec![condition], |id| parts(&self.conjunctions, id));
        let sides = conditions.iter().filter_map(|id| self.compared.get(id));
        let sides = sides.filter(|sides| sides.iter().all(|side| side.int != Some(0))).flatten();
        reached(sides.map(|side| side.id).collect(), |id| parts(&self.sums, id))
    }

    /// The number of an operation on these.
    fn of_parts(&mut self, operation: Operation, operands: &[Number], folds: bool) -> Number {
        let key = (operation, operands.iter().map(|operand| operand.id).collect());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let number = Number {
            int: None,
            by_thread: operands.iter().any(|operand| operand.by_thread),
            by_block: operands.iter().any(|operand| operand.by_block),
            by_turn: operands.iter().any(|operand| operand.by_turn),
            folds: folds || operands.iter().any(|operand| operand.by_thread && operand.folds),
            ..self.fresh()
        };
        self.known.insert(key, number);
        number
    }
}

/// These and all that is reached from them.
fn reached(mut all: Vec<u32>, from: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut next = 0;
    while let Some(&id) = all.get(next) {
        for other in from(id) {
            if !all.contains(&other) {
                all.push(other);
            }
        }
        next += 1;
    }
    all
}

/// Whether an operation may give the same for different operands.
fn folds(kind: &ExprKind) -> bool {
    !matches!(
        kind,
        ExprKind::Const(_)
            | ExprKind::Param(_)
            | ExprKind::Cast(_)
            | ExprKind::Special(_)
            | ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl, ..)
    )
}

/// What is done with operands, so that equal ones give equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Operation {
    /// What has no operands, as it is written.
    Leaf(String),
    Unary(UnaryOp),
    Binary(BinaryOp),
    Integer(IntegerOp),
    Math(MathOp),
    Cast(Scalar),
    Bits(Scalar),
    Array,
    Repeat(u32),
    Index,
    /// From the first operand to the second, in steps of the third.
    Range {
        inclusive: bool,
    },
    /// A number of a range, in a loop within so many others over that range.
    Counter {
        outer: usize,
    },
}

/// What an expression does with its operands, if it gives equal values for equal ones.
fn operation(expr: &Expr) -> Option<Operation> {
    let scalar = expr.ty.as_scalar();
    match &expr.kind {
        ExprKind::Const(_)
        | ExprKind::Shared(_)
        | ExprKind::Param(_)
        | ExprKind::GlobalLen(_)
        | ExprKind::Special(_) => Some(Operation::Leaf(format!("{:?}", expr.kind))),
        ExprKind::Unary(op, _) => Some(Operation::Unary(*op)),
        ExprKind::Binary(op, ..) => Some(Operation::Binary(*op)),
        ExprKind::Integer(op, _) => Some(Operation::Integer(*op)),
        ExprKind::Math(op, _) => Some(Operation::Math(*op)),
        ExprKind::Cast(_) => scalar.map(Operation::Cast),
        ExprKind::Bits(_) => scalar.map(Operation::Bits),
        ExprKind::Array(_) => Some(Operation::Array),
        ExprKind::Repeat(_) => expr.ty.elements().map(|(_, len)| Operation::Repeat(len)),
        ExprKind::Index(..) => Some(Operation::Index),
        ExprKind::Local(_)
        | ExprKind::ZeroAccumulator
        | ExprKind::Stage(..)
        | ExprKind::CachePolicy(..)
        | ExprKind::Hinted(..)
        | ExprKind::Remote(..)
        | ExprKind::Choice(_)
        | ExprKind::Compound(_)
        | ExprKind::MapAt(..)
        | ExprKind::Unit
        | ExprKind::Error => None,
    }
}
