//! Numbers that the hardware bounds: boxes, blocks, barriers, constant indices and parameters.

use tma_model::tile::{TileFault, TileMode};

use crate::abi::{AbiParam, abi_params};
use crate::diag::{Code, Diagnostic, Sink};
use crate::ir::{
    BarrierOp, Const, Expr, ExprKind, For, Kernel, Local, SharedVar, Span, TileSwizzle, TileType, Type,
};
use crate::limits;

pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    block(kernel, sink);
    parameters(kernel, sink);
    for param in &kernel.params {
        if let Some(tile) = param.ty.moved() {
            let mode =
                if matches!(param.ty, Type::Im2colMap(..)) { TileMode::Columns } else { TileMode::Box };
            if tile.swizzle.pixel_bytes().is_some() && !matches!(param.ty, Type::TensorMap(_)) {
                let message = format!(
                    "`{}` is for the tile of a `TensorMap`, not of `{}`",
                    tile.swizzle.name(),
                    param.ty
                );
                sink.error(Code::Interleave, param.ty_span, message).help(
                    "take `NoSwizzle` or a swizzle for columns of pixels, and for maps that a kernel makes",
                );
                continue;
            }
            map_box(tile, mode, &param.name, param.ty_span, sink);
        }
    }
    for var in &kernel.shared {
        shared_var(var, sink);
    }
}

/// A block's threads, and what the launch bounds promise of a multiprocessor.
fn block(kernel: &Kernel, sink: &mut Sink) {
    let launch = &kernel.launch;
    let [x, y, z] = launch.threads;
    let count = launch.thread_count();
    if count == 0 || count > limits::BLOCK_THREADS || z > limits::BLOCK_THREADS_Z {
        let message = format!(
            "a block of {x} × {y} × {z} threads; there may be 1 to {}, and at most {} along z",
            limits::BLOCK_THREADS,
            limits::BLOCK_THREADS_Z
        );
        sink.error(Code::ThreadCount, launch.spans.threads, message)
            .help("let each thread do more, or launch more blocks");
        return;
    }
    if let Some(registers) = launch.max_registers {
        let message = if registers == 0 || registers > limits::THREAD_REGISTERS {
            Some(format!("a thread has 1 to {} registers, not {registers}", limits::THREAD_REGISTERS))
        } else {
            let needed = u64::from(registers) * count;
            let there = u64::from(limits::MULTIPROCESSOR_REGISTERS);
            (needed > there).then(|| {
                format!("{count} threads with {registers} registers need {needed}, but there are {there}")
            })
        };
        if let Some(message) = message {
            sink.error(Code::LaunchBounds, launch.spans.max_registers, message)
                .help("lower `max_registers`, or take fewer threads");
        }
    }
    if let Some(blocks) = launch.min_blocks {
        let most = (limits::MULTIPROCESSOR_THREADS / count).min(u64::from(limits::MULTIPROCESSOR_BLOCKS));
        if blocks == 0 || u64::from(blocks) > most {
            let message = format!("{blocks} blocks of {count} threads on a multiprocessor; 1 to {most} fit");
            sink.error(Code::LaunchBounds, launch.spans.min_blocks, message).help("lower `min_blocks`");
        }
    }
}

fn parameters(kernel: &Kernel, sink: &mut Sink) {
    let all = kernel.params.iter().flat_map(abi_params);
    // Each parameter is aligned to its size, a tensor map to 64 bytes.
    let bytes = all.fold(0u64, |end, param| {
        let alignment = if param == AbiParam::TensorMap { 64 } else { param.bytes() };
        end.next_multiple_of(alignment) + param.bytes()
    });
    if bytes > limits::PARAM_BYTES {
        let message = format!("the parameters take {bytes} bytes; a launch carries {}", limits::PARAM_BYTES);
        sink.error(Code::ParameterBytes, kernel.span, message)
            .help("pass less by value: put scalars into a `Global<T>`");
    }
}

/// The box that the copy engine moves, or the pixels of a column and their channels.
fn map_box(tile: &TileType, mode: TileMode, name: &str, span: Span, sink: &mut Sink) {
    for fault in tile.faults(mode) {
        let (code, message, help) = tile_fault(fault, tile, name);
        sink.error(code, span, message).help(help);
    }
}

/// What is wrong with the tile of the map `name`, and what to do about it.
fn tile_fault(fault: TileFault, tile: &TileType, name: &str) -> (Code, String, String) {
    let element = tile.element.bytes();
    let layout = tile.swizzle.name();
    match fault {
        TileFault::Element => (
            Code::ElementType,
            format!("a tensor map has no elements of type `{}`", tile.element),
            "tensor maps hold u8, u16, u32, i32, u64, i64, f16, bf16, f32, f64, tf32, e4m3 and e5m2; use the unsigned \
             type of the same size"
                .to_owned(),
        ),
        TileFault::Extent { dimension, extent, most } => (
            Code::BoxExtent,
            format!("the box of `{name}` has extent {extent} in dimension {dimension}; it must be 1 to {most}"),
            "move a larger tile by several copies into parts of it".to_owned(),
        ),
        TileFault::Bytes { bytes } => (
            Code::BoxExtent,
            format!("the box of `{name}` has {bytes} bytes; a copy moves at most {}", limits::BOX_BYTES),
            "move a larger tile by several copies into parts of it".to_owned(),
        ),
        TileFault::RowBytes { bytes } => (
            Code::BoxInnerBytes,
            format!(
                "the innermost extent of `{name}` is {} × {element} bytes = {bytes} bytes; it must be a multiple of {}",
                tile.inner_extent(),
                limits::BOX_INNER_BYTES
            ),
            format!(
                "make the innermost extent a multiple of {}",
                limits::BOX_INNER_BYTES / u64::from(element)
            ),
        ),
        TileFault::SwizzleSpan { bytes, span } => {
            let wider = if tile.swizzle == TileSwizzle::B128 { "no swizzle" } else { "a wider swizzle" };
            (
                Code::SwizzleSpan,
                format!(
                    "the innermost extent of `{name}` is {bytes} bytes, but `{layout}` takes rows of at most {span}"
                ),
                format!("make the innermost extent {0} or less, or a multiple of {0}, or take {wider}", span / element),
            )
        }
        TileFault::InterleavedRank => (
            Code::Interleave,
            format!("`{layout}` is for 3 to 5 dimensions, but the box of `{name}` has {}", tile.rank()),
            "the dimensions are images, slices of channels, rows of pixels, and pixels times their channels"
                .to_owned(),
        ),
        TileFault::Slices { slices } => (
            Code::Interleave,
            format!(
                "one copy moves 1 slice of channels, but the box of `{name}` has {slices} in dimension 1"
            ),
            "make that extent 1, and move slices by a copy each".to_owned(),
        ),
        TileFault::Pixels { inner, pixel, unit } => {
            let most = limits::BOX_EXTENT;
            (
                Code::Interleave,
                format!(
                    "the innermost extent of `{name}` is {inner}; a pixel has {pixel} elements ({} bytes)",
                    pixel * element
                ),
                format!(
                    "take a multiple of {unit} pixels, at most {most}: {} to {} elements",
                    pixel * unit,
                    pixel * most
                ),
            )
        }
    }
}

fn shared_var(var: &SharedVar, sink: &mut Sink) {
    let mut ty = &var.ty;
    while let Type::Stages(thing, len) = ty {
        empty(*len, &var.name, var.span, sink);
        ty = thing;
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
        sink.error(Code::IndexRange, span, format!("`{name}` holds nothing"))
            .help("an extent of 0 has no element to index");
    }
}

/// Coordinates of an element of a tile, as far as they are constants.
pub(super) fn tile_element(tile: &Expr, at: &[Expr], sink: &mut Sink) {
    for (coordinate, bound) in at.iter().zip(tile_bounds(&tile.ty)) {
        within(coordinate, bound, sink);
    }
}

/// The index of an element or of a stage, if it is a constant.
pub(super) fn element(of: &Type, index: &Expr, sink: &mut Sink) {
    if let Some(bound) = bound(of) {
        within(index, bound, sink);
    }
}

/// The indices of an element of a register array that is assigned to.
pub(super) fn assigned(local: &Local, indices: &[Expr], sink: &mut Sink) {
    let mut ty = local.ty.clone();
    for index in indices {
        element(&ty, index, sink);
        ty = ty.elements().map_or(Type::Error, |(element, _)| element);
    }
}

/// What an index is less than, and what that is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    extent: u32,
    what: &'static str,
}

/// The bound of indices into a thing of several parts.
pub(super) fn bound(of: &Type) -> Option<Bound> {
    let (extent, what) = if let Type::SharedArray(_, len) | Type::Array(_, len) = of.local() {
        (*len, "the array's length")
    } else if let Type::Stages(_, len) = of.local() {
        (*len, "the number of stages")
    } else {
        (of.elements()?.1, "the number of elements that a thread holds")
    };
    Some(Bound { extent, what })
}

/// The bounds of coordinates in a tile, outermost first.
pub(super) fn tile_bounds(tile: &Type) -> Vec<Bound> {
    let Type::Tile(tile) = tile.local() else { return vec![] };
    tile.extents.iter().map(|&extent| Bound { extent, what: "the tile's extent here" }).collect()
}

pub(super) fn for_loop(inner: &For, sink: &mut Sink) {
    if inner.step.as_int() == Some(0) {
        sink.error(Code::ConstantValue, inner.step.span, "a step of 0 never ends").help("step by 1 or more");
        return;
    }
    if !inner.unroll {
        return;
    }
    for bound in [&inner.start, &inner.end, &inner.step] {
        if bound.as_int().is_none() {
            sink.error(Code::NotConstant, bound.span, "`unroll` needs bounds known at compile time")
                .help("use constants, or leave `unroll` out");
        }
    }
    few_turns(inner, sink);
}

/// How often the body of an unrolled loop is written out, if its bounds are known.
pub(super) fn unrolled_turns(inner: &For) -> Option<i128> {
    let (start, end, step) = (inner.start.as_int()?, inner.end.as_int()?, inner.step.as_int()?);
    (step > 0).then(|| (end - start + i128::from(inner.inclusive) + step - 1).div_euclid(step))
}

fn few_turns(inner: &For, sink: &mut Sink) {
    let Some(turns) = unrolled_turns(inner) else { return };
    if turns > limits::UNROLLED_TURNS {
        let message = format!("`unroll` writes out at most {} turns, not {turns}", limits::UNROLLED_TURNS);
        sink.error(Code::UnsupportedExpression, inner.end.span, message)
            .help("leave `unroll` out, or unroll an inner loop");
    }
}

pub(super) fn barrier(op: &BarrierOp, sink: &mut Sink) {
    match op {
        BarrierOp::Init { count } | BarrierOp::ArriveMany { count } => {
            count_within(count, 1, limits::BARRIER_ARRIVALS.into(), "arrival count", sink);
        }
        BarrierOp::ArriveExpectTx { bytes } | BarrierOp::ExpectTx { bytes } => {
            count_within(bytes, 0, limits::BARRIER_BYTES_EXPECTED.into(), "transaction count", sink);
        }
        BarrierOp::Wait { parity }
        | BarrierOp::TestWait { parity, .. }
        | BarrierOp::TryWait { parity, .. }
        | BarrierOp::TryWaitFor { parity, .. } => {
            if let Some(value) = parity.as_int()
                && !(0..=1).contains(&value)
            {
                sink.error(
                    Code::Parity,
                    parity.span,
                    format!("the parity of a phase is 0 or 1, not {value}"),
                )
                .help("a barrier's phases alternate: the n-th one, from 0, has parity `n & 1`");
            }
        }
        BarrierOp::Invalidate
        | BarrierOp::Arrive
        | BarrierOp::ArriveToken { .. }
        | BarrierOp::ArriveDrop
        | BarrierOp::WaitToken { .. } => {}
    }
}

fn count_within(count: &Expr, least: i128, most: i128, what: &str, sink: &mut Sink) {
    if let Some(value) = count.as_int()
        && !(least..=most).contains(&value)
    {
        let message = format!("the {what} of a barrier is {least} to {most}, not {value}");
        sink.error(Code::BarrierCount, count.span, message);
    }
}

pub(super) fn named_barrier(id: &Expr, threads: &Expr, sink: &mut Sink) {
    if let Some(id_value) = id.as_int()
        && !(1..i128::from(limits::NAMED_BARRIERS)).contains(&id_value)
    {
        let message = format!("named barriers are 1 to {}, not {id_value}", limits::NAMED_BARRIERS - 1);
        sink.error(Code::NamedBarrier, id.span, message).help("number 0 is `sync_threads()`");
    }
    let warp = i128::from(limits::WARP_THREADS);
    if let Some(count) = threads.as_int()
        && (count < warp || count % warp != 0)
    {
        let message = format!("whole warps meet at a barrier: {count} threads are not a multiple of {warp}");
        sink.error(Code::NamedBarrier, threads.span, message).help("count every thread of each warp");
    }
}

pub(super) fn register_array(array: &Expr, sink: &mut Sink) {
    let elements = array.ty.scalars();
    if elements > limits::REGISTER_ARRAY_ELEMENTS {
        let message = format!(
            "a thread's own array has at most {} elements, not {elements}",
            limits::REGISTER_ARRAY_ELEMENTS
        );
        sink.error(Code::UnsupportedType, array.span, message)
            .help("put it into shared memory, `SharedArray<T, N>`, or into a `Global<T>`");
    }
}

/// Bounds that leave no number, at which Rust panics.
pub(super) fn clamp(operands: &[Expr], span: Span, sink: &mut Sink) {
    let [_, low, high] = operands else { return };
    let (ExprKind::Const(low), ExprKind::Const(high)) = (&low.kind, &high.kind) else { return };
    let (in_order, bounds) = match (low, high) {
        (Const::Int(low), Const::Int(high)) => (low <= high, format!("{low} to {high}")),
        (Const::Float(low), Const::Float(high)) => (low <= high, format!("{low} to {high}")),
        (Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::Literal { .. }, _) => return,
    };
    if !in_order {
        sink.error(Code::ConstantValue, span, format!("`clamp` to {bounds}, where there is no number"))
            .help("the lower bound comes first, and no bound is NaN");
    }
}

/// Source: PTX ISA, "createpolicy", `fraction`.
pub(super) fn cache_fraction(fraction: &Expr, sink: &mut Sink) {
    if let ExprKind::Const(Const::Float(value)) = fraction.kind
        && !(value > 0.0 && value <= 1.0)
    {
        let message =
            format!("a policy is for more than none and at most all of the accesses, not for {value}");
        sink.error(Code::CacheFraction, fraction.span, message)
            .help("give a fraction above 0.0 and up to 1.0");
    }
}

fn within(index: &Expr, bound: Bound, sink: &mut Sink) {
    if let Some(value) = index.as_int() {
        outside(value, index.span, bound, sink);
    }
}

/// Reports an index that is not within its bound.
pub(super) fn outside(value: i128, span: Span, bound: Bound, sink: &mut Sink) -> Option<&mut Diagnostic> {
    let Bound { extent, what } = bound;
    (!(0..i128::from(extent)).contains(&value)).then(|| {
        sink.error(Code::IndexRange, span, format!("index {value} is out of range: {what} is {extent}"))
    })
}
