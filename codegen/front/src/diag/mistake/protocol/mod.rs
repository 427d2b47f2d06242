//! Mistakes in the protocol of barriers: waits that never end, accesses that nothing orders.

mod help;
mod poll;
mod reasons;
mod repair;
mod slots;
mod step;
mod unordered;

use std::fmt;

use tma_model::rule::Rule;

use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Axis;

pub use poll::PlainPoll;
pub use repair::{Destination, Movable, Repair, SourceLocation};
pub use slots::UnloadedTiles;
pub use step::{ThreadAct, ThreadSet, ThreadStep};
pub use unordered::{Lack, Unordered};

/// A mistake in the synchronisation of a kernel's threads.
#[derive(Clone, Debug)]
pub struct Protocol {
    pub rule: Rule,
    /// The barrier or the memory concerned.
    pub subject: Option<Subject>,
    /// The counts of the barrier.
    pub counts: Option<Counts>,
    /// The blocks that do not load their slice of a tile.
    pub without: Vec<u32>,
    /// The tiles of the slot of a pipeline that no copy fills.
    pub unloaded: Option<Box<UnloadedTiles>>,
    /// The step at which the mistake is reported.
    pub step: ThreadStep,
    /// Other steps that are involved.
    pub others: Vec<ThreadStep>,
    /// A launch that demonstrates the mistake.
    pub launch: Counterexample,
    /// A condition that excludes this launch, such as `tiles > 0`, if a single number of it is 0.
    pub excluded: Option<String>,
    /// A single change that makes the kernel correct, if there is one.
    pub repair: Option<Repair>,
}

/// Values with which a kernel fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counterexample {
    /// The values, each with its origin.
    pub numbers: Vec<(LaunchInput, i128)>,
    /// Number of blocks of the cluster along x, y and z.
    pub cluster: [u32; 3],
}

/// A value that the launch or the data determines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchInput {
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

impl fmt::Display for LaunchInput {
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

/// A shared variable, as the source names it.
#[derive(Clone, Debug)]
pub struct Subject {
    pub name: String,
    /// Whether it is the memory of a parameter instead of shared memory.
    pub is_global: bool,
    /// Its index, if there are several.
    pub stage: Option<u32>,
    /// Its role in the pipeline of this name.
    pub role: Option<StageRole>,
    /// The other variables that have its memory.
    pub others: Vec<String>,
}

/// The roles of the objects in a pipeline's stages.
#[derive(Clone, Copy, Debug)]
pub enum StageRole {
    Tile,
    Full,
    Empty,
}

impl Subject {
    fn text(&self) -> String {
        let Self { name, stage, role, is_global: _, others: _ } = self;
        match (role, stage) {
            // The barriers' names are those in the PTX, which the simulator and reports of a GPU use.
            (Some(StageRole::Full), Some(stage)) => format!("`{name}.full[{stage}]`"),
            (Some(StageRole::Empty), Some(stage)) => format!("`{name}.empty[{stage}]`"),
            (Some(StageRole::Tile), Some(stage)) => format!("stage {stage} of `{name}`"),
            (None, Some(stage)) => format!("`{name}[{stage}]`"),
            (_, None) => format!("`{name}`"),
        }
    }

    /// Names it as a slot, if it belongs to one of a pipeline.
    fn slot(&self) -> String {
        match (self.role, self.stage) {
            (Some(_), Some(stage)) => format!("stage {stage} of `{}`", self.name),
            (_, _) => self.text(),
        }
    }

    /// Says which other variables have its memory, if any do.
    fn overlap(&self) -> Option<String> {
        let others: Vec<_> = self.others.iter().map(|name| format!("`{name}`")).collect();
        (!others.is_empty()).then(|| format!("`{}` has the memory of {}", self.name, others.join(" and ")))
    }
}

/// The counts of an mbarrier.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub phase: u32,
    pub pending: u32,
    pub expected: u32,
    pub expected_bytes: u64,
    pub received_bytes: u64,
}

impl Protocol {
    pub(super) fn text(&self) -> Text {
        let subject = self.subject.as_ref().map_or("shared memory".to_owned(), Subject::text);
        let barrier = self.subject.as_ref().map_or("the barrier".to_owned(), Subject::text);
        let threads = self.step.threads.name();
        let (iteration, does) = (self.step.iteration(), self.step.verb());
        let message = match self.rule {
            Rule::Deadlock => format!("deadlock: {}{iteration}{}", self.waiting(), self.lacking()),
            Rule::Bytes if !self.without.is_empty() => self.slices(&barrier),
            Rule::Bytes => self.bytes(&barrier),
            Rule::Count => {
                let (misuse, rest) = self.miscounted(&barrier);
                format!("mbarrier misused: {threads} {misuse}{iteration}{rest}{}", self.counted())
            }
            Rule::Race => self.race(&subject),
            Rule::ReadBeforeWait => {
                let rest = "but the copy that fills it may not be complete";
                format!("read before the wait: {threads} {does} {subject}{iteration}, {rest}")
            }
            Rule::Refill => {
                format!("refill before release: {threads} {does} {subject}{iteration}{}", self.user())
            }
            Rule::Fence => self.fence(&subject),
            Rule::NotVisible => self.not_visible(&barrier),
            Rule::Overrun => self.overrun(&barrier),
            Rule::Leak if self.step.does == ThreadAct::InvalidateUnderCopy => self.under_copy(&barrier),
            Rule::Leak => {
                let rest = "but no thread waits for it before the kernel ends";
                format!("leaked copy: {threads} {does}{iteration}, {rest}")
            }
            Rule::BlockGone => {
                format!("block gone: {threads} {does}{iteration}, but that block may have ended")
            }
            Rule::Divergence => self.diverged(),
        };
        let mut text = Text::new(Code::of(self.rule), message);
        if self.is_parity_elsewhere() {
            text = text.label(self.step.at, self.reported_wait(&barrier, " here"));
        }
        for other in &self.others {
            text = text.label(other.at, other.text());
        }
        if let Some(note) = self.at_one_statement() {
            text = text.note(note);
        }
        if let Some(note) = self.subject.as_ref().and_then(Subject::overlap) {
            text = text.note(note);
        }
        if !self.launch.numbers.is_empty() {
            text = text.note(format!("this happens with {}", self.launch));
        }
        text.help(self.repair.as_ref().map_or_else(|| self.help(), Repair::text))
    }

    /// Describes the threads that wait forever, and the object they wait for.
    fn waiting(&self) -> String {
        let (threads, does) = (self.step.threads.name(), self.step.verb());
        let (verb, rest) = does.split_once(' ').unwrap_or((does.as_str(), ""));
        match &self.subject {
            Some(subject) if self.counts.is_some() => {
                format!("{threads} {verb} forever for {}", subject.text())
            }
            Some(_) | None => format!("{threads} {verb} forever {rest}").trim_end().to_owned(),
        }
    }

    /// Describes the use of a barrier.
    fn using(&self, barrier: &str) -> String {
        let verb = |one: &'static str, all: &'static str| {
            if self.step.threads.threads.len() == 1 { one } else { all }
        };
        let does = self.step.does;
        if does == ThreadAct::Arrive {
            format!("{} at {barrier}", verb("arrives", "arrive"))
        } else if does == ThreadAct::Wait {
            format!("{} for {barrier}", verb("waits", "wait"))
        } else if does == ThreadAct::Announce || does == ThreadAct::AnnounceAndArrive {
            format!("{} bytes to {barrier}", verb("announces", "announce"))
        } else if does == ThreadAct::IssueCopyThere {
            format!("{} a copy that completes on {barrier}", verb("issues", "issue"))
        } else if does == ThreadAct::Invalidate {
            format!("{} {barrier}", verb("invalidates", "invalidate"))
        } else {
            format!("{}: {barrier}", self.step.verb())
        }
    }

    /// Names the slot of a pipeline, or else the barrier.
    fn slot(&self) -> String {
        self.subject.as_ref().map_or("the barrier".to_owned(), Subject::slot)
    }

    /// Describes the threads that may still use the memory.
    fn user(&self) -> String {
        match self.others.first() {
            Some(other) => format!(" while {} may still {} it", other.author(), other.does.access()),
            None => " while it may still be in use".to_owned(),
        }
    }

    /// Describes the arrivals that a barrier lacks.
    fn lacking(&self) -> String {
        let (Some(subject), Some(counts)) = (&self.subject, self.counts) else {
            return self.gone().map_or(String::new(), |gone| format!(": {gone}"));
        };
        let Counts { phase, pending, expected, .. } = counts;
        let arrivals = expected.saturating_sub(pending);
        match (subject.role, arrivals) {
            (Some(StageRole::Full), 0) => ": no thread fills it".to_owned(),
            (Some(StageRole::Empty), 0) => ": no thread releases it".to_owned(),
            (Some(StageRole::Empty), _) => format!(": it gets {arrivals} of {expected} releases"),
            (_, 0) => format!(": no thread arrives in phase {phase} (parity {})", phase & 1),
            (_, _) => {
                format!(": phase {phase} (parity {}) gets {arrivals} of its {expected} arrivals", phase & 1)
            }
        }
    }

    /// Describes the bytes that do not balance.
    fn bytes(&self, barrier: &str) -> String {
        if let Some(unloaded) = &self.unloaded {
            return unloaded.text(&self.slot(), self.counts);
        }
        let Some(Counts { phase, expected_bytes, received_bytes, .. }) = self.counts else {
            return format!("wrong transaction bytes: {barrier} expects other bytes than copies bring");
        };
        let (expects, bring) = match (expected_bytes, received_bytes) {
            (0, more) => ("no".to_owned(), format!("copies bring {more}")),
            (all, 0) => (all.to_string(), "no copy brings any".to_owned()),
            (all, some) => (all.to_string(), format!("copies bring {some}")),
        };
        let parity = phase & 1;
        format!(
            "wrong transaction bytes: {barrier} expects {expects} bytes in phase {phase} (parity {parity}), \
             but {bring}"
        )
    }

    /// Describes an operation that the barrier does not allow, in the parts before and after the
    /// iteration.
    fn miscounted(&self, barrier: &str) -> (String, &'static str) {
        let many = self.step.threads.threads.len() != 1;
        let verb = |one: &'static str, all: &'static str| if many { all } else { one };
        let part = self.subject.as_ref().and_then(|subject| subject.role);
        let slot = self.slot();
        let (arrive, release) = (verb("arrives", "arrive"), verb("releases", "release"));
        match (self.step.does, part) {
            (ThreadAct::ArriveTooOften | ThreadAct::Arrive, Some(StageRole::Empty)) => {
                (format!("{release} {slot}"), " too often")
            }
            (ThreadAct::ArriveTooOften | ThreadAct::Arrive, _) => {
                (format!("{arrive} at {barrier}"), " too often")
            }
            (ThreadAct::ArriveEarly, Some(StageRole::Empty)) => {
                (format!("{release} {slot} again"), " before any thread has waited for the last release")
            }
            (ThreadAct::ArriveEarly, Some(StageRole::Full)) => (
                format!("{} {slot} again", verb("fills", "fill")),
                " before any thread has waited for the last fill",
            ),
            (ThreadAct::ArriveEarly, _) => {
                (format!("{arrive} at {barrier}"), " before any thread has waited for the last phase")
            }
            (ThreadAct::AnnounceLate, _) => (
                format!("{} bytes to {barrier}", verb("announces", "announce")),
                ", but no arrival of the phase follows",
            ),
            (ThreadAct::InvalidateInUse, _) => (
                format!("{} {barrier}", verb("invalidates", "invalidate")),
                " while other threads may still use it",
            ),
            (ThreadAct::InitialiseAgain, _) => {
                (format!("{} {barrier} again", verb("initialises", "initialise")), " while it is in use")
            }
            (ThreadAct::InitialiseBySeveral, _) => {
                (format!("initialise {barrier} at the same time"), ", but only one thread may")
            }
            (ThreadAct::InitialiseWrongly, _) => {
                (format!("{} {barrier} with an invalid count", verb("initialises", "initialise")), "")
            }
            (ThreadAct::OutOfBounds, _) => {
                let name = self.subject.as_ref().map_or(barrier, |all| &all.name);
                (format!("{} a stage of `{name}` that does not exist", verb("uses", "use")), "")
            }
            (ThreadAct::WaitWithOther, _) => {
                (format!("{} for {barrier}", verb("waits", "wait")), " with a token of another barrier")
            }
            (ThreadAct::WaitForOtherPhase, _) => (
                format!("{} for a phase of {barrier}", verb("waits", "wait")),
                " that is neither the current one nor the last",
            ),
            (_, _) => (format!("{} at {barrier}", self.step.verb()), ", which cannot count this"),
        }
    }

    /// States how many arrivals the barrier allows.
    fn counted(&self) -> String {
        let Some(Counts { expected, .. }) = self.counts else { return String::new() };
        let does = self.step.does;
        if matches!(
            does,
            ThreadAct::InvalidateInUse | ThreadAct::InitialiseAgain | ThreadAct::InitialiseBySeveral
        ) || matches!(
            does,
            ThreadAct::OutOfBounds | ThreadAct::WaitWithOther | ThreadAct::WaitForOtherPhase
        ) {
            return String::new();
        }
        let is_release =
            self.subject.as_ref().is_some_and(|subject| matches!(subject.role, Some(StageRole::Empty)));
        match (is_release, expected) {
            (true, 1) => ": one release empties it".to_owned(),
            (true, _) => format!(": {expected} releases empty it"),
            (false, 1) => ": one arrival completes a phase".to_owned(),
            (false, _) => format!(": {expected} arrivals complete a phase"),
        }
    }
}
