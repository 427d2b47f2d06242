//! Methods of tensor maps that a kernel modifies: in shared memory, and where they are published.

use crate::diag::Sink;
use crate::diag::mistake::{self, Argument};
use crate::ir::{Expr, ExprKind, MapEdit, ParamId, Scalar, Span, StmtKind, TileType, Type};
use crate::limits::BULK_BYTES;
use crate::parse::call::effect;
use crate::parse::cx::{Builder, Cx, Declared};
use crate::parse::types::turbofish_arguments;
use crate::words::{MapsCall, SharedMapCall};

impl Cx<'_> {
    pub(super) fn edit_method(
        &mut self,
        map: Expr,
        tile: &TileType,
        edit: SharedMapCall,
        call: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = Span::of(call);
        let edit = match edit {
            SharedMapCall::CopyFrom { map } => copied_map(self.sink, &map)?,
            SharedMapCall::SetAddress { global, i: index } => {
                MapEdit::Address { global: addressed(&mut self.declared, &global)?, index }
            }
            SharedMapCall::SetExtent { extent } => {
                MapEdit::Extent { dimension: self.dimension(call, tile.rank())?, extent }
            }
            // The innermost dimension has no stride: its elements are contiguous.
            SharedMapCall::SetStride { bytes } => {
                MapEdit::Stride { dimension: self.dimension(call, tile.rank() - 1)?, bytes }
            }
            SharedMapCall::Publish { maps, i: index } => {
                let ExprKind::Param(maps) = maps.kind else { return None };
                MapEdit::Publish { maps, index }
            }
        };
        Some(effect(&mut self.builder, StmtKind::EditMap { map, edit }, span))
    }

    /// Evaluates the dimension in `set_..::<D>`, which must be less than `end`.
    fn dimension(&mut self, call: &syn::ExprMethodCall, end: usize) -> Option<u32> {
        let word = call.method.to_string().into();
        let [argument] = turbofish_arguments(call)[..] else {
            self.error(Argument::NoDimension { word }, Span::of(call));
            return None;
        };
        let dimension = self.constant_argument(argument, &Scalar::Usize.into())?;
        match dimension.as_int().map(u32::try_from) {
            Some(Ok(found)) if (found as usize) < end => Some(found),
            _ => {
                self.error(mistake::Copy::MapDimension { word, end }, dimension.span);
                None
            }
        }
    }
}

pub(super) fn maps_method(
    builder: &mut Builder,
    maps: &Expr,
    tile: &TileType,
    call: MapsCall,
    span: Span,
) -> Option<Expr> {
    let ExprKind::Param(maps) = maps.kind else { return None };
    match call {
        MapsCall::Acquire { i: index } => Some(effect(builder, StmtKind::AcquireMap { maps, index }, span)),
        MapsCall::At { i: index } => {
            // The index is evaluated here. Its variable may change before the copy.
            let (held, index_now) = builder.temporary("map", Scalar::U32, span);
            builder.assign(held, index);
            let kind = ExprKind::Member(maps, Box::new(index_now));
            Some(Expr { kind, ty: Type::TensorMap(tile.clone()), span })
        }
    }
}

fn copied_map(sink: &mut Sink, from: &Expr) -> Option<MapEdit> {
    let ExprKind::Param(map) = from.kind else {
        sink.error(mistake::Copy::CopiedMap, from.span);
        return None;
    };
    Some(MapEdit::CopyFrom { map })
}

/// Returns the slice that a map is to refer to. Copies may then write to the slice.
fn addressed(declared: &mut Declared, global: &Expr) -> Option<ParamId> {
    let ExprKind::Param(id) = global.kind else { return None };
    let param = declared.param_mut(id);
    param.written = true;
    param.unit = param.unit.max(BULK_BYTES);
    Some(id)
}
