//! The CUDA backend: kernels on NVIDIA GPUs, through the driver. Only [`driver`] calls the driver.
//!
//! A launch takes one lock, finds the kernel by the address of its specification and each
//! descriptor by the address of its tensor, and calls the driver. It does not allocate. `absent.rs`
//! lists this module's interface.

mod capture;
mod context;
mod descriptor;
mod driver;
#[cfg(feature = "cust")]
mod exchange;
mod failure;
mod kernel;
mod launch;
mod non_blocking;
mod print;
mod stream;
mod watch;

pub(crate) use capture::{Capture, Graph};
pub(crate) use context::Context;
pub(crate) use launch::Prepared;
pub(crate) use stream::{Event, Stream};

// cust cannot wrap a stream that it did not make. It therefore makes all streams, so that each can
// be passed to it.
#[cfg(not(feature = "cust"))]
use driver::stream::OwnedStream;
#[cfg(feature = "cust")]
use exchange::OwnedStream;
