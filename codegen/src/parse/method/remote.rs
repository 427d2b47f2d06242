//! Methods of what other blocks of the cluster share. A block reads and writes tiles and arrays there, and arrives at
//! barriers; only a barrier's own block makes it and waits for it.

use super::Args;
use crate::ir::{Expr, Span, Type};
use crate::parse::cx::Cx;

impl Cx<'_> {
    pub(super) fn remote_method(
        &mut self,
        receiver: Expr,
        thing: &Type,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        match thing {
            Type::Tile(tile) => self.tile_method(receiver, tile, name, args, span),
            Type::SharedArray(element, len) => self.array_method(receiver, *element, *len, name, args, span),
            Type::Stages(_, len) if name == "len" => self.known_u32(name, u64::from(*len), args, span),
            Type::Barrier if REMOTE_BARRIER.contains(&name) => {
                self.barrier_method(receiver, name, args, span)
            }
            _ => None,
        }
    }
}

/// The methods of another block's barrier.
pub(super) const REMOTE_BARRIER: &[&str] = &["arrive", "arrive_expect_tx"];
