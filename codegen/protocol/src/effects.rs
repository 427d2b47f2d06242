//! The effects of statements in an execution.

use tma_front::ir::{
    Expr, Fence, GlobalRef, Kernel, LocalId, MapEdit, ParamKind, Ptx, PtxAccess, Scalar, Span, Stmt, StmtId,
    StmtKind, Type, visit,
};
use tma_front::limits::MAP_BYTES;
use tma_model::sync::{Access, AccessKind, Proxy};

use super::barriers::MbarrierAddr;
use super::explain;
use super::finding::{Detail, Party, Rule, ThreadAct, UndecidedReason, Violation};
use super::lanes::Lanes;
use super::memory::Site;
use super::memory::global::GlobalLocation;
use super::memory::region::Region;
use super::run::{Run, StepFlow, StepResult, Stop};
use super::state::{Agent, WarpRendezvous};
use super::term::Symbol;
use super::to_u32;
use super::value::Value;

const READ: Access = Access::weak(Proxy::Generic, AccessKind::Read);
const WRITE: Access = Access::weak(Proxy::Generic, AccessKind::Write);

impl<'k> Run<'_, 'k> {
    /// Executes a statement that contains no other statements.
    pub(super) fn effect(&mut self, stmt: &'k Stmt) -> StepResult<StepFlow> {
        match &stmt.kind {
            StmtKind::Assign { local, index, value } => self.assign(*local, index, value)?,
            StmtKind::TileGet { tile, at, dest } => {
                let vector = self.input.kernel.kernel().local(*dest).ty.elements().map_or(1, |(_, len)| len);
                self.tile_access(stmt, tile, at, vector, READ)?;
                self.load_unknown(*dest);
            }
            StmtKind::TileSet { tile, at, value } => {
                let vector = value.ty.elements().map_or(1, |(_, len)| len);
                self.tile_access(stmt, tile, at, vector, WRITE)?;
            }
            StmtKind::SharedGet { dest, array, index } => self.shared_get(stmt, *dest, array, index)?,
            StmtKind::SharedSet { array, index, value } => self.shared_set(stmt, array, index, value)?,
            StmtKind::GlobalGet { dest, global, index, path: _, hint: _ } => {
                let vector = self.input.kernel.kernel().local(*dest).ty.elements().map_or(1, |(_, len)| len);
                self.global_access(stmt, global, index, vector, READ)?;
                self.global_get(*dest, global, index);
            }
            StmtKind::GlobalSet { global, index, value, hint: _ } => {
                let vector = value.ty.elements().map_or(1, |(_, len)| len);
                self.global_access(stmt, global, index, vector, WRITE)?;
            }
            StmtKind::Atomic(atomic) => self.atomic(stmt, atomic)?,
            StmtKind::TileCopy(copy) => return self.tile_copy(stmt, copy),
            StmtKind::BulkCopy(copy) => return self.bulk_copy(stmt, copy),
            StmtKind::RemoteCopy(copy) => return self.remote_copy(stmt, copy),
            StmtKind::Barrier { barrier, op, scope } => return self.barrier(stmt, barrier, op, *scope),
            StmtKind::EditMap { map, edit } => return self.edit_map(stmt, map, edit),
            StmtKind::BulkCommitGroup => return Ok(self.commit_group()),
            StmtKind::BulkWaitGroup { pending, read_only } => {
                return Ok(self.wait_group(*pending, *read_only));
            }
            StmtKind::Mma(mma) => return self.multiply(stmt, mma),
            StmtKind::MmaWait { accumulator, .. } => {
                return Ok(self.wait_for_multiplications(stmt.id, *accumulator));
            }
            StmtKind::StoreAccumulator { tile, .. } => self.store_accumulator(stmt, tile)?,
            StmtKind::LoadFragment(load) => return self.load_of_warps(stmt, &load.from.tile),
            StmtKind::StoreWarp(store) => return self.store_of_warps(stmt, store),
            StmtKind::ReduceRows { .. } | StmtKind::MmaSync(_) => {
                return self.arrive_together(stmt, WarpRendezvous::At(stmt.id), UndecidedReason::Undefined);
            }
            StmtKind::SetMaxRegisters { increase, registers } => {
                return Ok(self.registers(stmt.id, *increase, *registers));
            }
            StmtKind::Fence(fence) => self.fence(*fence),
            StmtKind::Sync(sync) => return self.sync(stmt, *sync),
            StmtKind::NamedBarrierSync { id, threads } => {
                return self.named_barrier(stmt, id, threads, false);
            }
            StmtKind::NamedBarrierArrive { id, threads } => {
                return self.named_barrier(stmt, id, threads, true);
            }
            StmtKind::SyncGrid { counter } => {
                if let Some(span) =
                    self.input.code.slice.accessed(self.input.kernel.kernel().holder_of(*counter))
                {
                    self.note_undecided(UndecidedReason::GridCounter, span);
                }
                return self.sync_grid(stmt.id, *counter);
            }
            StmtKind::ElectOne { dest } => return self.elect(stmt, *dest),
            StmtKind::Warp { dest, value, op } => return self.warp_operation(stmt, *dest, value, op),
            StmtKind::Ptx(ptx) => {
                if !is_followed(self.input.kernel.kernel(), ptx) {
                    return Err(self.stop_undecided(UndecidedReason::Ptx, stmt.origin.span));
                }
                ptx.outputs.iter().for_each(|output| self.load_unknown(output.dest));
            }
            StmtKind::Assert { condition, .. } => self.assert(condition)?,
            // A trap does not hide violations by other groups, so they continue.
            StmtKind::Trap => return Ok(StepFlow::Blocked),
            StmtKind::AcquireMap { maps, .. } => {
                self.agent_mut().acquired.insert(*maps);
            }
            StmtKind::StoreMatrix(store) => {
                self.access_global(stmt.id, store.matrix.global, WRITE, GlobalLocation::Anywhere, None)?;
            }
            StmtKind::PrintTile { tile } => {
                if let Type::Tile(ty) = tile.ty.local() {
                    let bytes = to_u32(ty.shared_bytes());
                    let (block, region) = self.region_of(tile, |at| Region::Some(at..at + bytes))?;
                    self.access_shared(stmt.id, block, READ, region, None)?;
                }
            }
            StmtKind::If { .. }
            | StmtKind::Match { .. }
            | StmtKind::Loop { .. }
            | StmtKind::While { .. }
            | StmtKind::For(_)
            | StmtKind::Labelled { .. }
            | StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Leave(_)
            | StmtKind::Return
            | StmtKind::PrefetchMap(_)
            | StmtKind::Pack { .. }
            | StmtKind::Unpack { .. }
            | StmtKind::CheckMatrix(_)
            | StmtKind::GridDependency(_)
            | StmtKind::Printf { .. }
            | StmtKind::TraceSpan { .. } => {}
        }
        Ok(StepFlow::Next)
    }

    fn assign(&mut self, local: LocalId, index: &[Expr], value: &Expr) -> StepResult {
        let value = self.value(value);
        let [one] = index else {
            self.set(local, if index.is_empty() { value } else { Value::Unknown });
            return Ok(());
        };
        let at = self.numbers(one).and_then(|lanes| lanes.uniform()).and_then(|term| self.terms.int(term));
        let old = self.local(local).cloned();
        let (Some(at), Some(Value::Array(all))) = (at, old) else {
            self.set(local, Value::Unknown);
            return Ok(());
        };
        let mut all = all.to_vec();
        if let Some(element) = usize::try_from(at).ok().and_then(|at| all.get_mut(at)) {
            *element = value;
        }
        self.set(local, Value::Array(all.into()));
        Ok(())
    }

    /// Assigns loaded data to a variable, if the variable matters.
    fn load_unknown(&mut self, dest: LocalId) {
        if self.input.code.slice.needs(dest) {
            self.load_fresh(dest);
        }
    }

    /// Assigns an unknown value to a variable: for numbers, a fresh symbol for each thread.
    pub(super) fn load_fresh(&mut self, dest: LocalId) {
        let scalar =
            self.input.kernel.kernel().local(dest).ty.as_scalar().filter(|scalar| is_number(*scalar));
        let value = scalar.and_then(|scalar| {
            let count = self.agent().threads.len();
            Lanes::of((0..count).map(|_| self.fresh(scalar)).collect())
        });
        self.set(dest, value.map_or(Value::Unknown, Value::Number));
    }

    fn global_get(&mut self, dest: LocalId, global: &GlobalRef, index: &Expr) {
        let param = self.input.kernel.kernel().param(global.param);
        let (Some(ParamKind::Global(element)), false) = (param.kind(), param.written) else {
            return self.load_fresh(dest);
        };
        let is_vector = self.input.kernel.kernel().local(dest).ty.as_scalar().is_none();
        let index = self.numbers(index).filter(|_| is_number(element) && !is_vector);
        let value = index.and_then(|index| {
            index.map(|index| Some(self.terms.symbol(Symbol::Read(global.param.0, index), element)))
        });
        self.set(dest, value.map_or(Value::Unknown, Value::Number));
    }

    fn assert(&mut self, condition: &Expr) -> StepResult {
        let Some(lanes) = self.numbers(condition) else { return Ok(()) };
        for lane in 0..self.agent().threads.len() {
            if let Some(term) = lanes.get(lane)
                && !self.state.facts.assume(self.terms, term, true)
            {
                return Err(Stop::Discarded);
            }
        }
        Ok(())
    }

    fn fence(&mut self, fence: Fence) {
        match fence {
            Fence::ProxyAsync(memory) => self.agent_mut().view.fence_async(memory.memories()),
            Fence::MbarrierInit => {
                let (me, step) = (self.state.current, self.epoch());
                self.agent_mut().view.step();
                for mbarrier in self.state.blocks.iter_mut().flat_map(|block| block.mbarriers.values_mut()) {
                    if mbarrier.init.agent == me && mbarrier.fenced.is_none() {
                        mbarrier.fenced = Some(step);
                    }
                }
            }
            Fence::Memory | Fence::TensorMapRelease | Fence::ProxyAlias => {}
        }
    }

    /// Returns the block, and the address for each thread of the group, of an object in shared
    /// memory.
    pub(super) fn addresses(&mut self, expr: &Expr) -> StepResult<(usize, Lanes<u32>)> {
        let Value::Address(addr) = self.value(expr) else {
            return Err(self.stop_undecided(UndecidedReason::Address, expr.span));
        };
        let block = self.uniform(&addr.block)?;
        if block < self.state.blocks.len() {
            Ok((block, addr.at))
        } else {
            Err(self.stop_undecided(UndecidedReason::Cluster, expr.span))
        }
    }

    /// Returns the bytes within which an object lies, if it is one of several at an unknown index.
    pub(super) fn one_of(&mut self, expr: &Expr) -> Option<(usize, std::ops::Range<u32>)> {
        let Value::OneOf { block, start, end } = self.value(expr) else { return None };
        (block < self.state.blocks.len()).then_some((block, start..end))
    }

    /// Returns the bytes of an object in shared memory that is the same for all threads of the
    /// group. The region is `exact` of its address, or some of a range if the object is one of
    /// several.
    pub(super) fn region_of(
        &mut self,
        object: &Expr,
        exact: impl FnOnce(u32) -> Region,
    ) -> StepResult<(usize, Region)> {
        if let Some((block, range)) = self.one_of(object) {
            return Ok((block, Region::Some(range)));
        }
        let (block, at) = self.address(object)?;
        Ok((block, exact(at)))
    }

    /// Charges an access by each thread, which costs more than a step of the group.
    pub(super) fn charge(&mut self) -> StepResult {
        let cost = self.agent().threads.len() as u64 / 16;
        self.policy.budget.take_steps(cost)
    }

    /// Evaluates an index to known numbers.
    pub(super) fn indices(&mut self, index: &Expr) -> Option<Lanes<u32>> {
        self.numbers(index)?.map(|term| u32::try_from(self.terms.int(term)?).ok())
    }

    /// Returns the block of an array, the addresses of `vector` elements from an index on if they
    /// are known, and their region.
    pub(super) fn elements(
        &mut self,
        array: &Expr,
        index: &Expr,
        vector: u32,
    ) -> StepResult<(usize, Option<Lanes<u32>>, Region)> {
        if let Some((block, range)) = self.one_of(array) {
            self.charge()?;
            return Ok((block, None, Region::Some(range)));
        }
        let (block, base) = self.addresses(array)?;
        self.charge()?;
        let Type::SharedArray(element, len) = array.ty.local() else {
            return Err(self.stop_undecided(UndecidedReason::Address, array.span));
        };
        let (bytes, len) = (element.bytes(), (*len).max(vector));
        let at = self.indices(index).and_then(|index| {
            base.zip(&index, |base, index| (index <= len - vector).then(|| base + index * bytes))
        });
        if at.is_none() && self.indices(index).is_some() {
            // An index is known to be out of bounds.
            self.note_undecided(UndecidedReason::Undefined, index.span);
        }
        let region = match &at {
            Some(at) => Region::Each(at.clone(), vector * bytes),
            None => {
                let base = self.uniform(&base)?;
                Region::Some(base..base + len * bytes)
            }
        };
        Ok((block, at, region))
    }

    fn shared_get(&mut self, stmt: &Stmt, dest: LocalId, array: &Expr, index: &Expr) -> StepResult {
        let vector = self.input.kernel.kernel().local(dest).ty.elements().map(|(_, len)| len);
        let (block, at, region) = self.elements(array, index, vector.unwrap_or(1))?;
        self.use_remote_memory(stmt.id, block)?;
        self.log_banks(stmt.id, block, &region);
        let is_reused = self.input.is_reused(&region);
        self.access_shared(stmt.id, block, READ, region, None)?;
        if !self.input.code.slice.needs(dest) {
            return Ok(());
        }
        // Trusted statements may write the memory meanwhile.
        let is_ordered = !self.input.code.trusts_any();
        let numbers = &self.state.blocks[block].numbers;
        let known = at
            .filter(|_| vector.is_none() && is_ordered && !is_reused)
            .and_then(|at| at.map(|at| numbers.get(&at).copied()));
        match known {
            Some(lanes) => self.set(dest, Value::Number(lanes)),
            None => self.load_fresh(dest),
        }
        Ok(())
    }

    fn shared_set(&mut self, stmt: &Stmt, array: &Expr, index: &Expr, value: &Expr) -> StepResult {
        let vector = value.ty.elements().map_or(1, |(_, len)| len);
        let (block, at, region) = self.elements(array, index, vector)?;
        self.use_remote_memory(stmt.id, block)?;
        let (hull, is_reused) = (region.hull(), self.input.is_reused(&region));
        self.log_banks(stmt.id, block, &region);
        self.access_shared(stmt.id, block, WRITE, region, None)?;
        if !self.input.code.slice.reads_shared() || is_reused {
            return Ok(());
        }
        let values = self.numbers(value);
        let count = self.agent().threads.len();
        let numbers = &mut self.state.blocks[block].numbers;
        match (at, values) {
            (Some(at), Some(values)) => {
                for lane in 0..count {
                    if let (Some(at), Some(value)) = (at.get(lane), values.get(lane)) {
                        numbers.insert(at, value);
                    }
                }
            }
            (Some(_), None) | (None, Some(_) | None) => numbers.retain(|at, _| !hull.contains(at)),
        }
        Ok(())
    }

    fn edit_map(&mut self, stmt: &Stmt, map: &Expr, edit: &MapEdit) -> StepResult<StepFlow> {
        if let MapEdit::Publish { index, .. } = edit {
            if self.numbers(index).is_none_or(|index| index.uniform().is_none()) {
                self.note_undecided(UndecidedReason::Undefined, stmt.origin.span);
            }
            // PTX ISA, "tensormap.cp_fenceproxy": `.sync.aligned`.
            if self.arrive_together(stmt, WarpRendezvous::At(stmt.id), UndecidedReason::Undefined)?
                == StepFlow::Blocked
            {
                return Ok(StepFlow::Blocked);
            }
        }
        if self.input.code.uses_maps {
            self.note_undecided(UndecidedReason::Maps, stmt.origin.span);
        }
        let (block, at) = self.address(map)?;
        let range = at..at + to_u32(u64::from(MAP_BYTES));
        let (whole, some) = (Region::all(range.clone()), Region::Some(range));
        // An edit changes a few bytes of an existing map.
        let accesses = match edit {
            MapEdit::CopyFrom { .. } => vec![(WRITE, whole)],
            MapEdit::Address { .. } | MapEdit::Extent { .. } | MapEdit::Stride { .. } => {
                vec![(READ, whole), (WRITE, some)]
            }
            MapEdit::Publish { .. } => vec![(READ, whole)],
        };
        for (access, region) in accesses {
            self.access_shared(stmt.id, block, access, region, None)?;
        }
        Ok(StepFlow::Next)
    }

    /// Returns the location of a statement in the source.
    pub(super) fn span_of(&self, stmt: StmtId) -> Span {
        explain::span_of(self.input, stmt)
    }

    /// Ends the threads of the current group.
    pub(super) fn end(&mut self) -> StepResult {
        let block = self.agent().block;
        let stmt = self.last_stmt();
        self.stores_are_over(stmt)?;
        let view = &self.state.agents[self.state.current].view;
        self.state.blocks[block].remote_uses.retain(|(step, _)| !view.knows_complete(*step));
        self.agent_mut().is_done = true;
        self.state.event_count += 1;
        self.leave_cluster();
        let is_last = !self.state.agents.iter().any(|agent| agent.block == block && !agent.is_done);
        if !is_last {
            return self.end_rounds(block);
        }
        self.registers_suffice(block);
        if let Some(&(_, site)) = self.state.blocks[block].remote_uses.first() {
            let at = Party { site, does: ThreadAct::UseRemoteMemory };
            let others = vec![Party { site: self.site(stmt), does: ThreadAct::MayHaveEnded }];
            return Err(Violation { rule: Rule::BlockGone, at, others, detail: Detail::Nothing }.into());
        }
        let all: Vec<u32> = self.state.blocks[block].mbarriers.keys().copied().collect();
        all.into_iter().try_for_each(|at| self.check_end(stmt, MbarrierAddr { block, at }, ThreadAct::End))
    }

    /// Records a use of the memory of another block, which must exist.
    pub(super) fn use_remote_memory(&mut self, stmt: StmtId, block: usize) -> StepResult {
        if block == self.agent().block {
            return Ok(());
        }
        // The other block ran to its end before this use, and nothing forbids that.
        let of_block = |(_, agent): &(usize, &Agent)| agent.block == block;
        let mut threads = self.state.agents.iter().enumerate().filter(of_block).peekable();
        if let Some(&(agent, _)) = threads.peek()
            && threads.all(|(_, agent)| agent.is_done)
        {
            let site = Site { agent, stmt: self.last_stmt(), iteration: None };
            let ended = Party { site, does: ThreadAct::MayHaveEnded };
            return self.violation(
                Rule::BlockGone,
                stmt,
                ThreadAct::UseRemoteMemory,
                vec![ended],
                Detail::Nothing,
            );
        }
        // PTX ISA, "barrier.cluster": only a rendezvous shows that another block has started.
        let past = self.agent().view.knows().past();
        let is_started = |(_, agent): &(usize, &Agent)| past.get(agent.view.epoch().component()) > 0;
        if !self.state.agents.iter().enumerate().filter(of_block).any(|agent| is_started(&agent)) {
            self.note_undecided(UndecidedReason::Undefined, self.span_of(stmt));
        }
        let visit = (self.epoch(), self.site(stmt));
        if let Some(block) = self.state.blocks.get_mut(block) {
            block.note_remote_use(visit);
        }
        Ok(())
    }

    /// Returns the last statement of the kernel, where threads end.
    pub(super) fn last_stmt(&self) -> StmtId {
        self.input.kernel.kernel().body.stmts.last().map_or(StmtId::default(), |stmt| stmt.id)
    }

    /// Reports that no group can continue, and what each waits for.
    pub(super) fn deadlock(&mut self) -> Stop {
        super::deadlock::explain(self)
    }
}

/// Returns the location of each `ptx!` of a kernel whose effects are not tracked.
pub(super) fn untracked_ptx(kernel: &Kernel) -> Vec<Span> {
    let mut all = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Ptx(ptx) = &stmt.kind
            && !is_followed(kernel, ptx)
        {
            all.push(stmt.origin.span);
        }
    });
    all
}

/// Whether all that is known of a `ptx!` suffices: it computes, or reads memory that the kernel
/// does not write.
fn is_followed(kernel: &Kernel, ptx: &Ptx) -> bool {
    let is_constant = |access: &PtxAccess| {
        !access.writes && access.global().is_some_and(|param| !kernel.param(param).written)
    };
    !ptx.volatile && ptx.accesses.iter().all(is_constant)
}

/// Whether values of a type can be terms.
fn is_number(scalar: Scalar) -> bool {
    scalar == Scalar::Bool || scalar.integer_range().is_some()
}
