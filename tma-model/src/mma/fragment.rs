//! Fragments: the elements of a matrix that each register of each thread of a warpgroup holds.
//!
//! Warp w of a warpgroup has rows `16w` to `16w + 15`. Within the warp, lane l has rows `l / 4` and
//! `l / 4 + 8`, so four neighbouring lanes share a row. Sources: PTX ISA, "Register Fragments and
//! Shared Memory Matrix Layouts" of `wgmma`; CUTLASS, `cute/atom/mma_traits_sm90_gmma.hpp`,
//! `CLayout_64xN` and `ALayout_64x*`.

use super::element::{Accumulator, Operand};

/// The thread and register that hold an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentSlot {
    /// Index of the thread in the warpgroup, 0 to 127.
    pub thread: u32,
    /// Index of the register among those of the operand.
    pub register: u32,
    /// Index of the element in the register, from the low bits up.
    pub part: u32,
}

/// Returns the row of a thread: its first, or the one 8 below it if `below` is 1.
const fn row_of(thread: u32, below: u32) -> u32 {
    let (warp, lane) = (thread / 32, thread % 32);
    16 * warp + lane / 4 + 8 * below
}

/// Returns the thread that holds the given quarter (0 to 3) of a row, and 1 if this is the lower of
/// the thread's two rows.
const fn thread_of(row: u32, quarter: u32) -> (u32, u32) {
    (row / 16 * 32 + row % 8 * 4 + quarter, row / 8 % 2)
}

impl Accumulator {
    /// Returns the row and column of D that a register element holds.
    pub const fn coordinates(self, FragmentSlot { thread, register, part }: FragmentSlot) -> [u32; 2] {
        let element = register * self.per_register() + part;
        let column = 8 * (element / 4) + 2 * (thread % 4) + element % 2;
        [row_of(thread, element / 2 % 2), column]
    }

    /// Returns the register element that holds this row and column of D.
    pub const fn slot(self, row: u32, column: u32) -> FragmentSlot {
        let (thread, below) = thread_of(row, column % 8 / 2);
        let element = 4 * (column / 8) + 2 * below + column % 2;
        FragmentSlot { thread, register: element / self.per_register(), part: element % self.per_register() }
    }
}

impl Operand {
    /// Returns the row of A, and the index along K, that an element of registers 0 to 3 holds.
    pub const fn coordinates(self, FragmentSlot { thread, register, part }: FragmentSlot) -> [u32; 2] {
        let each = self.per_register();
        let k = each * (thread % 4) + part + 4 * each * (register / 2);
        [row_of(thread, register % 2), k]
    }

    /// Returns the register element that holds this row of A and index along K.
    pub const fn slot(self, row: u32, k: u32) -> FragmentSlot {
        let each = self.per_register();
        let (thread, below) = thread_of(row, k / each % 4);
        FragmentSlot { thread, register: 2 * (k / (4 * each)) + below, part: k % each }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Form, ROWS};
    use super::*;

    #[test]
    fn slots_and_coordinates_of_d_undo_each_other() {
        for d in Accumulator::ALL {
            for row in 0..ROWS {
                for column in 0..256 {
                    let slot = d.slot(row, column);
                    assert_eq!(d.coordinates(slot), [row, column]);
                    assert!(slot.thread < 128 && slot.register < 128 / d.per_register());
                }
            }
        }
    }

    #[test]
    fn slots_and_coordinates_of_a_undo_each_other() {
        for a in Operand::ALL {
            for row in 0..ROWS {
                for k in 0..256 / a.bits() {
                    let slot = a.slot(row, k);
                    assert_eq!(a.coordinates(slot), [row, k]);
                    assert!(slot.thread < 128 && slot.register < Form::LEFT_REGISTERS);
                }
            }
        }
    }

    #[test]
    fn known_slots_are_where_the_isa_draws_them() {
        let slot = |thread, register, part| FragmentSlot { thread, register, part };
        let f32 = Accumulator::F32;
        assert_eq!(f32.coordinates(slot(0, 0, 0)), [0, 0]);
        assert_eq!(f32.coordinates(slot(1, 1, 0)), [0, 3]);
        assert_eq!(f32.coordinates(slot(5, 2, 0)), [9, 2]);
        assert_eq!(f32.coordinates(slot(127, 7, 0)), [63, 15]);
        assert_eq!(Accumulator::F16.coordinates(slot(33, 3, 1)), [24, 11]);
        assert_eq!(Operand::F16.coordinates(slot(0, 1, 0)), [8, 0]);
        assert_eq!(Operand::F16.coordinates(slot(0, 2, 1)), [0, 9]);
        assert_eq!(Operand::E4m3.coordinates(slot(1, 2, 3)), [0, 23]);
        assert_eq!(Operand::Tf32.coordinates(slot(6, 3, 0)), [9, 6]);
    }

    /// Sixteen columns of D, converted in pairs, have the layout of A for the next multiplication.
    #[test]
    fn accumulators_are_laid_out_as_a_of_16_bits() {
        for thread in 0..128 {
            for register in 0..4 {
                for part in 0..2 {
                    let [row, k] = Operand::F16.coordinates(FragmentSlot { thread, register, part });
                    let d = FragmentSlot { thread, register: 2 * register + part, part: 0 };
                    assert_eq!(Accumulator::F32.coordinates(d), [row, k]);
                }
            }
        }
    }
}
