//! The intermediate representation of a kernel: built by `parse`, validated by `check`, read by
//! `lower` and `host`.
//!
//! * **Expressions are pure values.** Evaluating one twice, or not at all, changes nothing but the
//!   running time.
//! * **Statements are effects.** Every load, store, barrier operation, copy and call that the
//!   hardware can notice is a [`StmtKind`] of its own with typed operands; no effect hides in a
//!   string. A statement that yields a value names the local it writes.
//! * **A statement is described once.** [`Stmt::facts`] says what it defines, accesses and waits
//!   for, and who executes it together. Analyses read that instead of listing statements.
//! * **There are no functions and no generics.** A kernel is one instance with every constant
//!   known. `#[tma_device]` functions are inlined; a `return` in one becomes a [`StmtKind::Leave`]
//!   of its block.
//! * **Handles are values too.** A tile or barrier is an address in shared memory. It may be kept
//!   in a local, or selected from [`Type::Stages`] by a run-time index.
//! * **Compound values are split while a kernel is parsed.** A pipeline, its states and slots, and
//!   a phase become `Stages` of tiles and barriers, and locals for numbers and parities. See
//!   [`Compound`].
//! * **Each statement records its source**: its [`Origin`] names the line, and the device functions
//!   and pipeline methods that were expanded into it.
//! * **Coordinates are logical**: row-major, outermost first. Only `lower` and the runtime reverse
//!   them.
//! * **Spans and origins carry no meaning.** [`print`](mod@print) shows everything but them.

#![warn(clippy::wildcard_enum_match_arm)]

mod atomic;
mod compound;
mod copy;
mod descriptor;
pub mod eval;
mod expr;
mod facts;
mod flow;
mod integer;
mod kernel;
mod mma;
mod mma_sync;
mod origin;
pub mod print;
mod ptx;
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
pub use facts::*;
pub use flow::*;
pub use integer::*;
pub use kernel::*;
pub use mma::*;
pub use mma_sync::*;
pub use origin::*;
pub use ptx::*;
pub use span::{Place, Span};
pub use stmt::*;
pub use types::*;
pub use warp::*;

pub use tma_model::span::SpanEdge;
pub use tma_model::sync::{Fence, FencedMemory, MemoryScope, Order, Scope};
pub use tma_model::{AtomicOp, FetchOp, ReduceFamily, ReduceOp, Scalar, TileSwizzle, TileType};
