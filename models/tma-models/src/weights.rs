//! The tensors of a decoder on a device, from the names that Hugging Face gives them.

use tma_runtime::prelude::*;

use crate::ModelError;
use crate::config::{Config, Family, NormKind, Positions};
use crate::loader::{Linear, Loader, Norm};
use crate::mixture::{ExpertNames, Experts};

/// The tensors of a layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) before_attention: Norm,
    /// Queries, keys and values, one after the other.
    pub(crate) qkv: Linear,
    /// The norms of the heads of queries and keys.
    pub(crate) heads: Option<[Norm; 2]>,
    pub(crate) output: Linear,
    /// The norm of the result of attention.
    pub(crate) after_attention: Option<Norm>,
    pub(crate) before_mlp: Norm,
    pub(crate) mlp: Mlp,
    /// The norm of the MLP's result.
    pub(crate) after_mlp: Option<Norm>,
}

/// The matrices of an MLP.
#[derive(Debug)]
pub(crate) enum Mlp {
    /// One for all tokens.
    Dense {
        /// Gates, if there are any, and then the others.
        up: Linear,
        down: Linear,
    },
    /// Experts, of which each token has some.
    Experts(Experts),
}

/// All tensors of a decoder.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) embedding: DeviceTensor<bf16, 2>,
    /// A row for each position, if they are learned.
    pub(crate) positions: Option<DeviceTensor<bf16, 2>>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) last_norm: Norm,
    /// `None` if it is the table of embeddings.
    pub(crate) logits: Option<DeviceTensor<bf16, 2>>,
}

impl Weights {
    /// Loads all tensors.
    pub(crate) fn load(loader: &mut Loader<'_>, config: &Config) -> Result<Self, ModelError> {
        let names = Names::of(config.family);
        // Files of some models have the decoder's tensors without the prefix.
        let has_prefix = loader.has(&format!("{}{}", names.prefix, names.embedding));
        let prefix = if has_prefix { names.prefix } else { "" };
        let name = |rest: &str| format!("{prefix}{rest}");
        let Config { vocabulary, width, .. } = *config;
        let has_bias = config.norm == NormKind::Layer;
        Ok(Self {
            embedding: loader.matrix(&[(name(names.embedding), vocabulary)], width)?,
            positions: match config.positions {
                Positions::Learned => Some(loader.matrix(&[(name("wpe.weight"), config.context)], width)?),
                Positions::Rotary(_) => None,
            },
            layers: (0..config.layers())
                .map(|i| layer(loader, config, &names, i, &name(&format!("{}{i}.", names.layers))))
                .collect::<Result<_, _>>()?,
            last_norm: loader.norm(&name(names.last_norm), width, has_bias)?,
            logits: match config.is_tied {
                true => None,
                false => Some(loader.matrix(&[("lm_head.weight".into(), vocabulary)], width)?),
            },
        })
    }
}

/// The names of a family's tensors.
struct Names {
    prefix: &'static str,
    embedding: &'static str,
    /// The prefix of layers, which a number follows.
    layers: &'static str,
    last_norm: &'static str,
    before_attention: &'static str,
    /// Matrices of queries, keys and values, or a matrix of all three.
    qkv: &'static [&'static str],
    output: &'static str,
    after_attention: Option<&'static str>,
    before_mlp: &'static str,
    up: &'static [&'static str],
    down: &'static str,
    experts: ExpertNames,
    after_mlp: Option<&'static str>,
    /// Whether matrices are stored K × N.
    is_transposed: bool,
}

const LLAMA: Names = Names {
    prefix: "model.",
    embedding: "embed_tokens.weight",
    layers: "layers.",
    last_norm: "norm",
    before_attention: "input_layernorm",
    qkv: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    output: "self_attn.o_proj",
    after_attention: None,
    before_mlp: "post_attention_layernorm",
    up: &["mlp.gate_proj", "mlp.up_proj"],
    down: "mlp.down_proj",
    experts: ExpertNames { block: "mlp", gate_and_up: ["gate_proj", "up_proj"], down: "down_proj" },
    after_mlp: None,
    is_transposed: false,
};

impl Names {
    fn of(family: Family) -> Self {
        match family {
            Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 | Family::Qwen3Moe => LLAMA,
            Family::Mixtral => Self {
                experts: ExpertNames { block: "block_sparse_moe", gate_and_up: ["w1", "w3"], down: "w2" },
                ..LLAMA
            },
            Family::Gemma2 => Self {
                after_attention: Some("post_attention_layernorm"),
                before_mlp: "pre_feedforward_layernorm",
                after_mlp: Some("post_feedforward_layernorm"),
                ..LLAMA
            },
            Family::Gpt2 => Self {
                prefix: "transformer.",
                embedding: "wte.weight",
                layers: "h.",
                last_norm: "ln_f",
                before_attention: "ln_1",
                qkv: &["attn.c_attn"],
                output: "attn.c_proj",
                before_mlp: "ln_2",
                up: &["mlp.c_fc"],
                down: "mlp.c_proj",
                is_transposed: true,
                ..LLAMA
            },
        }
    }
}

/// Loads the layer of this index, whose tensors have this prefix.
fn layer(
    loader: &mut Loader<'_>,
    config: &Config,
    names: &Names,
    index: usize,
    prefix: &str,
) -> Result<Layer, ModelError> {
    let name = |rest: &str| format!("{prefix}{rest}");
    let [of_queries, of_keys] = [config.heads, config.key_heads].map(|heads| heads * config.depth);
    let rows = match names.qkv {
        [_] => vec![config.qkv_columns()],
        [..] => vec![of_queries, of_keys, of_keys],
    };
    let qkv: Vec<_> = names.qkv.iter().map(|rest| name(rest)).zip(rows).collect();
    let width = config.width;
    let is_transposed = names.is_transposed;
    let has_bias = config.norm == NormKind::Layer;
    let optional = |loader: &mut Loader<'_>, rest: Option<&str>| {
        rest.map(|rest| loader.norm(&name(rest), width, has_bias)).transpose()
    };
    Ok(Layer {
        before_attention: loader.norm(&name(names.before_attention), width, has_bias)?,
        qkv: loader.linear(&qkv, width, is_transposed, config.has_query_bias)?,
        heads: match config.norms_heads {
            true => Some([
                loader.norm(&name("self_attn.q_norm"), config.depth, has_bias)?,
                loader.norm(&name("self_attn.k_norm"), config.depth, has_bias)?,
            ]),
            false => None,
        },
        output: loader.linear(
            &[(name(names.output), width)],
            of_queries,
            is_transposed,
            config.has_output_bias,
        )?,
        after_attention: optional(loader, names.after_attention)?,
        before_mlp: loader.norm(&name(names.before_mlp), width, has_bias)?,
        mlp: match config.mixture_of(index) {
            Some(mixture) => Mlp::Experts(Experts::load(loader, config, mixture, names.experts, prefix)?),
            None => dense(loader, config, names, prefix)?,
        },
        after_mlp: optional(loader, names.after_mlp)?,
    })
}

/// Loads the MLP of a layer without experts.
fn dense(loader: &mut Loader<'_>, config: &Config, names: &Names, prefix: &str) -> Result<Mlp, ModelError> {
    let Config { width, mlp_width, has_mlp_bias, .. } = *config;
    let rows = config.up_columns() / names.up.len();
    let up: Vec<_> = names.up.iter().map(|rest| (format!("{prefix}{rest}"), rows)).collect();
    let down = [(format!("{prefix}{}", names.down), width)];
    Ok(Mlp::Dense {
        up: loader.linear(&up, width, names.is_transposed, has_mlp_bias)?,
        down: loader.linear(&down, mlp_width, names.is_transposed, has_mlp_bias)?,
    })
}
