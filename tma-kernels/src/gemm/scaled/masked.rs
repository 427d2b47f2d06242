//! Groups of rows with a maximum, each with its own matrix.

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::super::GemmError;
use super::choose::{BLOCK, FewRows};
use super::launch::{Groups, LinedUp, queue};
use super::{Promoted, fits};

/// The maximum number of groups, and of tiles of a group's rows: extents of a grid.
const MOST_BLOCKS: usize = 65_535;

/// Options of [`gemm_scaled_masked`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MaskedOptions<'a> {
    /// The scales of A: groups × rows × K / 128, rounded up. The rows of each group are contiguous
    /// or, by the view's strides, the columns. Only the scales of valid rows are used.
    ///
    /// With them, the scales of B: groups × N / 128 × K / 128, both rounded up.
    pub scales: Option<[TensorView<'a, f32, 3>; 2]>,
    /// The number of rows that a group usually has, for which the tile is chosen. `None` stands for
    /// all rows of A. With more rows the results are the same, but B is read again for each tile.
    pub expected_rows: Option<usize>,
}

/// Queues `C = A · Bᵀ` of `e4m3` for groups of up to as many rows as A has, in one launch: the
/// layout of experts whose rows are counted on the device.
///
/// A is groups × rows × K, B is groups × N × K and C is groups × rows × N. `counts` has the number
/// of rows of each group that are valid, and is read when the kernel runs, so that a captured
/// launch uses the counts of its time. Other rows of A may hold anything, and those of C are not
/// written. A count beyond A's rows stands for all of them. A group without rows costs next to
/// nothing: none of its B is read.
///
/// Sums are promoted as by [`gemm_scaled`](super::gemm_scaled), and added in an order that depends
/// on extents and the device, but not on the counts: a row's bits do not depend on other rows. Rows
/// of C may begin and end anywhere. Nothing is allocated, unless K is 0: then valid rows of C become
/// zeros.
///
/// ```
/// use tma_kernels::gemm::{MaskedOptions, gemm_scaled_masked};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[e4m3::from_f32(0.5); 2 * 8 * 128], [2, 8, 128])?;
/// let b = device.tensor(&[e4m3::from_f32(2.0); 2 * 16 * 128], [2, 16, 128])?;
/// let counts = device.tensor(&[3u32, 0], [2])?; // of 8 rows each
/// let mut c = device.zeros::<f32, 3>([2, 8, 16])?;
/// gemm_scaled_masked(&device, &a, &b, &counts, &mut c, MaskedOptions::default())?;
/// let c = c.to_vec()?;
/// assert!(c[..3 * 16].iter().all(|&x| x == 128.0) && c[3 * 16..].iter().all(|&x| x == 0.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0557` if the tensors do not match or C has columns that are not contiguous, `TMA0546` if they
/// are too large, `TMA0511` if neither rows nor columns of scales are contiguous, and the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn gemm_scaled_masked<C: Promoted>(
    on: &impl LaunchOn,
    a: impl MapArg<e4m3, 3>,
    b: impl MapArg<e4m3, 3>,
    counts: impl MapArg<u32, 1>,
    mut c: impl MapArgMut<C, 3>,
    options: MaskedOptions<'_>,
) -> Result<(), GemmError> {
    let (a, b, counts, c) = (a.view(), b.view(), counts.view(), c.view_mut());
    let ([groups, m, k], [_, n, _]) = (a.shape(), b.shape());
    fits("B", &b.shape(), &[groups, n, k])?;
    fits("C", &c.shape(), &[groups, m, n])?;
    if n > 1 {
        fits("the stride of C's columns", &c.strides()[2..], &[1])?;
    }
    fits("`counts`", &counts.shape(), &[groups])?;
    let steps = k.div_ceil(BLOCK);
    if let Some([of_a, of_b]) = &options.scales {
        fits("scales of A", &of_a.shape(), &[groups, m, steps])?;
        fits("scales of B", &of_b.shape(), &[groups, n.div_ceil(BLOCK), steps])?;
    }
    let few =
        FewRows::of(options.expected_rows.unwrap_or(m), [m, n, k], groups, on.device().multiprocessors());
    let is_large = [n, k].iter().any(|&extent| extent >= 1 << 27)
        || m.saturating_mul(steps) >= 1 << 32
        || groups > MOST_BLOCKS
        || m.div_ceil(few.rows as usize) > MOST_BLOCKS;
    if is_large {
        return Err(GemmError::TooLarge { extents: [m, n, k, groups] });
    }
    if groups == 0 || m == 0 || n == 0 {
        return Ok(());
    }
    let counts = Some(counts);
    if k == 0 {
        // Nothing is summed, and nothing loaded, but tensor maps have no empty tensors.
        let zeros = on.device().zeros([1, 1, 16])?;
        let (a, b) = (zeros.view(), zeros.view());
        return queue(on, Groups { a, b, scales: None, counts, c, k }, few);
    }
    let scales = options.scales.map(|[of_a, of_b]| LinedUp::of(of_a, of_b)).transpose()?;
    queue(on, Groups { a, b, scales, counts, c, k }, few)
}
