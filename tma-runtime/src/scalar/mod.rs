//! The element types of tensors, which kernels also take by value.

mod tensor_float;

use crate::spec;
use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use std::mem::MaybeUninit;
pub use tensor_float::tf32;

/// A scalar with the same layout on host and device: `bool`, an integer, `f32` or `f64`, a 16-bit
/// float or an 8-bit float.
///
/// # Safety
///
/// `ELEMENT.bytes()` is the size of `Self`, `Self` has no padding, and
/// [`make_valid`](Scalar::make_valid) leaves only valid values, whatever bytes the device wrote.
pub unsafe trait Scalar: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The element type in kernels.
    const ELEMENT: spec::Scalar;

    /// Returns the bits, zero-extended.
    #[doc(hidden)]
    fn raw_bits(self) -> u64;

    /// Makes values copied from the device valid. All their bytes must be initialised.
    ///
    /// Any bytes are a valid number, so this only affects `bool`.
    #[doc(hidden)]
    fn make_valid(_values: &mut [MaybeUninit<Self>]) {}
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

macro_rules! scalars {
    ($($ty:ty => $element:ident, |$value:ident| $bits:expr;)+) => {
        $(
            impl sealed::Sealed for $ty {}

            // SAFETY: primitive numbers and the transparent wrappers around them in `half`,
            // `float8` and this crate have no padding, and every bit pattern is valid. The
            // assertion below checks the size.
            unsafe impl Scalar for $ty {
                const ELEMENT: spec::Scalar = spec::Scalar::$element;

                fn raw_bits(self) -> u64 {
                    let $value = self;
                    $bits
                }
            }

            const _: () = assert!(size_of::<$ty>() == spec::Scalar::$element.bytes() as usize);
        )+
    };
}

scalars! {
    u8 => U8, |v| u64::from(v);
    u16 => U16, |v| u64::from(v);
    u32 => U32, |v| u64::from(v);
    u64 => U64, |v| v;
    usize => U64, |v| v as u64;
    i8 => I8, |v| u64::from(v.cast_unsigned());
    i16 => I16, |v| u64::from(v.cast_unsigned());
    i32 => I32, |v| u64::from(v.cast_unsigned());
    i64 => I64, |v| v.cast_unsigned();
    f32 => F32, |v| u64::from(v.to_bits());
    f64 => F64, |v| v.to_bits();
    f16 => F16, |v| u64::from(v.to_bits());
    bf16 => Bf16, |v| u64::from(v.to_bits());
    tf32 => Tf32, |v| u64::from(v.to_bits());
    F8E4M3 => E4m3, |v| u64::from(v.to_bits());
    F8E5M2 => E5m2, |v| u64::from(v.to_bits());
}

impl sealed::Sealed for bool {}

// SAFETY: one byte, in which `make_valid` leaves only 0 and 1.
unsafe impl Scalar for bool {
    const ELEMENT: spec::Scalar = spec::Scalar::Bool;

    fn raw_bits(self) -> u64 {
        u64::from(self)
    }

    fn make_valid(values: &mut [MaybeUninit<Self>]) {
        for value in values {
            // SAFETY: the caller initialised the byte, and any byte is a valid `u8`.
            let byte = unsafe { value.as_ptr().cast::<u8>().read() };
            value.write(byte != 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_zero_extended() {
        assert_eq!((-1i8).raw_bits(), 0xff);
        assert_eq!((-1i32).raw_bits(), 0xffff_ffff);
        assert_eq!((-1i64).raw_bits(), u64::MAX);
        assert_eq!(1.0f32.raw_bits(), 0x3f80_0000);
        assert_eq!(f16::ONE.raw_bits(), 0x3c00);
        assert_eq!(F8E4M3::from_bits(0x38).raw_bits(), 0x38);
        assert_eq!(true.raw_bits(), 1);
    }

    #[test]
    fn any_byte_of_the_device_becomes_a_bool() {
        let bytes = [0u8, 1, 2, 0xab];
        // SAFETY: four initialised bytes, read as four possibly invalid `bool`s.
        let mut values: [MaybeUninit<bool>; 4] = unsafe { std::mem::transmute(bytes) };
        bool::make_valid(&mut values);
        // SAFETY: made valid above.
        let values = values.map(|value| unsafe { value.assume_init() });
        assert_eq!(values, [false, true, true, true]);
    }
}
