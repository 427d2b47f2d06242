//! Rules on types that may not be known yet.
//!
//! Inference unifies two types only where they must be equal. A rule that several types obey, for
//! example that a coordinate is a `u32` or an `i32`, decides neither: rustc sees a trait with
//! several implementations, and waits too. A rule is therefore checked at once if its result is the
//! same for every type that is still possible, and otherwise at the end of the function, when
//! unconstrained literals have become `i32` and `f64`.

#![warn(clippy::wildcard_enum_match_arm)]

use super::scalar::{bits, extremes, has_math, is_primitive_cast, is_small_float};
use super::{Infer, Kind, Typing};
use crate::diag::Sink;
use crate::diag::mistake::{Demand, UnsupportedType, UntypedConversion, Value, Word};
use crate::ir::{IntegerOp, MathOp, Scalar, Span, Type, WarpReduceOp};

/// A requirement on a type.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// An element of the coordinates `[row, column]` of a tile or a tensor.
    Coordinate,
    /// An index into global memory.
    GlobalIndex,
    /// The right operand of `<<` and `>>`, which has its own type.
    ShiftAmount,
    /// The left operand of `<<` and `>>`, whose width must exceed this amount.
    ShiftedBy(i128),
    /// The variable of a `for`.
    Counted,
    /// The scrutinee of a `match`.
    Matched,
    /// A type all of whose values are in these ranges.
    Covered(Vec<(i128, i128)>),
    /// An operand of a math function.
    Math(MathOp),
    /// A value that lanes of a warp exchange or compare with this function.
    OfLanes { word: Word },
    /// A value that is reduced across a warp.
    WarpReduce { op: WarpReduceOp, word: Word },
    /// A value that `as` converts to this type.
    As(Type),
    /// A value that `cast` converts to this type.
    Cast(Type),
    /// An operand of a function of these integers.
    Integer { word: Word, of: Integers },
    /// The receiver of `abs_diff`, whose result has the type `to`.
    AbsDiff { to: Type, word: Word },
    /// The receiver of `powi`.
    Precise { word: Word },
    /// The receiver of `to_f32` or `to_f64`.
    Small { word: Word },
    /// The receiver of `to_bits`, whose result has the type `to`.
    Bits { to: Type, word: Word },
}

/// The integer types that a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integers {
    /// Methods of all integers.
    All,
    /// Methods of unsigned integers.
    Unsigned,
    /// Free functions of integers of 32 and of 64 bits, other than `usize`.
    Words,
}

/// A rule that is deferred until its type is known.
#[derive(Debug)]
pub(super) struct Obligation {
    rule: Rule,
    ty: Type,
    span: Span,
}

impl Typing<'_> {
    /// Reports that `ty` breaks `rule`. If the result depends on inference, the check is deferred
    /// to the end of the function.
    pub(crate) fn require(&mut self, ty: &Type, rule: Rule, span: Span) -> bool {
        let verdict = verdict(self.infer, &rule, ty);
        match verdict {
            Some(true) => {}
            Some(false) => refuse(self.infer, &rule, ty, span, self.sink),
            None => self.infer.obligations.push(Obligation { rule, ty: ty.clone(), span }),
        }
        verdict != Some(false)
    }
}

/// Checks the deferred rules, once no use can decide a type any more.
pub(super) fn judge(infer: &mut Infer, sink: &mut Sink) {
    let obligations = std::mem::take(&mut infer.obligations);
    for Obligation { rule, ty, span } in &obligations {
        settle_receiver(infer, rule, ty, *span, sink);
    }
    infer.fall_back();
    for Obligation { rule, ty, span } in &obligations {
        match verdict(infer, rule, ty) {
            Some(true) => {}
            Some(false) => refuse(infer, rule, ty, *span, sink),
            None => undecided(infer, rule, *span, sink),
        }
    }
}

/// Decides the result type of a method that depends on its receiver, and reports a receiver whose
/// type no use has decided. rustc requires the type at the call. What it knows there also comes
/// from expectations, which this inference does not follow. A call is therefore rejected only if
/// later uses do not decide the type either.
fn settle_receiver(infer: &mut Infer, rule: &Rule, ty: &Type, span: Span, sink: &mut Sink) {
    let word = match rule {
        Rule::Integer { word, of: Integers::All | Integers::Unsigned }
        | Rule::AbsDiff { word, .. }
        | Rule::Precise { word }
        | Rule::Small { word }
        | Rule::Bits { word, .. } => word.clone(),
        Rule::Coordinate
        | Rule::GlobalIndex
        | Rule::ShiftAmount
        | Rule::ShiftedBy(_)
        | Rule::Counted
        | Rule::Matched
        | Rule::Covered(_)
        | Rule::Math(_)
        | Rule::OfLanes { .. }
        | Rule::WarpReduce { .. }
        | Rule::As(_)
        | Rule::Cast(_)
        | Rule::Integer { of: Integers::Words, .. } => return,
    };
    if infer.kind(ty).is_some() {
        sink.error(Value::UnknownReceiver { word }, span);
        infer.give_up(ty);
    }
    let results = match (rule, infer.resolve(ty).as_scalar()) {
        (Rule::Bits { to, .. }, Some(from)) => Some((to, bits(from))),
        (Rule::AbsDiff { to, .. }, Some(from)) => Some((to, distance(from))),
        _ => None,
    };
    match results {
        Some((to, Some(result))) => _ = infer.unify(to, &result.into(), span),
        Some((to, None)) => infer.give_up(to),
        None => {}
    }
}

/// Returns whether `ty` obeys `rule`, or `None` if that still depends on inference.
fn verdict(infer: &Infer, rule: &Rule, ty: &Type) -> Option<bool> {
    // rustc looks the method up at the call, and must know the type there.
    if let (Rule::Integer { of: Integers::All, .. }, Some(Kind::Integer | Kind::Any)) = (rule, infer.kind(ty))
    {
        return None;
    }
    if let (Rule::Precise { .. }, Some(Kind::Float | Kind::Any)) = (rule, infer.kind(ty)) {
        return None;
    }
    let Some(from) = candidates(infer, ty) else {
        return Some(matches!(infer.resolve(ty), Type::Error | Type::Never));
    };
    let to = match rule {
        Rule::As(to) | Rule::Cast(to) | Rule::Bits { to, .. } | Rule::AbsDiff { to, .. } => {
            match candidates(infer, to) {
                Some(to) => to,
                None => return Some(infer.resolve(to) == Type::Error),
            }
        }
        Rule::Coordinate
        | Rule::GlobalIndex
        | Rule::ShiftAmount
        | Rule::ShiftedBy(_)
        | Rule::Counted
        | Rule::Matched
        | Rule::Covered(_)
        | Rule::Math(_)
        | Rule::OfLanes { .. }
        | Rule::WarpReduce { .. }
        | Rule::Integer { .. }
        | Rule::Precise { .. }
        | Rule::Small { .. } => vec![Scalar::Bool],
    };
    let mut verdicts = from.iter().flat_map(|&from| to.iter().map(move |&to| obeys(rule, from, to)));
    let first = verdicts.next()?;
    verdicts.all(|verdict| verdict == first).then_some(first)
}

/// Returns the scalars that `ty` may stand for, or `None` if it is no scalar.
fn candidates(infer: &Infer, ty: &Type) -> Option<Vec<Scalar>> {
    match infer.kind(ty) {
        None => infer.resolve(ty).as_scalar().map(|scalar| vec![scalar]),
        Some(kind) => Some(Scalar::ALL.into_iter().filter(|&scalar| kind.fits(scalar)).collect()),
    }
}

/// Whether the type `from` obeys the rule. `to` is the result of a conversion.
fn obeys(rule: &Rule, from: Scalar, to: Scalar) -> bool {
    match rule {
        Rule::Coordinate => matches!(from, Scalar::U32 | Scalar::I32),
        Rule::GlobalIndex => {
            matches!(from, Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::Usize)
        }
        Rule::ShiftAmount | Rule::Counted => from.is_integer(),
        Rule::ShiftedBy(amount) => !from.is_integer() || (0..i128::from(from.bytes() * 8)).contains(amount),
        Rule::Matched => from.is_integer() || from == Scalar::Bool,
        Rule::Covered(ranges) => covers_all(from, ranges),
        Rule::Math(op) => has_math(from, *op),
        Rule::OfLanes { .. } => true,
        Rule::WarpReduce { op, .. } => op.takes(from),
        Rule::As(_) => is_primitive_cast(from, to),
        Rule::Cast(_) => from != Scalar::Bool && to != Scalar::Bool,
        Rule::Integer { of, .. } => of.contain(from),
        Rule::AbsDiff { .. } => distance(from) == Some(to),
        Rule::Precise { .. } => matches!(from, Scalar::F32 | Scalar::F64),
        Rule::Small { .. } => is_small_float(from),
        Rule::Bits { .. } => bits(from) == Some(to),
    }
}

impl Integers {
    fn contain(self, scalar: Scalar) -> bool {
        match self {
            Self::All => scalar.is_integer(),
            Self::Unsigned => scalar.is_integer() && !scalar.is_signed(),
            Self::Words => matches!(scalar, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64),
        }
    }
}

/// Returns the type of the distance of two numbers of this type.
pub(crate) fn distance(of: Scalar) -> Option<Scalar> {
    of.is_integer().then(|| IntegerOp::AbsDiff.result(of))
}

fn covers_all(scalar: Scalar, ranges: &[(i128, i128)]) -> bool {
    let (least, greatest) = extremes(scalar);
    let mut all = ranges.to_vec();
    all.sort_unstable();
    let mut next = least;
    for (start, end) in all {
        if start > next {
            return false;
        }
        next = next.max(end.saturating_add(1));
    }
    next > greatest
}

fn refuse(infer: &Infer, rule: &Rule, ty: &Type, span: Span, sink: &mut Sink) {
    let demand = match rule {
        Rule::Coordinate => Demand::Coordinate,
        Rule::GlobalIndex => Demand::GlobalIndex,
        Rule::ShiftAmount => Demand::ShiftAmount,
        Rule::ShiftedBy(_) => Demand::Width,
        Rule::Counted => Demand::Counted,
        Rule::Matched => Demand::Matched,
        Rule::Covered(_) => Demand::Covered,
        Rule::Math(op) => Demand::Math(*op),
        Rule::OfLanes { word } => Demand::Lanes { word: word.clone() },
        Rule::WarpReduce { op, word } => Demand::WarpReduce { op: *op, word: word.clone() },
        Rule::As(to) => Demand::As(infer.partial(to)),
        Rule::Cast(to) => Demand::Cast(infer.partial(to)),
        Rule::Integer { word, of: Integers::Unsigned } => Demand::Unsigned { word: word.clone() },
        Rule::Integer { word, of: Integers::Words } => Demand::Words { word: word.clone() },
        Rule::Integer { word, of: Integers::All }
        | Rule::AbsDiff { word, .. }
        | Rule::Precise { word }
        | Rule::Small { word }
        | Rule::Bits { word, .. } => Demand::Method { word: word.clone() },
    };
    sink.error(UnsupportedType { found: infer.partial(ty), demand, since: infer.since(ty, span) }, span);
}

/// Reports a conversion to a type that no use has decided. Any other undecided type is an operand
/// that results from such a conversion.
fn undecided(infer: &mut Infer, rule: &Rule, span: Span, sink: &mut Sink) {
    let (to, conversion) = match rule {
        Rule::As(to) => (to, UntypedConversion::As),
        Rule::Cast(to) => (to, UntypedConversion::Cast),
        Rule::Coordinate
        | Rule::GlobalIndex
        | Rule::ShiftAmount
        | Rule::ShiftedBy(_)
        | Rule::Counted
        | Rule::Matched
        | Rule::Covered(_)
        | Rule::Math(_)
        | Rule::OfLanes { .. }
        | Rule::WarpReduce { .. }
        | Rule::Integer { .. }
        | Rule::AbsDiff { .. }
        | Rule::Precise { .. }
        | Rule::Small { .. }
        | Rule::Bits { .. } => return,
    };
    if infer.kind(to) == Some(Kind::Any) {
        sink.error(Value::UnknownResult(conversion), span);
        infer.give_up(to);
    }
}
