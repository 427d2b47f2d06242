//! Batches whose matrices are picked by indices on the device.

use super::extents::Extents;
use super::instances::FullKernels;
use super::launch::{Operands, queue};
use super::{GemmError, GemmOptions, Product};
use tma_runtime::launch::{GlobalSlice, LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;
use tma_runtime::{Scalar, tma_module};

/// `with_options`, with GEMMs that take matrices from anywhere in A and B, and store to anywhere in
/// C. Without indices for one of these, GEMM i uses matrix i of it.
#[tma_module(
    from = crate::gemm::full::with_options,
    only = ["*_t128x256_cluster2x1_*", "*_t128x128_cluster2x1_*", "*_t64x64_*"],
)]
pub mod kernel {
    /// Returns the matrix of this GEMM among `count` of them.
    #[tma_device]
    fn pick(batch: u32, indices: Global<u32>, count: u32) -> u32 {
        let mut index = batch;
        if indices.len() > 0 {
            index = indices.get(batch);
        }
        assert!(index < count, "batch index out of bounds");
        index
    }

    #[tma_device]
    fn place_a(batch: u32, indices: Global<u32>, count: u32) -> u32 {
        pick(batch, indices, count)
    }

    #[tma_device]
    fn place_b(batch: u32, indices: Global<u32>, count: u32) -> u32 {
        pick(batch, indices, count)
    }

    #[tma_device]
    fn place_c(batch: u32, indices: Global<u32>, count: u32) -> u32 {
        pick(batch, indices, count)
    }
}

/// The indices of the matrices that each GEMM of a batch reads and writes: numbers on the device,
/// which the host never reads. Without indices for one of A, B and C, GEMM i uses matrix i of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Indices<'a> {
    /// The matrix of A for each GEMM.
    pub a: Option<TensorView<'a, u32, 1>>,
    /// The matrix of B for each GEMM.
    pub b: Option<TensorView<'a, u32, 1>>,
    /// The matrix of C that each GEMM writes. No two GEMMs may write the same one.
    pub c: Option<TensorView<'a, u32, 1>>,
}

impl Indices<'_> {
    /// Returns the number of GEMMs, for these numbers of matrices of A, B and C.
    fn products(&self, counts: [usize; 3]) -> Result<usize, GemmError> {
        let given = [self.a, self.b, self.c].map(|indices| indices.map(|indices| indices.shape()[0]));
        let numbers: Vec<usize> =
            given.iter().zip(counts).map(|(given, count)| given.unwrap_or(count)).collect();
        match numbers[..] {
            [a, b, c] if a == b && b == c => Ok(a),
            _ => Err(GemmError::Indices { found: numbers }),
        }
    }
}

/// Queues a batch of GEMMs whose matrices are anywhere in A, B and C, in one launch. GEMM i
/// multiplies `a[indices.a[i]]` by `b[indices.b[i]]`, and writes `c[indices.c[i]]`. Other matrices
/// of C are not changed. A residual has one matrix per GEMM.
///
/// Views of A and B may overlap. An array of addresses, as other libraries take it, is therefore a
/// view whose matrices begin every 16 bytes: it contains the matrices at all multiples of 16 bytes
/// in an allocation.
///
/// ```
/// use tma_kernels::gemm::{GemmOptions, Indices, gemm_picked};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[bf16::from_f32(0.5); 3 * 16 * 32], [3, 16, 32])?;
/// // Two matrices of 32 × 8, which begin at elements 0 and 264.
/// let pool = [[2.0; 264], [4.0; 264]].concat().into_iter().map(bf16::from_f32);
/// let pool = device.tensor(&pool.collect::<Vec<_>>(), [528])?;
/// let b = pool.view().with_strides([34, 32, 8], [8, 8, 1])?;
/// let at = device.tensor(&[33_u32, 0, 33], [3])?;
/// let mut c = device.zeros::<bf16, 3>([3, 16, 8])?;
/// let indices = Indices { b: Some(at.view()), ..Indices::default() };
/// gemm_picked(&device, &a, b, &mut c, indices, GemmOptions::default())?;
/// let c = c.to_vec()?;
/// assert_eq!([c[0], c[128], c[256]], [64.0, 32.0, 64.0].map(bf16::from_f32));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0561` if the numbers of indices for A, B and C differ, `TMA0547` if there is also an
/// [epilogue](GemmOptions::epilogue), and the errors of [`gemm`](super::gemm). An index out of
/// range stops the kernel: `TMA0545`.
pub fn gemm_picked<AB: Product<C>, C: Scalar>(
    on: &impl LaunchOn,
    a: impl MapArg<AB, 3>,
    b: impl MapArg<AB, 3>,
    mut c: impl MapArgMut<C, 3>,
    indices: Indices<'_>,
    options: GemmOptions<'_, C, 3>,
) -> Result<(), GemmError> {
    let operands = Operands { a: a.view(), b: b.view(), c: c.view_mut() };
    queue_picked(on, operands, indices, options, false)
}

/// Selects an instance of `kernel`, and queues it. C `may_overlap` if its picked matrices do not.
pub(super) fn queue_picked<AB: Product<C>, C: Scalar>(
    on: &impl LaunchOn,
    operands: Operands<'_, AB, C>,
    indices: Indices<'_>,
    options: GemmOptions<'_, C, 3>,
    may_overlap: bool,
) -> Result<(), GemmError> {
    let Operands { a, b, c } = operands;
    let counts = [a.shape()[0], b.shape()[0], c.shape()[0]];
    let products = indices.products(counts)?;
    if options.epilogue.is_some() {
        return Err(GemmError::no_epilogue(AB::NAME));
    }
    // The options are checked against the extents of the batch.
    let batch = |[_, rows, columns]: [usize; 3]| [products, rows, columns];
    let extents = Extents::of(batch(a.shape()), batch(b.shape()), batch(c.shape()), &options)?;
    let extents = Extents { may_overlap, ..extents };
    if extents.batches == 0 || extents.m == 0 || extents.n == 0 {
        return Ok(());
    }
    let none = on.device().zeros::<u32, 1>([0])?;
    let [of_a, of_b, of_c] =
        [indices.a, indices.b, indices.c].map(|given| given.map_or(none.slice(), GlobalSlice::new));
    let [count_a, count_b, count_c] = counts.map(|count| count as u32);
    let table = kernel::full::table_of::<AB, C>(of_a, count_a, of_b, count_b, of_c, count_c);
    let full = FullKernels::Picked(table);
    if extents.k > 0 && options.alpha != 0.0 {
        return queue(on, &extents, Operands { a, b, c }, full, options);
    }
    let (extents, [a, b]) = extents.of_zeros::<AB, C, 3>(on.device(), [counts[0], counts[1]], &options)?;
    queue(on, &extents, Operands { a: a.view(), b: b.view(), c }, full, options)
}
