//! The state of training: what is kept to continue later, or elsewhere.

use std::collections::HashMap;

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

    /// Makes parameters and moments with the values of a state.
    pub(crate) fn from_state(
        device: &Device,
        tensors: &[Tensor],
        layout: &ParameterLayout,
        state: &State,
    ) -> Result<Self, TrainingError> {
        let matched = matched(tensors, state)?;
        let masters = gathered(layout, &matched, |tensor| &tensor.master);
        let mut weights = Self::new(device, layout, &masters)?;
        drop(masters);
        weights.firsts.copy_from(&gathered(layout, &matched, |tensor| &tensor.first))?;
        weights.seconds.copy_from(&gathered(layout, &matched, |tensor| &tensor.second))?;
        Ok(weights)
    }

    /// Copies all tensors to the host.
    pub(crate) fn tensors(
        &self,
        tensors: &[Tensor],
        layout: &ParameterLayout,
    ) -> Result<Vec<StateTensor>, TrainingError> {
        let mut state: Vec<StateTensor> = tensors.iter().map(StateTensor::without_values).collect();
        // One array after the other, of which a copy is on the host.
        let mut copy = |all: &DeviceTensor<f32, 1>, part: fn(&mut StateTensor) -> &mut Vec<f32>| {
            let all = all.to_vec()?;
            for (tensor, range) in state.iter_mut().zip(layout.ranges()) {
                *part(tensor) = all[range.clone()].to_vec();
            }
            Ok::<_, TrainingError>(())
        };
        copy(&self.masters, |tensor| &mut tensor.master)?;
        copy(&self.firsts, |tensor| &mut tensor.first)?;
        copy(&self.seconds, |tensor| &mut tensor.second)?;
        Ok(state)
    }

    /// Replaces all tensors. After an error of the state nothing has changed.
    pub(crate) fn restore(
        &mut self,
        tensors: &[Tensor],
        layout: &ParameterLayout,
        state: &State,
    ) -> Result<(), TrainingError> {
        let matched = matched(tensors, state)?;
        let masters = gathered(layout, &matched, |tensor| &tensor.master);
        self.parameters.copy_from(&rounded(&masters))?;
        self.masters.copy_from(&masters)?;
        drop(masters);
        self.firsts.copy_from(&gathered(layout, &matched, |tensor| &tensor.first))?;
        self.seconds.copy_from(&gathered(layout, &matched, |tensor| &tensor.second))?;
        Ok(())
    }
}

impl StateTensor {
    fn without_values(tensor: &Tensor) -> Self {
        let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
        Self { name, shape, master: vec![], first: vec![], second: vec![] }
    }
}

/// Returns a part of all tensors in the order of the layout.
fn gathered(
    layout: &ParameterLayout,
    tensors: &[&StateTensor],
    part: fn(&StateTensor) -> &[f32],
) -> Vec<f32> {
    let mut all = vec![0.0; layout.len()];
    for (tensor, range) in tensors.iter().zip(layout.ranges()) {
        all[range.clone()].copy_from_slice(part(tensor));
    }
    all
}

/// Returns numbers rounded to the nearest of `bf16`.
fn rounded(numbers: &[f32]) -> Vec<bf16> {
    numbers.iter().map(|number| bf16::from_f32(*number)).collect()
}

/// Returns the tensors of a state in the order of the model's, after a check that it has these and
/// no others.
fn matched<'a>(tensors: &[Tensor], state: &'a State) -> Result<Vec<&'a StateTensor>, TrainingError> {
    let mut remaining: HashMap<&str, &StateTensor> = HashMap::new();
    for tensor in &state.tensors {
        if remaining.insert(&tensor.name, tensor).is_some() {
            return Err(TrainingError::DuplicateTensor { name: tensor.name.clone() });
        }
    }
    let mut matched = Vec::with_capacity(tensors.len());
    for wanted in tensors {
        let missing = || TrainingError::MissingTensor { name: wanted.name.clone() };
        let tensor = remaining.remove(wanted.name.as_str()).ok_or_else(missing)?;
        check(tensor, wanted)?;
        matched.push(tensor);
    }
    match state.tensors.iter().find(|tensor| remaining.contains_key(tensor.name.as_str())) {
        None => Ok(matched),
        Some(tensor) => Err(TrainingError::UnknownTensor { name: tensor.name.clone() }),
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
