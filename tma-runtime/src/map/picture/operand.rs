//! Tiles in shared memory as operands of the tensor cores: the bytes that each instruction reads.

use std::fmt;

use tma_model::mma::{CHUNK_BYTES, Descriptor, Major, Operand, OperandTile};

use super::TileLayout;
use super::drawing::{Cell, Drawing, colour};
use super::tile::{CHUNK, LINE, banks};
use crate::error::PictureError;

/// The parts of a tile in shared memory that the tensor cores read.
///
/// A matmul takes one instruction for every 32 bytes along K: a *k-step*. The instruction's
/// descriptor gives the start of the step, and the distances between the chunks of 16 bytes that it
/// reads.
///
/// ```
/// # use tma_runtime::picture::{Major, TileLayout};
/// # use tma_runtime::spec::{Scalar, TileSwizzle};
/// let tile = TileLayout::new(Scalar::F16, &[64, 128], TileSwizzle::B128); // of two panels
/// let operand = tile.operand(Major::K)?;
/// assert_eq!(operand.steps(), 8);
/// let starts: Vec<u32> = (0..8).filter_map(|step| operand.descriptor(step)).map(|d| d.start).collect();
/// assert_eq!(starts, [0, 32, 64, 96, 8192, 8224, 8256, 8288]);
/// println!("{operand}");
/// # Ok::<(), tma_runtime::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandLayout {
    layout: TileLayout,
    tile: OperandTile,
    /// Whether the tile holds only two of every four elements of a row.
    sparse: bool,
}

/// A chunk of 16 bytes that an instruction reads.
struct Chunk {
    /// Offset from the tile's start in bytes.
    offset: u32,
    /// The first row of the operand, which is a row of A or a column of B, and the first element
    /// along K.
    first: [u32; 2],
}

impl OperandLayout {
    pub(super) fn new(
        layout: &TileLayout,
        element: Option<Operand>,
        major: Major,
    ) -> Result<Self, PictureError> {
        let ty = layout.tile();
        let refused = |fault| {
            let (tile, transposed) = (ty.to_string(), major == Major::Mn);
            PictureError::Operand { tile, transposed, fault }
        };
        let tile = element.and_then(|element| OperandTile::of(&ty, element, major));
        let tile = tile.ok_or_else(|| refused(None))?;
        match tile.faults().into_iter().next() {
            Some(fault) => Err(refused(Some(fault))),
            None => Ok(Self { layout: layout.clone(), tile, sparse: false }),
        }
    }

    /// Returns the same tile as a sparse left operand, `tile.sparse(..)`, whose chunks cover twice
    /// as many elements. The result is `None` if the element type is never sparse, or the tile is
    /// transposed.
    #[must_use]
    pub fn sparse(&self) -> Option<Self> {
        let is_one = self.tile.element.is_sparse() && self.tile.major == Major::K;
        is_one.then(|| Self { sparse: true, ..self.clone() })
    }

    /// Returns how many consecutive instructions a matmul with the whole tile takes for each 64
    /// rows of the accumulator.
    pub fn steps(&self) -> u32 {
        self.tile.k() / self.tile.step()
    }

    /// Returns the descriptor of a k-step for a tile at address 0, or `None` if there is no such
    /// step.
    pub fn descriptor(&self, step: u32) -> Option<Descriptor> {
        (step < self.steps()).then(|| self.tile.descriptor(self.tile.advance_k(step)))
    }

    /// Returns the offsets of the chunks of 16 bytes that k-step `step` reads, in bytes from the
    /// tile's start. The chunks of the operand's first row come first. All rows of the tile are
    /// included; as a left operand they are read 64 at a time.
    pub fn chunks(&self, step: u32) -> Vec<u32> {
        self.read(step).map(|chunk| chunk.offset).collect()
    }

    fn read(&self, step: u32) -> impl Iterator<Item = Chunk> {
        let OperandTile { element, major, .. } = self.tile;
        let (each, depth) = (element.per_chunk(), self.tile.step());
        // In the descriptor's order: lines, and the chunks of each line.
        let (lines, chunks) = match major {
            Major::K => (self.tile.mn(), depth / each),
            Major::Mn => (depth, self.tile.mn() / each),
        };
        let positions = (0..lines).flat_map(move |line| (0..chunks).map(move |chunk| (line, chunk)));
        self.descriptor(step).into_iter().flat_map(move |descriptor| {
            positions.clone().map(move |(line, chunk)| Chunk {
                offset: descriptor.chunk(major, line, chunk),
                first: match major {
                    Major::K => [line, step * depth + chunk * each],
                    Major::Mn => [chunk * each, step * depth + line],
                },
            })
        })
    }

    /// Draws the layout with one line per 128 bytes of shared memory. Chunks read in the same
    /// k-step have the same colour.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    fn drawing(&self) -> Drawing {
        let count = self.tile.bytes().div_ceil(CHUNK_BYTES) as usize;
        let mut cells: Vec<Option<Cell>> = (0..count).map(|_| None).collect();
        for step in 0..self.steps() {
            for chunk in self.read(step) {
                if let Some(cell) = cells.get_mut((chunk.offset / CHUNK_BYTES) as usize) {
                    *cell = Some(Cell { fill: colour(step), label: self.label(step, &chunk) });
                }
            }
        }
        let mut cells = cells.into_iter();
        let mut lines = vec![];
        while cells.len() > 0 {
            let offset = lines.len() as u64 * LINE;
            lines.push((offset.to_string(), cells.by_ref().take((LINE / CHUNK) as usize).collect()));
        }
        let legend = |step| {
            let start = self.descriptor(step).unwrap_or_default().start;
            Cell { fill: colour(step), label: format!("{step}: from {start}") }
        };
        // There are only eight colours.
        let legend = (0..self.steps().min(8)).map(legend).collect();
        Drawing { title: self.to_title(), heads: banks(), lines, width: 106, legend }
    }

    fn label(&self, step: u32, chunk: &Chunk) -> String {
        let [row, k] = chunk.first;
        let last = self.tile.element.per_chunk() - 1;
        match self.tile.major {
            Major::K if self.sparse => format!("{step}: r{row} k{}-{}", 2 * k, 2 * (k + last) + 1),
            Major::K => format!("{step}: r{row} k{k}-{}", k + last),
            Major::Mn => format!("{step}: k{k} r{row}-{}", row + last),
        }
    }

    fn to_title(&self) -> String {
        let Descriptor { leading, stride, .. } = self.tile.descriptor(0);
        let major = match self.tile.major {
            Major::K => "K-major",
            Major::Mn => "MN-major",
        };
        let (suffix, times) = if self.sparse { (", sparse", 2) } else { ("", 1) };
        let suffix = if self.tile.element == Operand::B1 { ", bits" } else { suffix };
        format!(
            "{}, {major}{suffix}: {} k-steps of {}, LBO {leading}, SBO {stride}",
            self.layout.to_title(),
            self.steps(),
            times * self.tile.step()
        )
    }
}

/// Prints the picture as text, with one line per 128 bytes of shared memory. For each 16 bytes it
/// shows the k-step that reads them, and the rows and elements of the operand.
impl fmt::Display for OperandLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.drawing().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Scalar, TileSwizzle};

    fn tiles() -> Vec<(TileLayout, Major)> {
        let of = TileLayout::new;
        vec![
            (of(Scalar::F16, &[16, 64], TileSwizzle::B128), Major::K),
            (of(Scalar::Bf16, &[24, 128], TileSwizzle::B128), Major::K),
            (of(Scalar::E4m3, &[8, 64], TileSwizzle::B64), Major::K),
            (of(Scalar::Tf32, &[1, 64, 8], TileSwizzle::B32), Major::K),
            (of(Scalar::F16, &[32, 64], TileSwizzle::B128), Major::Mn),
            (of(Scalar::Bf16, &[48, 96], TileSwizzle::B64), Major::Mn),
            (of(Scalar::F16, &[16, 16], TileSwizzle::B32), Major::Mn),
        ]
    }

    /// Descriptors find the elements at the positions where copies, `get` and `set` put them.
    #[test]
    fn descriptors_find_the_elements_of_the_tile() {
        for (layout, major) in tiles() {
            let operand = layout.operand(major).expect("it is one");
            let mut read = 0;
            for step in 0..operand.steps() {
                for Chunk { offset, first: [row, k] } in operand.read(step) {
                    let at = if major == Major::K { [row, k] } else { [k, row] };
                    let leading = layout.tile().rank() - 2;
                    let at = [vec![0; leading], at.to_vec()].concat();
                    assert_eq!(layout.offset(&at), Some(u64::from(offset)), "{operand}");
                    read += 1;
                }
            }
            assert_eq!(read * CHUNK, layout.tile().bytes(), "each chunk is read once");
        }
    }

    #[test]
    fn a_picture_shows_the_reads_of_each_step() {
        let tile = TileLayout::new(Scalar::F16, &[8, 32], TileSwizzle::B64);
        let text = tile.operand(Major::K).expect("it is one").to_string();
        let lines: Vec<_> = text.lines().collect();
        let title = "8 x 32 of f16, Swizzle64, K-major: 2 k-steps of 16, LBO 16, SBO 512";
        assert_eq!(lines[0], title);
        assert!(
            lines[2].starts_with("     0: 0: r0 k0-7   0: r0 k8-15  1: r0 k16-23 1: r0 k24-31 0: r1 k0-7")
        );
        assert!(
            lines[3].starts_with("   128: 0: r2 k8-15  0: r2 k0-7   1: r2 k24-31 1: r2 k16-23 0: r3 k8-15")
        );
        assert_eq!(lines.len(), 2 + 4);
    }

    #[test]
    fn a_transposed_operand_reads_rows_of_the_tile() {
        let tile = TileLayout::new(Scalar::Bf16, &[32, 64], TileSwizzle::B128);
        let operand = tile.operand(Major::Mn).expect("it is one");
        assert_eq!(operand.steps(), 2);
        let text = operand.to_string();
        assert!(text.contains("\n  2048: 1: k16 r0-7   1: k16 r8-15 "), "{text}");
        assert!(operand.chunks(2).is_empty());
        assert_eq!(operand.descriptor(2), None);
    }

    #[test]
    fn a_sparse_operand_has_half_of_twice_as_many_elements() {
        let tile = TileLayout::new(Scalar::F16, &[8, 32], TileSwizzle::B64);
        let dense = tile.operand(Major::K).expect("it is one");
        let sparse = dense.sparse().expect("f16 can be");
        assert_eq!((sparse.steps(), sparse.chunks(1)), (2, dense.chunks(1)));
        let text = sparse.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "8 x 32 of f16, Swizzle64, K-major, sparse: 2 k-steps of 32, LBO 16, SBO 512");
        assert!(
            lines[2].starts_with("     0: 0: r0 k0-15  0: r0 k16-31 1: r0 k32-47 1: r0 k48-63 "),
            "{text}"
        );
        let transposed = TileLayout::new(Scalar::F16, &[32, 64], TileSwizzle::B128).operand(Major::Mn);
        assert_eq!(transposed.expect("it is one").sparse(), None);
    }

    #[test]
    fn an_operand_of_bits_has_128_a_chunk() {
        for (element, columns) in [(Scalar::U8, 64), (Scalar::U32, 16), (Scalar::U64, 8)] {
            let bits = TileLayout::new(element, &[8, columns], TileSwizzle::B64).operand_of_bits();
            let bits = bits.expect("it is one");
            let text = bits.to_string();
            let lines: Vec<_> = text.lines().collect();
            assert!(lines[0].ends_with("K-major, bits: 2 k-steps of 256, LBO 16, SBO 512"), "{text}");
            assert!(lines[2].starts_with("     0: 0: r0 k0-127   0: r0 k128-255 1: r0 k256-383 "), "{text}");
            assert_eq!(bits.sparse(), None);
        }
        let floats = TileLayout::new(Scalar::F16, &[8, 32], TileSwizzle::B64).operand_of_bits();
        assert!(floats.is_err());
    }

    #[test]
    fn operands_that_no_instruction_reads_are_rejected() {
        let refused = |element, extents: &[u32], swizzle, major| {
            TileLayout::new(element, extents, swizzle).operand(major).map_err(|error| error.to_string())
        };
        let b128 = TileSwizzle::B128;
        for (found, wanted) in [
            (refused(Scalar::F32, &[8, 32], b128, Major::K), "an operand must hold f16, bf16, tf32,"),
            (refused(Scalar::F16, &[8, 64], TileSwizzle::None, Major::K), "be swizzled"),
            (refused(Scalar::F16, &[2, 8, 64], b128, Major::K), "two dimensions"),
            (refused(Scalar::F16, &[12, 64], b128, Major::K), "12 rows"),
            (refused(Scalar::F16, &[8, 64], b128, Major::Mn), "8 elements"),
            (refused(Scalar::E4m3, &[32, 128], b128, Major::Mn), "16 bits"),
        ] {
            let message = found.expect_err("it is none");
            assert!(message.contains(wanted), "{message}");
        }
    }
}
