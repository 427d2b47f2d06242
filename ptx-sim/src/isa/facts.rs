//! The class, footprint and synchronisation of each operation.
//!
//! This is the only list of all operations besides their execution. Counting, the timeline, the
//! detection of polling loops, and launches all read it. It is modelled on Cranelift's table of
//! opcode facts (`can_load`, `can_store` and the like).

use super::{
    Access, AccessOrder, Address, AddressOp, Alu, BarrierOp, BulkCode, Class, Collective, Compared,
    ControlOp, CopyAsyncOp, MapCode, MatrixCode, MbarrierAction, MbarrierOp, Memory, MemoryOp, Op, Reg,
    Space, TensorCodeAction, TmaOp, WarpOp, WarpgroupOp,
};

/// The properties of an operation that are known without running it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The class under which the operation is counted.
    pub(crate) class: Class,
    /// The memory that the operation reads.
    pub(crate) reads: OpFootprint,
    /// The memory that the operation writes.
    pub(crate) writes: OpFootprint,
    /// Whether other threads can observe that the operation was run.
    pub(crate) effect: Effect,
    /// The event that the operation waits for, or whether others may wait for it.
    pub(crate) synchronization: Synchronization,
    /// Whether the operation is `bra`.
    pub(crate) is_branch: bool,
}

/// The memory that an operation reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpFootprint {
    None,
    /// Bytes at an address in each lane, accessed when the instruction runs.
    Lane(LaneAccess),
    /// Bytes that a copy accesses asynchronously, later.
    Copy(CopyAccess),
    /// Memory that only the execution of the operation determines: an mbarrier, a tensor map, the
    /// rows of a matrix, a string, the parameters of a function.
    Object,
}

/// The bytes that a lane accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneAccess {
    pub(crate) memory: Memory,
    pub(crate) order: AccessOrder,
    pub(crate) address: Address,
    /// The size of the whole access, all elements of a vector included.
    pub(crate) bytes: u32,
}

/// The memory that a copy accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyAccess {
    pub(crate) space: Space,
    /// Whether the copy combines its data with the contents of memory (a reduction).
    pub(crate) combines: bool,
}

/// Whether an operation can end a loop in which other threads wait, or may itself behave
/// differently the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Changes only the registers and local memory of its lanes, as a function of these and of
    /// memory.
    Local,
    /// May change memory. Whether it did is reported at run time.
    Reported,
    /// Changes something that others can see, or returns a different value each time, once lanes
    /// have gone on from it.
    Visible,
}

/// The part of an operation in synchronisation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Synchronization {
    None,
    /// Synchronises without waiting (an arrival, a fence, a commit), or starts a copy.
    Signals,
    Waits(Wait),
}

/// The event that an operation waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// A barrier of the block.
    Barrier { id: Reg },
    /// The cluster's barrier.
    Cluster,
    /// A phase of an mbarrier. `done` is the predicate that reports whether the phase is complete.
    /// A wait that may not block sets it at once.
    Mbarrier { space: Space, address: Address, phase: Reg, parity: bool, done: Reg, may_block: bool },
    /// The thread's bulk groups, except the last `pending`.
    BulkGroups { pending: u32, read: bool },
    /// All but the given number of the thread's latest `cp.async` groups; without a number, all its
    /// copies.
    AsyncGroups(Option<u32>),
    /// All but the given number of the warpgroup's latest `wgmma` groups.
    MultiplyGroups(u32),
    /// This many registers for each thread, which other warps have to release.
    Registers(u32),
    /// The lanes of a mask, at a barrier of the warp.
    WarpBarrier { mask: Reg },
    /// The lanes of a mask, which exchange registers.
    Exchange,
    /// All lanes of the warp.
    WholeWarp,
}

impl Facts {
    /// An operation with no properties other than its class.
    const fn of(class: Class) -> Self {
        Self {
            class,
            reads: OpFootprint::None,
            writes: OpFootprint::None,
            effect: Effect::Local,
            synchronization: Synchronization::None,
            is_branch: false,
        }
    }

    /// An operation whose execution others can observe.
    const fn visible(class: Class) -> Self {
        Self { effect: Effect::Visible, ..Self::of(class) }
    }

    const fn signals(class: Class) -> Self {
        Self { synchronization: Synchronization::Signals, ..Self::visible(class) }
    }

    const fn waits(class: Class, wait: Wait) -> Self {
        Self { synchronization: Synchronization::Waits(wait), ..Self::visible(class) }
    }

    /// An atomic operation at this address.
    fn atomic(access: LaneAccess) -> Self {
        let footprint = OpFootprint::Lane(access);
        let class = Class::Atomic(access.memory.into());
        Self { reads: footprint, writes: footprint, effect: Effect::Reported, ..Self::of(class) }
    }

    /// A copy that runs asynchronously.
    const fn copy(reads: OpFootprint, writes: OpFootprint) -> Self {
        Self { reads, writes, ..Self::signals(Class::Copy) }
    }

    /// Returns the accesses that each lane makes when the instruction runs. An atomic operation has
    /// two, a read and a write.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = LaneAccess> {
        [self.reads, self.writes].into_iter().filter_map(OpFootprint::lane)
    }

    /// Whether each lane reads and writes memory in one operation.
    pub(crate) fn is_atomic(&self) -> bool {
        self.reads.lane().is_some() && self.writes.lane().is_some()
    }

    /// Returns the mask of a warp barrier, and `None` for other operations.
    pub(crate) fn warp_barrier(&self) -> Option<Reg> {
        if let Synchronization::Waits(Wait::WarpBarrier { mask }) = self.synchronization {
            Some(mask)
        } else {
            None
        }
    }

    /// Whether the operation is an asynchronous copy.
    pub(crate) fn is_copy(&self) -> bool {
        self.reads.copied().is_some() || self.writes.copied().is_some()
    }

    /// Whether the operation is an asynchronous copy that writes global memory.
    pub(crate) fn is_copy_into_global(&self) -> bool {
        self.writes.copied().is_some_and(|copy| copy.space == Space::Global)
    }

    /// Whether lanes make strong accesses to global memory, or may.
    pub(crate) fn is_strong_in_global(&self) -> bool {
        self.accesses().any(|access| {
            let may_be_global = match access.memory {
                Memory::Machine(Space::Global | Space::Generic) => true,
                Memory::Machine(Space::Shared | Space::SharedCluster) | Memory::Local | Memory::Param => {
                    false
                }
            };
            may_be_global && (self.is_atomic() || access.order.order.is_strong())
        })
    }

    /// Whether clusters can observe the order in which they reach global memory: the operation
    /// makes, or may make, accesses stronger than weak there, or reduces into it.
    pub(crate) fn is_ordered_in_global(&self) -> bool {
        let combines = self.writes.copied().is_some_and(|copy| copy.combines && copy.space == Space::Global);
        self.is_strong_in_global() || combines
    }
}

impl OpFootprint {
    /// The footprint of a copy through the asynchronous proxy.
    const fn asynchronous(space: Space) -> Self {
        Self::Copy(CopyAccess { space, combines: false })
    }

    /// The footprint of a copy through the asynchronous proxy, and whether it combines its data
    /// with the contents of memory.
    const fn reduced(space: Space, combines: bool) -> Self {
        Self::Copy(CopyAccess { space, combines })
    }

    /// The footprint of a copy through the generic proxy.
    const fn generic(space: Space, combines: bool) -> Self {
        Self::Copy(CopyAccess { space, combines })
    }

    /// Returns the access that each lane makes when the instruction runs.
    pub(crate) fn lane(self) -> Option<LaneAccess> {
        match self {
            Self::Lane(access) => Some(access),
            Self::None | Self::Copy(_) | Self::Object => None,
        }
    }

    fn copied(self) -> Option<CopyAccess> {
        match self {
            Self::Copy(access) => Some(access),
            Self::None | Self::Lane(_) | Self::Object => None,
        }
    }
}

impl Op {
    /// Returns the facts of this operation.
    pub(crate) fn facts(&self) -> Facts {
        match self {
            Op::Alu(op) => alu(op),
            Op::Address(op) => match op {
                AddressOp::Convert { .. }
                | AddressOp::IsSpace { .. }
                | AddressOp::MapToRank { .. }
                | AddressOp::RankOf { .. } => Facts::of(Class::Integer),
            },
            Op::Memory(op) => memory(op),
            Op::Warp(op) => warp(op),
            Op::Warpgroup(op) => warpgroup(op),
            Op::Barrier(op) => barrier(op),
            Op::Mbarrier(op) => mbarrier(op),
            Op::Fence(_) | Op::MemoryFence(_) => {
                Facts { effect: Effect::Local, ..Facts::signals(Class::Fence) }
            }
            Op::CopyAsync(op) => copy_async(op),
            Op::Tma(op) => tma(op),
            Op::Control(op) => control(op),
        }
    }
}

fn alu(op: &Alu) -> Facts {
    match op {
        Alu::Unary { .. }
        | Alu::Binary { .. }
        | Alu::Ternary { .. }
        | Alu::Lop3 { .. }
        | Alu::Insert { .. }
        | Alu::Carry(_)
        | Alu::Pack { .. }
        | Alu::Unpack { .. } => Facts::of(Class::Integer),
        Alu::Compare(compare) => match compare.compared {
            Compared::Integer(_) => Facts::of(Class::Integer),
            Compared::Float(..) => Facts::of(Class::Float),
        },
        Alu::Float(_) | Alu::ComparePair(_) => Facts::of(Class::Float),
        Alu::Convert { .. } | Alu::ConvertPair { .. } => Facts::of(Class::Convert),
        // These affect only the lane's registers, but return a different value each time.
        Alu::Clock { .. } | Alu::ActiveMask { .. } => Facts::visible(Class::Integer),
    }
}

fn memory(op: &MemoryOp) -> Facts {
    let lane = |access: &Access| LaneAccess {
        memory: access.memory,
        order: access.order,
        address: access.address,
        bytes: access.total_bytes(),
    };
    match op {
        MemoryOp::Load(access) => {
            let class = Class::Load(access.memory.into());
            Facts { reads: OpFootprint::Lane(lane(access)), ..Facts::of(class) }
        }
        MemoryOp::Store(access) => {
            let effect = match access.memory {
                Memory::Local => Effect::Local,
                Memory::Machine(_) | Memory::Param => Effect::Visible,
            };
            let class = Class::Store(access.memory.into());
            Facts { writes: OpFootprint::Lane(lane(access)), effect, ..Facts::of(class) }
        }
        MemoryOp::Atomic(atomic) => Facts::atomic(LaneAccess {
            memory: atomic.memory,
            order: atomic.order,
            address: atomic.address,
            bytes: atomic.bytes,
        }),
        MemoryOp::AtomicVector(vector) => Facts::atomic(LaneAccess {
            memory: Memory::Machine(vector.space),
            order: vector.order,
            address: vector.address,
            bytes: vector.bytes * vector.sources.len() as u32,
        }),
        MemoryOp::WideAtomic(wide) => Facts::atomic(LaneAccess {
            memory: Memory::Machine(wide.space),
            order: wide.order,
            address: wide.address,
            bytes: 16,
        }),
        MemoryOp::CacheLine { address, discards } => {
            let line = LaneAccess {
                memory: Memory::Machine(Space::Global),
                order: AccessOrder::WEAK,
                address: *address,
                bytes: 128,
            };
            let writes = if *discards { OpFootprint::Lane(line) } else { OpFootprint::None };
            Facts { writes, ..Facts::visible(Class::Control) }
        }
        MemoryOp::CopyLocal { .. } => {
            Facts { reads: OpFootprint::Object, writes: OpFootprint::Object, ..Facts::of(Class::Control) }
        }
    }
}

fn warp(WarpOp { mask, kind }: &WarpOp) -> Facts {
    let exchange = Facts::waits(Class::Warp, Wait::Exchange);
    match kind {
        Collective::Barrier => Facts::waits(Class::Warp, Wait::WarpBarrier { mask: *mask }),
        Collective::Shuffle { .. }
        | Collective::Vote { .. }
        | Collective::Match { .. }
        | Collective::Redux { .. }
        | Collective::Elect { .. } => Facts { effect: Effect::Local, ..exchange },
        Collective::Matrix(code) => match **code {
            MatrixCode::Load { .. } => Facts { reads: OpFootprint::Object, ..exchange },
            MatrixCode::Store { .. } => Facts { writes: OpFootprint::Object, ..exchange },
            MatrixCode::Move { .. } => exchange,
        },
        Collective::Mma(_) | Collective::MmaDouble(_) => {
            Facts { effect: Effect::Local, ..Facts::waits(Class::Tensor, Wait::Exchange) }
        }
    }
}

fn warpgroup(op: &WarpgroupOp) -> Facts {
    let class = Class::Tensor;
    match op {
        // Orders only the registers of the warpgroup.
        WarpgroupOp::Fence => Facts { effect: Effect::Local, ..Facts::signals(class) },
        WarpgroupOp::Multiply(_) => Facts { reads: OpFootprint::Object, ..Facts::signals(class) },
        WarpgroupOp::Commit => Facts::signals(class),
        WarpgroupOp::Wait(pending) => Facts::waits(class, Wait::MultiplyGroups(*pending)),
        WarpgroupOp::Registers { count, grows: true } => {
            Facts::waits(Class::Control, Wait::Registers(*count))
        }
        WarpgroupOp::Registers { grows: false, .. } => Facts::signals(Class::Control),
    }
}

fn barrier(op: &BarrierOp) -> Facts {
    let class = Class::Barrier;
    match op {
        BarrierOp::Block(barrier) if barrier.arrive_only => Facts::signals(class),
        BarrierOp::Block(barrier) => Facts::waits(class, Wait::Barrier { id: barrier.id }),
        BarrierOp::ClusterArrive { .. } => Facts::signals(class),
        BarrierOp::ClusterWait(_) => Facts::waits(class, Wait::Cluster),
    }
}

fn mbarrier(op: &MbarrierOp) -> Facts {
    let class = Class::Mbarrier;
    let (space, address, action) = match *op {
        MbarrierOp::PendingCount { .. } => return Facts::of(class),
        MbarrierOp::At { space, address, action } => (space, address, action),
    };
    let facts = match action {
        MbarrierAction::Init { .. }
        | MbarrierAction::Invalidate
        | MbarrierAction::Arrive { .. }
        | MbarrierAction::ExpectTx { .. }
        | MbarrierAction::CompleteTx { .. } => Facts { writes: OpFootprint::Object, ..Facts::signals(class) },
        MbarrierAction::TestWait { phase, parity, done, may_block, .. } => {
            let wait = Wait::Mbarrier { space, address, phase, parity, done, may_block };
            Facts { effect: Effect::Local, ..Facts::waits(class, wait) }
        }
    };
    Facts { reads: OpFootprint::Object, ..facts }
}

fn copy_async(op: &CopyAsyncOp) -> Facts {
    match op {
        CopyAsyncOp::Copy(_) => Facts::copy(
            OpFootprint::generic(Space::Global, false),
            OpFootprint::generic(Space::Shared, false),
        ),
        CopyAsyncOp::Commit => Facts::signals(Class::BulkGroup),
        CopyAsyncOp::Wait(pending) => Facts::waits(Class::BulkGroup, Wait::AsyncGroups(*pending)),
        CopyAsyncOp::Arrive { .. } => {
            Facts { writes: OpFootprint::Object, ..Facts::signals(Class::Mbarrier) }
        }
    }
}

fn tma(op: &TmaOp) -> Facts {
    let (global, shared) =
        (OpFootprint::asynchronous(Space::Global), OpFootprint::asynchronous(Space::Shared));
    match op {
        TmaOp::Tensor(code) => match code.action {
            TensorCodeAction::Load { space, .. } => Facts::copy(global, OpFootprint::asynchronous(space)),
            TensorCodeAction::Store { .. } => Facts::copy(shared, global),
            TensorCodeAction::Reduce { .. } => Facts::copy(shared, OpFootprint::reduced(Space::Global, true)),
            TensorCodeAction::Prefetch => Facts::copy(global, OpFootprint::None),
        },
        TmaOp::Bulk(code) => match **code {
            BulkCode::Load { space, .. } => Facts::copy(global, OpFootprint::asynchronous(space)),
            BulkCode::Store { reduce, .. } => {
                Facts::copy(shared, OpFootprint::reduced(Space::Global, reduce.is_some()))
            }
            BulkCode::ToCluster { reduce, .. } => {
                Facts::copy(shared, OpFootprint::reduced(Space::SharedCluster, reduce.is_some()))
            }
            BulkCode::Prefetch { .. } => Facts::copy(global, OpFootprint::None),
        },
        TmaOp::Remote(code) => {
            Facts::copy(OpFootprint::None, OpFootprint::generic(code.space, code.reduce.is_some()))
        }
        TmaOp::Map(code) => match **code {
            MapCode::Replace { space, .. } => Facts {
                reads: OpFootprint::Object,
                writes: OpFootprint::Object,
                ..Facts::visible(Class::Store(space.into()))
            },
            MapCode::Copy { .. } => Facts {
                reads: OpFootprint::Object,
                writes: OpFootprint::Object,
                ..Facts::waits(Class::Copy, Wait::WholeWarp)
            },
            MapCode::Acquire { .. } => Facts::signals(Class::Fence),
        },
        TmaOp::Commit => Facts::signals(Class::BulkGroup),
        TmaOp::Wait { pending, read } => {
            Facts::waits(Class::BulkGroup, Wait::BulkGroups { pending: *pending, read: *read })
        }
    }
}

fn control(op: &ControlOp) -> Facts {
    let class = Class::Control;
    match op {
        ControlOp::Branch(_) => Facts { is_branch: true, ..Facts::of(class) },
        ControlOp::BranchIndexed { .. }
        | ControlOp::Call { .. }
        | ControlOp::Return(_)
        | ControlOp::Nothing
        | ControlOp::Mark(_)
        | ControlOp::Yield => Facts::of(class),
        ControlOp::Exit | ControlOp::Trap(_) | ControlOp::Unsupported(_) => Facts::visible(class),
        ControlOp::Printf { .. } | ControlOp::AssertFail { .. } => {
            Facts { reads: OpFootprint::Object, ..Facts::visible(class) }
        }
    }
}
