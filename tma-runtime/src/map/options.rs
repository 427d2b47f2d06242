//! Properties of a tensor map that a launch chooses besides the tensor: fill, element strides and
//! L2 promotion.

pub use tma_model::tensor_map::Fill;

use crate::layout::{Layout, MAX_RANK};

/// The number of bytes fetched into L2 when a load misses. Source: CUDA driver API,
/// `CUtensorMapL2promotion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum L2Promotion {
    /// Only the requested bytes.
    None,
    /// 64 bytes.
    B64,
    /// 128 bytes.
    #[default]
    B128,
    /// 256 bytes.
    B256,
}

/// The options of a tensor map that a launch may set. None of them changes the tile's layout in
/// shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapOptions {
    /// The value that out-of-bounds elements read as.
    pub fill: Fill,
    /// The number of bytes fetched into L2 at a time.
    pub l2_promotion: L2Promotion,
    /// Distance between the elements of a box in the tensor, along each dimension, outermost first:
    /// 1 to 8. Entries beyond the tensor's rank are unused, and 1.
    pub element_strides: [u32; MAX_RANK],
    /// The bounding box of an im2col map's pixels. Other maps have none.
    pub corners: Option<Corners>,
    /// Whether elements of a tensor that the kernel writes may share memory. The kernel must then
    /// order several stores to one address by itself. Without this option such a tensor is an
    /// error, [`MapError::Overlap`](crate::MapError::Overlap).
    pub overlap: bool,
}

/// The bounding box of the pixels that columns are taken from, outermost dimension first. Entries
/// beyond the number of spatial dimensions are unused, and 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Corners {
    /// The first pixel, counted from the tensor's first.
    pub lower: [i32; MAX_RANK - 2],
    /// The last pixel, counted from the tensor's last.
    pub upper: [i32; MAX_RANK - 2],
}

impl Default for MapOptions {
    fn default() -> Self {
        Self {
            fill: Fill::default(),
            l2_promotion: L2Promotion::default(),
            element_strides: [1; MAX_RANK],
            corners: None,
            overlap: false,
        }
    }
}

/// A tensor and the options of its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSource {
    /// The tensor's address, shape and strides.
    pub layout: Layout,
    /// The options of the map.
    pub options: MapOptions,
}

impl From<Layout> for MapSource {
    fn from(layout: Layout) -> Self {
        Self { layout, options: MapOptions::default() }
    }
}
