//! Modification of tensor maps by a kernel.

use super::{Expr, ParamId};

/// An operation on a tensor map in shared memory. Dimensions are counted from the outermost.
///
/// Source: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum MapEdit {
    /// Copies the map of a parameter to it.
    CopyFrom { map: ParamId },
    /// Sets the address of the tensor to that of `global[index]`. Traps out of bounds.
    Address { global: ParamId, index: Expr },
    /// Sets the number of elements (a `u32`) along a dimension.
    Extent { dimension: u32, extent: Expr },
    /// Sets the distance in bytes (a `u64`) between consecutive indices of a dimension.
    Stride { dimension: u32, bytes: Expr },
    /// Copies it to `maps[index]`, where copies of other threads can use it once they have acquired
    /// it. Traps out of bounds. Executed by all threads of a warp together.
    Publish { maps: ParamId, index: Expr },
}
