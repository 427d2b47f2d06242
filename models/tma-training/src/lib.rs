//! Training of language models on kernels of `tma-kernels`: the forward pass, the gradients and the
//! optimiser, entirely on the device.
//!
//! ```
//! use tma_models::config::Config;
//! use tma_runtime::prelude::*;
//! use tma_training::{Trainer, TrainingOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // As in the file `config.json`, which `Config::open` reads.
//! let config = Config::from_json(serde_json::json!({
//!     "model_type": "llama", "vocab_size": 64, "hidden_size": 64, "intermediate_size": 64,
//!     "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 16,
//!     "rms_norm_eps": 1e-5,
//! }))?;
//! let options = TrainingOptions { sequences: 1, length: 16, ..TrainingOptions::default() };
//! let mut trainer = Trainer::new(&Device::simulator(), &config, options, 42)?;
//! // A row of 16 tokens, and the one that follows.
//! let tokens: Vec<u32> = (0..17).map(|i| i % 3).collect();
//! let first = trainer.step(&tokens, 0.01)?;
//! let second = trainer.step(&tokens, 0.01)?;
//! assert!(second.loss < first.loss);
//! # Ok(())
//! # }
//! ```
//!
//! # Models
//!
//! [`tma_models::config::Config`] describes the model. Those with the layers of Llama are trained
//! (RMSNorm, rotary embeddings, grouped queries and gates, with or without biases, with a head of
//! its own or the table of embeddings), and those of GPT-2 (LayerNorm, learned positions, GELU by
//! `tanh`). Heads have 64 or 128 elements. Models with experts, sliding windows, soft caps of scores
//! or logits, and norms of heads or of results are refused. There is no dropout. A vocabulary that
//! is a multiple of 64 is faster: pad that of GPT-2 from 50257 to 50304.
//!
//! Tensors have the names, shapes and layouts of Hugging Face, so that a [`State`] can be written
//! as safetensors as it is.
//!
//! # Numbers
//!
//! Parameters that kernels read, activations and their gradients are `bf16`. GEMMs, norms, softmax
//! and losses are computed in `f32`. Gradients of parameters are summed in `f32`, over rows and over
//! micro-batches, and the optimiser has parameters and moments in `f32`.
//!
//! The residual stream and its gradient are `bf16` too: they are rounded at each addition, twice a
//! layer. Autocast of PyTorch keeps both in `f32`, so losses differ slightly from its losses.
//!
//! The logits of some positions are in memory at a time
//! ([`logit_rows`](TrainingOptions::logit_rows)).
//!
//! # Initial values
//!
//! Matrices and tables have a normal distribution with a mean of 0 and a standard deviation of
//! 0.02. The matrices whose results are added to the residual, the last ones of attention and of
//! the MLP, have 0.02 / √(2 · layers), as in GPT-2. Weights of norms are 1, and biases 0. The
//! numbers depend on the seed and the tensor's name alone, and are the same on each machine.
//!
//! # Steps
//!
//! The first step records its launches as graphs, one for the passes of a micro-batch and one for
//! the update, and each step launches them. Only tokens, labels and the learning rate go to the
//! device, and the losses and the norm of the gradients come back.
//!
//! Activations are allocated when a [`Trainer`] is made, and memory of GEMMs and of sums in the
//! first step and the first evaluation. Later ones allocate nothing on the device, except the first
//! step after [`Trainer::restore`], which records again. With
//! [`recompute`](TrainingOptions::recompute), all layers share the activations of one, beside the
//! input of each layer.

mod backward;
mod context;
mod error;
mod forward;
mod initial;
mod linear;
mod loss;
mod memory;
mod model;
mod options;
mod state;
mod trainer;
mod views;

pub use self::error::TrainingError;
pub use self::options::TrainingOptions;
pub use self::state::{Gradient, State, StateTensor};
pub use self::trainer::{StepReport, Trainer};
