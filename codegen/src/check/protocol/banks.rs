//! Bank conflicts: how many wavefronts each access of threads to shared memory needs, of those
//! whose addresses are known.
//!
//! Threads of a warp that come to a statement equally often are taken to come together, whatever
//! groups they are followed in.

use std::collections::BTreeMap;

use tma_model::banks::{Wavefronts, wavefronts};

use super::memory::region::Region;
use super::run::Run;
use crate::ir::{Kernel, Span, StmtId, StmtKind, visit};
use crate::limits::WARP_THREADS;
use crate::quick::QuickMap;

/// A statement by which each thread accesses elements of a tile or array in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SharedAccess {
    /// Where it is written.
    pub span: Span,
    /// Whether it writes.
    pub writes: bool,
    /// The most that a warp needs for it; unknown if the addresses depend on the launch or on data,
    /// or no launch that was looked at comes to it.
    pub worst: Option<Wavefronts>,
}

/// The accesses of a kernel, over all its worlds.
#[derive(Debug, Default)]
pub(super) struct Banks {
    worst: QuickMap<StmtId, Wavefronts>,
    /// The accesses of the world that is looked at.
    world: QuickMap<WarpAccess, Lanes>,
    /// How often each group has come to each statement in this world.
    visits: QuickMap<(usize, StmtId), u32>,
}

/// An access of a warp: the statement, the block, the warp, and how often it was there before.
type WarpAccess = (StmtId, usize, u32, u32);

/// The addresses of the lanes that take part.
#[derive(Clone, Copy, Debug, Default)]
struct Lanes {
    offsets: [u64; WARP_THREADS as usize],
    mask: u32,
    bytes: u32,
}

impl Banks {
    /// A world has ended: what it has shown is kept, unless all of it is looked at again.
    pub(super) fn end_world(&mut self, is_kept: bool) {
        self.visits.clear();
        for ((stmt, ..), lanes) in self.world.drain().filter(|_| is_kept) {
            let new = wavefronts(&lanes.offsets, lanes.mask, lanes.bytes, false);
            let worst = self.worst.entry(stmt).or_insert(new);
            if new.conflicts() > worst.conflicts() {
                *worst = new;
            }
        }
    }

    /// Every access of the kernel, in the order of its source; those that one place made are one.
    pub(super) fn of_kernel(&self, kernel: &Kernel) -> Vec<SharedAccess> {
        let mut all: BTreeMap<(usize, usize, bool), SharedAccess> = BTreeMap::new();
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            let reads = matches!(stmt.kind, StmtKind::TileGet { .. } | StmtKind::SharedGet { .. });
            let writes = matches!(stmt.kind, StmtKind::TileSet { .. } | StmtKind::SharedSet { .. });
            if !reads && !writes {
                return;
            }
            let span = stmt.origin.span;
            let worst = self.worst.get(&stmt.id).copied();
            let at = (span.start().line, span.start().column, writes);
            let access = all.entry(at).or_insert(SharedAccess { span, writes, worst });
            let conflicts = |worst: Option<Wavefronts>| worst.map(Wavefronts::conflicts);
            if conflicts(worst) > conflicts(access.worst) {
                access.worst = worst;
            }
        });
        all.into_values().collect()
    }
}

impl Run<'_, '_> {
    /// Notes an access of the current group to a block's shared memory, where accesses are noted.
    /// Shared memory of other blocks comes over another network.
    pub(super) fn note_banks(&mut self, stmt: StmtId, block: usize, region: &Region) {
        let me = &self.agents[self.current];
        let Some(banks) = self.banks.as_mut().filter(|_| block == me.block) else { return };
        let Region::Each(at, bytes) = region else { return };
        let visits = banks.visits.entry((self.current, stmt)).or_default();
        let visit = *visits;
        *visits += 1;
        for (index, thread) in me.threads.iter().enumerate() {
            let Some(at) = at.get(index) else { continue };
            let (warp, lane) = (thread / WARP_THREADS, thread % WARP_THREADS);
            let lanes = banks.world.entry((stmt, block, warp, visit)).or_default();
            lanes.offsets[lane as usize] = at.into();
            lanes.mask |= 1 << lane;
            lanes.bytes = *bytes;
        }
    }
}
