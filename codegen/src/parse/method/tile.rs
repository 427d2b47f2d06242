//! Methods of tiles in shared memory.

use crate::diag::mistake::{self, Counted};
use crate::ir::{Expr, ExprKind, RemoteCopy, Span, StmtKind, TileType, Type};
use crate::limits;
use crate::parse::cx::Cx;
use crate::parse::span;
use crate::parse::words::TileCall;

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
            TileCall::Bytes => self.known_u32(ty.bytes(), span),
            TileCall::Rows => {
                let rows = ty.extents.first().copied().unwrap_or(1);
                self.known_u32(u64::from(rows), span)
            }
            TileCall::Cols => self.known_u32(u64::from(ty.inner_extent()), span),
            TileCall::TileAt { index } => return self.tile_at(ty, index, span),
            TileCall::Band { i } => return self.band(tile, ty, i, syntax),
            TileCall::T => self.transposed(tile, ty, span),
            TileCall::Get { at } => {
                let (dest, value) = self.temporary("element", ty.element, span);
                self.emit(StmtKind::TileGet { dest, tile, at }, span);
                value
            }
            TileCall::Set { at, value } => self.effect(StmtKind::TileSet { tile, at, value }, span),
            TileCall::GetVec { at } => {
                let vector = self.read_vector(syntax, ty.element)?;
                let (dest, value) = self.temporary("elements", vector, span);
                self.emit(StmtKind::TileGet { dest, tile, at }, span);
                value
            }
            TileCall::SetVec { at, value } => {
                let value = self.written_vector(value, ty.element)?;
                self.effect(StmtKind::TileSet { tile, at, value }, span)
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

    /// `band::<R>(i)`: rows `i * R` and those after, as a tile of `R` rows.
    fn band(&mut self, tile: Expr, ty: &TileType, i: Expr, call: &syn::ExprMethodCall) -> Option<Expr> {
        let span = Span::of(call);
        let rows = self.count_of(call, Counted::Rows)?;
        let mut band = ty.clone();
        let whole = band.extents.first_mut()?;
        // The panels of a wider tile are as far apart as all of its rows take.
        if ty.rank() != 2 || rows == 0 || !whole.is_multiple_of(rows) || ty.panels() > 1 {
            self.error(mistake::Tile::Band { tile: ty.clone(), rows }, span);
            return None;
        }
        let bands = *whole / rows;
        *whole = rows;
        // The pattern of a swizzle repeats every 8 rows of its span, which is where a tile begins.
        let bytes = u64::from(rows) * ty.row_pitch();
        let alignment = limits::tile_alignment(ty.swizzle);
        if !bytes.is_multiple_of(alignment) {
            self.error(mistake::Tile::BandBytes { rows, bytes, alignment }, span);
            return None;
        }
        let band = Type::Tile(band);
        let stages = Expr { ty: Type::Stages(Box::new(band.clone()), bands), ..tile };
        Some(Expr { kind: ExprKind::Stage(Box::new(stages), Box::new(i)), ty: band, span })
    }
}
