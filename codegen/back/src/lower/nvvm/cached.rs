//! Plain accesses to global memory that name their path through the caches. Sources: "ld",
//! "ld.global.nc", "st".

use inkwell::types::VectorType;
use tma_front::ir::{LoadPath, Scalar};

use super::Instruction;
use super::Operand::{self, B16, B32, B64, Global};
use super::atomics::register;
use super::mma::{InPlace, PreviousValue, list};
use super::text::Text;
use super::tma::hint;
use crate::lower::memory::vector::vector_type;
use crate::lower::{Cx, Lower};

/// The PTX version with `.L2::cache_hint` on loads and stores.
const HINTS: u32 = 74;

/// The PTX version with `ld.global.nc`.
const NON_COHERENT: u32 = 31;

/// The registers that hold an element, or a vector of elements, as it is in memory.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Registers {
    operand: Operand,
    pub(in crate::lower) count: u32,
    /// Bits of memory per register.
    bits: u32,
}

impl Registers {
    /// Returns those of `len` elements. Smaller elements than 32 bits share registers.
    pub(in crate::lower) fn of(scalar: Scalar, len: u32) -> Self {
        let (bytes, total) = (scalar.bytes(), scalar.bytes() * len);
        if bytes >= 4 {
            return Self { operand: register(scalar), count: len, bits: bytes * 8 };
        }
        if total >= 4 {
            return Self { operand: B32, count: total / 4, bits: 32 };
        }
        Self { operand: B16, count: 1, bits: total * 8 }
    }

    /// Returns their type as a vector.
    pub(in crate::lower) fn ty<'c>(self, cx: &Cx<'c, '_>) -> Lower<VectorType<'c>> {
        vector_type(self.operand.ty(cx), self.count)
    }

    /// Returns the last qualifiers of an access, and whether its registers form a vector.
    fn qualifiers(self) -> (String, bool) {
        match self.count {
            1 => (format!("b{}", self.bits), false),
            count => (format!("v{count}.b{}", self.bits), true),
        }
    }
}

/// Operands: the address and, if `hinted`, a cache policy.
pub(in crate::lower) fn cached_load(registers: Registers, path: LoadPath, hinted: bool) -> InPlace {
    let (qualifiers, is_vector) = registers.qualifiers();
    let (path, ptx) = match path {
        LoadPath::Coherent => ("", HINTS),
        LoadPath::NonCoherent => (".nc", if hinted { HINTS } else { NON_COHERENT }),
    };
    let count = registers.count as usize;
    let results = if is_vector { list(0, count) } else { "$0".to_owned() };
    let policy = if hinted { format!(", ${}", count + 1) } else { String::new() };
    InPlace {
        text: format!("ld.global{path}{}.{qualifiers} {results}, [${count}]{policy};", hint(hinted)),
        register: registers.operand,
        count,
        before: PreviousValue::Discarded,
        operands: if hinted { vec![Global, B64] } else { vec![Global] },
        is_pure: false,
        is_convergent: false,
        ptx,
    }
}

/// Operands: the address, the registers, a cache policy.
pub(in crate::lower) fn hinted_store(registers: Registers) -> Instruction {
    let (qualifiers, is_vector) = registers.qualifiers();
    let text = Text::new(format!("st.global{}.{qualifiers} [", hint(true))).operand(Global).text("], ");
    let text = match is_vector {
        true => text.vector_of(registers.operand, registers.count as usize),
        false => text.operand(registers.operand),
    };
    text.policy(true).memory(HINTS)
}
