//! `mma.sync`, bit for bit as on an H200.
//!
//! The rules are those of `wgmma` with the same types, except for 8-bit floats, for which ptxas 13
//! emits other instructions on sm_90a. They are converted to f16. Those with k % 4 < 2 are
//! multiplied and summed first, then the others are added to that sum, and C is added last by an
//! ordinary addition.

use tma_model::mma::{Accumulator, Operand, WARP_COLUMNS, WARP_ROWS, WarpForm};

use super::float::{self, Line, RoundingRule};
use super::integer;
use super::number::{F16, Format, NONE, Number};
use crate::isa::float::convert::between;
use crate::isa::float::format::{self as formats, Round};

/// A register of each lane.
pub(crate) type Lanes = [u32; tma_model::limits::WARP_THREADS as usize];

/// The properties of an instruction that determine its arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpArithmetic {
    pub(crate) form: WarpForm,
    /// Whether integer sums are clamped.
    pub(crate) saturates: bool,
    /// For single-bit operands, whether differing bits are counted (`.xor`) rather than common ones
    /// (`.and`).
    pub(crate) differs: bool,
}

/// The registers of A and B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpFactors<'r> {
    pub(crate) a: &'r [Lanes],
    pub(crate) b: &'r [Lanes],
}

impl WarpFactors<'_> {
    /// Returns the element of A at a row and k.
    fn left(self, form: WarpForm, row: u32, k: u32) -> u32 {
        let slot = form.a.slot(row, k);
        part(self.a[slot.register as usize][slot.thread as usize], form.a.bits(), slot.part)
    }

    /// Returns the element of B at a k and column.
    fn right(self, form: WarpForm, k: u32, column: u32) -> u32 {
        let slot = form.right_slot(k, column);
        part(self.b[slot.register as usize][slot.thread as usize], form.b.bits(), slot.part)
    }
}

const fn part(word: u32, bits: u32, number: u32) -> u32 {
    if bits == 32 { word } else { word >> (bits * number) & ((1 << bits) - 1) }
}

/// Multiplies. `d` holds C on entry and D on return.
pub(crate) fn multiply(arithmetic: WarpArithmetic, factors: WarpFactors<'_>, d: &mut [Lanes]) {
    let form = arithmetic.form;
    match (is_float8(form.a), form.k) {
        (true, 16) => floats8::<16>(form, factors, d),
        (true, _) => floats8::<32>(form, factors, d),
        (false, 4) => floats::<4>(form, factors, d),
        (false, 8) => floats::<8>(form, factors, d),
        (false, 16) if Format::of(form.a).is_some() => floats::<16>(form, factors, d),
        (false, _) => integers(arithmetic, factors, d),
    }
}

const fn is_float8(operand: Operand) -> bool {
    match operand {
        Operand::E4m3 | Operand::E5m2 => true,
        Operand::F16 | Operand::Bf16 | Operand::Tf32 | Operand::S8 | Operand::U8 | Operand::B1 => false,
    }
}

/// Replaces each element of D. `with` receives the row and column, and the element of C.
fn update(ty: Accumulator, d: &mut [Lanes], mut with: impl FnMut([u32; 2], u32) -> u32) {
    for at in (0..WARP_ROWS).flat_map(|row| (0..WARP_COLUMNS).map(move |column| [row, column])) {
        let [row, column] = at;
        let slot = ty.slot(row, column);
        let bits = 32 / ty.per_register();
        let register = &mut d[slot.register as usize][slot.thread as usize];
        let new = with(at, part(*register, bits, slot.part));
        *register = match ty {
            Accumulator::F32 | Accumulator::S32 => new,
            Accumulator::F16 => *register & !(0xffff << (bits * slot.part)) | new << (bits * slot.part),
        };
    }
}

fn floats<const K: usize>(form: WarpForm, factors: WarpFactors<'_>, d: &mut [Lanes]) {
    let (Some(rule), Some(left), Some(right)) =
        (RoundingRule::of(form.a, form.d), Format::of(form.a), Format::of(form.b))
    else {
        return;
    };
    let shift = float::shift(rule, left, right);
    let row = |row| -> [Number; K] {
        std::array::from_fn(|k| Number::of(form.a, left, factors.left(form, row, k as u32)))
    };
    let column = |column| -> [Number; K] {
        std::array::from_fn(|k| Number::of(form.b, right, factors.right(form, k as u32, column)))
    };
    let rows: Vec<_> = (0..WARP_ROWS).map(|at| Line::new(row(at), shift)).collect();
    let columns: Vec<_> = (0..WARP_COLUMNS).map(|at| Line::new(column(at), 0)).collect();
    update(form.d, d, |[row, column], c| {
        float::dot(rule, &rows[row as usize], &columns[column as usize], Some(c))
    });
}

/// Multiplies 8-bit floats.
fn floats8<const K: usize>(form: WarpForm, factors: WarpFactors<'_>, d: &mut [Lanes]) {
    let Some(rule) = RoundingRule::of(Operand::F16, form.d) else { return };
    let shift = float::shift(rule, F16, F16);
    let number = |operand, bits| F16.number(half_of(operand, bits));
    let column = |column| -> [Number; K] {
        std::array::from_fn(|k| number(form.b, factors.right(form, k as u32, column)))
    };
    // Half of the elements of a row: the first two of every four, or the other two.
    let half_row = |row: u32, half: usize| {
        let indices: Vec<u8> = (0..K as u8).filter(|k| usize::from(k % 4 / 2) == half).collect();
        let mut numbers = [Number::Finite { significand: 0, exponent: NONE }; K];
        for (entry, &k) in numbers.iter_mut().zip(&indices) {
            *entry = number(form.a, factors.left(form, row, k.into()));
        }
        Line::sparse(&numbers, &indices, shift)
    };
    let rows: Vec<_> = (0..WARP_ROWS).map(|row| [half_row(row, 0), half_row(row, 1)]).collect();
    let columns: Vec<_> = (0..WARP_COLUMNS).map(|at| Line::new(column(at), 0)).collect();
    update(form.d, d, |[row, column], c| {
        let ([first, second], column) = (&rows[row as usize], &columns[column as usize]);
        let sum = float::dot(rule, first, column, None);
        added(form.d, c, float::dot(rule, second, column, Some(sum)))
    });
}

/// Converts an 8-bit float to f16, which is exact.
fn half_of(operand: Operand, bits: u32) -> u32 {
    let from = if operand == Operand::E4m3 { formats::E4M3 } else { formats::E5M2 };
    between(bits.into(), from, formats::F16, Round::Nearest, false) as u32
}

/// Adds two numbers, rounding to nearest even, with the NaN of tensor cores.
fn added(ty: Accumulator, x: u32, y: u32) -> u32 {
    match ty {
        Accumulator::F32 => {
            let sum = f32::from_bits(x) + f32::from_bits(y);
            if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() }
        }
        Accumulator::F16 => {
            let wide = |bits: u32| {
                f64::from_bits(between(bits.into(), formats::F16, formats::F64, Round::Nearest, false))
            };
            // Exact in f64, so the sum is rounded only once.
            let sum = wide(x) + wide(y);
            if sum.is_nan() {
                return 0x7fff;
            }
            between(sum.to_bits(), formats::F64, formats::F16, Round::Nearest, false) as u32
        }
        Accumulator::S32 => x.wrapping_add(y),
    }
}

fn integers(arithmetic: WarpArithmetic, factors: WarpFactors<'_>, d: &mut [Lanes]) {
    let WarpArithmetic { form, saturates, differs } = arithmetic;
    let left = |row| (0..form.k).map(move |k| factors.left(form, row, k));
    let right = |column| (0..form.k).map(move |k| factors.right(form, k, column));
    let element = |operand, bits| integer::element(operand, bits as u8);
    update(form.d, d, |[row, column], c| {
        let pairs = left(row).zip(right(column));
        if form.a == Operand::B1 {
            let ones = pairs.filter(|(a, b)| if differs { a != b } else { a & b == 1 }).count();
            return c.wrapping_add(ones as u32);
        }
        let (a, b): (Vec<i32>, Vec<i32>) =
            pairs.map(|(a, b)| (element(form.a, a), element(form.b, b))).unzip();
        integer::dot(&a, &b, c as i32, saturates) as u32
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_addition_rounds_once() {
        assert_eq!(half_of(Operand::E4m3, 0x81), 0x9800, "2^-9 is a normal f16");
        assert_eq!(added(Accumulator::F16, 0x6400, 0x3801), 0x6401, "1024 and a little more than a half");
        assert_eq!(added(Accumulator::F16, 0x7bff, 0x7bff), 0x7c00);
        assert_eq!(added(Accumulator::F16, 0x7c00, 0xfc00), 0x7fff);
        assert_eq!(added(Accumulator::F32, 0x7f80_0000, 0xff80_0000), 0x7fff_ffff);
    }
}
