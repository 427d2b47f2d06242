//! GEMMs of `bf16` with matrices that are stored as `e4m3`.

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::super::GemmError;
use super::super::edge::flat;
use super::super::extents::{batch, batch_mut};
use super::super::few_rows::RowByE4m3;
use super::choose::{BLOCK, FewRows};
use super::weights::widened::multiply;
use super::{Promoted, fits};
use crate::dependent::dependent;

/// The most rows of A of a tile.
const MOST_ROWS: usize = 64;

/// The maximum number of tiles of A's rows: an extent of a grid.
const MOST_BLOCKS: usize = 65_535;

/// The scales of B, and how it may be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuantizedOptions<'a> {
    /// N / 128 × K / 128, both rounded up. Without them, all are 1.
    pub scales: Option<TensorView<'a, f32, 2>>,
    /// Whether no work that is queued before and has not ended writes B or the scales: as
    /// [`GemmOptions::constant_b`](crate::gemm::GemmOptions::constant_b).
    pub constant_b: bool,
}

/// Queues `C = A · Bᵀ`, where A is of `bf16` and B of `e4m3`, with a scale for each 128 × 128
/// elements: weights that are stored in half of the bytes.
///
/// A is M × K, B is N × K and C is M × N. Sums of 64 or 128 products are multiplied by their scale
/// and added in `f32`, in an order that depends on the extents and the device: the same matrices
/// produce the same bits each time.
///
/// Elements of B are converted to 16 bits, which is exact, when they are multiplied. A single row
/// of A is instead converted to sums of numbers of `e4m3`, if K is a multiple of 128 and at most
/// 16384. The tensor cores then keep 13 bits after the point of each sum of 128 products, as in
/// [`gemm_scaled`](super::gemm_scaled). Elements of A below 2^-27 of the greatest one in their 128
/// columns may lose bits, and those below 2^-36 count as zeros.
///
/// The kernels are for few rows of A, where they read each element of B once: for more than 64,
/// they do so for each 64 of them. Rows of A and B begin at multiples of 16 bytes, and those of C
/// anywhere. Nothing is allocated, unless K is 0: then C becomes zeros.
///
/// ```
/// use tma_kernels::gemm::{QuantizedOptions, gemm_quantized};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = device.tensor(&[bf16::from_f32(0.5); 3 * 160], [3, 160])?;
/// let b = device.tensor(&[e4m3::from_f32(2.0); 17 * 160], [17, 160])?;
/// let scales = device.tensor(&[0.25, 1.0], [1, 2])?;
/// let mut c = device.zeros::<bf16, 2>([3, 17])?;
/// let options = QuantizedOptions { scales: Some(scales.view()), ..Default::default() };
/// gemm_quantized(&device, &a, &b, &mut c, options)?;
/// assert_eq!(c.to_vec()?, [bf16::from_f32(0.25 * 128.0 + 1.0 * 32.0); 3 * 17]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0557` if the matrices or scales do not match or C has columns that are not contiguous,
/// `TMA0546` if they are too large, and the errors of [`launch`](tma_runtime::launch::launch).
pub fn gemm_quantized<C: Promoted>(
    on: &impl LaunchOn,
    a: impl MapArg<bf16, 2>,
    b: impl MapArg<e4m3, 2>,
    mut c: impl MapArgMut<C, 2>,
    options: QuantizedOptions<'_>,
) -> Result<(), GemmError> {
    let QuantizedOptions { scales, constant_b } = options;
    let (a, b, c) = (a.view(), b.view(), c.view_mut());
    let ([m, k], n) = (a.shape(), b.shape()[0]);
    fits("B", &b.shape(), &[n, k])?;
    fits("C", &c.shape(), &[m, n])?;
    if n > 1 {
        fits("the stride of C's columns", &c.strides()[1..], &[1])?;
    }
    if let Some(scales) = &scales {
        fits("`scales`", &scales.shape(), &[n.div_ceil(BLOCK), k.div_ceil(BLOCK)])?;
    }
    let multiprocessors = on.device().multiprocessors();
    let few = FewRows::of(m.min(MOST_ROWS), [m, n, k], 1, multiprocessors);
    let down = m.div_ceil(few.rows as usize);
    if [n, k].iter().any(|&extent| extent >= 1 << 27) || down > MOST_BLOCKS {
        return Err(GemmError::TooLarge { extents: [m, n, k, 1] });
    }
    if m == 0 || n == 0 {
        return Ok(());
    }
    let no_rows;
    let no_columns;
    let (a, b) = if k > 0 {
        (batch(a)?, batch(b)?)
    } else {
        // Nothing is summed, and nothing loaded, but tensor maps have no empty tensors.
        (no_rows, no_columns) = (on.device().zeros([1, 1, 16])?, on.device().zeros([1, 1, 16])?);
        (no_rows.view(), no_columns.view())
    };
    let [row, _] = c.strides();
    let c = flat(on.device(), batch_mut(c)?)?;
    let row_by_e4m3 = RowByE4m3 { a, b, scales: scales.filter(|_| k > 0), c };
    if row_by_e4m3.is_supported() && row_by_e4m3.nanoseconds(multiprocessors) <= few.nanoseconds() {
        return row_by_e4m3.queue(on, constant_b);
    }
    let RowByE4m3 { a, b, scales, c } = row_by_e4m3;
    let key = multiply::Key { bm: few.rows, warpgroups: few.warpgroups };
    let Some(kernel) = multiply::find::<C>(key) else {
        unreachable!("`Promoted` is implemented for the types of the instances, which have {key:?}")
    };
    let across = n.div_ceil(64 * few.warpgroups as usize) as u32;
    Ok(kernel.launch(
        dependent(on).cluster([few.parts, 1, 1]),
        Grid::new(across * few.parts, down as u32, 1),
        a.l2_promotion(L2Promotion::B256),
        b.l2_promotion(L2Promotion::B256),
        c,
        scales,
        m as u32,
        n as u32,
        k as u32,
        row as u64,
    )?)
}
