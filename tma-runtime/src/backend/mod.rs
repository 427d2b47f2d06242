//! What runs kernels: a GPU through the NVIDIA driver, or the CPU through `ptx-sim`.
//!
//! Without the feature `cuda`, `absent.rs` takes the place of the CUDA backend: the same names, and
//! types without values. Every `match` over backends is therefore exhaustive in every build, and no
//! other code asks for the feature.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "absent.rs"]
pub(crate) mod cuda;
pub(crate) mod sim;

use std::sync::Arc;

/// What runs the kernels.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// A GPU, through the NVIDIA driver.
    Cuda(&'static cuda::Context),
    /// The CPU, through `ptx-sim`.
    Sim(Arc<sim::Context>),
}
