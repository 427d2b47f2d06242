//! Tensor cores: the `wgmma` of each warpgroup, from issue to wait.
//!
//! A multiplication belongs to the warpgroup. It is complete once all four warps have issued it,
//! its operands have been read, and the multiplications before it are complete. The engines pick
//! the time at which the operands are read. Accumulators are kept here from the first
//! multiplication that a warp issues on them until its wait. Meanwhile the warp's own registers
//! hold poison.
//!
//! Sources: PTX ISA, "wgmma.mma_async", "wgmma.commit_group", "wgmma.wait_group".

mod double;
mod float;
mod integer;
mod multiply;
mod number;
mod operands;
mod selection;
mod warp;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tma_model::limits::{WARP_THREADS, WARPGROUP_THREADS};
use tma_model::sync::{Clock, Component, Epoch, Issue, Issues};

pub(crate) use double::{Lanes as WideLanes, multiply as multiply_doubles};
pub(super) use multiply::{MultiplyArithmetic, Register};
pub(super) use operands::{Left, Matrix, Plan, Side};
pub(crate) use warp::{Lanes as WarpLanes, WarpArithmetic, WarpFactors, multiply as multiply_in_warp};

use super::index::{BlockRank, PerBlock, Shape, WarpIndex};
use super::types::Site;
use crate::isa::Reg;
use operands::Operands;

/// The number of warps of a warpgroup.
const WARPS: usize = (WARPGROUP_THREADS / WARP_THREADS) as usize;

/// A warpgroup of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WarpgroupId {
    pub(super) rank: BlockRank,
    pub(super) number: u32,
}

/// A warp as a member of its warpgroup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) warpgroup: WarpgroupId,
    /// The warp's number in the warpgroup, 0 to 3.
    pub(super) warp: usize,
}

impl Member {
    pub(super) const fn of(rank: BlockRank, warp: WarpIndex) -> Self {
        let (warps, number) = (WARPS as u32, warp.0);
        Self { warpgroup: WarpgroupId { rank, number: number / warps }, warp: (number % warps) as usize }
    }
}

/// An instruction that all warps of a warpgroup issue, in the same order.
#[derive(Clone, Debug)]
pub(super) enum WgmmaInstruction {
    Multiply(Rc<Multiplication>),
    Commit,
}

/// A multiplication, as each of the four warps issues it.
#[derive(Clone, Debug)]
pub(super) struct Multiplication {
    pub(super) arithmetic: MultiplyArithmetic,
    pub(super) plan: Plan,
    /// The registers of D, in order.
    pub(super) d: Vec<Reg>,
}

impl WgmmaInstruction {
    /// Returns whether both instructions are the same instruction.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Multiply(one), Self::Multiply(other)) => {
                one.arithmetic == other.arithmetic && one.plan.is_like(&other.plan) && one.d == other.d
            }
            (Self::Commit, Self::Commit) => true,
            (Self::Multiply(_), Self::Commit) | (Self::Commit, Self::Multiply(_)) => false,
        }
    }
}

/// An instruction that not all warps have issued, or that is not complete.
#[derive(Debug)]
struct IssuedInstruction {
    pc: u32,
    site: Site,
    instruction: WgmmaInstruction,
    /// The warps that have issued it.
    issued_by: [bool; WARPS],
    /// A in registers, which each warp contributes to.
    left: Option<Box<[Register; 4]>>,
    /// The metadata of a sparse A, which each warp contributes to.
    metadata: Option<Box<Register>>,
    operands: Option<Operands>,
    /// The knowledge of the past at the warps' issue.
    issues: Issues,
}

/// The instructions that a warp has issued.
#[derive(Debug, Default)]
struct Warp {
    /// The number of instructions issued.
    instructions: u32,
    commits: u32,
    /// Groups that the warp has not waited for, with a multiplication of each.
    unwaited: Vec<(u32, Site)>,
}

#[derive(Debug, Default)]
struct Warpgroup {
    /// The clock component that counts the groups.
    component: Option<Component>,
    /// Instructions that are not complete. `first_number` is the number of the first one.
    instructions: VecDeque<IssuedInstruction>,
    first_number: u32,
    warps: [Warp; WARPS],
    /// The knowledge of the past at the issue of all completed instructions.
    past: Clock,
    /// Accumulators in flight.
    registers: HashMap<Reg, Box<Register>>,
}

/// The `wgmma` of a cluster.
#[derive(Debug)]
pub(super) struct TensorCores {
    warpgroups: PerBlock<Vec<Warpgroup>>,
    components: Vec<Component>,
}

/// The result of issuing an instruction.
#[derive(Debug)]
pub(super) struct IssueResult {
    /// The number of the instruction in its warpgroup.
    pub(super) number: u32,
    /// Whether all warps have now issued the instruction.
    pub(super) is_complete: bool,
    /// A warp that issued another instruction as this instruction.
    pub(super) differs: Option<(WarpIndex, Site)>,
}

/// The position of a warp's instruction in the code.
#[derive(Clone, Copy, Debug)]
pub(super) struct IssueSite {
    pub(super) pc: u32,
    pub(super) site: Site,
}

impl TensorCores {
    pub(super) fn new(shape: Shape) -> Self {
        let warpgroups = || (0..shape.threads / WARPGROUP_THREADS).map(|_| Warpgroup::default()).collect();
        Self { warpgroups: PerBlock::new(shape, warpgroups), components: Vec::new() }
    }

    fn get(&self, id: WarpgroupId) -> Option<&Warpgroup> {
        self.warpgroups[id.rank].get(id.number as usize)
    }

    fn get_mut(&mut self, id: WarpgroupId) -> Option<&mut Warpgroup> {
        self.warpgroups[id.rank].get_mut(id.number as usize)
    }

    /// Returns whether the block has all four warps of this warpgroup.
    pub(super) fn exists(&self, id: WarpgroupId) -> bool {
        self.get(id).is_some()
    }

    /// Returns whether a step belongs to a `wgmma` group.
    pub(super) fn is_group(&self, step: Epoch) -> bool {
        self.components.contains(&step.component())
    }

    /// Returns the group of a warp's next multiplication, as the step of its completion.
    pub(super) fn group(&mut self, member: Member, new: impl FnOnce() -> Component) -> Option<Epoch> {
        let warpgroup = self.warpgroups[member.warpgroup.rank].get_mut(member.warpgroup.number as usize)?;
        let component = *warpgroup.component.get_or_insert_with(|| {
            let component = new();
            self.components.push(component);
            component
        });
        Some(Epoch::new(component, warpgroup.warps[member.warp].commits + 1))
    }

    /// Records that a warp issues an instruction.
    pub(super) fn issue(
        &mut self,
        member: Member,
        at: IssueSite,
        instruction: WgmmaInstruction,
    ) -> Option<IssueResult> {
        let warpgroup = self.get_mut(member.warpgroup)?;
        let warp = &mut warpgroup.warps[member.warp];
        let number = warp.instructions;
        warp.instructions += 1;
        match &instruction {
            WgmmaInstruction::Multiply(_) => warp.unwaited.push((warp.commits + 1, at.site)),
            WgmmaInstruction::Commit => warp.commits += 1,
        }
        let index = number.wrapping_sub(warpgroup.first_number) as usize;
        if index == warpgroup.instructions.len() {
            warpgroup.instructions.push_back(IssuedInstruction::new(at, instruction.clone()));
        }
        let issued = warpgroup.instructions.get_mut(index)?;
        let differs = issued.pc != at.pc || !issued.instruction.is_like(&instruction);
        let first = issued.issued_by.iter().position(|by| *by);
        let other = first
            .filter(|_| differs)
            .map(|warp| (WarpIndex(member.warpgroup.number * WARPS as u32 + warp as u32), issued.site));
        issued.issued_by[member.warp] = true;
        Some(IssueResult { number, is_complete: issued.issued_by == [true; WARPS], differs: other })
    }

    /// Adds the knowledge of the past of a thread that issued an instruction.
    pub(super) fn note_issue(&mut self, id: WarpgroupId, number: u32, issue: &Issue) {
        if let Some((warpgroup, index)) = self.find(id, number) {
            warpgroup.instructions[index].issues.add(issue);
        }
    }

    /// Adds a warp's part of A to an instruction that the warp has issued.
    pub(super) fn add_left(&mut self, member: Member, number: u32, left: &[[u32; 32]]) {
        if let Some((warpgroup, index)) = self.find(member.warpgroup, number) {
            let whole = warpgroup.instructions[index].left.get_or_insert_with(|| Box::new([[0; 128]; 4]));
            for (register, lanes) in whole.iter_mut().zip(left) {
                register[lanes_of(member)].copy_from_slice(lanes);
            }
        }
    }

    /// Adds a warp's part of the metadata of a sparse A to an instruction that the warp has issued.
    pub(super) fn add_metadata(&mut self, member: Member, number: u32, lanes: &[u32; 32]) {
        if let Some((warpgroup, index)) = self.find(member.warpgroup, number) {
            let whole = warpgroup.instructions[index].metadata.get_or_insert_with(|| Box::new([0; 128]));
            whole[lanes_of(member)].copy_from_slice(lanes);
        }
    }

    /// Lends a register of a warp, which holds a part of D, until the warp takes it back.
    pub(super) fn lend(&mut self, member: Member, register: Reg, lanes: &[u32; 32]) {
        if let Some(warpgroup) = self.get_mut(member.warpgroup) {
            let whole = warpgroup.registers.entry(register).or_insert_with(|| Box::new([0; 128]));
            whole[lanes_of(member)].copy_from_slice(lanes);
        }
    }

    /// Returns the current contents of a register that a warp has lent.
    pub(super) fn lent(&self, member: Member, register: Reg) -> Option<&[u32]> {
        Some(&self.get(member.warpgroup)?.registers.get(&register)?[lanes_of(member)])
    }

    fn find(&mut self, id: WarpgroupId, number: u32) -> Option<(&mut Warpgroup, usize)> {
        let warpgroup = self.get_mut(id)?;
        let index = number.wrapping_sub(warpgroup.first_number) as usize;
        (index < warpgroup.instructions.len()).then_some((warpgroup, index))
    }

    /// Returns the multiplication with this number, if it is in flight.
    pub(super) fn multiplication_in_flight(
        &mut self,
        id: WarpgroupId,
        number: u32,
    ) -> Option<Rc<Multiplication>> {
        let (warpgroup, index) = self.find(id, number)?;
        match &warpgroup.instructions[index].instruction {
            WgmmaInstruction::Multiply(multiplication) => Some(Rc::clone(multiplication)),
            WgmmaInstruction::Commit => None,
        }
    }

    /// Reads the operands of a multiplication from `shared`, and completes all instructions that
    /// now can be.
    pub(super) fn read(&mut self, id: WarpgroupId, number: u32, shared: &[u8]) {
        if let Some((warpgroup, index)) = self.find(id, number) {
            let issued = &mut warpgroup.instructions[index];
            if let WgmmaInstruction::Multiply(multiplication) = &issued.instruction {
                issued.operands = Some(multiplication.plan.read(shared));
            }
            warpgroup.advance();
        }
    }

    /// Completes all instructions that can be, after all warps have issued an instruction.
    pub(super) fn advance(&mut self, id: WarpgroupId) {
        if let Some(warpgroup) = self.get_mut(id) {
            warpgroup.advance();
        }
    }

    /// `wgmma.wait_group`. Returns the last group that is complete for this wait, or `None` if the
    /// warp must wait.
    pub(super) fn wait(&mut self, member: Member, pending: u32) -> Option<u32> {
        let warpgroup = self.get_mut(member.warpgroup)?;
        let last = warpgroup.warps[member.warp].commits.saturating_sub(pending);
        if !warpgroup.has_completed(member.warp, last) {
            return None;
        }
        warpgroup.warps[member.warp].unwaited.retain(|(group, _)| *group > last);
        Some(last)
    }

    /// Returns whether such a wait would end.
    pub(super) fn may_end(&self, member: Member, pending: u32) -> bool {
        self.get(member.warpgroup).is_none_or(|warpgroup| {
            let last = warpgroup.warps[member.warp].commits.saturating_sub(pending);
            warpgroup.has_completed(member.warp, last)
        })
    }

    /// Returns the warps of a warpgroup that have not issued the instruction with this number.
    pub(super) fn warps_behind(&self, id: WarpgroupId, number: u32) -> impl Iterator<Item = WarpIndex> + '_ {
        let warps = self.get(id).map_or(&[][..], |warpgroup| &warpgroup.warps);
        let first = id.number * WARPS as u32;
        (first..)
            .zip(warps)
            .filter(move |(_, warp)| warp.instructions <= number)
            .map(|(warp, _)| WarpIndex(warp))
    }

    /// Returns the clock component of a warpgroup's groups, and the knowledge of the past at the
    /// issue of the completed ones.
    pub(super) fn completed(&self, id: WarpgroupId) -> Option<(Component, &Clock)> {
        let warpgroup = self.get(id)?;
        Some((warpgroup.component?, &warpgroup.past))
    }

    /// Returns a multiplication that a warp has not waited for, and whether its group was
    /// committed.
    pub(super) fn unwaited(&self, member: Member) -> Option<(Site, bool)> {
        let warp = &self.get(member.warpgroup)?.warps[member.warp];
        let &(group, site) = warp.unwaited.first()?;
        Some((site, group <= warp.commits))
    }

    /// Returns an instruction of another warp that this warp has not issued.
    pub(super) fn unissued(&self, member: Member) -> Option<(WarpIndex, Site)> {
        let warpgroup = self.get(member.warpgroup)?;
        let index = warpgroup.warps[member.warp].instructions.wrapping_sub(warpgroup.first_number) as usize;
        let issued = warpgroup.instructions.get(index)?;
        let other = issued.issued_by.iter().position(|by| *by)?;
        Some((WarpIndex(member.warpgroup.number * WARPS as u32 + other as u32), issued.site))
    }
}

/// Returns the threads of a warp within its warpgroup.
fn lanes_of(member: Member) -> std::ops::Range<usize> {
    let lanes = WARP_THREADS as usize;
    member.warp * lanes..(member.warp + 1) * lanes
}

impl IssuedInstruction {
    fn new(IssueSite { pc, site }: IssueSite, instruction: WgmmaInstruction) -> Self {
        let issues = Issues::default();
        Self {
            pc,
            site,
            instruction,
            issued_by: [false; WARPS],
            left: None,
            metadata: None,
            operands: None,
            issues,
        }
    }
}

impl Warpgroup {
    /// Completes instructions in order, as far as possible.
    fn advance(&mut self) {
        while let Some(first) = self.instructions.front() {
            if first.issued_by != [true; WARPS] {
                return;
            }
            match &first.instruction {
                WgmmaInstruction::Commit => {}
                WgmmaInstruction::Multiply(multiplication) => {
                    let Some(operands) = &first.operands else { return };
                    let left = first.left.as_deref().map(<[Register; 4]>::as_slice);
                    let factors = operands.factors(multiplication, left, first.metadata.as_deref());
                    execute(multiplication, &factors, &mut self.registers);
                }
            }
            if let Some(mut completed) = self.instructions.pop_front() {
                self.past = self.past.join(&completed.issues.join());
            }
            self.first_number += 1;
        }
    }

    /// Returns whether all multiplications that a warp has issued up to group `last` are complete.
    fn has_completed(&self, warp: usize, last: u32) -> bool {
        let mut group = self.warps[warp].commits + 1;
        // Goes backwards from the last instruction that the warp has issued.
        let issued_count = (self.warps[warp].instructions.wrapping_sub(self.first_number) as usize)
            .min(self.instructions.len());
        for issued in self.instructions.iter().take(issued_count).rev() {
            match issued.instruction {
                WgmmaInstruction::Commit => group -= 1,
                WgmmaInstruction::Multiply(_) if group <= last => return false,
                WgmmaInstruction::Multiply(_) => {}
            }
        }
        true
    }
}

/// Multiplies, with D in the registers that the warps have lent.
fn execute(
    multiplication: &Multiplication,
    factors: &multiply::Factors,
    registers: &mut HashMap<Reg, Box<Register>>,
) {
    let take = |reg: &Reg| registers.get(reg).map_or([0; 128], |register| **register);
    let mut d: Vec<Register> = multiplication.d.iter().map(take).collect();
    multiply::multiply(multiplication.arithmetic, factors, &mut d);
    for (reg, values) in multiplication.d.iter().zip(d) {
        registers.insert(*reg, Box::new(values));
    }
}
