//! Rules of the tensor cores: what they multiply, and what is done with accumulators. The forms of
//! instructions are the model's, [`tma_model::mma`].

use tma_model::limits::WARPGROUP_THREADS;
use tma_model::mma::{Accumulated, Form, Major, Operand, OperandTile};
use tma_model::swizzle::{Interleave, Swizzle};

use super::operations::Rules;
use crate::diag::Sink;
use crate::diag::mistake::{self, Turn};
use crate::ir::{
    AccumulatorType, Expr, FragmentType, Kernel, LeftOperand, LocalId, MMA_ROWS, Mma, OperandType, Scalar,
    Span, Stmt, StmtKind, Sync, TileSwizzle, TileType, Type, visit,
};
use crate::limits;

/// What concerns the kernel as a whole.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    for local in &kernel.locals {
        if let Type::Accumulator(ty) = &local.ty {
            accumulator(*ty, local.span, sink);
        } else if let Type::Rows(_, rows) = &local.ty {
            whole_bands(*rows, &local.ty, local.span, sink);
        }
    }
    if let Some(first) = first_of_warpgroups(kernel) {
        warpgroups(kernel, first, sink);
    }
    if uses_mma(kernel) {
        visit::for_each_stmt(&kernel.body, &mut |stmt| no_call(stmt, sink));
    }
}

/// Whether the kernel multiplies with the tensor cores.
pub(crate) fn uses_mma(kernel: &Kernel) -> bool {
    let mut found = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Mma(_)));
    found
}

/// The first statement that a whole warpgroup executes.
fn first_of_warpgroups(kernel: &Kernel) -> Option<&Stmt> {
    let mut first = None;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let is_one = matches!(
            stmt.kind,
            StmtKind::Mma(_)
                | StmtKind::StoreAccumulator { .. }
                | StmtKind::SetMaxRegisters { .. }
                | StmtKind::Sync(Sync::Warpgroup)
        );
        first = first.or(is_one.then_some(stmt));
    });
    first
}

/// Source: PTX ISA, "wgmma.mma_async": all threads of a warpgroup execute it, and a warpgroup is
/// four warps of which the first has a rank that is a multiple of 4.
fn warpgroups(kernel: &Kernel, first: &Stmt, sink: &mut Sink) {
    let threads = kernel.launch.thread_count();
    if threads == 0 || threads.is_multiple_of(u64::from(WARPGROUP_THREADS)) {
        return;
    }
    let at = kernel.launch.spans.threads;
    sink.error(mistake::Mma::Warpgroups { threads, at }, first.origin.span);
}

/// Any call that is left in a kernel makes ptxas serialise its multiplications (its C7510).
fn no_call(stmt: &Stmt, sink: &mut Sink) {
    if let StmtKind::Printf { .. } = stmt.kind {
        sink.error(mistake::Mma::Printf, stmt.origin.span);
    }
}

fn accumulator(ty: AccumulatorType, span: Span, sink: &mut Sink) {
    if accumulated(ty.element).is_none() {
        sink.error(mistake::Mma::AccumulatorElement(ty.element), span);
    }
    whole_bands(ty.rows, &Type::Accumulator(ty), span, sink);
    if !(8..=256).contains(&ty.columns) || !ty.columns.is_multiple_of(8) {
        sink.error(mistake::Mma::AccumulatorColumns(ty.columns), span);
    }
    let registers = u64::from(ty.elements()) * u64::from(ty.element.bytes()) / 4;
    if registers > u64::from(limits::THREAD_REGISTERS) {
        sink.error(mistake::Mma::AccumulatorRegisters { ty, registers }, span);
    }
}

fn whole_bands(rows: u32, ty: &Type, span: Span, sink: &mut Sink) {
    if rows == 0 || !rows.is_multiple_of(MMA_ROWS) {
        sink.error(mistake::Mma::Rows { ty: ty.clone(), rows }, span);
    }
}

pub(super) fn multiplication(rules: &Rules<'_>, mma: &Mma, span: Span, sink: &mut Sink) {
    let Type::Accumulator(sum) = rules.kernel.local(mma.accumulator).ty else { return };
    let left = match &mma.left {
        LeftOperand::Shared(operand) => shared_operand(&operand.ty, operand.tile.span, sink),
        LeftOperand::Registers(local) => {
            let Type::Fragment(ty) = rules.kernel.local(*local).ty else { return };
            fragment(ty, span, sink)
        }
    };
    let right = shared_operand(&mma.right.ty, mma.right.tile.span, sink);
    let (Some(left), Some(right), Some(d)) = (left, right, accumulated(sum.element)) else { return };
    extents(sum, &left, &right, span, sink);
    form(Form { d, a: left.element, b: right.element, n: sum.columns, sparse: false }, span, sink);
}

/// An operand that is well made.
struct Matrix {
    element: Operand,
    /// Rows of A, or columns of B.
    rows: u32,
    /// Elements along the dimension that is summed.
    depth: u32,
}

fn operand_of(element: Scalar, span: Span, sink: &mut Sink) -> Option<Operand> {
    let operand = Operand::of(element);
    if operand.is_none() {
        sink.error(mistake::Mma::Factor(element), span);
    }
    operand
}

fn fragment(ty: FragmentType, span: Span, sink: &mut Sink) -> Option<Matrix> {
    let element = operand_of(ty.element, span, sink)?;
    whole_bands(ty.rows, &Type::Fragment(ty), span, sink);
    let step = 32 / ty.element.bytes();
    if ty.columns == 0 || !ty.columns.is_multiple_of(step) {
        sink.error(mistake::Mma::FragmentDepth { ty, step }, span);
        return None;
    }
    Some(Matrix { element, rows: ty.rows, depth: ty.columns })
}

fn shared_operand(ty: &OperandType, span: Span, sink: &mut Sink) -> Option<Matrix> {
    let tile = operand_tile(ty, span, sink)?;
    let mut is_sound = true;
    for fault in tile.faults() {
        is_sound = false;
        sink.error(mistake::Mma::Operand { ty: ty.clone(), fault }, span);
    }
    if ty.negated && !tile.element.is_negatable() {
        is_sound = false;
        sink.error(mistake::Mma::Negated(ty.tile.element), span);
    }
    is_sound.then(|| Matrix { element: tile.element, rows: tile.mn(), depth: tile.k() })
}

/// The operand as the model has it.
fn operand_tile(ty: &OperandType, span: Span, sink: &mut Sink) -> Option<OperandTile> {
    let element = operand_of(ty.tile.element, span, sink)?;
    let tile = geometry(ty, element);
    if tile.is_none() {
        sink.error(mistake::Mma::OperandTile(ty.tile.clone()), span);
    }
    tile
}

/// How the tile of an operand lies in shared memory; none where no descriptor says so.
pub(crate) fn geometry(ty: &OperandType, element: Operand) -> Option<OperandTile> {
    let TileType { extents, swizzle, .. } = &ty.tile;
    let &[ref outer @ .., rows, columns] = extents.as_slice() else { return None };
    if outer.iter().any(|&extent| extent != 1) || outer.len() > 1 {
        return None;
    }
    let swizzle = plain(*swizzle)?;
    let major = if ty.transposed { Major::Mn } else { Major::K };
    let tile = OperandTile { element, extents: [rows, columns], swizzle, major };
    // Without a swizzle its rows lie one after the other, and not in chunks.
    (u64::from(tile.pitch()) == ty.tile.row_pitch()).then_some(tile)
}

/// The swizzle of a tile that is not interleaved.
fn plain(swizzle: TileSwizzle) -> Option<Swizzle> {
    (swizzle.interleave() == Interleave::None).then(|| swizzle.pattern())
}

fn extents(sum: AccumulatorType, left: &Matrix, right: &Matrix, span: Span, sink: &mut Sink) {
    if left.rows != sum.rows {
        sink.error(mistake::Mma::LeftRows { found: left.rows, wanted: sum.rows }, span);
    }
    if right.rows != sum.columns {
        sink.error(mistake::Mma::RightRows { found: right.rows, wanted: sum.columns }, span);
    }
    if left.depth != right.depth {
        sink.error(mistake::Mma::Depths { left: left.depth, right: right.depth }, span);
    }
}

fn form(form: Form, span: Span, sink: &mut Sink) {
    for fault in form.faults() {
        sink.error(mistake::Mma::Form { form, fault }, span);
    }
}

/// What a multiplication adds to, in an accumulator of these elements.
pub(crate) fn accumulated(element: Scalar) -> Option<Accumulated> {
    let types =
        [(Scalar::F32, Accumulated::F32), (Scalar::F16, Accumulated::F16), (Scalar::I32, Accumulated::S32)];
    types.into_iter().find_map(|(scalar, accumulated)| (scalar == element).then_some(accumulated))
}

/// `sum.store(tile)`.
pub(super) fn store(rules: &Rules<'_>, accumulator: LocalId, first: &Expr, tile: &Expr, sink: &mut Sink) {
    let (Type::Accumulator(sum), Type::Tile(to)) = (&rules.kernel.local(accumulator).ty, &tile.ty) else {
        return;
    };
    const OF_F32: [Scalar; 5] = [Scalar::F32, Scalar::F16, Scalar::Bf16, Scalar::E4m3, Scalar::E5m2];
    let fits = to.element == sum.element || sum.element == Scalar::F32 && OF_F32.contains(&to.element);
    if !fits {
        sink.error(mistake::Mma::StoredElement { sum: sum.element, tile: to.element }, tile.span);
    }
    let extents = match to.extents[..] {
        [rows, columns] | [1, rows, columns] => Some((rows, columns)),
        _ => None,
    };
    let is_laid_out = plain(to.swizzle).is_some();
    match extents {
        Some((rows, columns)) if rows == sum.rows && columns.is_multiple_of(8) && is_laid_out => {
            if let Some(first) = first.as_int() {
                columns_within(*sum, (first, columns), &[], tile.span, sink);
            }
        }
        _ => {
            sink.error(mistake::Mma::StoredTile { sum: *sum, tile: to.clone() }, tile.span);
        }
    }
}

/// Reports columns, the first and their number, that the accumulator does not have, in these turns
/// of unrolled loops; whether they are such.
pub(super) fn columns_within(
    sum: AccumulatorType,
    (first, columns): (i128, u32),
    turns: &[Turn],
    span: Span,
    sink: &mut Sink,
) -> bool {
    let is_outside = first + i128::from(columns) > i128::from(sum.columns);
    if is_outside {
        sink.error(mistake::Mma::Columns { first, columns, sum, turns: turns.to_vec() }, span);
    }
    is_outside
}

/// `sum.pack::<bf16>()`.
pub(super) fn pack(rules: &Rules<'_>, dest: LocalId, accumulator: LocalId, span: Span, sink: &mut Sink) {
    let (Type::Accumulator(sum), Type::Fragment(to)) =
        (&rules.kernel.local(accumulator).ty, &rules.kernel.local(dest).ty)
    else {
        return;
    };
    const PACKED: [(Scalar, Scalar); 3] =
        [(Scalar::F32, Scalar::F16), (Scalar::F32, Scalar::Bf16), (Scalar::F16, Scalar::F16)];
    let fits = PACKED.contains(&(sum.element, to.element));
    if !fits {
        sink.error(mistake::Mma::Packed { sum: *sum, element: to.element }, span);
    }
    if !sum.columns.is_multiple_of(16) {
        sink.error(mistake::Mma::PackedColumns(*sum), span);
    }
}

pub(super) fn reduce_rows(rules: &Rules<'_>, accumulator: LocalId, span: Span, sink: &mut Sink) {
    let Type::Accumulator(sum) = &rules.kernel.local(accumulator).ty else { return };
    if sum.element != Scalar::F32 {
        sink.error(mistake::Mma::ReducedRows(*sum), span);
    }
}

/// Whether a warpgroup may ask for so many. Source: PTX ISA, "setmaxnreg": 24 to 256, a multiple of
/// 8.
pub(super) fn is_asked_for(registers: u32) -> bool {
    (24..=256).contains(&registers) && registers.is_multiple_of(8)
}

pub(super) fn registers(registers: u32, span: Span, sink: &mut Sink) {
    if !is_asked_for(registers) {
        sink.error(mistake::Mma::Registers(registers), span);
    }
}
