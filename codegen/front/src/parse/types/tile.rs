//! The type of a tile: its element, its shape and its swizzle.

use quote::ToTokens;
use syn::{GenericArgument, PathSegment};

use super::{generic_arguments, generics_of, swizzle_named, type_path};
use crate::diag::mistake::Types;
use crate::ir::{GenericValue, Span, TileSwizzle, TileType};
use crate::parse::cx::{Binding, Cx};
use crate::parse::names;
use crate::words::TypeWord;

/// The most dimensions that a shape has.
const MOST_DIMENSIONS: usize = 5;

impl Cx<'_> {
    pub(super) fn tile_type(&mut self, generics: &[&GenericArgument]) -> Option<TileType> {
        let [element, shape, ref swizzle @ ..] = *generics else { return None };
        let element = self.scalar_argument(element);
        let extents = self.shape(shape);
        let swizzle = match swizzle.first() {
            Some(argument) => self.swizzle(argument),
            None => Some(TileSwizzle::None),
        };
        Some(TileType { element: element?, extents: extents?, swizzle: swizzle? })
    }

    /// Returns whether a tile has numbers instead of a shape, as in `Tile<f32, 64, 32>`, or
    /// neither, and reports it.
    pub(super) fn refuse_tile_without_shape(&mut self, segment: &PathSegment) -> bool {
        let (extents, others): (Vec<_>, Vec<_>) =
            generic_arguments(segment).into_iter().partition(|argument| self.is_number(argument));
        let is_swizzle =
            |argument: &&&GenericArgument| self.part_word(argument).is_some_and(|word| !word.is_shape());
        let swizzle = others.iter().find(is_swizzle).map(|swizzle| text(swizzle));
        let elements: Vec<_> = others.iter().filter(|argument| !is_swizzle(argument)).collect();
        // A second one may be a shape.
        let [element] = elements[..] else { return false };
        if extents.len() > MOST_DIMENSIONS || extents.is_empty() && others.len() > 1 {
            return false;
        }
        let extents = extents.into_iter().map(text).collect();
        self.error(Types::NoShape { element: text(element), extents, swizzle }, Span::of(segment));
        true
    }

    /// Whether a generic argument is a number. syn takes the lone name of a constant for a type.
    fn is_number(&self, argument: &GenericArgument) -> bool {
        if let GenericArgument::Const(_) = argument {
            return true;
        }
        let Some(name) = type_path(argument).and_then(names::lone_name) else { return false };
        match self.frames.lookup(&name) {
            Some(binding) => matches!(binding, Binding::Value(_)),
            None => self.module.constant(&name).is_some(),
        }
    }

    pub(super) fn shape(&mut self, argument: &GenericArgument) -> Option<Vec<u32>> {
        if let Some(GenericValue::Shape(extents)) =
            type_path(argument).and_then(|path| self.bound_generic(path))
        {
            return Some(extents);
        }
        let before = self.sink.len();
        let (segment, alias) = self.named_segment(argument).unzip();
        let word = segment.as_ref().and_then(|segment| TypeWord::named(&names::text(&segment.ident)));
        let (Some(segment), Some(word)) = (segment, word.filter(|word| word.is_shape())) else {
            if self.sink.len() == before {
                self.error(Types::Shape, Span::of(argument));
            }
            return None;
        };
        let extents = generics_of(self.sink, word, &segment, Span::of(argument))?;
        let extents: Vec<_> = self.in_alias(alias.flatten().as_ref(), |cx| {
            extents.iter().map(|&extent| cx.u32_argument(extent)).collect()
        })?;
        extents.into_iter().collect()
    }

    pub(super) fn swizzle(&mut self, argument: &GenericArgument) -> Option<TileSwizzle> {
        if let Some(GenericValue::Swizzle(swizzle)) =
            type_path(argument).and_then(|path| self.bound_generic(path))
        {
            return Some(swizzle);
        }
        let before = self.sink.len();
        let segment = self.named_segment(argument);
        let found = segment.and_then(|(segment, _)| swizzle_named(&names::text(&segment.ident)));
        if found.is_none() && self.sink.len() == before {
            self.error(Types::Swizzle, Span::of(argument));
        }
        found
    }
}

/// Formats a generic argument as the source has it.
fn text(argument: &GenericArgument) -> String {
    let text = argument.to_token_stream().to_string();
    if let GenericArgument::Const(_) = argument { text } else { text.replace(' ', "") }
}
