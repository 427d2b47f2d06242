//! Operations across the lanes of a warp. An instruction waits until all lanes of its mask that
//! have not exited have arrived.

use super::alu::Lanes;
use super::executor::{Executor, Flow};
use super::warp::Warp;
use super::{Issue, Lane, lanes_of};
use crate::isa::{Collective, Redux, Reg, Shuffle, Site, Vote, WarpOp};
use crate::machine::{Stop, WaitingFor};
use crate::report::FindingKind;

/// Lanes at an instruction, when all lanes that it names have arrived.
#[derive(Clone, Copy)]
struct LaneGroup {
    /// The lanes at the instruction.
    here: u32,
    /// These lanes, and those that wait at another barrier or have exited.
    mask: u32,
    site: Site,
}

impl Executor<'_, '_> {
    /// Executes `shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp.sync` and matrix operations,
    /// separately for each group of lanes that name the same mask.
    pub(super) fn collective(
        &mut self,
        warp: &mut Warp,
        WarpOp { mask, kind }: &WarpOp,
        issue: Issue,
    ) -> Result<Flow, Stop> {
        let masks = *self.context.lanes(&warp.registers, *mask);
        let (mut rest, mut blocked, mut waits_for) = (issue.active, 0, 0);
        while rest != 0 {
            let first = rest.trailing_zeros();
            let mask = masks[first as usize] as u32;
            if mask >> first & 1 == 0 {
                let message = format!("lane {first} is not in its own mask {mask:#010x}");
                let lane = Lane { index: first, site: issue.site };
                return self.fail(warp, lane, FindingKind::Execution, message);
            }
            let here = lanes_of(rest)
                .filter(|lane| masks[*lane as usize] as u32 == mask)
                .fold(0, |m, lane| m | 1 << lane);
            rest &= !here;
            let wanted = mask & warp.live;
            // Lanes may arrive at a barrier from different instructions.
            let elsewhere = if kind.is_barrier() { self.at_warp_barriers(warp, mask) } else { 0 };
            if (here | elsewhere) & wanted == wanted {
                self.execute_group(warp, kind, LaneGroup { here, mask, site: issue.site })?;
            } else {
                blocked |= here;
                waits_for = mask;
            }
        }
        Ok(if blocked == 0 { Flow::Next } else { Flow::Wait { blocked, event: WaitingFor::Warp(waits_for) } })
    }

    /// Returns the lanes that wait at another `bar.warp.sync` with the same mask.
    fn at_warp_barriers(&self, warp: &Warp, mask: u32) -> u32 {
        let mut there = 0;
        for split in warp.splits.iter() {
            let Some(inst) = self.context.program.inst(split.pc) else { continue };
            let Some(reg) = inst.op.facts().warp_barrier() else { continue };
            if let Some((WaitingFor::Warp(_), _)) = split.waits {
                let masks = self.context.lanes(&warp.registers, reg);
                let same = lanes_of(split.mask).filter(|lane| masks[*lane as usize] as u32 == mask);
                there |= same.fold(0, |m, lane| m | 1 << lane);
            }
        }
        there
    }

    /// Lets lanes that wait at other `bar.warp.sync` go on.
    fn release(&self, warp: &mut Warp, lanes: u32) {
        if lanes == 0 {
            return;
        }
        let splits: Vec<_> = warp.splits.iter().map(|split| (split.pc, split.mask & lanes)).collect();
        for (pc, released) in splits {
            if released != 0 {
                let mask = warp.splits.join(pc);
                warp.splits.add(pc, mask & !released, None);
                warp.splits.add(pc.next(), released, None);
            }
        }
    }

    /// Executes an operation for which all lanes have arrived.
    fn execute_group(&mut self, warp: &mut Warp, kind: &Collective, group: LaneGroup) -> Result<(), Stop> {
        let LaneGroup { here, mask, site } = group;
        match *kind {
            Collective::Barrier => {
                let wanted = mask & warp.live;
                self.machine.warp_sync(warp.block, warp.index, wanted);
                self.release(warp, wanted & !here);
            }
            Collective::Shuffle { mode, d, valid, a, b, clamp } => {
                let [values, amounts, clamps] =
                    [a, b, clamp].map(|reg| *self.context.lanes(&warp.registers, reg));
                let shuffle = ShuffleOperands { d, valid, values, amounts, clamps };
                self.shuffle(warp, mode, &shuffle, group)?;
            }
            Collective::Vote { mode, d, a } => {
                let yes = warp.holds(self.context, a) & here;
                let result = match mode {
                    Vote::All => u64::from(yes == here),
                    Vote::Any => u64::from(yes != 0),
                    Vote::Uniform => u64::from(yes == here || yes == 0),
                    Vote::Ballot => u64::from(yes),
                };
                lanes_of(here).for_each(|lane| warp.set(d, lane, result));
            }
            Collective::Match { all, d, valid, a } => {
                let values = *self.context.lanes(&warp.registers, a);
                for lane in lanes_of(here) {
                    let same = lanes_of(here)
                        .filter(|other| values[*other as usize] == values[lane as usize])
                        .fold(0_u32, |mask, other| mask | 1 << other);
                    let result = if !all || same == here { same } else { 0 };
                    warp.set(d, lane, u64::from(result));
                    warp.set(valid, lane, u64::from(same == here));
                }
            }
            Collective::Redux { mode, d, a } => {
                let lanes = *self.context.lanes(&warp.registers, a);
                let values = lanes_of(here).map(|lane| lanes[lane as usize] as u32);
                let result = values.reduce(|a, b| reduced(mode, a, b)).unwrap_or(0);
                lanes_of(here).for_each(|lane| warp.set(d, lane, u64::from(result)));
            }
            Collective::Elect { leader, d } => {
                let elected = self.machine.elect(warp.block, warp.index, mask, here);
                for lane in lanes_of(here) {
                    warp.set(leader, lane, u64::from(elected));
                    warp.set(d, lane, u64::from(lane == elected));
                }
            }
            Collective::Matrix(_) | Collective::Mma(_) | Collective::MmaDouble(_) if here != u32::MAX => {
                let message = format!(
                    "only lanes {here:#010x} move or multiply a matrix; all lanes of the warp must take part"
                );
                let lane = Lane { index: here.trailing_zeros(), site };
                return self.fail(warp, lane, FindingKind::Execution, message);
            }
            Collective::Matrix(ref code) => self.matrix(warp, code, site)?,
            Collective::Mma(ref code) => self.mma(warp, code),
            Collective::MmaDouble(ref code) => self.mma_double(warp, code),
        }
        Ok(())
    }

    /// `shfl`. Source: PTX ISA, "shfl.sync": the value read from a lane that is inactive or not in
    /// the mask is undefined.
    fn shuffle(
        &mut self,
        warp: &mut Warp,
        mode: Shuffle,
        operands: &ShuffleOperands,
        LaneGroup { here, mask, site }: LaneGroup,
    ) -> Result<(), Stop> {
        for index in lanes_of(here) {
            let at = index as usize;
            let (from, inside) = read_lane(mode, index, operands.amounts[at], operands.clamps[at]);
            if here >> from & 1 == 0 {
                let why = if mask >> from & 1 == 0 {
                    format!("is not in the mask {mask:#010x}")
                } else {
                    "is not active: it has exited, or the block has no such thread".to_owned()
                };
                let message = format!("lane {index} reads the value of lane {from}, which {why}");
                return self.fail(warp, Lane { index, site }, FindingKind::Execution, message);
            }
            warp.set(operands.d, index, operands.values[from as usize]);
            warp.set(operands.valid, index, u64::from(inside));
        }
        Ok(())
    }
}

/// The operands of `shfl`.
struct ShuffleOperands {
    d: Reg,
    /// The predicate that says whether the requested lane was read.
    valid: Reg,
    values: Lanes,
    amounts: Lanes,
    clamps: Lanes,
}

/// Returns the lane that each lane reads, and whether that is the requested one. Source: PTX ISA,
/// "shfl.sync", the pseudocode of its semantics.
fn read_lane(mode: Shuffle, lane: u32, amount: u64, clamp: u64) -> (u32, bool) {
    let (own, segment) = (lane as i32, (clamp >> 8) as i32 & 31);
    let (amount, clamp) = (amount as i32 & 31, clamp as i32 & 31);
    let last = own & segment | clamp & !segment;
    let (from, inside) = match mode {
        Shuffle::Up => (own - amount, own - amount >= last),
        Shuffle::Down => (own + amount, own + amount <= last),
        Shuffle::Butterfly => (own ^ amount, (own ^ amount) <= last),
        Shuffle::Index => {
            let from = own & segment | amount & !segment;
            (from, from <= last)
        }
    };
    if inside { (from as u32 & 31, true) } else { (lane, false) }
}

fn reduced(mode: Redux, a: u32, b: u32) -> u32 {
    match mode {
        Redux::Add => a.wrapping_add(b),
        Redux::Min(false) => a.min(b),
        Redux::Min(true) => (a as i32).min(b as i32) as u32,
        Redux::Max(false) => a.max(b),
        Redux::Max(true) => (a as i32).max(b as i32) as u32,
        Redux::And => a & b,
        Redux::Or => a | b,
        Redux::Xor => a ^ b,
    }
}
