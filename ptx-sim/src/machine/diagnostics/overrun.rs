//! Overruns: a wait for a phase of an mbarrier must happen before the following phase completes.
//!
//! An mbarrier distinguishes its current phase from the one before, and no others (PTX ISA,
//! "mbarrier.test_wait"). A wait that comes after one more phase has completed mistakes the phase
//! for the one two later, which has the same parity, or waits for ever. Whether a wait is that late
//! depends on timing, unless the wait is ordered before the completion: its thread arrives
//! afterwards, or synchronises with a thread that does. Hence two checks: each completion must know
//! of the waits that have observed the previous phase, and a wait must not find any phase complete
//! beyond the awaited one that its thread does not know of.
//!
//! A completion knows what its arrivals release and, for copies that count there, what had happened
//! when they were issued. The latter is knowledge of the *past*, which orders phases but no
//! accesses to memory. Relaxed arrivals release only this, and relaxed waits acquire only this.

use tma_model::help::Help;

use crate::machine::Machine;
use crate::machine::barrier::Completer;
use crate::machine::memory::SharedLocation;
use crate::machine::types::{Action, Actor, Phase};
use crate::report::{Finding, FindingKind};

impl Machine {
    /// Checks a thread's query for a phase of an mbarrier. Reports an overrun if a later phase is
    /// already complete.
    pub(in crate::machine) fn check_not_overrun(
        &mut self,
        actor: Actor,
        location: SharedLocation,
        phase: Phase,
    ) {
        if !self.order.is_checked() {
            return;
        }
        let Some(mbarrier) = self.barriers.mbarrier(location) else { return };
        let known = self.order.view(actor.thread).knows().past().get(mbarrier.component);
        let awaited = phase.awaited().phases(known);
        if mbarrier.count().phase() > awaited {
            let next = awaited.saturating_add(1);
            let completer = mbarrier.completer.filter(|completer| completer.phases == next);
            self.overrun(actor, location, awaited, completer);
        }
    }

    /// Handles an operation on an mbarrier that may have completed a phase.
    pub(in crate::machine) fn counted_at(&mut self, action: Action, location: SharedLocation) {
        self.record_phase(location);
        let Some(mbarrier) = self.barriers.mbarrier_mut(location) else { return };
        let phases = mbarrier.count().phase();
        if mbarrier.completer.map_or(0, |completer| completer.phases) != phases {
            mbarrier.completer = Some(Completer { phases, action });
        }
        let completer = mbarrier.completer;
        if let Some(wait) = mbarrier.order.take_overrun()
            && let Some(waited) = self.diagnostics.actor(wait.step, wait.site)
        {
            self.overrun(waited, location, phases.saturating_sub(1), completer);
        }
    }

    /// Reports a wait for `awaited` complete phases that may come after one more has completed.
    #[cold]
    fn overrun(
        &mut self,
        waits: Actor,
        location: SharedLocation,
        awaited: u32,
        completer: Option<Completer>,
    ) {
        let log = &mut self.diagnostics;
        let mbarrier = format!("the mbarrier at {}", log.location_text(location));
        // Phases count from 0. Once one is complete, that is phase 0, and phase 1 is the next.
        let (parity, before) = (awaited & 1, 1 - (awaited & 1));
        let wait = match awaited.checked_sub(1) {
            Some(phase) => format!("a wait for phase {phase} (parity {before}) of {mbarrier}"),
            None => {
                format!("a wait with parity {before} for {mbarrier} that returns before a phase completes")
            }
        };
        let message = format!("nothing orders {wait} before phase {awaited} (parity {parity}) completes");
        let waits = log.party(waits.does("waits"));
        let mut finding = Finding::new(FindingKind::Overrun, message).with(waits);
        if let Some(Completer { action, .. }) = completer {
            finding = finding.with(log.party(action));
        }
        log.report(finding.help(Help::WaitInTime { next: awaited }));
    }
}
