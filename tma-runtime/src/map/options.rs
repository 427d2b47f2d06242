//! What a launch decides about a tensor map besides the tensor: fill, element strides, L2
//! promotion.

pub use tma_model::tensor_map::Fill;

use crate::tensor::layout::{Layout, MAX_RANK};

/// How much global memory is fetched into L2 when a load misses. Source: CUDA driver API,
/// `CUtensorMapL2promotion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum L2Promotion {
    /// Only what was requested.
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
    /// What out-of-bounds elements read as.
    pub fill: Fill,
    /// How much is fetched into L2 at a time.
    pub l2_promotion: L2Promotion,
    /// Distance between the elements of a box in the tensor, along each dimension, outermost first:
    /// 1 to 8. With fewer dimensions the remaining entries are unused, and 1.
    pub element_strides: [u32; MAX_RANK],
    /// The bounding box of an im2col map's pixels; only those have one.
    pub corners: Option<Corners>,
    /// Whether elements of a tensor that the kernel writes may share memory. Which of several
    /// stores to an address is last is then up to the kernel. Without it, such a tensor is
    /// [`MapError::Overlap`](crate::MapError::Overlap).
    pub overlap: bool,
}

/// The bounding box of the pixels that columns are taken from, outermost dimension first. With
/// fewer dimensions the remaining entries are unused, and 0.
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
    /// Address, shape and strides.
    pub layout: Layout,
    /// The options.
    pub options: MapOptions,
}

impl From<Layout> for MapSource {
    fn from(layout: Layout) -> Self {
        Self { layout, options: MapOptions::default() }
    }
}
