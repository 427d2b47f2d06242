//! Tensor maps: the bytes of a descriptor, and which bytes of the tensor go where in a tile.
//!
//! The parameters and their rules are [`tma_model`]'s. No document describes a descriptor's bits:
//! `descriptor` has bits of our own, which hold all parameters, so that a kernel can copy them,
//! change them and use them where they are.

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
