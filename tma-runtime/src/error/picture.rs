//! Rules for pictures of layouts: operands of the tensor cores, and fragments of a warpgroup.

use tma_model::mma::OperandFault;

use crate::spec::Scalar;

/// The reason why a layout cannot be drawn. Displays the rule; [`Error`](super::Error) adds the
/// code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// An accumulator with these extents does not exist.
    #[error(
        "an accumulator holds f32, f16 or i32 in a multiple of 64 rows and 8 to 256 columns, a multiple of \
         8, with at most 255 registers per thread: this one is {} x {} of {element}; change the extents or \
         the element type, or use several accumulators", .extents[0], .extents[1]
    )]
    Accumulator {
        /// The element type.
        element: Scalar,
        /// Rows and columns.
        extents: [u32; 2],
    },

    /// A left operand in registers with these extents does not exist.
    #[error(
        "a left operand in registers holds f16, bf16, tf32, e4m3, e5m2, i8 or u8 in a multiple of 64 rows \
         and of 32 bytes per row, with at most 255 registers per thread: this one is {} x {} of {element}; \
         change the extents or the element type", .extents[0], .extents[1]
    )]
    Fragment {
        /// The element type.
        element: Scalar,
        /// Rows, and elements along K.
        extents: [u32; 2],
    },

    /// A left operand with these extents has no metadata.
    #[error(
        "a sparse left operand holds f16, bf16, tf32, e4m3, e5m2, i8 or u8 in a multiple of 64 rows and of \
         64 bytes per row, counting the omitted elements: this one is {} x {} of {element}; change the \
         extents or the element type", .extents[0], .extents[1]
    )]
    Metadata {
        /// The element type.
        element: Scalar,
        /// Rows, and elements along K.
        extents: [u32; 2],
    },

    /// The tensor cores cannot read such a tile.
    #[error(
        "tensor cores cannot read `{tile}`{}: {}",
        if *.transposed { " transposed" } else { "" }, rule_of(*.fault)
    )]
    Operand {
        /// The tile's type.
        tile: String,
        /// Whether it would be read transposed.
        transposed: bool,
        /// The rule of the instructions that the tile breaks; `None` if no descriptor describes it.
        fault: Option<OperandFault>,
    },
}

/// States the rule for operands that `fault` breaks.
fn rule_of(fault: Option<OperandFault>) -> String {
    match fault {
        None => "an operand must hold f16, bf16, tf32, e4m3, e5m2, i8 or u8, have two dimensions (or more, \
                 of which all but two are 1), and be swizzled, with rows that fit the swizzle's span or are \
                 a multiple of it"
            .to_owned(),
        Some(OperandFault::Transposed) => {
            "they transpose elements of 16 bits only; make the reduction dimension the last one".to_owned()
        }
        Some(OperandFault::Depth { k, step }) => {
            format!("its reduction dimension has {k} elements, which is not a multiple of {step}")
        }
        Some(OperandFault::Extent { extent, step }) => {
            format!("its other dimension has {extent} rows, which is not a multiple of {step}")
        }
        Some(OperandFault::Offset) => {
            "its panels are too far apart for a descriptor; use fewer rows".to_owned()
        }
    }
}
