//! Fields of tensor maps that a kernel sets, as far as constants show. Source: CUDA driver API,
//! `cuTensorMapEncodeTiled`.

use super::operations::Rules;
use crate::diag::{Code, Sink};
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
                sink.error(
                    Code::MapField,
                    index.span,
                    "a tensor begins at a multiple of 16 bytes, and this does not",
                )
                .help(format!(
                    "make it a multiple of {unit}: {unit} elements of `{}` are 16 bytes",
                    tile.element
                ));
            }
        }
        MapEdit::Extent { extent, .. } if extent.as_int() == Some(0) => {
            sink.error(Code::MapField, extent.span, "a tensor has at least one element along each dimension")
                .help("do not copy by a map of a tensor without elements");
        }
        MapEdit::Stride { bytes, .. } => {
            let whole = variables.of(bytes).bits.is_multiple_of(u64::from(BULK_BYTES));
            if !whole || bytes.as_int().is_some_and(|bytes| bytes >= STRIDE_LIMIT) {
                sink.error(Code::MapField, bytes.span, "a stride is a multiple of 16 bytes, below 2^40")
                    .help("a stride is in bytes: elements times the element's size");
            }
        }
        MapEdit::CopyFrom { .. } | MapEdit::Extent { .. } | MapEdit::Publish { .. } => {}
    }
}
