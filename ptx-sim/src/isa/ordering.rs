//! Where an instruction is, which memory it means, and what it orders.

pub use tma_model::sync::{Fence, FencedMemory, Order, Scope, Semantics};

/// Where in the program an effect comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The line of the PTX text, from 1.
    pub ptx_line: u32,
    /// File and line of `.loc`, where the PTX has one.
    pub source: Option<(u32, u32)>,
}

/// A state space that the machine keeps. Local, parameter and constant memory are the executing
/// side's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// `.global`.
    Global,
    /// `.shared::cta`: offsets in the memory of the thread's own block.
    Shared,
    /// `.shared::cluster`: see [`address`](crate::machine::address).
    SharedCluster,
    /// A generic address, of global or shared memory.
    Generic,
}
