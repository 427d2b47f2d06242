//! The matrix instructions of a warp, `mma.sync`: 16 rows and 8 columns, all in registers.
//!
//! A and D have the layout of one warp of a warpgroup ([`fragment`](super::fragment)). Source: PTX
//! ISA, "Matrix Fragments for mma.m16n8k*".

use std::fmt;

use super::STEP_BYTES;
use super::element::{Accumulator, Operand};
use super::fragment::FragmentSlot;
use crate::limits::WARP_THREADS;

/// Rows of A and D. Source: PTX ISA, "mma".
pub const WARP_ROWS: u32 = 16;

/// Columns of B and D. Source: PTX ISA, "mma".
pub const WARP_COLUMNS: u32 = 8;

/// The types and the K of an `mma.sync` with a dense A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarpForm {
    /// The type of C and D.
    pub d: Accumulator,
    /// The type of A.
    pub a: Operand,
    /// The type of B.
    pub b: Operand,
    /// Elements along K.
    pub k: u32,
}

/// A rule that a form breaks. Source: PTX ISA, "mma".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpFault {
    /// A and B have types that cannot be multiplied.
    OperandTypes,
    /// Products of these types cannot be accumulated in the type of C and D.
    AccumulatorType,
    /// K is not one of [`WarpForm::depths`].
    Depth,
}

impl WarpForm {
    /// Returns all K of an operand type: a row has 16 or 32 bytes.
    pub const fn depths(operand: Operand) -> [u32; 2] {
        let whole = STEP_BYTES * 8 / operand.bits();
        [whole / 2, whole]
    }

    /// Returns the number of registers of A, B and D in each thread.
    pub const fn registers(self) -> [u32; 3] {
        let a = WARP_ROWS * self.k / self.a.per_register() / WARP_THREADS;
        let b = WARP_COLUMNS * self.k / self.b.per_register() / WARP_THREADS;
        [a, b, WARP_ROWS * WARP_COLUMNS / WARP_THREADS / self.d.per_register()]
    }

    /// Returns the index along K, and the column of B, that a register element holds. Threads are 0
    /// to 31.
    pub const fn right_coordinates(self, FragmentSlot { thread, register, part }: FragmentSlot) -> [u32; 2] {
        let each = self.b.per_register();
        [each * (thread % 4) + part + 4 * each * register, thread / 4]
    }

    /// Returns the register element that holds element (`k`, `column`) of B.
    pub const fn right_slot(self, k: u32, column: u32) -> FragmentSlot {
        let each = self.b.per_register();
        FragmentSlot { thread: 4 * column + k / each % 4, register: k / (4 * each), part: k % each }
    }

    /// Returns all rules that the form breaks.
    pub fn faults(self) -> Vec<WarpFault> {
        let Self { d, a, b, k } = self;
        let rules = [
            (!a.multiplies(b), WarpFault::OperandTypes),
            (!a.accumulates().contains(&d), WarpFault::AccumulatorType),
            (!Self::depths(a).contains(&k), WarpFault::Depth),
        ];
        rules.into_iter().filter_map(|(broken, fault)| broken.then_some(fault)).collect()
    }

    /// Returns the first version of the PTX ISA that has this form, as (major, minor). Source: PTX
    /// ISA, "mma", the notes.
    pub const fn ptx_version(self) -> (u32, u32) {
        match (self.a, self.d) {
            (Operand::E4m3 | Operand::E5m2, Accumulator::F16) => (8, 7),
            (Operand::E4m3 | Operand::E5m2, _) if self.k == Self::depths(self.a)[0] => (8, 7),
            (Operand::E4m3 | Operand::E5m2, _) => (8, 4),
            (Operand::F16 | Operand::Bf16 | Operand::Tf32 | Operand::S8 | Operand::U8 | Operand::B1, _) => {
                (8, 0)
            }
        }
    }
}

/// Formats the shape as the instruction spells it: `m16n8k16`.
impl fmt::Display for WarpForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{WARP_ROWS}n{WARP_COLUMNS}k{}", self.k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms() -> impl Iterator<Item = WarpForm> {
        let of = |a: Operand| WarpForm::depths(a).map(|k| WarpForm { d: a.accumulates()[0], a, b: a, k });
        Operand::ALL.into_iter().flat_map(of)
    }

    #[test]
    fn every_element_of_b_has_its_own_slot() {
        for form in forms() {
            assert_eq!(form.faults(), []);
            let [_, registers, _] = form.registers();
            for (k, column) in (0..form.k).flat_map(|k| (0..WARP_COLUMNS).map(move |n| (k, n))) {
                let slot = form.right_slot(k, column);
                assert!(slot.thread < WARP_THREADS && slot.register < registers, "{form:?}: {slot:?}");
                assert_eq!(form.right_coordinates(slot), [k, column]);
            }
        }
    }

    #[test]
    fn a_and_d_fit_their_registers() {
        for form in forms() {
            let [a, _, d] = form.registers();
            for (row, k) in (0..WARP_ROWS).flat_map(|row| (0..form.k).map(move |k| (row, k))) {
                let slot = form.a.slot(row, k);
                assert!(slot.thread < WARP_THREADS && slot.register < a, "{form:?}: {slot:?}");
            }
            let last = form.d.slot(WARP_ROWS - 1, WARP_COLUMNS - 1);
            assert_eq!((last.thread, last.register), (WARP_THREADS - 1, d - 1));
        }
    }

    #[test]
    fn each_rule_is_reported() {
        let good = WarpForm { d: Accumulator::F32, a: Operand::F16, b: Operand::F16, k: 16 };
        assert_eq!((good.to_string().as_str(), good.registers()), ("m16n8k16", [4, 2, 4]));
        assert_eq!(WarpForm { b: Operand::Bf16, ..good }.faults(), [WarpFault::OperandTypes]);
        assert_eq!(WarpForm { d: Accumulator::S32, ..good }.faults(), [WarpFault::AccumulatorType]);
        assert_eq!(WarpForm { k: 32, ..good }.faults(), [WarpFault::Depth]);
    }
}
