//! Vectors of elements in memory: their alignment, as far as it is certain.

use crate::check::low_bits::LowBits;
use crate::check::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake::{self, VectorNumber};
use crate::ir::{Expr, MemoryAccess, MemoryObject, Type};

/// Checks a vector that threads load or store.
pub(in crate::check) fn access(rules: &Rules<'_>, access: &MemoryAccess<'_>, sink: &mut Sink) {
    let (Some(len), Some(first)) = (access.elements.count(rules.kernel), access.at.last()) else { return };
    let number = match access.object {
        MemoryObject::Global(param) => {
            VectorNumber::GlobalIndex { slice: rules.kernel.param(param).name.clone() }
        }
        MemoryObject::Shared(object) => {
            if let Type::Tile(ty) = object.ty.local() {
                if !ty.inner_extent().is_multiple_of(len) {
                    sink.error(mistake::Tile::VectorRows { tile: ty.clone(), len }, object.span);
                    return;
                }
                VectorNumber::Coordinate
            } else if let Type::SharedArray(_, elements) = object.ty.local() {
                if !elements.is_multiple_of(len) {
                    sink.error(mistake::Tile::VectorArray { elements: *elements, len }, object.span);
                    return;
                }
                VectorNumber::Index
            } else {
                return;
            }
        }
        MemoryObject::Mbarrier(_) | MemoryObject::Map(_) => return,
    };
    whole(first, rules.variables.of(first), len, number, sink);
}

/// Checks the alignment of a vector. Source: PTX ISA, "ld" and "st": an address is a multiple of
/// the size of the access.
fn whole(index: &Expr, low: LowBits, len: u32, number: VectorNumber, sink: &mut Sink) {
    if let Some(at) = low.misalignment(len, index.as_int()) {
        sink.error(mistake::Tile::VectorStart { number, at, len }, index.span);
    }
}
