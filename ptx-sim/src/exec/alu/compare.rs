//! `setp` and `set`.

use super::super::float::compare;
use super::super::warp::Warp;
use super::super::{Context, lanes_of};
use super::Lanes;
use crate::isa::{Combine, Combined, Compare, ComparePair, Compared, Comparison, Integer, Reg, Truth};

/// The predicate that the result is combined with, as the lanes in which it holds.
struct Other {
    by: Combine,
    holds: u32,
}

impl Other {
    fn of(context: &Context<'_>, warp: &Warp, combined: Option<Combined>) -> Option<Other> {
        combined.map(|Combined { by, with }| Other { by, holds: warp.holds(context, with) })
    }

    /// Combines the result with the predicate of a lane.
    fn combine(other: Option<&Other>, result: bool, lane: u32) -> bool {
        let Some(Other { by, holds }) = other else { return result };
        let with = holds >> lane & 1 != 0;
        match by {
            Combine::And => result && with,
            Combine::Or => result || with,
            Combine::Xor => result != with,
        }
    }
}

/// Compares one number in each lane.
pub(super) fn execute(context: &Context<'_>, warp: &mut Warp, code: &Compare, active: u32) {
    let Compare { compared, comparison, sources, combined, truth, d, opposite } = *code;
    let other = Other::of(context, warp, combined);
    let [a, b] = sources.map(|reg| context.lanes(&warp.registers, reg));
    let results = match compared {
        Compared::Integer(ty) => integer_results(ty, comparison, a, b),
        Compared::Float(ty, flush) => {
            let holds =
                |lane: u32| comparison.of(compare::order(ty, flush, a[lane as usize], b[lane as usize]));
            lanes_of(active).filter(|lane| holds(*lane)).fold(0, |mask, lane| mask | 1 << lane)
        }
    };
    for lane in lanes_of(active) {
        let result = results >> lane & 1 != 0;
        let with = |result| Other::combine(other.as_ref(), result, lane);
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
        if opposite != Reg::SINK {
            warp.set(opposite, lane, u64::from(with(!result)));
        }
    }
}

/// Returns the lanes in which a comparison of integers holds.
fn integer_results(ty: Integer, comparison: Comparison, a: &Lanes, b: &Lanes) -> u32 {
    // Flipping the sign bit turns the order of signed numbers into that of unsigned ones.
    let unused = 64 - ty.bits;
    let flip = u64::from(ty.signed) << 63;
    let mut mask = 0;
    for lane in 0..32 {
        let (a, b) = ((a[lane] << unused) ^ flip, (b[lane] << unused) ^ flip);
        mask |= u32::from(comparison.of(Some(a.cmp(&b)))) << lane;
    }
    mask
}

/// Compares a pair of halves in each lane.
pub(super) fn execute_pair(context: &Context<'_>, warp: &mut Warp, code: &ComparePair, active: u32) {
    let ComparePair { ty, flush, comparison, sources: [a, b], combined, truth, d: [d, second] } = *code;
    let other = Other::of(context, warp, combined);
    for lane in lanes_of(active) {
        let (a, b) = (warp.get(context, a, lane), warp.get(context, b, lane));
        let holds = |shift: u32| {
            let result = comparison.of(compare::order(ty, flush, a >> shift & 0xffff, b >> shift & 0xffff));
            Other::combine(other.as_ref(), result, lane)
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
