//! Integer and bit arithmetic on the lanes of a warp.
//!
//! The decoder looks an instruction's function up once; the function then runs over all 32 lanes in a loop that the
//! compiler turns into vector code. Lanes hold a value's bits and zeros above them.

pub(crate) mod bits;
pub(crate) mod integer;

/// One register of all lanes.
pub(crate) type Lanes = [u64; 32];
/// `d = f(a)` in the lanes of the mask.
pub(crate) type One = fn(&mut Lanes, &Lanes, u32);
/// `d = f(a, b)` in the lanes of the mask.
pub(crate) type Two = fn(&mut Lanes, &Lanes, &Lanes, u32);
/// `d = f(a, b, c)` in the lanes of the mask.
pub(crate) type Three = fn(&mut Lanes, &Lanes, &Lanes, &Lanes, u32);

/// The lane function of an expression of one operand.
macro_rules! one {
    ($a:ident => $result:expr) => {
        |d: &mut Lanes, a: &Lanes, mask: u32| {
            for lane in 0..32 {
                let $a = a[lane];
                let result: u64 = $result;
                d[lane] = if mask >> lane & 1 != 0 { result } else { d[lane] };
            }
        }
    };
}

/// The lane function of an expression of two operands.
macro_rules! two {
    ($a:ident, $b:ident => $result:expr) => {
        |d: &mut Lanes, a: &Lanes, b: &Lanes, mask: u32| {
            for lane in 0..32 {
                let ($a, $b) = (a[lane], b[lane]);
                let result: u64 = $result;
                d[lane] = if mask >> lane & 1 != 0 { result } else { d[lane] };
            }
        }
    };
}

/// The lane function of an expression of three operands.
macro_rules! three {
    ($a:ident, $b:ident, $c:ident => $result:expr) => {
        |d: &mut Lanes, a: &Lanes, b: &Lanes, c: &Lanes, mask: u32| {
            for lane in 0..32 {
                let ($a, $b, $c) = (a[lane], b[lane], c[lane]);
                let result: u64 = $result;
                d[lane] = if mask >> lane & 1 != 0 { result } else { d[lane] };
            }
        }
    };
}

pub(crate) use {one, three, two};
