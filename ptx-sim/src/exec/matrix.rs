//! `ldmatrix`, `stmatrix` and `movmatrix`: 8×8 matrices of 16-bit numbers, distributed over the
//! lanes of a warp.
//!
//! Source: PTX ISA, "ldmatrix": lane `4 * row + column / 2` holds the two numbers of `row` that
//! start at `column`.

use super::Lane;
use super::executor::Executor;
use super::warp::Warp;
use crate::isa::{Address, MatrixCode, Reg};
use crate::machine::address::{SHARED_WINDOW, in_window};
use crate::machine::{Order, Pointer, Site, Space, Stop};
use crate::report::FindingKind;

/// Indexed by row, then by column.
type Matrix = [[u16; 8]; 8];

/// Returns the position of the two numbers of a matrix that a lane holds: the row, and the first
/// column.
const fn held(lane: u32) -> (usize, usize) {
    (lane as usize / 4, lane as usize % 4 * 2)
}

/// The operand that holds, in each lane, the address of a matrix row.
#[derive(Clone, Copy)]
struct Rows {
    space: Space,
    address: Address,
    site: Site,
}

fn transposed(matrix: &Matrix) -> Matrix {
    std::array::from_fn(|row| std::array::from_fn(|column| matrix[column][row]))
}

impl Executor<'_, '_> {
    /// Executes a matrix operation. All lanes must be at the instruction.
    pub(super) fn matrix(&mut self, warp: &mut Warp, code: &MatrixCode, site: Site) -> Result<(), Stop> {
        match code {
            MatrixCode::Move { d, a } => {
                let matrix = transposed(&self.gather(warp, *a));
                spread(warp, *d, &matrix);
            }
            MatrixCode::Load { space, address, registers, transpose } => {
                let rows = Rows { space: *space, address: *address, site };
                for (number, reg) in (0..).zip(registers) {
                    let matrix = self.load_matrix(warp, rows, number)?;
                    spread(warp, *reg, &if *transpose { transposed(&matrix) } else { matrix });
                }
            }
            MatrixCode::Store { space, address, registers, transpose } => {
                let rows = Rows { space: *space, address: *address, site };
                for (number, reg) in (0..).zip(registers) {
                    let matrix = self.gather(warp, *reg);
                    let matrix = if *transpose { transposed(&matrix) } else { matrix };
                    self.store_matrix(warp, rows, number, &matrix)?;
                }
            }
        }
        Ok(())
    }

    fn gather(&self, warp: &Warp, reg: Reg) -> Matrix {
        let mut matrix = [[0; 8]; 8];
        for lane in 0..32 {
            let (value, (row, column)) = (warp.get(self.context, reg, lane), held(lane));
            matrix[row][column] = value as u16;
            matrix[row][column + 1] = (value >> 16) as u16;
        }
        matrix
    }

    /// Loads a matrix. Lane `8 * number + row` has the address of a row of matrix `number`, and
    /// reads it for all lanes.
    fn load_matrix(&mut self, warp: &Warp, rows: Rows, number: u32) -> Result<Matrix, Stop> {
        let mut matrix = [[0; 8]; 8];
        for (row, lane) in matrix.iter_mut().zip(8 * number..) {
            let at = self.row_at(warp, rows, lane)?;
            let mut bytes = [0; 16];
            let (actor, at) = (warp.actor(lane, rows.site), Pointer::new(rows.space, at));
            self.machine.load(actor, at, &mut bytes, Order::Weak)?;
            for (number, bytes) in row.iter_mut().zip(bytes.chunks_exact(2)) {
                *number = u16::from_le_bytes([bytes[0], bytes[1]]);
            }
        }
        Ok(matrix)
    }

    fn store_matrix(&mut self, warp: &Warp, rows: Rows, number: u32, matrix: &Matrix) -> Result<(), Stop> {
        for (row, lane) in matrix.iter().zip(8 * number..) {
            let at = self.row_at(warp, rows, lane)?;
            let mut bytes = [0; 16];
            for (bytes, number) in bytes.chunks_exact_mut(2).zip(row) {
                bytes.copy_from_slice(&number.to_le_bytes());
            }
            let (actor, at) = (warp.actor(lane, rows.site), Pointer::new(rows.space, at));
            self.machine.store(actor, at, &bytes, Order::Weak)?;
        }
        Ok(())
    }

    fn row_at(&mut self, warp: &Warp, rows: Rows, lane: u32) -> Result<u64, Stop> {
        let Rows { space, address, site } = rows;
        let at = self.address(warp, address, lane);
        if space == Space::Generic && !in_window(SHARED_WINDOW, at) {
            let message = format!("the matrix row at {at:#x} is not in shared memory");
            let lane = Lane { index: lane, site };
            return self.fail(warp, lane, FindingKind::OutOfBounds, message);
        }
        Ok(at)
    }
}

fn spread(warp: &mut Warp, register: Reg, matrix: &Matrix) {
    for lane in 0..32 {
        let (row, column) = held(lane);
        let pair = u64::from(matrix[row][column]) | u64::from(matrix[row][column + 1]) << 16;
        warp.set(register, lane, pair);
    }
}
