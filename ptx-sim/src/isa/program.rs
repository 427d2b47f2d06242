//! Programs: a kernel with the functions that it calls, ready to run.

use std::sync::Arc;

use tma_model::limits::RESERVED_SHARED_BYTES;

use super::{Constant, Effect, Guard, Op, Pc, Reg, Site, Special};

/// A kernel, ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) code: Vec<Inst>,
    /// The first instruction.
    pub(crate) entry: Pc,
    /// The number of registers of a thread.
    pub(crate) registers: u32,
    pub(crate) constants: Vec<Constant>,
    /// The special registers that the program reads, and the register that holds each.
    pub(crate) specials: Vec<(Reg, Special)>,
    /// The position of each parameter in the parameter bytes.
    pub(crate) params: Vec<Slot>,
    pub(crate) param_bytes: u32,
    /// Bytes of local memory of a thread.
    pub(crate) local_bytes: u32,
    /// The address at which a block's dynamic shared memory starts, after the static part.
    pub(crate) dynamic_shared: u32,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) most_threads: Option<[u32; 3]>,
    pub(crate) required_cluster: Option<[u32; 3]>,
    /// Registers of each thread at the start, if the kernel fixes them. Otherwise `setmaxnreg` has
    /// no effect.
    pub(crate) thread_registers: Option<u32>,
    /// Whether the kernel uses `wgmma`.
    pub(crate) multiplies: bool,
    /// The loads from global memory, if instructions record which of them they use.
    pub(crate) loads: Option<Loads>,
}

impl Program {
    /// Returns the instruction at `pc`, and `None` beyond the end of the code.
    #[inline(always)]
    pub(crate) fn inst(&self, pc: Pc) -> Option<&Inst> {
        self.code.get(pc.index())
    }

    /// Returns the bytes of static shared memory of a block, including the padding that aligns the
    /// dynamic part.
    pub(crate) fn static_shared_bytes(&self) -> u32 {
        self.dynamic_shared - RESERVED_SHARED_BYTES
    }

    /// See [`Kernel::shares_memory`](crate::Kernel::shares_memory).
    pub(crate) fn shares_memory(&self) -> bool {
        self.code.iter().any(|inst| inst.op.facts().is_ordered_in_global())
    }

    /// Whether asynchronous copies of the program may access global memory.
    pub(crate) fn copies_global(&self) -> bool {
        self.code.iter().any(|inst| inst.op.facts().is_copy())
    }

    /// Whether threads of the program make strong accesses to global memory, or may.
    pub(crate) fn is_strong_in_global(&self) -> bool {
        self.code.iter().any(|inst| inst.op.facts().is_strong_in_global())
    }

    /// Whether every branch has an instruction as its target, and every operand a register or a
    /// constant. Linking ensures this.
    pub(crate) fn is_consistent(&self) -> bool {
        let exists = |reg: Reg| match reg.as_constant() {
            Some(constant) => constant < self.constants.len(),
            None => reg.0 < self.registers,
        };
        let sound = |inst: &Inst| {
            inst.guard.is_none_or(|guard| exists(guard.reg))
                && inst.op.targets().iter().all(|target| self.inst(*target).is_some())
                && inst.op.facts().accesses().all(|access| exists(access.address.base))
        };
        self.inst(self.entry).is_some() && self.code.iter().all(sound)
    }
}

/// A range of bytes in local or parameter memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// A copy of [`Facts::effect`](super::Facts::effect), which is needed after each instruction.
    pub(crate) effect: Effect,
    pub(crate) guard: Option<Guard>,
    pub(crate) site: Site,
    /// The registers named by this instruction that tensor cores also read or write asynchronously.
    pub(crate) touches: Option<Box<[Reg]>>,
    /// The shared variables that the source line accesses, if the PTX says which. They are indices
    /// into the module's names.
    pub(crate) variables: Option<Arc<[u32]>>,
    /// The values from global memory that the instruction loads or uses.
    pub(crate) values: Option<Box<Values>>,
}

/// The loads from global memory, in a kernel with copies that write there.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    /// The number of loads that are not used at once.
    pub(crate) count: u32,
    /// For each PTX line, whether the value loaded there is used before any other thread can learn
    /// of the load.
    pub(crate) used_immediately: Arc<[bool]>,
}

/// The values from global memory that an instruction loads or uses, restricted to loads that are
/// not used at once. Loads are identified by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// The number of this load, if the instruction is one.
    pub(crate) load: Option<u32>,
    /// The loads whose values reach the operands.
    pub(crate) operands: Vec<u32>,
    /// The loads whose values reach the guard.
    pub(crate) guard: Vec<u32>,
}

impl Inst {
    pub(crate) fn new(op: Op, guard: Option<Guard>, site: Site) -> Inst {
        Inst { effect: op.facts().effect, op, guard, site, touches: None, variables: None, values: None }
    }
}
