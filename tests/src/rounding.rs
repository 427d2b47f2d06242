//! Exactly rounded narrow floats, as a reference for conversions and arithmetic.
//!
//! Numbers are passed as `f64`. A number that is not exact in `f64` is *rounded to odd* first: to
//! the adjacent number whose last bit is 1. Rounding that once more, to fewer bits, produces the
//! same result as rounding the exact number (Boldo, Melquiond: "Emulation of FMA and correctly
//! rounded sums").

/// A binary float of up to 19 bits.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    /// The bits of the greatest finite number.
    greatest: u64,
    /// The bits that greater numbers become.
    overflow: u64,
    /// The choice between two equally near numbers: the even one, or the one farther from zero.
    ties: Ties,
}

#[derive(Clone, Copy, Debug)]
enum Ties {
    ToEven,
    Away,
}

impl Format {
    /// IEEE 754 binary16.
    pub const F16: Self = Self::to_even(5, 10, 0x7bff, 0x7c00);
    /// bfloat16.
    pub const BF16: Self = Self::to_even(8, 7, 0x7f7f, 0x7f80);
    /// 8-bit float without infinities, saturating.
    pub const E4M3: Self = Self::to_even(4, 3, 0x7e, 0x7e);
    /// 8-bit float with infinities, saturating.
    pub const E5M2: Self = Self::to_even(5, 2, 0x7b, 0x7b);
    /// The 19 bits of an `f32` that tensor cores read (`cvt.rna`: ties away from zero). In an `f32`
    /// they are 13 positions higher.
    pub const TF32: Self = Self { ties: Ties::Away, ..Self::to_even(8, 10, 0x3_fbff, 0x3_fc00) };

    const fn to_even(exponent_bits: u32, mantissa_bits: u32, greatest: u64, overflow: u64) -> Self {
        Self { exponent_bits, mantissa_bits, greatest, overflow, ties: Ties::ToEven }
    }

    /// Returns the bits of `x`, rounded to nearest.
    pub fn round(self, x: f64) -> u64 {
        let sign = u64::from(x.is_sign_negative()) << (self.exponent_bits + self.mantissa_bits);
        if x.is_nan() {
            return self.nan();
        }
        if x.is_infinite() {
            return sign | self.overflow;
        }
        let bias = (1 << (self.exponent_bits - 1)) - 1;
        let least_exponent = 1 - bias;
        let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least_exponent);
        // In units of the last place. Division by a power of two is exact.
        let exact = x.abs() / 2f64.powi(exponent - self.mantissa_bits as i32);
        let units = match self.ties {
            Ties::ToEven => exact.round_ties_even(),
            Ties::Away => exact.round(),
        } as u64;
        // The leading 1 of a normal number increments the exponent, and so does rounding up to a
        // power of two.
        let bits = (((exponent - least_exponent) as u64) << self.mantissa_bits) + units;
        sign | if bits > self.greatest { self.overflow } else { bits }
    }

    /// Returns the number with these bits, which must be those of a finite number without its sign.
    pub fn value(self, bits: u64) -> f64 {
        let least_exponent = 2 - (1 << (self.exponent_bits - 1));
        let (exponent, fraction) = (bits >> self.mantissa_bits, bits & ((1 << self.mantissa_bits) - 1));
        let leading = u64::from(exponent > 0) << self.mantissa_bits;
        let unit = least_exponent + exponent.saturating_sub(1) as i32 - self.mantissa_bits as i32;
        (leading + fraction) as f64 * 2f64.powi(unit)
    }

    /// Returns numbers halfway between two adjacent ones of the format, which expose a wrong
    /// rounding. Of each power of two these are the ones with the least and the greatest fractions,
    /// and every `step`-th of the others.
    pub fn midpoints(self, step: u64) -> impl Iterator<Item = f64> {
        let last = (1 << self.mantissa_bits) - 1;
        let chosen = move |bits: &u64| {
            matches!(bits & last, 0 | 1) || (bits & last) + 1 >= last || bits.is_multiple_of(step)
        };
        (0..self.greatest).filter(chosen).map(move |bits| (self.value(bits) + self.value(bits + 1)) / 2.0)
    }

    /// Maps all NaNs to the same bits, and leaves all other bits unchanged.
    pub fn canonical(self, bits: u64) -> u64 {
        let magnitude = bits & !(1 << (self.exponent_bits + self.mantissa_bits));
        if magnitude > self.greatest.max(self.infinity()) { self.nan() } else { bits }
    }

    /// Returns the bits of infinity, if the format has it; in e4m3 they are a number.
    fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    fn nan(self) -> u64 {
        (1 << (self.exponent_bits + self.mantissa_bits)) - 1
    }
}

/// Returns an integer as `f64`, rounded to odd.
pub fn integer_to_odd(n: i128) -> f64 {
    let nearest = n as f64;
    to_odd(nearest, (n - nearest as i128) as f64)
}

/// Returns `a + b`, rounded to odd.
pub fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // The exact error of the sum (Knuth: "The Art of Computer Programming", 4.2.2, theorem B).
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    if error.is_finite() { to_odd(sum, error) } else { sum }
}

/// Returns the exact value `nearest + error`, rounded to odd.
fn to_odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || nearest.to_bits() & 1 == 1 {
        nearest
    } else if error > 0.0 {
        nearest.next_up()
    } else {
        nearest.next_down()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma_runtime::prelude::*;

    /// Every number of a format rounds to itself, and numbers between two round to the nearer one.
    fn keeps_every_number(format: Format, last: u64, value: impl Fn(u64) -> f64) {
        for bits in 0..=format.greatest {
            assert_eq!(format.round(value(bits)), bits);
            assert_eq!(format.round(-value(bits)), bits | (last + 1));
            if bits < format.greatest {
                let middle = (value(bits) + value(bits + 1)) / 2.0;
                assert_eq!(format.round(middle), bits + (bits & 1), "a tie goes to even");
                assert_eq!(format.round(middle.next_down()), bits);
                assert_eq!(format.round(middle.next_up()), bits + 1);
            }
        }
    }

    #[test]
    fn narrow_floats_round_to_nearest_even() {
        keeps_every_number(Format::F16, 0x7fff, |bits| f16::from_bits(bits as u16).to_f64());
        keeps_every_number(Format::BF16, 0x7fff, |bits| bf16::from_bits(bits as u16).to_f64());
        keeps_every_number(Format::E4M3, 0x7f, |bits| e4m3::from_bits(bits as u8).to_f64());
        keeps_every_number(Format::E5M2, 0x7f, |bits| e5m2::from_bits(bits as u8).to_f64());
    }

    #[test]
    fn tf32_rounds_ties_away_from_zero() {
        for bits in 0..Format::TF32.greatest {
            let (this, next) = (Format::TF32.value(bits), Format::TF32.value(bits + 1));
            assert_eq!(f32::from_bits((bits << 13) as u32), this as f32);
            let middle = (this + next) / 2.0;
            let rounded = [middle.next_down(), middle, -middle].map(|x| Format::TF32.round(x));
            assert_eq!(rounded, [bits, bits + 1, (bits + 1) | 1 << 18]);
        }
        assert_eq!(Format::TF32.round(f64::from(f32::MAX)), 0x3_fc00);
    }

    #[test]
    fn midpoints_lie_between_numbers() {
        assert_eq!(Format::E5M2.midpoints(1).count(), 0x7b);
        assert!(Format::F16.midpoints(7).any(|middle| middle == 1.0 + 2f64.powi(-11)));
    }

    /// The host's own types round numbers halfway between two of theirs, and next to these, alike.
    #[test]
    fn the_hosts_types_round_as_the_formats_do() {
        let signed = |x: f64| [x, -x];
        let canonical = |format: Format, bits: u64| format.canonical(bits);
        for middle in [Format::F16, Format::BF16, Format::E4M3, Format::E5M2, Format::TF32]
            .into_iter()
            .flat_map(|format| format.midpoints(17))
            .flat_map(signed)
        {
            let single = middle as f32;
            for x in [single.next_down(), single, single.next_up()] {
                let wanted = |format: Format| canonical(format, format.round(f64::from(x)));
                assert_eq!(u64::from(f16::from_f32(x).to_bits()), wanted(Format::F16), "{x:e}");
                assert_eq!(u64::from(bf16::from_f32(x).to_bits()), wanted(Format::BF16), "{x:e}");
                assert_eq!(u64::from(e4m3::from_f32(x).to_bits()), wanted(Format::E4M3), "{x:e}");
                assert_eq!(u64::from(e5m2::from_f32(x).to_bits()), wanted(Format::E5M2), "{x:e}");
                assert_eq!(u64::from(tf32::from_f32(x).to_bits()), wanted(Format::TF32) << 13, "{x:e}");
            }
            for x in [middle.next_down(), middle, middle.next_up()] {
                let wanted = |format: Format| canonical(format, format.round(x));
                assert_eq!(u64::from(e4m3::from_f64(x).to_bits()), wanted(Format::E4M3), "{x:e}");
                assert_eq!(u64::from(e5m2::from_f64(x).to_bits()), wanted(Format::E5M2), "{x:e}");
                assert_eq!(u64::from(tf32::from_f64(x).to_bits()), wanted(Format::TF32) << 13, "{x:e}");
            }
        }
    }

    #[test]
    fn what_is_too_great_is_infinite_or_saturates() {
        assert_eq!(Format::F16.round(65519.0), 0x7bff);
        assert_eq!(Format::F16.round(65520.0), 0x7c00);
        assert_eq!(Format::E4M3.round(-1e9), 0xfe);
        assert_eq!(Format::E5M2.round(f64::INFINITY), 0x7b);
    }

    #[test]
    fn nans_have_one_name() {
        assert_eq!(Format::F16.canonical(0xfc01), Format::F16.round(f64::NAN));
        assert_eq!(Format::E4M3.canonical(0xff), Format::E4M3.round(f64::NAN));
        assert_eq!(Format::E4M3.canonical(0x7e), 0x7e);
        assert_eq!(Format::BF16.canonical(0xff80), 0xff80);
    }

    #[test]
    fn rounding_to_odd_keeps_what_a_second_rounding_needs() {
        // One above a tie of bf16 at 2^60: rounded to nearest it would become the tie.
        let tie = (1i128 << 60) + (1 << 52);
        assert_eq!(Format::BF16.round(integer_to_odd(tie)), Format::BF16.round(2f64.powi(60)));
        assert_eq!(Format::BF16.round(integer_to_odd(tie + 1)), Format::BF16.round(2f64.powi(60)) + 1);
        assert_eq!(sum_to_odd(1.0, 0.5), 1.5);
        assert_eq!(sum_to_odd(1.0, -1e-300), 1f64.next_down());
    }
}
