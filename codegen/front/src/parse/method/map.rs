//! Methods of tensor maps.

use super::bulk::no_reduction;
use super::hint::Target;
use crate::diag::Sink;
use crate::diag::mistake::{self, Name};
use crate::ir::{CopyKind, Expr, MapRef, Multicast, Span, StmtKind, TileCopy, TileType};
use crate::parse::call::effect;
use crate::parse::cx::{Cx, Declared};
use crate::words::{ColumnCall, MapCall, MapType, MapWord, Word};

/// A map as the receiver of a method.
pub(super) struct Map {
    map: MapRef,
    /// The cache policy of its copies.
    hint: Option<Expr>,
    pub(super) ty: MapType,
}

impl Map {
    /// Returns the map that `receiver` refers to, or `None` if an error was reported for it.
    pub(super) fn of(receiver: &Expr, declared: &Declared, tile: &TileType, rank: usize) -> Option<Self> {
        let Target { map, hint } = Target::of(receiver)?;
        let param = declared.param_of(map.param);
        let (name, ty_span) = (param.name.clone(), param.ty_span);
        Some(Self { map, hint, ty: MapType { name, ty_span, tile: tile.clone(), rank } })
    }
}

impl Cx<'_> {
    pub(super) fn map_method(&mut self, receiver: Expr, map: Map, call: MapCall, span: Span) -> Option<Expr> {
        let (at, kind) = match call {
            MapCall::TileAt { index } => return self.tile_at(&map.ty.tile, index, span),
            MapCall::BlockTile => return self.block_tile(&map.ty.tile, span),
            MapCall::PrefetchDescriptor => return self.prefetch_descriptor(map, span),
            MapCall::Hint { policy } => return self.hinted(receiver, map.hint.is_some(), policy, span),
            MapCall::Load { tile, at, barrier } => {
                (at, CopyKind::Load { to: tile, barrier, multicast: None })
            }
            MapCall::LoadMulticast { tile, at, barrier, mask } => {
                (at, CopyKind::Load { to: tile, barrier, multicast: Some(Multicast::Mask(Box::new(mask))) })
            }
            MapCall::LoadSliced { tile, at, barrier, axis } => {
                (at, CopyKind::Load { to: tile, barrier, multicast: Some(Multicast::Sliced(axis)) })
            }
            MapCall::Store { at, tile } => (at, CopyKind::Store { from: tile }),
            MapCall::Reduce { op, at, tile } => (at, CopyKind::Reduce { op, from: tile }),
            MapCall::Prefetch { at } => (at, CopyKind::Prefetch),
        };
        self.tile_copy(map, at, vec![], kind, span)
    }

    pub(super) fn column_method(
        &mut self,
        receiver: Expr,
        map: Map,
        call: ColumnCall,
        span: Span,
    ) -> Option<Expr> {
        let (at, offsets, kind) = match call {
            ColumnCall::PrefetchDescriptor => return self.prefetch_descriptor(map, span),
            ColumnCall::Hint { policy } => return self.hinted(receiver, map.hint.is_some(), policy, span),
            ColumnCall::Load { tile, at, offsets, barrier } => {
                (at, offsets, CopyKind::Load { to: tile, barrier, multicast: None })
            }
            ColumnCall::LoadMulticast { tile, at, offsets, barrier, mask } => {
                let multicast = Some(Multicast::Mask(Box::new(mask)));
                (at, offsets, CopyKind::Load { to: tile, barrier, multicast })
            }
            ColumnCall::Store { at, tile } => (at, vec![], CopyKind::Store { from: tile }),
            ColumnCall::Reduce { op, at, tile } => (at, vec![], CopyKind::Reduce { op, from: tile }),
            ColumnCall::Prefetch { at, offsets } => (at, offsets, CopyKind::Prefetch),
        };
        self.tile_copy(map, at, offsets, kind, span)
    }

    /// Emits a copy of the box at these coordinates, or of a column with these im2col offsets.
    fn tile_copy(
        &mut self,
        map: Map,
        at: Vec<Expr>,
        offsets: Vec<Expr>,
        kind: CopyKind<Expr>,
        span: Span,
    ) -> Option<Expr> {
        let Map { map, hint, ty: MapType { tile, .. } } = map;
        if let CopyKind::Reduce { op, .. } = kind
            && !op.takes_mapped(tile.element)
        {
            let name = MapWord::Reduce(op).name();
            no_reduction(self.sink, &name, tile.element, |element| op.takes_mapped(element), span);
            return None;
        }
        self.declared.param_mut(map.param).written |= kind.writes();
        let copy = TileCopy { map, at, offsets, hint, kind };
        Some(effect(&mut self.builder, StmtKind::TileCopy(Box::new(copy)), span))
    }

    fn prefetch_descriptor(&mut self, map: Map, span: Span) -> Option<Expr> {
        if map.hint.is_some() {
            self.error(mistake::Copy::DescriptorHint, span);
            return None;
        }
        Some(effect(&mut self.builder, StmtKind::PrefetchMap(map.map), span))
    }
}

/// Reports a method that needs a grid of tiles, which an im2col map does not have.
pub(super) fn no_tiles(sink: &mut Sink, name: &str, span: Span) -> Expr {
    sink.error(Name::NoTiles { word: name.to_owned().into() }, span);
    Expr::error(span)
}
