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
        | Type::Peers(_)
        | Type::Peer(_)
        | Type::Compound(_)
        | Type::Infer(_)
        | Type::Error => (0, 1),
    }
}

/// Variables that lie one after the other, and those that reuse their memory.
struct Group {
    owners: Vec<SharedId>,
    reusers: Vec<SharedId>,
    alignment: u64,
}

/// Lays variables out by decreasing alignment, so that little is lost to padding, and in order of
/// appearance if alignments are equal. Variables whose memory is reused together stay together.
pub fn lay_out(kernel: &Kernel, sink: &mut Sink) -> SharedLayout {
    let mut groups = groups(kernel);
    groups.sort_by_key(|group| std::cmp::Reverse(group.alignment));

    let mut offsets = vec![0; kernel.shared.len()];
    let mut end = 0u64;
    for group in groups {
        let start = end.next_multiple_of(group.alignment);
        end = start;
        for id in group.owners {
            let ty = &kernel.shared_var(id).ty;
            let offset = end.next_multiple_of(alignment(ty));
            end = offset.saturating_add(size(ty)).min(u64::from(u32::MAX));
            offsets[id.0 as usize] = to_u32(offset);
        }
        for id in group.reusers {
            offsets[id.0 as usize] = to_u32(start);
            check_reuse(kernel, id, end - start, sink);
        }
    }
    // LLVM reads up to 16 aligned bytes at once where fewer are needed, so these must exist.
    end = end.next_multiple_of(limits::ARRAY_ALIGNMENT);
    if end > limits::SHARED_BYTES {
        report_over_budget(kernel, end, sink);
    }
    SharedLayout { offsets, bytes: to_u32(end) }
}

/// Returns the groups in order of appearance.
fn groups(kernel: &Kernel) -> Vec<Group> {
    let mut groups = Vec::<Group>::new();
    for id in kernel.shared_ids().filter(|&id| kernel.shared_var(id).reuses.is_empty()) {
        if groups.iter().any(|group| group.owners.contains(&id)) {
            continue;
        }
        let reuses = |&other: &SharedId| kernel.shared_var(other).reuses.contains(&id);
        let reusers: Vec<_> = kernel.shared_ids().filter(reuses).collect();
        let owners =
            reusers.first().map_or_else(|| vec![id], |&first| kernel.shared_var(first).reuses.clone());
        let members = owners.iter().chain(&reusers);
        let alignment = members.map(|&id| alignment(&kernel.shared_var(id).ty)).max().unwrap_or(1);
        groups.push(Group { owners, reusers, alignment });
    }
    groups
}

fn check_reuse(kernel: &Kernel, id: SharedId, has: u64, sink: &mut Sink) {
    let var = kernel.shared_var(id);
    let bytes = size(&var.ty);
    if bytes > has {
        let pipeline = kernel.pipelines.iter().find(|pipeline| pipeline.tiles == var.reuses);
        let of = match (pipeline, &var.reuses[..]) {
            (Some(pipeline), _) => pipeline.name.clone(),
            (None, [first, ..]) => kernel.shared_var(*first).name.clone(),
            (None, []) => return,
        };
        sink.error(Shared::ReusedBytes { name: var.name.clone(), bytes, of, has }, var.span);
    }
}

pub(super) fn to_u32(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn report_over_budget(kernel: &Kernel, bytes: u64, sink: &mut Sink) {
    let owners = || kernel.shared.iter().filter(|var| var.reuses.is_empty());
    let Some(largest) = owners().max_by_key(|var| size(&var.ty)) else { return };
    let share = |var: &SharedVar| (var.name.clone(), size(&var.ty));
    let shares = owners().map(share).collect();
    sink.error(Shared::Budget { kernel: kernel.path(), bytes, shares }, largest.span);
}
