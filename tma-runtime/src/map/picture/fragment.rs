//! Matrices in the registers of a warpgroup: accumulators and left operands.

use std::fmt;
use std::ops::Range;

use tma_model::limits::{THREAD_REGISTERS, WARPGROUP_THREADS};
use tma_model::mma::{Accumulator, Form, FragmentSlot, Operand, ROWS};

use super::crossed;
use super::drawing::{Cell, Drawing, shade};
use crate::error::PictureError;
use crate::spec::Scalar;

/// Rows that each warp holds of a matrix of 64 rows. Source: PTX ISA, "Register Fragments for
/// wgmma.mma_async.m64nNk16".
const WARP_ROWS: u32 = ROWS / 4;

/// A map from each element of a matrix in registers to the thread of the warpgroup and the register
/// that hold it.
///
/// ```
/// # use tma_runtime::picture::TileLayout;
/// # use tma_runtime::spec::Scalar;
/// let sum = TileLayout::accumulator(Scalar::F32, [64, 16])?;
/// assert_eq!(sum.len(), 8); // of each thread
/// assert_eq!(sum.coordinates(5, 2), Some([9, 2])); // `sum.at(2)` in thread 5
/// let place = sum.place([9, 2]).expect("the matrix has it");
/// assert_eq!((place.thread, sum.index(place)), (5, 2));
/// println!("{sum}");
/// # Ok::<(), tma_runtime::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentLayout {
    matrix: Matrix,
    extents: [u32; 2],
    /// The rows shown in pictures.
    shown: Range<u32>,
}

/// The matrix in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matrix {
    Accumulator(Accumulator),
    Left(Operand),
}

impl FragmentLayout {
    pub(super) fn accumulator(element: Scalar, extents: [u32; 2]) -> Result<Self, PictureError> {
        let takes = |columns: u32| (8..=256).contains(&columns) && columns.is_multiple_of(8);
        Accumulator::of(element)
            .filter(|_| takes(extents[1]))
            .and_then(|d| Self::new(Matrix::Accumulator(d), extents))
            .ok_or(PictureError::Accumulator { element, extents })
    }

    pub(super) fn left(element: Scalar, extents: [u32; 2]) -> Result<Self, PictureError> {
        let takes = |a: &Operand| extents[1] > 0 && extents[1].is_multiple_of(step(*a));
        Operand::of(element)
            .filter(takes)
            .and_then(|a| Self::new(Matrix::Left(a), extents))
            .ok_or(PictureError::Fragment { element, extents })
    }

    /// Returns `None` unless the rows are whole bands of 64, and the matrix fits in the registers
    /// of the threads.
    fn new(matrix: Matrix, extents: [u32; 2]) -> Option<Self> {
        let [rows, columns] = extents;
        let elements = u64::from(rows) * u64::from(columns) / u64::from(WARPGROUP_THREADS);
        let layout = Self { matrix, extents, shown: 0..rows };
        let fits = elements / u64::from(layout.per_register()) <= u64::from(THREAD_REGISTERS);
        (rows > 0 && rows.is_multiple_of(ROWS) && fits).then_some(layout)
    }

    fn per_register(&self) -> u32 {
        match self.matrix {
            Matrix::Accumulator(d) => d.per_register(),
            Matrix::Left(a) => a.per_register(),
        }
    }

    /// Returns the number of elements that each thread holds.
    #[allow(clippy::len_without_is_empty, reason = "no fragment is empty")]
    pub fn len(&self) -> u32 {
        self.extents[0] * self.extents[1] / WARPGROUP_THREADS
    }

    /// Returns the index of the element at a place among those of its thread: the `i` of `sum[i]`.
    pub fn index(&self, place: FragmentSlot) -> u32 {
        place.register * self.per_register() + place.part
    }

    /// Returns row and column of a thread's element `i`, as `sum.at(i)` does. The result is `None`
    /// if the warpgroup has no such thread, or the thread no such element.
    pub fn coordinates(&self, thread: u32, i: u32) -> Option<[u32; 2]> {
        (thread < WARPGROUP_THREADS && i < self.len()).then(|| {
            let (register, part) = (i / self.per_register(), i % self.per_register());
            let ([band, step], register) = self.instruction(register);
            let place = FragmentSlot { thread, register, part };
            match self.matrix {
                Matrix::Accumulator(d) => {
                    let [row, column] = d.coordinates(place);
                    [band * ROWS + row, column]
                }
                Matrix::Left(a) => {
                    let [row, k] = a.coordinates(place);
                    [band * ROWS + row, step * self::step(a) + k]
                }
            }
        })
    }

    /// Returns the band of 64 rows and the step along K of a register, and the register's number
    /// within its instruction. Bands are consecutive, and so are the steps within a band.
    fn instruction(&self, register: u32) -> ([u32; 2], u32) {
        let each = match self.matrix {
            Matrix::Accumulator(_) => self.registers_of_band(),
            Matrix::Left(_) => Form::LEFT_REGISTERS,
        };
        let steps = self.registers_of_band() / each;
        ([register / each / steps, register / each % steps], register % each)
    }

    /// Returns the number of registers that a thread holds for 64 rows.
    fn registers_of_band(&self) -> u32 {
        ROWS * self.extents[1] / WARPGROUP_THREADS / self.per_register()
    }

    /// Returns the thread and register that hold this row and column, or `None` if the matrix has
    /// no such element. Registers are numbered over the whole matrix.
    pub fn place(&self, at: [u32; 2]) -> Option<FragmentSlot> {
        let [row, column] = at;
        (row < self.extents[0] && column < self.extents[1]).then(|| {
            let place = match self.matrix {
                Matrix::Accumulator(d) => d.slot(row % ROWS, column),
                Matrix::Left(a) => {
                    let place = a.slot(row % ROWS, column % step(a));
                    FragmentSlot {
                        register: place.register + column / step(a) * Form::LEFT_REGISTERS,
                        ..place
                    }
                }
            };
            FragmentSlot { register: place.register + row / ROWS * self.registers_of_band(), ..place }
        })
    }

    /// Returns the same layout, with pictures limited to one warp's rows: 16 of each 64, of which
    /// the first 16 are shown. The others look alike. If there is no such warp, nothing changes.
    #[must_use]
    pub fn of_warp(&self, warp: u32) -> Self {
        let shown = if warp < 4 { warp * WARP_ROWS..(warp + 1) * WARP_ROWS } else { self.shown.clone() };
        Self { shown, ..self.clone() }
    }

    /// Draws the matrix, with one line per row. The four threads that share a row have a colour,
    /// and each of them has a shade of it.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    fn drawing(&self) -> Drawing {
        // One box per element of an accumulator, or per register of an operand.
        let each = match self.matrix {
            Matrix::Accumulator(_) => 1,
            Matrix::Left(a) => a.per_register(),
        };
        let columns = || (0..self.extents[1]).step_by(each as usize);
        let line = |row: u32| {
            let cells = columns().map(|column| self.place([row, column]).map(|at| self.cell(at)));
            (row.to_string(), cells.collect())
        };
        let head = |first: u32| match each {
            1 => first.to_string(),
            _ => format!("{first}-{}", first + each - 1),
        };
        Drawing {
            title: self.to_title(),
            heads: columns().map(head).collect(),
            lines: self.shown.clone().map(line).collect(),
            width: 58,
            legend: vec![],
        }
    }

    fn cell(&self, place: FragmentSlot) -> Cell {
        let FragmentSlot { thread, register, part: _ } = place;
        let label = match self.matrix {
            Matrix::Accumulator(_) => format!("T{thread}[{}]", self.index(place)),
            Matrix::Left(_) => format!("T{thread} r{register}"),
        };
        Cell { fill: shade(thread / 4, 62 + 8 * (thread % 4)), label }
    }

    fn to_title(&self) -> String {
        let (extents, name) = (crossed(&self.extents), self.name());
        let suffix = match self.matrix {
            Matrix::Accumulator(_) => "an accumulator: thread and index of each element",
            Matrix::Left(_) => "a left operand: thread and register of the elements",
        };
        format!("{extents} of {name}, {suffix}")
    }

    /// Returns the name of the element type in Rust.
    fn name(&self) -> &'static str {
        match self.matrix {
            Matrix::Accumulator(d) => d.scalar().name(),
            Matrix::Left(Operand::S8) => "i8",
            Matrix::Left(a) => a.name(),
        }
    }
}

/// Returns the number of elements along K of one instruction.
const fn step(a: Operand) -> u32 {
    a.per_register() * 8
}

/// Prints the picture as text, with one line per row of the matrix. `T5[2]` is element 2 of thread
/// 5. In an operand, `T5 r2` is register 2 of thread 5, which holds the elements of these columns
/// from the low bits up.
impl fmt::Display for FragmentLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.drawing().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> Vec<FragmentLayout> {
        let accumulator = |element, extents| FragmentLayout::accumulator(element, extents).expect("there is");
        let left = |element, extents| FragmentLayout::left(element, extents).expect("there is");
        vec![
            accumulator(Scalar::F32, [64, 8]),
            accumulator(Scalar::I32, [128, 40]),
            accumulator(Scalar::F16, [192, 24]),
            left(Scalar::Bf16, [64, 16]),
            left(Scalar::F16, [128, 48]),
            left(Scalar::E4m3, [64, 64]),
            left(Scalar::Tf32, [64, 8]),
        ]
    }

    #[test]
    fn each_element_has_one_slot() {
        for layout in layouts() {
            let [rows, columns] = layout.extents;
            for row in 0..rows {
                for column in 0..columns {
                    let place = layout.place([row, column]).expect("it is one of the matrix");
                    let found = layout.coordinates(place.thread, layout.index(place));
                    assert_eq!(found, Some([row, column]), "{}", layout.to_title());
                }
            }
            assert_eq!(layout.len() * WARPGROUP_THREADS, rows * columns);
            assert_eq!(layout.place([rows, 0]).or(layout.place([0, columns])), None);
            assert_eq!(layout.coordinates(128, 0).or(layout.coordinates(0, layout.len())), None);
        }
    }

    #[test]
    fn fragments_that_no_warpgroup_holds_are_rejected() {
        let accumulator = |element, extents| FragmentLayout::accumulator(element, extents).is_err();
        assert!(accumulator(Scalar::Bf16, [64, 8]) && accumulator(Scalar::F32, [32, 8]));
        assert!(accumulator(Scalar::F32, [64, 12]) && accumulator(Scalar::F32, [64, 264]));
        assert!(accumulator(Scalar::F32, [128, 256]) && !accumulator(Scalar::F16, [64, 256]));
        assert!(accumulator(Scalar::F32, [0, 8]) && accumulator(Scalar::F32, [u32::MAX - 63, 256]));
        let left = |element, extents| FragmentLayout::left(element, extents).is_err();
        assert!(left(Scalar::F32, [64, 8]) && left(Scalar::Bf16, [64, 8]) && left(Scalar::Bf16, [64, 0]));
        assert!(!left(Scalar::Bf16, [64, 32]));
    }

    #[test]
    fn a_picture_names_thread_and_element() {
        let sum = FragmentLayout::accumulator(Scalar::F32, [64, 8]).expect("there is one");
        let text = sum.of_warp(1).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 16);
        assert_eq!(lines[0], "64 x 8 of f32, an accumulator: thread and index of each element");
        assert_eq!(lines[1], "        0      1      2      3      4      5      6      7");
        assert_eq!(lines[2], "    16: T32[0] T32[1] T33[0] T33[1] T34[0] T34[1] T35[0] T35[1]");
        assert_eq!(lines[17], "    31: T60[2] T60[3] T61[2] T61[3] T62[2] T62[3] T63[2] T63[3]");
        assert_eq!(sum.of_warp(9), sum);
    }

    #[test]
    fn a_picture_of_an_operand_has_registers() {
        let text = FragmentLayout::left(Scalar::E4m3, [64, 32]).expect("there is one").to_string();
        assert!(text.contains("\n        0-3     4-7     8-11  "), "{text}");
        assert!(text.contains("\n     0: T0 r0   T1 r0   T2 r0   T3 r0   T0 r2 "), "{text}");
        let text = FragmentLayout::left(Scalar::Tf32, [64, 16]).expect("there is one").to_string();
        assert!(text.contains("\n     8: T0 r1   T1 r1   T2 r1   T3 r1   T0 r3 "), "{text}");
        assert!(text.contains(" T3 r7\n"), "the second step's registers follow those of the first: {text}");
    }
}
