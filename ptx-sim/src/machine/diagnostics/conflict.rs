//! Findings for conflicts between two accesses to shared memory.

use tma_model::help::Help;
use tma_model::sync::{Epoch, Hazard, Memory};

use crate::machine::Machine;
use crate::machine::global::mixed_sizes;
use crate::machine::index::{BlockRank, OperationId, ThreadId};
use crate::machine::memory::{Conflict, IN_FLIGHT, OPAQUE, Problem, SharedLocation};
use crate::machine::types::Action;
use crate::report::{Finding, FindingKind};

/// The kind of the later access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum LaterAccess {
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
enum EarlierAccess {
    /// An access by a thread.
    Thread,
    /// An access by an asynchronous copy.
    Copy,
    /// A read by a `wgmma`.
    Multiplication,
    /// No access: the bytes hold an mbarrier.
    Mbarrier,
}

const WAIT_COPY: &str = "wait for the mbarrier that the copy completes on before this; for a `cp.async` with \
                         groups, use `cp.async.commit_group` and `cp.async.wait_group` (or \
                         `cp.async.wait_all`) in the thread that issued it, and then a barrier if this is \
                         another thread";

impl Machine {
    /// Reports a conflict between `action` and an earlier access, in the shared memory of block
    /// `rank`.
    #[cold]
    pub(in crate::machine) fn conflict(
        &mut self,
        action: Action,
        later_access: LaterAccess,
        rank: BlockRank,
        conflict: Conflict,
    ) {
        let finding = self.explain(action, later_access, rank, conflict);
        self.diagnostics.report(finding);
    }

    fn explain(
        &self,
        action: Action,
        later_access: LaterAccess,
        rank: BlockRank,
        conflict: Conflict,
    ) -> Finding {
        let (log, at) = (&self.diagnostics, conflict.at);
        let of_cluster = if self.shape.blocks > 1 { " of the cluster" } else { "" };
        let location =
            format!("shared memory at {}{of_cluster}", log.location_text(SharedLocation { rank, at }));
        let hazard = match conflict.problem {
            Problem::Hazard(hazard) => hazard,
            Problem::Unwritten => {
                let message = format!("{location} is read, but no thread or copy has written it");
                return Finding::new(FindingKind::Uninitialised, message).with(log.party(action));
            }
        };
        if let Some(bytes) = conflict.mixed {
            let other =
                log.actor_at(self.shape.thread(conflict.other).unwrap_or(action.thread), conflict.line);
            let finding = mixed_sizes(&location, bytes).with(log.party(action));
            return finding.with(log.party(other.does("changed it")));
        }
        let earlier = match conflict.other.component() {
            OPAQUE => EarlierAccess::Mbarrier,
            _ if self.shape.thread(conflict.other).is_some() => EarlierAccess::Thread,
            _ if self.tensor_cores.is_group(conflict.other) => EarlierAccess::Multiplication,
            _ => EarlierAccess::Copy,
        };
        let wait = if conflict.copied { WAIT_COPY.into() } else { self.wait_for(conflict.other) };
        let (kind, description, help) = explain(later_access, earlier, hazard, conflict.other_writes, wait);
        let (thread, does) = match earlier {
            EarlierAccess::Thread if conflict.other_writes => (self.shape.thread(conflict.other), "wrote"),
            EarlierAccess::Thread => (self.shape.thread(conflict.other), "read"),
            EarlierAccess::Copy => (self.issuer(conflict.other), "issued the copy"),
            EarlierAccess::Multiplication => (self.issuer(conflict.other), "issued the multiplication"),
            EarlierAccess::Mbarrier => (None, "accesses the mbarrier that is initialised"),
        };
        let other = log.actor_at(thread.unwrap_or(action.thread), conflict.line).does(does);
        let finding = Finding::new(kind, format!("{location} {description}"))
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
        let location = match load.component() {
            IN_FLIGHT => self.engines.completes_on(OperationId(load.count())),
            component => {
                let mut all = self.barriers.all_mbarriers();
                all.find(|(_, mbarrier)| mbarrier.component == component).map(|(location, _)| location)
            }
        };
        let wait = location
            .map_or_else(|| "barrier.wait(..)".to_owned(), |location| self.diagnostics.wait_at(location.at));
        Help::WaitForLoad(wait)
    }

    /// Adds the last wait of the reader to the finding, if it was at the mbarrier of the load but
    /// for an earlier phase.
    fn with_early_wait(&self, finding: Finding, action: Action, load: Epoch) -> Finding {
        let Some(completed_wait) = self.barriers.last_completed_wait(action.thread) else { return finding };
        let Some(mbarrier) = self.barriers.mbarrier(completed_wait.location) else { return finding };
        // The phase that the load's bytes count for, from 1.
        let phase = match load.component() {
            IN_FLIGHT
                if self.engines.completes_on(OperationId(load.count())) == Some(completed_wait.location) =>
            {
                mbarrier.next_phase().count()
            }
            component if component == mbarrier.component => load.count(),
            _ => return finding,
        };
        if phase <= completed_wait.phase {
            return finding;
        }
        // Phase n, counted from 0, has parity n & 1.
        let (waited, wanted) = (completed_wait.phase.wrapping_sub(1) & 1, phase.wrapping_sub(1) & 1);
        let log = &self.diagnostics;
        let wait =
            Action { thread: action.thread, site: completed_wait.site, does: "waited for an earlier phase" };
        finding.with(log.party(wait)).help(Help::WaitForParity {
            wanted,
            waited,
            mbarrier: log.location_text(completed_wait.location),
        })
    }

    /// Returns the thread that issued the copy of an asynchronous step.
    fn issuer(&self, step: Epoch) -> Option<ThreadId> {
        match step.component() {
            IN_FLIGHT => self.engines.issuer(OperationId(step.count())),
            component => self.order.agent(component),
        }
    }
}

fn explain(
    later_access: LaterAccess,
    earlier: EarlierAccess,
    hazard: Hazard,
    wrote: bool,
    wait: Help,
) -> (FindingKind, &'static str, Help) {
    use FindingKind::{InFlight, MissingProxyFence, OpaqueAccess, Race, ReadBeforeWait};
    use FindingKind::{RefillBeforeRelease, UnfencedRefill};
    match (later_access, earlier) {
        (_, EarlierAccess::Mbarrier) => {
            (OpaqueAccess, "holds an mbarrier, whose bits are opaque", Help::Invalidate)
        }
        (_, EarlierAccess::Thread | EarlierAccess::Copy | EarlierAccess::Multiplication)
            if hazard == Hazard::ScopeTooNarrow =>
        {
            (Race, "was written, but another block may not see the write", Help::ReleaseToCluster)
        }
        (LaterAccess::CopyIn, EarlierAccess::Thread) if hazard == Hazard::NoProxyFence && !wrote => {
            (UnfencedRefill, "may be overwritten by a load before a thread has read it", Help::FenceReads)
        }
        (LaterAccess::Multiply, _) if hazard == Hazard::NoProxyFence => (
            MissingProxyFence,
            "was written by a thread, but the multiplication may not see the write",
            Help::FenceOperands,
        ),
        (LaterAccess::CopyOut | LaterAccess::CopyIn, _) if hazard == Hazard::NoProxyFence => (
            MissingProxyFence,
            "was written by a thread, but the copy may not see the write",
            Help::FenceWrites(Memory::Shared),
        ),
        (LaterAccess::Read, EarlierAccess::Copy) => {
            (ReadBeforeWait, "is read, but the load that fills it may not be complete", wait)
        }
        (LaterAccess::CopyOut, EarlierAccess::Copy) => {
            (ReadBeforeWait, "is stored from, but the load that fills it may not be complete", wait)
        }
        (LaterAccess::Multiply, EarlierAccess::Copy) => {
            (ReadBeforeWait, "is multiplied, but the load that fills it may not be complete", wait)
        }
        (LaterAccess::Multiply, EarlierAccess::Thread) => {
            (Race, "is multiplied while a thread may still write it", Help::Order(Memory::Shared))
        }
        (LaterAccess::Write, EarlierAccess::Multiplication) => {
            (InFlight, "is written while a multiplication may still read it", Help::WaitForOperands)
        }
        (LaterAccess::CopyIn, EarlierAccess::Multiplication) => {
            (InFlight, "is loaded into while a multiplication may still read it", Help::WaitForOperands)
        }
        (LaterAccess::Read | LaterAccess::CopyOut | LaterAccess::Multiply, EarlierAccess::Multiplication) => {
            (InFlight, "is read while a multiplication may still read it", Help::WaitForOperands)
        }
        (LaterAccess::Write, EarlierAccess::Copy) if wrote => {
            (InFlight, "is written while a load may still write it", wait)
        }
        (LaterAccess::CopyIn, EarlierAccess::Copy) if wrote => {
            (InFlight, "is loaded into while another load may still write it", wait)
        }
        (LaterAccess::Write, EarlierAccess::Copy) => {
            (InFlight, "is written while a store may still read it", Help::WaitForRead)
        }
        (LaterAccess::CopyIn, EarlierAccess::Copy) => {
            (InFlight, "is loaded into while a store may still read it", Help::WaitForRead)
        }
        (LaterAccess::CopyIn, EarlierAccess::Thread) if !wrote => {
            (RefillBeforeRelease, "is loaded into while a thread may still read it", Help::ReleaseTile)
        }
        (LaterAccess::CopyIn, EarlierAccess::Thread) => {
            (Race, "is loaded into while a thread may still write it", Help::Order(Memory::Shared))
        }
        (LaterAccess::CopyOut, EarlierAccess::Thread) => {
            (Race, "is stored from while a thread may still write it", Help::Order(Memory::Shared))
        }
        (LaterAccess::Read, EarlierAccess::Thread) => {
            (Race, "is read while another thread may still write it", Help::Order(Memory::Shared))
        }
        (LaterAccess::Write, EarlierAccess::Thread) if wrote => {
            (Race, "is written by two threads, and nothing orders the writes", Help::Order(Memory::Shared))
        }
        (LaterAccess::Write, EarlierAccess::Thread) => {
            (Race, "is written while another thread may still read it", Help::Order(Memory::Shared))
        }
    }
}
