//! The forms of `wgmma.mma_async`: the valid types and extents.

use std::fmt;

use super::element::{Accumulator, Operand};
use super::{ROWS, STEP_BYTES};
use crate::limits::WARPGROUP_THREADS;

/// The types and the width of an instruction. M is always [`ROWS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The type of D.
    pub d: Accumulator,
    /// The type of A.
    pub a: Operand,
    /// The type of B.
    pub b: Operand,
    /// Columns of B and D.
    pub n: u32,
    /// `.sp`: of every four elements of A along K two are stored (of every two, one, for tf32).
    /// Metadata says which.
    pub sparse: bool,
}

/// A rule that a form breaks. Source: PTX ISA, "wgmma.mma_async" and "wgmma.mma_async.sp".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormFault {
    /// A and B have types that cannot be multiplied.
    OperandTypes,
    /// Products of these types cannot be accumulated in the type of D.
    AccumulatorType,
    /// N is not one of [`Form::widths`].
    Width,
    /// This type has no sparse form.
    Sparse,
}

impl Form {
    /// Returns K. In a sparse form K includes the elements that A omits.
    pub const fn k(self) -> u32 {
        let stored = self.stored_k();
        if self.sparse { 2 * stored } else { stored }
    }

    /// Returns the number of stored elements in a row of A.
    pub const fn stored_k(self) -> u32 {
        STEP_BYTES * 8 / self.a.bits()
    }

    /// Returns the bytes of a column of B along K.
    pub const fn right_bytes(self) -> u32 {
        if self.sparse { 2 * STEP_BYTES } else { STEP_BYTES }
    }

    /// Returns the number of registers of D in each thread.
    pub const fn accumulator_registers(self) -> u32 {
        ROWS * self.n / WARPGROUP_THREADS / self.d.per_register()
    }

    /// Registers of A in each thread, if A is in registers.
    pub const LEFT_REGISTERS: u32 = ROWS * STEP_BYTES / WARPGROUP_THREADS / 4;

    /// Returns whether N may be `n` for an operand type. Floats allow the multiples of 8 up to 256;
    /// integers and bits allow 8, 16, 24, 32 and then the multiples of 16.
    pub const fn takes_width(operand: Operand, n: u32) -> bool {
        let step = if operand.has_every_width() || n <= 32 { 8 } else { 16 };
        n >= 8 && n <= 256 && n.is_multiple_of(step)
    }

    /// Returns all N that an operand type allows, in ascending order.
    pub fn widths(operand: Operand) -> impl Iterator<Item = u32> {
        (8..=256).step_by(8).filter(move |&n| Self::takes_width(operand, n))
    }

    /// Returns all rules that the form breaks.
    pub fn faults(self) -> Vec<FormFault> {
        let Self { d, a, b, n, sparse } = self;
        let mut faults = Vec::new();
        if !a.multiplies(b) {
            faults.push(FormFault::OperandTypes);
        }
        if !a.accumulates().contains(&d) {
            faults.push(FormFault::AccumulatorType);
        }
        if !Self::takes_width(a, n) {
            faults.push(FormFault::Width);
        }
        if sparse && !a.is_sparse() {
            faults.push(FormFault::Sparse);
        }
        faults
    }

    /// Returns the first version of the PTX ISA that has this form, as (major, minor).
    pub fn ptx_version(self) -> (u32, u32) {
        let mixes_integers = self.a != self.b && self.a.is_saturable();
        if self.sparse {
            (8, if mixes_integers { 4 } else { 2 })
        } else {
            (8, if mixes_integers { 4 } else { 0 })
        }
    }
}

/// Formats the form as the instruction spells it: `m64n128k16.f32.bf16.bf16`.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { d, a, b, n, .. } = self;
        write!(f, "m{ROWS}n{n}k{}.{d}.{a}.{b}", self.k())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(d: Accumulator, a: Operand, b: Operand, n: u32) -> Form {
        Form { d, a, b, n, sparse: false }
    }

    #[test]
    fn forms_are_spelled_as_in_ptx() {
        let names = [
            (Accumulator::F32, Operand::Bf16, "m64n64k16.f32.bf16.bf16"),
            (Accumulator::F32, Operand::Tf32, "m64n64k8.f32.tf32.tf32"),
            (Accumulator::F16, Operand::E5m2, "m64n64k32.f16.e5m2.e5m2"),
            (Accumulator::S32, Operand::B1, "m64n64k256.s32.b1.b1"),
        ];
        for (d, a, name) in names {
            assert_eq!(form(d, a, a, 64).to_string(), name);
            assert_eq!(form(d, a, a, 64).faults(), []);
        }
        let sparse = Form { sparse: true, ..form(Accumulator::F32, Operand::F16, Operand::F16, 8) };
        assert_eq!(sparse.to_string(), "m64n8k32.f32.f16.f16");
    }

    #[test]
    fn integers_have_fewer_widths() {
        assert_eq!(Form::widths(Operand::F16).count(), 32);
        let integers: Vec<u32> = Form::widths(Operand::S8).collect();
        assert_eq!(integers[..6], [8, 16, 24, 32, 48, 64]);
        assert_eq!(integers.len(), 4 + 14);
        assert_eq!(Form::widths(Operand::B1).collect::<Vec<_>>(), integers);
    }

    #[test]
    fn each_rule_is_reported() {
        let f32 = Accumulator::F32;
        assert_eq!(form(f32, Operand::Bf16, Operand::F16, 8).faults(), [FormFault::OperandTypes]);
        assert_eq!(form(f32, Operand::S8, Operand::U8, 8).faults(), [FormFault::AccumulatorType]);
        assert_eq!(form(f32, Operand::F16, Operand::F16, 12).faults(), [FormFault::Width]);
        assert_eq!(form(f32, Operand::F16, Operand::F16, 264).faults(), [FormFault::Width]);
        assert_eq!(form(f32, Operand::F16, Operand::F16, 0).faults(), [FormFault::Width]);
        let bits = form(Accumulator::S32, Operand::B1, Operand::B1, 8);
        assert_eq!(Form { sparse: true, ..bits }.faults(), [FormFault::Sparse]);
    }

    #[test]
    fn registers_hold_all_of_d_and_a() {
        assert_eq!(form(Accumulator::F32, Operand::F16, Operand::F16, 256).accumulator_registers(), 128);
        assert_eq!(form(Accumulator::F16, Operand::F16, Operand::F16, 8).accumulator_registers(), 2);
        assert_eq!(Form::LEFT_REGISTERS, 4);
    }

    #[test]
    fn mixed_integers_are_newer() {
        assert_eq!(form(Accumulator::S32, Operand::S8, Operand::S8, 8).ptx_version(), (8, 0));
        assert_eq!(form(Accumulator::S32, Operand::S8, Operand::U8, 8).ptx_version(), (8, 4));
        assert_eq!(form(Accumulator::F32, Operand::E4m3, Operand::E5m2, 8).ptx_version(), (8, 0));
    }
}
