//! Where an instruction stands, which memory it means, and what it orders.

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

/// How an access or a synchronisation orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Plain: `ld`, `st`. Two of them that are not ordered otherwise race.
    Weak,
    /// `.relaxed`, `.volatile`, `atom` without more: does not race with its like, and orders
    /// nothing.
    Relaxed,
    /// `.acquire`.
    Acquire,
    /// `.release`.
    Release,
    /// `.acq_rel`.
    AcqRel,
}

impl Order {
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel)
    }

    pub(crate) fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel)
    }

    pub(crate) fn strong(self) -> bool {
        self != Self::Weak
    }
}

/// What a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// `fence.proxy.async`: later asynchronous operations see earlier writes.
    ProxyAsync,
    /// `fence.proxy.async.shared::cta` and `.shared::cluster`, which do nothing for global memory.
    ProxyAsyncShared,
    /// `fence.proxy.async.global`, which does nothing for shared memory.
    ProxyAsyncGlobal,
    /// `fence.mbarrier_init.release.cluster`.
    MbarrierInit,
    /// `fence.acq_rel`, `fence.sc`, `membar`, of any scope.
    Memory,
    /// `fence.proxy.tensormap::generic.release`: what the thread knows of changes to tensor maps is
    /// to be seen by copies.
    TensorMapRelease,
    /// `fence.proxy.alias`: nothing that the machine keeps apart.
    OtherProxy,
}

/// Between whose threads a release and an acquire order memory. Source: PTX ISA, "Scope".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `.cta`: those of a block.
    Block,
    /// `.cluster`.
    Cluster,
}

/// What an operation on an mbarrier orders, and between whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Release or acquire, or neither.
    pub order: Order,
    /// Between whom.
    pub scope: Scope,
}

impl Semantics {
    /// That of an arrival that says nothing.
    pub const RELEASE: Self = Self { order: Order::Release, scope: Scope::Block };
    /// That of a wait that says nothing.
    pub const ACQUIRE: Self = Self { order: Order::Acquire, scope: Scope::Block };
}
