//! Random numbers of many kinds, reproducible on every machine.

use std::fmt;

use tma_model::mma::{Accumulator, Operand};

use crate::number::{Float, Value, value};

/// A generator of random bits: SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
/// Generators").
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates the generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `count`.
    pub const fn below(&mut self, count: u32) -> u32 {
        (((self.next() >> 32) * count as u64) >> 32) as u32
    }

    /// Returns true with a probability of 1 in `count`.
    pub const fn once_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    /// Returns one element of a list, which must not be empty.
    pub const fn choose<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }
}

/// The kind of numbers in operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Numbers near 1, of either sign; integers of every size.
    Near,
    /// Small integers, whose sums are exact.
    Small,
    /// Exponents at most 12 away from that of 1: some terms are truncated, but not all.
    Spread,
    /// All finite numbers.
    Wide,
    /// Powers of two and 1.5 times these: ties, and terms at the edge of the precision.
    Powers,
    /// Products that cancel in pairs, sometimes except for a unit in the last place.
    Cancelling,
    /// A that is subnormal or nearly so, with B near 1 or also subnormal.
    Subnormal,
    /// Numbers close to the largest.
    Huge,
    /// Zeros of both signs, with few other numbers.
    Zeros,
    /// Products that are all negative zeros.
    NegativeZeros,
    /// Numbers near 1, and occasionally an infinity or a NaN with any payload.
    Special,
    /// Random bits.
    Bits,
    /// A has numbered elements and B selects them, which reveals the layout of each operand.
    Numbered,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Near,
        Self::Small,
        Self::Spread,
        Self::Wide,
        Self::Powers,
        Self::Cancelling,
        Self::Subnormal,
        Self::Huge,
        Self::Zeros,
        Self::NegativeZeros,
        Self::Special,
        Self::Bits,
        Self::Numbered,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Small => "small",
            Self::Spread => "spread",
            Self::Wide => "wide",
            Self::Powers => "powers",
            Self::Cancelling => "cancelling",
            Self::Subnormal => "subnormal",
            Self::Huge => "huge",
            Self::Zeros => "zeros",
            Self::NegativeZeros => "negative-zeros",
            Self::Special => "special",
            Self::Bits => "bits",
            Self::Numbered => "numbered",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The operand and position of an element: row of A or column of B, and index along K. For a sparse
/// A the index counts the stored elements.
#[derive(Clone, Copy, Debug)]
pub struct ElementIndex {
    /// Whether the operand is B.
    pub right: bool,
    /// Index of the row or column.
    pub line: u32,
    /// Index along K.
    pub k: u32,
}

/// Draws an element of an operand.
pub fn element(kind: Kind, operand: Operand, at: ElementIndex, rng: &mut Rng) -> u32 {
    match Float::of(operand) {
        Some(float) => of_float(kind, float, at, rng),
        None => of_integer(kind, operand, at, rng),
    }
}

fn of_integer(kind: Kind, operand: Operand, at: ElementIndex, rng: &mut Rng) -> u32 {
    let mask = (1 << operand.bits()) - 1;
    let bits = match kind {
        Kind::Numbered if at.right => u32::from(at.k % 64 == at.line % 64),
        Kind::Numbered => at.line * 37 + at.k,
        Kind::Small => rng.below(3),
        Kind::Huge => rng.choose(&[0x7f, 0x80, 0xff, 0x7e, 0x81]),
        Kind::Zeros | Kind::NegativeZeros => {
            if rng.once_in(8) {
                rng.below(256)
            } else {
                0
            }
        }
        Kind::Near
        | Kind::Spread
        | Kind::Wide
        | Kind::Powers
        | Kind::Cancelling
        | Kind::Subnormal
        | Kind::Special
        | Kind::Bits => rng.below(256),
    };
    bits & mask
}

/// Draws a number whose exponent is `low` to `high` away from that of 1, within the format's range.
fn around(float: Float, low: i32, high: i32, rng: &mut Rng) -> u32 {
    let exponent = low + rng.below((high - low + 1) as u32) as i32 + float.bias();
    let exponent = exponent.clamp(0, float.greatest() as i32 - 1) as u32;
    float.bits(rng.once_in(2), exponent, rng.next() as u32)
}

fn of_float(kind: Kind, float: Float, at: ElementIndex, rng: &mut Rng) -> u32 {
    let one = float.bits(false, float.bias() as u32, 0);
    let zero = |rng: &mut Rng| float.bits(rng.once_in(2), 0, 0);
    match kind {
        Kind::Near => around(float, -2, 2, rng),
        Kind::Small => float.nearest(f64::from(rng.below(5)) - 2.0),
        Kind::Spread => around(float, -12, 12, rng),
        Kind::Wide => match rng.below(float.greatest() + 1) {
            // The largest exponent of e4m3 includes a NaN.
            top if top == float.top() => float.bits(rng.once_in(2), top, 0),
            exponent => float.bits(rng.once_in(2), exponent, rng.next() as u32),
        },
        Kind::Powers => {
            let exponent = float.bias() - 8 + rng.below(17) as i32;
            let fraction = u32::from(rng.once_in(3)) << (float.fraction - 1);
            float.bits(rng.once_in(2), exponent.clamp(0, float.greatest() as i32 - 1) as u32, fraction)
        }
        Kind::Cancelling => cancelling(float, at, rng),
        Kind::Subnormal if at.right && at.line.is_multiple_of(2) => around(float, -1, 1, rng),
        Kind::Subnormal => float.bits(rng.once_in(2), rng.below(3) / 2, rng.next() as u32),
        Kind::Huge => {
            let exponent = float.greatest() - rng.below(3).min(float.greatest());
            let fraction = if rng.once_in(4) { u32::MAX - 1 } else { rng.next() as u32 & !1 };
            // In odd columns of B only the sum overflows, and not the individual products.
            let small = at.right && at.line % 2 == 1;
            let exponent = if small { float.bias() as u32 } else { exponent };
            float.bits(rng.once_in(2), exponent, fraction)
        }
        Kind::Zeros => {
            if rng.once_in(8) {
                around(float, -3, 3, rng)
            } else {
                zero(rng)
            }
        }
        Kind::NegativeZeros => float.bits(!at.right, if at.right { float.bias() as u32 } else { 0 }, 0),
        Kind::Special => special(float, rng),
        Kind::Bits => (rng.next() as u32) >> (32 - 1 - float.exponent - float.fraction - float.ignored),
        Kind::Numbered if at.right => {
            if at.k % 64 == at.line % 64 {
                one
            } else {
                0
            }
        }
        // All finite positive numbers, and no zeros.
        Kind::Numbered => {
            let count = float.top() << float.fraction;
            (1 + (at.line * 67 + at.k) % (count - 1)) << float.ignored
        }
    }
}

/// Draws equal numbers for an even k and the next, but with opposite signs in A.
fn cancelling(float: Float, at: ElementIndex, rng: &mut Rng) -> u32 {
    let pair = u64::from(at.right) << 40 | u64::from(at.line) << 20 | u64::from(at.k / 2);
    let mut pair = Rng::new(pair);
    let bits = around(float, -4, 4, &mut pair);
    let sign = 1 << (float.exponent + float.fraction + float.ignored);
    let unit = 1 << float.ignored;
    let bits = if at.right || at.k.is_multiple_of(2) { bits } else { bits ^ sign };
    if rng.once_in(6) { bits ^ unit } else { bits }
}

fn special(float: Float, rng: &mut Rng) -> u32 {
    match rng.below(64) {
        0 => float.bits(rng.once_in(2), float.top(), if float.has_infinity { 0 } else { u32::MAX }),
        1 if rng.once_in(4) => float.bits(rng.once_in(2), float.top(), 1 << rng.below(float.fraction)),
        2 => float.bits(rng.once_in(2), 0, 0),
        _ => around(float, -2, 2, rng),
    }
}

/// Returns an element as a number, or NaN if it is not finite.
pub fn rough(operand: Operand, bits: u32) -> f64 {
    match value(operand, bits) {
        Value::Finite { value, .. } => value,
        Value::Infinite(_) | Value::Nan => f64::NAN,
    }
}

/// The kind of numbers in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Addend {
    /// Zero.
    Zero,
    /// Negative zero, or -1 for integers.
    NegativeZero,
    /// Numbers of the magnitude of the sums.
    Near,
    /// Any finite number.
    Wide,
    /// Approximately the negative of the sum of products.
    Opposite,
    /// Random bits, occasionally an infinity or a NaN. For integers, numbers near the smallest and
    /// largest.
    Bits,
    /// A NaN that must not be read: `scale-d` is false in the first instruction.
    Absent,
}

impl Addend {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Zero, Self::NegativeZero, Self::Near, Self::Wide, Self::Opposite, Self::Bits, Self::Absent];

    const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::NegativeZero => "negative-zero",
            Self::Near => "near",
            Self::Wide => "wide",
            Self::Opposite => "opposite",
            Self::Bits => "bits",
            Self::Absent => "absent",
        }
    }
}

impl fmt::Display for Addend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Draws an element of C. `sum` is the sum of the products of its row and column, truncated for
/// integers.
pub fn addend(kind: Addend, d: Accumulator, sum: f64, rng: &mut Rng) -> u32 {
    let Some(float) = Float::of_sum(d) else {
        return match kind {
            Addend::Zero => 0,
            Addend::NegativeZero => u32::MAX,
            Addend::Near => rng.below(20_001).wrapping_sub(10_000),
            Addend::Opposite => (-(sum as i64)) as u32 ^ rng.below(2),
            Addend::Bits => (i32::MAX as u32).wrapping_add(rng.below(20_001)).wrapping_sub(10_000),
            Addend::Wide | Addend::Absent => rng.next() as u32,
        };
    };
    match kind {
        Addend::Zero => 0,
        Addend::NegativeZero => float.bits(true, 0, 0),
        Addend::Near => around(float, -3, 6, rng),
        Addend::Wide => float.bits(rng.once_in(2), rng.below(float.top()), rng.next() as u32),
        Addend::Opposite if sum.is_finite() => float.nearest(-sum) ^ rng.below(2),
        Addend::Opposite => 0,
        Addend::Bits => {
            let exponent = if rng.once_in(8) { float.top() } else { rng.below(float.top() + 1) };
            let fraction = if rng.once_in(2) { 0 } else { rng.next() as u32 };
            float.bits(rng.once_in(2), exponent, fraction)
        }
        Addend::Absent => float.bits(rng.once_in(2), float.top(), 1 | rng.next() as u32),
    }
}
