//! Address resolution and address computations.

use super::Context;
use super::alu::{Lanes, each};
use super::executor::Executor;
use super::warp::Warp;
use crate::isa::{Address, AddressOp, Memory, Reg, Space, Window};
use crate::machine::address::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, in_window, map_to_rank, rank_of};
use crate::machine::{BlockRank, Pointer};

/// The memory that an address refers to, with generic addresses resolved to their window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Machine(Pointer),
    Local(u64),
    Param(u64),
}

#[inline]
pub(super) fn resolve(memory: Memory, address: u64) -> Target {
    match memory {
        Memory::Machine(Space::Generic) if in_window(LOCAL_WINDOW, address) => {
            Target::Local(address - LOCAL_WINDOW)
        }
        Memory::Machine(Space::Generic) if in_window(PARAM_WINDOW, address) => {
            Target::Param(address - PARAM_WINDOW)
        }
        Memory::Machine(space) => Target::Machine(Pointer::new(space, address)),
        Memory::Local => Target::Local(address),
        Memory::Param => Target::Param(address),
    }
}

/// Returns `base + offset`. 32-bit addresses wrap within 32 bits: `[%r + 1020]` with -4 in `%r` is
/// 1016. No 64-bit address is that low.
#[inline]
pub(super) fn effective(base: u64, offset: i64) -> u64 {
    let address = base.wrapping_add_signed(offset);
    if base <= u64::from(u32::MAX) { address & u64::from(u32::MAX) } else { address }
}

impl Executor<'_, '_> {
    pub(super) fn lane(&self, warp: &Warp, reg: Reg, lane: u32) -> u64 {
        warp.get(self.context, reg, lane)
    }

    pub(super) fn address(&self, warp: &Warp, address: Address, lane: u32) -> u64 {
        effective(self.lane(warp, address.base, lane), address.offset)
    }

    pub(super) fn addresses(&self, warp: &Warp, address: Address) -> Lanes {
        let mut lanes = *self.context.lanes(&warp.registers, address.base);
        if address.offset != 0 {
            for lane in &mut lanes {
                *lane = effective(*lane, address.offset);
            }
        }
        lanes
    }

    pub(super) fn address_op(&self, warp: &mut Warp, op: &AddressOp, active: u32) {
        let (context, own) = (self.context, warp.block);
        match *op {
            AddressOp::Convert { window, to_generic, d, a } => {
                let start = start_of(window);
                let start = if to_generic { start } else { start.wrapping_neg() };
                each(context, warp, active, d, [a], |[a]| a.wrapping_add(start));
            }
            AddressOp::IsSpace { space, constant, d, a } => {
                let is_space = |[a]: [u64; 1]| match constant {
                    true => is_constant(context, a).into(),
                    false => u64::from(!is_constant(context, a) && is_in(own, space, a)),
                };
                each(context, warp, active, d, [a], is_space);
            }
            AddressOp::MapToRank { generic, d, address, rank } => {
                each(context, warp, active, d, [address, rank], |[address, rank]| {
                    mapped(address, rank, generic)
                });
            }
            AddressOp::RankOf { generic, d, address } => {
                each(context, warp, active, d, [address], |[address]| rank_at(address, generic));
            }
        }
    }
}

/// Returns the generic address of offset 0 in a state space.
const fn start_of(window: Window) -> u64 {
    match window {
        Window::Global => 0,
        Window::Shared => SHARED_WINDOW,
        Window::Local => LOCAL_WINDOW,
        Window::Param => PARAM_WINDOW,
    }
}

/// Returns whether an address belongs to a `.const` variable.
fn is_constant(context: &Context<'_>, address: u64) -> bool {
    context.const_ranges.iter().any(|range| range.contains(&address))
}

/// Returns whether a generic address, in a thread of block `own`, belongs to `space`.
fn is_in(own: BlockRank, space: Memory, address: u64) -> bool {
    match space {
        Memory::Local => in_window(LOCAL_WINDOW, address),
        Memory::Param => in_window(PARAM_WINDOW, address),
        Memory::Machine(Space::SharedCluster) => in_window(SHARED_WINDOW, address),
        Memory::Machine(Space::Shared) => {
            in_window(SHARED_WINDOW, address) && rank_of((address - SHARED_WINDOW) as u32) == own
        }
        Memory::Machine(Space::Global | Space::Generic) => {
            ![LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW].iter().any(|window| in_window(*window, address))
        }
    }
}

/// `mapa`: returns the address in block `rank` that corresponds to `address`.
fn mapped(address: u64, rank: u64, generic: bool) -> u64 {
    let window = if generic { SHARED_WINDOW } else { 0 };
    window + u64::from(map_to_rank(address.wrapping_sub(window) as u32, rank as u32))
}

/// `getctarank`: returns the block that an address belongs to.
fn rank_at(address: u64, generic: bool) -> u64 {
    let window = if generic { SHARED_WINDOW } else { 0 };
    u64::from(rank_of(address.wrapping_sub(window) as u32).0)
}

#[cfg(test)]
mod tests {
    use super::effective;

    #[test]
    fn addresses_of_32_bits_wrap_both_ways() {
        assert_eq!(effective(0xffff_fffc, 1020), 1016);
        assert_eq!(effective(4, -8), 0xffff_fffc);
        assert_eq!(effective(0x10_0000_0000, -8), 0xf_ffff_fff8);
    }
}
