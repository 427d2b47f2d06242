//! Fields of tensor maps that a kernel sets, as far as constants show. Source: CUDA driver API,
//! `cuTensorMapEncodeTiled`.

use super::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::{CopyKind, Expr, ExprKind, Kernel, MapEdit, ParamId, StmtKind, Type, visit};
use crate::limits::BULK_BYTES;

/// The exclusive bound of strides, in bytes.
const STRIDE_LIMIT: i128 = 1 << 40;

pub(super) fn edit(rules: &Rules<'_>, map: &Expr, edit: &MapEdit, sink: &mut Sink) {
    let Type::SharedMap(tile) = &map.ty else { return };
    let variables = &rules.variables;
    match edit {
        MapEdit::Address { index, .. } => {
            let unit = u64::from(BULK_BYTES / tile.element.bytes());
            if !variables.of(index).bits.is_multiple_of(unit) {
                sink.error(mistake::Copy::MapAddress { element: tile.element }, index.span);
            }
        }
        MapEdit::Extent { extent, .. } if extent.as_int() == Some(0) => {
            sink.error(mistake::Copy::MapExtent, extent.span);
        }
        MapEdit::Extent { dimension, extent } if *dimension as usize + 1 == tile.rank() => {
            let (element, unit) = (tile.element, BULK_BYTES / tile.element.bytes());
            let is_ragged = !variables.of(extent).bits.is_multiple_of(u64::from(unit));
            if is_ragged && is_stored_through(rules.kernel, map, *dimension) {
                sink.error(mistake::Copy::MapRow { element, unit }, extent.span);
            }
        }
        MapEdit::Stride { bytes, .. } => {
            let whole = variables.of(bytes).bits.is_multiple_of(u64::from(BULK_BYTES));
            if !whole || bytes.as_int().is_some_and(|bytes| bytes >= STRIDE_LIMIT) {
                sink.error(mistake::Copy::MapStride, bytes.span);
            }
        }
        MapEdit::CopyFrom { .. } | MapEdit::Extent { .. } | MapEdit::Publish { .. } => {}
    }
}

/// Whether the kernel stores through a map whose innermost extent it sets once: through a parameter
/// in which it publishes no other map.
fn is_stored_through(kernel: &Kernel, map: &Expr, innermost: u32) -> bool {
    let id = |map: &Expr| if let ExprKind::Shared(id) = map.kind { Some(id) } else { None };
    let Some(own) = id(map) else { return false };
    let (mut set, mut published, mut stored) = (0, vec![], vec![]);
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::EditMap { map, edit } = &stmt.kind {
            if let MapEdit::Publish { maps, .. } = edit {
                published.push((*maps, id(map)));
            } else if let MapEdit::Extent { dimension, .. } = edit {
                set += u32::from(id(map) == Some(own) && *dimension == innermost);
            }
        } else if let StmtKind::TileCopy(copy) = &stmt.kind
            && matches!(copy.kind, CopyKind::Store { .. } | CopyKind::Reduce { .. })
        {
            stored.push(copy.map.param);
        }
    });
    let is_own = |param: &ParamId| {
        let mut maps = published.iter().filter(|(to, _)| to == param).peekable();
        maps.peek().is_some() && maps.all(|(_, from)| *from == Some(own))
    };
    set == 1 && stored.iter().any(is_own)
}
