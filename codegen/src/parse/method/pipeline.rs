//! Methods of pipelines, their states and their slots. Each expands to what a user could have
//! written with `Stages`, barriers and variables.

use crate::diag::mistake::Name;
use crate::ir::{
    BarrierOp, BinaryOp, Compound, Expr, ExprKind, For, Ring, Scalar, Span, StmtKind, TileType, Type,
};
use crate::parse::cx::Cx;
use crate::parse::pipeline::{Parts, join_parts, number, of_stage, split_parts};
use crate::parse::stmt::unit;
use crate::words::{
    ConsumerCall, EmptySlotCall, FullSlotCall, FullSlotWord, LoadingSlotCall, PipelineCall, ProducerCall,
    Word,
};

impl Cx<'_> {
    pub(super) fn pipeline_method(
        &mut self,
        ring: &Ring,
        parts: Vec<Expr>,
        call: PipelineCall,
        span: Span,
    ) -> Option<Expr> {
        let parts = split_parts(parts, ring.tiles.len())?;
        // On a fresh barrier, a wait for the phase of parity 1 returns at once. A producer thus
        // finds every stage empty at first.
        let state = |parity| [number(0, span), number(parity, span)];
        Some(match call {
            PipelineCall::Len => self.known_u32(u64::from(ring.stages), span),
            PipelineCall::Producer => {
                self.compound(Compound::Producer(ring.clone()), join_parts(parts, state(1)), span)
            }
            PipelineCall::Consumer => {
                self.compound(Compound::Consumer(ring.clone()), join_parts(parts, state(0)), span)
            }
            PipelineCall::Init { consumers } => {
                self.for_each_stage(ring, span, |cx, stage| {
                    let init = |count| BarrierOp::Init { count };
                    cx.ring_barrier_op(of_stage(&parts.full, &stage, span), init(number(1, span)), span);
                    cx.ring_barrier_op(of_stage(&parts.empty, &stage, span), init(consumers), span);
                });
                unit(span)
            }
            PipelineCall::Invalidate => {
                self.for_each_stage(ring, span, |cx, stage| {
                    for barriers in [&parts.full, &parts.empty] {
                        cx.ring_barrier_op(of_stage(barriers, &stage, span), BarrierOp::Invalidate, span);
                    }
                });
                unit(span)
            }
        })
    }

    pub(super) fn producer_method(
        &mut self,
        ring: &Ring,
        parts: Vec<Expr>,
        call: ProducerCall,
        span: Span,
    ) -> Option<Expr> {
        let parts = split_parts(parts, ring.tiles.len())?;
        match call {
            ProducerCall::Ready => self.is_ready(&parts.empty, &parts.state, span),
            ProducerCall::Drain => {
                self.drain(ring, &parts, span);
                Some(unit(span))
            }
            ProducerCall::Acquire => {
                let parts = self.take_stage(ring, parts, |parts| &parts.empty, span)?;
                Some(self.announce(&ring.tiles, parts, span))
            }
            ProducerCall::Wait => {
                let parts = self.take_stage(ring, parts, |parts| &parts.empty, span)?;
                Some(self.compound(Compound::EmptySlot(ring.tiles.clone()), parts, span))
            }
        }
    }

    pub(super) fn consumer_method(
        &mut self,
        ring: &Ring,
        parts: Vec<Expr>,
        call: ConsumerCall,
        span: Span,
    ) -> Option<Expr> {
        let parts = split_parts(parts, ring.tiles.len())?;
        match call {
            ConsumerCall::Skip { steps } => {
                self.skip(ring, &parts, steps, span)?;
                Some(unit(span))
            }
            ConsumerCall::Ready => self.is_ready(&parts.full, &parts.state, span),
            ConsumerCall::Wait => {
                let parts = self.take_stage(ring, parts, |parts| &parts.full, span)?;
                Some(self.compound(Compound::FullSlot(ring.tiles.clone()), parts, span))
            }
        }
    }

    pub(super) fn empty_slot_method(
        &mut self,
        tiles: &[TileType],
        parts: Vec<Expr>,
        call: EmptySlotCall,
        span: Span,
    ) -> Option<Expr> {
        match call {
            EmptySlotCall::Stage => slot_stage(split_parts(parts, tiles.len())?, span),
            EmptySlotCall::Announce => Some(self.announce(tiles, parts, span)),
        }
    }

    pub(super) fn loading_slot_method(
        &mut self,
        tiles: &[TileType],
        parts: Vec<Expr>,
        call: LoadingSlotCall,
        span: Span,
    ) -> Option<Expr> {
        let parts = split_parts(parts, tiles.len())?;
        match call {
            LoadingSlotCall::Stage => slot_stage(parts, span),
            LoadingSlotCall::Barrier => Some(of_stage(&parts.full, parts.state.first()?, span)),
        }
    }

    pub(super) fn full_slot_method(
        &mut self,
        tiles: &[TileType],
        parts: Vec<Expr>,
        call: FullSlotCall,
        span: Span,
    ) -> Option<Expr> {
        let parts = split_parts(parts, tiles.len())?;
        let empty = of_stage(&parts.empty, parts.state.first()?, span);
        match call {
            FullSlotCall::Stage => return slot_stage(parts, span),
            FullSlotCall::Release => self.ring_barrier_op(empty, BarrierOp::Arrive, span),
            FullSlotCall::ReleaseTo { rank } => {
                if self.in_a_cluster(FullSlotWord::ReleaseTo.name(), span) {
                    self.ring_barrier_op(remote_barrier(empty, rank, span), BarrierOp::Arrive, span);
                }
            }
            FullSlotCall::ReleaseCluster => {
                if self.in_a_cluster(FullSlotWord::ReleaseCluster.name(), span) {
                    let blocks = self.cluster_blocks(span);
                    self.for_each_below(blocks, "rank", span, |cx, rank| {
                        cx.ring_barrier_op(remote_barrier(empty, rank, span), BarrierOp::Arrive, span);
                    });
                }
            }
        }
        Some(unit(span))
    }

    /// Waits for the state's stage and advances the state. Returns the parts of a slot.
    fn take_stage(
        &mut self,
        ring: &Ring,
        parts: Parts,
        awaited: impl Fn(&Parts) -> &Expr,
        span: Span,
    ) -> Option<Vec<Expr>> {
        let [stage, parity] = &parts.state[..] else { return None };
        let (stage, parity) = (self.state(stage, span)?, self.state(parity, span)?);
        let (taken, slot_stage) = self.builder.temporary("stage", Scalar::U32, span);
        let now = self.builder.read(stage, span);
        self.builder.assign(taken, now);
        let wait = BarrierOp::Wait { parity: self.builder.read(parity, span) };
        self.ring_barrier_op(of_stage(awaited(&parts), &slot_stage, span), wait, span);
        self.next_stage(stage, parity, ring.stages, span);
        Some(join_parts(parts, [slot_stage]))
    }

    /// Announces the bytes of all tiles to the full barrier of the slot with these `parts`, and
    /// arrives there.
    fn announce(&mut self, tiles: &[TileType], parts: Vec<Expr>, span: Span) -> Expr {
        let bytes = tiles.iter().map(TileType::bytes).fold(0, u64::saturating_add);
        let bytes = number(u32::try_from(bytes).unwrap_or(u32::MAX), span);
        if let Some(Parts { full, state, .. }) = split_parts(parts.clone(), tiles.len())
            && let [stage] = &state[..]
        {
            self.ring_barrier_op(of_stage(&full, stage, span), BarrierOp::ArriveExpectTx { bytes }, span);
        }
        self.compound(Compound::LoadingSlot(tiles.to_vec()), parts, span)
    }

    /// Waits until every stage is empty. The state itself does not advance.
    fn drain(&mut self, ring: &Ring, parts: &Parts, span: Span) {
        let [stage, parity] = &parts.state[..] else { return };
        let (at_stage, read_stage) = self.builder.temporary("stage", Scalar::U32, span);
        let (at_parity, read_parity) = self.builder.temporary("parity", Scalar::U32, span);
        self.builder.assign(at_stage, stage.clone());
        self.builder.assign(at_parity, parity.clone());
        self.for_each_stage(ring, span, |cx, _| {
            let wait = BarrierOp::Wait { parity: read_parity };
            cx.ring_barrier_op(of_stage(&parts.empty, &read_stage, span), wait, span);
            cx.next_stage(at_stage, at_parity, ring.stages, span);
        });
    }

    /// Advances the state by this number of steps without waiting.
    fn skip(&mut self, ring: &Ring, parts: &Parts, steps: Expr, span: Span) -> Option<()> {
        let [stage, parity] = &parts.state[..] else { return None };
        let (stage, parity) = (self.state(stage, span)?, self.state(parity, span)?);
        let all = number(ring.stages, span);
        let (next, next_value) = self.builder.temporary("next", Scalar::U32, span);
        let now = self.builder.read(stage, span);
        let sum = self.apply(BinaryOp::Add, now, steps, span);
        self.builder.assign(next, sum);
        let turns = self.apply(BinaryOp::Div, next_value.clone(), all.clone(), span);
        let odd = self.apply(BinaryOp::And, turns, number(1, span), span);
        let before = self.builder.read(parity, span);
        let after = self.apply(BinaryOp::Xor, before, odd, span);
        self.builder.assign(parity, after);
        let index = self.apply(BinaryOp::Rem, next_value, all, span);
        self.builder.assign(stage, index);
        Some(())
    }

    /// Returns whether the state's wait at `barriers` would return at once.
    fn is_ready(&mut self, barriers: &Expr, state: &[Expr], span: Span) -> Option<Expr> {
        let [stage, parity] = state else { return None };
        let (dest, ready) = self.builder.temporary("ready", Scalar::Bool, span);
        let op = BarrierOp::TestWait { dest, parity: parity.clone() };
        self.ring_barrier_op(of_stage(barriers, stage, span), op, span);
        Some(ready)
    }

    /// Resolves `slot.0`, a tile of a slot.
    pub(in crate::parse) fn slot_tile(
        &mut self,
        compound: &Compound,
        parts: Vec<Expr>,
        field: &str,
        span: Span,
    ) -> Expr {
        let tiles = compound.fields().len();
        let index = field.parse::<usize>().ok().filter(|&index| index < tiles);
        if let Some(index) = index
            && let Some(Parts { tiles, state, .. }) = split_parts(parts, tiles)
            && let (Some(stages), [stage]) = (tiles.get(index), &state[..])
        {
            return of_stage(stages, stage, span);
        }
        self.error(Name::SlotField { of: compound.clone(), name: field.to_owned() }, span);
        Expr::error(span)
    }

    /// Emits a loop over the indices of the stages.
    fn for_each_stage(&mut self, ring: &Ring, span: Span, body: impl FnOnce(&mut Self, Expr)) {
        self.for_each_below(number(ring.stages, span), "stage", span, body);
    }

    /// Emits a loop over the numbers from 0 to `end`, exclusive.
    fn for_each_below(&mut self, end: Expr, name: &str, span: Span, body: impl FnOnce(&mut Self, Expr)) {
        let (variable, value) = self.builder.temporary(name, Scalar::U32, span);
        let label = self.builder.label();
        let (body, ()) = self.branch(|cx| body(cx, value));
        let step = Expr { ty: Scalar::Usize.into(), ..number(1, span) };
        let start = number(0, span);
        let inner = For { label, variable, start, end, inclusive: false, step, unroll: false, body };
        self.builder.emit(StmtKind::For(Box::new(inner)), span);
    }
}

/// Returns the corresponding barrier in the block of this rank.
fn remote_barrier(barrier: Expr, rank: Expr, span: Span) -> Expr {
    let kind = ExprKind::Remote(Box::new(barrier), Box::new(rank));
    Expr { kind, ty: Type::Remote(Box::new(Type::Barrier)), span }
}

/// Returns the index of a slot's stage.
fn slot_stage(parts: Parts, span: Span) -> Option<Expr> {
    parts.state.into_iter().next().map(|stage| Expr { span, ..stage })
}
