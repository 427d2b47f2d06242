//! Registers that the warpgroups of a block claim and release with `setmaxnreg`.

use tma_front::ir::StmtId;
use tma_model::limits::WARPGROUP_THREADS;

use crate::finding::UndecidedReason;
use crate::run::{Run, StepFlow};
use crate::state::RegisterChange;

impl Run<'_, '_> {
    /// Lets a warpgroup claim registers, or release some.
    pub(crate) fn registers(&mut self, stmt: StmtId, increase: bool, registers: u32) -> StepFlow {
        let Some(begins) = self.input.registers else { return StepFlow::Next };
        let (index, warpgroup) = (self.agent().block, self.warpgroup());
        let (step, past) = (self.epoch(), self.agent().view.knows().past().clone());
        let site = self.site(stmt);
        let block = &mut self.state.blocks[index];
        let held = block.registers.get(&warpgroup).copied().unwrap_or(begins);
        let amount = held.abs_diff(registers) * WARPGROUP_THREADS;
        if increase && registers > held {
            let Some(left) = block.free_registers.checked_sub(amount) else { return StepFlow::Blocked };
            block.free_registers = left;
        } else if !increase && registers < held {
            block.free_registers += amount;
            self.state.event_count += 1;
        }
        if amount > 0 {
            block.changes.push(RegisterChange { increase, amount, step, past, site });
        }
        block.registers.insert(warpgroup, registers);
        StepFlow::Next
    }

    /// Records a reason undecided if registers may not suffice in some order of the warpgroups.
    /// They suffice if the releases that precede an increase in every order, or that follow no
    /// increase at all, cover it and all increases that need not follow it.
    pub(crate) fn registers_suffice(&mut self, block: usize) {
        let changes = &self.state.blocks[block].changes;
        let (increases, decreases): (Vec<&RegisterChange>, Vec<&RegisterChange>) =
            changes.iter().partition(|change| change.increase);
        let is_free =
            |decrease: &&&RegisterChange| !increases.iter().any(|increase| decrease.comes_after(increase));
        let lacks = |increase: &&&RegisterChange| {
            let given =
                decreases.iter().filter(|decrease| increase.comes_after(decrease) || is_free(decrease));
            let taken = increases.iter().filter(|other| !other.comes_after(increase));
            let sum = |changes: &mut dyn Iterator<Item = u64>| changes.sum::<u64>();
            sum(&mut taken.map(|change| u64::from(change.amount)))
                > sum(&mut given.map(|change| u64::from(change.amount)))
        };
        let site = increases.iter().find(lacks).map(|change| change.site);
        if let Some(site) = site {
            self.note_undecided(UndecidedReason::Registers, self.span_of(site.stmt));
        }
    }
}

impl RegisterChange {
    /// Whether `other` precedes this change in every order of threads.
    fn comes_after(&self, other: &Self) -> bool {
        let own = other.step.component() == self.step.component() && other.step.count() < self.step.count();
        own || self.past.knows(other.step)
    }
}
