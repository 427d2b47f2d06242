//! The mutants that are not found, each with the reason: those that do no harm, and those that the
//! simulator cannot detect.

mod kinds;
mod library;

use std::fmt;

use self::kinds::{
    DRAINED, ENDS_LATER, FIRST_FILLED, FIRST_STORE, LATER_GROUP, NO_STATE, ONE_SUM, READ_BY_ALL, REGISTERS,
    WAITED_FOR, copies_alone, early_wait, fence_of_warp, last_barrier, last_wait, no_copies, of,
    of_one_block, own_flag, proxy_fenced, words,
};
use super::line::Instruction;
use super::steps::Change;
use super::steps::Change::{
    ArriveRemoved, ArriveTwice, ClusterArriveRelaxed, CommitRemoved, CountLowered, FenceRemoved,
    GroupWaitRemoved, InvalRemoved, MadePlain, OrderDropped, PendingRaised, RegisterFenceRemoved,
    RegistersRemoved, ScopeNarrowed, SyncRemoved, TriedOnce, WaitRemoved, WarpSyncRemoved,
};
use super::trial::Trial;

/// Mutants of an instruction, or of several similar ones, that the simulator does not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreported {
    /// The kernel's name. A `*` at its end matches all names with that prefix.
    pub kernel: &'static str,
    /// The instructions: their opcode or its first parts (the whole opcode, if a space ends it),
    /// and for each of them the number of instructions with the same opcode before it.
    pub instruction: (&'static str, &'static [usize]),
    /// The changes to the instruction.
    pub changes: &'static [Change],
    /// The reason why the changes do no harm, or are not detected.
    pub reason: &'static str,
}

/// The mutants of a set of kernels that are not reported.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    /// Mutants that do no harm, because the kernel does not need these steps.
    pub harmless: &'static [Unreported],
    /// Mutants that do harm, which the simulator cannot detect yet.
    pub missed: &'static [Unreported],
}

/// The lists for the kernels of the corpus and of the examples.
pub const TREE: Lists = Lists { harmless: HARMLESS, missed: MISSED };

/// The lists for the kernels of `tma-kernels`, some of which have the names of examples.
pub const LIBRARY: Lists = Lists { harmless: library::HARMLESS, missed: library::MISSED };

const MISSED: &[Unreported] = &[
    of("tensor_cores", "barrier.sync.aligned", &[1], &[SyncRemoved], READ_BY_ALL),
    of("clustered", "mbarrier.init", &[1, 3, 5], &[CountLowered], READ_BY_ALL),
    of("mma_producer_warp::*", "barrier.sync ", &[0], &[SyncRemoved], READ_BY_ALL),
    of("mma_producer_warp_beside_two::*", "barrier.sync ", &[0, 1], &[SyncRemoved], READ_BY_ALL),
    of(
        "optional_slices",
        "barrier.sync",
        &[0],
        &[SyncRemoved],
        "It separates accesses to global memory, where races are found only on request.",
    ),
    of(
        "tiles_of_peers",
        "fence.proxy.async.global",
        &[0],
        &[FenceRemoved],
        "The simulator requires the fence behind writes of threads, but not behind a copy that another \
         thread has waited for.",
    ),
    Unreported {
        kernel: "fence_last_block",
        instruction: ("fence.acq_rel.gpu", &[1]),
        changes: &[ScopeNarrowed],
        reason: "What several blocks have released at the scope of the device is kept together, and whoever \
                 acquires in a narrower scope gets it, too.",
    },
    Unreported {
        kernel: "tma_copy_pipelined::deep",
        instruction: ("atom.acq_rel.gpu.global.add", &[0]),
        changes: &[OrderDropped],
        reason: "Strong stores to one element follow each other as they are made: the reset of the counter does \
                 not come before an addition.",
    },
];

const HARMLESS: &[Unreported] = &[
    own_flag("all_reduce"),
    own_flag("tiles_of_peers"),
    words("order_floats", "atom.acq_rel.cta.shared.add", &[0], &[OrderDropped]),
    words("order_floats", "atom.acq_rel.gpu.global.add.f64", &[0], &[OrderDropped, ScopeNarrowed]),
    words("order_floats", "atom.acquire.sys.global.add.f32", &[0], &[OrderDropped, ScopeNarrowed]),
    words("order_floats", "atom.relaxed.gpu.global.add.noftz.f16", &[0], &[ScopeNarrowed]),
    words("order_floats", "atom.relaxed.gpu.global.cas.b64", &[0, 1], &[ScopeNarrowed]),
    words("order_floats", "atom.release.gpu.global.add.noftz.bf16", &[0], &[OrderDropped, ScopeNarrowed]),
    words("order_floats", "st.relaxed.cta.shared", &[0], &[MadePlain]),
    words("order_integers*", "atom.acq_rel.cta.shared.and", &[0], &[OrderDropped]),
    words("order_integers*", "atom.acq_rel.gpu.global", &[0], &[OrderDropped]),
    words("order_integers*", "atom.acquire.cta.shared.min", &[0], &[OrderDropped]),
    words("order_integers*", "atom.acquire.gpu.global.min", &[0], &[OrderDropped]),
    words("order_integers*", "atom.relaxed.cluster.shared.or", &[0], &[ScopeNarrowed]),
    words("order_integers*", "atom.release.cluster.shared.max", &[0], &[OrderDropped, ScopeNarrowed]),
    words("order_integers*", "atom.release.sys.global.max", &[0], &[OrderDropped]),
    words("order_integers*", "st.relaxed.cta.shared", &[0], &[MadePlain]),
    words("order_moved*", "ld.acquire.cta.shared", &[0], &[MadePlain, OrderDropped]),
    words("order_moved*", "ld.acquire.gpu.global", &[0], &[MadePlain, OrderDropped, ScopeNarrowed]),
    words("order_moved*", "st.release.cta.shared", &[0], &[MadePlain, OrderDropped]),
    words("order_moved*", "st.release.sys.global", &[0], &[MadePlain, OrderDropped, ScopeNarrowed]),
    words("order_other_blocks", "atom.acq_rel.cluster", &[0], &[OrderDropped, ScopeNarrowed]),
    words("order_other_blocks", "atom.relaxed.cluster", &[0], &[ScopeNarrowed]),
    words("order_other_blocks", "atom.release.cluster", &[0], &[OrderDropped, ScopeNarrowed]),
    words("order_other_blocks", "ld.acquire.cta.shared", &[0], &[MadePlain, OrderDropped]),
    words("order_other_blocks", "st.relaxed.cluster.shared", &[0], &[MadePlain, ScopeNarrowed]),
    words("order_other_blocks", "st.release.cluster", &[0], &[MadePlain, OrderDropped, ScopeNarrowed]),
    words("order_vectors", "red.release", &[0], &[OrderDropped]),
    of_one_block("order_last_block", "atom.relaxed.gpu.global.add", &[0]),
    of_one_block("fence_last_block", "atom.relaxed.gpu.global.add", &[1]),
    of_one_block("cluster_sum*", "atom.relaxed.gpu.global.add", &[0]),
    of_one_block("descriptor_cube", "fence.proxy.tensormap::generic.acquire", &[0]),
    of_one_block("descriptor_use", "fence.proxy.tensormap::generic.acquire", &[0]),
    of_one_block("descriptor_line", "fence.proxy.tensormap::generic.acquire", &[0]),
    of_one_block("tma_grouped_copy", "fence.proxy.tensormap::generic.acquire", &[0, 1]),
    Unreported {
        kernel: "tma_copy_pipelined::deep",
        instruction: ("st.relaxed.gpu.global", &[0, 1]),
        changes: &[MadePlain, ScopeNarrowed],
        reason: "The last cluster resets the queue: the count that tells it so orders all that came before.",
    },
    Unreported {
        kernel: "order_other_blocks",
        instruction: ("barrier.cluster.arrive.release", &[0]),
        changes: &[ClusterArriveRelaxed],
        reason: "All accesses before and behind it have an order, and do not race with each other.",
    },
    last_barrier("cluster_ring::one", &[1], "The cluster is one block."),
    last_barrier("remote_announced", &[2], WAITED_FOR),
    copies_alone("remote_announced"),
    Unreported {
        kernel: "remote_announced",
        instruction: ("mbarrier.arrive.expect_tx.release", &[0]),
        changes: &[ScopeNarrowed],
        reason: "It announces bytes, and its thread has written nothing.",
    },
    copies_alone("multicast_mask"),
    copies_alone("multicast_from_each::*"),
    copies_alone("multicast_4"),
    copies_alone("multicast_by_*"),
    copies_alone("multicast_rows_by_*"),
    copies_alone("bulk_multicast"),
    copies_alone("bulk_next"),
    copies_alone("bulk_into::*"),
    copies_alone("bulk_operations"),
    copies_alone("column_multicast"),
    copies_alone("forms_1"),
    copies_alone("forms_2"),
    copies_alone("forms_3"),
    copies_alone("forms_4"),
    copies_alone("forms_5"),
    last_barrier("multicast_*", &[1], WAITED_FOR),
    last_barrier("bulk_multicast", &[1], WAITED_FOR),
    last_barrier("column_multicast", &[1], WAITED_FOR),
    of(
        "multicast_persistent_copy::three",
        "mbarrier.try_wait.parity",
        &[1, 2],
        &[WaitRemoved, TriedOnce],
        DRAINED,
    ),
    of(
        "multicast_persistent_copy::four",
        "mbarrier.try_wait.parity",
        &[1, 2, 3],
        &[WaitRemoved, TriedOnce],
        DRAINED,
    ),
    of("multicast_ring_leader", "mbarrier.try_wait.parity", &[2, 3], &[WaitRemoved, TriedOnce], DRAINED),
    Unreported {
        kernel: "multicast_ring_leader",
        instruction: ("mbarrier.arrive.shared::cluster", &[0, 1, 2, 3, 4, 5, 6, 7]),
        changes: &[ArriveRemoved, ArriveTwice],
        reason: "The unrolled part of a loop over the cluster's blocks: it takes eight of them, and these clusters have fewer.",
    },
    of("multicast_ring_products", "mbarrier.try_wait.parity", &[1, 2], &[WaitRemoved, TriedOnce], DRAINED),
    Unreported {
        kernel: "multicast_ring_products",
        instruction: ("mbarrier.init", &[5]),
        changes: &[CountLowered],
        reason: "Of the third stage, which is filled once: only `drain` waits for it, and waits for a later one after it.",
    },
    proxy_fenced("bulk_multicast"),
    proxy_fenced("bulk_next"),
    proxy_fenced("bulk_into::*"),
    proxy_fenced("bulk_operations"),
    of("mma_producer_warp_beside_two::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], REGISTERS),
    of("mma_flights", "setmaxnreg", &[0], &[RegistersRemoved], REGISTERS),
    of("mma_flights", "wgmma.fence", &[1, 2, 3], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_flights", "wgmma.commit_group", &[0, 1, 2], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_flights", &[0, 1, 3]),
    of("mma_flights", "wgmma.wait_group", &[2], &[PendingRaised], NO_STATE),
    of("mma_transposed", "wgmma.fence", &[1, 2], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_transposed", "wgmma.commit_group", &[0, 1], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_transposed", &[0, 1]),
    of(
        "mma_registers",
        "barrier.sync",
        &[14, 15],
        &[SyncRemoved],
        "The last of each warpgroup: nobody stores to the tile again.",
    ),
    of("mma_halves", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_halves", "wgmma.commit_group", &[0], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_halves", &[0]),
    of("mma_loaded::*", "wgmma.commit_group", &[0], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_loaded::*", &[0]),
    of("mma_bits_loaded", "wgmma.commit_group", &[0], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_bits_loaded", &[0]),
    of("mma_marked_in_turns", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_marked_in_turns", "wgmma.commit_group", &[0], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_marked_in_turns", &[0]),
    of("mma_pa*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_pa*", "wgmma.commit_group", &[0], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_pa*", &[0]),
    last_wait("mma_pa*", &[0]),
    of("mma_batches", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    last_wait("mma_batches", &[0]),
    of("mma_saturating::*", "wgmma.fence", &[1, 3], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_saturating::*", "wgmma.commit_group", &[0, 2], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_saturating::*", &[0, 2]),
    of("mma_bits::*", "wgmma.fence", &[1, 2], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_bits::*", "wgmma.commit_group", &[0, 1], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_bits::*", &[0, 1]),
    of("mma_sparse_bands", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_sparse_bands", "wgmma.commit_group", &[0], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_sparse_bands", &[0]),
    of("mma_sparse_fragment::*", "wgmma.fence", &[2], &[RegisterFenceRemoved], ONE_SUM),
    of("mma_sparse_fragment::*", "wgmma.commit_group", &[1], &[CommitRemoved], LATER_GROUP),
    early_wait("mma_sparse_fragment::*", &[1]),
    of("attention::*", "setmaxnreg.inc", &[0], &[RegistersRemoved], REGISTERS),
    of("dense_gemm::*", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("pipelined", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("specialised", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("persistent", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("clustered", "wgmma.fence", &[1], &[RegisterFenceRemoved], ONE_SUM),
    of("pipelined", "mbarrier.try_wait.parity", &[0], &[WaitRemoved, TriedOnce], FIRST_FILLED),
    of("specialised", "mbarrier.try_wait.parity", &[1, 2, 3, 4], &[WaitRemoved, TriedOnce], ENDS_LATER),
    of("persistent", "mbarrier.try_wait.parity", &[3, 4, 5, 6], &[WaitRemoved, TriedOnce], ENDS_LATER),
    of("clustered", "mbarrier.try_wait.parity", &[3, 4, 5], &[WaitRemoved, TriedOnce], DRAINED),
    of("tensor_cores", "cp.async.bulk.wait_group", &[0], &[GroupWaitRemoved, PendingRaised], FIRST_STORE),
    of("pipelined", "cp.async.bulk.wait_group", &[0], &[GroupWaitRemoved, PendingRaised], FIRST_STORE),
    of("specialised", "cp.async.bulk.wait_group", &[0], &[GroupWaitRemoved, PendingRaised], FIRST_STORE),
    of("tensor_cores", "barrier.sync ", &[0], &[SyncRemoved], FIRST_STORE),
    of("pipelined", "barrier.sync ", &[0], &[SyncRemoved], FIRST_STORE),
    of("specialised", "barrier.sync ", &[0, 1], &[SyncRemoved], FIRST_STORE),
    of("dense_gemm::*", "mbarrier.try_wait.parity", &[0], &[WaitRemoved, TriedOnce], FIRST_FILLED),
    fence_of_warp("descriptor_cube"),
    fence_of_warp("descriptor_make"),
    fence_of_warp("tma_grouped_copy"),
    last_barrier("forms_*", &[1], WAITED_FOR),
    no_copies("forms_waits"),
    Unreported {
        kernel: "pipeline_in_place",
        instruction: ("fence.proxy.async", &[1]),
        changes: &[FenceRemoved],
        reason: "The fence before the store lies behind the reads as well.",
    },
    Unreported {
        kernel: "forms_waits",
        instruction: ("mbarrier.arrive.release", &[0, 1]),
        changes: &[ScopeNarrowed],
        reason: "Nothing is written before the arrival.",
    },
    Unreported {
        kernel: "forms_waits",
        instruction: ("mbarrier.try_wait.acquire", &[0]),
        changes: &[ScopeNarrowed],
        reason: "Nothing is read after the wait that threads of other blocks have written.",
    },
    Unreported {
        kernel: "forms_waits",
        instruction: ("mbarrier.test_wait.parity", &[0]),
        changes: &[ScopeNarrowed],
        reason: "The same.",
    },
    copies_alone("sliced_x::*"),
    copies_alone("sliced_y::*"),
    copies_alone("sliced_z"),
    copies_alone("sliced_all::*"),
    copies_alone("sliced_row"),
    copies_alone("sliced_5"),
    copies_alone("slice_of_plane"),
    copies_alone("slice_of_line"),
    copies_alone("slice_of_pixels"),
    Unreported {
        kernel: "sliced_both_ways",
        instruction: ("mbarrier.try_wait.parity", &[0, 1]),
        changes: &[ScopeNarrowed],
        reason: "Its waits are for copies, and for reads that are over.",
    },
    Unreported {
        kernel: "sliced_both_ways",
        instruction: ("mbarrier.arrive.release", &[0]),
        changes: &[ScopeNarrowed],
        reason: "It tells that reads are over.",
    },
    last_barrier("sliced_x::*", &[1], WAITED_FOR),
    last_barrier("sliced_y::*", &[1], WAITED_FOR),
    last_barrier("sliced_z", &[1], WAITED_FOR),
    last_barrier("sliced_all::*", &[1], WAITED_FOR),
    last_barrier("sliced_row", &[1], WAITED_FOR),
    last_barrier("sliced_5", &[1], WAITED_FOR),
    last_barrier("slice_of_plane", &[1], WAITED_FOR),
    last_barrier("slice_of_line", &[1], WAITED_FOR),
    last_barrier("slice_of_pixels", &[1], WAITED_FOR),
    Unreported {
        kernel: "cluster_shared_tile",
        instruction: ("barrier.cluster.arrive", &[0]),
        changes: &[ClusterArriveRelaxed],
        reason: "The blocks meet to know that all have started: there is nothing yet to release.",
    },
    Unreported {
        kernel: "remote_announced",
        instruction: ("barrier.cluster.arrive", &[1]),
        changes: &[ClusterArriveRelaxed],
        reason: "An mbarrier counts arrivals and bytes in any order, and no phase ends without the arrival.",
    },
    Unreported {
        kernel: "phase_another_barrier",
        instruction: ("mbarrier.try_wait.parity", &[1, 2]),
        changes: &[TriedOnce],
        reason: "All threads meet after the wait: by then the phase is complete.",
    },
    Unreported {
        kernel: "phase_another_barrier",
        instruction: ("mbarrier.try_wait.parity", &[3]),
        changes: &[WaitRemoved, TriedOnce],
        reason: "All threads meet after the wait: by then the phase is complete.",
    },
    Unreported {
        kernel: "phase_another_barrier",
        instruction: ("bar.warp", &[0, 1, 2]),
        changes: &[WarpSyncRemoved],
        reason: "All threads meet before anything of another one is read.",
    },
    Unreported {
        kernel: "phase_another_barrier",
        instruction: ("barrier.sync", &[5, 6, 7]),
        changes: &[SyncRemoved],
        reason: "The wait before it has told of all threads' writes already.",
    },
    Unreported {
        kernel: "pipeline_both_sides",
        instruction: ("mbarrier.try_wait.parity", &[0]),
        changes: &[TriedOnce],
        reason: "One thread is producer and consumer: it has released the stage itself.",
    },
    Unreported {
        kernel: "pipeline_lives",
        instruction: ("mbarrier.test_wait.parity", &[0, 2, 3, 5]),
        changes: &[WaitRemoved],
        reason: "`ready` is asked before a wait for the same phase.",
    },
    Unreported {
        kernel: "pipeline_lives",
        instruction: ("mbarrier.try_wait.parity", &[0, 3, 4, 7]),
        changes: &[WaitRemoved, TriedOnce],
        reason: "`ready` has waited for the same phase.",
    },
    of("pipeline_lives", "mbarrier.try_wait.parity", &[1, 5], &[WaitRemoved, TriedOnce], DRAINED),
    Unreported {
        kernel: "pipeline_lives",
        instruction: ("mbarrier.test_wait.parity", &[1, 4]),
        changes: &[WaitRemoved],
        reason: "It is only asserted that the ring is empty.",
    },
    Unreported {
        kernel: "pipeline_lives",
        instruction: ("barrier.sync", &[1, 3]),
        changes: &[SyncRemoved],
        reason: "`drain` has told that all is read, and the next life, if there is one, begins with a meeting.",
    },
    Unreported {
        kernel: "pipeline_lives",
        instruction: ("mbarrier.inval", &[4, 5, 6, 7]),
        changes: &[InvalRemoved],
        reason: "The barriers' last life ends with their block, and their memory is not used again.",
    },
    no_copies("remote_hand_over::*"),
    no_copies("remote_meeting"),
    Unreported {
        kernel: "remote_hand_over::*",
        instruction: ("mbarrier.init", &[1, 3]),
        changes: &[CountLowered],
        reason: "The warp has met before it arrives, so that 31 arrivals tell as much as 32, in as few rounds as these.",
    },
    Unreported {
        kernel: "remote_hand_over::*",
        instruction: ("mbarrier.try_wait.parity", &[0]),
        changes: &[ScopeNarrowed],
        reason: "The memory was read, and is written again: that the reads are over is known within the scope of a block, too.",
    },
    Unreported {
        kernel: "remote_hand_over::*",
        instruction: ("mbarrier.arrive.release", &[1]),
        changes: &[ScopeNarrowed],
        reason: "The same, of the arrival that tells of the reads.",
    },
    Unreported {
        kernel: "remote_hand_over::*",
        instruction: ("bar.warp", &[0]),
        changes: &[WarpSyncRemoved],
        reason: "Each of the 32 threads arrives for what it has read itself.",
    },
    last_wait("groups_of_two", &[1]),
    last_wait("reductions_1", &[7]),
    last_wait("reductions_3", &[7]),
    last_wait("reductions_4", &[7]),
    last_wait("reductions_5", &[7]),
    Unreported {
        kernel: "place_named_barriers",
        instruction: ("barrier.sync", &[4]),
        changes: &[SyncRemoved],
        reason: "Two warps meet for the sake of meeting; nothing in shared memory is touched after it.",
    },
    Unreported {
        kernel: "barrier_try_wait",
        instruction: ("mbarrier.try_wait.parity.shared::cta.b64", &[0]),
        changes: &[WaitRemoved, TriedOnce],
        reason: "The wait shows that the phase before the first counts as over: it never blocks.",
    },
    Unreported {
        kernel: "barrier_lives",
        instruction: ("mbarrier.inval.shared::cta.b64", &[3]),
        changes: &[InvalRemoved],
        reason: "The barrier's last life ends with its block, and its memory is not used again.",
    },
    Unreported {
        kernel: "tensor_stores",
        instruction: ("cp.async.bulk.wait_group.read", &[0]),
        changes: &[GroupWaitRemoved, PendingRaised],
        reason: "First of eight unrolled rounds: there is no group yet.",
    },
    Unreported {
        kernel: "tensor_stores",
        instruction: ("barrier.sync.aligned", &[0]),
        changes: &[SyncRemoved],
        reason: "First round: no store has been issued, and nothing read the tile.",
    },
    Unreported {
        kernel: "tensor_stores",
        instruction: ("cp.async.bulk.wait_group.read", &[1]),
        changes: &[GroupWaitRemoved, PendingRaised],
        reason: "Second round: there is one group, and one may be pending.",
    },
    Unreported {
        kernel: "tensor_stores",
        instruction: ("barrier.sync.aligned", &[2]),
        changes: &[SyncRemoved],
        reason: "Second round: its tile, the other one, is not in use yet.",
    },
];

impl Lists {
    /// Returns whether a mutant is listed as harmless.
    pub fn is_harmless(&self, trial: &Trial) -> bool {
        self.harmless.iter().any(|entry| entry.is_of(trial))
    }

    /// Returns whether a mutant is listed as missed.
    pub fn is_missed(&self, trial: &Trial) -> bool {
        self.missed.iter().any(|entry| entry.is_of(trial))
    }
}

impl Unreported {
    /// Returns whether `trial` is one of this entry's mutants.
    pub fn is_of(&self, trial: &Trial) -> bool {
        let (parts, before) = self.instruction;
        let is_kernel = match self.kernel.strip_suffix('*') {
            Some(start) => trial.kernel.starts_with(start),
            None => trial.kernel == self.kernel,
        };
        let is_opcode = |instruction: Instruction<'_>| match parts.strip_suffix(' ') {
            Some(whole) => instruction.opcode == whole,
            None => instruction.is(parts),
        };
        is_kernel
            && before.contains(&trial.index)
            && self.changes.contains(&trial.change)
            && Instruction::parse(&trial.instruction).is_some_and(is_opcode)
    }
}

impl fmt::Display for Unreported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, instruction: (opcode, before), changes, reason } = self;
        let numbers: Vec<_> = before.iter().map(|before| (before + 1).to_string()).collect();
        let changes: Vec<_> = changes.iter().map(Change::to_string).collect();
        let (opcode, numbers, changes) = (opcode.trim_end(), numbers.join(", "), changes.join(", "));
        write!(f, "| `{kernel}` | `{opcode}`, no. {numbers} | {changes} | {reason} |")
    }
}
