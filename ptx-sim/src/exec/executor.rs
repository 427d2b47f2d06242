//! One time slice of a warp: a sequence of instructions, for one split of lanes at a time.

use super::observe::{Count, mark};
use super::splits::Split;
use super::warp::Warp;
use super::{Context, Issue, Lane, alu, lanes_of, spin};
use crate::isa::{Op, Pc, Site};
use crate::machine::{Machine, Stop, WaitingFor};
use crate::printed::Printed;
use crate::report::{Finding, FindingKind};

/// Executes instructions for the lanes of a warp.
pub(crate) struct Executor<'t, 'p> {
    pub(crate) context: &'t Context<'p>,
    pub(crate) machine: &'t mut Machine,
    pub(crate) printed: &'t mut Printed,
    /// The counts of each instruction; empty if nothing is counted.
    pub(crate) counts: &'t mut [Count],
    /// Whether instructions are counted or recorded on a timeline.
    pub(crate) observed: bool,
    /// Counts changes that may matter to lanes in polling loops.
    pub(crate) changes: &'t mut u64,
}

/// The control flow of a split's lanes after an instruction.
pub(crate) enum Flow {
    /// All lanes go to the next instruction.
    Next,
    /// The active lanes go to this target, the others to the next instruction.
    Jump(Pc),
    /// The active lanes go to targets of their own, the others to the next instruction.
    Scatter(Vec<(Pc, u32)>),
    /// The active lanes exit.
    Exit,
    /// These lanes stay, the others go to the next instruction.
    Wait { blocked: u32, event: WaitingFor },
    /// The active lanes go to `target`, where they wait until something changes. The others go to
    /// the next instruction.
    Spin { target: Pc, event: WaitingFor, site: Site },
    /// All lanes go to the next instruction, and the time slice ends.
    Yield,
}

impl Executor<'_, '_> {
    /// Runs up to `budget` instructions. Returns whether any lane made progress.
    pub(crate) fn run(&mut self, warp: &mut Warp, budget: u32) -> Result<bool, Stop> {
        warp.splits.age();
        let Some((mut split, mut alone)) = warp.splits.next() else { return Ok(false) };
        let mut limit = warp.splits.lowest_running();
        let mut divided = !warp.splits.is_empty();
        let mut progressed = false;
        for _ in 0..budget {
            if divided {
                split.mask |= if warp.splits.any_at(split.pc) { warp.splits.join(split.pc) } else { 0 };
                if split.pc > limit && !alone {
                    warp.splits.add(split.pc, split.mask, None);
                    let Some(next) = warp.splits.next() else { return Ok(progressed) };
                    (split, alone) = next;
                    limit = warp.splits.lowest_running();
                    continue;
                }
            }
            let Some(inst) = self.context.program.inst(split.pc) else {
                return self.beyond_the_code(warp, split);
            };
            let active = match inst.guard {
                None => split.mask,
                Some(guard) => split.mask & warp.holds(self.context, guard),
            };
            if mark(inst).is_none() {
                warp.warp_instructions += 1;
                warp.thread_instructions += u64::from(active.count_ones());
            }
            let issue = Issue { active, pc: split.pc, site: inst.site };
            if self.observed {
                self.count(warp, inst, issue);
            }
            if let Some(touched) = &inst.touches
                && active != 0
            {
                self.touch(warp, touched, issue);
            }
            if let Some(values) = &inst.values {
                self.use_values(warp, values, split.mask, issue);
            }
            if let Some(variables) = &inst.variables {
                self.check_variables(warp, inst, variables, issue)?;
            }
            let flow = if active == 0 { Flow::Next } else { self.execute(warp, &inst.op, issue)? };
            if self.observed {
                self.record(warp, inst, issue, &flow);
            }
            *self.changes += u64::from(active != 0 && spin::changes(inst.effect, &flow, active));
            let flow = if let Flow::Jump(target) = flow
                && target <= split.pc
            {
                self.jump_back(warp, target, issue)
            } else {
                flow
            };
            match flow {
                Flow::Next => {
                    split.pc = split.pc.next();
                    progressed = true;
                    // Waiting lanes are joined when their pc is reached. The limit changes only
                    // when splits do.
                    if divided {
                        limit = warp.splits.lowest_running();
                        divided = !warp.splits.is_empty();
                    }
                    continue;
                }
                Flow::Jump(target) if active == split.mask => {
                    split.pc = target;
                    progressed = true;
                    continue;
                }
                Flow::Yield => {
                    warp.splits.add(split.pc.next(), split.mask, None);
                    return Ok(true);
                }
                Flow::Wait { blocked, .. } => progressed |= blocked != split.mask,
                Flow::Jump(_) | Flow::Scatter(_) | Flow::Exit | Flow::Spin { .. } => progressed = true,
            }
            self.split_lanes(warp, split, issue, flow);
            let Some(next) = warp.splits.next() else { return Ok(progressed) };
            (split, alone) = next;
            limit = warp.splits.lowest_running();
            divided = !warp.splits.is_empty();
        }
        warp.splits.add(split.pc, split.mask, None);
        Ok(progressed)
    }

    /// Distributes the lanes of a split after an instruction.
    fn split_lanes(&mut self, warp: &mut Warp, split: Split, issue: Issue, flow: Flow) {
        let Issue { active, site, .. } = issue;
        let next = split.pc.next();
        match flow {
            Flow::Next | Flow::Yield => warp.splits.add(next, split.mask, None),
            Flow::Jump(target) => {
                warp.splits.add(target, active, None);
                warp.splits.add(next, split.mask & !active, None);
            }
            Flow::Scatter(targets) => {
                for (pc, lanes) in targets {
                    warp.splits.add(pc, lanes, None);
                }
                warp.splits.add(next, split.mask & !active, None);
            }
            Flow::Exit => {
                warp.live &= !active;
                for lane in lanes_of(active) {
                    self.machine.exit(warp.actor(lane, site));
                }
                warp.splits.add(next, split.mask & !active, None);
                // Lanes that wait for other lanes of this warp may now have all that remain.
                warp.splits.wake(*self.changes, |_, _| true);
            }
            Flow::Spin { target, event, site } => {
                warp.splits.add_spinning(target, active, (event, site), *self.changes);
                warp.splits.add(next, split.mask & !active, None);
            }
            Flow::Wait { blocked, event } => {
                warp.splits.add(split.pc, blocked, Some((event, site)));
                warp.splits.add(next, split.mask & !blocked, None);
            }
        }
    }

    /// Dispatches an operation to the module of its family.
    fn execute(&mut self, warp: &mut Warp, op: &Op, issue: Issue) -> Result<Flow, Stop> {
        match op {
            Op::Alu(op) => alu::execute(self.context, warp, op, issue.active),
            Op::Address(op) => self.address_op(warp, op, issue.active),
            Op::Memory(op) => self.memory(warp, op, issue)?,
            Op::Warp(op) => return self.collective(warp, op, issue),
            Op::Warpgroup(op) => return self.warpgroup(warp, op, issue),
            Op::Barrier(op) => return self.barrier(warp, op, issue),
            Op::Mbarrier(op) => return self.mbarrier(warp, op, issue),
            Op::Fence(kind) => {
                lanes_of(issue.active).for_each(|lane| self.machine.fence(warp.thread(lane), *kind));
            }
            Op::MemoryFence(fence) => {
                let mut fence = |lane| self.machine.memory_fence(warp.thread(lane), *fence);
                lanes_of(issue.active).for_each(&mut fence);
            }
            Op::CopyAsync(op) => return self.copy_async(warp, op, issue),
            Op::Tma(op) => return self.tma(warp, op, issue),
            Op::Control(op) => return self.control(warp, op, issue),
        }
        Ok(Flow::Next)
    }

    /// Stops with a finding at a lane.
    pub(crate) fn fail<T>(
        &mut self,
        warp: &Warp,
        lane: Lane,
        kind: FindingKind,
        message: impl Into<String>,
    ) -> Result<T, Stop> {
        let party = self.machine.party(warp.thread(lane.index), lane.site, "was here");
        self.machine.stop(Finding::new(kind, message).with(party))
    }

    /// Stops because lanes have run beyond the end of the code.
    #[cold]
    fn beyond_the_code<T>(&mut self, warp: &Warp, split: Split) -> Result<T, Stop> {
        let last = self.context.program.code.last().map(|inst| inst.site).unwrap_or_default();
        let party = self.machine.party(warp.thread(split.mask.trailing_zeros()), last, "ran beyond");
        self.machine.stop(Finding::internal("a warp has run past the end of its code").with(party))
    }
}
