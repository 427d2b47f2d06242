//! The f64 matrix instructions of a warp: 8 or 16 rows and 8 columns, in 64-bit registers.
//!
//! Four lanes hold a row of 4 elements. Source: PTX ISA, "Matrix Fragments for mma.m8n8k4 with
//! .f64", and the same sections for m16n8k4, m16n8k8 and m16n8k16.

use std::fmt;

use super::fragment::FragmentSlot;
use super::warp::{WARP_COLUMNS, WARP_ROWS};
use crate::limits::WARP_THREADS;

/// Rows of A, and elements along K, that one register of all lanes covers.
const CELL: [u32; 2] = [8, 4];

/// The shape of an `mma.sync` in f64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DoubleForm {
    /// Rows of A and D.
    pub rows: u32,
    /// Elements along K.
    pub k: u32,
}

impl DoubleForm {
    /// All shapes. Source: PTX ISA, "mma", the shapes of `.f64`.
    pub const ALL: [Self; 4] = [
        Self { rows: 8, k: 4 },
        Self { rows: WARP_ROWS, k: 4 },
        Self { rows: WARP_ROWS, k: 8 },
        Self { rows: WARP_ROWS, k: 16 },
    ];

    /// Returns the number of registers of A, B and D in each thread.
    pub const fn registers(self) -> [u32; 3] {
        let Self { rows, k } = self;
        [rows * k / WARP_THREADS, WARP_COLUMNS * k / WARP_THREADS, rows * WARP_COLUMNS / WARP_THREADS]
    }

    /// Returns where element (`row`, `k`) of A is held.
    pub const fn left_slot(self, row: u32, k: u32) -> FragmentSlot {
        let halves = self.rows / CELL[0];
        let register = k / CELL[1] * halves + row / CELL[0];
        FragmentSlot { thread: 4 * (row % CELL[0]) + k % CELL[1], register, part: 0 }
    }

    /// Returns where element (`k`, `column`) of B is held.
    pub const fn right_slot(self, k: u32, column: u32) -> FragmentSlot {
        FragmentSlot { thread: 4 * column + k % CELL[1], register: k / CELL[1], part: 0 }
    }

    /// Returns where element (`row`, `column`) of C and D is held.
    pub const fn accumulator_slot(self, row: u32, column: u32) -> FragmentSlot {
        let register = row / CELL[0] * 2 + column % 2;
        FragmentSlot { thread: 4 * (row % CELL[0]) + column / 2, register, part: 0 }
    }

    /// Returns the first version of the PTX ISA that has this shape, as (major, minor). Source: PTX
    /// ISA, "mma", the notes.
    pub const fn ptx_version(self) -> (u32, u32) {
        if self.rows == WARP_ROWS { (7, 8) } else { (7, 0) }
    }
}

/// Formats the shape as the instruction spells it: `m16n8k16`.
impl fmt::Display for DoubleForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{WARP_COLUMNS}k{}", self.rows, self.k)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_element_has_its_own_slot() {
        for form in DoubleForm::ALL {
            let [a, b, d] = form.registers();
            let all = |extents: [u32; 2], registers: u32, slot: &dyn Fn([u32; 2]) -> FragmentSlot| {
                let elements = (0..extents[0]).flat_map(|i| (0..extents[1]).map(move |j| [i, j]));
                let slots: HashSet<_> = elements.map(slot).map(|at| (at.thread, at.register)).collect();
                assert_eq!(slots.len() as u32, extents[0] * extents[1], "{form}");
                assert!(
                    slots.iter().all(|&(thread, register)| thread < 32 && register < registers),
                    "{form}"
                );
            };
            all([form.rows, form.k], a, &|[row, k]| form.left_slot(row, k));
            all([form.k, WARP_COLUMNS], b, &|[k, column]| form.right_slot(k, column));
            all([form.rows, WARP_COLUMNS], d, &|[row, column]| form.accumulator_slot(row, column));
        }
    }

    #[test]
    fn a_lane_has_the_elements_of_the_isa() {
        let form = DoubleForm { rows: 16, k: 16 };
        assert_eq!((form.to_string().as_str(), form.registers()), ("m16n8k16", [8, 4, 4]));
        // Register a5 of lane 6: row 1 + 8, column 2 + 4 · 2.
        assert_eq!(form.left_slot(9, 10), FragmentSlot { thread: 6, register: 5, part: 0 });
        assert_eq!(form.right_slot(14, 3), FragmentSlot { thread: 14, register: 3, part: 0 });
        assert_eq!(form.accumulator_slot(12, 5), FragmentSlot { thread: 18, register: 3, part: 0 });
    }
}
