//! The rules of each operation, in one list of all statements and one of all expressions. A new
//! operation is added here, with the rules that it has to keep.

use super::low_bits::Variables;
use super::{bulk, clusters, coordinates, descriptors, inferred, limits, mma, vectors, warp};
use crate::diag::Sink;
use crate::ir::{AtomicAccess, AtomicMemory, Expr, ExprKind, Kernel, MathOp, Stmt, StmtKind, visit};

/// The context of the rules of an operation.
pub(super) struct Rules<'k> {
    pub(super) kernel: &'k Kernel,
    /// The most blocks of a cluster, or `None` in a kernel without clusters.
    pub(super) blocks: Option<u64>,
    /// The facts about variables at the current statement.
    pub(super) variables: Variables,
}

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
    let span = stmt.origin.span;
    match &stmt.kind {
        StmtKind::For(inner) => limits::for_loop(inner, sink),
        StmtKind::TileGet { tile, at, dest } => {
            limits::tile_element(tile, at, sink);
            vectors::tile(rules, tile, at, vectors::read(rules, *dest), sink);
        }
        StmtKind::TileSet { tile, at, value } => {
            limits::tile_element(tile, at, sink);
            vectors::tile(rules, tile, at, vectors::length(&value.ty), sink);
        }
        StmtKind::GlobalGet { global, index, dest } => {
            vectors::global(rules, *global, index, vectors::read(rules, *dest), sink);
        }
        StmtKind::GlobalSet { global, index, value } => {
            vectors::global(rules, *global, index, vectors::length(&value.ty), sink);
        }
        StmtKind::SharedGet { array, index, dest } => {
            limits::element(&array.ty, index, sink);
            vectors::shared(rules, array, index, vectors::read(rules, *dest), sink);
        }
        StmtKind::SharedSet { array, index, value } => {
            limits::element(&array.ty, index, sink);
            vectors::shared(rules, array, index, vectors::length(&value.ty), sink);
        }
        StmtKind::Atomic(atomic) => {
            if let Some(array) = atomic.shared() {
                limits::element(&array.ty, &atomic.index, sink);
            }
            if let (AtomicMemory::Global(global), AtomicAccess::AddVector { value }) =
                (&atomic.memory, &atomic.access)
            {
                vectors::global(rules, *global, &atomic.index, vectors::length(&value.ty), sink);
            }
        }
        StmtKind::TileCopy(copy) => {
            coordinates::tile_copy(rules, copy, sink);
            clusters::tile_copy(rules, copy, span, sink);
        }
        StmtKind::BulkCopy(copy) => {
            bulk::bulk_copy(rules, copy, sink);
            clusters::bulk_copy(rules, copy, span, sink);
        }
        StmtKind::RemoteCopy(copy) => {
            bulk::remote_copy(rules, copy, sink);
            clusters::remote_copy(rules, copy, sink);
        }
        StmtKind::Barrier { op, barrier: _, scope: _ } => limits::barrier(op, sink),
        StmtKind::EditMap { map, edit } => descriptors::edit(rules, map, edit, sink),
        StmtKind::Sync(sync) => clusters::sync(rules, *sync, span, sink),
        StmtKind::Warp { value, op, dest: _ } => warp::operation(rules, value, op, span, sink),
        StmtKind::NamedBarrierSync { id, threads } | StmtKind::NamedBarrierArrive { id, threads } => {
            limits::named_barrier(id, threads, sink);
        }
        StmtKind::Mma(multiplication) => mma::multiplication(rules, multiplication, span, sink),
        StmtKind::StoreAccumulator { accumulator, first, tile } => {
            mma::store(rules, *accumulator, first, tile, sink);
        }
        StmtKind::StoreMatrix(store) => mma::store_matrix(rules, store, span, sink),
        StmtKind::Pack { dest, accumulator } => mma::pack(rules, *dest, *accumulator, span, sink),
        StmtKind::ReduceRows { accumulator, .. } => mma::reduce_rows(rules, *accumulator, span, sink),
        StmtKind::LoadFragment(load) => mma::warp::load(rules, load, span, sink),
        StmtKind::MmaSync(multiplication) => mma::warp::multiplication(rules, multiplication, span, sink),
        StmtKind::StoreWarp(store) => mma::warp::store(rules, store, span, sink),
        StmtKind::SetMaxRegisters { registers, .. } => mma::registers(*registers, span, sink),
        StmtKind::PrintTile { tile } => limits::printed_tile(tile, sink),
        StmtKind::Assign { local, index, value: _ } => limits::assigned(rules.kernel.local(*local), index, sink),
        // The operands of these are checked as expressions. No other rule applies to them.
        StmtKind::If { .. }
        | StmtKind::Match { .. }
        | StmtKind::Loop { .. }
        | StmtKind::While { .. }
        | StmtKind::Labelled { .. }
        | StmtKind::Break(_)
        | StmtKind::Continue(_)
        | StmtKind::Leave(_)
        | StmtKind::Return
        | StmtKind::CheckMatrix(_)
        | StmtKind::PrefetchMap(_)
        | StmtKind::AcquireMap { .. }
        | StmtKind::BulkCommitGroup
        | StmtKind::BulkWaitGroup { .. }
        | StmtKind::Fence(_)
        // `flights` follows these through the kernel.
        | StmtKind::MmaWait { .. }
        | StmtKind::SyncGrid { .. }
        | StmtKind::GridDependency(_)
        | StmtKind::ElectOne { .. }
        | StmtKind::Trap
        | StmtKind::Assert { .. }
        | StmtKind::Printf { .. } => {}
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
        | ExprKind::MapAt(..) => {}
    }
    inferred::of_known_type(expr, sink);
}
