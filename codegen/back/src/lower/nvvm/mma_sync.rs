//! Instructions for multiplications by a warp. Sources: PTX ISA, "mma", "ldmatrix".

use tma_front::ir::WarpMmaOp;
use tma_model::mma::{Accumulator, DoubleForm, Operand as Element, WarpForm};

use super::Operand::{B32, F32, F64, Shared};
use super::mma::{InPlace, PreviousValue, list};

/// The shape of one instruction, including its number of units along K.
#[derive(Clone, Copy)]
pub(in crate::lower) enum WarpProduct {
    /// Every element type but f64.
    Of(WarpForm),
    /// The element type f64.
    Double(DoubleForm),
}

impl WarpProduct {
    /// Returns the numbers of registers per thread of A, B and D. Source: PTX ISA, "Matrix
    /// Fragments for mma.m16n8k*".
    pub(in crate::lower) const fn registers(self) -> [usize; 3] {
        let [a, b, d] = match self {
            Self::Of(form) => form.registers(),
            Self::Double(form) => form.registers(),
        };
        [a as usize, b as usize, d as usize]
    }
}

/// Loads 8 × 8 matrices of 16-bit elements, or of rows of the same size in bytes, one per register.
pub(in crate::lower) fn ldmatrix(registers: usize, transposed: bool) -> InPlace {
    let trans = if transposed { ".trans" } else { "" };
    InPlace {
        text: format!(
            "ldmatrix.sync.aligned.m8n8.x{registers}{trans}.shared.b16 {}, [${registers}];",
            list(0, registers)
        ),
        register: B32,
        count: registers,
        before: PreviousValue::Discarded,
        operands: vec![Shared],
        is_pure: false,
        is_convergent: true,
        ptx: 65,
    }
}

/// Multiplies and adds to registers.
pub(in crate::lower) fn mma_sync(product: WarpProduct, op: WarpMmaOp) -> InPlace {
    let [a, b, d] = product.registers();
    let (saturates, combines) = match op {
        WarpMmaOp::Add => ("", ""),
        WarpMmaOp::Saturating => (".satfinite", ""),
        WarpMmaOp::AndPopc => ("", ".and.popc"),
        WarpMmaOp::XorPopc => ("", ".xor.popc"),
    };
    let ((shape, types), register, operand, (major, minor)) = match product {
        WarpProduct::Of(form) => {
            let WarpForm { d, a, b, k: _ } = form;
            let register = if d == Accumulator::F32 { F32 } else { B32 };
            ((form.to_string(), format!("{d}.{a}.{b}.{d}")), register, B32, version(form))
        }
        WarpProduct::Double(form) => {
            ((form.to_string(), "f64.f64.f64.f64".to_owned()), F64, F64, form.ptx_version())
        }
    };
    let sum = list(0, d);
    let (left, right) = (list(2 * d, a), list(2 * d + a, b));
    InPlace {
        text: format!(
            "mma.sync.aligned.{shape}.row.col{saturates}.{types}{combines} {sum}, {left}, {right}, {sum};"
        ),
        register,
        count: d,
        before: PreviousValue::Tied,
        operands: vec![operand; a + b],
        is_pure: true,
        is_convergent: true,
        ptx: major * 10 + minor,
    }
}

/// Returns the first PTX version that has a form.
const fn version(form: WarpForm) -> (u32, u32) {
    match form.a {
        // `and` of bits exists since PTX 7.1, `xor` since 7.0.
        Element::B1 => (7, 1),
        Element::F16
        | Element::Bf16
        | Element::Tf32
        | Element::E4m3
        | Element::E5m2
        | Element::S8
        | Element::U8 => form.ptx_version(),
    }
}
