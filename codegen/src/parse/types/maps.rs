//! The types that are made of the tile that a tensor map moves.

use syn::GenericArgument;

use crate::diag::Code;
use crate::ir::{Scalar, Span, TileType, Type};
use crate::limits::IM2COL_RANKS;
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// A type that is made of the tile that a tensor map moves.
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
                let message = format!("a tensor map moves a `Tile<..>`, not {}", self.infer.name(&other));
                self.error(Code::UnsupportedType, Span::of(segment), message)
                    .help(format!("write `{}<Tile<f16, Shape2<128, 64>>>`", segment.ident));
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
                    let message = format!("im2col mode is for tensors of 3 to 5 dimensions, not of {rank}");
                    self.error(Code::UnsupportedType, span, message)
                        .help("they are images, one to three dimensions of pixels, and channels");
                    Type::Error
                }
            },
            (Some(other), Some(_)) => {
                let message = format!(
                    "an im2col map moves a tile of pixels by channels, not {}",
                    self.infer.name(&other)
                );
                self.error(Code::UnsupportedType, Span::of(segment), message)
                    .help("write `Im2colMap<Tile<f16, Shape2<64, 32>>, 4>`");
                Type::Error
            }
        }
    }
}
