//! Arithmetic with the carry flag.

use super::super::warp::Warp;
use super::super::{Context, lanes_of};
use crate::isa::{Carry, CarryOp, Integer, Reg};

pub(super) fn execute(context: &Context<'_>, warp: &mut Warp, code: &Carry, active: u32) {
    for lane in lanes_of(active) {
        let operands = code.sources.map(|reg| warp.get(context, reg, lane));
        let flag = warp.get(context, Reg::CARRY, lane);
        let (result, flag) = with_carry(code, operands, flag);
        warp.set(code.d, lane, result);
        if code.writes {
            warp.set(Reg::CARRY, lane, flag);
        }
    }
}

/// Returns the result and the new carry flag.
fn with_carry(carry: &Carry, operands: [u64; 3], flag: u64) -> (u64, u64) {
    let ty = Integer { bits: carry.bits, signed: false };
    let all = u128::from(u64::MAX >> (64 - carry.bits));
    let flag = u128::from(if carry.reads { flag & 1 } else { 0 });
    let [a, b, c] = operands.map(u128::from);
    let sum = match carry.op {
        CarryOp::Add => a + b + flag,
        // The PTX ISA calls the flag a borrow, but does not say what `addc` after `sub.cc` sees.
        // nvcc's division of 128-bit integers depends on this, and takes a carry to mean no borrow,
        // as if the complement were added.
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
