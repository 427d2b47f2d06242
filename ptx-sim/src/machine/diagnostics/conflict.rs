//! Findings for conflicts between two accesses to shared memory.

use tma_model::sync::{Epoch, Hazard};

use crate::machine::Machine;
use crate::machine::global::mixed_sizes;
use crate::machine::index::{BlockRank, OperationId, ThreadId};
use crate::machine::memory::{Conflict, IN_FLIGHT, OPAQUE, Problem, SharedPlace};
use crate::machine::types::Action;
use crate::report::{Finding, FindingKind, Help};

/// The kind of the later access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Act {
    /// A read by a thread.
    Read,
    /// A write by a thread.
    Write,
    /// A read by a copy that starts now.
    CopyOut,
    /// A write by a copy that starts now.
    CopyIn,
    /// A read by a `wgmma` that starts now.
    Multiply,
}

/// The kind of the earlier access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Earlier {
    /// An access by a thread.
    Thread,
    /// An access by an asynchronous copy.
    Copy,
    /// A read by a `wgmma`.
    Multiplication,
    /// No access: the bytes hold an mbarrier.
    Mbarrier,
}

const RELEASE: &str = "let the threads that read arrive at an mbarrier, \
                       [[`slot.release()` or `empty.arrive()`||`mbarrier.arrive`]], or all meet, \
                       [[`sync_threads()`||`bar.sync`]], and wait for that before the load is issued";
const FENCE: &str = "[[`fence_proxy_async()`||`fence.proxy.async`]] between the write and the copy: after the writes, \
                     before the barrier that orders them";
const FENCE_OPERANDS: &str = "[[`fence_proxy_async()`||`fence.proxy.async.shared::cta`]] in each thread that has written, after its \
                              writes and before the barrier that orders them before the multiplication";
const WAIT_MULTIPLICATION: &str = "[[`flight.wait()`||`wgmma.wait_group`]] by the warpgroup that multiplies, before it tells \
                                   others that the operands may be overwritten";
const FENCE_READS: &str = "[[`fence_proxy_async()`||`fence.proxy.async.shared::cta`]] in each thread that has read, after its \
                           reads and before it arrives or meets: threads read through the generic proxy, copies write \
                           through the asynchronous one[[. The `release` of a pipeline's slot begins with it||]]";
const WAIT_READ: &str = "[[`bulk_commit_group()`||`cp.async.bulk.commit_group`]] and \
                         [[`bulk_wait_group_read::<0>()`||`cp.async.bulk.wait_group.read`]] before this, by the thread that \
                         issued the store, and a barrier if another thread goes on";
const WAIT_COPY: &str = "wait for the mbarrier that the copy counts at, before this; of a `cp.async` with groups: `cp.async.commit_group` \
                         and `cp.async.wait_group` (or `cp.async.wait_all`) by the thread that issued it, and a barrier if another \
                         thread goes on";
const TELL: &str = "[[`remote(barrier, rank).arrive()`||`mbarrier.arrive.release.cluster`]] by who wrote, and a wait[[|| with \
                    `.acquire.cluster`]]: within the scope of a block, [[as a pipeline's `release_to(..)` has it||which is the \
                    default]], an arrival at another block's mbarrier tells nothing of what was written";
const ORDER: &str = "a barrier that both threads take part in, between the two: [[`sync_threads()`||`bar.sync`]] within a \
                     block, [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]] between blocks";

impl Machine {
    /// Reports a conflict between `action` and an earlier access, in the shared memory of block
    /// `rank`.
    #[cold]
    pub(in crate::machine) fn conflict(
        &mut self,
        action: Action,
        act: Act,
        rank: BlockRank,
        conflict: Conflict,
    ) {
        let finding = self.explain(action, act, rank, conflict);
        self.diagnostics.report(finding);
    }

    fn explain(&self, action: Action, act: Act, rank: BlockRank, conflict: Conflict) -> Finding {
        let (log, at) = (&self.diagnostics, conflict.at);
        let of_cluster = if self.shape.blocks > 1 { " of the cluster" } else { "" };
        let place = format!("shared memory at {}{of_cluster}", log.place(SharedPlace { rank, at }));
        let hazard = match conflict.problem {
            Problem::Hazard(hazard) => hazard,
            Problem::Unwritten => {
                let message = format!("{place} is read, but nobody has written it");
                return Finding::new(FindingKind::Uninitialised, message).with(log.party(action));
            }
        };
        if let Some(bytes) = conflict.mixed {
            let other = log.actor_at(self.shape.thread(conflict.other).unwrap_or(action.who), conflict.line);
            let finding = mixed_sizes(&place, bytes).with(log.party(action));
            return finding.with(log.party(other.does("changed it")));
        }
        let earlier = match conflict.other.component() {
            OPAQUE => Earlier::Mbarrier,
            _ if self.shape.thread(conflict.other).is_some() => Earlier::Thread,
            _ if self.tensor_cores.is_group(conflict.other) => Earlier::Multiplication,
            _ => Earlier::Copy,
        };
        let (kind, what, remedy) = explain(act, earlier, hazard, conflict.other_writes);
        let help = match remedy {
            Remedy::Text(text) => text.into(),
            Remedy::Wait if conflict.copied => WAIT_COPY.into(),
            Remedy::Wait => self.wait_for(conflict.other),
        };
        let (who, does) = match earlier {
            Earlier::Thread if conflict.other_writes => (self.shape.thread(conflict.other), "wrote"),
            Earlier::Thread => (self.shape.thread(conflict.other), "read"),
            Earlier::Copy => (self.issuer(conflict.other), "issued the copy"),
            Earlier::Multiplication => (self.issuer(conflict.other), "issued the multiplication"),
            Earlier::Mbarrier => (None, "has the mbarrier from"),
        };
        let other = log.actor_at(who.unwrap_or(action.who), conflict.line).does(does);
        let finding = Finding::new(kind, format!("{place} {what}"))
            .help(help)
            .with(log.party(action))
            .with(log.party(other));
        if kind == FindingKind::ReadBeforeWait {
            return self.with_early_wait(finding, action, conflict.other);
        }
        finding
    }

    /// Returns the help to wait for the data of `load`.
    fn wait_for(&self, load: Epoch) -> Help {
        let place = match load.component() {
            IN_FLIGHT => self.engines.completes_on(OperationId(load.count())),
            component => {
                let mut all = self.barriers.all_mbarriers();
                all.find(|(_, mbarrier)| mbarrier.component == component).map(|(place, _)| place)
            }
        };
        let wait =
            place.map_or_else(|| "barrier.wait(..)".to_owned(), |place| self.diagnostics.wait_at(place.at));
        let help = "before this, wait for the phase of the mbarrier that the load's bytes count for";
        format!("{help}: [[`{wait}`||`mbarrier.try_wait`]]").into()
    }

    /// Adds the last wait of the reader to the finding, if it was at the mbarrier of the load but
    /// for an earlier phase.
    fn with_early_wait(&self, finding: Finding, action: Action, load: Epoch) -> Finding {
        let Some(passed) = self.barriers.passed(action.who) else { return finding };
        let Some(mbarrier) = self.barriers.mbarrier(passed.place) else { return finding };
        // The phase that the load's bytes count for, from 1.
        let phase = match load.component() {
            IN_FLIGHT if self.engines.completes_on(OperationId(load.count())) == Some(passed.place) => {
                mbarrier.next_phase().count()
            }
            component if component == mbarrier.component => load.count(),
            _ => return finding,
        };
        if phase <= passed.phase {
            return finding;
        }
        // Phase n, counted from 0, has parity n & 1.
        let (waited, wanted) = (passed.phase.wrapping_sub(1) & 1, phase.wrapping_sub(1) & 1);
        let log = &self.diagnostics;
        let wait = Action { who: action.who, site: passed.site, does: "waited, for a phase before" };
        finding.with(log.party(wait)).help(format!(
            "that wait, with parity {waited}, was over before the load: the load counts at the mbarrier at {} for a later \
             phase; wait for parity {wanted}[[, with `wait({wanted})`||]]",
            log.place(passed.place)
        ))
    }

    /// Returns the thread that issued the copy of an asynchronous step.
    fn issuer(&self, step: Epoch) -> Option<ThreadId> {
        match step.component() {
            IN_FLIGHT => self.engines.issuer(OperationId(step.count())),
            component => self.order.agent(component),
        }
    }
}

/// The fix that a finding suggests.
#[derive(Clone, Copy, Debug)]
enum Remedy {
    /// A wait for a load or for a `cp.async`.
    Wait,
    Text(&'static str),
}

fn explain(act: Act, earlier: Earlier, hazard: Hazard, wrote: bool) -> (FindingKind, &'static str, Remedy) {
    use FindingKind::{InFlight, MissingProxyFence, OpaqueAccess, Race, ReadBeforeWait};
    use FindingKind::{RefillBeforeRelease, UnfencedRefill};
    match (act, earlier) {
        (_, Earlier::Mbarrier) => (
            OpaqueAccess,
            "is part of an mbarrier, whose bits are opaque",
            Remedy::Text("[[`invalidate()`||`mbarrier.inval`]] before its memory is used for anything else"),
        ),
        (_, Earlier::Thread | Earlier::Copy | Earlier::Multiplication) if hazard == Hazard::Untold => {
            (Race, "was written before, but need not be seen by another block", Remedy::Text(TELL))
        }
        (Act::CopyIn, Earlier::Thread) if hazard == Hazard::NoProxyFence && !wrote => (
            UnfencedRefill,
            "is loaded into after a thread has read it, and no proxy fence lies between",
            Remedy::Text(FENCE_READS),
        ),
        (Act::Multiply, _) if hazard == Hazard::NoProxyFence => (
            MissingProxyFence,
            "was written by a thread, and the tensor core need not see that: no proxy fence lies between",
            Remedy::Text(FENCE_OPERANDS),
        ),
        (Act::CopyOut | Act::CopyIn, _) if hazard == Hazard::NoProxyFence => (
            MissingProxyFence,
            "was written by a thread, and the asynchronous proxy need not see that: no proxy fence lies between",
            Remedy::Text(FENCE),
        ),
        (Act::Read, Earlier::Copy) => {
            (ReadBeforeWait, "is read, but the load that brings it is not known to be complete", Remedy::Wait)
        }
        (Act::CopyOut, Earlier::Copy) => (
            ReadBeforeWait,
            "is stored from, but the load that brings it is not known to be complete",
            Remedy::Wait,
        ),
        (Act::Multiply, Earlier::Copy) => (
            ReadBeforeWait,
            "is multiplied, but the load that brings it is not known to be complete",
            Remedy::Wait,
        ),
        (Act::Multiply, Earlier::Thread) => {
            (Race, "is multiplied while a thread may still write it", Remedy::Text(ORDER))
        }
        (Act::Write, Earlier::Multiplication) => (
            InFlight,
            "is written while a multiplication may still read it",
            Remedy::Text(WAIT_MULTIPLICATION),
        ),
        (Act::CopyIn, Earlier::Multiplication) => (
            InFlight,
            "is loaded into while a multiplication may still read it",
            Remedy::Text(WAIT_MULTIPLICATION),
        ),
        (Act::Read | Act::CopyOut | Act::Multiply, Earlier::Multiplication) => {
            (InFlight, "is read while a multiplication reads it", Remedy::Text(WAIT_MULTIPLICATION))
        }
        (Act::Write, Earlier::Copy) if wrote => {
            (InFlight, "is written while a load into it is not known to be complete", Remedy::Wait)
        }
        (Act::CopyIn, Earlier::Copy) if wrote => {
            (InFlight, "is loaded into while another load into it is not known to be complete", Remedy::Wait)
        }
        (Act::Write, Earlier::Copy) => {
            (InFlight, "is written while a store may still read it", Remedy::Text(WAIT_READ))
        }
        (Act::CopyIn, Earlier::Copy) => {
            (InFlight, "is loaded into while a store may still read it", Remedy::Text(WAIT_READ))
        }
        (Act::CopyIn, Earlier::Thread) if !wrote => {
            (RefillBeforeRelease, "is loaded into while a thread may still read it", Remedy::Text(RELEASE))
        }
        (Act::CopyIn, Earlier::Thread) => {
            (Race, "is loaded into while a thread may still write it", Remedy::Text(ORDER))
        }
        (Act::CopyOut, Earlier::Thread) => {
            (Race, "is stored from while a thread may still write it", Remedy::Text(ORDER))
        }
        (Act::Read, Earlier::Thread) => {
            (Race, "is read while another thread may still write it", Remedy::Text(ORDER))
        }
        (Act::Write, Earlier::Thread) if wrote => {
            (Race, "is written by two threads in no order", Remedy::Text(ORDER))
        }
        (Act::Write, Earlier::Thread) => {
            (Race, "is written while another thread may still read it", Remedy::Text(ORDER))
        }
    }
}
