//! The functions of `tma-kernels` as operators for Python: `cargo tma wheel` packs them.

mod attention;
mod gemm;
mod model;
mod scaled;

pub use attention::{Attention, AttentionBackward, AttentionWithLse};
pub use gemm::{Gemm, GemmInPlace};
pub use model::{AddRmsNorm, Append, RmsNorm, RotaryEmbedding};
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
);
