//! General advice, for mistakes that no single change corrects.

use tma_model::rule::Rule;

use super::{Protocol, ThreadAct};

impl Protocol {
    /// Returns advice on how to follow the rule.
    pub(super) fn help(&self) -> String {
        self.help_for_slot().unwrap_or_else(|| self.general_help().to_owned())
    }

    fn general_help(&self) -> &'static str {
        let is_global = self.subject.as_ref().is_some_and(|subject| subject.is_global);
        match self.rule {
            Rule::Deadlock | Rule::Divergence if self.counts.is_none() && self.has_returned() => {
                "put the work into an `if` that ends before the barrier instead of returning early, so that \
                 all threads reach the barrier"
            }
            Rule::Deadlock => of(WAITS, self.step.does).unwrap_or(
                "make each phase get as many arrivals as `init(..)` counts, and wait for the parities 0, 1, \
                 0, .. in this order",
            ),
            Rule::Bytes if !self.without.is_empty() => {
                "call `load_sliced` in all blocks along its axis, outside of conditions on the block; to \
                 load for all of them in one block, use `load_multicast`"
            }
            Rule::Bytes => {
                "announce the bytes of all copies that complete in the phase, such as `tile.bytes()`"
            }
            Rule::Count => of(USES, self.step.does).unwrap_or(
                "initialise the barrier once, count the arrivals of each phase in `init(..)`, and wait for a \
                 phase before arriving in the next one",
            ),
            Rule::Race | Rule::Refill if self.is_done_by_several() => {
                if self.step.threads.block == self.others.first().and_then(|other| other.threads.block) {
                    "restrict the statement to one thread, such as with `if thread_idx().x == 0 { .. }`, or \
                     give each thread a part of its own"
                } else {
                    "restrict the statement to one block, such as with `if cluster_rank() == 0 { .. }`, or \
                     give each block a part of its own"
                }
            }
            Rule::Race if is_global => {
                "wait for the copy before accessing its elements: call `bulk_commit_group()` and \
                 `bulk_wait_group::<0>()` in the thread that issued a store, then synchronise"
            }
            Rule::Race => {
                "order the two accesses: with `sync_threads()`, with an arrival and a wait at a barrier, or \
                 with a store with `Order::Release` and a load with `Order::Acquire` in between"
            }
            Rule::ReadBeforeWait => {
                "wait for the barrier that the copy completes on, in each thread that reads, or in one \
                 thread before it synchronises with the readers"
            }
            Rule::Refill => {
                "delay this until all earlier users of the memory have arrived at a barrier that is waited \
                 for here, have synchronised with this thread, or have waited for their copies"
            }
            Rule::Fence if is_global => {
                "call `fence_proxy_async_global()` after the threads' accesses, before the barrier that \
                 orders them with the copy"
            }
            Rule::Fence => {
                "call `fence_proxy_async()` after the threads' accesses, before the arrival or barrier that \
                 orders them with the copy"
            }
            Rule::NotVisible => {
                "call `init(..)` and then `fence_barrier_init()` in one thread, and synchronise before the \
                 first use: with `sync_threads()`, or with `sync_cluster()` if other blocks use it"
            }
            Rule::Overrun if self.is_idle_wait() => {
                "wait for the parities 0, 1, 0, .. in this order, once for each phase; a `Phase` and \
                 `wait_next` count them"
            }
            Rule::Overrun => {
                "make each waiting thread arrive after its wait, at this barrier or another one, before the \
                 next phase can complete"
            }
            Rule::Leak if self.step.does == ThreadAct::InvalidateUnderCopy => {
                "wait for the copy before invalidating its barrier"
            }
            Rule::Leak if self.step.does == ThreadAct::IssueLoad => {
                "wait for the barrier of the load before the kernel ends"
            }
            Rule::Leak => {
                "call `bulk_commit_group()` and `bulk_wait_group_read::<0>()` in the thread that issues the \
                 store"
            }
            Rule::BlockGone => "call `sync_cluster()` at the end of the kernel",
            Rule::Divergence => of(USES, self.step.does).unwrap_or(
                "move the barrier to one statement that all threads reach, or name the number of threads \
                 that do: `named_barrier_sync(id, threads)`",
            ),
        }
    }
}

/// Advice, indexed by the act of the threads.
type Table = &'static [(&'static [ThreadAct], &'static str)];

/// Advice for waits other than those for an mbarrier.
const WAITS: Table = &[
    (
        &[ThreadAct::WaitForBlock, ThreadAct::WaitInThreads],
        "call it equally often in all threads of the block that have not returned, or name the number of \
         threads that call it: `named_barrier_sync(id, threads)`",
    ),
    (
        &[ThreadAct::WaitInNamed],
        "make exactly as many threads reach each round of the named barrier as it counts: whole warps, each \
         once",
    ),
    (&[ThreadAct::WaitInWarpgroup], "call it equally often in all four warps of the warpgroup"),
    (
        &[ThreadAct::WaitInWarp, ThreadAct::WaitForLanes],
        "call the same operation in all lanes of the warp that have not returned: move it before or after \
         the branch",
    ),
    (
        &[ThreadAct::WaitForCluster],
        "call it equally often in all threads of the cluster: move it out of conditions on the block or the \
         thread",
    ),
    (
        &[ThreadAct::WaitForGrid],
        "call `sync_grid` equally often in all threads of all blocks: move it out of conditions on the \
         thread or the block, and of loops over a block's share of the work",
    ),
    (
        &[ThreadAct::WaitForRegisters],
        "release enough registers: those that are free, and those that other warpgroups release before they \
         wait, must cover the increase",
    ),
];

/// Advice on the use of a barrier, other than the alternation of arrivals and waits.
const USES: Table = &[
    (
        &[ThreadAct::Invalidate, ThreadAct::InvalidateInUse],
        "synchronise all threads that use the barrier before one of them invalidates it: `sync_threads()`",
    ),
    (&[ThreadAct::InitialiseBySeveral], "initialise it in one thread: `if thread_idx().x == 0 { .. }`"),
    (
        &[ThreadAct::InitialiseAgain],
        "initialise the barrier once, or call `invalidate()` before, when no thread uses it any more",
    ),
    (&[ThreadAct::InitialiseWrongly], "use a count from 1 to 1048575"),
    (&[ThreadAct::ArriveAgain], "arrive once in each warp and round of a named barrier"),
    (
        &[ThreadAct::ArriveTwice, ThreadAct::WaitUnarrived],
        "call `cluster_arrive()` once and then `cluster_wait()` once in each thread",
    ),
    (
        &[ThreadAct::AnnounceLate],
        "announce the bytes before the last arrival of the phase, or use `arrive_expect_tx(..)`",
    ),
    (&[ThreadAct::OutOfBounds], "keep the index below the number of stages"),
    (&[ThreadAct::WaitWithOther], "wait with the token of an arrival at the same barrier"),
    (&[ThreadAct::WaitForOtherPhase], "wait with a token of the current phase, or of the one before"),
];

fn of(table: Table, does: ThreadAct) -> Option<&'static str> {
    table.iter().find(|(acts, _)| acts.contains(&does)).map(|(_, help)| *help)
}
