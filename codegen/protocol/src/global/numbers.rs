//! Value numbering: equal numbers are equal values, as one thread computes them.

use tma_front::ir::{
    Axis, BinaryOp, Cluster, Expr, ExprKind, For, Kernel, LocalId, Scalar, Special, StmtKind, Type, visit,
};
use tma_front::limits::WARP_THREADS;
use tma_front::quick::QuickMap;

use super::block_range::{self, BlockRange};
use super::operation::{self, Operation};

/// A numbered value, and its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueNumber {
    pub(super) id: u32,
    /// The value, if it is known.
    pub(super) int: Option<i128>,
    /// Whether it may differ among the threads of a block.
    pub(super) by_thread: bool,
    /// Whether it may differ among blocks.
    pub(super) by_block: bool,
    /// Whether it may differ among the iterations of a loop.
    pub(super) by_iteration: bool,
    /// Whether it may differ among launches, by a parameter or the extents of the grid.
    by_launch: bool,
    /// The value as a linear function of thread and block index, if it is one.
    linear: Option<Linear>,
    /// The range of the value, beside a multiple of the block index.
    pub(super) block_range: Option<BlockRange>,
}

/// The sum of `thread * threadIdx.x`, `block * blockIdx.x`, and a number that is the same in all
/// threads of the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Linear {
    thread: i128,
    block: i128,
}

/// The greatest factor that does not make indices wrap.
const MAX_FACTOR: i128 = 1 << 20;

impl Linear {
    fn plus(self, other: Self, sign: i128) -> Option<Self> {
        Self { thread: self.thread + sign * other.thread, block: self.block + sign * other.block }.if_small()
    }

    fn times(self, factor: i128) -> Option<Self> {
        Self { thread: self.thread * factor, block: self.block * factor }.if_small()
    }

    fn if_small(self) -> Option<Self> {
        (self.thread.abs() <= MAX_FACTOR && self.block.abs() <= MAX_FACTOR).then_some(self)
    }
}

impl ValueNumber {
    /// Whether it depends on the block index, and not on the thread index.
    pub(super) const fn is_of_block_only(self) -> bool {
        self.by_block && !self.by_thread
    }

    /// Whether it depends on the block index and on nothing else.
    pub(super) const fn is_of_blocks_alone(self) -> bool {
        self.by_block && !self.by_thread && !self.by_iteration && !self.by_launch
    }

    /// Whether it identifies the thread in its block, and does not depend on the block.
    pub(super) fn is_of_thread(self) -> bool {
        self.linear.is_some_and(|linear| linear.thread != 0 && linear.block == 0)
    }

    /// Whether it identifies the block, if blocks have `threads` threads.
    pub(super) fn is_of_block(self, threads: u64) -> bool {
        self.linear
            .is_some_and(|linear| linear.block.abs() >= (linear.thread.abs() * i128::from(threads)).max(1))
    }

    /// Whether it identifies the thread in the grid, if blocks have `threads` threads.
    pub(super) fn is_of_grid(self, threads: u64) -> bool {
        self.is_of_block(threads) && self.linear.is_some_and(|linear| linear.thread != 0)
    }
}

/// The numbers of a kernel's values.
#[derive(Default)]
pub(super) struct ValueNumbers {
    /// Whether the threads of a block, and the blocks, form a line as far as the kernel can tell.
    /// Then an index along x identifies one of them.
    threads_in_line: bool,
    pub(super) blocks_in_line: bool,
    threads: u64,
    /// The number of threads of a block along each axis.
    extents: [u32; 3],
    /// Whether the kernel reads the block's index in the grid.
    pub(super) reads_block_index: bool,
    /// The numbers of indices and extents, and of the results of `elect_one`.
    specials: QuickMap<u32, Special>,
    elected: Vec<u32>,
    /// How often each variable is assigned.
    times: QuickMap<LocalId, usize>,
    /// The numbers of variables that keep a single value.
    single_values: QuickMap<LocalId, ValueNumber>,
    /// The numbers of computed values, by operation and operands.
    known: QuickMap<(Operation, Vec<u32>), ValueNumber>,
    /// The operands of the conjunctions, comparisons and sums among these.
    conjunctions: QuickMap<u32, Vec<ValueNumber>>,
    compared: QuickMap<u32, Vec<ValueNumber>>,
    sums: QuickMap<u32, Vec<ValueNumber>>,
    /// For numbers that are one more, or one less, than another, the other number.
    successors: QuickMap<u32, u32>,
    predecessors: QuickMap<u32, u32>,
    count: u32,
}

impl ValueNumbers {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let [_, y, z] = kernel.launch.threads;
        let mut all = Self { threads_in_line: (y, z) == (1, 1), blocks_in_line: true, ..Self::default() };
        if let Cluster::Fixed([_, y, z]) = kernel.launch.cluster {
            all.blocks_in_line = (y, z) == (1, 1);
        }
        all.threads = kernel.launch.thread_count();
        all.extents = kernel.launch.threads;
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            for operand in visit::operands(&stmt.kind) {
                visit::within(operand, &mut |part| {
                    all.reads_block_index |= matches!(
                        part.kind,
                        ExprKind::Special(
                            Special::BlockIdx(_) | Special::ClusterIdx(_) | Special::GridDim(_)
                        )
                    );
                    let is_of_cluster = matches!(
                        part.kind,
                        ExprKind::Special(
                            Special::BlockInCluster(_) | Special::ClusterRank | Special::ClusterDim(_)
                        )
                    );
                    let asks_beyond_x = matches!(
                        part.kind,
                        ExprKind::Special(
                            Special::BlockIdx(Axis::Y | Axis::Z)
                                | Special::GridDim(Axis::Y | Axis::Z)
                                | Special::ClusterIdx(_)
                        )
                    );
                    let is_unknown = is_of_cluster && kernel.launch.cluster == Cluster::AtLaunch;
                    all.blocks_in_line &= !(asks_beyond_x || is_unknown);
                });
            }
        });
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            if let StmtKind::Assign { local, .. } = &stmt.kind {
                *all.times.entry(*local).or_default() += 1;
            }
        });
        all
    }

    /// Records an assignment to a variable.
    pub(super) fn assign(&mut self, local: LocalId, value: &Expr) {
        if self.times.get(&local) == Some(&1) {
            let number = self.number(value);
            self.single_values.insert(local, number);
        }
    }

    /// Returns the range of a loop, and records its variable. Two loops over the same range give
    /// the same values. If they are nested, `outer` distinguishes them: the number of loops over
    /// that range around each.
    pub(super) fn range(&mut self, inner: &For, outer: impl Fn(u32) -> usize) -> ValueNumber {
        let operands = [&inner.start, &inner.end, &inner.step].map(|expr| self.number(expr));
        let range = self.of_parts(Operation::Range { inclusive: inner.inclusive }, &operands);
        let counter = self.of_parts(Operation::Counter { outer: outer(range.id) }, &[range]);
        let [start, end, _] = operands;
        let block_range = BlockRange::of_range(start.block_range, end.block_range, inner.inclusive);
        self.single_values
            .insert(inner.variable, ValueNumber { by_iteration: true, linear: None, block_range, ..counter });
        range
    }

    /// Returns a value that equals no other, and of which nothing is known.
    pub(super) fn fresh(&mut self) -> ValueNumber {
        self.count += 1;
        ValueNumber {
            id: self.count,
            int: None,
            by_thread: true,
            by_block: true,
            by_iteration: true,
            by_launch: true,
            linear: None,
            block_range: None,
        }
    }

    /// Returns a value that equals no other, with the same properties as `number`.
    pub(super) fn like(&mut self, number: ValueNumber) -> ValueNumber {
        ValueNumber { id: self.fresh().id, ..number }
    }

    /// Returns the number of a value. Each operation is visited once, since variables have numbers.
    pub(super) fn number(&mut self, expr: &Expr) -> ValueNumber {
        if let ExprKind::Local(local) = expr.kind {
            return self.local(local);
        }
        let operands: Vec<_> =
            visit::operands_of(expr).into_iter().map(|operand| self.number(operand)).collect();
        let Some(operation) = operation::of(expr) else { return self.fresh() };
        let mut number = self.of_parts(operation, &operands);
        if let ExprKind::Special(special) = &expr.kind {
            self.specials.insert(number.id, *special);
            let (linear, block_range) = (self.linear_of(*special), self.block_range_of(*special));
            return ValueNumber { linear, block_range, ..number.of_special(*special) };
        }
        if let ExprKind::Param(_) | ExprKind::GlobalLen(_) = &expr.kind {
            number.by_launch = true;
        }
        let is_same = !number.by_thread && !number.by_block && !number.by_iteration;
        let linear = if is_same { Some(Linear::default()) } else { linear(expr, &operands) };
        let block_range = block_range::of(expr, &operands);
        if let (ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), ..), [of, by]) =
            (&expr.kind, &operands[..])
            && by.int == Some(1)
        {
            let all = if *op == BinaryOp::Add { &mut self.successors } else { &mut self.predecessors };
            all.insert(number.id, of.id);
        }
        if let ExprKind::Binary(BinaryOp::Eq, ..) = &expr.kind {
            self.compared.insert(number.id, operands);
        } else if let ExprKind::Binary(BinaryOp::And, ..) = &expr.kind {
            self.conjunctions.insert(number.id, operands);
        } else if let ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, ..) | ExprKind::Cast(_) = &expr.kind {
            self.sums.insert(number.id, operands);
        }
        ValueNumber { int: expr.as_int(), linear, block_range, ..number }
    }

    fn block_range_of(&self, special: Special) -> Option<BlockRange> {
        let below = |extent: u32| Some(BlockRange { block: 0, least: 0, most: i128::from(extent) - 1 });
        match special {
            Special::ThreadIdx(axis) => below(self.extents[axis as usize]),
            Special::LaneIdx => below(WARP_THREADS),
            Special::BlockIdx(Axis::X) => {
                self.blocks_in_line.then_some(BlockRange { block: 1, least: 0, most: 0 })
            }
            Special::GridDim(_)
            | Special::ClusterDim(_)
            | Special::BlockIdx(_)
            | Special::ClusterIdx(_)
            | Special::BlockInCluster(_)
            | Special::ClusterRank
            | Special::WarpIdx
            | Special::WarpgroupIdx => None,
        }
    }

    fn linear_of(&self, special: Special) -> Option<Linear> {
        match special {
            Special::ThreadIdx(Axis::X) => self.threads_in_line.then_some(Linear { thread: 1, block: 0 }),
            Special::BlockIdx(Axis::X) => self.blocks_in_line.then_some(Linear { thread: 0, block: 1 }),
            Special::GridDim(_) | Special::ClusterDim(_) => Some(Linear::default()),
            Special::ThreadIdx(_)
            | Special::BlockIdx(_)
            | Special::ClusterIdx(_)
            | Special::BlockInCluster(_)
            | Special::ClusterRank
            | Special::LaneIdx
            | Special::WarpIdx
            | Special::WarpgroupIdx => None,
        }
    }

    /// Returns the number of the value that a variable holds now.
    pub(super) fn local(&mut self, local: LocalId) -> ValueNumber {
        match (self.single_values.get(&local), self.times.get(&local)) {
            (Some(number), _) => *number,
            // The variable takes several values in turn.
            (None, Some(2..)) => self.fresh(),
            // A statement other than an assignment sets the variable.
            (None, None | Some(_)) => {
                let fresh = self.fresh();
                self.single_values.insert(local, fresh);
                fresh
            }
        }
    }

    /// Whether a loop goes through the blocks of the grid along x.
    pub(super) fn goes_through_blocks(&mut self, inner: &For) -> bool {
        let ExprKind::Special(Special::GridDim(Axis::X)) = inner.end.kind else { return false };
        inner.start.as_int() == Some(0) && inner.step.as_int() == Some(1) && !inner.inclusive
    }

    /// Returns the number of a value, if a variable were the block index along x.
    pub(super) fn with_block(&mut self, variable: LocalId, expr: &Expr) -> ValueNumber {
        let block = Expr {
            kind: ExprKind::Special(Special::BlockIdx(Axis::X)),
            ty: Type::Scalar(Scalar::U32),
            span: expr.span,
        };
        let block = self.number(&block);
        let old = self.single_values.insert(variable, block);
        let number = self.number(expr);
        if let Some(old) = old {
            self.single_values.insert(variable, old);
        }
        number
    }

    /// Records that a variable says which thread is elected.
    pub(super) fn elects(&mut self, dest: LocalId) {
        // The elected thread is the same in each iteration.
        let number = ValueNumber { by_iteration: false, ..self.local(dest) };
        self.single_values.insert(dest, number);
        self.elected.push(number.id);
    }

    /// Whether conditions, and the operands of their conjunctions, select one thread of a block at
    /// most.
    pub(super) fn is_of_one_thread(&self, conditions: &[u32]) -> bool {
        let all = reached(conditions.to_vec(), |id| {
            self.conjunctions.get(&id).into_iter().flatten().map(|part| part.id).collect()
        });
        let is = |special: Special| {
            all.iter().filter_map(|id| self.compared.get(id)).any(|sides| {
                sides.iter().any(|side| self.specials.get(&side.id) == Some(&special))
                    && sides.iter().any(|side| !side.by_thread && !side.by_iteration)
            })
        };
        let is_one_of_warp = is(Special::LaneIdx) || all.iter().any(|id| self.elected.contains(id));
        self.threads_in_line && is(Special::ThreadIdx(Axis::X))
            || is_one_of_warp && (self.threads <= u64::from(WARP_THREADS) || is(Special::WarpIdx))
    }

    /// Returns the operands of the equalities that a condition implies, except those with 0, and
    /// the terms that these operands add. `stored` maps a loaded value to the one that was stored.
    pub(super) fn equated(&self, condition: u32, stored: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
        let sides = self.equalities(condition, &stored);
        let sides = sides.filter(|sides| sides.iter().all(|side| side.int != Some(0))).flatten();
        reached(sides.map(|side| side.id).collect(), |id| parts(&self.sums, id, &stored))
    }

    /// Returns both sides of each equality that a condition implies.
    fn equalities(
        &self,
        condition: u32,
        stored: &impl Fn(u32) -> Option<u32>,
    ) -> impl Iterator<Item = &Vec<ValueNumber>> {
        let conditions = reached(vec![condition], |id| parts(&self.conjunctions, id, stored));
        conditions.into_iter().filter_map(|id| self.compared.get(&id))
    }

    /// Returns the counts that a condition compares with the number of blocks minus 1. If it holds,
    /// all other blocks of the grid were counted before. `stored` maps a loaded value to the one
    /// that was stored.
    pub(super) fn counts_of_all_others(
        &self,
        condition: u32,
        stored: impl Fn(u32) -> Option<u32>,
    ) -> Vec<u32> {
        let blocks = |id: u32| self.specials.get(&id) == Some(&Special::GridDim(Axis::X));
        let count = |count: u32, other: u32| {
            let is_last = self.predecessors.get(&other).is_some_and(|of| blocks(*of));
            let before = self.successors.get(&count).copied().filter(|_| blocks(other));
            if is_last { Some(count) } else { before }
        };
        self.equalities(condition, &stored)
            .filter_map(|sides| if let [a, b] = sides[..] { Some((a.id, b.id)) } else { None })
            .flat_map(|(a, b)| [count(a, b), count(b, a)])
            .flatten()
            .collect()
    }

    /// Returns the number of an operation on these operands.
    fn of_parts(&mut self, operation: Operation, operands: &[ValueNumber]) -> ValueNumber {
        let key = (operation, operands.iter().map(|operand| operand.id).collect());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let number = ValueNumber {
            int: None,
            by_thread: operands.iter().any(|operand| operand.by_thread),
            by_block: operands.iter().any(|operand| operand.by_block),
            by_iteration: operands.iter().any(|operand| operand.by_iteration),
            by_launch: operands.iter().any(|operand| operand.by_launch),
            ..self.fresh()
        };
        self.known.insert(key, number);
        number
    }
}

impl ValueNumber {
    /// Returns the number of an index or extent, with its properties.
    fn of_special(self, special: Special) -> Self {
        let (by_thread, by_block) = match special {
            Special::ThreadIdx(_) | Special::LaneIdx | Special::WarpIdx | Special::WarpgroupIdx => {
                (true, false)
            }
            Special::BlockIdx(_)
            | Special::ClusterIdx(_)
            | Special::BlockInCluster(_)
            | Special::ClusterRank => (false, true),
            Special::GridDim(_) | Special::ClusterDim(_) => (false, false),
        };
        let by_launch = matches!(special, Special::GridDim(_) | Special::ClusterDim(_));
        Self { by_thread, by_block, by_iteration: false, by_launch, ..self }
    }
}

/// Returns an expression as a linear function of thread and block index, if it is one.
fn linear(expr: &Expr, operands: &[ValueNumber]) -> Option<Linear> {
    let bytes = |expr: &Expr| expr.ty.as_scalar().map(Scalar::bytes);
    if let (ExprKind::Cast(inner), [a]) = (&expr.kind, operands) {
        return a.linear.filter(|_| bytes(expr) >= bytes(inner));
    }
    let (ExprKind::Binary(op, ..), [a, b]) = (&expr.kind, operands) else { return None };
    if *op == BinaryOp::Add {
        a.linear?.plus(b.linear?, 1)
    } else if *op == BinaryOp::Sub {
        a.linear?.plus(b.linear?, -1)
    } else if *op == BinaryOp::Mul {
        match (a.int, b.int) {
            (Some(factor), _) => b.linear?.times(factor),
            (None, Some(factor)) => a.linear?.times(factor),
            (None, None) => None,
        }
    } else {
        None
    }
}

/// Returns the operands of a number, and the stored value if the number was loaded.
fn parts(of: &QuickMap<u32, Vec<ValueNumber>>, id: u32, stored: &impl Fn(u32) -> Option<u32>) -> Vec<u32> {
    of.get(&id).into_iter().flatten().map(|part| part.id).chain(stored(id)).collect()
}

/// Returns these numbers, and all that are reached from them.
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
