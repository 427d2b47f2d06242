//! Matrix products and attention for Hopper GPUs, to be called from Rust.

mod attention;

pub use attention::{AttentionElement, AttentionOptions, Lengths, attention};
