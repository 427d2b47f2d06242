//! Copies of the copy engine, and reads by tensor cores: accesses that end only when waited for.

use std::rc::Rc;

use tma_model::sync::{Access, AccessKind, Epoch, GroupEnd, GroupWait, Memory, Proxy};

use super::barriers::At;
use super::code::Op;
use super::finding::{Act, Detail, Party, Rule, Why};
use super::memory::global::Whereabouts;
use super::memory::region::Region;
use super::memory::tiles::bytes_of_elements;
use super::run::{Flow, Run, Step};
use super::state::TensorCore;
use super::term::{Term, Terms};
use super::value::{Value, along};
use crate::check::layout;
use crate::ir::{
    BinaryOp, BulkCopy, ClusterAxis, CopyKind, Expr, LeftOperand, LocalId, Mma, Multicast, ParamId,
    RemoteCopy, SharedOperand, SharedRange, Stmt, StmtId, StmtKind, TileCopy, TileType, Type,
};
use crate::limits::WARPGROUP_THREADS;

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
    pub(super) fn address(&mut self, expr: &Expr) -> Step<At> {
        let Value::Place(place) = self.value(expr) else {
            return Err(self.unknown(Why::Address, expr.span));
        };
        let (block, at) = (self.uniform(&place.block)?, self.uniform(&place.at)?);
        if block < self.blocks.len() { Ok((block, at)) } else { Err(self.unknown(Why::Cluster, expr.span)) }
    }

    /// Splits the group into threads, since copies are followed thread by thread.
    fn alone(&self) -> Step {
        if self.me().threads.len() > 1 { Err(self.split_all()) } else { Ok(()) }
    }

    /// Executes a copy by a tensor map.
    pub(super) fn tile_copy(&mut self, stmt: &Stmt, copy: &TileCopy) -> Step<Flow> {
        self.alone()?;
        let moved = self.input.kernel.kernel().param(copy.map.param).ty.moved().cloned();
        let Some(moved) = moved else { return Ok(Flow::Next) };
        // PTX ISA, "Tensormap proxy": the thread that uses a map in memory acquires it.
        if matches!(self.input.kernel.kernel().param(copy.map.param).ty, Type::Maps(_))
            && !self.me().acquired.contains(&copy.map.param)
            && !matches!(copy.kind, CopyKind::Prefetch)
        {
            self.doubt(Why::Maps, stmt.origin.span);
        }
        let coordinates = copy.map.index.iter().chain(&copy.at).map(|at| self.numbers(at)?.uniform());
        let coordinates = coordinates.collect::<Option<Vec<_>>>();
        let global =
            coordinates.map_or(Whereabouts::Anywhere, |all| Whereabouts::Box(all, moved.extents.clone()));
        self.copy_global(stmt, copy.map.param, &copy.kind, global)?;
        match &copy.kind {
            CopyKind::Load { to, barrier, multicast } => {
                let (block, at) = self.address(to)?;
                let ((barrier_block, barrier), _) = self.barrier_at(barrier)?;
                if barrier_block != block {
                    return Err(self.unknown(Why::Operand, stmt.origin.span));
                }
                let blocks = self.receivers(block, multicast.as_ref())?;
                let whole = if let Type::Tile(whole) = to.ty.local() { whole } else { &moved };
                let ranges = match multicast {
                    Some(Multicast::Sliced(axis)) => self.slice_ranges(at, &moved, whole, *axis),
                    // This includes the padding of a tile, which nothing reads.
                    Some(Multicast::Mask(_)) | None => {
                        Vec::from([range_of(at, bytes_of(moved.shared_bytes()))])
                    }
                };
                let bytes = bytes_of(moved.bytes());
                if let Some(Multicast::Sliced(axis)) = multicast {
                    self.note_slices(stmt.id, (&blocks, barrier), *axis);
                }
                self.load(stmt, &Load { ranges, bytes, barrier, blocks })?;
            }
            CopyKind::Store { from } | CopyKind::Reduce { from, op: _ } => {
                let (block, region) =
                    self.region_of(from, |at| Region::All(bytes_of_elements(&moved, at)))?;
                self.store(stmt.id, block, region)?;
            }
            CopyKind::Prefetch => {}
        }
        Ok(Flow::Next)
    }

    /// Returns the blocks that a load fills: `own`, or those of a multicast.
    fn receivers(&mut self, own: usize, multicast: Option<&Multicast>) -> Step<Vec<usize>> {
        let mask = match multicast {
            None => return Ok(vec![own]),
            Some(Multicast::Mask(mask)) => {
                let (span, mask) = (mask.span, self.small(mask)?);
                // PTX ISA, "cp.async.bulk.tensor": each bit is the rank of a block of the cluster.
                if mask >> self.blocks.len() != 0 {
                    return Err(self.unknown(Why::Undefined, span));
                }
                mask
            }
            Some(Multicast::Sliced(axis)) => self.peers(*axis),
        };
        Ok((0..self.blocks.len()).filter(|rank| mask >> rank & 1 == 1).collect())
    }

    /// Returns the mask of the blocks that share a sliced load with this one.
    fn peers(&self, axis: ClusterAxis) -> u32 {
        let cluster @ [x, y, _] = self.input.cluster;
        let rank = u32::try_from(self.me().block).unwrap_or(0);
        let ClusterAxis::Along(axis) = axis else { return (1 << self.blocks.len()) - 1 };
        let apart = match axis {
            crate::ir::Axis::X => 1,
            crate::ir::Axis::Y => x,
            crate::ir::Axis::Z => x * y,
        };
        let extent = along(cluster, axis);
        let first = rank - rank / apart % extent * apart;
        (0..extent).fold(0, |mask, block| mask | 1 << (first + block * apart))
    }

    /// Records that this block loads its part of a tile. All of `blocks` wait for the whole tile.
    fn note_slices(&mut self, stmt: StmtId, (blocks, barrier): (&[usize], u32), axis: ClusterAxis) {
        let (peers, site) = (self.peers(axis), self.site(stmt));
        for place in blocks.iter().map(|&block| (block, barrier)) {
            if let Some(phase) = self.mbarrier(place).map(|mbarrier| mbarrier.count.phase()) {
                self.history.note_slice(place, phase, (peers, site));
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
        let rank = u32::try_from(self.me().block).unwrap_or(0);
        let number = match axis {
            ClusterAxis::All => rank,
            ClusterAxis::Along(crate::ir::Axis::X) => rank % x,
            ClusterAxis::Along(crate::ir::Axis::Y) => rank / x % y,
            ClusterAxis::Along(crate::ir::Axis::Z) => rank / (x * y) % cluster[2],
        };
        let along = whole.sliced_dimension();
        if along + 1 >= whole.rank() {
            // Slices along a row are panels themselves.
            let bytes = bytes_of(slice.shared_bytes());
            let start = at + number * bytes;
            return Vec::from([range_of(start, bytes)]);
        }
        let (bytes, panel) = (bytes_of(slice.panel_bytes()), bytes_of(whole.panel_bytes()));
        let panels = u32::try_from(slice.panels()).unwrap_or(1);
        let start = |index: u32| at + index * panel + number * bytes;
        (0..panels).map(|index| start(index)..start(index) + bytes).collect()
    }

    /// Checks that copies may complete at an mbarrier.
    fn usable_by_copies(&mut self, stmt: StmtId, place: At) -> Step {
        let does = Act::IssueCopyThere;
        let known = self.mbarrier(place).map(|mbarrier| (mbarrier.init_step, mbarrier.fenced, mbarrier.init));
        let Some((step, fenced, init)) = known else {
            let detail = Detail::Memory { block: place.0, at: place.1 };
            return self.found(Rule::NotVisible, (stmt, does), vec![], detail);
        };
        let view = &self.me().view;
        let behind_fence =
            view.sees_async(step, Memory::Shared) || fenced.is_some_and(|fence| self.sees(fence));
        if self.sees(step) && behind_fence {
            return Ok(());
        }
        let detail = self.barrier_detail(place);
        let other = Party { site: init, does: Act::Initialise };
        self.found(Rule::NotVisible, (stmt, does), vec![other], detail)
    }

    /// Executes a load. Its bytes count at the barrier of each receiving block, and may be read
    /// once that phase is complete.
    fn load(&mut self, stmt: &Stmt, load: &Load) -> Step {
        let issue = self.issue();
        let region = Region::All(Rc::from(load.ranges.as_slice()));
        for &block in &load.blocks {
            let place = (block, load.barrier);
            self.usable_by_copies(stmt.id, place)?;
            self.counts_in_order(place, stmt);
            let Some(mbarrier) = self.mbarrier(place) else { continue };
            let done = mbarrier.next_phase();
            mbarrier.order.note_issue(&issue);
            self.touch(stmt.id, block, (WRITE, region.clone()), Some(done))?;
            let hull = region.hull();
            self.blocks[block].numbers.retain(|at, _| !hull.contains(at));
            let site = self.site(stmt.id);
            if let Some(mbarrier) = self.mbarrier(place) {
                mbarrier.load = Some((mbarrier.count.phase() + 1, site));
            }
            self.change(stmt.id, place, Act::IssueCopy, |count| count.complete_tx(load.bytes))?;
        }
        Ok(())
    }

    /// Executes a store or reduction, which reads shared memory until its group is waited for.
    fn store(&mut self, stmt: StmtId, block: usize, region: Region) -> Step {
        let component = match self.me().stores.component {
            Some(component) => component,
            None => self.component(),
        };
        let site = self.site(stmt);
        let stores = &mut self.me_mut().stores;
        stores.component = Some(component);
        let group = stores.groups.current();
        stores.groups.start(1);
        // The time of the read makes no difference, since only a wait shows it.
        stores.groups.read(group);
        stores.groups.written(group);
        stores.open.push((group, site));
        self.touch(stmt, block, (READ, region), Some(Epoch::new(component, group)))
    }

    /// Records the access of a copy to global memory. A load has read it when its phase is
    /// complete, and a store has written it when its group is.
    fn copy_global<S>(&mut self, stmt: &Stmt, param: ParamId, kind: &CopyKind<S>, at: Whereabouts) -> Step {
        if !self.input.code.slice.is_shared_with_copies(param) {
            return Ok(());
        }
        let (access, done) = match kind {
            CopyKind::Load { barrier, .. } => {
                let (place, _) = self.barrier_at(barrier)?;
                (READ, self.mbarrier(place).map(|mbarrier| mbarrier.next_phase()))
            }
            CopyKind::Store { .. } | CopyKind::Reduce { .. } => {
                let component = match self.me().stores.written {
                    Some(component) => component,
                    None => self.component(),
                };
                let stores = &mut self.me_mut().stores;
                stores.written = Some(component);
                let access = if matches!(kind, CopyKind::Reduce { .. }) { REDUCE } else { WRITE };
                (access, Some(Epoch::new(component, stores.groups.current())))
            }
            CopyKind::Prefetch => return Ok(()),
        };
        self.touch_global(stmt.id, param, (access, at), done)
    }

    /// Evaluates a number that may depend on the launch. One value is followed, the greatest up to
    /// `most`. The others stay undecided.
    fn settle(&mut self, expr: &Expr, most: u32) -> Step<u32> {
        let Some(lanes) = self.numbers(expr) else { return Err(self.unknown(Why::Operand, expr.span)) };
        let term = self.uniform(&lanes)?;
        let (low, high) = self.facts.range(self.terms, term);
        let number = high.min(i128::from(most));
        if low == high || number < low {
            return self.small(expr);
        }
        let scalar = self.terms.scalar(term);
        let settled = self.terms.number(number, scalar);
        let equal = self.terms.binary(BinaryOp::Eq, term, settled);
        self.doubt(Why::Operand, expr.span);
        if !self.facts.assume(self.terms, equal, true) {
            return Err(self.unknown(Why::Operand, expr.span));
        }
        u32::try_from(number).map_err(|_| self.unknown(Why::Operand, expr.span))
    }

    /// Returns the bytes that are announced. If the launch determines how many elements are copied,
    /// as many are assumed as there is room for.
    pub(super) fn bytes(&mut self, bytes: &Expr) -> Step<u32> {
        let Some(lanes) = self.numbers(bytes) else { return Err(self.unknown(Why::Operand, bytes.span)) };
        let term = self.uniform(&lanes)?;
        let (low, high) = self.facts.range(self.terms, term);
        if low == high {
            return self.small(bytes);
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
                let first = self.settle(&to.at, 0)?;
                self.settle(&copy.count, u32::try_from(len).unwrap_or(u32::MAX).saturating_sub(first))?;
            }
        }
        self.small(bytes)
    }

    /// Executes a copy of consecutive elements.
    pub(super) fn bulk_copy(&mut self, stmt: &Stmt, copy: &BulkCopy) -> Step<Flow> {
        self.alone()?;
        let Some((element, len)) = copy.kind.shared().and_then(|range| range.array.ty.sequence()) else {
            return Ok(Flow::Next);
        };
        let Some(range) = copy.kind.shared() else { return Ok(Flow::Next) };
        let first = self.settle(&range.at, 0)?;
        let room = u32::try_from(len).unwrap_or(u32::MAX).saturating_sub(first);
        let elements = self.settle(&copy.count, room)?;
        let bytes = elements.saturating_mul(element.bytes());
        let global = match self.numbers(&copy.index) {
            Some(index) => Whereabouts::Elements(index, Some(elements)),
            None => Whereabouts::Anywhere,
        };
        self.copy_global(stmt, copy.global, &copy.kind, global)?;
        let place = |run: &mut Self, SharedRange { array, at }: &SharedRange| -> Step<(usize, u32)> {
            let (block, base) = run.address(array)?;
            let first = run.small(at)?;
            if u64::from(first) + u64::from(elements) > len {
                // Out of bounds, the copy stops the grid.
                return Err(super::run::Stop::Over);
            }
            Ok((block, base + first * element.bytes()))
        };
        match &copy.kind {
            CopyKind::Load { to, barrier, multicast } => {
                let (block, at) = place(self, to)?;
                let ((_, barrier), _) = self.barrier_at(barrier)?;
                let blocks = self.receivers(block, multicast.as_ref())?;
                self.load(stmt, &Load { ranges: Vec::from([range_of(at, bytes)]), bytes, barrier, blocks })?;
            }
            CopyKind::Store { from } | CopyKind::Reduce { from, op: _ } => {
                let (block, at) = place(self, from)?;
                self.store(stmt.id, block, Region::all(at..at + bytes))?;
            }
            CopyKind::Prefetch => {}
        }
        Ok(Flow::Next)
    }

    /// Executes a copy into another block. The completion at its barrier also shows that the source
    /// is free.
    pub(super) fn remote_copy(&mut self, stmt: &Stmt, copy: &RemoteCopy) -> Step<Flow> {
        self.alone()?;
        let Some((element, len)) = copy.from.ty.sequence() else { return Ok(Flow::Next) };
        let ((own, from), (block, to)) = (self.address(&copy.from)?, self.address(&copy.to)?);
        let (place, _) = self.barrier_at(&copy.barrier)?;
        let (first, count) = (self.small(&copy.at)?, self.small(&copy.count)?);
        if u64::from(first) + u64::from(count) > len {
            return Err(super::run::Stop::Over);
        }
        let (offset, bytes) = (first * element.bytes(), count * element.bytes());
        self.usable_by_copies(stmt.id, place)?;
        self.visit(stmt.id, block)?;
        self.counts_in_order(place, stmt);
        let issue = self.issue();
        let Some(mbarrier) = self.mbarrier(place) else { return Ok(Flow::Next) };
        let done = mbarrier.next_phase();
        mbarrier.order.note_issue(&issue);
        let (from, to) = (from + offset, to + offset);
        let write = if copy.op.is_some() { REDUCE } else { WRITE };
        self.touch(stmt.id, own, (READ, Region::all(from..from + bytes)), Some(done))?;
        self.touch(stmt.id, block, (write, Region::all(to..to + bytes)), Some(done))?;
        self.blocks[block].numbers.retain(|at, _| !(to..to + bytes).contains(at));
        // The source is read until then, so its block must not end before.
        let site = self.site(stmt.id);
        self.blocks[own].note_visit((done, site));
        if let Some(mbarrier) = self.mbarrier(place) {
            mbarrier.load = Some((mbarrier.count.phase() + 1, site));
        }
        self.change(stmt.id, place, Act::IssueCopy, |count| count.complete_tx(bytes))?;
        Ok(Flow::Next)
    }

    pub(super) fn commit_group(&mut self) -> Flow {
        self.me_mut().stores.groups.commit();
        Flow::Next
    }

    pub(super) fn wait_group(&mut self, pending: u32, read_only: bool) -> Flow {
        let end = if read_only { GroupEnd::Read } else { GroupEnd::Written };
        let stores = &mut self.me_mut().stores;
        let GroupWait::Done { last, .. } = stores.groups.wait(pending, end) else { return Flow::Blocked };
        stores.open.retain(|(group, _)| *group > last);
        // After a wait for the reads alone, the writes need not be complete.
        let written = stores.written.filter(|_| !read_only);
        let components = [stores.component, written];
        for component in components.into_iter().flatten().filter(|_| last > 0) {
            self.me_mut().view.learn(Epoch::new(component, last));
        }
        Flow::Next
    }

    /// Checks that all stores have been waited for when threads end.
    pub(super) fn stores_are_over(&mut self, stmt: StmtId) -> Step {
        let Some(&(_, site)) = self.me().stores.open.first() else { return Ok(()) };
        let at = Party { site, does: Act::IssueStore };
        let others = vec![Party { site: self.site(stmt), does: Act::End }];
        let found = super::finding::Found { rule: Rule::Leak, at, others, detail: Detail::Nothing };
        Err(super::run::Stop::Found(Box::new(found)))
    }

    /// Returns the warpgroup of the current group of threads.
    pub(super) fn warpgroup(&self) -> u32 {
        self.me().threads.first().map_or(0, |thread| thread / WARPGROUP_THREADS)
    }

    /// Executes a multiplication, which reads its tiles until it is waited for.
    pub(super) fn multiply(&mut self, stmt: &Stmt, mma: &Mma) -> Step<Flow> {
        let (block, warpgroup) = (self.me().block, self.warpgroup());
        if !self.blocks[block].tensor_cores.contains_key(&warpgroup) {
            let component = self.component();
            let core = TensorCore { component, folded: 0, issues: vec![] };
            self.blocks[block].tensor_cores.insert(warpgroup, core);
        }
        let number = self.me().multiplications + 1;
        let issue = self.issue();
        let mut operands = vec![&mma.right];
        if let LeftOperand::Shared(left) = &mma.left {
            operands.push(left);
        }
        let Some(core) = self.blocks[block].tensor_cores.get_mut(&warpgroup) else { return Ok(Flow::Next) };
        core.note(number, &issue);
        let done = Epoch::new(core.component, number);
        self.me_mut().multiplications = number;
        self.news += 1;
        for operand in operands {
            let (block, region) = self.region_of(&operand.tile, |at| operand_region(operand, at))?;
            self.touch(stmt.id, block, (READ, region), Some(done))?;
        }
        Ok(Flow::Next)
    }

    pub(super) fn wait_for_multiplications(&mut self, stmt: StmtId, _of: LocalId) -> Flow {
        let last = self.me().multiplications.saturating_sub(self.input.kernel.flights().pending(stmt));
        let (block, warpgroup) = (self.me().block, self.warpgroup());
        let in_group = |agent: &&super::state::Agent| {
            agent.block == block
                && agent.threads.first().is_some_and(|thread| thread / WARPGROUP_THREADS == warpgroup)
        };
        if self.agents.iter().filter(in_group).any(|agent| agent.multiplications < last) {
            return Flow::Blocked;
        }
        if last == 0 {
            return Flow::Next;
        }
        let Some(core) = self.blocks[block].tensor_cores.get_mut(&warpgroup) else { return Flow::Next };
        let component = core.component;
        let past = core.past(last);
        let view = &mut self.agents[self.current].view;
        view.learn(Epoch::new(component, last));
        past.iter().for_each(|past| view.learn_past(past));
        Flow::Next
    }
}

/// Returns the bytes of an operand that a multiplication reads.
fn operand_region(operand: &SharedOperand, at: u32) -> Region {
    let tile = &operand.ty.tile;
    match operand.ty.band {
        None => Region::all(at..at + bytes_of(layout::size(&Type::Tile(tile.clone())))),
        Some(rows) => {
            let (panel, band) = (bytes_of(tile.panel_bytes()), rows * bytes_of(tile.row_pitch()));
            let panels = u32::try_from(tile.panels()).unwrap_or(1);
            let start = |index: u32| at + index * panel;
            Region::All((0..panels).map(|index| start(index)..start(index) + band).collect())
        }
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

/// Converts a size in shared memory, which always fits 32 bits.
pub(super) fn bytes_of(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
