//! Loads and stores. Global and shared memory belong to the machine; local memory and parameters
//! are kept here.

use super::addresses::{Target, resolve};
use super::executor::Executor;
use super::warp::Warp;
use super::{Issue, Lane, lanes_of};
use crate::isa::{Access, AccessOrder, Address, Memory, MemoryOp, Reg, Space};
use crate::machine::Stop;
use crate::report::FindingKind;

/// An upper bound on the bytes of one access: eight elements of 8 bytes. (PTX has at most eight
/// 32-bit or four 64-bit elements.)
const WIDEST: usize = 64;

/// The address of an access, and its order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub(super) memory: Memory,
    pub(super) address: u64,
    pub(super) order: AccessOrder,
}

impl Executor<'_, '_> {
    pub(super) fn memory(&mut self, warp: &mut Warp, op: &MemoryOp, issue: Issue) -> Result<(), Stop> {
        match op {
            MemoryOp::Load(access) => self.load(warp, access, issue),
            MemoryOp::Store(access) => self.store(warp, access, issue),
            MemoryOp::Atomic(atomic) => self.atomic(warp, atomic, issue),
            MemoryOp::AtomicVector(vector) => self.atomic_vector(warp, vector, issue),
            MemoryOp::WideAtomic(wide) => self.wide_atomic(warp, wide, issue),
            MemoryOp::CacheLine { address, discards } => self.cache_line(warp, *address, *discards, issue),
            MemoryOp::CopyLocal { from, to, bytes } => {
                let size = self.context.program.local_bytes as usize;
                for lane in lanes_of(issue.active) {
                    let base = lane as usize * size;
                    let from = base + *from as usize;
                    warp.local.copy_within(from..from + *bytes as usize, base + *to as usize);
                }
                Ok(())
            }
        }
    }

    fn load(&mut self, warp: &mut Warp, access: &Access, issue: Issue) -> Result<(), Stop> {
        let addresses = self.addresses(warp, access.address);
        let (memory, order) = (access.memory, access.order);
        let size = access.bytes as usize;
        let total = access.total_bytes() as usize;
        debug_assert!(total <= WIDEST, "an access cannot have {total} bytes");
        let mut buffer = [0; WIDEST];
        let registers = &access.registers[..access.count as usize];
        let at_once = !registers.contains(&Reg::SINK) && !access.is_by_elements();
        for lane in issue.lanes() {
            let bytes = &mut buffer[..total];
            let address = addresses[lane.index as usize];
            if access.is_non_coherent {
                self.machine.check_non_coherent(warp.actor(lane.index, lane.site), address, total as u32);
            }
            // A vector is aligned as a whole, even if only some elements are used.
            if at_once || !address.is_multiple_of(total as u64) {
                self.read(warp, lane, Location { memory, address, order }, bytes)?;
            } else {
                // Unused elements are not read.
                for (i, _) in registers.iter().enumerate().filter(|(_, reg)| **reg != Reg::SINK) {
                    let at = i * size;
                    let address = address.wrapping_add(at as u64);
                    let location = Location { memory, address, order };
                    self.read(warp, lane, location, &mut bytes[at..at + size])?;
                }
            }
            for (element, reg) in bytes.chunks_exact(size).zip(registers) {
                let mut wide = [0; 8];
                wide[..size].copy_from_slice(element);
                let value = u64::from_le_bytes(wide);
                let value = match access.extend {
                    Some((from, to)) => sign_extended(value, from, to),
                    None => value,
                };
                warp.set(*reg, lane.index, value);
            }
        }
        // A load that saw an old store may see another one when it is repeated, so it counts as a
        // change.
        *self.changes += self.machine.take_stale_reads();
        Ok(())
    }

    fn store(&mut self, warp: &mut Warp, access: &Access, issue: Issue) -> Result<(), Stop> {
        let addresses = self.addresses(warp, access.address);
        let (memory, order) = (access.memory, access.order);
        let size = access.bytes as usize;
        let total = access.total_bytes() as usize;
        debug_assert!(total <= WIDEST, "an access cannot have {total} bytes");
        let mut buffer = [0; WIDEST];
        for lane in issue.lanes() {
            for (element, reg) in buffer[..total].chunks_exact_mut(size).zip(access.registers) {
                element.copy_from_slice(&warp.get(self.context, reg, lane.index).to_le_bytes()[..size]);
            }
            let (bytes, address) = (&buffer[..total], addresses[lane.index as usize]);
            if !access.is_by_elements() || !address.is_multiple_of(total as u64) {
                self.write(warp, lane, Location { memory, address, order }, bytes)?;
                continue;
            }
            for (element, index) in bytes.chunks_exact(size).zip(0..) {
                let address = address.wrapping_add(index * size as u64);
                self.write(warp, lane, Location { memory, address, order }, element)?;
            }
        }
        Ok(())
    }

    /// Reads bytes as a lane would.
    #[inline]
    pub(super) fn read(
        &mut self,
        warp: &Warp,
        lane: Lane,
        Location { memory, address, order }: Location,
        out: &mut [u8],
    ) -> Result<(), Stop> {
        match resolve(memory, address) {
            Target::Machine(pointer) => {
                self.machine.load(warp.actor(lane.index, lane.site), pointer, out, order)
            }
            Target::Local(at) => {
                let found = self.local_range(warp, lane, at, out.len())?;
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
                    None => {
                        let size = self.context.params.len();
                        self.fail(warp, lane, FindingKind::OutOfBounds, outside("parameters", at, size))
                    }
                }
            }
        }
    }

    /// Writes bytes as a lane would.
    #[inline]
    pub(super) fn write(
        &mut self,
        warp: &mut Warp,
        lane: Lane,
        Location { memory, address, order }: Location,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        match resolve(memory, address) {
            Target::Machine(pointer) => {
                self.machine.store(warp.actor(lane.index, lane.site), pointer, bytes, order)
            }
            Target::Local(at) => {
                let found = self.local_range(warp, lane, at, bytes.len())?;
                warp.local[found].copy_from_slice(bytes);
                Ok(())
            }
            Target::Param(at) => {
                let message = format!("a write to the kernel's parameters at {at:#x}, which are read-only");
                self.fail(warp, lane, FindingKind::OutOfBounds, message)
            }
        }
    }

    /// Returns the range of a lane's local bytes within those of the warp.
    fn local_range(
        &mut self,
        warp: &Warp,
        lane: Lane,
        at: u64,
        bytes: usize,
    ) -> Result<std::ops::Range<usize>, Stop> {
        let size = self.context.program.local_bytes as usize;
        if !at.is_multiple_of(bytes as u64) {
            let message =
                format!("{bytes} bytes of local memory at {at:#x}, which is not a multiple of {bytes}");
            return self.fail(warp, lane, FindingKind::Misaligned, message);
        }
        match usize::try_from(at).ok().filter(|at| at.saturating_add(bytes) <= size) {
            Some(at) => {
                let start = lane.index as usize * size + at;
                Ok(start..start + bytes)
            }
            None => self.fail(warp, lane, FindingKind::OutOfBounds, outside("local memory", at, size)),
        }
    }

    /// `discard`, after which the bytes are undefined, and `applypriority`, which leaves them
    /// unchanged.
    fn cache_line(
        &mut self,
        warp: &mut Warp,
        address: Address,
        discards: bool,
        issue: Issue,
    ) -> Result<(), Stop> {
        const LINE: u64 = 128;
        let addresses = self.addresses(warp, address);
        for lane in issue.lanes() {
            let start = addresses[lane.index as usize];
            if !start.is_multiple_of(LINE) {
                let message = format!("the cache line at {start:#x} is not aligned to {LINE} bytes");
                return self.fail(warp, lane, FindingKind::Misaligned, message);
            }
            let (memory, piece) = (Memory::Machine(Space::Global), [0xff; 16]);
            for offset in (0..LINE).step_by(piece.len()).filter(|_| discards) {
                let location = Location { memory, address: start + offset, order: AccessOrder::WEAK };
                self.write(warp, lane, location, &piece)?;
            }
        }
        Ok(())
    }
}

fn outside(memory: &str, at: u64, size: usize) -> String {
    format!("an access to {memory} at {at:#x}, beyond its {size} bytes")
}

/// Returns the low `from` bits of `value`, sign-extended to `to` bits.
pub(super) fn sign_extended(value: u64, from: u32, to: u32) -> u64 {
    let wide = ((value << (64 - from)) as i64 >> (64 - from)) as u64;
    wide << (64 - to) >> (64 - to)
}
