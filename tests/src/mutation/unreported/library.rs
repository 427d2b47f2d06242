//! The unreported mutants of the kernels of `tma-kernels`, for the instances that
//! [`library`](crate::library) launches.

use super::Unreported;
use super::kinds::{
    CP_FENCEPROXY, DRAINED, LATER_GROUP, ONE_SUM, REGISTERS, last_wait, of, of_one_block, own_flag,
};
use crate::mutation::steps::Change::{
    ArriveRemoved, CommitRemoved, FenceRemoved, GroupWaitRemoved, MadePlain, OnlyRead, OrderDropped,
    PendingRaised, RegisterFenceRemoved, RegistersRemoved, ScopeNarrowed, SyncRemoved, TriedOnce,
    WaitRemoved, WarpSyncRemoved,
};

const EDGE_OF_C: &str = "Threads store the edge of C, which no tile of this problem has.";

/// Mutants that do harm.
pub(super) const MISSED: &[Unreported] = &[
    of("rows::*", "atom.relaxed.gpu.global.add", &[0, 1, 2, 3], &[ScopeNarrowed], NOT_SHOWN),
    of("rows::*", "atom.relaxed.gpu.global.exch", &[0], &[ScopeNarrowed], NOT_SHOWN),
    of(
        "rows::*",
        "mbarrier.try_wait.parity.acquire.cluster",
        &[9],
        &[TriedOnce],
        "A warp arrives and waits for itself: its lanes have parted before, and the simulator lets them meet again as early as it can, so that all have arrived.",
    ),
    of(
        "rows::*",
        "mbarrier.try_wait.parity.acquire.cluster",
        &[12, 13, 15, 17],
        &[TriedOnce],
        "The warps go on from one buffer to the next, in turns of the simulator that are longer than it takes to fill one: the thread that stores never comes here too early.",
    ),
    of("two_shot::*", "barrier.sync", &[0, 2, 3], &[SyncRemoved], BETWEEN_LAUNCHES),
    of("two_shot::*", "st.release.sys.global", &[0, 1], &[OrderDropped], BETWEEN_LAUNCHES),
    of("two_shot::*", "ld.acquire.sys.global", &[0, 1], &[OrderDropped], BETWEEN_LAUNCHES),
    of("reduce_scatter::*", "barrier.sync", &[0, 2, 3], &[SyncRemoved], BETWEEN_LAUNCHES),
    of("reduce_scatter::*", "st.release.sys.global", &[0, 1], &[OrderDropped], BETWEEN_LAUNCHES),
    of("reduce_scatter::*", "ld.acquire.sys.global", &[0, 1], &[OrderDropped], BETWEEN_LAUNCHES),
    of("all_gather::*", "barrier.sync", &[0, 2, 3], &[SyncRemoved], BETWEEN_LAUNCHES),
    of("all_gather::*", "st.release.sys.global", &[0, 1], &[OrderDropped], BETWEEN_LAUNCHES),
    of("all_gather::*", "ld.acquire.sys.global", &[0, 1], &[OrderDropped], BETWEEN_LAUNCHES),
];

/// Mutants that do no harm.
pub(super) const HARMLESS: &[Unreported] = &[
    of("full::*", "st.relaxed.gpu.global", &[0], &[ScopeNarrowed, MadePlain], RESET),
    of_one_block("rows::*", "fence.proxy.tensormap::generic.acquire", &[0]),
    of("plain::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], REGISTERS),
    of("plain::*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    drained("plain::*", &[4, 5, 6, 7, 8]),
    of("split_k::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], REGISTERS),
    of("split_k::*", "mbarrier.arrive.shared::cta", &[1], &[ArriveRemoved], LAST_SLOT),
    of("split_k::*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("ping_pong::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], REGISTERS),
    of("ping_pong::*", "wgmma.fence", &[1, 2, 3], &[RegisterFenceRemoved], ONE_SUM),
    of("ping_pong::*", "wgmma.commit_group", &[0], &[CommitRemoved], LATER_GROUP),
    of(
        "ping_pong::*",
        "wgmma.wait_group",
        &[0],
        &[GroupWaitRemoved, PendingRaised],
        "The wait after the other half's multiplication leaves no more pending, and only then is a stage released.",
    ),
    of(
        "ping_pong::*",
        "wgmma.wait_group",
        &[2, 3],
        &[GroupWaitRemoved, PendingRaised],
        "Two waits for all groups follow each other: either is enough.",
    ),
    of(
        "ping_pong::*",
        "mbarrier.try_wait.parity.acquire.cluster",
        &[0],
        &[ScopeNarrowed],
        THREADS_OF_THE_BLOCK,
    ),
    of("full::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], REGISTERS),
    of("full::*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of(
        "full::*",
        "barrier.sync ",
        &[9, 10],
        &[SyncRemoved],
        "Before any thread adds the bias, the warpgroup meets once more: when all have their part of C.",
    ),
    of("full::*", "mbarrier.try_wait.parity.acquire.cluster", &[0, 1], &[ScopeNarrowed], COPIES_OF_THE_BLOCK),
    of(
        "full::*",
        "barrier.sync ",
        &[0, 11, 12, 13, 14, 23, 24, 25, 26, 27, 28, 37],
        &[SyncRemoved],
        EDGE_OF_C,
    ),
    of("full::*", "fence.proxy.async.shared::cta", &[1, 3], &[FenceRemoved], EDGE_OF_C),
    drained("full::*", &[3, 4, 5, 6, 7]),
    of("rows::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], REGISTERS),
    of("rows::*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of(
        "rows::*",
        "mbarrier.try_wait.parity.acquire.cluster",
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18],
        &[ScopeNarrowed],
        THREADS_OF_THE_BLOCK,
    ),
    of("rows::*", "bar.warp", &[1], &[WarpSyncRemoved], CP_FENCEPROXY),
    of(
        "rows::*",
        "cp.async.bulk.wait_group ",
        &[0],
        &[GroupWaitRemoved, PendingRaised, OnlyRead],
        "Each store is followed by a wait until it has read its tile, and by then it has read its map.",
    ),
    of(
        "rows::*",
        "cp.async.bulk.wait_group ",
        &[1],
        &[GroupWaitRemoved, PendingRaised, OnlyRead],
        "Each store is followed by a wait until it has read its tile, and what it stores is written when the kernel has ended.",
    ),
    drained("rows::*", &[4, 5, 6]),
    of("promoted::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], FEW_REGISTERS),
    of("promoted::*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of(
        "promoted::*",
        "mbarrier.try_wait.parity.acquire.cluster",
        &[0, 1],
        &[ScopeNarrowed],
        THREADS_OF_THE_BLOCK,
    ),
    drained("promoted::*", &[3, 4, 5, 6]),
    last_wait("promoted::*", &[0]),
    of("attention::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], FEW_REGISTERS),
    of(
        "attention::*",
        "mbarrier.arrive",
        &[6],
        &[ArriveRemoved],
        "After the block's last multiplication nothing is loaded that would wait for the stage.",
    ),
    of("forward::bf16_t64x128", "setmaxnreg", &[0], &[RegistersRemoved], ENOUGH_REGISTERS),
    of("forward::*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of(
        "forward::bf16_t64x128",
        "barrier.sync ",
        &[0],
        &[SyncRemoved],
        "The warpgroup has met since all have read the biases of the tile before: to store it.",
    ),
    flag_before("one_shot::*"),
    flag_before("rounds_of_slots"),
    own_flag("two_shot::*"),
    own_flag("reduce_scatter::*"),
    own_flag("all_gather::*"),
    own_flag("rounds_of_sums"),
    own_flag("rounds_of_pieces"),
    own_flag("rounds_of_parts"),
];

/// Waits of `drain` before its last one.
const fn drained(kernel: &'static str, before: &'static [usize]) -> Unreported {
    of(kernel, "mbarrier.try_wait.parity.shared::cta", before, &[WaitRemoved, TriedOnce], DRAINED)
}

/// The read with which a kernel learns the round of a single barrier.
const fn flag_before(kernel: &'static str) -> Unreported {
    let reason = "A block reads a flag that it alone writes, before its barrier.";
    of(kernel, "ld.relaxed.sys.global", &[0], &[MadePlain, ScopeNarrowed], reason)
}

const FEW_REGISTERS: &str =
    "It decides how fast the kernel is: without it ptxas spills, and the results are the same.";
const ENOUGH_REGISTERS: &str =
    "Threads start with as many registers as those that multiply ask for: nobody waits for any.";
const LAST_SLOT: &str = "Nothing is loaded after the last step, so nothing waits for its slot.";
const RESET: &str =
    "The unit that counted last resets the count: what tells it so orders the additions before it.";
const NOT_SHOWN: &str = "The problem that is run does not show it.";
const BETWEEN_LAUNCHES: &str = "It orders launches, and simulated ranks end one before the next begins: kernels with several rounds show it.";
const THREADS_OF_THE_BLOCK: &str = "Only threads of the same block arrive there.";
const COPIES_OF_THE_BLOCK: &str =
    "A copy completes the phase, and the thread that arrives, of the same block, has written nothing.";
