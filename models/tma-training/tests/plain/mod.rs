//! The same models in `f64`, with gradients written by hand, and AdamW.

pub(crate) mod parts;

use std::collections::BTreeMap;

use tma_models::config::{Config, Positions};
use tma_runtime::prelude::bf16;
use tma_training::{State, TrainingOptions};

use parts::{Heads, Scale, Weight};

/// Numbers of tensors by name.
pub(crate) type Tensors = BTreeMap<String, Vec<f64>>;

/// The names of a layer's tensors, without their ends.
struct Names {
    norms: [String; 2],
    qkv: Vec<(String, usize)>,
    output: String,
    up: Vec<(String, usize)>,
    down: String,
}

/// A model, and its parameters as it computes with them.
pub(crate) struct Plain<'a> {
    pub(crate) config: &'a Config,
    pub(crate) parameters: Tensors,
    pub(crate) smoothing: f64,
    pub(crate) z_loss: f64,
}

/// The results of a layer that its gradients need.
struct Kept {
    x: Vec<f64>,
    normed: Vec<f64>,
    qkv: [Vec<f64>; 3],
    attended: Vec<f64>,
    middle: Vec<f64>,
    normed_middle: Vec<f64>,
    up: Vec<f64>,
    activated: Vec<f64>,
}

impl Plain<'_> {
    fn is_gpt2(&self) -> bool {
        !self.config.activation.is_gated()
    }

    fn name(&self, llama: &str, gpt2: &str) -> String {
        if self.is_gpt2() { gpt2.into() } else { llama.into() }
    }

    fn names(&self, layer: usize) -> Names {
        let Config { heads, key_heads, depth, mlp_width, .. } = *self.config;
        let (all, keys) = (heads * depth, key_heads * depth);
        let gpt2 = |rest: &str| format!("transformer.h.{layer}.{rest}");
        let llama = |rest: &str| format!("model.layers.{layer}.{rest}");
        match self.is_gpt2() {
            true => Names {
                norms: [gpt2("ln_1"), gpt2("ln_2")],
                qkv: vec![(gpt2("attn.c_attn"), all + 2 * keys)],
                output: gpt2("attn.c_proj"),
                up: vec![(gpt2("mlp.c_fc"), mlp_width)],
                down: gpt2("mlp.c_proj"),
            },
            false => Names {
                norms: [llama("input_layernorm"), llama("post_attention_layernorm")],
                qkv: vec![
                    (llama("self_attn.q_proj"), all),
                    (llama("self_attn.k_proj"), keys),
                    (llama("self_attn.v_proj"), keys),
                ],
                output: llama("self_attn.o_proj"),
                up: vec![(llama("mlp.gate_proj"), mlp_width), (llama("mlp.up_proj"), mlp_width)],
                down: llama("mlp.down_proj"),
            },
        }
    }

    fn head(&self) -> String {
        let embedding = self.name("model.embed_tokens.weight", "transformer.wte.weight");
        if self.config.is_tied { embedding } else { "lm_head.weight".into() }
    }

    fn scale(&self, name: &str) -> Scale<'_> {
        Scale {
            weight: &self.parameters[&format!("{name}.weight")],
            bias: self.parameters.get(&format!("{name}.bias")).map(|bias| &bias[..]),
            epsilon: f64::from(self.config.epsilon),
        }
    }

    fn weight(&self, name: &str, outputs: usize) -> Weight<'_> {
        let numbers = &self.parameters[&format!("{name}.weight")][..];
        Weight { numbers, inputs: numbers.len() / outputs, outputs, inputs_first: self.is_gpt2() }
    }

    fn linear(&self, x: &[f64], parts: &[(String, usize)]) -> Vec<f64> {
        let parts: Vec<_> = parts
            .iter()
            .map(|(name, outputs)| {
                let bias = self.parameters.get(&format!("{name}.bias")).map(|bias| &bias[..]);
                (parts::linear(x, self.weight(name, *outputs), bias), *outputs)
            })
            .collect();
        let rows = parts[0].0.len() / parts[0].1;
        let row = |row: usize| {
            parts.iter().flat_map(move |(part, columns)| part[row * columns..][..*columns].to_vec())
        };
        (0..rows).flat_map(row).collect()
    }

    fn linear_backward(
        &self,
        x: &[f64],
        dy: &[f64],
        parts: &[(String, usize)],
        all: &mut Tensors,
    ) -> Vec<f64> {
        let columns: usize = parts.iter().map(|(_, outputs)| outputs).sum();
        let (mut dx, mut first) = (vec![0.0; x.len()], 0);
        for (name, outputs) in parts {
            let dy: Vec<f64> = columns_of(dy, columns, first..first + outputs);
            let mut bias = all.remove(&format!("{name}.bias"));
            let weight = all.get_mut(&format!("{name}.weight")).unwrap();
            let of_part =
                parts::linear_backward(x, &dy, self.weight(name, *outputs), weight, bias.as_deref_mut());
            if let Some(bias) = bias {
                all.insert(format!("{name}.bias"), bias);
            }
            add(&mut dx, &of_part);
            first += outputs;
        }
        dx
    }

    fn norm_backward(&self, x: &[f64], dy: &[f64], name: &str, all: &mut Tensors) -> Vec<f64> {
        let mut bias = all.remove(&format!("{name}.bias"));
        let weight = all.get_mut(&format!("{name}.weight")).unwrap();
        let dx = parts::norm_backward(x, dy, self.scale(name), weight, bias.as_deref_mut());
        if let Some(bias) = bias {
            all.insert(format!("{name}.bias"), bias);
        }
        dx
    }

    fn heads(&self) -> Heads {
        let Config { heads, key_heads, depth, score_scale, .. } = *self.config;
        Heads { queries: heads, keys: key_heads, depth, scale: f64::from(score_scale) }
    }

    fn rotate(&self, rows: &mut [f64], heads: usize, is_back: bool) {
        if let Positions::Rotary(settings) = &self.config.positions {
            let depth = self.config.depth;
            parts::rotate(rows, heads * depth, depth, settings.base, is_back);
        }
    }

    fn layer(&self, x: &[f64], layer: usize) -> (Kept, Vec<f64>) {
        let Config { width, heads, key_heads, depth, mlp_width, .. } = *self.config;
        let names = self.names(layer);
        let normed = parts::norm(x, self.scale(&names.norms[0]));
        let rows = self.linear(&normed, &names.qkv);
        let (all, keys) = (heads * depth, key_heads * depth);
        let part = |first, count| columns_of(&rows, all + 2 * keys, first..first + count);
        let [mut q, mut k, v] = [part(0, all), part(all, keys), part(all + keys, keys)];
        self.rotate(&mut q, heads, false);
        self.rotate(&mut k, key_heads, false);
        let attended = parts::attention([&q, &k, &v], self.heads());
        let mut middle = self.linear(&attended, &[(names.output, width)]);
        add(&mut middle, x);
        let normed_middle = parts::norm(&middle, self.scale(&names.norms[1]));
        let up = self.linear(&normed_middle, &names.up);
        let activated = match self.is_gpt2() {
            true => up.iter().map(|x| parts::gelu(*x).0).collect(),
            false => up
                .chunks(2 * mlp_width)
                .flat_map(|row| (0..mlp_width).map(|i| parts::silu(row[i]).0 * row[mlp_width + i]))
                .collect::<Vec<_>>(),
        };
        let mut out = self.linear(&activated, &[(names.down, width)]);
        add(&mut out, &middle);
        (Kept { x: x.into(), normed, qkv: [q, k, v], attended, middle, normed_middle, up, activated }, out)
    }

    fn layer_backward(&self, kept: &Kept, mut dy: Vec<f64>, layer: usize, all: &mut Tensors) -> Vec<f64> {
        let Config { width, heads, key_heads, depth, mlp_width, .. } = *self.config;
        let names = self.names(layer);
        let dactivated = self.linear_backward(&kept.activated, &dy, &[(names.down, width)], all);
        let mut dup = vec![];
        match self.is_gpt2() {
            true => dup.extend(kept.up.iter().zip(&dactivated).map(|(x, dy)| parts::gelu(*x).1 * dy)),
            false => {
                for (row, dy) in kept.up.chunks(2 * mlp_width).zip(dactivated.chunks(mlp_width)) {
                    dup.extend((0..mlp_width).map(|i| parts::silu(row[i]).1 * row[mlp_width + i] * dy[i]));
                    dup.extend((0..mlp_width).map(|i| parts::silu(row[i]).0 * dy[i]));
                }
            }
        }
        let dnormed = self.linear_backward(&kept.normed_middle, &dup, &names.up, all);
        add(&mut dy, &self.norm_backward(&kept.middle, &dnormed, &names.norms[1], all));
        let d_o = self.linear_backward(&kept.attended, &dy, &[(names.output, width)], all);
        let [q, k, v] = &kept.qkv;
        let [mut dq, mut dk, dv] = parts::attention_backward([q, k, v], &d_o, self.heads());
        self.rotate(&mut dq, heads, true);
        self.rotate(&mut dk, key_heads, true);
        let parts = [(dq, heads * depth), (dk, key_heads * depth), (dv, key_heads * depth)];
        let row = |row: usize| {
            parts.iter().flat_map(move |(part, columns)| part[row * columns..][..*columns].to_vec())
        };
        let dqkv: Vec<f64> = (0..kept.x.len() / width).flat_map(row).collect();
        let dnormed = self.linear_backward(&kept.normed, &dqkv, &names.qkv, all);
        add(&mut dy, &self.norm_backward(&kept.x, &dnormed, &names.norms[0], all));
        dy
    }

    /// Returns the mean loss of rows of tokens, each with a label more, and the gradients of all
    /// parameters.
    pub(crate) fn gradients(&self, rows: &[&[u32]]) -> (f64, Tensors) {
        let mut all: Tensors =
            self.parameters.iter().map(|(name, numbers)| (name.clone(), vec![0.0; numbers.len()])).collect();
        let count = rows.iter().map(|row| row.len() - 1).sum::<usize>() as f64;
        let loss = rows.iter().map(|row| self.add_gradients(row, count, &mut all)).sum::<f64>();
        (loss / count, all)
    }

    /// Returns the sum of the losses of a sequence, and adds the gradients of their mean.
    fn add_gradients(&self, tokens: &[u32], count: f64, all: &mut Tensors) -> f64 {
        let Config { width, vocabulary, .. } = *self.config;
        let (tokens, labels) = (&tokens[..tokens.len() - 1], &tokens[1..]);
        let embedding = self.name("model.embed_tokens.weight", "transformer.wte.weight");
        let table = &self.parameters[&embedding];
        let mut x: Vec<f64> =
            tokens.iter().flat_map(|&token| table[token as usize * width..][..width].to_vec()).collect();
        if self.is_gpt2() {
            let positions = &self.parameters["transformer.wpe.weight"][..x.len()];
            add(&mut x, positions);
        }
        let mut kept = vec![];
        for layer in 0..self.config.layers() {
            let (of_layer, out) = self.layer(&x, layer);
            kept.push(of_layer);
            x = out;
        }
        let last_norm = self.name("model.norm", "transformer.ln_f");
        let normed = parts::norm(&x, self.scale(&last_norm));
        let head_name = self.head();
        let numbers = &self.parameters[&head_name];
        let head = Weight { numbers, inputs: width, outputs: vocabulary, inputs_first: false };
        let logits = parts::linear(&normed, head, None);
        let (mut loss, mut dlogits) = (0.0, vec![]);
        for (row, label) in logits.chunks(vocabulary).zip(labels) {
            let (of_row, gradient) = parts::cross_entropy(row, *label, self.smoothing, self.z_loss);
            loss += of_row;
            dlogits.extend(gradient.into_iter().map(|x| x / count));
        }
        let dnormed = parts::linear_backward(&normed, &dlogits, head, all.get_mut(&head_name).unwrap(), None);
        let mut dx = self.norm_backward(&x, &dnormed, &last_norm, all);
        for (layer, kept) in kept.iter().enumerate().rev() {
            dx = self.layer_backward(kept, dx, layer, all);
        }
        let table = all.get_mut(&embedding).unwrap();
        for (dx, &token) in dx.chunks(width).zip(tokens) {
            add(&mut table[token as usize * width..][..width], dx);
        }
        if self.is_gpt2() {
            add(&mut all.get_mut("transformer.wpe.weight").unwrap()[..dx.len()], &dx);
        }
        loss
    }
}

fn add(to: &mut [f64], numbers: &[f64]) {
    to.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
}

fn columns_of(rows: &[f64], columns: usize, range: std::ops::Range<usize>) -> Vec<f64> {
    rows.chunks(columns).flat_map(|row| row[range.clone()].to_vec()).collect()
}

/// A model in training: masters and moments.
pub(crate) struct PlainTrainer<'a> {
    pub(crate) config: &'a Config,
    pub(crate) options: TrainingOptions,
    pub(crate) steps: i32,
    /// Masters, first and second moments.
    pub(crate) tensors: [Tensors; 3],
    /// The tensors that have weight decay.
    matrices: Vec<String>,
}

impl<'a> PlainTrainer<'a> {
    /// Begins with the masters of a state, without moments.
    pub(crate) fn new(config: &'a Config, options: TrainingOptions, state: &State) -> Self {
        let masters: Tensors = state
            .tensors
            .iter()
            .map(|tensor| (tensor.name.clone(), tensor.master.iter().map(|x| f64::from(*x)).collect()))
            .collect();
        let zeros: Tensors = masters.iter().map(|(name, all)| (name.clone(), vec![0.0; all.len()])).collect();
        let matrices = state.tensors.iter().filter(|tensor| tensor.shape.len() == 2);
        let matrices = matrices.map(|tensor| tensor.name.clone()).collect();
        Self { config, options, steps: 0, tensors: [masters, zeros.clone(), zeros], matrices }
    }

    /// Returns the model, with parameters rounded to `bf16`.
    pub(crate) fn model(&self) -> Plain<'a> {
        let rounded = |x: &f64| f64::from(bf16::from_f32(*x as f32).to_f32());
        let masters = self.tensors[0].iter();
        Plain {
            config: self.config,
            parameters: masters
                .map(|(name, all)| (name.clone(), all.iter().map(rounded).collect()))
                .collect(),
            smoothing: f64::from(self.options.label_smoothing),
            z_loss: f64::from(self.options.z_loss),
        }
    }

    /// Runs a step, and returns the loss and the norm of the gradients before it.
    pub(crate) fn step(&mut self, rows: &[&[u32]], rate: f64) -> (f64, f64) {
        let (loss, gradients) = self.model().gradients(rows);
        let norm = gradients.values().flatten().map(|x| x * x).sum::<f64>().sqrt();
        let clip = (f64::from(self.options.max_norm) / norm).min(1.0);
        let [beta1, beta2, epsilon] =
            [self.options.adamw.beta1, self.options.adamw.beta2, self.options.adamw.epsilon].map(f64::from);
        self.steps += 1;
        let [of_first, of_second] = [beta1, beta2].map(|beta| 1.0 - beta.powi(self.steps));
        let [masters, firsts, seconds] = &mut self.tensors;
        for (name, gradients) in gradients {
            let decay =
                if self.matrices.contains(&name) { f64::from(self.options.weight_decay) } else { 0.0 };
            let [w, m, v] =
                [&mut *masters, &mut *firsts, &mut *seconds].map(|all| all.get_mut(&name).unwrap());
            for (i, g) in gradients.into_iter().enumerate() {
                let g = g * clip;
                m[i] = beta1 * m[i] + (1.0 - beta1) * g;
                v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
                w[i] -= rate * (m[i] / of_first / ((v[i] / of_second).sqrt() + epsilon) + decay * w[i]);
            }
        }
        (loss, norm)
    }
}
