//! `atom` and `red`.

use super::executor::Executor;
use super::float::{apply, apply_packed};
use super::warp::Warp;
use super::{Issue, Lane};
use crate::isa::float::{Exact, FloatOp, Mode};
use crate::isa::{AccessOrder, Atomic, AtomicOp, AtomicVector, Memory, Reg, Space, WideAtomic};
use crate::machine::address::{LOCAL_WINDOW, PARAM_WINDOW, in_window};
use crate::machine::{Pointer, Stop, Width};
use crate::report::FindingKind;

/// One operation of a lane on one element.
#[derive(Clone, Copy)]
struct Update {
    op: AtomicOp,
    operands: [u64; 2],
    pointer: Pointer,
    order: AccessOrder,
    bytes: u32,
    /// Whether the instruction is `atom`, not `red`.
    reads: bool,
}

impl Executor<'_, '_> {
    pub(super) fn atomic(&mut self, warp: &mut Warp, atomic: &Atomic, issue: Issue) -> Result<(), Stop> {
        let Atomic { op, memory, order, bytes, reads, d, address, sources } = *atomic;
        let addresses = self.addresses(warp, address);
        for lane in issue.lanes() {
            let address = addresses[lane.index as usize];
            let own = in_window(LOCAL_WINDOW, address) || in_window(PARAM_WINDOW, address);
            let space = match memory {
                Memory::Machine(Space::Generic) if own => None,
                Memory::Machine(space) => Some(space),
                Memory::Local | Memory::Param => None,
            };
            let Some(space) = space else {
                let message = "an atomic operation on local memory or parameters";
                return self.fail(warp, lane, FindingKind::OutOfBounds, message);
            };
            let pointer = Pointer::new(space, address);
            let operands = sources.map(|reg| warp.get(self.context, reg, lane.index));
            let old = self.update(warp, lane, Update { op, operands, pointer, order, bytes, reads })?;
            warp.set(d, lane.index, old);
        }
        Ok(())
    }

    /// Executes `update`, and counts it as a change if memory differs. Returns the old value.
    fn update(&mut self, warp: &Warp, lane: Lane, update: Update) -> Result<u64, Stop> {
        let Update { op, operands: [b, c], pointer, order, bytes, reads } = update;
        let mut new = 0;
        let mut change = |old| {
            new = changed(op, old, b, c);
            new
        };
        let actor = warp.actor(lane.index, lane.site);
        let width = if is_of_pairs(op) { Width::pair(bytes) } else { Width::scalar(bytes) };
        let old = match reads {
            true => self.machine.atomic(actor, pointer, width, order, &mut change)?,
            false => self.machine.reduction(actor, pointer, width, order, &mut change)?,
        };
        let unused = 64 - 8 * bytes;
        *self.changes += u64::from(new << unused != old << unused);
        Ok(old)
    }

    /// Executes an atomic operation on a vector. Each element is atomic by itself.
    pub(super) fn atomic_vector(
        &mut self,
        warp: &mut Warp,
        vector: &AtomicVector,
        issue: Issue,
    ) -> Result<(), Stop> {
        let AtomicVector { op, space, order, bytes, address, ref d, ref sources } = *vector;
        let reads = !d.is_empty();
        let addresses = self.addresses(warp, address);
        let whole = u64::from(bytes) * sources.len() as u64;
        for lane in issue.lanes() {
            let start = addresses[lane.index as usize];
            if !start.is_multiple_of(whole) {
                let message = format!("the vector at {start:#x} is not aligned to its {whole} bytes");
                return self.fail(warp, lane, FindingKind::Misaligned, message);
            }
            let values: Vec<u64> =
                sources.iter().map(|reg| warp.get(self.context, *reg, lane.index)).collect();
            for (index, b) in values.into_iter().enumerate() {
                let pointer = Pointer::new(space, start + u64::from(bytes) * index as u64);
                let update = Update { op, operands: [b, 0], pointer, order, bytes, reads };
                let old = self.update(warp, lane, update)?;
                if let Some(reg) = d.get(index) {
                    warp.set(*reg, lane.index, old);
                }
            }
        }
        Ok(())
    }

    pub(super) fn wide_atomic(
        &mut self,
        warp: &mut Warp,
        wide: &WideAtomic,
        issue: Issue,
    ) -> Result<(), Stop> {
        let addresses = self.addresses(warp, wide.address);
        for lane in issue.lanes() {
            let get = |reg: Reg| {
                let half = |reg| u128::from(warp.get(self.context, reg, lane.index));
                half(reg) | half(reg.upper()) << 64
            };
            let (compare, new) = (wide.compare.map(get), get(wide.new));
            let mut change = |old| if compare.is_none_or(|compare| compare == old) { new } else { old };
            let actor = warp.actor(lane.index, lane.site);
            let at = Pointer::new(wide.space, addresses[lane.index as usize]);
            let old = self.machine.wide_atomic(actor, at, wide.order, &mut change)?;
            *self.changes += u64::from(change(old) != old);
            warp.set(wide.d, lane.index, old as u64);
            warp.set(wide.d.upper(), lane.index, (old >> 64) as u64);
        }
        Ok(())
    }
}

/// Returns whether the operation treats its bytes as a packed pair.
fn is_of_pairs(op: AtomicOp) -> bool {
    match op {
        AtomicOp::AddFloat(_, _, pair) | AtomicOp::MinFloat(_, pair) | AtomicOp::MaxFloat(_, pair) => pair,
        AtomicOp::Add(_)
        | AtomicOp::Min(_)
        | AtomicOp::Max(_)
        | AtomicOp::And
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::Exchange
        | AtomicOp::CompareAndSwap
        | AtomicOp::Inc
        | AtomicOp::Dec => false,
    }
}

/// Returns the contents of memory after the operation.
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
        AtomicOp::AddFloat(ty, mode, pair) => float(FloatOp::Exact(Exact::Add), ty, mode, pair),
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
