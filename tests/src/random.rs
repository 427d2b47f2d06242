//! Random inputs, of which every thread can generate a part: a value is a hash of its index.

use std::fmt::Debug;
use std::thread;

use tma_runtime::prelude::*;

/// Returns 64 random bits: the finaliser of SplitMix64 (Steele, Lea, Flood: "Fast Splittable
/// Pseudorandom Number Generators") over seed and index.
pub fn hash(seed: u64, index: u64) -> u64 {
    let mut z =
        seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A scalar type of inputs.
pub trait Sample: Scalar + Debug + Default {
    /// Returns the values that reveal mistakes: minimum, maximum, zeros, NaN, infinities,
    /// subnormals.
    fn edges() -> Vec<Self>;

    /// Returns a value derived from random bits.
    fn random(bits: u64) -> Self;

    /// Returns a NaN, if the type has one.
    fn nan() -> Option<Self> {
        None
    }

    /// Returns whether two results are the same: equal bits, or both a NaN, whose bits differ
    /// between machines.
    fn is_same(self, other: Self) -> bool;
}

macro_rules! integers {
    ($($ty:ty)+) => { $(
        impl Sample for $ty {
            fn edges() -> Vec<Self> {
                let half = <$ty>::MAX / 2;
                vec![0, 1, 2, 3, 7, <$ty>::MAX, <$ty>::MAX - 1, <$ty>::MIN, <$ty>::MIN + 1, half, half + 1, !0, !1]
            }

            fn random(bits: u64) -> Self {
                bits as $ty
            }

            fn is_same(self, other: Self) -> bool {
                self == other
            }
        }
    )+ };
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64 usize);

impl Sample for bool {
    fn edges() -> Vec<Self> {
        vec![false, true]
    }

    fn random(bits: u64) -> Self {
        bits & 1 == 1
    }

    fn is_same(self, other: Self) -> bool {
        self == other
    }
}

/// Floats: half of the random values have random bits, and therefore any magnitude. The others are
/// close enough to each other to be added.
macro_rules! floats {
    ($($ty:ty, $bits:ty, |$near:ident| $value:expr, [$($edge:expr),+ $(,)?];)+) => { $(
        impl Sample for $ty {
            fn edges() -> Vec<Self> {
                let bits: &[$bits] = &[$($edge),+];
                let sign = 1 << (<$bits>::BITS - 1);
                bits.iter().flat_map(|&bits| [<$ty>::from_bits(bits), <$ty>::from_bits(bits | sign)]).collect()
            }

            fn random(bits: u64) -> Self {
                let $near = f64::from((bits >> 32) as i32) / f64::from(1 << 22);
                if bits & 1 == 0 { $value } else { <$ty>::from_bits((bits >> 8) as $bits) }
            }

            fn nan() -> Option<Self> {
                Some(<$ty>::NAN)
            }

            fn is_same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
            }
        }
    )+ };
}

// Zero, the least and greatest subnormal, the least normal, 1, just above 1, 1.5, the greatest,
// infinity (for e4m3 the greatest but one) and NaN. Wide types also have numbers around the limits
// of narrower types.
floats! {
    f32, u32, |x| x as f32, [
        0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x3f80_0001, 0x3fc0_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000,
        0x3f88_0000, 0x3f98_0000, 0x43e8_0000, 0x477f_f000, 0x4770_0000, 0x4f00_0000, 0x5f00_0000, 0x3380_0000,
    ];
    f64, u64, |x| x, [
        0, 1, 0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0000, 0x3ff0_0000_0000_0000, 0x3ff0_0000_0000_0001,
        0x3ff8_0000_0000_0000, 0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000,
        0x3ff1_0000_0000_0001, 0x3ff1_0000_1000_0000, 0x40ef_fe00_0000_0000, 0x41df_ffff_ffc0_0000,
        0x43e0_0000_0000_0000, 0x47ef_ffff_f000_0000, 0x36a0_0000_0000_0000, 0x3690_0000_0000_0001,
    ];
    f16, u16, |x| f16::from_f64(x), [0, 1, 0x03ff, 0x0400, 0x3c00, 0x3c01, 0x3e00, 0x7bff, 0x7c00, 0x7e00];
    bf16, u16, |x| bf16::from_f64(x), [0, 1, 0x007f, 0x0080, 0x3f80, 0x3f81, 0x3fc0, 0x7f7f, 0x7f80, 0x7fc0];
    e4m3, u8, |x| e4m3::from_f64(x), [0, 1, 0x07, 0x08, 0x38, 0x39, 0x3c, 0x7e, 0x7d, 0x7f];
    e5m2, u8, |x| e5m2::from_f64(x), [0, 1, 0x03, 0x04, 0x3c, 0x3d, 0x3e, 0x7b, 0x7c, 0x7f];
}

/// Only numbers whose unused bits are zero: the copy engine may round others.
impl Sample for tf32 {
    fn edges() -> Vec<Self> {
        f32::edges().into_iter().map(tf32::from_f32).collect()
    }

    fn random(bits: u64) -> Self {
        tf32::from_f32(f32::random(bits))
    }

    fn nan() -> Option<Self> {
        Some(tf32::from_f32(f32::NAN))
    }

    fn is_same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
    }
}

/// Returns `len` inputs: the edge values, then random ones.
pub fn samples<T: Sample>(seed: u64, len: usize) -> Vec<T> {
    let random = (0..).map(|i| T::random(hash(seed, i)));
    T::edges().into_iter().chain(random).take(len).collect()
}

/// Returns `len` pairs of inputs: each edge value with each, then random ones.
pub fn sample_pairs<T: Sample>(seed: u64, len: usize) -> (Vec<T>, Vec<T>) {
    let edges = T::edges();
    let both = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b)));
    let random = (0..).map(|i| (T::random(hash(seed, 2 * i)), T::random(hash(seed, 2 * i + 1))));
    both.chain(random).take(len).unzip()
}

/// Returns `len` values of random bits, computed on all processors. They are for copies, which must
/// preserve any bits.
pub fn noise<T: Sample>(seed: u64, len: usize) -> Vec<T> {
    noise_of(len, |i| T::random(hash(seed, i) | 1))
}

/// Returns `len` values, each a function of its index, computed on all processors.
pub fn noise_of<T: Sample>(len: usize, value: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let mut values = vec![T::default(); len];
    let share = len.div_ceil(threads()).max(1);
    thread::scope(|scope| {
        for (part, values) in values.chunks_mut(share).enumerate() {
            let (first, value) = (part * share, &value);
            scope.spawn(move || {
                for (i, slot) in values.iter_mut().enumerate() {
                    *slot = value((first + i) as u64);
                }
            });
        }
    });
    values
}

/// Returns the number of threads that share a task of the host.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
