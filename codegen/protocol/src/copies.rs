//! Copies of the copy engine: accesses that end only when waited for.

use std::rc::Rc;

use tma_front::ir::{
    BinaryOp, BulkCopy, ClusterAxis, CopyKind, Expr, Multicast, ParamId, RemoteCopy, SharedRange, Stmt,
    StmtId, StmtKind, TileCopy, TileType, Type,
};
use tma_model::sync::{Access, AccessKind, Epoch, GroupEnd, GroupWait, Memory, Proxy};

use super::barriers::MbarrierAddr;
use super::code::Op;
use super::finding::{Detail, Party, Rule, ThreadAct, UndecidedReason, Violation};
use super::memory::global::GlobalLocation;
use super::memory::region::Region;
use super::memory::tiles::bytes_of_elements;
use super::run::{Run, StepFlow, StepResult, Stop};
use super::term::{Term, Terms};
use super::to_u32;
use super::value::{Value, along};

const READ: Access = Access::weak(Proxy::Async, AccessKind::Read);
const WRITE: Access = Access::weak(Proxy::Async, AccessKind::Write);
const REDUCE: Access = Access::weak(Proxy::Async, AccessKind::Reduce);

/// A load: the bytes that it fills in a block, the bytes that count, the barrier, and the blocks
/// that receive it.
struct Load {
    ranges: Vec<std::ops::Range<u32>>,
    bytes: u32,
    barrier: u32,
    blocks: Vec<usize>,
}

impl Run<'_, '_> {
    /// Returns the block and the address of an object that is the same for all threads of the
    /// group.
    pub(super) fn address(&mut self, expr: &Expr) -> StepResult<(usize, u32)> {
        let Value::Address(addr) = self.value(expr) else {
            return Err(self.stop_undecided(UndecidedReason::Address, expr.span));
        };
        let (block, at) = (self.uniform(&addr.block)?, self.uniform(&addr.at)?);
        if block < self.state.blocks.len() {
            Ok((block, at))
        } else {
            Err(self.stop_undecided(UndecidedReason::Cluster, expr.span))
        }
    }

    /// Splits the group into threads, since copies are followed thread by thread.
    fn alone(&self) -> StepResult {
        if self.agent().threads.len() > 1 { Err(self.split_all()) } else { Ok(()) }
    }

    /// Executes a copy by a tensor map.
    pub(super) fn tile_copy(&mut self, stmt: &Stmt, copy: &TileCopy) -> StepResult<StepFlow> {
        self.alone()?;
        let moved = self.input.kernel.kernel().param(copy.map.param).ty.moved().cloned();
        let Some(moved) = moved else { return Ok(StepFlow::Next) };
        // PTX ISA, "Tensormap proxy": the thread that uses a map in memory acquires it.
        if matches!(self.input.kernel.kernel().param(copy.map.param).ty, Type::Maps(_))
            && !self.agent().acquired.contains(&copy.map.param)
            && !matches!(copy.kind, CopyKind::Prefetch)
        {
            self.note_undecided(UndecidedReason::Maps, stmt.origin.span);
        }
        let coordinates = copy.map.index.iter().chain(&copy.at).map(|at| self.numbers(at)?.uniform());
        let coordinates = coordinates.collect::<Option<Vec<_>>>();
        let global = coordinates
            .map_or(GlobalLocation::Anywhere, |all| GlobalLocation::Box(all, moved.extents.clone()));
        self.copy_global(stmt, copy.map.param, &copy.kind, global)?;
        match &copy.kind {
            CopyKind::Load { to, barrier, multicast } => {
                let (block, at) = self.address(to)?;
                let (barrier, _) = self.barrier_at(barrier)?;
                if barrier.block != block {
                    return Err(self.stop_undecided(UndecidedReason::Operand, stmt.origin.span));
                }
                let blocks = self.receivers(block, multicast.as_ref())?;
                let whole = if let Type::Tile(whole) = to.ty.local() { whole } else { &moved };
                let ranges = match multicast {
                    Some(Multicast::Sliced(axis)) => self.slice_ranges(at, &moved, whole, *axis),
                    // This includes the padding of a tile, which nothing reads.
                    Some(Multicast::Mask(_)) | None => {
                        Vec::from([range_of(at, to_u32(moved.shared_bytes()))])
                    }
                };
                let bytes = to_u32(moved.bytes());
                if let Some(Multicast::Sliced(axis)) = multicast {
                    self.note_slices(stmt.id, &blocks, barrier.at, *axis);
                }
                self.load(stmt, &Load { ranges, bytes, barrier: barrier.at, blocks })?;
            }
            CopyKind::Store { from } | CopyKind::Reduce { from, op: _ } => {
                let (block, region) =
                    self.region_of(from, |at| Region::All(bytes_of_elements(&moved, at)))?;
                self.store(stmt.id, block, region)?;
            }
            CopyKind::Prefetch => {}
        }
        Ok(StepFlow::Next)
    }

    /// Returns the blocks that a load fills: `own`, or those of a multicast.
    fn receivers(&mut self, own: usize, multicast: Option<&Multicast>) -> StepResult<Vec<usize>> {
        let mask = match multicast {
            None => return Ok(vec![own]),
            Some(Multicast::Mask(mask)) => {
                let (span, mask) = (mask.span, self.number_u32(mask)?);
                // PTX ISA, "cp.async.bulk.tensor": each bit is the rank of a block of the cluster.
                if mask >> self.state.blocks.len() != 0 {
                    return Err(self.stop_undecided(UndecidedReason::Undefined, span));
                }
                mask
            }
            Some(Multicast::Sliced(axis)) => self.peers(*axis),
        };
        Ok((0..self.state.blocks.len()).filter(|rank| mask >> rank & 1 == 1).collect())
    }

    /// Returns the mask of the blocks that share a sliced load with this one.
    fn peers(&self, axis: ClusterAxis) -> u32 {
        let cluster @ [x, y, _] = self.input.cluster;
        let rank = u32::try_from(self.agent().block).unwrap_or(0);
        let ClusterAxis::Along(axis) = axis else { return (1 << self.state.blocks.len()) - 1 };
        let stride = match axis {
            tma_front::ir::Axis::X => 1,
            tma_front::ir::Axis::Y => x,
            tma_front::ir::Axis::Z => x * y,
        };
        let extent = along(cluster, axis);
        let first = rank - rank / stride % extent * stride;
        (0..extent).fold(0, |mask, block| mask | 1 << (first + block * stride))
    }

    /// Records that this block loads its part of a tile. All of `blocks` wait for the whole tile.
    fn note_slices(&mut self, stmt: StmtId, blocks: &[usize], barrier: u32, axis: ClusterAxis) {
        let (peers, site) = (self.peers(axis), self.site(stmt));
        for addr in blocks.iter().map(|&block| MbarrierAddr { block, at: barrier }) {
            if let Some(phase) = self.mbarrier(addr).map(|mbarrier| mbarrier.count.phase()) {
                self.state.history.note_slice(addr, phase, peers, site);
            }
        }
    }

    /// Returns the bytes of the tile that this block's slice fills, as `lower/cluster.rs` computes
    /// them.
    fn slice_ranges(
        &self,
        at: u32,
        slice: &TileType,
        whole: &TileType,
        axis: ClusterAxis,
    ) -> Vec<std::ops::Range<u32>> {
        let cluster @ [x, y, _] = self.input.cluster;
        let rank = u32::try_from(self.agent().block).unwrap_or(0);
        let number = match axis {
            ClusterAxis::All => rank,
            ClusterAxis::Along(tma_front::ir::Axis::X) => rank % x,
            ClusterAxis::Along(tma_front::ir::Axis::Y) => rank / x % y,
            ClusterAxis::Along(tma_front::ir::Axis::Z) => rank / (x * y) % cluster[2],
        };
        let along = whole.sliced_dimension();
        if along + 1 >= whole.rank() {
            // Slices along a row are panels themselves.
            let bytes = to_u32(slice.shared_bytes());
            let start = at + number * bytes;
            return Vec::from([range_of(start, bytes)]);
        }
        let (bytes, panel) = (to_u32(slice.panel_bytes()), to_u32(whole.panel_bytes()));
        let panels = u32::try_from(slice.panels()).unwrap_or(1);
        let start = |index: u32| at + index * panel + number * bytes;
        (0..panels).map(|index| start(index)..start(index) + bytes).collect()
    }

    /// Checks that copies may complete at an mbarrier.
    fn usable_by_copies(&mut self, stmt: StmtId, addr: MbarrierAddr) -> StepResult {
        let does = ThreadAct::IssueCopyThere;
        let known = self.mbarrier(addr).map(|mbarrier| (mbarrier.init_step, mbarrier.fenced, mbarrier.init));
        let Some((step, fenced, init)) = known else {
            let detail = Detail::Memory { block: addr.block, at: addr.at };
            return self.violation(Rule::NotVisible, stmt, does, vec![], detail);
        };
        let view = &self.agent().view;
        let behind_fence =
            view.is_visible_to_async(step, Memory::Shared) || fenced.is_some_and(|fence| self.sees(fence));
        if self.sees(step) && behind_fence {
            return Ok(());
        }
        let detail = self.barrier_detail(addr);
        let other = Party { site: init, does: ThreadAct::Initialise };
        self.violation(Rule::NotVisible, stmt, does, vec![other], detail)
    }

    /// Executes a load. Its bytes count at the barrier of each receiving block, and may be read
    /// once that phase is complete.
    fn load(&mut self, stmt: &Stmt, load: &Load) -> StepResult {
        let issue = self.issue();
        let region = Region::All(Rc::from(load.ranges.as_slice()));
        for &block in &load.blocks {
            let addr = MbarrierAddr { block, at: load.barrier };
            self.usable_by_copies(stmt.id, addr)?;
            self.counts_in_order(addr, stmt);
            let Some(mbarrier) = self.mbarrier(addr) else { continue };
            let done = mbarrier.next_phase();
            mbarrier.order.note_issue(&issue);
            self.access_shared(stmt.id, block, WRITE, region.clone(), Some(done))?;
            let hull = region.hull();
            self.state.blocks[block].numbers.retain(|at, _| !hull.contains(at));
            let site = self.site(stmt.id);
            if let Some(mbarrier) = self.mbarrier(addr) {
                mbarrier.load = Some((mbarrier.count.phase() + 1, site));
            }
            self.change(stmt.id, addr, ThreadAct::IssueCopy, |count| count.complete_tx(load.bytes))?;
        }
        Ok(())
    }

    /// Executes a store or reduction, which reads shared memory until its group is waited for.
    fn store(&mut self, stmt: StmtId, block: usize, region: Region) -> StepResult {
        let component = match self.agent().stores.component {
            Some(component) => component,
            None => self.component(),
        };
        let site = self.site(stmt);
        let stores = &mut self.agent_mut().stores;
        stores.component = Some(component);
        let group = stores.groups.current();
        stores.groups.start(1);
        // The time of the read makes no difference, since only a wait shows it.
        stores.groups.read(group);
        stores.groups.written(group);
        stores.open.push((group, site));
        self.access_shared(stmt, block, READ, region, Some(Epoch::new(component, group)))
    }

    /// Records the access of a copy to global memory. A load has read it when its phase is
    /// complete, and a store has written it when its group is.
    fn copy_global<S>(
        &mut self,
        stmt: &Stmt,
        param: ParamId,
        kind: &CopyKind<S>,
        at: GlobalLocation,
    ) -> StepResult {
        if !self.input.code.slice.is_shared_with_copies(param) {
            return Ok(());
        }
        let (access, done) = match kind {
            CopyKind::Load { barrier, .. } => {
                let (addr, _) = self.barrier_at(barrier)?;
                (READ, self.mbarrier(addr).map(|mbarrier| mbarrier.next_phase()))
            }
            CopyKind::Store { .. } | CopyKind::Reduce { .. } => {
                let component = match self.agent().stores.written {
                    Some(component) => component,
                    None => self.component(),
                };
                let stores = &mut self.agent_mut().stores;
                stores.written = Some(component);
                let access = if matches!(kind, CopyKind::Reduce { .. }) { REDUCE } else { WRITE };
                (access, Some(Epoch::new(component, stores.groups.current())))
            }
            CopyKind::Prefetch => return Ok(()),
        };
        self.access_global(stmt.id, param, access, at, done)
    }

    /// Evaluates a number that may depend on the launch. One value is followed, the greatest up to
    /// `most`. The others stay undecided.
    fn fix_launch_number(&mut self, expr: &Expr, most: u32) -> StepResult<u32> {
        let Some(lanes) = self.numbers(expr) else {
            return Err(self.stop_undecided(UndecidedReason::Operand, expr.span));
        };
        let term = self.uniform(&lanes)?;
        let (low, high) = self.state.facts.range(self.terms, term);
        let number = high.min(i128::from(most));
        if low == high || number < low {
            return self.number_u32(expr);
        }
        let scalar = self.terms.scalar(term);
        let fixed = self.terms.number(number, scalar);
        let equal = self.terms.binary(BinaryOp::Eq, term, fixed);
        self.note_undecided(UndecidedReason::Operand, expr.span);
        if !self.state.facts.assume(self.terms, equal, true) {
            return Err(self.stop_undecided(UndecidedReason::Operand, expr.span));
        }
        u32::try_from(number).map_err(|_| self.stop_undecided(UndecidedReason::Operand, expr.span))
    }

    /// Returns the bytes that are announced. If the launch determines how many elements are copied,
    /// as many are assumed as there is room for.
    pub(super) fn bytes(&mut self, bytes: &Expr) -> StepResult<u32> {
        let Some(lanes) = self.numbers(bytes) else {
            return Err(self.stop_undecided(UndecidedReason::Operand, bytes.span));
        };
        let term = self.uniform(&lanes)?;
        let (low, high) = self.state.facts.range(self.terms, term);
        if low == high {
            return self.number_u32(bytes);
        }
        let input = self.input;
        for step in input.code.steps() {
            if let Op::Do(stmt) = &step.op
                && let StmtKind::BulkCopy(copy) = &stmt.kind
                && let CopyKind::Load { to, .. } = &copy.kind
                && let Some((_, len)) = to.array.ty.sequence()
                && let Some(known) = self.numbers(&copy.count)
                && known.uniform().is_some_and(|count| depends(self.terms, term, count))
            {
                let first = self.fix_launch_number(&to.at, 0)?;
                self.fix_launch_number(&copy.count, to_u32(len).saturating_sub(first))?;
            }
        }
        self.number_u32(bytes)
    }

    /// Executes a copy of consecutive elements.
    pub(super) fn bulk_copy(&mut self, stmt: &Stmt, copy: &BulkCopy) -> StepResult<StepFlow> {
        self.alone()?;
        let Some((element, len)) = copy.kind.shared().and_then(|range| range.array.ty.sequence()) else {
            return Ok(StepFlow::Next);
        };
        let Some(range) = copy.kind.shared() else { return Ok(StepFlow::Next) };
        let first = self.fix_launch_number(&range.at, 0)?;
        let room = to_u32(len).saturating_sub(first);
        let elements = self.fix_launch_number(&copy.count, room)?;
        let bytes = elements.saturating_mul(element.bytes());
        // The rank of a peer's slice is not followed.
        let global = match self.numbers(&copy.index) {
            Some(index) if copy.global.rank.is_none() => GlobalLocation::Elements(index, Some(elements)),
            Some(_) | None => GlobalLocation::Anywhere,
        };
        self.copy_global(stmt, copy.global.param, &copy.kind, global)?;
        let addr = |run: &mut Self, SharedRange { array, at }: &SharedRange| -> StepResult<(usize, u32)> {
            let (block, base) = run.address(array)?;
            let first = run.number_u32(at)?;
            if u64::from(first) + u64::from(elements) > len {
                // Out of bounds, the copy stops the grid.
                return Err(Stop::Discarded);
            }
            Ok((block, base + first * element.bytes()))
        };
        match &copy.kind {
            CopyKind::Load { to, barrier, multicast } => {
                let (block, at) = addr(self, to)?;
                let (barrier, _) = self.barrier_at(barrier)?;
                let blocks = self.receivers(block, multicast.as_ref())?;
                let ranges = Vec::from([range_of(at, bytes)]);
                self.load(stmt, &Load { ranges, bytes, barrier: barrier.at, blocks })?;
            }
            CopyKind::Store { from } | CopyKind::Reduce { from, op: _ } => {
                let (block, at) = addr(self, from)?;
                self.store(stmt.id, block, Region::all(at..at + bytes))?;
            }
            CopyKind::Prefetch => {}
        }
        Ok(StepFlow::Next)
    }

    /// Executes a copy into another block. The completion at its barrier also shows that the source
    /// is free.
    pub(super) fn remote_copy(&mut self, stmt: &Stmt, copy: &RemoteCopy) -> StepResult<StepFlow> {
        self.alone()?;
        let Some((element, len)) = copy.from.ty.sequence() else { return Ok(StepFlow::Next) };
        let ((own, from), (block, to)) = (self.address(&copy.from)?, self.address(&copy.to)?);
        let (addr, _) = self.barrier_at(&copy.barrier)?;
        let (first, count) = (self.number_u32(&copy.at)?, self.number_u32(&copy.count)?);
        if u64::from(first) + u64::from(count) > len {
            return Err(Stop::Discarded);
        }
        let (offset, bytes) = (first * element.bytes(), count * element.bytes());
        self.usable_by_copies(stmt.id, addr)?;
        self.use_remote_memory(stmt.id, block)?;
        self.counts_in_order(addr, stmt);
        let issue = self.issue();
        let Some(mbarrier) = self.mbarrier(addr) else { return Ok(StepFlow::Next) };
        let done = mbarrier.next_phase();
        mbarrier.order.note_issue(&issue);
        let (from, to) = (from + offset, to + offset);
        let write = if copy.op.is_some() { REDUCE } else { WRITE };
        self.access_shared(stmt.id, own, READ, Region::all(from..from + bytes), Some(done))?;
        self.access_shared(stmt.id, block, write, Region::all(to..to + bytes), Some(done))?;
        self.state.blocks[block].numbers.retain(|at, _| !(to..to + bytes).contains(at));
        // The source is read until then, so its block must not end before.
        let site = self.site(stmt.id);
        self.state.blocks[own].note_remote_use((done, site));
        if let Some(mbarrier) = self.mbarrier(addr) {
            mbarrier.load = Some((mbarrier.count.phase() + 1, site));
        }
        self.change(stmt.id, addr, ThreadAct::IssueCopy, |count| count.complete_tx(bytes))?;
        Ok(StepFlow::Next)
    }

    pub(super) fn commit_group(&mut self) -> StepFlow {
        self.agent_mut().stores.groups.commit();
        StepFlow::Next
    }

    pub(super) fn wait_group(&mut self, pending: u32, read_only: bool) -> StepFlow {
        let end = if read_only { GroupEnd::Read } else { GroupEnd::Written };
        let stores = &mut self.agent_mut().stores;
        let GroupWait::Done { last, .. } = stores.groups.wait(pending, end) else { return StepFlow::Blocked };
        stores.open.retain(|(group, _)| *group > last);
        // After a wait for the reads alone, the writes need not be complete.
        let written = stores.written.filter(|_| !read_only);
        let components = [stores.component, written];
        for component in components.into_iter().flatten().filter(|_| last > 0) {
            self.agent_mut().view.learn(Epoch::new(component, last));
        }
        StepFlow::Next
    }

    /// Checks that all stores have been waited for when threads end.
    pub(super) fn stores_are_over(&mut self, stmt: StmtId) -> StepResult {
        let Some(&(_, site)) = self.agent().stores.open.first() else { return Ok(()) };
        let at = Party { site, does: ThreadAct::IssueStore };
        let others = vec![Party { site: self.site(stmt), does: ThreadAct::End }];
        Err(Violation { rule: Rule::Leak, at, others, detail: Detail::Nothing }.into())
    }
}

/// Whether a term is another one, or is computed from it.
fn depends(terms: &Terms, term: Term, on: Term) -> bool {
    term == on || terms.operands(term).into_iter().any(|operand| depends(terms, operand, on))
}

/// Returns the range of `bytes` bytes from an address on.
fn range_of(start: u32, bytes: u32) -> std::ops::Range<u32> {
    start..start + bytes
}
