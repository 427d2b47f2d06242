//! Reads of global memory whose values are certainly needed before their thread synchronises.
//!
//! Only such a read is complete when other threads learn that its thread has got further. Otherwise
//! ptxas may delay the use of the value.

use tma_front::ir::{
    BinaryOp, Block, Expr, ExprKind, Kernel, LocalId, ParamId, Scalar, SharedId, Stmt, StmtId, StmtKind,
    visit,
};
use tma_front::quick::{QuickMap, QuickSet};

use crate::slice::Slice;

/// Whether the value of a read is needed before the thread synchronises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Used {
    /// Nothing needs it, except perhaps a later write to global memory.
    #[default]
    Never,
    /// The value reaches shared memory or a condition, at an unknown time.
    Maybe,
    Surely,
}

/// Classifies the reads of memory that copies also access.
pub(super) fn used(kernel: &Kernel, slice: &Slice) -> QuickMap<StmtId, Used> {
    let mut any = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| any |= read(stmt, slice).is_some());
    if !any {
        return QuickMap::default();
    }
    let mut walk = Walk { kernel, slice, times: times(kernel), found: QuickMap::default() };
    walk.block(&kernel.body, &[]);
    walk.found
}

/// Returns the variable into which a statement reads memory that copies also access.
fn read(stmt: &Stmt, slice: &Slice) -> Option<LocalId> {
    let StmtKind::GlobalGet { dest, global, .. } = &stmt.kind else { return None };
    slice.is_shared_with_copies(global.param).then_some(*dest)
}

/// Returns the number of assignments to each variable.
fn times(kernel: &Kernel) -> QuickMap<LocalId, usize> {
    let mut times: QuickMap<LocalId, usize> = QuickMap::default();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { local: given, .. } | StmtKind::GlobalGet { dest: given, .. } = &stmt.kind {
            *times.entry(*given).or_default() += 1;
        }
    });
    times
}

struct Walk<'a> {
    kernel: &'a Kernel,
    slice: &'a Slice,
    times: QuickMap<LocalId, usize>,
    found: QuickMap<StmtId, Used>,
}

impl Walk<'_> {
    /// Classifies the reads of a block that the statements in `later` follow.
    fn block(&mut self, block: &Block, later: &[&Stmt]) {
        for (at, stmt) in block.stmts.iter().enumerate() {
            let is_if = matches!(stmt.kind, StmtKind::If { .. });
            if !is_if && read(stmt, self.slice).is_none() {
                // The next iteration of a loop comes before the statements after the loop.
                visit::blocks(&stmt.kind).into_iter().for_each(|inner| self.block(inner, &[]));
                continue;
            }
            let after: Vec<&Stmt> = block.stmts[at + 1..].iter().chain(later.iter().copied()).collect();
            if let Some(dest) = read(stmt, self.slice) {
                let used = if self.is_needed(dest, &after) {
                    Used::Surely
                } else if may_be_needed(self.kernel, dest) {
                    Used::Maybe
                } else {
                    Used::Never
                };
                self.found.insert(stmt.id, used);
            }
            visit::blocks(&stmt.kind).into_iter().for_each(|inner| self.block(inner, &after));
        }
    }

    /// Whether these statements need the value of a variable before other threads can know that the
    /// thread has reached them. They do if they store it, or a value that depends on it, to memory
    /// that they do not overwrite, or if a warp operation takes it.
    fn is_needed(&self, from: LocalId, after: &[&Stmt]) -> bool {
        let is_given_once = |local: &LocalId| self.times.get(local) == Some(&1);
        let mut of: QuickSet<LocalId> = QuickSet::default();
        of.extend(Some(from).filter(is_given_once));
        let (mut needed, mut written) = (false, QuickSet::default());
        for stmt in after {
            if let StmtKind::Assign { local, index, value } = &stmt.kind {
                if index.is_empty() && depends(value, &of) && is_given_once(local) {
                    of.insert(*local);
                }
            } else if let Some((memory, values)) = stored(self.kernel, stmt) {
                // A store that is overwritten may be eliminated.
                if !written.insert(memory) {
                    return false;
                }
                needed |= values.into_iter().any(|value| depends(value, &of));
            } else if let StmtKind::Warp { value, .. } = &stmt.kind {
                return needed || depends(value, &of);
            } else if !matches!(
                stmt.kind,
                StmtKind::SharedGet { .. } | StmtKind::TileGet { .. } | StmtKind::GlobalGet { .. }
            ) {
                return needed;
            }
        }
        needed
    }
}

/// Memory that threads write.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Written {
    Shared(SharedId),
    Global(ParamId),
    /// One of several objects, or memory with several names.
    Other,
}

/// Returns the memory that a statement writes, and the values that the store needs.
fn stored<'s>(kernel: &Kernel, stmt: &'s Stmt) -> Option<(Written, Vec<&'s Expr>)> {
    let of = |object: &Expr| {
        if let ExprKind::Shared(id) = object.kind
            && !kernel.is_overlapped(id)
        {
            Written::Shared(id)
        } else {
            Written::Other
        }
    };
    if let StmtKind::SharedSet { array, index, value } = &stmt.kind {
        Some((of(array), vec![index, value]))
    } else if let StmtKind::TileSet { tile, at, value } = &stmt.kind {
        Some((of(tile), at.iter().chain([value]).collect()))
    } else if let StmtKind::GlobalSet { global, index, value, hint: _ } = &stmt.kind {
        // The slices of several ranks have one name.
        let memory = if global.rank.is_none() { Written::Global(global.param) } else { Written::Other };
        Some((memory, global.at(index).into_iter().chain([value]).collect()))
    } else {
        None
    }
}

/// Whether a variable, or a value computed from it, reaches shared memory or a condition anywhere.
/// Every use counts except assignments and stores to global memory.
fn may_be_needed(kernel: &Kernel, from: LocalId) -> bool {
    let mut of: QuickSet<LocalId> = QuickSet::default();
    of.insert(from);
    loop {
        let (before, mut reaches) = (of.len(), false);
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            let reads = |expr: &Expr| {
                let mut any = false;
                visit::each_local(expr, &mut |local| any |= of.contains(&local));
                any
            };
            let is_read = visit::operands(&stmt.kind).into_iter().any(reads);
            if let StmtKind::Assign { local, .. } = &stmt.kind {
                if is_read {
                    of.insert(*local);
                }
            } else if let StmtKind::Pack { dest, accumulator } = &stmt.kind {
                if of.contains(accumulator) {
                    of.insert(*dest);
                }
            } else if let StmtKind::Unpack { dest, fragment } = &stmt.kind {
                if of.contains(fragment) {
                    of.insert(*dest);
                }
            } else if let StmtKind::StoreAccumulator { accumulator, .. } = &stmt.kind {
                reaches |= of.contains(accumulator);
            } else if let StmtKind::StoreWarp(store) = &stmt.kind {
                reaches |= of.contains(&store.accumulator);
            } else if !matches!(stmt.kind, StmtKind::GlobalSet { .. }) {
                reaches |= is_read;
            }
        });
        if reaches || of.len() == before {
            return reaches;
        }
    }
}

/// Whether an expression cannot be computed without one of these variables.
fn depends(expr: &Expr, on: &QuickSet<LocalId>) -> bool {
    if let ExprKind::Local(local) = expr.kind {
        return on.contains(&local);
    }
    if let ExprKind::Cast(inner) = &expr.kind {
        let bytes = |expr: &Expr| expr.ty.as_scalar().map(Scalar::bytes);
        return bytes(inner) <= bytes(expr) && depends(inner, on);
    }
    let ExprKind::Binary(op, a, b, _) = &expr.kind else { return false };
    let is_odd = |expr: &Expr| expr.as_int().is_some_and(|number| number % 2 != 0);
    match op {
        // If both operands depend on the variables, one may cancel the other.
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor => {
            [(a, b), (b, a)].iter().any(|(one, other)| depends(one, on) && is_free(other))
        }
        BinaryOp::Mul => [(a, b), (b, a)].iter().any(|(one, other)| depends(one, on) && is_odd(other)),
        BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => false,
    }
}

/// Whether an expression reads no variables. A variable may itself depend on the others.
fn is_free(expr: &Expr) -> bool {
    let mut any = false;
    visit::each_local(expr, &mut |_| any = true);
    !any
}
