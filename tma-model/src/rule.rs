//! The rules of synchronisation and memory that the compiler and the simulator check.
//!
//! A rule has a code in the compiler (`Code::of`), and with it a page in the book, and kinds of
//! findings in the simulator (`FindingKind::rule`). Nothing else relates the two.

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
