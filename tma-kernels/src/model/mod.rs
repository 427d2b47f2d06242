//! The kernels of a transformer between its matrix products: norms, gates, embeddings,
//! quantisation, rotary embeddings, softmax, samplers, and the routing of tokens to experts.
//!
//! All work on rows: the last dimension of a tensor, whose elements must be adjacent.

pub mod activate;
pub mod bias;
pub mod cross_entropy;
pub mod embedding;
mod error;
pub mod experts;
pub mod gated;
pub mod norm;
pub mod quantize;
pub mod rotary;
mod rows;
pub mod sample;
pub mod softmax;
pub mod stages;
pub mod sums;
pub mod vectors;

pub use self::activate::{activate, activate_backward, soft_cap, soft_cap_backward};
pub use self::bias::{BiasBackwardOptions, bias_backward};
pub use self::cross_entropy::{
    CrossEntropyOptions, LinearGradients, LinearMemory, LinearOperands, count_labels, cross_entropy,
    cross_entropy_gradient, cross_entropy_in_place, linear_cross_entropy, mean_loss,
};
pub use self::embedding::{EmbeddingBackwardOptions, embedding, embedding_backward};
pub use self::error::ModelError;
pub use self::experts::{RouteOptions, RouteWorkspace, RoutesMut, combine, gather, route};
pub use self::gated::{Gate, GateGradientsMut, gated, gated_backward, gated_packed, gated_packed_backward};
pub use self::norm::{
    NormBackwardOptions, NormOptions, layer_norm, layer_norm_backward, rms_norm, rms_norm_backward,
    rms_norm_quantized,
};
pub use self::quantize::{ScaleBlocks, ScalesMut, quantize};
pub use self::rotary::{
    RotaryAngles, RotaryScaling, rotary, rotary_backward, rotary_backward_in_place, rotary_in_place,
    rotary_tables,
};
pub use self::rows::ModelElement;
pub(crate) use self::rows::{fits, without_instance};
pub use self::sample::{SampleOptions, arg_max, log_probability, sample};
pub use self::softmax::{SoftmaxOptions, softmax, softmax_backward};
pub use self::sums::GradientWorkspace;

/// Checks a factor that must be above zero and below 2.3e38, so that its product with log2(e) is
/// finite.
fn positive(option: &'static str, number: f32) -> Result<f32, ModelError> {
    match number > 0.0 && number < 2.3e38 {
        true => Ok(number),
        false => Err(ModelError::Number { option, number, wanted: "above 0 and below 2.3e38" }),
    }
}
