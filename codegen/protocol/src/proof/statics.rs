//! Static facts about the steps of a kernel: which variables are read again, which ones count the
//! iterations of a loop, and after how many iterations their quotients and remainders repeat.

use tma_front::ir::{BinaryOp, Const, Expr, ExprKind, LocalId, Scalar, Stmt, StmtId, StmtKind, visit};
use tma_front::quick::{QuickMap, QuickSet};

use crate::code::{Op, Step, Steps};
use crate::slice::parity;
use crate::to_u32;

/// Longer periods are of no use, since that many iterations are not explored.
const MAX_PERIOD: i128 = 1 << 10;

/// Static facts about the steps.
#[derive(Debug)]
pub(crate) struct Statics {
    /// For each step, the variables that it or a later one reads.
    live: Vec<Locals>,
    /// For each step, the loops that may begin before the loops around it continue, as bits.
    ahead: Vec<u128>,
    bits: QuickMap<StmtId, u32>,
    /// The loop of each counter.
    pub(super) loops: QuickMap<usize, StmtId>,
    /// Variables that only grow in the iterations of a loop.
    counting: QuickSet<(LocalId, StmtId)>,
    /// Variables that differ from the counter of a loop by the same number in each iteration.
    following: QuickSet<(LocalId, StmtId)>,
    /// The variables of `for` loops.
    pub(super) variables: QuickMap<StmtId, LocalId>,
    /// The number of iterations after which the quotients and remainders of counters repeat.
    pub(super) period: i128,
    pub(super) precision: Precision,
}

/// How many of the decisions a widened state retains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precision {
    /// The greatest difference of counters that share a symbol of iterations.
    pub(super) max_distance: i128,
    /// How many iterations back decisions are retained.
    pub(super) past: i128,
    /// The last iteration in which groups are waited for that have yet to reach a loop of their
    /// own.
    pub(super) awaited: u32,
}

impl Precision {
    /// Enough for most kernels, with few states.
    pub(crate) const COARSE: Self = Self { max_distance: 2, past: 0, awaited: 0 };

    /// Returns the precision for rings of `stages` stages. Groups are as far apart as the stages
    /// reach.
    pub(crate) fn of_ring(stages: u32) -> Self {
        Self { max_distance: i128::from(stages) + 1, past: i128::from(stages), awaited: stages + 2 }
    }
}

impl Statics {
    pub(crate) fn of(code: &Steps<'_>, locals: usize) -> Self {
        let steps: Vec<_> = code.steps().collect();
        let (mut loops, mut variables, mut bits) =
            (QuickMap::default(), QuickMap::default(), QuickMap::default());
        for step in &steps {
            if let Op::Enter(of) = step.op {
                let next = to_u32(bits.len());
                bits.insert(of, next);
            }
            if let Op::Count { stmt, inner, counter, .. } = &step.op {
                loops.insert(*counter, stmt.id);
                variables.insert(stmt.id, inner.variable);
            }
        }
        let counting = counting(&steps);
        let period = Periods::of(&steps).longest(counting.iter().map(|(local, _)| local), &variables);
        let locals = to_u32(locals);
        let ahead = ahead(&steps, &bits);
        let (live, precision) = (live(&steps, locals), Precision::COARSE);
        let following = QuickSet::default();
        let all = Self { live, ahead, bits, loops, counting, following, variables, period, precision };
        Self { following: following_of(&steps, &|local, of| all.counts(local, of)), ..all }
    }

    /// Returns the same facts with another precision.
    pub(crate) fn with(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Whether a group at a step may reach a loop.
    pub(super) fn may_loop(&self, at: usize) -> bool {
        self.ahead.get(at).is_none_or(|ahead| *ahead != 0)
    }

    /// Whether a variable is read at a step or later.
    pub(super) fn is_live(&self, at: usize, local: LocalId) -> bool {
        self.live.get(at).is_none_or(|live| live.has(local))
    }

    /// Whether a group at a step may reach one of these loops that it is not in.
    pub(super) fn is_behind(&self, at: usize, inside: &[StmtId], loops: &[StmtId]) -> bool {
        let ahead = self.ahead.get(at).copied().unwrap_or(0);
        let bit = |of: &StmtId| self.bits.get(of).is_some_and(|bit| ahead >> bit.min(&127) & 1 == 1);
        loops.iter().any(|of| !inside.contains(of) && bit(of))
    }

    /// Whether a variable differs by a number from one that counts the iterations of a loop.
    pub(super) fn follows(&self, local: LocalId, of: StmtId) -> bool {
        self.following.contains(&(local, of))
    }

    /// Whether a variable counts the iterations of a loop.
    pub(super) fn counts(&self, local: LocalId, of: StmtId) -> bool {
        self.counting.contains(&(local, of)) || self.variables.get(&of) == Some(&local)
    }
}

/// Returns the expressions that a step evaluates.
fn expressions<'k>(op: &Op<'k>) -> Vec<&'k Expr> {
    match op {
        Op::Do(stmt) => visit::operands(&stmt.kind),
        Op::Branch { condition, .. } => vec![*condition],
        Op::Choose { value, .. } => vec![*value],
        Op::Begin { inner, .. } => vec![&inner.start, &inner.end, &inner.step],
        Op::Count { .. } | Op::Next { .. } | Op::Enter(_) | Op::BeginIteration(_) | Op::Jump(_) | Op::End => {
            vec![]
        }
    }
}

/// Returns the variable that a step overwrites completely.
fn replaced(op: &Op<'_>) -> Option<LocalId> {
    match op {
        Op::Do(Stmt { kind: StmtKind::Assign { local, index, .. }, .. }) if index.is_empty() => Some(*local),
        Op::Do(_) => None,
        Op::Count { inner, .. } => Some(inner.variable),
        Op::Branch { .. }
        | Op::Choose { .. }
        | Op::Begin { .. }
        | Op::Next { .. }
        | Op::Enter(_)
        | Op::BeginIteration(_)
        | Op::Jump(_)
        | Op::End => None,
    }
}

/// Adds the variables that a step reads.
fn read(op: &Op<'_>, live: &mut Locals) {
    for expr in expressions(op) {
        visit::each_local(expr, &mut |local| live.insert(local));
    }
    if let Op::Do(Stmt { kind: StmtKind::Assign { local, index, .. }, .. }) = op
        && !index.is_empty()
    {
        live.insert(*local);
    }
}

/// Returns the steps that may follow a step.
fn successors(at: usize, op: &Op<'_>) -> Vec<usize> {
    match op {
        Op::Branch { otherwise, .. } => vec![at + 1, *otherwise],
        Op::Choose { arms, otherwise, .. } => arms.iter().map(|(_, to)| *to).chain([*otherwise]).collect(),
        Op::Count { end, .. } => vec![at + 1, *end],
        Op::Jump(to) => vec![*to],
        Op::End => vec![],
        Op::Do(_) | Op::Begin { .. } | Op::Next { .. } | Op::Enter(_) | Op::BeginIteration(_) => vec![at + 1],
    }
}

/// A set of variables, as bits.
#[derive(Clone, Debug, Default, PartialEq)]
struct Locals(Vec<u64>);

impl Locals {
    fn of(count: u32) -> Self {
        Self(vec![0; count.div_ceil(64) as usize])
    }

    fn has(&self, local: LocalId) -> bool {
        self.0.get(local.0 as usize / 64).is_some_and(|bits| bits >> (local.0 % 64) & 1 == 1)
    }

    fn insert(&mut self, local: LocalId) {
        if let Some(bits) = self.0.get_mut(local.0 as usize / 64) {
            *bits |= 1 << (local.0 % 64);
        }
    }

    fn remove(&mut self, local: LocalId) {
        if let Some(bits) = self.0.get_mut(local.0 as usize / 64) {
            *bits &= !(1 << (local.0 % 64));
        }
    }

    fn extend(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(bits, others)| *bits |= others);
    }
}

fn live(steps: &[&Step<'_>], count: u32) -> Vec<Locals> {
    let reads: Vec<Locals> = steps
        .iter()
        .map(|step| {
            let mut reads = Locals::of(count);
            read(&step.op, &mut reads);
            reads
        })
        .collect();
    let mut live = reads.clone();
    loop {
        let mut changed = false;
        for (at, step) in steps.iter().enumerate().rev() {
            let mut now = Locals::of(count);
            for to in successors(at, &step.op) {
                live.get(to).into_iter().for_each(|live| now.extend(live));
            }
            if let Some(local) = replaced(&step.op) {
                now.remove(local);
            }
            now.extend(&reads[at]);
            changed |= now != live[at];
            live[at] = now;
        }
        if !changed {
            return live;
        }
    }
}

/// Returns for each step the loops that may begin after it, before the step is taken again.
fn ahead(steps: &[&Step<'_>], bits: &QuickMap<StmtId, u32>) -> Vec<u128> {
    let mut ahead = vec![0; steps.len()];
    for (at, step) in steps.iter().enumerate().rev() {
        let later = successors(at, &step.op).into_iter().filter(|to| *to > at);
        let all = later.filter_map(|to| ahead.get(to)).fold(0, |all, loops| all | loops);
        let own = if let Op::Enter(of) = step.op { bits.get(&of).copied() } else { None };
        ahead[at] = all | own.map_or(0, |bit| 1 << bit.min(127));
    }
    ahead
}

/// Returns the variables to which each assignment within a loop adds a constant.
fn counting(steps: &[&Step<'_>]) -> QuickSet<(LocalId, StmtId)> {
    let (mut grow, mut others) = (QuickSet::default(), QuickSet::default());
    for step in steps {
        if let Op::Do(Stmt { kind: StmtKind::Assign { local, index, value }, .. }) = &step.op {
            let set = if index.is_empty() && is_grown(value, *local) { &mut grow } else { &mut others };
            set.extend(step.loops.iter().map(|of| (*local, *of)));
        }
    }
    grow.difference(&others).copied().collect()
}

/// Returns the variables that every assignment in a loop sets to the loop's counter plus or minus a
/// number that is the same in all iterations.
fn following_of(
    steps: &[&Step<'_>],
    counts: &impl Fn(LocalId, StmtId) -> bool,
) -> QuickSet<(LocalId, StmtId)> {
    let mut changed: QuickSet<(LocalId, StmtId)> = QuickSet::default();
    for step in steps {
        let of_loops = |local| step.loops.iter().map(move |of| (local, *of));
        changed.extend(replaced(&step.op).into_iter().flat_map(of_loops));
    }
    let (mut follow, mut others) = (QuickSet::default(), QuickSet::default());
    for step in steps {
        let Op::Do(Stmt { kind: StmtKind::Assign { local, value, .. }, .. }) = &step.op else { continue };
        for key in step.loops.iter().map(|of| (*local, *of)) {
            let iterations = counter_coefficient(value, &|local| {
                let is_same = !changed.contains(&(local, key.1));
                if counts(local, key.1) { Some(1) } else { is_same.then_some(0) }
            });
            let set = if iterations == Some(1) { &mut follow } else { &mut others };
            set.insert(key);
        }
    }
    follow.difference(&others).copied().collect()
}

/// Returns the coefficient of the loop's counter in an expression, if the expression is a sum. `of`
/// returns the coefficients in variables.
fn counter_coefficient(expr: &Expr, of: &impl Fn(LocalId) -> Option<i32>) -> Option<i32> {
    if let ExprKind::Local(local) = expr.kind {
        return of(local);
    }
    let bytes = |expr: &Expr| expr.ty.as_scalar().map(Scalar::bytes);
    if let ExprKind::Cast(inner) = &expr.kind
        && bytes(inner) <= bytes(expr)
    {
        return counter_coefficient(inner, of);
    }
    if let ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b, _) = &expr.kind {
        let (a, b) = (counter_coefficient(a, of)?, counter_coefficient(b, of)?);
        return Some(if *op == BinaryOp::Add { a + b } else { a - b });
    }
    let parts = visit::operands_of(expr);
    parts.iter().all(|part| counter_coefficient(part, of) == Some(0)).then_some(0)
}

/// Whether an expression adds a constant to a variable.
fn is_grown(value: &Expr, local: LocalId) -> bool {
    let is_local = |expr: &Expr| matches!(expr.kind, ExprKind::Local(read) if read == local);
    if let ExprKind::Binary(BinaryOp::Add, a, b, _) = &value.kind {
        return (is_local(a) && number(b).is_some()) || (is_local(b) && number(a).is_some());
    }
    false
}

fn number(expr: &Expr) -> Option<i128> {
    let inner = if let ExprKind::Cast(inner) = &expr.kind { inner } else { expr };
    if let ExprKind::Const(Const::Int(number)) = inner.kind { Some(number) } else { None }
}

/// The moduli to which variables have to be known. A modulus of 1 means that nothing depends on the
/// variable.
#[derive(Debug, Default)]
struct Periods {
    of: QuickMap<LocalId, i128>,
    changed: bool,
}

impl Periods {
    fn of(steps: &[&Step<'_>]) -> Self {
        let mut periods = Self::default();
        loop {
            periods.changed = false;
            for step in steps {
                periods.step(&step.op);
            }
            if !periods.changed {
                return periods;
            }
        }
    }

    fn step(&mut self, op: &Op<'_>) {
        expressions(op).into_iter().for_each(|expr| self.want(expr, 1));
        match op {
            Op::Do(stmt) => self.statement(&stmt.kind),
            Op::Begin { inner, .. } => {
                let wanted = self.of.get(&inner.variable).copied().unwrap_or(1);
                self.want(&inner.start, wanted);
                self.want(&inner.step, wanted);
            }
            Op::Branch { .. }
            | Op::Choose { .. }
            | Op::Count { .. }
            | Op::Next { .. }
            | Op::Enter(_)
            | Op::BeginIteration(_)
            | Op::Jump(_)
            | Op::End => {}
        }
    }

    fn statement(&mut self, kind: &StmtKind) {
        if let StmtKind::Assign { local, value, .. } = kind {
            let wanted = self.of.get(local).copied().unwrap_or(1);
            self.want(value, wanted);
        }
        if let StmtKind::Barrier { op, .. } = kind
            && let Some(parity) = parity(op)
        {
            self.want(parity, 2);
        }
    }

    /// Records that an expression is needed modulo this number.
    fn want(&mut self, expr: &Expr, modulo: i128) {
        if modulo > MAX_PERIOD {
            return;
        }
        if let ExprKind::Local(local) = expr.kind {
            let known = self.of.entry(local).or_insert(1);
            let common = lcm(*known, modulo);
            if common != *known && common <= MAX_PERIOD {
                *known = common;
                self.changed = true;
            }
        } else if let ExprKind::Cast(inner) = &expr.kind {
            self.want(inner, modulo);
        } else if let ExprKind::Binary(op, a, b, _) = &expr.kind {
            self.want(a, of_operand(*op, number(b), modulo));
            self.want(b, modulo);
        } else {
            visit::operands_of(expr).into_iter().for_each(|part| self.want(part, 1));
        }
    }

    /// Returns the least common period of all variables that count.
    fn longest<'a>(
        &self,
        counting: impl Iterator<Item = &'a LocalId>,
        variables: &'a QuickMap<StmtId, LocalId>,
    ) -> i128 {
        let mut all: Vec<i128> =
            counting.chain(variables.values()).filter_map(|local| self.of.get(local).copied()).collect();
        all.sort_unstable();
        all.into_iter().fold(1, |period, of| {
            let common = lcm(period, of);
            if common > MAX_PERIOD { period } else { common }
        })
    }
}

/// Returns the modulus to which the left operand is needed, if the result is needed modulo
/// `modulo`.
fn of_operand(op: BinaryOp, by: Option<i128>, modulo: i128) -> i128 {
    let Some(by) = by.filter(|by| *by > 0) else { return modulo };
    // The lowest clear bit: 0b1000 for 0b0111.
    let above_mask = (by + 1) & !by;
    match op {
        BinaryOp::Rem => by,
        BinaryOp::Div => by.saturating_mul(modulo),
        BinaryOp::And => above_mask,
        BinaryOp::Xor => lcm(modulo, above_mask),
        BinaryOp::Shr => by.try_into().ok().and_then(|by| modulo.checked_shl(by)).unwrap_or(i128::MAX),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Or
        | BinaryOp::Shl
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => modulo,
    }
}

fn lcm(a: i128, b: i128) -> i128 {
    if b == 1 {
        return a.max(1); // the usual case, and divisions are slow
    }
    let (mut x, mut y) = (a.max(1), b.max(1));
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a.max(1) / x * b.max(1)
}
