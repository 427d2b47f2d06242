//! The copy engine. Sources: "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor",
//! "createpolicy", "prefetch", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group". Coordinates are innermost first;
//! a cache policy is the last operand of what is `hinted`.

use std::borrow::Cow;

use super::Operand::{B16, B64, F32, Generic, Immediate, Shared};
use super::text::Text;
use super::{Effect, Instruction, memory};
use crate::ir::{EvictionPriority, ReduceOp};

/// The tile load of `rank` dimensions. Operands: the tile, the map, the coordinates, the barrier.
///
/// `own` names the block's own shared memory, which PTX can since 8.6; before, the same address was one of the
/// cluster's memory.
pub(in crate::lower) fn tile_load(rank: usize, own: bool, hinted: bool) -> Instruction {
    let (space, ptx) = if own { ("cta", 86) } else { ("cluster", 80) };
    let hint = hint(hinted);
    Text::new(format!(
        "cp.async.bulk.tensor.{rank}d.shared::{space}.global.tile.mbarrier::complete_tx::bytes{hint} ["
    ))
    .operand(Shared)
    .text("], [")
    .operand(Generic)
    .text(", ")
    .vector(rank)
    .text("], [")
    .operand(Shared)
    .text("]")
    .policy(hinted)
    .memory(ptx)
}

/// The tile load of `rank` dimensions to the same place in several blocks of the cluster. Operands: the tile, the map,
/// the coordinates, the barrier, the mask.
pub(in crate::lower) fn tile_load_multicast(rank: usize, hinted: bool) -> Instruction {
    let modifiers = "tile.mbarrier::complete_tx::bytes.multicast::cluster";
    let hint = hint(hinted);
    Text::new(format!("cp.async.bulk.tensor.{rank}d.shared::cluster.global.{modifiers}{hint} ["))
        .operand(Shared)
        .text("], [")
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("], [")
        .operand(Shared)
        .text("], ")
        .operand(B16)
        .policy(hinted)
        .memory(80)
}

/// How the elements of a copy are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Mode {
    /// A box of the tensor.
    Tile,
    /// A column of pixels.
    Columns,
}

impl Mode {
    /// The qualifier of what is stored: there are no offsets.
    const fn stored(self) -> &'static str {
        match self {
            Self::Tile => "tile",
            Self::Columns => "im2col_no_offs",
        }
    }
}

/// The load of a column from a tensor of `rank` dimensions. Operands: the tile, the map, the coordinates, the barrier,
/// the offsets.
pub(in crate::lower) fn column_load(rank: usize, own: bool, hinted: bool) -> Instruction {
    let (space, ptx) = if own { ("cta", 86) } else { ("cluster", 80) };
    let hint = hint(hinted);
    Text::new(format!(
        "cp.async.bulk.tensor.{rank}d.shared::{space}.global.im2col.mbarrier::complete_tx::bytes{hint} ["
    ))
    .operand(Shared)
    .text("], [")
    .operand(Generic)
    .text(", ")
    .vector(rank)
    .text("], [")
    .operand(Shared)
    .text("], ")
    .vector_of(B16, rank - 2)
    .policy(hinted)
    .memory(ptx)
}

/// The load of a column to the same place in several blocks of the cluster. Operands: the tile, the map, the coordinates,
/// the barrier, the offsets, the mask.
pub(in crate::lower) fn column_load_multicast(rank: usize, hinted: bool) -> Instruction {
    let modifiers = "im2col.mbarrier::complete_tx::bytes.multicast::cluster";
    let hint = hint(hinted);
    Text::new(format!("cp.async.bulk.tensor.{rank}d.shared::cluster.global.{modifiers}{hint} ["))
        .operand(Shared)
        .text("], [")
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("], [")
        .operand(Shared)
        .text("], ")
        .vector_of(B16, rank - 2)
        .text(", ")
        .operand(B16)
        .policy(hinted)
        .memory(80)
}

/// The prefetch of a column from a tensor of `rank` dimensions. Operands: the map, the coordinates, the offsets.
pub(in crate::lower) fn column_prefetch(rank: usize, hinted: bool) -> Instruction {
    let hint = hint(hinted);
    Text::new(format!("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.im2col{hint} ["))
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("], ")
        .vector_of(B16, rank - 2)
        .policy(hinted)
        .memory(80)
}

/// The tile store of `rank` dimensions. Operands: the map, the coordinates, the tile.
pub(in crate::lower) fn tile_store(mode: Mode, rank: usize, hinted: bool) -> Instruction {
    let (mode, hint) = (mode.stored(), hint(hinted));
    out(
        Text::new(format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group{hint} [")),
        rank,
        hinted,
    )
}

/// The tile reduction of `rank` dimensions. Operands: as of a store.
pub(in crate::lower) fn tile_reduce(op: ReduceOp, mode: Mode, rank: usize, hinted: bool) -> Instruction {
    let (op, mode, hint) = (op.name(), mode.stored(), hint(hinted));
    let opcode =
        format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.{mode}.bulk_group{hint} [");
    out(Text::new(opcode), rank, hinted)
}

/// What follows the opcode of a store or reduction.
fn out(opcode: Text, rank: usize, hinted: bool) -> Instruction {
    opcode
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("], [")
        .operand(Shared)
        .text("]")
        .policy(hinted)
        .memory(80)
}

/// The tile prefetch of `rank` dimensions. Operands: the map, the coordinates.
pub(in crate::lower) fn tile_prefetch(rank: usize, hinted: bool) -> Instruction {
    let hint = hint(hinted);
    Text::new(format!("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile{hint} ["))
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("]")
        .policy(hinted)
        .memory(80)
}

/// The qualifier of what is hinted.
pub(super) const fn hint(hinted: bool) -> &'static str {
    if hinted { ".L2::cache_hint" } else { "" }
}

/// Operand: the fraction of the accesses that get the priority; the others leave what is there unchanged.
pub(in crate::lower) fn cache_policy(priority: EvictionPriority) -> Instruction {
    Instruction {
        text: Cow::Owned(format!("createpolicy.fractional.L2::{}.b64 $0, $1;", priority.name())),
        result: Some(B64),
        operands: Cow::Borrowed(&[F32]),
        effect: Effect::Pure,
        ptx: 74,
    }
}

pub(in crate::lower) const PREFETCH_TENSOR_MAP: Instruction =
    memory("prefetch.tensormap [$0];", &[Generic], 80);
pub(in crate::lower) const BULK_COMMIT_GROUP: Instruction = memory("cp.async.bulk.commit_group;", &[], 80);
pub(in crate::lower) const BULK_WAIT_GROUP: Instruction =
    memory("cp.async.bulk.wait_group $0;", &[Immediate], 80);
pub(in crate::lower) const BULK_WAIT_GROUP_READ: Instruction =
    memory("cp.async.bulk.wait_group.read $0;", &[Immediate], 80);
