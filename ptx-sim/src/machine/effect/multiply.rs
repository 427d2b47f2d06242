//! `wgmma` and `setmaxnreg`: operations of the warps of a warpgroup.

use std::rc::Rc;

use tma_model::help::Help;
use tma_model::mma::{CHUNK_BYTES, Form, MetadataLocation, Operand};
use tma_model::sync::Epoch;

use crate::isa::Reg;
use crate::machine::Machine;
use crate::machine::diagnostics::LaterAccess;
use crate::machine::engine::{DueAction, Slowness};
use crate::machine::index::{BlockRank, ThreadId, ThreadIndex, WarpIndex};
use crate::machine::memory::Mark;
use crate::machine::mma::{
    IssueResult, IssueSite, Left, Matrix, Member, Multiplication, MultiplyArithmetic, Plan, Side,
    WarpgroupId, WgmmaInstruction,
};
use crate::machine::registers::RegisterChange;
use crate::machine::types::{Action, Actor, LeftOperand, Metadata, Multiply, Poll};
use crate::report::{Finding, FindingKind, Stop};

const WHOLE_WARPGROUP: &str = "issue the same `wgmma` instructions with the same descriptors in all four warps of a \
                        warpgroup (which starts at a multiple of 4 warps), and none under a condition that \
                        differs between them";

/// Returns the warp of a thread.
const fn warp_of(thread: ThreadId) -> WarpIndex {
    WarpIndex(thread.index.0 / tma_model::limits::WARP_THREADS)
}

/// Returns the first thread of a warp.
const fn first_of(block: BlockRank, warp: WarpIndex) -> ThreadId {
    ThreadId { block, index: ThreadIndex(warp.0 * tma_model::limits::WARP_THREADS) }
}

/// Returns the threads of a warp, which must be whole.
fn threads_of(block: BlockRank, warp: WarpIndex) -> impl Iterator<Item = ThreadId> {
    let first = first_of(block, warp).index.0;
    let threads = first..first + tma_model::limits::WARP_THREADS;
    threads.map(move |thread| ThreadId { block, index: ThreadIndex(thread) })
}

impl Machine {
    /// Returns whether order is checked, in registers as well as in shared memory.
    pub(crate) fn checks_order(&self) -> bool {
        self.order.is_checked()
    }

    /// `wgmma.mma_async` of a warp. `issuer` is the first thread of the warp.
    ///
    /// # Errors
    ///
    /// If a descriptor is invalid or out of bounds, or warps of a warpgroup issue different
    /// instructions.
    pub(crate) fn multiply(&mut self, issuer: Actor, op: &Multiply<'_>) -> Result<(), Stop> {
        let action = issuer.does("issues the multiplication");
        let member = self.member(action)?;
        let plan = self.plan(action, op)?;
        if let Some(metadata) = op.metadata {
            self.check_metadata(action, op.form, metadata)?;
        }
        for matrix in plan.matrices() {
            self.check_bounds(action, matrix)?;
            self.check_tile(action, matrix);
        }
        let Some(group) = self.tensor_cores.group(member, || self.order.new_component()) else {
            return Err(self.diagnostics.bug(action, "a warpgroup disappeared during an instruction"));
        };
        self.order.name_agent(group.component(), issuer.thread);
        if self.order.is_checked() {
            plan.matrices().for_each(|matrix| self.read_matrix(issuer, matrix, group));
        }
        let Multiply { form, accumulates, negates, saturates, .. } = *op;
        let selector = op.metadata.map_or(0, |metadata| metadata.selector);
        let arithmetic = MultiplyArithmetic { form, accumulates, negates, saturates, selector };
        let multiplication = Multiplication { arithmetic, plan, d: op.d.to_vec() };
        let at = IssueSite { pc: op.pc, site: issuer.site };
        let issue_result =
            self.join(action, member, at, WgmmaInstruction::Multiply(Rc::new(multiplication)))?;
        if self.order.is_checked() {
            for thread in threads_of(issuer.thread.block, warp_of(issuer.thread)) {
                let issue = self.issue_of(thread);
                self.tensor_cores.note_issue(member.warpgroup, issue_result.number, &issue);
            }
        }
        if let LeftOperand::Registers(left) = op.left {
            self.tensor_cores.add_left(member, issue_result.number, left);
        }
        if let Some(metadata) = op.metadata {
            self.tensor_cores.add_metadata(member, issue_result.number, metadata.lanes);
        }
        if issue_result.is_complete {
            let slowness = Slowness::any(&mut self.random);
            let due = DueAction::Operands(member.warpgroup, issue_result.number);
            self.engines.schedule_randomly(due, slowness, &mut self.random);
        }
        Ok(())
    }

    /// `wgmma.commit_group` of a warp.
    ///
    /// # Errors
    ///
    /// If other warps of the warpgroup issue another instruction.
    pub(crate) fn multiply_commit(&mut self, issuer: Actor, pc: u32) -> Result<(), Stop> {
        let action = issuer.does("commits");
        let member = self.member(action)?;
        let issue_result =
            self.join(action, member, IssueSite { pc, site: issuer.site }, WgmmaInstruction::Commit)?;
        if issue_result.is_complete {
            self.tensor_cores.advance(member.warpgroup);
        }
        Ok(())
    }

    /// `wgmma.wait_group` of a warp. Returns the last group that is complete for the warp, or
    /// `None` if it must wait.
    pub(crate) fn multiply_wait(&mut self, block: BlockRank, warp: WarpIndex, pending: u32) -> Option<u32> {
        let member = Member::of(block, warp);
        if !self.tensor_cores.exists(member.warpgroup) {
            return Some(0);
        }
        let last = self.tensor_cores.wait(member, pending)?;
        if let Some((component, past)) = self.tensor_cores.completed(member.warpgroup)
            && last > 0
        {
            for thread in threads_of(block, warp) {
                let view = self.order.view_mut(thread);
                view.learn(Epoch::new(component, last));
                view.learn_past(past);
            }
        }
        Some(last)
    }

    /// Lends a register of a warp, which holds a part of D, until the warp takes it back.
    pub(crate) fn lend(&mut self, block: BlockRank, warp: WarpIndex, register: Reg, lanes: &[u32; 32]) {
        self.tensor_cores.lend(Member::of(block, warp), register, lanes);
    }

    /// Returns the current contents of a register that a warp has lent.
    pub(crate) fn lent(&self, block: BlockRank, warp: WarpIndex, register: Reg) -> Option<&[u32]> {
        self.tensor_cores.lent(Member::of(block, warp), register)
    }

    /// `setmaxnreg` of a warp.
    ///
    /// # Errors
    ///
    /// If the warp is not in a complete warpgroup, or if `dec` asks for more, or `inc` for fewer,
    /// registers than the warp has.
    pub(crate) fn change_registers(&mut self, actor: Actor, count: u32, grows: bool) -> Result<Poll, Stop> {
        let warp = warp_of(actor.thread);
        self.member(actor.does("asks"))?;
        match self.registers.change(actor.thread.block, warp, count, grows) {
            RegisterChange::Done => Ok(Poll::Ready),
            RegisterChange::MustWait => Ok(Poll::Blocked),
            RegisterChange::WrongDirection { count: held } => {
                let (name, than) = if grows { ("inc", "fewer than") } else { ("dec", "more than") };
                let message = format!(
                    "`setmaxnreg.{name}` asks for {count} registers, {than} the {held} that the warp \
                        has"
                );
                self.refuse(actor.does("asks"), FindingKind::Execution, message)
            }
        }
    }

    /// Returns whether a wait for `wgmma` groups might end.
    pub(super) fn multiply_may_end(&self, thread: ThreadId, pending: u32) -> bool {
        self.tensor_cores.may_end(Member::of(thread.block, warp_of(thread)), pending)
    }

    /// Returns whether the registers that a warp waits for may be available.
    pub(super) fn registers_may_do(&self, thread: ThreadId, count: u32) -> bool {
        self.registers.may_grow(thread.block, warp_of(thread), count)
    }

    /// Reads the operands of a multiplication.
    pub(super) fn read_operands(&mut self, warpgroup: WarpgroupId, number: u32) {
        if self.tensor_cores.multiplication_in_flight(warpgroup, number).is_none() {
            let lost = "the operands of a multiplication are read that is not in flight";
            return self.report(Finding::internal(lost));
        }
        let shared = self.memory.shared[warpgroup.rank].from(0);
        self.tensor_cores.read(warpgroup, number, shared);
    }

    /// Checks that a warp that exits has waited for its multiplications, and has issued everything
    /// that the other warps have.
    pub(super) fn check_multiplications(&mut self, exiting: Actor) {
        let warp = warp_of(exiting.thread);
        let member = Member::of(exiting.thread.block, warp);
        let log = &mut self.diagnostics;
        if let Some((site, committed)) = self.tensor_cores.unwaited(member) {
            let message = if committed {
                "a warp ends without waiting for the group of a multiplication that it issued"
            } else {
                "a warp ends with a multiplication that it has neither committed to a group nor waited for"
            };
            let finding = Finding::new(FindingKind::UnwaitedMultiplication, message)
                .with(log.party(Actor { site, ..exiting }.does("issued the multiplication")))
                .with(log.party(exiting.does("ends")))
                .help(Help::WaitForMultiplication);
            log.report(finding);
        }
        if let Some((other, site)) = self.tensor_cores.unissued(member) {
            let message = "a warp ends without an instruction that another warp of its warpgroup has issued";
            let issuer = Actor { thread: first_of(exiting.thread.block, other), site };
            let finding = Finding::new(FindingKind::DivergentMultiplication, message)
                .with(log.party(exiting.does("ends")))
                .with(log.party(issuer.does("issued it")))
                .help(WHOLE_WARPGROUP);
            log.report(finding);
        }
    }

    /// Checks, when the block ends, that the warps of each warpgroup have executed equally many
    /// `setmaxnreg`.
    pub(super) fn check_registers(&mut self, exiting: Actor) {
        let Some([most, least]) = self.registers.uneven(exiting.thread.block) else { return };
        let message =
            format!("warp {most} has executed a `setmaxnreg` that warp {least} of its warpgroup has not");
        let party = self.diagnostics.party(exiting.does("ends"));
        let help = "execute it in all warps of a warpgroup";
        self.report(Finding::new(FindingKind::DivergentMultiplication, message).with(party).help(help));
    }

    fn member(&mut self, action: Action) -> Result<Member, Stop> {
        let warp = warp_of(action.thread);
        let member = Member::of(action.thread.block, warp);
        if self.tensor_cores.exists(member.warpgroup) {
            return Ok(member);
        }
        let threads = self.shape.threads;
        let message = format!("warp {warp} is not in a complete warpgroup: the block has {threads} threads");
        let kind = FindingKind::DivergentMultiplication;
        let help = "execute it in complete warpgroups only, or use a multiple of 128 threads";
        self.refuse_with_help(action, kind, message, help)
    }

    fn join(
        &mut self,
        action: Action,
        member: Member,
        at: IssueSite,
        step: WgmmaInstruction,
    ) -> Result<IssueResult, Stop> {
        let Some(issue_result) = self.tensor_cores.issue(member, at, step) else {
            return Err(self
                .diagnostics
                .bug(action, "an instruction of a warpgroup is neither the next nor an earlier one"));
        };
        let block = action.thread.block;
        if let Some((other, site)) = issue_result.differs {
            let message = if site == at.site {
                "warps of a warpgroup issue the same instruction with different operands"
            } else {
                "warps of a warpgroup issue different instructions"
            };
            let other = Actor { thread: first_of(block, other), site }.does("issued its own");
            return Err(self.divergent_multiplication(message, action, other));
        }
        let ended = self.tensor_cores.warps_behind(member.warpgroup, issue_result.number);
        let ended = ended.map(|warp| first_of(block, warp)).find(|thread| self.liveness.has_exited(*thread));
        if let Some(thread) = ended {
            let message = "a warp of the warpgroup has ended without this instruction";
            let other = Action { thread, site: at.site, does: "has ended without reaching this" };
            return Err(self.divergent_multiplication(message, action, other));
        }
        Ok(issue_result)
    }

    #[cold]
    fn divergent_multiplication(&mut self, message: &str, one: Action, other: Action) -> Stop {
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::DivergentMultiplication, message)
            .with(log.party(one))
            .with(log.party(other))
            .help(WHOLE_WARPGROUP);
        log.stop(finding)
    }

    /// Decodes the descriptors of a multiplication.
    fn plan(&mut self, action: Action, op: &Multiply<'_>) -> Result<Plan, Stop> {
        let left = match op.left {
            LeftOperand::Shared(bits) => Left::Shared(self.descriptor(action, Side::A, bits)?),
            LeftOperand::Registers(_) => Left::Registers,
        };
        let right = self.descriptor(action, Side::B, op.right)?;
        Ok(Plan { form: op.form, left, right, majors: op.majors })
    }

    /// Checks that the metadata of a sparse A, held by threads of the warp, selects valid elements
    /// of each group.
    fn check_metadata(&mut self, action: Action, form: Form, metadata: Metadata<'_>) -> Result<(), Stop> {
        let groups = form.k() / form.a.group();
        let places = (0..16).flat_map(|row| (0..groups).map(move |group| (row, group)));
        let invalid = places
            .map(|(row, group)| ((row, group), form.a.metadata(metadata.selector, row, group)))
            .find(|(_, location)| {
                let bits = metadata.lanes[location.thread as usize] >> location.bit & 15;
                form.a.position(bits, 0).is_none()
            });
        let Some(((row, group), MetadataLocation { thread, bit })) = invalid else { return Ok(()) };
        let (bits, to) = (metadata.lanes[thread as usize] >> bit & 15, bit + 3);
        let message = format!(
            "the metadata of lane {thread} has {bits:#06b} in bits {bit} to {to}, for row {row} and group \
             {group} of the warp"
        );
        let help = match form.a {
            Operand::Tf32 => "use 0b0100 for the first element of a group, or 0b1110 for the second",
            Operand::F16
            | Operand::Bf16
            | Operand::E4m3
            | Operand::E5m2
            | Operand::S8
            | Operand::U8
            | Operand::B1 => "use the positions of two different elements of a group, 2 bits each",
        };
        self.refuse_with_help(action, FindingKind::IllegalMultiplication, message, help)
    }

    /// Records that an operand is read from now on, until `group` is known to be complete.
    fn read_matrix(&mut self, issuer: Actor, matrix: Matrix, group: Epoch) {
        let rank = issuer.thread.block;
        let views = self.order.of_warp(rank, warp_of(issuer.thread));
        let shadow = &mut self.memory.shared[rank].shadow;
        let reader = Mark { step: group, line: issuer.site.ptx_line };
        let mut first = None;
        let mut checked_write = Epoch::default();
        for at in matrix.chunks() {
            let found = shadow.read_by_warp(at, CHUNK_BYTES, views, reader, &mut checked_write);
            first = first.or(found);
        }
        if let Some((lane, conflict)) = first {
            let thread = ThreadIndex(issuer.thread.index.0 + lane);
            let issuer = Actor { thread: ThreadId { index: thread, ..issuer.thread }, ..issuer };
            self.conflict(issuer.does("issues the multiplication"), LaterAccess::Multiply, rank, conflict);
        }
    }
}
