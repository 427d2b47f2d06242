//! What a run found, and how it is shown.

use std::fmt::{self, Write as _};

use crate::machine::{Site, ThreadId};

mod crowd;
mod findings;
mod help;
#[cfg(test)]
mod tests;

pub use crowd::Crowd;
pub use findings::{Findings, Stop};
pub use help::Help;

/// The rule that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// A read of what an asynchronous load brings, without a wait for it.
    ReadBeforeWait,
    /// A write to, or a new load into, what an asynchronous copy still reads or writes.
    InFlight,
    /// A load into what other threads may still read.
    RefillBeforeRelease,
    /// What threads wrote and asynchronous accesses, ordered, but with no proxy fence between them.
    MissingProxyFence,
    /// A load into what threads have read, ordered, but with no proxy fence between them.
    UnfencedRefill,
    /// A register used that a multiplication of tensor cores still reads or writes.
    RegisterInFlight,
    /// Registers used, and then by tensor cores, with no `wgmma.fence` between.
    MissingRegisterFence,
    /// Warps of a warpgroup that do not issue the same multiplications.
    DivergentMultiplication,
    /// An mbarrier used before its initialisation is visible to the user.
    BarrierNotVisible,
    /// An mbarrier used where there is none, or initialised or counted wrongly.
    BarrierMisuse,
    /// An mbarrier that expects fewer or more bytes than are copied.
    TransactionBytes,
    /// A wait for a phase of an mbarrier that nothing orders before the end of the next phase.
    Overrun,
    /// Threads that wait for what never comes.
    Deadlock,
    /// Two accesses, one of them a write, that nothing orders.
    Race,
    /// Two accesses that nothing orders because a scope does not include the other thread: both are
    /// strong, or a release and its acquire would order them.
    ScopeTooNarrow,
    /// Strong operations of threads and reductions of copies on the same memory, in no order.
    MixedProxies,
    /// Threads of a warp or a block that do not come to the same barrier.
    DivergentBarrier,
    /// A read of memory that nobody wrote.
    Uninitialised,
    /// An access outside of what is there.
    OutOfBounds,
    /// An address that is not a multiple of what it has to be.
    Misaligned,
    /// What the copy engine refuses.
    IllegalCopy,
    /// A multiplication of which hardware makes something else than was meant.
    IllegalMultiplication,
    /// A multiplication that reads a tile with another swizzle than it was loaded with.
    SwizzleMismatch,
    /// A multiplication that reads a tile in another order than it lies in.
    LayoutMismatch,
    /// A multiplication that nobody has waited for when its warp ends.
    UnwaitedMultiplication,
    /// A copy that is still going on when its block ends.
    Leak,
    /// A block that has ended while others use its shared memory.
    BlockGone,
    /// A shared mbarrier accessed as if it were data.
    OpaqueAccess,
    /// The kernel's own doing: `trap`, a failed assertion.
    Trap,
    /// Anything else that the executing side finds.
    Execution,
    /// A cluster that has not ended within
    /// [`LaunchConfig::instruction_limit`](crate::LaunchConfig::instruction_limit).
    InstructionLimit,
    /// A load or store of a box of which nothing is in the tensor: a note, which is not among the
    /// findings but in [`Report::notes`](crate::Report::notes).
    BoxOutside,
    /// What cannot happen has: a mistake of the simulator, not of the kernel.
    Internal,
}

/// What a finding is to the others of a launch, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Makes the others doubtful.
    Doubt,
    /// A missing wait, for which accesses are in no order that a release or a barrier was to bring
    /// about.
    Wait,
    /// Another step that is missing or wrong.
    Cause,
    /// Often what comes of one: of garbage that was read too early, of an index that is garbage.
    Consequence,
    /// How the run then ended.
    End,
}

impl FindingKind {
    fn role(self) -> Role {
        match self {
            Self::Internal => Role::Doubt,
            Self::ReadBeforeWait => Role::Wait,
            Self::InFlight
            | Self::RegisterInFlight
            | Self::MissingRegisterFence
            | Self::DivergentMultiplication
            | Self::RefillBeforeRelease
            | Self::MissingProxyFence
            | Self::UnfencedRefill
            | Self::Overrun
            | Self::BarrierNotVisible
            | Self::BarrierMisuse
            | Self::TransactionBytes
            | Self::DivergentBarrier
            | Self::Race
            | Self::ScopeTooNarrow
            | Self::MixedProxies
            | Self::OpaqueAccess
            | Self::BlockGone
            | Self::SwizzleMismatch
            | Self::LayoutMismatch
            | Self::BoxOutside => Role::Cause,
            Self::Uninitialised
            | Self::OutOfBounds
            | Self::Misaligned
            | Self::IllegalCopy
            | Self::IllegalMultiplication
            | Self::Trap
            | Self::Execution => Role::Consequence,
            Self::Deadlock | Self::Leak | Self::UnwaitedMultiplication | Self::InstructionLimit => Role::End,
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadBeforeWait => "read before the wait",
            Self::InFlight => "copy in flight",
            Self::RefillBeforeRelease => "refill before release",
            Self::MissingProxyFence => "missing proxy fence",
            Self::UnfencedRefill => "refill without a proxy fence",
            Self::RegisterInFlight => "register in flight",
            Self::MissingRegisterFence => "missing wgmma fence",
            Self::DivergentMultiplication => "divergent multiplication",
            Self::BarrierNotVisible => "mbarrier not visible",
            Self::BarrierMisuse => "mbarrier misused",
            Self::TransactionBytes => "wrong transaction bytes",
            Self::Overrun => "wait overrun",
            Self::Deadlock => "deadlock",
            Self::Race => "race",
            Self::ScopeTooNarrow => "scope too narrow",
            Self::MixedProxies => "mixed proxies",
            Self::DivergentBarrier => "divergent barrier",
            Self::Uninitialised => "uninitialised read",
            Self::OutOfBounds => "out of bounds",
            Self::Misaligned => "misaligned",
            Self::IllegalCopy => "illegal copy",
            Self::IllegalMultiplication => "illegal multiplication",
            Self::SwizzleMismatch => "swizzle mismatch",
            Self::LayoutMismatch => "layout mismatch",
            Self::UnwaitedMultiplication => "multiplication not waited for",
            Self::Leak => "leaked copy",
            Self::BlockGone => "block gone",
            Self::OpaqueAccess => "mbarrier accessed as data",
            Self::Trap => "trap",
            Self::Execution => "execution",
            Self::InstructionLimit => "instruction limit",
            Self::BoxOutside => "note: box outside of the tensor",
            Self::Internal => "internal error",
        })
    }
}

/// A thread and where it was, in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Index of the thread's block in the grid.
    pub block: [u32; 3],
    /// The thread.
    pub who: ThreadId,
    /// Where it was.
    pub site: Site,
    /// What it did there: "reads", "wrote", "waits".
    pub does: &'static str,
}

/// Something that is wrong with the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub kind: FindingKind,
    /// What was found, in a sentence or several lines.
    pub message: String,
    /// Who was concerned: first who met it, then who it conflicts with. Of findings that are
    /// counted as one, the parties of the first, and the others' places that are not among them.
    pub parties: Vec<Party>,
    /// What to add or change, where that is known.
    pub help: Option<Help>,
    /// How often it was met.
    pub times: u64,
    /// Who met it after the first time.
    pub crowd: Crowd,
}

impl Finding {
    /// A finding with a message and nothing else.
    pub fn new(kind: FindingKind, message: impl Into<String>) -> Self {
        let (parties, crowd) = (Vec::new(), Crowd::default());
        Self { kind, message: message.into(), parties, help: None, times: 1, crowd }
    }

    /// What cannot happen has happened, whatever the kernel does: `invariant` says what was taken
    /// to hold.
    pub(crate) fn internal(invariant: &str) -> Self {
        let message = format!(
            "{invariant}, which the simulator takes to be impossible: what it says of this launch is not to be trusted"
        );
        Self::new(FindingKind::Internal, message).help(
            "this is a mistake of the simulator, not of the kernel: please report it, with the PTX, the launch and the seed",
        )
    }

    /// Adds a thread that is concerned.
    #[must_use]
    pub fn with(mut self, party: Party) -> Self {
        self.parties.push(party);
        self
    }

    /// Adds what to do, in the form that [`Help`] describes.
    #[must_use]
    pub fn help(mut self, help: impl Into<Help>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether `other` is of the same rule, met at the same line of the source, or of the PTX where
    /// that is not known. A race of two lines is one, whichever came first.
    fn is_like(&self, other: &Self) -> bool {
        let at = |finding: &Self, party| {
            finding.parties.get(party).map(|party: &Party| SourceLine::of(party.site))
        };
        let is_turned = || at(self, 0) == at(other, 1) && at(self, 1) == at(other, 0);
        self.kind == other.kind
            && (at(self, 0) == at(other, 0) || self.kind == FindingKind::Race && is_turned())
    }

    /// Counts `other`, which is like this one, with it.
    fn absorb(&mut self, other: Self) {
        self.times += other.times;
        self.crowd.join(&other.crowd);
        let mut parties = other.parties.into_iter();
        if let Some(party) = parties.next() {
            self.crowd.add(party.block, party.who.thread.0);
        }
        for party in parties {
            let is_known = |known: &Party| SourceLine::of(known.site) == SourceLine::of(party.site);
            if self.parties.len() < SHOWN_PARTIES && !self.parties.iter().any(is_known) {
                self.parties.push(party);
            }
        }
    }

    /// The finding as text of several lines, with the lines of PTX and Rust that `sources` has.
    pub fn render(&self, sources: &Sources<'_>) -> String {
        let mut text = format!("{}: {}\n", self.kind, self.message);
        for party in self.parties.iter().take(SHOWN_PARTIES) {
            party.render(sources, &mut text);
        }
        if let Some(more) = self.parties.len().checked_sub(SHOWN_PARTIES).filter(|&more| more > 0) {
            append(
                &mut text,
                format_args!("  and {more} more {}\n", if more == 1 { "thread" } else { "threads" }),
            );
        }
        if self.times > 1 {
            append(&mut text, format_args!("  and {} more{}\n", self.times - 1, self.crowd));
        }
        if let Some(help) = &self.help {
            let help = if self.is_of_rust(sources) { help.in_language() } else { help.in_ptx() };
            append(&mut text, format_args!("  help: {help}\n"));
        }
        text
    }

    /// Whether it points to a line of Rust.
    fn is_of_rust(&self, sources: &Sources<'_>) -> bool {
        let files = self.parties.iter().filter_map(|party| party.site.source);
        files.into_iter().any(|(file, _)| sources.file_name(file).ends_with(".rs"))
    }
}

/// What makes two sites one for a reader: the line of the source, or of the PTX where that has
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceLine {
    Source(u32, u32),
    Ptx(u32),
}

impl SourceLine {
    fn of(site: Site) -> Self {
        site.source.map_or(Self::Ptx(site.ptx_line), |(file, line)| Self::Source(file, line))
    }
}

/// How many threads of a finding are shown.
const SHOWN_PARTIES: usize = 16;

fn append(text: &mut String, what: fmt::Arguments<'_>) {
    // A `String` takes everything.
    let _ = text.write_fmt(what);
}

impl Party {
    fn render(&self, sources: &Sources<'_>, text: &mut String) {
        let [x, y, z] = self.block;
        let (thread, lane) = (self.who.thread.0, self.who.thread.0 % 32);
        let warp = thread / 32;
        append(
            text,
            format_args!(
                "  thread {thread} (warp {warp}, lane {lane}) of block ({x}, {y}, {z}) {}",
                self.does
            ),
        );
        if self.site.ptx_line > 0 {
            append(text, format_args!("\n    at PTX line {}", self.site.ptx_line));
            if let Some(line) = sources.ptx_line(self.site.ptx_line) {
                append(text, format_args!(": {}", line.trim()));
            }
        }
        if let Some((file, line)) = self.site.source {
            append(text, format_args!("\n    from {}:{line}", sources.file_name(file)));
            if let Some(line) = sources.file_line(file, line) {
                append(text, format_args!(": {}", line.trim()));
            }
        }
        text.push('\n');
    }
}

/// A number of things: `1 byte`, `2 bytes`.
pub(crate) fn counted(number: impl Into<u64>, thing: &str) -> String {
    let number = number.into();
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// The texts that findings point into.
#[derive(Clone, Debug, Default)]
pub struct Sources<'t> {
    /// The PTX.
    pub ptx: &'t str,
    /// The files of `.file`: number, name, and text where it is known.
    pub files: Vec<(u32, String, Option<String>)>,
}

/// Line `line`, from 1, of a text.
fn line_of(text: &str, line: u32) -> Option<&str> {
    text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)
}

impl Sources<'_> {
    /// A line of the PTX, from 1.
    pub fn ptx_line(&self, line: u32) -> Option<&str> {
        line_of(self.ptx, line)
    }

    fn file(&self, number: u32) -> Option<&(u32, String, Option<String>)> {
        self.files.iter().find(|file| file.0 == number)
    }

    /// The name that the PTX has for a source file, or its number.
    pub fn file_name(&self, number: u32) -> String {
        self.file(number).map_or_else(|| format!("file {number}"), |file| file.1.clone())
    }

    /// A line of a source file, from 1, where its text is known.
    pub fn file_line(&self, number: u32, line: u32) -> Option<&str> {
        line_of(self.file(number)?.2.as_deref()?, line)
    }
}
