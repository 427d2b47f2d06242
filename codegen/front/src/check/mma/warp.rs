//! Rules of multiplications by a warp: the operands, and the parts of tiles that it loads and
//! stores. Also rules of operands that a warpgroup loads into registers. The forms of instructions
//! are those of the model, [`tma_model::mma`].

use tma_model::limits::WARP_THREADS;
use tma_model::mma::{Accumulator, Operand, OperandFault};

use super::{converts, plain};
use crate::check::low_bits::LowBits;
use crate::check::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake::{self, Axis, UnrolledIteration};
use crate::ir::{
    AccumulatorType, Expr, FragmentLoad, Kernel, LoadedType, LocalId, MmaOp, MmaSync, OperandType, Scalar,
    Span, StmtKind, Team, TileType, Type, WarpFragmentType, WarpMmaOp, WarpStore, visit,
};
use crate::limits;

/// Whether a warp holds this accumulator.
pub(super) fn holds(kernel: &Kernel, accumulator: LocalId) -> bool {
    matches!(kernel.local(accumulator).ty, Type::Accumulator(AccumulatorType { team: Team::Warp, .. }))
}

/// Checks that a block has whole warps. Source: PTX ISA, "mma" and "ldmatrix": all threads of the
/// warp execute them.
pub(super) fn whole_warps(kernel: &Kernel, sink: &mut Sink) {
    let threads = kernel.launch.thread_count();
    if threads.is_multiple_of(u64::from(WARP_THREADS)) {
        return;
    }
    let mut first = None;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let is_of_warp =
            matches!(stmt.kind, StmtKind::LoadFragment(_) | StmtKind::MmaSync(_) | StmtKind::StoreWarp(_));
        first = first.or(is_of_warp.then_some(stmt.origin.span));
    });
    if let Some(span) = first {
        sink.error(mistake::MmaSync::Warps { threads, at: kernel.launch.spans.threads }, span);
    }
}

/// Checks the rules that only accumulators of warps have.
pub(super) fn accumulator(ty: AccumulatorType, span: Span, sink: &mut Sink) {
    if Accumulator::of(ty.element).is_none() && ty.element != Scalar::F64 {
        sink.error(mistake::MmaSync::AccumulatorElement(ty.element), span);
    }
    if ty.columns == 0 || !ty.columns.is_multiple_of(8) {
        sink.error(mistake::MmaSync::AccumulatorColumns(ty.columns), span);
    }
}

/// Checks an operand that is loaded.
fn loaded(kernel: &Kernel, load: &FragmentLoad, ty: LoadedType, span: Span, sink: &mut Sink) {
    match ty {
        LoadedType::Warpgroup(ty) => {
            if super::fragment(MmaOp::Add, ty, false, span, sink).is_none() {
                return;
            }
        }
        LoadedType::Warp(ty) => fragment(ty, is_reported(kernel, load, ty), span, sink),
    }
    let of_warp = ty.of_warp();
    let each = if of_warp.element == Scalar::F64 { 2 } else { 1 };
    let registers = u64::from(of_warp.registers()) * each;
    if registers > u64::from(limits::THREAD_REGISTERS) {
        sink.error(mistake::MmaSync::OperandRegisters { ty, registers }, span);
    }
}

/// Whether an earlier load of the kernel has the same K, and reports it.
fn is_reported(kernel: &Kernel, load: &FragmentLoad, ty: WarpFragmentType) -> bool {
    let (mut is_earlier, mut is_reported) = (true, false);
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let StmtKind::LoadFragment(other) = &stmt.kind else { return };
        let other: &FragmentLoad = other;
        is_earlier &= !std::ptr::eq(other, load);
        if let Type::WarpFragment(other) = kernel.local(other.dest).ty {
            is_reported |= is_earlier && (other.columns, other.unit()) == (ty.columns, ty.unit());
        }
    });
    is_reported
}

/// Checks an operand in the registers of a warp, except for its K if that is reported elsewhere.
fn fragment(ty: WarpFragmentType, is_reported: bool, span: Span, sink: &mut Sink) {
    let is_multiplied = [WarpMmaOp::Add, WarpMmaOp::AndPopc].into_iter().any(|op| takes(op, ty.element));
    if !is_multiplied {
        sink.error(mistake::MmaSync::OperandElement(ty), span);
        return;
    }
    if ty.rows == 0 || !ty.rows.is_multiple_of(ty.side.rows()) {
        sink.error(mistake::MmaSync::OperandRows(ty), span);
    }
    if !is_reported && (ty.columns == 0 || !ty.columns.is_multiple_of(ty.unit())) {
        sink.error(mistake::MmaSync::OperandDepth(ty), span);
    }
}

/// Whether `op` multiplies elements of this type.
fn takes(op: WarpMmaOp, element: Scalar) -> bool {
    op.operand(element).is_some() || op == WarpMmaOp::Add && element == Scalar::F64
}

/// Checks `WarpLeft::<f16, 16, 32>::load(tile, at)` and `widen`, and the same of `Fragment`.
pub(in crate::check) fn load(rules: &Rules<'_>, load: &FragmentLoad, span: Span, sink: &mut Sink) {
    let Some(ty) = LoadedType::of(&rules.kernel.local(load.dest).ty) else { return };
    loaded(rules.kernel, load, ty, span, sink);
    let OperandType { tile, band, transposed, .. } = &load.from.ty;
    let Some(part) = loaded_part(rules.kernel, load) else {
        sink.error(mistake::MmaSync::Tile(tile.clone()), load.from.tile.span);
        return;
    };
    let narrow = ty.widened_from().filter(|narrow| narrow.element == tile.element);
    match (load.widens, narrow) {
        (true, Some(narrow)) => {
            // A matrix of `ldmatrix` has 16 bytes along a row of the tile.
            let (axis, unit) = (AXES[part.inner], narrow.unit());
            let extent = part.extents[part.inner];
            if !extent.is_multiple_of(unit) {
                sink.error(mistake::MmaSync::Widened { ty, axis, extent, unit }, span);
            }
        }
        (_, narrow) if tile.element != ty.of_warp().element => {
            let mistake =
                mistake::MmaSync::LoadedElement { ty, tile: tile.element, narrow: narrow.is_some() };
            sink.error(mistake, load.from.tile.span);
            return;
        }
        _ if *transposed && tile.element.bytes() != 2 => {
            sink.error(mistake::MmaSync::Transposed(tile.element), load.from.tile.span);
        }
        _ => {}
    }
    if let Some(rows) = band
        && !rows.is_multiple_of(8)
    {
        let fault = OperandFault::Extent { extent: *rows, step: 8 };
        sink.error(mistake::Mma::Operand { op: MmaOp::Add, ty: load.from.ty.clone(), fault }, span);
    }
    is_in_tile(rules, tile, &part, load.from.tile.span, sink);
}

/// Checks `sum.store(tile, at)`.
pub(in crate::check) fn store(rules: &Rules<'_>, store: &WarpStore, span: Span, sink: &mut Sink) {
    let (Type::Accumulator(sum), Type::Tile(tile)) =
        (&rules.kernel.local(store.accumulator).ty, &store.tile.ty)
    else {
        return;
    };
    if !converts(sum.element, tile.element) {
        sink.error(mistake::Mma::StoredElement { sum: sum.element, tile: tile.element }, store.tile.span);
    }
    if let Some(part) = stored_part(rules.kernel, store) {
        is_in_tile(rules, tile, &part, span, sink);
    } else {
        sink.error(mistake::MmaSync::Tile(tile.clone()), store.tile.span);
    }
}

/// A part of a tile, as rows and columns of the matrix in the tile.
pub(in crate::check) struct Part<'k> {
    /// The first row and column.
    pub(in crate::check) at: &'k [Expr; 2],
    extents: [u32; 2],
    /// The rows and columns of the whole matrix.
    whole: [u32; 2],
    element: Scalar,
    /// The index of the dimension that lies along the rows of the tile.
    inner: usize,
}

/// Checks a part of a tile. Source: PTX ISA, "ldmatrix" and "stmatrix": each row of a matrix is 16
/// bytes, from a multiple of 16 on.
fn is_in_tile(rules: &Rules<'_>, tile: &TileType, part: &Part<'_>, span: Span, sink: &mut Sink) {
    if plain(tile.swizzle).is_none() {
        sink.error(mistake::MmaSync::Tile(tile.clone()), span);
        return;
    }
    let inner = &part.at[part.inner];
    let low: LowBits = rules.variables.of(inner);
    if let Some(at) = low.misalignment(16 / part.element.bytes(), inner.as_int()) {
        let axis = AXES[part.inner];
        sink.error(mistake::MmaSync::Start { axis, at, element: part.element }, inner.span);
    }
    for (dimension, at) in part.at.iter().enumerate() {
        // A part that is larger than the tile is outside of it wherever it begins.
        if let Some(first) = at.as_int().or((part.extents[dimension] > part.whole[dimension]).then_some(0)) {
            part.within(dimension, first, &[], sink);
        }
    }
}

const AXES: [Axis; 2] = [Axis::Row, Axis::Column];

impl Part<'_> {
    /// Reports a first row or column with which the part is not in the tile, in these iterations of
    /// unrolled loops. Returns whether it is not.
    pub(in crate::check) fn within(
        &self,
        dimension: usize,
        first: i128,
        iterations: &[UnrolledIteration],
        sink: &mut Sink,
    ) -> bool {
        let (count, extent) = (self.extents[dimension], self.whole[dimension]);
        let is_outside = first + i128::from(count) > i128::from(extent);
        if is_outside {
            let (axis, iterations) = (AXES[dimension], iterations.to_vec());
            let mistake = mistake::MmaSync::Outside { axis, first, count, extent, iterations };
            sink.error(mistake, self.at[dimension].span);
        }
        is_outside
    }
}

/// Returns the part that `load` reads, or `None` if the tile is not a matrix.
pub(in crate::check) fn loaded_part<'k>(kernel: &Kernel, load: &'k FragmentLoad) -> Option<Part<'k>> {
    let extents = LoadedType::of(&kernel.local(load.dest).ty)?.extents();
    let OperandType { tile, band, transposed, .. } = &load.from.ty;
    let [rows, columns] = matrix(tile)?;
    let rows = band.unwrap_or(rows);
    let (whole, inner) = if *transposed { ([columns, rows], 0) } else { ([rows, columns], 1) };
    Some(Part { at: &load.at, extents, whole, element: tile.element, inner })
}

/// Returns the part that `store` writes, or `None` if the tile is not a matrix.
pub(in crate::check) fn stored_part<'k>(kernel: &Kernel, store: &'k WarpStore) -> Option<Part<'k>> {
    let (Type::Accumulator(sum), Type::Tile(tile)) = (&kernel.local(store.accumulator).ty, &store.tile.ty)
    else {
        return None;
    };
    let extents = [sum.rows, sum.columns];
    Some(Part { at: &store.at, extents, whole: matrix(tile)?, element: tile.element, inner: 1 })
}

/// Returns the rows and columns of a tile that is a matrix.
fn matrix(tile: &TileType) -> Option<[u32; 2]> {
    match tile.extents[..] {
        [rows, columns] | [1, rows, columns] => Some([rows, columns]),
        _ => None,
    }
}

/// Checks `sum.mma_sync(a, b)`.
pub(in crate::check) fn multiplication(rules: &Rules<'_>, mma: &MmaSync, span: Span, sink: &mut Sink) {
    let (Type::Accumulator(sum), Type::WarpFragment(left), Type::WarpFragment(right)) = (
        &rules.kernel.local(mma.accumulator).ty,
        &rules.kernel.local(mma.left).ty,
        &rules.kernel.local(mma.right).ty,
    ) else {
        return;
    };
    let [a, b] = [left.element, right.element];
    if let Some(&element) = [a, b].iter().find(|element| !takes(mma.op, **element)) {
        sink.error(mistake::MmaSync::OpElement { op: mma.op, element }, span);
        return;
    }
    if (left.rows, right.rows, left.columns) != (sum.rows, sum.columns, right.columns) {
        sink.error(mistake::MmaSync::Extents { sum: *sum, left: *left, right: *right }, span);
    }
    let is_pair = match (mma.op.operand(a), mma.op.operand(b)) {
        (Some(Operand::B1), _) | (None, _) | (_, None) => a == b,
        (Some(a), Some(b)) => a.multiplies(b),
    };
    if !is_pair {
        sink.error(mistake::MmaSync::Pair { left: a, right: b }, span);
    }
    // If the operands do not match each other, no accumulator matches both.
    let is_summed = match mma.op.operand(a) {
        Some(operand) => Accumulator::of(sum.element).is_some_and(|d| operand.accumulates().contains(&d)),
        None => sum.element == a,
    };
    if is_pair && !is_summed {
        sink.error(mistake::MmaSync::Sum { factor: a, sum: sum.element }, span);
    }
    if mma.op == WarpMmaOp::Saturating && !mma.op.operand(a).is_some_and(Operand::is_saturable) {
        sink.error(mistake::MmaSync::NotSaturating(a), span);
    }
}
