//! Runs PTX on the CPU with the semantics of TMA, mbarriers, bulk groups, fences and clusters, and
//! finds the errors that a GPU shows only as garbage or a hang.
//!
//! ```
//! use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};
//!
//! let module = Module::load(
//!     ".version 8.0\n.target sm_90a\n.address_size 64\n
//!      .visible .entry double(.param .u64 data) {
//!          .reg .b32 %r<4>; .reg .b64 %rd<4>;
//!          ld.param.u64 %rd1, [data];
//!          mov.u32 %r1, %tid.x;
//!          mul.wide.u32 %rd2, %r1, 4;
//!          add.s64 %rd3, %rd1, %rd2;
//!          ld.global.u32 %r2, [%rd3];
//!          shl.b32 %r3, %r2, 1;
//!          st.global.u32 [%rd3], %r3;
//!          ret;
//!      }",
//! )?;
//! let mut memory = GlobalMemory::default();
//! let data = memory.allocate(8, true).ok_or("no room")?;
//! memory.write(data, &[1, 0, 0, 0, 2, 0, 0, 0]).map_err(|_| "out of bounds")?;
//! let config = LaunchConfig { block: [2, 1, 1], ..LaunchConfig::default() };
//! let report = launch(&module, &mut memory, "double", &config, &[Arg::Address(data)])?;
//! assert!(report.findings.is_empty());
//! let mut out = [0; 8];
//! memory.read(data, &mut out).map_err(|_| "out of bounds")?;
//! assert_eq!(out, [2, 0, 0, 0, 4, 0, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Data flow
//!
//! `parse` turns PTX text into syntax. `code` links each kernel with the functions that it calls
//! and decodes it: registers, labels and constants become numbers. `exec` runs the decoded program
//! in warps, on a [`machine`] with memory, barriers, asynchronous engines, and the order between
//! accesses. `isa` defines the instructions. A launch can also count instructions ([`profile`]) and
//! record a timeline ([`trace`]).
//!
//! The modules may import each other only as follows:
//!
//! | module | may import |
//! | --- | --- |
//! | `parse` | none |
//! | `isa` | none |
//! | `code` | `parse`, `isa` |
//! | `machine` | `isa` |
//! | `exec` | `isa`, `machine` |
//!
//! # What is not simulated
//!
//! An instruction or modifier that is not supported is never skipped: loading fails with a
//! [`LoadError`] that names its line. Not supported are `multimem`, textures and surfaces, video
//! instructions except `vabsdiff4`, recursion, calls through a register, and `mma.sync` with a
//! sparse A, of 4-bit integers, or of shapes other than `m16n8k*` (and `m8n8k4` of `f64`).

// The fuzz targets compile some files of `cli` as their own, so those files name this crate as if
// from outside.
#[cfg(feature = "cli")]
extern crate self as ptx_sim;

#[cfg(feature = "cli")]
pub mod cli;
mod code;
mod exec;
mod grid;
mod isa;
mod launch;
pub mod machine;
mod module;
mod parse;
mod printed;
pub mod profile;
pub mod report;
mod residents;
pub mod tensor_map;
pub mod trace;

pub use launch::{
    Arg, Error, LaunchConfig, MOST_SHARED_BYTES, Rank, Report, launch, launch_team, least_time,
};
pub use machine::{Checks, CopyKind, Counters, GlobalFault, GlobalMemory, GlobalOrder, Moved};
pub use module::{Kernel, Module};
pub use parse::LoadError;
pub use printed::PRINTED_BYTES;
pub use profile::Profile;
pub use report::{Finding, FindingKind, Findings};
pub use tensor_map::TensorMap;
pub use trace::Trace;

/// Whether the simulator was compiled with optimisation. Without it a launch takes about twelve
/// times as long.
pub const IS_OPTIMIZED: bool = !matches!(env!("PTX_SIM_OPT_LEVEL").as_bytes(), b"0");
