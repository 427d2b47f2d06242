//! Kernels over rows on the simulator, compared with plain Rust in f64.
#![cfg(feature = "llvm")]

mod cross_entropy;
mod elementwise;
mod experts;
mod gemm_gated;
mod linear_loss;
mod norm;
mod optimizer;
mod quantize;
mod rotary;
mod rows;
mod sample;
mod softmax;
