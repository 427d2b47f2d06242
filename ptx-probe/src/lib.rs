//! Adds probes to the PTX of TMA kernels, and reads what they recorded.
//!
//! [`instrument`] changes the text of a kernel. Each warp then records its waits, copies and
//! multiplications in a [`ring`] of its own, in a buffer that the host provides, with the clock of
//! its multiprocessor. After the launch, [`Trace::read`] turns the buffer into intervals in
//! nanoseconds, which [`summary`] adds up by source line and [`perfetto`] writes as a file.
//!
//! ```
//! use ptx_probe::{instrument, ring::Layout};
//!
//! let ptx = ".visible .entry k()\n{\n\t.reg .b32 %r<2>;\n\tbarrier.sync 0;\n\tret;\n}\n";
//! let probed = instrument(ptx, "k", 0, 0x1000, Layout::of(1, 32)?)?;
//! assert_eq!(probed.sites[0].instruction, "barrier.sync 0");
//! # Ok::<(), ptx_probe::ProbeError>(())
//! ```
//!
//! A probe is some fifteen instructions with one short branch and no call, because a call would
//! make ptxas serialise the kernel's multiplications. It needs two registers for the whole kernel,
//! and 16 bytes of shared memory per warp.
//!
//! Probes are found by line: the PTX is that of this project's compiler, which writes one
//! instruction per line. In other PTX, whatever does not stand alone in its line has no probe.

mod body;
mod clock;
mod error;
mod instrument;
mod label;
pub mod perfetto;
pub mod print;
pub mod ring;
mod site;
pub mod summary;
mod text;
mod trace;
pub mod watch;

pub use error::ProbeError;
pub use instrument::{Instrumented, instrument};
pub use site::{Awaited, Direction, Site, SiteKind};
pub use text::Source;
pub use tma_model::span::SpanEdge;
pub use trace::{Interval, Row, Trace, Warp};
