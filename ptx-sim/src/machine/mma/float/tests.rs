//! Each rule, on numbers that were worked out by hand.

use super::*;

const F16_TO_F32: RoundingRule = rule(Operand::F16, Accumulator::F32);
const F16_TO_F16: RoundingRule = rule(Operand::F16, Accumulator::F16);
const E4M3_TO_F32: RoundingRule = rule(Operand::E4m3, Accumulator::F32);
const E5M2_TO_F16: RoundingRule = rule(Operand::E5m2, Accumulator::F16);

const fn rule(a: Operand, d: Accumulator) -> RoundingRule {
    match RoundingRule::of(a, d) {
        Some(rule) => rule,
        None => panic!("a type of floats"),
    }
}

/// Returns the dot product of some f16, with zeros for the rest, plus C.
#[track_caller]
fn halves(rule: RoundingRule, pairs: &[(f32, f32)], c: Option<u32>) -> u32 {
    let bits = |value: f32| half::f16::from_f32(value).to_bits().into();
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (bits(*a), bits(*b))).collect();
    raw::<16>(rule, [Operand::F16; 2], &pairs, c)
}

fn raw<const K: usize>(rule: RoundingRule, types: [Operand; 2], pairs: &[(u32, u32)], c: Option<u32>) -> u32 {
    let [a, b] = types.map(|ty| (ty, Format::of(ty).expect("a type of floats")));
    let number = |(ty, format), bits: Option<u32>| Number::of(ty, format, bits.unwrap_or(0));
    let left = std::array::from_fn(|k| number(a, pairs.get(k).map(|pair| pair.0)));
    let right = std::array::from_fn(|k| number(b, pairs.get(k).map(|pair| pair.1)));
    let (left, right) = (Line::<K>::new(left, shift(rule, a.1, b.1)), Line::<K>::new(right, 0));
    dot(rule, &left, &right, c)
}

fn f32_bits(value: f32) -> Option<u32> {
    Some(value.to_bits())
}

const MAX: f32 = 65504.0;

#[test]
fn exact_sums_are_exact() {
    assert_eq!(halves(F16_TO_F32, &[(1.5, 2.0), (-4.0, 0.25)], f32_bits(10.0)), 12.0_f32.to_bits());
    assert_eq!(
        halves(F16_TO_F16, &[(1.5, 2.0)], Some(0x3c00)),
        u32::from(half::f16::from_f32(4.0).to_bits())
    );
}

/// With emax 0, a term keeps 25 bits below it: 2^-25 counts, 2^-26 does not.
#[test]
fn terms_are_truncated_to_25_bits() {
    let small = |e: i32| f32::from_bits(((127 + e) as u32) << 23);
    // 1 - 2^-25 is 0.99999997, which truncates to the f32 below 1. In 1 - 2^-26 the term is lost.
    let sum = |e: i32| halves(F16_TO_F32, &[(1.0, 1.0), (-small(-13), small(e + 13))], None);
    assert_eq!(sum(-25), 0x3f7f_ffff);
    assert_eq!(sum(-26), 0x3f80_0000);
    // Two such terms are truncated before they are added.
    let twice = halves(F16_TO_F32, &[(1.0, 1.0), (-small(-13), small(-13)), (-small(-13), small(-13))], None);
    assert_eq!(twice, 0x3f80_0000);
}

/// Negative terms are truncated towards zero too, not down by a unit in the last place.
#[test]
fn truncation_is_towards_zero() {
    let tiny = f32::from_bits((127 - 12) << 23);
    // -2^-24 · 3/2 is -3 · 2^-25: the whole term is kept, and the result is truncated.
    assert_eq!(halves(F16_TO_F32, &[(1.0, 1.0), (-tiny * 1.5, tiny)], None), 0x3f7f_fffe);
    // A single -2^-26 is truncated to nothing, also with C = 1.
    let less = f32::from_bits((127 - 13) << 23);
    assert_eq!(halves(F16_TO_F32, &[(-less, less)], f32_bits(1.0)), 0x3f80_0000);
}

/// 1.5 · 1.5 has exponent 0, although it exceeds 2.
#[test]
fn products_are_not_normalised() {
    let e = |e: i32| f32::from_bits(((127 + e) as u32) << 23);
    let sum = |a: f32| halves(F16_TO_F32, &[(a, a), (-e(-12), e(-13))], f32_bits(-a * a));
    // C = -2.25 has exponent 1, so emax is 1 and the term -2^-25 is cut off.
    assert_eq!(sum(1.5), 0);
    // Without C emax is 0, and the term is kept: 2.25 - 2^-25, truncated to 24 bits.
    let without = halves(F16_TO_F32, &[(1.5, 1.5), (-e(-12), e(-13))], None);
    assert_eq!(without, 2.25_f32.to_bits() - 1);
}

/// Zeros do not take part in the greatest exponent, whatever their factor.
#[test]
fn zeros_have_no_exponent() {
    let e = |e: i32| f32::from_bits(((127 + e) as u32) << 23);
    let sum = halves(F16_TO_F32, &[(0.0, MAX), (-0.0, MAX), (e(-14), e(-14))], f32_bits(-0.0));
    assert_eq!(sum, e(-28).to_bits());
}

#[test]
fn a_zero_is_positive() {
    assert_eq!(halves(F16_TO_F32, &[(-0.0, 1.0)], f32_bits(-0.0)), 0);
    assert_eq!(halves(F16_TO_F32, &[(1.0, 1.0)], f32_bits(-1.0)), 0);
    // -2^-28 is below the least f16.
    let tiny = f32::from_bits((127 - 14) << 23);
    assert_eq!(halves(F16_TO_F16, &[(-tiny, tiny)], None), 0);
}

#[test]
fn c_may_be_absent() {
    assert_eq!(halves(F16_TO_F32, &[(1.0, 2.0)], Some(0x7fc0_0000)), 0x7fff_ffff);
    assert_eq!(halves(F16_TO_F32, &[(1.0, 2.0)], None), 2.0_f32.to_bits());
}

/// f32 results are truncated, f16 results are rounded to nearest even.
#[test]
fn results_are_rounded_by_their_type() {
    // 2049 is between the f16 numbers 2048 and 2050, and 2051 between 2050 and 2052.
    let f16 = |value: f32| u32::from(half::f16::from_f32(value).to_bits());
    assert_eq!(halves(F16_TO_F16, &[(2048.0, 1.0), (1.0, 1.0)], None), f16(2048.0));
    assert_eq!(halves(F16_TO_F16, &[(2048.0, 1.0), (3.0, 1.0)], None), f16(2052.0));
    // Rounded once: 2049 + 2^-10 is above the tie.
    assert_eq!(halves(F16_TO_F16, &[(2048.0, 1.0), (1.0, 1.0), (0.000_976_562_5, 1.0)], None), f16(2050.0));
    // 2^24 + 1.75, which an ordinary f32 addition would round to 2^24 + 2.
    let sum = halves(F16_TO_F32, &[(4096.0, 4096.0), (1.75, 1.0)], None);
    assert_eq!(sum, 16_777_216.0_f32.to_bits());
}

#[test]
fn subnormals_are_operands_and_results() {
    let least = f32::from_bits((127 - 24) << 23);
    // 2^-24 · 1 has the exponent of subnormals, -14.
    assert_eq!(halves(F16_TO_F32, &[(least, 1.0)], None), least.to_bits());
    assert_eq!(halves(F16_TO_F16, &[(least, 1.0)], None), 1);
    // The least subnormal of f32 as C.
    assert_eq!(halves(F16_TO_F32, &[], Some(1)), 1);
    // In bf16, 2^-75 · 2^-74 is the least subnormal of f32, and 2^-75 · 2^-75 underflows.
    let e = |e: i32| ((127 + e) as u32) << 7;
    let bf16 = rule(Operand::Bf16, Accumulator::F32);
    assert_eq!(raw::<16>(bf16, [Operand::Bf16; 2], &[(e(-75), e(-74))], None), 1);
    assert_eq!(raw::<16>(bf16, [Operand::Bf16; 2], &[(e(-75), 0x8000 | e(-75))], None), 0);
}

#[test]
fn overflow_is_an_infinity() {
    assert_eq!(halves(F16_TO_F16, &[(MAX, 1.0), (16.0, 1.0)], None), 0x7c00);
    assert_eq!(halves(F16_TO_F16, &[(-MAX, 1.0), (-8.0, 1.0)], None), 0xfbff);
    let e = |e: i32| ((127 + e) as u32) << 7;
    let bf16 = rule(Operand::Bf16, Accumulator::F32);
    assert_eq!(raw::<16>(bf16, [Operand::Bf16; 2], &[(0x8000 | e(100), e(28))], None), 0xff80_0000);
}

#[test]
fn nan_inputs_give_the_canonical_nan() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for pairs in [[(nan, 0.0), (1.0, 1.0)], [(inf, 0.0), (1.0, 1.0)], [(inf, 1.0), (1.0, -inf)]] {
        assert_eq!(halves(F16_TO_F32, &pairs, None), 0x7fff_ffff);
        assert_eq!(halves(F16_TO_F16, &pairs, None), 0x7fff);
    }
    assert_eq!(halves(F16_TO_F32, &[(-inf, 2.0)], f32_bits(inf)), 0x7fff_ffff);
    assert_eq!(halves(F16_TO_F32, &[(-inf, 2.0), (inf, -1.0)], f32_bits(1.0)), 0xff80_0000);
    assert_eq!(halves(F16_TO_F32, &[(1.0, 2.0)], f32_bits(inf)), 0x7f80_0000);
}

/// Sums of 8-bit floats keep 13 bits, in terms and in f32 results.
#[test]
fn eight_bits_keep_thirteen() {
    // In e4m3, 1 is 0x38, 2^-9 is 0x01 and 2^-6 is 0x08.
    let sum = |pairs: &[(u32, u32)], c| raw::<32>(E4M3_TO_F32, [Operand::E4m3; 2], pairs, c);
    // 1 + 2^-12 is kept. A C of 2^-13 is kept too, one of 2^-14 is not.
    assert_eq!(sum(&[(0x38, 0x38), (0x08, 0x08)], None), f32::to_bits(1.0 + 1.0 / 4096.0));
    assert_eq!(sum(&[(0x38, 0x38)], f32_bits(1.0 / 8192.0)), f32::to_bits(1.0 + 1.0 / 8192.0));
    assert_eq!(sum(&[(0x38, 0x38)], f32_bits(1.0 / 16384.0)), 1.0_f32.to_bits());
    // 3 + 2^-13: emax is 0 and keeps the term, but the result does not. (1.5 · 2 would have emax
    // 1.)
    assert_eq!(sum(&[(0x3c, 0x38), (0x3c, 0x38)], f32_bits(1.0 / 8192.0)), 3.0_f32.to_bits());
    // C alone loses the bits beyond 13.
    assert_eq!(sum(&[], f32_bits(f32::from_bits(0x3fff_ffff))), 0x3fff_fc00);
    // Mixed types, and f16: 57344 + 448 is rounded to nearest even.
    let mixed = raw::<32>(E4M3_TO_F32, [Operand::E4m3, Operand::E5m2], &[(0x7e, 0x7b)], None);
    assert_eq!(mixed, f32::to_bits(448.0 * 57344.0));
    let f16 = raw::<32>(E5M2_TO_F16, [Operand::E5m2; 2], &[(0x7b, 0x3c), (0x5f, 0x3c)], None);
    assert_eq!(f16, u32::from(half::f16::from_f32(57344.0 + 448.0).to_bits()));
}

/// The rules again, implemented in the most direct way.
fn plain(rule: RoundingRule, pairs: &[(Number, Number)], fractions: i32, c: Option<u32>) -> Option<u32> {
    let finite = |number| match number {
        Number::Finite { significand, exponent } => Some((i128::from(significand), exponent)),
        Number::Infinite { .. } | Number::Nan => None,
    };
    let mut terms = Vec::new();
    for (a, b) in pairs {
        let ((a, x), (b, y)) = (finite(*a)?, finite(*b)?);
        terms.push((a * b, x + y, fractions));
    }
    if let Some(bits) = c {
        let (significand, exponent) = finite(rule.format().number(bits))?;
        terms.push((significand, exponent, rule.format().fraction as i32));
    }
    let greatest = terms.iter().filter(|term| term.0 != 0).map(|term| term.1).max();
    let Some(greatest) = greatest else { return Some(0) };
    let kept = rule.kept as i32;
    let aligned = terms.iter().filter(|term| term.0 != 0).map(|(significand, exponent, fraction)| {
        // Division truncates.
        let up = kept - fraction - (greatest - exponent);
        if up >= 0 { significand << up } else { significand / (1 << (-up).min(120)) }
    });
    let sum = aligned.sum::<i128>() as f64 * f64::from(greatest - kept).exp2();
    let mut nearest = sum as f32;
    if f64::from(nearest).abs() > sum.abs() {
        nearest = f32::from_bits(nearest.to_bits() - 1);
    }
    let bits = match rule.output {
        // A sticky bit makes the second rounding correct.
        Output::F16 => {
            let rest = u32::from(f64::from(nearest) != sum);
            half::f16::from_f32(f32::from_bits(nearest.to_bits() | rest)).to_bits().into()
        }
        Output::F32 { fraction } => {
            let huge = sum.abs() >= 128_f64.exp2();
            if huge { rule.infinity(sum < 0.0) } else { nearest.to_bits() & !((1 << (23 - fraction)) - 1) }
        }
    };
    let sign = rule.infinity(true) ^ rule.infinity(false);
    Some(if bits & !sign == 0 { 0 } else { bits })
}

fn draws(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    }
}

/// Random bits of every type, with few or many zeros, and with exponents near each other and far
/// apart.
#[test]
fn the_fast_sum_is_the_plain_one() {
    let types = [
        (Operand::F16, Operand::F16, Accumulator::F32),
        (Operand::F16, Operand::F16, Accumulator::F16),
        (Operand::Bf16, Operand::Bf16, Accumulator::F32),
        (Operand::Tf32, Operand::Tf32, Accumulator::F32),
        (Operand::E4m3, Operand::E5m2, Accumulator::F32),
        (Operand::E5m2, Operand::E5m2, Accumulator::F16),
        (Operand::E4m3, Operand::E4m3, Accumulator::F32),
    ];
    let mut compared = 0;
    for (number, (a, b, d)) in (1..).zip(types) {
        let (rule, mut next) = (rule(a, d), draws(number));
        let [left, right] = [a, b].map(|ty| Format::of(ty).expect("a type of floats"));
        let keep = if a.bits() == 8 { 32 } else { 256 / a.bits() as usize };
        for round in 0..20_000_u32 {
            // Depending on the round, some elements have exponents near each other and some are
            // zero.
            let mut element = |ty: Operand, format: Format| {
                let bits = next() >> (32 - ty.bits());
                let few = !((1 << (ty.bits() - 2)) - (1 << (ty.bits() - 2 - round % 3)));
                let bits = if next() % (1 + round % 7) == 0 { bits & few } else { bits };
                if next() % 5 < round % 5 { Number::of(ty, format, 0) } else { Number::of(ty, format, bits) }
            };
            let pairs: Vec<_> = (0..keep).map(|_| (element(a, left), element(b, right))).collect();
            let (one, other) = (line(&pairs, 0, rule, left, right), line(&pairs, 1, rule, left, right));
            let c = match round % 4 {
                0 => None,
                1 => Some(0),
                // The sum itself, up to its two lowest bits.
                2 => Some(dot(rule, &one, &other, None) ^ (next() % 4)),
                _ => Some(if d == Accumulator::F16 { next() >> 16 } else { next() }),
            };
            let found = dot(rule, &one, &other, c);
            let fractions = (left.fraction + right.fraction) as i32;
            if let Some(wanted) = plain(rule, &pairs, fractions, c) {
                assert_eq!(found, wanted, "{a} {b} {d}, round {round}: {pairs:?} {c:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 50_000, "{compared}");
}

/// Returns one side of the pairs as a line of 32, padded with zeros.
fn line(pairs: &[(Number, Number)], side: usize, rule: RoundingRule, a: Format, b: Format) -> Line<32> {
    let zero = Number::Finite { significand: 0, exponent: NONE };
    let number = |k: usize| pairs.get(k).map_or(zero, |pair| if side == 0 { pair.0 } else { pair.1 });
    Line::new(std::array::from_fn(number), if side == 0 { shift(rule, a, b) } else { 0 })
}

/// Compares with ordinary f32 sums, which are exact for small integers.
#[test]
fn sums_of_small_integers_are_exact() {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 65) as f32 - 32.0
    };
    for _ in 0..2000 {
        let pairs: Vec<(f32, f32)> = (0..16).map(|_| (next(), next())).collect();
        let c = next();
        let wanted = pairs.iter().map(|(a, b)| a * b).sum::<f32>() + c;
        let wanted = if wanted == 0.0 { 0.0 } else { wanted };
        assert_eq!(halves(F16_TO_F32, &pairs, f32_bits(c)), wanted.to_bits());
    }
}
