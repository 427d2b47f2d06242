//! Methods of tiles in shared memory.

use crate::ir::{Expr, RemoteCopy, StmtKind, TileType};
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
}
