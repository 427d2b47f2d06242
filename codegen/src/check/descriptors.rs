//! Fields of tensor maps that a kernel sets, as far as constants show. Source: CUDA driver API,
//! `cuTensorMapEncodeTiled`.

use super::operations::Rules;
use crate::diag::Sink;
use crate::diag::mistake;
use crate::ir::{Expr, MapEdit, Type};
use crate::limits::BULK_BYTES;

/// What every stride is below, in bytes.
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
        MapEdit::Stride { bytes, .. } => {
            let whole = variables.of(bytes).bits.is_multiple_of(u64::from(BULK_BYTES));
            if !whole || bytes.as_int().is_some_and(|bytes| bytes >= STRIDE_LIMIT) {
                sink.error(mistake::Copy::MapStride, bytes.span);
            }
        }
        MapEdit::CopyFrom { .. } | MapEdit::Extent { .. } | MapEdit::Publish { .. } => {}
    }
}
