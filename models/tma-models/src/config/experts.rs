//! Configurations of mixtures of experts.

use serde::Deserialize;

use super::{Config, Family, bounded, setting};
use crate::ModelError;

/// The experts that replace the MLP of some layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixture {
    /// Experts of a layer.
    pub experts: usize,
    /// Experts of a token.
    pub choices: usize,
    /// Elements between the matrices of an expert.
    pub width: usize,
    /// Whether the weights of a token's experts have the sum 1.
    pub normalise: bool,
    /// For each layer, whether it has experts.
    pub layers: Vec<bool>,
}

/// The settings of experts. Mixtral has them under other names.
#[derive(Deserialize)]
pub(super) struct ExpertSettings {
    intermediate_size: usize,
    num_experts: Option<usize>,
    num_local_experts: Option<usize>,
    num_experts_per_tok: usize,
    moe_intermediate_size: Option<usize>,
    norm_topk_prob: Option<bool>,
    decoder_sparse_step: Option<usize>,
    mlp_only_layers: Option<Vec<usize>>,
    shared_expert_intermediate_size: Option<usize>,
}

/// Returns a model's configuration with its experts.
pub(super) fn with_experts(config: Config, found: &ExpertSettings) -> Result<Config, ModelError> {
    let is_mixtral = config.family == Family::Mixtral;
    let (width_name, width) = match is_mixtral {
        true => ("intermediate_size", Some(found.intermediate_size)),
        false => ("moe_intermediate_size", found.moe_intermediate_size),
    };
    let required =
        |name: &'static str, value: Option<usize>| value.ok_or_else(|| setting(name, "nothing", "a number"));
    let width = required(width_name, width)?;
    let experts_name = if is_mixtral { "num_local_experts" } else { "num_experts" };
    let experts = required(experts_name, found.num_experts.or(found.num_local_experts))?;
    let choices = found.num_experts_per_tok;
    let step = found.decoder_sparse_step.unwrap_or(1);
    bounded(("num_hidden_layers", config.layers()), &[(width_name, width)])?;
    let rules = [
        (experts_name, (1..=512).contains(&experts), experts, "1 to 512"),
        (
            "num_experts_per_tok",
            (1..=experts.min(16)).contains(&choices),
            choices,
            "1 to 16, and no more than there are experts",
        ),
        (width_name, width > 0 && width.is_multiple_of(8), width, "a multiple of 8"),
        ("decoder_sparse_step", step > 0, step, "at least 1"),
        (
            "shared_expert_intermediate_size",
            found.shared_expert_intermediate_size.is_none_or(|width| width == 0),
            found.shared_expert_intermediate_size.unwrap_or(0),
            "no expert that all tokens share",
        ),
    ];
    if let Some((name, _, found, wanted)) = rules.into_iter().find(|(_, holds, ..)| !holds) {
        return Err(setting(name, found.to_string(), wanted));
    }
    let is_plain = |layer: &usize| found.mlp_only_layers.as_ref().is_some_and(|all| all.contains(layer));
    let layers = (0..config.layers()).map(|layer| !is_plain(&layer) && (layer + 1).is_multiple_of(step));
    let mixture = Mixture {
        experts,
        choices,
        width,
        normalise: found.norm_topk_prob.unwrap_or(is_mixtral),
        layers: layers.collect(),
    };
    Ok(Config { mixture: Some(mixture), ..config })
}
