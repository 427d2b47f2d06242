//! Threads and their acts, in the words of a message.

use crate::ir::{Span, StmtId};
use crate::limits::WARP_THREADS;

/// A step of threads: a statement that they execute.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The statement, and its location.
    pub(crate) stmt: StmtId,
    pub(crate) at: Span,
    pub(crate) does: Act,
    pub(crate) threads: Threads,
    /// The iteration of the innermost loop, from 0, and the loop's variable.
    pub(crate) turn: Option<(Option<String>, u32)>,
}

/// An act of threads, or an asynchronous operation that they have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Announce,
    AnnounceAndArrive,
    AnnounceLate,
    Arrive,
    ArriveAgain,
    ArriveEarly,
    ArriveTooOften,
    ArriveTwice,
    Beyond,
    BlockReturns,
    Come,
    ComeOtherwise,
    CompleteNext,
    End,
    EndElsewhere,
    Initialise,
    InitialiseAgain,
    InitialiseTogether,
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
    StartReading,
    StartWriting,
    Visit,
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

impl Act {
    /// Returns a verb in the third person singular, with its object.
    const fn words(self) -> &'static str {
        match self {
            Self::Announce => "announces bytes",
            Self::AnnounceAndArrive => "announces bytes and arrives",
            Self::Arrive => "arrives",
            Self::AnnounceLate => "announces bytes that no arrival of the phase comes after",
            Self::ArriveAgain => "arrives at a named barrier twice in one round",
            Self::ArriveEarly => "arrives before anybody has seen the last phase complete",
            Self::ArriveTooOften => "arrives more often than a phase counts",
            Self::ArriveTwice => "arrives twice at the cluster's barrier without a wait",
            Self::Beyond => "uses a stage that is not there",
            Self::BlockReturns => "returns",
            Self::Come => "comes to this barrier",
            Self::ComeOtherwise => "comes elsewhere, or with another count",
            Self::CompleteNext => "completes the next phase",
            Self::End | Self::EndElsewhere => "ends",
            Self::Initialise => "initialises it",
            Self::InitialiseAgain => "initialises a barrier again",
            Self::InitialiseTogether => "initialises a barrier at the same time",
            Self::InitialiseWrongly => "initialises a barrier with a count that it cannot have",
            Self::Initialised => "initialised it",
            Self::Invalidate => "invalidates the barrier",
            Self::InvalidateInUse => "invalidates a barrier that others may still use",
            Self::InvalidateUnderCopy => "invalidates a barrier that a copy under way reports to",
            Self::IssueCopy | Self::ReportThere => "issues a copy",
            Self::IssueCopyThere => "issues a copy that completes there",
            Self::IssueLoad => "issues a load",
            Self::IssueStore => "issues a store",
            Self::LoadSlice => "loads its part of a tile",
            Self::MayCompleteNext => "may complete the next phase before that",
            Self::MayHaveEnded => "may have ended",
            Self::Read => "reads",
            Self::Return => "returns",
            Self::StartReading => "starts an operation that reads",
            Self::StartWriting => "starts a copy that writes",
            Self::Visit => "uses the shared memory of another block",
            Self::Wait => "waits",
            Self::WaitAgain | Self::WaitWithParity { .. } => "waits for a phase that it knows to be over",
            Self::WaitForBarrier => "waits for a barrier",
            Self::WaitForBlock => "waits for all threads of the block",
            Self::WaitForCluster => "waits for the cluster",
            Self::WaitForGrid => "waits in `sync_grid`",
            Self::WaitForLanes => "waits for the other lanes of the warp",
            Self::WaitForMultiplication => "waits for a multiplication",
            Self::WaitForOtherPhase => "waits for a phase that is neither this one nor the last",
            Self::WaitForRegisters => "waits for registers",
            Self::WaitForToken => "waits for the phase of its arrival",
            Self::WaitInNamed => "waits in a named barrier",
            Self::WaitInThreads => "waits in `sync_threads`",
            Self::WaitInWarp => "waits in `sync_warp`",
            Self::WaitInWarpgroup => "waits in `sync_warpgroup`",
            Self::WaitUnarrived => "waits at the cluster's barrier without having arrived",
            Self::WaitWithOther => "waits with the state of another barrier",
            Self::Write => "writes",
        }
    }
}

/// A set of threads of a block.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    pub(crate) threads: Vec<u32>,
    /// Number of threads that the block has.
    pub(crate) all: u32,
    /// Rank of the block, in a cluster of several blocks.
    pub(crate) block: Option<u32>,
    /// Whether these are the threads that `elect_one` picks in their warps.
    pub(crate) elected: bool,
}

impl Threads {
    /// Returns whether both are the same set.
    pub(super) fn are(&self, others: &Self) -> bool {
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
                    format!("{} threads from {} to {}", all.len(), all[0], all[all.len() - 1])
                }
            }
        };
        name + &self.of_block()
    }
}

/// Names two or more warps, in ascending order.
fn warps_of(warps: &[u32]) -> String {
    let (first, last) = (warps[0], warps[warps.len() - 1]);
    if warps.len() == 2 {
        format!("warps {first} and {last}")
    } else if (last - first) as usize + 1 == warps.len() {
        format!("warps {first} to {last}")
    } else {
        format!("{} warps from {first} to {last}", warps.len())
    }
}

impl Step {
    /// Describes the loop iteration.
    pub(super) fn turn(&self) -> String {
        match &self.turn {
            Some((Some(variable), turn)) => format!(" in turn {turn} of the loop over `{variable}`"),
            Some((None, turn)) => format!(" in turn {turn} of the loop"),
            None => String::new(),
        }
    }

    /// Describes the act, with the verb in the singular or plural as the threads require.
    pub(super) fn verb(&self) -> String {
        let (verb, object) = self.does.words().split_once(' ').unwrap_or((self.does.words(), ""));
        let verb =
            if self.threads.threads.len() == 1 { verb } else { verb.strip_suffix('s').unwrap_or(verb) };
        format!("{verb} {object}").trim_end().to_owned()
    }

    /// Describes the threads and their act.
    pub(super) fn text(&self) -> String {
        let (who, does) = (self.threads.name(), self.verb());
        if self.does == Act::BlockReturns {
            return "another block returns here".to_owned();
        }
        let what = if self.does == Act::ReportThere { " that reports to the barrier" } else { "" };
        format!("{who} {does} here{what}{}", self.turn())
    }
}
