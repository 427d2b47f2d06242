//! The host and device sides of kernels written with `#[tma_kernel]`.
//!
//! A kernel, whose package calls `tma_codegen::build()` in its `build.rs`:
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
//! The attribute makes a module with a typed launcher. A tensor map has the type of the tile that it
//! moves, and the launcher encodes it from the tensor:
//! `scale::launch(&device, scale::tiles_of_dst(shape), 2.0, &src, &mut dst)`. Devices and tensors
//! need no kernel:
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
//!   type-checks it; it runs only on devices.
//! * [`Device`], [`DeviceTensor`], [`Stream`] and [`launch`] are the host side: memory, ordering
//!   and launches.
//! * [`spec`] describes a compiled kernel to the host; [`map`] turns a tensor and a kernel's tile
//!   into the parameters of a tensor map and checks every rule of the hardware.
//! * [`tune`] chooses among instances of a kernel by measurement, and remembers the choice.
//! * [`testing`] runs a check under many seeds of the simulator.
//!
//! [`prelude`] exports both sides. Without the feature `cuda`, or without a GPU, [`Device::open`]
//! returns the simulator, which runs the same PTX on the CPU.
//!
//! # Features
//!
//! * `ptx-sim` (on by default): the simulator, and what needs it: [`Device::simulator`],
//!   [`testing::under_seeds`]. Programs that only run on GPUs build faster without it.
//! * `cuda`: GPUs, through NVIDIA's driver. It is loaded when a device is opened, so programs build
//!   and start where it is not installed.
//! * `cust`: contexts, streams, memory and modules, exchanged with the crate cust
//!   ([`Device::from_cust`] and others). It needs `libcuda` to link with.

// The vocabulary of kernels, for rustc and for readers. Never run.
pub mod lang;

// What follows is in the order in which a launch uses it. A compiled kernel: PTX, block,
// parameters.
pub mod spec;

// Where it runs, with streams and events.
mod device;

// What it works on: memory of the device, with element type, shape and strides.
mod tensor;

// A tensor and the kernel's tile as the parameters of a tensor map, every rule checked.
pub mod map;

// Arguments, grid and options, checked against the specification; graphs of launches.
pub mod launch;

// What runs it: the NVIDIA driver, or the simulator.
mod backend;

// What is exchanged with cust.
#[cfg(feature = "cust")]
mod exchange;

// Everything that can go wrong on the way, with its code.
mod error;

// A bar for what takes long.
mod progress;

// Which of several kernels and launches is fastest.
pub mod tune;

pub mod testing;

/// The crate with which [`Device::from_cust`] and others exchange what the driver made.
#[cfg(feature = "cust")]
pub use ::cust;
pub use device::Device;
pub use device::stream::{Event, Stream};
pub use error::{
    ArgumentKind, ClusterError, DriverStatus, Error, ForeignError, MapError, PictureError, TuneError,
    ViewError,
};
pub use launch::graph::{Capture, Graph};
pub use map::picture;
#[cfg(feature = "ptx-sim")]
/// The simulator, whose report [`Device::reporting`] passes on.
pub use ptx_sim;
pub use tensor::layout;
pub use tensor::{DeviceTensor, Scalar, TensorView, TensorViewMut};
pub use tma_macros::{tma_device, tma_kernel, tma_module};

/// Everything that a file with kernels and their launches needs.
pub mod prelude {
    pub use crate::lang::*;
    pub use crate::launch::{Grid, Im2col, Im2colExt, L2Promotion, MapArgExt, MapWorkspace};
    pub use crate::{Capture, Device, DeviceTensor, Error, Event, Graph, Stream, TensorView, TensorViewMut};
    pub use tma_macros::{tma_device, tma_kernel, tma_module};
}
