//! The reasons why a kernel's protocol is undecided.

use std::fmt;

/// The reason why the checker neither accepts nor rejects something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// Synchronisation depends on an unknown value: a barrier, a count, a number of bytes, a
    /// parity.
    Operand,
    /// A condition depends on values that the checker does not track, such as floats.
    Condition,
    /// Threads of a group may diverge at an unknown condition.
    Cut,
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
    Together,
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
    Waits,
    /// Other blocks may write this global memory, and no barrier of the grid orders the accesses.
    Blocks,
    /// No execution was followed to its end.
    NoEnd,
    /// Registers that one warpgroup releases may go to a different warpgroup than the one that
    /// waits.
    Registers,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operand => {
                "a barrier, count, number of bytes or parity depends on data that is not followed"
            }
            Self::Condition => "a condition on values that are not followed",
            Self::Cut => {
                "threads may decide differently here, by a condition that the launch or data settles"
            }
            Self::Address => "accesses that nothing orders, at addresses that are not known",
            Self::Counting => {
                "nothing orders this behind the last phase: it may count for one phase or another"
            }
            Self::Poll => "the answer of a poll decides more than when to go on",
            Self::Maps => "a tensor map is changed in memory",
            Self::Data => "something is wrong here if loaded data has certain values",
            Self::Infeasible => "something is wrong here, but no launch is known that leads to it",
            Self::Together => "threads write the same bytes at the same time",
            Self::Unwritten => "a read of shared memory that nobody has written",
            Self::Launch => "something is wrong here with some numbers of a launch, and not with others",
            Self::Budget => "more ways to go than are looked at",
            Self::Size => {
                "too many groups of threads and barriers: following them takes more memory or time than a check may"
            }
            Self::Cluster => "a cluster of more blocks than are followed",
            Self::Atomics => {
                "flags or fences may order these accesses; they are not followed"
            }
            Self::Trusted => "something seems wrong here, at a statement that the kernel trusts",
            Self::Round => "nothing orders this arrival after the barrier's last round: it may count in either",
            Self::Undefined => "PTX does not define what happens here",
            Self::Grid => "whether a block comes to this meeting of the grid depends on its place or on data",
            Self::GridCounter => {
                "this accesses the counter that `sync_grid` counts with: nothing else may read or write it"
            }
            Self::Elected => "it matters here which lane `elect_one` picks",
            Self::Global => "unordered accesses to the same global memory",
            Self::Waits => "this waits for what another thread writes, which is not followed",
            Self::Blocks => {
                "other blocks may write this memory; only `sync_grid` and a counter of the last block are known to \
                 order blocks"
            }
            Self::NoEnd => "no execution was followed to the end of the kernel",
            Self::Registers => {
                "the registers that this waits for may go to another warpgroup, which needs them to go on"
            }
        })
    }
}
