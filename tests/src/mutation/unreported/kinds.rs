//! Mutants of a kind that many kernels have, and reasons that they share.

use super::Unreported;
use crate::mutation::steps::Change;
use crate::mutation::steps::Change::{
    ClusterArriveRelaxed, ClusterWaitRemoved, GroupWaitRemoved, InitFenceRemoved, MadePlain, OnlyRead,
    PendingRaised, ScopeNarrowed, WarpSyncRemoved,
};

/// The last wait of a kernel that only needs to wait for the reads.
pub(super) const fn last_wait(kernel: &'static str, before: &'static [usize]) -> Unreported {
    Unreported {
        kernel,
        instruction: ("cp.async.bulk.wait_group", before),
        changes: &[OnlyRead],
        reason: "The kernel's last step: what is stored is written for all when the kernel has ended.",
    }
}

/// The last rendezvous of a cluster in which no block uses another one's memory after that block
/// has seen the use.
pub(super) const fn last_barrier(
    kernel: &'static str,
    before: &'static [usize],
    reason: &'static str,
) -> Unreported {
    Unreported {
        kernel,
        instruction: ("barrier.cluster", before),
        changes: &[ClusterArriveRelaxed, ClusterWaitRemoved],
        reason,
    }
}

pub(super) const DRAINED: &str =
    "`drain` waits for a later stage after this one, and stages are released in turn.";
pub(super) const ENDS_LATER: &str =
    "Warps of the block wait for all copies: it ends after them, whether or not the copying warp waits.";
pub(super) const FIRST_FILLED: &str = "The first stages to be filled are empty from the beginning.";
pub(super) const FIRST_STORE: &str = "No store has used the buffer before.";
pub(super) const WAITED_FOR: &str = "Each block has waited for all that comes into its memory, and may end.";

/// A wait in a cluster for data that only copies deliver.
pub(super) const fn copies_alone(kernel: &'static str) -> Unreported {
    Unreported {
        kernel,
        instruction: ("mbarrier.try_wait.parity", &[0]),
        changes: &[ScopeNarrowed],
        reason: "Copies complete the phase: who waits sees what they brought, and of threads of other blocks there is nothing to see.",
    }
}

/// An init fence of mbarriers on which no copy completes.
pub(super) const fn no_copies(kernel: &'static str) -> Unreported {
    Unreported {
        kernel,
        instruction: ("fence.mbarrier_init", &[0]),
        changes: &[InitFenceRemoved],
        reason: "Only threads use the mbarriers, and `barrier.cluster` shows them the initialisation.",
    }
}

/// An init fence before a proxy fence.
pub(super) const fn proxy_fenced(kernel: &'static str) -> Unreported {
    Unreported {
        kernel,
        instruction: ("fence.mbarrier_init", &[0]),
        changes: &[InitFenceRemoved],
        reason: "`fence.proxy.async` comes after the initialisation, and before the cluster meets.",
    }
}

/// A synchronisation of a warp before it publishes a tensor map.
pub(super) const fn fence_of_warp(kernel: &'static str) -> Unreported {
    Unreported { kernel, instruction: ("bar.warp", &[0]), changes: &[WarpSyncRemoved], reason: CP_FENCEPROXY }
}

pub(super) const CP_FENCEPROXY: &str =
    "`tensormap.cp_fenceproxy` has `.sync`: it waits for the whole warp itself.";

/// Accesses of a kernel that tests the words for these accesses.
pub(super) const fn words(
    kernel: &'static str,
    opcode: &'static str,
    before: &'static [usize],
    changes: &'static [Change],
) -> Unreported {
    Unreported {
        kernel,
        instruction: (opcode, before),
        changes,
        reason: "The kernel tests the words: nobody else accesses the element meanwhile, or nothing depends on \
                 what this orders.",
    }
}

/// A strong access, or a fence of a map, within one block.
pub(super) const fn of_one_block(
    kernel: &'static str,
    opcode: &'static str,
    before: &'static [usize],
) -> Unreported {
    Unreported {
        kernel,
        instruction: (opcode, before),
        changes: &[ScopeNarrowed],
        reason: "Only threads of one block access this while it may change.",
    }
}

/// The reads with which `sync_team` learns its round, in a kernel that calls it twice.
pub(super) const fn own_flag(kernel: &'static str) -> Unreported {
    Unreported {
        kernel,
        instruction: ("ld.relaxed.sys.global", &[0, 1]),
        changes: &[MadePlain, ScopeNarrowed],
        reason: "A block reads a flag that it alone writes, between two of its barriers.",
    }
}

/// Mutants of a step.
pub(super) const fn of(
    kernel: &'static str,
    opcode: &'static str,
    before: &'static [usize],
    changes: &'static [Change],
    reason: &'static str,
) -> Unreported {
    Unreported { kernel, instruction: (opcode, before), changes, reason }
}

/// A wait for a group whose results are only used after a later wait.
pub(super) const fn early_wait(kernel: &'static str, before: &'static [usize]) -> Unreported {
    of(kernel, "wgmma.wait_group", before, &[GroupWaitRemoved, PendingRaised], NO_STATE)
}

pub(super) const REGISTERS: &str =
    "It decides how fast the kernel is: the registers suffice also without it.";
pub(super) const READ_BY_ALL: &str = "The simulator executes a multiplication of a warpgroup as one step: a thread that has waited for it knows \
     that all warps have read.";
pub(super) const ONE_SUM: &str = "Nothing uses the registers after the fence before: the next multiplication adds to the same sum, or begins one.";
pub(super) const LATER_GROUP: &str =
    "The multiplication is then of the next group, which is waited for before anything of it is used.";
pub(super) const NO_STATE: &str =
    "The flight keeps nothing that is used again here, and a later wait is for all.";
