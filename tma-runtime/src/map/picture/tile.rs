//! The layout of a tile in shared memory.

use std::fmt;

use tma_model::TileType;
use tma_model::mma::Operand;

use super::drawing::{self, Drawing, colour};
use super::{FragmentLayout, Major, MetadataLayout, OperandLayout, crossed};
use crate::error::Error;
use crate::spec::{MapSpec, Scalar, TileSwizzle};

/// The unit that a swizzle moves, in bytes. Source: PTX ISA, "Swizzling Modes".
pub(super) const CHUNK: u64 = 16;
/// One pass over the 32 banks of shared memory, in bytes: one line of a picture.
pub(super) const LINE: u64 = 128;

/// The offsets of a tile's elements in shared memory.
///
/// ```
/// # use tma_runtime::picture::TileLayout;
/// # use tma_runtime::spec::{Scalar, TileSwizzle};
/// let layout = TileLayout::new(Scalar::F16, &[8, 64], TileSwizzle::B128);
/// assert_eq!(layout.offset(&[0, 8]), Some(16)); // the second chunk of the first row
/// assert_eq!(layout.offset(&[1, 0]), Some(128 + 16)); // the first of the second row has changed places with it
/// println!("{layout}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileLayout {
    element: Scalar,
    extents: Vec<u32>,
    swizzle: TileSwizzle,
}

/// A chunk of 16 bytes of shared memory, and the elements in it.
struct Cell {
    /// The row of the tile, with all dimensions but the innermost flattened.
    row: u64,
    /// The position in the row, in chunks.
    chunk: u64,
    /// The first element and the one after the last.
    elements: [u64; 2],
}

impl TileLayout {
    /// Returns the layout of a tile of these extents, in elements, outermost first.
    pub fn new(element: Scalar, extents: &[u32], swizzle: TileSwizzle) -> Self {
        Self { element, extents: extents.to_vec(), swizzle }
    }

    /// Returns the layout of the tile that a kernel's tensor map moves.
    pub fn of(map: &MapSpec) -> Self {
        Self::new(map.element, map.box_extents, map.swizzle)
    }

    pub(super) fn tile(&self) -> TileType {
        TileType { element: self.element, extents: self.extents.clone(), swizzle: self.swizzle }
    }

    /// Returns the number of rows, with all dimensions but the innermost flattened.
    fn rows(&self) -> u64 {
        let outer = self.extents.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().map(|&extent| u64::from(extent)).product()
    }

    /// Returns the size of the tile in shared memory in bytes, including gaps between rows.
    pub fn bytes(&self) -> u64 {
        self.tile().shared_bytes()
    }

    /// Returns the offset of element `at` from the tile's start in bytes, or `None` if the tile has
    /// no such element. `at` has one coordinate per dimension, outermost first.
    pub fn offset(&self, at: &[u32]) -> Option<u64> {
        let within =
            at.len() == self.extents.len() && at.iter().zip(&self.extents).all(|(at, extent)| at < extent);
        let (&column, outer) = at.split_last().filter(|_| within)?;
        let row = outer
            .iter()
            .zip(&self.extents)
            .fold(0, |row, (&at, &extent)| row * u64::from(extent) + u64::from(at));
        let (tile, byte) = (self.tile(), u64::from(column) * u64::from(self.element.bytes()));
        let width = tile.row_bytes() / tile.panels();
        let (panel, within) = (byte / width, byte % width);
        Some(self.permuted(panel * tile.panel_bytes() + row * tile.row_pitch() + within))
    }

    /// Returns the offset to which a byte is moved: the number of its chunk within the span is
    /// XORed with the number of its line. The permutation is its own inverse. Source: PTX ISA,
    /// "Swizzling Modes".
    fn permuted(&self, offset: u64) -> u64 {
        let chunks = u64::from(self.swizzle.permuted_bytes()) / CHUNK;
        offset ^ (((offset / LINE) & (chunks - 1)) * CHUNK)
    }

    /// Returns the elements in the 16 bytes at `offset`, if any.
    fn cell(&self, offset: u64) -> Option<Cell> {
        let (tile, logical) = (self.tile(), self.permuted(offset));
        let (panel, within) = (logical / tile.panel_bytes(), logical % tile.panel_bytes());
        let (row, in_panel) = (within / tile.row_pitch(), within % tile.row_pitch());
        let (width, size) = (tile.row_bytes() / tile.panels(), u64::from(self.element.bytes()));
        let byte = panel * width + in_panel;
        let end = (byte + CHUNK).min((panel + 1) * width);
        (panel < tile.panels() && row < self.rows() && byte < end).then(|| Cell {
            row,
            chunk: byte / CHUNK,
            elements: [byte / size, end / size],
        })
    }

    /// Returns the lines of a picture, each with the chunks of 128 bytes.
    fn lines(&self) -> impl Iterator<Item = [Option<Cell>; (LINE / CHUNK) as usize]> {
        let lines = self.bytes().div_ceil(LINE);
        (0..lines).map(|line| std::array::from_fn(|chunk| self.cell(line * LINE + chunk as u64 * CHUNK)))
    }

    /// Draws the layout with one line per 128 bytes of shared memory. Chunks at the same position
    /// in their rows have the same colour.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    fn drawing(&self) -> Drawing {
        let lines = self.lines().enumerate().map(|(line, cells)| {
            let cells = cells.into_iter().map(|cell| {
                cell.map(|cell| drawing::Cell {
                    fill: colour((cell.chunk % 8) as u32),
                    label: cell.to_string(),
                })
            });
            ((line as u64 * LINE).to_string(), cells.collect())
        });
        Drawing { title: self.to_title(), heads: banks(), lines: lines.collect(), width: 92, legend: vec![] }
    }

    /// Describes the tile in one line.
    pub(super) fn to_title(&self) -> String {
        format!("{} of {}, {}", crossed(&self.extents), self.element, self.swizzle.name())
    }

    /// Returns the tile's layout as an operand of the tensor cores. [`Major::K`] stands for `tile`,
    /// whose rows extend along K, and [`Major::Mn`] for `tile.t()`.
    ///
    /// # Errors
    ///
    /// [`PictureError::Operand`](crate::PictureError::Operand) if no descriptor describes the tile,
    /// or no instruction accepts it.
    pub fn operand(&self, major: Major) -> Result<OperandLayout, Error> {
        Ok(OperandLayout::new(self, Operand::of(self.element), major)?)
    }

    /// Returns the tile's layout as an operand of `mma_and_popc`: the bits of `u8`, `u16`, `u32` or
    /// `u64`.
    ///
    /// # Errors
    ///
    /// The errors of [`operand`](Self::operand).
    pub fn operand_of_bits(&self) -> Result<OperandLayout, Error> {
        let integers = [Scalar::U8, Scalar::U16, Scalar::U32, Scalar::U64];
        let bits = integers.contains(&self.element).then_some(Operand::B1);
        Ok(OperandLayout::new(self, bits, Major::K)?)
    }

    /// Returns the layout of the metadata of a sparse left operand, in the registers that
    /// `tile.sparse(..)` takes. The extents of the operand are its rows and the elements of each,
    /// half of which are stored.
    ///
    /// # Errors
    ///
    /// [`PictureError::Metadata`](crate::PictureError::Metadata) if there is no such operand.
    pub fn metadata(element: Scalar, extents: [u32; 2]) -> Result<MetadataLayout, Error> {
        Ok(MetadataLayout::new(element, extents)?)
    }

    /// Returns the layout of an `Accumulator<element, rows, columns>` of these extents: the thread
    /// and element that hold each row and column.
    ///
    /// # Errors
    ///
    /// [`PictureError::Accumulator`](crate::PictureError::Accumulator) if there is no such
    /// accumulator.
    pub fn accumulator(element: Scalar, extents: [u32; 2]) -> Result<FragmentLayout, Error> {
        Ok(FragmentLayout::accumulator(element, extents)?)
    }

    /// Returns the layout of a `Fragment<element, rows, columns>` of these extents, a left operand
    /// in registers: the thread and register that hold each row and column.
    ///
    /// # Errors
    ///
    /// [`PictureError::Fragment`](crate::PictureError::Fragment) if there is no such fragment.
    pub fn fragment(element: Scalar, extents: [u32; 2]) -> Result<FragmentLayout, Error> {
        Ok(FragmentLayout::left(element, extents)?)
    }
}

/// Returns the headings of the chunks in a line of 128 bytes.
pub(super) fn banks() -> Vec<String> {
    (0..LINE / CHUNK).map(|chunk| format!("banks {}-{}", chunk * 4, chunk * 4 + 3)).collect()
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, end] = self.elements;
        write!(f, "r{} c{first}-{}", self.row, end - 1)
    }
}

/// Prints the picture as text, with one line per 128 bytes of shared memory. For each 16 bytes it
/// shows the row and the columns of the tile.
impl fmt::Display for TileLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.drawing().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_own_address() {
        for (element, extents, swizzle) in [
            (Scalar::F16, vec![16, 64], TileSwizzle::B128),
            (Scalar::F32, vec![2, 9, 16], TileSwizzle::B64),
            (Scalar::U8, vec![20, 32], TileSwizzle::B32),
            (Scalar::F64, vec![5, 6], TileSwizzle::None),
            (Scalar::F16, vec![8, 24], TileSwizzle::B128),
            (Scalar::F16, vec![2, 1, 3, 256], TileSwizzle::Interleave32),
        ] {
            let layout = TileLayout::new(element, &extents, swizzle);
            let count: u32 = extents.iter().product();
            let mut addresses: Vec<u64> = (0..count)
                .map(|mut i| {
                    let mut at = vec![0; extents.len()];
                    for (at, extent) in at.iter_mut().zip(&extents).rev() {
                        (*at, i) = (i % extent, i / extent);
                    }
                    layout.offset(&at).expect("inside")
                })
                .collect();
            addresses.sort_unstable();
            addresses.dedup();
            assert_eq!(addresses.len(), count as usize);
            assert!(addresses.last().is_some_and(|last| last + u64::from(element.bytes()) <= layout.bytes()));
        }
    }

    #[test]
    fn outside_there_is_nothing() {
        let layout = TileLayout::new(Scalar::F16, &[8, 64], TileSwizzle::B128);
        assert_eq!(layout.offset(&[8, 0]), None);
        assert_eq!(layout.offset(&[0, 64]), None);
        assert_eq!(layout.offset(&[0]), None);
    }

    #[test]
    fn a_picture_shows_the_permutation() {
        let text = TileLayout::new(Scalar::F16, &[3, 32], TileSwizzle::B64).to_string();
        let wanted = "3 x 32 of f16, Swizzle64
        banks 0-3   banks 4-7   banks 8-11  banks 12-15 banks 16-19 banks 20-23 banks 24-27 banks 28-31
     0: r0 c0-7     r0 c8-15    r0 c16-23   r0 c24-31   r1 c0-7     r1 c8-15    r1 c16-23   r1 c24-31
   128: r2 c8-15    r2 c0-7     r2 c24-31   r2 c16-23   -           -           -           -
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn rows_longer_than_the_span_are_permuted_along_it() {
        let layout = TileLayout::new(Scalar::U32, &[1, 1, 64], TileSwizzle::Interleave32);
        assert_eq!(layout.offset(&[0, 0, 31]), Some(124));
        assert_eq!(layout.offset(&[0, 0, 32]), Some(128 + 16)); // the next 128 bytes: chunks are permuted
        assert_eq!(layout.offset(&[0, 0, 36]), Some(128));
        assert_eq!(layout.bytes(), 256);
    }

    #[test]
    fn rows_shorter_than_the_span_leave_its_end_free() {
        let text = TileLayout::new(Scalar::F32, &[2, 4], TileSwizzle::B32).to_string();
        assert!(text.contains("r0 c0-3     -           r1 c0-3     -"), "{text}");
    }
}
