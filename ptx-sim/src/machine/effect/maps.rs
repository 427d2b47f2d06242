//! Tensor maps in global memory: their use, change and acquire.

use tma_model::help::Help;

use crate::machine::Machine;
use crate::machine::address::{Target, resolve};
use crate::machine::index::MapId;
use crate::machine::memory::{MapMisuse, Mark};
use crate::machine::types::{Action, Actor, Pointer, Space};
use crate::report::{Finding, FindingKind, Stop};
use crate::tensor_map::{DESCRIPTOR_BYTES, Descriptor};

impl Machine {
    /// Returns the map that a descriptor encodes, or `None` if the bytes are no valid descriptor.
    pub fn map_number(&mut self, descriptor: &[u8; DESCRIPTOR_BYTES]) -> Option<MapId> {
        self.memory.maps.number_of(descriptor)
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
                self.memory.maps.misuse(global, &bytes, self.order.view(actor.thread))
        {
            self.report_map_misuse(action, global, misuse, change);
        }
        match self.map_number(&bytes) {
            Some(number) => Ok(number),
            None => self.invalid_map(actor, address),
        }
    }

    #[cold]
    fn report_map_misuse(&mut self, action: Action, global: u64, misuse: MapMisuse, change: Option<Mark>) {
        let (problem, help) = match misuse {
            MapMisuse::NotAcquired => ("is used, but was not acquired", Help::AcquireMap),
            MapMisuse::Changed => ("is used, but has changed since it was acquired", Help::AcquireMap),
            MapMisuse::NotReleased => {
                ("is used, but its change was not released before it was acquired", Help::ReleaseMap)
            }
        };
        let log = &mut self.diagnostics;
        let message = format!("the tensor map at {global:#x} of global memory {problem}");
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
    pub fn invalid_map<T>(&mut self, actor: Actor, address: u64) -> Result<T, Stop> {
        self.illegal(
            actor.does("uses the map"),
            format!("there is no tensor map at {address:#x}"),
            Some(Help::MakeMap),
        )
    }

    /// Returns the address in global memory of a map, and its bytes.
    fn read_map(&mut self, action: Action, address: u64) -> Result<(u64, Descriptor), Stop> {
        match resolve(Pointer::new(Space::Generic, address), action.thread.block) {
            Target::Global(global) => {
                let mut bytes = [0; DESCRIPTOR_BYTES];
                match self.memory.global.read(global, &mut bytes) {
                    Ok(()) => Ok((global, bytes)),
                    Err(fault) => Err(self.global_fault(action, global, DESCRIPTOR_BYTES as u32, fault)),
                }
            }
            Target::Shared(..) => self.illegal(
                action,
                format!("the tensor map at {address:#x} is in shared memory"),
                Some(Help::PublishMap),
            ),
        }
    }

    /// Notes that a thread has changed the map at an address (`tensormap.replace`,
    /// `tensormap.cp_fenceproxy`).
    pub fn map_changed(&mut self, actor: Actor, pointer: Pointer) {
        let Target::Global(global) = resolve(pointer, actor.thread.block) else { return };
        self.check_not_used(actor.does("changes the map"), global);
        let step = self.order.view(actor.thread).epoch();
        self.memory.maps.note_change(global, Mark { step, line: actor.site.ptx_line });
    }

    /// Reports a change of a map that a copy may still read. Source: PTX ISA, "Completion
    /// Mechanisms for Asynchronous Copy Operations": neither the source nor the tensor map may
    /// change before the copy is complete, or before its bulk group has been read.
    fn check_not_used(&mut self, action: Action, global: u64) {
        let Some(issuer) = self.engines.reader_of_map(global) else { return };
        let message = format!(
            "the tensor map at {global:#x} of global memory changes while a copy that uses it is in \
                flight"
        );
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::InFlight, message)
            .with(log.party(action))
            .with(log.party(issuer.does("issued the copy")))
            .help("wait for the copy, or until its group has been read, and order the change after that");
        log.report(finding);
    }

    /// `fence.proxy.tensormap::generic.acquire` of the map at a generic address.
    ///
    /// # Errors
    ///
    /// If the map is in shared memory or out of bounds.
    pub fn acquire_map(&mut self, actor: Actor, address: u64) -> Result<(), Stop> {
        let (global, bytes) = self.read_map(actor.does("acquires the map"), address)?;
        self.memory.maps.acquire(global, bytes, self.order.view(actor.thread));
        self.order.fence_step(actor.thread);
        Ok(())
    }
}
