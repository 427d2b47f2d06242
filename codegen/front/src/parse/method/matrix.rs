//! Matrices in slices of global memory, and stores of accumulators to them.

use crate::ir::{
    Compound, Expr, ExprKind, GlobalMatrix, LocalId, MatrixStore, ParamId, Scalar, Span, StmtKind, Type,
};
use crate::parse::call::effect;
use crate::parse::compound::compound;
use crate::parse::cx::{Builder, Cx};

/// The arguments of `matrix`.
pub(super) struct Rows {
    pub(super) first: Expr,
    pub(super) extents: [Expr; 2],
    pub(super) stride: Expr,
}

/// The columns of an accumulator that are stored.
pub(super) struct Stored {
    pub(super) accumulator: LocalId,
    pub(super) first: Expr,
    pub(super) columns: u32,
}

impl Cx<'_> {
    /// Resolves `sum.store_to(matrix, at)`.
    pub(super) fn store_to(
        &mut self,
        Stored { accumulator, first, columns }: Stored,
        matrix: Vec<Expr>,
        at: [Expr; 2],
        span: Span,
    ) -> Option<Expr> {
        let [slice, start, rows, width, stride] = <[Expr; 5]>::try_from(matrix).ok()?;
        let ExprKind::Param(global) = slice.kind else { return None };
        self.declared.param_mut(global).written = true;
        let matrix = GlobalMatrix { global, first: start, extents: [rows, width], stride };
        let store = MatrixStore { accumulator, first, columns, matrix, at };
        Some(effect(&mut self.builder, StmtKind::StoreMatrix(Box::new(store)), span))
    }
}

/// Resolves `slice.matrix(first, [rows, columns], stride)`. The test that the whole matrix lies
/// in the slice is made here, not at the stores.
pub(super) fn matrix_of(
    builder: &mut Builder,
    slice: Expr,
    global: ParamId,
    element: Scalar,
    Rows { first, extents, stride }: Rows,
    span: Span,
) -> Expr {
    let first = Expr { kind: ExprKind::Cast(Box::new(first)), ty: Type::from(Scalar::U64), span };
    let first = kept(builder, "first", first, span);
    let [rows, columns] = extents.map(|extent| kept(builder, "extent", extent, span));
    let stride = kept(builder, "stride", stride, span);
    let extents = [rows.clone(), columns.clone()];
    let matrix = GlobalMatrix { global, first: first.clone(), extents, stride: stride.clone() };
    builder.emit(StmtKind::CheckMatrix(Box::new(matrix)), span);
    compound(Compound::Matrix(element), vec![slice, first, rows, columns, stride], span)
}

/// Returns a copy of a value that nothing else changes.
fn kept(builder: &mut Builder, name: &str, value: Expr, span: Span) -> Expr {
    if let ExprKind::Const(_) = value.kind {
        return value;
    }
    let (local, read) = builder.temporary(name, value.ty.clone(), span);
    builder.assign(local, value);
    read
}
