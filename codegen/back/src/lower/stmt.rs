//! Statements, in order.

use tma_front::ir::{Block, Stmt, StmtKind};
use tma_model::span::SpanMark;

use super::memory::GlobalElement;
use super::{
    Cx, Lower, barrier, bulk, control, debug, descriptor, locals, memory, mma, nvvm, print, ptx, sync, tile,
    tma, warp,
};

/// Lowers the statements of `block`.
pub(super) fn block(cx: &mut Cx<'_, '_>, block: &Block) -> Lower<()> {
    block.stmts.iter().try_for_each(|stmt| statement(cx, stmt))
}

fn statement(cx: &mut Cx<'_, '_>, stmt: &Stmt) -> Lower<()> {
    debug::at_stmt(cx, stmt.origin.span)?;
    let around = cx.is_in_flight;
    cx.is_in_flight = cx.kernel.flights().is_in_flight(stmt.id);
    effect(cx, stmt)?;
    cx.is_in_flight = around;
    Ok(())
}

fn effect(cx: &mut Cx<'_, '_>, stmt: &Stmt) -> Lower<()> {
    match &stmt.kind {
        StmtKind::Assign { local, index, value } => locals::assign(cx, *local, index, value),
        StmtKind::If { condition, then, otherwise } => control::if_(cx, condition, then, otherwise),
        StmtKind::Match { value, arms, otherwise } => control::match_(cx, value, arms, otherwise),
        StmtKind::Loop { label, body } => control::loop_(cx, *label, body),
        StmtKind::While { label, header, condition, body } => {
            control::while_(cx, *label, header, condition, body)
        }
        StmtKind::For(inner) => control::for_(cx, inner),
        StmtKind::Labelled { label, body } => control::labelled(cx, *label, body),
        StmtKind::Break(label) | StmtKind::Leave(label) => control::leave(cx, *label),
        StmtKind::Continue(label) => control::next_iteration(cx, *label),
        StmtKind::Return => control::return_(cx),

        StmtKind::TileGet { dest, tile, at } => tile::get(cx, *dest, tile, at),
        StmtKind::TileSet { tile, at, value } => tile::set(cx, tile, at, value),
        StmtKind::SharedGet { dest, array, index } => memory::shared_get(cx, *dest, array, index),
        StmtKind::SharedSet { array, index, value } => memory::shared_set(cx, array, index, value),
        StmtKind::GlobalGet { dest, global, index, path, hint } => {
            let element = GlobalElement { global, index, hint: hint.as_deref() };
            memory::global_get(cx, *dest, element, *path)
        }
        StmtKind::GlobalSet { global, index, value, hint } => {
            let element = GlobalElement { global, index, hint: hint.as_deref() };
            memory::global_set(cx, element, value)
        }
        StmtKind::Atomic(atomic) => memory::atomic::access(cx, atomic),

        StmtKind::TileCopy(copy) => tma::copy(cx, copy, stmt.origin.span),
        StmtKind::BulkCopy(copy) => bulk::copy(cx, copy, stmt.origin.span),
        StmtKind::RemoteCopy(copy) => bulk::remote(cx, copy, stmt.origin.span),
        StmtKind::PrefetchMap(map) => tma::prefetch_map(cx, map),
        StmtKind::Barrier { barrier, op, scope } => barrier::operation(cx, barrier, op, *scope),
        StmtKind::EditMap { map, edit } => descriptor::edit(cx, map, edit),
        StmtKind::AcquireMap { maps, index } => descriptor::acquire(cx, *maps, index),
        StmtKind::BulkCommitGroup => tma::commit_group(cx),
        StmtKind::BulkWaitGroup { pending, read_only } => tma::wait_group(cx, *pending, *read_only),
        StmtKind::Mma(multiplication) => mma::multiply(cx, multiplication, stmt.id),
        StmtKind::MmaWait { accumulator, awaited } => mma::wait(cx, *accumulator, *awaited, stmt.id),
        StmtKind::Pack { dest, accumulator } => mma::pack(cx, *dest, *accumulator),
        StmtKind::Unpack { dest, fragment } => mma::unpack(cx, *dest, *fragment),
        StmtKind::StoreAccumulator { accumulator, first, tile } => mma::store(cx, *accumulator, first, tile),
        StmtKind::CheckMatrix(matrix) => mma::check_matrix(cx, matrix, stmt.origin.span),
        StmtKind::StoreMatrix(store) => mma::store_matrix(cx, store, stmt.origin.span),
        StmtKind::ReduceRows { dest, op, accumulator } => mma::reduce_rows(cx, *dest, *op, *accumulator),
        StmtKind::LoadFragment(load) => mma::warp::load(cx, load),
        StmtKind::MmaSync(multiplication) => mma::warp::multiply(cx, multiplication),
        StmtKind::StoreWarp(store) => mma::warp::store(cx, store),
        StmtKind::SetMaxRegisters { increase, registers } => {
            mma::set_max_registers(cx, *increase, *registers)
        }
        StmtKind::Fence(fence) => sync::fence(cx, *fence),
        StmtKind::Sync(sync) => sync::sync(cx, *sync, stmt.origin.span),
        StmtKind::SyncGrid { counter } => sync::sync_grid(cx, *counter, stmt.origin.span),
        StmtKind::GridDependency(dependency) => sync::depend(cx, *dependency),
        StmtKind::NamedBarrierSync { id, threads } => sync::sync_named(cx, id, threads),
        StmtKind::NamedBarrierArrive { id, threads } => sync::arrive_at(cx, id, threads),
        StmtKind::ElectOne { dest } => sync::elect_one(cx, *dest),
        StmtKind::Warp { dest, value, op } => warp::operate(cx, *dest, value, op),

        StmtKind::Ptx(inner) => ptx::instructions(cx, inner),
        StmtKind::Trap => print::trap(cx),
        StmtKind::Assert { condition: _, message: _, assumed: true } if !cx.checked => Ok(()),
        StmtKind::Assert { condition, message, assumed: _ } => {
            print::assert_stmt(cx, condition, message, stmt.origin.span)
        }
        StmtKind::Printf { pieces, args } => print::printf(cx, pieces, args),
        StmtKind::PrintTile { tile } => print::tile::print_tile(cx, tile),
        StmtKind::TraceSpan { name, edge } => {
            nvvm::emit(cx, &nvvm::mark(SpanMark { edge: *edge, name }), &[]).map(drop)
        }
    }
}
