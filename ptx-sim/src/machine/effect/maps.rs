//! Tensor maps in global memory: their use, change and acquire.

use crate::machine::Machine;
use crate::machine::address::{Target, resolve};
use crate::machine::index::MapId;
use crate::machine::memory::{MapMisuse, Mark};
use crate::machine::types::{Action, Actor, Pointer, Space};
use crate::report::{Finding, FindingKind, Stop};
use crate::tensor_map::{DESCRIPTOR_BYTES, Descriptor};

const ACQUIRE: &str = "[[`maps.acquire(i)`||`fence.proxy.tensormap::generic.acquire.gpu [map], 128`]] in this block, after the change, and a barrier if \
                       another thread than the one that copies has it";
const RELEASE: &str = "[[`map.publish(maps, i)`||`fence.proxy.tensormap::generic.release.gpu`]] after the change, \
                       [[||or `tensormap.cp_fenceproxy` from shared memory, ]]and a barrier before the acquire if another \
                       thread has that";

impl Machine {
    /// Returns the map that a descriptor encodes, or `None` if the bytes are no valid descriptor.
    pub fn know_map(&mut self, descriptor: &[u8; DESCRIPTOR_BYTES]) -> Option<MapId> {
        self.memory.maps.know(descriptor)
    }

    /// Returns the map at a generic address, for a copy.
    ///
    /// # Errors
    ///
    /// If the map is in shared memory, out of bounds or misaligned, or the bytes are no map.
    pub fn map_at(&mut self, actor: Actor, address: u64) -> Result<MapId, Stop> {
        let action = actor.does("uses the map");
        let (global, bytes) = self.read_map(action, address)?;
        if self.order.is_checked()
            && let Some((misuse, change)) =
                self.memory.maps.misuse(global, &bytes, self.order.view(actor.who))
        {
            self.map_misused(action, global, misuse, change);
        }
        match self.know_map(&bytes) {
            Some(number) => Ok(number),
            None => self.no_map(actor, address),
        }
    }

    #[cold]
    fn map_misused(&mut self, action: Action, global: u64, misuse: MapMisuse, change: Option<Mark>) {
        let (what, help) = match misuse {
            MapMisuse::NotAcquired => ("is used, but was not acquired", ACQUIRE),
            MapMisuse::Changed => ("is used, but has changed since it was acquired", ACQUIRE),
            MapMisuse::NotReleased => {
                ("is used, but its change was not released before it was acquired", RELEASE)
            }
        };
        let log = &mut self.diagnostics;
        let message = format!("the tensor map at {global:#x} of global memory {what}");
        let mut finding =
            Finding::new(FindingKind::MissingProxyFence, message).help(help).with(log.party(action));
        if let Some(writer) = change.and_then(|change| log.actor(change.step, change.line)) {
            finding = finding.with(log.party(writer.does("changed it")));
        }
        log.report(finding);
    }

    /// Stops because there is no map at `address`.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn no_map<T>(&mut self, actor: Actor, address: u64) -> Result<T, Stop> {
        self.illegal(
            actor.does("uses the map"),
            format!("there is no tensor map at {address:#x}"),
            "tensor maps are made by the host, or [[in a `SharedMap`||of 128 zeros by `tensormap.replace` of all their fields]]",
        )
    }

    /// Returns the address in global memory of a map, and its bytes.
    fn read_map(&mut self, action: Action, address: u64) -> Result<(u64, Descriptor), Stop> {
        match resolve(Pointer::new(Space::Generic, address), action.who.block) {
            Target::Global(global) => {
                let mut bytes = [0; DESCRIPTOR_BYTES];
                match self.memory.global.read(global, &mut bytes) {
                    Ok(()) => Ok((global, bytes)),
                    Err(fault) => Err(self.global_fault(action, global, DESCRIPTOR_BYTES as u32, fault)),
                }
            }
            Target::Shared(..) => self.illegal(
                action,
                format!("a tensor map at {address:#x}, in shared memory"),
                "copies take maps in the kernel's parameters, in constant or in global memory: copy it there with \
                 [[`publish(..)`||`tensormap.cp_fenceproxy`]]",
            ),
        }
    }

    /// Notes that a thread has changed the map at an address (`tensormap.replace`,
    /// `tensormap.cp_fenceproxy`).
    pub fn map_changed(&mut self, actor: Actor, pointer: Pointer) {
        let Target::Global(global) = resolve(pointer, actor.who.block) else { return };
        self.check_not_used(actor.does("changes the map"), global);
        let step = self.order.view(actor.who).epoch();
        self.memory.maps.changed(global, Mark { step, line: actor.site.ptx_line });
    }

    /// Reports a change of a map that a copy may still read. Source: PTX ISA, "Completion
    /// Mechanisms for Asynchronous Copy Operations": neither the source nor the tensor map may
    /// change before the copy is complete, or before its bulk group has been read.
    fn check_not_used(&mut self, action: Action, global: u64) {
        let Some(issuer) = self.engines.reader_of_map(global) else { return };
        let message =
            format!("the tensor map at {global:#x} of global memory changes while a copy by it is under way");
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::InFlight, message)
            .with(log.party(action))
            .with(log.party(issuer.does("issued the copy")))
            .help("wait for the copy, or for its group to have been read, and order that before the change");
        log.report(finding);
    }

    /// `fence.proxy.tensormap::generic.acquire` of the map at a generic address.
    ///
    /// # Errors
    ///
    /// If the map is in shared memory or out of bounds.
    pub fn acquire_map(&mut self, actor: Actor, address: u64) -> Result<(), Stop> {
        let (global, bytes) = self.read_map(actor.does("acquires the map"), address)?;
        self.memory.maps.acquire(global, bytes, self.order.view(actor.who));
        self.order.fence_step(actor.who);
        Ok(())
    }
}
