//! Instructions on numbers that are more than one function over all lanes.

use super::float::compare;
use super::step::Turn;
use super::warp::Warp;
use super::{Context, lanes_of};
use crate::isa::float::convert;
use crate::isa::float::format::{E4M3, E5M2, F16, F32, Format, Round, TF32};
use crate::isa::float::{FloatType, Mode};
use crate::isa::{
    Carry, CarryOp, Combine, Compared, Comparison, Conversion, Guard, Integer, Numeric, PairConversion, Row,
    Truth,
};

/// Puts what `f` makes of each lane's operands into `d`.
#[inline]
pub(super) fn each<const N: usize>(
    context: &Context<'_>,
    warp: &mut Warp,
    active: u32,
    (d, of): (Row, [Row; N]),
    f: impl Fn([u64; N]) -> u64,
) {
    for lane in lanes_of(active) {
        let operands = of.map(|row| warp.get(context, row, lane));
        warp.set(d, lane, f(operands));
    }
}

/// Arithmetic with the carry flag.
pub(super) fn carry(
    context: &Context<'_>,
    warp: &mut Warp,
    active: u32,
    carry: Carry,
    (d, of): (Row, [Row; 3]),
) {
    for lane in lanes_of(active) {
        let operands = of.map(|row| warp.get(context, row, lane));
        let flag = warp.get(context, Row::CARRY, lane);
        let (result, flag) = with_carry(carry, operands, flag);
        warp.set(d, lane, result);
        if carry.writes {
            warp.set(Row::CARRY, lane, flag);
        }
    }
}

/// Joins parts of so many bits, the first lowest.
pub(super) fn pack(
    context: &Context<'_>,
    warp: &mut Warp,
    active: u32,
    bits: u32,
    (d, parts): (Row, &[Row]),
) {
    for lane in lanes_of(active) {
        let of = |part: u64| part & (u64::MAX >> (64 - bits));
        let joined =
            parts.iter().rev().fold(0, |above, part| above << bits | of(warp.get(context, *part, lane)));
        warp.set(d, lane, joined);
    }
}

/// The opposite of [`pack`].
pub(super) fn unpack(
    context: &Context<'_>,
    warp: &mut Warp,
    active: u32,
    bits: u32,
    (parts, a): (&[Row], Row),
) {
    for lane in lanes_of(active) {
        let mut value = warp.get(context, a, lane);
        for part in parts {
            warp.set(*part, lane, value & (u64::MAX >> (64 - bits)));
            value >>= bits;
        }
    }
}

/// The value of `clock`: instructions that the warp has run.
pub(super) fn clock(warp: &Warp, wide: bool) -> u64 {
    if wide { warp.warp_instructions } else { warp.warp_instructions & 0xffff_ffff }
}

/// The result and the new carry flag.
fn with_carry(carry: Carry, [a, b, c]: [u64; 3], flag: u64) -> (u64, u64) {
    let ty = Integer { bits: carry.bits, signed: false };
    let all = u128::from(u64::MAX >> (64 - carry.bits));
    let flag = u128::from(if carry.reads { flag & 1 } else { 0 });
    let (a, b, c) = (u128::from(a), u128::from(b), u128::from(c));
    let sum = match carry.op {
        CarryOp::Add => a + b + flag,
        // The PTX ISA calls it a borrow, but does not say what `addc` after `sub.cc` sees. nvcc's division of 128-bit
        // integers asks just that, and takes a carry for the absence of a borrow: as if the complement were added.
        CarryOp::Sub => a + (!b & all) + if carry.reads { flag } else { 1 },
        CarryOp::MadLow => ((a * b) & all) + c + flag,
        CarryOp::MadHigh => {
            let signed = Integer { signed: carry.signed, ..ty };
            let product = signed.read(a as u64) * signed.read(b as u64);
            let high = if carry.signed { (product >> carry.bits) as u128 } else { (a * b) >> carry.bits };
            (high & all) + c + flag
        }
    };
    ((sum & all) as u64, (sum >> carry.bits) as u64)
}

pub(super) fn convert_one(conversion: &Conversion, value: u64) -> u64 {
    let Conversion { from, to, round, integral, mode, finite, width } = *conversion;
    match (from, to) {
        (Numeric::Integer(from), Numeric::Integer(to)) => {
            let number = from.read(value);
            let number = if mode.saturate { number.clamp(to.least(), to.greatest()) } else { number };
            in_register(number as u64, to, width)
        }
        (Numeric::Integer(from), to) => {
            let to = format_of(to);
            finished(mode, to, convert::from_integer(from.read(value), to, round))
        }
        (from, Numeric::Integer(to)) => {
            let flush = mode.flush && from == Numeric::Float(FloatType::F32);
            let format = format_of(from);
            let bits = value & (u64::MAX >> (64 - format_bits(format)));
            in_register(convert::to_integer(bits, format, to, round, flush), to, width)
        }
        (from, to) => {
            let (from, to) = (format_of(from), format_of(to));
            let bits = value & (u64::MAX >> (64 - format_bits(from)));
            let result = if integral {
                convert::to_integral(bits, from, to, round, mode.flush)
            } else if finite {
                convert::between_finite(bits, from, to, round)
            } else {
                convert::between(bits, from, to, round, mode.flush)
            };
            finished(mode, to, result)
        }
    }
}

fn format_bits(format: Format) -> u32 {
    1 + format.exponent + format.fraction + format.below
}

fn format_of(numeric: Numeric) -> Format {
    match numeric {
        Numeric::Float(ty) => ty.format(),
        Numeric::Tf32 | Numeric::Integer(_) => TF32,
    }
}

fn finished(mode: Mode, format: Format, bits: u64) -> u64 {
    super::float::finish(format, mode, bits)
}

/// A result of a narrow type in a wider register is extended as its type says.
fn in_register(value: u64, ty: Integer, width: u32) -> u64 {
    (ty.read(value) as u64) << (64 - width) >> (64 - width)
}

pub(super) fn convert_pair(conversion: PairConversion, a: u64, b: u64) -> u64 {
    let relu = |bits: u64, format: Format, on: bool| {
        let mode = Mode { relu: on, ..Default::default() };
        finished(mode, format, bits)
    };
    // The first operand is the upper half of the result.
    match conversion {
        PairConversion::ToHalves { to, round, relu: on, finite } => {
            let to = to.format();
            let half = |bits| {
                let bits = if finite {
                    convert::between_finite(bits, F32, to, round)
                } else {
                    convert::between(bits, F32, to, round, false)
                };
                relu(bits, to, on)
            };
            half(a) << 16 | half(b)
        }
        PairConversion::ToEights { e4m3, relu: on } => {
            let to = if e4m3 { E4M3 } else { E5M2 };
            let eight = |bits| relu(convert::between_finite(bits, F32, to, Round::Nearest), to, on);
            eight(a) << 8 | eight(b)
        }
        PairConversion::HalvesToEights { e4m3, relu: on } => {
            let to = if e4m3 { E4M3 } else { E5M2 };
            let eight = |bits| relu(convert::between_finite(bits, F16, to, Round::Nearest), to, on);
            eight(a >> 16 & 0xffff) << 8 | eight(a & 0xffff)
        }
        PairConversion::EightsToHalves { e4m3, relu: on } => {
            let from = if e4m3 { E4M3 } else { E5M2 };
            let half = |bits| relu(convert::between(bits, from, F16, Round::Nearest, false), F16, on);
            half(a >> 8 & 0xff) << 16 | half(a & 0xff)
        }
    }
}

fn combined(combine: Combine, a: bool, b: bool) -> bool {
    match combine {
        Combine::And => a && b,
        Combine::Or => a || b,
        Combine::Xor => a != b,
    }
}

/// `setp` and `set` of one number.
pub(super) fn compare(
    turn: &Turn<'_, '_>,
    warp: &mut Warp,
    active: u32,
    (compared, comparison, [a, b]): (Compared, Comparison, [Row; 2]),
    combine: Option<(Combine, Guard)>,
    truth: Truth,
    [d, opposite]: [Row; 2],
) {
    let context = turn.context;
    let other = combine.map(|(combine, guard)| (combine, turn.holds(warp, guard)));
    let (a, b) = (*context.lanes(&warp.registers, a), *context.lanes(&warp.registers, b));
    let results = match compared {
        Compared::Integer(ty) => integer_results(ty, comparison, &a, &b),
        Compared::Float(ty, flush) => {
            let holds =
                |lane: u32| comparison.of(compare::order(ty, flush, a[lane as usize], b[lane as usize]));
            lanes_of(active).filter(|lane| holds(*lane)).fold(0, |mask, lane| mask | 1 << lane)
        }
    };
    for lane in lanes_of(active) {
        let holds = |mask: u32| mask >> lane & 1 != 0;
        let result = holds(results);
        let with = |result| other.map_or(result, |(combine, mask)| combined(combine, result, holds(mask)));
        let value = match truth {
            Truth::Predicate => u64::from(with(result)),
            Truth::Bits(bits) => {
                if with(result) {
                    bits
                } else {
                    0
                }
            }
        };
        warp.set(d, lane, value);
        if opposite != Row::SINK {
            warp.set(opposite, lane, u64::from(with(!result)));
        }
    }
}

/// The lanes in which a comparison of integers holds.
fn integer_results(ty: Integer, comparison: Comparison, a: &super::alu::Lanes, b: &super::alu::Lanes) -> u32 {
    // Turning the sign bit makes the order of signed numbers that of unsigned ones.
    let unused = 64 - ty.bits;
    let flip = u64::from(ty.signed) << 63;
    let mut mask = 0;
    for lane in 0..32 {
        let (a, b) = ((a[lane] << unused) ^ flip, (b[lane] << unused) ^ flip);
        mask |= u32::from(comparison.of(Some(a.cmp(&b)))) << lane;
    }
    mask
}

/// `setp` and `set` of two halves at once.
pub(super) fn compare_pair(
    turn: &Turn<'_, '_>,
    warp: &mut Warp,
    active: u32,
    (ty, flush, comparison, [a, b]): (FloatType, bool, Comparison, [Row; 2]),
    combine: Option<(Combine, Guard)>,
    truth: Truth,
    [d, second]: [Row; 2],
) {
    let other = combine.map(|(combine, guard)| (combine, turn.holds(warp, guard)));
    for lane in lanes_of(active) {
        let (a, b) = (warp.get(turn.context, a, lane), warp.get(turn.context, b, lane));
        let holds = |shift: u32| {
            let result = comparison.of(compare::order(ty, flush, a >> shift & 0xffff, b >> shift & 0xffff));
            other.map_or(result, |(combine, mask)| combined(combine, result, mask >> lane & 1 != 0))
        };
        let (low, high) = (holds(0), holds(16));
        match truth {
            Truth::Predicate => {
                warp.set(d, lane, u64::from(low));
                warp.set(second, lane, u64::from(high));
            }
            Truth::Bits(bits) if bits > 0xffff => warp.set(d, lane, if low && high { bits } else { 0 }),
            Truth::Bits(bits) => {
                warp.set(d, lane, (u64::from(high) * bits) << 16 | (u64::from(low) * bits));
            }
        }
    }
}
