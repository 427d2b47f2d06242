//! Branches, calls and exits, and the functions of CUDA's device runtime: `vprintf` and
//! `__assertfail`.

use super::alu::each;
use super::executor::{Executor, Flow};
use super::memory::Location;
use super::warp::Warp;
use super::{Issue, Lane, lanes_of};
use crate::isa::{AccessOrder, Assertion, ControlOp, Memory, Pc, Reg, Space};
use crate::machine::Stop;
use crate::report::FindingKind;
use tma_model::printf::{self, WIDEST};

/// The longest string that is read from memory.
const LONGEST_TEXT: u64 = 64 << 10;

impl Executor<'_, '_> {
    pub(super) fn control(&mut self, warp: &mut Warp, op: &ControlOp, issue: Issue) -> Result<Flow, Stop> {
        match *op {
            ControlOp::Branch(target) => return Ok(Flow::Jump(target)),
            ControlOp::BranchIndexed { index, ref targets } => {
                return self.branch_indexed(warp, index, targets, issue);
            }
            ControlOp::Call { start, link } => {
                let back = u64::from(issue.pc.next().0);
                each(self.context, warp, issue.active, link, [], |[]| back);
                return Ok(Flow::Jump(start));
            }
            // Each lane returns to its own call site.
            ControlOp::Return(link) => {
                let back = |lane| (Pc(warp.get(self.context, link, lane) as u32), 1 << lane);
                return Ok(Flow::Scatter(lanes_of(issue.active).map(back).collect()));
            }
            ControlOp::Exit => return Ok(Flow::Exit),
            ControlOp::Yield => return Ok(Flow::Yield),
            ControlOp::Trap(None) => {
                let message = "the kernel executed `trap`";
                return self.fail(warp, issue.first_lane(), FindingKind::Trap, message);
            }
            ControlOp::Trap(Some(ref assertion)) => {
                let Assertion { location, message } = &**assertion;
                return self.assertion(warp, location, &self.context.program.name, message, issue);
            }
            ControlOp::Unsupported(ref message) => {
                return self.fail(warp, issue.first_lane(), FindingKind::Execution, &**message);
            }
            ControlOp::Nothing | ControlOp::Mark(_) => {}
            ControlOp::Printf { format, args, result } => {
                for lane in issue.lanes() {
                    self.printf(warp, lane, format, args, result)?;
                }
            }
            ControlOp::AssertFail { message, file, line, function } => {
                let slots = AssertionSlots { message, file, line, function };
                return self.assert_fail(warp, slots, issue);
            }
        }
        Ok(Flow::Next)
    }

    /// `brx.idx`: each lane jumps to the target that its index selects.
    fn branch_indexed(
        &mut self,
        warp: &Warp,
        index: Reg,
        targets: &[Pc],
        issue: Issue,
    ) -> Result<Flow, Stop> {
        let mut lanes_by_target = Vec::new();
        for lane in issue.lanes() {
            let index = warp.get(self.context, index, lane.index);
            let Some(target) = targets.get(index as usize) else {
                let message = "a branch index is beyond the list of targets";
                return self.fail(warp, lane, FindingKind::Execution, message);
            };
            lanes_by_target.push((*target, 1 << lane.index));
        }
        Ok(Flow::Scatter(lanes_by_target))
    }

    /// `vprintf`, with the offsets of its arguments and its result in local memory.
    fn printf(
        &mut self,
        warp: &mut Warp,
        lane: Lane,
        format: u32,
        args: u32,
        result: Option<u32>,
    ) -> Result<(), Stop> {
        let format = self.local_number(warp, lane, format)?;
        let mut next = self.local_number(warp, lane, args)?;
        let format = self.text(warp, lane, format)?;
        let mut written = 0;
        for piece in printf::pieces(&format) {
            let text = match piece {
                printf::Piece::Text(text) => text.into_owned(),
                printf::Piece::TooWide => {
                    let message = format!(
                        "a conversion of `printf` has a width or a precision of more than {WIDEST} characters"
                    );
                    return self.fail(warp, lane, FindingKind::Execution, message);
                }
                printf::Piece::Value(spec) => {
                    written += 1;
                    let value = self.argument(warp, lane, &mut next, spec.bytes)?;
                    if spec.is_text() {
                        let text = self.text(warp, lane, value)?;
                        spec.padded(String::from_utf8_lossy(&text).into_owned())
                    } else {
                        spec.number(value)
                    }
                }
            };
            self.printed.push(&text);
        }
        if let Some(result) = result {
            self.write(warp, lane, local(result), &u32::to_le_bytes(written))?;
        }
        Ok(())
    }

    /// Reads the next argument, at the next multiple of its size.
    fn argument(&mut self, warp: &Warp, lane: Lane, next: &mut u64, bytes: u32) -> Result<u64, Stop> {
        let address = next.checked_next_multiple_of(u64::from(bytes)).unwrap_or(0);
        *next = address.wrapping_add(u64::from(bytes));
        let mut wide = [0; 8];
        self.read(warp, lane, generic(address), &mut wide[..bytes as usize])?;
        Ok(u64::from_le_bytes(wide))
    }

    fn local_number(&mut self, warp: &Warp, lane: Lane, offset: u32) -> Result<u64, Stop> {
        let mut bytes = [0; 8];
        self.read(warp, lane, local(offset), &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a string that is terminated by a zero byte.
    fn text(&mut self, warp: &Warp, lane: Lane, address: u64) -> Result<Vec<u8>, Stop> {
        let mut text = Vec::new();
        for offset in 0..LONGEST_TEXT {
            let mut byte = [0];
            self.read(warp, lane, generic(address.wrapping_add(offset)), &mut byte)?;
            if byte[0] == 0 {
                return Ok(text);
            }
            text.push(byte[0]);
        }
        let message = format!("the text at {address:#x} is not terminated");
        self.fail(warp, lane, FindingKind::Execution, message)
    }

    fn assert_fail(&mut self, warp: &Warp, slots: AssertionSlots, issue: Issue) -> Result<Flow, Stop> {
        let lane = issue.first_lane();
        let mut texts = Vec::new();
        for slot in [slots.message, slots.file, slots.function] {
            let address = self.local_number(warp, lane, slot)?;
            let text = if address == 0 { Vec::new() } else { self.text(warp, lane, address)? };
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
        let mut bytes = [0; 4];
        self.read(warp, lane, local(slots.line), &mut bytes)?;
        let line = u32::from_le_bytes(bytes);
        let [message, file, function] = [0, 1, 2].map(|index| texts[index].as_str());
        self.assertion(warp, &format!("{file}:{line}"), function, message, issue)
    }

    /// Reports an assertion that has failed.
    fn assertion(
        &mut self,
        warp: &Warp,
        location: &str,
        function: &str,
        message: &str,
        issue: Issue,
    ) -> Result<Flow, Stop> {
        let count = issue.active.count_ones();
        let threads = if count == 1 { String::new() } else { format!(", in {count} threads of the warp") };
        let message = format!("assertion failed at {location} in {function}: {message}{threads}");
        self.fail(warp, issue.first_lane(), FindingKind::Trap, message)
    }
}

/// The offsets of the arguments of `__assertfail` in local memory.
struct AssertionSlots {
    message: u32,
    file: u32,
    line: u32,
    function: u32,
}

fn local(offset: u32) -> Location {
    Location { memory: Memory::Local, address: offset.into(), order: AccessOrder::WEAK }
}

fn generic(address: u64) -> Location {
    Location { memory: Memory::Machine(Space::Generic), address, order: AccessOrder::WEAK }
}
