//! Loads, stores and atomic operations of threads.

use super::Machine;
use super::address::{NO_RANK, Target, resolve};
use super::clock::View;
use super::conflict::Act;
use super::global::GlobalFault;
use super::shadow::Conflict;
use super::types::{Order, Site, Space, ThreadId};
use crate::report::{Finding, FindingKind, Stop, counted};

/// What keeps a block's shared memory for the others.
pub(super) const STAY: &str = "let no block end before the others are done with it: [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]] at the end";

/// An access that was found to be in bounds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Global(u64),
    Shared(usize, u32),
}

/// An access, for findings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) who: ThreadId,
    pub(super) site: Site,
    pub(super) does: &'static str,
}

impl Machine {
    /// Reads `out.len()` bytes. Vectors are read at once: their address is a multiple of all their bytes.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned.
    #[inline]
    pub fn load(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        out: &mut [u8],
        order: Order,
        site: Site,
    ) -> Result<(), Stop> {
        let access = Access { who, site, does: "reads" };
        let len = out.len() as u32;
        match self.place(access, space, address, len, len)? {
            Place::Global(address) => self.load_global(access, address, out)?,
            Place::Shared(rank, at) => {
                if self.config.checks.order {
                    self.visit(access, rank);
                    let view = &self.threads[(who.block * self.config.threads + who.thread) as usize].view;
                    let shadow = &mut self.blocks[rank].shadow;
                    if let Some(conflict) = shadow.read(at, len, view, site.ptx_line, order.strong()) {
                        self.conflict(access, Act::Read, rank, conflict);
                    }
                }
                copy(out, &self.blocks[rank].data[at as usize..]);
            }
        }
        if order != Order::Weak && self.config.checks.order {
            self.flag_read(who, space, address, order);
        }
        Ok(())
    }

    /// Writes `bytes`.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned.
    #[inline]
    pub fn store(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        bytes: &[u8],
        order: Order,
        site: Site,
    ) -> Result<(), Stop> {
        let access = Access { who, site, does: "writes" };
        let len = bytes.len() as u32;
        let place = self.place(access, space, address, len, len)?;
        if order != Order::Weak && self.config.checks.order {
            self.flag_write(who, space, address, order, false);
        }
        match place {
            Place::Global(address) => {
                self.wrote_global(access, address, len);
                self.config
                    .global
                    .write(address, bytes)
                    .or_else(|fault| self.global_fault(access, address, len, fault))
            }
            Place::Shared(rank, at) => {
                if self.config.checks.order {
                    self.visit(access, rank);
                    let view = &self.threads[(who.block * self.config.threads + who.thread) as usize].view;
                    let shadow = &mut self.blocks[rank].shadow;
                    if let Some(conflict) = shadow.write(at, len, view, site.ptx_line, order.strong())
                        && !self.is_repeated(rank, at, bytes, conflict)
                    {
                        self.conflict(access, Act::Write, rank, conflict);
                    }
                }
                copy(&mut self.blocks[rank].data[at as usize..][..bytes.len()], bytes);
                Ok(())
            }
        }
    }

    /// Changes `width` bytes (2, 4 or 8) at once: `change` gets what they were, which is also the answer, and gives what
    /// they are to be.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned.
    #[expect(clippy::too_many_arguments, reason = "an instruction's operands")]
    pub fn atomic(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        width: usize,
        order: Order,
        change: &mut dyn FnMut(u64) -> u64,
        site: Site,
    ) -> Result<u64, Stop> {
        let access = Access { who, site, does: "changes" };
        let len = width as u32;
        let place = self.place(access, space, address, len, len)?;
        let order = if order == Order::Weak { Order::Relaxed } else { order };
        if self.config.checks.order {
            self.flag_read(who, space, address, order);
            self.flag_write(who, space, address, order, true);
        }
        match place {
            Place::Global(address) => {
                self.wrote_global(access, address, len);
                let global = std::sync::Arc::clone(&self.config.global);
                global
                    .update(address, width, change)
                    .or_else(|fault| self.global_fault(access, address, len, fault).map(|()| 0))
            }
            Place::Shared(rank, at) => {
                if self.config.checks.order {
                    self.visit(access, rank);
                    let view = &self.threads[(who.block * self.config.threads + who.thread) as usize].view;
                    let line = site.ptx_line;
                    let shadow = &mut self.blocks[rank].shadow;
                    if let Some(conflict) = shadow.change(at, len, view, line) {
                        self.conflict(access, Act::Write, rank, conflict);
                    }
                }
                let (at, width) = (at as usize, width.min(8));
                let place = &mut self.blocks[rank].data[at..at + width];
                let mut wide = [0; 8];
                wide[..width].copy_from_slice(place);
                let old = u64::from_le_bytes(wide);
                place.copy_from_slice(&change(old).to_le_bytes()[..width]);
                Ok(old)
            }
        }
    }

    /// Whether a thread writes what another thread has just written, in no order with it. Whichever comes last, the bytes
    /// are the same: compilers let all threads that hold a copy of a value write it, as Triton does.
    #[cold]
    fn is_repeated(&self, rank: usize, at: u32, bytes: &[u8], conflict: Conflict) -> bool {
        conflict.other_writes
            && self.thread_of(conflict.other).is_some()
            && self.blocks[rank].data.get(at as usize..).is_some_and(|data| data.starts_with(bytes))
    }

    pub(super) fn load_global(&mut self, access: Access, address: u64, out: &mut [u8]) -> Result<(), Stop> {
        let len = out.len() as u64;
        if let Err(fault) = self.config.global.read(address, out) {
            return self.global_fault(access, address, len as u32, fault);
        }
        self.check_written(access, address, len);
        Ok(())
    }

    /// Checks that somebody wrote what is read.
    #[inline]
    pub(super) fn check_written(&mut self, access: Access, address: u64, len: u64) {
        if self.config.checks.global_initialised && !self.config.global.is_written(address, len) {
            let message = format!(
                "nobody has written what is read: {} of global memory at {address:#x}",
                counted(len, "byte")
            );
            let finding = Finding::new(FindingKind::Uninitialised, message);
            self.report(finding.with(self.party(access.who, access.site, access.does)));
        }
    }

    /// Finds `len` bytes of which the address has to be a multiple of `align`, a power of two.
    #[inline]
    pub(super) fn place(
        &mut self,
        access: Access,
        space: Space,
        address: u64,
        len: u32,
        align: u32,
    ) -> Result<Place, Stop> {
        if address & u64::from(align.saturating_sub(1)) != 0 {
            return self.misaligned(access, space, address, align);
        }
        match resolve(space, address, access.who.block) {
            Target::Global(address) => {
                self.check_stored(access, address, len.into());
                Ok(Place::Global(address))
            }
            Target::Shared(rank, at) => {
                let inside = at.saturating_add(len.into()) <= u64::from(self.config.shared_bytes);
                if !inside || rank as usize >= self.blocks.len() {
                    return self.outside_of_shared(access, rank, at, len);
                }
                if rank != access.who.block && self.blocks[rank as usize].live == 0 {
                    self.block_gone(access, rank);
                }
                Ok(Place::Shared(rank as usize, at as u32))
            }
        }
    }

    /// As [`place`](Self::place), for what has to be shared memory.
    pub(super) fn shared_place(
        &mut self,
        access: Access,
        space: Space,
        address: u64,
        len: u32,
        align: u32,
    ) -> Result<(usize, u32), Stop> {
        match self.place(access, space, address, len, align)? {
            Place::Shared(rank, at) => Ok((rank, at)),
            Place::Global(address) => {
                let message = format!("{address:#x} is not in shared memory");
                let finding = Finding::new(FindingKind::OutOfBounds, message);
                let party = self.party(access.who, access.site, access.does);
                self.stop(finding.with(party))
            }
        }
    }

    #[cold]
    fn misaligned<T>(&mut self, access: Access, space: Space, address: u64, align: u32) -> Result<T, Stop> {
        let message = format!("address {address:#x} of {} is not a multiple of {align}", name_of(space));
        let party = self.party(access.who, access.site, access.does);
        self.stop(Finding::new(FindingKind::Misaligned, message).with(party))
    }

    #[cold]
    fn outside_of_shared<T>(&mut self, access: Access, rank: u32, at: u64, len: u32) -> Result<T, Stop> {
        let message = if rank as usize >= self.blocks.len() {
            let or_more = if rank == NO_RANK { " or more" } else { "" };
            let blocks = self.blocks.len();
            let message = format!(
                "shared memory of rank {rank}{or_more} in a cluster of {}",
                counted(blocks as u64, "block")
            );
            let help = "ranks are those of [[`cluster_rank()`||`%cluster_ctarank`]], from 0: to go around, take them modulo the number of blocks";
            let party = self.party(access.who, access.site, access.does);
            return self.stop(Finding::new(FindingKind::OutOfBounds, message).with(party).help(help));
        } else {
            let bytes = self.config.shared_bytes;
            format!(
                "{} at {at:#x} of shared memory, which has {bytes:#x} bytes a block",
                counted(len, "byte")
            )
        };
        let party = self.party(access.who, access.site, access.does);
        self.stop(Finding::new(FindingKind::OutOfBounds, message).with(party))
    }

    #[cold]
    pub(super) fn global_fault(
        &mut self,
        access: Access,
        address: u64,
        len: u32,
        fault: GlobalFault,
    ) -> Result<(), Stop> {
        let (kind, message) = match fault {
            GlobalFault::Misaligned => {
                (FindingKind::Misaligned, format!("global address {address:#x} is not a multiple of {len}"))
            }
            GlobalFault::OutOfBounds { near: Some((base, bytes)) } => (
                FindingKind::OutOfBounds,
                format!(
                    "{} at byte {} of an allocation of {} ({address:#x})",
                    counted(len, "byte"),
                    address - base,
                    counted(bytes, "byte")
                ),
            ),
            GlobalFault::OutOfBounds { near: None } => {
                (FindingKind::OutOfBounds, format!("global address {address:#x} is in no allocation"))
            }
        };
        let party = self.party(access.who, access.site, access.does);
        self.stop(Finding::new(kind, message).with(party))
    }

    /// A thread itself uses shared memory, which has to be there until it has. (Of copies, mbarriers tell.)
    #[inline]
    pub(super) fn visit(&mut self, access: Access, rank: usize) {
        if rank != access.who.block as usize {
            self.visit_other(access, rank);
        }
    }

    #[cold]
    fn visit_other(&mut self, access: Access, rank: usize) {
        if self.config.checks.order {
            let (index, threads) = (self.index(access.who), self.threads.len());
            let visits = &mut self.blocks[rank].visits;
            visits.resize(threads, (0, 0));
            visits[index] = (self.threads[index].view.own, access.site.ptx_line);
        }
    }

    #[cold]
    fn block_gone(&mut self, access: Access, rank: u32) {
        let message =
            format!("shared memory of block {rank} of the cluster is used after all its threads have ended");
        let finding = Finding::new(FindingKind::BlockGone, message)
            .with(self.party(access.who, access.site, access.does))
            .help(STAY);
        self.report(finding);
    }

    /// The view of a thread.
    pub(super) fn view(&mut self, who: ThreadId) -> &mut View {
        let index = self.index(who);
        &mut self.threads[index].view
    }
}

/// Fills `out` from the start of `from`, which is long enough. The sizes of most accesses are worth a case of their own.
#[inline]
fn copy(out: &mut [u8], from: &[u8]) {
    if let (Some(out), Some(from)) = (as_array::<4>(out), from.first_chunk()) {
        *out = *from;
    } else {
        let from = &from[..out.len()];
        out.copy_from_slice(from);
    }
}

fn as_array<const N: usize>(bytes: &mut [u8]) -> Option<&mut [u8; N]> {
    bytes.try_into().ok()
}

fn name_of(space: Space) -> &'static str {
    match space {
        Space::Global => "global memory",
        Space::Shared => "shared memory",
        Space::SharedCluster => "the cluster's shared memory",
        Space::Generic => "generic memory",
    }
}
