//! Floating-point formats, and the conversion between their bits and exact values.

/// A binary floating-point format of up to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the significand without the hidden one.
    pub(crate) fraction: u32,
    /// Bits of the exponent.
    pub(crate) exponent: u32,
    /// Whether the top exponent encodes infinities and NaNs. `e4m3` has one NaN for each sign and
    /// no infinity.
    pub(crate) infinities: bool,
    /// Zero bits below the fraction: TF32 is a single whose last 13 bits are zero.
    pub(crate) below: u32,
    /// The NaN that operations return.
    pub(crate) nan: u64,
}

/// IEEE half.
pub(crate) const F16: Format = Format { fraction: 10, exponent: 5, infinities: true, below: 0, nan: 0x7fff };
/// bfloat16.
pub(crate) const BF16: Format = Format { fraction: 7, exponent: 8, infinities: true, below: 0, nan: 0x7fff };
/// IEEE single.
pub(crate) const F32: Format =
    Format { fraction: 23, exponent: 8, infinities: true, below: 0, nan: 0x7fff_ffff };
/// IEEE double. An invalid operation returns the negative quiet NaN, as on x86.
pub(crate) const F64: Format =
    Format { fraction: 52, exponent: 11, infinities: true, below: 0, nan: 0xfff8_0000_0000_0000 };
/// TF32, in the bits of a single.
pub(crate) const TF32: Format =
    Format { fraction: 10, exponent: 8, infinities: true, below: 13, nan: 0x7fff_e000 };
/// 8 bits, 4 of exponent.
pub(crate) const E4M3: Format = Format { fraction: 3, exponent: 4, infinities: false, below: 0, nan: 0x7f };
/// 8 bits, 5 of exponent.
pub(crate) const E5M2: Format = Format { fraction: 2, exponent: 5, infinities: true, below: 0, nan: 0x7f };

/// The rounding of a result that the format cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Round {
    /// `.rn`: to the nearest, ties to even.
    #[default]
    Nearest,
    /// `.rna`: to the nearest, ties away from zero.
    NearestAway,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: down.
    Down,
    /// `.rp`: up.
    Up,
}

/// An exact value, before rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Nan,
    Infinite { negative: bool },
    Finite(Finite),
}

/// `± mantissa · 2^exponent`. The last bit of a mantissa may be sticky, see [`jam`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finite {
    pub(crate) negative: bool,
    pub(crate) mantissa: u128,
    pub(crate) exponent: i32,
}

/// Shifts right with a sticky last bit: it is set if any bit that fell off was set, so that
/// rounding still sees a remainder.
pub(crate) fn jam(mantissa: u128, by: u32) -> u128 {
    match by {
        0 => mantissa,
        1..=127 => mantissa >> by | u128::from(mantissa & ((1 << by) - 1) != 0),
        _ => u128::from(mantissa != 0),
    }
}

impl Format {
    /// Returns the width of the format, without the zero bits below the fraction.
    fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub(crate) fn sign_bit(self) -> u64 {
        1 << (self.bits() - 1 + self.below)
    }

    fn top_exponent(self) -> u64 {
        (1 << self.exponent) - 1
    }

    /// Returns the bits of the largest finite value.
    fn largest(self) -> u64 {
        let last = if self.infinities {
            (self.top_exponent() << self.fraction) - 1
        } else {
            (1 << (self.bits() - 1)) - 2
        };
        last << self.below
    }

    fn infinity(self) -> u64 {
        if self.infinities { self.top_exponent() << self.fraction << self.below } else { self.nan }
    }

    /// Converts bits to a value. Subnormals become zero if `flush` is set.
    pub(crate) fn unpack(self, bits: u64, flush: bool) -> Value {
        let negative = bits & self.sign_bit() != 0;
        let bits = bits >> self.below;
        let fraction = bits & ((1 << self.fraction) - 1);
        let exponent = bits >> self.fraction & self.top_exponent();
        if self.infinities && exponent == self.top_exponent() {
            return if fraction == 0 { Value::Infinite { negative } } else { Value::Nan };
        }
        if !self.infinities && bits & !(1 << (self.bits() - 1)) == self.nan {
            return Value::Nan;
        }
        let hidden = u64::from(exponent != 0) << self.fraction;
        let mantissa = if exponent == 0 && flush { 0 } else { fraction | hidden };
        let exponent = exponent.max(1) as i32 - self.bias() - self.fraction as i32;
        Value::Finite(Finite { negative, mantissa: u128::from(mantissa), exponent })
    }

    /// Converts a value to bits. With `flush`, a result that is subnormal before rounding becomes
    /// zero.
    pub(crate) fn pack(self, value: Value, round: Round, flush: bool) -> u64 {
        match value {
            Value::Nan => self.nan,
            Value::Infinite { negative } => self.signed(negative, self.infinity()),
            Value::Finite(finite) => self.pack_finite(finite, round, flush),
        }
    }

    /// Converts like [`pack`](Self::pack), but a value that is too large becomes the largest finite
    /// one (`.satfinite`).
    pub(crate) fn pack_finite_only(self, value: Value, round: Round, flush: bool) -> u64 {
        match value {
            Value::Nan => self.nan,
            Value::Infinite { negative } => self.signed(negative, self.largest()),
            Value::Finite(finite) => {
                let bits = self.pack_finite(finite, round, flush);
                let magnitude = bits & !self.sign_bit();
                if magnitude > self.largest() { self.signed(finite.negative, self.largest()) } else { bits }
            }
        }
    }

    fn signed(self, negative: bool, magnitude: u64) -> u64 {
        if negative { magnitude | self.sign_bit() } else { magnitude }
    }

    fn pack_finite(self, finite: Finite, round: Round, flush: bool) -> u64 {
        let Finite { negative, mantissa, exponent } = finite;
        if mantissa == 0 {
            return self.signed(negative, 0);
        }
        let lowest = 1 - self.bias() - self.fraction as i32;
        let width = 128 - mantissa.leading_zeros() as i32;
        let normal = exponent + width - 1 - self.fraction as i32;
        if flush && normal < lowest {
            return self.signed(negative, 0);
        }
        // The exponent of the unit in the last place; subnormals share the lowest.
        let unit = normal.max(lowest);
        let rounded = round_to_unit(mantissa, exponent, unit, negative, round);
        let carried = rounded >> (self.fraction + 1) != 0;
        let (rounded, unit) = if carried { (rounded >> 1, unit + 1) } else { (rounded, unit) };
        let hidden = rounded >> self.fraction != 0;
        let field = if hidden { (unit - lowest + 1) as u64 } else { 0 };
        let limit = self.top_exponent() + u64::from(!self.infinities);
        let magnitude = if field < limit {
            (field << self.fraction | (rounded & ((1 << self.fraction) - 1))) << self.below
        } else {
            u64::MAX
        };
        if magnitude <= self.largest() {
            return self.signed(negative, magnitude);
        }
        let to_infinity = match round {
            Round::Nearest | Round::NearestAway => true,
            Round::Zero => false,
            Round::Down => negative,
            Round::Up => !negative,
        };
        self.signed(negative, if to_infinity { self.infinity() } else { self.largest() })
    }
}

/// Returns `mantissa · 2^exponent` in units of `2^unit`, rounded to an integer.
pub(crate) fn round_to_unit(mantissa: u128, exponent: i32, unit: i32, negative: bool, round: Round) -> u64 {
    if exponent >= unit {
        return (mantissa << (exponent - unit).clamp(0, 127)) as u64;
    }
    let by = (unit - exponent) as u32;
    // Two bits more than the result: the half and the sticky rest.
    let with_rest = if by >= 2 { jam(mantissa, by - 2) } else { mantissa << 1 };
    let whole = (with_rest >> 2) as u64;
    let rest = (with_rest & 3) as u64;
    let up = match round {
        Round::Nearest => rest > 2 || rest == 2 && whole & 1 == 1,
        Round::NearestAway => rest >= 2,
        Round::Zero => false,
        Round::Down => negative && rest != 0,
        Round::Up => !negative && rest != 0,
    };
    whole + u64::from(up)
}
