//! What a launch decides of a tensor map beside the tensor: fill, steps between elements, and fetches from L2.

pub use tma_model::tensor_map::Fill;

use crate::tensor::layout::{Layout, MAX_RANK};

/// How much of global memory is brought into L2 at a time when a load misses it.
/// Source: CUDA driver API, `CUtensorMapL2promotion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum L2Promotion {
    /// What is asked for.
    None,
    /// 64 bytes.
    B64,
    /// 128 bytes.
    #[default]
    B128,
    /// 256 bytes.
    B256,
}

/// The options of a tensor map that a launch may set. None of them changes what the tile in shared memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapOptions {
    /// What loads bring for elements outside of the tensor.
    pub fill: Fill,
    /// What is brought into L2 at a time.
    pub l2_promotion: L2Promotion,
    /// How far apart the elements of a box are in the tensor, along each dimension, outermost first: 1 to 8. Of
    /// tensors with fewer dimensions the last ones mean nothing, and are 1.
    pub element_strides: [u32; MAX_RANK],
    /// The bounding box of an im2col map's pixels; only those have one.
    pub corners: Option<Corners>,
}

/// The bounding box of the pixels that columns are taken from, outermost dimension first. Of tensors with fewer dimensions
/// the last ones mean nothing, and are 0.
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
