//! The matrix instructions of a warp in f64: `mma.sync` in every shape.
//!
//! The PTX ISA specifies rounding to nearest even, but not the order in which products are added.
//! Matrices here have two 32-bit words for each element, the low word first. Source: PTX ISA,
//! "Matrix Fragments for mma.m8n8k4", "mma.m16n8k4", "mma.m16n8k8" and "mma.m16n8k16", with `.f64`.

use std::fmt;

use tma_model::limits::WARP_THREADS;
use tma_model::mma::{DoubleForm, FragmentSlot, WARP_COLUMNS};
use tma_runtime::Device;

use crate::draw::{Addend, Kind, Rng};
use crate::operand::Matrix;
use crate::run::{CaseOutcome, each_of};
use crate::warp_kernel::WarpKernel;

/// Threads of a warp.
const LANES: u32 = WARP_THREADS;

/// Returns the PTX of the kernel under test. Each block is one warp.
pub fn text(form: DoubleForm) -> String {
    kernel(form).text()
}

fn kernel(form: DoubleForm) -> WarpKernel {
    WarpKernel {
        instruction: format!("{form}.row.col.f64.f64.f64.f64"),
        registers: form.registers(),
        words: 2,
        version: form.ptx_version().max((8, 0)),
    }
}

/// The inputs of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct DoubleCase {
    /// Shape of the instruction.
    pub form: DoubleForm,
    /// Kind of numbers in A and B.
    pub kind: Kind,
    /// Kind of numbers in C, which is always added.
    pub addend: Addend,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl fmt::Display for DoubleCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, kind, addend, seed } = self;
        write!(f, "{form}.f64 {kind}+{addend} #{seed}")
    }
}

/// Returns the cases: every kind of numbers with every C, for each shape.
pub fn cases() -> Vec<DoubleCase> {
    let mut cases = Vec::new();
    for form in DoubleForm::ALL {
        for kind in Kind::ALL {
            for addend in Addend::ALL.into_iter().filter(|addend| *addend != Addend::Absent) {
                cases.push(DoubleCase { form, kind, addend, seed: cases.len() as u64 });
            }
        }
    }
    cases
}

/// The exponent field of infinities and NaNs, and the number of fraction bits.
const TOP: u32 = 0x7ff;
const FRACTION_BITS: u32 = 52;

/// Returns the number with this sign, exponent field and fraction.
fn number(negative: bool, exponent: u32, fraction: u64) -> f64 {
    let fraction = fraction & ((1 << FRACTION_BITS) - 1);
    f64::from_bits(u64::from(negative) << 63 | u64::from(exponent) << FRACTION_BITS | fraction)
}

/// Draws a number whose exponent is `from` to `from + count - 1` away from that of 1.
fn around(from: i32, count: u32, rng: &mut Rng) -> f64 {
    let exponent = 1023_i32.saturating_add(from).saturating_add_unsigned(rng.below(count));
    number(rng.once_in(2), exponent.unsigned_abs(), rng.next())
}

/// Draws element `k` of a row of A or a column of B.
fn element(kind: Kind, right: bool, [line, k]: [u32; 2], rng: &mut Rng) -> f64 {
    match kind {
        Kind::Near => around(-2, 5, rng),
        Kind::Small => f64::from(rng.below(17)) - 8.0,
        Kind::Spread => around(-24, 49, rng),
        Kind::Wide => number(rng.once_in(2), rng.below(TOP), rng.next()),
        Kind::Powers => number(rng.once_in(2), 1010 + rng.below(27), u64::from(rng.below(2)) << 51),
        // Neighbours in A are opposite. In B they are equal, except for a unit in the last place.
        Kind::Cancelling => {
            let mut pair = Rng::new(u64::from(line) << 32 | u64::from(k / 2) << 1 | u64::from(right));
            let value = around(-2, 5, &mut pair);
            match (right, k % 2) {
                (false, 1) => -value,
                (true, 1) => f64::from_bits(value.to_bits() ^ u64::from(rng.below(2))),
                _ => value,
            }
        }
        Kind::Subnormal if right => around(-2, 5, rng),
        Kind::Subnormal => number(rng.once_in(2), rng.below(3), rng.next()),
        Kind::Huge => number(rng.once_in(2), 1533 + rng.below(3), rng.next()),
        Kind::Zeros if rng.once_in(4) => around(-2, 5, rng),
        Kind::Zeros => number(rng.once_in(2), 0, 0),
        Kind::NegativeZeros => number(!right, 0, 0),
        Kind::Special if rng.once_in(16) => {
            number(rng.once_in(2), TOP, if rng.once_in(2) { 0 } else { rng.next() | 1 })
        }
        Kind::Special => around(-2, 5, rng),
        Kind::Bits => f64::from_bits(rng.next()),
        Kind::Numbered if right => f64::from(u8::from(k == line)),
        Kind::Numbered => f64::from(line * 37 + k),
    }
}

/// Draws an element of C, given the sum of its products.
fn addend(addend: Addend, sum: f64, rng: &mut Rng) -> f64 {
    match addend {
        Addend::Zero => 0.0,
        Addend::NegativeZero => -0.0,
        Addend::Near => around(-3, 6, rng),
        Addend::Wide => number(rng.once_in(2), rng.below(TOP), rng.next()),
        Addend::Opposite if sum.is_finite() => -f64::from_bits(sum.to_bits() ^ u64::from(rng.below(2))),
        Addend::Opposite => 0.0,
        Addend::Bits => f64::from_bits(rng.next()),
        Addend::Absent => number(rng.once_in(2), TOP, rng.next() | 1),
    }
}

/// The elements of a case: A by rows, B by columns, C by rows.
#[derive(Clone, Debug)]
pub struct Doubles {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Doubles {
    /// Draws the elements of a case.
    pub fn new(case: &DoubleCase) -> Self {
        let DoubleCase { form, kind, addend: of_c, seed } = *case;
        let mut rng = Rng::new(seed);
        let mut matrix = |right, lines: u32| -> Vec<f64> {
            let indices = (0..lines).flat_map(|line| (0..form.k).map(move |k| [line, k]));
            indices.map(|at| element(kind, right, at, &mut rng)).collect()
        };
        let mut all = Self { a: matrix(false, form.rows), b: matrix(true, WARP_COLUMNS), c: vec![] };
        let indices = (0..form.rows).flat_map(|row| (0..WARP_COLUMNS).map(move |column| [row, column]));
        let sums: Vec<f64> =
            indices.map(|at| all.products(form, at).iter().map(|(x, y)| x * y).sum()).collect();
        all.c = sums.into_iter().map(|sum| addend(of_c, sum, &mut rng)).collect();
        all
    }

    /// Returns the pairs of factors of an element of D, along K.
    fn products(&self, form: DoubleForm, [row, column]: [u32; 2]) -> Vec<(f64, f64)> {
        let line = |of: &[f64], line: u32| of[(line * form.k) as usize..][..form.k as usize].to_vec();
        line(&self.a, row).into_iter().zip(line(&self.b, column)).collect()
    }

    /// Returns the registers of A, B and C, each for all lanes.
    fn words(&self, form: DoubleForm) -> Vec<u32> {
        let counts = form.registers();
        let mut fragments = counts.map(|count| vec![0_u64; (count * LANES) as usize]);
        let mut put = |index: usize, FragmentSlot { thread, register, .. }: FragmentSlot, value: f64| {
            fragments[index][(register * LANES + thread) as usize] = value.to_bits();
        };
        for (i, value) in (0..).zip(&self.a) {
            put(0, form.left_slot(i / form.k, i % form.k), *value);
        }
        for (i, value) in (0..).zip(&self.b) {
            put(1, form.right_slot(i % form.k, i / form.k), *value);
        }
        for (i, value) in (0..).zip(&self.c) {
            put(2, form.accumulator_slot(i / WARP_COLUMNS, i % WARP_COLUMNS), *value);
        }
        fragments.into_iter().flatten().flat_map(halves).collect()
    }

    /// Describes the first element of D that differs from the result in plain Rust.
    fn problem(&self, form: DoubleForm, d: &Matrix) -> Option<String> {
        let found =
            |at: usize| f64::from_bits(u64::from(d.bits[2 * at]) | u64::from(d.bits[2 * at + 1]) << 32);
        let position = |at: usize| [at as u32 / WARP_COLUMNS, at as u32 % WARP_COLUMNS];
        let at = (0..self.c.len())
            .find(|&at| !may_be(found(at), &self.products(form, position(at)), self.c[at]))?;
        let [row, column] = position(at);
        let sum: f64 = self.products(form, position(at)).iter().map(|(x, y)| x * y).sum::<f64>() + self.c[at];
        Some(format!("row {row}, column {column} is {:?}, and plain Rust gives about {sum:?}", found(at)))
    }
}

/// Returns the low and the high half of 64 bits.
const fn halves(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

/// Returns whether `found` is a possible sum of the products and `c`, for any order of addition and
/// one or two roundings per step.
fn may_be(found: f64, products: &[(f64, f64)], c: f64) -> bool {
    let is_infinite = |(x, y): &(f64, f64)| x.is_infinite() || y.is_infinite();
    let terms: Vec<f64> = products.iter().map(|(x, y)| x * y).chain([c]).collect();
    if terms.iter().any(|term| term.is_nan()) {
        return found.is_nan();
    }
    let from = |sign: f64| {
        let of_products = products.iter().filter(|pair| is_infinite(pair)).map(|(x, y)| x * y);
        of_products.chain(c.is_infinite().then_some(c)).any(|term| term.signum() == sign)
    };
    match (from(1.0), from(-1.0)) {
        (true, true) => return found.is_nan(),
        (true, false) => return found == f64::INFINITY,
        (false, true) => return found == f64::NEG_INFINITY,
        (false, false) => {}
    }
    let magnitude: f64 = terms.iter().map(|term| term.abs()).sum();
    // The order determines whether an intermediate sum overflows.
    if magnitude.is_infinite() {
        return true;
    }
    let count = terms.len() as f64;
    let least = f64::from_bits(1);
    let total: f64 = terms.iter().sum();
    (found - total).abs() <= 2.0 * count * (magnitude * f64::EPSILON + least)
}

/// Runs cases of one shape, and returns the D of each, by rows.
///
/// # Errors
///
/// Errors of the device.
pub fn results(device: &Device, form: DoubleForm, cases: &[Doubles]) -> anyhow::Result<Vec<Matrix>> {
    let data: Vec<u32> = cases.iter().flat_map(|case| case.words(form)).collect();
    let matrix = |words: &Vec<u32>| {
        Matrix::new([form.rows, 2 * WARP_COLUMNS], |[row, word]| {
            let FragmentSlot { thread, register, .. } = form.accumulator_slot(row, word / 2);
            words[(2 * (register * LANES + thread) + word % 2) as usize]
        })
    };
    Ok(kernel(form).run(device, &data, cases.len())?.iter().map(matrix).collect())
}

/// Runs cases on each device, and passes on each outcome as it is available. An error of a device
/// is a problem of all cases with that shape.
pub fn each(devices: &[Device], cases: &[DoubleCase], take: &mut dyn FnMut(CaseOutcome)) {
    for form in DoubleForm::ALL {
        let indices: Vec<_> = (0..cases.len()).filter(|&index| cases[index].form == form).collect();
        let doubles: Vec<_> = indices.iter().map(|&index| Doubles::new(&cases[index])).collect();
        let problem = |position: usize, d: &Matrix| doubles[position].problem(form, d);
        each_of(devices, &indices, |device| results(device, form, &doubles), problem, take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_bounded_and_not_only_equal() {
        let large = 60_f64.exp2();
        let one = [(1.0, 1.0), (large, 1.0), (-large, 1.0)];
        assert!(may_be(1.0, &one, 0.0) && may_be(0.0, &one, 0.0));
        assert!(!may_be(1e6, &one, 0.0) && !may_be(f64::NAN, &one, 0.0));
        assert!(may_be(f64::INFINITY, &[(f64::INFINITY, 2.0)], 1.0));
        assert!(!may_be(f64::INFINITY, &[(f64::INFINITY, -2.0)], 1.0));
        assert!(may_be(f64::NAN, &[(f64::INFINITY, 0.0)], 1.0));
        assert!(may_be(f64::NAN, &[(f64::INFINITY, 1.0)], f64::NEG_INFINITY));
        assert!(!may_be(0.0, &[(f64::NAN, 1.0)], 0.0));
        let overflowing = |found| may_be(found, &[(f64::MAX, 2.0)], f64::MIN);
        assert!(overflowing(f64::INFINITY) && overflowing(f64::MAX));
    }
}
