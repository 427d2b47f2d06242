//! Kernels over rows on the simulator, compared with plain Rust in f64.
#![cfg(feature = "llvm")]

mod bias_gradients;
mod cross_entropy;
mod elementwise;
mod embedding_gradients;
mod experts;
mod gemm_gated;
mod linear_loss;
mod norm;
mod norm_gradients;
mod optimizer;
mod quantize;
mod rotary;
mod rows;
mod sample;
mod slopes;
mod softmax;
