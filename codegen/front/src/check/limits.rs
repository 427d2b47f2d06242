//! Limits of the hardware: boxes, blocks, barriers, constant indices and parameters. Numbers that
//! are not constants are not checked here.

use tma_model::tile::{TileFault, TileMode};

use crate::abi::{AbiParam, abi_params};
use crate::diag::Sink;
use crate::diag::mistake::{self, BarrierCount, Indexed, Limits, Tile, Types, UnrolledIteration, Value};
use crate::ir::{BarrierOp, Const, Expr, ExprKind, For, Kernel, Local, SharedVar, Span, TileType, Type};
use crate::limits;

pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    block(kernel, sink);
    parameters(kernel, sink);
    maps(kernel, sink);
    for var in &kernel.shared {
        shared_var(var, sink);
    }
}

/// Checks the threads of a block, and the launch bounds.
fn block(kernel: &Kernel, sink: &mut Sink) {
    let launch = &kernel.launch;
    let [_, _, z] = launch.threads;
    let count = launch.thread_count();
    if count == 0 || count > limits::BLOCK_THREADS || z > limits::BLOCK_THREADS_Z {
        sink.error(Limits::Threads(launch.threads), launch.spans.threads);
        return;
    }
    if let Some(registers) = launch.max_registers {
        let needed = u64::from(registers) * limits::allocated_threads(count);
        if registers == 0 || registers > limits::THREAD_REGISTERS {
            sink.error(Limits::Registers(registers), launch.spans.max_registers);
        } else if needed > u64::from(limits::MULTIPROCESSOR_REGISTERS) {
            let mistake = Limits::BlockRegisters { threads: count, registers };
            sink.error(mistake, launch.spans.max_registers);
        }
    }
    if let Some(blocks) = launch.min_blocks {
        let most = (limits::MULTIPROCESSOR_THREADS / count).min(u64::from(limits::MULTIPROCESSOR_BLOCKS));
        if blocks == 0 || u64::from(blocks) > most {
            sink.error(Limits::Blocks { blocks, threads: count, most }, launch.spans.min_blocks);
        }
    }
}

fn parameters(kernel: &Kernel, sink: &mut Sink) {
    let all = kernel.params.iter().flat_map(abi_params);
    // Each parameter is aligned to its size, and a tensor map to 64 bytes.
    let bytes = all.fold(0u64, |end, param| {
        let alignment = if param == AbiParam::TensorMap { 64 } else { param.bytes() };
        end.next_multiple_of(alignment) + param.bytes()
    });
    if bytes > limits::PARAM_BYTES {
        sink.error(Limits::Parameters { bytes }, kernel.span);
    }
}

/// Checks the boxes that the copy engine moves, or the pixels of a column and their channels. Maps
/// that break a rule by the same numbers, as those of two operands with one K do, share an error.
fn maps(kernel: &Kernel, sink: &mut Sink) {
    let mut found: Vec<(Tile, Span)> = vec![];
    for param in &kernel.params {
        let Some(tile) = param.ty.moved() else { continue };
        if tile.swizzle.pixel_bytes().is_some() && !matches!(param.ty, Type::TensorMap(_)) {
            let mistake = Tile::Interleaved { swizzle: tile.swizzle, map: param.ty.clone() };
            found.push((mistake, param.ty_span));
            continue;
        }
        for fault in tile.faults(mode(&param.ty)) {
            let known = found.iter_mut().find_map(|(mistake, _)| {
                let Tile::Box { tile: other, fault: known, others, .. } = mistake else { return None };
                (*known == fault && has_same_rows(other, tile)).then_some(others)
            });
            match known {
                Some(others) => others.push((param.name.clone(), param.ty_span)),
                None => {
                    let (map, tile) = (param.name.clone(), tile.clone());
                    found.push((Tile::Box { map, tile, fault, others: vec![] }, param.ty_span));
                }
            }
        }
    }
    for (mistake, span) in found {
        sink.error(mistake, span);
    }
}

fn mode(map: &Type) -> TileMode {
    if matches!(map, Type::Im2colMap(..)) { TileMode::Columns } else { TileMode::Box }
}

/// Whether two tiles have rows of the same length and layout.
fn has_same_rows(one: &TileType, other: &TileType) -> bool {
    let rows = |tile: &TileType| (tile.element, tile.swizzle, tile.rank(), tile.inner_extent());
    rows(one) == rows(other)
}

/// Whether an error of a tensor map reports the rows of this tile.
pub(super) fn is_reported(kernel: &Kernel, tile: &TileType) -> bool {
    kernel.params.iter().any(|param| {
        let moved = param.ty.moved().filter(|moved| has_same_rows(moved, tile));
        let faults = moved.map(|moved| moved.faults(mode(&param.ty))).unwrap_or_default();
        let of_rows = |fault| matches!(fault, TileFault::RowBytes { .. } | TileFault::SwizzleSpan { .. });
        faults.into_iter().any(of_rows)
    })
}

fn shared_var(var: &SharedVar, sink: &mut Sink) {
    let mut ty = &var.ty;
    while let Type::Stages(object, len) = ty {
        empty(*len, &var.name, var.span, sink);
        ty = object;
    }
    if let Type::SharedArray(_, len) = ty {
        empty(*len, &var.name, var.span, sink);
    } else if let Type::Tile(tile) = ty
        && tile.bytes() == 0
    {
        empty(0, &var.name, var.span, sink);
    }
}

fn empty(len: u32, name: &str, span: Span, sink: &mut Sink) {
    if len == 0 {
        sink.error(mistake::Shared::Empty(name.to_owned()), span);
    }
}

/// Checks the index or coordinates of an element, as far as they are constants.
pub(super) fn location(of: &Type, at: &[&Expr], sink: &mut Sink) {
    for (index, bound) in at.iter().zip(bounds(of)) {
        within(index, bound, sink);
    }
}

/// Checks that a printed tile fits the buffer. On a GPU, the rest would be lost without notice.
pub(super) fn printed_tile(tile: &Expr, sink: &mut Sink) {
    let Type::Tile(ty) = tile.ty.local() else { return };
    let elements = ty.extents.iter().fold(1, |count: u64, &extent| count.saturating_mul(extent.into()));
    if elements > limits::PRINTED_ELEMENTS {
        sink.error(Limits::PrintedTile { tile: ty.clone(), elements }, tile.span);
    }
}

/// Checks the index of an element or of a stage, if it is a constant.
pub(super) fn element(of: &Type, index: &Expr, sink: &mut Sink) {
    if let Some(bound) = bound(of) {
        within(index, bound, sink);
    }
}

/// Checks the indices of an element of a register array that is assigned.
pub(super) fn assigned(local: &Local, indices: &[Expr], sink: &mut Sink) {
    let mut ty = local.ty.clone();
    for index in indices {
        element(&ty, index, sink);
        ty = ty.elements().map_or(Type::Error, |(element, _)| element);
    }
}

/// The exclusive bound of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    extent: u32,
    of: Indexed,
}

/// Returns the bound of indices into a value of this type.
pub(super) fn bound(of: &Type) -> Option<Bound> {
    let (extent, of) = if let Type::SharedArray(_, len) | Type::Array(_, len) = of.local() {
        (*len, Indexed::Array)
    } else if let Type::Stages(_, len) = of.local() {
        (*len, Indexed::Stages)
    } else {
        (of.elements()?.1, Indexed::Registers)
    };
    Some(Bound { extent, of })
}

/// Returns the bounds of an index into a value of this type, or of coordinates in a tile, outermost
/// first.
pub(super) fn bounds(of: &Type) -> Vec<Bound> {
    let Type::Tile(tile) = of.local() else { return bound(of).into_iter().collect() };
    let rank = tile.rank();
    let bound = |(dimension, &extent)| Bound { extent, of: Indexed::Tile { dimension, rank } };
    tile.extents.iter().enumerate().map(bound).collect()
}

pub(super) fn for_loop(inner: &For, sink: &mut Sink) {
    if inner.step.as_int() == Some(0) {
        sink.error(Limits::Step, inner.step.span);
        return;
    }
    if !inner.unroll {
        return;
    }
    for bound in [&inner.start, &inner.end, &inner.step] {
        if bound.as_int().is_none() {
            sink.error(Limits::UnrolledBounds, bound.span);
        }
    }
    small_iteration_count(inner, sink);
}

/// Returns how often the body of an unrolled loop is emitted, if its bounds are known.
pub(super) fn unrolled_iterations(inner: &For) -> Option<i128> {
    let (start, end, step) = (inner.start.as_int()?, inner.end.as_int()?, inner.step.as_int()?);
    (step > 0).then(|| (end - start + i128::from(inner.inclusive) + step - 1).div_euclid(step))
}

fn small_iteration_count(inner: &For, sink: &mut Sink) {
    let Some(iterations) = unrolled_iterations(inner) else { return };
    if iterations > limits::MAX_UNROLLED_ITERATIONS {
        sink.error(Limits::UnrolledIterations(iterations), inner.end.span);
    }
}

pub(super) fn barrier(op: &BarrierOp, sink: &mut Sink) {
    match op {
        BarrierOp::Init { count } | BarrierOp::ArriveMany { count } => {
            count_within(count, BarrierCount::Arrivals, sink);
        }
        BarrierOp::ArriveExpectTx { bytes } | BarrierOp::ExpectTx { bytes } => {
            count_within(bytes, BarrierCount::Bytes, sink);
        }
        BarrierOp::Wait { parity }
        | BarrierOp::TestWait { parity, .. }
        | BarrierOp::TryWait { parity, .. }
        | BarrierOp::TryWaitFor { parity, .. } => {
            if let Some(value) = parity.as_int()
                && !(0..=1).contains(&value)
            {
                sink.error(Limits::Parity(value), parity.span);
            }
        }
        BarrierOp::Invalidate
        | BarrierOp::Arrive
        | BarrierOp::ArriveToken { .. }
        | BarrierOp::ArriveDrop
        | BarrierOp::WaitToken { .. } => {}
    }
}

fn count_within(number: &Expr, count: BarrierCount, sink: &mut Sink) {
    let (least, most) = count.range();
    if let Some(value) = number.as_int()
        && !(least..=most).contains(&value)
    {
        sink.error(Limits::Barrier { count, value }, number.span);
    }
}

pub(super) fn named_barrier(id: &Expr, threads: &Expr, sink: &mut Sink) {
    if let Some(id_value) = id.as_int()
        && !(1..i128::from(limits::NAMED_BARRIERS)).contains(&id_value)
    {
        sink.error(Limits::NamedBarrier(id_value), id.span);
    }
    let warp = i128::from(limits::WARP_THREADS);
    if let Some(count) = threads.as_int()
        && (count < warp || count % warp != 0)
    {
        sink.error(Limits::NamedBarrierThreads(count), threads.span);
    }
}

pub(super) fn register_array(array: &Expr, sink: &mut Sink) {
    let elements = array.ty.scalars();
    if elements > limits::REGISTER_ARRAY_ELEMENTS {
        sink.error(Types::LargeArray(elements), array.span);
    }
}

/// Reports bounds that leave no number, at which Rust panics.
pub(super) fn clamp(operands: &[Expr], span: Span, sink: &mut Sink) {
    let [_, low, high] = operands else { return };
    let (ExprKind::Const(low), ExprKind::Const(high)) = (low.kind.clone(), high.kind.clone()) else { return };
    let in_order = match (low, high) {
        (Const::Int(low), Const::Int(high)) => low <= high,
        (Const::Float(low), Const::Float(high)) => low <= high,
        (Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::Literal { .. }, _) => return,
    };
    if !in_order {
        sink.error(Value::Clamp { low, high }, span);
    }
}

/// Checks a cache fraction. Source: PTX ISA, "createpolicy", `fraction`.
pub(super) fn cache_fraction(fraction: &Expr, sink: &mut Sink) {
    if let ExprKind::Const(Const::Float(value)) = fraction.kind
        && !(value > 0.0 && value <= 1.0)
    {
        sink.error(mistake::Copy::CacheFraction(value), fraction.span);
    }
}

fn within(index: &Expr, bound: Bound, sink: &mut Sink) {
    if let Some(value) = index.as_int() {
        outside(value, index.span, bound, &[], sink);
    }
}

/// Reports an index that is out of bounds, in these iterations of unrolled loops. Returns whether
/// it is.
pub(super) fn outside(
    value: i128,
    span: Span,
    bound: Bound,
    iterations: &[UnrolledIteration],
    sink: &mut Sink,
) -> bool {
    let Bound { extent: len, of } = bound;
    let is_outside = !(0..i128::from(len)).contains(&value);
    if is_outside {
        sink.error(Limits::Index { value, of, len, iterations: iterations.to_vec() }, span);
    }
    is_outside
}
