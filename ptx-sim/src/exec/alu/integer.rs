//! Integer arithmetic.

use super::{BinaryFn, Lanes, TernaryFn, UnaryFn, one, three, two};
use crate::isa::{BinaryOp, Integer, PackedOp, TernaryOp, UnaryOp};

/// A Rust integer type, stored in a register.
trait Word: Copy {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! words {
    ($($signed:ident $unsigned:ident),*) => { $(
        impl Word for $signed {
            #[inline(always)]
            fn of(bits: u64) -> Self { bits as $signed }
            #[inline(always)]
            fn bits(self) -> u64 { u64::from(self as $unsigned) }
        }
        impl Word for $unsigned {
            #[inline(always)]
            fn of(bits: u64) -> Self { bits as $unsigned }
            #[inline(always)]
            fn bits(self) -> u64 { u64::from(self) }
        }
    )* };
}
words!(i8 u8, i16 u16, i32 u32, i64 u64);

/// No register is this wide: only the low half is used.
impl Word for u128 {
    fn of(bits: u64) -> Self {
        u128::from(bits)
    }
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Word for i128 {
    fn of(bits: u64) -> Self {
        i128::from(bits)
    }
    fn bits(self) -> u64 {
        self as u64
    }
}

/// Evaluates `$body` with `$word` as the Rust type of an integer type, and `$wide` as the type of
/// twice the width.
macro_rules! typed {
    ($ty:expr, $word:ident, $wide:ident => $body:expr) => {
        match ($ty.bits, $ty.signed) {
            (8, false) => {
                type $word = u8;
                type $wide = u16;
                $body
            }
            (8, true) => {
                type $word = i8;
                type $wide = i16;
                $body
            }
            (16, false) => {
                type $word = u16;
                type $wide = u32;
                $body
            }
            (16, true) => {
                type $word = i16;
                type $wide = i32;
                $body
            }
            (32, false) => {
                type $word = u32;
                type $wide = u64;
                $body
            }
            (32, true) => {
                type $word = i32;
                type $wide = i64;
                $body
            }
            (_, false) => {
                type $word = u64;
                type $wide = u128;
                $body
            }
            (_, true) => {
                type $word = i64;
                type $wide = i128;
                $body
            }
        }
    };
}

/// Returns the lane function of `op`.
pub(super) fn binary(op: BinaryOp, ty: Integer) -> BinaryFn {
    typed!(ty, T, W => match op {
        BinaryOp::Add => two!(a, b => T::of(a).wrapping_add(T::of(b)).bits()),
        BinaryOp::AddSaturated => two!(a, b => T::of(a).saturating_add(T::of(b)).bits()),
        BinaryOp::Sub => two!(a, b => T::of(a).wrapping_sub(T::of(b)).bits()),
        BinaryOp::SubSaturated => two!(a, b => T::of(a).saturating_sub(T::of(b)).bits()),
        BinaryOp::MulLow => two!(a, b => T::of(a).wrapping_mul(T::of(b)).bits()),
        BinaryOp::MulHigh => two!(a, b => {
            (((W::from(T::of(a)) * W::from(T::of(b))) >> T::BITS) as T).bits()
        }),
        BinaryOp::MulWide => two!(a, b => (W::from(T::of(a)) * W::from(T::of(b))).bits()),
        BinaryOp::Mul24Low => two!(a, b => {
            (product_24(a, b, T::MIN != 0) as T).bits()
        }),
        BinaryOp::Mul24High => two!(a, b => {
            ((product_24(a, b, T::MIN != 0) >> 16) as T).bits()
        }),
        // The result of a division by zero is unspecified. The hardware returns all ones.
        BinaryOp::Div => two!(a, b => {
            if T::of(b) == 0 { (0 as T).wrapping_sub(1).bits() } else { T::of(a).wrapping_div(T::of(b)).bits() }
        }),
        BinaryOp::Rem => two!(a, b => {
            if T::of(b) == 0 { T::of(a).bits() } else { T::of(a).wrapping_rem(T::of(b)).bits() }
        }),
        BinaryOp::Min => two!(a, b => T::of(a).min(T::of(b)).bits()),
        BinaryOp::Max => two!(a, b => T::of(a).max(T::of(b)).bits()),
        BinaryOp::MinRelu => two!(a, b => positive_part(T::of(a).min(T::of(b))).bits()),
        BinaryOp::MaxRelu => two!(a, b => positive_part(T::of(a).max(T::of(b))).bits()),
    })
}

fn positive_part<T: Word + Default + Ord>(value: T) -> T {
    value.max(T::default())
}

fn product_24(a: u64, b: u64, signed: bool) -> i64 {
    let number = Integer { bits: 24, signed };
    (number.read(a) * number.read(b)) as i64
}

/// Returns the lane function of `op`.
pub(super) fn ternary(op: TernaryOp, ty: Integer) -> TernaryFn {
    typed!(ty, T, W => match op {
        TernaryOp::MadLow => three!(a, b, c => T::of(a).wrapping_mul(T::of(b)).wrapping_add(T::of(c)).bits()),
        TernaryOp::MadHigh => three!(a, b, c => {
            (((W::from(T::of(a)) * W::from(T::of(b))) >> T::BITS) as T).wrapping_add(T::of(c)).bits()
        }),
        TernaryOp::MadHighSaturated => three!(a, b, c => {
            (((W::from(T::of(a)) * W::from(T::of(b))) >> T::BITS) as T).saturating_add(T::of(c)).bits()
        }),
        TernaryOp::MadWide => three!(a, b, c => {
            (W::from(T::of(a)) * W::from(T::of(b))).wrapping_add(W::of(c)).bits()
        }),
        TernaryOp::Mad24Low => three!(a, b, c => {
            (product_24(a, b, T::MIN != 0) as T).wrapping_add(T::of(c)).bits()
        }),
        TernaryOp::Mad24High => three!(a, b, c => {
            ((product_24(a, b, T::MIN != 0) >> 16) as T).wrapping_add(T::of(c)).bits()
        }),
        TernaryOp::Sad => three!(a, b, c => {
            let (a, b) = (T::of(a), T::of(b));
            T::of(c).wrapping_add(if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) }).bits()
        }),
    })
}

/// Returns the lane function of `op`.
pub(super) fn unary(op: UnaryOp, ty: Integer) -> UnaryFn {
    typed!(ty, T, _W => match op {
        UnaryOp::Abs => one!(a => {
            let value = T::of(a);
            if value < 1 { (0 as T).wrapping_sub(value).bits() } else { value.bits() }
        }),
        UnaryOp::Neg => one!(a => (0 as T).wrapping_sub(T::of(a)).bits()),
        UnaryOp::Not => one!(a => (!T::of(a)).bits()),
        UnaryOp::LogicalNot => one!(a => u64::from(T::of(a) == 0)),
        UnaryOp::CountOnes => one!(a => u64::from(T::of(a).count_ones())),
        UnaryOp::LeadingZeros => one!(a => u64::from(T::of(a).leading_zeros())),
        UnaryOp::ReverseBits => one!(a => T::of(a).reverse_bits().bits()),
        UnaryOp::HighestBit => one!(a => match highest_bit(T::of(a).bits(), T::BITS, T::MIN != 0) {
            Some(bit) => u64::from(bit),
            None => u64::from(u32::MAX),
        }),
        UnaryOp::HighestBitShift => one!(a => match highest_bit(T::of(a).bits(), T::BITS, T::MIN != 0) {
            Some(bit) => u64::from(T::BITS - 1 - bit),
            None => u64::from(u32::MAX),
        }),
    })
}

fn highest_bit(bits: u64, width: u32, signed: bool) -> Option<u32> {
    let negative = signed && bits >> (width - 1) & 1 == 1;
    let searched = if negative { !bits & (u64::MAX >> (64 - width)) } else { bits };
    searched.checked_ilog2()
}

/// `shl` and `shr`: an amount beyond the width shifts out all bits.
pub(super) fn shift(left: bool, ty: Integer) -> BinaryFn {
    typed!(ty, T, _W => if left {
        two!(a, b => T::of(a).checked_shl(b as u32).unwrap_or(0).bits())
    } else {
        two!(a, b => (T::of(a) >> (b as u32).min(T::BITS - 1) >> u32::from(T::MIN == 0 && b as u32 >= T::BITS)).bits())
    })
}

/// Returns the lane function of an operation on two 16-bit integers in one register.
pub(super) fn packed(op: PackedOp) -> BinaryFn {
    macro_rules! halves {
        ($word:ident, $a:ident, $b:ident => $result:expr) => {
            two!(a, b => {
                let half = |shift: u32| {
                    let ($a, $b) = ($word::of(a >> shift), $word::of(b >> shift));
                    ($result as $word).bits() << shift
                };
                half(0) | half(16)
            })
        };
    }
    match op {
        PackedOp::Add => halves!(u16, a, b => a.wrapping_add(b)),
        PackedOp::Sub => halves!(u16, a, b => a.wrapping_sub(b)),
        PackedOp::Min { signed: false } => halves!(u16, a, b => a.min(b)),
        PackedOp::Min { signed: true } => halves!(i16, a, b => a.min(b)),
        PackedOp::Max { signed: false } => halves!(u16, a, b => a.max(b)),
        PackedOp::Max { signed: true } => halves!(i16, a, b => a.max(b)),
        PackedOp::MinRelu => halves!(i16, a, b => a.min(b).max(0)),
        PackedOp::MaxRelu => halves!(i16, a, b => a.max(b).max(0)),
    }
}
