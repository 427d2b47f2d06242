//! Bulk copies without a tensor map. Sources: "cp.async.bulk", "cp.reduce.async.bulk",
//! "cp.async.bulk.prefetch". Sizes are in bytes. If `hinted`, a cache policy is the last operand.

use tma_front::ir::{ReduceFamily, ReduceOp, Scalar};

use super::Operand::{B16, B32, Global, Remote, Shared};
use super::text::Text;
use super::tma::hint;
use super::{Instruction, memory};

/// Global to shared. Operands: to, from, the size, the barrier. For `own`, see
/// [`tensor_load`](super::tensor_load).
pub(in crate::lower) fn bulk_load(own: bool, hinted: bool) -> Instruction {
    let (space, ptx) = if own { ("cta", 86) } else { ("cluster", 80) };
    let hint = hint(hinted);
    Text::new(format!("cp.async.bulk.shared::{space}.global.mbarrier::complete_tx::bytes{hint} ["))
        .operand(Shared)
        .text("], [")
        .operand(Global)
        .text("], ")
        .operand(B32)
        .text(", [")
        .operand(Shared)
        .text("]")
        .policy(hinted)
        .memory(ptx)
}

/// Global to the same shared address in several blocks of the cluster. Operands: to, from, the
/// size, the barrier, the mask.
pub(in crate::lower) fn bulk_load_multicast(hinted: bool) -> Instruction {
    let modifiers = "mbarrier::complete_tx::bytes.multicast::cluster";
    let hint = hint(hinted);
    Text::new(format!("cp.async.bulk.shared::cluster.global.{modifiers}{hint} ["))
        .operand(Shared)
        .text("], [")
        .operand(Global)
        .text("], ")
        .operand(B32)
        .text(", [")
        .operand(Shared)
        .text("], ")
        .operand(B16)
        .policy(hinted)
        .memory(80)
}

/// Shared to global. Operands: to, from, the size.
pub(in crate::lower) fn bulk_store(hinted: bool) -> Instruction {
    let hint = hint(hinted);
    out(Text::new(format!("cp.async.bulk.global.shared::cta.bulk_group{hint} [")), hinted)
}

/// Shared into global. Operands: those of a store. `None` if there is no such operation on the
/// element type.
pub(in crate::lower) fn bulk_reduce(op: ReduceOp, element: Scalar, hinted: bool) -> Option<Instruction> {
    let (name, ty, hint) = (op.name(), reduced_type(op, element)?, hint(hinted));
    let opcode = format!("cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.{name}.{ty} [");
    Some(out(Text::new(opcode), hinted))
}

/// Returns the PTX name of the type of a reduction.
fn reduced_type(op: ReduceOp, element: Scalar) -> Option<&'static str> {
    let bits = op.family() == ReduceFamily::Bits;
    let noftz = op.wants_noftz(element);
    Some(match element {
        Scalar::U32 | Scalar::I32 if bits => "b32",
        Scalar::U64 | Scalar::I64 | Scalar::Usize if bits => "b64",
        Scalar::U32 => "u32",
        Scalar::I32 => "s32",
        Scalar::U64 | Scalar::Usize => "u64",
        Scalar::I64 => "s64",
        Scalar::F16 if noftz => "noftz.f16",
        Scalar::Bf16 if noftz => "noftz.bf16",
        Scalar::F16 => "f16",
        Scalar::Bf16 => "bf16",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
        Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 => return None,
        Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2 => return None,
    })
}

/// Appends the operands of a store or reduction to its opcode.
fn out(opcode: Text, hinted: bool) -> Instruction {
    opcode.operand(Global).text("], [").operand(Shared).text("], ").operand(B32).policy(hinted).memory(80)
}

/// Global to the L2 cache. Operands: from, the size.
pub(in crate::lower) fn bulk_prefetch(hinted: bool) -> Instruction {
    let hint = hint(hinted);
    Text::new(format!("cp.async.bulk.prefetch.L2.global{hint} ["))
        .operand(Global)
        .text("], ")
        .operand(B32)
        .policy(hinted)
        .memory(80)
}

/// Shared to shared of another block. Operands: to, from, the size, and the barrier, which belongs
/// to the same block as `to`.
pub(in crate::lower) const BULK_COPY_REMOTE: Instruction = memory(
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
    &[Remote, Shared, B32, Remote],
    80,
);

/// Shared into shared of another block. Operands: those of a copy. `None` if there is no such
/// operation on the element type.
pub(in crate::lower) fn bulk_reduce_remote(op: ReduceOp, element: Scalar) -> Option<Instruction> {
    let (name, ty) = (op.name(), reduced_type(op, element)?);
    let opcode = format!(
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{name}.{ty} ["
    );
    let instruction = Text::new(opcode)
        .operand(Remote)
        .text("], [")
        .operand(Shared)
        .text("], ")
        .operand(B32)
        .text(", [")
        .operand(Remote)
        .text("]")
        .memory(80);
    Some(instruction)
}
