//! Register arrays that are indexed at run time, and so are in local memory: a warning.
//!
//! Registers have no addresses. An array is in registers if all of its indices are known once loops
//! are unrolled; otherwise LLVM keeps the whole array in local memory, which is as far away as
//! global memory.
//!
//! LLVM unrolls small loops that are not marked, too, and knows variables to which only constants
//! are assigned. So a warning also requires that the index depends on something that is known at
//! run time only. Not found: arrays in local memory because a thread has too few registers, and
//! `thread_idx().y` as an index in blocks with one thread along y, which LLVM does not know to be
//! 0.

use super::{Check, State, follow};
use crate::check::{CheckedKernel, limits};
use crate::diag::Sink;
use crate::diag::mistake::Limits;
use crate::ir::{
    Axis, Block, DefinedValue, Expr, ExprKind, Facts, Flow, For, JumpTarget, Kernel, Label, LocalId, Loop,
    LoopExit, Span, Special, Stmt, StmtKind, Type, visit,
};
use crate::quick::{QuickMap, QuickSet};

/// The operations of a loop up to which LLVM is assumed to unroll it of its own accord. LLVM counts
/// other things, and leaves loops alone from about 270 such operations on if most are accesses of
/// memory; arithmetic that it simplifies may be several times as much. `local_arrays_ptx.rs`
/// compares the two.
const UNROLLED_OPERATIONS: u64 = 256;

/// Warns of arrays that are in local memory in some instance of a kernel.
pub(in crate::check) fn local_arrays(instances: &[&CheckedKernel], sink: &mut Sink) {
    let mut reported = QuickSet::default();
    for checked in instances.iter().filter(|checked| !checked.kernel().local_arrays) {
        for (local, index) in found_in(checked.kernel()) {
            let start = index.start();
            // Instances differ in the lengths of arrays.
            if reported.insert((start.line, start.column)) {
                let local = checked.kernel().local(local);
                let (name, bytes) = (local.name.clone(), bytes(&local.ty));
                sink.warn(Limits::LocalArray { name, bytes }, index);
            }
        }
    }
}

/// Returns each array with the first of its indices that is known at run time only.
fn found_in(kernel: &Kernel) -> Vec<(LocalId, Span)> {
    if !kernel.locals.iter().any(|local| is_array(&local.ty)) {
        return vec![];
    }
    let mut walk = Walk { kernel, at_run_time: AtRunTime::of(kernel), found: vec![] };
    follow(&mut walk, kernel, State::default());
    walk.found
}

fn is_array(ty: &Type) -> bool {
    matches!(ty, Type::Array(..))
}

/// Returns the bytes of an array in local memory.
fn bytes(ty: &Type) -> u64 {
    let mut element = ty.clone();
    while let Type::Array(inner, _) = element {
        element = *inner;
    }
    ty.scalars() * element.as_scalar().map_or(1, |scalar| u64::from(scalar.bytes()))
}

struct Walk<'k> {
    kernel: &'k Kernel,
    at_run_time: AtRunTime,
    found: Vec<(LocalId, Span)>,
}

impl Walk<'_> {
    fn index(&mut self, array: LocalId, index: &Expr, state: &State) {
        let is_known = state.of(index).as_int().is_some();
        if !is_known
            && self.at_run_time.depends(self.kernel, index)
            && !self.found.iter().any(|(known, _)| *known == array)
        {
            self.found.push((array, index.span));
        }
    }
}

/// Returns the variable that an element of an array belongs to.
fn variable(array: &Expr) -> Option<LocalId> {
    if let ExprKind::Index(of, _) = &array.kind {
        return variable(of);
    }
    if let ExprKind::Local(local) = array.kind { Some(local) } else { None }
}

impl Check for Walk<'_> {
    fn stmt(&mut self, stmt: &Stmt, _: &Facts<'_>, state: &State) {
        for operand in visit::operands(&stmt.kind) {
            visit::within(operand, &mut |node| {
                if let ExprKind::Index(of, index) = &node.kind
                    && is_array(&of.ty)
                    && let Some(array) = variable(of)
                {
                    self.index(array, index, state);
                }
            });
        }
        if let StmtKind::Assign { local, index: indices, value: _ } = &stmt.kind
            && is_array(&self.kernel.local(*local).ty)
        {
            indices.iter().for_each(|index| self.index(*local, index, state));
        }
    }
}

/// The variables whose values depend on what is known at run time only, at some point of a kernel.
#[derive(Default)]
struct AtRunTime {
    locals: QuickSet<LocalId>,
}

impl AtRunTime {
    fn of(kernel: &Kernel) -> Self {
        let definitions = definitions(&kernel.body);
        let mut found = Self::default();
        loop {
            let before = found.locals.len();
            visit::for_each_stmt(&kernel.body, &mut |stmt| found.stmt(kernel, stmt, &definitions));
            if found.locals.len() == before {
                return found;
            }
        }
    }

    fn stmt(&mut self, kernel: &Kernel, stmt: &Stmt, definitions: &QuickMap<LocalId, usize>) {
        let facts = stmt.facts();
        for definition in facts.defines {
            let is_at_run_time = match definition.value {
                DefinedValue::Expr(value) => self.depends(kernel, value),
                DefinedValue::Range(inner) => self.is_counted_at_run_time(kernel, inner),
                DefinedValue::Load
                | DefinedValue::Atomic(_)
                | DefinedValue::Phase
                | DefinedValue::Election
                | DefinedValue::Lanes(..)
                | DefinedValue::Matrix
                | DefinedValue::Ptx(_) => true,
            };
            if is_at_run_time || definition.index.iter().any(|index| self.depends(kernel, index)) {
                self.locals.insert(definition.local);
            }
        }
        if let Flow::Loop(inner) = facts.flow
            && self.ends_at_run_time(kernel, inner)
        {
            // The values of variables that each iteration changes.
            for (local, inside) in inner.blocks().flat_map(self::definitions) {
                if definitions.get(&local).is_some_and(|&all| all > inside) {
                    self.locals.insert(local);
                }
            }
        }
    }

    /// Whether the number of iterations is known at run time only, or so large that the loop stays
    /// one.
    fn ends_at_run_time(&self, kernel: &Kernel, inner: Loop<'_>) -> bool {
        let by_exit = match inner.exit {
            LoopExit::Never => false,
            LoopExit::WhenFalse(_, condition) => self.depends(kernel, condition),
            LoopExit::Counted(range) => self.is_counted_at_run_time(kernel, range),
        };
        by_exit || inner.blocks().any(|block| self.leaves_at_run_time(kernel, block, inner.label))
    }

    fn is_counted_at_run_time(&self, kernel: &Kernel, inner: &For) -> bool {
        if inner.unroll {
            return false;
        }
        let Some(iterations) = limits::unrolled_iterations(inner) else {
            let bounds = [&inner.start, &inner.end, &inner.step];
            return bounds.into_iter().any(|bound| self.depends(kernel, bound));
        };
        let iterations = u64::try_from(iterations).unwrap_or(0);
        iterations.saturating_mul(operations(&inner.body)) > UNROLLED_OPERATIONS
    }

    /// Whether a condition that is known at run time only decides a jump out of a loop.
    fn leaves_at_run_time(&self, kernel: &Kernel, block: &Block, label: Label) -> bool {
        let mut found = false;
        visit::for_each_stmt(block, &mut |stmt| {
            let (condition, blocks): (_, Vec<&Block>) = match stmt.flow() {
                Flow::If(condition, blocks) => (condition, blocks.to_vec()),
                Flow::Match(value, arms, otherwise) => {
                    (value, arms.iter().map(|arm| &arm.body).chain([otherwise]).collect())
                }
                Flow::Fallthrough | Flow::Loop(_) | Flow::Labelled(..) | Flow::Jump(_) | Flow::Trap => return,
            };
            found |= blocks.into_iter().any(|block| leaves(block, label)) && self.depends(kernel, condition);
        });
        found
    }

    /// Whether the value of `expr` depends on what is known at run time only.
    fn depends(&self, kernel: &Kernel, expr: &Expr) -> bool {
        let mut found = false;
        visit::within(expr, &mut |node| {
            found |= matches!(node.kind, ExprKind::Param(_) | ExprKind::GlobalLen(_));
            if let ExprKind::Local(local) = node.kind {
                found |= self.locals.contains(&local);
            } else if let ExprKind::Special(special) = node.kind {
                found |= is_at_run_time(kernel, special);
            }
        });
        found
    }
}

/// Whether a special register has several values in launches of the kernel.
fn is_at_run_time(kernel: &Kernel, special: Special) -> bool {
    let [x, y, z] = kernel.launch.threads;
    match special {
        Special::ThreadIdx(Axis::X) => x > 1,
        Special::ThreadIdx(Axis::Y) => y > 1,
        Special::ThreadIdx(Axis::Z) => z > 1,
        Special::BlockIdx(_)
        | Special::GridDim(_)
        | Special::ClusterIdx(_)
        | Special::BlockInCluster(_)
        | Special::ClusterDim(_)
        | Special::ClusterRank
        | Special::LaneIdx
        | Special::WarpIdx
        | Special::WarpgroupIdx => true,
    }
}

/// Whether a jump out of this loop, or out of the kernel, is in the block.
fn leaves(block: &Block, label: Label) -> bool {
    let mut found = false;
    visit::for_each_stmt(block, &mut |stmt| {
        if let Flow::Jump(target) = stmt.flow() {
            found |= target == JumpTarget::After(label) || target == JumpTarget::Return;
        }
    });
    found
}

/// Counts the definitions of each variable in a block.
fn definitions(block: &Block) -> QuickMap<LocalId, usize> {
    let mut found = QuickMap::default();
    visit::for_each_stmt(block, &mut |stmt| {
        for definition in stmt.facts().defines {
            *found.entry(definition.local).or_default() += 1;
        }
    });
    found
}

/// Counts the statements of a block, and the nodes of their expressions.
fn operations(block: &Block) -> u64 {
    let mut count = 0;
    visit::for_each_stmt(block, &mut |_| count += 1);
    visit::for_each_expr(block, &mut |_| count += 1);
    count
}
