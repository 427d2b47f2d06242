//! Integer, bit and floating-point operations on the lanes of a warp.
//!
//! A simple operation is a function over all 32 lanes, in a loop that the compiler vectorises.
//! Lanes hold the bits of a value, with zeros above them.

mod bits;
mod carry;
mod compare;
mod convert;
mod integer;

use super::warp::Warp;
use super::{Context, float, lanes_of};
use crate::isa::{Alu, Binary, Reg, Ternary, Unary};

/// A register in all lanes.
pub(crate) type Lanes = [u64; 32];
/// `d = f(a)` in the lanes of the mask.
type UnaryFn = fn(&mut Lanes, &Lanes, u32);
/// `d = f(a, b)` in the lanes of the mask.
type BinaryFn = fn(&mut Lanes, &Lanes, &Lanes, u32);
/// `d = f(a, b, c)` in the lanes of the mask.
type TernaryFn = fn(&mut Lanes, &Lanes, &Lanes, &Lanes, u32);

/// Makes the lane function of an expression with one operand.
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

/// Makes the lane function of an expression with two operands.
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

/// Makes the lane function of an expression with three operands.
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

use {one, three, two};

/// Executes an operation in the lanes of the mask.
pub(super) fn execute(context: &Context<'_>, warp: &mut Warp, op: &Alu, active: u32) {
    match op {
        Alu::Unary { op, d, a } => {
            let a = *context.lanes(&warp.registers, *a);
            unary(*op)(&mut warp.registers[d.index()], &a, active);
        }
        Alu::Binary { op, d, sources } => {
            // `map` would copy the whole array two more times.
            let [a, b] = sources;
            let (a, b) = (*context.lanes(&warp.registers, *a), *context.lanes(&warp.registers, *b));
            binary(*op)(&mut warp.registers[d.index()], &a, &b, active);
        }
        Alu::Ternary { op, d, sources } => {
            let [a, b, c] = sources.each_ref().map(|reg| context.lanes(&warp.registers, *reg));
            let (a, b, c) = (*a, *b, *c);
            ternary(*op)(&mut warp.registers[d.index()], &a, &b, &c, active);
        }
        Alu::Lop3 { table, d, sources } => {
            each(context, warp, active, *d, *sources, |[a, b, c]| bits::table(a, b, c, *table));
        }
        Alu::Insert { bits, d, sources } => {
            let insert = |[a, b, c, e]: [u64; 4]| bits::insert(a, b, c, e, *bits);
            each(context, warp, active, *d, *sources, insert);
        }
        Alu::Float(code) => {
            let apply = if code.pair { float::apply_packed } else { float::apply };
            each(context, warp, active, code.d, code.sources, |sources| {
                apply(code.op, code.ty, code.mode, sources)
            });
        }
        Alu::Carry(code) => carry::execute(context, warp, code, active),
        Alu::Compare(code) => compare::execute(context, warp, code, active),
        Alu::ComparePair(code) => compare::execute_pair(context, warp, code, active),
        Alu::Convert { conversion, d, a } => {
            each(context, warp, active, *d, [*a], |[a]| convert::one(conversion, a));
        }
        Alu::ConvertPair { conversion, d, sources } => {
            each(context, warp, active, *d, *sources, |[a, b]| convert::pair(*conversion, a, b));
        }
        Alu::Pack { bits, d, parts } => {
            for lane in lanes_of(active) {
                let part = |part: &Reg| warp.get(context, *part, lane) & (u64::MAX >> (64 - bits));
                let joined = parts.iter().rev().fold(0, |above, reg| above << bits | part(reg));
                warp.set(*d, lane, joined);
            }
        }
        Alu::Unpack { bits, parts, a } => {
            for lane in lanes_of(active) {
                let mut value = warp.get(context, *a, lane);
                for part in parts {
                    warp.set(*part, lane, value & (u64::MAX >> (64 - bits)));
                    value >>= bits;
                }
            }
        }
        // The clock counts the instructions that the warp has run.
        Alu::Clock { wide, d } => {
            let all = warp.warp_instructions;
            let now = if *wide { all } else { all & 0xffff_ffff };
            each(context, warp, active, *d, [], |[]| now);
        }
        Alu::ActiveMask { d } => each(context, warp, active, *d, [], |[]| active.into()),
    }
}

/// Sets `d` to the result of `f` on the operands of each lane.
#[inline]
pub(super) fn each<const N: usize>(
    context: &Context<'_>,
    warp: &mut Warp,
    active: u32,
    d: Reg,
    sources: [Reg; N],
    f: impl Fn([u64; N]) -> u64,
) {
    for lane in lanes_of(active) {
        let operands = sources.map(|reg| warp.get(context, reg, lane));
        warp.set(d, lane, f(operands));
    }
}

fn unary(op: Unary) -> UnaryFn {
    match op {
        Unary::Copy => bits::COPY,
        Unary::Integer(op, ty) => integer::unary(op, ty),
    }
}

fn binary(op: Binary) -> BinaryFn {
    match op {
        Binary::And => bits::AND,
        Binary::Or => bits::OR,
        Binary::Xor => bits::XOR,
        Binary::Shift { left, ty } => integer::shift(left, ty),
        Binary::Mask { wrap } => bits::mask(wrap),
        Binary::Integer(op, ty) => integer::binary(op, ty),
        Binary::Packed(op) => integer::packed(op),
    }
}

fn ternary(op: Ternary) -> TernaryFn {
    match op {
        Ternary::Select => bits::SELECT,
        Ternary::SelectBySign => bits::SELECT_BY_SIGN,
        Ternary::SelectBySingle => bits::SELECT_BY_SINGLE,
        Ternary::Extract(ty) => bits::extract(ty),
        Ternary::Funnel { left, wrap } => bits::funnel(left, wrap),
        Ternary::Permute(mode) => bits::permute(mode),
        Ternary::FindNth => bits::FIND_NTH,
        Ternary::Dot2 { high, signed: [a, b] } => bits::dot_2(high, a, b),
        Ternary::Dot4 { signed: [a, b] } => bits::dot_4(a, b),
        Ternary::Differences4 { signed, summed } => bits::differences_4(signed, summed),
        Ternary::Integer(op, ty) => integer::ternary(op, ty),
    }
}
