//! The end of an mbarrier: by invalidation, or with its block.

use tma_front::ir::StmtId;
use tma_model::limits::BARRIER_BYTES;
use tma_model::sync::Epoch;

use super::{MbarrierAddr, WRITE};
use crate::finding::{Detail, Party, Rule, ThreadAct, Violation};
use crate::memory::region::Region;
use crate::memory::{Site, all_know_over};
use crate::run::{Run, StepResult};

impl Run<'_, '_> {
    /// Invalidates an mbarrier. Its memory may then be used for other purposes.
    pub(super) fn invalidate(&mut self, stmt: StmtId, addr: MbarrierAddr) -> StepResult {
        self.usable(stmt, addr, ThreadAct::Invalidate)?;
        self.check_end(stmt, addr, ThreadAct::Invalidate)?;
        self.unused(stmt, addr)?;
        self.state.history.note_invalidation(addr, self.site(stmt));
        self.state.blocks[addr.block].mbarriers.remove(&addr.at);
        // The next use of this memory must be ordered after the invalidation.
        let bytes = Region::all(addr.at..addr.at + BARRIER_BYTES as u32);
        self.access_shared(stmt, addr.block, WRITE, bytes, None)
    }

    /// Checks that an mbarrier is no longer in use: every arrival, announcement and wait there is
    /// known to be over. Source: PTX ISA, "mbarrier.inval".
    fn unused(&mut self, stmt: StmtId, addr: MbarrierAddr) -> StepResult {
        let Some(mbarrier) = self.mbarrier(addr) else { return Ok(()) };
        let uses: Vec<Epoch> = mbarrier.last_uses.values().copied().collect();
        let me = self.agent();
        let is_over = |step: &Epoch| all_know_over(&me.view, *step, me.threads.len());
        if uses.iter().all(is_over) { Ok(()) } else { self.misuse(stmt, addr, ThreadAct::InvalidateInUse) }
    }

    /// Checks that an mbarrier that ends is missing no bytes, and that its last load was waited
    /// for. `does` is the operation that ends it.
    pub(crate) fn check_end(&mut self, stmt: StmtId, addr: MbarrierAddr, does: ThreadAct) -> StepResult {
        let Some(mbarrier) = self.mbarrier(addr) else { return Ok(()) };
        let (tx, load, observed) = (mbarrier.count.tx(), mbarrier.load, mbarrier.observed);
        let announced = mbarrier.announced;
        let detail = self.barrier_detail(addr);
        let party = |site: Site, does| Party { site, does };
        if tx != 0 {
            if let (Some((site, missing)), Detail::Barrier { at, state, .. }) =
                (self.missing_slices(addr), &detail)
            {
                let detail = Detail::Slices { at: *at, state: *state, missing };
                let at = party(site, ThreadAct::LoadSlice);
                return Err(Violation { rule: Rule::Bytes, at, others: vec![], detail }.into());
            }
            let others = announced.map(|site| party(site, ThreadAct::Announce));
            let loads = load.map(|(_, site)| party(site, ThreadAct::IssueCopy));
            let mut all: Vec<_> = others.into_iter().chain(loads).collect();
            let at = if all.is_empty() { party(self.site(stmt), does) } else { all.remove(0) };
            return Err(Violation { rule: Rule::Bytes, at, others: all, detail }.into());
        }
        if let Some((_, site)) = load.filter(|(phase, _)| *phase > observed) {
            if does == ThreadAct::Invalidate {
                let others = vec![party(site, ThreadAct::ReportThere)];
                return self.violation(Rule::Leak, stmt, ThreadAct::InvalidateUnderCopy, others, detail);
            }
            let others = vec![party(self.site(stmt), does)];
            let at = party(site, ThreadAct::IssueLoad);
            return Err(Violation { rule: Rule::Leak, at, others, detail }.into());
        }
        Ok(())
    }
}
