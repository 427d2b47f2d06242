//! Fences, and the scopes and orders of synchronising operations.

/// The threads between which a release and an acquire order memory. Source: PTX ISA, "Scope".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `.cta`, the threads of a block. Even at another block's barrier, this scope is sufficient to
    /// hand over memory that the arriving block has read and that a copy is to overwrite. Within a
    /// cluster it saves the arrival from waiting until all writes of its thread are visible to the
    /// cluster.
    Block,
    /// `.cluster`, the threads of the cluster, if there is one: a thread's writes become visible to
    /// those of other blocks.
    Cluster,
}

impl Scope {
    /// Returns the PTX modifier, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "cta",
            Self::Cluster => "cluster",
        }
    }
}

/// The threads for which an access or a memory fence is strong. Within the scope, two strong
/// accesses to the same address do not race, and an acquire sees what was released. Source: PTX
/// ISA, "Scope".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryScope {
    /// `.cta`, the threads of the block.
    Block,
    /// `.cluster`, the threads of the cluster, or of the block if there is no cluster.
    Cluster,
    /// `.gpu`, all threads of the device.
    Device,
    /// `.sys`, also the threads of the host and of other devices.
    System,
}

impl MemoryScope {
    /// All scopes, from the narrowest to the widest.
    pub const ALL: [Self; 4] = [Self::Block, Self::Cluster, Self::Device, Self::System];

    /// Returns the narrowest scope that includes both of two threads.
    #[inline]
    pub const fn around(same_block: bool, same_cluster: bool, same_device: bool) -> Self {
        match (same_block, same_cluster, same_device) {
            (true, _, _) => Self::Block,
            (false, true, _) => Self::Cluster,
            (false, false, true) => Self::Device,
            (false, false, false) => Self::System,
        }
    }

    /// Returns the PTX modifier, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "cta",
            Self::Cluster => "cluster",
            Self::Device => "gpu",
            Self::System => "sys",
        }
    }
}

/// The memory order of an access or a synchronising operation. Source: PTX ISA, "Memory Consistency
/// Model".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Plain `ld` and `st`. Two weak accesses race unless something else orders them.
    Weak,
    /// `.relaxed`, `.volatile`, and `atom` without a modifier. Does not race with other strong
    /// accesses, and orders nothing.
    Relaxed,
    /// `.acquire`.
    Acquire,
    /// `.release`.
    Release,
    /// `.acq_rel`.
    AcqRel,
}

impl Order {
    /// Returns the PTX modifier, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
        }
    }

    /// Returns whether the operation acquires what was released.
    #[inline]
    pub const fn acquires(self) -> bool {
        match self {
            Self::Acquire | Self::AcqRel => true,
            Self::Weak | Self::Relaxed | Self::Release => false,
        }
    }

    /// Returns whether the operation releases what precedes it.
    #[inline]
    pub const fn releases(self) -> bool {
        match self {
            Self::Release | Self::AcqRel => true,
            Self::Weak | Self::Relaxed | Self::Acquire => false,
        }
    }

    /// Returns whether the access is strong. Strong accesses do not race with each other.
    #[inline]
    pub const fn is_strong(self) -> bool {
        match self {
            Self::Weak => false,
            Self::Relaxed | Self::Acquire | Self::Release | Self::AcqRel => true,
        }
    }
}

/// The order and the scope of an operation on a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// Release, acquire, or neither.
    pub order: Order,
    /// The threads between which it orders memory.
    pub scope: Scope,
}

impl Semantics {
    /// Semantics of an arrival without modifiers. Source: PTX ISA, "mbarrier.arrive".
    pub const RELEASE: Self = Self { order: Order::Release, scope: Scope::Block };
    /// Semantics of a wait without modifiers. Source: PTX ISA, "mbarrier.test_wait".
    pub const ACQUIRE: Self = Self { order: Order::Acquire, scope: Scope::Block };
}

/// A kind of memory that proxy fences distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Shared memory of any block.
    Shared,
    /// Global memory.
    Global,
}

/// The memory that a fence of the asynchronous proxy covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FencedMemory {
    /// All memory: the fence names none.
    All,
    /// Shared memory of the block, or of the cluster if there is one.
    Shared(Scope),
    /// Global memory.
    Global,
}

impl FencedMemory {
    /// Returns the kinds of memory that the fence covers.
    pub const fn memories(self) -> &'static [Memory] {
        match self {
            Self::All => &[Memory::Shared, Memory::Global],
            Self::Shared(Scope::Block | Scope::Cluster) => &[Memory::Shared],
            Self::Global => &[Memory::Global],
        }
    }
}

/// A fence. Source: PTX ISA, "membar, fence".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// `fence.proxy.async`: later asynchronous operations see all accesses to this memory that the
    /// thread knows of.
    ProxyAsync(FencedMemory),
    /// `fence.mbarrier_init`: the mbarriers that the thread has initialised become visible to the
    /// asynchronous proxy and to the cluster.
    MbarrierInit,
    /// `fence.acq_rel` and stronger fences. Together with relaxed atomics: what one thread did
    /// before its fence is visible to another thread after that thread's fence.
    Memory,
    /// `fence.proxy.tensormap::generic.release`: the changes to tensor maps that the thread knows
    /// of become visible to copies of other threads, once these have acquired the map.
    TensorMapRelease,
    /// `fence.proxy.alias`: orders accesses to the same memory through different virtual addresses.
    ProxyAlias,
}

impl Fence {
    /// Returns the PTX name. The name of a memory fence excludes its scope.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProxyAsync(FencedMemory::All) => "fence.proxy.async",
            Self::ProxyAsync(FencedMemory::Shared(Scope::Block)) => "fence.proxy.async.shared::cta",
            Self::ProxyAsync(FencedMemory::Shared(Scope::Cluster)) => "fence.proxy.async.shared::cluster",
            Self::ProxyAsync(FencedMemory::Global) => "fence.proxy.async.global",
            Self::MbarrierInit => "fence.mbarrier_init.release.cluster",
            Self::Memory => "fence.acq_rel",
            Self::TensorMapRelease => "fence.proxy.tensormap::generic.release",
            Self::ProxyAlias => "fence.proxy.alias",
        }
    }
}
