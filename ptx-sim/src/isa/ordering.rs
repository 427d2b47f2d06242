//! The site of an instruction, the state space it names, and the order it imposes.

pub use tma_model::sync::MemoryScope;
pub use tma_model::sync::{Fence, FencedMemory, Order, Scope, Semantics};

/// The order of an access, and the scope in which it is strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessOrder {
    /// The order.
    pub order: Order,
    /// The scope; `None` for a weak access.
    pub scope: Option<MemoryScope>,
}

/// The access is at the scope of the device.
impl From<Order> for AccessOrder {
    fn from(order: Order) -> Self {
        Self { order, scope: order.is_strong().then_some(MemoryScope::Device) }
    }
}

impl AccessOrder {
    /// The order of a plain access.
    pub(crate) const WEAK: Self = Self { order: Order::Weak, scope: None };
}

/// `fence` and `membar` of memory, as opposed to fences of a proxy. Source: PTX ISA, "membar,
/// fence".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryFence {
    pub(crate) order: Order,
    /// `.sc`: all such fences have a single total order.
    pub(crate) sequential: bool,
    pub(crate) scope: MemoryScope,
}

/// The fence is at the scope of the device.
impl From<Order> for MemoryFence {
    fn from(order: Order) -> Self {
        Self { order, sequential: false, scope: MemoryScope::Device }
    }
}

/// The instruction that an effect comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The line of the PTX text, from 1.
    pub ptx_line: u32,
    /// The file and line of `.loc`, if the PTX has one.
    pub source: Option<(u32, u32)>,
}

/// A state space that the machine implements. Local, parameter and constant memory belong to the
/// executing side.
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
