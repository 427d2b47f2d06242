//! GEMM, convolutions and attention for Hopper GPUs, to be called from Rust.
//!
//! ```
//! use tma_kernels::gemm::{Activation, GemmOptions, gemm};
//! use tma_runtime::prelude::*;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let device = Device::open()?; // a GPU with the feature `cuda`, else the simulator
//!     let a = device.tensor(&[bf16::from_f32(0.5); 64 * 64], [64, 64])?;
//!     let b = device.tensor(&[bf16::from_f32(0.25); 64 * 64], [64, 64])?;
//!     let mut c = device.zeros::<bf16, 2>([64, 64])?;
//!     let options = GemmOptions { activation: Activation::Relu, ..GemmOptions::default() };
//!     gemm(&device, &a, &b, &mut c, options)?; // C = max(A · B, 0)
//!     assert!(c.to_vec()?.iter().all(|x| x.to_f32() == 8.0));
//!     Ok(())
//! }
//! ```
//!
//! | function | what it computes |
//! | --- | --- |
//! | [`gemm::gemm`] | matrix products and batches of them, with bias, residual and activation |
//! | [`gemm::gemm_gated`] | products with a gate, such as SwiGLU |
//! | [`gemm::gemm_scaled`] | products of `e4m3` with scales of blocks |
//! | [`gemm::gemm_scaled_masked`] | the same of groups with counts of rows |
//! | [`gemm::gemm_quantized`] | products of `bf16` with weights of `e4m3` |
//! | [`gemm::gemm_grouped`] | products of groups of rows, each with a matrix of its own |
//! | [`gemm::gemm_picked`] | batches whose matrices are picked by indices on the device |
//! | [`gemm::team::all_gather_gemm`], [`gemm::team::gemm_reduce_scatter`] | products over the GPUs of a team, which gather A or scatter C while they multiply |
//! | [`conv::conv2d`] | convolutions of channels-last images |
//! | [`attention()`] | softmax(Q · Kᵀ · scale) · V, without writing the scores to memory |
//! | [`attention::attention_backward`] | the gradients of queries, keys and values |
//! | [`cached::cached_attention`] | the same of few queries over a cache, contiguous or in pages |
//! | [`cached::append()`] | new keys and values in such a cache, with rotary embeddings |
//! | [`model::rms_norm`], [`model::layer_norm`] | norms of rows, with a residual added before |
//! | [`model::gated()`], [`model::activate()`], [`model::embedding()`], [`model::softmax()`] | SwiGLU and GeGLU, GELU, rows of tokens, softmax of rows |
//! | [`model::rms_norm_backward`], [`model::layer_norm_backward`], [`model::gated_backward`], [`model::activate_backward`], [`model::embedding_backward`], [`model::rotary_backward`], [`model::softmax_backward`], [`model::bias_backward`] | their gradients |
//! | [`model::quantize()`] | rows of `e4m3` with scales |
//! | [`model::arg_max`], [`model::log_probability`], [`model::sample()`] | tokens of logits |
//! | [`model::cross_entropy()`], [`model::linear_cross_entropy`] | losses of logits or of a last layer, and gradients |
//! | [`optimizer::AdamW`], [`optimizer::sum_squares`] | an optimiser, with the norm of all gradients |
//! | [`model::route`], [`model::gather`], [`model::combine`] | the experts of tokens, and rows on the way to them and back |
//! | [`team::all_reduce`], [`team::reduce_scatter`], [`team::all_gather`] | sums and copies of tensors over the GPUs of a team |
//!
//! The first argument of each is a device, a stream or a capture, as for any launch, or a team.
//! Arguments that do not match are an error with a code. `#[tma_module(from = ..)]` derives kernels from those of
//! [`gemm::full`], with a function of the caller's between sums and result.
//!
//! # Features
//!
//! * `ptx-sim` (on by default): runs the kernels on the simulator.
//! * `cuda`: runs them on GPUs, through NVIDIA's driver.
//! * `llvm`: compiles them, in place of the PTX in this package; needs the library of LLVM 22.

pub mod attention;
pub mod cached;
pub mod conv;
mod dependent;
pub mod gemm;
pub mod model;
pub mod optimizer;
pub mod team;
mod workspace;

pub use attention::{AttentionElement, AttentionError, AttentionOptions, Lengths, attention};
