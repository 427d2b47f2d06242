//! Tensor maps in memory: their use by copies, their change, and fences.

use super::addresses::{Target, resolve};
use super::executor::{Executor, Flow};
use super::warp::Warp;
use super::{Issue, Lane};
use crate::isa::{Address, Fence, MapCode, Memory, Order, Space};
use crate::machine::{MapId, Pointer, Stop, WaitingFor};
use crate::report::FindingKind;
use crate::tensor_map::{DESCRIPTOR_BYTES, Descriptor, replace};

/// The required alignment of a tensor map. Source: CUDA Driver API, "Tensor Map Object Management".
const ALIGNMENT: u64 = 64;
/// The bytes of a map that are read or written at a time.
const PIECE: usize = 16;

impl Executor<'_, '_> {
    /// Returns the tensor map that a copy names, in the kernel's parameters or in global memory,
    /// with its address in the latter case.
    pub(super) fn map_of(
        &mut self,
        warp: &Warp,
        lane: Lane,
        address: Address,
    ) -> Result<(MapId, Option<u64>), Stop> {
        let address = self.address_of_map(warp, lane, address)?;
        let actor = warp.actor(lane.index, lane.site);
        let start = match resolve(Memory::Machine(Space::Generic), address) {
            Target::Machine(Pointer { address, .. }) => {
                return Ok((self.machine.map_at(actor, address)?, Some(address)));
            }
            Target::Param(at) => usize::try_from(at).unwrap_or(usize::MAX),
            Target::Local(_) => {
                let message = format!("the tensor map at {address:#x} is in local memory");
                return self.fail(warp, lane, FindingKind::IllegalCopy, message);
            }
        };
        let bytes = self.context.params.get(start..).and_then(|bytes| bytes.first_chunk());
        match bytes.and_then(|bytes| self.machine.map_number(bytes)) {
            Some(number) => Ok((number, None)),
            None => self.machine.invalid_map(actor, address),
        }
    }

    fn address_of_map(&mut self, warp: &Warp, lane: Lane, address: Address) -> Result<u64, Stop> {
        let address = self.address(warp, address, lane.index);
        if address.is_multiple_of(ALIGNMENT) {
            return Ok(address);
        }
        let message = format!("the tensor map at {address:#x} is not aligned to {ALIGNMENT} bytes");
        self.fail(warp, lane, FindingKind::Misaligned, message)
    }

    pub(super) fn map(&mut self, warp: &Warp, code: &MapCode, issue: Issue) -> Result<Flow, Stop> {
        match *code {
            MapCode::Replace { space, address, field, value } => {
                for lane in issue.lanes() {
                    let at = self.address_of_map(warp, lane, address)?;
                    let mut bytes = self.read_map(warp, lane, space, at)?;
                    if let Err(why) = replace(&mut bytes, field, self.lane(warp, value, lane.index)) {
                        let message = format!("`tensormap.replace` at {at:#x}, {why}");
                        return self.fail(warp, lane, FindingKind::IllegalCopy, message);
                    }
                    self.write_map(warp, lane, space, at, &bytes)?;
                }
            }
            // `.sync.aligned`: executed once for the whole warp.
            MapCode::Copy { .. } if issue.active != warp.live => {
                return Ok(Flow::Wait { blocked: issue.active, event: WaitingFor::Warp(warp.live) });
            }
            MapCode::Copy { to, from } => {
                let lane = issue.first_lane();
                let from = self.address_of_map(warp, lane, from)?;
                let to = self.address_of_map(warp, lane, to)?;
                let bytes = self.read_map(warp, lane, Space::Shared, from)?;
                self.write_map(warp, lane, Space::Global, to, &bytes)?;
                self.machine.fence(warp.thread(lane.index), Fence::TensorMapRelease);
            }
            MapCode::Acquire { address } => {
                for lane in issue.lanes() {
                    let at = self.address_of_map(warp, lane, address)?;
                    self.machine.acquire_map(warp.actor(lane.index, lane.site), at)?;
                }
            }
        }
        Ok(Flow::Next)
    }

    fn read_map(&mut self, warp: &Warp, lane: Lane, space: Space, at: u64) -> Result<Descriptor, Stop> {
        let actor = warp.actor(lane.index, lane.site);
        let mut bytes = [0; DESCRIPTOR_BYTES];
        for (piece, at) in bytes.chunks_exact_mut(PIECE).zip((at..).step_by(PIECE)) {
            self.machine.load(actor, Pointer::new(space, at), piece, Order::Weak)?;
        }
        Ok(bytes)
    }

    fn write_map(
        &mut self,
        warp: &Warp,
        lane: Lane,
        space: Space,
        at: u64,
        bytes: &Descriptor,
    ) -> Result<(), Stop> {
        let actor = warp.actor(lane.index, lane.site);
        for (piece, at) in bytes.chunks_exact(PIECE).zip((at..).step_by(PIECE)) {
            self.machine.store(actor, Pointer::new(space, at), piece, Order::Weak)?;
        }
        self.machine.map_changed(actor, Pointer::new(space, at));
        Ok(())
    }
}
