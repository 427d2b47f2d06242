//! The scalars of kernels, and their names in a tensor map.

use std::fmt;

/// The type of a value that fits in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // each is named as in Rust
pub enum Scalar {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    /// 64 bits, as on the host. A separate type, so that indices type-check as in rustc.
    Usize,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
    F32,
    F64,
    /// f32 with 10 bits of mantissa, in 32 bits. Stored and converted, never computed with.
    Tf32,
    /// 8-bit float: 4 exponent and 3 mantissa bits. Stored and converted, never computed with.
    E4m3,
    /// 8-bit float: 5 exponent and 2 mantissa bits. Stored and converted, never computed with.
    E5m2,
}

impl Scalar {
    /// All scalars, in the order of declaration.
    pub const ALL: [Scalar; 17] = [
        Self::Bool,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::Usize,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
        Self::Tf32,
        Self::E4m3,
        Self::E5m2,
    ];

    /// Returns the name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Usize => "usize",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Tf32 => "tf32",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
        }
    }

    /// Returns whether the type comes from a library rather than from Rust itself, so that its name
    /// must be imported.
    pub const fn is_of_library(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::Tf32 | Self::E4m3 | Self::E5m2)
    }

    /// Returns the size in memory, in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 | Self::E4m3 | Self::E5m2 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Tf32 => 4,
            Self::I64 | Self::U64 | Self::Usize | Self::F64 => 8,
        }
    }

    /// Returns whether the type is an integer (not `bool`).
    pub const fn is_integer(self) -> bool {
        self.integer_range().is_some()
    }

    /// Returns whether the type is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns whether the type is a floating-point number of any width.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::Tf32 | Self::E4m3 | Self::E5m2)
    }

    /// Returns whether the type supports arithmetic: all numbers do, except `tf32` and the 8-bit
    /// floats.
    pub const fn is_arithmetic(self) -> bool {
        !matches!(self, Self::Bool | Self::Tf32 | Self::E4m3 | Self::E5m2)
    }

    /// Returns the smallest and the largest value of an integer type.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        match self {
            Self::I8 => Some((i8::MIN as i128, i8::MAX as i128)),
            Self::U8 => Some((0, u8::MAX as i128)),
            Self::I16 => Some((i16::MIN as i128, i16::MAX as i128)),
            Self::U16 => Some((0, u16::MAX as i128)),
            Self::I32 => Some((i32::MIN as i128, i32::MAX as i128)),
            Self::U32 => Some((0, u32::MAX as i128)),
            Self::I64 => Some((i64::MIN as i128, i64::MAX as i128)),
            Self::U64 | Self::Usize => Some((0, u64::MAX as i128)),
            Self::Bool
            | Self::F16
            | Self::Bf16
            | Self::F32
            | Self::F64
            | Self::Tf32
            | Self::E4m3
            | Self::E5m2 => None,
        }
    }

    /// Returns the element type in a tensor map. Loads and stores move bits, so a type that the
    /// hardware does not know becomes the unsigned integer of its size.
    pub const fn data_type(self) -> DataType {
        match self {
            Self::Bool | Self::I8 | Self::U8 | Self::E4m3 | Self::E5m2 => DataType::U8,
            Self::I16 | Self::U16 => DataType::U16,
            Self::I32 => DataType::I32,
            Self::U32 => DataType::U32,
            Self::I64 => DataType::I64,
            Self::U64 | Self::Usize => DataType::U64,
            Self::F16 => DataType::F16,
            Self::Bf16 => DataType::Bf16,
            Self::F32 => DataType::F32,
            Self::F64 => DataType::F64,
            Self::Tf32 => DataType::Tf32,
        }
    }

    /// Returns whether the language has tensor maps of this type. `bool` is excluded because its
    /// bytes would need checking after a load. `i16` and `usize` are excluded because the
    /// hardware's type for them determines the result of a reduction. Bytes have no reductions, so
    /// `i8` can stand for `u8`.
    pub const fn is_mapped(self) -> bool {
        !matches!(self, Self::Bool | Self::I16 | Self::Usize)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The element type of a tensor map. Each variant has its number in the driver's API. Source: CUDA
/// driver API, `CUtensorMapDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// 8 bits, also for 8-bit floats and signed integers.
    U8,
    /// 16 bits, also for signed integers.
    U16,
    /// 32 bits.
    U32,
    /// 32 bits, signed.
    I32,
    /// 64 bits.
    U64,
    /// 64 bits, signed.
    I64,
    /// binary16.
    F16,
    /// binary32.
    F32,
    /// binary64.
    F64,
    /// bfloat16.
    Bf16,
    /// binary32. Despite the name, loads and stores keep subnormal numbers; reductions flush them.
    /// Observed on an H200.
    F32Ftz,
    /// binary32 rounded to TF32.
    Tf32,
    /// The same as [`DataType::Tf32`].
    Tf32Ftz,
}

impl DataType {
    /// All types, in the order of their numbers in `tensormap.replace`, which differ from those of
    /// the driver's API. Source: PTX ISA, "tensormap.replace", values of `.elemtype`.
    pub const REPLACE: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F16,
        Self::F32,
        Self::F32Ftz,
        Self::F64,
        Self::Bf16,
        Self::Tf32,
        Self::Tf32Ftz,
    ];

    /// Returns the number in the driver's API.
    pub const fn driver_number(self) -> u32 {
        self as u32
    }

    /// Returns the size in bytes.
    #[inline]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Returns whether this is a floating-point type. Only those can be filled with NaN.
    pub const fn is_float(self) -> bool {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F32Ftz | Self::F64 | Self::Tf32 | Self::Tf32Ftz => {
                true
            }
            Self::U8 | Self::U16 | Self::U32 | Self::I32 | Self::U64 | Self::I64 => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_moves_elements_of_their_own_size() {
        for scalar in Scalar::ALL {
            assert_eq!(scalar.data_type().bytes(), scalar.bytes(), "{scalar}");
        }
    }

    #[test]
    fn replace_has_each_type_once() {
        let mut numbers = DataType::REPLACE.map(DataType::driver_number);
        numbers.sort_unstable();
        assert_eq!(numbers, std::array::from_fn(|number| number as u32));
    }

    #[test]
    fn only_floats_are_filled_with_nan() {
        let narrow = [Scalar::E4m3, Scalar::E5m2];
        for scalar in Scalar::ALL.into_iter().filter(|scalar| !narrow.contains(scalar)) {
            assert_eq!(scalar.data_type().is_float(), scalar.is_float(), "{scalar}");
        }
    }
}
