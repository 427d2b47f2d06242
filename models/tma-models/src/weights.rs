//! The tensors of a decoder on a device, from the names that Hugging Face gives them.

use tma_runtime::prelude::*;

use crate::ModelError;
use crate::checkpoint::Checkpoint;
use crate::config::{Config, Family, NormKind, Positions};
use crate::noise;

/// The origin of weights.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The files of a model.
    Checkpoint(&'a Checkpoint),
    /// Noise, for measurements: the speed of a model does not depend on its weights.
    Noise,
}

/// A matrix, N × K, and a bias of N elements.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) weight: DeviceTensor<bf16, 2>,
    pub(crate) bias: Option<DeviceTensor<bf16, 1>>,
}

/// The weight and the bias of a norm.
#[derive(Debug)]
pub(crate) struct Norm {
    pub(crate) weight: DeviceTensor<bf16, 1>,
    pub(crate) bias: Option<DeviceTensor<bf16, 1>>,
}

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
    /// Gates, if there are any, and then the others.
    pub(crate) up: Linear,
    pub(crate) down: Linear,
    /// The norm of the MLP's result.
    pub(crate) after_mlp: Option<Norm>,
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
    /// Loads all tensors. `loaded` is called with the bytes that are on the device so far.
    pub(crate) fn load(
        device: &Device,
        config: &Config,
        source: Source<'_>,
        loaded: &mut dyn FnMut(u64),
    ) -> Result<Self, ModelError> {
        let mut loader = Loader { device, config, source, loaded, bytes: 0 };
        let names = Names::of(config.family);
        // Files of some models have the decoder's tensors without the prefix.
        let prefix = match source {
            Source::Checkpoint(files) if !files.has(&format!("{}{}", names.prefix, names.embedding)) => "",
            Source::Checkpoint(_) | Source::Noise => names.prefix,
        };
        let name = |rest: &str| format!("{prefix}{rest}");
        let Config { vocabulary, width, .. } = *config;
        Ok(Self {
            embedding: loader.matrix(&[(name(names.embedding), vocabulary)], width)?,
            positions: match config.positions {
                Positions::Learned => Some(loader.matrix(&[(name("wpe.weight"), config.context)], width)?),
                Positions::Rotary(_) => None,
            },
            layers: (0..config.layers())
                .map(|layer| loader.layer(&name(&format!("{}{layer}.", names.layers)), &names))
                .collect::<Result<_, _>>()?,
            last_norm: loader.norm(&name(names.last_norm), width)?,
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
    after_mlp: None,
    is_transposed: false,
};

impl Names {
    fn of(family: Family) -> Self {
        match family {
            Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 => LLAMA,
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
                after_attention: None,
                before_mlp: "ln_2",
                up: &["mlp.c_fc"],
                down: "mlp.c_proj",
                after_mlp: None,
                is_transposed: true,
            },
        }
    }
}

/// Loads tensors to a device.
struct Loader<'a> {
    device: &'a Device,
    config: &'a Config,
    source: Source<'a>,
    loaded: &'a mut dyn FnMut(u64),
    bytes: u64,
}

impl Loader<'_> {
    fn layer(&mut self, prefix: &str, names: &Names) -> Result<Layer, ModelError> {
        let config = self.config;
        let name = |rest: &str| format!("{prefix}{rest}");
        let [of_queries, of_keys] = [config.heads, config.key_heads].map(|heads| heads * config.depth);
        let rows = match names.qkv {
            [_] => vec![config.qkv_columns()],
            [..] => vec![of_queries, of_keys, of_keys],
        };
        let qkv: Vec<_> = names.qkv.iter().map(|rest| name(rest)).zip(rows).collect();
        let rows = config.up_columns() / names.up.len();
        let up: Vec<_> = names.up.iter().map(|rest| (name(rest), rows)).collect();
        let (width, mlp_width) = (config.width, config.mlp_width);
        let is_transposed = names.is_transposed;
        let optional = |loader: &mut Self, rest: Option<&str>| {
            rest.map(|rest| loader.norm(&name(rest), width)).transpose()
        };
        Ok(Layer {
            before_attention: self.norm(&name(names.before_attention), width)?,
            qkv: self.linear(&qkv, width, is_transposed, config.has_query_bias)?,
            heads: match config.norms_heads {
                true => Some([
                    self.norm(&name("self_attn.q_norm"), config.depth)?,
                    self.norm(&name("self_attn.k_norm"), config.depth)?,
                ]),
                false => None,
            },
            output: self.linear(
                &[(name(names.output), width)],
                of_queries,
                is_transposed,
                config.has_output_bias,
            )?,
            after_attention: optional(self, names.after_attention)?,
            before_mlp: self.norm(&name(names.before_mlp), width)?,
            up: self.linear(&up, width, is_transposed, config.has_mlp_bias)?,
            down: self.linear(&[(name(names.down), width)], mlp_width, is_transposed, config.has_mlp_bias)?,
            after_mlp: optional(self, names.after_mlp)?,
        })
    }

    fn norm(&mut self, name: &str, columns: usize) -> Result<Norm, ModelError> {
        Ok(Norm {
            weight: self.row(&[(format!("{name}.weight"), columns)])?,
            bias: match self.config.norm {
                NormKind::Layer => Some(self.row(&[(format!("{name}.bias"), columns)])?),
                NormKind::Rms | NormKind::RmsOnePlus => None,
            },
        })
    }

    /// Loads matrices of so many rows each as one, one after the other.
    fn linear(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
        is_transposed: bool,
        has_bias: bool,
    ) -> Result<Linear, ModelError> {
        let named =
            |end: &str| parts.iter().map(|(name, rows)| (format!("{name}.{end}"), *rows)).collect::<Vec<_>>();
        let weight = match is_transposed {
            true => self.transposed(&named("weight"), columns)?,
            false => self.matrix(&named("weight"), columns)?,
        };
        let bias = if has_bias { Some(self.row(&named("bias"))?) } else { None };
        Ok(Linear { weight, bias })
    }

    fn matrix(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
    ) -> Result<DeviceTensor<bf16, 2>, ModelError> {
        let mut host = vec![];
        for (name, rows) in parts {
            self.append(name, &[*rows, columns], &mut host)?;
        }
        let rows = parts.iter().map(|(_, rows)| rows).sum();
        self.upload(&host, [rows, columns])
    }

    /// Loads matrices that are stored columns × rows.
    fn transposed(
        &mut self,
        parts: &[(String, usize)],
        columns: usize,
    ) -> Result<DeviceTensor<bf16, 2>, ModelError> {
        let (mut stored, mut host) = (vec![], vec![]);
        for (name, rows) in parts {
            stored.clear();
            self.append(name, &[columns, *rows], &mut stored)?;
            host.extend((0..*rows).flat_map(|row| stored.iter().skip(row).step_by(*rows)));
        }
        let rows = parts.iter().map(|(_, rows)| rows).sum();
        self.upload(&host, [rows, columns])
    }

    fn row(&mut self, parts: &[(String, usize)]) -> Result<DeviceTensor<bf16, 1>, ModelError> {
        let mut host = vec![];
        for (name, columns) in parts {
            self.append(name, &[*columns], &mut host)?;
        }
        self.upload(&host, [host.len()])
    }

    fn append(&self, name: &str, shape: &[usize], to: &mut Vec<bf16>) -> Result<(), ModelError> {
        match self.source {
            Source::Checkpoint(files) => files.append(name, shape, to),
            Source::Noise => {
                noise::append(name, shape, to);
                Ok(())
            }
        }
    }

    fn upload<const N: usize>(
        &mut self,
        host: &[bf16],
        shape: [usize; N],
    ) -> Result<DeviceTensor<bf16, N>, ModelError> {
        let tensor = self.device.tensor(host, shape)?;
        self.bytes += tensor.bytes();
        (self.loaded)(self.bytes);
        Ok(tensor)
    }
}
