//! The memory that instructions touch by a thread's own addresses, at once: no copies.

use super::Order;
use super::{Access, Address, AtomicVector, Memory, Op, WideAtomic};

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Load,
    Store,
    Atomic,
}

/// The memory that a lane touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) manner: Manner,
    pub(crate) memory: Memory,
    pub(crate) order: Order,
    pub(crate) address: Address,
    /// All bytes, of a vector too.
    pub(crate) bytes: u32,
}

impl Op {
    /// The memory that each lane touches, if it does. (Of what mbarriers count, they tell
    /// themselves.)
    pub(crate) fn touches(&self) -> Option<Touch> {
        let accessed = |manner, access: &Access| {
            let Access { memory, order, bytes, count, address, .. } = *access;
            Some(Touch { manner, memory, order, address, bytes: bytes * count })
        };
        match self {
            Op::Load(access) => accessed(Manner::Load, access),
            Op::Store(access) => accessed(Manner::Store, access),
            Op::Atomic { memory, order, bytes, address, .. } => Some(Touch {
                manner: Manner::Atomic,
                memory: *memory,
                order: *order,
                address: *address,
                bytes: *bytes,
            }),
            Op::AtomicVector(vector) => {
                let AtomicVector { space, order, bytes, address, ref of, .. } = **vector;
                let (memory, bytes) = (Memory::Machine(space), bytes * of.len() as u32);
                Some(Touch { manner: Manner::Atomic, memory, order, address, bytes })
            }
            Op::WideAtomic(wide) => {
                let WideAtomic { space, order, address, .. } = **wide;
                let memory = Memory::Machine(space);
                Some(Touch { manner: Manner::Atomic, memory, order, address, bytes: 16 })
            }
            Op::One(..)
            | Op::Two(..)
            | Op::Three(..)
            | Op::Lop3(..)
            | Op::Insert(..)
            | Op::Float { .. }
            | Op::Carry(..)
            | Op::Compare { .. }
            | Op::ComparePair { .. }
            | Op::Convert(..)
            | Op::ConvertPair(..)
            | Op::Pack(..)
            | Op::Unpack(..)
            | Op::Window { .. }
            | Op::IsSpace { .. }
            | Op::MapToRank { .. }
            | Op::RankOf { .. }
            | Op::Clock { .. }
            | Op::CacheLine { .. }
            | Op::CopyAsync(_)
            | Op::CopyAsyncCommit
            | Op::CopyAsyncWait(_)
            | Op::CopyAsyncArrive { .. }
            | Op::Branch(_)
            | Op::BranchIndexed(..)
            | Op::Call(..)
            | Op::Return(_)
            | Op::Exit
            | Op::Trap
            | Op::Nothing
            | Op::CopyLocal { .. }
            | Op::Printf { .. }
            | Op::AssertFail { .. }
            | Op::BlockBarrier(_)
            | Op::Collective { .. }
            | Op::ClusterArrive { .. }
            | Op::ClusterWait(_)
            | Op::ActiveMask(_)
            | Op::Mbarrier { .. }
            | Op::PendingCount { .. }
            | Op::Fence(_)
            | Op::Tensor(_)
            | Op::Map(_)
            | Op::Bulk(_)
            | Op::Remote(_)
            | Op::BulkCommit
            | Op::BulkWait { .. }
            | Op::Yield => None,
        }
    }
}
