//! The functions of `tma-kernels` as operators for Python: `cargo tma wheel` packs them.

mod attention;
mod cached;
mod gemm;
mod model;
mod scaled;
mod workspaces;

pub use attention::{Attention, AttentionBackward, AttentionWithLse};
pub use cached::{Append, AttentionCached, MlaAttention};
pub use gemm::{Gemm, GemmInPlace};
pub use model::{AddRmsNorm, RmsNorm, RotaryEmbedding};
pub use scaled::GemmScaled;

tma_python::library!(
    Gemm,
    GemmInPlace,
    GemmScaled,
    Attention,
    AttentionWithLse,
    AttentionBackward,
    RmsNorm,
    AddRmsNorm,
    RotaryEmbedding,
    Append,
    AttentionCached,
    MlaAttention,
);
