//! Mistakes in the protocol of barriers: waits that never end, accesses that nothing orders.

mod help;
mod poll;
mod reasons;
mod repair;
mod unordered;
mod who;

use std::fmt;

use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Axis;

pub(crate) use poll::PlainPoll;
pub(crate) use repair::{Destination, Movable, Place, Repair};
pub(crate) use unordered::{Lack, Unordered};
pub(crate) use who::{Act, Step, Threads};

/// A mistake in the synchronisation of a kernel's threads.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) rule: ProtocolRule,
    /// The barrier or the memory concerned.
    pub(crate) subject: Option<Subject>,
    /// The counts of the barrier.
    pub(crate) counts: Option<Counts>,
    /// The blocks that do not load their slice of a tile.
    pub(crate) without: Vec<u32>,
    /// The step at which the mistake is reported.
    pub(crate) step: Step,
    /// Other steps that are involved.
    pub(crate) others: Vec<Step>,
    /// A launch that demonstrates the mistake.
    pub(crate) launch: Counterexample,
    /// A single change that makes the kernel correct, if there is one.
    pub(crate) repair: Option<Repair>,
}

/// Values with which a kernel fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counterexample {
    /// The values, each with its origin.
    pub numbers: Vec<(Given, i128)>,
    /// Number of blocks of the cluster along x, y and z.
    pub cluster: [u32; 3],
}

/// A value that the launch or the data determines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// The scalar parameter of this name.
    Param(String),
    /// The number of elements of a slice.
    Len(String),
    /// An element of a slice, by index.
    Element(String, i128),
    /// The extent of the grid, in blocks.
    GridDim(Axis),
    /// The index of a block in the grid.
    BlockIdx(Axis),
    /// The index of a cluster in the grid of clusters.
    ClusterIdx(Axis),
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (given, number)) in self.numbers.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{given}` = {number}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axis = |axis: Axis| match axis {
            Axis::X => 'x',
            Axis::Y => 'y',
            Axis::Z => 'z',
        };
        match self {
            Self::Param(name) => f.write_str(name),
            Self::Len(name) => write!(f, "{name}.len()"),
            Self::Element(name, index) => write!(f, "{name}[{index}]"),
            Self::GridDim(along) => write!(f, "grid_dim().{}", axis(*along)),
            Self::BlockIdx(along) => write!(f, "block_idx().{}", axis(*along)),
            Self::ClusterIdx(along) => write!(f, "cluster_idx().{}", axis(*along)),
        }
    }
}

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ProtocolRule {
    /// A wait never ends.
    Deadlock,
    /// A phase expects a different number of bytes than is copied.
    Bytes,
    /// A barrier receives more or other arrivals than it counts.
    Count,
    /// Nothing orders two accesses.
    Race,
    /// Data of a load is read without a wait for the load.
    ReadBeforeWait,
    /// A load or a write overwrites memory that may still be read.
    Refill,
    /// Accesses of threads and copies are ordered, but no proxy fence separates them.
    Fence,
    /// A barrier is used where its initialisation may not be visible.
    NotVisible,
    /// A wait may be overrun.
    Overrun,
    /// A copy is still in flight when its thread or block ends.
    Leak,
    /// A block may end while others use its shared memory.
    BlockGone,
    /// Not all threads reach a rendezvous in the same way.
    Parted,
}

impl ProtocolRule {
    /// Returns whether a violation means that nothing orders two steps.
    pub(crate) const fn is_of_order(self) -> bool {
        match self {
            Self::Count
            | Self::Race
            | Self::ReadBeforeWait
            | Self::Refill
            | Self::Fence
            | Self::NotVisible
            | Self::Overrun
            | Self::BlockGone => true,
            Self::Deadlock | Self::Bytes | Self::Leak | Self::Parted => false,
        }
    }
}

/// A shared variable, as the source names it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// Whether it is the memory of a parameter instead of shared memory.
    pub(crate) is_global: bool,
    /// Its index, if there are several.
    pub(crate) stage: Option<u32>,
    /// Its role in the pipeline of this name.
    pub(crate) part: Option<RingPart>,
}

/// The roles of the objects in a pipeline's stages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RingPart {
    Tile,
    Full,
    Empty,
}

impl Subject {
    fn text(&self) -> String {
        let Self { name, stage, part, is_global: _ } = self;
        match (part, stage) {
            (Some(RingPart::Full | RingPart::Empty | RingPart::Tile), Some(stage)) => {
                format!("stage {stage} of `{name}`")
            }
            (None, Some(stage)) => format!("`{name}[{stage}]`"),
            (_, None) => format!("`{name}`"),
        }
    }
}

/// The counts of an mbarrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) phase: u32,
    pub(crate) pending: u32,
    pub(crate) expected: u32,
    pub(crate) expected_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Protocol {
    pub(super) fn text(&self) -> Text {
        let subject = self.subject.as_ref().map_or("shared memory".to_owned(), Subject::text);
        let barrier = self.subject.as_ref().map_or("the barrier".to_owned(), Subject::text);
        let who = self.step.threads.name();
        let (turn, does) = (self.step.turn(), self.step.verb());
        let (code, message) = match self.rule {
            ProtocolRule::Deadlock => (Code::Deadlock, format!("{}{turn}{}", self.waiting(), self.lacking())),
            ProtocolRule::Bytes if !self.without.is_empty() => (Code::PhaseBytes, self.slices(&barrier)),
            ProtocolRule::Bytes => (Code::PhaseBytes, self.bytes(&barrier)),
            ProtocolRule::Count => {
                (Code::PhaseArrivals, format!("{who} {}{turn}{}", self.miscounted(&barrier), self.counted()))
            }
            ProtocolRule::Race => (
                Code::SharedRace,
                format!("{who} {does} {subject}{turn}, and nothing orders this behind {}", self.other()),
            ),
            ProtocolRule::ReadBeforeWait => (
                Code::ReadBeforeWait,
                format!("{who} {does} {subject}{turn}, which a copy may not have filled yet"),
            ),
            ProtocolRule::Refill => (
                Code::EarlyRefill,
                format!("{who} {does} {subject}{turn}, which may still be in use{}", self.user()),
            ),
            ProtocolRule::Fence => (
                Code::MissingFence,
                format!(
                    "{who} {does} {subject}{turn}, and no proxy fence lies between this and {}",
                    self.other()
                ),
            ),
            ProtocolRule::NotVisible => (
                Code::BarrierInit,
                format!(
                    "{who} {}{turn}, and its initialisation need not be visible there",
                    self.using(&barrier)
                ),
            ),
            ProtocolRule::Overrun if self.is_idle_wait() => (Code::Overrun, self.idle_wait(&barrier)),
            ProtocolRule::Overrun => (
                Code::Overrun,
                format!(
                    "a wait of {who} for {barrier}{turn} may be overrun: nothing orders it before the next phase completes"
                ),
            ),
            ProtocolRule::Leak if self.step.does == Act::InvalidateUnderCopy => {
                (Code::OpenCopy, self.under_copy(&barrier))
            }
            ProtocolRule::Leak => {
                (Code::OpenCopy, format!("{who} {does}{turn}, and nobody waits for it before the end"))
            }
            ProtocolRule::BlockGone => (Code::BlockGone, format!("{who} {does}{turn}, which may have ended")),
            ProtocolRule::Parted => {
                let others = self.gone().unwrap_or("others do not".to_owned());
                (Code::PartedMeeting, format!("{who} {does}{turn}, and {others}"))
            }
        };
        let mut text = Text::new(code, message);
        for other in &self.others {
            text = text.label(other.at, other.text());
        }
        if let Some(note) = self.at_one_statement() {
            text = text.note(note);
        }
        if !self.launch.numbers.is_empty() {
            text = text.note(format!("it happens with {}", self.launch));
        }
        text.help(self.repair.as_ref().map_or_else(|| self.help().to_owned(), Repair::text))
    }

    /// Describes the threads that wait forever, and the object they wait for.
    fn waiting(&self) -> String {
        let (who, does) = (self.step.threads.name(), self.step.verb());
        match &self.subject {
            Some(subject) if self.counts.is_some() => {
                let verb = if self.step.threads.threads.len() == 1 { "waits" } else { "wait" };
                format!("{who} {verb} forever for {}", subject.text())
            }
            Some(_) | None => format!("{who} {does} forever"),
        }
    }

    /// Describes the use of a barrier.
    fn using(&self, barrier: &str) -> String {
        let verb = |one: &'static str, all: &'static str| {
            if self.step.threads.threads.len() == 1 { one } else { all }
        };
        let does = self.step.does;
        if does == Act::Arrive {
            format!("{} at {barrier}", verb("arrives", "arrive"))
        } else if does == Act::Wait {
            format!("{} for {barrier}", verb("waits", "wait"))
        } else if does == Act::Announce || does == Act::AnnounceAndArrive {
            format!("{} bytes to {barrier}", verb("announces", "announce"))
        } else if does == Act::IssueCopyThere {
            format!("{} a copy that completes on {barrier}", verb("issues", "issue"))
        } else {
            format!("{}: {barrier}", self.step.verb())
        }
    }

    /// Describes the other step, as an access.
    fn other(&self) -> String {
        let Some(other) = self.others.first() else { return "another access".to_owned() };
        let who = other.threads.name();
        let does = other.does;
        if does == Act::Read {
            format!("what {who} read there")
        } else if does == Act::Write {
            format!("what {who} wrote there")
        } else if does == Act::StartReading {
            format!("an operation of {who} that reads there")
        } else if does == Act::StartWriting {
            format!("a copy of {who} into it")
        } else {
            format!("what {who} did there")
        }
    }

    /// Describes the threads that may still use the memory.
    fn user(&self) -> String {
        let Some(other) = self.others.first() else { return String::new() };
        let who = other.threads.name();
        let does = other.does;
        if does == Act::Read {
            format!(": {who} may read it later than this")
        } else if does == Act::StartReading {
            format!(": an operation of {who} may read it later than this")
        } else if does == Act::StartWriting {
            format!(": a copy of {who} may fill it later than this")
        } else {
            String::new()
        }
    }

    /// Describes the arrivals that a barrier lacks.
    fn lacking(&self) -> String {
        let (Some(subject), Some(counts)) = (&self.subject, self.counts) else {
            return self.gone().map_or(String::new(), |gone| format!(": {gone}"));
        };
        let Counts { phase, pending, expected, .. } = counts;
        let came = expected.saturating_sub(pending);
        match (subject.part, came) {
            (Some(RingPart::Full), 0) => ": nobody fills it".to_owned(),
            (Some(RingPart::Empty), 0) => ": nobody releases it".to_owned(),
            (Some(RingPart::Empty), _) => format!(": it gets {came} of {expected} releases"),
            (_, 0) => format!(": nobody arrives there in phase {phase}"),
            (_, _) => format!(": it gets {came} of the {expected} arrivals of phase {phase}"),
        }
    }

    /// Describes the bytes that do not balance.
    fn bytes(&self, barrier: &str) -> String {
        let Some(Counts { phase, expected_bytes, received_bytes, .. }) = self.counts else {
            return format!("{barrier} is announced other bytes than are copied");
        };
        match (expected_bytes, received_bytes) {
            (0, more) => {
                format!("copies bring {barrier} {more} bytes in phase {phase}, and none are announced for it")
            }
            (all, 0) => {
                format!("{barrier} is announced {all} bytes in phase {phase}, and no copy brings any")
            }
            (all, some) => {
                format!("{barrier} is announced {all} bytes in phase {phase}, and copies bring {some}")
            }
        }
    }

    /// Describes an operation that the barrier does not allow.
    fn miscounted(&self, barrier: &str) -> String {
        let many = self.step.threads.threads.len() != 1;
        let verb = |one: &'static str, all: &'static str| if many { all } else { one };
        let part = self.subject.as_ref().and_then(|subject| subject.part);
        match (self.step.does, part) {
            (Act::ArriveTooOften | Act::Arrive, Some(RingPart::Empty)) => {
                format!("{} {barrier} more often than it counts", verb("releases", "release"))
            }
            (Act::ArriveTooOften | Act::Arrive, _) => {
                format!("{} at {barrier} more often than a phase counts", verb("arrives", "arrive"))
            }
            (Act::ArriveEarly, Some(RingPart::Empty)) => {
                format!(
                    "{} {barrier} again before anybody has waited for the last release",
                    verb("releases", "release")
                )
            }
            (Act::ArriveEarly, Some(RingPart::Full)) => {
                format!(
                    "{} {barrier} again before anybody has waited for the last filling",
                    verb("fills", "fill")
                )
            }
            (Act::ArriveEarly, _) => {
                format!(
                    "{} at {barrier} before anybody has waited for the last phase",
                    verb("arrives", "arrive")
                )
            }
            (Act::InvalidateInUse, _) => {
                format!("{} {barrier}, which others may still use", verb("invalidates", "invalidate"))
            }
            (Act::InitialiseAgain, _) => {
                format!("{} {barrier} again, which is in use", verb("initialises", "initialise"))
            }
            (Act::InitialiseTogether, _) => format!("initialise {barrier} at the same time: one thread may"),
            (Act::Beyond, _) => {
                let (verb, name) =
                    (verb("uses", "use"), self.subject.as_ref().map_or(barrier, |all| &all.name));
                format!("{verb} a stage of `{name}` that is not there")
            }
            (Act::WaitWithOther, _) => {
                format!("{} at {barrier} with the state of another barrier", verb("waits", "wait"))
            }
            (_, _) => format!("{}: {barrier} does not allow it", self.step.verb()),
        }
    }

    /// States how many arrivals the barrier allows.
    fn counted(&self) -> String {
        let Some(Counts { expected, .. }) = self.counts else { return String::new() };
        if self.step.does == Act::InvalidateInUse {
            return String::new();
        }
        let is_release =
            self.subject.as_ref().is_some_and(|subject| matches!(subject.part, Some(RingPart::Empty)));
        match (is_release, expected) {
            (true, 1) => ": one release makes it empty".to_owned(),
            (true, _) => format!(": {expected} releases make it empty"),
            (false, 1) => ": one arrival completes a phase".to_owned(),
            (false, _) => format!(": {expected} arrivals complete a phase"),
        }
    }
}
