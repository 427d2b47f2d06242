//! Cross-entropy of logits with labels, and its gradient.

pub mod copies;
pub mod kernel;
mod linear;
pub mod running;
pub mod staged;

use tma_runtime::Error;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut, resident_blocks};
use tma_runtime::prelude::*;

use self::copies::slots::{MOST_PIECES, VECTORS};
use self::kernel::rows::{self, KEPT, THREADS};
pub use self::linear::{LinearGradients, LinearMemory, LinearOperands, linear_cross_entropy};
use self::staged::pieces::losses_staged;
use super::rows::{Rows, Strides, VECTOR_BYTES, fits, flat, flat_mut, without_instance};
use super::sample::per_row;
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// The blocks of a cluster at most.
const MOST_BLOCKS: usize = 8;

/// The vectors that a block has at least of rows that stay in shared memory: half of them would
/// leave most of its threads idle.
const LEAST_VECTORS: u32 = 256;

/// Options of [`cross_entropy`].
#[derive(Debug)]
pub struct CrossEntropyOptions<'a> {
    /// The part of the target, from 0 to 1, that is divided evenly among all columns: 0 by default.
    pub label_smoothing: f32,
    /// The factor of the square of each row's log-sum-exp, which is added to its loss: 0 by
    /// default.
    pub z_loss: f32,
    /// The label of rows that do not count: `u32::MAX` by default. Their losses, log-sum-exps and
    /// gradients are 0.
    pub ignored: u32,
    /// The tensor for ln(Σ exp(x)) of each row.
    pub log_sums: Option<TensorViewMut<'a, f32, 1>>,
    /// The number that gradients are divided by: that of the rows that count, from
    /// [`count_labels`], for the gradient of the mean loss. Without it, they are those of the sum.
    pub count: Option<TensorView<'a, u32, 1>>,
    /// The factor of gradients: 1 by default.
    pub gradient_factor: f32,
}

impl Default for CrossEntropyOptions<'_> {
    fn default() -> Self {
        Self {
            label_smoothing: 0.0,
            z_loss: 0.0,
            ignored: u32::MAX,
            log_sums: None,
            count: None,
            gradient_factor: 1.0,
        }
    }
}

/// Queues the cross-entropy of each row of `logits` with its label.
///
/// With the label y, the label smoothing s and the z-loss factor z, the loss of a row x of n columns
/// is `lse - (1 - s) · x[y] - s / n · Σ x + z · lse²`, where `lse` is ln(Σ exp(x)).
///
/// `logits` is rows × columns, of up to 2^26 columns. Rows may be apart, and begin anywhere, but the
/// first one begins at a multiple of 16 bytes. Exponentials are taken relative to the greatest
/// element and summed in `f32`, in an order that depends on the shape, the position of the row and
/// the device. A row with a NaN or +∞, or of -∞ alone, has a loss of NaN, and so has one whose
/// label is neither a column nor ignored. A call allocates nothing and does not wait.
///
/// ```
/// use tma_kernels::model::{CrossEntropyOptions, count_labels, cross_entropy, mean_loss};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let logits = device.tensor(&[0.5_f32; 3 * 8], [3, 8])?;
/// let labels = device.tensor(&[2, u32::MAX, 7], [3])?;
/// let (mut losses, mut count) = (device.zeros([3])?, device.zeros([1])?);
/// let mut mean = device.zeros([1])?;
/// cross_entropy(&device, &logits, &labels, &mut losses, CrossEntropyOptions::default())?;
/// count_labels(&device, &labels, u32::MAX, &mut count)?;
/// mean_loss(&device, &losses, &count, &mut mean)?;
/// assert_eq!(losses.to_vec()?[1], 0.0);
/// assert!((mean.to_vec()?[0] - 8_f32.ln()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent,
/// `TMA0577` for too many rows or columns, or rows without columns, and `TMA0578` for options out
/// of their range. Also the errors of [`launch`](tma_runtime::launch::launch).
pub fn cross_entropy<T: ModelElement>(
    on: &impl LaunchOn,
    logits: impl MapArg<T, 2>,
    labels: impl MapArg<u32, 1>,
    mut losses: impl MapArgMut<f32, 1>,
    options: CrossEntropyOptions<'_>,
) -> Result<(), ModelError> {
    let tensors = Tensors { logits: Some(logits.view()), gradients: None };
    queue(on, tensors, labels.view(), losses.view_mut(), options)
}

/// Queues the same, and the gradient of the losses with respect to the logits.
///
/// The gradient of column j is the factor times `p[j] · (1 + 2 · z · lse) - s / n`, less
/// `(1 - s)` times the factor at the label, where p is the softmax. The factor is
/// [`gradient_factor`](CrossEntropyOptions::gradient_factor) divided by the
/// [`count`](CrossEntropyOptions::count). Gradients are rounded once. Where a loss is NaN, all of
/// its row's gradient is.
///
/// `gradients` has the shape of `logits`. If rows of logits do not all begin at multiples of 16
/// bytes, the rows of `gradients` must be as far apart as those of `logits`, or farther by a
/// multiple of 16 bytes.
///
/// # Errors
///
/// Those of [`cross_entropy`], and `TMA0576` for rows of gradients that begin elsewhere.
pub fn cross_entropy_gradient<T: ModelElement>(
    on: &impl LaunchOn,
    logits: impl MapArg<T, 2>,
    labels: impl MapArg<u32, 1>,
    mut losses: impl MapArgMut<f32, 1>,
    mut gradients: impl MapArgMut<T, 2>,
    options: CrossEntropyOptions<'_>,
) -> Result<(), ModelError> {
    let tensors = Tensors { logits: Some(logits.view()), gradients: Some(gradients.view_mut()) };
    queue(on, tensors, labels.view(), losses.view_mut(), options)
}

/// Queues the same, with gradients that replace the logits.
///
/// # Errors
///
/// Those of [`cross_entropy`].
pub fn cross_entropy_in_place<T: ModelElement>(
    on: &impl LaunchOn,
    mut logits: impl MapArgMut<T, 2>,
    labels: impl MapArg<u32, 1>,
    mut losses: impl MapArgMut<f32, 1>,
    options: CrossEntropyOptions<'_>,
) -> Result<(), ModelError> {
    let tensors = Tensors { logits: None, gradients: Some(logits.view_mut()) };
    queue(on, tensors, labels.view(), losses.view_mut(), options)
}

/// The logits, which may be where their gradients will be.
struct Tensors<'a, T> {
    logits: Option<TensorView<'a, T, 2>>,
    gradients: Option<TensorViewMut<'a, T, 2>>,
}

/// Queues the kernel, unless there are no rows.
fn queue<T: ModelElement>(
    on: &impl LaunchOn,
    tensors: Tensors<'_, T>,
    labels: TensorView<'_, u32, 1>,
    losses: TensorViewMut<'_, f32, 1>,
    options: CrossEntropyOptions<'_>,
) -> Result<(), ModelError> {
    let Tensors { logits, gradients } = tensors;
    let of_logits = logits.as_ref().map(|logits| (logits.shape(), logits.strides()));
    let of_gradients = gradients.as_ref().map(|gradients| (gradients.shape(), gradients.strides()));
    let (shape, strides) = of_logits.or(of_gradients).unwrap_or_default();
    let (gradients_shape, gradients_strides) = of_gradients.unwrap_or((shape, strides));
    let rows = Rows::of(&shape)?;
    let [count, columns] = shape;
    if count >= 1 << 27 || count > 0 && columns == 0 {
        let wanted = "fewer than 2^27 rows of logits, each with at least one column";
        return Err(ModelError::TooLarge { shape: shape.into(), wanted });
    }
    fits("gradients", &gradients_shape, &shape)?;
    let of_logits = Strides::of("logits", &shape, &strides)?;
    let of_gradients = Strides::of("gradients", &shape, &gradients_strides)?;
    let vector = VECTOR_BYTES / size_of::<T>();
    if !of_logits.inner.abs_diff(of_gradients.inner).is_multiple_of(vector as u64) {
        return Err(ModelError::Unaligned { tensor: "gradients", strides: gradients_strides.into() });
    }
    let labels = per_row("labels", labels, count)?;
    let losses = per_row_mut("losses", losses, count)?;
    check(&options)?;
    let CrossEntropyOptions { label_smoothing, z_loss, ignored, log_sums, count: valid, gradient_factor } =
        options;
    let log_sums = log_sums.map(|log_sums| per_row_mut("log_sums", log_sums, count)).transpose()?;
    if rows.is_empty() {
        return Ok(());
    }
    let in_place = u32::from(logits.is_none());
    let logits = logits.map(|logits| flat(logits)).transpose()?;
    let gradients = gradients.map(|gradients| flat_mut(gradients)).transpose()?;
    let key = losses_staged::Key { form: T::FORM, in_place };
    let staged = losses_staged::find::<T>(key).ok_or_else(|| without_instance(&shape))?;
    let resident = |blocks| resident_blocks(&dependent(on).cluster([blocks, 1, 1]), staged.spec());
    if let Some(shares) = StagedDivision::of::<T>(rows, resident)? {
        staged.launch(
            dependent(on).cluster([shares.blocks, 1, 1]),
            Grid::x(shares.clusters * shares.blocks),
            logits,
            gradients,
            labels,
            losses,
            log_sums,
            valid,
            rows.count,
            rows.columns,
            shares.vectors,
            shares.pieces,
            ignored,
            label_smoothing,
            z_loss,
            gradient_factor,
            of_logits.inner,
            of_gradients.inner,
        )?;
        return Ok(());
    }
    let of_block = THREADS as usize * KEPT;
    let blocks = columns.div_ceil(of_block).min(MOST_BLOCKS) as u32;
    rows::losses::find::<T>(rows::losses::Key { in_place }).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on).cluster([blocks, 1, 1]),
        Grid::x(rows.count * blocks),
        logits,
        gradients,
        labels,
        losses,
        log_sums,
        valid,
        rows.columns,
        ignored,
        label_smoothing,
        z_loss,
        gradient_factor,
        of_logits.inner,
        of_gradients.inner,
    )?;
    Ok(())
}

/// How clusters divide rows that stay in shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StagedDivision {
    /// The blocks of a cluster.
    blocks: u32,
    /// The clusters, each of which has several rows.
    clusters: u32,
    /// The vectors of a block's share of a row.
    vectors: u32,
    /// The pieces of a share.
    pieces: u32,
}

impl StagedDivision {
    /// Returns the shares of rows in the smallest clusters that have room for a row, and of which
    /// each has at least two rows: with fewer, the memory would wait for the first ones. There are
    /// none if rows are longer, or too short to keep the threads of a block busy.
    ///
    /// All clusters run at the same time: of as many blocks each, the device has `resident` blocks.
    /// They can be fewer than the multiprocessors have room for, since a cluster has to fit in one
    /// of the groups of these, and the others would wait for the first ones to end.
    fn of<T: ModelElement>(
        rows: Rows,
        resident: impl Fn(u32) -> Result<u32, Error>,
    ) -> Result<Option<Self>, Error> {
        let of_row = rows.columns / (VECTOR_BYTES / size_of::<T>()) as u32;
        for blocks in [1, 2, 4] {
            let vectors = of_row.div_ceil(blocks);
            let pieces = vectors.div_ceil(VECTORS);
            if vectors < LEAST_VECTORS || pieces > MOST_PIECES {
                continue;
            }
            let clusters = (resident(blocks)? / blocks).max(1);
            if rows.count >= 2 * clusters {
                return Ok(Some(Self { blocks, clusters, vectors, pieces }));
            }
        }
        Ok(None)
    }
}

/// Queues `count[0]` = the number of labels that are not `ignored`.
///
/// A call allocates nothing and does not wait.
///
/// # Errors
///
/// `TMA0575` for a count that is not one element, `TMA0576` for labels that are not adjacent, and
/// the errors of [`launch`](tma_runtime::launch::launch).
pub fn count_labels(
    on: &impl LaunchOn,
    labels: impl MapArg<u32, 1>,
    ignored: u32,
    mut count: impl MapArgMut<u32, 1>,
) -> Result<(), ModelError> {
    let (labels, count) = (labels.view(), count.view_mut());
    fits("count", &count.shape(), &[1])?;
    let [len] = labels.shape();
    rows::count_labels::launch(dependent(on), 1, per_row("labels", labels, len)?, count, ignored)?;
    Ok(())
}

/// Queues `mean[0]` = Σ `losses` / `count[0]`, or 0 if no row counts. Losses are summed in `f64`, in
/// a fixed order.
///
/// A call allocates nothing and does not wait.
///
/// # Errors
///
/// `TMA0575` for a count or a mean that is not one element, `TMA0576` for losses that are not
/// adjacent, and the errors of [`launch`](tma_runtime::launch::launch).
pub fn mean_loss(
    on: &impl LaunchOn,
    losses: impl MapArg<f32, 1>,
    count: impl MapArg<u32, 1>,
    mut mean: impl MapArgMut<f32, 1>,
) -> Result<(), ModelError> {
    let (losses, count, mean) = (losses.view(), count.view(), mean.view_mut());
    fits("count", &count.shape(), &[1])?;
    fits("mean", &mean.shape(), &[1])?;
    let [len] = losses.shape();
    rows::mean_loss::launch(dependent(on), 1, per_row("losses", losses, len)?, count, mean)?;
    Ok(())
}

/// Returns a tensor with an element for each row, which must be contiguous.
fn per_row_mut<'a>(
    name: &'static str,
    tensor: TensorViewMut<'a, f32, 1>,
    rows: usize,
) -> Result<TensorViewMut<'a, f32, 1>, ModelError> {
    fits(name, &tensor.shape(), &[rows])?;
    Strides::of(name, &tensor.shape(), &tensor.strides())?;
    Ok(flat_mut(tensor)?)
}

/// Checks the options that do not depend on the rows.
fn check(options: &CrossEntropyOptions<'_>) -> Result<(), ModelError> {
    let &CrossEntropyOptions { label_smoothing, z_loss, gradient_factor, ref count, .. } = options;
    if let Some(count) = count {
        fits("count", &count.shape(), &[1])?;
    }
    within("label_smoothing", label_smoothing, 0.0..=1.0, "from 0 to 1")?;
    within("z_loss", z_loss, 0.0..=f32::MAX, "finite and not negative")?;
    within("gradient_factor", gradient_factor, f32::MIN..=f32::MAX, "finite")
}

/// Checks that a number is in its range. NaN is not.
fn within(
    option: &'static str,
    number: f32,
    range: std::ops::RangeInclusive<f32>,
    wanted: &'static str,
) -> Result<(), ModelError> {
    match range.contains(&number) {
        true => Ok(()),
        false => Err(ModelError::Number { option, number, wanted }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares<T: ModelElement>(shape: [usize; 2]) -> Result<Option<StagedDivision>, ModelError> {
        // Those of an H200.
        let resident = |blocks| Ok(if blocks == 4 { 248 } else { 264 });
        Ok(StagedDivision::of::<T>(Rows::of(&shape)?, resident)?)
    }

    #[test]
    fn the_smallest_cluster_keeps_a_row() -> Result<(), ModelError> {
        let of =
            |blocks, clusters, vectors, pieces| Some(StagedDivision { blocks, clusters, vectors, pieces });
        assert_eq!(shares::<bf16>([4096, 4096])?, of(1, 264, 512, 1));
        assert_eq!(shares::<bf16>([4096, 32_000])?, of(1, 264, 4000, 4));
        assert_eq!(shares::<bf16>([4096, 50_257])?, of(2, 132, 3141, 4));
        assert_eq!(shares::<bf16>([2048, 131_072])?, of(4, 62, 4096, 4));
        assert_eq!(shares::<bf16>([2048, 163_840])?, of(4, 62, 5120, 5));
        assert_eq!(shares::<bf16>([2048, 163_848])?, None);
        assert_eq!(shares::<f32>([2048, 81_924])?, None);
        assert_eq!(shares::<bf16>([4096, 1000])?, None);
        Ok(())
    }

    #[test]
    fn larger_clusters_share_fewer_rows() -> Result<(), ModelError> {
        let blocks = |shape| Ok::<_, ModelError>(shares::<bf16>(shape)?.map(|shares| shares.blocks));
        assert_eq!(blocks([528, 32_000])?, Some(1));
        assert_eq!(blocks([527, 32_000])?, Some(2));
        assert_eq!(blocks([263, 32_000])?, Some(4));
        assert_eq!(blocks([123, 32_000])?, None);
        assert_eq!(blocks([263, 4096])?, None);
        Ok(())
    }
}
