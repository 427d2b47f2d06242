//! Registers that warpgroups ask for, compared with those that a block has.
//!
//! A block begins with the same number for each thread. `setmaxnreg_dec` returns some of them to
//! the block, and `setmaxnreg_inc` waits until the block has as many as it takes (PTX ISA,
//! "setmaxnreg"). So in the end all warpgroups together must not have more than they began with.
//!
//! Each warpgroup is followed on its own, where conditions depend on its index. Warps at the end
//! that are not a whole warpgroup cannot change their registers, so they are not counted. Not
//! checked: changes under conditions that are known at run time only.

use tma_model::limits::WARPGROUP_THREADS;

use super::mma::is_valid_register_count;
use super::unrolled::State;
use crate::diag::Sink;
use crate::diag::mistake::Warpgroup;
use crate::ir::{Block, Flow, JumpTarget, Kernel, Label, Span, Stmt, StmtKind, visit};
use crate::limits::{count, registers_at_entry};

/// Returns the registers that each thread begins with, if warpgroups ask for more or fewer: the
/// number that the kernel states, or else all that a block can have, divided equally, but no more
/// than any warpgroup asks for as an increase. `setmaxnreg` is ignored if the number is not known
/// (PTX ISA, "setmaxnreg").
pub fn at_entry(kernel: &Kernel) -> Option<u32> {
    let (mut has_changes, mut increases) = (false, vec![]);
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::SetMaxRegisters { increase, registers } = stmt.kind {
            has_changes = true;
            increases.extend(increase.then_some(registers));
        }
    });
    let launch = &kernel.launch;
    if let Some(registers) = launch.max_registers {
        return Some(registers.next_multiple_of(8)).filter(|_| has_changes);
    }
    let threads = u32::try_from(launch.thread_count()).ok()?;
    let each = registers_at_entry(threads, launch.min_blocks.unwrap_or(1))?;
    has_changes.then(|| increases.into_iter().fold(each, u32::min))
}

/// Reports changes in the wrong direction, and increases that no block can satisfy.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let Some(begins) = at_entry(kernel) else { return };
    let warpgroups = kernel.launch.thread_count() / u64::from(WARPGROUP_THREADS);
    let roles: Vec<_> = (0..warpgroups).map(|number| follow(kernel, number)).collect();
    if !roles.iter().flatten().all(|change| is_valid_register_count(change.registers)) {
        return;
    }
    let before = sink.len();
    for role in &roles {
        directions(begins, role, sink);
    }
    let is_known = roles.iter().flatten().all(|change| change.is_certain);
    if is_known && sink.len() == before {
        pool(begins, &roles, sink);
    }
}

/// A change of a warpgroup's registers.
#[derive(Clone, Copy)]
struct Change {
    increases: bool,
    registers: u32,
    span: Span,
    /// Whether the warpgroup gets there, whatever is known at run time only.
    is_certain: bool,
}

/// Returns the changes of a warpgroup, in order.
fn follow(kernel: &Kernel, warpgroup: u64) -> Vec<Change> {
    let state = State::of_warpgroup(warpgroup, &kernel.launch);
    let mut walk = Walk { state, is_certain: true, changes: vec![] };
    walk.block(&kernel.body);
    walk.changes
}

/// The control flow after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ControlFlow {
    Fallthrough,
    /// After the statement with this label.
    After(Label),
    Leaves,
}

struct Walk {
    state: State,
    is_certain: bool,
    changes: Vec<Change>,
}

impl Walk {
    fn block(&mut self, block: &Block) -> ControlFlow {
        for stmt in &block.stmts {
            let flow = self.stmt(stmt);
            if flow != ControlFlow::Fallthrough {
                return flow;
            }
        }
        ControlFlow::Fallthrough
    }

    /// Walks blocks that may or may not be executed, once or more often.
    fn walk_optional<'b>(&mut self, blocks: impl Iterator<Item = &'b Block> + Clone) -> ControlFlow {
        let was_certain = std::mem::replace(&mut self.is_certain, false);
        blocks.clone().for_each(|block| self.state.forget(block));
        let mut leaves = false;
        for block in blocks {
            let before = self.state.clone();
            leaves |= self.block(block) != ControlFlow::Fallthrough || may_leave(block);
            self.state = before;
        }
        // The jumps out of these blocks are not certain, so the statements after them are not
        // either.
        self.is_certain = was_certain && !leaves;
        ControlFlow::Fallthrough
    }

    fn stmt(&mut self, stmt: &Stmt) -> ControlFlow {
        if let StmtKind::SetMaxRegisters { increase, registers } = stmt.kind {
            let (is_certain, span) = (self.is_certain, stmt.origin.span);
            self.changes.push(Change { increases: increase, registers, span, is_certain });
        } else if let StmtKind::Assign { local, index, value } = &stmt.kind {
            self.state.assign(*local, index, value);
        }
        match stmt.flow() {
            Flow::Fallthrough => ControlFlow::Fallthrough,
            Flow::If(condition, [then, otherwise]) => match self.state.of(condition).as_bool() {
                Some(true) => self.block(then),
                Some(false) => self.block(otherwise),
                None => self.walk_optional([then, otherwise].into_iter()),
            },
            Flow::Match(value, arms, otherwise) => match self.state.of(value).as_int() {
                Some(value) => {
                    let arm = arms.iter().find(|arm| arm.holds(value));
                    self.block(arm.map_or(otherwise, |arm| &arm.body))
                }
                None => self.walk_optional(arms.iter().map(|arm| &arm.body).chain([otherwise])),
            },
            Flow::Loop(inner) => self.walk_optional(inner.blocks()),
            Flow::Labelled(label, body) => {
                let flow = self.block(body);
                if flow == ControlFlow::After(label) { ControlFlow::Fallthrough } else { flow }
            }
            Flow::Jump(JumpTarget::After(label) | JumpTarget::NextIteration(label)) => {
                ControlFlow::After(label)
            }
            Flow::Jump(JumpTarget::Return) | Flow::Trap => ControlFlow::Leaves,
        }
    }
}

/// Whether a thread may leave `block` to somewhere other than the end of a loop or function in it.
fn may_leave(block: &Block) -> bool {
    let (mut targets, mut labels, mut ends) = (vec![], vec![], false);
    visit::for_each_stmt(block, &mut |stmt| {
        if let StmtKind::Return = stmt.kind {
            ends = true;
        } else if let StmtKind::Leave(label) = stmt.kind {
            targets.push(label);
        } else if let StmtKind::Labelled { label, .. } = stmt.kind {
            labels.push(label);
        }
    });
    ends || targets.iter().any(|target| !labels.contains(target))
}

/// Reports an increase to fewer registers than a warpgroup has, and a decrease to more.
fn directions(begins: u32, role: &[Change], sink: &mut Sink) {
    let mut has = begins;
    for change in role.iter().take_while(|change| change.is_certain) {
        let Change { increases, registers, span, .. } = *change;
        if increases && registers < has || !increases && registers > has {
            sink.error(Warpgroup::Direction { increases, registers, has, begins }, span);
            return;
        }
        has = registers;
    }
}

/// Reports an increase that the block cannot satisfy, whatever the other warpgroups return.
fn pool(begins: u32, roles: &[Vec<Change>], sink: &mut Sink) {
    let has = |role: &[Change]| role.last().map_or(begins, |change| change.registers);
    let ends: Vec<u32> = roles.iter().map(|role| has(role)).collect();
    let all: u32 = ends.iter().sum();
    let there = begins * count(roles.len());
    if all <= there {
        return;
    }
    let increases = roles.iter().filter_map(|role| role.last().filter(|change| change.increases));
    let Some(greatest) = increases.max_by_key(|change| change.registers) else { return };
    let most = there
        .saturating_sub(all - ends.iter().copied().filter(|&end| end == greatest.registers).sum::<u32>());
    let takers = ends.iter().filter(|&&end| end == greatest.registers).count();
    let fits = u32::try_from(takers).ok().and_then(|takers| most.checked_div(takers)).unwrap_or(0) / 8 * 8;
    let given = roles.iter().filter_map(|role| role.last()).find(|change| !change.increases);
    let given = given.map(|change| (change.registers, change.span));
    sink.error(Warpgroup::Pool { ends, begins, fits, given }, greatest.span);
}
