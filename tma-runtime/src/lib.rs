//! The host and device sides of kernels written with `#[tma_kernel]`.
//!
//! * [`lang`] is the vocabulary of kernels: tiles, barriers, tensor maps, places. It is type-checked by rustc and run
//!   only on devices.
//! * [`Device`], [`DeviceTensor`], [`Stream`] and [`launch`] are the host: memory, order and launches.
//! * [`spec`] is what the attribute tells the host of a kernel, and [`map`] how a tensor and a kernel's tile become a
//!   tensor map, with every rule of the hardware checked.
//! * [`testing`] runs a check under many seeds of the simulator.
//!
//! [`prelude`] brings both sides. Without the feature `cuda`, or without a GPU, [`Device::open`] gives the
//! simulator, which runs the same PTX on the CPU.

mod args;
mod bind;
mod device;
mod error;
mod graph;
mod grid;
mod im2col;
pub mod lang;
pub mod launch;
pub mod layout;
pub mod map;
mod memory;
mod occupancy;
mod options;
pub mod picture;
mod ptx;
mod scalar;
mod shape;
mod sim;
pub mod spec;
mod status;
mod stream;
mod tensor;
pub mod testing;
mod tf32;
mod view;
mod with;
mod workspace;

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "absent.rs"]
mod cuda;

pub use device::Device;
pub use error::{ClusterError, DriverStatus, Error, MapError, ViewError};
pub use graph::{Capture, Graph};
/// The simulator, for what [`Device::reporting`] gives.
pub use ptx_sim;
pub use scalar::Scalar;
pub use stream::{Event, Stream};
pub use tensor::DeviceTensor;
pub use tma_macros::{tma_device, tma_kernel, tma_module};
pub use view::{TensorView, TensorViewMut};

/// All that a file with kernels and their launches needs.
pub mod prelude {
    pub use crate::lang::*;
    pub use crate::launch::{Grid, Im2col, Im2colExt, L2Promotion, MapArgExt, MapWorkspace};
    pub use crate::{Capture, Device, DeviceTensor, Error, Event, Graph, Stream, TensorView, TensorViewMut};
    pub use tma_macros::{tma_device, tma_kernel, tma_module};
}
