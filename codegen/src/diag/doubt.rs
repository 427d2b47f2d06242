//! Why a kernel's protocol is not decided.

use std::fmt;

/// Why nothing certain is said of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// A number that synchronisation depends on is not known: a barrier, a count, bytes, a parity.
    Operand,
    /// A condition on values that are not followed, such as floats.
    Condition,
    /// Threads of a group may decide differently, by a condition that is not known.
    Cut,
    /// Accesses that nothing orders, at addresses that are not known.
    Address,
    /// Arrivals that may count for one phase or another: the order of blocks is not fixed.
    Counting,
    /// An answer of a poll that is used for more than waiting.
    Poll,
    /// Tensor maps that are changed in memory.
    Maps,
    /// A finding that holds only if data that was loaded has certain values.
    Data,
    /// A finding in a world for which no launch was found.
    Infeasible,
    /// Threads that write the same bytes at the same time.
    Together,
    /// A read of what nobody has written.
    Unwritten,
    /// A finding that holds for some launches, and not for others of the same kind.
    Launch,
    /// Too many turns, or too many ways to go: what was looked at is right.
    Budget,
    /// Too many groups of threads and barriers at once: what was looked at is right.
    Size,
    /// A cluster of more blocks than are followed.
    Cluster,
    /// Accesses that nothing orders but, it may be, strong accesses that acquire.
    Atomics,
    /// A finding at a statement that the source trusts.
    Trusted,
    /// An arrival at a named barrier that nothing orders after its last round.
    Round,
    /// An operation whose effect PTX leaves undefined.
    Undefined,
    /// A meeting of the grid that blocks may come to differently.
    Grid,
    /// An access to the counter that `sync_grid` counts with.
    GridCounter,
    /// Which lane `elect_one` picks makes a difference that was not followed.
    Elected,
    /// Accesses to global memory that nothing orders.
    Global,
    /// A loop that ends when another thread has written something.
    Waits,
    /// An access to global memory that other blocks may write, without a meeting of the grid between.
    Blocks,
    /// No execution was followed to its end.
    NoEnd,
    /// Registers that one warpgroup gives may go to another than waits for them.
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
