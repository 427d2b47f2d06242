//! Tensor maps in memory: found for copies, changed, copied and fenced.

use super::lanes_of;
use super::memory::{Target, resolve};
use super::step::{Flow, Turn};
use super::warp::Warp;
use crate::isa::{Address, MapCode, Memory};
use crate::machine::{Fence, MapId, Order, Pointer, Site, Space, Stop, WaitingFor};
use crate::report::FindingKind;
use crate::tensor_map::{DESCRIPTOR_BYTES, Descriptor, replace};

/// What a tensor map's address is a multiple of. Source: CUDA Driver API, "Tensor Map Object Management".
const ALIGNMENT: u64 = 64;
/// The bytes of a map that are read and written at a time.
const PIECE: usize = 16;

impl Turn<'_, '_> {
    /// The number of the tensor map that a copy names, in the kernel's parameters or in global memory, and its address there.
    pub(super) fn map_of(
        &mut self,
        warp: &Warp,
        lane: u32,
        address: Address,
        site: Site,
    ) -> Result<(MapId, Option<u64>), Stop> {
        let address = self.address_of_map(warp, lane, address, site)?;
        let actor = warp.actor(lane, site);
        let start = match resolve(Memory::Machine(Space::Generic), address) {
            Target::Machine(Pointer { address, .. }) => {
                return Ok((self.machine.map_at(actor, address)?, Some(address)));
            }
            Target::Param(at) => usize::try_from(at).unwrap_or(usize::MAX),
            Target::Local(_) => {
                let message = format!("a tensor map at {address:#x}, in local memory");
                return self.fail(warp, lane, site, message, FindingKind::IllegalCopy);
            }
        };
        let bytes = self.context.params.get(start..).and_then(|bytes| bytes.first_chunk());
        match bytes.and_then(|bytes| self.machine.know_map(bytes)) {
            Some(number) => Ok((number, None)),
            None => self.machine.no_map(actor, address),
        }
    }

    fn address_of_map(&mut self, warp: &Warp, lane: u32, address: Address, site: Site) -> Result<u64, Stop> {
        let address = self.address(warp, address, lane);
        if address.is_multiple_of(ALIGNMENT) {
            return Ok(address);
        }
        let message = format!("a tensor map at {address:#x}, which is not a multiple of {ALIGNMENT}");
        self.fail(warp, lane, site, message, FindingKind::Misaligned)
    }

    pub(super) fn map(&mut self, warp: &Warp, active: u32, code: &MapCode, site: Site) -> Result<Flow, Stop> {
        match *code {
            MapCode::Replace { space, address, field, value } => {
                for lane in lanes_of(active) {
                    let at = self.address_of_map(warp, lane, address, site)?;
                    let mut bytes = self.read_map(warp, lane, space, at, site)?;
                    if let Err(why) = replace(&mut bytes, field, self.lane(warp, value, lane)) {
                        let message = format!("`tensormap.replace` at {at:#x}, {why}");
                        return self.fail(warp, lane, site, message, FindingKind::IllegalCopy);
                    }
                    self.write_map(warp, lane, space, at, &bytes, site)?;
                }
            }
            // `.sync.aligned`: the warp does it together, once.
            MapCode::Copy { .. } if active != warp.live => {
                return Ok(Flow::Wait { stay: active, what: WaitingFor::Warp(warp.live) });
            }
            MapCode::Copy { to, from } => {
                let lane = active.trailing_zeros();
                let from = self.address_of_map(warp, lane, from, site)?;
                let to = self.address_of_map(warp, lane, to, site)?;
                let bytes = self.read_map(warp, lane, Space::Shared, from, site)?;
                self.write_map(warp, lane, Space::Global, to, &bytes, site)?;
                self.machine.fence(warp.thread(lane), Fence::TensorMapRelease);
            }
            MapCode::Acquire { address } => {
                for lane in lanes_of(active) {
                    let at = self.address_of_map(warp, lane, address, site)?;
                    self.machine.acquire_map(warp.actor(lane, site), at)?;
                }
            }
        }
        Ok(Flow::Next)
    }

    fn read_map(
        &mut self,
        warp: &Warp,
        lane: u32,
        space: Space,
        at: u64,
        site: Site,
    ) -> Result<Descriptor, Stop> {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        for (piece, at) in bytes.chunks_exact_mut(PIECE).zip((at..).step_by(PIECE)) {
            self.machine.load(warp.actor(lane, site), Pointer::new(space, at), piece, Order::Weak)?;
        }
        Ok(bytes)
    }

    fn write_map(
        &mut self,
        warp: &Warp,
        lane: u32,
        space: Space,
        at: u64,
        bytes: &Descriptor,
        site: Site,
    ) -> Result<(), Stop> {
        let actor = warp.actor(lane, site);
        for (piece, at) in bytes.chunks_exact(PIECE).zip((at..).step_by(PIECE)) {
            self.machine.store(actor, Pointer::new(space, at), piece, Order::Weak)?;
        }
        self.machine.map_changed(actor, Pointer::new(space, at));
        Ok(())
    }
}
