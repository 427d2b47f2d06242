//! The metadata of sparse left operands, in the registers of a warpgroup.

use std::fmt;

use tma_model::limits::{THREAD_REGISTERS, WARPGROUP_THREADS};
use tma_model::mma::{Accumulator, Form, FragmentSlot, GROUP_BITS, MetadataLocation, Operand, ROWS};

use super::crossed;
use super::drawing::{Cell, Drawing, shade};
use crate::error::PictureError;
use crate::spec::Scalar;

/// A map from the elements of a sparse left operand to the bits that select them, in the registers
/// of a warpgroup that `tile.sparse(registers)` takes.
///
/// A row of the operand consists of groups of four elements, of which two are stored. For `tf32` it
/// consists of groups of two, of which one is stored. Each group has four bits, and a register has
/// eight groups.
///
/// ```
/// # use tma_runtime::picture::TileLayout;
/// # use tma_runtime::spec::Scalar;
/// let metadata = TileLayout::metadata(Scalar::F16, [64, 64])?;
/// assert_eq!(metadata.registers(), 1); // of each thread
/// // Elements 20 to 23 of row 9: bits 20 to 23 of thread 5.
/// let place = metadata.place([9, 20]).expect("the operand has it");
/// assert_eq!((place.thread, place.register, place.part), (5, 0, 5));
/// println!("{metadata}");
/// # Ok::<(), tma_runtime::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataLayout {
    element: Operand,
    /// Rows, and elements along K, counting those that are not stored.
    extents: [u32; 2],
}

impl MetadataLayout {
    pub(super) fn new(element: Scalar, extents: [u32; 2]) -> Result<Self, PictureError> {
        let [rows, depth] = extents;
        let whole = |extent: u32, step: u32| extent > 0 && extent.is_multiple_of(step);
        Operand::of(element)
            .filter(|a| a.is_sparse() && whole(rows, ROWS) && whole(depth, step(*a)))
            .map(|element| Self { element, extents })
            .filter(|layout| layout.registers() <= THREAD_REGISTERS)
            .ok_or(PictureError::Metadata { element, extents })
    }

    /// Returns how many registers each thread holds: the length of the array.
    pub fn registers(&self) -> u32 {
        (self.extents[0] / ROWS).saturating_mul(self.registers_of_band())
    }

    /// Returns the number of registers for 64 rows. An instruction uses the registers of half of
    /// the threads, or of all.
    fn registers_of_band(&self) -> u32 {
        (self.extents[1] / step(self.element)).div_ceil(self.element.selectors())
    }

    /// Returns the location of the bits of the group with this row and element, or `None` if the
    /// operand has no such element. The part counts groups of four bits in the register, from the
    /// low bits up.
    pub fn place(&self, at: [u32; 2]) -> Option<FragmentSlot> {
        let [row, k] = at;
        (row < self.extents[0] && k < self.extents[1]).then(|| {
            let (instruction, k) = (k / step(self.element), k % step(self.element));
            let selectors = self.element.selectors();
            let group = k / self.element.group();
            let MetadataLocation { thread, bit } =
                self.element.metadata(instruction % selectors, row % ROWS, group);
            let register = row / ROWS * self.registers_of_band() + instruction / selectors;
            FragmentSlot { thread, register, part: bit / GROUP_BITS }
        })
    }

    /// Draws the first 16 rows of the operand, which are those of one warp, with one line per row.
    /// The others look alike. The four threads that share two rows have a colour, and each of them
    /// has a shade of it.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    fn drawing(&self) -> Drawing {
        let each = self.element.group();
        let groups = || (0..self.extents[1]).step_by(each as usize);
        let line = |row: u32| {
            let cells = groups().map(|k| self.place([row, k]).map(cell));
            (row.to_string(), cells.collect())
        };
        Drawing {
            title: format!(
                "{} of {}, sparse: thread, register and lowest bit of the metadata of each group",
                crossed(&self.extents),
                self.name()
            ),
            heads: groups().map(|k| format!("{k}-{}", k + each - 1)).collect(),
            lines: (0..ROWS / (WARPGROUP_THREADS / 32)).map(line).collect(),
            width: 74,
            legend: vec![],
        }
    }

    /// Returns the name of the element type in Rust.
    fn name(&self) -> &'static str {
        if self.element == Operand::S8 { "i8" } else { self.element.name() }
    }
}

fn cell(place: FragmentSlot) -> Cell {
    let FragmentSlot { thread, register, part } = place;
    let label = format!("T{thread} r{register}.{}", GROUP_BITS * part);
    Cell { fill: shade(thread / 4, 62 + 8 * (thread % 4)), label }
}

/// Returns the number of elements along K of one instruction, counting those that are not stored.
fn step(a: Operand) -> u32 {
    // K depends on the left operand alone.
    Form { d: Accumulator::F32, a, b: a, n: 8, sparse: true }.k()
}

/// Prints the picture as text, with one line per row of a warp. `T5 r0.20` are bits 20 to 23 of
/// register 0 of thread 5.
impl fmt::Display for MetadataLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.drawing().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Every four bits of each register of each thread belong to one group, and all bits are used.
    /// If the number of instructions is odd, half of the last registers is unused.
    #[test]
    fn every_group_has_bits_of_its_own() {
        for (element, depth, registers) in [
            (Scalar::F16, 128, 2),
            (Scalar::Bf16, 96, 2),
            (Scalar::Tf32, 32, 1),
            (Scalar::E4m3, 128, 2),
            (Scalar::U8, 64, 1),
        ] {
            let layout = MetadataLayout::new(element, [128, depth]).expect("it is an operand");
            assert_eq!(layout.registers(), 2 * registers, "{element}");
            let group = layout.element.group();
            let mut found = HashSet::new();
            for row in 0..128 {
                for k in (0..depth).step_by(group as usize) {
                    let place = layout.place([row, k]).expect("it is there");
                    assert_eq!(layout.place([row, k + group - 1]), Some(place));
                    assert!(place.thread < 128 && place.register < layout.registers() && place.part < 8);
                    assert!(found.insert((place.thread, place.register, place.part)), "{element}: {place:?}");
                }
            }
            assert_eq!(layout.place([128, 0]), None);
            assert_eq!(layout.place([0, depth]), None);
        }
    }

    /// The positions that the documentation of `Tile::sparse` states.
    #[test]
    fn the_bits_are_where_the_words_say() {
        let place = |element, row, k| {
            let layout = MetadataLayout::new(element, [64, 128]).expect("it is an operand");
            let FragmentSlot { thread, register, part } = layout.place([row, k]).expect("it is there");
            (thread, register, part)
        };
        // Row 16 · 2 + 3 and the one 8 below it; elements 64 + 16 · 1 and those after them.
        assert_eq!(place(Scalar::F16, 35, 64 + 16 + 4), (64 + 12 + 1, 1, 1));
        assert_eq!(place(Scalar::F16, 43, 64 + 16 + 4), (64 + 12 + 1, 1, 5));
        assert_eq!(place(Scalar::Tf32, 35, 32 + 8 + 2), (64 + 12 + 1, 1, 1));
        assert_eq!(place(Scalar::E4m3, 43, 64 + 32 + 4), (64 + 12 + 3, 1, 1));
    }

    #[test]
    fn a_picture_shows_the_thread_of_each_bit() {
        let text = MetadataLayout::new(Scalar::F16, [64, 64]).expect("it is one").to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 16);
        assert!(lines[0].starts_with("64 x 64 of f16, sparse: thread, register and lowest bit"));
        assert!(lines[2].starts_with("     0: T0 r0.0   T0 r0.4   T0 r0.8   T0 r0.12  T1 r0.0 "), "{text}");
        assert!(lines[10].starts_with("     8: T0 r0.16  T0 r0.20 "), "{text}");
    }

    #[test]
    fn dense_types_are_rejected() {
        for (element, extents) in
            [(Scalar::F32, [64, 64]), (Scalar::F16, [60, 64]), (Scalar::F16, [64, 16]), (Scalar::U8, [64, 0])]
        {
            let error = MetadataLayout::new(element, extents).expect_err("it is none");
            assert!(error.to_string().contains("a sparse left operand holds"), "{error}");
        }
    }
}
