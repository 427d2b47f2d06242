//! Language models on kernels of `tma-kernels`: from a folder of Hugging Face to tokens.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`config`] | the extents and options of a decoder, from `config.json` |
//! | [`checkpoint`] | the tensors of safetensors files |
//! | [`decoder`] | weights on a device, and the forward pass from tokens to logits |
//! | [`cache`] | keys and values in pages |
//! | [`encoder`] | hidden states of whole texts, as BERT computes them |
//! | [`sentences`] | embeddings of sentences, by an encoder |
//! | [`heads`] | views of the heads within rows |
//! | [`random`] | numbers from counters |
//! | [`engine`] | texts for several requests at a time |
//! | [`text`] | tokens of texts, and texts of tokens |

mod activations;
pub mod cache;
pub mod checkpoint;
pub mod config;
pub mod decoder;
pub mod encoder;
pub mod engine;
mod error;
mod forward;
pub mod heads;
mod json;
mod linear;
mod loader;
mod mixture;
mod noise;
mod quantized;
pub mod random;
pub mod sentences;
pub mod text;
mod views;
mod weights;

pub use self::activations::Activations;
pub use self::error::{ModelError, RequestError};
pub use self::loader::{Loaded, Source};
