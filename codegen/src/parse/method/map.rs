//! Methods of tensor maps.

use super::Args;
use crate::diag::Code;
use crate::ir::{Expr, ParamId, Span, StmtKind, TileType, TmaOp, Type};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;

impl Cx<'_> {
    pub(super) fn map_method(
        &mut self,
        map: ParamId,
        tile_ty: &TileType,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        match name {
            "load" => {
                let Some([tile, at, barrier]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                let at = self.coordinates(at, tile_ty.rank());
                let fits = self.expect_tile(&tile, tile_ty, map) & self.expect(&barrier, &Type::Barrier);
                if let (Some(at), true) = (at, fits) {
                    self.emit(StmtKind::Tma { map, op: TmaOp::Load { tile, at, barrier } }, span);
                }
                Some(unit(span))
            }
            "store" => {
                let Some([at, tile]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                let at = self.coordinates(at, tile_ty.rank());
                if let (Some(at), true) = (at, self.expect_tile(&tile, tile_ty, map)) {
                    self.params[map.0 as usize].written = true;
                    self.emit(StmtKind::Tma { map, op: TmaOp::Store { at, tile } }, span);
                }
                Some(unit(span))
            }
            "prefetch_descriptor" => {
                if self.exactly::<0>(name, args, span).is_some() {
                    self.emit(StmtKind::Tma { map, op: TmaOp::PrefetchDescriptor }, span);
                }
                Some(unit(span))
            }
            _ => None,
        }
    }

    /// A tile of exactly the map's type: box, element and swizzle are one and the same.
    fn expect_tile(&mut self, tile: &Expr, want: &TileType, map: ParamId) -> bool {
        match self.resolve(&tile.ty) {
            Type::Tile(found) if found == *want => true,
            Type::Error => true,
            Type::Tile(found) => {
                let name = self.params[map.0 as usize].name.clone();
                let message = format!("`{name}` moves a `{want}`, but this is a `{found}`");
                self.error(Code::TileMismatch, tile.span, message).help(format!(
                    "make both one type: a `type` alias in a `#[tma_module]` keeps `{name}` and the tile alike"
                ));
                false
            }
            _ => self.expect(tile, &Type::Tile(want.clone())),
        }
    }
}
