//! Mixtures of experts: which experts each token has, and its rows on the way to them and back.
//!
//! [`route`] chooses experts and orders the choices by expert, [`gather`] copies the tokens' rows
//! into this order, [`gemm_grouped`](crate::gemm::gemm_grouped) multiplies the rows of each expert
//! by its matrices, and [`combine`] adds up the results of each token.

pub mod moves;
pub mod router;
mod rows;

pub use self::rows::{combine, gather};

use tma_runtime::launch::{LaunchOn, MapArg};
use tma_runtime::prelude::*;

use self::router::tokens::{CHUNK, MOST_CHOICES, MOST_EXPERTS, choose, place};
use super::rows::{Rows, Strides, fits, flat, flat_mut, without_instance};
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// The logits of a lane of the instance for few experts.
const FEW_SLOTS: usize = 4;

/// The logits of a lane of the instance for many experts.
const MANY_SLOTS: usize = 16;

/// The results of [`route`], in the caller's memory.
#[derive(Debug)]
pub struct RoutesMut<'a> {
    /// The experts of each token, from the one with the greatest logit: tokens × choices.
    pub experts: TensorViewMut<'a, u32, 2>,
    /// The weight of each choice: tokens × choices.
    pub weights: TensorViewMut<'a, f32, 2>,
    /// The row of each choice among all of them in the order of experts, and for each expert in the
    /// order of tokens: tokens × choices.
    pub rows: TensorViewMut<'a, u32, 2>,
    /// The end of each expert's rows, as [`gemm_grouped`](crate::gemm::gemm_grouped) takes them.
    pub ends: TensorViewMut<'a, u32, 1>,
}

/// Options of [`route`].
#[derive(Debug, Default)]
pub struct RouteOptions<'a> {
    /// Whether the weights of a token have the sum 1: softmax of the chosen logits, as in Mixtral.
    /// The default is the softmax of all logits.
    pub normalise: bool,
    /// Memory for more than 64 tokens. Without it, a call with so many allocates its own, and waits
    /// when that is freed.
    pub workspace: Option<&'a mut RouteWorkspace>,
}

/// Memory in which blocks leave what their tokens have chosen. Only one call may use it at a time:
/// give each stream its own.
#[derive(Debug)]
pub struct RouteWorkspace {
    /// Chunks of tokens × 2 × experts: a bit for each expert and token.
    masks: DeviceTensor<u32, 1>,
    /// The bytes of the caller's memory, which cannot grow.
    given: Option<usize>,
}

impl RouteWorkspace {
    /// Allocates the memory for so many tokens and experts: a bit for each of both. A call with
    /// more lets it grow.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device, tokens: usize, experts: usize) -> Result<Self, Error> {
        Ok(Self { masks: device.zeros([words(tokens, experts)])?, given: None })
    }

    /// Returns how many bytes a call with so many tokens and experts needs.
    pub fn bytes(tokens: usize, experts: usize) -> usize {
        words(tokens, experts).saturating_mul(size_of::<u32>())
    }

    /// Makes a workspace of [`bytes`](Self::bytes) that another library has allocated. It never
    /// grows. The address is a multiple of 4.
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for `bytes` bytes from `address` on. They are
    /// used by nothing else as long as the workspace is.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::from_raw`].
    pub unsafe fn from_raw(device: &Device, address: u64, bytes: usize) -> Result<Self, Error> {
        // SAFETY: as the caller promises.
        let masks = unsafe { DeviceTensor::from_raw(device, address, [bytes / size_of::<u32>()])? };
        Ok(Self { masks, given: Some(bytes) })
    }

    /// Grows until the memory suffices. What it had before is freed once every launch that uses it
    /// has run.
    fn grow(&mut self, device: &Device, tokens: usize, experts: usize) -> Result<(), ModelError> {
        match self.given {
            _ if self.masks.len() >= words(tokens, experts) => {}
            Some(found) => {
                return Err(ModelError::Workspace { found, wanted: Self::bytes(tokens, experts) });
            }
            None => *self = Self::new(device, tokens, experts)?,
        }
        Ok(())
    }
}

/// Returns the words of bits of so many tokens and experts. A single chunk needs none.
fn words(tokens: usize, experts: usize) -> usize {
    match tokens.div_ceil(CHUNK as usize) {
        0 | 1 => 0,
        chunks => chunks * 2 * experts,
    }
}

/// Queues the choice of experts for each token, and the order of choices by expert.
///
/// `logits` is tokens × experts, and rows may be apart. As many experts as `routes.experts` has
/// columns are chosen for each token: those with the greatest logits and, of equal ones, the
/// first. 0 and -0 are equal. The weight of a choice is exp(logit) / Σ exp, where the sum is over
/// all experts, or over those chosen with [`normalise`](RouteOptions::normalise). It is computed in
/// `f32`.
///
/// NaN counts as greater than any number, so that each token has different experts in any case. All
/// weights of a token are NaN if it has a NaN or +∞ among its logits, or -∞ alone.
///
/// Up to 64 tokens are routed by one kernel, and more by two. Experts and weights of a token depend
/// on nothing but its logits, bit for bit. A call does not wait, and with a large enough workspace
/// allocates nothing.
///
/// ```
/// use tma_kernels::model::{RouteOptions, RoutesMut, combine, gather, route};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// // Two tokens, three experts: the first token has the experts 2 and 0, the second 0 and 1.
/// let logits = device.tensor(&[1.0_f32, 0.0, 1.5, 4.0, 2.0, 2.0], [2, 3])?;
/// let (mut experts, mut weights) = (device.zeros([2, 2])?, device.zeros([2, 2])?);
/// let (mut rows, mut ends) = (device.zeros([2, 2])?, device.zeros([3])?);
/// let routes = RoutesMut {
///     experts: experts.view_mut(),
///     weights: weights.view_mut(),
///     rows: rows.view_mut(),
///     ends: ends.view_mut(),
/// };
/// route(&device, &logits, routes, RouteOptions { normalise: true, ..Default::default() })?;
/// assert_eq!(experts.to_vec()?, [2, 0, 0, 1]);
/// assert_eq!(rows.to_vec()?, [3, 0, 1, 2]);
/// assert_eq!(ends.to_vec()?, [2, 3, 4]);
///
/// let x = device.tensor(&[[bf16::from_f32(8.0); 64], [bf16::from_f32(4.0); 64]].concat(), [2, 64])?;
/// let (mut grouped, mut out) = (device.zeros::<bf16, 2>([4, 64])?, device.zeros::<bf16, 2>([2, 64])?);
/// gather(&device, &x, &rows, &mut grouped)?;
/// combine(&device, &grouped, &rows, &weights, &mut out)?; // experts that change nothing
/// assert_eq!(out.to_vec()?, x.to_vec()?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for more than 512 experts, no choice or more than 16, more choices than experts, or
/// too many tokens, `TMA0570` if the caller's memory is too small. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn route<T: ModelElement>(
    on: &impl LaunchOn,
    logits: impl MapArg<T, 2>,
    routes: RoutesMut<'_>,
    options: RouteOptions<'_>,
) -> Result<(), ModelError> {
    let logits = logits.view();
    let shape = logits.shape();
    let [tokens, experts] = shape;
    let RoutesMut { experts: chosen, weights, rows, ends } = routes;
    let choices = chosen.shape()[1];
    if experts > MOST_EXPERTS as usize || !(1..=MOST_CHOICES as usize).contains(&choices) || choices > experts
    {
        return Err(ModelError::Experts { experts, choices });
    }
    for (name, found) in [("experts", chosen.shape()), ("weights", weights.shape()), ("rows", rows.shape())] {
        fits(name, &found, &[tokens, choices])?;
    }
    fits("ends", &ends.shape(), &[experts])?;
    let extents = Rows::of(&shape)?;
    if tokens >= 1 << 27 {
        return Err(ModelError::TooLarge { shape: shape.into(), wanted: "fewer than 2^27 tokens" });
    }
    let of_logits = Strides::of("logits", &shape, &logits.strides())?;
    let of_chosen = Strides::of("experts", &chosen.shape(), &chosen.strides())?;
    let of_weights = Strides::of("weights", &weights.shape(), &weights.strides())?;
    let of_rows = Strides::of("rows", &rows.shape(), &rows.strides())?;
    Strides::of("ends", &ends.shape(), &ends.strides())?;
    let chunks = extents.count.div_ceil(CHUNK).max(1); // without tokens, all ends are 0
    let mut own = None;
    let workspace = match options.workspace {
        Some(given) => given,
        None => own.insert(RouteWorkspace::new(on.device(), 0, 0)?),
    };
    workspace.grow(on.device(), tokens, experts)?;
    let slots = if experts <= 32 * FEW_SLOTS { FEW_SLOTS } else { MANY_SLOTS };
    let mut rows = flat_mut(rows)?;
    let mut ends = flat_mut(ends)?;
    let mut chosen = flat_mut(chosen)?;
    choose::find::<T>(choose::Key { slots }).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::x(chunks),
        flat(logits)?,
        chosen.reborrow(),
        flat_mut(weights)?,
        rows.reborrow(),
        ends.reborrow(),
        (chunks > 1).then_some(&mut workspace.masks),
        extents.count,
        experts as u32,
        choices as u32,
        options.normalise,
        of_logits.inner,
        of_chosen.inner,
        of_weights.inner,
        of_rows.inner,
    )?;
    if chunks == 1 {
        return Ok(());
    }
    place::launch(
        dependent(on),
        Grid::x(chunks),
        &workspace.masks,
        chosen.as_view(),
        rows,
        ends,
        extents.count,
        experts as u32,
        choices as u32,
        (experts as u32).next_power_of_two(),
        of_chosen.inner,
        of_rows.inner,
    )?;
    Ok(())
}
