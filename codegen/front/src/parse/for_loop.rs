//! `for`, over ranges and register arrays.

use syn::{Pat, RangeLimits};

use super::cx::{Binding, Cx};
use super::names;
use super::order::{held, spill_if_changed};
use super::shared::pipeline::binary;
use super::stmt::unit;
use crate::diag::mistake::Syntax;
use crate::infer::rule::Rule;
use crate::ir::{BinaryOp, Const, Expr, ExprKind, For, LocalId, STEP_BY_ZERO, Scalar, Span, StmtKind, Type};
use crate::words::{FunctionWord, RangeWord, Word};

/// The range of a `for`.
struct Range {
    start: Expr,
    end: Expr,
    inclusive: bool,
    step: Option<Expr>,
    direction: Direction,
    unroll: bool,
}

/// The numbers of a range that a loop visits, and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From the start on.
    Up,
    /// From the last number on: `rev()` before `step_by`, if there is one.
    Down,
    /// The numbers of `Up`, in reverse: `rev()` after `step_by`.
    UpReversed,
}

/// The sequence that a `for` iterates over.
enum Iterated {
    Range(Box<Range>),
    /// The elements of a register array, of this type and number.
    Array(Box<Expr>, Type, u32),
}

impl Cx<'_> {
    pub(super) fn for_loop(&mut self, for_: &syn::ExprForLoop, span: Span) -> Expr {
        let name = match &*for_.pat {
            Pat::Ident(name) => Some(&name.ident),
            Pat::Wild(_) => None,
            other => {
                self.error(Syntax::ForPattern, Span::of(other));
                None
            }
        };
        let mutable = matches!(&*for_.pat, Pat::Ident(name) if name.mutability.is_some());
        let Some(iterated) = self.iterated(&for_.expr) else {
            return Expr::error(span);
        };
        let label = name.map_or_else(|| "_".to_owned(), ToString::to_string);
        let ty = match &iterated {
            Iterated::Range(range) => range.start.ty.clone(),
            Iterated::Array(_, element, _) => element.clone(),
        };
        let variable = self.builder.local(label, ty, name.map_or(span, Span::of));
        let counted = self.counted(iterated, variable, span);
        let (label, body) = self.loop_body(for_.label.as_ref().map(|label| &label.name), |cx| {
            if let Some(value) = counted.value {
                cx.builder.assign(variable, value);
            }
            cx.scope(|cx| {
                if let Some(name) = name {
                    cx.bind(name, Binding::Local { id: variable, mutable });
                }
                let value = cx.block_value(&for_.body);
                cx.expect(&value, &Type::Unit);
            });
        });
        let Range { start, end, inclusive, step, unroll, .. } = counted.range;
        let step = step.unwrap_or_else(|| Expr::constant(Const::Int(1), Scalar::Usize, Span::of(&for_.expr)));
        let variable = counted.variable;
        self.builder.emit(
            StmtKind::For(Box::new(For { label, variable, start, end, inclusive, step, unroll, body })),
            span,
        );
        unit(span)
    }

    /// Parses the iterated expression of a `for`.
    fn iterated(&mut self, expr: &syn::Expr) -> Option<Iterated> {
        if let syn::Expr::Paren(paren) = expr {
            return self.iterated(&paren.expr);
        }
        if is_range(expr) {
            return self.range(expr).map(|range| Iterated::Range(Box::new(range)));
        }
        let before = self.sink.len();
        let value = if is_iterator(expr) { None } else { Some(self.expr(expr)) };
        if let Some(value) = value {
            if let Type::Array(element, len) = self.infer.outermost(&value.ty) {
                return Some(Iterated::Array(Box::new(value), *element, len));
            }
            if value.is_error() && self.sink.len() > before {
                return None;
            }
        }
        self.error(Syntax::ForRange, Span::of(expr));
        None
    }

    /// Parses the range of a `for`: `a..b` or `a..=b`, optionally with `.step_by(n)` and `.rev()`,
    /// or in `unroll(..)`.
    fn range(&mut self, expr: &syn::Expr) -> Option<Range> {
        let before = self.sink.len();
        match expr {
            syn::Expr::Paren(paren) => self.range(&paren.expr),
            syn::Expr::Range(syn::ExprRange { start: Some(start), end: Some(end), limits, .. }) => {
                let (start, end) = self.pair(start, end);
                let fits = self.expect(&end, &start.ty);
                if !start.is_error() && !self.require(&start.ty, Rule::Counted, start.span) {
                    return None;
                }
                let inclusive = matches!(limits, RangeLimits::Closed(_));
                let direction = Direction::Up;
                fits.then_some(Range { start, end, inclusive, step: None, direction, unroll: false })
            }
            syn::Expr::MethodCall(call) => {
                let mut arguments = call.args.iter();
                match (RangeWord::named(&names::text(&call.method)), arguments.next(), arguments.next()) {
                    (Some(RangeWord::StepBy), Some(step), None) => {
                        let range = self.range(&call.receiver)?;
                        self.stepped(range, step, Span::of(expr))
                    }
                    (Some(RangeWord::Rev), None, None) => {
                        let range = self.range(&call.receiver)?;
                        self.reversed(range, Span::of(expr))
                    }
                    (Some(RangeWord::StepBy | RangeWord::Rev) | None, ..) => {
                        self.error(Syntax::ForRange, Span::of(expr));
                        None
                    }
                }
            }
            syn::Expr::Call(call)
                if call.args.len() == 1 && self.is_word(&call.func, FunctionWord::Unroll) =>
            {
                let mut range = self.range(&call.args[0])?;
                range.unroll = true;
                Some(range)
            }
            other => {
                // An `unroll` that belongs to the host has been reported already.
                if self.sink.len() == before {
                    self.error(Syntax::ForRange, Span::of(other));
                }
                None
            }
        }
    }

    fn stepped(&mut self, mut range: Range, step: &syn::Expr, span: Span) -> Option<Range> {
        let (effects, step) = self.block(|cx| cx.expr(step));
        for bound in [&mut range.start, &mut range.end] {
            spill_if_changed(&mut self.builder, std::slice::from_mut(bound), &effects);
        }
        self.builder.append(effects);
        self.expect(&step, &Scalar::Usize.into());
        if range.step.is_some() {
            self.error(Syntax::Stepped, span);
            return None;
        }
        Some(Range { step: Some(step), ..range })
    }

    fn reversed(&mut self, range: Range, span: Span) -> Option<Range> {
        let direction = match (range.direction, &range.step) {
            (Direction::Up, None) => Direction::Down,
            (Direction::Up, Some(_)) => Direction::UpReversed,
            (Direction::Down, None) | (Direction::UpReversed, _) => Direction::Up,
            (Direction::Down, Some(_)) => {
                self.error(Syntax::Stepped, span);
                return None;
            }
        };
        Some(Range { direction, ..range })
    }

    /// Reduces a loop to one that counts up. If that has a variable of its own, `variable` is
    /// computed from it.
    fn counted(&mut self, iterated: Iterated, variable: LocalId, span: Span) -> Counted {
        match iterated {
            Iterated::Range(range) if range.direction == Direction::Up => {
                Counted { range: *range, variable, value: None }
            }
            Iterated::Range(range) => self.counted_down(*range, span),
            Iterated::Array(array, element, len) => {
                // The loop iterates over a copy, which the body cannot change.
                let array = held(self, *array);
                let (counter, index) = self.builder.temporary("index", Scalar::Usize, span);
                let number = |value: u32| Expr::constant(Const::Int(value.into()), Scalar::Usize, span);
                let range = Range {
                    start: number(0),
                    end: number(len),
                    inclusive: false,
                    step: None,
                    direction: Direction::Up,
                    // Elements of an array are in registers only if their indices are known.
                    unroll: true,
                };
                let kind = ExprKind::Index(Box::new(array), Box::new(index));
                Counted { range, variable: counter, value: Some(Expr { kind, ty: element, span }) }
            }
        }
    }

    /// Counts a range up that is to be counted down: the number at the same distance from the other
    /// end is the sum of both ends, minus the counter. The sum may wrap, and then the difference
    /// does, too.
    fn counted_down(&mut self, mut range: Range, span: Span) -> Counted {
        range.start = held(self, range.start);
        range.end = held(self, range.end);
        let ty = range.start.ty.clone();
        let one = Expr::constant(Const::Int(1), ty.clone(), span);
        let last = match (&range.step, range.direction, range.inclusive) {
            (Some(_), Direction::UpReversed, _) => self.last_step(&mut range, span),
            (_, _, true) => range.end.clone(),
            (_, _, false) => binary(BinaryOp::Sub, range.end.clone(), one),
        };
        let sum = held(self, binary(BinaryOp::Add, range.start.clone(), last));
        let (counter, count) = self.builder.temporary("counter", ty, span);
        Counted { range, variable: counter, value: Some(binary(BinaryOp::Sub, sum, count)) }
    }

    /// Returns the last number that the range visits on its way up. It is not used if the range is
    /// empty.
    fn last_step(&mut self, range: &mut Range, span: Span) -> Expr {
        let ty = Type::from(Scalar::Usize);
        let number = |value| Expr::constant(Const::Int(value), Scalar::Usize, span);
        let step = held(self, range.step.take().unwrap_or_else(|| number(1)));
        range.step = Some(step.clone());
        if !matches!(step.kind, ExprKind::Const(_)) {
            let condition = Expr { ty: Scalar::Bool.into(), ..binary(BinaryOp::Ne, step.clone(), number(0)) };
            let message = STEP_BY_ZERO.to_owned();
            self.builder.emit(StmtKind::Assert { condition, message, assumed: false }, step.span);
        }
        let wide =
            |bound: &Expr| Expr { kind: ExprKind::Cast(Box::new(bound.clone())), ty: ty.clone(), span };
        let mut distance = binary(BinaryOp::Sub, wide(&range.end), wide(&range.start));
        if !range.inclusive {
            distance = binary(BinaryOp::Sub, distance, number(1));
        }
        let distance = held(self, distance);
        let beyond = binary(BinaryOp::Rem, distance.clone(), step);
        let steps = binary(BinaryOp::Sub, distance, beyond);
        let steps = Expr { kind: ExprKind::Cast(Box::new(steps)), ty: range.start.ty.clone(), span };
        binary(BinaryOp::Add, range.start.clone(), steps)
    }
}

/// A loop that counts up.
struct Counted {
    range: Range,
    /// The variable that is counted.
    variable: LocalId,
    /// The value of the loop's own variable, if that is another one.
    value: Option<Expr>,
}

/// Whether `expr` is a range, or a call of what only ranges have.
fn is_range(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Paren(paren) => is_range(&paren.expr),
        syn::Expr::Range(_) => true,
        syn::Expr::MethodCall(call) => {
            RangeWord::named(&names::text(&call.method)).is_some() && is_range(&call.receiver)
        }
        // Whatever `unroll` is here, nothing else takes a range.
        syn::Expr::Call(call) => call.args.first().is_some_and(is_range),
        _ => false,
    }
}

/// Whether `expr` is an iterator in Rust that kernels do not have.
fn is_iterator(expr: &syn::Expr) -> bool {
    const ADAPTERS: [&str; 10] =
        ["iter", "iter_mut", "into_iter", "enumerate", "zip", "map", "rev", "step_by", "skip", "take"];
    match expr {
        syn::Expr::MethodCall(call) => ADAPTERS.contains(&names::text(&call.method).as_str()),
        syn::Expr::Reference(_) | syn::Expr::Closure(_) => true,
        _ => false,
    }
}
