//! Loads and stores, and what addresses mean. Global and shared memory are the machine's; local memory and parameters
//! are kept here.

use super::alu::Lanes;
use super::lanes_of;
use super::step::{Flow, Turn};
use super::warp::Warp;
use crate::isa::{Access, Address, Memory, Row};
use crate::machine::address::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, in_window, map_to_rank, rank_of};
use crate::machine::{BlockRank, Order, Pointer, Site, Space, Stop};
use crate::report::FindingKind;

/// The most bytes that one access moves: eight 32-bit or four 64-bit elements.
const WIDEST: usize = 64;

/// What an address refers to, once its window is known.
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

/// `base + offset`; 32-bit addresses wrap within 32 bits: `[%r + 1020]` with -4 in `%r` is 1016. No 64-bit one is so low.
#[inline]
pub(super) fn effective(base: u64, offset: i64) -> u64 {
    let address = base.wrapping_add_signed(offset);
    if base <= u64::from(u32::MAX) { address & u64::from(u32::MAX) } else { address }
}

impl Turn<'_, '_> {
    pub(super) fn addresses(&self, warp: &Warp, address: Address) -> Lanes {
        let mut lanes = *self.context.lanes(&warp.registers, address.base);
        if address.offset != 0 {
            for lane in &mut lanes {
                *lane = effective(*lane, address.offset);
            }
        }
        lanes
    }

    pub(super) fn load(
        &mut self,
        warp: &mut Warp,
        access: &Access,
        active: u32,
        site: Site,
    ) -> Result<Flow, Stop> {
        let addresses = self.addresses(warp, access.address);
        let size = access.bytes as usize;
        let total = (size * access.count as usize).min(WIDEST);
        let mut buffer = [0; WIDEST];
        let used_whole = !access.rows.iter().take(access.count as usize).any(|row| *row == Row::SINK);
        for lane in lanes_of(active) {
            let bytes = &mut buffer[..total];
            let address = addresses[lane as usize];
            // A vector is aligned as a whole, whatever of it is used.
            if used_whole || !address.is_multiple_of(total as u64) {
                self.read(warp, lane, access.memory, address, bytes, access.order, site)?;
            } else {
                // What nobody uses is not read.
                for (i, row) in access.rows.iter().enumerate().take(access.count as usize) {
                    let at = i * size;
                    if *row != Row::SINK {
                        let part = &mut bytes[at..at + size];
                        let address = address.wrapping_add(at as u64);
                        self.read(warp, lane, access.memory, address, part, access.order, site)?;
                    }
                }
            }
            for (element, row) in bytes.chunks_exact(size).zip(access.rows) {
                let mut wide = [0; 8];
                wide[..size].copy_from_slice(element);
                let value = u64::from_le_bytes(wide);
                let value = match access.extend {
                    Some((from, to)) => sign_extended(value, from, to),
                    None => value,
                };
                warp.set(row, lane, value);
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn store(
        &mut self,
        warp: &mut Warp,
        access: &Access,
        active: u32,
        site: Site,
    ) -> Result<Flow, Stop> {
        let addresses = self.addresses(warp, access.address);
        let size = access.bytes as usize;
        let total = (size * access.count as usize).min(WIDEST);
        let mut buffer = [0; WIDEST];
        for lane in lanes_of(active) {
            for (element, row) in buffer[..total].chunks_exact_mut(size).zip(access.rows) {
                element.copy_from_slice(&warp.get(self.context, row, lane).to_le_bytes()[..size]);
            }
            self.write(
                warp,
                lane,
                access.memory,
                addresses[lane as usize],
                &buffer[..total],
                access.order,
                site,
            )?;
        }
        Ok(Flow::Next)
    }

    /// Reads bytes as a lane does.
    #[expect(clippy::too_many_arguments, reason = "an access's properties")]
    #[inline]
    pub(super) fn read(
        &mut self,
        warp: &Warp,
        lane: u32,
        memory: Memory,
        address: u64,
        out: &mut [u8],
        order: Order,
        site: Site,
    ) -> Result<(), Stop> {
        match resolve(memory, address) {
            Target::Machine(pointer) => self.machine.load(warp.actor(lane, site), pointer, out, order),
            Target::Local(at) => {
                let found = self.local_range(warp, lane, at, out.len(), site)?;
                out.copy_from_slice(&warp.local[found]);
                Ok(())
            }
            Target::Param(at) => {
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                match self.context.params.get(start..start.saturating_add(out.len())) {
                    Some(bytes) => {
                        out.copy_from_slice(bytes);
                        Ok(())
                    }
                    None => self.outside(warp, lane, "parameters", at, self.context.params.len(), site),
                }
            }
        }
    }

    /// Writes bytes as a lane does.
    #[expect(clippy::too_many_arguments, reason = "an access's properties")]
    #[inline]
    pub(super) fn write(
        &mut self,
        warp: &mut Warp,
        lane: u32,
        memory: Memory,
        address: u64,
        bytes: &[u8],
        order: Order,
        site: Site,
    ) -> Result<(), Stop> {
        match resolve(memory, address) {
            Target::Machine(pointer) => self.machine.store(warp.actor(lane, site), pointer, bytes, order),
            Target::Local(at) => {
                let found = self.local_range(warp, lane, at, bytes.len(), site)?;
                warp.local[found].copy_from_slice(bytes);
                Ok(())
            }
            Target::Param(at) => {
                let message = format!("a write to the kernel's parameters at {at:#x}");
                self.fail(warp, lane, site, message, FindingKind::OutOfBounds)
            }
        }
    }

    /// Where a lane's local bytes are in the warp's.
    fn local_range(
        &mut self,
        warp: &Warp,
        lane: u32,
        at: u64,
        bytes: usize,
        site: Site,
    ) -> Result<std::ops::Range<usize>, Stop> {
        let size = self.context.program.local_bytes as usize;
        if !at.is_multiple_of(bytes as u64) {
            let message =
                format!("{bytes} bytes of local memory at {at:#x}, which is no multiple of {bytes}");
            return self.fail(warp, lane, site, message, FindingKind::Misaligned);
        }
        match usize::try_from(at).ok().filter(|at| at.saturating_add(bytes) <= size) {
            Some(at) => {
                let start = lane as usize * size + at;
                Ok(start..start + bytes)
            }
            None => self.outside(warp, lane, "local memory", at, size, site),
        }
    }

    fn outside<T>(
        &mut self,
        warp: &Warp,
        lane: u32,
        what: &str,
        at: u64,
        size: usize,
        site: Site,
    ) -> Result<T, Stop> {
        let message = format!("an access to {what} at {at:#x}, where there are {size} bytes");
        self.fail(warp, lane, site, message, FindingKind::OutOfBounds)
    }

    pub(super) fn copy_local(&mut self, warp: &mut Warp, active: u32, from: u32, to: u32, bytes: u32) {
        let size = self.context.program.local_bytes as usize;
        for lane in lanes_of(active) {
            let base = lane as usize * size;
            let from = base + from as usize;
            warp.local.copy_within(from..from + bytes as usize, base + to as usize);
        }
    }

    /// `discard`, after which the bytes are anything, and `applypriority`, which changes none.
    pub(super) fn cache_line(
        &mut self,
        warp: &mut Warp,
        active: u32,
        address: Address,
        discards: bool,
        site: Site,
    ) -> Result<(), Stop> {
        const LINE: u64 = 128;
        let addresses = self.addresses(warp, address);
        for lane in lanes_of(active) {
            let start = addresses[lane as usize];
            if !start.is_multiple_of(LINE) {
                let message = format!("a cache line at {start:#x}, which is no multiple of {LINE}");
                return self.fail(warp, lane, site, message, FindingKind::Misaligned);
            }
            let (global, piece) = (Memory::Machine(Space::Global), [0xff; 16]);
            for offset in (0..LINE).step_by(piece.len()).filter(|_| discards) {
                self.write(warp, lane, global, start + offset, &piece, Order::Weak, site)?;
            }
        }
        Ok(())
    }

    /// `isspacep`, of an address in a thread of block `own`.
    pub(super) fn is_space(&self, own: BlockRank, space: Memory, constant: bool, address: u64) -> bool {
        let in_const = self.context.const_ranges.iter().any(|range| range.contains(&address));
        if constant { in_const } else { !in_const && is_in(own, space, address) }
    }
}

/// Whether an address in a thread of block `own` is of `space`.
fn is_in(own: BlockRank, space: Memory, address: u64) -> bool {
    match space {
        Memory::Local => in_window(LOCAL_WINDOW, address),
        Memory::Param => in_window(PARAM_WINDOW, address),
        Memory::Machine(Space::SharedCluster) => in_window(SHARED_WINDOW, address),
        Memory::Machine(Space::Shared) => {
            in_window(SHARED_WINDOW, address) && rank_of((address - SHARED_WINDOW) as u32, own) == own
        }
        Memory::Machine(Space::Global | Space::Generic) => {
            ![LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW].iter().any(|window| in_window(*window, address))
        }
    }
}

/// `mapa`: the address of what is at `address` in block `rank`.
pub(super) fn mapped(address: u64, rank: u64, generic: bool) -> u64 {
    let window = if generic { SHARED_WINDOW } else { 0 };
    window + u64::from(map_to_rank(address.wrapping_sub(window) as u32, rank as u32))
}

/// `getctarank`: the block that an address is of, in a thread of block `own`.
pub(super) fn rank_at(address: u64, generic: bool, own: BlockRank) -> u64 {
    let window = if generic { SHARED_WINDOW } else { 0 };
    u64::from(rank_of(address.wrapping_sub(window) as u32, own).0)
}

/// The low `from` bits of `value` as a signed number of `to` bits.
pub(super) fn sign_extended(value: u64, from: u32, to: u32) -> u64 {
    let wide = ((value << (64 - from)) as i64 >> (64 - from)) as u64;
    wide << (64 - to) >> (64 - to)
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
