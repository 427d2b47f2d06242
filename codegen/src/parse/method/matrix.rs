//! Rows of slices of global memory, and accumulators that are stored to them.

use crate::ir::{
    AccumulatorType, BinaryOp, Compound, Const, Expr, ExprKind, GlobalMatrix, LocalId, MatrixStore, ParamId,
    Scalar, Span, StmtKind, Type,
};
use crate::parse::cx::Cx;
use crate::parse::pipeline::{binary, number};

/// What `matrix` is told.
pub(super) struct Rows {
    pub(super) first: Expr,
    pub(super) extents: [Expr; 2],
    pub(super) stride: Expr,
}

impl Cx<'_> {
    /// `slice.matrix(first, [rows, columns], stride)`, all of which is in the slice: that is
    /// tested here, and not where it is stored to.
    pub(super) fn matrix_of(
        &mut self,
        slice: Expr,
        element: Scalar,
        Rows { first, extents, stride }: Rows,
        (message, span): (String, Span),
    ) -> Expr {
        let first = self.kept("first", wide(first, span), span);
        let [rows, columns] = extents.map(|extent| self.kept("extent", extent, span));
        let stride = self.kept("stride", stride, span);
        if let ExprKind::Param(global) = slice.kind {
            let len = Expr { kind: ExprKind::GlobalLen(global), ty: Scalar::U64.into(), span };
            let condition = is_within([&first, &rows, &columns, &stride], &len);
            self.emit(StmtKind::Assert { condition, message }, span);
        }
        self.compound(Compound::Matrix(element), vec![slice, first, rows, columns, stride], span)
    }

    /// A value in a variable, which nothing else changes.
    fn kept(&mut self, name: &str, value: Expr, span: Span) -> Expr {
        if let ExprKind::Const(_) = value.kind {
            return value;
        }
        let (local, read) = self.temporary(name, value.ty.clone(), span);
        self.assign(local, value);
        read
    }

    /// `sum.store_to(matrix, at)`: `part` has the columns that are stored.
    pub(super) fn store_to(
        &mut self,
        (accumulator, first): (LocalId, Expr),
        part: AccumulatorType,
        matrix: Vec<Expr>,
        at: [Expr; 2],
        span: Span,
    ) -> Option<Expr> {
        let [slice, start, rows, columns, stride] = <[Expr; 5]>::try_from(matrix).ok()?;
        let global = self.written_slice(&slice)?;
        let matrix = GlobalMatrix { global, first: start, extents: [rows, columns], stride };
        let store = MatrixStore { accumulator, first, columns: part.columns, matrix, at };
        Some(self.effect(StmtKind::StoreMatrix(Box::new(store)), span))
    }

    /// The parameter that a slice is, which the kernel writes.
    fn written_slice(&mut self, slice: &Expr) -> Option<ParamId> {
        let ExprKind::Param(global) = slice.kind else { return None };
        self.params[global.0 as usize].written = true;
        Some(global)
    }
}

/// Whether rows from `first` on are in a slice of `len` elements. No sum is greater than 64 bits
/// hold: a row less than there are, of at most 2^32 - 1 elements each, and one more.
fn is_within([first, rows, columns, stride]: [&Expr; 4], len: &Expr) -> Expr {
    let span = first.span;
    let is_zero = |extent: &Expr| binary_bool(BinaryOp::Eq, extent.clone(), number(0, span));
    let is_empty = binary(BinaryOp::Or, is_zero(rows), is_zero(columns));
    let one = Expr::constant(Const::Int(1), Scalar::U64, span);
    let before = binary(BinaryOp::Sub, wide(rows.clone(), span), one);
    let all = binary(BinaryOp::Mul, before, wide(stride.clone(), span));
    let all = binary(BinaryOp::Add, all, wide(columns.clone(), span));
    let begins = binary_bool(BinaryOp::Le, first.clone(), len.clone());
    let left = binary(BinaryOp::Sub, len.clone(), first.clone());
    let ends = binary_bool(BinaryOp::Le, all, left);
    binary(BinaryOp::Or, is_empty, binary(BinaryOp::And, begins, ends))
}

fn binary_bool(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr { ty: Scalar::Bool.into(), ..binary(op, left, right) }
}

/// As a `u64`.
fn wide(value: Expr, span: Span) -> Expr {
    Expr { kind: ExprKind::Cast(Box::new(value)), ty: Type::from(Scalar::U64), span }
}
