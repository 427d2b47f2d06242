//! Bank conflicts: the number of wavefronts that each access of threads to shared memory needs, if
//! its addresses are known.
//!
//! Threads of a warp that reach a statement equally often are assumed to execute it together,
//! whatever groups they are followed in.

use std::collections::BTreeMap;

use tma_front::ir::{Kernel, Span, StmtId, StmtKind, visit};
use tma_front::limits::WARP_THREADS;
use tma_front::quick::QuickMap;
use tma_model::banks::{Wavefronts, wavefronts};

use super::memory::region::Region;
use super::run::Run;

/// A statement by which threads access elements of a tile or array in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SharedAccess {
    /// The location in the source.
    pub span: Span,
    /// Whether it writes.
    pub writes: bool,
    /// The most wavefronts that a warp needs for it. `None` if the addresses depend on the launch
    /// or on data, or if no explored execution reaches it.
    pub worst: Option<Wavefronts>,
}

/// The bank-conflict log of a kernel, over all its executions.
#[derive(Debug, Default)]
pub(super) struct BankConflictLog {
    worst: QuickMap<StmtId, Wavefronts>,
    /// The accesses of the current execution.
    current: QuickMap<WarpAccess, LaneAddresses>,
    /// How often each group has reached each statement in the current execution.
    visits: QuickMap<(usize, StmtId), u32>,
}

/// An access of a warp: the statement, the block, the warp, and the number of earlier visits.
type WarpAccess = (StmtId, usize, u32, u32);

/// The addresses of the lanes that take part.
#[derive(Clone, Copy, Debug, Default)]
struct LaneAddresses {
    offsets: [u64; WARP_THREADS as usize],
    mask: u32,
    bytes: u32,
}

impl BankConflictLog {
    /// Ends an execution. Its accesses are kept, unless it is followed again from the start.
    pub(super) fn end_execution(&mut self, is_kept: bool) {
        self.visits.clear();
        for ((stmt, ..), lanes) in self.current.drain().filter(|_| is_kept) {
            let new = wavefronts(&lanes.offsets, lanes.mask, lanes.bytes, false);
            let worst = self.worst.entry(stmt).or_insert(new);
            if new.conflicts() > worst.conflicts() {
                *worst = new;
            }
        }
    }

    /// Returns every access of the kernel in the order of the source. Accesses at one location are
    /// merged.
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
    /// Records an access of the current group to shared memory, if accesses are recorded. Accesses
    /// to other blocks use another network, and are left out.
    pub(super) fn log_banks(&mut self, stmt: StmtId, block: usize, region: &Region) {
        let me = &self.state.agents[self.state.current];
        let Some(banks) = self.findings.banks.as_mut().filter(|_| block == me.block) else { return };
        let Region::Each(at, bytes) = region else { return };
        let visits = banks.visits.entry((self.state.current, stmt)).or_default();
        let visit = *visits;
        *visits += 1;
        for (index, thread) in me.threads.iter().enumerate() {
            let Some(at) = at.get(index) else { continue };
            let (warp, lane) = (thread / WARP_THREADS, thread % WARP_THREADS);
            let lanes = banks.current.entry((stmt, block, warp, visit)).or_default();
            lanes.offsets[lane as usize] = at.into();
            lanes.mask |= 1 << lane;
            lanes.bytes = *bytes;
        }
    }
}
