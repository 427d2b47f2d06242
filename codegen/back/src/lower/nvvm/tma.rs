//! Tensor copies. Sources: "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor",
//! "cp.async.bulk.prefetch.tensor", "createpolicy", "prefetch", "cp.async.bulk.commit_group",
//! "cp.async.bulk.wait_group". Coordinates are innermost first. If `hinted`, a cache policy is the
//! last operand.

use std::borrow::Cow;

use tma_front::ir::{EvictionPriority, ReduceOp};

use super::Operand::{B16, B64, F32, Generic, Immediate, Shared};
use super::text::Text;
use super::{Effect, Instruction, memory};

/// The properties of a tensor copy that determine its qualifiers and operands.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct TensorCopy {
    pub(in crate::lower) mode: Mode,
    /// The number of dimensions of the tensor.
    pub(in crate::lower) rank: usize,
    /// Whether it carries a cache policy.
    pub(in crate::lower) hinted: bool,
}

/// The mode in which a copy addresses the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Mode {
    /// A box of the tensor.
    Tile,
    /// A column of pixels (im2col).
    Columns,
}

impl Mode {
    /// Returns the qualifier of a load or prefetch.
    const fn loaded(self) -> &'static str {
        match self {
            Self::Tile => "tile",
            Self::Columns => "im2col",
        }
    }

    /// Returns the qualifier of a store, which has no offsets.
    const fn stored(self) -> &'static str {
        match self {
            Self::Tile => "tile",
            Self::Columns => "im2col_no_offs",
        }
    }
}

/// A load. Operands: the tile, the map, the coordinates, the barrier, and the offsets of a column.
///
/// `own` names the block's own shared memory, which PTX supports since 8.6. Before, the same
/// address has to be named as one in the cluster's shared memory.
pub(in crate::lower) fn tensor_load(copy: TensorCopy, own: bool) -> Instruction {
    let (space, ptx) = if own { ("cta", 86) } else { ("cluster", 80) };
    load(copy, space, "").policy(copy.hinted).memory(ptx)
}

/// A load to the same shared address in several blocks of the cluster. Operands: those of a load,
/// then the mask.
pub(in crate::lower) fn tensor_load_multicast(copy: TensorCopy) -> Instruction {
    let text = load(copy, "cluster", ".multicast::cluster");
    text.text(", ").operand(B16).policy(copy.hinted).memory(80)
}

fn load(copy: TensorCopy, space: &str, multicast: &str) -> Text {
    let TensorCopy { mode, rank, hinted } = copy;
    let qualifiers = format!("{}.mbarrier::complete_tx::bytes{multicast}{}", mode.loaded(), hint(hinted));
    Text::new(format!("cp.async.bulk.tensor.{rank}d.shared::{space}.global.{qualifiers} ["))
        .operand(Shared)
        .text("], [")
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("], [")
        .operand(Shared)
        .text("]")
        .offsets(copy)
}

/// A prefetch. Operands: the map, the coordinates, and the offsets of a column.
pub(in crate::lower) fn tensor_prefetch(copy: TensorCopy) -> Instruction {
    let TensorCopy { mode, rank, hinted } = copy;
    let (mode, hint) = (mode.loaded(), hint(hinted));
    Text::new(format!("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{mode}{hint} ["))
        .operand(Generic)
        .text(", ")
        .vector(rank)
        .text("]")
        .offsets(copy)
        .policy(hinted)
        .memory(80)
}

/// A store. Operands: the map, the coordinates, the tile.
pub(in crate::lower) fn tensor_store(copy: TensorCopy) -> Instruction {
    let TensorCopy { mode, rank, hinted } = copy;
    let (mode, hint) = (mode.stored(), hint(hinted));
    let opcode = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group{hint} [");
    out(opcode, copy)
}

/// A reduction. Operands: those of a store.
pub(in crate::lower) fn tensor_reduce(op: ReduceOp, copy: TensorCopy) -> Instruction {
    let TensorCopy { mode, rank, hinted } = copy;
    let (op, mode, hint) = (op.name(), mode.stored(), hint(hinted));
    let opcode =
        format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.{mode}.bulk_group{hint} [");
    out(opcode, copy)
}

/// Appends the operands of a store or reduction to its opcode.
fn out(opcode: String, copy: TensorCopy) -> Instruction {
    Text::new(opcode)
        .operand(Generic)
        .text(", ")
        .vector(copy.rank)
        .text("], [")
        .operand(Shared)
        .text("]")
        .policy(copy.hinted)
        .memory(80)
}

impl Text {
    /// Appends the offsets of a column: one for each dimension other than images and channels.
    fn offsets(self, copy: TensorCopy) -> Self {
        match copy.mode {
            Mode::Tile => self,
            Mode::Columns => self.text(", ").vector_of(B16, copy.rank - 2),
        }
    }
}

/// Returns the qualifier for a cache policy.
pub(super) const fn hint(hinted: bool) -> &'static str {
    if hinted { ".L2::cache_hint" } else { "" }
}

/// Operand: the fraction of accesses that get the priority. The others leave the priority
/// unchanged.
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
