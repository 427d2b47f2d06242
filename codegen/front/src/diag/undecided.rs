//! The reasons why a kernel's protocol is undecided.

use std::fmt;

/// The reason why the checker neither accepts nor rejects something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UndecidedReason {
    /// Synchronisation depends on an unknown value: a barrier, a count, a number of bytes, a
    /// parity.
    Operand,
    /// A condition depends on values that the checker does not track, such as floats.
    Condition,
    /// Threads of a group may diverge at an unknown condition.
    Divergence,
    /// Unordered accesses have unknown addresses.
    Address,
    /// Arrivals may count for different phases, because the order of blocks is not fixed.
    Counting,
    /// The result of a poll affects more than how long the loop waits.
    Poll,
    /// A tensor map is modified in memory.
    Maps,
    /// A finding occurs only if loaded data has certain values.
    Data,
    /// A finding lies on a path that no known launch takes.
    Infeasible,
    /// Threads write the same bytes at the same time.
    SameBytes,
    /// Memory is read that no thread has written.
    Unwritten,
    /// A finding occurs in some launches of a kind, and not in others.
    Launch,
    /// The budget of iterations or paths is exhausted. Everything explored so far is correct.
    Budget,
    /// There are too many groups of threads and barriers to track. Everything explored so far is
    /// correct.
    Size,
    /// The cluster has more blocks than the checker tracks.
    Cluster,
    /// Only strong accesses that acquire might order these accesses, and the checker does not track
    /// them.
    Atomics,
    /// A finding is at a statement that the source marks as trusted.
    Trusted,
    /// An arrival at a named barrier is not ordered after the barrier's last round.
    Round,
    /// PTX leaves the effect of an operation undefined.
    Undefined,
    /// Blocks may reach a barrier of the grid differently.
    Grid,
    /// The counter that `sync_grid` uses is accessed.
    GridCounter,
    /// The lane that `elect_one` picks makes a difference that the checker did not follow.
    Elected,
    /// Accesses to global memory are unordered.
    Global,
    /// A loop ends only once another thread has written something.
    WaitLoop,
    /// Other blocks may write this global memory, and no barrier of the grid orders the accesses.
    OtherBlocks,
    /// Other ranks may access this memory, and their order with this access is not tracked.
    Peers,
    /// No execution was followed to its end.
    NoEnd,
    /// Instructions of the kernel's own have effects that the checker does not track.
    Ptx,
    /// Registers that one warpgroup releases may go to a different warpgroup than the one that
    /// waits.
    Registers,
}

impl fmt::Display for UndecidedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operand => {
                "a barrier, count, number of bytes or parity depends on data that is not tracked"
            }
            Self::Condition => "a condition on values that are not tracked",
            Self::Divergence => "threads may diverge at this condition, depending on the launch or on data",
            Self::Address => "unordered accesses at unknown addresses",
            Self::Counting => {
                "nothing orders this after the last phase, so it may count for either of two phases"
            }
            Self::Poll => "the result of a poll decides more than how long to wait",
            Self::Maps => "a tensor map is modified in memory",
            Self::Data => "a rule is broken here if loaded data has certain values",
            Self::Infeasible => "a rule is broken here on a path that no known launch takes",
            Self::SameBytes => "several threads write the same bytes at the same time",
            Self::Unwritten => "a read of shared memory that no thread or copy has written",
            Self::Launch => "a rule is broken here in some launches, but not in others",
            Self::Budget => "more paths than the budget covers",
            Self::Size => "too many groups of threads and barriers for the memory and the work of a check",
            Self::Cluster => "the cluster has more blocks than are tracked",
            Self::Atomics => "flags or fences, which are not tracked, may order these accesses",
            Self::Trusted => "a rule seems to be broken here, at a statement that is marked as trusted",
            Self::Round => {
                "nothing orders this arrival after the barrier's last round, so it may count for either of \
                 two rounds"
            }
            Self::Undefined => "PTX leaves the behaviour undefined here",
            Self::Grid => "whether a block reaches this `sync_grid` depends on its position or on data",
            Self::GridCounter => {
                "this accesses the counter of `sync_grid`, which nothing else may read or write"
            }
            Self::Elected => "the outcome depends on the lane that `elect_one` picks",
            Self::Global => "unordered accesses to the same global memory",
            Self::WaitLoop => "this loop waits for a write by another thread, which is not tracked",
            Self::OtherBlocks => {
                "other blocks may write this memory, and only `sync_grid` and the counter of a last block \
                 are known to order blocks"
            }
            Self::Peers => {
                "other ranks may access this memory of peers, and orders between ranks are not tracked"
            }
            Self::NoEnd => "no execution reached the end of the kernel",
            Self::Ptx => "the effects of `ptx!` are not tracked",
            Self::Registers => {
                "the registers that this waits for may go to another warpgroup, which needs them to continue"
            }
        })
    }
}
