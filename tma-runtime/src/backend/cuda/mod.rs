//! The CUDA backend: kernels on NVIDIA GPUs, through `cust` and the driver.
//!
//! `cust` opens devices, and owns contexts, modules, streams and memory. Only [`driver`] calls the
//! driver itself.
//!
//! A launch takes one lock, finds the kernel by the address of its specification and each
//! descriptor by the address of its tensor, and calls the driver; it does not allocate. `absent.rs`
//! lists this module's interface.

mod beside;
mod capture;
mod context;
mod descriptor;
mod driver;
mod failure;
mod kernel;
mod launch;
mod stream;

pub(crate) use capture::{Capture, Graph};
pub(crate) use context::Context;
pub(crate) use launch::Prepared;
pub(crate) use stream::{Event, Stream};
