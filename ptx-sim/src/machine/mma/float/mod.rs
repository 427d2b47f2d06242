//! Floating-point dot products, bit for bit as on the tensor cores of an H200.
//!
//! These rules are not documented. They were found by replaying constructed and random operands on
//! an H200, starting from MMA-Sim (arXiv 2511.10909). The products of one instruction and C are
//! added at once, and their order does not matter:
//!
//! 1. A product is the exact product of the significands, not normalised, with the sum of the
//!    exponents.
//! 2. The greatest exponent is taken over all products and C that are not zero.
//! 3. Each term is truncated towards zero to a number of fraction bits relative to it. The sum of
//!    the truncated terms is exact.
//! 4. The sum is truncated to the fraction bits of the result or, for f16, rounded once to nearest
//!    even. Underflow is gradual, overflow results in an infinity, and a zero is positive.
//! 5. A NaN, infinity times zero, and infinities of both signs result in the single canonical NaN.

use tma_model::mma::{Accumulator, Operand};

use super::number::{F16, F32, Format, NONE, Number};

/// The precision and rounding of an instruction's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundingRule {
    /// Fraction bits that a term keeps below the greatest exponent.
    kept: u32,
    output: Output,
}

/// The format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// f32, of which only the first `fraction` fraction bits are kept.
    F32 {
        fraction: u32,
    },
    F16,
}

/// Fraction bits of terms: for products of 16-bit and 32-bit types, and of 8-bit types.
const FRACTION_BITS: u32 = 25;
const FRACTION_BITS_FP8: u32 = 13;

impl RoundingRule {
    /// Returns the rule of `wgmma` with these types of A and D, and `None` for integers and bits.
    pub(super) const fn of(operand: Operand, d: Accumulator) -> Option<Self> {
        let (kept, fraction) = match operand {
            Operand::F16 | Operand::Bf16 | Operand::Tf32 => (FRACTION_BITS, F32.fraction),
            Operand::E4m3 | Operand::E5m2 => (FRACTION_BITS_FP8, FRACTION_BITS_FP8),
            Operand::S8 | Operand::U8 | Operand::B1 => return None,
        };
        match d {
            Accumulator::F32 => Some(Self { kept, output: Output::F32 { fraction } }),
            Accumulator::F16 => Some(Self { kept, output: Output::F16 }),
            Accumulator::S32 => None,
        }
    }

    /// Returns the format of C and D.
    const fn format(self) -> Format {
        match self.output {
            Output::F32 { .. } => F32,
            Output::F16 => F16,
        }
    }

    const fn nan(self) -> u32 {
        match self.output {
            Output::F32 { .. } => 0x7fff_ffff,
            Output::F16 => 0x7fff,
        }
    }

    const fn infinity(self, negative: bool) -> u32 {
        match self.output {
            Output::F32 { .. } => 0x7f80_0000 | (negative as u32) << 31,
            Output::F16 => 0x7c00 | (negative as u32) << 15,
        }
    }
}

/// A row of A or a column of B, prepared for multiplication.
#[derive(Clone, Debug)]
pub(super) struct Line<const K: usize> {
    significands: [i32; K],
    exponents: [i32; K],
    /// All numbers, if there are infinities or NaNs among them.
    special: Option<Box<[Number; K]>>,
    /// A bit for each element that is present: all except those that a sparse A omits.
    present: u64,
}

impl<const K: usize> Line<K> {
    /// Prepares these numbers. Significands are shifted left by `shift`, so that a product has the
    /// fraction bits that terms keep.
    pub(super) fn new(numbers: [Number; K], shift: u32) -> Self {
        let mut line = Self { significands: [0; K], exponents: [NONE; K], special: None, present: u64::MAX };
        for (k, number) in numbers.iter().enumerate() {
            match *number {
                Number::Finite { significand, exponent } => {
                    line.significands[k] = significand << shift;
                    line.exponents[k] = exponent;
                }
                Number::Infinite { .. } | Number::Nan => line.special = Some(Box::new(numbers)),
            }
        }
        line
    }

    /// Prepares the first of these numbers at the given positions. All other positions are omitted.
    pub(super) fn sparse(numbers: &[Number; K], positions: &[u8], shift: u32) -> Self {
        let mut spread = [Number::Finite { significand: 0, exponent: NONE }; K];
        let mut present = 0;
        for (number, position) in numbers.iter().zip(positions) {
            spread[usize::from(*position)] = *number;
            present |= 1 << position;
        }
        Self { present, ..Self::new(spread, shift) }
    }

    fn number(&self, k: usize) -> Number {
        match &self.special {
            Some(numbers) => numbers[k],
            None => Number::Finite { significand: self.significands[k], exponent: self.exponents[k] },
        }
    }
}

/// Returns the shift of A's significands that gives products the fraction bits that terms keep.
pub(super) const fn shift(rule: RoundingRule, a: Format, b: Format) -> u32 {
    rule.kept - a.fraction - b.fraction
}

/// Returns the dot product of `a` and `b`, plus `c` if there is one. `a` must be shifted.
#[inline]
pub(super) fn dot<const K: usize>(rule: RoundingRule, a: &Line<K>, b: &Line<K>, c: Option<u32>) -> u32 {
    let format = rule.format();
    let c = c.map_or(Number::Finite { significand: 0, exponent: NONE }, |bits| format.number(bits));
    let is_special = a.special.is_some() || b.special.is_some() || !matches!(c, Number::Finite { .. });
    if is_special && let Some(bits) = special(rule, a, b, c) {
        return bits;
    }
    let Number::Finite { significand, exponent } = c else { return rule.nan() };
    let mut greatest = exponent;
    for k in 0..K {
        greatest = greatest.max(a.exponents[k] + b.exponents[k]);
    }
    let mut products = 0_i32;
    for k in 0..K {
        let product = a.significands[k] * b.significands[k];
        let below = (greatest - a.exponents[k] - b.exponents[k]).min(31);
        // Truncates towards zero by shifting the magnitude.
        let sign = product >> 31;
        products += (((product ^ sign).wrapping_sub(sign) >> below) ^ sign).wrapping_sub(sign);
    }
    let sum = i64::from(products) + aligned(significand, format.fraction, rule.kept, greatest - exponent);
    rounded(rule, sum, greatest - rule.kept as i32)
}

/// Returns C as a term, `below` bits below the greatest exponent.
fn aligned(significand: i32, fraction: u32, kept: u32, below: i32) -> i64 {
    let (term, up) = (i64::from(significand.unsigned_abs()), kept as i32 - fraction as i32 - below);
    let term = if up >= 0 { term << up } else { term >> (-up).min(63) };
    if significand < 0 { -term } else { term }
}

/// Returns `sum` · 2^`exponent` in the format of the result.
fn rounded(rule: RoundingRule, sum: i64, exponent: i32) -> u32 {
    if sum == 0 {
        return 0;
    }
    let (negative, magnitude) = (sum < 0, sum.unsigned_abs());
    let top = exponent + 63 - magnitude.leading_zeros() as i32;
    let (format, fraction) = match rule.output {
        Output::F32 { fraction } => (F32, fraction),
        Output::F16 => (F16, F16.fraction),
    };
    let bias = format.bias();
    if top > bias {
        return rule.infinity(negative);
    }
    // The exponent of the lowest bit that is kept.
    let lowest = top.max(1 - bias) - fraction as i32;
    let down = lowest - exponent;
    let kept = match down {
        ..=0 => magnitude << -down,
        1..=63 => {
            let kept = magnitude >> down;
            let (rest, half) = (magnitude & ((1 << down) - 1), 1_u64 << (down - 1));
            let up = rest > half || rest == half && kept & 1 == 1;
            kept + u64::from(up && rule.output == Output::F16)
        }
        _ => 0,
    };
    if kept == 0 {
        return 0;
    }
    // The leading bit of a normal number adds 1 to the exponent field, and so does a bit that
    // rounding carried out.
    let field = (top.max(1 - bias) + bias - 1) as u32;
    let bits = (field << format.fraction) + ((kept as u32) << (format.fraction - fraction));
    let infinity = rule.infinity(false);
    if bits >= infinity { rule.infinity(negative) } else { bits | rule.infinity(negative) ^ infinity }
}

/// Returns a sum with infinities or NaNs, or `None` if they all belong to positions that a sparse A
/// omits.
#[cold]
fn special<const K: usize>(rule: RoundingRule, a: &Line<K>, b: &Line<K>, c: Number) -> Option<u32> {
    let mut infinities = [false; 2];
    let mut add = |negative: bool| infinities[usize::from(negative)] = true;
    let is_negative = |number| match number {
        Number::Finite { significand, .. } => significand < 0,
        Number::Infinite { negative } => negative,
        Number::Nan => false,
    };
    for k in (0..K).filter(|k| a.present >> k & 1 == 1) {
        // For a finite number only its sign matters, and whether it is zero.
        let pair = (a.number(k), b.number(k));
        match pair {
            (Number::Nan, _) | (_, Number::Nan) => return Some(rule.nan()),
            (Number::Infinite { .. }, Number::Finite { significand: 0, .. })
            | (Number::Finite { significand: 0, .. }, Number::Infinite { .. }) => {
                return Some(rule.nan());
            }
            (Number::Infinite { .. }, _) | (_, Number::Infinite { .. }) => {
                add(is_negative(pair.0) != is_negative(pair.1));
            }
            (Number::Finite { .. }, Number::Finite { .. }) => {}
        }
    }
    match c {
        Number::Nan => return Some(rule.nan()),
        Number::Infinite { negative } => add(negative),
        Number::Finite { .. } => {}
    }
    match infinities {
        [false, false] => None,
        [true, true] => Some(rule.nan()),
        [_, negative] => Some(rule.infinity(negative)),
    }
}

#[cfg(test)]
mod tests;
