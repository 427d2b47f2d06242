//! `cp.reduce.async.bulk`, with or without a tensor map: combines bytes with the contents of
//! memory, element by element.

use crate::machine::memory::{GlobalFault, GlobalMemory};
use crate::machine::types::{Combination, Reduction};
use crate::tensor_map::DataType;

/// Combines `bytes` into global memory at `address`.
pub(in crate::machine) fn reduce(
    global: &GlobalMemory,
    address: u64,
    bytes: &[u8],
    Combination { with, element }: Combination,
) -> Result<(), GlobalFault> {
    let width = element.bytes() as usize;
    for (address, bytes) in (address..).step_by(width).zip(bytes.chunks_exact(width)) {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(bytes);
        let operand = u64::from_le_bytes(wide);
        global.update(address, width, &mut |old| combine(with, element, old, operand))?;
    }
    Ok(())
}

/// Combines `bytes` into the same number of bytes of `target`.
pub(in crate::machine) fn reduce_bytes(target: &mut [u8], bytes: &[u8], combination: Combination) {
    let Combination { with, element } = combination;
    let width = element.bytes() as usize;
    let wide = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    for (target, bytes) in target.chunks_exact_mut(width).zip(bytes.chunks_exact(width)) {
        let new = combine(with, element, wide(target), wide(bytes));
        target.copy_from_slice(&new.to_le_bytes()[..width]);
    }
}

/// Combines the bits of `old` and `operand`.
fn combine(with: Reduction, element: DataType, old: u64, operand: u64) -> u64 {
    let computed = |arithmetic| compute(arithmetic, element, old, operand);
    match with {
        Reduction::And => old & operand,
        Reduction::Or => old | operand,
        Reduction::Xor => old ^ operand,
        Reduction::Inc => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        Reduction::Dec => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
        Reduction::Add => computed(Arithmetic(u64::wrapping_add, i64::wrapping_add, |a, b| a + b)),
        Reduction::Min => computed(Arithmetic(u64::min, i64::min, f64::min)),
        Reduction::Max => computed(Arithmetic(u64::max, i64::max, f64::max)),
    }
}

/// An arithmetic reduction, as functions on unsigned integers, signed integers and floats.
#[derive(Clone, Copy)]
struct Arithmetic(fn(u64, u64) -> u64, fn(i64, i64) -> i64, fn(f64, f64) -> f64);

fn compute(with: Arithmetic, element: DataType, old: u64, operand: u64) -> u64 {
    let Arithmetic(unsigned, signed, float) = with;
    match element {
        DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => unsigned(old, operand),
        DataType::I32 => signed(i64::from(old as i32), i64::from(operand as i32)) as u64,
        DataType::I64 => signed(old as i64, operand as i64) as u64,
        DataType::F64 => float(f64::from_bits(old), f64::from_bits(operand)).to_bits(),
        DataType::F32 | DataType::F32Ftz | DataType::Tf32 | DataType::Tf32Ftz => {
            let flushes = matches!(element, DataType::F32Ftz | DataType::Tf32Ftz);
            let kept = |bits: u32| if flushes { flushed(bits) } else { bits };
            let (old, operand) = (f32::from_bits(kept(old as u32)), f32::from_bits(kept(operand as u32)));
            // The exact result of two `f32` fits an f64 well enough that rounding it a second time
            // gives the correctly rounded sum.
            let result = float(old.into(), operand.into()) as f32;
            u64::from(if result.is_nan() { NAN } else { kept(result.to_bits()) })
        }
        DataType::F16 | DataType::Bf16 => {
            let bits = if element == DataType::F16 { HALF } else { BFLOAT };
            bits.round(float(bits.to_f64(old as u16), bits.to_f64(operand as u16))).into()
        }
    }
}

/// The NaN that a sum of `f32` returns. This is not documented; it was observed on an H200 with
/// driver 580.
const NAN: u32 = 0x7fff_ffff;

/// Flushes a subnormal to a zero of its sign. Only the types that say so flush. The PTX ISA 9.2,
/// "cp.reduce.async.bulk", says that `.add.f32` flushes subnormals; 9.4 says that it does not, and
/// an H200 with driver 580 does not.
const fn flushed(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// A 16-bit floating-point format.
#[derive(Clone, Copy, Debug)]
struct Format {
    /// The stored bits of the mantissa.
    mantissa: u32,
    /// The stored exponent of the number 1.
    bias: i32,
}

const HALF: Format = Format { mantissa: 10, bias: 15 };
const BFLOAT: Format = Format { mantissa: 7, bias: 127 };

impl Format {
    fn to_f64(self, bits: u16) -> f64 {
        let bits = i32::from(bits);
        let exponent = bits >> self.mantissa & (0x7fff >> self.mantissa);
        let fraction = f64::from(bits & ((1 << self.mantissa) - 1));
        let scale = |power: i32| 2f64.powi(power);
        let size = if exponent == 0x7fff >> self.mantissa {
            if fraction == 0.0 { f64::INFINITY } else { f64::NAN }
        } else if exponent == 0 {
            fraction * scale(1 - self.bias - self.mantissa as i32)
        } else {
            (fraction + scale(self.mantissa as i32)) * scale(exponent - self.bias - self.mantissa as i32)
        };
        if bits & 0x8000 != 0 { -size } else { size }
    }

    /// Rounds to the nearest value, ties to even.
    fn round(self, value: f64) -> u16 {
        let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
        let size = value.abs();
        let top = 0x7fff >> self.mantissa << self.mantissa;
        if size.is_nan() {
            return 0x7fff;
        }
        if size == 0.0 || size.is_infinite() {
            return sign | if size == 0.0 { 0 } else { top };
        }
        // The exponent of the last bit that is kept.
        let power = ((size.to_bits() >> 52) as i32 - 1023).max(1 - self.bias) - self.mantissa as i32;
        let whole = (size * 2f64.powi(-power)).round_ties_even() as i64;
        // A carry out of the mantissa correctly increments the exponent.
        let bits = i64::from(power + self.mantissa as i32 + self.bias - 1) * (1 << self.mantissa) + whole;
        sign | bits.min(i64::from(top)) as u16
    }
}
