//! The CUDA backend: kernels on NVIDIA GPUs, through `cust` and the driver.
//!
//! `cust` opens devices, and owns contexts, modules, streams, events and memory. [`driver`] is the only file that calls
//! the driver itself, with those in its folder.
//!
//! A launch takes one lock, finds the kernel by the address of its specification and each descriptor by the tensor's,
//! and calls the driver; it allocates nothing. `absent.rs` lists this module's face to the crate.

mod capture;
mod context;
mod descriptor;
mod driver;
mod kernel;
mod launch;
mod stream;

pub(crate) use capture::{Capture, Graph};
pub(crate) use context::Context;
pub(crate) use launch::Prepared;
pub(crate) use stream::{Event, Stream};
