//! `wgmma` and `setmaxnreg`: a warp's part in the operations of its warpgroup, and the registers
//! that tensor cores access asynchronously.
//!
//! Between the issue of a multiplication and the wait for its group, no other instruction may use
//! its registers. Those of D hold poison meanwhile. A `wgmma.fence` must come between another
//! instruction's use of a register and a multiplication's. Multiplications of the same shape on the
//! same accumulators need no fence between them. Source: PTX ISA, "wgmma.fence", "wgmma.mma_async".

use tma_model::help::Help;
use tma_model::mma::Form;

use super::alu::Lanes;
use super::executor::{Executor, Flow};
use super::warp::Warp;
use super::{Issue, Lane};
use crate::isa::{LeftCode, MetadataCode, MultiplyCode, Reg, Site, WarpgroupOp};
use crate::machine::{LeftOperand, Metadata, Multiply, Poll, Stop, WaitingFor};
use crate::report::{Finding, FindingKind};

/// The contents of a register of D while a multiplication is in flight: a NaN in each type.
const POISON: u64 = 0xffff_ffff;

/// The role of a register in a multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Accumulator,
    Left,
}

/// A multiplication that has not been waited for.
#[derive(Clone, Copy, Debug)]
struct InFlightUse {
    role: Role,
    /// The group of the warp that the multiplication belongs to.
    group: u32,
    site: Site,
}

/// The use of a tensor core register since the last `wgmma.fence`.
#[derive(Clone, Copy, Debug, Default)]
enum LastUse {
    /// There was no fence yet.
    #[default]
    BeforeFirstFence,
    Unused,
    /// Another instruction has used the register.
    Used(Site),
    /// The register was an accumulator of this shape.
    Accumulator(Form, Site),
}

/// The state of a tensor core register.
#[derive(Clone, Copy, Debug, Default)]
struct RegisterState {
    in_flight_use: Option<InFlightUse>,
    last_use: LastUse,
}

/// The tensor core registers of a warp.
#[derive(Debug, Default)]
pub(super) struct TensorRegisters {
    /// Indexed by register; empty in kernels without `wgmma`.
    states: Vec<RegisterState>,
    in_flight: Vec<Reg>,
    commits: u32,
}

impl TensorRegisters {
    pub(super) fn new(registers: u32) -> Self {
        Self { states: vec![RegisterState::default(); registers as usize], in_flight: Vec::new(), commits: 0 }
    }

    fn state(&mut self, reg: Reg) -> Option<&mut RegisterState> {
        if reg.as_constant().is_some() { None } else { self.states.get_mut(reg.index()) }
    }

    fn fence(&mut self) {
        for state in &mut self.states {
            state.last_use = LastUse::Unused;
        }
    }
}

/// An error in a multiplication's use of a register.
#[derive(Clone, Copy, Debug)]
enum Misuse {
    /// The register is in flight in the other role.
    InFlight(Site),
    NoFence(LastUse),
}

/// Checks the use of a register by a multiplication of shape `form`.
fn misuse(state: RegisterState, role: Role, form: Form) -> Option<Misuse> {
    if let Some(in_flight_use) = state.in_flight_use.filter(|in_flight_use| in_flight_use.role != role) {
        return Some(Misuse::InFlight(in_flight_use.site));
    }
    match (state.last_use, role) {
        (LastUse::Unused, _) => None,
        (LastUse::Accumulator(before, _), Role::Accumulator) if before == form => None,
        (last_use, _) => Some(Misuse::NoFence(last_use)),
    }
}

impl Executor<'_, '_> {
    /// Executes an operation of the warpgroup. All lanes of the warp must be at the instruction: it
    /// waits until they are.
    pub(super) fn warpgroup(
        &mut self,
        warp: &mut Warp,
        op: &WarpgroupOp,
        issue: Issue,
    ) -> Result<Flow, Stop> {
        if issue.active != warp.live {
            return Ok(Flow::Wait { blocked: issue.active, event: WaitingFor::Warp(warp.live) });
        }
        if warp.live != u32::MAX {
            let message = format!("only lanes {:#010x} of a warp take part; all 32 are needed", warp.live);
            return self.fail(warp, issue.first_lane(), FindingKind::DivergentMultiplication, message);
        }
        let actor = warp.actor(0, issue.site);
        match op {
            WarpgroupOp::Fence => warp.tensor.fence(),
            WarpgroupOp::Multiply(code) => self.multiply(warp, code, issue)?,
            WarpgroupOp::Commit => {
                self.machine.multiply_commit(actor, issue.pc.0)?;
                warp.tensor.commits += 1;
            }
            WarpgroupOp::Wait(pending) => {
                let Some(last) = self.machine.multiply_wait(warp.block, warp.index, *pending) else {
                    return Ok(Flow::Wait {
                        blocked: issue.active,
                        event: WaitingFor::MultiplyGroups(*pending),
                    });
                };
                self.take_back(warp, last);
            }
            WarpgroupOp::Registers { count, grows } => {
                if self.machine.change_registers(actor, *count, *grows)? == Poll::Blocked {
                    return Ok(Flow::Wait { blocked: issue.active, event: WaitingFor::Registers(*count) });
                }
            }
        }
        Ok(Flow::Next)
    }

    fn multiply(&mut self, warp: &mut Warp, code: &MultiplyCode, issue: Issue) -> Result<(), Stop> {
        let lane = issue.first_lane();
        let right = self.uniform(warp, lane, code.right)?;
        let holds = warp.holds(self.context, code.accumulates);
        if holds != 0 && holds != u32::MAX {
            let message = format!(
                "`scale-d` is true in lanes {holds:#010x} of a warp, but not in the \
                others"
            );
            return self.fail(warp, lane, FindingKind::DivergentMultiplication, message);
        }
        if self.machine.checks_order() {
            self.check_registers(warp, code, issue.site);
        }
        let registers;
        let left = match code.left {
            LeftCode::Shared(descriptor) => LeftOperand::Shared(self.uniform(warp, lane, descriptor)?),
            LeftCode::Registers(four) => {
                registers = four.map(|reg| words(self.context.lanes(&warp.registers, reg)));
                LeftOperand::Registers(&registers)
            }
        };
        let lanes;
        let metadata = match code.metadata {
            Some(MetadataCode { register, selector }) => {
                lanes = words(self.context.lanes(&warp.registers, register));
                Some(Metadata { lanes: &lanes, selector })
            }
            None => None,
        };
        self.lend(warp, &code.d);
        let MultiplyCode { form, negates, majors, saturates, .. } = *code;
        let (pc, d, accumulates) = (issue.pc.0, code.d.as_slice(), holds != 0);
        let multiply =
            Multiply { pc, form, d, left, right, accumulates, negates, majors, saturates, metadata };
        self.machine.multiply(warp.actor(0, issue.site), &multiply)?;
        let group = warp.tensor.commits + 1;
        for &reg in code.left.registers() {
            let in_flight_use = InFlightUse { role: Role::Left, group, site: issue.site };
            start(&mut warp.tensor, reg, in_flight_use, None);
        }
        for &reg in &code.d {
            let in_flight_use = InFlightUse { role: Role::Accumulator, group, site: issue.site };
            start(&mut warp.tensor, reg, in_flight_use, Some(form));
        }
        Ok(())
    }

    /// Returns the value of a register that must be the same in all lanes.
    fn uniform(&mut self, warp: &Warp, lane: Lane, reg: Reg) -> Result<u64, Stop> {
        let lanes = self.context.lanes(&warp.registers, reg);
        if lanes.iter().all(|value| *value == lanes[0]) {
            return Ok(lanes[0]);
        }
        let message = "the lanes of a warp have different descriptors of one operand";
        self.fail(warp, lane, FindingKind::DivergentMultiplication, message)
    }

    /// Checks that the multiplication may use each of its registers, and reports the first one that
    /// it may not.
    fn check_registers(&mut self, warp: &Warp, code: &MultiplyCode, site: Site) {
        let roles = code.d.iter().map(|reg| (*reg, Role::Accumulator));
        let roles = roles.chain(code.left.registers().iter().map(|reg| (*reg, Role::Left)));
        let states = &warp.tensor.states;
        let used = roles.filter_map(|(reg, role)| {
            let state = reg.as_constant().is_none().then(|| states.get(reg.index()))??;
            misuse(*state, role, code.form)
        });
        let in_flight = |misuse: &Misuse| matches!(misuse, Misuse::InFlight(_));
        let Some(misuse) = used.max_by_key(in_flight) else { return };
        let thread = warp.thread(0);
        let (kind, message, help, other) = match misuse {
            Misuse::InFlight(site) => (
                FindingKind::RegisterInFlight,
                "one multiplication uses a register as accumulator and another as A, with no wait between \
                 the two",
                Help::WaitForRegisters,
                Some((site, "issued the other one")),
            ),
            Misuse::NoFence(LastUse::BeforeFirstFence | LastUse::Unused) => (
                FindingKind::MissingRegisterFence,
                "the first multiplication of a warp has no `wgmma.fence` before it",
                Help::FenceRegisters,
                None,
            ),
            Misuse::NoFence(LastUse::Used(site)) => (
                FindingKind::MissingRegisterFence,
                "a multiplication uses registers that another instruction has used, with no `wgmma.fence` in \
                 between",
                Help::FenceRegisters,
                Some((site, "used one of them")),
            ),
            Misuse::NoFence(LastUse::Accumulator(_, site)) => (
                FindingKind::MissingRegisterFence,
                "a multiplication uses registers that were accumulators of another shape, with no \
                 `wgmma.fence` in between",
                Help::FenceRegisters,
                Some((site, "issued that multiplication")),
            ),
        };
        let mut finding =
            Finding::new(kind, message).with(self.machine.party(thread, site, "issues the multiplication"));
        if let Some((site, does)) = other {
            finding = finding.with(self.machine.party(thread, site, does));
        }
        self.machine.report(finding.help(help));
    }

    /// Hands the accumulators that the tensor core does not hold yet over to it, and leaves poison.
    fn lend(&mut self, warp: &mut Warp, d: &[Reg]) {
        for &reg in d {
            let accumulates = |in_flight_use: InFlightUse| in_flight_use.role == Role::Accumulator;
            if warp.tensor.state(reg).is_some_and(|state| state.in_flight_use.is_some_and(accumulates)) {
                continue;
            }
            let lanes = &mut warp.registers[reg.index()];
            self.machine.lend(warp.block, warp.index, reg, &words(lanes));
            lanes.fill(POISON);
        }
    }

    /// Takes back the registers of the groups up to `last`, which are complete.
    fn take_back(&mut self, warp: &mut Warp, last: u32) {
        let Warp { tensor, registers, block, index, .. } = warp;
        tensor.in_flight.retain(|reg| {
            let state = &mut tensor.states[reg.index()];
            let Some(in_flight_use) = state.in_flight_use.filter(|in_flight_use| in_flight_use.group <= last)
            else {
                return true;
            };
            state.in_flight_use = None;
            if in_flight_use.role == Role::Accumulator
                && let Some(values) = self.machine.lent(*block, *index, *reg)
            {
                for (lane, value) in registers[reg.index()].iter_mut().zip(values) {
                    *lane = u64::from(*value);
                }
            }
            false
        });
    }

    /// Handles the use of tensor core registers by an instruction other than a multiplication.
    #[cold]
    pub(super) fn touch(&mut self, warp: &mut Warp, touched: &[Reg], issue: Issue) {
        let mut in_flight_use = None;
        for &reg in touched {
            let Some(state) = warp.tensor.state(reg) else { continue };
            state.last_use = LastUse::Used(issue.site);
            in_flight_use = in_flight_use.or(state.in_flight_use);
        }
        let Some(in_flight_use) = in_flight_use.filter(|_| self.machine.checks_order()) else { return };
        let message = match in_flight_use.role {
            Role::Accumulator => "an accumulator of a multiplication in flight is used",
            Role::Left => "a register of A of a multiplication in flight is used",
        };
        let thread = warp.thread(issue.first_lane().index);
        let finding = Finding::new(FindingKind::RegisterInFlight, message)
            .with(self.machine.party(thread, issue.site, "uses it"))
            .with(self.machine.party(thread, in_flight_use.site, "issued the multiplication"))
            .help(Help::WaitForRegisters);
        self.machine.report(finding);
    }
}

/// Marks a register as in flight. `form` is the shape of the multiplication if the register is an
/// accumulator.
fn start(tensor: &mut TensorRegisters, reg: Reg, in_flight_use: InFlightUse, form: Option<Form>) {
    let Some(state) = tensor.state(reg) else { return };
    let is_new = state.in_flight_use.replace(in_flight_use).is_none();
    if let Some(form) = form {
        state.last_use = LastUse::Accumulator(form, in_flight_use.site);
    }
    if is_new {
        tensor.in_flight.push(reg);
    }
}

fn words(lanes: &Lanes) -> [u32; 32] {
    lanes.map(|value| value as u32)
}
