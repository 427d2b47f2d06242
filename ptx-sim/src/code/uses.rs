//! What uses the values that threads load from global memory.
//!
//! A load is over when its value has arrived. Hardware waits for that where an instruction reads
//! the register, and ptxas may put arithmetic off as long as nobody asks for its result, also
//! beyond barriers. What it cannot put off is what memory or other threads see, or what decides
//! where a thread goes on: those instructions *use* the values that reach them through arithmetic.

use std::collections::{HashMap, HashSet};

use crate::isa::{ControlOp, Inst, Loads, Memory, MemoryOp, Op, Reg, Space, Synchronization, Values};

/// The most steps that are taken from register to register and from instruction to instruction, all
/// loads together. Real kernels take some thousands.
const MOST_STEPS: usize = 1 << 22;
/// How many instructions after a load are looked at for uses at once.
const MOST_AHEAD: usize = 1024;

/// Finds what becomes of the loads from global memory, and tells each that is not used at once, and
/// its uses, of the other. None where no copy writes global memory, so that it does not matter, and
/// where it would take too many steps.
pub(super) fn mark_uses(code: &mut [Inst]) -> Option<Loads> {
    if !code.iter().any(|inst| inst.op.facts().is_copy_into_global()) {
        return None;
    }
    let flow = Flow::of(code);
    let mut left = MOST_STEPS;
    let mut all: HashMap<usize, Values> = HashMap::new();
    let mut count = 0;
    let mut at_once = vec![true; code.iter().map(|inst| inst.site.ptx_line as usize + 1).max().unwrap_or(0)];
    for (index, inst) in code.iter().enumerate() {
        let Some(registers) = loaded(&inst.op) else { continue };
        let uses = flow.uses_of(registers, &mut left)?;
        if is_used_at_once(code, index, &uses, &mut left)? {
            continue;
        }
        if let Some(at_once) = at_once.get_mut(inst.site.ptx_line as usize) {
            *at_once = false;
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
    Some(Loads { count, at_once: at_once.into() })
}

/// The instructions that use a value, by index.
struct UsesOf {
    operands: HashSet<usize>,
    guards: HashSet<usize>,
}

/// Whether a use comes before anything that others may learn of the load by, wherever its thread
/// goes: whoever knows of the load knows of the use.
fn is_used_at_once(code: &[Inst], load: usize, uses: &UsesOf, left: &mut usize) -> Option<bool> {
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
                ControlOp::Trap(_) => pending.extend(inst.guard.map(|_| index + 1)),
                ControlOp::Nothing | ControlOp::Yield => pending.push(index + 1),
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

/// What a load from global memory writes.
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

/// Where the values of registers go.
#[derive(Default)]
struct Flow {
    /// The registers that are computed from each.
    computed: HashMap<Reg, Vec<Reg>>,
    /// The instructions that use each, by index.
    operands: HashMap<Reg, Vec<usize>>,
    /// Those that it decides on.
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

    /// What uses the values of these registers, also what is computed from them; none if that takes
    /// too many steps.
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

/// The registers that an instruction reads which does more than compute. Of all but loads those
/// that it writes are taken for read as well. A store to local memory counts as one to shared
/// memory: what becomes of the value is not followed there.
fn operands(inst: &Inst) -> Vec<Reg> {
    let named = || inst.touches.as_deref().unwrap_or_default().to_vec();
    match &inst.op {
        Op::Memory(MemoryOp::Load(access)) => vec![access.address.base],
        // Of a call, it is copied to the function's registers.
        Op::Control(op) => match op {
            ControlOp::BranchIndexed { index, .. } => vec![*index],
            ControlOp::Branch(_)
            | ControlOp::Call { .. }
            | ControlOp::Return(_)
            | ControlOp::Exit
            | ControlOp::Trap(_)
            | ControlOp::Nothing
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
