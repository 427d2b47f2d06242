//! Tensor maps: the bytes of a descriptor, and the correspondence between bytes of the tensor and
//! of a tile.
//!
//! [`tma_model`] defines the parameters and their rules. The layout of a GPU's descriptor is not
//! documented. `descriptor` uses a layout of its own that holds all parameters, so that kernels can
//! copy, change and use descriptors in place.

mod columns;
mod descriptor;
mod element;
mod walk;

pub(crate) use descriptor::{Descriptor, Field, replace};
pub use descriptor::{decode, encode};
pub(crate) use element::{convert, fill_unit};
pub use tma_model::tensor_map::{Fill, MapFault, Mode};
pub use tma_model::{DataType, Interleave, Swizzle, TensorMap};
pub(crate) use walk::Walk;

#[cfg(test)]
mod tests;

/// Size of a descriptor in bytes.
pub const DESCRIPTOR_BYTES: usize = tma_model::limits::MAP_BYTES as usize;
/// The greatest rank.
pub const MAX_RANK: usize = tma_model::limits::MAX_RANK;
/// The unit of the copy engine, in bytes.
pub(crate) const UNIT: u32 = tma_model::limits::BOX_INNER_BYTES as u32;
