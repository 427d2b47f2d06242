//! The exit of threads, blocks and the cluster.

use crate::machine::Machine;
use crate::machine::barrier::Mbarrier;
use crate::machine::diagnostics::STAY;
use crate::machine::index::BlockRank;
use crate::machine::memory::SharedPlace;
use crate::machine::types::Actor;
use crate::report::{Finding, FindingKind, Findings};

impl Machine {
    /// Lets a thread exit.
    pub fn exit(&mut self, actor: Actor) {
        let (who, block) = (actor.who, actor.who.block);
        if self.liveness.has_exited(who) {
            return;
        }
        self.check_groups(actor);
        self.check_copies(actor);
        self.check_multiplications(actor);
        self.check_visits(actor);
        self.check_outgoing(actor);
        self.liveness.exit(who);
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
        self.barriers.leave_cluster(who, self.liveness.of_cluster());
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
    fn check_groups(&mut self, ends: Actor) {
        let Some((site, committed)) = self.engines.unwaited_group(ends.who) else { return };
        let help = if committed {
            "[[`bulk_wait_group_read::<0>()`||`cp.async.bulk.wait_group.read 0`]] before the thread ends"
        } else {
            "[[`bulk_commit_group()`||`cp.async.bulk.commit_group`]] and \
             [[`bulk_wait_group_read::<0>()`||`cp.async.bulk.wait_group.read 0`]] before the thread ends"
        };
        let issuer = Actor { site, ..ends };
        let message = "a store may still read shared memory when the thread that issued it ends";
        self.leaks(message, issuer, ends, help);
    }

    /// Checks that a thread that exits has waited for its `cp.async`, or made an mbarrier track
    /// them.
    fn check_copies(&mut self, ends: Actor) {
        let Some(site) = self.engines.unwaited_copy(ends.who) else { return };
        let issuer = Actor { site, ..ends };
        let message = "the thread that issued a `cp.async` ends, and nobody has waited for the copy";
        self.leaks(message, issuer, ends, "`cp.async.wait_all` before the thread ends");
    }

    fn leaks(&mut self, message: &str, issuer: Actor, ends: Actor, help: &str) {
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::Leak, message)
            .with(log.party(issuer.does("issued the copy")))
            .with(log.party(ends.does("ends")))
            .help(help);
        log.report(finding);
    }

    /// Checks that each access by other blocks happens before the exit of some thread of this
    /// block. The shared memory of a block exists until its last thread exits.
    fn check_visits(&mut self, ends: Actor) {
        let rank = ends.who.block;
        let shared = &mut self.memory.shared[rank];
        shared.forget_visits(self.order.view(ends.who));
        let is_last = self.liveness.of_block(rank) == 1;
        let Some((visitor, line)) = shared.a_visit(self.shape).filter(|_| is_last) else { return };
        let log = &mut self.diagnostics;
        let message =
            format!("block {rank} of the cluster may end while another block uses its shared memory");
        let finding = Finding::new(FindingKind::BlockGone, message)
            .with(log.party(log.actor_at(visitor, line).does("used it")))
            .with(log.party(ends.does("ends")))
            .help(STAY);
        log.report(finding);
    }

    /// Checks the copies from this block into other blocks. They read this block's shared memory
    /// until the mbarrier of the other block has counted their bytes. Some thread of this block
    /// must know of that before the last one exits.
    fn check_outgoing(&mut self, ends: Actor) {
        if !self.order.is_checked() {
            return;
        }
        let rank = ends.who.block;
        let (view, outgoing) = (self.order.view(ends.who), &mut self.memory.shared[rank].outgoing);
        outgoing.retain(|copy| !view.knows_over(copy.done));
        let is_last = self.liveness.of_block(rank) == 1;
        let Some(copy) = outgoing.first().copied().filter(|_| is_last) else { return };
        let message = format!(
            "block {rank} of the cluster may end while a copy into another block reads its shared memory"
        );
        self.leaks(&message, copy.issuer, ends, STAY);
    }

    /// Reports mbarriers of a block that are not settled when the block ends.
    fn check_mbarriers(&mut self, rank: BlockRank) {
        let all = self.barriers.mbarriers[rank].iter();
        let unsettled: Vec<_> =
            all.filter_map(|(at, mbarrier)| self.unsettled(SharedPlace { rank, at }, mbarrier)).collect();
        unsettled.into_iter().for_each(|finding| self.report(finding));
    }

    /// Checks an mbarrier that will not be used again.
    pub(super) fn unsettled(&self, place: SharedPlace, mbarrier: &Mbarrier) -> Option<Finding> {
        let log = &self.diagnostics;
        let party = match mbarrier.last_load {
            Some(load) => log.party(load.issuer.does("issued the copy")),
            None => log.party(mbarrier.init.does("initialised it")),
        };
        let name = format!("the mbarrier at {}", log.place(place));
        let wait = format!(
            "wait for the phase before the block ends: [[`{}`||`mbarrier.try_wait`]]",
            log.wait_at(place.at)
        );
        let finding = if mbarrier.has_loads_under_way() {
            let message = format!("{name} ends while loads that count there are under way");
            Finding::new(FindingKind::Leak, message).help(wait)
        } else if mbarrier.count().tx() != 0 {
            let message = format!("{name} ends with bytes that do not balance ({})", mbarrier.describe());
            let help = "let [[`arrive_expect_tx(..)`||`mbarrier.arrive.expect_tx`]] and the copies of each phase agree";
            Finding::new(FindingKind::TransactionBytes, message).help(help)
        } else if mbarrier.has_unobserved_load() {
            let message = format!("{name} ends, and nobody has waited for a load that counts there");
            Finding::new(FindingKind::Leak, message).help(wait)
        } else {
            return None;
        };
        Some(finding.with(party))
    }
}
