//! Fences, and the scopes and orders of synchronising operations.

/// Between whose threads a release and an acquire order memory. Source: PTX ISA, "Scope".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `.cta`, those of a block. Also at another block's barrier it is enough to hand over memory
    /// that its own block has read and that a copy is to fill. In a cluster it spares an arrival
    /// the wait until all that its thread wrote is seen there.
    Block,
    /// `.cluster`, those of the cluster, where there is one: what a thread wrote is seen by those
    /// of other blocks.
    Cluster,
}

impl Scope {
    /// Its modifier in PTX, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "cta",
            Self::Cluster => "cluster",
        }
    }
}

/// The threads that an access, or a memory fence, is strong for: within it two such accesses to one
/// place do not race, and a release is seen by an acquire. Source: PTX ISA, "Scope".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryScope {
    /// `.cta`, those of the block.
    Block,
    /// `.cluster`, those of the cluster; without one, of the block.
    Cluster,
    /// `.gpu`, all of the device.
    Device,
    /// `.sys`, also those of the host and of other devices.
    System,
}

impl MemoryScope {
    /// Every scope, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Block, Self::Cluster, Self::Device, Self::System];

    /// Whether it includes another thread, which is in the same block, or in the same cluster, or in
    /// neither.
    #[inline]
    pub const fn includes(self, same_block: bool, same_cluster: bool) -> bool {
        match self {
            Self::Block => same_block,
            Self::Cluster => same_cluster,
            Self::Device | Self::System => true,
        }
    }

    /// Its modifier in PTX, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "cta",
            Self::Cluster => "cluster",
            Self::Device => "gpu",
            Self::System => "sys",
        }
    }
}

/// How an access or a synchronisation orders others. Source: PTX ISA, "Memory Consistency Model".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Its modifier in PTX, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
        }
    }

    /// Whether it learns what was released.
    #[inline]
    pub const fn acquires(self) -> bool {
        match self {
            Self::Acquire | Self::AcqRel => true,
            Self::Weak | Self::Relaxed | Self::Release => false,
        }
    }

    /// Whether it tells what came before it.
    #[inline]
    pub const fn releases(self) -> bool {
        match self {
            Self::Release | Self::AcqRel => true,
            Self::Weak | Self::Relaxed | Self::Acquire => false,
        }
    }

    /// Whether it does not race with its like.
    #[inline]
    pub const fn is_strong(self) -> bool {
        match self {
            Self::Weak => false,
            Self::Relaxed | Self::Acquire | Self::Release | Self::AcqRel => true,
        }
    }
}

/// What an operation on a barrier orders, and between whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// Release or acquire, or neither.
    pub order: Order,
    /// Between whom.
    pub scope: Scope,
}

impl Semantics {
    /// Those of an arrival without modifiers. Source: PTX ISA, "mbarrier.arrive".
    pub const RELEASE: Self = Self { order: Order::Release, scope: Scope::Block };
    /// Those of a wait without modifiers. Source: PTX ISA, "mbarrier.test_wait".
    pub const ACQUIRE: Self = Self { order: Order::Acquire, scope: Scope::Block };
}

/// A memory that proxy fences tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Shared memory, of whichever block.
    Shared,
    /// Global memory.
    Global,
}

/// The memory that a fence of the asynchronous proxy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FencedMemory {
    /// All of it: none is named.
    All,
    /// Shared memory: of the block, or of the cluster, where there is one.
    Shared(Scope),
    /// Global memory.
    Global,
}

impl FencedMemory {
    /// The memories that it covers.
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
    /// `fence.proxy.async`: later asynchronous operations see what the thread knows of this memory.
    ProxyAsync(FencedMemory),
    /// `fence.mbarrier_init`: the asynchronous proxy and the cluster see the mbarriers that the
    /// thread has initialised.
    MbarrierInit,
    /// `fence.acq_rel` and stronger ones: with relaxed atomics, what one thread did before it is
    /// seen by another after its own.
    Memory,
    /// `fence.proxy.tensormap::generic.release`: copies elsewhere see what the thread knows of
    /// changes to tensor maps, once they have acquired the map.
    TensorMapRelease,
    /// `fence.proxy.alias`: accesses to one place under several virtual addresses.
    ProxyAlias,
}

impl Fence {
    /// Its name in PTX; of a memory fence, without the scope.
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
