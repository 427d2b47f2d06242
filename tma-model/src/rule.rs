//! The rules of synchronisation and memory that the compiler and the simulator check.
//!
//! A rule has a code, a page of this name in the book, and a sentence with which the page begins.
//! The compiler's error (`Code::of`), the simulator's findings (`FindingKind::rule`) and the report
//! of a limited wait on a GPU end with the same [reference](Rule::reference) to it. Nothing else
//! relates them.

/// A rule of synchronisation, named after its violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Every wait ends. Source: PTX ISA, "bar, barrier", "mbarrier.try_wait", "setmaxnreg".
    Deadlock,
    /// A phase of an mbarrier expects the bytes that copies bring. Source: PTX ISA, "expect-tx
    /// operation", "complete-tx operation".
    Bytes,
    /// An mbarrier is initialised once, counts the arrivals of each phase, and is accessed by
    /// `mbarrier` instructions only. Source: PTX ISA, "mbarrier".
    Count,
    /// Two conflicting accesses are ordered, or strong in scopes that include both threads. Source:
    /// PTX ISA, "Conflict and data-races".
    Race,
    /// Data of a copy is read after a wait for the copy. Source: PTX ISA, "Completion Mechanisms
    /// for Asynchronous Copy Operations".
    ReadBeforeWait,
    /// Memory is overwritten after all reads of it, by threads and by copies. Source: as for
    /// [`ReadBeforeWait`](Self::ReadBeforeWait).
    Refill,
    /// A proxy fence separates accesses of threads from accesses of copies and multiplications.
    /// Source: PTX ISA, "Async proxy".
    Fence,
    /// An mbarrier is used where its initialisation is visible. Source: PTX ISA, "membar, fence".
    NotVisible,
    /// A wait for a phase comes before the completion of the next one. Source: PTX ISA,
    /// "mbarrier.test_wait": only the current and the last phase can be waited for.
    Overrun,
    /// A copy is complete before its thread or block ends. Source: PTX ISA, "cp.async.bulk".
    Leak,
    /// A block ends after all accesses to its shared memory. Source: PTX ISA, "Shared State Space".
    BlockGone,
    /// All threads of a rendezvous reach it in the same way. Source: PTX ISA, "bar, barrier".
    Divergence,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 12] = [
        Self::Deadlock,
        Self::Bytes,
        Self::Count,
        Self::Race,
        Self::ReadBeforeWait,
        Self::Refill,
        Self::Fence,
        Self::NotVisible,
        Self::Overrun,
        Self::Leak,
        Self::BlockGone,
        Self::Divergence,
    ];

    /// Returns the code of the rule, which its page in the book is named after.
    pub const fn code(self) -> &'static str {
        self.facts().0
    }

    /// Returns the rule as a sentence: the first of its page.
    pub const fn sentence(self) -> &'static str {
        self.facts().1
    }

    /// Returns the last line of every report of a violation: the rule, and how to read its page.
    pub fn reference(self) -> String {
        let (code, sentence) = self.facts();
        format!("rule: {sentence} (`cargo tma explain {code}`)")
    }

    const fn facts(self) -> (&'static str, &'static str) {
        match self {
            Self::Deadlock => ("TMA0701", "every wait must be able to end"),
            Self::Bytes => (
                "TMA0702",
                "a barrier must be announced exactly as many bytes as the copies of the phase bring",
            ),
            Self::Count => (
                "TMA0703",
                "a barrier is initialised once, by one thread, with the number of arrivals in each phase",
            ),
            Self::Race => (
                "TMA0704",
                "if one thread writes to memory and another accesses the same place, something must order \
                 the two accesses",
            ),
            Self::ReadBeforeWait => (
                "TMA0705",
                "a thread may read loaded data only after it has waited for the phase that the load \
                 completes, or has synchronised with a thread that has",
            ),
            Self::Refill => {
                ("TMA0706", "before a tile is loaded or written again, all reads of it must have ended")
            }
            Self::Fence => (
                "TMA0707",
                "between a thread's access and a copy of the same bytes there must be a proxy fence",
            ),
            Self::NotVisible => (
                "TMA0708",
                "before other threads or copies use a barrier, its initialisation must be visible to them",
            ),
            Self::Overrun => {
                ("TMA0709", "all waits for a phase must have ended before the next phase completes")
            }
            Self::Leak => ("TMA0710", "every copy must be waited for before its block ends"),
            Self::BlockGone => {
                ("TMA0711", "accesses to another block's shared memory must complete before that block ends")
            }
            Self::Divergence => {
                ("TMA0712", "all threads that a barrier counts must reach it, in the same way")
            }
        }
    }

    /// Returns whether a violation means that nothing orders two steps.
    pub const fn is_of_order(self) -> bool {
        match self {
            Self::Count
            | Self::Race
            | Self::ReadBeforeWait
            | Self::Refill
            | Self::Fence
            | Self::NotVisible
            | Self::Overrun
            | Self::BlockGone => true,
            Self::Deadlock | Self::Bytes | Self::Leak | Self::Divergence => false,
        }
    }

    /// Returns whether `found` in a run may be due to a violation of this rule. Some violations
    /// only show by their consequences: with too few expected bytes, a phase completes before its
    /// copies do.
    pub fn may_show_as(self, found: Self) -> bool {
        let consequences: &[Self] = match self {
            Self::Deadlock => &[Self::Divergence],
            Self::Divergence => &[Self::Deadlock],
            Self::Bytes => &[Self::Deadlock, Self::ReadBeforeWait],
            Self::Count => &[Self::Overrun, Self::Divergence],
            Self::NotVisible => &[Self::Count],
            Self::Race
            | Self::ReadBeforeWait
            | Self::Refill
            | Self::Fence
            | Self::Overrun
            | Self::Leak
            | Self::BlockGone => &[],
        };
        self == found || consequences.contains(&found)
    }
}
