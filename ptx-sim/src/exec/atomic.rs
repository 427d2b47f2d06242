//! `atom` and `red`.

use super::float::{apply, apply_packed};
use super::lanes_of;
use super::step::Turn;
use super::warp::Warp;
use crate::isa::float::{FloatOp, Mode};
use crate::isa::{Address, AtomicOp, AtomicVector, Memory, Row, WideAtomic};
use crate::machine::address::{LOCAL_WINDOW, PARAM_WINDOW, in_window};
use crate::machine::{Actor, Order, Pointer, Site, Space, Stop};
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
            let actor = warp.actor(lane, site);
            let old = self.change(actor, Pointer::new(space, address), (op, b, c), (order, bytes))?;
            warp.set(d, lane, old);
        }
        Ok(())
    }
}

impl Turn<'_, '_> {
    /// One operation of a thread on `bytes` bytes, and whether it has changed them.
    fn change(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        (op, b, c): (AtomicOp, u64, u64),
        (order, bytes): (Order, u32),
    ) -> Result<u64, Stop> {
        let mut new = 0;
        let mut change = |old| {
            new = changed(op, old, b, c);
            new
        };
        let old = self.machine.atomic(actor, pointer, bytes as usize, order, &mut change)?;
        let unused = 64 - 8 * bytes;
        *self.changes += u64::from(new << unused != old << unused);
        Ok(old)
    }

    /// Element by element, each of them at once.
    pub(super) fn atomic_vector(
        &mut self,
        warp: &mut Warp,
        active: u32,
        vector: &AtomicVector,
        site: Site,
    ) -> Result<(), Stop> {
        let AtomicVector { op, space, order, bytes, address, ref d, ref of } = *vector;
        let addresses = self.addresses(warp, address);
        let whole = u64::from(bytes) * of.len() as u64;
        for lane in lanes_of(active) {
            let start = addresses[lane as usize];
            if !start.is_multiple_of(whole) {
                let message = format!("a vector at {start:#x}, which is not a multiple of its {whole} bytes");
                return self.fail(warp, lane, site, message, FindingKind::Misaligned);
            }
            let values: Vec<u64> = of.iter().map(|row| warp.get(self.context, *row, lane)).collect();
            for (index, b) in values.into_iter().enumerate() {
                let at = start + u64::from(bytes) * index as u64;
                let actor = warp.actor(lane, site);
                let old = self.change(actor, Pointer::new(space, at), (op, b, 0), (order, bytes))?;
                if let Some(row) = d.get(index) {
                    warp.set(*row, lane, old);
                }
            }
        }
        Ok(())
    }

    pub(super) fn wide_atomic(
        &mut self,
        warp: &mut Warp,
        active: u32,
        wide: &WideAtomic,
        site: Site,
    ) -> Result<(), Stop> {
        let addresses = self.addresses(warp, wide.address);
        for lane in lanes_of(active) {
            let get = |row: Row| {
                let half = |row| u128::from(warp.get(self.context, row, lane));
                half(row) | half(row.upper()) << 64
            };
            let (compare, new) = (wide.compare.map(get), get(wide.new));
            let mut change = |old| if compare.is_none_or(|compare| compare == old) { new } else { old };
            let (actor, at) = (warp.actor(lane, site), Pointer::new(wide.space, addresses[lane as usize]));
            let old = self.machine.wide_atomic(actor, at, wide.order, &mut change)?;
            *self.changes += u64::from(change(old) != old);
            warp.set(wide.d, lane, old as u64);
            warp.set(wide.d.upper(), lane, (old >> 64) as u64);
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
