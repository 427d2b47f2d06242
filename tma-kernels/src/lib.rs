//! Matrix products and attention for Hopper GPUs, to be called from Rust.

pub mod attention;
pub mod gemm;

pub use attention::{AttentionElement, AttentionError, AttentionOptions, Lengths, attention};
