//! The types of elements, as bits and as `f64`.

use tma_model::mma::{Accumulator, Operand};

/// A floating-point format: sign, exponent, fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Float {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the fraction.
    pub fraction: u32,
    /// Bits below the fraction, which are ignored.
    pub ignored: u32,
    /// Whether the largest exponent is reserved for infinities and NaNs. Otherwise only the largest
    /// bit pattern is a NaN.
    pub has_infinity: bool,
}

/// The value of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, and the power of two of its exponent; 0 for zeros.
    #[allow(missing_docs)]
    Finite { value: f64, scale: f64 },
    /// An infinity, and whether it is negative.
    Infinite(bool),
    /// A NaN.
    Nan,
}

impl Value {
    /// Creates an integer, which has no exponent.
    pub fn integer(value: i64) -> Self {
        Self::Finite { value: value as f64, scale: 1.0 }
    }
}

/// f32, which is also a format of D.
pub const F32: Float = Float { exponent: 8, fraction: 23, ignored: 0, has_infinity: true };
/// f16, which is also a format of D.
pub const F16: Float = Float { exponent: 5, fraction: 10, ignored: 0, has_infinity: true };

impl Float {
    /// Returns the format of an operand, or `None` for integers and bits.
    pub const fn of(operand: Operand) -> Option<Self> {
        match operand {
            Operand::F16 => Some(F16),
            Operand::Bf16 => Some(Self { fraction: 7, ..F32 }),
            Operand::Tf32 => Some(Self { fraction: 10, ignored: 13, ..F32 }),
            Operand::E4m3 => Some(Self { exponent: 4, fraction: 3, has_infinity: false, ..F16 }),
            Operand::E5m2 => Some(Self { fraction: 2, ..F16 }),
            Operand::S8 | Operand::U8 | Operand::B1 => None,
        }
    }

    /// Returns the format of D, or `None` for integers.
    pub const fn of_sum(d: Accumulator) -> Option<Self> {
        match d {
            Accumulator::F32 => Some(F32),
            Accumulator::F16 => Some(F16),
            Accumulator::S32 => None,
        }
    }

    /// Returns the exponent's bias.
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Returns the largest exponent field.
    pub const fn top(self) -> u32 {
        (1 << self.exponent) - 1
    }

    /// Returns the largest exponent field of finite numbers.
    pub const fn greatest(self) -> u32 {
        if self.has_infinity { self.top() - 1 } else { self.top() }
    }

    /// Assembles the bits of these fields.
    pub const fn bits(self, negative: bool, exponent: u32, fraction: u32) -> u32 {
        let fraction = fraction & ((1 << self.fraction) - 1);
        let at = self.fraction + self.exponent;
        ((negative as u32) << at | exponent << self.fraction | fraction) << self.ignored
    }

    /// Returns the value of bits.
    pub fn value(self, bits: u32) -> Value {
        let bits = bits >> self.ignored;
        let fraction = bits & ((1 << self.fraction) - 1);
        let exponent = bits >> self.fraction & self.top();
        let negative = bits >> (self.fraction + self.exponent) & 1 == 1;
        let is_greatest_pattern = fraction == (1 << self.fraction) - 1;
        if exponent == self.top() && (self.has_infinity || is_greatest_pattern) {
            let is_infinite = self.has_infinity && fraction == 0;
            return if is_infinite { Value::Infinite(negative) } else { Value::Nan };
        }
        let hidden = u32::from(exponent != 0) << self.fraction;
        if fraction | hidden == 0 {
            return Value::Finite { value: if negative { -0.0 } else { 0.0 }, scale: 0.0 };
        }
        let scale = f64::from(exponent.max(1) as i32 - self.bias()).exp2();
        let magnitude = f64::from(fraction | hidden) / f64::from(1 << self.fraction) * scale;
        Value::Finite { value: if negative { -magnitude } else { magnitude }, scale }
    }

    /// Rounds a number towards zero, and saturates at the largest. Returns its bits.
    pub fn nearest(self, value: f64) -> u32 {
        let magnitude = value.abs();
        let least = f64::from(1 - self.bias()).exp2();
        let exponent = if magnitude < least { 1 - self.bias() } else { magnitude.log2().floor() as i32 };
        let field = if magnitude < least { 0 } else { (exponent + self.bias()) as u32 };
        if field > self.greatest() || value.is_nan() {
            let most = self.bits(value < 0.0, self.greatest(), u32::MAX);
            return if self.has_infinity { most } else { most - 1 };
        }
        let fraction = magnitude / f64::from(exponent).exp2() * f64::from(1 << self.fraction);
        self.bits(value < 0.0, field, fraction as u32)
    }
}

/// Returns the value of an operand's element.
pub fn value(operand: Operand, bits: u32) -> Value {
    match Float::of(operand) {
        Some(float) => float.value(bits),
        None if operand == Operand::S8 => Value::integer((bits as u8 as i8).into()),
        None => Value::integer(bits.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finite(operand: Operand, bits: u32) -> f64 {
        match value(operand, bits) {
            Value::Finite { value, .. } => value,
            other => panic!("{operand} {bits:#x} is {other:?}"),
        }
    }

    #[test]
    fn elements_have_their_values() {
        let known = [
            (Operand::F16, 0x3c00, 1.0),
            (Operand::F16, 0x8001, -(2_f64.powi(-24))),
            (Operand::Bf16, 0x4049, 3.140_625),
            (Operand::Tf32, 0x3f80_1fff, 1.0),
            (Operand::E4m3, 0x7e, 448.0),
            (Operand::E5m2, 0x7b, 57344.0),
            (Operand::S8, 0xff, -1.0),
            (Operand::U8, 0xff, 255.0),
            (Operand::B1, 1, 1.0),
        ];
        for (operand, bits, wanted) in known {
            assert_eq!(finite(operand, bits), wanted, "{operand} {bits:#x}");
        }
        assert_eq!(value(Operand::E5m2, 0xfc), Value::Infinite(true));
        assert_eq!(value(Operand::E4m3, 0xff), Value::Nan);
        assert_eq!(value(Operand::Tf32, 0x7f80_0001), Value::Infinite(false));
    }

    #[test]
    fn every_finite_number_is_the_nearest_to_itself() {
        for operand in [Operand::F16, Operand::Bf16, Operand::E4m3, Operand::E5m2] {
            let float = Float::of(operand).expect("a type of floats");
            for bits in 0..1_u32 << operand.bits() {
                if let Value::Finite { value, .. } = float.value(bits)
                    && value != 0.0
                {
                    assert_eq!(float.nearest(value), bits, "{operand} {bits:#x} {value}");
                }
            }
        }
        assert_eq!(F16.nearest(1e9), 0x7bff);
        assert_eq!(F32.nearest(-1e-50), 0x8000_0000);
    }
}
