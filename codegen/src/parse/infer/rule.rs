//! Rules on types that may not be known yet.
//!
//! Inference unifies two types only where they must be equal. A rule that several types obey, for
//! example that a coordinate is a `u32` or an `i32`, decides neither: rustc sees a trait with
//! several implementations, and waits too. A rule is therefore checked at once if its result is the
//! same for every type that is still possible, and otherwise at the end of the function, when
//! unconstrained literals have become `i32` and `f64`.

#![warn(clippy::wildcard_enum_match_arm)]

use super::{Infer, Kind};
use crate::diag::Sink;
use crate::diag::mistake::{Demand, UnsupportedType, UntypedConversion, Value};
use crate::ir::{IntegerOp, MathOp, Scalar, Span, Type, WarpReduceOp};
use crate::parse::cx::Cx;
use crate::parse::number::has_math;
use crate::parse::words::{FunctionWord, NumberWord, Word};

/// A requirement on a type.
#[derive(Clone, Debug)]
pub(in crate::parse) enum Rule {
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
    OfLanes(FunctionWord),
    /// A value that is reduced across a warp.
    WarpReduce(WarpReduceOp),
    /// A value that `as` converts to this type.
    As(Type),
    /// A value that `cast` converts to this type.
    Cast(Type),
    /// The receiver of `div_ceil`.
    DivCeil,
    /// The receiver of a method on the bits of an integer.
    Integer(IntegerOp),
    /// The receiver of `to_f32` or `to_f64`.
    Small(NumberWord),
    /// The receiver of `to_bits`, whose result has this type.
    Bits(Type),
}

/// A rule that is deferred until its type is known.
#[derive(Debug)]
pub(in crate::parse) struct Obligation {
    rule: Rule,
    ty: Type,
    span: Span,
}

impl Cx<'_> {
    /// Reports that `ty` breaks `rule`. If the result depends on inference, the check is deferred
    /// to the end of the function.
    pub(in crate::parse) fn require(&mut self, ty: &Type, rule: Rule, span: Span) -> bool {
        let verdict = verdict(&self.infer, &rule, ty);
        match verdict {
            Some(true) => {}
            Some(false) => refuse(&self.infer, &rule, ty, span, self.sink),
            None => self.obligations.push(Obligation { rule, ty: ty.clone(), span }),
        }
        verdict != Some(false)
    }
}

/// Checks the deferred rules, once no use can decide a type any more.
pub(in crate::parse) fn judge(infer: &mut Infer, obligations: &[Obligation], sink: &mut Sink) {
    for Obligation { rule, ty, span } in obligations {
        settle_receiver(infer, rule, ty, *span, sink);
    }
    infer.fall_back();
    for Obligation { rule, ty, span } in obligations {
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
        Rule::DivCeil => NumberWord::DivCeil.name(),
        Rule::Integer(op) => op.name().into(),
        Rule::Small(word) => word.name(),
        Rule::Bits(_) => NumberWord::ToBits.name(),
        Rule::Coordinate
        | Rule::GlobalIndex
        | Rule::ShiftAmount
        | Rule::ShiftedBy(_)
        | Rule::Counted
        | Rule::Matched
        | Rule::Covered(_)
        | Rule::Math(_)
        | Rule::OfLanes(_)
        | Rule::WarpReduce(_)
        | Rule::As(_)
        | Rule::Cast(_) => return,
    };
    if infer.kind(ty).is_some() {
        sink.error(Value::UnknownReceiver { word }, span);
        infer.give_up(ty);
    }
    if let (Rule::Bits(to), Some(from)) = (rule, infer.resolve(ty).as_scalar()) {
        match bits(from) {
            Some(bits) => _ = infer.unify(to, &bits.into(), span),
            None => infer.give_up(to),
        }
    }
}

/// Returns the integer type that holds a float's bits, the result of `to_bits`.
pub(in crate::parse) fn bits(float: Scalar) -> Option<Scalar> {
    match float {
        Scalar::E4m3 | Scalar::E5m2 => Some(Scalar::U8),
        Scalar::F16 | Scalar::Bf16 => Some(Scalar::U16),
        Scalar::F32 | Scalar::Tf32 => Some(Scalar::U32),
        Scalar::F64 => Some(Scalar::U64),
        Scalar::Bool
        | Scalar::I8
        | Scalar::U8
        | Scalar::I16
        | Scalar::U16
        | Scalar::I32
        | Scalar::U32
        | Scalar::I64
        | Scalar::U64
        | Scalar::Usize => None,
    }
}

/// Whether the scalar has the methods `to_f32` and `to_f64`.
pub(in crate::parse) fn is_small_float(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2)
}

/// Returns whether `ty` obeys `rule`, or `None` if that still depends on inference.
fn verdict(infer: &Infer, rule: &Rule, ty: &Type) -> Option<bool> {
    // rustc looks the method up at the call, and must know the type there.
    if let (Rule::Integer(_), Some(Kind::Integer | Kind::Any)) = (rule, infer.kind(ty)) {
        return None;
    }
    let Some(from) = candidates(infer, ty) else {
        return Some(matches!(infer.resolve(ty), Type::Error | Type::Never));
    };
    let to = match rule {
        Rule::As(to) | Rule::Cast(to) | Rule::Bits(to) => match candidates(infer, to) {
            Some(to) => to,
            None => return Some(infer.resolve(to) == Type::Error),
        },
        Rule::Coordinate
        | Rule::GlobalIndex
        | Rule::ShiftAmount
        | Rule::ShiftedBy(_)
        | Rule::Counted
        | Rule::Matched
        | Rule::Covered(_)
        | Rule::Math(_)
        | Rule::OfLanes(_)
        | Rule::WarpReduce(_)
        | Rule::DivCeil
        | Rule::Integer(_)
        | Rule::Small(_) => vec![Scalar::Bool],
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
        Rule::OfLanes(_) => true,
        Rule::WarpReduce(op) => op.takes(from),
        Rule::As(_) => is_primitive_cast(from, to),
        Rule::Cast(_) => from != Scalar::Bool && to != Scalar::Bool,
        Rule::DivCeil => from.is_integer() && !from.is_signed(),
        Rule::Integer(_) => from.is_integer(),
        Rule::Small(_) => is_small_float(from),
        Rule::Bits(_) => bits(from) == Some(to),
    }
}

/// Whether rustc's `as` converts between these kernel scalars.
fn is_primitive_cast(from: Scalar, to: Scalar) -> bool {
    let primitive = |scalar: Scalar| {
        !matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2)
    };
    match (from, to) {
        (Scalar::Bool, to) => to == Scalar::Bool || to.is_integer(),
        (_, Scalar::Bool) => false,
        (from, to) => primitive(from) && primitive(to),
    }
}

/// Returns the least and the greatest value of a `match` on `scalar`.
pub(in crate::parse) fn extremes(scalar: Scalar) -> (i128, i128) {
    scalar.integer_range().unwrap_or((0, 1))
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
        Rule::OfLanes(word) => Demand::Lanes { word: word.name() },
        Rule::WarpReduce(op) => {
            let word = FunctionWord::WarpReduce(*op).name();
            Demand::WarpReduce { op: *op, word }
        }
        Rule::As(to) => Demand::As(infer.partial(to)),
        Rule::Cast(to) => Demand::Cast(infer.partial(to)),
        Rule::DivCeil => Demand::DivCeil { word: NumberWord::DivCeil.name() },
        Rule::Integer(op) => Demand::Integer(*op),
        Rule::Small(word) => Demand::Float { word: word.name() },
        Rule::Bits(_) => Demand::Float { word: NumberWord::ToBits.name() },
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
        | Rule::OfLanes(_)
        | Rule::WarpReduce(_)
        | Rule::DivCeil
        | Rule::Integer(_)
        | Rule::Small(_)
        | Rule::Bits(_) => return,
    };
    if infer.kind(to) == Some(Kind::Any) {
        sink.error(Value::UnknownResult(conversion), span);
        infer.give_up(to);
    }
}
