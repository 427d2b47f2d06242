//! Strong accesses, with an order and a scope. Sources: "ld", "st", "atom", "red".

use std::borrow::Cow;

use tma_front::ir::{AtomicOp, MemoryScope, Order, Scalar};

use super::Operand::{self, B16, B32, B64, F32, F64};
use super::{Effect, Instruction};

/// The order, scope and memory of a strong access.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) struct Strong {
    pub(in crate::lower) order: Order,
    pub(in crate::lower) scope: MemoryScope,
    pub(in crate::lower) memory: Memory,
}

/// The state space of an access.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) enum Memory {
    Global,
    /// The block's own shared memory.
    Shared,
    /// The shared memory of any block of the cluster.
    Cluster,
}

/// The PTX version with orders and scopes, and with additions of all scalars except `bf16`.
const SCALARS: u32 = 63;

/// The PTX version with additions of `bf16`.
const BF16: u32 = 78;

/// The PTX version with additions of vectors.
const VECTORS: u32 = 81;

impl Strong {
    /// Returns the modifiers, which are the same for all of these instructions.
    fn modifiers(self) -> String {
        let memory = match self.memory {
            Memory::Global => "global",
            Memory::Shared => "shared",
            Memory::Cluster => "shared::cluster",
        };
        format!("{}.{}.{memory}", self.order.name(), self.scope.name())
    }

    fn address(self) -> Operand {
        match self.memory {
            Memory::Global => Operand::Global,
            Memory::Shared => Operand::Shared,
            Memory::Cluster => Operand::Remote,
        }
    }

    /// Returns the first PTX version that has orders, the scope and the memory.
    fn ptx(self) -> u32 {
        match (self.scope, self.memory) {
            (MemoryScope::Cluster, _) | (_, Memory::Cluster) => 78,
            (
                MemoryScope::Block | MemoryScope::Device | MemoryScope::System,
                Memory::Global | Memory::Shared,
            ) => SCALARS,
        }
    }

    /// Creates an access with this text. Its operands are the address and values.
    fn access(self, text: String, result: Option<Operand>, values: &[Operand], ptx: u32) -> Instruction {
        Instruction {
            text: Cow::Owned(text),
            result,
            operands: [&[self.address()], values].concat().into(),
            effect: Effect::Memory,
            ptx: ptx.max(self.ptx()),
        }
    }
}

/// Operand: the address.
pub(in crate::lower) fn strong_load(strong: Strong, scalar: Scalar) -> Instruction {
    let text = format!("ld.{}.{} $0, [$1];", strong.modifiers(), bits(scalar));
    strong.access(text, Some(register(scalar)), &[], SCALARS)
}

/// Operands: the address, the value.
pub(in crate::lower) fn strong_store(strong: Strong, scalar: Scalar) -> Instruction {
    let text = format!("st.{}.{} [$0], $1;", strong.modifiers(), bits(scalar));
    strong.access(text, None, &[register(scalar)], SCALARS)
}

/// Operands: the address, the value. `None` if there is no such operation.
pub(in crate::lower) fn atomic(strong: Strong, op: AtomicOp, scalar: Scalar) -> Option<Instruction> {
    if !op.takes(scalar) {
        return None;
    }
    let bits = scalar.bytes() * 8;
    let operation = match op {
        AtomicOp::Add if is_half(scalar) => format!("add.noftz.{}", scalar.name()),
        // The addition is the same for both signs. Source: "atom": there is no `.add.s64`.
        AtomicOp::Add if scalar.is_float() => format!("add.f{bits}"),
        AtomicOp::Add => format!("add.u{bits}"),
        AtomicOp::Min => format!("min.{}{bits}", sign(scalar)),
        AtomicOp::Max => format!("max.{}{bits}", sign(scalar)),
        AtomicOp::And => format!("and.b{bits}"),
        AtomicOp::Or => format!("or.b{bits}"),
        AtomicOp::Xor => format!("xor.b{bits}"),
        AtomicOp::Exchange => format!("exch.b{bits}"),
    };
    let ptx = if scalar == Scalar::Bf16 { BF16 } else { SCALARS };
    let operand = register(scalar);
    let text = format!("atom.{}.{operation} $0, [$1], $2;", strong.modifiers());
    Some(strong.access(text, Some(operand), &[operand], ptx))
}

/// Operands: the address, the expected value, the new value.
pub(in crate::lower) fn compare_and_swap(strong: Strong, scalar: Scalar) -> Option<Instruction> {
    if !AtomicOp::Exchange.takes(scalar) {
        return None;
    }
    let operand = register(scalar);
    let text = format!("atom.{}.cas.{} $0, [$1], $2, $3;", strong.modifiers(), bits(scalar));
    Some(strong.access(text, Some(operand), &[operand, operand], SCALARS))
}

/// Operands: the address, the elements.
pub(in crate::lower) fn add_vector(strong: Strong, scalar: Scalar, len: u32) -> Option<Instruction> {
    if !AtomicOp::adds_vectors(scalar) {
        return None;
    }
    let elements: Vec<_> = (1..=len).map(|i| format!("${i}")).collect();
    let noftz = if is_half(scalar) { ".noftz" } else { "" };
    let text = format!(
        "red.{}.add{noftz}.v{len}.{} [$0], {{{}}};",
        strong.modifiers(),
        scalar.name(),
        elements.join(", ")
    );
    Some(strong.access(text, None, &vec![register(scalar); len as usize], VECTORS))
}

fn is_half(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F16 | Scalar::Bf16)
}

fn sign(scalar: Scalar) -> char {
    if scalar.is_signed() { 's' } else { 'u' }
}

/// Returns the untyped PTX type of this size, for moves and bitwise comparisons.
fn bits(scalar: Scalar) -> String {
    format!("b{}", scalar.bytes() * 8)
}

/// Returns the register type for a value of this type.
pub(super) fn register(scalar: Scalar) -> Operand {
    match scalar {
        Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::E4m3 | Scalar::E5m2 => B16,
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => B16,
        Scalar::I32 | Scalar::U32 | Scalar::Tf32 => B32,
        Scalar::I64 | Scalar::U64 | Scalar::Usize => B64,
        Scalar::F32 => F32,
        Scalar::F64 => F64,
    }
}
