//! The optimiser AdamW, with the norm of all gradients, for parameters in few tensors.
//!
//! Kernels take tensors, not tables of addresses: memory that a launch reaches only through a number
//! in a table could neither be borrowed nor be kept alive by a graph. So "all parameters in one
//! launch" means one tensor that contains all of them, and another of the same layout for their
//! gradients. [`ParameterLayout`] positions the parameters, and each is a
//! [view](DeviceTensor::view) of its range. One fill then sets all gradients to zero, and one
//! all-reduce adds those of several GPUs.
//!
//! A step consists of three launches, however many parameters there are:
//!
//! 1. [`sum_squares`] adds the squares of the gradients, chunk by chunk;
//! 2. [`AdamW::begin_step`] computes their norm, and decides on the device whether the step is
//!    taken and how much gradients are clipped;
//! 3. [`AdamW::update`] updates the parameters and moments.
//!
//! Parameters of several types, or in tensors of their own, have a layout for each tensor. The
//! first and the last launch are then one for each tensor, and the one in between is for all.
//!
//! The learning rate and the number of steps are on the device, and so is the decision to skip a
//! step. The host waits for nothing, and a [graph](tma_runtime::Graph) of a step counts steps each
//! time it is launched.

pub mod kernel;
mod layout;

use tma_runtime::Device;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use self::kernel::flat::{self, NORM, RATE, SKIPPED, TAKEN};
pub use self::layout::{Parameter, ParameterLayout};
use crate::dependent::dependent;
use crate::model::{ModelElement, ModelError};

/// The numbers of a step, on the device.
const NUMBERS: usize = 5;

/// The counts of steps, on the device.
const COUNTS: usize = 3;

/// Constants of [`AdamW`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWOptions {
    /// The share of first moments that a step keeps: 0.9 by default.
    pub beta1: f32,
    /// The share of second moments that a step keeps: 0.999 by default.
    pub beta2: f32,
    /// The number that is added to the root of second moments, above 0: 10^-8 by default.
    pub epsilon: f32,
}

impl Default for AdamWOptions {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }
}

/// Options of [`AdamW::begin_step`].
#[derive(Clone, Copy, Debug)]
pub struct StepOptions<'a> {
    /// The sums of [`sum_squares`] for all gradients. Without them, which is the default, the norm
    /// counts as 0: gradients are not clipped, and each step is taken.
    pub squares: Option<TensorView<'a, f64, 1>>,
    /// The greatest norm: if that of the gradients is greater, they are multiplied by the ratio.
    /// Infinity, the default, stands for no limit.
    pub max_norm: f32,
    /// The factor of gradients, applied before their norm is limited: 1 by default. With losses
    /// that are scaled against underflow, it is the reciprocal of the scale.
    pub gradient_factor: f32,
    /// The learning rate of each step, from the first one on; the last number holds for all steps
    /// that follow. By default, the learning rate stays.
    pub rates: Option<TensorView<'a, f32, 1>>,
}

impl Default for StepOptions<'_> {
    fn default() -> Self {
        Self { squares: None, max_norm: f32::INFINITY, gradient_factor: 1.0, rates: None }
    }
}

/// Parameters and their moments, which a step replaces. All have the same shape, and as many
/// elements as their layout.
#[derive(Debug)]
pub struct Weights<'a, P, const N: usize> {
    /// The parameters, as the model reads them.
    pub parameters: TensorViewMut<'a, P, N>,
    /// The parameters in `f32`, of which `parameters` are the rounded values. Without them,
    /// `parameters` are updated as they are: this is exact for `f32`, but `bf16` and `f16` lose
    /// changes below half a unit in the last place.
    pub masters: Option<TensorViewMut<'a, f32, N>>,
    /// The first moments: the means of gradients. They begin as zeros.
    pub firsts: TensorViewMut<'a, f32, N>,
    /// The second moments: the means of squares of gradients. They begin as zeros.
    pub seconds: TensorViewMut<'a, f32, N>,
}

/// Queues the sums of squares of gradients: one for each chunk of their layout
/// ([`ParameterLayout::sums`]), from which [`AdamW::begin_step`] computes the norm.
///
/// For several tensors, pass consecutive parts of one tensor as `sums`.
///
/// The same gradients have the same sums, bit for bit, on every device. Squares are added in `f32`,
/// and in `f64` where that overflows or underflows, so a sum of finite gradients is finite. A call
/// allocates nothing and does not wait.
///
/// # Errors
///
/// `TMA0575` for shapes that do not match the layout, and the errors of
/// [`launch`](tma_runtime::launch::launch), such as `TMA0511` for gradients that are not
/// contiguous, and `TMA0531` for those that do not begin at a multiple of 16 bytes.
pub fn sum_squares<G: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    layout: &ParameterLayout,
    gradients: impl MapArg<G, N>,
    mut sums: impl MapArgMut<f64, 1>,
) -> Result<(), ModelError> {
    let (gradients, sums) = (gradients.view(), sums.view_mut());
    matches("gradients", &gradients.shape(), layout)?;
    crate::model::fits("sums", &sums.shape(), &[layout.sums()])?;
    if layout.is_empty() {
        return Ok(());
    }
    let launcher = flat::squares::find::<G>(flat::squares::Key {}).ok_or_else(without_instance)?;
    launcher.launch(dependent(on), layout.grid(), gradients, layout.table(), sums)?;
    Ok(())
}

/// The optimiser AdamW of Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
///
/// It has the constants, and the learning rate and counts of steps on the device. Parameters and
/// moments are the caller's ([`Weights`]).
///
/// ```
/// use tma_kernels::optimizer::{
///     AdamW, AdamWOptions, Parameter, ParameterLayout, StepOptions, Weights, sum_squares,
/// };
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let matrix = Parameter { weight_decay: 0.1, ..Parameter::new(16 * 8) };
/// let layout = ParameterLayout::new(&device, &[matrix, Parameter::new(8)])?;
/// let mut parameters = device.zeros::<bf16, 1>([layout.len()])?;
/// let mut masters = device.zeros::<f32, 1>([layout.len()])?;
/// let mut firsts = device.zeros::<f32, 1>([layout.len()])?;
/// let mut seconds = device.zeros::<f32, 1>([layout.len()])?;
/// let mut sums = device.zeros::<f64, 1>([layout.sums()])?;
/// let mut optimizer = AdamW::new(&device, AdamWOptions::default(), 0.001)?;
///
/// // One step: the backward pass writes gradients to the ranges of this tensor.
/// let gradients = device.tensor(&vec![bf16::ONE; layout.len()], [layout.len()])?;
/// sum_squares(&device, &layout, &gradients, &mut sums)?;
/// let options = StepOptions { squares: Some(sums.view()), max_norm: 1.0, ..Default::default() };
/// optimizer.begin_step(&device, options)?;
/// let weights = Weights {
///     parameters: parameters.view_mut(),
///     masters: Some(masters.view_mut()),
///     firsts: firsts.view_mut(),
///     seconds: seconds.view_mut(),
/// };
/// optimizer.update(&device, &layout, weights, &gradients)?;
///
/// let bias = layout.ranges()[1].clone();
/// assert!((masters.to_vec()?[bias.start] + 0.001).abs() < 1e-8); // by the learning rate
/// assert_eq!(optimizer.steps()?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AdamW {
    options: AdamWOptions,
    numbers: DeviceTensor<f32, 1>,
    counts: DeviceTensor<u32, 1>,
}

impl AdamW {
    /// Makes an optimiser before its first step.
    ///
    /// # Errors
    ///
    /// `TMA0578` for constants out of their range, and a learning rate that is negative or not
    /// finite. Also [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device, options: AdamWOptions, learning_rate: f32) -> Result<Self, ModelError> {
        Self::resume(device, options, learning_rate, 0)
    }

    /// Makes an optimiser that has taken this many steps, whose moments are kept elsewhere.
    ///
    /// # Errors
    ///
    /// Those of [`AdamW::new`].
    pub fn resume(
        device: &Device,
        options: AdamWOptions,
        learning_rate: f32,
        steps: u32,
    ) -> Result<Self, ModelError> {
        for (option, number) in [("beta1", options.beta1), ("beta2", options.beta2)] {
            if !(0.0..1.0).contains(&number) {
                return Err(ModelError::Number { option, number, wanted: "at least 0 and below 1" });
            }
        }
        let AdamWOptions { epsilon, .. } = options;
        if !(epsilon > 0.0 && epsilon < f32::INFINITY) {
            return Err(ModelError::Number {
                option: "epsilon",
                number: epsilon,
                wanted: "finite and above 0",
            });
        }
        let mut numbers = [0.0; NUMBERS];
        numbers[RATE as usize] = not_negative("learning_rate", learning_rate)?;
        let mut counts = [0; COUNTS];
        counts[TAKEN as usize] = steps;
        let (numbers, counts) = (device.tensor(&numbers, [NUMBERS])?, device.tensor(&counts, [COUNTS])?);
        Ok(Self { options, numbers, counts })
    }

    /// Queues a change of the learning rate. It holds for the steps that begin afterwards, unless
    /// [`StepOptions::rates`] replaces it.
    ///
    /// # Errors
    ///
    /// `TMA0578` for a learning rate that is negative or not finite, and the errors of
    /// [`launch`](tma_runtime::launch::launch).
    pub fn set_learning_rate(&mut self, on: &impl LaunchOn, learning_rate: f32) -> Result<(), ModelError> {
        let learning_rate = not_negative("learning_rate", learning_rate)?;
        flat::set_rate::launch(dependent(on), 1, &mut self.numbers, learning_rate)?;
        Ok(())
    }

    /// Queues the beginning of a step. Its updates follow.
    ///
    /// The norm is `gradient_factor` · √Σ `squares`, summed in `f64` in a fixed order. If it is NaN
    /// or exceeds `f32`, the step is skipped: its updates change nothing, and it
    /// counts as [skipped](AdamW::skipped). Otherwise the number of steps is increased by one.
    ///
    /// A call allocates nothing and does not wait.
    ///
    /// # Errors
    ///
    /// `TMA0578` for a limit that is not above 0, a factor that is not above 0 and finite, and rates
    /// without elements. Also the errors of [`launch`](tma_runtime::launch::launch).
    pub fn begin_step(&mut self, on: &impl LaunchOn, options: StepOptions<'_>) -> Result<(), ModelError> {
        let StepOptions { squares, max_norm, gradient_factor, rates } = options;
        let invalid = |option, number, wanted| ModelError::Number { option, number, wanted };
        if max_norm.is_nan() || max_norm <= 0.0 {
            return Err(invalid("max_norm", max_norm, "above 0"));
        }
        if !(gradient_factor > 0.0 && gradient_factor < f32::INFINITY) {
            return Err(invalid("gradient_factor", gradient_factor, "finite and above 0"));
        }
        if rates.is_some_and(|rates| rates.shape() == [0]) {
            return Err(invalid("number of rates", 0.0, "above 0"));
        }
        flat::begin::launch(
            dependent(on),
            1,
            squares,
            rates,
            &mut self.numbers,
            &mut self.counts,
            self.options.beta1,
            self.options.beta2,
            gradient_factor,
            max_norm,
        )?;
        Ok(())
    }

    /// Queues the update of weights `w` and moments `m`, `v` by the gradients `g`, in step t:
    ///
    /// * `m` = β₁ · m + (1 - β₁) · g
    /// * `v` = β₂ · v + (1 - β₂) · g²
    /// * `w` = w - rate · (m / (1 - β₁ᵗ) / (√(v / (1 - β₂ᵗ)) + ε) + weight decay · w)
    ///
    /// where gradients have been multiplied by their factor, and clipped. All is computed in `f32`,
    /// and parameters are rounded once. Rate and weight decay are those of each
    /// [`Parameter`]. If the step is skipped, nothing is written. Moments of gradients whose squares
    /// exceed `f32` are infinite. Before the first [`begin_step`](AdamW::begin_step), nothing is written
    /// either. Each tensor is updated once in a step.
    ///
    /// A call allocates nothing and does not wait.
    ///
    /// # Errors
    ///
    /// `TMA0575` for shapes that do not match each other or the layout, and the errors of
    /// [`launch`](tma_runtime::launch::launch), such as `TMA0511` for tensors that are not
    /// contiguous, and `TMA0531` for those that do not begin at a multiple of 16 bytes.
    pub fn update<P: ModelElement, G: ModelElement, const N: usize>(
        &self,
        on: &impl LaunchOn,
        layout: &ParameterLayout,
        weights: Weights<'_, P, N>,
        gradients: impl MapArg<G, N>,
    ) -> Result<(), ModelError> {
        let Weights { parameters, masters, firsts, seconds } = weights;
        let gradients = gradients.view();
        let shape = parameters.shape();
        matches("parameters", &shape, layout)?;
        let masters_shape = masters.as_ref().map_or(shape, TensorViewMut::shape);
        let others = [
            ("masters", masters_shape),
            ("firsts", firsts.shape()),
            ("seconds", seconds.shape()),
            ("gradients", gradients.shape()),
        ];
        for (name, found) in others {
            crate::model::fits(name, &found, &shape)?;
        }
        if layout.is_empty() {
            return Ok(());
        }
        let launcher = flat::adamw::find::<P, G>(flat::adamw::Key {}).ok_or_else(without_instance)?;
        launcher.launch(
            dependent(on),
            layout.grid(),
            parameters,
            gradients,
            masters,
            firsts,
            seconds,
            layout.table(),
            &self.numbers,
            &self.counts,
            self.options.beta1,
            self.options.beta2,
            self.options.epsilon,
        )?;
        Ok(())
    }

    /// Returns the norm of the gradients of the last step: one number on the device.
    ///
    /// # Errors
    ///
    /// None in practice: the view is a part of its tensor.
    pub fn device_norm(&self) -> Result<TensorView<'_, f32, 1>, ModelError> {
        let range = NORM as usize..NORM as usize + 1;
        Ok(self.numbers.view().slice([range])?)
    }

    /// Waits, and returns the norm of the gradients of the last step.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::to_vec`].
    pub fn norm(&self) -> Result<f32, ModelError> {
        Ok(self.numbers.to_vec()?.get(NORM as usize).copied().unwrap_or_default())
    }

    /// Waits, and returns the number of steps taken.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::to_vec`].
    pub fn steps(&self) -> Result<u32, ModelError> {
        self.count(TAKEN)
    }

    /// Waits, and returns the number of steps skipped because the norm was not finite.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::to_vec`].
    pub fn skipped(&self) -> Result<u32, ModelError> {
        self.count(SKIPPED)
    }

    fn count(&self, at: u32) -> Result<u32, ModelError> {
        Ok(self.counts.to_vec()?.get(at as usize).copied().unwrap_or_default())
    }
}

/// Checks that a tensor has the elements of a layout.
fn matches(tensor: &'static str, shape: &[usize], layout: &ParameterLayout) -> Result<(), ModelError> {
    match shape.iter().product::<usize>() == layout.len() {
        true => Ok(()),
        false => Err(ModelError::Shape { tensor, found: shape.into(), wanted: vec![layout.len()] }),
    }
}

/// Checks a number that must be finite and not negative.
fn not_negative(option: &'static str, number: f32) -> Result<f32, ModelError> {
    match (0.0..f32::INFINITY).contains(&number) {
        true => Ok(number),
        false => Err(ModelError::Number { option, number, wanted: "finite and not negative" }),
    }
}

/// Returns the error of a type without an instance, which [`ModelElement`] excludes.
fn without_instance() -> ModelError {
    crate::model::without_instance(&[])
}
