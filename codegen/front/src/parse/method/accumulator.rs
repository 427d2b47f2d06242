//! Methods of accumulators and of their columns.

use super::flight::MmaArguments;
use super::matrix::Stored;
use crate::diag::Sink;
use crate::diag::mistake::{Argument, Assignment, Counted};
use crate::infer::Typing;
use crate::ir::{
    AccumulatorType, BinaryOp, Compound, Const, Expr, ExprKind, FragmentType, LocalId, MmaOp, RowOp,
    RowsType, Scalar, Span, Special, StmtKind, Team, Type, WarpFragmentType, WarpSide,
};
use crate::parse::call::effect;
use crate::parse::compound::compound;
use crate::parse::cx::{Builder, Cx};
use crate::parse::expr::apply;
use crate::parse::names::callee::AccumulatorOwner;
use crate::parse::shared::pipeline::number;
use crate::parse::types::turbofish_arguments;
use crate::words::{AccumulatorCall, ColumnsCall};

impl Cx<'_> {
    pub(super) fn accumulator_method(
        &mut self,
        receiver: Expr,
        ty: AccumulatorType,
        call: AccumulatorCall,
        written: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = Span::of(written);
        let local = accumulator_local(self.sink, &receiver)?;
        Some(match call {
            AccumulatorCall::Mma { a, b, keep } => {
                return self.start_flight(receiver, ty, MmaArguments { op: MmaOp::Add, a, b, keep }, span);
            }
            AccumulatorCall::MmaSaturating { a, b, keep } => {
                return self.start_flight(
                    receiver,
                    ty,
                    MmaArguments { op: MmaOp::Saturating, a, b, keep },
                    span,
                );
            }
            AccumulatorCall::MmaAndPopc { a, b, keep } => {
                return self.start_flight(
                    receiver,
                    ty,
                    MmaArguments { op: MmaOp::AndPopc, a, b, keep },
                    span,
                );
            }
            AccumulatorCall::Len => usize_number(ty.elements(), span),
            AccumulatorCall::Row { i } => row_of(&mut self.typing(), ty, i, span),
            AccumulatorCall::At { i } => self.element_at(ty, i, span),
            AccumulatorCall::Columns { j } => return self.columns(receiver, ty, j, written),
            AccumulatorCall::Store { tile } => {
                let first = number(0, span);
                effect(
                    &mut self.builder,
                    StmtKind::StoreAccumulator { accumulator: local, first, tile },
                    span,
                )
            }
            AccumulatorCall::StoreTo { matrix, at } => {
                let stored = Stored { accumulator: local, first: number(0, span), columns: ty.columns };
                return self.store_to(stored, matrix, at, span);
            }
            AccumulatorCall::Pack => return self.pack(local, ty, written),
            AccumulatorCall::RowMax => reduce_rows(&mut self.builder, local, ty, RowOp::Max, span),
            AccumulatorCall::RowSum => reduce_rows(&mut self.builder, local, ty, RowOp::Sum, span),
        })
    }

    pub(super) fn columns_method(
        &mut self,
        parts: Vec<Expr>,
        part: AccumulatorType,
        call: ColumnsCall,
        span: Span,
    ) -> Option<Expr> {
        let [accumulator, first] = <[Expr; 2]>::try_from(parts).ok()?;
        Some(match call {
            ColumnsCall::Len => usize_number(part.elements(), span),
            ColumnsCall::At { i } => self.element_at(part, i, span),
            ColumnsCall::Store { tile } => {
                let accumulator = accumulator_local(self.sink, &accumulator)?;
                effect(&mut self.builder, StmtKind::StoreAccumulator { accumulator, first, tile }, span)
            }
            ColumnsCall::StoreTo { matrix, at } => {
                let accumulator = accumulator_local(self.sink, &accumulator)?;
                let stored = Stored { accumulator, first, columns: part.columns };
                return self.store_to(stored, matrix, at, span);
            }
        })
    }

    /// Resolves `columns::<C>(j)` to the accumulator and the first column.
    fn columns(
        &mut self,
        accumulator: Expr,
        ty: AccumulatorType,
        group: Expr,
        call: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = Span::of(call);
        let columns = self.count_of(call, Counted::Columns)?;
        let first = apply(&mut self.typing(), BinaryOp::Mul, group, number(columns, span), span);
        Some(compound(Compound::Columns(AccumulatorType { columns, ..ty }), vec![accumulator, first], span))
    }

    /// Evaluates the constant of `method::<N>(..)`.
    pub(super) fn count_of(&mut self, call: &syn::ExprMethodCall, of: Counted) -> Option<u32> {
        let [argument] = turbofish_arguments(call)[..] else {
            self.error(Argument::NoCount { word: call.method.to_string().into(), of }, Span::of(call));
            return None;
        };
        self.u32_argument(argument)
    }

    /// Resolves `pack::<bf16>()`.
    pub(super) fn pack(
        &mut self,
        accumulator: LocalId,
        ty: AccumulatorType,
        call: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = Span::of(call);
        let [syn::GenericArgument::Type(element)] = turbofish_arguments(call)[..] else {
            self.error(Argument::NoPackedElement, span);
            return None;
        };
        let Type::Scalar(element) = self.ty(element) else { return None };
        let AccumulatorType { team, element: _, rows, columns } = ty;
        let fragment = match team {
            Team::Warpgroup => Type::Fragment(FragmentType { element, rows, columns }),
            Team::Warp => {
                Type::WarpFragment(WarpFragmentType { side: WarpSide::Left, element, rows, columns })
            }
        };
        let (dest, value) = self.builder.temporary("fragment", fragment, span);
        self.builder.emit(StmtKind::Pack { dest, accumulator }, span);
        Some(value)
    }

    /// Resolves `fragment.unpack()`.
    pub(super) fn unpack(&mut self, receiver: &Expr, ty: FragmentType, span: Span) -> Option<Expr> {
        let ExprKind::Local(fragment) = receiver.kind else { return None };
        let FragmentType { element: _, rows, columns } = ty;
        let sum = AccumulatorType { team: Team::Warpgroup, element: Scalar::F32, rows, columns };
        let (dest, value) = self.builder.temporary("unpacked", Type::Accumulator(sum), span);
        self.builder.emit(StmtKind::Unpack { dest, fragment }, span);
        Some(value)
    }

    /// Computes row and column of the thread's element `i`. The row is 64 · band + 16 · warp + lane
    /// / 4 + 8 · half, the column 8 · group + 2 · (lane % 4) + parity. For a single warp, the row
    /// is 16 · band + lane / 4 + 8 · half. Source: as for [`Cx::row_of`].
    pub(super) fn element_at(&mut self, ty: AccumulatorType, i: Expr, span: Span) -> Expr {
        let i = Expr { kind: ExprKind::Cast(Box::new(i)), ty: Scalar::U32.into(), span };
        let special = |special| Expr { kind: ExprKind::Special(special), ty: Scalar::U32.into(), span };
        let (warp, lane) = (special(Special::WarpIdx), special(Special::LaneIdx));
        let mut op = |op, left: Expr, right: u32| {
            let right = Expr::constant(Const::Int(right.into()), Scalar::U32, span);
            apply(&mut self.typing(), op, left, right, span)
        };
        let band = op(BinaryOp::Div, i.clone(), ty.elements_of_band());
        let in_band = op(BinaryOp::Rem, i.clone(), ty.elements_of_band());
        let (pair, group) = (op(BinaryOp::Div, i.clone(), 2), op(BinaryOp::Div, in_band, 4));
        let (half, parity) = (op(BinaryOp::Rem, pair, 2), op(BinaryOp::Rem, i, 2));
        let (warp, quad) = (op(BinaryOp::Rem, warp, 4), op(BinaryOp::Div, lane.clone(), 4));
        let in_quad = op(BinaryOp::Rem, lane, 4);
        let mut row = vec![op(BinaryOp::Mul, band, ty.team.rows()), quad, op(BinaryOp::Mul, half, 8)];
        if ty.team == Team::Warpgroup {
            row.insert(1, op(BinaryOp::Mul, warp, 16));
        }
        let column = [op(BinaryOp::Mul, group, 8), op(BinaryOp::Mul, in_quad, 2), parity];
        let sum = |cx: &mut Self, terms: &[Expr]| {
            let mut terms = terms.iter().cloned();
            let first = terms.next().unwrap_or(Expr::error(span));
            terms.fold(first, |sum, term| apply(&mut cx.typing(), BinaryOp::Add, sum, term, span))
        };
        let at = vec![sum(self, &row), sum(self, &column)];
        Expr { kind: ExprKind::Array(at), ty: Type::Array(Box::new(Scalar::U32.into()), 2), span }
    }
}

/// Returns the local that holds an accumulator. Reports a temporary.
pub(super) fn accumulator_local(sink: &mut Sink, value: &Expr) -> Option<LocalId> {
    if let ExprKind::Local(local) = value.kind {
        return Some(local);
    }
    if !value.is_error() {
        sink.error(Assignment::TemporaryAccumulator, value.span);
    }
    None
}

pub(super) fn reduce_rows(
    builder: &mut Builder,
    accumulator: LocalId,
    ty: AccumulatorType,
    op: RowOp,
    span: Span,
) -> Expr {
    let rows = RowsType { team: ty.team, element: ty.element, rows: ty.rows };
    let (dest, value) = builder.temporary("rows", Type::Rows(rows), span);
    builder.emit(StmtKind::ReduceRows { dest, op, accumulator }, span);
    value
}

/// Computes which of the thread's rows element `i` belongs to. A thread has two rows in each
/// band.
///
/// Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", accumulator D.
pub(super) fn row_of(typing: &mut Typing<'_>, ty: AccumulatorType, i: Expr, span: Span) -> Expr {
    let band = usize_op(typing, BinaryOp::Div, i.clone(), ty.elements_of_band(), span);
    let pair = usize_op(typing, BinaryOp::Div, i, 2, span);
    let half = usize_op(typing, BinaryOp::Rem, pair, 2, span);
    let first = usize_op(typing, BinaryOp::Mul, band, 2, span);
    apply(typing, BinaryOp::Add, first, half, span)
}

fn usize_op(typing: &mut Typing<'_>, op: BinaryOp, left: Expr, right: u32, span: Span) -> Expr {
    apply(typing, op, left, usize_number(right, span), span)
}

/// Builds `Accumulator::<f32, 64, 256>::zero()`. Without generics, the type is inferred.
pub(in crate::parse) fn zero_of(ty: &AccumulatorOwner, span: Span) -> Expr {
    Expr { kind: ExprKind::ZeroAccumulator, ty: ty.0.clone(), span }
}

/// Builds `Rows::<f32, 64>::filled(0.0)`.
pub(in crate::parse) fn rows_of(rows: RowsType, value: Expr, span: Span) -> Expr {
    Expr { kind: ExprKind::Repeat(Box::new(value)), ty: Type::Rows(rows), span }
}

/// Creates a constant `usize`.
pub(super) fn usize_number(value: u32, span: Span) -> Expr {
    Expr::constant(Const::Int(value.into()), Scalar::Usize, span)
}
