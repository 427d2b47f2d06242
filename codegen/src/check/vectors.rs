//! Vectors of elements in memory: where they begin, as far as it is certain.

use super::low_bits::LowBits;
use super::operations::Rules;
use crate::diag::{Code, Sink};
use crate::ir::{Expr, LocalId, ParamId, Type};

/// The length of a vector that is read into `dest`; none if it is one element.
pub(super) fn read(rules: &Rules<'_>, dest: LocalId) -> Option<u32> {
    length(&rules.kernel.local(dest).ty)
}

/// The length of a vector that is written; none if it is one element.
pub(super) fn length(value: &Type) -> Option<u32> {
    if let Type::Array(_, len) = value { Some(*len) } else { None }
}

/// A vector of global memory.
pub(super) fn global(rules: &Rules<'_>, global: ParamId, index: &Expr, len: Option<u32>, sink: &mut Sink) {
    let Some(len) = len else { return };
    let name = &rules.kernel.param(global).name;
    whole(index, rules.variables.of(index), len, &format!("the index into `{name}`"), sink);
}

/// A vector of a tile.
pub(super) fn tile(rules: &Rules<'_>, tile: &Expr, at: &[Expr], len: Option<u32>, sink: &mut Sink) {
    let (Some(len), Type::Tile(ty), Some(inner)) = (len, tile.ty.local(), at.last()) else { return };
    let extent = ty.inner_extent();
    if !extent.is_multiple_of(len) {
        let message = format!(
            "rows of {extent} elements are no vectors of {len}: the last one would not be whole, or the next row's \
             not aligned"
        );
        sink.error(Code::VectorAccess, tile.span, message)
            .help(format!("make the innermost extent of `{ty}` a multiple of {len}"));
        return;
    }
    whole(inner, rules.variables.of(inner), len, "the innermost coordinate", sink);
}

/// A vector of a shared array.
pub(super) fn shared(rules: &Rules<'_>, array: &Expr, index: &Expr, len: Option<u32>, sink: &mut Sink) {
    let (Some(len), Type::SharedArray(_, elements)) = (len, array.ty.local()) else { return };
    if !elements.is_multiple_of(len) {
        let message = format!(
            "an array of {elements} elements is no vectors of {len}: the last one would not be whole"
        );
        sink.error(Code::VectorAccess, array.span, message)
            .help(format!("make the length of the array a multiple of {len}"));
        return;
    }
    whole(index, rules.variables.of(index), len, "the index", sink);
}

/// Source: PTX ISA, "ld" and "st": an address is a multiple of the access's size.
fn whole(index: &Expr, low: LowBits, len: u32, what: &str, sink: &mut Sink) {
    let beside = low.bits % u64::from(len);
    if beside == 0 {
        return;
    }
    let message = match index.as_int() {
        Some(value) => format!("{what} is {value}, which is not a multiple of {len}"),
        None => {
            let multiple = len.min(1 << low.known.min(u32::BITS - 1));
            format!("{what} is always {beside} more than a multiple of {multiple}")
        }
    };
    sink.error(Code::VectorAccess, index.span, message)
        .help(format!("a vector of {len} elements begins at a multiple of {len}, counted in elements"));
}
