//! Refusals of kernels, as errors of candle.

use candle_core::Error;
use tma_kernels::AttentionError;
use tma_kernels::cached::CachedAttentionError;
use tma_kernels::gemm::GemmError;
use tma_kernels::model::ModelError;

/// A result whose error is candle's, unless another is named.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation cannot be queued.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A kernel does not take the arguments. The text begins with the code.
    Kernel { code: &'static str, text: String },
    /// candle's error, or one of this package about the arguments.
    Candle(Error),
}

impl Refused {
    /// Returns candle's error, which begins with the name of the operation.
    pub(crate) fn of(self, operation: &str) -> Error {
        match self {
            Self::Kernel { text, .. } => Error::msg(format!("{operation}: {text}")),
            Self::Candle(error) => error,
        }
    }

    /// Adds that candle can copy a tensor, if the kernel cannot read it where it is.
    pub(crate) fn with_copy(self) -> Self {
        // Addresses and strides of tensor maps, of `Global`s, and of rows.
        let of_layout =
            ["TMA0501", "TMA0503", "TMA0505", "TMA0511", "TMA0531", "TMA0544", "TMA0569", "TMA0576"];
        match self {
            Self::Kernel { code, text } if of_layout.contains(&code) => {
                let copy = "`contiguous` makes a copy, or `copy` of a part that is contiguous already";
                Self::Kernel { code, text: format!("{text}; {copy}") }
            }
            Self::Kernel { .. } | Self::Candle(_) => self,
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Candle(error)
    }
}

macro_rules! kernels {
    ($($error:ty),+) => { $(
        impl From<$error> for Refused {
            fn from(error: $error) -> Self {
                Self::Kernel { code: error.code(), text: error.to_string() }
            }
        }
    )+ };
}

kernels!(tma_runtime::Error, ModelError, GemmError, AttentionError, CachedAttentionError);
