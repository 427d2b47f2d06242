//! The timeline of a launch: the activity of each warp, engine and mbarrier.
//!
//! Time is counted in **steps** of the simulator, which are not a clock. One step is one
//! instruction of one warp, or one round in which all warps wait and only the engines progress.
//! Warps of a cluster therefore never run in the same step. A copy takes as many steps as the seed
//! lets pass, not as many as its bytes would take on a GPU. A timeline shows order; durations are
//! comparable only within one launch. Each cluster counts from 0.

use crate::machine::{CopyKind, Phase, Site};

pub use tma_model::shared_name::SharedName;
pub use tma_model::timeline::Row;

/// The events that a launch recorded, if
/// [`LaunchConfig::trace_events`](crate::LaunchConfig::trace_events) allowed any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The events, cluster by cluster in the order in which clusters ended.
    pub events: Vec<Event>,
    /// The number of events beyond the limit, which were dropped.
    pub left_out: u64,
    /// The names that the PTX gives to ranges of a block's shared memory.
    pub names: Vec<SharedName>,
}

impl Trace {
    /// Names the mbarrier at an offset in the block's shared memory: `ring.full[2]`, or the offset.
    pub fn mbarrier(&self, at: u32) -> String {
        let name = self.names.iter().find(|name| name.has(at));
        name.map_or_else(|| format!("{at:#x}"), |name| name.object_at(at).0)
    }
}

/// An interval or an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The rank of the device, if a team runs the kernel.
    pub rank: Option<u32>,
    /// Index in the grid of the block that the event belongs to.
    pub block: [u32; 3],
    /// The row of the timeline: the warp, engine or mbarrier.
    pub row: Row,
    /// The step at which the event began.
    pub begin: u64,
    /// The step at which the event had ended; equal to `begin` for an instant.
    pub end: u64,
    /// The instruction that waits, issued the copy, or started the phase.
    pub site: Site,
    /// The kind of event.
    pub kind: EventKind,
    /// Whether the event had not ended when the cluster ended or was stopped.
    pub unfinished: bool,
}

/// The kind of an [`Event`].
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The warp ran this many instructions in a row. The event's site is the first of them.
    Runs(u64),
    /// Lanes of the warp were at an instruction that may wait, from the first attempt until they
    /// went on.
    Waits {
        /// The subject of the wait.
        awaited: Awaited,
        /// The lanes, as a mask.
        lanes: u32,
        /// Whether a `try_wait` gave up: its predicate is false.
        timed_out: bool,
    },
    /// An instant: lanes of the warp synchronised without waiting (an arrival, a fence, a commit),
    /// or issued a copy.
    Signals {
        /// The lanes, as a mask.
        lanes: u32,
    },
    /// A copy, from its issue until its last piece took effect.
    Copies(Box<CopyEvent>),
    /// A span of the warp that the kernel names.
    Span(Box<str>),
    /// A phase of the mbarrier, numbered from 0. `site` is where the mbarrier was initialised.
    Phase(u32),
}

/// The subject of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A barrier of the block, by its id.
    Barrier(u32),
    /// The cluster's barrier.
    Cluster,
    /// A phase of an mbarrier.
    Mbarrier {
        /// Rank of its block in the cluster.
        rank: u32,
        /// Its offset in that block's shared memory.
        at: u32,
        /// The phase.
        phase: Phase,
    },
    /// The thread's bulk groups, except the last `pending`.
    BulkGroups {
        /// The number of groups that may be pending.
        pending: u32,
        /// `.read`: whether to wait only until the groups have been read.
        read: bool,
    },
    /// All but the given number of the thread's latest `cp.async` groups; without a number, all its
    /// copies.
    AsyncGroups(Option<u32>),
    /// All but the given number of the warpgroup's latest `wgmma` groups.
    MultiplyGroups(u32),
    /// This many registers for each thread, as `setmaxnreg.inc` asks for.
    Registers(u32),
    /// Other lanes of the warp, as a mask.
    Lanes(u32),
}

/// A copy on the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyEvent {
    /// The kind of copy.
    pub kind: CopyKind,
    /// Bytes of the block's shared memory.
    pub bytes: u64,
    /// The coordinates in the tensor at which the box starts, innermost first; empty for a bulk
    /// copy.
    pub coordinates: Vec<i32>,
    /// Offset in the block's shared memory; `None` for a prefetch.
    pub shared: Option<u32>,
    /// The mbarrier that counts the bytes, by its offset in the block's shared memory.
    pub mbarrier: Option<u32>,
    /// The bulk group of the issuing thread that the copy belongs to, from 1.
    pub group: Option<u32>,
    /// The step at which the whole tile of a store had been read.
    pub read: Option<u64>,
    /// Index in the grid of the block whose thread issued the copy.
    pub issuing_block: [u32; 3],
    /// Number of that thread in its block.
    pub issuing_thread: u32,
}
