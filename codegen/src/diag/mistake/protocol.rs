//! The protocol of barriers: waits that never end, accesses that nothing orders.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Span;
use crate::limits::WARP_THREADS;

/// A kernel whose threads do not synchronise as they have to.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) rule: ProtocolRule,
    /// The barrier or the memory that it is about.
    pub(crate) subject: Option<Subject>,
    /// What the barrier counts.
    pub(crate) counts: Option<Counts>,
    /// What is wrong, where it is reported.
    pub(crate) step: Step,
    /// What else takes part.
    pub(crate) others: Vec<Step>,
    /// A launch that shows it.
    pub(crate) launch: Vec<(String, i128)>,
}

/// The rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ProtocolRule {
    /// Threads wait for what never comes.
    Deadlock,
    /// A phase expects other bytes than are copied.
    Bytes,
    /// A barrier gets other arrivals than it counts.
    Count,
    /// Two accesses that nothing orders.
    Race,
    /// A read of what a load brings, without a wait for it.
    ReadBeforeWait,
    /// A load, or a write, into what may still be read.
    Refill,
    /// Accesses of threads and copies in order, but without a proxy fence between.
    Fence,
    /// A barrier used where its initialisation need not be visible.
    NotVisible,
    /// A wait that may be overrun.
    Overrun,
    /// A copy still under way when its thread or block ends.
    Leak,
    /// A block that may end while others use its shared memory.
    BlockGone,
    /// Threads that do not come to a meeting as others do.
    Parted,
}

/// A shared variable, as the source names it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// Which of several it is.
    pub(crate) stage: Option<u32>,
    /// What it is to a pipeline of this name.
    pub(crate) part: Option<RingPart>,
}

/// What belongs to the stages of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RingPart {
    Tile,
    Full,
    Empty,
}

impl Subject {
    fn text(&self) -> String {
        let Self { name, stage, part } = self;
        match (part, stage) {
            (Some(RingPart::Full), Some(stage)) => format!("stage {stage} of `{name}`, as filled"),
            (Some(RingPart::Empty), Some(stage)) => format!("stage {stage} of `{name}`, as released"),
            (Some(RingPart::Tile), Some(stage)) => format!("stage {stage} of `{name}`"),
            (None, Some(stage)) => format!("`{name}[{stage}]`"),
            (_, None) => format!("`{name}`"),
        }
    }
}

/// What an mbarrier counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) phase: u32,
    pub(crate) pending: u32,
    pub(crate) expected: u32,
    pub(crate) expected_bytes: u64,
    pub(crate) received_bytes: u64,
}

/// Something that threads do.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Span,
    pub(crate) does: Act,
    pub(crate) threads: Threads,
    /// The turn of the innermost loop, from 0, and what that counts with.
    pub(crate) turn: Option<(Option<String>, u32)>,
}

/// What threads do, or an operation that they have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Announce,
    AnnounceAndArrive,
    Arrive,
    ArriveEarly,
    ArriveTwice,
    Come,
    ComeOtherwise,
    CompleteNext,
    End,
    Initialise,
    InitialiseAgain,
    InitialiseTogether,
    InitialiseWrongly,
    Initialised,
    Invalidate,
    IssueCopy,
    IssueCopyThere,
    IssueLoad,
    IssueStore,
    MayCompleteNext,
    MayHaveEnded,
    Read,
    StartReading,
    StartWriting,
    Visit,
    Wait,
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
    Write,
}

impl Act {
    /// A verb, in the third person singular, with its object.
    const fn words(self) -> &'static str {
        match self {
            Self::Announce => "announces bytes",
            Self::AnnounceAndArrive => "announces bytes and arrives",
            Self::Arrive => "arrives",
            Self::ArriveEarly => "arrives before anybody has seen the last phase complete",
            Self::ArriveTwice => "arrives twice at the cluster's barrier without a wait",
            Self::Come => "comes to this barrier",
            Self::ComeOtherwise => "comes to it otherwise",
            Self::CompleteNext => "completes the next phase",
            Self::End => "ends",
            Self::Initialise => "initialises it",
            Self::InitialiseAgain => "initialises a barrier again",
            Self::InitialiseTogether => "initialises a barrier at the same time",
            Self::InitialiseWrongly => "initialises a barrier with a count that it cannot have",
            Self::Initialised => "initialised it",
            Self::Invalidate => "invalidates the barrier",
            Self::IssueCopy => "issues a copy",
            Self::IssueCopyThere => "issues a copy that completes there",
            Self::IssueLoad => "issues a load",
            Self::IssueStore => "issues a store",
            Self::MayCompleteNext => "may complete the next phase before that",
            Self::MayHaveEnded => "may have ended",
            Self::Read => "reads",
            Self::StartReading => "starts an operation that reads",
            Self::StartWriting => "starts a copy that writes",
            Self::Visit => "uses another block's shared memory",
            Self::Wait => "waits",
            Self::WaitForBarrier => "waits for a barrier",
            Self::WaitForBlock => "waits for all threads of the block",
            Self::WaitForCluster => "waits for the cluster",
            Self::WaitForGrid => "waits for the grid",
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

/// Threads of a block.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    pub(crate) threads: Vec<u32>,
    /// How many the block has.
    pub(crate) all: u32,
    /// The block's rank, in a cluster of several.
    pub(crate) block: Option<u32>,
}

impl Threads {
    /// As a message names them.
    fn name(&self) -> String {
        let of_block = self.block.map_or(String::new(), |block| format!(" of block {block} of the cluster"));
        let name = match self.threads.as_slice() {
            [] => "some threads".to_owned(),
            [one] => format!("thread {one}"),
            all if all.len() as u64 == u64::from(self.all) => "all threads".to_owned(),
            [first, .., last] if (last - first) as usize + 1 == self.threads.len() => {
                format!("threads {first} to {last}")
            }
            all => {
                let lane = all[0] % WARP_THREADS;
                let [first, last] = [all[0], all[all.len() - 1]].map(|thread| thread / WARP_THREADS);
                let is_lane = all.iter().all(|thread| thread % WARP_THREADS == lane);
                if is_lane {
                    format!("lane {lane} of warps {first} to {last}")
                } else {
                    format!("{} threads from {} to {}", all.len(), all[0], all[all.len() - 1])
                }
            }
        };
        name + &of_block
    }
}

impl Step {
    fn turn(&self) -> String {
        match &self.turn {
            Some((Some(variable), turn)) => format!(" in turn {turn} of the loop over `{variable}`"),
            Some((None, turn)) => format!(" in turn {turn} of the loop"),
            None => String::new(),
        }
    }

    /// What they do, in the number that they are.
    fn verb(&self) -> String {
        let (verb, object) = self.does.words().split_once(' ').unwrap_or((self.does.words(), ""));
        let verb =
            if self.threads.threads.len() == 1 { verb } else { verb.strip_suffix('s').unwrap_or(verb) };
        format!("{verb} {object}").trim_end().to_owned()
    }

    /// Who does what.
    fn text(&self) -> String {
        let (who, does) = (self.threads.name(), self.verb());
        format!("{who} {does} here{}", self.turn())
    }
}

impl Protocol {
    pub(super) fn text(&self) -> Text {
        let subject = self.subject.as_ref().map_or("shared memory".to_owned(), Subject::text);
        let barrier = self.subject.as_ref().map_or("the barrier".to_owned(), Subject::text);
        let who = self.step.threads.name();
        let (turn, does) = (self.step.turn(), self.step.verb());
        let (code, message, help) = match self.rule {
            ProtocolRule::Deadlock => (
                Code::Deadlock,
                format!("{who} {does}{turn} forever{}", self.of_barrier()),
                "let each phase of a barrier get all of its arrivals, and let waits take the parities 0, 1, 0, .. in turn",
            ),
            ProtocolRule::Bytes => (
                Code::PhaseBytes,
                format!("{barrier} is announced other bytes than are copied{}", self.bytes()),
                "announce the bytes of all copies that complete in the phase, such as `tile.bytes()`",
            ),
            ProtocolRule::Count => (
                Code::PhaseArrivals,
                format!("{who} {does}{turn}, which {barrier} does not allow{}", self.arrivals()),
                "initialise a barrier once, with as many arrivals as come in each phase, and wait for a phase before \
                 the next one's",
            ),
            ProtocolRule::Race => (
                Code::SharedRace,
                format!("{who} {does} {subject}{turn}, and nothing orders this with another access"),
                "`sync_threads()`, or an arrival and a wait at a barrier, between the two",
            ),
            ProtocolRule::ReadBeforeWait => (
                Code::ReadBeforeWait,
                format!("{who} {does} {subject}{turn}, which a copy may not have filled yet"),
                "wait for the barrier that the copy completes on, in each thread that reads or before a meeting with it",
            ),
            ProtocolRule::Refill => (
                Code::EarlyRefill,
                format!("{who} {does} {subject}{turn}, which may still be in use"),
                "let this wait until all that use it have arrived at a barrier, met, or waited for their copies",
            ),
            ProtocolRule::Fence => (
                Code::MissingFence,
                format!(
                    "{who} {does} {subject}{turn}, and no proxy fence lies between this and what threads did there"
                ),
                "`fence_proxy_async()` after the threads' accesses, before the arrival or meeting that orders the two",
            ),
            ProtocolRule::NotVisible => (
                Code::BarrierInit,
                format!("{who} {does}{turn}, and the initialisation of {barrier} need not be visible there"),
                "let one thread `init(..)` it, then `fence_barrier_init()`, and let all meet before the first use: \
                 `sync_threads()`, or `sync_cluster()` for other blocks'",
            ),
            ProtocolRule::Overrun => (
                Code::Overrun,
                format!(
                    "a wait of {who} for {barrier}{turn} may be overrun: nothing orders it before the next phase completes"
                ),
                "let whoever waits arrive, there or elsewhere, before the next phase can complete",
            ),
            ProtocolRule::Leak => (
                Code::OpenCopy,
                format!("{who} {does}{turn}, and nobody waits for it before the end"),
                "`bulk_commit_group()` and `bulk_wait_group_read::<0>()` in the thread that stores; a wait for the \
                 barrier of a load",
            ),
            ProtocolRule::BlockGone => (
                Code::BlockGone,
                format!("{who} {does}{turn}, which may have ended"),
                "`sync_cluster()` at the end of the kernel",
            ),
            ProtocolRule::Parted => (
                Code::PartedMeeting,
                format!("{who} {does}{turn}, and others do not"),
                "let all threads come to one statement, or name those that do: `named_barrier_sync(id, threads)`",
            ),
        };
        let mut text = Text::new(code, message);
        for other in &self.others {
            text = text.label(other.at, other.text());
        }
        if !self.launch.is_empty() {
            let numbers: Vec<_> =
                self.launch.iter().map(|(name, number)| format!("`{name}` = {number}")).collect();
            text = text.note(format!("it happens with {}", numbers.join(", ")));
        }
        text.help(help)
    }

    /// What a barrier lacks.
    fn of_barrier(&self) -> String {
        let (Some(subject), Some(counts)) = (&self.subject, self.counts) else { return String::new() };
        let Counts { phase, pending, expected, .. } = counts;
        format!(": {pending} of {expected} arrivals do not come in phase {phase} of {}", subject.text())
    }

    fn bytes(&self) -> String {
        self.counts.map_or(String::new(), |Counts { phase, expected_bytes, received_bytes, .. }| {
            format!(": {expected_bytes} announced and {received_bytes} copied in phase {phase}")
        })
    }

    fn arrivals(&self) -> String {
        self.counts.map_or(String::new(), |Counts { phase, pending, expected, .. }| {
            format!(": {pending} of {expected} arrivals are left in phase {phase}")
        })
    }
}
