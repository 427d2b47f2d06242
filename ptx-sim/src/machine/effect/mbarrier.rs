//! The instructions on mbarriers: who may use which, what they order, and what is refused.

use super::Machine;
use super::access::Access;
use super::address::{Target, resolve};
use super::clock::{Epoch, Memory, View};
use super::conflict::Act;
use super::mbarrier::{BYTES, MAX_COUNT, Mbarrier, Refusal};
use super::overrun::Wait;
use super::state::Passed;
use super::types::{Arrive, Phase, Semantics, Site, Space, ThreadId, TryWait};
use crate::report::{Finding, FindingKind, Stop};

/// Questions in vain after which the time that goes by with each does not grow any more.
const MOST_IN_VAIN: u32 = 16;

/// How often a try_wait may time out before the phase completes, and of how many it is one that does. Under most seeds,
/// few: enough to show a kernel that takes false for true. Under some, all of very many: a kernel may be right about its
/// first tries and wrong about what it does when it gives up.
const FEW: (u32, u64) = (2, 8);
const MANY: (u32, u64) = (64, 1);

/// What is taken to hold between finding an mbarrier and its use in the same instruction.
pub(super) const GONE: &str = "an mbarrier that was found is not there any more";

impl Machine {
    /// `mbarrier.init`.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned, or a count that is not 1 to 2^20 - 1.
    pub fn mbarrier_init(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        count: u32,
        site: Site,
    ) -> Result<(), Stop> {
        let access = Access { who, site, does: "initialises" };
        let (rank, at) = self.shared_place(access, space, address, BYTES, BYTES)?;
        if !(1..=MAX_COUNT).contains(&count) {
            let message =
                format!("an mbarrier is initialised with a count of {count}; it is 1 to {MAX_COUNT}");
            return self.misuse(access, message, "the count is how many arrivals complete a phase");
        }
        let component = self.new_component();
        let index = self.index(who);
        let init = self.threads[index].view.epoch();
        let old = self.blocks[rank].mbarriers.put(at, Mbarrier::new(component, count, init, who, site));
        if self.config.checks.order {
            let view = &self.threads[index].view;
            match old {
                Some(old) => {
                    let message = format!(
                        "the mbarrier at {} is initialised again without `mbarrier.inval`",
                        self.spot(at)
                    );
                    let finding = Finding::new(FindingKind::BarrierMisuse, message)
                        .with(self.party(who, site, access.does))
                        .with(self.party(old.init_by, old.init_site, "initialised it"))
                        .help(
                            "one thread initialises an mbarrier, once; before anything else is made of its memory, \
                             [[`invalidate()`||`mbarrier.inval`]]",
                        );
                    self.report(finding);
                }
                None => {
                    if let Some(conflict) =
                        self.blocks[rank].shadow.write(at, BYTES, view, site.ptx_line, false)
                    {
                        self.conflict(access, Act::Write, rank, conflict);
                    }
                }
            }
            self.blocks[rank].shadow.set_opaque(at, BYTES, site.ptx_line);
        }
        self.record_phase(rank, at);
        Ok(())
    }

    /// `mbarrier.inval`.
    ///
    /// # Errors
    ///
    /// No mbarrier there.
    pub fn mbarrier_inval(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        site: Site,
    ) -> Result<(), Stop> {
        let access = Access { who, site, does: "invalidates" };
        let (rank, at) = self.mbarrier_place(access, space, address)?;
        if let Some(mbarrier) = self.blocks[rank].mbarriers.take(at) {
            self.settle(rank, at, &mbarrier);
        }
        self.record_phase(rank, at);
        self.blocks[rank].shadow.clear(at, BYTES);
        Ok(())
    }

    /// `mbarrier.arrive` and `mbarrier.arrive_drop`, with or without `.expect_tx`. The answer is the state before it.
    ///
    /// # Errors
    ///
    /// No mbarrier there, or more arrivals or bytes than it can count.
    pub fn mbarrier_arrive(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        arrive: Arrive,
        site: Site,
    ) -> Result<u64, Stop> {
        let access = Access { who, site, does: "arrives" };
        let (rank, at) = self.mbarrier_place(access, space, address)?;
        self.visit(access, rank);
        let index = self.index(who);
        let relaxed = (!arrive.semantics.order.releases()).then(|| self.issue_of(who));
        let view = &mut self.threads[index].view;
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(at) else {
            return self.bug(access, GONE);
        };
        mbarrier.remote |= space == Space::SharedCluster || rank != who.block as usize;
        let (state, unobserved) = (mbarrier.state(), mbarrier.is_unobserved());
        match relaxed {
            None => mbarrier.arrivals(rank == who.block as usize, arrive.semantics.scope).release(view),
            Some(issue) => mbarrier.note_issue(&issue),
        }
        let expected = arrive.expect_tx.map_or(Ok(()), |bytes| mbarrier.tx_before_arrival(bytes));
        let arrived = expected.and_then(|()| mbarrier.arrive(&arrive));
        self.counted_at(access, rank, at);
        if unobserved {
            self.unobserved(access, rank, at, state);
        }
        match arrived {
            Ok(()) => Ok(state),
            Err(refusal) => self.refused(access, rank, at, refusal),
        }
    }

    /// `mbarrier.expect_tx`.
    ///
    /// # Errors
    ///
    /// No mbarrier there, or more bytes than it can count.
    pub fn mbarrier_expect_tx(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        bytes: u32,
        site: Site,
    ) -> Result<(), Stop> {
        let access = Access { who, site, does: "expects bytes" };
        let (rank, at) = self.mbarrier_place(access, space, address)?;
        self.visit(access, rank);
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(at) else {
            return self.bug(access, GONE);
        };
        let counted = mbarrier.expect_tx(bytes);
        self.counted_at(access, rank, at);
        counted.or_else(|refusal| self.refused(access, rank, at, refusal))
    }

    /// `mbarrier.complete_tx`.
    ///
    /// # Errors
    ///
    /// No mbarrier there, or more bytes than it can count.
    pub fn mbarrier_complete_tx(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        bytes: u32,
        site: Site,
    ) -> Result<(), Stop> {
        let access = Access { who, site, does: "completes bytes" };
        let (rank, at) = self.mbarrier_place(access, space, address)?;
        self.visit(access, rank);
        let issue = self.issue_of(who);
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(at) else {
            return self.bug(access, GONE);
        };
        mbarrier.note_issue(&issue);
        let counted = mbarrier.complete_tx(bytes);
        self.counted_at(access, rank, at);
        counted.or_else(|refusal| self.refused(access, rank, at, refusal))
    }

    /// `mbarrier.test_wait`.
    ///
    /// # Errors
    ///
    /// No mbarrier there.
    pub fn mbarrier_test_wait(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        phase: Phase,
        semantics: Semantics,
        site: Site,
    ) -> Result<bool, Stop> {
        let access = Access { who, site, does: "waits" };
        let (rank, at) = self.mbarrier_place(access, space, address)?;
        self.check_not_overrun(access, rank, at, phase);
        let index = self.index(who);
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(at) else {
            return self.bug(access, GONE);
        };
        match mbarrier.is_complete(phase) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(refusal) => return self.refused(access, rank, at, refusal),
        }
        mbarrier.observed = mbarrier.phase;
        let thread = &mut self.threads[index];
        let step = thread.view.epoch();
        thread.passed = Some(Passed { rank, at, phase: mbarrier.phase, step: step.count(), site });
        if semantics.order.acquires() {
            self.acquirer.acquire(&mut thread.view, mbarrier.tells(semantics.scope));
        } else {
            thread.view.knows.learn_past(mbarrier.tells(semantics.scope).past());
        }
        if self.config.checks.order {
            mbarrier.note_wait(Wait { step, line: site.ptx_line });
        }
        Ok(true)
    }

    /// `mbarrier.try_wait`.
    ///
    /// # Errors
    ///
    /// No mbarrier there.
    pub fn mbarrier_try_wait(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        phase: Phase,
        semantics: Semantics,
        site: Site,
    ) -> Result<TryWait, Stop> {
        let complete = self.mbarrier_test_wait(who, space, address, phase, semantics, site)?;
        let index = self.index(who);
        let thread = &mut self.threads[index];
        if complete {
            thread.timeouts = 0;
            return Ok(TryWait::Complete);
        }
        // A wait that never ends has to be seen as such, so time-outs do not go on for ever.
        let (most, one_of) = if self.impatient { MANY } else { FEW };
        if thread.timeouts < most && self.random.below(one_of) == 0 {
            thread.timeouts += 1;
            return Ok(TryWait::TimedOut);
        }
        Ok(TryWait::Blocked)
    }

    /// Whether a `try_wait` in vain might now be answered: the phase is complete, or the time may be out.
    pub(super) fn wait_may_end(&self, who: ThreadId, space: Space, address: u64, phase: Phase) -> bool {
        let thread = &self.threads[self.index(who)];
        let (most, _) = if self.impatient { MANY } else { FEW };
        let Target::Shared(rank, at) = resolve(space, address, who.block) else { return true };
        let mbarrier = self.blocks.get(rank as usize).zip(u32::try_from(at).ok());
        let mbarrier = mbarrier.and_then(|(block, at)| block.mbarriers.look(at));
        thread.timeouts < most || mbarrier.is_none_or(|mbarrier| mbarrier.is_complete(phase) != Ok(false))
    }

    /// `mbarrier.test_wait`, as an instruction of its own. A thread that asks in vain lets time go by for the asynchronous
    /// engines, twice as much each time: no copy is so late that a loop of questions gets to its end by them alone.
    ///
    /// # Errors
    ///
    /// No mbarrier there.
    pub fn mbarrier_poll(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        phase: Phase,
        semantics: Semantics,
        site: Site,
    ) -> Result<bool, Stop> {
        let complete = self.mbarrier_test_wait(who, space, address, phase, semantics, site)?;
        let index = self.index(who);
        let thread = &mut self.threads[index];
        thread.in_vain = if complete { 0 } else { (thread.in_vain + 1).min(MOST_IN_VAIN) };
        self.engine.pass((1 << thread.in_vain) - 1);
        Ok(complete)
    }

    /// `mbarrier.pending_count` of a state.
    pub fn mbarrier_pending_count(state: u64) -> u32 {
        Mbarrier::pending_of(state)
    }

    /// Finds the mbarrier at an address, and checks that its initialisation is visible to the thread.
    pub(super) fn mbarrier_place(
        &mut self,
        access: Access,
        space: Space,
        address: u64,
    ) -> Result<(usize, u32), Stop> {
        let (rank, at) = self.shared_place(access, space, address, BYTES, BYTES)?;
        let index = self.index(access.who);
        let view = &self.threads[index].view;
        let Some(mbarrier) = self.blocks[rank].mbarriers.look(at) else {
            return self.no_mbarrier(access, rank, at);
        };
        let made = (mbarrier.init_by, mbarrier.init_site);
        if self.config.checks.order && !view.follows(mbarrier.init) {
            let help = "a barrier between the initialisation and the use: [[`sync_threads()`||`bar.sync`]], or \
                        [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]] for another block's";
            self.not_visible(access, at, made, help);
        }
        Ok((rank, at))
    }

    /// Checks that copies that `access` starts may complete on the mbarrier at `at` of block `rank`.
    pub(super) fn mbarrier_for_copy(&mut self, access: Access, rank: usize, at: u32) -> Result<(), Stop> {
        let index = self.index(access.who);
        let view = &self.threads[index].view;
        let Some(mbarrier) = self.blocks[rank].mbarriers.look(at) else {
            return self.no_mbarrier(access, rank, at);
        };
        let made = (mbarrier.init_by, mbarrier.init_site);
        if self.config.checks.order && !is_ready(mbarrier, view) {
            let help = if view.follows(mbarrier.init) {
                "[[`fence_barrier_init()`||`fence.mbarrier_init.release.cluster`]] after the initialisation"
            } else {
                "[[`fence_barrier_init()`||`fence.mbarrier_init.release.cluster`]] after the initialisation, and a barrier \
                 between that and the copy"
            };
            self.not_visible(access, at, made, help);
        }
        Ok(())
    }

    fn not_visible(&mut self, access: Access, at: u32, (init_by, init_site): (ThreadId, Site), help: &str) {
        let message = format!(
            "the initialisation of the mbarrier at {} need not be visible where it is used",
            self.spot(at)
        );
        let finding = Finding::new(FindingKind::BarrierNotVisible, message)
            .with(self.party(access.who, access.site, access.does))
            .with(self.party(init_by, init_site, "initialised it"))
            .help(help);
        self.report(finding);
    }

    /// Reports an arrival in a phase, of which `state` is, before anybody has seen the phase before it complete.
    fn unobserved(&mut self, access: Access, rank: usize, at: u32, state: u64) {
        let phase = (state >> 32) as u32;
        let before = phase.saturating_sub(1);
        let (spot, of_block) = (self.spot(at), self.of_block(rank));
        let count = self.blocks[rank].mbarriers.look(at).map_or(0, |mbarrier| mbarrier.expected);
        let message = format!(
            "the mbarrier at {spot}{of_block} gets an arrival in phase {phase}, but no wait has seen phase {before} complete"
        );
        let finding = Finding::new(FindingKind::BarrierMisuse, message)
            .with(self.party(access.who, access.site, access.does))
            .help(format!(
                "wait for each phase before anybody arrives in the next one; or is its count of {count}, given to \
                 [[`init({count})`||`mbarrier.init`]], less than what arrives in a phase?"
            ));
        self.report(finding);
    }

    fn no_mbarrier<T>(&mut self, access: Access, rank: usize, at: u32) -> Result<T, Stop> {
        let (spot, of_block) = (self.spot(at), self.of_block(rank));
        let message =
            format!("there is no mbarrier at {spot}{of_block}: it is not initialised, or not any more");
        let help = if rank == access.who.block as usize {
            "let one thread initialise it, [[`init(..)`||`mbarrier.init`]], and all meet, at a \
             [[`sync_threads()`||`bar.sync`]] that every thread comes to, before the first uses it"
        } else {
            "let a thread of its block initialise it, [[`init(..)`||`mbarrier.init`]], and the blocks meet, \
             [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]], before others use it"
        };
        self.misuse(access, message, help)
    }

    fn misuse<T>(&mut self, access: Access, message: String, help: &str) -> Result<T, Stop> {
        let party = self.party(access.who, access.site, access.does);
        self.stop(Finding::new(FindingKind::BarrierMisuse, message).with(party).help(help))
    }

    /// Records why an mbarrier does not take an operation.
    pub(super) fn refused<T>(
        &mut self,
        access: Access,
        rank: usize,
        at: u32,
        refusal: Refusal,
    ) -> Result<T, Stop> {
        let state = self.blocks[rank].mbarriers.look(at).map(super::deadlock::describe).unwrap_or_default();
        let (kind, what) = match refusal {
            Refusal::TooManyArrivals => (FindingKind::BarrierMisuse, "more arrivals than its phase expects"),
            Refusal::NoArrival => {
                (FindingKind::BarrierMisuse, "an arrival with a count of 0; it is 1 to 2^20 - 1")
            }
            Refusal::OtherPhase => (
                FindingKind::BarrierMisuse,
                "a wait with the state of a phase that is neither its current one nor the one before",
            ),
            Refusal::TransactionRange => (
                FindingKind::TransactionBytes,
                "a transaction count out of its range of -(2^20 - 1) to 2^20 - 1",
            ),
            Refusal::PendingRange => (FindingKind::BarrierMisuse, "a pending count above 2^20 - 1"),
            Refusal::Completes => {
                (FindingKind::BarrierMisuse, "a `.noComplete` arrival that completes its phase")
            }
            Refusal::OtherBarrier => {
                (FindingKind::BarrierMisuse, "a wait with the state of another mbarrier")
            }
            Refusal::NoneExpected => (
                FindingKind::BarrierMisuse,
                "an `arrive_drop` that leaves no arrival to expect: use `mbarrier.inval` where it is not used any more",
            ),
        };
        let party = self.party(access.who, access.site, access.does);
        self.stop(
            Finding::new(kind, format!("the mbarrier at {} gets {what} ({state})", self.spot(at)))
                .with(party),
        )
    }

    /// Marks the initialisations of `who` as made visible by `fence.mbarrier_init` at step `fence`.
    pub(super) fn fence_mbarriers(&mut self, who: ThreadId, fence: Epoch) {
        for mbarrier in self.blocks.iter_mut().flat_map(|block| block.mbarriers.all()) {
            if mbarrier.init_by == who && mbarrier.fenced.is_none() {
                mbarrier.fenced = Some(fence);
            }
        }
    }
}

/// Whether the asynchronous proxy sees the initialisation in what `view` starts.
fn is_ready(mbarrier: &Mbarrier, view: &View) -> bool {
    view.follows(mbarrier.init)
        && (view.sees_async(mbarrier.init, Memory::Shared)
            || mbarrier.fenced.is_some_and(|fence| view.follows(fence)))
}
