//! The rules of single operations, in a list of the statements that have any and one of all
//! expressions.

mod ptx;

use super::accesses::vectors;
use super::low_bits::Variables;
use super::rules::Rules;
use super::{bulk, clusters, coordinates, descriptors, inferred, limits, mma, warp};
use crate::diag::Sink;
use crate::ir::{Accessor, Expr, ExprKind, Kernel, MathOp, MemoryObject, Stmt, StmtKind, visit};

pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let blocks = clusters::size(kernel, sink);
    let variables = Variables::new(&kernel.body);
    let mut rules = Rules { kernel, blocks, variables };
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        rules.variables.visit(stmt);
        statement(&rules, stmt, sink);
    });
    visit::for_each_expr(&kernel.body, &mut |expr| expression(&rules, expr, sink));
}

fn statement(rules: &Rules<'_>, stmt: &Stmt, sink: &mut Sink) {
    let facts = stmt.facts();
    for access in facts.accesses.iter().filter(|access| access.by == Accessor::Threads) {
        if let MemoryObject::Shared(object) = access.object {
            limits::location(&object.ty, &access.at, sink);
        }
        vectors::access(rules, access, sink);
    }
    let span = stmt.origin.span;
    if let StmtKind::Assign { local, index, value: _ } = &stmt.kind {
        limits::assigned(rules.kernel.local(*local), index, sink);
    } else if let StmtKind::For(inner) = &stmt.kind {
        limits::for_loop(inner, sink);
    } else if let StmtKind::TileCopy(copy) = &stmt.kind {
        coordinates::tile_copy(rules, copy, sink);
        clusters::tile_copy(rules, copy, span, sink);
    } else if let StmtKind::BulkCopy(copy) = &stmt.kind {
        bulk::bulk_copy(rules, copy, sink);
        clusters::bulk_copy(rules, copy, span, sink);
    } else if let StmtKind::RemoteCopy(copy) = &stmt.kind {
        bulk::remote_copy(rules, copy, sink);
        clusters::remote_copy(rules, copy, sink);
    } else if let StmtKind::Barrier { op, barrier: _, scope: _ } = &stmt.kind {
        limits::barrier(op, sink);
    } else if let StmtKind::EditMap { map, edit } = &stmt.kind {
        descriptors::edit(rules, map, edit, sink);
    } else if let StmtKind::Sync(sync) = stmt.kind {
        clusters::sync(rules, sync, span, sink);
    } else if let StmtKind::NamedBarrierSync { id, threads } | StmtKind::NamedBarrierArrive { id, threads } =
        &stmt.kind
    {
        limits::named_barrier(id, threads, sink);
    } else if let StmtKind::Warp { value, op, dest: _ } = &stmt.kind {
        warp::operation(rules, value, op, span, sink);
    } else if let StmtKind::Ptx(inner) = &stmt.kind {
        ptx::operands(rules, inner, sink);
    } else if let StmtKind::PrintTile { tile } = &stmt.kind {
        limits::printed_tile(tile, sink);
    } else {
        matrices(rules, stmt, sink);
    }
}

fn matrices(rules: &Rules<'_>, stmt: &Stmt, sink: &mut Sink) {
    let span = stmt.origin.span;
    if let StmtKind::Mma(multiplication) = &stmt.kind {
        mma::multiplication(rules, multiplication, span, sink);
    } else if let StmtKind::StoreAccumulator { accumulator, first, tile } = &stmt.kind {
        mma::store(rules, *accumulator, first, tile, sink);
    } else if let StmtKind::StoreMatrix(store) = &stmt.kind {
        mma::store_matrix(rules, store, span, sink);
    } else if let StmtKind::Pack { dest, accumulator } = stmt.kind {
        mma::pack(rules, dest, accumulator, span, sink);
    } else if let StmtKind::Unpack { fragment, .. } = stmt.kind {
        mma::unpack(rules, fragment, span, sink);
    } else if let StmtKind::ReduceRows { accumulator, .. } = stmt.kind {
        mma::reduce_rows(rules, accumulator, span, sink);
    } else if let StmtKind::LoadFragment(load) = &stmt.kind {
        mma::warp::load(rules, load, span, sink);
    } else if let StmtKind::MmaSync(multiplication) = &stmt.kind {
        mma::warp::multiplication(rules, multiplication, span, sink);
    } else if let StmtKind::StoreWarp(store) = &stmt.kind {
        mma::warp::store(rules, store, span, sink);
    } else if let StmtKind::SetMaxRegisters { registers, .. } = stmt.kind {
        mma::registers(registers, span, sink);
    }
}

fn expression(rules: &Rules<'_>, expr: &Expr, sink: &mut Sink) {
    match &expr.kind {
        // Only `parse` sees these.
        ExprKind::Compound(_) | ExprKind::Unit | ExprKind::Error => {
            return inferred::no_value(expr, sink);
        }
        ExprKind::Index(array, index) => {
            limits::element(&array.ty, index, sink);
        }
        ExprKind::Stage(stages, index) => limits::element(&stages.ty, index, sink),
        ExprKind::CachePolicy(_, fraction) => limits::cache_fraction(fraction, sink),
        ExprKind::Array(_) | ExprKind::Repeat(_) => limits::register_array(expr, sink),
        ExprKind::Remote(_, rank) => clusters::remote(rules, rank, expr.span, sink),
        ExprKind::Math(MathOp::Clamp, operands) => limits::clamp(operands, expr.span, sink),
        ExprKind::Special(special) => clusters::special(rules, *special, expr.span, sink),
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Shared(_)
        | ExprKind::Param(_)
        | ExprKind::GlobalLen(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Cast(_)
        | ExprKind::Bits(_)
        | ExprKind::Math(..)
        | ExprKind::Integer(..)
        | ExprKind::Hinted(..)
        | ExprKind::ZeroAccumulator
        | ExprKind::Choice(_)
        | ExprKind::Member(..) => {}
    }
    inferred::of_known_type(expr, sink);
}
