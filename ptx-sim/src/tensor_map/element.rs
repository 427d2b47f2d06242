//! The element types of tensor maps.

/// An element type. Source: `CUtensorMapDataType` of the CUDA Driver API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// 8 bits, also for the 8-bit floats and signed numbers.
    U8,
    /// 16 bits, also for signed numbers.
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
    /// bfloat16.
    Bf16,
    /// binary32.
    F32,
    /// binary32, subnormal numbers taken as zeros.
    F32Ftz,
    /// binary64.
    F64,
    /// binary32 rounded to TF32.
    Tf32,
    /// The same, subnormal numbers taken as zeros.
    Tf32Ftz,
}

impl Element {
    /// Its size in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F32Ftz | Self::F64 | Self::Tf32 | Self::Tf32Ftz => {
                true
            }
            Self::U8 | Self::U16 | Self::U32 | Self::I32 | Self::U64 | Self::I64 => false,
        }
    }
}

impl Element {
    /// What a load makes of a unit of 16 bytes: of the types that say so, numbers are rounded or taken as zeros.
    ///
    /// No document says how numbers are rounded to TF32; to the nearest, as `cvt.rn.tf32.f32`, is assumed.
    pub(crate) fn convert(self, unit: &mut [u8; 16]) {
        let (flush, round) = match self {
            Self::F32Ftz => (true, false),
            Self::Tf32 => (false, true),
            Self::Tf32Ftz => (true, true),
            Self::U8 | Self::U16 | Self::U32 | Self::I32 | Self::U64 | Self::I64 => return,
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => return,
        };
        for word in unit.chunks_exact_mut(4) {
            let Ok(bytes) = <[u8; 4]>::try_from(&*word) else { continue };
            let mut bits = u32::from_le_bytes(bytes);
            if flush && bits & 0x7f80_0000 == 0 {
                bits &= 0x8000_0000;
            }
            if round && bits & 0x7f80_0000 != 0x7f80_0000 {
                // To the nearest of 10 bits of mantissa, to even where two are near.
                bits = (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff;
            }
            word.copy_from_slice(&bits.to_le_bytes());
        }
    }
}
