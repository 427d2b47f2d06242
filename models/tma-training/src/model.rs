//! The tensors of a decoder: names of Hugging Face, shapes, initial values, and which of them are
//! used as one matrix.

use std::ops::Range;

use tma_models::config::{Config, Family, NormKind, Positions};

/// The standard deviation of initial weights.
const DEVIATION: f32 = 0.02;

/// The values that a tensor begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Init {
    Ones,
    Zeros,
    Normal { deviation: f32 },
}

/// A tensor of parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) init: Init,
}

impl Tensor {
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

/// Tensors, by their index, that follow each other in memory and are used as one matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) tensors: Range<usize>,
    /// Rows and columns.
    pub(crate) shape: [usize; 2],
}

/// The order in which a linear layer's matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Outputs × inputs, as `torch.nn.Linear` has it.
    OutputsFirst,
    /// Inputs × outputs, as `Conv1D` of GPT-2 has it.
    InputsFirst,
}

/// A linear layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Linear {
    pub(crate) weight: Matrix,
    pub(crate) stored: Stored,
    /// The biases of the joined matrices, contiguous in memory.
    pub(crate) bias: Option<Range<usize>>,
}

/// The tensors of a norm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Norm {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Option<Range<usize>>,
}

/// The tensors of a layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    pub(crate) before_attention: Norm,
    /// Queries, keys and values.
    pub(crate) qkv: Linear,
    pub(crate) output: Linear,
    pub(crate) before_mlp: Norm,
    /// Gates, if there are any, and the others.
    pub(crate) up: Linear,
    pub(crate) down: Linear,
}

/// All tensors of a decoder, in the order of memory, and their uses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) embedding: Matrix,
    /// A row for each position, if they are learned.
    pub(crate) positions: Option<Matrix>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) last_norm: Norm,
    /// The matrix of logits, which may be that of embeddings.
    pub(crate) head: Matrix,
}

impl Model {
    pub(crate) fn of(config: &Config) -> Self {
        let names = Names::of(config.family);
        let Config { vocabulary, width, .. } = *config;
        let mut builder = Builder { config, names, tensors: vec![] };
        let normal = Init::Normal { deviation: DEVIATION };
        let embedding = builder.matrix(&[(names.embedding.into(), [vocabulary, width])], normal);
        let positions = match config.positions {
            Positions::Learned => {
                Some(builder.matrix(&[("transformer.wpe.weight".into(), [config.context, width])], normal))
            }
            Positions::Rotary(_) => None,
        };
        let layers = (0..config.layers()).map(|index| builder.layer(index)).collect();
        let last_norm = builder.norm(names.last_norm);
        let head = match config.is_tied {
            true => embedding.clone(),
            false => builder.matrix(&[("lm_head.weight".into(), [vocabulary, width])], normal),
        };
        Self { tensors: builder.tensors, embedding, positions, layers, last_norm, head }
    }

    /// Returns the numbers of all tensors.
    pub(crate) fn parameters(&self) -> usize {
        self.tensors.iter().map(Tensor::len).sum()
    }

    /// Returns the numbers that a token is multiplied by: all but tables in which rows are only
    /// looked up.
    pub(crate) fn multiplied(&self) -> usize {
        let looked_up = if self.head == self.embedding { None } else { Some(&self.embedding) };
        let tables = looked_up.into_iter().chain(&self.positions);
        self.parameters() - tables.map(|table| table.shape.iter().product::<usize>()).sum::<usize>()
    }
}

/// The names of a family's tensors.
#[derive(Clone, Copy)]
struct Names {
    embedding: &'static str,
    /// The prefix of layers, which a number follows.
    layers: &'static str,
    last_norm: &'static str,
    before_attention: &'static str,
    /// Matrices of queries, keys and values, or a matrix of all three.
    qkv: &'static [&'static str],
    output: &'static str,
    before_mlp: &'static str,
    up: &'static [&'static str],
    down: &'static str,
    stored: Stored,
}

const LLAMA: Names = Names {
    embedding: "model.embed_tokens.weight",
    layers: "model.layers.",
    last_norm: "model.norm",
    before_attention: "input_layernorm",
    qkv: &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    output: "self_attn.o_proj",
    before_mlp: "post_attention_layernorm",
    up: &["mlp.gate_proj", "mlp.up_proj"],
    down: "mlp.down_proj",
    stored: Stored::OutputsFirst,
};

const GPT2: Names = Names {
    embedding: "transformer.wte.weight",
    layers: "transformer.h.",
    last_norm: "transformer.ln_f",
    before_attention: "ln_1",
    qkv: &["attn.c_attn"],
    output: "attn.c_proj",
    before_mlp: "ln_2",
    up: &["mlp.c_fc"],
    down: "mlp.c_proj",
    stored: Stored::InputsFirst,
};

impl Names {
    fn of(family: Family) -> Self {
        match family {
            Family::Gpt2 => GPT2,
            Family::Llama
            | Family::Mistral
            | Family::Mixtral
            | Family::Qwen2
            | Family::Qwen3
            | Family::Qwen3Moe
            | Family::Gemma2 => LLAMA,
        }
    }
}

/// A linear layer before its tensors are added.
struct NewLinear<'a> {
    names: &'a [&'static str],
    /// The outputs of each of these.
    outputs: Vec<usize>,
    inputs: usize,
    has_bias: bool,
    deviation: f32,
}

/// Adds tensors, in the order of memory.
struct Builder<'a> {
    config: &'a Config,
    names: Names,
    tensors: Vec<Tensor>,
}

impl Builder<'_> {
    /// Appends tensors and returns their indices.
    fn add(&mut self, parts: impl IntoIterator<Item = (String, Vec<usize>)>, init: Init) -> Range<usize> {
        let first = self.tensors.len();
        self.tensors.extend(parts.into_iter().map(|(name, shape)| Tensor { name, shape, init }));
        first..self.tensors.len()
    }

    /// Adds matrices that have the same columns, and are used as one.
    fn matrix(&mut self, parts: &[(String, [usize; 2])], init: Init) -> Matrix {
        let rows = parts.iter().map(|(_, [rows, _])| rows).sum();
        let columns = parts.first().map_or(0, |(_, [_, columns])| *columns);
        let tensors = self.add(parts.iter().map(|(name, shape)| (name.clone(), shape.to_vec())), init);
        Matrix { tensors, shape: [rows, columns] }
    }

    fn norm(&mut self, name: &str) -> Norm {
        let shape = vec![self.config.width];
        let weight = self.add([(format!("{name}.weight"), shape.clone())], Init::Ones);
        let bias = match self.config.norm {
            NormKind::Layer => Some(self.add([(format!("{name}.bias"), shape)], Init::Zeros)),
            NormKind::Rms | NormKind::RmsOnePlus => None,
        };
        Norm { weight, bias }
    }

    fn linear(&mut self, prefix: &str, new: NewLinear<'_>) -> Linear {
        let NewLinear { names, outputs, inputs, has_bias, deviation } = new;
        let stored = self.names.stored;
        let named = |end: &str| names.iter().map(|name| format!("{prefix}{name}.{end}")).collect::<Vec<_>>();
        let shape_of = |&outputs: &usize| match stored {
            Stored::OutputsFirst => [outputs, inputs],
            Stored::InputsFirst => [inputs, outputs],
        };
        let parts: Vec<_> = named("weight").into_iter().zip(outputs.iter().map(shape_of)).collect();
        let weight = self.matrix(&parts, Init::Normal { deviation });
        let of_bias = named("bias").into_iter().zip(outputs.iter().map(|outputs| vec![*outputs]));
        let bias = has_bias.then(|| self.add(of_bias, Init::Zeros));
        Linear { weight, stored, bias }
    }

    fn layer(&mut self, index: usize) -> Layer {
        let (config, names) = (self.config, self.names);
        let prefix = format!("{}{index}.", names.layers);
        let [query_columns, key_columns] = [config.heads, config.key_heads].map(|heads| heads * config.depth);
        let qkv = match names.qkv {
            [_] => vec![config.qkv_columns()],
            [..] => vec![query_columns, key_columns, key_columns],
        };
        let (inputs, deviation) = (config.width, DEVIATION);
        // Each layer adds two results to the residual.
        let result_deviation = DEVIATION / ((2 * config.layers()) as f32).sqrt();
        let result = |name, inputs, has_bias| NewLinear {
            names: std::slice::from_ref(name),
            outputs: vec![config.width],
            inputs,
            has_bias,
            deviation: result_deviation,
        };
        let up = vec![config.mlp_width; names.up.len()];
        Layer {
            before_attention: self.norm(&format!("{prefix}{}", names.before_attention)),
            qkv: self.linear(
                &prefix,
                NewLinear {
                    names: names.qkv,
                    outputs: qkv,
                    inputs,
                    has_bias: config.has_query_bias,
                    deviation,
                },
            ),
            output: self.linear(&prefix, result(&names.output, query_columns, config.has_output_bias)),
            before_mlp: self.norm(&format!("{prefix}{}", names.before_mlp)),
            up: self.linear(
                &prefix,
                NewLinear { names: names.up, outputs: up, inputs, has_bias: config.has_mlp_bias, deviation },
            ),
            down: self.linear(&prefix, result(&names.down, config.mlp_width, config.has_mlp_bias)),
        }
    }
}
