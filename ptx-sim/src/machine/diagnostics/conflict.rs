//! From two accesses that do not go together to a finding that says why.

use super::Machine;
use super::access::Access;
use super::clock::Epoch;
use super::shadow::{Conflict, IN_FLIGHT, OPAQUE, Problem};
use crate::report::{Finding, FindingKind, Help};

/// What the later access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A thread reads.
    Read,
    /// A thread writes.
    Write,
    /// A copy that starts will read.
    CopyOut,
    /// A copy that starts will write.
    CopyIn,
}

/// What the earlier access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    /// A thread's.
    Thread,
    /// Of an asynchronous copy.
    Copy,
    /// None: there is an mbarrier.
    Mbarrier,
}

const RELEASE: &str = "let the threads that read arrive at an mbarrier, \
                       [[`slot.release()` or `empty.arrive()`||`mbarrier.arrive`]], or all meet, \
                       [[`sync_threads()`||`bar.sync`]], and wait for that before the load is issued";
const FENCE: &str = "[[`fence_proxy_async()`||`fence.proxy.async`]] between the write and the copy: after the writes, \
                     before the barrier that orders them";
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
    /// Records `conflict`, which `access` met in the shared memory of block `rank`.
    #[cold]
    pub(super) fn conflict(&mut self, access: Access, act: Act, rank: usize, conflict: Conflict) {
        let at = conflict.at;
        let of_block = if self.blocks.len() > 1 { " of the cluster" } else { "" };
        let place = format!("shared memory at {}{}{of_block}", self.spot(at), self.of_block(rank));
        if conflict.problem == Problem::Unwritten {
            let finding = Finding::new(
                FindingKind::Uninitialised,
                format!("{place} is read, but nobody has written it"),
            );
            return self.report(finding.with(self.party(access.who, access.site, access.does)));
        }
        let other = match conflict.other.component() {
            OPAQUE => Other::Mbarrier,
            component if (component as usize) < self.threads.len() => Other::Thread,
            _ => Other::Copy,
        };
        let (kind, what, remedy) = explain(act, other, &conflict);
        let mut finding =
            Finding::new(kind, format!("{place} {what}")).help(self.help_with(remedy, &conflict));
        finding = finding.with(self.party(access.who, access.site, access.does));
        let (line, does) =
            (self.site_of(conflict.line), if conflict.other_writes { "wrote" } else { "read" });
        if let Some(who) = self.thread_of(conflict.other) {
            finding = finding.with(self.party(who, line, does));
        } else if other == Other::Copy {
            let who = self.issuer(conflict.other).unwrap_or(access.who);
            finding = finding.with(self.party(who, line, "issued the copy"));
        } else {
            finding = finding.with(self.party(access.who, line, "has the mbarrier from"));
        }
        if kind == FindingKind::ReadBeforeWait {
            finding = self.with_early_wait(finding, access, conflict.other);
        }
        self.report(finding);
    }

    fn help_with(&self, remedy: Remedy, conflict: &Conflict) -> Help {
        match remedy {
            Remedy::Text(text) => text.into(),
            Remedy::Wait if conflict.copied => WAIT_COPY.into(),
            Remedy::Wait => self.wait_for(conflict.other),
        }
    }

    /// The wait for what `load` brings.
    fn wait_for(&self, load: Epoch) -> Help {
        let place = match load.component() {
            IN_FLIGHT => self.engine.completes_on(load.count()).map(|(_, at)| at),
            component => {
                let mut all = self.blocks.iter().flat_map(|block| block.mbarriers.iter());
                all.find(|(_, mbarrier)| mbarrier.component == component).map(|(at, _)| at)
            }
        };
        let wait = place.map_or_else(|| "barrier.wait(..)".to_owned(), |at| self.wait_at(at));
        let help = "before this, wait for the phase of the mbarrier that the load's bytes count for";
        format!("{help}: [[`{wait}`||`mbarrier.try_wait`]]").into()
    }

    /// How the language waits at the mbarrier at `at`. Names with a dot are those of a pipeline's
    /// parts.
    pub(super) fn wait_at(&self, at: u32) -> String {
        match self.name_of(at) {
            Some(name) if name.contains('.') => "consumer.wait()".to_owned(),
            Some(name) => format!("{name}.wait(..)"),
            None => "barrier.wait(..)".to_owned(),
        }
    }

    /// Adds the last wait of the reader, if it was at the mbarrier of the load, but for a phase before the load's.
    fn with_early_wait(&self, finding: Finding, access: Access, load: Epoch) -> Finding {
        let Some(passed) = self.threads[self.index(access.who)].passed else { return finding };
        let Some(mbarrier) = self.blocks[passed.rank].mbarriers.look(passed.at) else { return finding };
        // The phase that the load's bytes count for, from 1.
        let phase = match load.component() {
            IN_FLIGHT if self.engine.completes_on(load.count()) == Some((passed.rank, passed.at)) => {
                mbarrier.phase.saturating_add(1)
            }
            component if component == mbarrier.component => load.count(),
            _ => return finding,
        };
        if phase <= passed.phase {
            return finding;
        }
        // Phase n, from 0, has parity n & 1.
        let (waited, wanted) = (passed.phase.wrapping_sub(1) & 1, phase.wrapping_sub(1) & 1);
        let (spot, of_block) = (self.spot(passed.at), self.of_block(passed.rank));
        finding.with(self.party(access.who, passed.site, "waited, for a phase before")).help(format!(
            "that wait, with parity {waited}, was over before the load: the load counts at the mbarrier at {spot}{of_block} for a later \
             phase; wait for parity {wanted}[[, with `wait({wanted})`||]]"
        ))
    }

    /// The thread that issued the copy of an asynchronous step.
    fn issuer(&self, epoch: Epoch) -> Option<super::ThreadId> {
        if epoch.component() == IN_FLIGHT {
            return self.engine.issuer(epoch.count());
        }
        self.engine.agent(epoch.component())
    }
}

/// What there is to do.
#[derive(Clone, Copy, Debug)]
enum Remedy {
    /// The wait for a load, or for a `cp.async`.
    Wait,
    Text(&'static str),
}

fn explain(act: Act, other: Other, conflict: &Conflict) -> (FindingKind, &'static str, Remedy) {
    use FindingKind::{InFlight, MissingProxyFence, OpaqueAccess, Race, ReadBeforeWait};
    use FindingKind::{RefillBeforeRelease, UnfencedRefill};
    let wrote = conflict.other_writes;
    match (act, other) {
        (_, Other::Mbarrier) => (
            OpaqueAccess,
            "is part of an mbarrier, whose bits are opaque",
            Remedy::Text("[[`invalidate()`||`mbarrier.inval`]] before its memory is used for anything else"),
        ),
        (_, Other::Thread | Other::Copy) if conflict.problem == Problem::Untold => {
            (Race, "was written before, but need not be seen by another block", Remedy::Text(TELL))
        }
        (Act::CopyIn, Other::Thread) if conflict.problem == Problem::NoProxyFence && !wrote => (
            UnfencedRefill,
            "is loaded into after a thread has read it, and no proxy fence lies between",
            Remedy::Text(FENCE_READS),
        ),
        (Act::CopyOut | Act::CopyIn, _) if conflict.problem == Problem::NoProxyFence => (
            MissingProxyFence,
            "was written by a thread, and the asynchronous proxy need not see that: no proxy fence lies between",
            Remedy::Text(FENCE),
        ),
        (Act::Read, Other::Copy) => {
            (ReadBeforeWait, "is read, but the load that brings it is not known to be complete", Remedy::Wait)
        }
        (Act::CopyOut, Other::Copy) => (
            ReadBeforeWait,
            "is stored from, but the load that brings it is not known to be complete",
            Remedy::Wait,
        ),
        (Act::Write, Other::Copy) if wrote => {
            (InFlight, "is written while a load into it is not known to be complete", Remedy::Wait)
        }
        (Act::CopyIn, Other::Copy) if wrote => {
            (InFlight, "is loaded into while another load into it is not known to be complete", Remedy::Wait)
        }
        (Act::Write, Other::Copy) => {
            (InFlight, "is written while a store may still read it", Remedy::Text(WAIT_READ))
        }
        (Act::CopyIn, Other::Copy) => {
            (InFlight, "is loaded into while a store may still read it", Remedy::Text(WAIT_READ))
        }
        (Act::CopyIn, Other::Thread) if !wrote => {
            (RefillBeforeRelease, "is loaded into while a thread may still read it", Remedy::Text(RELEASE))
        }
        (Act::CopyIn, Other::Thread) => {
            (Race, "is loaded into while a thread may still write it", Remedy::Text(ORDER))
        }
        (Act::CopyOut, Other::Thread) => {
            (Race, "is stored from while a thread may still write it", Remedy::Text(ORDER))
        }
        (Act::Read, Other::Thread) => {
            (Race, "is read while another thread may still write it", Remedy::Text(ORDER))
        }
        (Act::Write, Other::Thread) if wrote => {
            (Race, "is written by two threads in no order", Remedy::Text(ORDER))
        }
        (Act::Write, Other::Thread) => {
            (Race, "is written while another thread may still read it", Remedy::Text(ORDER))
        }
    }
}
