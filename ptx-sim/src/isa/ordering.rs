//! Where an instruction is, which memory it means, and what it orders.

pub use tma_model::sync::MemoryScope;
pub use tma_model::sync::{Fence, FencedMemory, Order, Scope, Semantics};

/// The order of an access, and the threads that it is strong for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessOrder {
    /// The order.
    pub order: Order,
    /// None of a weak access.
    pub scope: Option<MemoryScope>,
}

/// At the scope of the device.
impl From<Order> for AccessOrder {
    fn from(order: Order) -> Self {
        Self { order, scope: order.is_strong().then_some(MemoryScope::Device) }
    }
}

impl AccessOrder {
    /// That of a plain access.
    pub(crate) const WEAK: Self = Self { order: Order::Weak, scope: None };
}

/// `fence` and `membar` of memory. Source: PTX ISA, "membar, fence".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryFence {
    pub(crate) order: Order,
    /// `.sc`: all such fences have one order.
    pub(crate) sequential: bool,
    pub(crate) scope: MemoryScope,
}

/// At the scope of the device.
impl From<Order> for MemoryFence {
    fn from(order: Order) -> Self {
        Self { order, sequential: false, scope: MemoryScope::Device }
    }
}

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
