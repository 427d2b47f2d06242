//! TF32: the part of an `f32` that tensor cores read.

use std::fmt;

/// A 32-bit float with the exponent of `f32` and a mantissa of 10 bits: the part of an `f32` that
/// tensor cores read (PTX ISA, "Alternate Floating-Point Data Formats").
///
/// In memory it is the `f32` of the same value, whose low 13 bits are zero. Kernels store and
/// convert it, but compute with `f32`.
///
/// ```
/// # use tma_runtime::prelude::tf32;
/// assert_eq!(tf32::from_f32(1.0 + 1.0 / 1024.0).to_f32(), 1.0 + 1.0 / 1024.0);
/// assert_eq!(tf32::from_f32(1.0 + 1.0 / 2048.0).to_f32(), 1.0 + 1.0 / 1024.0);
/// ```
#[expect(non_camel_case_types, reason = "it is called as the other floats of kernels are")]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct tf32(u32);

/// The bits of an `f32` that a `tf32` omits.
const CUT: u32 = 0x1fff;
/// Half a unit in the last place.
const HALF: u32 = 0x1000;

impl tf32 {
    /// Rounds to the nearest number, ties away from zero. Overflow becomes infinity.
    ///
    /// PTX: `cvt.rna.tf32.f32`.
    pub const fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        if value.is_nan() {
            return Self((bits | 1 << 22) & !CUT);
        }
        // A carry out of the mantissa increments the exponent, up to that of infinity.
        Self((bits + HALF) & !CUT)
    }

    /// Rounds to the nearest number, ties away from zero.
    pub fn from_f64(value: f64) -> Self {
        // An f32 rounded to odd, whose last bit records inexactness, rounds in the same way as the
        // f64: S. Boldo and G. Melquiond, "When double rounding is odd", 2005.
        let near = value as f32;
        let cut = if f64::from(near).abs() > value.abs() { near.to_bits() - 1 } else { near.to_bits() };
        let inexact = near.is_finite() && f64::from(near) != value;
        Self::from_f32(f32::from_bits(if inexact { cut | 1 } else { near.to_bits() }))
    }

    /// Returns whether the value is NaN.
    pub const fn is_nan(self) -> bool {
        self.to_f32().is_nan()
    }

    /// Returns the same number as an `f32`.
    pub const fn to_f32(self) -> f32 {
        f32::from_bits(self.0)
    }

    /// Returns the same number as an `f64`.
    pub const fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }

    /// Returns the number with these bits of an `f32`. The low 13 bits are kept in memory, and
    /// ignored by tensor cores.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the bits, in the format of an `f32`.
    pub const fn to_bits(self) -> u32 {
        self.0
    }
}

impl PartialEq for tf32 {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for tf32 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}

impl fmt::Debug for tf32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f32().fmt(f)
    }
}

impl fmt::Display for tf32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f32().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_round_away_from_zero() {
        let step = 2f32.powi(-10);
        assert_eq!(tf32::from_f32(1.0 + step * 0.5).to_f32(), 1.0 + step);
        assert_eq!(tf32::from_f32(-1.0 - step * 0.5).to_f32(), -1.0 - step);
        assert_eq!(tf32::from_f32(1.0 + step * 0.49).to_f32(), 1.0);
    }

    #[test]
    fn the_ends_of_the_range() {
        assert!(tf32::from_f32(f32::MAX).to_f32().is_infinite());
        assert_eq!(tf32::from_f32(f32::NEG_INFINITY).to_f32(), f32::NEG_INFINITY);
        assert!(tf32::from_f32(f32::from_bits(0x7f80_0001)).to_f32().is_nan());
        assert_eq!(tf32::from_f32(f32::from_bits(0x0000_1000)).to_bits(), 0x0000_2000);
        assert_eq!(tf32::from_f32(-0.0).to_bits(), 0x8000_0000);
    }

    #[test]
    fn a_double_is_rounded_once() {
        // Just below a tie, from which an f32 cannot distinguish it.
        let below = 1.0 + 2f64.powi(-11) - 2f64.powi(-40);
        assert_eq!(tf32::from_f64(below).to_f32(), 1.0);
        assert_eq!(tf32::from_f64(-below).to_f32(), -1.0);
        assert_eq!(tf32::from_f64(1.0 + 2f64.powi(-11)).to_f64(), 1.0 + 2f64.powi(-10));
        assert!(tf32::from_f64(f64::NAN).to_f32().is_nan());
        assert!(tf32::from_f64(1e300).to_f32().is_infinite());
    }
}
