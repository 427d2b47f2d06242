//! Tiles in shared memory as operands.
//!
//! A tile consists of *panels*. The first panel has the first bytes of each row, as many as the
//! swizzle spans, row after row; the next panel has the next bytes of each row, and so on. Without
//! a swizzle a panel is one 16-byte chunk wide. One copy with a tensor map writes a panel in this
//! layout; a copy of a three-dimensional box (panel, row, element) writes all panels at once.

use super::descriptor::Descriptor;
use super::element::Operand;
use super::{CHUNK_BYTES, CORE_ROWS, ROWS, STEP_BYTES};
use crate::swizzle::{Interleave, Swizzle};
use crate::tile::TileType;

/// The dimension along which the elements of an operand are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// The reduction dimension.
    K,
    /// The rows of A, or the columns of B. PTX calls this transposed.
    Mn,
}

/// A tile of shared memory that is A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandTile {
    /// Type of the elements.
    pub element: Operand,
    /// Rows and columns as laid out in memory, in elements. Columns are contiguous.
    pub extents: [u32; 2],
    /// Permutation of the chunks.
    pub swizzle: Swizzle,
    /// The contiguous dimension. K is the extent of the columns if K-major, of the rows if
    /// MN-major.
    pub major: Major,
}

/// A rule that a tile breaks as an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandFault {
    /// The tile is MN-major, and its elements are not 16 bits wide. Source: PTX ISA,
    /// "wgmma.mma_async".
    Transposed,
    /// K is not a positive multiple of the K of one instruction, `step` elements.
    #[allow(missing_docs)]
    Depth { k: u32, step: u32 },
    /// The rows of A, or columns of B, are not a positive multiple of `step`. The step is 8 if
    /// K-major. If MN-major, it is the elements of a chunk, or of a panel if there are several
    /// panels.
    #[allow(missing_docs)]
    Extent { extent: u32, step: u32 },
    /// LBO or SBO does not fit a descriptor.
    Offset,
}

impl OperandTile {
    /// Returns a tile as an operand with these elements, whether or not an instruction accepts it.
    /// Returns `None` if no descriptor can express its layout: more than two of its dimensions are
    /// not 1, it is interleaved, or its rows are not divided into panels.
    pub fn of(tile: &TileType, element: Operand, major: Major) -> Option<Self> {
        let &[ref outer @ .., rows, columns] = tile.extents.as_slice() else { return None };
        if outer.iter().any(|&extent| extent != 1) {
            return None;
        }
        let swizzle = (tile.swizzle.interleave() == Interleave::None).then(|| tile.swizzle.pattern())?;
        // If the operand's elements are bits, each element of the tile has several.
        let columns = columns.checked_mul(tile.element.bytes() * 8 / element.bits())?;
        let operand = Self { element, extents: [rows, columns], swizzle, major };
        // Without a swizzle the tile's rows follow one another, and are not divided into chunks.
        (u64::from(operand.pitch()) == tile.row_pitch()).then_some(operand)
    }

    /// Returns the number of rows of A, or columns of B.
    pub const fn mn(self) -> u32 {
        match self.major {
            Major::K => self.extents[0],
            Major::Mn => self.extents[1],
        }
    }

    /// Returns the number of elements along K.
    pub const fn k(self) -> u32 {
        match self.major {
            Major::K => self.extents[1],
            Major::Mn => self.extents[0],
        }
    }

    /// Returns the K of one dense instruction.
    pub const fn step(self) -> u32 {
        STEP_BYTES * 8 / self.element.bits()
    }

    /// Returns the bytes from one row of a panel to the next, which is the width of a panel.
    pub const fn pitch(self) -> u32 {
        match self.swizzle.span() {
            Some(span) => span,
            None => CHUNK_BYTES,
        }
    }

    /// Returns the number of elements in a row of a panel.
    pub const fn panel_elements(self) -> u32 {
        self.pitch() * 8 / self.element.bits()
    }

    /// Returns the number of panels in the tile.
    pub const fn panels(self) -> u32 {
        self.extents[1].div_ceil(self.panel_elements())
    }

    /// Returns the size of a panel in bytes, which is the distance between panels.
    pub const fn panel_bytes(self) -> u32 {
        self.extents[0] * self.pitch()
    }

    /// Returns the size of the tile in shared memory, in bytes.
    pub const fn bytes(self) -> u32 {
        self.panels() * self.panel_bytes()
    }

    /// Returns the alignment of the tile's address: the period of the swizzle's pattern, which is 8
    /// of its rows. Without a swizzle a descriptor requires 16 bytes, and a tensor copy 128.
    /// Source: PTX ISA, "Matrix Descriptor Format", base offset.
    pub const fn alignment(self) -> u32 {
        match self.swizzle.span() {
            Some(span) => CORE_ROWS * span,
            None => CHUNK_BYTES,
        }
    }

    /// Returns the LBO in bytes. K-major, it is the distance between two chunks along K; with a
    /// swizzle the hardware does not read it, and 16 is written. MN-major, it is the distance
    /// between panels, or, without a swizzle, between groups of 8 rows.
    pub const fn leading(self) -> u32 {
        match (self.major, self.swizzle) {
            (Major::K, Swizzle::None) => self.panel_bytes(),
            (Major::K, Swizzle::B32 | Swizzle::B64 | Swizzle::B128) => CHUNK_BYTES,
            (Major::Mn, Swizzle::None) => CORE_ROWS * CHUNK_BYTES,
            (Major::Mn, Swizzle::B32 | Swizzle::B64 | Swizzle::B128) => self.panel_bytes(),
        }
    }

    /// Returns the SBO in bytes: the distance between groups of 8 rows or, MN-major without a
    /// swizzle, between chunks.
    pub const fn stride(self) -> u32 {
        match (self.major, self.swizzle) {
            (Major::Mn, Swizzle::None) => self.panel_bytes(),
            (Major::K, _) | (Major::Mn, Swizzle::B32 | Swizzle::B64 | Swizzle::B128) => {
                CORE_ROWS * self.pitch()
            }
        }
    }

    /// Returns the descriptor of the tile at address `start`.
    pub const fn descriptor(self, start: u32) -> Descriptor {
        let (leading, stride) = (self.leading(), self.stride());
        Descriptor { start, leading, stride, base_offset: 0, swizzle: self.swizzle }
    }

    /// Returns the bytes from the tile's start to k-step number `step`. Each k-step is
    /// [`step`](Self::step) elements.
    pub const fn advance_k(self, step: u32) -> u32 {
        match self.major {
            Major::K => {
                let each = self.pitch();
                let at = step * STEP_BYTES;
                at / each * self.panel_bytes() + at % each
            }
            Major::Mn => step * self.step() * self.pitch(),
        }
    }

    /// Returns the bytes from the tile's start to row (of A) or column (of B) `first`. Returns
    /// `None` if no operand can start there: an operand starts at a multiple of 8 if K-major, and
    /// of a panel's elements if MN-major.
    pub const fn advance_mn(self, first: u32) -> Option<u32> {
        match self.major {
            Major::K if first.is_multiple_of(CORE_ROWS) => Some(first * self.pitch()),
            Major::Mn if first.is_multiple_of(self.panel_elements()) => {
                Some(first / self.panel_elements() * self.panel_bytes())
            }
            Major::K | Major::Mn => None,
        }
    }

    /// Returns the bytes from the tile's start to this band of 64 rows of A, or `None` as above.
    pub const fn advance_band(self, band: u32) -> Option<u32> {
        self.advance_mn(band * ROWS)
    }

    /// Returns the byte offset of element (`i`, `k`) in a tile that starts at a multiple of its
    /// [`alignment`](Self::alignment). This is the tile's own layout, independent of the reader.
    pub const fn offset(self, i: u32, k: u32) -> u32 {
        let (row, column) = match self.major {
            Major::K => (i, k),
            Major::Mn => (k, i),
        };
        let each = self.panel_elements();
        let byte = column % each * self.element.bits() / 8;
        self.swizzle.permute(column / each * self.panel_bytes() + row * self.pitch() + byte)
    }

    /// Returns all rules that the tile breaks as an operand.
    pub fn faults(self) -> Vec<OperandFault> {
        let mut faults = Vec::new();
        if self.major == Major::Mn && !self.element.is_transposable() {
            faults.push(OperandFault::Transposed);
        }
        let is_multiple = |extent: u32, step: u32| extent != 0 && extent.is_multiple_of(step);
        let (k, step) = (self.k(), self.step());
        if !is_multiple(k, step) {
            faults.push(OperandFault::Depth { k, step });
        }
        let extent = self.mn();
        let step = match self.major {
            Major::K => CORE_ROWS,
            Major::Mn if self.panels() > 1 => self.panel_elements(),
            Major::Mn => self.element.per_chunk(),
        };
        if !is_multiple(extent, step) {
            faults.push(OperandFault::Extent { extent, step });
        }
        if !self.descriptor(0).faults().is_empty() {
            faults.push(OperandFault::Offset);
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(element: Operand, extents: [u32; 2], swizzle: Swizzle, major: Major) -> OperandTile {
        OperandTile { element, extents, swizzle, major }
    }

    #[test]
    fn the_widest_swizzle_has_the_offsets_that_everyone_writes() {
        let a = tile(Operand::Bf16, [128, 64], Swizzle::B128, Major::K);
        assert_eq!((a.leading(), a.stride(), a.alignment(), a.bytes()), (16, 1024, 1024, 128 * 128));
        assert_eq!((0..4).map(|step| a.advance_k(step)).collect::<Vec<_>>(), [0, 32, 64, 96]);
        assert_eq!(a.advance_band(1), Some(64 * 128));
        assert_eq!(a.descriptor(0).encode() >> 32, 0x4000_0040);
    }

    #[test]
    fn a_wider_tile_goes_on_in_the_next_panel() {
        let a = tile(Operand::Bf16, [64, 128], Swizzle::B128, Major::K);
        assert_eq!((a.panels(), a.panel_bytes()), (2, 64 * 128));
        assert_eq!((a.advance_k(3), a.advance_k(4)), (96, 64 * 128));
        let plain = tile(Operand::E4m3, [64, 64], Swizzle::None, Major::K);
        assert_eq!((plain.leading(), plain.stride(), plain.advance_k(1)), (1024, 128, 2 * plain.leading()));
    }

    #[test]
    fn a_transposed_tile_steps_over_rows() {
        let b = tile(Operand::F16, [64, 128], Swizzle::B128, Major::Mn);
        assert_eq!((b.mn(), b.k(), b.leading(), b.stride()), (128, 64, 64 * 128, 1024));
        assert_eq!((b.advance_k(1), b.advance_mn(64), b.advance_mn(32)), (2048, Some(64 * 128), None));
        let plain = tile(Operand::F16, [64, 128], Swizzle::None, Major::Mn);
        assert_eq!((plain.leading(), plain.stride()), (128, 64 * 16));
    }

    #[test]
    fn each_rule_is_reported() {
        let good = tile(Operand::F16, [64, 64], Swizzle::B128, Major::K);
        assert_eq!(good.faults(), []);
        assert_eq!(OperandTile { major: Major::Mn, ..good }.faults(), []);
        let e4m3 = tile(Operand::E4m3, [64, 128], Swizzle::B128, Major::Mn);
        assert_eq!(e4m3.faults(), [OperandFault::Transposed]);
        let shallow = OperandTile { extents: [64, 24], ..good };
        assert_eq!(shallow.faults(), [OperandFault::Depth { k: 24, step: 16 }]);
        let narrow = OperandTile { extents: [60, 64], ..good };
        assert_eq!(narrow.faults(), [OperandFault::Extent { extent: 60, step: 8 }]);
        let ragged = tile(Operand::F16, [16, 96], Swizzle::B128, Major::Mn);
        assert_eq!(ragged.faults(), [OperandFault::Extent { extent: 96, step: 64 }]);
        let too_far = tile(Operand::F16, [4096, 128], Swizzle::B128, Major::Mn);
        assert_eq!(too_far.faults(), [OperandFault::Offset]);
    }
}
