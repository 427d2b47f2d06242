//! Rules of the tensor cores: what they multiply, and what is done with accumulators. The forms of
//! instructions are the model's, [`tma_model::mma`].

use std::fmt::Display;

use tma_model::limits::WARPGROUP_THREADS;
use tma_model::mma::{Accumulated, Form, FormFault, Major, Operand, OperandFault, OperandTile};
use tma_model::swizzle::{Interleave, Swizzle};

use super::operations::Rules;
use crate::diag::{Code, Diagnostic, Sink};
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
    let message = format!("a warpgroup is {WARPGROUP_THREADS} threads, and a block here has {threads}");
    sink.error(Code::Warpgroups, first.origin.span, message)
        .label(kernel.launch.spans.threads, "the threads of a block")
        .help("take a multiple of 128 threads");
}

/// Any call that is left in a kernel makes ptxas serialise its multiplications (its C7510).
fn no_call(stmt: &Stmt, sink: &mut Sink) {
    if let StmtKind::Printf { .. } = stmt.kind {
        let message = "`printf!` in a kernel with tensor cores: the call would make each multiplication wait for itself";
        sink.error(Code::MmaCall, stmt.origin.span, message)
            .help("write what is to be seen to a `Global`, or print in another kernel");
    }
}

fn accumulator(ty: AccumulatorType, span: Span, sink: &mut Sink) {
    if accumulated(ty.element).is_none() {
        sink.error(
            Code::MmaElement,
            span,
            format!("an accumulator holds f32, f16 or i32, not {}", ty.element),
        )
        .help("convert when it is stored: `sum.store(tile)` takes tiles of other elements");
    }
    whole_bands(ty.rows, &Type::Accumulator(ty), span, sink);
    if !(8..=256).contains(&ty.columns) || !ty.columns.is_multiple_of(8) {
        let message = format!("an accumulator has 8 to 256 columns, a multiple of 8, not {}", ty.columns);
        sink.error(Code::MmaShape, span, message)
            .help("take several accumulators, or fewer columns a warpgroup");
    }
    let registers = u64::from(ty.elements()) * u64::from(ty.element.bytes()) / 4;
    if registers > u64::from(limits::THREAD_REGISTERS) {
        let message = format!(
            "`{ty}` takes {registers} registers of each thread, which has at most {}",
            limits::THREAD_REGISTERS
        );
        sink.error(Code::MmaShape, span, message).help("share the rows out among more warpgroups");
    }
}

fn whole_bands(rows: u32, ty: &Type, span: Span, sink: &mut Sink) {
    if rows == 0 || !rows.is_multiple_of(MMA_ROWS) {
        let message = format!("`{ty}` has {rows} rows; tensor cores work on multiples of {MMA_ROWS}");
        sink.error(Code::MmaShape, span, message).help("take 64 or 128 rows a warpgroup");
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
        let message = format!("tensor cores do not multiply elements of type `{element}`");
        sink.error(Code::MmaElement, span, message)
            .help("they take f16, bf16, tf32, e4m3, e5m2, i8 and u8; make `f32` a `tf32` when it is stored to the tile");
    }
    operand
}

fn fragment(ty: FragmentType, span: Span, sink: &mut Sink) -> Option<Matrix> {
    let element = operand_of(ty.element, span, sink)?;
    whole_bands(ty.rows, &Type::Fragment(ty), span, sink);
    let step = 32 / ty.element.bytes();
    if ty.columns == 0 || !ty.columns.is_multiple_of(step) {
        depth(ty.columns, step, &ty, span, sink);
        return None;
    }
    Some(Matrix { element, rows: ty.rows, depth: ty.columns })
}

fn depth(found: u32, step: u32, of: &dyn Display, span: Span, sink: &mut Sink) {
    let message = format!("`{of}` is multiplied along {found} elements, which is not a multiple of {step}");
    sink.error(Code::MmaShape, span, message)
        .help(format!("one instruction takes 32 bytes of a row: make it {step} or more"));
}

fn shared_operand(ty: &OperandType, span: Span, sink: &mut Sink) -> Option<Matrix> {
    let tile = operand_tile(ty, span, sink)?;
    let mut is_sound = true;
    for fault in tile.faults() {
        is_sound = false;
        operand_fault(fault, ty, span, sink);
    }
    if ty.negated && !tile.element.is_negatable() {
        is_sound = false;
        sink.error(Code::MmaElement, span, format!("tensor cores do not negate `{}`", ty.tile.element))
            .help("only floats are negated on the way; negate integers before they are stored");
    }
    is_sound.then(|| Matrix { element: tile.element, rows: tile.mn(), depth: tile.k() })
}

/// The operand as the model has it.
fn operand_tile(ty: &OperandType, span: Span, sink: &mut Sink) -> Option<OperandTile> {
    let element = operand_of(ty.tile.element, span, sink)?;
    let tile = geometry(ty, element);
    if tile.is_none() {
        let message = format!("tensor cores do not read `{}`", ty.tile);
        sink.error(Code::MmaShape, span, message).help(
            "an operand is a tile of two dimensions with `Swizzle32`, `Swizzle64` or `Swizzle128`, whose rows are \
             no longer than the swizzle's span, or a multiple of it",
        );
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

fn operand_fault(fault: OperandFault, ty: &OperandType, span: Span, sink: &mut Sink) {
    let (code, message, help) = match fault {
        OperandFault::Transposed => (
            Code::MmaElement,
            format!("tensor cores transpose elements of 16 bits only, not `{}`", ty.tile.element),
            "keep it in shared memory with the dimension that is summed last".to_owned(),
        ),
        OperandFault::Depth { k, step } => return depth(k, step, ty, span, sink),
        OperandFault::Extent { extent, step } => (
            Code::MmaShape,
            format!("`{ty}` has {extent} rows along which is not summed, which is not a multiple of {step}"),
            format!("make it a multiple of {step}"),
        ),
        OperandFault::Offset => (
            Code::MmaShape,
            format!("`{ty}` is too large for one descriptor"),
            "multiply parts of it: `tile.band::<64>(i)`".to_owned(),
        ),
    };
    sink.error(code, span, message).help(help);
}

fn extents(sum: AccumulatorType, left: &Matrix, right: &Matrix, span: Span, sink: &mut Sink) {
    let mut wrong = |message: String, help: &str| {
        sink.error(Code::MmaShape, span, message).help(help.to_owned());
    };
    if left.rows != sum.rows {
        wrong(
            format!("the left operand has {} rows, and the accumulator {}", left.rows, sum.rows),
            "a warpgroup multiplies its own rows: `tile.band::<64>(i)`",
        );
    }
    if right.rows != sum.columns {
        wrong(
            format!("the right operand has {} rows, and the accumulator {} columns", right.rows, sum.columns),
            "the right operand has a row for each column: B is stored N × K, or `.t()` takes K × N",
        );
    }
    if left.depth != right.depth {
        wrong(
            format!("the left operand has {} elements a row, and the right one {}", left.depth, right.depth),
            "both are summed along their last dimension, or with `.t()` along the first",
        );
    }
}

fn form(form: Form, span: Span, sink: &mut Sink) {
    let [a, b, d] = [&form.a as &dyn Display, &form.b, &form.d].map(in_rust);
    for fault in form.faults() {
        let (code, message, help) = match fault {
            FormFault::Pair => (
                Code::MmaElement,
                format!("tensor cores do not multiply {a} by {b}"),
                "both operands have one element type; e4m3 and e5m2 mix, and so do i8 and u8",
            ),
            FormFault::Accumulated => (
                Code::MmaElement,
                format!("products of {a} are not added to an accumulator of {d}"),
                "f16, e4m3 and e5m2 take f32 or f16, bf16 and tf32 take f32, integers take i32",
            ),
            FormFault::Width => (
                Code::MmaShape,
                format!("no instruction for {a} has {} columns", form.n),
                "floats take every multiple of 8 up to 256; integers 8, 16, 24, 32 and multiples of 16",
            ),
            // The language has none.
            FormFault::Sparse => continue,
        };
        sink.error(code, span, message).help(help);
    }
}

/// The name of a type, of which the model has PTX's.
fn in_rust(ty: &dyn Display) -> String {
    let name = ty.to_string();
    name.strip_prefix('s').map_or(name.clone(), |bits| format!("i{bits}"))
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
        let message = format!("an accumulator of {} is not stored to a tile of {}", sum.element, to.element);
        sink.error(Code::MmaElement, tile.span, message)
            .help("f32 is converted to f32, f16, bf16, e4m3 and e5m2; others are stored as they are");
    }
    let extents = match to.extents[..] {
        [rows, columns] | [1, rows, columns] => Some((rows, columns)),
        _ => None,
    };
    let is_laid_out = plain(to.swizzle).is_some();
    match extents {
        Some((rows, columns)) if rows == sum.rows && columns.is_multiple_of(8) && is_laid_out => {
            if let Some(first) = first.as_int() {
                columns_within(*sum, (first, columns), tile.span, sink);
            }
        }
        _ => {
            let message = format!("`{sum}` is not stored to a `{to}`");
            sink.error(Code::MmaShape, tile.span, message).help(format!(
                "the tile has the accumulator's {} rows, and a multiple of 8 columns: `sum.columns::<64>(j).store(tile)` \
                 stores some of them",
                sum.rows
            ));
        }
    }
}

/// Reports columns, the first and their number, that the accumulator does not have.
pub(super) fn columns_within(
    sum: AccumulatorType,
    (first, columns): (i128, u32),
    span: Span,
    sink: &mut Sink,
) -> Option<&mut Diagnostic> {
    let end = first + i128::from(columns);
    (end > i128::from(sum.columns)).then(|| {
        let message = format!("columns {first} to {} of `{sum}`, which has {}", end - 1, sum.columns);
        let error = sink.error(Code::IndexRange, span, message);
        error.help("store as many columns as there are");
        error
    })
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
        let message = format!("`{sum}` does not become an operand of {}", to.element);
        sink.error(Code::MmaElement, span, message).help(
            "f32 becomes f16 or bf16, whose fragments lie in the threads as accumulators do; others go through a tile",
        );
    }
    if !sum.columns.is_multiple_of(16) {
        let message = format!("`{sum}` becomes an operand of whole steps of 16 columns only");
        sink.error(Code::MmaShape, span, message).help("take a multiple of 16 columns");
    }
}

pub(super) fn reduce_rows(rules: &Rules<'_>, accumulator: LocalId, span: Span, sink: &mut Sink) {
    let Type::Accumulator(sum) = &rules.kernel.local(accumulator).ty else { return };
    if sum.element != Scalar::F32 {
        sink.error(Code::MmaElement, span, format!("rows of `{sum}` are not reduced; those of f32 are"))
            .help("accumulate in f32");
    }
}

/// Whether a warpgroup may ask for so many. Source: PTX ISA, "setmaxnreg": 24 to 256, a multiple of
/// 8.
pub(super) fn is_asked_for(registers: u32) -> bool {
    (24..=256).contains(&registers) && registers.is_multiple_of(8)
}

pub(super) fn registers(registers: u32, span: Span, sink: &mut Sink) {
    if !is_asked_for(registers) {
        let message = format!("a warpgroup asks for 24 to 256 registers, a multiple of 8, not {registers}");
        sink.error(Code::Registers, span, message)
            .help("40 for a warpgroup that copies and 232 for two that multiply are a common choice");
    }
}
