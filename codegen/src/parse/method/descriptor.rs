//! Methods of maps that a kernel changes: in shared memory, and where they are published.

use super::Args;
use crate::diag::Code;
use crate::ir::{Expr, ExprKind, MapEdit, ParamId, Scalar, Span, StmtKind, TileType, Type};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;
use crate::parse::types::turbofish_arguments;

impl Cx<'_> {
    /// Methods of `Maps`: `at` and `acquire`.
    pub(super) fn maps_method(
        &mut self,
        maps: &Expr,
        tile: &TileType,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let ExprKind::Param(maps) = maps.kind else { return Some(Expr::error(span)) };
        if !matches!(name, "at" | "acquire") {
            return None;
        }
        let Some([index]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
        if !self.expect(&index, &Scalar::U32.into()) {
            return Some(Expr::error(span));
        }
        if name == "acquire" {
            self.emit(StmtKind::AcquireMap { maps, index }, span);
            return Some(unit(span));
        }
        // Which it is is read here, whatever becomes of its variable until a copy is asked for.
        let (held, index_now) = self.temporary("map", Scalar::U32, span);
        self.assign(held, index);
        Some(Expr {
            kind: ExprKind::MapAt(maps, Box::new(index_now)),
            ty: Type::TensorMap(tile.clone()),
            span,
        })
    }

    /// Methods of `SharedMap`.
    pub(super) fn edit_method(
        &mut self,
        map: Expr,
        tile: &TileType,
        call: &syn::ExprMethodCall,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let name = call.method.to_string();
        let edit = match name.as_str() {
            "copy_from" => self.exactly(&name, args, span).and_then(|[from]| self.copied_map(&from, tile)),
            "set_address" => self.exactly(&name, args, span).and_then(|[global, index]| {
                let global = self.addressed(&global, tile)?;
                self.expect_global_index(&index).then_some(MapEdit::Address { global, index })
            }),
            "set_extent" => self.exactly(&name, args, span).and_then(|[extent]| {
                let dimension = self.dimension(call, tile.rank(), span)?;
                self.expect(&extent, &Scalar::U32.into()).then_some(MapEdit::Extent { dimension, extent })
            }),
            "set_stride" => self.exactly(&name, args, span).and_then(|[bytes]| {
                // The innermost dimension has none: its elements lie one after the other.
                let dimension = self.dimension(call, tile.rank() - 1, span)?;
                self.expect(&bytes, &Scalar::U64.into()).then_some(MapEdit::Stride { dimension, bytes })
            }),
            "publish" => self.exactly(&name, args, span).and_then(|[maps, index]| {
                let fits =
                    self.expect(&maps, &Type::Maps(tile.clone())) & self.expect(&index, &Scalar::U32.into());
                match maps.kind {
                    ExprKind::Param(maps) if fits => Some(MapEdit::Publish { maps, index }),
                    _ => None,
                }
            }),
            _ => return None,
        };
        if let Some(edit) = edit {
            self.emit(StmtKind::EditMap { map, edit }, span);
        }
        Some(unit(span))
    }

    fn copied_map(&mut self, from: &Expr, tile: &TileType) -> Option<MapEdit> {
        if !self.expect(from, &Type::TensorMap(tile.clone())) {
            return None;
        }
        match from.kind {
            ExprKind::Param(map) => Some(MapEdit::CopyFrom { map }),
            ExprKind::Error => None,
            _ => {
                self.error(Code::UnsupportedExpression, from.span, "only a parameter is copied")
                    .help("take a `TensorMap<..>` as a parameter, and copy that");
                None
            }
        }
    }

    /// The slice that a map is pointed at: of the tile's elements. Copies may then write to it.
    fn addressed(&mut self, global: &Expr, tile: &TileType) -> Option<ParamId> {
        if !self.expect(global, &Type::Global(tile.element)) {
            return None;
        }
        let ExprKind::Param(id) = global.kind else { return None };
        let param = &mut self.params[id.0 as usize];
        param.written = true;
        param.copied = true;
        Some(id)
    }

    /// The dimension that `set_..::<D>` names, below `end`.
    fn dimension(&mut self, call: &syn::ExprMethodCall, end: usize, span: Span) -> Option<u32> {
        let name = &call.method;
        let [argument] = turbofish_arguments(call)[..] else {
            self.error(Code::ArgumentCount, span, format!("`{name}` does not say of which dimension"))
                .help(format!("write `{name}::<0>(..)` for the outermost"));
            return None;
        };
        let dimension = self.constant_argument(argument, &Scalar::Usize.into())?;
        match dimension.as_int().map(u32::try_from) {
            Some(Ok(found)) if (found as usize) < end => Some(found),
            _ => {
                let message =
                    format!("`{name}` is for dimensions 0 to {}, outermost first", end.saturating_sub(1));
                self.error(Code::IndexRange, dimension.span, message)
                    .help("the innermost dimension has no stride, and a map the dimensions of its tile");
                None
            }
        }
    }
}
