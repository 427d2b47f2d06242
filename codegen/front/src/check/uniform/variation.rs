//! The threads among which a value is the same.

use tma_model::limits::{WARP_THREADS, WARPGROUP_THREADS};

use crate::diag::mistake::Difference;
use crate::ir::{Arm, Axis, BinaryOp, Expr, ExprKind, LocalId, ShuffleOp, Span, Special, Type, WarpOp};
use crate::quick::QuickMap;

/// A set of threads among which a value is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// All threads of a warpgroup, or more.
    #[default]
    Warpgroup,
    /// All threads of a warp.
    Warp,
    /// Only the thread itself.
    Thread,
}

/// The causes by which a value differs between threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variation {
    pub(super) level: Level,
    /// The cause of a difference, and its location.
    pub(super) cause: Option<(Difference, Span)>,
    /// The value is the thread index, counted from the first thread of a warpgroup, divided by
    /// this.
    pub(super) unit: Option<u32>,
    /// A location that may make the value differ between blocks, for threads with the same index.
    pub(super) by_block: Option<Span>,
    /// Whether it depends on the lane index.
    pub(super) by_lane: bool,
    /// Whether it depends on which thread is elected.
    pub(super) by_election: bool,
    /// Whether it was read from memory that the kernel writes, so that threads may read different
    /// values.
    pub(super) by_memory: bool,
}

impl Variation {
    /// A value that differs.
    pub(super) fn differs(level: Level, cause: Difference, span: Span) -> Self {
        let (by_lane, by_election) = match cause {
            Difference::Elected => (false, true),
            Difference::Lane | Difference::Thread => (level == Level::Thread, false),
            Difference::Warp
            | Difference::Atomic
            | Difference::Elements
            | Difference::Lanes
            | Difference::PollTiming
            | Difference::Ptx => (false, false),
        };
        Self {
            level,
            cause: Some((cause, span)),
            unit: None,
            by_block: None,
            by_lane,
            by_election,
            by_memory: false,
        }
    }

    /// A value that is the same in all threads of a block, but not in other blocks.
    fn of_block(span: Span) -> Self {
        Self::default().in_blocks(span)
    }

    /// Adds that the value may differ between blocks.
    pub(super) fn in_blocks(self, span: Span) -> Self {
        Self { by_block: Some(span), ..self }
    }

    /// The thread index, divided by `unit`.
    fn number(unit: u32, cause: Difference, span: Span) -> Self {
        let level = level_of(unit);
        let cause = (level != Level::Warpgroup).then_some((cause, span));
        let by_lane = level == Level::Thread;
        Self { level, cause, unit: Some(unit), by_lane, ..Self::default() }
    }

    /// Returns the variation of a value that depends on both.
    pub(super) fn and(self, other: Self) -> Self {
        let worse = if other.level > self.level { other } else { self };
        Self {
            unit: None,
            by_block: self.by_block.or(other.by_block),
            by_lane: self.by_lane || other.by_lane,
            by_election: self.by_election || other.by_election,
            by_memory: self.by_memory || other.by_memory,
            ..worse
        }
    }

    /// Returns the properties that do not depend on locations, without the unit.
    pub(super) fn without_spans(self) -> (Level, [bool; 4]) {
        (self.level, [self.by_block.is_some(), self.by_lane, self.by_election, self.by_memory])
    }

    /// Sets the unit of which the value counts the threads, if that is known.
    pub(super) fn counting(self, unit: Option<u32>) -> Self {
        Self { unit, ..self }
    }

    /// Returns the variation of a value that is one of the two.
    fn or(self, other: Self) -> Self {
        Self { unit: self.unit.filter(|_| self.unit == other.unit), ..self.and(other) }
    }

    fn all(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), Self::and)
    }
}

/// Returns the threads among which a number that changes every `threads` threads is the same.
fn level_of(threads: u32) -> Level {
    if threads.is_multiple_of(WARPGROUP_THREADS) {
        Level::Warpgroup
    } else if threads.is_multiple_of(WARP_THREADS) {
        Level::Warp
    } else {
        Level::Thread
    }
}

/// The variation of variables at a point of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Variables {
    values: QuickMap<LocalId, Variation>,
    /// The threads of a block along x, y and z.
    threads: [u32; 3],
}

impl Variables {
    pub(super) fn new(threads: [u32; 3]) -> Self {
        Self { values: QuickMap::default(), threads }
    }

    /// Sets the variation of a local. If only a part is assigned, the old one may hold as well.
    pub(super) fn set(&mut self, local: LocalId, variation: Variation, is_whole: bool) {
        let known = self.values.get(&local).filter(|_| !is_whole);
        let variation = known.map_or(variation, |known| known.or(variation));
        self.values.insert(local, variation);
    }

    /// Joins the variables of two paths. Returns whether that changes these.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut has_changed = false;
        for (&local, &variation) in &other.values {
            let known = self.values.get(&local).copied();
            let joined = known.map_or(variation, |known| known.or(variation));
            let of = |variation: Variation| (variation.unit, variation.without_spans());
            let is_same = known.is_some_and(|known| of(known) == of(joined));
            has_changed |= !is_same;
            self.values.insert(local, joined);
        }
        has_changed
    }

    pub(super) fn of_all(&self, exprs: &[&Expr]) -> Variation {
        Variation::all(exprs.iter().map(|expr| self.of(expr)))
    }

    /// Returns the variation of the value of `expr`.
    pub(super) fn of(&self, expr: &Expr) -> Variation {
        match &expr.kind {
            ExprKind::Local(local) => self.values.get(local).copied().unwrap_or_default(),
            ExprKind::Special(special) => self.special(*special, expr.span),
            // The elements of these belong to each thread.
            ExprKind::Index(of, _) if matches!(of.ty, Type::Accumulator(_) | Type::Rows(_)) => {
                Variation::differs(Level::Thread, Difference::Elements, expr.span).in_blocks(expr.span)
            }
            // A byte does not hold every thread index.
            ExprKind::Cast(a) if expr.ty.as_scalar().is_some_and(|scalar| scalar.bytes() < 2) => {
                Variation { unit: None, ..self.of(a) }
            }
            ExprKind::Cast(a) => self.of(a),
            ExprKind::Binary(op, a, b, _) => self.binary(*op, a, b),
            ExprKind::Unary(_, a)
            | ExprKind::Bits(a)
            | ExprKind::Repeat(a)
            | ExprKind::CachePolicy(_, a)
            | ExprKind::Member(_, a) => Variation { unit: None, ..self.of(a) },
            ExprKind::Index(a, b)
            | ExprKind::Stage(a, b)
            | ExprKind::Remote(a, b)
            | ExprKind::Hinted(a, b) => self.of(a).and(self.of(b)),
            ExprKind::Math(_, all)
            | ExprKind::Integer(_, all)
            | ExprKind::Array(all)
            | ExprKind::Compound(all) => Variation::all(all.iter().map(|part| self.of(part))),
            ExprKind::Const(_)
            | ExprKind::Shared(_)
            | ExprKind::Param(_)
            | ExprKind::GlobalLen(_)
            | ExprKind::ZeroAccumulator
            | ExprKind::Choice(_)
            | ExprKind::Unit
            | ExprKind::Error => Variation::default(),
        }
    }

    fn special(&self, special: Special, span: Span) -> Variation {
        match special {
            Special::ThreadIdx(axis) => self.thread(axis, span),
            Special::LaneIdx => Variation::differs(Level::Thread, Difference::Lane, span),
            Special::WarpIdx => Variation::number(WARP_THREADS, Difference::Warp, span),
            Special::WarpgroupIdx => Variation::number(WARPGROUP_THREADS, Difference::Thread, span),
            Special::BlockIdx(_)
            | Special::ClusterIdx(_)
            | Special::BlockInCluster(_)
            | Special::ClusterRank => Variation::of_block(span),
            Special::GridDim(_) | Special::ClusterDim(_) => Variation::default(),
        }
    }

    /// Returns the variation of a thread coordinate. It counts threads in steps if the axes up to
    /// this one make whole warpgroups, or if there are no others.
    fn thread(&self, axis: Axis, span: Span) -> Variation {
        let [x, y, z] = self.threads;
        let (unit, extent, others) = match axis {
            Axis::X => (1, x, y.saturating_mul(z)),
            Axis::Y => (x, y, z),
            Axis::Z => (x.saturating_mul(y), z, 1),
        };
        let cause = Difference::Thread;
        if extent <= 1 {
            Variation::default()
        } else if others == 1 || unit.saturating_mul(extent).is_multiple_of(WARPGROUP_THREADS) {
            Variation::number(unit, cause, span)
        } else {
            Variation::differs(level_of(unit), cause, span)
        }
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Variation {
        let (left, right) = (self.of(a), self.of(b));
        let both = left.and(right);
        let known = |expr: &Expr| expr.as_int().and_then(|value| u32::try_from(value).ok());
        let of_number = match (left.unit, known(b), right.unit, known(a)) {
            (Some(unit), Some(by), _, _) => in_steps(op, unit, by),
            (_, _, Some(unit), Some(by)) => in_steps(mirrored(op), unit, by),
            _ => None,
        };
        // A quotient counts in larger steps. A comparison changes at its borders.
        match of_number {
            Some(Steps::Count(unit)) => Variation { unit: Some(unit), ..limited(both, level_of(unit)) },
            Some(Steps::Borders(borders)) => limited(both, self.level_of_borders(&borders)),
            None => both,
        }
    }

    /// Returns the variation of the choice among arms by a value. If it counts threads, the choice
    /// changes at the first value of a range, and after the last.
    pub(super) fn of_choice(&self, value: &Expr, arms: &[Arm]) -> Variation {
        let variation = self.of(value);
        let Some(unit) = variation.unit else { return variation };
        let values = arms.iter().flat_map(|arm| &arm.ranges);
        let borders: Option<Vec<u32>> = values
            .flat_map(|&(least, most)| [Some(least), most.checked_add(1)])
            .map(|value| u32::try_from(value?.clamp(0, u32::MAX.into())).ok())
            .map(|value| value.map(|value| unit.saturating_mul(value)))
            .collect();
        borders.map_or(variation, |borders| limited(variation, self.level_of_borders(&borders)))
    }

    /// Returns the threads among which a value is the same that changes at these thread indices
    /// only. Nothing changes after the last thread of the block.
    fn level_of_borders(&self, borders: &[u32]) -> Level {
        let all = self.threads.into_iter().fold(1, u32::saturating_mul);
        let inside = borders.iter().filter(|&&border| border < all);
        inside.map(|&border| level_of(border)).max().unwrap_or_default()
    }

    /// Returns the variation of an operation on the operands of a warp's lanes.
    pub(super) fn of_lanes(&self, value: &Expr, op: &WarpOp, span: Span) -> Variation {
        let given = Variation { unit: None, ..self.of(value) };
        let of_warp = Variation {
            by_block: given.by_block,
            ..Variation::differs(Level::Warp, Difference::Lanes, span)
        };
        if given.level == Level::Warpgroup {
            return given;
        }
        match op {
            WarpOp::Shuffle { op: ShuffleOp::Idx, by } if self.of(by).level <= Level::Warp => of_warp,
            WarpOp::Vote(_) | WarpOp::Reduce(_) => of_warp,
            WarpOp::Shuffle { .. } | WarpOp::Match(_) => given,
        }
    }
}

/// The effect of an operation with a constant on a thread index.
enum Steps {
    /// A number that counts in steps of this many threads.
    Count(u32),
    /// A value that changes at these thread indices.
    Borders(Vec<u32>),
}

fn in_steps(op: BinaryOp, unit: u32, by: u32) -> Option<Steps> {
    // An index that is too large is after the last thread.
    let border = |by: u32| unit.saturating_mul(by);
    let borders = |borders: &[u32]| Some(Steps::Borders(borders.to_vec()));
    match op {
        BinaryOp::Div => unit.checked_mul(by.max(1)).map(Steps::Count),
        BinaryOp::Shr => unit.checked_mul(1u32.checked_shl(by)?).map(Steps::Count),
        BinaryOp::Lt | BinaryOp::Ge => borders(&[border(by)]),
        BinaryOp::Le | BinaryOp::Gt => borders(&[border(by.saturating_add(1))]),
        BinaryOp::Eq | BinaryOp::Ne => borders(&[border(by), border(by.saturating_add(1))]),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Rem
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl => None,
    }
}

/// Returns the operator with its sides exchanged. Those that do not compare become `Add`, from
/// which nothing follows.
fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        BinaryOp::Eq | BinaryOp::Ne => op,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::Shr => BinaryOp::Add,
    }
}

/// Returns the variation with a level that is known to be no worse than this.
fn limited(variation: Variation, level: Level) -> Variation {
    let level = variation.level.min(level);
    let by_lane = variation.by_lane && level == Level::Thread;
    Variation {
        level,
        cause: variation.cause.filter(|_| level != Level::Warpgroup),
        unit: None,
        by_lane,
        ..variation
    }
}
