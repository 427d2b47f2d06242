//! General advice, for mistakes that no single change corrects.

use super::{Act, Protocol, ProtocolRule};

impl Protocol {
    /// Returns advice on how to follow the rule.
    pub(super) fn help(&self) -> &'static str {
        let is_global = self.subject.as_ref().is_some_and(|subject| subject.is_global);
        match self.rule {
            ProtocolRule::Deadlock | ProtocolRule::Parted if self.counts.is_none() && self.has_returned() => {
                "do not return early: put that work into an `if` that ends before the barrier, so that all threads \
                 reach it"
            }
            ProtocolRule::Deadlock => of(WAITS, self.step.does).unwrap_or(
                "let each phase of a barrier get all of its arrivals, and let waits take the parities 0, 1, 0, .. \
                 in turn",
            ),
            ProtocolRule::Bytes if !self.without.is_empty() => {
                "call `load_sliced` in all blocks along its axis, outside of conditions on the block; where one block \
                 loads for all, use `load_multicast`"
            }
            ProtocolRule::Bytes => {
                "announce the bytes of all copies that complete in the phase, such as `tile.bytes()`"
            }
            ProtocolRule::Count => of(USES, self.step.does).unwrap_or(
                "initialise a barrier once, with as many arrivals as come in each phase, and wait for a phase \
                 before the next one's",
            ),
            ProtocolRule::Race | ProtocolRule::Refill if self.is_done_by_several() => {
                if self.step.threads.block == self.others.first().and_then(|other| other.threads.block) {
                    "let one thread do it, such as `if thread_idx().x == 0 { .. }`, or give each a part of its own"
                } else {
                    "let one block do it, such as `if cluster_rank() == 0 { .. }`, or give each a part of its own"
                }
            }
            ProtocolRule::Race if is_global => {
                "wait until a copy is complete before its elements are accessed: of a store \
                 `bulk_commit_group()` and `bulk_wait_group::<0>()` in the thread that issued it, then a meeting"
            }
            ProtocolRule::Race => {
                "put `sync_threads()`, an arrival and a wait at a barrier, or a store with `Order::Release` and a \
                 load with `Order::Acquire` between the two"
            }
            ProtocolRule::ReadBeforeWait => {
                "wait for the barrier that the copy completes on, in each thread that reads or before a meeting with it"
            }
            ProtocolRule::Refill => {
                "let this wait until all that use it have arrived at a barrier, met, or waited for their copies"
            }
            ProtocolRule::Fence if is_global => {
                "`fence_proxy_async_global()` after the threads' accesses, before the meeting that orders the two"
            }
            ProtocolRule::Fence => {
                "`fence_proxy_async()` after the threads' accesses, before the arrival or meeting that orders the two"
            }
            ProtocolRule::NotVisible => {
                "let one thread `init(..)` it, then `fence_barrier_init()`, and let all meet before the first use: \
                 `sync_threads()`, or `sync_cluster()` for other blocks'"
            }
            ProtocolRule::Overrun if self.is_idle_wait() => {
                "look for a wait with the wrong parity: let waits take the parities 0, 1, 0, .. in turn, one for each phase: a `Phase` and `wait_next` count them"
            }
            ProtocolRule::Overrun => {
                "let whoever waits arrive, there or elsewhere, before the next phase can complete"
            }
            ProtocolRule::Leak if self.step.does == Act::InvalidateUnderCopy => {
                "wait for the copy before its barrier is invalidated"
            }
            ProtocolRule::Leak => {
                "`bulk_commit_group()` and `bulk_wait_group_read::<0>()` in the thread that stores; a wait for the \
                 barrier of a load"
            }
            ProtocolRule::BlockGone => "call `sync_cluster()` at the end of the kernel",
            ProtocolRule::Parted => {
                "let all threads come to one statement, or name those that do: `named_barrier_sync(id, threads)`"
            }
        }
    }
}

/// Advice, indexed by the act of the threads.
type Table = &'static [(&'static [Act], &'static str)];

/// Advice for waits other than those for an mbarrier.
const WAITS: Table = &[
    (
        &[Act::WaitForBlock, Act::WaitInThreads],
        "let all threads of the block that have not returned come to it equally often, or name those that do: \
         `named_barrier_sync(id, threads)`",
    ),
    (
        &[Act::WaitInNamed],
        "let exactly as many threads come to each round of a named barrier as it counts: whole warps, each once",
    ),
    (&[Act::WaitInWarpgroup], "let all four warps of the warpgroup come to it equally often"),
    (
        &[Act::WaitInWarp, Act::WaitForLanes],
        "let all lanes of the warp that have not returned come to the same operation: write it before or behind \
         the branch",
    ),
    (
        &[Act::WaitForCluster],
        "let all threads of the cluster come to its barrier equally often: write it outside of conditions on the \
         block or the thread",
    ),
    (
        &[Act::WaitForGrid],
        "let all threads of all blocks come to `sync_grid` equally often: write it outside of conditions on the \
         thread or the block, and of loops over a block's share of the work",
    ),
    (
        &[Act::WaitForRegisters],
        "let the registers that are free, and those that others give before they wait, cover what this takes",
    ),
];

/// Advice on the use of a barrier, other than the alternation of arrivals and waits.
const USES: Table = &[
    (
        &[Act::Invalidate, Act::InvalidateInUse],
        "let all that use the barrier meet before one thread invalidates it: `sync_threads()`",
    ),
    (&[Act::InitialiseTogether], "let one thread initialise it: `if thread_idx().x == 0 { .. }`"),
    (
        &[Act::InitialiseAgain],
        "initialise a barrier once, or `invalidate()` it before, when nobody uses it any more",
    ),
    (&[Act::InitialiseWrongly], "give it a count from 1 to 1048575"),
    (&[Act::ArriveAgain], "let each warp come once to each round of a named barrier"),
    (
        &[Act::ArriveTwice, Act::WaitUnarrived],
        "let each thread call `cluster_arrive()` once, and then `cluster_wait()` once",
    ),
    (&[Act::Come, Act::ComeOtherwise], "let all warps of a round name the same count"),
];

fn of(table: Table, does: Act) -> Option<&'static str> {
    table.iter().find(|(acts, _)| acts.contains(&does)).map(|(_, help)| *help)
}
