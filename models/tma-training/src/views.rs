//! Views of parameters within the tensor of all of them, and of heads within rows.

#![allow(clippy::single_range_in_vec_init, reason = "views of one dimension are sliced by one range")]

use std::ops::Range;

use tma_kernels::optimizer::ParameterLayout;
use tma_models::heads::Heads;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::model::Matrix;

/// Returns the elements of tensors that follow each other without a gap.
fn elements(layout: &ParameterLayout, tensors: &Range<usize>) -> Range<usize> {
    let ranges = &layout.ranges()[tensors.clone()];
    let start = ranges.first().map_or(0, |range| range.start);
    start..ranges.last().map_or(start, |range| range.end)
}

/// Returns the elements of a matrix, after a check that its tensors have no gap between them.
fn elements_of(layout: &ParameterLayout, matrix: &Matrix) -> Result<Range<usize>, TrainingError> {
    let elements = elements(layout, &matrix.tensors);
    let (found, wanted) = (elements.len(), matrix.shape[0] * matrix.shape[1]);
    if found == wanted { Ok(elements) } else { Err(TrainingError::Layout { found, wanted }) }
}

/// Returns a matrix.
pub(crate) fn matrix<'a, T: Scalar>(
    all: &'a DeviceTensor<T, 1>,
    layout: &ParameterLayout,
    matrix: &Matrix,
) -> Result<TensorView<'a, T, 2>, TrainingError> {
    let elements = elements_of(layout, matrix)?;
    Ok(all.view().slice([elements])?.with_strides(matrix.shape, [matrix.shape[1], 1])?)
}

/// Returns a matrix, to be written.
pub(crate) fn matrix_mut<'a, T: Scalar>(
    all: &'a mut DeviceTensor<T, 1>,
    layout: &ParameterLayout,
    matrix: &Matrix,
) -> Result<TensorViewMut<'a, T, 2>, TrainingError> {
    let elements = elements_of(layout, matrix)?;
    Ok(all.view_mut().slice([elements])?.with_strides(matrix.shape, [matrix.shape[1], 1])?)
}

/// Returns a vector.
pub(crate) fn vector<'a, T: Scalar>(
    all: &'a DeviceTensor<T, 1>,
    layout: &ParameterLayout,
    tensors: &Range<usize>,
) -> Result<TensorView<'a, T, 1>, TrainingError> {
    Ok(all.view().slice([elements(layout, tensors)])?)
}

/// Returns a vector, to be written.
pub(crate) fn vector_mut<'a, T: Scalar>(
    all: &'a mut DeviceTensor<T, 1>,
    layout: &ParameterLayout,
    tensors: &Range<usize>,
) -> Result<TensorViewMut<'a, T, 1>, TrainingError> {
    Ok(all.view_mut().slice([elements(layout, tensors)])?)
}

/// Returns two vectors, of which the second follows the first in memory, to be written by one
/// launch.
pub(crate) fn vectors_mut<'a, T: Scalar>(
    all: &'a mut DeviceTensor<T, 1>,
    layout: &ParameterLayout,
    first: &Range<usize>,
    second: &Range<usize>,
) -> Result<[TensorViewMut<'a, T, 1>; 2], TrainingError> {
    let [first, second] = [elements(layout, first), elements(layout, second)];
    let split = second.start;
    let [before, after] = all.view_mut().split_at(0, split)?;
    Ok([before.slice([first])?, after.slice([0..second.len()])?])
}

/// The heads of queries, keys and values within rows of all three.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qkv {
    pub(crate) queries: Heads,
    pub(crate) keys: Heads,
    pub(crate) values: Heads,
}

impl Qkv {
    /// Returns all three, each to be written.
    pub(crate) fn views_mut(
        self,
        rows: &mut DeviceTensor<bf16, 2>,
    ) -> Result<[TensorViewMut<'_, bf16, 4>; 3], TrainingError> {
        // `split_at` does not do: the gradient of attention takes each view as flat memory, gaps
        // included.
        // SAFETY: all three are passed to one launch of that gradient. The columns of queries, keys
        // and values follow each other, so that it writes each element through one of the views.
        let [q, others] = unsafe { rows.view_mut().alias() };
        // SAFETY: as above.
        let [k, v] = unsafe { others.alias() };
        Ok([self.queries.view_mut(q)?, self.keys.view_mut(k)?, self.values.view_mut(v)?])
    }

    /// Returns the heads of queries and keys together.
    pub(crate) fn rotated(self) -> Heads {
        Heads { count: self.queries.count + self.keys.count, ..self.queries }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tma_kernels::optimizer::Parameter;
    use tma_models::config::Config;

    use super::*;
    use crate::model::{Linear, Model, Tensor};

    /// Matrices that are used as one follow each other without a gap, whatever their extents.
    #[test]
    fn joined_tensors_have_no_gaps() {
        let config = Config::from_json(json!({
            "model_type": "llama", "vocab_size": 33, "hidden_size": 72, "intermediate_size": 200,
            "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 64,
            "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "attention_bias": true,
        }));
        let model = Model::of(&config.unwrap());
        let parameters: Vec<_> = model.tensors.iter().map(Tensor::len).map(Parameter::new).collect();
        let layout = ParameterLayout::new(&Device::simulator(), &parameters).unwrap();
        for layer in &model.layers {
            for Linear { weight, bias, stored: _ } in [&layer.qkv, &layer.output, &layer.up, &layer.down] {
                let [outputs, inputs] = weight.shape;
                assert_eq!(elements(&layout, &weight.tensors).len(), outputs * inputs);
                assert!(bias.as_ref().is_none_or(|bias| elements(&layout, bias).len() == outputs));
            }
            let gap = Matrix { shape: [5 * 64, 71], ..layer.qkv.weight.clone() };
            let message = elements_of(&layout, &gap).unwrap_err().to_string();
            assert!(message.contains("a matrix of 22720 elements has 23040"), "{message}");
            assert_eq!(layer.qkv.weight.shape, [5 * 64, 72]);
            assert_eq!(layer.qkv.bias, Some(layer.qkv.weight.tensors.end..layer.qkv.weight.tensors.end + 3));
        }
    }
}
