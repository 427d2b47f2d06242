//! What each operation is, what it reads and writes, and what it waits for.
//!
//! This is the one list of all operations besides their execution. Counting, the timeline, the
//! search for loops that wait, and launches ask it. The model is the table of opcode facts of
//! Cranelift (`can_load`, `can_store` and their like).

use super::{
    Access, AccessOrder, Address, AddressOp, Alu, BarrierOp, BulkCode, Class, Collective, Compared,
    ControlOp, CopyAsyncOp, MapCode, MatrixCode, MbarrierAction, MbarrierOp, Memory, MemoryOp, Op, Reg,
    Space, TensorCodeAction, TmaOp, WarpOp, WarpgroupOp,
};

/// What is known of an operation without running it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// As what it is counted.
    pub(crate) class: Class,
    /// The memory that it reads.
    pub(crate) reads: Footprint,
    /// The memory that it writes.
    pub(crate) writes: Footprint,
    /// Whether others see that it was run.
    pub(crate) effect: Effect,
    /// What it waits for, or whether others may wait for it.
    pub(crate) synchronization: Synchronization,
    /// Whether it is `bra`.
    pub(crate) is_branch: bool,
}

/// The memory that an operation reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Footprint {
    None,
    /// Bytes at an address of each lane, when it is run.
    Lane(LaneAccess),
    /// Bytes that a copy reads or writes on its own, later.
    Copy(CopyAccess),
    /// What only its own execution finds: an mbarrier, a tensor map, the rows of a matrix, a text,
    /// a function's parameters.
    Object,
}

/// Bytes that a lane accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneAccess {
    pub(crate) memory: Memory,
    pub(crate) order: AccessOrder,
    pub(crate) address: Address,
    /// All bytes, of a vector too.
    pub(crate) bytes: u32,
}

/// The memory that a copy accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyAccess {
    pub(crate) space: Space,
    /// Whether what is written is combined with what was there.
    pub(crate) combines: bool,
}

/// Whether an operation can end a loop in which other threads wait, or may itself do something else
/// the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing but the registers and the local memory of its lanes, by what they hold
    /// and what memory holds.
    Local,
    /// It may change memory, and says at run time whether it did.
    Reported,
    /// Lanes that have gone on from it have changed what others see, or get another value each
    /// time.
    Visible,
}

/// How an operation meets others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Synchronization {
    None,
    /// It synchronizes without waiting (an arrival, a fence, a commit), or starts a copy.
    Signals,
    Waits(Wait),
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// A barrier of the block.
    Barrier { id: Reg },
    /// The cluster's barrier.
    Cluster,
    /// A phase of an mbarrier. `done` is the predicate that says whether it is complete, which a
    /// wait that may not block gives at once.
    Mbarrier { space: Space, address: Address, phase: Reg, parity: bool, done: Reg, may_block: bool },
    /// The thread's bulk groups but the last `pending`.
    BulkGroups { pending: u32, read: bool },
    /// All but the given number of the thread's latest `cp.async` groups; without a number, all its
    /// copies.
    AsyncGroups(Option<u32>),
    /// All but the last `pending` of the warpgroup's groups of multiplications.
    MultiplyGroups(u32),
    /// Registers that other warps have to give back.
    Registers(u32),
    /// The lanes of a mask, at a barrier of the warp.
    WarpBarrier { mask: Reg },
    /// The lanes of a mask, which exchange registers.
    Exchange,
    /// All lanes of the warp.
    WholeWarp,
}

impl Facts {
    /// An operation of which there is nothing to say but its class.
    const fn of(class: Class) -> Self {
        Self {
            class,
            reads: Footprint::None,
            writes: Footprint::None,
            effect: Effect::Local,
            synchronization: Synchronization::None,
            is_branch: false,
        }
    }

    /// One that others see.
    const fn visible(class: Class) -> Self {
        Self { effect: Effect::Visible, ..Self::of(class) }
    }

    const fn signals(class: Class) -> Self {
        Self { synchronization: Synchronization::Signals, ..Self::visible(class) }
    }

    const fn waits(class: Class, wait: Wait) -> Self {
        Self { synchronization: Synchronization::Waits(wait), ..Self::visible(class) }
    }

    /// An atomic operation.
    fn atomic(access: LaneAccess) -> Self {
        let footprint = Footprint::Lane(access);
        let class = Class::Atomic(access.memory.into());
        Self { reads: footprint, writes: footprint, effect: Effect::Reported, ..Self::of(class) }
    }

    /// A copy that runs on its own.
    const fn copy(reads: Footprint, writes: Footprint) -> Self {
        Self { reads, writes, ..Self::signals(Class::Copy) }
    }

    /// What each lane accesses when the operation is run: once for what an atomic operation reads
    /// and once for what it writes.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = LaneAccess> {
        [self.reads, self.writes].into_iter().filter_map(Footprint::lane)
    }

    /// Whether lanes read and write at once.
    pub(crate) fn is_atomic(&self) -> bool {
        self.reads.lane().is_some() && self.writes.lane().is_some()
    }

    /// The mask of a barrier of the warp; none of anything else.
    pub(crate) fn warp_barrier(&self) -> Option<Reg> {
        if let Synchronization::Waits(Wait::WarpBarrier { mask }) = self.synchronization {
            Some(mask)
        } else {
            None
        }
    }

    /// Whether it is a copy that runs on its own.
    pub(crate) fn is_copy(&self) -> bool {
        self.reads.copied().is_some() || self.writes.copied().is_some()
    }

    /// Whether it is a copy that writes global memory.
    pub(crate) fn is_copy_into_global(&self) -> bool {
        self.writes.copied().is_some_and(|copy| copy.space == Space::Global)
    }

    /// Whether lanes access global memory strongly, or may.
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

    /// Whether clusters can see in which order they come to global memory: it is accessed there, or
    /// may be, more strongly than weak, or combined with.
    pub(crate) fn is_ordered_in_global(&self) -> bool {
        let combines = self.writes.copied().is_some_and(|copy| copy.combines && copy.space == Space::Global);
        self.is_strong_in_global() || combines
    }
}

impl Footprint {
    /// What a copy through the asynchronous proxy accesses.
    const fn asynchronous(space: Space) -> Self {
        Self::Copy(CopyAccess { space, combines: false })
    }

    /// The same, combined with what is there.
    const fn reduced(space: Space, combines: bool) -> Self {
        Self::Copy(CopyAccess { space, combines })
    }

    /// What a copy through the generic proxy accesses.
    const fn generic(space: Space, combines: bool) -> Self {
        Self::Copy(CopyAccess { space, combines })
    }

    /// What each lane accesses when the operation is run.
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
    /// What it is, reads, writes and waits for.
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
        // Of the warp alone, but never the same.
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
            Facts { reads: Footprint::Lane(lane(access)), ..Facts::of(class) }
        }
        MemoryOp::Store(access) => {
            let effect = match access.memory {
                Memory::Local => Effect::Local,
                Memory::Machine(_) | Memory::Param => Effect::Visible,
            };
            let class = Class::Store(access.memory.into());
            Facts { writes: Footprint::Lane(lane(access)), effect, ..Facts::of(class) }
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
            bytes: vector.bytes * vector.of.len() as u32,
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
            let writes = if *discards { Footprint::Lane(line) } else { Footprint::None };
            Facts { writes, ..Facts::visible(Class::Control) }
        }
        MemoryOp::CopyLocal { .. } => {
            Facts { reads: Footprint::Object, writes: Footprint::Object, ..Facts::of(Class::Control) }
        }
    }
}

fn warp(WarpOp { mask, what }: &WarpOp) -> Facts {
    let exchange = Facts::waits(Class::Warp, Wait::Exchange);
    match what {
        Collective::Barrier => Facts::waits(Class::Warp, Wait::WarpBarrier { mask: *mask }),
        Collective::Shuffle { .. }
        | Collective::Vote { .. }
        | Collective::Match { .. }
        | Collective::Redux { .. }
        | Collective::Elect { .. } => Facts { effect: Effect::Local, ..exchange },
        Collective::Matrix(code) => match **code {
            MatrixCode::Load { .. } => Facts { reads: Footprint::Object, ..exchange },
            MatrixCode::Store { .. } => Facts { writes: Footprint::Object, ..exchange },
            MatrixCode::Move { .. } => exchange,
        },
        Collective::Product(_) | Collective::DoubleProduct(_) => {
            Facts { effect: Effect::Local, ..Facts::waits(Class::Tensor, Wait::Exchange) }
        }
    }
}

fn warpgroup(op: &WarpgroupOp) -> Facts {
    let class = Class::Tensor;
    match op {
        // Of the warpgroup's registers alone.
        WarpgroupOp::Fence => Facts { effect: Effect::Local, ..Facts::signals(class) },
        WarpgroupOp::Multiply(_) => Facts { reads: Footprint::Object, ..Facts::signals(class) },
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
        | MbarrierAction::CompleteTx { .. } => Facts { writes: Footprint::Object, ..Facts::signals(class) },
        MbarrierAction::TestWait { phase, parity, done, may_block, .. } => {
            let wait = Wait::Mbarrier { space, address, phase, parity, done, may_block };
            Facts { effect: Effect::Local, ..Facts::waits(class, wait) }
        }
    };
    Facts { reads: Footprint::Object, ..facts }
}

fn copy_async(op: &CopyAsyncOp) -> Facts {
    match op {
        CopyAsyncOp::Copy(_) => {
            Facts::copy(Footprint::generic(Space::Global, false), Footprint::generic(Space::Shared, false))
        }
        CopyAsyncOp::Commit => Facts::signals(Class::BulkGroup),
        CopyAsyncOp::Wait(pending) => Facts::waits(Class::BulkGroup, Wait::AsyncGroups(*pending)),
        CopyAsyncOp::Arrive { .. } => Facts { writes: Footprint::Object, ..Facts::signals(Class::Mbarrier) },
    }
}

fn tma(op: &TmaOp) -> Facts {
    let (global, shared) = (Footprint::asynchronous(Space::Global), Footprint::asynchronous(Space::Shared));
    match op {
        TmaOp::Tensor(code) => match code.action {
            TensorCodeAction::Load { space, .. } => Facts::copy(global, Footprint::asynchronous(space)),
            TensorCodeAction::Store { .. } => Facts::copy(shared, global),
            TensorCodeAction::Reduce { .. } => Facts::copy(shared, Footprint::reduced(Space::Global, true)),
            TensorCodeAction::Prefetch => Facts::copy(global, Footprint::None),
        },
        TmaOp::Bulk(code) => match **code {
            BulkCode::Load { space, .. } => Facts::copy(global, Footprint::asynchronous(space)),
            BulkCode::Store { reduce, .. } => {
                Facts::copy(shared, Footprint::reduced(Space::Global, reduce.is_some()))
            }
            BulkCode::ToCluster { reduce, .. } => {
                Facts::copy(shared, Footprint::reduced(Space::SharedCluster, reduce.is_some()))
            }
            BulkCode::Prefetch { .. } => Facts::copy(global, Footprint::None),
        },
        TmaOp::Remote(code) => {
            Facts::copy(Footprint::None, Footprint::generic(code.space, code.reduce.is_some()))
        }
        TmaOp::Map(code) => match **code {
            MapCode::Replace { space, .. } => Facts {
                reads: Footprint::Object,
                writes: Footprint::Object,
                ..Facts::visible(Class::Store(space.into()))
            },
            MapCode::Copy { .. } => Facts {
                reads: Footprint::Object,
                writes: Footprint::Object,
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
        | ControlOp::Yield => Facts::of(class),
        ControlOp::Exit | ControlOp::Trap(_) => Facts::visible(class),
        ControlOp::Printf { .. } | ControlOp::AssertFail { .. } => {
            Facts { reads: Footprint::Object, ..Facts::visible(class) }
        }
    }
}
