//! Accesses to global memory: the order between them, across all clusters of a launch, and the
//! stores that a strong load may observe.
//!
//! | module | contents |
//! | --- | --- |
//! | `mark` | accesses, and the rule for conflicts |
//! | `table` | the last accesses to each piece of memory |
//! | `cross_cluster` | the knowledge that clusters have of each other |
//! | `history` | the stores to locations with strong accesses |
//! | `release` | the releases of those stores |
//! | `strong` | strong accesses, and memory fences |
//! | `team` | the arrangement of the threads: blocks, clusters, ranks |
//! | `uses` | uses of the values that threads have read |
//! | `footprint` | the accesses of unordered clusters |
//! | `message` | findings |
//!
//! There are two modes. If no thread makes strong accesses to global memory, nothing orders two
//! clusters. Each cluster then has its own [`Table`], and their accesses are compared after they
//! have ended. With strong accesses, all clusters of the launch share one table, the [`Grid`].

mod cross_cluster;
mod footprint;
mod history;
mod mark;
mod message;
mod release;
mod strong;
mod table;
mod team;
mod uses;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tma_model::sync::{AccessKind, Epoch, MemoryScope, Proxy, Releases, View};

pub(super) use cross_cluster::{Imports, Observer};
pub(crate) use footprint::{Footprint, Footprints};
pub(super) use mark::{AccessAttributes, AccessRule, GlobalAccess, GlobalConflict, GridThread};
pub(super) use message::{Pair, did, finding, mixed_sizes};
pub(super) use strong::{MemoryChange, StrongAccess};

use self::cross_cluster::CrossClusterKnowledge;
use self::history::History;
use self::release::{Release, Released};
use self::table::{Table, pieces};
pub(super) use self::team::TeamLayout;
use super::index::ThreadId;
use super::random::Random;
use super::sizes::SCALARS;
use super::types::{GlobalOrder, MachineConfig};

/// Separates the choice of old stores from the main sequence of the seed.
const OLD_STORES: u64 = 0x9fb2_1c65_1e98_df25;

/// The arrangement of the clusters of a grid.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterGrid {
    /// Clusters along x, y and z.
    pub(crate) per_axis: [u64; 3],
    /// Blocks of a cluster along x, y and z.
    pub(crate) cluster: [u32; 3],
}

impl ClusterGrid {
    /// Returns the number of clusters.
    pub(crate) fn count(&self) -> u64 {
        self.per_axis.iter().product()
    }

    /// Returns the block indices of a cluster, by rank.
    pub(crate) fn blocks(&self, index: u64) -> Vec<[u32; 3]> {
        let [x, y, _] = self.per_axis.map(|extent| extent.max(1));
        let position = [index % x, index / x % y, index / x / y];
        let [width, height, _] = self.cluster.map(|extent| extent.max(1));
        let within = |rank: u32| [rank % width, rank / width % height, rank / width / height];
        let block = |rank| {
            let within = within(rank);
            std::array::from_fn(|axis| position[axis] as u32 * self.cluster[axis] + within[axis])
        };
        (0..self.cluster.iter().product()).map(block).collect()
    }
}

/// The accesses of all clusters of a launch, on all ranks of a team, in a kernel with strong
/// accesses.
#[derive(Debug)]
pub struct Grid {
    /// The clusters of each rank.
    clusters: ClusterGrid,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    table: Table,
    histories: HashMap<u64, History>,
    /// The steps that `fence.sc` fences have seen, by scope, cluster and block.
    sequential: BTreeMap<(MemoryScope, u32, u32), CrossClusterKnowledge>,
}

impl Grid {
    /// Creates the grid of clusters that run with this configuration.
    pub(crate) fn new(clusters: ClusterGrid, config: &MachineConfig) -> Self {
        let table = Table::new(config, false);
        let state = State { table, histories: HashMap::new(), sequential: BTreeMap::new() };
        Self { clusters, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where accesses are recorded.
#[derive(Debug)]
enum Tracking {
    Off,
    /// Recorded only to find missing proxy fences between threads and copies of the cluster.
    Fences(Box<Table>),
    Own(Box<Table>),
    Shared(Arc<Grid>),
}

/// The releases of a store that a relaxed read observed, to be acquired by a later fence.
#[derive(Debug)]
struct Pending {
    address: u64,
    released: Released,
}

/// The release that a fence makes together with later strong stores of its thread.
#[derive(Debug)]
enum FenceRelease {
    Raw(Releases),
    Made(Release),
}

/// The accesses of one cluster to global memory.
#[derive(Debug)]
pub(super) struct GlobalAccesses {
    tracking: Tracking,
    cluster: u32,
    layout: TeamLayout,
    /// Whether the executing side reports uses of the values that threads read.
    tracks_uses: bool,
    imports: Imports,
    /// The releases that each thread's relaxed reads observed.
    pending: HashMap<ThreadId, Vec<Pending>>,
    /// The releases that each thread's acquires missed because a scope excluded the other thread.
    missed: HashMap<ThreadId, CrossClusterKnowledge>,
    /// The releases of each thread's fences, by scope.
    fences: HashMap<ThreadId, BTreeMap<MemoryScope, FenceRelease>>,
    random: Random,
    stale_reads: u64,
}

impl GlobalAccesses {
    /// Creates the state of a cluster that has not begun.
    pub(super) fn new(config: &MachineConfig) -> Self {
        let tracking = match &config.grid {
            _ if !config.checks.order => Tracking::Off,
            Some(grid) if config.checks.global_order != GlobalOrder::Never => {
                Tracking::Shared(Arc::clone(grid))
            }
            None if config.checks.global_order == GlobalOrder::Always => {
                Tracking::Own(Box::new(Table::new(config, false)))
            }
            Some(_) | None if config.copies => Tracking::Fences(Box::new(Table::new(config, true))),
            Some(_) | None => Tracking::Off,
        };
        Self {
            tracking,
            cluster: config.cluster,
            layout: TeamLayout::new(config),
            tracks_uses: config.used_immediately.is_some(),
            imports: Imports::default(),
            pending: HashMap::new(),
            missed: HashMap::new(),
            fences: HashMap::new(),
            random: Random::new(config.seed ^ OLD_STORES),
            stale_reads: 0,
        }
    }

    /// Returns whether nothing is recorded.
    #[inline]
    pub(super) fn is_off(&self) -> bool {
        match self.tracking {
            Tracking::Off => true,
            Tracking::Fences(_) | Tracking::Own(_) | Tracking::Shared(_) => false,
        }
    }

    /// Returns whether uses of the values that threads read should be reported.
    #[inline]
    pub(super) fn needs_uses(&self) -> bool {
        self.tracks_uses && !self.is_off()
    }

    /// Records that a thread uses, in this step, the value that it last read in a line.
    pub(super) fn uses(&mut self, thread: ThreadId, line: u32, step: Epoch) {
        let grid_thread = self.grid_thread(thread);
        match &mut self.tracking {
            Tracking::Off => {}
            Tracking::Fences(table) | Tracking::Own(table) => table.used(grid_thread, line, step),
            Tracking::Shared(grid) => grid.state().table.used(grid_thread, line, step),
        }
    }

    /// Returns the table that all clusters share, if they do.
    pub(super) fn grid(&self) -> Option<Arc<Grid>> {
        match &self.tracking {
            Tracking::Shared(grid) => Some(Arc::clone(grid)),
            Tracking::Off | Tracking::Fences(_) | Tracking::Own(_) => None,
        }
    }

    /// Returns whether all clusters share one table.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        match self.tracking {
            Tracking::Shared(_) => true,
            Tracking::Off | Tracking::Fences(_) | Tracking::Own(_) => false,
        }
    }

    /// Returns the number of this cluster.
    pub(super) fn cluster(&self) -> u32 {
        self.cluster
    }

    /// Returns the author for a thread of this cluster.
    #[inline]
    pub(super) fn grid_thread(&self, thread: ThreadId) -> GridThread {
        GridThread { cluster: self.cluster, thread: thread.block.0 * self.layout.threads + thread.index.0 }
    }

    /// Returns the thread of an author, within its cluster.
    pub(super) fn thread(&self, grid_thread: GridThread) -> ThreadId {
        let threads = self.layout.threads;
        ThreadId::new(grid_thread.thread / threads, grid_thread.thread % threads)
    }

    /// Returns the index in the grid of an author's block. `None` unless all clusters share one
    /// table.
    pub(super) fn block_of(&self, grid_thread: GridThread) -> Option<[u32; 3]> {
        let Tracking::Shared(grid) = &self.tracking else { return None };
        let blocks = grid.clusters.blocks(self.layout.in_rank(grid_thread.cluster).into());
        blocks.get(self.thread(grid_thread).block.index()).copied()
    }

    /// Returns the arrangement of the threads of the launch.
    pub(super) fn layout(&self) -> TeamLayout {
        self.layout
    }

    /// Checks an access to each of `ranges`, pairs of start and end, and records it. Returns the
    /// first conflict.
    pub(super) fn access(
        &mut self,
        mark: &GlobalAccess,
        view: &View,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) -> Option<GlobalConflict> {
        let (cluster, layout) = (self.cluster, self.layout);
        let observer = Observer { cluster, layout, view, imports: &self.imports };
        let mut conflict = None;
        let mut access = |table: &mut Table, (start, end): (u64, u64)| {
            let found = table.access(start, end.saturating_sub(start), mark, &observer, &|_, _| false);
            conflict = conflict.or(found);
        };
        match &mut self.tracking {
            Tracking::Off => {}
            // No copy can overtake these reads.
            Tracking::Fences(table) if is_read_of_thread(mark) && !table.may_be_overtaken(mark) => {}
            Tracking::Fences(table) | Tracking::Own(table) => {
                ranges.for_each(|range| access(table, range));
            }
            Tracking::Shared(grid) => {
                let state = &mut *grid.state();
                for (start, end) in ranges {
                    let found = state.access(start, end.saturating_sub(start), mark, &observer);
                    conflict = conflict.or(found);
                    if mark.attributes.kind != AccessKind::Read {
                        state.forget_histories(start, end.saturating_sub(start));
                    }
                }
            }
        }
        self.with_cause(self.thread(mark.grid_thread), conflict)
    }

    /// Refines a race of this thread if its cause is known: a scope of a release or acquire that
    /// excluded the other thread.
    fn with_cause(&self, thread: ThreadId, conflict: Option<GlobalConflict>) -> Option<GlobalConflict> {
        let GlobalConflict { rule, address, other } = conflict?;
        let missed = self.missed.get(&thread).and_then(|missed| missed.of(other.grid_thread.cluster));
        let is_missed = missed.is_some_and(|known| known.complete().knows(other.step));
        let rule = if rule == AccessRule::Race && is_missed { AccessRule::ReleaseTooNarrow } else { rule };
        Some(GlobalConflict { rule, address, other })
    }

    /// Records that asynchronous operation `operation` of a thread has read `ranges`, with this
    /// step.
    pub(super) fn landed(
        &mut self,
        thread: ThreadId,
        operation: u32,
        step: Epoch,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) {
        let grid_thread = self.grid_thread(thread);
        let landed = |table: &mut Table, (start, end): (u64, u64)| {
            for piece in pieces(start, end.saturating_sub(start)) {
                table.landed(&piece, grid_thread, operation, step);
            }
        };
        match &mut self.tracking {
            Tracking::Off | Tracking::Fences(_) => {}
            Tracking::Own(table) => ranges.for_each(|range| landed(table, range)),
            Tracking::Shared(grid) => {
                let mut state = grid.state();
                ranges.for_each(|range| landed(&mut state.table, range));
            }
        }
    }

    /// Returns the last write to one of these bytes, as a conflict with a non-coherent load.
    pub(super) fn written(&mut self, address: u64, len: u64) -> Option<GlobalConflict> {
        match &mut self.tracking {
            Tracking::Off | Tracking::Fences(_) => None,
            Tracking::Own(table) => table.written(address, len),
            Tracking::Shared(grid) => grid.state().table.written(address, len),
        }
    }

    /// Keeps the written bytes, to compare them with the writes of others.
    #[inline]
    pub(super) fn keep_bytes(&mut self, address: u64, bytes: &[u8]) {
        match &mut self.tracking {
            Tracking::Own(table) => table.keep_bytes(address, bytes),
            Tracking::Off | Tracking::Fences(_) | Tracking::Shared(_) => {}
        }
    }

    /// Returns whether these are the bytes that the cluster last wrote here; `None` if bytes are
    /// not kept.
    pub(super) fn has_bytes(&mut self, address: u64, bytes: &[u8]) -> Option<bool> {
        match &mut self.tracking {
            Tracking::Own(table) => Some(table.has_bytes(address, bytes)),
            Tracking::Off | Tracking::Fences(_) | Tracking::Shared(_) => None,
        }
    }

    /// Takes the table of the cluster, if it has its own.
    pub(super) fn take_table(&mut self) -> Option<Box<Table>> {
        match std::mem::replace(&mut self.tracking, Tracking::Off) {
            Tracking::Own(table) => Some(table),
            Tracking::Off | Tracking::Fences(_) | Tracking::Shared(_) => None,
        }
    }

    /// Returns the number of loads that observed old stores since the last call. Such loads may
    /// observe others when they are repeated.
    #[inline]
    pub(super) fn take_stale_reads(&mut self) -> u64 {
        std::mem::take(&mut self.stale_reads)
    }
}

fn is_read_of_thread(access: &GlobalAccess) -> bool {
    access.attributes.kind == AccessKind::Read && access.attributes.proxy == Proxy::Generic
}

impl State {
    /// Checks an access against earlier ones, and records it.
    fn access(
        &mut self,
        address: u64,
        len: u64,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
    ) -> Option<GlobalConflict> {
        let is_of_thread = mark.attributes.proxy == Proxy::Generic;
        let histories = &self.histories;
        // The elements of a vector have histories of their own, each at a multiple of the element
        // size.
        let is_observed = |write: &GlobalAccess, byte: u64| {
            let mut known =
                SCALARS.iter().filter_map(|size| histories.get(&(byte & !(u64::from(*size) - 1))));
            is_of_thread && known.any(|history| history.is_observed(write, observer))
        };
        self.table.access(address, len, mark, observer, &is_observed)
    }

    /// Forgets the histories of locations that another kind of access has overwritten.
    fn forget_histories(&mut self, address: u64, len: u64) {
        for piece in pieces(address, len) {
            if !self.table.line(piece.line).has_history {
                continue;
            }
            let bytes = piece.bytes.len() as u64;
            for start in self.overlapping(piece.address(), bytes) {
                self.histories.remove(&start);
            }
        }
    }

    /// Returns the locations with histories that overlap these bytes.
    fn overlapping(&self, address: u64, len: u64) -> Vec<u64> {
        let first = address.saturating_sub(history::WIDEST as u64 - 1);
        let end = address.saturating_add(len);
        let overlaps = |start: &u64| {
            self.histories.get(start).is_some_and(|known| start.saturating_add(known.bytes.into()) > address)
        };
        (first..end).filter(overlaps).collect()
    }
}
