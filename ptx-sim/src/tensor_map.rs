//! Tensor maps: what a descriptor says, and which bytes of the tensor go where in a tile.
//!
//! The parameters are those of `cuTensorMapEncodeTiled` (CUDA Driver API, "Tensor Map Object Management"), innermost
//! dimension first. A kernel's 128-byte parameter holds an id instead of the descriptor's bits, which no document
//! describes; the launch keeps the maps by it.

mod check;
mod element;
mod walk;

pub use check::MapError;
pub use element::Element;
pub(crate) use walk::{Unit, Walk};

#[cfg(test)]
mod tests;

/// Size of a descriptor in bytes.
pub const DESCRIPTOR_BYTES: usize = 128;
/// The greatest rank.
pub const MAX_RANK: usize = 5;
/// The unit of the copy engine, in bytes.
pub(crate) const UNIT: u32 = 16;

/// How the 16-byte units of a tile's rows are permuted in shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Row after row.
    #[default]
    None,
    /// Within spans of 32 bytes.
    B32,
    /// Within spans of 64 bytes.
    B64,
    /// Within spans of 128 bytes.
    B128,
}

impl Swizzle {
    /// The span in bytes, if any: what a row may have at most.
    pub const fn span(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// Where the byte at shared offset `at` of the plain layout really is.
    ///
    /// Source: PTX ISA, "Swizzling modes": the bits that number the 128-byte line are added, without carry, to those that
    /// number the 16-byte unit in the span.
    pub const fn permute(self, at: u32) -> u32 {
        let units = match self {
            Self::None => 0,
            Self::B32 => 1,
            Self::B64 => 3,
            Self::B128 => 7,
        };
        at ^ ((at >> 7 & units) << 4)
    }
}

/// What a load brings for elements outside of the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Zeros.
    #[default]
    Zeros,
    /// A NaN; for floating-point elements only.
    Nan,
}

/// A tensor and the box that one copy moves. Dimension 0 is the innermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The elements' type.
    pub element: Element,
    /// The tensor's global address.
    pub address: u64,
    /// The tensor's extents in elements; as many as its rank.
    pub extents: Vec<u64>,
    /// Bytes from one index to the next, of dimension 1 and up.
    pub byte_strides: Vec<u64>,
    /// The box's extents in elements of the tensor.
    pub box_extents: Vec<u32>,
    /// Of each dimension, which elements are taken: each, each second, and so on.
    pub element_strides: Vec<u32>,
    /// How the tile is permuted.
    pub swizzle: Swizzle,
    /// What is brought from outside.
    pub fill: Fill,
}

/// What a descriptor that holds an id starts with; no descriptor of a GPU looks like it.
const MAGIC: [u8; 12] = *b"ptx-sim map\0";

/// `pattern`, over and over.
fn repeated(pattern: &[u8]) -> [u8; 16] {
    let mut bytes = pattern.iter().copied().cycle();
    std::array::from_fn(|_| bytes.next().unwrap_or(0))
}

impl TensorMap {
    /// The rank.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The bytes to pass as a kernel's parameter for the map that is `id` in the launch's list.
    pub fn descriptor(id: u32) -> [u8; DESCRIPTOR_BYTES] {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes[..12].copy_from_slice(&MAGIC);
        bytes[12..16].copy_from_slice(&id.to_le_bytes());
        bytes
    }

    /// The id in a descriptor; none if the bytes are not one.
    pub fn id_of(descriptor: &[u8]) -> Option<u32> {
        let rest = descriptor.strip_prefix(&MAGIC)?;
        Some(u32::from_le_bytes(*rest.first_chunk()?))
    }

    /// 16 bytes of what a load brings from outside of the tensor. No document gives the bits of the NaN; those that
    /// arithmetic makes are assumed.
    pub(crate) fn fill_unit(&self) -> [u8; 16] {
        match (self.fill, self.element) {
            (Fill::Zeros, _) => [0; 16],
            (Fill::Nan, Element::F16 | Element::Bf16) => repeated(&[0xff, 0x7f]),
            (Fill::Nan, Element::F64) => repeated(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            (Fill::Nan, _) => repeated(&[0xff, 0xff, 0xff, 0x7f]),
        }
    }

    /// How many elements a copy moves along `dimension`.
    pub(crate) fn taken(&self, dimension: usize) -> u32 {
        let extent = self.box_extents.get(dimension).copied().unwrap_or(1);
        // Source: `elementStrides` of `cuTensorMapEncodeTiled`, which says that dimension 0 is always dense.
        extent.div_ceil(self.step(dimension))
    }

    /// The element stride of `dimension`.
    pub(crate) fn step(&self, dimension: usize) -> u32 {
        match dimension {
            0 => 1,
            _ => self.element_strides.get(dimension).copied().unwrap_or(1).max(1),
        }
    }

    /// Bytes of a row of the box.
    pub(crate) fn row_bytes(&self) -> u32 {
        self.taken(0) * self.element.bytes()
    }

    /// Bytes from one row to the next in shared memory.
    ///
    /// With a swizzle, shorter rows are padded to the span. No document says so: seen on an H200 with driver 580.
    pub(crate) fn row_pitch(&self) -> u32 {
        self.swizzle.span().unwrap_or(0).max(self.row_bytes())
    }

    /// Rows of the box.
    pub(crate) fn rows(&self) -> u32 {
        (1..self.rank()).fold(1, |rows: u32, dimension| rows.saturating_mul(self.taken(dimension)))
    }

    /// Bytes that a copy moves, and that a load's mbarrier gets: without the padding, with what is outside of the tensor.
    pub fn box_bytes(&self) -> u32 {
        self.rows().saturating_mul(self.row_bytes())
    }

    /// Bytes from the tile's first to its last, with the padding.
    pub fn tile_bytes(&self) -> u32 {
        self.rows().saturating_mul(self.row_pitch())
    }
}
