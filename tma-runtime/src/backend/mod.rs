//! Backends that run kernels: a GPU through the NVIDIA driver, or the CPU through `ptx-sim`.
//!
//! Without the feature `cuda`, `absent.rs` replaces the CUDA backend: it has the same names, with
//! uninhabited types. Without the feature `ptx-sim`, `absent_sim.rs` replaces the simulator in the
//! same way. Every `match` over backends is therefore exhaustive in every build. No other code
//! tests for the feature `cuda`; only the code that exports the simulator tests for `ptx-sim`.

#[cfg(any(feature = "cuda", feature = "ptx-sim"))]
mod assertion;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "absent.rs"]
pub(crate) mod cuda;
pub(crate) mod properties;
#[cfg(feature = "ptx-sim")]
pub(crate) mod sim;
#[cfg(not(feature = "ptx-sim"))]
#[path = "absent_sim.rs"]
pub(crate) mod sim;

use std::sync::Arc;

/// The backend of a device.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// A GPU, through the NVIDIA driver.
    Cuda(&'static cuda::Context),
    /// The CPU, through `ptx-sim`.
    Sim(Arc<sim::Context>),
}
