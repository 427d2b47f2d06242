//! The types that are parameterised by the tile that a tensor map copies.

use syn::GenericArgument;

use crate::diag::mistake::Types;
use crate::ir::{Scalar, Span, TileType, Type};
use crate::limits::IM2COL_RANKS;
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// Resolves a type parameterised by the tile that a tensor map copies.
    pub(super) fn map_type(
        &mut self,
        generics: &[&GenericArgument],
        segment: &syn::PathSegment,
        make: fn(TileType) -> Type,
    ) -> Type {
        let [tile] = *generics else { return Type::Error };
        match self.type_argument(tile) {
            Some(Type::Tile(tile)) => make(tile),
            Some(Type::Error) | None => Type::Error,
            Some(other) => {
                let (map, found) = (segment.ident.to_string(), self.infer.partial(&other));
                self.error(Types::Moved { map, found }, Span::of(segment));
                Type::Error
            }
        }
    }

    pub(super) fn im2col_type(&mut self, generics: &[&GenericArgument], segment: &syn::PathSegment) -> Type {
        let [tile, rank] = *generics else { return Type::Error };
        let (tile, span) = (self.type_argument(tile), Span::of(rank));
        let rank = self.constant_argument(rank, &Scalar::Usize.into()).and_then(|rank| rank.as_int());
        match (tile, rank) {
            (Some(Type::Error) | None, _) | (_, None) => Type::Error,
            (Some(Type::Tile(tile)), Some(rank)) if tile.rank() == 2 => match u32::try_from(rank) {
                Ok(rank) if IM2COL_RANKS.contains(&(rank as usize)) => Type::Im2colMap(tile, rank),
                _ => {
                    self.error(Types::Im2colRank(rank), span);
                    Type::Error
                }
            },
            (Some(other), Some(rank)) => {
                let found = self.infer.partial(&other);
                self.error(Types::Im2colTile { found, rank }, Span::of(segment));
                Type::Error
            }
        }
    }
}
