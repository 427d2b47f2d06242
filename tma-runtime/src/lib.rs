//! The host and device sides of kernels written with `#[tma_kernel]`.
//!
//! A kernel, in a package whose `build.rs` calls `tma_codegen::build()`:
//!
//! ```ignore
//! use tma_runtime::prelude::*;
//!
//! /// `dst = factor * src`, one block per tile of 32 rows and 64 columns.
//! #[tma_kernel(threads = 128)]
//! pub fn scale(
//!     factor: f32,
//!     src: TensorMap<Tile<f32, Shape2<32, 64>>>,
//!     dst: TensorMap<Tile<f32, Shape2<32, 64>>>,
//! ) {
//!     let tile: Tile<f32, Shape2<32, 64>> = shared();
//!     let full: Barrier = shared();
//!     let at = dst.block_tile();
//!     let thread = thread_idx().x;
//!
//!     // One thread sets the barrier up, and starts the load.
//!     if thread == 0 {
//!         full.init(1);
//!         fence_barrier_init();
//!     }
//!     sync_threads();
//!     if thread == 0 {
//!         full.arrive_expect_tx(tile.bytes());
//!         src.load(tile, at, full);
//!     }
//!     full.wait(0);
//!
//!     // Each thread has 16 elements, in one column.
//!     for i in 0..16u32 {
//!         let place = [i * 2 + thread / 64, thread % 64];
//!         tile.set(place, factor * tile.get(place));
//!     }
//!
//!     // The store must see what all threads have written.
//!     fence_proxy_async();
//!     sync_threads();
//!     if thread == 0 {
//!         dst.store(at, tile);
//!         bulk_commit_group();
//!         bulk_wait_group_read::<0>();
//!     }
//! }
//! ```
//!
//! The attribute generates a module with a typed launcher. A tensor map is typed by the tile that
//! it moves, and the launcher encodes it from the tensor:
//! `scale::launch(&device, scale::tiles_of_dst(shape), 2.0, &src, &mut dst)`. Devices and tensors
//! work without a kernel:
//!
//! ```
//! use tma_runtime::prelude::*;
//!
//! # fn main() -> Result<(), Error> {
//! let device = Device::open()?; // a GPU with the feature `cuda`, else the simulator
//! let src = device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
//! let mut dst = device.zeros::<f32, 2>([2, 3])?;
//! dst.copy_from(&src.to_vec()?)?;
//! assert_eq!(dst.to_vec()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! # Ok(())
//! # }
//! ```
//!
//! * [`lang`] is the vocabulary of kernels: tiles, barriers, tensor maps, thread indices. rustc
//!   type-checks it; it only runs on a device.
//! * [`Device`], [`DeviceTensor`], [`Stream`] and [`launch`] are the host side: memory, ordering
//!   and launches.
//! * [`Team`] and [`SymmetricTensor`] are several devices that run one kernel together, and their
//!   memory.
//! * [`spec`] describes a compiled kernel to the host. [`map`] derives the parameters of a tensor
//!   map from a tensor and a kernel's tile, and checks every rule of the hardware.
//! * [`trace`] records what the warps of a launch waited for, on a GPU.
//! * [`tune`] measures instances of a kernel, picks the fastest, and remembers the choice.
//! * [`testing`] runs a check under many seeds of the simulator.
//!
//! [`prelude`] exports both sides. Without the feature `cuda`, or without a GPU, [`Device::open`]
//! returns the simulator, which runs the same PTX on the CPU.
//!
//! # Features
//!
//! * `ptx-sim` (on by default): the simulator and the items that need it, [`Device::simulator`] and
//!   [`testing::under_seeds`]. Programs that only run on GPUs build faster without it.
//! * `trace` (on by default, and with `cuda`): [`trace`], and the variable `TMA_TRACE`.
//! * `cuda`: GPUs, through NVIDIA's driver. The driver is loaded when a device is opened, so
//!   programs build and start on machines without it.
//! * `cust`: exchanges contexts, streams, memory and modules with the crate cust
//!   ([`Device::from_cust`] and others). It needs `libcuda` to link with.

// The vocabulary of kernels, for rustc and for readers. Never executed.
pub mod lang;

// Each of the remaining modules imports only those before it. A compiled kernel: its PTX, block and
// parameters.
pub mod spec;

// Address, shape and strides of a tensor, as values.
pub mod layout;

// Element types.
mod scalar;

// Every error of this crate, with its code.
mod error;

// Parameters of a tensor map, from a tensor and the kernel's tile, with every rule checked.
pub mod map;

// Arguments, grid and options, checked against the specification.
mod binding;

// The backends that run a kernel: the NVIDIA driver and the simulator.
mod backend;

// Devices, with memory, streams and events.
mod device;

// Memory of a device, with element type, shape and strides.
mod tensor;

// Launches with probes, and what they recorded.
#[cfg(feature = "trace")]
pub mod trace;

// Arguments of launchers, launches and graphs of them.
pub mod launch;

// Exchange of objects with cust.
#[cfg(feature = "cust")]
mod exchange;

// A progress bar for long operations.
mod progress;

// Selection of the fastest of several kernels and launches.
pub mod tune;

pub mod testing;

/// The crate with which [`Device::from_cust`] and others exchange driver objects.
#[cfg(feature = "cust")]
pub use ::cust;
pub use device::Device;
pub use device::stream::{Event, Stream};
pub use device::team::Team;
pub use error::{
    ArgumentKind, ClusterError, DeadlockReport, DriverStatus, Error, ForeignError, MapError, PictureError,
    TeamError, TraceError, TuneError, ViewError,
};
pub use launch::graph::{Capture, Graph};
pub use launch::prepared::Prepared;
pub use map::picture;
#[cfg(feature = "ptx-sim")]
/// The simulator. [`Device::reporting`] passes on its report.
pub use ptx_sim;
pub use scalar::Scalar;
pub use tensor::DeviceTensor;
pub use tensor::symmetric::SymmetricTensor;
pub use tensor::view::{TensorView, TensorViewMut};
pub use tma_macros::{tma_device, tma_kernel, tma_module};

/// Everything that a file with kernels and their launches needs.
pub mod prelude {
    pub use crate::lang::*;
    pub use crate::launch::{Grid, Im2col, Im2colExt, L2Promotion, MapArgExt, MapWorkspace};
    pub use crate::{
        Capture, Device, DeviceTensor, Error, Event, Graph, Prepared, Stream, SymmetricTensor, Team,
        TensorView, TensorViewMut,
    };
    pub use tma_macros::{tma_device, tma_kernel, tma_module};
}
