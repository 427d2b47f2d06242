//! Threads and their acts, in the words of a message.

use crate::ir::{Span, StmtId};
use crate::limits::WARP_THREADS;

/// A step of threads: a statement that they execute.
#[derive(Clone, Debug)]
pub struct ThreadStep {
    /// The statement, and its location.
    pub stmt: StmtId,
    pub at: Span,
    pub does: ThreadAct,
    pub threads: ThreadSet,
    /// The iteration of the innermost loop, from 0, and the loop's variable.
    pub iteration: Option<(Option<String>, u32)>,
}

/// An act of threads, or an asynchronous operation that they have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadAct {
    Announce,
    AnnounceAndArrive,
    AnnounceLate,
    Arrive,
    ArriveAgain,
    ArriveEarly,
    ArriveTooOften,
    ArriveTwice,
    OutOfBounds,
    BlockReturns,
    Reach,
    ReachElsewhere,
    CompleteNext,
    End,
    EndElsewhere,
    Initialise,
    InitialiseAgain,
    InitialiseBySeveral,
    InitialiseWrongly,
    Initialised,
    Invalidate,
    InvalidateInUse,
    InvalidateUnderCopy,
    IssueCopy,
    IssueCopyThere,
    IssueLoad,
    IssueStore,
    LoadSlice,
    MayCompleteNext,
    MayHaveEnded,
    Read,
    ReportThere,
    Return,
    StartMultiplying,
    StartReading,
    StartWriting,
    UseRemoteMemory,
    Wait,
    WaitAgain,
    WaitForBarrier,
    WaitForBlock,
    WaitForCluster,
    WaitForGrid,
    WaitForLanes,
    WaitForMultiplication,
    WaitForOtherPhase,
    WaitForRegisters,
    WaitForToken,
    WaitInNamed,
    WaitInThreads,
    WaitInWarp,
    WaitInWarpgroup,
    WaitUnarrived,
    WaitWithOther,
    /// With the parity of a phase that is over, by threads that have seen `seen` phases complete.
    WaitWithParity {
        seen: u32,
    },
    Write,
}

impl ThreadAct {
    /// Returns a verb in the third person singular, with its object.
    const fn words(self) -> &'static str {
        match self {
            Self::Announce => "announces bytes",
            Self::AnnounceAndArrive => "announces bytes and arrives",
            Self::Arrive => "arrives",
            Self::AnnounceLate => "announces bytes that no arrival of the phase follows",
            Self::ArriveAgain => "arrives at a named barrier twice in one round",
            Self::ArriveEarly => "arrives before any thread has waited for the last phase",
            Self::ArriveTooOften => "arrives too often",
            Self::ArriveTwice => "arrives twice at the cluster's barrier without a wait",
            Self::OutOfBounds => "uses a stage that does not exist",
            Self::BlockReturns => "returns",
            Self::Reach => "reaches this barrier",
            Self::ReachElsewhere => "synchronises",
            Self::CompleteNext => "completes the next phase",
            Self::End | Self::EndElsewhere => "ends",
            Self::Initialise => "initialises it",
            Self::InitialiseAgain => "initialises a barrier again",
            Self::InitialiseBySeveral => "initialises a barrier at the same time",
            Self::InitialiseWrongly => "initialises a barrier with an invalid count",
            Self::Initialised => "initialised it",
            Self::Invalidate => "invalidates the barrier",
            Self::InvalidateInUse => "invalidates a barrier that other threads may still use",
            Self::InvalidateUnderCopy => "invalidates the barrier of a copy in flight",
            Self::IssueCopy => "issues a copy",
            Self::IssueCopyThere => "issues a copy that completes on it",
            Self::ReportThere => "issues the copy",
            Self::IssueLoad => "issues a load",
            Self::IssueStore => "issues a store",
            Self::LoadSlice => "loads its part of a tile",
            Self::MayCompleteNext => "may complete the next phase",
            Self::MayHaveEnded => "may have ended",
            Self::Read => "reads",
            Self::Return => "returns",
            Self::StartMultiplying => "issues a multiplication that reads",
            Self::StartReading => "issues a copy that reads",
            Self::StartWriting => "issues a copy that writes",
            Self::UseRemoteMemory => "uses the shared memory of another block",
            Self::Wait => "waits",
            Self::WaitAgain | Self::WaitWithParity { .. } => "waits for a past phase",
            Self::WaitForBarrier => "waits for a barrier",
            Self::WaitForBlock => "reaches `sync_threads`",
            Self::WaitForCluster => "waits for the cluster",
            Self::WaitForGrid => "waits in `sync_grid`",
            Self::WaitForLanes => "waits for the other lanes of the warp",
            Self::WaitForMultiplication => "waits for a multiplication",
            Self::WaitForOtherPhase => "waits for a phase other than the current one and the last",
            Self::WaitForRegisters => "waits for registers",
            Self::WaitForToken => "waits for the phase of its arrival",
            Self::WaitInNamed => "waits in a named barrier",
            Self::WaitInThreads => "waits in `sync_threads`",
            Self::WaitInWarp => "waits in `sync_warp`",
            Self::WaitInWarpgroup => "waits in `sync_warpgroup`",
            Self::WaitUnarrived => "waits at the cluster's barrier without having arrived",
            Self::WaitWithOther => "waits with a token of another barrier",
            Self::Write => "writes",
        }
    }
}

impl ThreadAct {
    /// Returns an access to memory, as a noun or as a verb in the infinitive.
    pub(super) const fn access(self) -> &'static str {
        if matches!(self, Self::Read | Self::StartReading | Self::StartMultiplying) {
            "read"
        } else if matches!(self, Self::Write | Self::StartWriting) {
            "write"
        } else {
            "access"
        }
    }

    /// Returns the asynchronous operation that accesses memory, if it is one.
    pub(super) const fn operation(self) -> Option<&'static str> {
        if matches!(self, Self::StartReading | Self::StartWriting) {
            Some("copy")
        } else if matches!(self, Self::StartMultiplying) {
            Some("multiplication")
        } else {
            None
        }
    }
}

/// A set of threads of a block.
#[derive(Clone, Debug)]
pub struct ThreadSet {
    pub threads: Vec<u32>,
    /// Number of threads that the block has.
    pub all: u32,
    /// Rank of the block, in a cluster of several blocks.
    pub block: Option<u32>,
    /// Whether these are the threads that `elect_one` picks in their warps.
    pub elected: bool,
}

impl ThreadSet {
    /// Returns whether both are the same set.
    pub(super) fn is_same_set(&self, others: &Self) -> bool {
        (self.block, &self.threads) == (others.block, &others.threads)
    }

    /// Returns the threads' name in a message, or that of the warp that they make up.
    pub(super) fn warp_or_name(&self) -> String {
        let of_block = self.of_block();
        match self.threads.as_slice() {
            [first, .., last]
                if first.is_multiple_of(WARP_THREADS)
                    && last - first + 1 == WARP_THREADS
                    && self.threads.len() == WARP_THREADS as usize =>
            {
                format!("warp {}{of_block}", first / WARP_THREADS)
            }
            _ => self.name(),
        }
    }

    fn of_block(&self) -> String {
        self.block.map_or(String::new(), |block| format!(" of block {block} of the cluster"))
    }

    /// Returns the threads' name in a message.
    pub(super) fn name(&self) -> String {
        let name = match self.threads.as_slice() {
            [] => "some threads".to_owned(),
            [one] if self.elected => format!("the elected thread of warp {}", one / WARP_THREADS),
            [one] => format!("thread {one}"),
            all if all.len() as u64 == u64::from(self.all) => "all threads".to_owned(),
            [first, .., last] if (last - first) as usize + 1 == self.threads.len() => {
                format!("threads {first} to {last}")
            }
            all => {
                let lane = all[0] % WARP_THREADS;
                let warps: Vec<u32> = all.iter().map(|thread| thread / WARP_THREADS).collect();
                let is_lane = all.iter().all(|thread| thread % WARP_THREADS == lane);
                if self.elected {
                    format!("the elected threads of {}", warps_of(&warps))
                } else if is_lane {
                    format!("lane {lane} of {}", warps_of(&warps))
                } else {
                    numbered("thread", all)
                }
            }
        };
        name + &self.of_block()
    }
}

/// The most ranges of numbers that a message lists.
const MOST_RANGES: usize = 4;

/// Names two or more warps, in ascending order.
fn warps_of(warps: &[u32]) -> String {
    match warps {
        [one, other] => format!("warps {one} and {other}"),
        all => numbered("warp", all),
    }
}

/// Names several things by their ascending numbers: `threads 1 to 31 and 33 to 63`.
fn numbered(noun: &str, numbers: &[u32]) -> String {
    let ranges: Vec<String> = numbers
        .chunk_by(|one, next| one + 1 == *next)
        .map(|range| match range {
            [first, .., last] => format!("{first} to {last}"),
            range => range[0].to_string(),
        })
        .collect();
    match ranges.as_slice() {
        [ranges @ .., last] if !ranges.is_empty() && ranges.len() < MOST_RANGES => {
            format!("{noun}s {} and {last}", ranges.join(", "))
        }
        [range] => format!("{noun}s {range}"),
        _ => {
            let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
            format!("{} {noun}s between {first} and {last}", numbers.len())
        }
    }
}

impl ThreadStep {
    /// Describes the loop iteration.
    pub(super) fn iteration(&self) -> String {
        match &self.iteration {
            Some((Some(variable), iteration)) => {
                format!(" in iteration {iteration} of the loop over `{variable}`")
            }
            Some((None, iteration)) => format!(" in iteration {iteration} of the loop"),
            None => String::new(),
        }
    }

    /// Describes the act, with the verb in the singular or plural as the threads require.
    pub(super) fn verb(&self) -> String {
        let (verb, object) = self.does.words().split_once(' ').unwrap_or((self.does.words(), ""));
        let verb = match self.threads.threads.len() {
            1 => verb,
            _ if verb.ends_with("ches") => verb.strip_suffix("es").unwrap_or(verb),
            _ => verb.strip_suffix('s').unwrap_or(verb),
        };
        format!("{verb} {object}").trim_end().to_owned()
    }

    /// Describes an access to memory: `read by thread 0`, `write by a copy of thread 0`.
    pub(super) fn access(&self) -> String {
        format!("{} by {}", self.does.access(), self.author())
    }

    /// Names the threads, or the asynchronous operation of them, that accesses memory.
    pub(super) fn author(&self) -> String {
        let threads = self.threads.name();
        match self.does.operation() {
            Some(operation) => format!("a {operation} of {threads}"),
            None => threads,
        }
    }

    /// Describes the threads and their act.
    pub(super) fn text(&self) -> String {
        let (threads, does) = (self.threads.name(), self.verb());
        if self.does == ThreadAct::BlockReturns {
            return "another block returns here".to_owned();
        }
        let verb = if self.threads.threads.len() == 1 { "issues" } else { "issue" };
        let does = self.does.operation().map_or(does, |operation| format!("{verb} the {operation}"));
        format!("{threads} {does} here{}", self.iteration())
    }
}
