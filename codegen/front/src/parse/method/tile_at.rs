//! Coordinates by tile index: `tile_at` of maps and tiles, and `block_tile` of maps.

use crate::diag::mistake;
use crate::infer::{Infer, fold, settle};
use crate::ir::{
    Axis, BinaryOp, Const, Expr, ExprKind, Scalar, Span, Special, Strictness, TileType, Type, visit,
};
use crate::parse::cx::Cx;
use crate::words::shape::TileIndices;

/// The grid axes along which tiles are counted, from the innermost dimension outwards. The
/// runtime's `Grid::tiles` lays out blocks accordingly.
const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

impl Cx<'_> {
    /// Returns the coordinates of the tile with this index, for a tensor divided into tiles like
    /// `tile`.
    pub(super) fn tile_at(&mut self, tile: &TileType, index: TileIndices, span: Span) -> Option<Expr> {
        self.coordinates_of(tile, index, span)
    }

    /// Returns the coordinates of the tile whose index is the block index.
    pub(super) fn block_tile(&mut self, tile: &TileType, span: Span) -> Option<Expr> {
        let rank = tile.rank();
        if rank > AXES.len() {
            self.error(mistake::Copy::BlockTile { rank }, span);
            return None;
        }
        let coordinate = |axis| {
            let kind = ExprKind::Special(Special::BlockIdx(axis));
            Expr { kind, ty: Scalar::U32.into(), span }
        };
        let indices = AXES[..rank].iter().rev().map(|&axis| coordinate(axis)).collect();
        self.coordinates_of(tile, TileIndices { indices, ty: Scalar::U32.into() }, span)
    }

    /// Builds the array of each index times the tile's extent. An unsuffixed literal keeps its
    /// inference variable: the use decides the type of the coordinates.
    fn coordinates_of(&mut self, tile: &TileType, index: TileIndices, span: Span) -> Option<Expr> {
        let TileIndices { indices, ty: element } = index;
        let mut coordinates = vec![];
        for (index, &extent) in indices.into_iter().zip(&tile.extents) {
            coordinates.push(self.first_of(index, extent, &element)?);
        }
        let ty = Type::Array(Box::new(element), tile.rank() as u32);
        Some(Expr { kind: ExprKind::Array(coordinates), ty, span })
    }

    /// Returns the coordinate of the first element of tile `index` along a dimension. Reports an
    /// index whose coordinate is out of range.
    fn first_of(&mut self, index: Expr, extent: u32, element: &Type) -> Option<Expr> {
        let reach = i128::from(i32::MIN)..=i128::from(i32::MAX);
        if !self.nesting.is_left_out()
            && let Some(value) = known_integer(&self.infer, &index)
            && let coordinate = value.saturating_mul(i128::from(extent))
            && !reach.contains(&coordinate)
        {
            self.error(mistake::Copy::FarTile { index: value, extent, coordinate }, index.span);
            return None;
        }
        if extent == 1 {
            return Some(index);
        }
        let span = index.span;
        let extent = Expr::constant(Const::Int(i128::from(extent)), element.clone(), span);
        let kind = ExprKind::Binary(BinaryOp::Mul, Box::new(index), Box::new(extent), Strictness::Wrapping);
        Some(Expr { kind, ty: element.clone(), span })
    }
}

/// Returns the value of an integer expression, if it is already known.
pub(in crate::parse) fn known_integer(infer: &Infer, expr: &Expr) -> Option<i128> {
    known(infer, expr).as_int()
}

/// Returns the value of a condition, if it is already known. Of `a && b`, one of the two may
/// suffice.
pub(in crate::parse) fn known_bool(infer: &Infer, expr: &Expr) -> Option<bool> {
    if let ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b, Strictness::Lazy) = &expr.kind {
        let decides = *op == BinaryOp::Or;
        return match (known_bool(infer, a), known_bool(infer, b)) {
            (Some(a), Some(b)) => Some(if decides { a | b } else { a & b }),
            (Some(one), None) | (None, Some(one)) => (one == decides).then_some(one),
            (None, None) => None,
        };
    }
    if let ExprKind::Const(Const::Bool(holds)) = known(infer, expr).kind { Some(holds) } else { None }
}

/// Folds an expression as far as constants and inferred types allow.
pub(in crate::parse) fn known(infer: &Infer, expr: &Expr) -> Expr {
    let mut value = expr.clone();
    visit::within_mut(&mut value, &mut |node| {
        settle::settle_expr(infer, node);
        // A division by zero is reported with all other constants.
        let _reported_later = fold::fold(node);
    });
    value
}
