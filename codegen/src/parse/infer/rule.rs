//! Rules for types that may not be known yet.
//!
//! Inference makes two types one only where they must be. A rule that several types obey, such as
//! that a coordinate is a `u32` or an `i32`, decides none of them: rustc sees a trait with several
//! implementations, and waits too. So a rule is judged at once where it holds, or fails, for every
//! type that may still come of it, and else at the function's end, when literals that nothing has
//! decided are `i32` and `f64`.

#![warn(clippy::wildcard_enum_match_arm)]

use super::{Infer, Kind};
use crate::diag::Sink;
use crate::diag::mistake::{Demand, Unfit, Untold, Value};
use crate::ir::{IntegerOp, MathOp, Scalar, Span, Type, WarpReduceOp};
use crate::parse::cx::Cx;
use crate::parse::number::has_math;
use crate::parse::words::{FunctionWord, NumberWord, Word};

/// What is asked of a type.
#[derive(Clone, Debug)]
pub(in crate::parse) enum Rule {
    /// `[row, column]` of a tile or a tensor.
    Coordinate,
    /// An index into global memory.
    GlobalIndex,
    /// The right side of `<<` and `>>`, of a type of its own.
    ShiftAmount,
    /// The left side of `<<` and `>>`, of which this amount is less than the width.
    ShiftedBy(i128),
    /// What a `for` counts.
    Counted,
    /// What a `match` is on.
    Matched,
    /// That these ranges hold all values.
    Covered(Vec<(i128, i128)>),
    /// The operands of a function of scalars.
    Math(MathOp),
    /// That lanes of a warp exchange or compare it, as this word does.
    OfLanes(FunctionWord),
    /// That the values of a warp are reduced.
    WarpReduce(WarpReduceOp),
    /// That `as` converts it to this type.
    As(Type),
    /// That `cast` converts it to this type.
    Cast(Type),
    /// The receiver of `div_ceil`.
    DivCeil,
    /// The receiver of a method of an integer's bits.
    Integer(IntegerOp),
    /// The receiver of `to_f32` or `to_f64`.
    Small(NumberWord),
    /// The receiver of `to_bits`, which gives this type.
    Bits(Type),
}

/// A rule that waits until its type is known.
#[derive(Debug)]
pub(in crate::parse) struct Obligation {
    rule: Rule,
    ty: Type,
    span: Span,
}

impl Cx<'_> {
    /// Reports if `ty` breaks `rule`; if that depends on what `ty` turns out to be, then at the
    /// end.
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

/// Judges what has waited: no use decides a type any more.
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

/// Decides what a method gives, where that depends on its receiver; reports a receiver that no use
/// has given a type. rustc asks for its type even before the call. What it then knows comes of
/// expectations, which are not followed here: so a call is refused only where later uses decide
/// nothing either.
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

/// The integer that holds a float's bits, as `to_bits` gives it.
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

/// Whether `to_f32` and `to_f64` are methods of it.
pub(in crate::parse) fn is_small_float(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2)
}

/// Whether `ty` obeys `rule`; none while that depends on what becomes of it.
fn verdict(infer: &Infer, rule: &Rule, ty: &Type) -> Option<bool> {
    // rustc looks the method up where it is called, and has to know the type there.
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

/// The scalars that `ty` can turn out to be; none if it is something else.
fn candidates(infer: &Infer, ty: &Type) -> Option<Vec<Scalar>> {
    match infer.kind(ty) {
        None => infer.resolve(ty).as_scalar().map(|scalar| vec![scalar]),
        Some(kind) => Some(Scalar::ALL.into_iter().filter(|&scalar| kind.fits(scalar)).collect()),
    }
}

/// Whether the type `from` obeys; `to` is what conversions give.
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

/// What rustc's `as` does between kernel scalars.
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

/// The least and the greatest value that a `match` on `scalar` can meet.
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
    sink.error(Unfit { found: infer.partial(ty), demand, since: infer.since(ty, span) }, span);
}

/// Reports a conversion to a type that no use has decided. What else is undecided is an operand
/// that comes of one.
fn undecided(infer: &mut Infer, rule: &Rule, span: Span, sink: &mut Sink) {
    let (to, conversion) = match rule {
        Rule::As(to) => (to, Untold::As),
        Rule::Cast(to) => (to, Untold::Cast),
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
