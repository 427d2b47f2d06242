//! The approximate functions compared with doubles, over all exponents and the special operands.
//! Their errors must be within the bounds of the PTX ISA (9.4, the notes of each instruction in the
//! chapters 9.7.3, "Floating-Point Instructions", and 9.7.4, "Half Precision Floating-Point
//! Instructions").

use half::{bf16, f16};
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};

/// Runs `instruction` on `%r2` (and `%r3`) into `%r4` for each pair of operands. `%h2` and `%h4`
/// are the low halves of `%r2` and `%r4`.
fn results(instruction: &str, operands: &[(u32, u32)]) -> Vec<u32> {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 at)\n{{\n\
         .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b16 %h<9>; .reg .pred %p<2>;\n\
         ld.param.u64 %d1, [at]; mov.u32 %r1, %tid.x; mov.u32 %r5, %ctaid.x; mad.lo.u32 %r1, %r5, 256, %r1;\n\
         mul.wide.u32 %d2, %r1, 8; add.u64 %d1, %d1, %d2; ld.global.v2.u32 {{%r2, %r3}}, [%d1];\n\
         cvt.u16.u32 %h2, %r2; mov.u32 %r4, 0; mov.u16 %h4, 0;\n{instruction}\n\
         {}st.global.u32 [%d1], %r4;\nret;\n}}\n",
        if instruction.contains("%h4") { "cvt.u32.u16 %r4, %h4; " } else { "" }
    );
    let module = Module::load(&text).expect("it loads");
    let mut memory = GlobalMemory::default();
    let count = operands.len().next_multiple_of(256);
    let at = memory.allocate(count as u64 * 8, false).expect("there is room");
    let bytes: Vec<u8> =
        operands.iter().flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect();
    memory.write(at, &bytes).expect("it fits");
    let grid = [(count / 256) as u32, 1, 1];
    let config = LaunchConfig { grid, block: [256, 1, 1], ..LaunchConfig::default() };
    let report = launch(&module, &mut memory, "k", &config, &[Arg::Address(at)]).expect("it starts");
    assert!(report.findings.is_empty(), "{}", report.findings.render(&module.sources(|_| None)));
    let mut bytes = vec![0; operands.len() * 8];
    memory.read(at, &mut bytes).expect("it is there");
    bytes.chunks(8).map(|pair| u32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]])).collect()
}

/// Returns singles of each exponent and sign, with the least, the greatest and other mantissas,
/// including infinities and NaNs.
fn singles() -> Vec<u32> {
    let mantissas = [0, 1, 0x1234, 0x2_0000, 0x3f_ffff, 0x40_0000, 0x5a_5a5a, 0x7f_fffe, 0x7f_ffff];
    let all = (0..512_u32).flat_map(|top| mantissas.map(|mantissa| top << 23 | mantissa));
    // Around 1, where logarithms are near zero, and arguments for exponentials and angles.
    all.chain((0..512).map(|i| 0x3f80_0000 - 256 + i))
        .chain((0..2000).map(|i| (i as f32 / 7.0 - 140.0).to_bits()))
        .collect()
}

/// A bound that the PTX ISA states.
#[derive(Clone, Copy)]
enum Bound {
    Relative(f64),
    Absolute(f64),
    /// In units in the last place of a single.
    Ulps(f64),
    /// In the same units, relative to the nearest single.
    UlpsOfNearest(f64),
}

fn ulp(value: f64) -> f64 {
    let exponent = (value.abs().log2().floor() as i32).max(-126);
    2_f64.powi(exponent - 23)
}

/// Compares `found` with `exact`. NaNs, infinities and signs of zero must match, and other results
/// must be within `bound`. A result below the normal numbers of the format, the least of which is
/// `least`, may also be off by the spacing of subnormals, or flushed to zero.
fn judge(label: &str, exact: f64, found: f64, bound: Bound, least: f64) {
    if exact.is_nan() {
        return assert!(found.is_nan(), "{label}: {found} is no NaN");
    }
    if exact == 0.0 || exact.is_infinite() || found.is_infinite() {
        // Halves, recognised by their least normal number, end at 65504.
        let greatest = if least > 1e-10 { 65504.0 } else { 3.38e38 };
        let overflow = found.is_infinite() && exact.abs() > greatest && exact.signum() == found.signum();
        return assert!(overflow || exact.to_bits() == found.to_bits(), "{label}: {found} is not {exact}");
    }
    let error = match bound {
        Bound::UlpsOfNearest(_) => (found - f64::from(exact as f32)).abs(),
        Bound::Relative(_) | Bound::Absolute(_) | Bound::Ulps(_) => (found - exact).abs(),
    };
    let allowed = match bound {
        Bound::Relative(bound) => bound * exact.abs(),
        Bound::Absolute(bound) => bound,
        Bound::Ulps(bound) | Bound::UlpsOfNearest(bound) => bound * ulp(exact),
    };
    let small = exact.abs() < least && error <= least;
    assert!(
        error <= allowed || small,
        "{label}: {found} is off by {error:e} from {exact}, more than {allowed:e}"
    );
}

/// Converts a single to a double. Subnormals become zeros if `flush` is set.
fn value(bits: u32, flush: bool) -> f64 {
    let bits = if flush && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits };
    f32::from_bits(bits).into()
}

fn of_singles(name: &str, exact: fn(f64) -> f64, bound: impl Fn(f64) -> Option<Bound>) {
    for flush in [false, true] {
        let instruction = format!("{name}{}.f32 %r4, %r2;", if flush { ".ftz" } else { "" });
        let operands: Vec<(u32, u32)> = singles().iter().map(|bits| (*bits, 0)).collect();
        for ((bits, _), found) in operands.iter().zip(results(&instruction, &operands)) {
            let x = value(*bits, flush);
            let Some(bound) = bound(x) else { continue };
            let exact = exact(x);
            let flushed = flush && exact.abs() < f64::from(f32::MIN_POSITIVE);
            let exact = if flushed { 0.0_f64.copysign(exact) } else { exact };
            let label = format!("{instruction} of {x:e} ({bits:#010x})");
            judge(&label, exact, f32::from_bits(found).into(), bound, f32::MIN_POSITIVE.into());
        }
    }
}

#[test]
fn exponentials_and_logarithms() {
    of_singles("ex2.approx", f64::exp2, |_| Some(Bound::UlpsOfNearest(2.0)));
    of_singles(
        "lg2.approx",
        |x| if x == 0.0 { f64::NEG_INFINITY } else { x.log2() },
        |x| {
            let near = x > 0.5 && x < 2.0;
            Some(if near { Bound::Absolute(2_f64.powi(-22)) } else { Bound::Relative(2_f64.powi(-22)) })
        },
    );
}

#[test]
fn roots_and_reciprocals() {
    of_singles("rcp.approx", |x| 1.0 / x, |_| Some(Bound::Ulps(1.0)));
    of_singles("sqrt.approx", f64::sqrt, |_| Some(Bound::Relative(2_f64.powi(-23))));
    of_singles("rsqrt.approx", |x| 1.0 / x.sqrt(), |_| Some(Bound::Relative(2_f64.powf(-22.9))));
}

#[test]
fn sines_and_cosines() {
    // Bounds are stated within one turn to either side of 0, within fifty turns, and at infinity.
    let bound = |turn: f64| {
        move |x: f64| match x.abs() / std::f64::consts::PI {
            ..=2.0 => Some(Bound::Absolute(2_f64.powf(turn))),
            ..=100.0 => Some(Bound::Absolute(2_f64.powf(-14.7))),
            f64::INFINITY => Some(Bound::Absolute(0.0)),
            _ => None,
        }
    };
    of_singles("sin.approx", f64::sin, bound(-20.5));
    of_singles("cos.approx", f64::cos, bound(-20.4));
}

#[test]
fn tangents() {
    let operands: Vec<(u32, u32)> = singles().iter().map(|bits| (*bits, 0)).collect();
    for ((bits, _), found) in operands.iter().zip(results("tanh.approx.f32 %r4, %r2;", &operands)) {
        let x = value(*bits, false);
        let bound = Bound::Relative(2_f64.powi(-11));
        judge(
            &format!("tanh of {x:e}"),
            x.tanh(),
            f32::from_bits(found).into(),
            bound,
            f32::MIN_POSITIVE.into(),
        );
    }
}

#[test]
fn quotients() {
    let values = singles();
    let operands: Vec<(u32, u32)> =
        (0..values.len()).map(|i| (values[i], values[(i * 2971 + 17) % values.len()])).collect();
    for flush in [false, true] {
        for name in ["div.approx", "div.full"] {
            let instruction = format!("{name}{}.f32 %r4, %r2, %r3;", if flush { ".ftz" } else { "" });
            for ((a, b), found) in operands.iter().zip(results(&instruction, &operands)) {
                let (a, b) = (value(*a, flush), value(*b, flush));
                let exact = a / b;
                let (large, small) = (2_f64.powi(126), 2_f64.powi(-126));
                // A quotient by a larger divisor is zero, or a NaN if the dividend is infinite. For
                // a smaller divisor no bound is stated.
                if name == "div.approx" && b.is_finite() && b != 0.0 && !(small..=large).contains(&b.abs()) {
                    let found = f64::from(f32::from_bits(found));
                    let as_stated = if a.is_finite() { found == 0.0 } else { found.is_nan() };
                    assert!(b.abs() < small || as_stated, "{a:e} / {b:e} is {found:e}");
                    continue;
                }
                let flushed = flush && exact.abs() < f64::from(f32::MIN_POSITIVE);
                let exact = if flushed { 0.0_f64.copysign(exact) } else { exact };
                let label = format!("{instruction} of {a:e} and {b:e}");
                judge(
                    &label,
                    exact,
                    f32::from_bits(found).into(),
                    Bound::Ulps(2.0),
                    f32::MIN_POSITIVE.into(),
                );
            }
        }
    }
}

/// Tests all 16-bit numbers, in both halves of a register and alone.
fn of_halves(name: &str, ty: &str, read: fn(u16) -> f64, exact: fn(f64) -> f64, bound: Bound, least: f64) {
    let all: Vec<(u32, u32)> =
        (0..=u16::MAX).map(|bits| (u32::from(bits) | u32::from(bits) << 16, 0)).collect();
    let single = results(&format!("{name}.{ty} %h4, %h2;"), &all);
    let double = results(&format!("{name}.{ty}x2 %r4, %r2;"), &all);
    for ((bits, single), double) in (0..=u16::MAX).zip(single).zip(double) {
        assert_eq!(double, single & 0xffff | single << 16, "{name}.{ty}x2 of {bits:#06x}");
        let flush = name.contains("ftz");
        let x = read(bits);
        let x = if flush && x.abs() < least { 0.0_f64.copysign(x) } else { x };
        let exact = exact(x);
        let exact = if flush && exact.abs() < least { 0.0_f64.copysign(exact) } else { exact };
        judge(&format!("{name}.{ty} of {x:e}"), exact, read(single as u16), bound, least);
    }
}

#[test]
fn halves() {
    let (f16_least, bf16_least) = (2_f64.powi(-14), 2_f64.powi(-126));
    let half: fn(u16) -> f64 = |bits| f16::from_bits(bits).to_f64();
    let brain: fn(u16) -> f64 = |bits| bf16::from_bits(bits).to_f64();
    of_halves("ex2.approx", "f16", half, f64::exp2, Bound::Relative(2_f64.powf(-9.9)), f16_least);
    of_halves("ex2.approx.ftz", "bf16", brain, f64::exp2, Bound::Relative(2_f64.powi(-7)), bf16_least);
    of_halves("tanh.approx", "f16", half, f64::tanh, Bound::Absolute(2_f64.powf(-10.987)), f16_least);
    of_halves("tanh.approx", "bf16", brain, f64::tanh, Bound::Absolute(2_f64.powi(-8)), bf16_least);
}
