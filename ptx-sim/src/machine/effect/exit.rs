//! Threads, blocks and the cluster at their end.

use super::Machine;
use super::access::STAY;
use super::clock::Epoch;
use super::mbarrier::Mbarrier;
use super::types::{Site, ThreadId};
use crate::report::{Finding, FindingKind, Findings};

impl Machine {
    /// The thread ends.
    pub fn exit(&mut self, who: ThreadId, site: Site) {
        let index = self.index(who);
        if self.threads[index].exited {
            return;
        }
        self.threads[index].exited = true;
        self.check_groups(who, site);
        self.check_copies(who, site);
        let block = who.block as usize;
        self.check_visits(who, site);
        self.check_lent(who, site);
        self.blocks[block].live = self.blocks[block].live.saturating_sub(1);
        if self.blocks[block].live == 0 {
            self.check_mbarriers(block);
        } else {
            for id in 0..super::sync::NAMED_BARRIERS {
                self.end_barrier_if_due(who.block, id);
            }
        }
        // A thread may arrive at the cluster's barrier and end: it is not waited for then.
        if self.threads[index].at_cluster == Some(self.cluster.round) {
            self.cluster.arrived = self.cluster.arrived.saturating_sub(1);
        }
        self.end_cluster_if_due();
    }

    /// The cluster ends: what is still under way takes effect.
    pub fn drain(&mut self) {
        while self.engine.skip() {
            self.record_skip();
            self.run_due();
        }
    }

    /// As [`drain`](Self::drain). The answer is all that was found.
    pub fn finish(mut self) -> Findings {
        self.drain();
        self.findings
    }

    /// Whoever issues stores has to wait until their tiles are read: shared memory ends with the block.
    fn check_groups(&mut self, who: ThreadId, site: Site) {
        let index = self.index(who);
        let Some(&(number, issued)) = self.threads[index].bulk.sites.first() else { return };
        let committed = number <= self.threads[index].bulk.committed;
        let help = if committed {
            "[[`bulk_wait_group_read::<0>()`||`cp.async.bulk.wait_group.read 0`]] before the thread ends"
        } else {
            "[[`bulk_commit_group()`||`cp.async.bulk.commit_group`]] and \
             [[`bulk_wait_group_read::<0>()`||`cp.async.bulk.wait_group.read 0`]] before the thread ends"
        };
        let finding = Finding::new(
            FindingKind::Leak,
            "a store may still read shared memory when the thread that issued it ends",
        )
        .with(self.party(who, issued, "issued the copy"))
        .with(self.party(who, site, "ends"))
        .help(help);
        self.report(finding);
    }

    /// A block's shared memory is there until its last thread ends: each use of it by another block has to come before the end
    /// of some thread of its own.
    fn check_visits(&mut self, who: ThreadId, site: Site) {
        let (index, rank) = (self.index(who), who.block as usize);
        let (view, block) = (&self.threads[index].view, &mut self.blocks[rank]);
        for (thread, visit) in block.visits.iter_mut().enumerate() {
            if view.knows_over(Epoch::new(thread as u32, visit.0)) {
                visit.0 = 0;
            }
        }
        let left = block.visits.iter().position(|visit| visit.0 > 0).filter(|_| block.live == 1);
        let Some((thread, line)) = left.map(|thread| (thread, block.visits[thread].1)) else { return };
        let line = self.site_of(line);
        let per_block = self.config.threads.max(1);
        let visitor = ThreadId { block: thread as u32 / per_block, thread: thread as u32 % per_block };
        let message =
            format!("block {rank} of the cluster may end while another block uses its shared memory");
        let finding = Finding::new(FindingKind::BlockGone, message)
            .with(self.party(visitor, line, "used it"))
            .with(self.party(who, site, "ends"))
            .help(STAY);
        self.report(finding);
    }

    /// A copy into another block reads this one's shared memory until the mbarrier of that one has its bytes: some thread of
    /// this block has to know of it before the last one ends.
    fn check_lent(&mut self, who: ThreadId, site: Site) {
        if !self.config.checks.order {
            return;
        }
        let (index, rank) = (self.index(who), who.block as usize);
        let (view, block) = (&self.threads[index].view, &mut self.blocks[rank]);
        block.lent.retain(|lent| !view.knows_over(lent.done));
        let Some(lent) = block.lent.first().copied().filter(|_| block.live == 1) else { return };
        let message = format!(
            "block {rank} of the cluster may end while a copy into another block reads its shared memory"
        );
        let finding = Finding::new(FindingKind::Leak, message)
            .with(self.party(lent.who, lent.site, "issued the copy"))
            .with(self.party(who, site, "ends"))
            .help(STAY);
        self.report(finding);
    }

    /// What the mbarriers of a block still count when it ends.
    fn check_mbarriers(&mut self, block: usize) {
        let places: Vec<u32> = self.blocks[block].mbarriers.iter().map(|(at, _)| at).collect();
        for at in places {
            if let Some(mbarrier) = self.blocks[block].mbarriers.take(at) {
                self.settle(block, at, &mbarrier);
                self.blocks[block].mbarriers.put(at, mbarrier);
            }
        }
    }

    /// Checks an mbarrier that nobody will use any more.
    pub(super) fn settle(&mut self, block: usize, at: u32, mbarrier: &Mbarrier) {
        let (phase, party) = match mbarrier.last_load {
            Some((phase, who, site)) => (phase, self.party(who, site, "issued the copy")),
            None => (0, self.party(mbarrier.init_by, mbarrier.init_site, "initialised it")),
        };
        let place = format!("the mbarrier at {}{}", self.spot(at), self.of_block(block));
        let wait = format!(
            "wait for the phase before the block ends: [[`{}`||`mbarrier.try_wait`]]",
            self.wait_at(at)
        );
        let finding = if mbarrier.under_way > 0 {
            Finding::new(
                FindingKind::Leak,
                format!("{place} ends while loads that count there are under way"),
            )
            .help(wait)
        } else if mbarrier.tx != 0 {
            let state = super::deadlock::describe(mbarrier);
            let message = format!("{place} ends with bytes that do not balance ({state})");
            let help = "let [[`arrive_expect_tx(..)`||`mbarrier.arrive.expect_tx`]] and the copies of each phase agree";
            Finding::new(FindingKind::TransactionBytes, message).help(help)
        } else if phase > mbarrier.observed {
            let message = format!("{place} ends, and nobody has waited for a load that counts there");
            Finding::new(FindingKind::Leak, message).help(wait)
        } else {
            return;
        };
        self.report(finding.with(party));
    }
}
