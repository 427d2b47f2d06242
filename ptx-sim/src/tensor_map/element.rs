//! What loads make of elements. No document says it: seen on an H200 with driver 580
//! (`tests/probe`).

use super::{DataType, Fill, TensorMap};

/// What a NaN becomes in a load that rounds to TF32.
const TF32_NAN: u32 = 0x7fff_e000;
/// 16 bits of the NaN that stands for what is outside of the tensor.
const OUTSIDE_NAN: [u8; 2] = 0x7ff7_u16.to_le_bytes();

/// 16 bytes of what a load brings from outside of the tensor. NaN is the same 16 bits over and
/// over, which is one in each type.
pub(crate) const fn fill_unit(map: &TensorMap) -> [u8; 16] {
    let [low, high] = OUTSIDE_NAN;
    match map.fill {
        Fill::Zeros => [0; 16],
        Fill::Nan => [low, high, low, high, low, high, low, high, low, high, low, high, low, high, low, high],
    }
}

/// What a load makes of a number's bytes that are in the tensor: TF32 is rounded to the nearest of
/// 10 bits of mantissa, to even where two are near.
pub(crate) fn convert(element: DataType, bytes: &mut [u8]) {
    if !matches!(element, DataType::Tf32 | DataType::Tf32Ftz) {
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
