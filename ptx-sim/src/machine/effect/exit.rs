//! The exit of threads, blocks and the cluster.

use tma_model::help::Help;

use crate::machine::Machine;
use crate::machine::barrier::Mbarrier;
use crate::machine::index::BlockRank;
use crate::machine::memory::SharedLocation;
use crate::machine::types::Actor;
use crate::report::{Finding, FindingKind, Findings};

impl Machine {
    /// Lets a thread exit.
    pub fn exit(&mut self, actor: Actor) {
        let (thread, block) = (actor.thread, actor.thread.block);
        if self.liveness.has_exited(thread) {
            return;
        }
        self.check_groups(actor);
        self.check_copies(actor);
        self.check_multiplications(actor);
        self.check_remote_accesses(actor);
        self.check_outgoing(actor);
        self.liveness.exit(thread);
        let live = self.liveness.of_block(block);
        if live == 0 {
            self.check_mbarriers(block);
            self.check_registers(actor);
        } else {
            let ended: Vec<_> = self.barriers.end_rounds(block, live, self.shape.threads).collect();
            for (id, divergence) in ended {
                self.diverged(id, divergence);
            }
        }
        self.barriers.leave_cluster(thread, self.liveness.of_cluster());
    }

    /// Lets all operations in flight take effect, when the cluster ends.
    pub fn drain(&mut self) {
        while self.let_time_pass() {}
    }

    /// Ends the cluster as [`drain`](Self::drain) does, and returns all findings.
    pub fn finish(mut self) -> Findings {
        self.drain();
        self.diagnostics.finish()
    }

    /// Checks that a thread that issued stores has waited until their tiles were read, since shared
    /// memory ends with the block.
    fn check_groups(&mut self, exiting: Actor) {
        let Some((site, committed)) = self.engines.unwaited_group(exiting.thread) else { return };
        let help = Help::WaitForReadBeforeEnd { committed };
        let issuer = Actor { site, ..exiting };
        let message = "a store may still read shared memory when the thread that issued it ends";
        self.report_leak(message, issuer, exiting, help);
    }

    /// Checks that a thread that exits has waited for its `cp.async`, or made an mbarrier track
    /// them.
    fn check_copies(&mut self, exiting: Actor) {
        let Some(site) = self.engines.unwaited_copy(exiting.thread) else { return };
        let issuer = Actor { site, ..exiting };
        let message = "a thread ends without waiting for its `cp.async`";
        self.report_leak(message, issuer, exiting, "use `cp.async.wait_all` before the thread ends".into());
    }

    fn report_leak(&mut self, message: &str, issuer: Actor, exiting: Actor, help: Help) {
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::Leak, message)
            .with(log.party(issuer.does("issued the copy")))
            .with(log.party(exiting.does("ends")))
            .help(help);
        log.report(finding);
    }

    /// Checks that each access by other blocks happens before the exit of some thread of this
    /// block. The shared memory of a block exists until its last thread exits.
    fn check_remote_accesses(&mut self, exiting: Actor) {
        let rank = exiting.thread.block;
        let shared = &mut self.memory.shared[rank];
        shared.forget_remote_accesses(self.order.view(exiting.thread));
        let is_last = self.liveness.of_block(rank) == 1;
        let Some((other, line)) = shared.pending_remote_access(self.shape).filter(|_| is_last) else {
            return;
        };
        let log = &mut self.diagnostics;
        let message =
            format!("block {rank} of the cluster may end while another block uses its shared memory");
        let finding = Finding::new(FindingKind::BlockGone, message)
            .with(log.party(log.actor_at(other, line).does("used it")))
            .with(log.party(exiting.does("ends")))
            .help(Help::KeepBlockAlive);
        log.report(finding);
    }

    /// Checks the copies from this block into other blocks. They read this block's shared memory
    /// until the mbarrier of the other block has counted their bytes. Some thread of this block
    /// must know of that before the last one exits.
    fn check_outgoing(&mut self, exiting: Actor) {
        if !self.order.is_checked() {
            return;
        }
        let rank = exiting.thread.block;
        let (view, outgoing) = (self.order.view(exiting.thread), &mut self.memory.shared[rank].outgoing);
        outgoing.retain(|copy| !view.knows_complete(copy.done));
        let is_last = self.liveness.of_block(rank) == 1;
        let Some(copy) = outgoing.first().copied().filter(|_| is_last) else { return };
        let message = format!(
            "block {rank} of the cluster may end while a copy into another block reads its shared memory"
        );
        self.report_leak(&message, copy.issuer, exiting, Help::KeepBlockAlive);
    }

    /// Reports mbarriers of a block that are not settled when the block ends.
    fn check_mbarriers(&mut self, rank: BlockRank) {
        let all = self.barriers.mbarriers[rank].iter();
        let unsettled: Vec<_> =
            all.filter_map(|(at, mbarrier)| self.unsettled(SharedLocation { rank, at }, mbarrier)).collect();
        unsettled.into_iter().for_each(|finding| self.report(finding));
    }

    /// Checks an mbarrier that will not be used again.
    pub(super) fn unsettled(&self, location: SharedLocation, mbarrier: &Mbarrier) -> Option<Finding> {
        let log = &self.diagnostics;
        let party = match mbarrier.last_load {
            Some(load) => log.party(load.issuer.does("issued the copy")),
            None => log.party(mbarrier.init.does("initialised it")),
        };
        let name = format!("the mbarrier at {}", log.location_text(location));
        let wait = Help::WaitBeforeEnd(log.wait_at(location.at));
        let finding = if mbarrier.has_loads_in_flight() {
            let message = format!("{name} ends while loads that complete on it are in flight");
            Finding::new(FindingKind::Leak, message).help(wait)
        } else if mbarrier.count().tx() != 0 {
            let message = format!(
                "{name} ends although expected and copied bytes differ \
                ({})",
                mbarrier.describe()
            );
            Finding::new(FindingKind::TransactionBytes, message).help(Help::Announce)
        } else if mbarrier.has_unobserved_load() {
            let message = format!("{name} ends, but no thread has waited for a load that completes on it");
            Finding::new(FindingKind::Leak, message).help(wait)
        } else {
            return None;
        };
        Some(finding.with(party))
    }
}
