//! Rules of the tensor cores: operands, and uses of accumulators. The forms of instructions are
//! those of the model, [`tma_model::mma`].

pub(super) mod incomplete;
mod rows;
pub mod sparse;
pub(super) mod warp;

use tma_model::mma::{Accumulator, CORE_ROWS, Form, FormFault, Major, Operand, OperandFault, OperandTile};
use tma_model::swizzle::{Interleave, Swizzle};

pub(super) use self::rows::store_matrix;
use super::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake::{self, UnrolledIteration};
use crate::ir::{
    AccumulatorType, Expr, FragmentType, Kernel, LeftOperand, LocalId, Mma, MmaOp, OperandType, Scalar,
    SharedOperand, Span, StmtKind, Team, TileSwizzle, Type, visit,
};
use crate::limits;

/// Checks the rules of the kernel as a whole.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    for local in &kernel.locals {
        if let Type::Accumulator(ty) = &local.ty {
            accumulator(*ty, local.span, sink);
        } else if let Type::Rows(ty) = &local.ty {
            whole_bands(ty.team, ty.rows, &local.ty, local.span, sink);
        }
    }
    warp::whole_warps(kernel, sink);
}

/// Whether the kernel multiplies with `wgmma`.
pub fn uses_mma(kernel: &Kernel) -> bool {
    let mut found = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Mma(_)));
    found
}

fn accumulator(ty: AccumulatorType, span: Span, sink: &mut Sink) {
    whole_bands(ty.team, ty.rows, &Type::Accumulator(ty), span, sink);
    match ty.team {
        Team::Warpgroup => {
            if accumulated(ty.element).is_none() {
                sink.error(mistake::Mma::AccumulatorElement(ty.element), span);
            }
            if !(8..=256).contains(&ty.columns) || !ty.columns.is_multiple_of(8) {
                sink.error(mistake::Mma::AccumulatorColumns(ty.columns), span);
            }
        }
        Team::Warp => warp::accumulator(ty, span, sink),
    }
    let registers = ty.registers();
    if registers > u64::from(limits::THREAD_REGISTERS) {
        sink.error(mistake::Mma::AccumulatorRegisters { ty, registers }, span);
    }
}

fn whole_bands(team: Team, rows: u32, ty: &Type, span: Span, sink: &mut Sink) {
    if rows == 0 || !rows.is_multiple_of(team.rows()) {
        sink.error(mistake::Mma::Rows { team, ty: ty.clone(), rows }, span);
    }
}

pub(super) fn multiplication(rules: &Rules<'_>, mma: &Mma, span: Span, sink: &mut Sink) {
    let Type::Accumulator(sum) = rules.kernel.local(mma.accumulator).ty else { return };
    let left = match &mma.left {
        LeftOperand::Shared(operand) => shared_operand(rules.kernel, mma.op, operand, sink),
        LeftOperand::Registers(local) => {
            let Type::Fragment(ty) = rules.kernel.local(*local).ty else { return };
            // The right operand has the same K, and thus the same fault.
            let is_reported = is_made(rules.kernel, ty);
            let Some(matrix) = fragment(mma.op, ty, is_reported, span, sink) else { return };
            Some(matrix)
        }
    };
    let right = shared_operand(rules.kernel, mma.op, &mma.right, sink);
    if mma.right.ty.sparse {
        sink.error(mistake::Mma::SparseRight, mma.right.tile.span);
        return;
    }
    let (Some(left), Some(right), Some(d)) = (left, right, accumulated(sum.element)) else { return };
    let sparse = mma.metadata.is_some();
    let times = if sparse { 2 } else { 1 };
    extents(sum, &Matrix { depth: left.depth.saturating_mul(times), ..left }, &right, span, sink);
    form(Form { d, a: left.element, b: right.element, n: sum.columns, sparse }, span, sink);
    if let Some(metadata) = mma.metadata
        && left.element.is_sparse()
    {
        sparse::operands(&rules.kernel.local(metadata).ty, &left, &mma.right, span, sink);
    }
    if mma.op == MmaOp::Saturating && !left.element.is_saturable() {
        sink.error(mistake::Mma::NotSaturating(left.element), span);
    }
}

/// A well-formed operand.
#[derive(Clone, Copy)]
struct Matrix {
    element: Operand,
    /// Rows of A, or columns of B.
    rows: u32,
    /// Elements along the dimension that is summed.
    depth: u32,
}

fn operand_of(op: MmaOp, element: Scalar, span: Span, sink: &mut Sink) -> Option<Operand> {
    let operand = op.operand(element);
    if operand.is_none() {
        sink.error(mistake::Mma::OpElement { op, element }, span);
    }
    operand
}

/// Whether the kernel makes a fragment of this type, where its rows and columns are checked.
fn is_made(kernel: &Kernel, ty: FragmentType) -> bool {
    let mut is_made = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let is_of_type = |dest| kernel.local(dest).ty == Type::Fragment(ty);
        is_made |= matches!(&stmt.kind, StmtKind::LoadFragment(load) if is_of_type(load.dest))
            || matches!(&stmt.kind, StmtKind::Pack { dest, .. } if is_of_type(*dest));
    });
    is_made
}

/// Checks a fragment, except for its extents if these are reported elsewhere.
fn fragment(op: MmaOp, ty: FragmentType, is_reported: bool, span: Span, sink: &mut Sink) -> Option<Matrix> {
    let element = operand_of(op, ty.element, span, sink)?;
    if !is_reported {
        whole_bands(Team::Warpgroup, ty.rows, &Type::Fragment(ty), span, sink);
    }
    let step = 32 / ty.element.bytes();
    if ty.columns == 0 || !ty.columns.is_multiple_of(step) {
        if !is_reported {
            sink.error(mistake::Mma::FragmentDepth { ty, step }, span);
        }
        return None;
    }
    // The depth is in elements of the multiplication: single bits of the integers where bits are
    // multiplied.
    let depth = ty.columns * (8 * ty.element.bytes() / element.bits());
    Some(Matrix { element, rows: ty.rows, depth })
}

fn shared_operand(kernel: &Kernel, op: MmaOp, operand: &SharedOperand, sink: &mut Sink) -> Option<Matrix> {
    let (ty, span) = (&operand.ty, operand.tile.span);
    let tile = operand_tile(kernel, op, operand, sink)?;
    let mut is_sound = true;
    for fault in tile.faults() {
        is_sound = false;
        if !earlier_operands(kernel, operand).into_iter().any(|other| has_fault(op, other, ty, fault)) {
            sink.error(mistake::Mma::Operand { op, ty: ty.clone(), fault }, span);
        }
    }
    if ty.negated && !tile.element.is_negatable() {
        is_sound = false;
        sink.error(mistake::Mma::Negated(ty.tile.element), span);
    }
    if let Some(rows) = ty.band
        && !rows.is_multiple_of(CORE_ROWS)
    {
        let fault = OperandFault::Extent { extent: rows, step: CORE_ROWS };
        sink.error(mistake::Mma::Operand { op, ty: ty.clone(), fault }, span);
        return None;
    }
    let rows = ty.band.unwrap_or(tile.mn());
    is_sound.then(|| Matrix { element: tile.element, rows, depth: tile.k() })
}

/// Returns the operand as the model represents it.
fn operand_tile(kernel: &Kernel, op: MmaOp, operand: &SharedOperand, sink: &mut Sink) -> Option<OperandTile> {
    let (ty, span) = (&operand.ty, operand.tile.span);
    let element = operand_of(op, ty.tile.element, span, sink)?;
    let tile = geometry(ty, element);
    let is_reported = || {
        super::limits::is_reported(kernel, &ty.tile)
            || earlier_operands(kernel, operand).into_iter().any(|other| other.ty.tile == ty.tile)
    };
    if tile.is_none() && !is_reported() {
        sink.error(mistake::Mma::OperandTile(ty.tile.clone()), span);
    }
    tile
}

/// Returns the operands in shared memory before `operand`. A mistake in a type is reported at the
/// first of them that has it.
fn earlier_operands<'k>(kernel: &'k Kernel, operand: &SharedOperand) -> Vec<&'k SharedOperand> {
    let mut all = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Mma(mma) = &stmt.kind {
            if let LeftOperand::Shared(left) = &mma.left {
                all.push(left);
            }
            all.push(&mma.right);
        }
    });
    all.into_iter().take_while(|other| !std::ptr::eq(*other, operand)).collect()
}

/// Whether `other` has the fault of an operand of this type by the same mistake: it has the same K,
/// or the same type.
fn has_fault(op: MmaOp, other: &SharedOperand, ty: &OperandType, fault: OperandFault) -> bool {
    let tile = op.operand(other.ty.tile.element).and_then(|element| geometry(&other.ty, element));
    let is_shared = matches!(fault, OperandFault::Depth { .. }) || other.ty == *ty;
    is_shared && tile.is_some_and(|tile| tile.faults().contains(&fault))
}

/// Returns the layout of an operand's whole tile in shared memory, or `None` if no descriptor
/// states it.
pub fn geometry(ty: &OperandType, element: Operand) -> Option<OperandTile> {
    let major = if ty.transposed { Major::Mn } else { Major::K };
    OperandTile::of(&ty.tile, element, major)
}

/// Returns the swizzle of a tile that is not interleaved.
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

/// Checks that an instruction has this form. If the operands do not match each other, no
/// accumulator matches both.
fn form(form: Form, span: Span, sink: &mut Sink) {
    let faults = form.faults();
    let is_mixed = faults.contains(&FormFault::OperandTypes);
    for fault in faults {
        if is_mixed && fault == FormFault::AccumulatorType {
            continue;
        }
        sink.error(mistake::Mma::Form { form, fault }, span);
    }
}

/// Returns the type that a multiplication accumulates in, for an accumulator of these elements.
pub fn accumulated(element: Scalar) -> Option<Accumulator> {
    Accumulator::of(element)
}

/// Checks `sum.store(tile)`.
pub(super) fn store(rules: &Rules<'_>, accumulator: LocalId, first: &Expr, tile: &Expr, sink: &mut Sink) {
    let (Type::Accumulator(sum), Type::Tile(to)) = (&rules.kernel.local(accumulator).ty, &tile.ty) else {
        return;
    };
    if !converts(sum.element, to.element) {
        sink.error(mistake::Mma::StoredElement { sum: sum.element, tile: to.element }, tile.span);
    }
    let extents = match to.extents[..] {
        [ref outer @ .., rows, columns] if outer.iter().all(|&extent| extent == 1) => Some((rows, columns)),
        _ => None,
    };
    let is_laid_out = plain(to.swizzle).is_some();
    match extents {
        Some((rows, columns)) if rows == sum.rows && columns.is_multiple_of(8) && is_laid_out => {
            if let Some(first) = first.as_int() {
                columns_within(*sum, ColumnRange { first, count: columns }, &[], tile.span, sink);
            }
        }
        _ => {
            sink.error(mistake::Mma::StoredTile { sum: *sum, tile: to.clone() }, tile.span);
        }
    }
}

/// Whether an accumulator of elements `from` can be stored as `to`.
fn converts(from: Scalar, to: Scalar) -> bool {
    const OF_F32: [Scalar; 5] = [Scalar::F32, Scalar::F16, Scalar::Bf16, Scalar::E4m3, Scalar::E5m2];
    to == from || from == Scalar::F32 && OF_F32.contains(&to)
}

/// Columns of an accumulator.
#[derive(Clone, Copy)]
pub(super) struct ColumnRange {
    pub(super) first: i128,
    pub(super) count: u32,
}

/// Reports columns that the accumulator does not have, in these iterations of unrolled loops.
/// Returns whether there are any.
pub(super) fn columns_within(
    sum: AccumulatorType,
    columns: ColumnRange,
    iterations: &[UnrolledIteration],
    span: Span,
    sink: &mut Sink,
) -> bool {
    let ColumnRange { first, count: columns } = columns;
    let is_outside = first + i128::from(columns) > i128::from(sum.columns);
    if is_outside {
        sink.error(mistake::Mma::Columns { first, columns, sum, iterations: iterations.to_vec() }, span);
    }
    is_outside
}

/// Checks `sum.pack::<bf16>()`.
pub(super) fn pack(rules: &Rules<'_>, dest: LocalId, accumulator: LocalId, span: Span, sink: &mut Sink) {
    let Type::Accumulator(sum) = &rules.kernel.local(accumulator).ty else { return };
    let to = &rules.kernel.local(dest).ty;
    let element = if let Type::Fragment(to) = to {
        to.element
    } else if let Type::WarpFragment(to) = to {
        to.element
    } else {
        return;
    };
    const PACKED: [(Scalar, Scalar); 3] =
        [(Scalar::F32, Scalar::F16), (Scalar::F32, Scalar::Bf16), (Scalar::F16, Scalar::F16)];
    let fits = PACKED.contains(&(sum.element, element));
    if !fits {
        sink.error(mistake::Mma::Packed { sum: *sum, element }, span);
    }
    if !sum.columns.is_multiple_of(16) {
        sink.error(mistake::Mma::PackedColumns(*sum), span);
    }
}

/// Checks `fragment.unpack()`.
pub(super) fn unpack(rules: &Rules<'_>, fragment: LocalId, span: Span, sink: &mut Sink) {
    let Type::Fragment(from) = &rules.kernel.local(fragment).ty else { return };
    if !matches!(from.element, Scalar::F16 | Scalar::Bf16) {
        sink.error(mistake::Mma::Unpacked(*from), span);
    }
}

pub(super) fn reduce_rows(rules: &Rules<'_>, accumulator: LocalId, span: Span, sink: &mut Sink) {
    let Type::Accumulator(sum) = &rules.kernel.local(accumulator).ty else { return };
    if sum.element != Scalar::F32 {
        sink.error(mistake::Mma::ReducedRows(*sum), span);
    }
}

/// Whether a warpgroup may ask for this many registers. Source: PTX ISA, "setmaxnreg": 24 to 256, a
/// multiple of 8.
pub(super) fn is_valid_register_count(registers: u32) -> bool {
    (24..=256).contains(&registers) && registers.is_multiple_of(8)
}

pub(super) fn registers(registers: u32, span: Span, sink: &mut Sink) {
    if !is_valid_register_count(registers) {
        sink.error(mistake::Mma::Registers(registers), span);
    }
}
