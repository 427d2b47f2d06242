//! Programs: a kernel with the functions that it calls, ready to run.

use std::sync::Arc;

use tma_model::limits::RESERVED_SHARED_BYTES;

use super::{Constant, Effect, Guard, Op, Pc, Reg, Site, Special};

/// A kernel, ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) code: Vec<Inst>,
    /// Where it starts.
    pub(crate) entry: Pc,
    /// The number of registers of a thread.
    pub(crate) registers: u32,
    pub(crate) constants: Vec<Constant>,
    /// The special registers that are read, and the register that holds each.
    pub(crate) specials: Vec<(Reg, Special)>,
    /// Where each parameter lies among their bytes.
    pub(crate) params: Vec<Slot>,
    pub(crate) param_bytes: u32,
    /// Local memory of a thread.
    pub(crate) local_bytes: u32,
    /// The address at which a block's dynamic shared memory starts, behind the static part.
    pub(crate) dynamic_shared: u32,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) most_threads: Option<[u32; 3]>,
    pub(crate) required_cluster: Option<[u32; 3]>,
    /// Registers of each thread at the start, where the kernel fixes them; `setmaxnreg` is without
    /// effect where it does not.
    pub(crate) thread_registers: Option<u32>,
    /// Whether it multiplies matrices.
    pub(crate) multiplies: bool,
    /// Its loads from global memory, where instructions tell which of them they use.
    pub(crate) loads: Option<Loads>,
}

impl Program {
    /// The instruction at `pc`; none beyond the end of the code.
    #[inline(always)]
    pub(crate) fn inst(&self, pc: Pc) -> Option<&Inst> {
        self.code.get(pc.index())
    }

    /// Static shared memory of a block in bytes, with what aligns the dynamic part.
    pub(crate) fn static_shared_bytes(&self) -> u32 {
        self.dynamic_shared - RESERVED_SHARED_BYTES
    }

    /// See [`Kernel::shares_memory`](crate::Kernel::shares_memory).
    pub(crate) fn shares_memory(&self) -> bool {
        self.code.iter().any(|inst| inst.op.facts().is_ordered_in_global())
    }

    /// Whether copies of it may access global memory.
    pub(crate) fn copies_global(&self) -> bool {
        self.code.iter().any(|inst| inst.op.facts().is_copy())
    }

    /// Whether its threads access global memory strongly, or may.
    pub(crate) fn is_strong_in_global(&self) -> bool {
        self.code.iter().any(|inst| inst.op.facts().is_strong_in_global())
    }

    /// Whether every branch has an instruction to go to, and every operand a register or a
    /// constant. Linking ensures it.
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

/// Bytes of local or parameter memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// [`Facts::effect`](super::Facts::effect), which is asked for after each instruction.
    pub(crate) effect: Effect,
    pub(crate) guard: Option<Guard>,
    pub(crate) site: Site,
    /// The registers that it names, of those that tensor cores read and write on their own.
    pub(crate) touches: Option<Box<[Reg]>>,
    /// The shared variables that its source line accesses, where the PTX says which: their numbers
    /// among the module's names.
    pub(crate) variables: Option<Arc<[u32]>>,
    /// The values from global memory that it loads or uses.
    pub(crate) values: Option<Box<Values>>,
}

/// The loads from global memory of a kernel with copies that write there.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    /// How many are not used at once.
    pub(crate) count: u32,
    /// Of each PTX line, whether what is loaded there is used before anybody can learn of the load.
    pub(crate) at_once: Arc<[bool]>,
}

/// What an instruction has to do with values from global memory that are not used at once. Their
/// loads are known by numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// The number of the load that it is.
    pub(crate) load: Option<u32>,
    /// The loads whose values its operands come from.
    pub(crate) operands: Vec<u32>,
    /// Those that its guard comes from.
    pub(crate) guard: Vec<u32>,
}

impl Inst {
    pub(crate) fn new(op: Op, guard: Option<Guard>, site: Site) -> Inst {
        Inst { effect: op.facts().effect, op, guard, site, touches: None, variables: None, values: None }
    }
}

/// A variable in the shared memory of each block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName {
    /// The first byte.
    pub from: u32,
    /// The byte after the last one.
    pub to: u32,
    /// Of several things of one kind, the bytes from one to the next.
    pub step: Option<u32>,
    /// What the source calls it.
    pub name: String,
}
