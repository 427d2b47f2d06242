//! Kernels for Hopper as operations on tensors of [candle](candle_core).
//!
//! Functions and layers have the names and arguments of their counterparts in `candle_nn` and
//! `candle-flash-attn-v3`, so that a model changes its imports:
//!
//! ```
//! use candle_core::{DType, Device, Module, Tensor};
//! use tma_candle::{Linear, ops};
//!
//! # fn main() -> candle_core::Result<()> {
//! let device = Device::Cpu; // a simulated GPU; or `Device::new_cuda(0)` with the feature `cuda`
//! let weight = Tensor::ones((16, 64), DType::BF16, &device)?;
//! let layer = Linear::new(weight, None);
//! let x = Tensor::ones((2, 3, 64), DType::BF16, &device)?;
//! let y = ops::softmax_last_dim(&layer.forward(&x)?)?;
//! assert_eq!(y.dims(), [2, 3, 16]);
//! assert_eq!(y.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?, [1.0 / 16.0; 96]);
//! # Ok(())
//! # }
//! ```
//!
//! | here | instead of |
//! | --- | --- |
//! | [`Linear`], with bias and activation in the GEMM; [`ScaledLinear`] with weights of F8E4M3 | `candle_nn::Linear` |
//! | [`flash_attn`], [`flash_attn_windowed`], [`flash_attn_alibi`], [`flash_attn_varlen`] | `candle-flash-attn-v3` |
//! | [`KvCache`]: attention over a cache, contiguous or in pages, and appending to it | |
//! | [`ops`]: norms, with a residual too, softmax, gates, arg-max | `candle_nn::ops` |
//! | [`rotary_emb`] | `candle_nn::rotary_emb` |
//! | [`RmsNorm`], [`LayerNorm`], [`Embedding`] | the layers of `candle_nn` |
//!
//! Tensors on a GPU (feature `cuda`) are used where they are, on candle's stream, and results are
//! allocated by candle. Tensors on the CPU are copied to a simulated device and back, which is for
//! tests. Elements are BF16 or F16, and F32 where a kernel has it. Tensors need not be contiguous
//! if a kernel takes their strides; otherwise an error asks for `contiguous`. `Tensor::backward`
//! uses the kernels of gradients; operations without one return an error that names them.

mod attention;
mod backward;
mod cache;
mod error;
mod layers;
mod linear;
mod memory;
mod operation;
pub mod ops;
mod queue;
pub mod rotary_emb;

pub use attention::{
    flash_attn, flash_attn_alibi, flash_attn_alibi_windowed, flash_attn_varlen, flash_attn_varlen_windowed,
    flash_attn_windowed,
};
pub use cache::{KvCache, Rotation};
pub use layers::{Embedding, LayerNorm, RmsNorm, embedding, layer_norm, layer_norm_no_bias, rms_norm};
pub use linear::{Linear, ScaledLinear, linear, linear_b, linear_no_bias};
pub use queue::Queue;
pub use tma_kernels::cached::RotaryLayout;
pub use tma_kernels::gemm::Activation;
pub use tma_kernels::model::Gate;

/// Evaluates an expression for the element type of a tensor, one of those listed.
macro_rules! by_element {
    ($operation:expr, $name:expr, $tensor:expr, [$($element:ty),+], $T:ident => $body:expr) => {
        match $tensor.dtype() {
            $(dtype if dtype == <$element as candle_core::WithDType>::DTYPE => {
                type $T = $element;
                $body
            })+
            other => {
                let wanted = [$(<$element as candle_core::WithDType>::DTYPE),+];
                candle_core::bail!("{}: `{}` must be one of {wanted:?}, but is {other:?}; call `to_dtype`", $operation, $name)
            }
        }
    };
}
pub(crate) use by_element;

/// The program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
