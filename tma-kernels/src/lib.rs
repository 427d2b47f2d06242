//! Matrix products and attention for Hopper GPUs, to be called from Rust.

pub mod gemm;
