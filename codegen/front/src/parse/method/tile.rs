//! Methods of tiles in shared memory.

use super::flight::transposed_operand;
use super::known_u32;
use super::vector::written_vector;
use crate::diag::Sink;
use crate::diag::mistake::{self, Counted, Mismatch};
use crate::infer::Typing;
use crate::ir::{Compound, Expr, ExprKind, OperandType, RemoteCopy, Scalar, Span, StmtKind, TileType, Type};
use crate::limits;
use crate::parse::call::effect;
use crate::parse::compound::compound;
use crate::parse::cx::Cx;
use crate::parse::span;
use crate::words::TileCall;

impl Cx<'_> {
    pub(super) fn tile_method(
        &mut self,
        tile: Expr,
        ty: &TileType,
        call: TileCall,
        syntax: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = span::of_method_call(syntax);
        Some(match call {
            TileCall::Bytes => known_u32(&mut self.infer, ty.bytes(), span),
            TileCall::Rows => {
                let rows = ty.extents.first().copied().unwrap_or(1);
                known_u32(&mut self.infer, u64::from(rows), span)
            }
            TileCall::Cols => known_u32(&mut self.infer, u64::from(ty.inner_extent()), span),
            TileCall::TileAt { index } => return self.tile_at(ty, index, span),
            TileCall::Band { i } => return self.band(tile, ty, i, syntax),
            TileCall::Columns { j } => return self.panels(tile, ty, j, syntax),
            TileCall::Batch { i } => return batch(self.sink, tile, ty, i, span),
            TileCall::Sparse { metadata } => {
                let operand = OperandType { sparse: true, ..OperandType::from(ty.clone()) };
                return sparse(&mut self.typing(), Compound::Operand(operand), tile, metadata, span);
            }
            TileCall::T => transposed_operand(tile, ty, true, span),
            TileCall::TIf => return self.transposed_if(tile, ty, syntax),
            TileCall::Get { at } => {
                let (dest, value) = self.builder.temporary("element", ty.element, span);
                self.builder.emit(StmtKind::TileGet { dest, tile, at }, span);
                value
            }
            TileCall::Set { at, value } => {
                effect(&mut self.builder, StmtKind::TileSet { tile, at, value }, span)
            }
            TileCall::GetVec { at } => {
                let vector = self.read_vector(syntax, ty.element)?;
                let (dest, value) = self.builder.temporary("elements", vector, span);
                self.builder.emit(StmtKind::TileGet { dest, tile, at }, span);
                value
            }
            TileCall::SetVec { at, value } => {
                let value = written_vector(&mut self.typing(), value, ty.element)?;
                effect(&mut self.builder, StmtKind::TileSet { tile, at, value }, span)
            }
            TileCall::CopyTo { to, at, count, barrier } => {
                let copy = RemoteCopy { op: None, from: tile, to, at, count, barrier };
                return self.remote_copy(copy, ty.element, span);
            }
            TileCall::ReduceTo { op, to, at, count, barrier } => {
                let copy = RemoteCopy { op: Some(op), from: tile, to, at, count, barrier };
                return self.remote_copy(copy, ty.element, span);
            }
        })
    }

    /// Resolves `band::<R>(i)`: the `R` rows from row `i * R` on, as a tile. Rows are counted
    /// through all matrices of a batch.
    fn band(&mut self, tile: Expr, ty: &TileType, i: Expr, call: &syn::ExprMethodCall) -> Option<Expr> {
        let span = Span::of(call);
        let rows = self.count_of(call, Counted::Rows)?;
        let Some(parts) = one_matrix(ty).and_then(|matrix| Parts::of(&matrix.panel(), 0, rows)) else {
            self.error(mistake::Tile::Band { tile: ty.clone(), rows }, span);
            return None;
        };
        let band = part(self.sink, tile, parts, i, span)?;
        if ty.panels() == 1 {
            return Some(band);
        }
        // In a tile of several panels, the distance between panels depends on the rows of the whole
        // tile. A tile type with fewer rows cannot express that, but an operand can.
        let operand = OperandType { band: Some(rows), ..OperandType::from(ty.clone()) };
        Some(compound(Compound::Operand(operand), vec![band], span))
    }

    /// Resolves `columns::<C>(j)`: the `C` columns from column `j * C` on, as a tile. Rows are
    /// divided into panels, and a part of a panel is not a tile.
    fn panels(&mut self, tile: Expr, ty: &TileType, j: Expr, call: &syn::ExprMethodCall) -> Option<Expr> {
        let span = Span::of(call);
        let columns = self.count_of(call, Counted::TileColumns)?;
        let panel = ty.panel().inner_extent();
        let is_whole = columns == ty.inner_extent() || columns.is_multiple_of(panel);
        let parts = Parts::of(ty, 1, columns).filter(|_| ty.rank() == 2 && is_whole);
        let Some(parts) = parts else {
            self.error(mistake::Tile::Columns { tile: ty.clone(), columns }, span);
            return None;
        };
        part(self.sink, tile, parts, j, span)
    }
}

/// Returns a tile of two dimensions, or of more whose matrices follow each other, as one matrix.
fn one_matrix(ty: &TileType) -> Option<TileType> {
    match ty.extents[..] {
        [_, _] => Some(ty.clone()),
        [ref outer @ .., columns] if ty.rank() > 2 && ty.panels() == 1 => {
            let rows = outer.iter().try_fold(1u32, |rows, &extent| rows.checked_mul(extent))?;
            Some(TileType { extents: vec![rows, columns], ..ty.clone() })
        }
        _ => None,
    }
}

/// Resolves `batch(i)`: matrix `i` of several, as a two-dimensional tile.
fn batch(sink: &mut Sink, tile: Expr, ty: &TileType, i: Expr, span: Span) -> Option<Expr> {
    let parts = match ty.extents[..] {
        [ref outer @ .., count, rows, columns]
            if outer.iter().all(|&extent| extent == 1) && (count == 1 || ty.panels() == 1) =>
        {
            Some(Parts { count, part: TileType { extents: vec![rows, columns], ..ty.clone() } })
        }
        _ => None,
    };
    let Some(parts) = parts else {
        sink.error(mistake::Tile::Batch(ty.clone()), span);
        return None;
    };
    part(sink, tile, parts, i, span)
}

/// Resolves `sparse(metadata)` of a tile or a fragment: two of every four elements of a row are
/// stored.
pub(super) fn sparse(
    typing: &mut Typing<'_>,
    operand: Compound,
    there: Expr,
    metadata: Expr,
    span: Span,
) -> Option<Expr> {
    let ty_of_metadata = typing.infer.resolve(&metadata.ty);
    if ty_of_metadata == Type::Error {
        return None;
    }
    let is_array = match ty_of_metadata.elements() {
        Some((element, _)) => typing.infer.unify(&element, &Scalar::U32.into(), metadata.span),
        None => false,
    };
    if !is_array {
        let found = typing.infer.partial(&metadata.ty);
        typing.error(Mismatch::NoMetadata(found), metadata.span);
        return None;
    }
    Some(compound(operand, vec![there, metadata], span))
}

/// Selects part `i` of a tile.
fn part(sink: &mut Sink, tile: Expr, Parts { count, part }: Parts, i: Expr, span: Span) -> Option<Expr> {
    // The pattern of a swizzle repeats every 8 rows of its span. A tile must begin at a
    // repetition.
    let (bytes, alignment) = (part.shared_bytes(), limits::tile_alignment(part.swizzle));
    if count > 1 && !bytes.is_multiple_of(alignment) {
        sink.error(mistake::Tile::PartBytes { part, bytes, alignment }, span);
        return None;
    }
    let part = Type::Tile(part);
    let stages = Expr { ty: Type::Stages(Box::new(part.clone()), count), ..tile };
    Some(Expr { kind: ExprKind::Stage(Box::new(stages), Box::new(i)), ty: part, span })
}

/// A division of a tile into contiguous tiles.
struct Parts {
    count: u32,
    part: TileType,
}

impl Parts {
    /// Divides a tile along `dimension` into parts of `extent`.
    fn of(ty: &TileType, dimension: usize, extent: u32) -> Option<Self> {
        let mut part = ty.clone();
        let whole = part.extents.get_mut(dimension)?;
        let count = whole.checked_div(extent).filter(|_| whole.is_multiple_of(extent))?;
        *whole = extent;
        Some(Self { count, part })
    }
}
