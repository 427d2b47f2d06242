//! `atom` and `red`.

use super::float::{FloatOp, Mode, apply, apply_packed};
use super::lanes_of;
use super::step::Turn;
use super::warp::Warp;
use crate::code::{Address, AtomicOp, Memory, Row};
use crate::machine::address::{LOCAL_WINDOW, PARAM_WINDOW, in_window};
use crate::machine::{Order, Site, Space, Stop};
use crate::report::FindingKind;

/// An atomic instruction: what it does, where, in which order, to how many bytes.
type Kind = (AtomicOp, Memory, Order, u32);

impl Turn<'_, '_> {
    #[expect(clippy::too_many_arguments, reason = "an instruction's operands")]
    pub(super) fn atomic(
        &mut self,
        warp: &mut Warp,
        active: u32,
        (op, memory, order, bytes): Kind,
        d: Row,
        address: Address,
        [b, c]: [Row; 2],
        site: Site,
    ) -> Result<(), Stop> {
        let addresses = self.addresses(warp, address);
        for lane in lanes_of(active) {
            let address = addresses[lane as usize];
            let own = in_window(LOCAL_WINDOW, address) || in_window(PARAM_WINDOW, address);
            let space = match memory {
                Memory::Machine(Space::Generic) if own => None,
                Memory::Machine(space) => Some(space),
                Memory::Local | Memory::Param => None,
            };
            let Some(space) = space else {
                let message = "an atomic operation on memory that only this thread has";
                return self.fail(warp, lane, site, message, FindingKind::OutOfBounds);
            };
            let (b, c) = (warp.get(self.context, b, lane), warp.get(self.context, c, lane));
            let mut change = |old| changed(op, old, b, c);
            let width = bytes as usize;
            let old =
                self.machine.atomic(warp.thread(lane), space, address, width, order, &mut change, site)?;
            warp.set(d, lane, old);
        }
        Ok(())
    }
}

/// What memory holds after the operation.
fn changed(op: AtomicOp, old: u64, b: u64, c: u64) -> u64 {
    let float = |op, ty, mode, pair| {
        if pair { apply_packed(op, ty, mode, [old, b, 0]) } else { apply(op, ty, mode, [old, b, 0]) }
    };
    match op {
        AtomicOp::Add(_) => old.wrapping_add(b),
        AtomicOp::Min(ty) => {
            if ty.read(b) < ty.read(old) {
                b
            } else {
                old
            }
        }
        AtomicOp::Max(ty) => {
            if ty.read(b) > ty.read(old) {
                b
            } else {
                old
            }
        }
        AtomicOp::AddFloat(ty, mode, pair) => float(FloatOp::Add, ty, mode, pair),
        AtomicOp::MinFloat(ty, pair) => float(FloatOp::Min, ty, Mode::default(), pair),
        AtomicOp::MaxFloat(ty, pair) => float(FloatOp::Max, ty, Mode::default(), pair),
        AtomicOp::And => old & b,
        AtomicOp::Or => old | b,
        AtomicOp::Xor => old ^ b,
        AtomicOp::Exchange => b,
        AtomicOp::CompareAndSwap => {
            if old == b {
                c
            } else {
                old
            }
        }
        AtomicOp::Inc => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Dec => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
    }
}
