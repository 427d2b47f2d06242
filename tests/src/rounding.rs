//! Exactly rounded narrow floats, to compare conversions and arithmetic with.
//!
//! Numbers are taken as `f64`. Where one is not exact in `f64`, it is *rounded to odd* first: to the neighbour whose
//! last bit is 1. Rounding that once more, to fewer bits, gives what rounding the exact number would have given
//! (Boldo, Melquiond: "Emulation of FMA and correctly rounded sums").

/// A binary float of up to 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    /// The bits of the greatest finite number.
    greatest: u64,
    /// What greater numbers become.
    overflow: u64,
}

impl Format {
    /// IEEE 754 binary16.
    pub const F16: Self = Self { exponent_bits: 5, mantissa_bits: 10, greatest: 0x7bff, overflow: 0x7c00 };
    /// bfloat16.
    pub const BF16: Self = Self { exponent_bits: 8, mantissa_bits: 7, greatest: 0x7f7f, overflow: 0x7f80 };
    /// 8-bit float without infinities, saturating.
    pub const E4M3: Self = Self { exponent_bits: 4, mantissa_bits: 3, greatest: 0x7e, overflow: 0x7e };
    /// 8-bit float with infinities, saturating.
    pub const E5M2: Self = Self { exponent_bits: 5, mantissa_bits: 2, greatest: 0x7b, overflow: 0x7b };

    /// The bits of `x`, rounded to nearest, ties to even.
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
        // In units of the last place. Powers of two divide exactly.
        let units = (x.abs() / 2f64.powi(exponent - self.mantissa_bits as i32)).round_ties_even() as u64;
        // The leading 1 of a normal number counts the exponent up by one, and so does rounding up to a power of two.
        let bits = (((exponent - least_exponent) as u64) << self.mantissa_bits) + units;
        sign | if bits > self.greatest { self.overflow } else { bits }
    }

    /// One name for all NaNs, and the bits of anything else as they are.
    pub fn canonical(self, bits: u64) -> u64 {
        let magnitude = bits & !(1 << (self.exponent_bits + self.mantissa_bits));
        if magnitude > self.greatest.max(self.infinity()) { self.nan() } else { bits }
    }

    /// The bits of infinity, where there is one; e4m3 has a number there.
    fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    fn nan(self) -> u64 {
        (1 << (self.exponent_bits + self.mantissa_bits)) - 1
    }
}

/// An integer as `f64`, rounded to odd.
pub fn integer_to_odd(n: i128) -> f64 {
    let nearest = n as f64;
    to_odd(nearest, (n - nearest as i128) as f64)
}

/// `a + b`, rounded to odd.
pub fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // The exact error of the sum (Knuth: "The Art of Computer Programming", 4.2.2, theorem B).
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    if error.is_finite() { to_odd(sum, error) } else { sum }
}

/// What is `nearest + error` exactly, rounded to odd.
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

    /// Every number of a format is its own rounding, and what lies between two goes to the nearer.
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
