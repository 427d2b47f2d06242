//! Methods of tensor maps.

use super::Args;
use super::hint::Target;
use crate::diag::Code;
use crate::ir::{
    CopyKind, Expr, ExprKind, MapRef, Multicast, ParamId, ReduceOp, Scalar, Span, StmtKind, TileCopy,
    TileType, Type,
};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;

/// A map that a method is called on.
pub(super) struct Map<'t> {
    map: MapRef,
    hint: Option<Expr>,
    pub(super) tile: &'t TileType,
    /// Dimensions of the tensor: as many coordinates are wanted.
    pub(super) rank: usize,
}

impl Map<'_> {
    /// A copy of the box at these coordinates.
    fn copy(&self, at: Vec<Expr>, kind: CopyKind<Expr>) -> TileCopy {
        self.column(at, vec![], kind)
    }

    /// A copy of the column that is moved by these offsets.
    fn column(&self, at: Vec<Expr>, offsets: Vec<Expr>, kind: CopyKind<Expr>) -> TileCopy {
        TileCopy { map: self.map.clone(), at, offsets, hint: self.hint.clone(), kind }
    }
}

impl Cx<'_> {
    pub(super) fn map_method(
        &mut self,
        receiver: Expr,
        (tile, rank): (&TileType, usize),
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let Some(Target { map, hint }) = Target::of(&receiver) else {
            return Some(Expr::error(span));
        };
        let map = Map { map, hint, tile, rank };
        let in_columns = matches!(receiver.ty, Type::Im2colMap(..));
        let copy = match name {
            "hint" => return Some(self.hinted(receiver, map.hint.is_some(), args, span)),
            "tile_at" | "block_tile" if in_columns => return Some(self.no_tiles(name, span)),
            "tile_at" => return Some(self.tile_at(tile, args, span)),
            "block_tile" => return Some(self.block_tile(tile, args, span)),
            "load" if in_columns => self.load_column(&map, args, span),
            "load" => self.load(&map, args, span),
            "load_multicast" if in_columns => self.load_column_multicast(&map, args, span),
            "load_multicast" => self.load_multicast(&map, args, span),
            "load_sliced" if in_columns => return None,
            "load_sliced" => self.load_sliced(&map, args, span),
            "store" => self
                .exactly(name, args, span)
                .and_then(|[at, tile]| self.place_and_tile(&map, at, tile))
                .map(|(at, from)| map.copy(at, CopyKind::Store { from })),
            "prefetch" if in_columns => self.prefetch_column(&map, args, span),
            "prefetch" => self
                .exactly(name, args, span)
                .and_then(|[at]| self.coordinates(at, map.rank))
                .map(|at| map.copy(at, CopyKind::Prefetch)),
            "prefetch_descriptor" => {
                self.prefetch_descriptor(map, args, span);
                return Some(unit(span));
            }
            _ => {
                let with = name.strip_prefix("reduce_")?;
                let op = ReduceOp::ALL.into_iter().find(|op| op.name() == with)?;
                self.reduce(&map, op, args, span)
            }
        };
        if let Some(copy) = copy {
            self.params[copy.map.param.0 as usize].written |= copy.kind.writes();
            self.emit(StmtKind::TileCopy(Box::new(copy)), span);
        }
        Some(unit(span))
    }

    /// An im2col map has no grid of tiles.
    fn no_tiles(&mut self, name: &str, span: Span) -> Expr {
        let message =
            format!("an im2col map has no `{name}`: it moves columns of pixels, which are no grid of tiles");
        self.error(Code::UnknownMethod, span, message)
            .help("write the coordinates of the column's first pixel: `[image, y, x, channel]`");
        Expr::error(span)
    }

    fn load(&mut self, map: &Map<'_>, args: &Args, span: Span) -> Option<TileCopy> {
        let [tile, at, barrier] = self.exactly("load", args, span)?;
        let place = self.place_and_tile(map, at, tile);
        let completes = self.expect(&barrier, &Type::Barrier);
        let (at, to) = place.filter(|_| completes)?;
        Some(map.copy(at, CopyKind::Load { to, barrier, multicast: None }))
    }

    fn load_multicast(&mut self, map: &Map<'_>, args: &Args, span: Span) -> Option<TileCopy> {
        let [tile, at, barrier, mask] = self.exactly("load_multicast", args, span)?;
        let place = self.place_and_tile(map, at, tile);
        let fits = self.expect(&barrier, &Type::Barrier) & self.expect(&mask, &Scalar::U16.into());
        let (at, to) = place.filter(|_| fits)?;
        let multicast = Some(Multicast::Mask(Box::new(mask)));
        Some(map.copy(at, CopyKind::Load { to, barrier, multicast }))
    }

    fn load_sliced(&mut self, map: &Map<'_>, args: &Args, span: Span) -> Option<TileCopy> {
        let [tile, at, barrier, axis] = self.exactly("load_sliced", args, span)?;
        let at = self.coordinates(at, map.rank);
        // Which tile it must be depends on the cluster: `check` knows.
        let is_tile = matches!(self.resolve(&tile.ty), Type::Tile(_))
            || self.expect_tile(&tile, map.tile, map.map.param);
        let fits = is_tile & self.expect(&barrier, &Type::Barrier) & self.expect(&axis, &Type::ClusterAxis);
        match axis.kind {
            ExprKind::ClusterAxis(axis) if fits => {
                let multicast = Some(Multicast::Sliced(axis));
                Some(map.copy(at?, CopyKind::Load { to: tile, barrier, multicast }))
            }
            _ => None,
        }
    }

    /// `load(tile, at, offsets, barrier)`.
    fn load_column(&mut self, map: &Map<'_>, args: &Args, span: Span) -> Option<TileCopy> {
        let [tile, at, offsets, barrier] = self.exactly("load", args, span)?;
        let place = self.place_and_tile(map, at, tile);
        let offsets = self.offsets(offsets, map.rank);
        let completes = self.expect(&barrier, &Type::Barrier);
        let ((at, to), offsets) = place.zip(offsets).filter(|_| completes)?;
        Some(map.column(at, offsets, CopyKind::Load { to, barrier, multicast: None }))
    }

    /// `load_multicast(tile, at, offsets, barrier, mask)`.
    fn load_column_multicast(&mut self, map: &Map<'_>, args: &Args, span: Span) -> Option<TileCopy> {
        let [tile, at, offsets, barrier, mask] = self.exactly("load_multicast", args, span)?;
        let place = self.place_and_tile(map, at, tile);
        let offsets = self.offsets(offsets, map.rank);
        let fits = self.expect(&barrier, &Type::Barrier) & self.expect(&mask, &Scalar::U16.into());
        let ((at, to), offsets) = place.zip(offsets).filter(|_| fits)?;
        let multicast = Some(Multicast::Mask(Box::new(mask)));
        Some(map.column(at, offsets, CopyKind::Load { to, barrier, multicast }))
    }

    /// `prefetch(at, offsets)`.
    fn prefetch_column(&mut self, map: &Map<'_>, args: &Args, span: Span) -> Option<TileCopy> {
        let [at, offsets] = self.exactly("prefetch", args, span)?;
        let at = self.coordinates(at, map.rank);
        let (at, offsets) = at.zip(self.offsets(offsets, map.rank))?;
        Some(map.column(at, offsets, CopyKind::Prefetch))
    }

    fn reduce(&mut self, map: &Map<'_>, op: ReduceOp, args: &Args, span: Span) -> Option<TileCopy> {
        let name = format!("reduce_{}", op.name());
        let [at, tile] = self.exactly(&name, args, span)?;
        let element = map.tile.element;
        if !op.takes_mapped(element) {
            let message = format!("the copy engine has no `{name}` of elements of type `{element}`");
            let fitting = Scalar::ALL.into_iter().filter(|&element| op.takes_mapped(element));
            let fitting: Vec<_> = fitting.map(Scalar::name).collect();
            self.error(Code::ReduceElement, span, message).help(format!("it is for {}", fitting.join(", ")));
            return None;
        }
        let (at, from) = self.place_and_tile(map, at, tile)?;
        Some(map.copy(at, CopyKind::Reduce { op, from }))
    }

    fn prefetch_descriptor(&mut self, map: Map<'_>, args: &Args, span: Span) {
        let Some([]) = self.exactly("prefetch_descriptor", args, span) else { return };
        if map.hint.is_some() {
            self.error(Code::UnsupportedExpression, span, "the prefetch of a descriptor takes no hint")
                .help("call it on the map itself");
            return;
        }
        self.emit(StmtKind::PrefetchMap(map.map), span);
    }

    /// Coordinates and a tile, if both suit the map.
    fn place_and_tile(&mut self, map: &Map<'_>, at: Expr, tile: Expr) -> Option<(Vec<Expr>, Expr)> {
        let at = self.coordinates(at, map.rank);
        let fits = self.expect_tile(&tile, map.tile, map.map.param);
        Some((at.filter(|_| fits)?, tile))
    }

    /// A tile of exactly the map's type: box, element and swizzle are one and the same.
    fn expect_tile(&mut self, tile: &Expr, want: &TileType, map: ParamId) -> bool {
        match self.resolve(&tile.ty) {
            Type::Tile(found) if found == *want => true,
            Type::Error => true,
            Type::Tile(found) => {
                let (name, ty) =
                    (self.params[map.0 as usize].name.clone(), self.params[map.0 as usize].ty_span);
                let message = format!("`{name}` moves a `{want}`, but this is a `{found}`");
                self.error(Code::TileMismatch, tile.span, message)
                    .label(ty, format!("the type of `{name}` says what it moves"))
                    .help(format!(
                        "make both one type: a `type` alias in a `#[tma_module]` keeps `{name}` and the tile alike"
                    ));
                false
            }
            Type::Remote(_) => {
                self.error(
                    Code::TypeMismatch,
                    tile.span,
                    "a copy moves the block's own tile, not a remote one",
                )
                .help("`load_multicast` brings a tile to other blocks; each block stores its own");
                false
            }
            _ => self.expect(tile, &Type::Tile(want.clone())),
        }
    }
}
