//! Uses of the values that threads load from global memory.
//!
//! A load has completed when its value has arrived. Hardware waits for the value where an
//! instruction reads the register, and ptxas may defer arithmetic, even across barriers, until its
//! result is needed. It cannot defer instructions whose effect memory or other threads can see, or
//! that decide where a thread continues. Those instructions *use* the values that reach them
//! through arithmetic.

use std::collections::{HashMap, HashSet};

use crate::isa::{ControlOp, Inst, Loads, Memory, MemoryOp, Op, Reg, Space, Synchronization, Values};

/// The most steps from register to register and from instruction to instruction, for all loads
/// together. Real kernels take some thousands.
const MOST_STEPS: usize = 1 << 22;
/// The most instructions after a load that are searched for an immediate use.
const MOST_AHEAD: usize = 1024;

/// Finds the uses of loads from global memory, and annotates each load that is not used at once,
/// and its uses, with the load's number. Returns `None` if no copy writes global memory, so that
/// uses do not matter, or if the analysis takes too many steps.
pub(super) fn mark_uses(code: &mut [Inst]) -> Option<Loads> {
    if !code.iter().any(|inst| inst.op.facts().is_copy_into_global()) {
        return None;
    }
    let flow = Flow::of(code);
    let mut left = MOST_STEPS;
    let mut all: HashMap<usize, Values> = HashMap::new();
    let mut count = 0;
    let mut used_immediately =
        vec![true; code.iter().map(|inst| inst.site.ptx_line as usize + 1).max().unwrap_or(0)];
    for (index, inst) in code.iter().enumerate() {
        let Some(registers) = loaded(&inst.op) else { continue };
        let uses = flow.uses_of(registers, &mut left)?;
        if is_used_immediately(code, index, &uses, &mut left)? {
            continue;
        }
        if let Some(used_immediately) = used_immediately.get_mut(inst.site.ptx_line as usize) {
            *used_immediately = false;
        }
        for used in uses.operands {
            all.entry(used).or_default().operands.push(count);
        }
        for used in uses.guards {
            all.entry(used).or_default().guard.push(count);
        }
        all.entry(index).or_default().load = Some(count);
        count += 1;
    }
    for (index, values) in all {
        if let Some(inst) = code.get_mut(index) {
            inst.values = Some(Box::new(values));
        }
    }
    Some(Loads { count, used_immediately: used_immediately.into() })
}

/// The instructions that use a value, by index.
struct UsesOf {
    operands: HashSet<usize>,
    guards: HashSet<usize>,
}

/// Returns whether, on every path, a use comes before anything by which other threads may learn of
/// the load. A thread that knows of the load then also knows of the use.
fn is_used_immediately(code: &[Inst], load: usize, uses: &UsesOf, left: &mut usize) -> Option<bool> {
    let mut pending = vec![load + 1];
    let mut seen = HashSet::new();
    while let Some(index) = pending.pop() {
        *left = left.checked_sub(1)?;
        if index == load || seen.len() > MOST_AHEAD {
            return Some(false);
        }
        if !seen.insert(index) {
            continue;
        }
        let Some(inst) = code.get(index) else { return Some(false) };
        let is_operand = inst.guard.is_none() && uses.operands.contains(&index);
        if is_operand || uses.guards.contains(&index) {
            continue;
        }
        let facts = inst.op.facts();
        let is_strong = facts.is_atomic() || facts.accesses().any(|access| access.order.order.is_strong());
        let orders = is_strong || !matches!(facts.synchronization, Synchronization::None);
        match &inst.op {
            _ if orders => return Some(false),
            Op::Control(op) => match op {
                ControlOp::Branch(target) => {
                    pending.push(target.index());
                    pending.extend(inst.guard.map(|_| index + 1));
                }
                ControlOp::Trap(_) | ControlOp::Unsupported(_) => {
                    pending.extend(inst.guard.map(|_| index + 1));
                }
                ControlOp::Nothing | ControlOp::Mark(_) | ControlOp::Yield => pending.push(index + 1),
                ControlOp::BranchIndexed { .. }
                | ControlOp::Call { .. }
                | ControlOp::Return(_)
                | ControlOp::Exit
                | ControlOp::Printf { .. }
                | ControlOp::AssertFail { .. } => return Some(false),
            },
            Op::Alu(_)
            | Op::Address(_)
            | Op::Memory(_)
            | Op::Warp(_)
            | Op::Warpgroup(_)
            | Op::Barrier(_)
            | Op::Mbarrier(_)
            | Op::Fence(_)
            | Op::MemoryFence(_)
            | Op::CopyAsync(_)
            | Op::Tma(_) => pending.push(index + 1),
        }
    }
    Some(true)
}

/// Returns the registers that a load from global memory writes.
fn loaded(op: &Op) -> Option<&[Reg]> {
    match op {
        Op::Memory(MemoryOp::Load(access)) => match access.memory {
            Memory::Machine(Space::Global | Space::Generic) => access.registers.get(..access.count as usize),
            Memory::Machine(Space::Shared | Space::SharedCluster) | Memory::Local | Memory::Param => None,
        },
        Op::Memory(
            MemoryOp::Store(_)
            | MemoryOp::Atomic(_)
            | MemoryOp::AtomicVector(_)
            | MemoryOp::WideAtomic(_)
            | MemoryOp::CacheLine { .. }
            | MemoryOp::CopyLocal { .. },
        )
        | Op::Alu(_)
        | Op::Address(_)
        | Op::Warp(_)
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

/// The data flow between registers and instructions.
#[derive(Default)]
struct Flow {
    /// The registers that are computed from each register.
    computed: HashMap<Reg, Vec<Reg>>,
    /// The instructions that use each register as an operand, by index.
    operands: HashMap<Reg, Vec<usize>>,
    /// The instructions that each register guards.
    guards: HashMap<Reg, Vec<usize>>,
}

impl Flow {
    fn of(code: &[Inst]) -> Self {
        let mut flow = Self::default();
        for (index, inst) in code.iter().enumerate() {
            let guard = inst.guard.map(|guard| guard.reg);
            if let Some(computed) = inst.op.computed() {
                let to: Vec<Reg> = computed.to.into_iter().filter(|reg| *reg != Reg::SINK).collect();
                for from in computed.from.into_iter().chain(guard).filter(|reg| reg.as_constant().is_none()) {
                    flow.computed.entry(from).or_default().extend(&to);
                }
                continue;
            }
            if let Some(guard) = guard {
                flow.guards.entry(guard).or_default().push(index);
            }
            for reg in operands(inst).into_iter().filter(|reg| Some(*reg) != guard) {
                flow.operands.entry(reg).or_default().push(index);
            }
        }
        flow
    }

    /// Returns the uses of the values of these registers, including values computed from them, or
    /// `None` if that takes too many steps.
    fn uses_of(&self, registers: &[Reg], left: &mut usize) -> Option<UsesOf> {
        let mut reached: HashSet<Reg> = registers.iter().copied().filter(|reg| *reg != Reg::SINK).collect();
        let mut rest: Vec<Reg> = reached.iter().copied().collect();
        let mut uses = UsesOf { operands: HashSet::new(), guards: HashSet::new() };
        while let Some(reg) = rest.pop() {
            let operands = self.operands.get(&reg).map(Vec::as_slice).unwrap_or_default();
            let guards = self.guards.get(&reg).map(Vec::as_slice).unwrap_or_default();
            let next = self.computed.get(&reg).map(Vec::as_slice).unwrap_or_default();
            *left = left.checked_sub(operands.len() + guards.len() + next.len() + 1)?;
            uses.operands.extend(operands);
            uses.guards.extend(guards);
            rest.extend(next.iter().filter(|reg| reached.insert(**reg)));
        }
        Some(uses)
    }
}

/// Returns the registers that an instruction reads, if it does more than compute. Except for loads,
/// registers that it writes count as read too. A store to local memory counts as a use, since its
/// value is not tracked further.
fn operands(inst: &Inst) -> Vec<Reg> {
    let named = || inst.touches.as_deref().unwrap_or_default().to_vec();
    match &inst.op {
        Op::Memory(MemoryOp::Load(access)) => vec![access.address.base],
        // The arguments of a call are copied into the function's registers.
        Op::Control(op) => match op {
            ControlOp::BranchIndexed { index, .. } => vec![*index],
            ControlOp::Branch(_)
            | ControlOp::Call { .. }
            | ControlOp::Return(_)
            | ControlOp::Exit
            | ControlOp::Trap(_)
            | ControlOp::Unsupported(_)
            | ControlOp::Nothing
            | ControlOp::Mark(_)
            | ControlOp::Yield
            | ControlOp::Printf { .. }
            | ControlOp::AssertFail { .. } => Vec::new(),
        },
        Op::Memory(
            MemoryOp::Store(_)
            | MemoryOp::Atomic(_)
            | MemoryOp::AtomicVector(_)
            | MemoryOp::WideAtomic(_)
            | MemoryOp::CacheLine { .. }
            | MemoryOp::CopyLocal { .. },
        )
        | Op::Alu(_)
        | Op::Address(_)
        | Op::Warp(_)
        | Op::Warpgroup(_)
        | Op::Barrier(_)
        | Op::Mbarrier(_)
        | Op::Fence(_)
        | Op::MemoryFence(_)
        | Op::CopyAsync(_)
        | Op::Tma(_) => named(),
    }
}
