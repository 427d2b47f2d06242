//! `wgmma` and `setmaxnreg`: a warp's part in the operations of its warpgroup, and the registers
//! that tensor cores access asynchronously.
//!
//! Between the issue of a multiplication and the wait for its group, no other instruction may use
//! its registers. Those of D hold poison meanwhile. A `wgmma.fence` must come between another
//! instruction's use of a register and a multiplication's. Multiplications of the same shape on the
//! same accumulators need no fence between them. Source: PTX ISA, "wgmma.fence", "wgmma.mma_async".

use tma_model::mma::Form;

use super::alu::Lanes;
use super::step::{Flow, Turn};
use super::warp::Warp;
use super::{Issue, Lane};
use crate::isa::{LeftCode, MetadataCode, MultiplyCode, Reg, Site, WarpgroupOp};
use crate::machine::{LeftOperand, Metadata, Multiply, Poll, Stop, WaitingFor};
use crate::report::{Finding, FindingKind};

/// The contents of a register of D while a multiplication is in flight: a NaN in each type.
const POISON: u64 = 0xffff_ffff;

const WAIT: &str = "[[`flight.wait()`||`wgmma.wait_group`]] for the group of the multiplication, before this";
const FENCE: &str = "`wgmma.fence` before the first multiplication, and after each use of accumulators or of A's registers by other \
                     instructions[[, with which `mma` begins||]]";

/// The role of a register in a multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Accumulator,
    Left,
}

/// A multiplication that has not been waited for.
#[derive(Clone, Copy, Debug)]
struct Flight {
    role: Role,
    /// The group of the warp that the multiplication belongs to.
    group: u32,
    site: Site,
}

/// The use of a tensor core register since the last `wgmma.fence`.
#[derive(Clone, Copy, Debug, Default)]
enum Since {
    /// There was no fence yet.
    #[default]
    Start,
    Nothing,
    /// Another instruction has used the register.
    Used(Site),
    /// The register was an accumulator of this shape.
    Accumulated(Form, Site),
}

/// The state of a tensor core register.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    flight: Option<Flight>,
    since: Since,
}

/// The tensor core registers of a warp.
#[derive(Debug, Default)]
pub(super) struct TensorRegisters {
    /// Indexed by register; empty in kernels without `wgmma`.
    states: Vec<State>,
    in_flight: Vec<Reg>,
    commits: u32,
}

impl TensorRegisters {
    pub(super) fn new(registers: u32) -> Self {
        Self { states: vec![State::default(); registers as usize], in_flight: Vec::new(), commits: 0 }
    }

    fn state(&mut self, reg: Reg) -> Option<&mut State> {
        if reg.as_constant().is_some() { None } else { self.states.get_mut(reg.index()) }
    }

    fn fence(&mut self) {
        for state in &mut self.states {
            state.since = Since::Nothing;
        }
    }
}

/// An error in a multiplication's use of a register.
#[derive(Clone, Copy, Debug)]
enum Misuse {
    /// The register is in flight in the other role.
    InFlight(Site),
    NoFence(Since),
}

/// Checks the use of a register by a multiplication of shape `form`.
fn misuse(state: State, role: Role, form: Form) -> Option<Misuse> {
    if let Some(flight) = state.flight.filter(|flight| flight.role != role) {
        return Some(Misuse::InFlight(flight.site));
    }
    match (state.since, role) {
        (Since::Nothing, _) => None,
        (Since::Accumulated(before, _), Role::Accumulator) if before == form => None,
        (since, _) => Some(Misuse::NoFence(since)),
    }
}

impl Turn<'_, '_> {
    /// Executes an operation of the warpgroup. All lanes of the warp must be at the instruction: it
    /// waits until they are.
    pub(super) fn warpgroup(
        &mut self,
        warp: &mut Warp,
        op: &WarpgroupOp,
        issue: Issue,
    ) -> Result<Flow, Stop> {
        if issue.active != warp.live {
            return Ok(Flow::Wait { stay: issue.active, what: WaitingFor::Warp(warp.live) });
        }
        if warp.live != u32::MAX {
            let message = format!("lanes {:#010x} of a warp; all 32 have to take part", warp.live);
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
                    return Ok(Flow::Wait { stay: issue.active, what: WaitingFor::MultiplyGroups(*pending) });
                };
                self.take_back(warp, last);
            }
            WarpgroupOp::Registers { count, grows } => {
                if self.machine.change_registers(actor, *count, *grows)? == Poll::Blocked {
                    return Ok(Flow::Wait { stay: issue.active, what: WaitingFor::Registers(*count) });
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
            let message = format!("`scale-d` holds in lanes {holds:#010x} of a warp, and not in the others");
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
        let what = Multiply { pc, form, d, left, right, accumulates, negates, majors, saturates, metadata };
        self.machine.multiply(warp.actor(0, issue.site), &what)?;
        let group = warp.tensor.commits + 1;
        for &reg in code.left.registers() {
            let flight = Flight { role: Role::Left, group, site: issue.site };
            start(&mut warp.tensor, reg, flight, None);
        }
        for &reg in &code.d {
            let flight = Flight { role: Role::Accumulator, group, site: issue.site };
            start(&mut warp.tensor, reg, flight, Some(form));
        }
        Ok(())
    }

    /// Returns the value of a register that must be the same in all lanes.
    fn uniform(&mut self, warp: &Warp, lane: Lane, reg: Reg) -> Result<u64, Stop> {
        let lanes = self.context.lanes(&warp.registers, reg);
        if lanes.iter().all(|value| *value == lanes[0]) {
            return Ok(lanes[0]);
        }
        let message = "the lanes of a warp name an operand by different descriptors";
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
        let who = warp.thread(0);
        let (kind, message, help, other) = match misuse {
            Misuse::InFlight(site) => (
                FindingKind::RegisterInFlight,
                "a multiplication uses a register as accumulator and another one as A, and nothing has waited between",
                WAIT,
                Some((site, "issued the other")),
            ),
            Misuse::NoFence(Since::Start | Since::Nothing) => (
                FindingKind::MissingRegisterFence,
                "a warp's first multiplication, with no `wgmma.fence` before it",
                FENCE,
                None,
            ),
            Misuse::NoFence(Since::Used(site)) => (
                FindingKind::MissingRegisterFence,
                "a multiplication of registers that another instruction has used, with no `wgmma.fence` between",
                FENCE,
                Some((site, "used one of them")),
            ),
            Misuse::NoFence(Since::Accumulated(_, site)) => (
                FindingKind::MissingRegisterFence,
                "a multiplication of registers that were accumulators of another shape, with no `wgmma.fence` between",
                FENCE,
                Some((site, "issued that multiplication")),
            ),
        };
        let mut finding =
            Finding::new(kind, message).with(self.machine.party(who, site, "issues the multiplication"));
        if let Some((site, does)) = other {
            finding = finding.with(self.machine.party(who, site, does));
        }
        self.machine.report(finding.help(help));
    }

    /// Hands the accumulators that the tensor core does not hold yet over to it, and leaves poison.
    fn lend(&mut self, warp: &mut Warp, d: &[Reg]) {
        for &reg in d {
            let accumulates = |flight: Flight| flight.role == Role::Accumulator;
            if warp.tensor.state(reg).is_some_and(|state| state.flight.is_some_and(accumulates)) {
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
            let Some(flight) = state.flight.filter(|flight| flight.group <= last) else { return true };
            state.flight = None;
            if flight.role == Role::Accumulator
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
        let mut flying = None;
        for &reg in touched {
            let Some(state) = warp.tensor.state(reg) else { continue };
            state.since = Since::Used(issue.site);
            flying = flying.or(state.flight);
        }
        let Some(flight) = flying.filter(|_| self.machine.checks_order()) else { return };
        let message = match flight.role {
            Role::Accumulator => "a register is used that is an accumulator of a multiplication in flight",
            Role::Left => "a register is used that is the A of a multiplication in flight",
        };
        let who = warp.thread(issue.first_lane().index);
        let finding = Finding::new(FindingKind::RegisterInFlight, message)
            .with(self.machine.party(who, issue.site, "uses it"))
            .with(self.machine.party(who, flight.site, "issued the multiplication"))
            .help(WAIT);
        self.machine.report(finding);
    }
}

/// Marks a register as in flight. `form` is the shape of the multiplication if the register is an
/// accumulator.
fn start(tensor: &mut TensorRegisters, reg: Reg, flight: Flight, form: Option<Form>) {
    let Some(state) = tensor.state(reg) else { return };
    let is_new = state.flight.replace(flight).is_none();
    if let Some(form) = form {
        state.since = Since::Accumulated(form, flight.site);
    }
    if is_new {
        tensor.in_flight.push(reg);
    }
}

fn words(lanes: &Lanes) -> [u32; 32] {
    lanes.map(|value| value as u32)
}
