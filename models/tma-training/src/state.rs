//! The state of training: what is kept to continue later, or elsewhere.

use tma_kernels::optimizer::ParameterLayout;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::model::Tensor;

/// All that a [`Trainer`](crate::Trainer) has learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The steps taken, without those that were skipped.
    pub steps: u32,
    /// The tensors, in any order.
    pub tensors: Vec<StateTensor>,
}

/// A tensor of parameters and its moments, each in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct StateTensor {
    /// The name that Hugging Face gives it.
    pub name: String,
    /// The extents, as Hugging Face has them.
    pub shape: Vec<usize>,
    /// The parameters. The model computes with these numbers rounded to `bf16`.
    pub master: Vec<f32>,
    /// The first moments: the means of gradients.
    pub first: Vec<f32>,
    /// The second moments: the means of squares of gradients.
    pub second: Vec<f32>,
}

/// The gradient of a tensor of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// The name that Hugging Face gives the tensor.
    pub name: String,
    /// The extents of the tensor.
    pub shape: Vec<usize>,
    /// The numbers, in row-major order.
    pub values: Vec<f32>,
}

/// Parameters, gradients and moments, each with all tensors in the order of the layout.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) parameters: DeviceTensor<bf16, 1>,
    /// The sums of all micro-batches.
    pub(crate) gradients: DeviceTensor<f32, 1>,
    /// Sums of squares of gradients, one for each chunk of the layout.
    pub(crate) squares: DeviceTensor<f64, 1>,
    pub(crate) masters: DeviceTensor<f32, 1>,
    pub(crate) firsts: DeviceTensor<f32, 1>,
    pub(crate) seconds: DeviceTensor<f32, 1>,
}

impl Weights {
    /// Makes parameters with these values, before the first step.
    pub(crate) fn new(
        device: &Device,
        layout: &ParameterLayout,
        masters: &[f32],
    ) -> Result<Self, TrainingError> {
        let len = layout.len();
        Ok(Self {
            parameters: device.tensor(&rounded(masters), [len])?,
            gradients: device.zeros([len])?,
            squares: device.zeros([layout.sums()])?,
            masters: device.tensor(masters, [len])?,
            firsts: device.zeros([len])?,
            seconds: device.zeros([len])?,
        })
    }

    /// Copies all tensors to the host.
    pub(crate) fn tensors(
        &self,
        tensors: &[Tensor],
        layout: &ParameterLayout,
    ) -> Result<Vec<StateTensor>, TrainingError> {
        let (masters, firsts, seconds) =
            (self.masters.to_vec()?, self.firsts.to_vec()?, self.seconds.to_vec()?);
        let ranges = layout.ranges().iter().cloned();
        let state = tensors.iter().zip(ranges).map(|(tensor, range)| StateTensor {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            master: masters[range.clone()].to_vec(),
            first: firsts[range.clone()].to_vec(),
            second: seconds[range].to_vec(),
        });
        Ok(state.collect())
    }

    /// Replaces all tensors. After an error of the state nothing has changed.
    pub(crate) fn restore(
        &mut self,
        tensors: &[Tensor],
        layout: &ParameterLayout,
        state: &State,
    ) -> Result<(), TrainingError> {
        let found = matched(tensors, state)?;
        let gathered = |part: fn(&StateTensor) -> &[f32]| {
            let mut all = vec![0.0; layout.len()];
            for (tensor, range) in found.iter().zip(layout.ranges()) {
                all[range.clone()].copy_from_slice(part(tensor));
            }
            all
        };
        let masters = gathered(|tensor| &tensor.master);
        self.parameters.copy_from(&rounded(&masters))?;
        self.masters.copy_from(&masters)?;
        self.firsts.copy_from(&gathered(|tensor| &tensor.first))?;
        self.seconds.copy_from(&gathered(|tensor| &tensor.second))?;
        Ok(())
    }
}

/// Returns numbers rounded to the nearest of `bf16`.
fn rounded(numbers: &[f32]) -> Vec<bf16> {
    numbers.iter().map(|number| bf16::from_f32(*number)).collect()
}

/// Returns the tensors of a state in the order of the model's, after a check that it has these and
/// no others.
fn matched<'a>(tensors: &[Tensor], state: &'a State) -> Result<Vec<&'a StateTensor>, TrainingError> {
    let mut left: std::collections::HashMap<&str, &StateTensor> = Default::default();
    for tensor in &state.tensors {
        if left.insert(&tensor.name, tensor).is_some() {
            return Err(TrainingError::ExtraTensor { name: tensor.name.clone() });
        }
    }
    let mut found = Vec::with_capacity(tensors.len());
    for wanted in tensors {
        let missing = || TrainingError::MissingTensor { name: wanted.name.clone() };
        let tensor = left.remove(wanted.name.as_str()).ok_or_else(missing)?;
        check(tensor, wanted)?;
        found.push(tensor);
    }
    match state.tensors.iter().find(|tensor| left.contains_key(tensor.name.as_str())) {
        None => Ok(found),
        Some(tensor) => Err(TrainingError::ExtraTensor { name: tensor.name.clone() }),
    }
}

/// Checks the shape of a tensor, and that all parts have it.
fn check(tensor: &StateTensor, wanted: &Tensor) -> Result<(), TrainingError> {
    let name = || wanted.name.clone();
    if tensor.shape != wanted.shape {
        let (found, wanted) = (tensor.shape.clone(), wanted.shape.clone());
        return Err(TrainingError::TensorShape { name: name(), found, wanted });
    }
    let parts = [("master", &tensor.master), ("first", &tensor.first), ("second", &tensor.second)];
    match parts.into_iter().find(|(_, numbers)| numbers.len() != wanted.len()) {
        None => Ok(()),
        Some((part, numbers)) => {
            let (found, wanted) = (numbers.len(), wanted.len());
            Err(TrainingError::TensorLength { name: name(), part, found, wanted })
        }
    }
}
