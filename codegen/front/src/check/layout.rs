//! The layout of shared variables in the shared memory of a block.

use crate::diag::Sink;
use crate::diag::mistake::Shared;
use crate::ir::{Kernel, SharedId, SharedVar, Type};
use crate::limits;

/// The layout of a kernel's shared variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    offsets: Vec<u32>,
    bytes: u32,
}

impl SharedLayout {
    /// Returns the byte offset of a variable.
    pub fn offset(&self, id: SharedId) -> u32 {
        self.offsets[id.0 as usize]
    }

    /// Returns the bytes that a block needs in total.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// Returns the size of a shared type, in bytes. `Stages` include the padding between elements.
pub fn size(ty: &Type) -> u64 {
    footprint(ty).0
}

/// Returns the distance from one element of `Stages` to the next, in bytes.
pub fn stride(ty: &Type) -> u64 {
    let (size, alignment) = footprint(ty);
    size.checked_next_multiple_of(alignment).unwrap_or(u64::MAX)
}

/// Returns the alignment of a shared type, in bytes.
pub fn alignment(ty: &Type) -> u64 {
    footprint(ty).1
}

/// Returns the size and the alignment of a type, in bytes.
fn footprint(ty: &Type) -> (u64, u64) {
    match ty {
        Type::Tile(tile) => (tile.shared_bytes(), limits::tile_alignment(tile.swizzle)),
        Type::Barrier => (limits::BARRIER_BYTES, limits::BARRIER_BYTES),
        Type::SharedMap(_) => (u64::from(limits::MAP_BYTES), u64::from(limits::MAP_BYTES)),
        Type::SharedArray(scalar, len) => {
            let element = u64::from(scalar.bytes());
            (element * u64::from(*len), element.max(limits::ARRAY_ALIGNMENT))
        }
        Type::Stages(thing, len) => (stride(thing).saturating_mul(u64::from(*len)), alignment(thing)),
        // Types that are not in the shared memory of a block.
        Type::Unit
        | Type::Never
        | Type::Scalar(_)
        | Type::Dim3
        | Type::CachePolicy
        | Type::Array(..)
        | Type::Accumulator(_)
        | Type::Rows(..)
        | Type::Fragment(_)
        | Type::WarpFragment(_)
        | Type::Token
        | Type::Remote(_)
        | Type::Choice(_)
        | Type::TensorMap(_)
        | Type::Im2colMap(..)
        | Type::Maps(_)
        | Type::Global(_)
        | Type::Compound(_)
        | Type::Infer(_)
        | Type::Error => (0, 1),
    }
}

/// Lays variables out by decreasing alignment, so that little is lost to padding, and in order of
/// appearance if alignments are equal.
pub(super) fn lay_out(kernel: &Kernel, sink: &mut Sink) -> SharedLayout {
    let mut order: Vec<usize> = (0..kernel.shared.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(alignment(&kernel.shared[i].ty)));

    let mut offsets = vec![0; kernel.shared.len()];
    let mut end = 0u64;
    for i in order {
        let ty = &kernel.shared[i].ty;
        let offset = end.next_multiple_of(alignment(ty));
        end = offset.saturating_add(size(ty)).min(u64::from(u32::MAX));
        offsets[i] = u32::try_from(offset).unwrap_or(u32::MAX);
    }
    // LLVM reads up to 16 aligned bytes at once where fewer are needed, so these must exist.
    end = end.next_multiple_of(limits::ARRAY_ALIGNMENT);
    if end > limits::SHARED_BYTES {
        report_over_budget(kernel, end, sink);
    }
    SharedLayout { offsets, bytes: u32::try_from(end).unwrap_or(u32::MAX) }
}

fn report_over_budget(kernel: &Kernel, bytes: u64, sink: &mut Sink) {
    let Some(largest) = kernel.shared.iter().max_by_key(|var| size(&var.ty)) else { return };
    let share = |var: &SharedVar| (var.name.clone(), size(&var.ty));
    let shares = kernel.shared.iter().map(share).collect();
    sink.error(Shared::Budget { kernel: kernel.path(), bytes, shares }, largest.span);
}
