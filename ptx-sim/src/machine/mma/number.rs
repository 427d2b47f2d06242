//! The elements of operands as numbers: significand and exponent, infinity, or NaN.

use tma_model::mma::Operand;

/// The exponent of a zero, so low that its sum with any other exponent is below that of every
/// number.
pub(super) const NONE: i32 = -10_000;

/// An element of an operand, or an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// `significand` · 2^(`exponent` − fraction bits of the format). A subnormal has the least
    /// exponent and is not normalised. A zero has the exponent [`NONE`].
    Finite {
        significand: i32,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    Nan,
}

/// A floating-point format with a sign, exponent and fraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) fraction: u32,
    exponent: u32,
    /// Whether the greatest exponent encodes infinities and NaNs. If not, only the greatest pattern
    /// is a NaN.
    has_infinity: bool,
}

pub(super) const F32: Format = Format { fraction: 23, exponent: 8, has_infinity: true };
pub(super) const F16: Format = Format { fraction: 10, exponent: 5, has_infinity: true };

impl Format {
    /// Returns the format of an operand, and `None` for integers and bits. TF32 is read without its
    /// low 13 bits.
    pub(super) const fn of(operand: Operand) -> Option<Self> {
        match operand {
            Operand::F16 => Some(F16),
            Operand::Bf16 => Some(Self { fraction: 7, exponent: 8, has_infinity: true }),
            Operand::Tf32 => Some(Self { fraction: 10, exponent: 8, has_infinity: true }),
            Operand::E4m3 => Some(Self { fraction: 3, exponent: 4, has_infinity: false }),
            Operand::E5m2 => Some(Self { fraction: 2, exponent: 5, has_infinity: true }),
            Operand::S8 | Operand::U8 | Operand::B1 => None,
        }
    }

    pub(super) const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Decodes a number.
    #[inline]
    pub(super) const fn number(self, bits: u32) -> Number {
        let fraction = bits & ((1 << self.fraction) - 1);
        let exponent = bits >> self.fraction & ((1 << self.exponent) - 1);
        let negative = bits >> (self.fraction + self.exponent) & 1 == 1;
        let greatest = exponent == (1 << self.exponent) - 1;
        if greatest && self.has_infinity {
            return if fraction == 0 { Number::Infinite { negative } } else { Number::Nan };
        }
        if greatest && fraction == (1 << self.fraction) - 1 {
            return Number::Nan;
        }
        let (significand, exponent) = match exponent {
            0 if fraction == 0 => return Number::Finite { significand: 0, exponent: NONE },
            0 => (fraction, 1),
            _ => (fraction | 1 << self.fraction, exponent as i32),
        };
        let significand = significand as i32;
        let significand = if negative { -significand } else { significand };
        Number::Finite { significand, exponent: exponent - self.bias() }
    }
}

impl Number {
    /// Decodes an element of an operand.
    #[inline]
    pub(super) const fn of(operand: Operand, format: Format, bits: u32) -> Self {
        match operand {
            Operand::Tf32 => format.number(bits >> 13),
            Operand::F16
            | Operand::Bf16
            | Operand::E4m3
            | Operand::E5m2
            | Operand::S8
            | Operand::U8
            | Operand::B1 => format.number(bits),
        }
    }

    pub(super) const fn negated(self) -> Self {
        match self {
            Self::Finite { significand, exponent } => Self::Finite { significand: -significand, exponent },
            Self::Infinite { negative } => Self::Infinite { negative: !negative },
            Self::Nan => Self::Nan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(operand: Operand, bits: u32) -> f64 {
        let format = Format::of(operand).expect("a floating-point type");
        match Number::of(operand, format, bits) {
            Number::Finite { significand, exponent } => {
                f64::from(significand) * f64::from(exponent - format.fraction as i32).exp2()
            }
            Number::Infinite { negative } => {
                f64::from(if negative { f32::NEG_INFINITY } else { f32::INFINITY })
            }
            Number::Nan => f64::NAN,
        }
    }

    #[test]
    fn elements_have_their_values() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
            for (found, wanted) in [
                (value(Operand::F16, bits.into()), f64::from(half)),
                (value(Operand::Bf16, bits.into()), f64::from(brain)),
                (value(Operand::Tf32, u32::from(bits) << 16 | 0x1fff), f64::from(brain)),
            ] {
                assert!(found == wanted || found.is_nan() && wanted.is_nan(), "{bits:#x}: {found} {wanted}");
            }
        }
        for (bits, wanted) in
            [(0x7e, 448.0), (0x81, -0.001_953_125), (0x38, 1.0), (0x3c, 1.5), (0x08, 0.015_625)]
        {
            assert_eq!(value(Operand::E4m3, bits), wanted, "{bits:#x}");
        }
        assert!(value(Operand::E4m3, 0xff).is_nan());
        for (bits, wanted) in [(0x7b, 57344.0), (0x01, 0.000_015_258_789_062_5), (0xfc, f64::NEG_INFINITY)] {
            assert_eq!(value(Operand::E5m2, bits), wanted, "{bits:#x}");
        }
        assert!(value(Operand::E5m2, 0x7d).is_nan());
    }

    /// A NaN whose payload is only in the discarded bits becomes an infinity.
    #[test]
    fn tf32_has_no_low_bits() {
        assert_eq!(value(Operand::Tf32, 0x7f80_0001), f64::INFINITY);
        assert!(value(Operand::Tf32, 0x7f80_2000).is_nan());
        assert_eq!(value(Operand::Tf32, 0x3f80_1fff), 1.0);
    }
}
