//! Accesses to global memory: which come before which, among all clusters of a launch, and which
//! stores a strong load may see.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `mark` | accesses, and which two conflict |
//! | `table` | the last accesses to each piece of memory |
//! | `foreign` | what clusters know of each other |
//! | `history` | the stores to places with strong accesses |
//! | `release` | what was released with them |
//! | `strong` | strong accesses, and memory fences |
//! | `uses` | when threads have used what they read |
//! | `footprint` | what clusters in no order read and write |
//! | `message` | findings |
//!
//! There are two modes. Without strong accesses of threads to global memory nothing orders two
//! clusters: each has its own [`Table`], and what they did is compared when they have ended. With
//! strong accesses all clusters of the launch share one table, the [`Grid`].

mod footprint;
mod foreign;
mod history;
mod mark;
mod message;
mod release;
mod strong;
mod table;
mod uses;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tma_model::sync::{AccessKind, Epoch, MemoryScope, Proxy, Releases, View};

pub(crate) use footprint::{Footprint, Footprints};
pub(super) use foreign::{Imports, Observer};
pub(super) use mark::{Author, GlobalAccess, GlobalConflict, Manner, Rule};
pub(super) use message::{Pair, did, finding, mixed_sizes};
pub(super) use strong::{Change, Strong};

use self::foreign::Foreign;
use self::history::History;
use self::release::{Release, Released};
use self::table::{Table, pieces};
use super::index::ThreadId;
use super::random::Random;
use super::sizes::SCALARS;
use super::types::{GlobalOrder, MachineConfig};

/// Another sequence of the seed's numbers, so that the main one stays as it is.
const OLD_STORES: u64 = 0x9fb2_1c65_1e98_df25;

/// Where the clusters of a grid are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterGrid {
    /// Clusters along x, y and z.
    pub(crate) per_axis: [u64; 3],
    /// Blocks of a cluster along x, y and z.
    pub(crate) cluster: [u32; 3],
}

impl ClusterGrid {
    /// How many clusters.
    pub(crate) fn count(&self) -> u64 {
        self.per_axis.iter().product()
    }

    /// The blocks of a cluster, by rank.
    pub(crate) fn blocks(&self, index: u64) -> Vec<[u32; 3]> {
        let [x, y, _] = self.per_axis.map(|extent| extent.max(1));
        let place = [index % x, index / x % y, index / x / y];
        let [width, height, _] = self.cluster.map(|extent| extent.max(1));
        let within = |rank: u32| [rank % width, rank / width % height, rank / width / height];
        let block = |rank| {
            let within = within(rank);
            std::array::from_fn(|axis| place[axis] as u32 * self.cluster[axis] + within[axis])
        };
        (0..self.cluster.iter().product()).map(block).collect()
    }
}

/// Accesses of all clusters of a launch with strong accesses.
#[derive(Debug)]
pub struct Grid {
    clusters: ClusterGrid,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    table: Table,
    histories: HashMap<u64, History>,
    /// The steps that fences of sequential consistency have seen, by scope, cluster and block.
    sequential: BTreeMap<(MemoryScope, u32, u32), Foreign>,
}

impl Grid {
    /// Of clusters that are run like this.
    pub(crate) fn new(clusters: ClusterGrid, config: &MachineConfig) -> Self {
        let table = Table::new(config, false);
        let state = State { table, histories: HashMap::new(), sequential: BTreeMap::new() };
        Self { clusters, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where accesses are kept.
#[derive(Debug)]
enum Tracking {
    Off,
    /// Only for proxy fences between accesses of threads and copies of the cluster.
    Fences(Box<Table>),
    Own(Box<Table>),
    Shared(Arc<Grid>),
}

/// A store's release that a relaxed read saw, and a later fence acquires.
#[derive(Debug)]
struct Pending {
    address: u64,
    released: Released,
}

/// The release that a fence makes with later strong stores of its thread.
#[derive(Debug)]
enum FenceRelease {
    Raw(Releases),
    Made(Release),
}

/// The accesses of a cluster to global memory.
#[derive(Debug)]
pub(super) struct GlobalAccesses {
    tracking: Tracking,
    cluster: u32,
    /// Threads of a block.
    threads: u32,
    /// Whether it is told when values that threads read are used.
    is_told_uses: bool,
    imports: Imports,
    /// The releases that each thread's relaxed reads saw.
    pending: HashMap<ThreadId, Vec<Pending>>,
    /// The releases that each thread's acquires missed, as a scope left out the other thread.
    missed: HashMap<ThreadId, Foreign>,
    /// The releases of each thread's fences, by scope.
    fences: HashMap<ThreadId, BTreeMap<MemoryScope, FenceRelease>>,
    random: Random,
    stale_reads: u64,
}

impl GlobalAccesses {
    /// Of a cluster that has not begun.
    pub(super) fn new(config: &MachineConfig) -> Self {
        let MachineConfig { threads, cluster, .. } = *config;
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
            cluster,
            threads,
            is_told_uses: config.used_at_once.is_some(),
            imports: Imports::default(),
            pending: HashMap::new(),
            missed: HashMap::new(),
            fences: HashMap::new(),
            random: Random::new(config.seed ^ OLD_STORES),
            stale_reads: 0,
        }
    }

    /// Whether nothing is kept.
    #[inline]
    pub(super) fn is_off(&self) -> bool {
        match self.tracking {
            Tracking::Off => true,
            Tracking::Fences(_) | Tracking::Own(_) | Tracking::Shared(_) => false,
        }
    }

    /// Whether it wants to know which values that threads read are used.
    #[inline]
    pub(super) fn follows_uses(&self) -> bool {
        self.is_told_uses && !self.is_off()
    }

    /// A thread uses, in this step, what it has read last in a line.
    pub(super) fn uses(&mut self, who: ThreadId, line: u32, step: Epoch) {
        let author = self.author(who);
        match &mut self.tracking {
            Tracking::Off => {}
            Tracking::Fences(table) | Tracking::Own(table) => table.used(author, line, step),
            Tracking::Shared(grid) => grid.state().table.used(author, line, step),
        }
    }

    /// The table that all clusters share, if they do.
    pub(super) fn grid(&self) -> Option<Arc<Grid>> {
        match &self.tracking {
            Tracking::Shared(grid) => Some(Arc::clone(grid)),
            Tracking::Off | Tracking::Fences(_) | Tracking::Own(_) => None,
        }
    }

    /// Whether all clusters share one table.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        match self.tracking {
            Tracking::Shared(_) => true,
            Tracking::Off | Tracking::Fences(_) | Tracking::Own(_) => false,
        }
    }

    /// The number of its cluster.
    pub(super) fn cluster(&self) -> u32 {
        self.cluster
    }

    /// A thread of the cluster.
    #[inline]
    pub(super) fn author(&self, who: ThreadId) -> Author {
        Author { cluster: self.cluster, thread: who.block.0 * self.threads + who.thread.0 }
    }

    /// The thread of an author, in its cluster.
    pub(super) fn thread(&self, author: Author) -> ThreadId {
        let threads = self.threads.max(1);
        ThreadId::new(author.thread / threads, author.thread % threads)
    }

    /// The index in the grid of an author's block, where that is of another cluster.
    pub(super) fn block_of(&self, author: Author) -> Option<[u32; 3]> {
        let Tracking::Shared(grid) = &self.tracking else { return None };
        let rank = self.thread(author).block.0;
        grid.clusters.blocks(author.cluster.into()).get(rank as usize).copied()
    }

    /// Checks an access to all of `stretches`, each from an address to an end, and records them. The
    /// answer is the first conflict.
    pub(super) fn access(
        &mut self,
        mark: &GlobalAccess,
        view: &View,
        stretches: impl Iterator<Item = (u64, u64)>,
    ) -> Option<GlobalConflict> {
        let observer = Observer { cluster: self.cluster, view, imports: &self.imports };
        let mut conflict = None;
        let mut access = |table: &mut Table, (start, end): (u64, u64)| {
            let found = table.access(start, end.saturating_sub(start), mark, &observer, &|_, _| false);
            conflict = conflict.or(found);
        };
        match &mut self.tracking {
            Tracking::Off => {}
            // No copy overtakes these.
            Tracking::Fences(table) if is_read_of_thread(mark) && !table.may_be_overtaken(mark) => {}
            Tracking::Fences(table) | Tracking::Own(table) => {
                stretches.for_each(|stretch| access(table, stretch));
            }
            Tracking::Shared(grid) => {
                let state = &mut *grid.state();
                for (start, end) in stretches {
                    let found = state.access(start, end.saturating_sub(start), mark, &observer);
                    conflict = conflict.or(found);
                    if mark.manner.kind != AccessKind::Read {
                        state.forget_histories(start, end.saturating_sub(start));
                    }
                }
            }
        }
        self.with_cause(self.thread(mark.author), conflict)
    }

    /// Names the cause of a race of this thread: that a release did not reach it, or its acquire
    /// not who released.
    fn with_cause(&self, who: ThreadId, conflict: Option<GlobalConflict>) -> Option<GlobalConflict> {
        let GlobalConflict { rule, address, other } = conflict?;
        let missed = self.missed.get(&who).and_then(|missed| missed.of(other.author.cluster));
        let is_missed = missed.is_some_and(|known| known.over().knows(other.step));
        let rule = if rule == Rule::Race && is_missed { Rule::ReleaseTooNarrow } else { rule };
        Some(GlobalConflict { rule, address, other })
    }

    /// Operation `operation` of a thread has read `stretches`, with this step.
    pub(super) fn landed(
        &mut self,
        who: ThreadId,
        operation: u32,
        step: Epoch,
        stretches: impl Iterator<Item = (u64, u64)>,
    ) {
        let author = self.author(who);
        let landed = |table: &mut Table, (start, end): (u64, u64)| {
            for piece in pieces(start, end.saturating_sub(start)) {
                table.landed(&piece, author, operation, step);
            }
        };
        match &mut self.tracking {
            Tracking::Off | Tracking::Fences(_) => {}
            Tracking::Own(table) => stretches.for_each(|stretch| landed(table, stretch)),
            Tracking::Shared(grid) => {
                let mut state = grid.state();
                stretches.for_each(|stretch| landed(&mut state.table, stretch));
            }
        }
    }

    /// Keeps what was written, to compare it with what others write there.
    #[inline]
    pub(super) fn keep_bytes(&mut self, address: u64, bytes: &[u8]) {
        match &mut self.tracking {
            Tracking::Own(table) => table.keep_bytes(address, bytes),
            Tracking::Off | Tracking::Fences(_) | Tracking::Shared(_) => {}
        }
    }

    /// Whether the cluster has written these bytes last; none where that is not kept.
    pub(super) fn has_bytes(&mut self, address: u64, bytes: &[u8]) -> Option<bool> {
        match &mut self.tracking {
            Tracking::Own(table) => Some(table.has_bytes(address, bytes)),
            Tracking::Off | Tracking::Fences(_) | Tracking::Shared(_) => None,
        }
    }

    /// The table of the cluster, if it has one of its own.
    pub(super) fn take_table(&mut self) -> Option<Box<Table>> {
        match std::mem::replace(&mut self.tracking, Tracking::Off) {
            Tracking::Own(table) => Some(table),
            Tracking::Off | Tracking::Fences(_) | Tracking::Shared(_) => None,
        }
    }

    /// How many loads saw old stores since this was asked for last: they see others when they look
    /// again.
    #[inline]
    pub(super) fn take_stale_reads(&mut self) -> u64 {
        std::mem::take(&mut self.stale_reads)
    }
}

fn is_read_of_thread(access: &GlobalAccess) -> bool {
    access.manner.kind == AccessKind::Read && access.manner.proxy == Proxy::Generic
}

impl State {
    /// Checks an access against the earlier ones, and records it.
    fn access(
        &mut self,
        address: u64,
        len: u64,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
    ) -> Option<GlobalConflict> {
        let (threads, is_of_thread) = (self.table.threads(), mark.manner.proxy == Proxy::Generic);
        let histories = &self.histories;
        // A vector has elements with histories of their own, each at a multiple of its size.
        let is_observed = |write: &GlobalAccess, byte: u64| {
            let mut known =
                SCALARS.iter().filter_map(|size| histories.get(&(byte & !(u64::from(*size) - 1))));
            is_of_thread && known.any(|history| history.is_observed(write, observer, threads))
        };
        self.table.access(address, len, mark, observer, &is_observed)
    }

    /// Forgets the stores to places that something else has written over.
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

    /// The places with histories that have bytes among these.
    fn overlapping(&self, address: u64, len: u64) -> Vec<u64> {
        let first = address.saturating_sub(history::WIDEST as u64 - 1);
        let end = address.saturating_add(len);
        let overlaps = |start: &u64| {
            self.histories.get(start).is_some_and(|known| start.saturating_add(known.bytes.into()) > address)
        };
        (first..end).filter(overlaps).collect()
    }
}
