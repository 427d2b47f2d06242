//! Products of matrices, `C = activation(alpha · A · B + beta · C + residual + bias)`, by kernels
//! that `docs/gemm-kernel.md` explains.
//!
//! ```
//! use tma_kernels::gemm::{GemmOptions, gemm};
//! use tma_runtime::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open()?;
//! let a = device.tensor(&[bf16::from_f32(0.5); 64 * 32], [64, 32])?;
//! let b = device.tensor(&[bf16::from_f32(2.0); 32 * 16], [32, 16])?;
//! let mut c = device.zeros::<bf16, 2>([64, 16])?;
//! gemm(&device, &a, &b, &mut c, GemmOptions::default())?;
//! assert_eq!(c.to_vec()?, [bf16::from_f32(32.0); 64 * 16]);
//! # Ok(())
//! # }
//! ```

mod array;
pub mod choose;
pub mod dense;
pub mod device;
mod divide;
mod edge;
mod epilogue;
mod error;
mod extents;
pub mod few_rows;
pub mod full;
mod gated;
pub mod grouped;
mod instances;
mod launch;
pub mod picked;
pub mod ping_pong;
pub mod scaled;
pub mod shared_sums;
pub mod split_k;
pub mod team;
mod tile;
mod types;
mod workspace;

pub use array::{Matrices, MatricesMut, gemm_array};
pub use choose::Choice;
pub use divide::Division;
pub use epilogue::Epilogue;
pub use error::GemmError;
pub use gated::{GatedOptions, gemm_gated};
pub use grouped::{GroupedOptions, GroupedWorkspace, gemm_grouped};
pub use picked::{Indices, gemm_picked};
pub use scaled::{
    MaskedOptions, Promoted, QuantizedOptions, Scales, gemm_quantized, gemm_scaled, gemm_scaled_masked,
};
pub use tile::Tile;
pub use types::Product;
pub use workspace::Workspace;

use extents::{Extents, batch, batch_mut};
use full::with_options;
use instances::FullKernels;
use launch::{Operands, queue};
use tma_runtime::Scalar;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

/// The activation function, which is applied last to each element of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// ReLU: 0 if x < 0, else x.
    Relu,
    /// GELU: x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))).
    Gelu,
    /// SiLU: x / (1 + exp(-x)).
    Silu,
}

/// The type in which products are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sums {
    /// The first type that [`Product`] lists.
    #[default]
    Exact,
    /// `f16`, rounded after each instruction, which sums 16 products. Only for matrices of `f16`,
    /// without other options. It is no faster on Hopper, but reproduces results of earlier GPUs.
    Half,
}

/// The layout of A and B, and the operations on their product.
#[derive(Debug)]
pub struct GemmOptions<'a, C: Scalar, const N: usize> {
    /// Whether A is stored K × M, not M × K. Only for elements of 16 bits; with a C of `f32`, only
    /// without `transpose_b`.
    pub transpose_a: bool,
    /// Whether B is stored N × K, not K × N. Required unless elements have 16 bits.
    pub transpose_b: bool,
    /// Whether no work that is queued before and has not ended writes B, as with weights. A kernel
    /// for few rows of A then reads B while the previous kernel still runs. If B is written all the
    /// same, C has unspecified elements; no other memory is accessed.
    pub constant_b: bool,
    /// The factor of the product. With 0 neither A nor B is read.
    pub alpha: f32,
    /// The factor of the previous elements of C, which are added to the product. With 0 they are
    /// not read.
    pub beta: f32,
    /// A matrix of C's shape, which is added.
    pub residual: Option<TensorView<'a, C, N>>,
    /// A row of N elements, which is added to each row.
    pub bias: Option<TensorView<'a, C, 1>>,
    /// The function that is applied last.
    pub activation: Activation,
    /// Kernels of the caller's package, with other functions between the sums and C.
    pub epilogue: Option<Epilogue<'a>>,
    /// The type in which products are summed.
    pub sums: Sums,
    /// The kernel's tile, and the division of tiles. The default is the result of
    /// [`choose`](choose::choose).
    pub choice: Option<Choice>,
    /// Memory for GEMMs whose sums are split among clusters. It grows if it is too small for one,
    /// unless it is [the caller's memory](Workspace::from_raw). Without it, such a GEMM
    /// allocates its own, and waits when that is freed; on a stream that another library is
    /// capturing, where memory cannot be allocated, sums are not split.
    pub workspace: Option<&'a mut Workspace>,
}

impl<C: Scalar, const N: usize> Default for GemmOptions<'_, C, N> {
    fn default() -> Self {
        Self {
            transpose_a: false,
            transpose_b: false,
            constant_b: false,
            alpha: 1.0,
            beta: 0.0,
            residual: None,
            bias: None,
            activation: Activation::None,
            epilogue: None,
            sums: Sums::Exact,
            choice: None,
            workspace: None,
        }
    }
}

/// Queues `C = activation(alpha · A · B + beta · C + residual + bias)`.
///
/// The tensors have two dimensions, or three, the first of which counts the GEMMs of a batch. A is
/// M × K, B is K × N and C is M × N, unless [`transpose_a`](GemmOptions::transpose_a) or
/// [`transpose_b`](GemmOptions::transpose_b) states that one is stored the other way round. Element
/// types, and the type of sums, are those of [`Product`]. If C has no elements, nothing is done.
/// With a K of 0 the product is zero.
///
/// Rows of A and B, as stored, must begin at multiples of 16 bytes. Rows of C may begin and end
/// anywhere, except for C of `i32`, with [`Sums::Half`] and with a transposed A. The copy engine
/// stores as many units of 16 bytes of a row as possible, and threads store the rest, which is
/// slower.
///
/// Sums that are split among clusters are added in a fixed order: the same matrices produce the
/// same bits each time.
///
/// With a [workspace](GemmOptions::workspace) that is large enough, nothing is allocated and the
/// call does not wait, except for a K or `alpha` of 0, and for an unaligned C that is so small that
/// it has no 16 bytes at a multiple of 16.
///
/// # Errors
///
/// `TMA0546` if the matrices do not match or are too large, `TMA0547` if no kernel supports the
/// GEMM, `TMA0570` if a workspace that cannot grow is too small, and the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn gemm<AB: Product<C>, C: Scalar, const N: usize>(
    on: &impl LaunchOn,
    a: impl MapArg<AB, N>,
    b: impl MapArg<AB, N>,
    mut c: impl MapArgMut<C, N>,
    mut options: GemmOptions<'_, C, N>,
) -> Result<(), GemmError> {
    const { assert!(N == 2 || N == 3, "matrices must have two dimensions, or three in a batch") };
    let (a, b, c) = (a.view(), b.view(), c.view_mut());
    let extents = Extents::of(a.shape(), b.shape(), c.shape(), &options)?;
    if extents.batches == 0 || extents.m == 0 || extents.n == 0 {
        return Ok(());
    }
    let full = match options.epilogue.take() {
        Some(epilogue) => FullKernels::Epilogue(epilogue),
        None => FullKernels::Own(with_options::full::table_of::<AB, C>()),
    };
    let c = batch_mut(c)?;
    if extents.k > 0 && options.alpha != 0.0 {
        return queue(on, &extents, Operands { a: batch(a)?, b: batch(b)?, c }, full, options);
    }
    let (extents, [a, b]) = extents.of_zeros::<AB, C, N>(on.device(), [extents.batches; 2], &options)?;
    queue(on, &extents, Operands { a: a.view(), b: b.view(), c }, full, options)
}
