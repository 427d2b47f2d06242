//! Functions of the caller between the sums and C.

use super::full::with_options::full;
use tma_runtime::launch::Instances;

/// The table of kernels made from [`with_options`](super::full::with_options) with other functions
/// between the sums and C. If these functions have parameters beyond those of the functions that
/// they replace, the table has their arguments.
///
/// ```
/// use tma_kernels::gemm::{GemmOptions, gemm};
/// use tma_runtime::prelude::*;
///
/// // With `#[tma_module(from = .., only = ["bf16_t64x64_nt"])]`, what is left is `bf16_t64x64_nt`.
/// # use tma_kernels::gemm::full::with_options as softcap;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[bf16::from_f32(0.5); 64 * 32], [64, 32])?;
/// let b = device.tensor(&[bf16::from_f32(2.0); 16 * 32], [16, 32])?;
/// let mut c = device.zeros::<bf16, 2>([64, 16])?;
/// let epilogue = Some(softcap::full::table());
/// gemm(&device, &a, &b, &mut c, GemmOptions { transpose_b: true, epilogue, ..GemmOptions::default() })?;
/// # assert_eq!(c.to_vec()?, [bf16::from_f32(32.0); 64 * 16]);
/// # Ok(())
/// # }
/// ```
pub type Epilogue<'a> = Instances<'a, full::Key>;
