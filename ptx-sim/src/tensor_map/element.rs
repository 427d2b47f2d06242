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
    /// binary32. Loads and stores keep subnormal numbers, whatever the name says.
    F32Ftz,
    /// binary64.
    F64,
    /// binary32 rounded to TF32.
    Tf32,
    /// The same.
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

/// What a NaN becomes in a load that rounds to TF32.
const TF32_NAN: u32 = 0x7fff_e000;
/// 16 bits of the NaN that stands for what is outside of the tensor.
const OUTSIDE_NAN: [u8; 2] = 0x7ff7_u16.to_le_bytes();

/// What no document says in this part was seen on an H200 with driver 580 (`tests/probe`).
impl Element {
    /// The types, each at its number in `tensormap.replace`. Source: PTX ISA, "tensormap.replace", values of `.elemtype`.
    pub(crate) const NUMBERED: [Self; 13] = [
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

    /// 16 bytes of NaN: the same 16 bits over and over, which is a NaN in each type.
    pub(crate) const fn nan_unit(self) -> [u8; 16] {
        let [low, high] = OUTSIDE_NAN;
        [low, high, low, high, low, high, low, high, low, high, low, high, low, high, low, high]
    }

    /// What a load makes of a number's bytes that are in the tensor: TF32 is rounded to the nearest of 10 bits of
    /// mantissa, to even where two are near.
    pub(crate) fn convert(self, bytes: &mut [u8]) {
        if !matches!(self, Self::Tf32 | Self::Tf32Ftz) {
            return;
        }
        for word in bytes.chunks_exact_mut(4) {
            let Ok(bytes) = <[u8; 4]>::try_from(&*word) else { continue };
            let bits = u32::from_le_bytes(bytes);
            let rounded = match bits & 0x7fff_ffff {
                0x7f80_0001.. => TF32_NAN,
                0x7f80_0000 => bits,
                _ => (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff,
            };
            word.copy_from_slice(&rounded.to_le_bytes());
        }
    }
}
