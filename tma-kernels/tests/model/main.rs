//! Kernels over rows on the simulator, compared with plain Rust in f64.
#![cfg(feature = "llvm")]

mod elementwise;
mod embedding_gradients;
mod experts;
mod gemm_gated;
mod norm;
mod norm_gradients;
mod quantize;
mod rotary;
mod rows;
mod sample;
mod slopes;
mod softmax;
