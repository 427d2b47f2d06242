//! The end of an mbarrier: by invalidation, or with its block.

use tma_model::limits::BARRIER_BYTES;
use tma_model::sync::Epoch;

use super::{At, WRITE};
use crate::check::protocol::finding::{Act, Detail, Found, Party, Rule};
use crate::check::protocol::memory::region::Region;
use crate::check::protocol::memory::{Site, all_know_over};
use crate::check::protocol::run::{Run, Step, Stop};
use crate::ir::StmtId;

impl Run<'_, '_> {
    /// Invalidates an mbarrier. Its memory may then be used for other purposes.
    pub(super) fn invalidate(&mut self, stmt: StmtId, place: At) -> Step {
        self.usable(stmt, place, Act::Invalidate)?;
        self.settled(stmt, place, Act::Invalidate)?;
        self.unused(stmt, place)?;
        self.history.note_invalidation(place, self.site(stmt));
        self.blocks[place.0].mbarriers.remove(&place.1);
        // The next use of this memory must be ordered after the invalidation.
        let bytes = Region::all(place.1..place.1 + BARRIER_BYTES as u32);
        self.touch(stmt, place.0, (WRITE, bytes), None)
    }

    /// Checks that an mbarrier is no longer in use: every arrival, announcement and wait there is
    /// known to be over. Source: PTX ISA, "mbarrier.inval".
    fn unused(&mut self, stmt: StmtId, place: At) -> Step {
        let Some(mbarrier) = self.mbarrier(place) else { return Ok(()) };
        let uses: Vec<Epoch> = mbarrier.uses.values().copied().collect();
        let me = self.me();
        let is_over = |step: &Epoch| all_know_over(&me.view, *step, me.threads.len());
        if uses.iter().all(is_over) { Ok(()) } else { self.misuse(stmt, place, Act::InvalidateInUse) }
    }

    /// Checks that an mbarrier that ends is missing no bytes, and that its last load was waited
    /// for. `does` is the operation that ends it.
    pub(in crate::check::protocol) fn settled(&mut self, stmt: StmtId, place: At, does: Act) -> Step {
        let Some(mbarrier) = self.mbarrier(place) else { return Ok(()) };
        let (tx, load, observed) = (mbarrier.count.tx(), mbarrier.load, mbarrier.observed);
        let announced = mbarrier.announced;
        let detail = self.barrier_detail(place);
        let party = |site: Site, does| Party { site, does };
        if tx != 0 {
            if let (Some((site, missing)), Detail::Barrier { at, state, .. }) =
                (self.missing_slices(place), &detail)
            {
                let detail = Detail::Slices { at: *at, state: *state, missing };
                let at = party(site, Act::LoadSlice);
                let found = Found { rule: Rule::Bytes, at, others: vec![], detail };
                return Err(Stop::Found(Box::new(found)));
            }
            let others = announced.map(|site| party(site, Act::Announce));
            let loads = load.map(|(_, site)| party(site, Act::IssueCopy));
            let mut all: Vec<_> = others.into_iter().chain(loads).collect();
            let at = if all.is_empty() { party(self.site(stmt), does) } else { all.remove(0) };
            let found = Found { rule: Rule::Bytes, at, others: all, detail };
            return Err(Stop::Found(Box::new(found)));
        }
        if let Some((_, site)) = load.filter(|(phase, _)| *phase > observed) {
            if does == Act::Invalidate {
                let others = vec![party(site, Act::ReportThere)];
                return self.found(Rule::Leak, (stmt, Act::InvalidateUnderCopy), others, detail);
            }
            let others = vec![party(self.site(stmt), does)];
            let at = party(site, Act::IssueLoad);
            let found = Found { rule: Rule::Leak, at, others, detail };
            return Err(Stop::Found(Box::new(found)));
        }
        Ok(())
    }
}
