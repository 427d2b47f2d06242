//! The conversion of elements in loads. It is not documented, and was observed on an H200 with
//! driver 580 (`tests/probe`).

use super::{DataType, Fill, TensorMap};

/// The result of a NaN in a load that rounds to TF32.
const TF32_NAN: u32 = 0x7fff_e000;
/// The 16-bit pattern of the NaN that fills elements outside the tensor.
const OUTSIDE_NAN: [u8; 2] = 0x7ff7_u16.to_le_bytes();

/// Returns 16 bytes of the fill outside the tensor. The NaN fill repeats the same 16 bits, which
/// are a NaN in every type.
pub(crate) const fn fill_unit(map: &TensorMap) -> [u8; 16] {
    let [low, high] = OUTSIDE_NAN;
    match map.fill {
        Fill::Zeros => [0; 16],
        Fill::Nan => [low, high, low, high, low, high, low, high, low, high, low, high, low, high, low, high],
    }
}

/// Converts the bytes of elements inside the tensor. TF32 is rounded to 10 bits of mantissa, to the
/// nearest, ties to even.
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
