//! Tensor maps: those that copies have named, and what is known of those in global memory.
//!
//! Copies read maps through a proxy of their own (PTX ISA, "Tensormap proxy"). A map in the kernel's parameters is there from
//! the start. One in global memory has to be acquired in the block before it is used, and each time that it has changed:
//! `fence.proxy.tensormap::generic.acquire` by the thread that issues the copy, or by one that a barrier orders before it (CUDA
//! Programming Guide, "Using a tensor map in global memory"). What a thread of this cluster has changed has to be
//! released as well, by a thread that knows of the change, before the acquire. Changes by other clusters, by earlier launches and by
//! the host are seen only as other bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Machine;
use super::access::Access;
use super::address::{Target, resolve};
use super::clock::{Epoch, View};
use super::engine::{Flight, Way};
use super::types::{Site, Space, ThreadId};
use crate::report::{Finding, FindingKind, Stop};
use crate::tensor_map::{self, DESCRIPTOR_BYTES, Descriptor, TensorMap};

const ACQUIRE: &str = "[[`maps.acquire(i)`||`fence.proxy.tensormap::generic.acquire.gpu [map], 128`]] in this block, after the change, and a barrier if \
                       another thread than the one that copies has it";
const RELEASE: &str = "[[`map.publish(maps, i)`||`fence.proxy.tensormap::generic.release.gpu`]] after the change, \
                       [[||or `tensormap.cp_fenceproxy` from shared memory, ]]and a barrier before the acquire if another \
                       thread has that";

/// The maps of a cluster.
#[derive(Debug, Default)]
pub(super) struct Maps {
    /// By number.
    known: Arc<Vec<TensorMap>>,
    numbers: HashMap<Descriptor, u32>,
    /// Those that were changed, acquired or used in global memory, by address.
    global: BTreeMap<u64, InGlobal>,
}

/// A map in global memory.
#[derive(Debug, Default)]
struct InGlobal {
    /// The last change by a thread of this cluster, and its PTX line.
    changed: Option<(Epoch, u32)>,
    /// The fence that released it.
    released: Option<Epoch>,
    acquired: Vec<Acquired>,
}

/// An acquire of a map: the fence, the bytes at that time, and whether the last change was released before.
#[derive(Debug)]
struct Acquired {
    fence: Epoch,
    bytes: Descriptor,
    after_release: bool,
}

impl Maps {
    /// All maps, by number.
    pub(super) fn all(&self) -> Arc<Vec<TensorMap>> {
        Arc::clone(&self.known)
    }

    /// A thread has written to global memory.
    #[inline]
    pub(super) fn wrote(&mut self, address: u64, len: u32, writer: Epoch, line: u32) {
        if self.global.is_empty() {
            return;
        }
        let first = address.saturating_sub(DESCRIPTOR_BYTES as u64 - 1);
        for (_, map) in self.global.range_mut(first..address.saturating_add(len.into())) {
            (map.changed, map.released) = (Some((writer, line)), None);
        }
    }
}

impl InGlobal {
    /// What is wrong with a use by `view` of the map, which now has `bytes`.
    fn misuse(&self, view: &View, bytes: &Descriptor) -> Option<(&'static str, &'static str)> {
        let mut seen = self.acquired.iter().filter(|acquired| view.follows(acquired.fence)).peekable();
        if seen.peek().is_none() {
            return Some(("is used, but was not acquired", ACQUIRE));
        }
        let mut current = seen.filter(|acquired| acquired.bytes == *bytes).peekable();
        if current.peek().is_none() {
            return Some(("is used, but has changed since it was acquired", ACQUIRE));
        }
        (!current.any(|acquired| acquired.after_release))
            .then_some(("is used, but its change was not released before it was acquired", RELEASE))
    }
}

impl Machine {
    /// The number of the map that a descriptor's bytes hold; none if they are no descriptor.
    pub fn know_map(&mut self, descriptor: &[u8; DESCRIPTOR_BYTES]) -> Option<u32> {
        if let Some(number) = self.maps.numbers.get(descriptor) {
            return Some(*number);
        }
        let map = tensor_map::decode(descriptor)?;
        let number = self.maps.known.len() as u32;
        Arc::make_mut(&mut self.maps.known).push(map);
        self.maps.numbers.insert(*descriptor, number);
        Some(number)
    }

    /// The number of the map at a generic address, for a copy.
    ///
    /// # Errors
    ///
    /// A map in shared memory, out of bounds or misaligned, and bytes that are no map.
    pub fn map_at(&mut self, who: ThreadId, address: u64, site: Site) -> Result<u32, Stop> {
        let access = Access { who, site, does: "uses the map" };
        let global = self.place_of_map(access, address)?;
        let mut bytes = [0; DESCRIPTOR_BYTES];
        if let Err(fault) = self.config.global.read(global, &mut bytes) {
            self.global_fault(access, global, DESCRIPTOR_BYTES as u32, fault)?;
        }
        if self.config.checks.order {
            let view = &self.threads[self.index(who)].view;
            let map = self.maps.global.entry(global).or_default();
            if let Some((what, help)) = map.misuse(view, &bytes) {
                let changed = map.changed;
                let mut finding = Finding::new(
                    FindingKind::MissingProxyFence,
                    format!("the tensor map at {global:#x} of global memory {what}"),
                )
                .help(help)
                .with(self.party(who, site, access.does));
                if let Some((epoch, line)) = changed
                    && let Some(other) = self.thread_of(epoch)
                {
                    finding = finding.with(self.party(other, self.site_of(line), "changed it"));
                }
                self.report(finding);
            }
        }
        match self.know_map(&bytes) {
            Some(number) => Ok(number),
            None => self.no_map(who, address, site),
        }
    }

    /// Stops because there is no map at `address`.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn no_map<T>(&mut self, who: ThreadId, address: u64, site: Site) -> Result<T, Stop> {
        let access = Access { who, site, does: "uses the map" };
        self.illegal(
            access,
            format!("there is no tensor map at {address:#x}"),
            "tensor maps are made by the host, or [[in a `SharedMap`||of 128 zeros by `tensormap.replace` of all their fields]]",
        )
    }

    fn place_of_map(&mut self, access: Access, address: u64) -> Result<u64, Stop> {
        match resolve(Space::Generic, address, access.who.block) {
            Target::Global(global) => Ok(global),
            Target::Shared(..) => self.illegal(
                access,
                format!("a tensor map at {address:#x}, in shared memory"),
                "copies take maps in the kernel's parameters, in constant or in global memory: copy it there with \
                 [[`publish(..)`||`tensormap.cp_fenceproxy`]]",
            ),
        }
    }

    /// A thread has changed the map at an address: `tensormap.replace`, `tensormap.cp_fenceproxy`.
    pub fn map_changed(&mut self, who: ThreadId, space: Space, address: u64, site: Site) {
        let Target::Global(global) = resolve(space, address, who.block) else { return };
        self.still_used(Access { who, site, does: "changes the map" }, global);
        let writer = self.view(who).epoch();
        let map = self.maps.global.entry(global).or_default();
        (map.changed, map.released) = (Some((writer, site.ptx_line)), None);
    }

    /// Reports a copy that may still read the map that is changed. Source: PTX ISA, "Completion Mechanisms for Asynchronous
    /// Copy Operations": neither source nor tensor map change before it is complete, or before a bulk group has been read.
    fn still_used(&mut self, access: Access, global: u64) {
        let reads = |flight: &&Flight| match flight.way {
            Way::Out { group, .. } => !self.threads[self.index(flight.who)].bulk.done(group, true),
            Way::In { .. } | Way::Across { .. } => true,
        };
        let Some((who, site)) = self.engine.copies_by(global).find(reads).map(|copy| (copy.who, copy.site))
        else {
            return;
        };
        let message =
            format!("the tensor map at {global:#x} of global memory changes while a copy by it is under way");
        let finding = Finding::new(FindingKind::InFlight, message)
            .with(self.party(access.who, access.site, access.does))
            .with(self.party(who, site, "issued the copy"))
            .help("wait for the copy, or for its group to have been read, and order that before the change");
        self.report(finding);
    }

    /// `fence.proxy.tensormap::generic.release`: of all changes that the thread knows of.
    pub(super) fn release_maps(&mut self, who: ThreadId) {
        let view = &mut self.threads[(who.block * self.config.threads + who.thread) as usize].view;
        for map in self.maps.global.values_mut() {
            if map.changed.is_some_and(|(writer, _)| view.follows(writer)) {
                map.released = Some(view.epoch());
            }
        }
        view.step();
    }

    /// `fence.proxy.tensormap::generic.acquire` of the map at a generic address.
    ///
    /// # Errors
    ///
    /// A map in shared memory, or out of bounds.
    pub fn acquire_map(&mut self, who: ThreadId, address: u64, site: Site) -> Result<(), Stop> {
        let access = Access { who, site, does: "acquires the map" };
        let global = self.place_of_map(access, address)?;
        let mut bytes = [0; DESCRIPTOR_BYTES];
        if let Err(fault) = self.config.global.read(global, &mut bytes) {
            return self.global_fault(access, global, DESCRIPTOR_BYTES as u32, fault);
        }
        let index = self.index(who);
        let view = &mut self.threads[index].view;
        let map = self.maps.global.entry(global).or_default();
        let after_release = match (map.changed, map.released) {
            (None, _) => true,
            (Some(_), released) => released.is_some_and(|fence| view.follows(fence)),
        };
        let fence = view.epoch();
        map.acquired.retain(|known| known.fence.component() != fence.component());
        map.acquired.push(Acquired { fence, bytes, after_release });
        view.step();
        Ok(())
    }
}
