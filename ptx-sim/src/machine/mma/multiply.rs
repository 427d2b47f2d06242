//! One `wgmma` instruction: D = A · B + C, for 64 rows and all columns.

use tma_model::mma::{Accumulator, Form, Operand, ROWS, STEP_BYTES};

use super::float::{self, Line, RoundingRule};
use super::integer;
use super::number::{Format, NONE, Number};
use super::selection::Selection;

/// Bytes of a row of A along K. A sparse row has only its stored elements.
pub(super) const LINE_BYTES: usize = STEP_BYTES as usize;

/// Threads of a warpgroup.
pub(super) const THREADS: usize = tma_model::limits::WARPGROUP_THREADS as usize;

/// A register of each thread of a warpgroup.
pub(in crate::machine) type Register = [u32; THREADS];

/// The factors of a multiplication, contiguous along K whatever their layout in memory was.
#[derive(Debug)]
pub(super) struct Factors {
    /// Rows of A, of [`LINE_BYTES`] bytes each.
    pub(super) left: Vec<u8>,
    /// Columns of B, of the same size, or twice that for a sparse A.
    pub(super) right: Vec<u8>,
    /// The positions along K of the elements of a sparse A.
    pub(super) selection: Option<Selection>,
}

/// The properties of an instruction that determine its arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) struct MultiplyArithmetic {
    pub(in crate::machine) form: Form,
    /// Whether C, which D holds, is added.
    pub(in crate::machine) accumulates: bool,
    pub(in crate::machine) negates: [bool; 2],
    pub(in crate::machine) saturates: bool,
    /// Selects the threads that hold the metadata of a sparse A.
    pub(in crate::machine) selector: u32,
}

/// Multiplies. `d` holds C on entry and D on return, in the register order of the instruction.
pub(super) fn multiply(arithmetic: MultiplyArithmetic, factors: &Factors, d: &mut [Register]) {
    let Form { a, d: sum, .. } = arithmetic.form;
    match (RoundingRule::of(a, sum), arithmetic.form.k()) {
        (Some(rule), 8) => floats::<8>(arithmetic, rule, factors, d),
        (Some(rule), 16) => floats::<16>(arithmetic, rule, factors, d),
        (Some(rule), 32) => floats::<32>(arithmetic, rule, factors, d),
        (Some(rule), 64) => floats::<64>(arithmetic, rule, factors, d),
        (Some(_), k) => debug_assert!(false, "floats have no K of {k}"),
        (None, _) => integers(arithmetic, factors, d),
    }
}

/// Decodes the elements of a line of bytes.
fn numbers<const K: usize>(operand: Operand, format: Format, bytes: &[u8], negate: bool) -> [Number; K] {
    let width = (operand.bits() / 8) as usize;
    std::array::from_fn(|k| match bytes.get(k * width..(k + 1) * width) {
        Some(element) => {
            let bits = element.iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
            let number = Number::of(operand, format, bits);
            if negate { number.negated() } else { number }
        }
        None => Number::Finite { significand: 0, exponent: NONE },
    })
}

fn floats<const K: usize>(
    arithmetic: MultiplyArithmetic,
    rule: RoundingRule,
    factors: &Factors,
    d: &mut [Register],
) {
    let MultiplyArithmetic { form, accumulates, negates, .. } = arithmetic;
    let (Some(left), Some(right)) = (Format::of(form.a), Format::of(form.b)) else { return };
    let shift = float::shift(rule, left, right);
    let rows = (0..).zip(factors.left.chunks_exact(LINE_BYTES)).map(|(row, bytes)| {
        let numbers = numbers(form.a, left, bytes, negates[0]);
        match &factors.selection {
            None => Line::new(numbers, shift),
            Some(selection) => Line::sparse(&numbers, selection.row(row), shift),
        }
    });
    let columns: Vec<Line<K>> = factors
        .right
        .chunks_exact(form.right_bytes() as usize)
        .map(|bytes| Line::new(numbers(form.b, right, bytes, negates[1]), 0))
        .collect();
    for (row, a) in (0..).zip(rows) {
        for (column, b) in (0..).zip(&columns) {
            update(form.d, [row, column], d, |c| float::dot(rule, &a, b, accumulates.then_some(c)));
        }
    }
}

fn integers(arithmetic: MultiplyArithmetic, factors: &Factors, d: &mut [Register]) {
    let MultiplyArithmetic { form, accumulates, saturates, .. } = arithmetic;
    let rows = factors.left.chunks_exact(LINE_BYTES);
    let sum = |c: u32| if accumulates { c as i32 } else { 0 };
    if form.a == Operand::B1 {
        for (row, a) in (0..).zip(rows) {
            for (column, b) in (0..).zip(factors.right.chunks_exact(LINE_BYTES)) {
                update(form.d, [row, column], d, |c| integer::common_bits(a, b, sum(c)) as u32);
            }
        }
        return;
    }
    let elements = |operand, bytes: &[u8]| -> Vec<i32> {
        bytes.iter().map(|byte| integer::element(operand, *byte)).collect()
    };
    let columns = elements(form.b, &factors.right);
    for (row, bytes) in (0..).zip(rows) {
        let mut a = elements(form.a, bytes);
        if let Some(selection) = &factors.selection {
            let mut line = vec![0; form.k() as usize];
            selection.row(row).iter().zip(&a).for_each(|(slot, element)| line[usize::from(*slot)] = *element);
            a = line;
        }
        for (column, b) in (0..).zip(columns.chunks_exact(form.right_bytes() as usize)) {
            update(form.d, [row, column], d, |c| integer::dot(&a, b, sum(c), saturates) as u32);
        }
    }
}

/// Replaces an element of D.
#[inline(always)]
fn update(ty: Accumulator, at: [u32; 2], d: &mut [Register], with: impl FnOnce(u32) -> u32) {
    debug_assert!(at[0] < ROWS, "D has {ROWS} rows");
    let [row, column] = at;
    let slot = ty.slot(row, column);
    let register = &mut d[slot.register as usize][slot.thread as usize];
    match ty {
        Accumulator::F32 | Accumulator::S32 => *register = with(*register),
        Accumulator::F16 => {
            let by = 16 * slot.part;
            let half = with(*register >> by & 0xffff);
            *register = *register & !(0xffff << by) | half << by;
        }
    }
}
