//! Dot products of integers and of single bits. They are exact, then wrapped to 32 bits or clamped.

use tma_model::mma::Operand;

/// Decodes an 8-bit element.
#[inline]
pub(super) const fn element(operand: Operand, byte: u8) -> i32 {
    match operand {
        Operand::S8 => byte as i8 as i32,
        Operand::U8
        | Operand::F16
        | Operand::Bf16
        | Operand::Tf32
        | Operand::E4m3
        | Operand::E5m2
        | Operand::B1 => byte as i32,
    }
}

/// Returns the dot product of the 8-bit elements `a` and `b`, plus `c`.
#[inline]
pub(super) fn dot(a: &[i32], b: &[i32], c: i32, saturates: bool) -> i32 {
    let products: i32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    if saturates { products.saturating_add(c) } else { products.wrapping_add(c) }
}

/// Returns the number of bits that `a` and `b` have in common, plus `c`.
#[inline]
pub(super) fn common_bits(a: &[u8], b: &[u8], c: i32) -> i32 {
    let ones: u32 = a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum();
    c.wrapping_add(ones as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_sign_or_none() {
        assert_eq!(element(Operand::S8, 0xff), -1);
        assert_eq!(element(Operand::U8, 0xff), 255);
    }

    #[test]
    fn sums_wrap_or_are_clamped() {
        assert_eq!(dot(&[255; 64], &[255; 64], 1, false), 64 * 255 * 255 + 1);
        assert_eq!(dot(&[2, 3], &[5, -7], i32::MAX, false), i32::MAX - 11);
        assert_eq!(dot(&[2], &[5], i32::MAX, false), i32::MIN + 9);
        assert_eq!(dot(&[2], &[5], i32::MAX, true), i32::MAX);
        assert_eq!(dot(&[-128], &[127], i32::MIN, true), i32::MIN);
    }

    #[test]
    fn bits_are_counted_where_both_are_set() {
        assert_eq!(common_bits(&[0b1100, 0xff], &[0b0110, 0x0f], -3), 2);
        assert_eq!(common_bits(&[0xff; 32], &[0xff; 32], 0), 256);
    }
}
