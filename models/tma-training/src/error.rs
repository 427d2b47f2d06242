//! Errors of training.

use tma_kernels::AttentionError;
use tma_kernels::gemm::GemmError;

/// The reason why a model cannot be trained, or a step cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// A configuration that no model can have.
    #[error(transparent)]
    Config(Box<tma_models::ModelError>),

    /// A model with a part that has no gradient here.
    #[error("unsupported model: {name} {found}; training supports {wanted}")]
    Model {
        /// The setting of the configuration.
        name: &'static str,
        /// Its value.
        found: String,
        /// The values that can be trained.
        wanted: &'static str,
    },

    /// An option out of its range.
    #[error("the option `{name}` is out of its range: found {found}, expected {wanted}")]
    Option {
        /// The name of the option.
        name: &'static str,
        /// Its value.
        found: String,
        /// The range.
        wanted: String,
    },

    /// More or fewer tokens than a step takes.
    #[error("wrong number of tokens: found {found}, expected {wanted} ({of})")]
    Tokens {
        /// The number found.
        found: usize,
        /// The number wanted.
        wanted: usize,
        /// The product that the number is.
        of: &'static str,
    },

    /// A token that is not part of the vocabulary.
    #[error("token {found} at index {index} is not part of the vocabulary of {vocabulary} tokens")]
    UnknownToken {
        /// The token.
        found: u32,
        /// Its index in the tokens of the call.
        index: usize,
        /// The number of tokens of the vocabulary.
        vocabulary: usize,
    },

    /// A state without one of the model's tensors.
    #[error("the state lacks the tensor `{name}`: was it saved by a model of this configuration?")]
    MissingTensor {
        /// The name.
        name: String,
    },

    /// A state with a tensor that the model does not have.
    #[error("the model has no tensor `{name}`, which the state has: remove it from the state")]
    UnknownTensor {
        /// The name.
        name: String,
    },

    /// A state with two tensors of the same name.
    #[error("the state has two tensors `{name}`: remove one of them")]
    DuplicateTensor {
        /// The name.
        name: String,
    },

    /// A tensor of a state with another shape than that of the model.
    #[error("the state's tensor `{name}` has the shape {found:?}, wanted {wanted:?}")]
    TensorShape {
        /// The name.
        name: String,
        /// The shape in the state.
        found: Vec<usize>,
        /// The shape in the model.
        wanted: Vec<usize>,
    },

    /// A tensor of a state whose numbers are not as many as its shape says.
    #[error("`{part}` of the state's tensor `{name}` has {found} numbers, its shape says {wanted}")]
    TensorLength {
        /// The name.
        name: String,
        /// The field of the tensor.
        part: &'static str,
        /// The numbers found.
        found: usize,
        /// The product of the shape.
        wanted: usize,
    },

    /// Tensors that are used as one matrix do not follow each other in memory. This is a mistake of
    /// the package.
    #[error("internal error: a matrix of {wanted} elements has {found} in memory; please report this")]
    Layout {
        /// The elements of the range of memory.
        found: usize,
        /// The product of the matrix's extents.
        wanted: usize,
    },

    /// A GEMM failed.
    #[error(transparent)]
    Gemm(#[from] GemmError),

    /// Attention failed.
    #[error(transparent)]
    Attention(#[from] AttentionError),

    /// A kernel over rows, or the optimiser, failed.
    #[error(transparent)]
    Rows(#[from] tma_kernels::model::ModelError),

    /// The device failed.
    #[error(transparent)]
    Device(#[from] tma_runtime::Error),
}
