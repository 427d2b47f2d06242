//! Findings, and their presentation.

use std::fmt::{self, Write as _};

use tma_model::help::Help;
use tma_model::rule::Rule;

use crate::machine::{Site, ThreadId};

mod findings;
mod repeats;
#[cfg(test)]
mod tests;

pub use findings::{Findings, Stop};
pub use repeats::Repeats;

/// The rule that a finding violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// A read of the destination of an asynchronous load without a wait for the load.
    ReadBeforeWait,
    /// A write to, or a new load into, memory that an asynchronous copy still reads or writes.
    InFlight,
    /// A load into memory that other threads may still read.
    RefillBeforeRelease,
    /// A write by a thread and an asynchronous access after it, ordered but without a proxy fence
    /// between them.
    MissingProxyFence,
    /// A load into memory that a thread has read, ordered but without a proxy fence between them.
    UnfencedRefill,
    /// A use of a register that `wgmma` still reads or writes.
    RegisterInFlight,
    /// A use of a register, and then a `wgmma` with it, without a `wgmma.fence` between them.
    MissingRegisterFence,
    /// Warps of a warpgroup that do not issue the same multiplications.
    DivergentMultiplication,
    /// A use of an mbarrier whose initialisation is not visible there.
    BarrierNotVisible,
    /// A use of memory as an mbarrier where there is none, or one that is initialised or counted
    /// wrongly.
    BarrierMisuse,
    /// An mbarrier that expects fewer or more bytes than are copied.
    TransactionBytes,
    /// A wait for a phase of an mbarrier that is not ordered before the completion of the next
    /// phase.
    Overrun,
    /// Threads that wait for an event that cannot happen.
    Deadlock,
    /// Two unordered accesses, at least one of them a write.
    Race,
    /// Two accesses that are unordered because a scope does not include the other thread: either
    /// both are strong, or a release and its acquire would order them.
    ScopeTooNarrow,
    /// Strong operations of threads and reductions of copies on the same memory, unordered.
    MixedProxies,
    /// Threads of a warp or a block that do not arrive at the same barrier.
    DivergentBarrier,
    /// A read of uninitialised memory.
    Uninitialised,
    /// An access that is out of bounds.
    OutOfBounds,
    /// A misaligned address.
    Misaligned,
    /// A copy that the copy engine refuses.
    IllegalCopy,
    /// A multiplication that hardware executes differently than intended.
    IllegalMultiplication,
    /// A multiplication that reads a tile with another swizzle than it was loaded with.
    SwizzleMismatch,
    /// A multiplication that reads a tile in another order than it was loaded in.
    LayoutMismatch,
    /// A multiplication that its warp did not wait for before exiting.
    UnwaitedMultiplication,
    /// A copy that is still in flight when its block ends.
    Leak,
    /// A block that has ended while others use its shared memory.
    BlockGone,
    /// An mbarrier in shared memory that is accessed as data.
    OpaqueAccess,
    /// A stop by the kernel itself: `trap`, a failed assertion.
    Trap,
    /// Any other error that the executing side finds.
    Execution,
    /// A cluster that has not ended within
    /// [`LaunchConfig::instruction_limit`](crate::LaunchConfig::instruction_limit).
    InstructionLimit,
    /// A load or store of a box that lies wholly outside the tensor. This is a note, listed in
    /// [`Report::notes`](crate::Report::notes) rather than among the findings.
    BoxOutside,
    /// A violated invariant: a bug of the simulator, not of the kernel.
    Internal,
}

/// The role of a finding among those of a launch. Findings are shown in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Makes all other findings unreliable.
    Unreliable,
    /// A missing wait. Later accesses are then unordered too, although a release or barrier was
    /// meant to order them.
    Wait,
    /// Any other step that is missing or wrong.
    Cause,
    /// Often a consequence of another finding, such as of data that was read too early and then
    /// used as an index.
    Consequence,
    /// The way the run ended.
    End,
}

impl FindingKind {
    /// Returns the name, the role, and the rule that the compiler checks as well, if there is one.
    const fn facts(self) -> (&'static str, Role, Option<Rule>) {
        match self {
            Self::ReadBeforeWait => ("read before the wait", Role::Wait, Some(Rule::ReadBeforeWait)),
            Self::InFlight => ("copy in flight", Role::Cause, Some(Rule::Refill)),
            Self::RefillBeforeRelease => ("refill before release", Role::Cause, Some(Rule::Refill)),
            Self::MissingProxyFence => ("missing proxy fence", Role::Cause, Some(Rule::Fence)),
            Self::UnfencedRefill => ("refill without a proxy fence", Role::Cause, Some(Rule::Fence)),
            Self::RegisterInFlight => ("register in flight", Role::Cause, None),
            Self::MissingRegisterFence => ("missing wgmma fence", Role::Cause, None),
            Self::DivergentMultiplication => ("divergent multiplication", Role::Cause, None),
            Self::BarrierNotVisible => ("mbarrier not visible", Role::Cause, Some(Rule::NotVisible)),
            Self::BarrierMisuse => ("mbarrier misused", Role::Cause, Some(Rule::Count)),
            Self::TransactionBytes => ("wrong transaction bytes", Role::Cause, Some(Rule::Bytes)),
            Self::Overrun => ("wait overrun", Role::Cause, Some(Rule::Overrun)),
            Self::Deadlock => ("deadlock", Role::End, Some(Rule::Deadlock)),
            Self::Race => ("race", Role::Cause, Some(Rule::Race)),
            Self::ScopeTooNarrow => ("scope too narrow", Role::Cause, Some(Rule::Race)),
            Self::MixedProxies => ("mixed proxies", Role::Cause, Some(Rule::Race)),
            Self::DivergentBarrier => ("divergent barrier", Role::Cause, Some(Rule::Divergence)),
            Self::Uninitialised => ("uninitialised read", Role::Consequence, None),
            Self::OutOfBounds => ("out of bounds", Role::Consequence, None),
            Self::Misaligned => ("misaligned", Role::Consequence, None),
            Self::IllegalCopy => ("illegal copy", Role::Consequence, None),
            Self::IllegalMultiplication => ("illegal multiplication", Role::Consequence, None),
            Self::SwizzleMismatch => ("swizzle mismatch", Role::Cause, None),
            Self::LayoutMismatch => ("layout mismatch", Role::Cause, None),
            Self::UnwaitedMultiplication => ("multiplication not waited for", Role::End, None),
            Self::Leak => ("leaked copy", Role::End, Some(Rule::Leak)),
            Self::BlockGone => ("block gone", Role::Cause, Some(Rule::BlockGone)),
            Self::OpaqueAccess => ("mbarrier accessed as data", Role::Cause, Some(Rule::Count)),
            Self::Trap => ("trap", Role::Consequence, None),
            Self::Execution => ("execution", Role::Consequence, None),
            Self::InstructionLimit => ("instruction limit", Role::End, Some(Rule::Deadlock)),
            Self::BoxOutside => ("note: box outside of the tensor", Role::Cause, None),
            Self::Internal => ("internal error", Role::Unreliable, None),
        }
    }

    /// Returns the rule of synchronisation that the finding violates. Findings about bounds,
    /// values, registers and layouts violate none.
    pub const fn rule(self) -> Option<Rule> {
        self.facts().2
    }

    const fn role(self) -> Role {
        self.facts().1
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().0)
    }
}

/// A thread in a finding, and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The rank of the thread's device, if a team runs the kernel.
    pub rank: Option<u32>,
    /// Index of the thread's block in the grid.
    pub block: [u32; 3],
    /// The thread.
    pub thread: ThreadId,
    /// The instruction.
    pub site: Site,
    /// The thread's action there: "reads", "wrote", "waits".
    pub does: &'static str,
}

/// An error in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub kind: FindingKind,
    /// A description, of one sentence or several lines.
    pub message: String,
    /// The threads involved: first the one that caused the finding, then the one that it conflicts
    /// with. For merged findings, these are the parties of the first one, and parties of the others
    /// at further locations.
    pub parties: Vec<Party>,
    /// The suggested change, if known.
    pub help: Option<Help>,
    /// The number of occurrences.
    pub times: u64,
    /// The threads of all later occurrences.
    pub repeats: Repeats,
}

impl Finding {
    /// Creates a finding with a message and nothing else.
    pub fn new(kind: FindingKind, message: impl Into<String>) -> Self {
        let (parties, repeats) = (Vec::new(), Repeats::default());
        Self { kind, message: message.into(), parties, help: None, times: 1, repeats }
    }

    /// Creates the finding for a violated invariant, which no kernel should be able to cause.
    pub(crate) fn internal(invariant: &str) -> Self {
        let message = format!(
            "{invariant}: the simulator assumes that this is impossible, so do not trust its results for \
             this launch"
        );
        Self::new(FindingKind::Internal, message)
            .help("please report this bug of the simulator, with the PTX, the launch and the seed")
    }

    /// Adds a thread that is involved.
    #[must_use]
    pub fn with(mut self, party: Party) -> Self {
        self.parties.push(party);
        self
    }

    /// Adds the suggested change.
    #[must_use]
    pub fn help(mut self, help: impl Into<Help>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns whether `other` violates the same rule at the same line of the source, or of the PTX
    /// if the source is unknown. A race between two lines counts as the same in either order.
    fn is_like(&self, other: &Self) -> bool {
        let at = |finding: &Self, party| {
            finding.parties.get(party).map(|party: &Party| SourceLine::of(party.site))
        };
        let is_swapped = || at(self, 0) == at(other, 1) && at(self, 1) == at(other, 0);
        self.kind == other.kind
            && (at(self, 0) == at(other, 0) || self.kind == FindingKind::Race && is_swapped())
    }

    /// Merges `other`, which is like this finding.
    fn absorb(&mut self, other: Self) {
        self.times += other.times;
        self.repeats.merge(&other.repeats);
        let mut parties = other.parties.into_iter();
        if let Some(party) = parties.next() {
            self.repeats.add(party.rank, party.block, party.thread.index.0);
        }
        for party in parties {
            let is_known = |known: &Party| SourceLine::of(known.site) == SourceLine::of(party.site);
            if self.parties.len() < SHOWN_PARTIES && !self.parties.iter().any(is_known) {
                self.parties.push(party);
            }
        }
    }

    /// Formats the finding as text of several lines, with the lines of PTX and Rust that `sources`
    /// has.
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
            append(&mut text, format_args!("  and {} more{}\n", self.times - 1, self.repeats));
        }
        if let Some(help) = &self.help {
            let help = if self.is_of_rust(sources) { help.in_language() } else { help.in_ptx() };
            append(&mut text, format_args!("  help: {help}\n"));
        }
        if let Some(rule) = self.kind.rule() {
            append(&mut text, format_args!("  {}\n", rule.reference()));
        }
        text
    }

    /// Returns whether the finding refers to a line of Rust.
    fn is_of_rust(&self, sources: &Sources<'_>) -> bool {
        let files = self.parties.iter().filter_map(|party| party.site.source);
        files.into_iter().any(|(file, _)| sources.file_name(file).ends_with(".rs"))
    }
}

/// The line by which sites are identified for a reader: that of the source or, without one, of the
/// PTX.
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

/// The most threads of a finding that are shown.
const SHOWN_PARTIES: usize = 16;

fn append(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = text.write_fmt(arguments);
}

impl Party {
    fn render(&self, sources: &Sources<'_>, text: &mut String) {
        let [x, y, z] = self.block;
        let (thread, lane) = (self.thread.index.0, self.thread.index.0 % 32);
        let warp = thread / 32;
        let rank = self.rank.map_or_else(String::new, |rank| format!(" of rank {rank}"));
        append(
            text,
            format_args!(
                "  thread {thread} (warp {warp}, lane {lane}) of block ({x}, {y}, {z}){rank} {}",
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

/// Formats a number of things: `1 byte`, `2 bytes`.
pub(crate) fn counted(number: impl Into<u64>, thing: &str) -> String {
    let number = number.into();
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// The texts that findings refer to.
#[derive(Clone, Debug, Default)]
pub struct Sources<'t> {
    /// The PTX.
    pub ptx: &'t str,
    /// The files of `.file`: number, name, and text if available.
    pub files: Vec<(u32, String, Option<String>)>,
}

/// Returns line `line`, counted from 1, of a text.
fn line_of(text: &str, line: u32) -> Option<&str> {
    text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)
}

impl Sources<'_> {
    /// Returns a line of the PTX, counted from 1.
    pub fn ptx_line(&self, line: u32) -> Option<&str> {
        line_of(self.ptx, line)
    }

    fn file(&self, number: u32) -> Option<&(u32, String, Option<String>)> {
        self.files.iter().find(|file| file.0 == number)
    }

    /// Returns the name that the PTX gives to a source file, or else its number.
    pub fn file_name(&self, number: u32) -> String {
        self.file(number).map_or_else(|| format!("file {number}"), |file| file.1.clone())
    }

    /// Returns a line of a source file, counted from 1, if its text is available.
    pub fn file_line(&self, number: u32, line: u32) -> Option<&str> {
        line_of(self.file(number)?.2.as_deref()?, line)
    }
}
