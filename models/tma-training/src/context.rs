//! The context that all passes read, and the division of rows.

use tma_kernels::cached::RotaryLayout;
use tma_kernels::model::{Gate, RotaryAngles};
use tma_kernels::optimizer::ParameterLayout;
use tma_models::config::{Activation, Config};
use tma_models::heads::Heads;
use tma_runtime::prelude::*;

use crate::model::Model;
use crate::options::TrainingOptions;
use crate::views::Qkv;

/// A model, its parameters, and the options of training.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    pub(crate) options: &'a TrainingOptions,
    pub(crate) model: &'a Model,
    pub(crate) layout: &'a ParameterLayout,
    pub(crate) parameters: &'a DeviceTensor<bf16, 1>,
    /// Whether gradients are added to those of the micro-batches before. The first one overwrites
    /// all that it alone writes.
    pub(crate) accumulate: bool,
}

/// Returns the heads of queries, keys and values in a row.
pub(crate) fn qkv_of(context: &Context<'_>) -> Qkv {
    let Config { heads, key_heads, depth, .. } = *context.config;
    let (sequences, tokens) = (context.options.sequences, context.options.length);
    let at = |first, count| Heads { sequences, tokens, first, count, depth };
    Qkv { queries: at(0, heads), keys: at(heads, key_heads), values: at(heads + key_heads, key_heads) }
}

/// Returns the heads of a row that has as many as there are queries, and nothing else.
pub(crate) fn heads_of(context: &Context<'_>) -> Heads {
    qkv_of(context).queries
}

/// Returns the angles of positions, from cosines and sines.
pub(crate) fn rotary_angles(tables: &[DeviceTensor<f32, 2>; 2]) -> RotaryAngles<'_> {
    let [cos, sin] = tables;
    RotaryAngles { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves }
}

/// The function of an MLP.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MlpActivation {
    /// The function of the gates, which the other columns are multiplied by.
    Gated(Gate),
    /// The function of all columns.
    Plain(Gate),
}

/// Returns the function of a model's MLPs.
pub(crate) fn mlp_activation(config: &Config) -> MlpActivation {
    match config.activation {
        Activation::GatedSilu => MlpActivation::Gated(Gate::Silu),
        Activation::GatedGeluTanh => MlpActivation::Gated(Gate::GeluTanh),
        Activation::GeluTanh => MlpActivation::Plain(Gate::GeluTanh),
    }
}
