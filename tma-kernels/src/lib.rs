//! Matrix products, convolutions and attention for Hopper GPUs, to be called from Rust.

pub mod attention;
pub mod conv;
mod dependent;
pub mod gemm;
mod twice;

pub use attention::{AttentionElement, AttentionError, AttentionOptions, Lengths, attention};
