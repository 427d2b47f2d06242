//! Tiles in shared memory as operands.
//!
//! A tile lies in *panels*: as many bytes of each row as the swizzle spans, row after row, then the
//! next such bytes of each row. Without a swizzle a panel is one chunk of 16 bytes wide. This is
//! what one copy with a tensor map writes for each panel, or one copy of a box of three dimensions
//! (panel, row, element) for all.

use super::descriptor::Descriptor;
use super::element::Operand;
use super::{CHUNK_BYTES, CORE_ROWS, ROWS, STEP_BYTES};
use crate::swizzle::{Interleave, Swizzle};
use crate::tile::TileType;

/// Along which dimension the elements of an operand are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// The one that is summed.
    K,
    /// The rows of A, or the columns of B: in PTX, transposed.
    Mn,
}

/// A tile of shared memory that is A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandTile {
    /// What it holds.
    pub element: Operand,
    /// Rows and columns as they lie in memory, columns contiguous, in elements.
    pub extents: [u32; 2],
    /// How chunks are permuted.
    pub swizzle: Swizzle,
    /// Which of the two extents is summed: K-major, the columns; MN-major, the rows.
    pub major: Major,
}

/// A rule that a tile breaks as an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandFault {
    /// MN-major, and not of 16 bits. Source: PTX ISA, "wgmma.mma_async".
    Transposed,
    /// K is not a positive multiple of what one instruction takes, `step` elements.
    #[allow(missing_docs)]
    Depth { k: u32, step: u32 },
    /// Rows of A, or columns of B, are not a positive multiple of `step`: 8, and MN-major the
    /// elements of a chunk, or of a panel where there are several.
    #[allow(missing_docs)]
    Extent { extent: u32, step: u32 },
    /// LBO or SBO does not fit a descriptor.
    Offset,
}

impl OperandTile {
    /// A tile as an operand of these elements, whether or not an instruction takes it. None if no
    /// descriptor says how it lies: it has more than two dimensions that are not 1, it is
    /// interleaved, or its rows are not cut into panels.
    pub fn of(tile: &TileType, element: Operand, major: Major) -> Option<Self> {
        let &[ref outer @ .., rows, columns] = tile.extents.as_slice() else { return None };
        if outer.iter().any(|&extent| extent != 1) {
            return None;
        }
        let swizzle = (tile.swizzle.interleave() == Interleave::None).then(|| tile.swizzle.pattern())?;
        // Of bits there are several in each element of the tile.
        let columns = columns.checked_mul(tile.element.bytes() * 8 / element.bits())?;
        let operand = Self { element, extents: [rows, columns], swizzle, major };
        // Without a swizzle its rows lie one after the other, and not in chunks.
        (u64::from(operand.pitch()) == tile.row_pitch()).then_some(operand)
    }

    /// Rows of A, or columns of B.
    pub const fn mn(self) -> u32 {
        match self.major {
            Major::K => self.extents[0],
            Major::Mn => self.extents[1],
        }
    }

    /// Elements along the dimension that is summed.
    pub const fn k(self) -> u32 {
        match self.major {
            Major::K => self.extents[1],
            Major::Mn => self.extents[0],
        }
    }

    /// K of one dense instruction.
    pub const fn step(self) -> u32 {
        STEP_BYTES * 8 / self.element.bits()
    }

    /// Bytes from one row of a panel to the next, which are the width of a panel.
    pub const fn pitch(self) -> u32 {
        match self.swizzle.span() {
            Some(span) => span,
            None => CHUNK_BYTES,
        }
    }

    /// Elements of a panel's row.
    pub const fn panel_elements(self) -> u32 {
        self.pitch() * 8 / self.element.bits()
    }

    /// How many panels the tile has.
    pub const fn panels(self) -> u32 {
        self.extents[1].div_ceil(self.panel_elements())
    }

    /// Bytes of a panel: from one to the next.
    pub const fn panel_bytes(self) -> u32 {
        self.extents[0] * self.pitch()
    }

    /// Bytes of the tile in shared memory.
    pub const fn bytes(self) -> u32 {
        self.panels() * self.panel_bytes()
    }

    /// What the tile's address is a multiple of: the bytes after which the swizzle's pattern
    /// repeats, 8 rows of it. Without a swizzle a descriptor asks for 16 bytes, and a tensor copy
    /// for 128. Source: PTX ISA, "Matrix Descriptor Format", base offset.
    pub const fn alignment(self) -> u32 {
        match self.swizzle.span() {
            Some(span) => CORE_ROWS * span,
            None => CHUNK_BYTES,
        }
    }

    /// LBO in bytes. K-major it is what lies between two chunks along K, and with a swizzle it is
    /// not read (16 is written). MN-major it is what lies between panels, and without a swizzle
    /// between groups of 8 rows.
    pub const fn leading(self) -> u32 {
        match (self.major, self.swizzle) {
            (Major::K, Swizzle::None) => self.panel_bytes(),
            (Major::K, Swizzle::B32 | Swizzle::B64 | Swizzle::B128) => CHUNK_BYTES,
            (Major::Mn, Swizzle::None) => CORE_ROWS * CHUNK_BYTES,
            (Major::Mn, Swizzle::B32 | Swizzle::B64 | Swizzle::B128) => self.panel_bytes(),
        }
    }

    /// SBO in bytes: from 8 rows to the next 8; MN-major without a swizzle, from chunk to chunk.
    pub const fn stride(self) -> u32 {
        match (self.major, self.swizzle) {
            (Major::Mn, Swizzle::None) => self.panel_bytes(),
            (Major::K, _) | (Major::Mn, Swizzle::B32 | Swizzle::B64 | Swizzle::B128) => {
                CORE_ROWS * self.pitch()
            }
        }
    }

    /// The descriptor of the tile at `start`.
    pub const fn descriptor(self, start: u32) -> Descriptor {
        let (leading, stride) = (self.leading(), self.stride());
        Descriptor { start, leading, stride, base_offset: 0, swizzle: self.swizzle }
    }

    /// Bytes from the tile's start to that of k-step `step`, each of [`step`](Self::step) elements.
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

    /// Bytes from the tile's start to row of A, or column of B, `first`; none where no operand can
    /// start: K-major at multiples of 8, MN-major at those of a panel.
    pub const fn advance_mn(self, first: u32) -> Option<u32> {
        match self.major {
            Major::K if first.is_multiple_of(CORE_ROWS) => Some(first * self.pitch()),
            Major::Mn if first.is_multiple_of(self.panel_elements()) => {
                Some(first / self.panel_elements() * self.panel_bytes())
            }
            Major::K | Major::Mn => None,
        }
    }

    /// Bytes from the tile's start to its band of 64 rows of A with this number; none as above.
    pub const fn advance_band(self, band: u32) -> Option<u32> {
        self.advance_mn(band * ROWS)
    }

    /// Where the byte of element (`i`, `k`) lies in a tile that starts at a multiple of its
    /// [`alignment`](Self::alignment): the tile's own layout, whoever reads it.
    pub const fn offset(self, [i, k]: [u32; 2]) -> u32 {
        let (row, column) = match self.major {
            Major::K => (i, k),
            Major::Mn => (k, i),
        };
        let each = self.panel_elements();
        let byte = column % each * self.element.bits() / 8;
        self.swizzle.permute(column / each * self.panel_bytes() + row * self.pitch() + byte)
    }

    /// Every rule that it breaks as an operand.
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
    fn each_rule_is_told_of() {
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
        let far = tile(Operand::F16, [4096, 128], Swizzle::B128, Major::Mn);
        assert_eq!(far.faults(), [OperandFault::Offset]);
    }
}
