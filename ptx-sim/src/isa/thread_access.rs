//! Accesses to shared memory that threads make themselves: loads, stores, atomic operations, and
//! the rows of `ldmatrix` and `stmatrix`. The accesses of copies, mbarriers and `wgmma` are not
//! included.

use super::{Access, Address, Collective, MatrixCode, Memory, MemoryOp, Op, Space, WarpOp};

/// The bytes that each of some lanes accesses in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadAccess {
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) bytes: u32,
    /// The lanes that have an address, if they take part.
    pub(crate) lanes: u32,
    pub(crate) writes: bool,
}

/// Bytes in a row of `ldmatrix`.
const ROW: u32 = 16;

impl Op {
    /// Returns the access to shared memory that threads make in this operation, unless its address
    /// is generic.
    pub(crate) fn thread_access(&self) -> Option<ThreadAccess> {
        match self {
            Op::Memory(op) => of_memory(op),
            Op::Warp(op) => of_warp(op),
            Op::Alu(_)
            | Op::Address(_)
            | Op::Warpgroup(_)
            | Op::Barrier(_)
            | Op::Mbarrier(_)
            | Op::Fence(_)
            | Op::MemoryFence(_)
            | Op::CopyAsync(_)
            | Op::Tma(_)
            | Op::Control(_) => None,
        }
    }
}

fn of_memory(op: &MemoryOp) -> Option<ThreadAccess> {
    let lanes = u32::MAX;
    match op {
        MemoryOp::Load(access) => of_all(access, false),
        MemoryOp::Store(access) => of_all(access, true),
        MemoryOp::Atomic(atomic) => {
            let (space, address) = (shared(atomic.memory)?, atomic.address);
            Some(ThreadAccess { space, address, bytes: atomic.bytes, lanes, writes: true })
        }
        MemoryOp::AtomicVector(vector) => {
            let space = shared(Memory::Machine(vector.space))?;
            let bytes = vector.bytes.saturating_mul(vector.sources.len() as u32);
            Some(ThreadAccess { space, address: vector.address, bytes, lanes, writes: true })
        }
        MemoryOp::WideAtomic(wide) => {
            let space = shared(Memory::Machine(wide.space))?;
            Some(ThreadAccess { space, address: wide.address, bytes: 16, lanes, writes: true })
        }
        MemoryOp::CacheLine { .. } | MemoryOp::CopyLocal { .. } => None,
    }
}

fn of_all(access: &Access, writes: bool) -> Option<ThreadAccess> {
    let (space, bytes) = (shared(access.memory)?, access.total_bytes());
    Some(ThreadAccess { space, address: access.address, bytes, lanes: u32::MAX, writes })
}

/// Returns the state space if it is one of shared memory.
fn shared(memory: Memory) -> Option<Space> {
    match memory {
        Memory::Machine(space @ (Space::Shared | Space::SharedCluster)) => Some(space),
        Memory::Machine(Space::Global | Space::Generic) | Memory::Local | Memory::Param => None,
    }
}

fn of_warp(op: &WarpOp) -> Option<ThreadAccess> {
    match &op.kind {
        Collective::Matrix(code) => of_matrix(code),
        Collective::Barrier
        | Collective::Shuffle { .. }
        | Collective::Vote { .. }
        | Collective::Match { .. }
        | Collective::Redux { .. }
        | Collective::Elect { .. }
        | Collective::Mma(_)
        | Collective::MmaDouble(_) => None,
    }
}

fn of_matrix(code: &MatrixCode) -> Option<ThreadAccess> {
    let (space, address, matrices, writes) = match code {
        MatrixCode::Load { space, address, registers, .. } => (*space, *address, registers.len(), false),
        MatrixCode::Store { space, address, registers, .. } => (*space, *address, registers.len(), true),
        MatrixCode::Move { .. } => return None,
    };
    // Each group of eight lanes holds the row addresses of one matrix.
    let lanes = u32::MAX.checked_shr(32_u32.saturating_sub(8 * matrices as u32)).unwrap_or(0);
    Some(ThreadAccess { space, address, bytes: ROW, lanes, writes })
}
