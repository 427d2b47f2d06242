//! The timeline of a launch: what each warp, engine and mbarrier did, from when to when.
//!
//! Time is counted in **steps** of the simulator, which are no clock: one step is one instruction
//! of one warp, and each time that all warps wait and only the engines go on is one more. Warps of
//! a cluster therefore never run in the same step, and a copy takes as many steps as the seed lets
//! pass, not as many as its bytes would take on a GPU. Order is what a timeline shows; durations
//! compare only with those of the same launch. Each cluster counts from 0.

use crate::machine::{CopyKind, Phase, Site};

/// What a launch recorded, if [`LaunchConfig::trace_events`](crate::LaunchConfig::trace_events) let
/// it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Cluster by cluster, in the order in which they ended.
    pub events: Vec<Event>,
    /// How many more there were than the launch was to keep.
    pub left_out: u64,
}

/// Something that took time, or an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Index in the grid of the block that it belongs to.
    pub block: [u32; 3],
    /// What did it.
    pub row: Row,
    /// The step at which it began.
    pub begin: u64,
    /// The step at which it had ended; `begin` for an instant.
    pub end: u64,
    /// The instruction: what waits, what issued the copy, what started the phase.
    pub site: Site,
    /// What it was.
    pub what: What,
    /// Whether it had not ended when the cluster came to its end, or could not go on.
    pub unfinished: bool,
}

/// What does something in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Row {
    /// A warp, by its number in the block.
    Warp(u32),
    /// Copies that write the block's shared memory, tensor and bulk, from global memory.
    Loads,
    /// Copies from the block's shared memory to global memory.
    Stores,
    /// Reductions from the block's shared memory into global memory.
    Reductions,
    /// Copies that write the block's shared memory from that of another block.
    Across,
    /// Prefetches into the L2 cache that threads of the block asked for.
    Prefetches,
    /// An mbarrier, by its offset in the block's shared memory.
    Mbarrier(u32),
}

/// What an [`Event`] was.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The warp ran this many instructions, one after the other; the event's site is the first.
    Runs(u64),
    /// Lanes of the warp were at an instruction that may wait, from the first try until they went
    /// on.
    Waits {
        /// What for.
        what: Awaited,
        /// The lanes, by mask.
        lanes: u32,
        /// Whether a `try_wait` gave up: its predicate is false.
        timed_out: bool,
    },
    /// An instant: lanes of the warp synchronised without waiting (an arrival, a fence, a commit),
    /// or issued a copy.
    Signals {
        /// The lanes, by mask.
        lanes: u32,
    },
    /// A copy, from its issue until its last piece took effect.
    Copies(Box<Copy>),
    /// A phase of the mbarrier, by its number from 0; `site` is where the mbarrier was initialised.
    Phase(u32),
}

/// What an instruction waits for.
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
    /// The thread's bulk groups but the last `pending`.
    BulkGroups {
        /// How many may be left.
        pending: u32,
        /// `.read`: until they are read.
        read: bool,
    },
    /// All but the given number of the thread's latest `cp.async` groups; without a number, all its
    /// copies.
    AsyncGroups(Option<u32>),
    /// All but the given number of the warpgroup's latest groups of multiplications.
    MultiplyGroups(u32),
    /// As many registers each as `setmaxnreg.inc` asks for.
    Registers(u32),
    /// Other lanes of the warp, by mask.
    Lanes(u32),
}

/// A copy as the timeline has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Of which kind.
    pub kind: CopyKind,
    /// Bytes of the block's shared memory.
    pub bytes: u64,
    /// Where the box starts in the tensor, innermost first; empty for a bulk copy.
    pub coordinates: Vec<i32>,
    /// Offset in the block's shared memory; none for a prefetch.
    pub shared: Option<u32>,
    /// The mbarrier that gets the bytes, by its offset in the block's shared memory.
    pub mbarrier: Option<u32>,
    /// The bulk group of the issuing thread that it is of, from 1.
    pub group: Option<u32>,
    /// The step at which all of a store's tile had been read.
    pub read: Option<u64>,
    /// Index in the grid of the block whose thread issued it.
    pub issuing_block: [u32; 3],
    /// That thread's number in its block.
    pub issuing_thread: u32,
}
