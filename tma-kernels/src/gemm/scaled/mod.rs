//! GEMMs of `e4m3` with promoted sums, scaled as in DeepSeek's models.

mod choose;
pub mod exchange;
pub mod few_rows;
pub mod kernel;
mod launch;
mod masked;
mod quantized;
pub mod weights;

pub use masked::{MaskedOptions, gemm_scaled_masked};
pub use quantized::{QuantizedOptions, gemm_quantized};

use super::GemmError;
use super::choose::{Problem, band_of};
use super::edge::Edge;
use super::extents::{batch, batch_mut};
use choose::{BLOCK, FewRows, MOST_ROWS};
use kernel::scaled::promoted;
use launch::{Groups, LinedUp};
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut, resident_blocks};
use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar};

/// The scales of elements of `e4m3`. An element of A is multiplied by the scale of its row and of
/// its 128 columns, an element of B by the scale of its 128 × 128 elements.
#[derive(Clone, Copy, Debug)]
pub struct Scales<'a> {
    /// M × K / 128, rounded up. Either the rows are contiguous or, by the view's strides, the
    /// columns.
    pub a: TensorView<'a, f32, 2>,
    /// N / 128 × K / 128, both rounded up.
    pub b: TensorView<'a, f32, 2>,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for tma_runtime::prelude::bf16 {}
    impl Sealed for f32 {}
}

/// The element type of C in a scaled GEMM: `bf16` or `f32`.
#[diagnostic::on_unimplemented(
    message = "a scaled GEMM cannot be stored as `{Self}`",
    label = "neither `bf16` nor `f32`"
)]
pub trait Promoted: Scalar + sealed::Sealed {}

impl Promoted for bf16 {}
impl Promoted for f32 {}

/// Queues `C = A · Bᵀ` of matrices of `e4m3`, with sums in `f32`.
///
/// A is M × K, B is N × K and C is M × N. The tensor cores, which keep 13 bits of a sum of `e4m3`
/// after the point, sum 128 columns of K. These sums are multiplied by their scales, if there are
/// any, and added in `f32`. Extents are arbitrary. If C has no elements, nothing is done. A K of 0
/// produces zeros.
///
/// Few rows of A, up to 128, have a kernel of their own, if it should take less time. It divides
/// the sums of a tile along K among blocks, and adds the parts in the order of K. The division
/// depends on the extents and the device, so the same matrices produce the same bits each time.
/// That kernel also multiplies more rows if rows of C are not multiples of 16 bytes, but reads B
/// for each 128 of them. Rows of A and B begin at multiples of 16 bytes.
///
/// ```
/// use tma_kernels::gemm::{Scales, gemm_scaled};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[e4m3::from_f32(0.5); 64 * 160], [64, 160])?;
/// let b = device.tensor(&[e4m3::from_f32(2.0); 16 * 160], [16, 160])?;
/// let (of_a, of_b) = (device.tensor(&[3.0; 64 * 2], [64, 2])?, device.tensor(&[0.25, 1.0], [1, 2])?);
/// let mut c = device.zeros::<f32, 2>([64, 16])?;
/// let scales = Scales { a: of_a.view(), b: of_b.view() };
/// gemm_scaled(&device, &a, &b, Some(scales), &mut c)?;
/// assert_eq!(c.to_vec()?, [3.0 * (0.25 * 128.0 + 1.0 * 32.0); 64 * 16]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0557` if the matrices or scales do not match, `TMA0546` if they are too large, `TMA0511` if
/// neither the rows nor the columns of scales are contiguous, and the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn gemm_scaled<C: Promoted>(
    on: &impl LaunchOn,
    a: impl MapArg<e4m3, 2>,
    b: impl MapArg<e4m3, 2>,
    scales: Option<Scales<'_>>,
    mut c: impl MapArgMut<C, 2>,
) -> Result<(), GemmError> {
    let (a, b, c) = (a.view(), b.view(), c.view_mut());
    let ([m, k], n) = (a.shape(), b.shape()[0]);
    fits("B", &b.shape(), &[n, k])?;
    fits("C", &c.shape(), &[m, n])?;
    let steps = k.div_ceil(BLOCK);
    if let Some(scales) = &scales {
        fits("`scales.a`", &scales.a.shape(), &[m, steps])?;
        fits("`scales.b`", &scales.b.shape(), &[n.div_ceil(BLOCK), steps])?;
    }
    let tiles = m.div_ceil(BLOCK).saturating_mul(n.div_ceil(BLOCK));
    let scales_of_a = m.saturating_mul(steps);
    if [m, n, k].iter().any(|&extent| extent >= 1 << 31) || tiles >= 1 << 28 || scales_of_a >= 1 << 32 {
        return Err(GemmError::TooLarge { extents: [m, n, k, 1] });
    }
    if m == 0 || n == 0 {
        return Ok(());
    }
    if k > 0 {
        return queue(on, a, b, scales, c);
    }
    // Nothing is summed: multiply zeros, since tensor maps have no empty tensors.
    let (a, b) = (on.device().zeros([m, 16])?, on.device().zeros([n, 16])?);
    queue(on, a.view(), b.view(), None, c)
}

fn fits(matrix: &'static str, found: &[usize], wanted: &[usize]) -> Result<(), GemmError> {
    match found == wanted {
        true => Ok(()),
        false => Err(GemmError::Scaled { matrix, found: found.into(), wanted: wanted.into() }),
    }
}

/// Queues the kernel that should take less time, for extents that match.
fn queue<C: Promoted>(
    on: &impl LaunchOn,
    a: TensorView<'_, e4m3, 2>,
    b: TensorView<'_, e4m3, 2>,
    scales: Option<Scales<'_>>,
    c: TensorViewMut<'_, C, 2>,
) -> Result<(), GemmError> {
    let ([m, k], [n, _], [_, step]) = (a.shape(), b.shape(), c.strides());
    let clusters = |extents: [usize; 2]| {
        let [tall, wide] = extents;
        (m.div_ceil(BLOCK * tall), n.div_ceil(BLOCK * wide))
    };
    let (tall, wide) = (clusters([2, 1]), clusters([1, 2]));
    let is_wide = wide.0 * wide.1 < tall.0 * tall.1;
    let tiles = if is_wide { wide } else { tall };

    let multiprocessors = on.device().multiprocessors();
    let few = FewRows::of(m, [m, n, k], 1, multiprocessors);
    let is_few = m <= MOST_ROWS && few.is_faster(tiles.0 * tiles.1, k, multiprocessors);
    let c = batch_mut(c)?;
    // Threads store single elements, but only of contiguous rows.
    if (is_few || Edge::of(&c).is_reached()) && (n == 1 || step == 1) {
        let scales = match scales {
            None => None,
            Some(Scales { a, b }) => Some(LinedUp::of(batch(a)?, batch(b)?)?),
        };
        let groups = Groups { a: batch(a)?, b: batch(b)?, scales, counts: None, c, k };
        return launch::queue(on, groups, few);
    }
    let [_, row, _] = c.strides();
    let c = c.with_strides([m, n], [row, step])?;
    queue_many(on, Matrices { a, b, scales, c }, is_wide, tiles)
}

/// The matrices of a scaled GEMM.
struct Matrices<'a, C: Scalar> {
    a: TensorView<'a, e4m3, 2>,
    b: TensorView<'a, e4m3, 2>,
    scales: Option<Scales<'a>>,
    c: TensorViewMut<'a, C, 2>,
}

/// Queues the kernel for many rows. The blocks of a cluster are side by side if it `is_wide`, and
/// else stacked. `tiles` are the clusters' tiles along M and N.
fn queue_many<C: Promoted>(
    on: &impl LaunchOn,
    matrices: Matrices<'_, C>,
    is_wide: bool,
    tiles: (usize, usize),
) -> Result<(), GemmError> {
    let Matrices { a, b, scales, c } = matrices;
    let (down, across) = tiles;
    let ([m, k], [n, _]) = (a.shape(), b.shape());
    let [cluster_n, cluster_m] = if is_wide { [2, 1] } else { [1, 2] };
    let key = promoted::Key { cluster_n, cluster_m };
    let Some(kernel) = promoted::find::<C>(key) else {
        unreachable!("`Promoted` is implemented for the types of the instances, which have {key:?}")
    };
    let most = (resident_blocks(on, kernel.spec())? / 2).max(1) as usize;
    // Few clusters, as long as there are no more rounds: idle multiprocessors leave the others more
    // power.
    let units = down * across;
    let clusters = units.div_ceil(units.div_ceil(most)) as u32;
    let grid = Grid::new(clusters * cluster_n, cluster_m, 1);

    // Blocks side by side already share A; consecutive clusters should share B.
    let problem = Problem { extents: [m, n, k], batches: 1, bytes: [1, size_of::<C>()] };
    let band = band_of(down, problem.fits_l2() && !is_wide) as u32;
    let nothing = on.device().zeros::<f32, 2>([0, 0])?;
    let (of_a, of_b, strides) = match scales {
        None => (nothing.view(), nothing.view(), [0; 2]),
        Some(Scales { a, b }) => {
            let (of_a, strides) = lined_up(a)?;
            (of_a, b, strides)
        }
    };
    let [along_m, along_k] = strides.map(|stride| stride as u32);
    let [m, n, k] = [m, n, k].map(|extent| extent as u32);
    let a = a.l2_promotion(L2Promotion::B256);
    let b = b.l2_promotion(L2Promotion::B256);
    let c = c.l2_promotion(L2Promotion::B256);
    Ok(kernel.launch(on, grid, a, b, c, of_a, of_b, m, n, k, along_m, along_k, band)?)
}

/// Returns a matrix whose rows or columns are contiguous as one whose rows are, and its strides.
fn lined_up(matrix: TensorView<'_, f32, 2>) -> Result<(TensorView<'_, f32, 2>, [usize; 2]), Error> {
    let ([rows, columns], strides) = (matrix.shape(), matrix.strides());
    if strides == [1, rows] && columns > 1 {
        return Ok((matrix.with_strides([columns, rows], [rows, 1])?, [1, rows]));
    }
    Ok((matrix, [columns, 1]))
}
