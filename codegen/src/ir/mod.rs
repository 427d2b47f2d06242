//! The kernel's intermediate representation: what `parse` makes, `check` judges, `lower` and `host`
//! read.
//!
//! * **Expressions are pure values.** Evaluating one twice, or not at all, changes nothing but
//!   time.
//! * **Statements are effects.** Every load, store, barrier operation, copy and call that the
//!   hardware can notice is a [`StmtKind`] of its own with typed operands; no effect hides in a
//!   string. A statement that yields a value names the local it writes.
//! * **Functions and generics are gone.** A kernel is one instance with every constant known;
//!   `#[tma_device]` functions are inlined, a `return` in one being a [`StmtKind::Leave`] of its
//!   block.
//! * **Handles are values too.** A tile or barrier is the address of its place in shared memory, so
//!   it may be kept in a local or picked from [`Type::Stages`] by a run-time index.
//! * **A pipeline, its states and slots, and a phase are taken apart** while a kernel is parsed:
//!   what is left of them are `Stages` of tiles and barriers, and locals for numbers and parities.
//!   See [`Compound`].
//! * **Each statement says where it comes from**: its [`Origin`] names the line, and the device
//!   functions and methods of pipelines that were taken apart into it.
//! * **Coordinates are logical**: row-major, outermost first. Only `lower` and the runtime reverse
//!   them.
//! * Spans and origins sit beside the nodes and have no meaning. [`print`](mod@print) shows
//!   everything but them.

#![warn(clippy::wildcard_enum_match_arm)]

mod atomic;
mod compound;
mod copy;
mod descriptor;
pub mod eval;
mod expr;
mod flow;
mod integer;
mod kernel;
mod mma;
mod mma_sync;
mod origin;
pub mod print;
mod span;
mod stmt;
mod types;
pub mod visit;
mod warp;

pub use atomic::*;
pub use compound::*;
pub use copy::*;
pub use descriptor::*;
pub use expr::*;
pub use flow::*;
pub use integer::*;
pub use kernel::*;
pub use mma::*;
pub use mma_sync::*;
pub use origin::*;
pub use span::Span;
pub use stmt::*;
pub use types::*;
pub use warp::*;

pub use tma_model::sync::{Fence, FencedMemory, MemoryScope, Order, Scope};
pub use tma_model::{AtomicOp, FetchOp, ReduceFamily, ReduceOp, Scalar, TileSwizzle, TileType};
