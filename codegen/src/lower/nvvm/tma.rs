//! The copy engine. Sources: "cp.async.bulk.tensor", "prefetch", "cp.async.bulk.commit_group",
//! "cp.async.bulk.wait_group". Coordinates are innermost first.

use super::Operand::{Generic, Immediate, Shared};
use super::text::Text;
use super::{Instruction, memory};

/// The tile load of `rank` dimensions. Operands: the tile, the map, the coordinates, the barrier.
///
/// `own` names the block's own shared memory, which PTX can since 8.6; before, the same address was one of the
/// cluster's memory.
pub(in crate::lower) fn tile_load(rank: usize, own: bool) -> Instruction {
    let (space, ptx) = if own { ("cta", 86) } else { ("cluster", 80) };
    Text::new(format!(
        "cp.async.bulk.tensor.{rank}d.shared::{space}.global.tile.mbarrier::complete_tx::bytes ["
    ))
    .operand(Shared)
    .text("], [")
    .operand(Generic)
    .text(", ")
    .vector(rank)
    .text("], [")
    .operand(Shared)
    .text("]")
    .memory(ptx)
}

/// The tile store of `rank` dimensions. Operands: the map, the coordinates, the tile.
pub(in crate::lower) fn tile_store(rank: usize) -> Instruction {
    Text::new(format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group ["))
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("], [")
        .operand(Shared)
        .text("]")
        .memory(80)
}

pub(in crate::lower) const PREFETCH_TENSOR_MAP: Instruction =
    memory("prefetch.tensormap [$0];", &[Generic], 80);
pub(in crate::lower) const BULK_COMMIT_GROUP: Instruction = memory("cp.async.bulk.commit_group;", &[], 80);
pub(in crate::lower) const BULK_WAIT_GROUP: Instruction =
    memory("cp.async.bulk.wait_group $0;", &[Immediate], 80);
pub(in crate::lower) const BULK_WAIT_GROUP_READ: Instruction =
    memory("cp.async.bulk.wait_group.read $0;", &[Immediate], 80);
