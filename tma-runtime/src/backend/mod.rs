//! What runs kernels: a GPU through the NVIDIA driver, or the CPU through `ptx-sim`.
//!
//! Without the feature `cuda`, `absent.rs` takes the place of the CUDA backend: the same names, and
//! types without values. Without the feature `ptx-sim`, `absent_sim.rs` takes that of the simulator.
//! Every `match` over backends is therefore exhaustive in every build. No other code asks for the
//! feature `cuda`; for `ptx-sim` only what exports the simulator does.

#[cfg(any(feature = "cuda", feature = "ptx-sim"))]
mod assertion;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "absent.rs"]
pub(crate) mod cuda;
#[cfg(feature = "ptx-sim")]
pub(crate) mod sim;
#[cfg(not(feature = "ptx-sim"))]
#[path = "absent_sim.rs"]
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
