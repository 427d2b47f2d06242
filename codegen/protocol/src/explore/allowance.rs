//! The checker's budget: steps, the work in them, and the memory of states.
//!
//! All three are counted and none is measured, so that a kernel gets the same verdict on every
//! machine. Steps alone do not suffice: with a thousand groups of threads in each of 16 blocks,
//! every clock has as many components as there are groups and barriers, and a step copies some of
//! them.

use super::input::Input;
use crate::proof;
use crate::run::{Run, StepResult, Stop};
use crate::state::{Agent, Counter};
use crate::value::Value;

/// The budget that is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Steps of groups of threads.
    steps: u64,
    /// Components of clocks, threads and operations on terms that the steps involve.
    work: u64,
}

/// The work that is allowed for each step. The kernels of this repository need a tenth of it.
const WORK_PER_STEP: u64 = 1024;
/// The work that is always allowed: a few steps of the largest clusters.
const MIN_WORK: u64 = 1 << 24;
/// The work after which the memory of a state is counted again. Each unit of it may have left a few
/// numbers behind.
pub(crate) const WORK_BETWEEN_COUNTS: u64 = 1 << 20;
/// The bytes held for each further unit of work between two counts, since counting large states
/// takes long.
const BYTES_BETWEEN_COUNTS: u64 = 64;
/// The bytes of a state that are counted, compared or copied for a unit of work.
pub(crate) const BYTES_PER_WORK: u64 = 16;
/// The most memory that is held at a time, in bytes.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

impl Allowance {
    /// Returns an allowance of this many steps, and the work that goes with them.
    pub(crate) fn of(steps: u64) -> Self {
        Self { steps, work: steps.saturating_mul(WORK_PER_STEP).max(MIN_WORK) }
    }

    /// Returns the steps that are left.
    pub(crate) fn steps(self) -> u64 {
        self.steps
    }

    /// Returns the work that is left.
    pub(crate) fn work(self) -> u64 {
        self.work
    }

    /// Takes `count` steps.
    pub(crate) fn take_steps(&mut self, count: u64) -> StepResult {
        self.steps = self.steps.checked_sub(count).ok_or(Stop::Budget)?;
        Ok(())
    }

    /// Takes `count` steps, or all that are left if these are fewer.
    pub(crate) fn take_up_to(&mut self, count: u64) {
        self.steps = self.steps.saturating_sub(count);
    }

    /// Takes `count` units of work.
    pub(crate) fn take_work(&mut self, count: u64) -> StepResult {
        match self.work.checked_sub(count) {
            Some(left) => self.work = left,
            None => {
                self.work = 0;
                return Err(Stop::Size);
            }
        }
        Ok(())
    }
}

impl Run<'_, '_> {
    /// Returns the memory that an execution takes at its start, in bytes.
    pub(crate) fn bytes_at_start(input: &Input<'_>) -> u64 {
        let of_agent = size_of::<Agent>()
            + input.code.variables.len() * size_of::<Value>()
            + input.code.counters * size_of::<Option<Counter>>();
        let groups = input.cluster.iter().product::<u32>() as usize * input.groups.len();
        groups as u64 * of_agent as u64
    }

    /// Charges the work of a step: a unit for each group, barrier and thread that it may involve,
    /// and for each operation on its operands.
    pub(crate) fn charge_work(&mut self) -> StepResult {
        let threads = self.agent().threads.len() as u64;
        let operations = self.terms.take_operations();
        self.policy.budget.take_work(u64::from(self.state.components) + threads + operations)?;
        if self.policy.budget.work() > self.policy.next_count {
            return Ok(());
        }
        let bytes = self.terms.bytes() + proof::of_state(&mut self.state);
        self.policy.budget.take_work(bytes / BYTES_PER_WORK)?;
        self.policy.next_count =
            self.policy.budget.work().saturating_sub(WORK_BETWEEN_COUNTS + bytes / BYTES_BETWEEN_COUNTS);
        if self.policy.other_held_bytes + bytes > MAX_BYTES { Err(Stop::Size) } else { Ok(()) }
    }
}
