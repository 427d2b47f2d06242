//! Tensor maps that a kernel changes.

use super::{Expr, ParamId};

/// What is done to a tensor map in shared memory, or with it. Dimensions are counted from the
/// outermost.
/// Source: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum MapEdit {
    /// Makes it equal to a parameter.
    CopyFrom { map: ParamId },
    /// The tensor begins at `global[index]`; traps out of bounds.
    Address { global: ParamId, index: Expr },
    /// The tensor has so many elements (a `u32`) along a dimension.
    Extent { dimension: u32, extent: Expr },
    /// From one index to the next along a dimension there are so many bytes (a `u64`).
    Stride { dimension: u32, bytes: Expr },
    /// Copies it to `maps[index]`, where copies of other threads can use it once they have acquired
    /// it; traps out of bounds. All threads of a warp together.
    Publish { maps: ParamId, index: Expr },
}
