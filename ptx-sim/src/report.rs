//! What a run found, and how it is shown.

use std::fmt::{self, Write as _};

use crate::machine::{Site, ThreadId};

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
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadBeforeWait => "read before the wait",
            Self::InFlight => "copy in flight",
            Self::RefillBeforeRelease => "refill before release",
            Self::MissingProxyFence => "missing proxy fence",
            Self::UnfencedRefill => "refill without a proxy fence",
            Self::BarrierNotVisible => "mbarrier not visible",
            Self::BarrierMisuse => "mbarrier misused",
            Self::TransactionBytes => "wrong transaction bytes",
            Self::Overrun => "wait overrun",
            Self::Deadlock => "deadlock",
            Self::Race => "race",
            Self::DivergentBarrier => "divergent barrier",
            Self::Uninitialised => "uninitialised read",
            Self::OutOfBounds => "out of bounds",
            Self::Misaligned => "misaligned",
            Self::IllegalCopy => "illegal copy",
            Self::Leak => "leaked copy",
            Self::BlockGone => "block gone",
            Self::OpaqueAccess => "mbarrier accessed as data",
            Self::Trap => "trap",
            Self::Execution => "execution",
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
    /// Who was concerned: first who met it, then who it conflicts with.
    pub parties: Vec<Party>,
    /// What to add or change, where that is known.
    pub help: Option<String>,
    /// How often it was met.
    pub times: u64,
}

impl Finding {
    /// A finding with a message and nothing else.
    pub fn new(kind: FindingKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), parties: Vec::new(), help: None, times: 1 }
    }

    /// Adds a thread that is concerned.
    #[must_use]
    pub fn with(mut self, party: Party) -> Self {
        self.parties.push(party);
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether `other` says the same of the same places, if perhaps of other threads.
    fn is_like(&self, other: &Self) -> bool {
        let lines =
            |finding: &Self| finding.parties.iter().map(|party| party.site.ptx_line).collect::<Vec<_>>();
        self.kind == other.kind && lines(self) == lines(other)
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
            append(&mut text, format_args!("  met {} times\n", self.times));
        }
        if let Some(help) = &self.help {
            append(&mut text, format_args!("  help: {help}\n"));
        }
        text
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
        let (thread, lane) = (self.who.thread, self.who.thread % 32);
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

/// All that is wrong, like with like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
}

/// How many findings are kept that differ. More say nothing new.
const KEPT: usize = 256;

impl Findings {
    /// Adds a finding, or counts it if there is one like it.
    pub fn add(&mut self, finding: Finding) {
        if let Some(known) = self.list.iter_mut().find(|known| known.is_like(&finding)) {
            known.times += finding.times;
        } else if self.list.len() < KEPT {
            self.list.push(finding);
        }
    }

    /// Adds those of another run.
    pub fn extend(&mut self, other: Self) {
        for finding in other.list {
            self.add(finding);
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are that differ.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Each of them, in the order they were met.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// All of them as text, with the lines of PTX and Rust that `sources` has.
    pub fn render(&self, sources: &Sources<'_>) -> String {
        let texts: Vec<_> = self.list.iter().map(|finding| finding.render(sources)).collect();
        texts.join("\n")
    }
}

impl<'f> IntoIterator for &'f Findings {
    type Item = &'f Finding;
    type IntoIter = std::slice::Iter<'f, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 8.0\n  st.shared.f32 [%r1], %f1;\n  ld.shared.f32 %f2, [%r1];\n";

    fn party(thread: u32, ptx_line: u32, does: &'static str) -> Party {
        let site = Site { ptx_line, source: Some((1, ptx_line - 1)) };
        Party { block: [4, 0, 0], who: ThreadId { block: 0, thread }, site, does }
    }

    fn race(reader: u32) -> Finding {
        Finding::new(
            FindingKind::Race,
            "shared memory at 0x10 is read while another thread may still write it",
        )
        .with(party(reader, 3, "reads"))
        .with(party(2, 2, "wrote"))
        .help("a barrier")
    }

    #[test]
    fn a_finding_shows_both_sides_with_their_lines() {
        let files =
            vec![(1, "src/kernel.rs".to_owned(), Some("tile.set(at, x);\nlet y = tile.get(at);".to_owned()))];
        let text = race(33).render(&Sources { ptx: PTX, files });
        let wanted = "\
race: shared memory at 0x10 is read while another thread may still write it
  thread 33 (warp 1, lane 1) of block (4, 0, 0) reads
    at PTX line 3: ld.shared.f32 %f2, [%r1];
    from src/kernel.rs:2: let y = tile.get(at);
  thread 2 (warp 0, lane 2) of block (4, 0, 0) wrote
    at PTX line 2: st.shared.f32 [%r1], %f1;
    from src/kernel.rs:1: tile.set(at, x);
  help: a barrier
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn like_findings_are_one() {
        let mut findings = Findings::default();
        findings.add(race(33));
        findings.add(race(34));
        findings.add(Finding::new(FindingKind::Trap, "trap"));
        assert_eq!(findings.len(), 2);
        assert!(findings.render(&Sources::default()).contains("met 2 times"));
        let mut twice = findings.clone();
        twice.extend(findings);
        assert_eq!(twice.iter().map(|finding| finding.times).collect::<Vec<_>>(), [4, 2]);
    }

    #[test]
    fn no_text_is_needed_to_show_a_finding() {
        let text = race(0).render(&Sources::default());
        assert!(text.contains("at PTX line 3\n    from file 1:2\n"), "{text}");
    }
}
