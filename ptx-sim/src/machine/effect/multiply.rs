//! `wgmma` and `setmaxnreg`: operations of the warps of a warpgroup.

use std::rc::Rc;

use tma_model::mma::{CHUNK_BYTES, Form, MetadataPlace, Operand};
use tma_model::sync::Epoch;

use crate::isa::Reg;
use crate::machine::Machine;
use crate::machine::diagnostics::Act;
use crate::machine::engine::{Due, Slowness};
use crate::machine::index::{BlockRank, ThreadId, ThreadIndex, WarpIndex};
use crate::machine::memory::Mark;
use crate::machine::mma::{
    At, Joined, Left, Manner, Matrix, Member, Multiplication, Plan, Side, Step, WarpgroupId,
};
use crate::machine::registers::Change;
use crate::machine::types::{Action, Actor, LeftOperand, Metadata, Multiply, Poll};
use crate::report::{Finding, FindingKind, Stop};

const TOGETHER: &str = "all four warps of a warpgroup, the first of which has a number that 4 divides, issue the same `wgmma` \
                        instructions with the same descriptors, and none under a condition that differs between them";
const WAIT: &str = "[[`flight.wait()`||`wgmma.commit_group` and `wgmma.wait_group 0`]] before the warps end";

/// Returns the warp of a thread.
const fn warp_of(who: ThreadId) -> WarpIndex {
    WarpIndex(who.thread.0 / tma_model::limits::WARP_THREADS)
}

/// Returns the first thread of a warp.
const fn first_of(block: BlockRank, warp: WarpIndex) -> ThreadId {
    ThreadId { block, thread: ThreadIndex(warp.0 * tma_model::limits::WARP_THREADS) }
}

/// Returns the threads of a warp, which must be whole.
fn threads_of(block: BlockRank, warp: WarpIndex) -> impl Iterator<Item = ThreadId> {
    let first = first_of(block, warp).thread.0;
    let threads = first..first + tma_model::limits::WARP_THREADS;
    threads.map(move |thread| ThreadId { block, thread: ThreadIndex(thread) })
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
    pub(crate) fn multiply(&mut self, issuer: Actor, what: &Multiply<'_>) -> Result<(), Stop> {
        let action = issuer.does("issues the multiplication");
        let member = self.member(action)?;
        let plan = self.plan(action, what)?;
        if let Some(metadata) = what.metadata {
            self.check_metadata(action, what.form, metadata)?;
        }
        for matrix in plan.matrices() {
            self.check_bounds(action, matrix)?;
            self.check_tile(action, matrix);
        }
        let Some(group) = self.tensor_cores.group(member, || self.order.new_component()) else {
            return Err(self.diagnostics.bug(action, "a warpgroup that was found is not there any more"));
        };
        self.order.name_agent(group.component(), issuer.who);
        if self.order.is_checked() {
            plan.matrices().for_each(|matrix| self.read_matrix(issuer, matrix, group));
        }
        let Multiply { form, accumulates, negates, saturates, .. } = *what;
        let selector = what.metadata.map_or(0, |metadata| metadata.selector);
        let manner = Manner { form, accumulates, negates, saturates, selector };
        let multiplication = Multiplication { manner, plan, d: what.d.to_vec() };
        let at = At { pc: what.pc, site: issuer.site };
        let joined = self.join(action, member, at, Step::Multiply(Rc::new(multiplication)))?;
        if self.order.is_checked() {
            for who in threads_of(issuer.who.block, warp_of(issuer.who)) {
                let issue = self.issue_of(who);
                self.tensor_cores.note_issue(member.warpgroup, joined.number, &issue);
            }
        }
        if let LeftOperand::Registers(left) = what.left {
            self.tensor_cores.bring(member, joined.number, left);
        }
        if let Some(metadata) = what.metadata {
            self.tensor_cores.bring_metadata(member, joined.number, metadata.lanes);
        }
        if joined.is_whole {
            let slowness = Slowness::any(&mut self.random);
            let due = Due::Operands(member.warpgroup, joined.number);
            self.engines.later(due, slowness, &mut self.random);
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
        let joined = self.join(action, member, At { pc, site: issuer.site }, Step::Commit)?;
        if joined.is_whole {
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
            for who in threads_of(block, warp) {
                let view = self.order.view_mut(who);
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
    /// If `dec` asks for more, or `inc` for fewer, registers than the warp has.
    pub(crate) fn change_registers(&mut self, actor: Actor, count: u32, grows: bool) -> Result<Poll, Stop> {
        let warp = warp_of(actor.who);
        match self.registers.change(actor.who.block, warp, count, grows) {
            Change::Done => Ok(Poll::Ready),
            Change::Waits => Ok(Poll::Blocked),
            Change::Backwards { count: held } => {
                let (name, than) = if grows { ("inc", "fewer than") } else { ("dec", "more than") };
                let message =
                    format!("`setmaxnreg.{name}` to {count} registers, {than} the {held} that the warp has");
                self.refuse(actor.does("asks"), FindingKind::Execution, message)
            }
        }
    }

    /// Returns whether a wait for `wgmma` groups might end.
    pub(super) fn multiply_may_end(&self, who: ThreadId, pending: u32) -> bool {
        self.tensor_cores.may_end(Member::of(who.block, warp_of(who)), pending)
    }

    /// Returns whether the registers that a warp waits for may be available.
    pub(super) fn registers_may_do(&self, who: ThreadId, count: u32) -> bool {
        self.registers.may_grow(who.block, warp_of(who), count)
    }

    /// Reads the operands of a multiplication.
    pub(super) fn read_operands(&mut self, warpgroup: WarpgroupId, number: u32) {
        if self.tensor_cores.under_way(warpgroup, number).is_none() {
            let lost = "the operands are read of a multiplication that is not under way";
            return self.report(Finding::internal(lost));
        }
        let shared = self.memory.shared[warpgroup.rank].from(0);
        self.tensor_cores.read(warpgroup, number, shared);
    }

    /// Checks that a warp that exits has waited for its multiplications, and has issued everything
    /// that the other warps have.
    pub(super) fn check_multiplications(&mut self, ends: Actor) {
        let warp = warp_of(ends.who);
        let member = Member::of(ends.who.block, warp);
        let log = &mut self.diagnostics;
        if let Some((site, committed)) = self.tensor_cores.unwaited(member) {
            let what = if committed { "whose group" } else { "which is in no group, and" };
            let message =
                format!("a warp ends that has issued a multiplication {what} it has not waited for");
            let finding = Finding::new(FindingKind::UnwaitedMultiplication, message)
                .with(log.party(Actor { site, ..ends }.does("issued the multiplication")))
                .with(log.party(ends.does("ends")))
                .help(WAIT);
            log.report(finding);
        }
        if let Some((other, site)) = self.tensor_cores.missed(member) {
            let message = "a warp ends without what another warp of its warpgroup has issued";
            let issuer = Actor { who: first_of(ends.who.block, other), site };
            let finding = Finding::new(FindingKind::DivergentMultiplication, message)
                .with(log.party(ends.does("ends")))
                .with(log.party(issuer.does("issued it")))
                .help(TOGETHER);
            log.report(finding);
        }
    }

    /// Checks, when the block ends, that the warps of each warpgroup have executed equally many
    /// `setmaxnreg`.
    pub(super) fn check_registers(&mut self, ends: Actor) {
        let Some([most, least]) = self.registers.uneven(ends.who.block) else { return };
        let message =
            format!("warp {most} has run a `setmaxnreg` that warp {least} of its warpgroup has not");
        let party = self.diagnostics.party(ends.does("ends"));
        let help = "let all warps of a warpgroup run it";
        self.report(Finding::new(FindingKind::DivergentMultiplication, message).with(party).help(help));
    }

    fn member(&mut self, action: Action) -> Result<Member, Stop> {
        let warp = warp_of(action.who);
        let member = Member::of(action.who.block, warp);
        if self.tensor_cores.exists(member.warpgroup) {
            return Ok(member);
        }
        let threads = self.shape.threads;
        let message = format!("warp {warp} is in no whole warpgroup: the block has {threads} threads");
        let kind = FindingKind::DivergentMultiplication;
        self.refuse_with_help(action, kind, message, "a multiple of 128 threads")
    }

    fn join(&mut self, action: Action, member: Member, at: At, step: Step) -> Result<Joined, Stop> {
        let Some(joined) = self.tensor_cores.join(member, at, step) else {
            return Err(self
                .diagnostics
                .bug(action, "a step of a warpgroup is neither its next nor one before"));
        };
        let block = action.who.block;
        if let Some((other, site)) = joined.differs {
            let message = if site == at.site {
                "warps of a warpgroup issue an instruction with different operands"
            } else {
                "warps of a warpgroup issue different instructions"
            };
            let other = Actor { who: first_of(block, other), site }.does("issued its own");
            return Err(self.divergent_multiplication(message, action, other));
        }
        let ended = self.tensor_cores.behind(member.warpgroup, joined.number);
        let ended = ended.map(|warp| first_of(block, warp)).find(|who| self.liveness.has_exited(*who));
        if let Some(who) = ended {
            let message = "a warp of the warpgroup has ended, and takes no part in it";
            let other = Action { who, site: at.site, does: "has ended, and does not come here" };
            return Err(self.divergent_multiplication(message, action, other));
        }
        Ok(joined)
    }

    #[cold]
    fn divergent_multiplication(&mut self, message: &str, one: Action, other: Action) -> Stop {
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::DivergentMultiplication, message)
            .with(log.party(one))
            .with(log.party(other))
            .help(TOGETHER);
        log.stop(finding)
    }

    /// Decodes the descriptors of a multiplication.
    fn plan(&mut self, action: Action, what: &Multiply<'_>) -> Result<Plan, Stop> {
        let left = match what.left {
            LeftOperand::Shared(bits) => Left::Shared(self.descriptor(action, Side::A, bits)?),
            LeftOperand::Registers(_) => Left::Registers,
        };
        let right = self.descriptor(action, Side::B, what.right)?;
        Ok(Plan { form: what.form, left, right, majors: what.majors })
    }

    /// Checks that the metadata of a sparse A, held by threads of the warp, selects valid elements
    /// of each group.
    fn check_metadata(&mut self, action: Action, form: Form, metadata: Metadata<'_>) -> Result<(), Stop> {
        let groups = form.k() / form.a.group();
        let places = (0..16).flat_map(|row| (0..groups).map(move |group| (row, group)));
        let invalid =
            places.map(|at| (at, form.a.metadata(metadata.selector, at.into()))).find(|(_, place)| {
                let bits = metadata.lanes[place.thread as usize] >> place.bit & 15;
                form.a.position(bits, 0).is_none()
            });
        let Some(((row, group), MetadataPlace { thread, bit })) = invalid else { return Ok(()) };
        let (bits, to) = (metadata.lanes[thread as usize] >> bit & 15, bit + 3);
        let message = format!(
            "the metadata of lane {thread} has {bits:#06b} in its bits {bit} to {to}, of the warp's row {row} and group {group}"
        );
        let help = match form.a {
            Operand::Tf32 => "0b0100 for the first element of a group, or 0b1110 for the second",
            Operand::F16
            | Operand::Bf16
            | Operand::E4m3
            | Operand::E5m2
            | Operand::S8
            | Operand::U8
            | Operand::B1 => "the places of two different elements of a group, 2 bits each",
        };
        self.refuse_with_help(action, FindingKind::IllegalMultiplication, message, help)
    }

    /// Records that an operand is read from now on, until `group` is known to be complete.
    fn read_matrix(&mut self, issuer: Actor, matrix: Matrix, group: Epoch) {
        let rank = issuer.who.block;
        let views = self.order.of_warp(rank, warp_of(issuer.who));
        let shadow = &mut self.memory.shared[rank].shadow;
        let reader = Mark { step: group, line: issuer.site.ptx_line };
        let mut first = None;
        let mut sound = Epoch::default();
        for at in matrix.chunks() {
            let found = shadow.read_together(at, CHUNK_BYTES, views, reader, &mut sound);
            first = first.or(found);
        }
        if let Some((lane, conflict)) = first {
            let thread = ThreadIndex(issuer.who.thread.0 + lane);
            let issuer = Actor { who: ThreadId { thread, ..issuer.who }, ..issuer };
            self.conflict(issuer.does("issues the multiplication"), Act::Multiply, rank, conflict);
        }
    }
}
