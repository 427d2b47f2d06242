//! Rules for pictures of layouts: what tensor cores read, and what a warpgroup holds.

use tma_model::mma::OperandFault;

use crate::spec::Scalar;

/// Why a layout cannot be drawn. Displays the rule; [`Error`](super::Error) adds the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// There is no such accumulator.
    #[error(
        "an accumulator holds f32, f16 or i32, in a multiple of 64 rows and 8 to 256 columns, a \
         multiple of 8, with at most 255 registers per thread, but this is {} x {} of {element}: \
         give other extents, or several accumulators", .extents[0], .extents[1]
    )]
    Accumulator {
        /// The element type.
        element: Scalar,
        /// Rows and columns.
        extents: [u32; 2],
    },

    /// There is no such left operand in registers.
    #[error(
        "a left operand in registers holds f16, bf16, tf32, e4m3, e5m2, i8 or u8, in a multiple of \
         64 rows and of 32 bytes per row, with at most 255 registers per thread, but this is \
         {} x {} of {element}: give other extents", .extents[0], .extents[1]
    )]
    Fragment {
        /// The element type.
        element: Scalar,
        /// Rows, and elements along the dimension that is summed.
        extents: [u32; 2],
    },

    /// There is no metadata of such a left operand.
    #[error(
        "a sparse left operand holds f16, bf16, tf32, e4m3, e5m2, i8 or u8, in a multiple of 64 rows \
         and of 64 bytes per row, with those that are left out, but this is {} x {} of {element}: \
         give other extents", .extents[0], .extents[1]
    )]
    Metadata {
        /// The element type.
        element: Scalar,
        /// Rows, and elements along the dimension that is summed.
        extents: [u32; 2],
    },

    /// Tensor cores do not read such a tile.
    #[error(
        "tensor cores do not read `{tile}`{}: {}",
        if *.transposed { " transposed" } else { "" }, rule_of(*.fault)
    )]
    Operand {
        /// The tile's type.
        tile: String,
        /// Whether it would be read transposed.
        transposed: bool,
        /// The rule of instructions that it breaks; `None` if there is no descriptor for it.
        fault: Option<OperandFault>,
    },
}

/// What an operand has to be, as far as `fault` tells.
fn rule_of(fault: Option<OperandFault>) -> String {
    match fault {
        None => "an operand holds f16, bf16, tf32, e4m3, e5m2, i8 or u8, has two dimensions, or more \
                 of which all but two are 1, and is swizzled, with rows no longer than the swizzle's span \
                 or a multiple of it"
            .to_owned(),
        Some(OperandFault::Transposed) => {
            "they transpose elements of 16 bits only; keep the dimension that is summed last".to_owned()
        }
        Some(OperandFault::Depth { k, step }) => {
            format!("{k} elements along the dimension that is summed are no multiple of {step}")
        }
        Some(OperandFault::Extent { extent, step }) => {
            format!("{extent} rows along the dimension that is not summed are no multiple of {step}")
        }
        Some(OperandFault::Offset) => {
            "its panels lie too far apart for a descriptor; take fewer rows".to_owned()
        }
    }
}
