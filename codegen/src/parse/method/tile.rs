//! Methods of tiles in shared memory.

use super::Args;
use crate::ir::{Expr, Span, StmtKind, TileType};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;

impl Cx<'_> {
    pub(super) fn tile_method(
        &mut self,
        tile: Expr,
        ty: &TileType,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        match name {
            "bytes" => self.known_u32(name, ty.bytes(), args, span),
            "rows" => {
                let rows = ty.extents.first().copied().unwrap_or(1);
                self.known_u32(name, u64::from(rows), args, span)
            }
            "cols" => self.known_u32(name, u64::from(ty.inner_extent()), args, span),
            "tile_at" => Some(self.tile_at(ty, args, span)),
            "get" => {
                let Some([at]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                let Some(at) = self.coordinates(at, ty.rank()) else { return Some(Expr::error(span)) };
                let (dest, value) = self.temporary("element", ty.element, span);
                self.emit(StmtKind::TileGet { dest, tile, at }, span);
                Some(value)
            }
            "set" => {
                let Some([at, value]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                let at = self.coordinates(at, ty.rank());
                if self.expect(&value, &ty.element.into())
                    && let Some(at) = at
                {
                    self.emit(StmtKind::TileSet { tile, at, value }, span);
                }
                Some(unit(span))
            }
            _ => None,
        }
    }
}
