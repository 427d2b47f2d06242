//! Compares the exact arithmetic with the host's, and rounding modes with each other.

use super::{apply, general};
use crate::isa::Integer;
use crate::isa::float::convert;
use crate::isa::float::format::{BF16, E4M3, E5M2, F16, F32, F64, Format, Round, TF32, Value};
use crate::isa::float::{Exact, FloatOp, FloatType, Mode, Test};

/// A pseudorandom generator (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns the bits of a number, with special values and similar exponents more often than at
    /// random.
    fn bits(&mut self, format: Format) -> u64 {
        let width = 1 + format.exponent + format.fraction;
        let random = self.next();
        let bits = random >> (64 - width);
        let bias = (1_u64 << (format.exponent - 1)) - 1;
        match self.next() % 8 {
            0 => [
                0,
                1,
                format.sign_bit(),
                format.sign_bit() | 1,
                bias << format.fraction,
                (1 << (width - 1)) - 1,
            ][random as usize % 6],
            1 => ((1 << format.exponent) - 1) << format.fraction | bits & format.sign_bit(),
            2 => bits & (format.sign_bit() | ((1 << format.fraction) - 1)),
            3..=5 => {
                let exponent = bias - 2 + random % 5;
                bits & (format.sign_bit() | ((1 << format.fraction) - 1)) | exponent << format.fraction
            }
            _ => bits,
        }
    }
}

fn same(format: Format, a: u64, b: u64) -> bool {
    a == b || format.unpack(a, false) == Value::Nan && format.unpack(b, false) == Value::Nan
}

const EXACT: [FloatOp; 7] = [
    FloatOp::Exact(Exact::Add),
    FloatOp::Exact(Exact::Sub),
    FloatOp::Exact(Exact::Mul),
    FloatOp::Exact(Exact::Fma),
    FloatOp::Exact(Exact::Div),
    FloatOp::Exact(Exact::Sqrt),
    FloatOp::Exact(Exact::Rcp),
];

#[test]
fn rounded_to_nearest_it_is_the_hosts_arithmetic() {
    let mut numbers = Numbers(1);
    for ty in [FloatType::F32, FloatType::F64] {
        let format = ty.format();
        for _ in 0..200_000 {
            let operands = [numbers.bits(format), numbers.bits(format), numbers.bits(format)];
            let op = EXACT[numbers.next() as usize % EXACT.len()];
            let host = apply(op, ty, Mode::default(), operands);
            let soft = general(op, ty, Mode::default(), operands);
            assert!(same(format, host, soft), "{op:?} {ty:?} {operands:x?}: {host:x} and {soft:x}");
        }
    }
}

#[test]
fn directed_roundings_enclose_the_result() {
    let mut numbers = Numbers(2);
    for ty in [FloatType::F16, FloatType::Bf16, FloatType::F32, FloatType::F64] {
        let format = ty.format();
        for _ in 0..100_000 {
            let operands = [numbers.bits(format), numbers.bits(format), numbers.bits(format)];
            let op = EXACT[numbers.next() as usize % EXACT.len()];
            let rounded = |round| general(op, ty, Mode { round, ..Mode::default() }, operands);
            let [nearest, zero, down, up] =
                [Round::Nearest, Round::Zero, Round::Down, Round::Up].map(rounded);
            let context = || format!("{op:?} {ty:?} {operands:x?}: {nearest:x} {zero:x} {down:x} {up:x}");
            if format.unpack(nearest, false) == Value::Nan {
                assert!([zero, down, up].iter().all(|bits| *bits == nearest), "{}", context());
                continue;
            }
            let place = |bits| super::rank(format, bits);
            assert!(place(down) <= place(nearest) && place(nearest) <= place(up), "{}", context());
            // The two results are neighbours, and the two zeros count as neighbours too.
            assert!(place(up) - place(down) <= 1, "{}", context());
            if up == 0 && down == format.sign_bit() {
                // The sign of an exact zero depends on the rounding direction.
                assert_eq!(zero, 0, "{}", context());
                continue;
            }
            let negative = nearest & format.sign_bit() != 0;
            assert_eq!(zero, if negative { up } else { down }, "{}", context());
        }
    }
}

#[test]
fn halves_through_doubles() {
    // A product or a sum of two halves is exact as a double, which is then rounded once.
    let mut numbers = Numbers(3);
    let to_double = |bits| f64::from_bits(convert::between(bits, F16, F64, Round::Nearest, false));
    for _ in 0..100_000 {
        let (a, b) = (numbers.bits(F16), numbers.bits(F16));
        for (op, exact) in [
            (FloatOp::Exact(Exact::Add), to_double(a) + to_double(b)),
            (FloatOp::Exact(Exact::Mul), to_double(a) * to_double(b)),
        ] {
            let wanted = convert::between(exact.to_bits(), F64, F16, Round::Nearest, false);
            assert_eq!(apply(op, FloatType::F16, Mode::default(), [a, b, 0]), wanted, "{op:?} {a:x} {b:x}");
        }
    }
}

#[test]
fn narrow_formats_survive_widening() {
    for (format, wide) in [(F16, F32), (BF16, F32), (E4M3, F16), (E5M2, F16), (F16, F64), (E4M3, F32)] {
        for bits in 0..1_u64 << (1 + format.exponent + format.fraction) {
            let there = convert::between(bits, format, wide, Round::Nearest, false);
            let back = convert::between(there, wide, format, Round::Nearest, false);
            assert!(same(format, bits, back), "{format:?} {bits:x}: {there:x}, {back:x}");
        }
    }
}

#[test]
fn known_conversions() {
    let single = |value: f32| u64::from(value.to_bits());
    let to = |value: f32, format: Format, round| convert::between(single(value), F32, format, round, false);
    assert_eq!(to(1.0, F16, Round::Nearest), 0x3c00);
    assert_eq!(to(65504.0, F16, Round::Nearest), 0x7bff);
    assert_eq!(to(65520.0, F16, Round::Nearest), 0x7c00);
    assert_eq!(to(65520.0, F16, Round::Zero), 0x7bff);
    assert_eq!(to(5.960_464_5e-8, F16, Round::Nearest), 1);
    assert_eq!(to(2.980_232_2e-8, F16, Round::Nearest), 0);
    assert_eq!(to(2.980_232_2e-8, F16, Round::Up), 1);
    assert_eq!(to(f32::NAN, BF16, Round::Nearest), 0x7fff);
    assert_eq!(to(1.003_906_3, BF16, Round::Nearest), 0x3f80);
    assert_eq!(to(1.000_488_3, TF32, Round::NearestAway), u64::from((1.0_f32 + 1.0 / 1024.0).to_bits()));
    let finite = |value: f32, format| convert::between_finite(single(value), F32, format, Round::Nearest);
    assert_eq!(finite(448.0, E4M3), 0x7e);
    assert_eq!(finite(1e9, E4M3), 0x7e);
    assert_eq!(finite(f32::NEG_INFINITY, E4M3), 0xfe);
    assert_eq!(finite(f32::NAN, E4M3), 0x7f);
    assert_eq!(finite(57344.0, E5M2), 0x7b);
    assert_eq!(finite(1e9, E5M2), 0x7b);
    assert_eq!(finite(0.001_953_125, E4M3), 1);
}

#[test]
fn to_integers_as_rust_casts() {
    let mut numbers = Numbers(4);
    for _ in 0..100_000 {
        let bits = numbers.bits(F32);
        let value = f32::from_bits(bits as u32);
        if value.is_nan() {
            continue;
        }
        let to = |bits_wide, signed| {
            convert::to_integer(bits, F32, Integer { bits: bits_wide, signed }, Round::Zero, false)
        };
        assert_eq!(to(8, true), u64::from(value as i8 as u8));
        assert_eq!(to(16, false), u64::from(value as u16));
        assert_eq!(to(32, true), u64::from(value as i32 as u32));
        assert_eq!(to(32, false), u64::from(value as u32));
        assert_eq!(to(64, true), value as i64 as u64);
        assert_eq!(to(64, false), value as u64);
    }
    let nan = u64::from(f32::NAN.to_bits());
    let of = |bits, signed| convert::to_integer(nan, F32, Integer { bits, signed }, Round::Zero, false);
    assert_eq!((of(32, true), of(64, true), of(64, false)), (0, 1 << 63, 1 << 63));
    let rounded = |value: f32, round| {
        let bits = u64::from(value.to_bits());
        convert::to_integer(bits, F32, Integer { bits: 32, signed: true }, round, false) as i32
    };
    assert_eq!(rounded(2.5, Round::Nearest), 2);
    assert_eq!(rounded(3.5, Round::Nearest), 4);
    assert_eq!(rounded(-2.5, Round::Down), -3);
    assert_eq!(rounded(-2.5, Round::Up), -2);
}

#[test]
fn integers_to_floats_as_rust_casts() {
    let mut numbers = Numbers(5);
    for _ in 0..100_000 {
        let value = numbers.next() >> (numbers.next() % 64);
        let from = |value: i128, format| convert::from_integer(value, format, Round::Nearest);
        assert_eq!(from(i128::from(value), F32), u64::from((value as f32).to_bits()));
        assert_eq!(from(i128::from(value as i64), F64), (value as i64 as f64).to_bits());
        assert_eq!(from(i128::from(value as i32), F32), u64::from((value as i32 as f32).to_bits()));
    }
}

#[test]
fn least_greatest_and_saturation() {
    let single = |value: f32| u64::from(value.to_bits());
    let op = |op, mode, a, b| apply(op, FloatType::F32, mode, [single(a), single(b), 0]);
    let plain = Mode::default();
    assert_eq!(op(FloatOp::Min, plain, f32::NAN, 1.0), single(1.0));
    assert_eq!(op(FloatOp::Max, Mode { nan: true, ..plain }, f32::NAN, 1.0), F32.nan);
    assert_eq!(op(FloatOp::Min, plain, 0.0, -0.0), single(-0.0));
    assert_eq!(op(FloatOp::Max, plain, -0.0, 0.0), single(0.0));
    assert_eq!(op(FloatOp::Min, Mode { xor_sign: true, ..plain }, -3.0, 2.0), single(-2.0));
    let saturated = Mode { saturate: true, ..plain };
    assert_eq!(op(FloatOp::Exact(Exact::Add), saturated, 0.75, 0.75), single(1.0));
    assert_eq!(op(FloatOp::Exact(Exact::Add), saturated, -0.75, 0.25), 0);
    assert_eq!(op(FloatOp::Exact(Exact::Add), saturated, f32::NAN, 0.25), 0);
    let flushed = Mode { flush: true, ..plain };
    assert_eq!(op(FloatOp::Exact(Exact::Add), flushed, f32::from_bits(1), 0.0), 0);
    assert_eq!(op(FloatOp::Exact(Exact::Mul), flushed, f32::MIN_POSITIVE, 0.5), 0);
    assert_eq!(op(FloatOp::Exact(Exact::Mul), flushed, -f32::MIN_POSITIVE, 0.5), single(-0.0));
}

#[test]
fn results_have_the_right_nan() {
    let [quiet, signals, one] = [0xfff8_0000_0000_0123, 0x7ff0_0000_0000_0456, 0x3ff0_0000_0000_0000];
    let quieted = 0x7ff8_0000_0000_0456;
    for mode in [Mode::default(), Mode { round: Round::Up, ..Mode::default() }] {
        let double = |op, operands| apply(op, FloatType::F64, mode, operands);
        assert_eq!(double(FloatOp::Exact(Exact::Add), [quiet, signals, 0]), quieted);
        assert_eq!(double(FloatOp::Exact(Exact::Mul), [signals, quiet, 0]), quiet);
        assert_eq!(double(FloatOp::Exact(Exact::Sub), [signals, one, 0]), quieted);
        assert_eq!(double(FloatOp::Exact(Exact::Div), [quiet, signals, 0]), quiet);
        assert_eq!(double(FloatOp::Exact(Exact::Fma), [quiet, one, signals]), quieted);
        assert_eq!(double(FloatOp::Exact(Exact::Fma), [signals, quiet, signals]), quiet);
        assert_eq!(double(FloatOp::Min, [quiet, signals, 0]), quieted);
        assert_eq!(double(FloatOp::Abs, [quiet, 0, 0]), quiet);
        let infinity = f64::INFINITY.to_bits();
        assert_eq!(double(FloatOp::Exact(Exact::Sub), [infinity, infinity, 0]), F64.nan);
    }
    let single = |op| apply(op, FloatType::F32, Mode::default(), [0xff80_0123, 0, 0]);
    assert_eq!(
        [single(FloatOp::Exact(Exact::Add)), single(FloatOp::Neg), single(FloatOp::Abs)],
        [F32.nan; 3]
    );
    let to = |to, round| convert::between(quiet, F64, to, round, false);
    assert_eq!([to(F32, Round::Nearest), to(F16, Round::Nearest)], [0xffc0_0000, F16.nan]);
    let tf32 = |round| convert::between(0xff81_2345, F32, TF32, round, false);
    assert_eq!([tf32(Round::NearestAway), tf32(Round::Nearest)], [0xff81_2000, 0x7fff_e000]);
}

#[test]
fn zeros_are_normal() {
    let is = |test, bits| apply(FloatOp::Test(test), FloatType::F32, Mode::default(), [bits, 0, 0]) == 1;
    assert!(is(Test::Normal, 0) && is(Test::Normal, 1 << 31) && !is(Test::Subnormal, 0));
    assert!(is(Test::Subnormal, 1) && !is(Test::Normal, 1));
}
