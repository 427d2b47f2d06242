//! Methods of pipelines, their states and their slots. Each expands to what a user could have
//! written with `Stages`, barriers and variables.

use super::known_u32;
use crate::diag::Sink;
use crate::diag::mistake::Name;
use crate::ir::{
    BarrierOp, BinaryOp, Compound, Expr, ExprKind, For, Ring, Scalar, Span, StmtKind, TileType, Type,
};
use crate::parse::cluster::cluster_blocks;
use crate::parse::compound::{compound, state};
use crate::parse::cx::{Builder, Cx};
use crate::parse::expr::apply;
use crate::parse::shared::pipeline::{Parts, join_parts, number, of_stage, ring_barrier_op, split_parts};
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
            PipelineCall::Len => known_u32(&mut self.infer, u64::from(ring.stages), span),
            PipelineCall::Producer => {
                compound(Compound::Producer(ring.clone()), join_parts(parts, state(1)), span)
            }
            PipelineCall::Consumer => {
                compound(Compound::Consumer(ring.clone()), join_parts(parts, state(0)), span)
            }
            PipelineCall::Init { consumers } => {
                self.for_each_stage(ring, span, |cx, stage| {
                    let init = |count| BarrierOp::Init { count };
                    ring_barrier_op(
                        &mut cx.builder,
                        of_stage(&parts.full, &stage, span),
                        init(number(1, span)),
                        span,
                    );
                    ring_barrier_op(
                        &mut cx.builder,
                        of_stage(&parts.empty, &stage, span),
                        init(consumers),
                        span,
                    );
                });
                unit(span)
            }
            PipelineCall::Invalidate => {
                self.for_each_stage(ring, span, |cx, stage| {
                    for barriers in [&parts.full, &parts.empty] {
                        ring_barrier_op(
                            &mut cx.builder,
                            of_stage(barriers, &stage, span),
                            BarrierOp::Invalidate,
                            span,
                        );
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
            ProducerCall::Ready => is_ready(&mut self.builder, &parts.empty, &parts.state, span),
            ProducerCall::Drain => {
                self.drain(ring, &parts, span);
                Some(unit(span))
            }
            ProducerCall::Acquire => {
                let parts = self.take_stage(ring, parts, |parts| &parts.empty, span)?;
                Some(announce(&mut self.builder, &ring.tiles, parts, span))
            }
            ProducerCall::Wait => {
                let parts = self.take_stage(ring, parts, |parts| &parts.empty, span)?;
                Some(compound(Compound::EmptySlot(ring.tiles.clone()), parts, span))
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
            ConsumerCall::Ready => is_ready(&mut self.builder, &parts.full, &parts.state, span),
            ConsumerCall::Wait => {
                let parts = self.take_stage(ring, parts, |parts| &parts.full, span)?;
                Some(compound(Compound::FullSlot(ring.tiles.clone()), parts, span))
            }
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
            FullSlotCall::Release => ring_barrier_op(&mut self.builder, empty, BarrierOp::Arrive, span),
            FullSlotCall::ReleaseTo { rank } => {
                if self.in_a_cluster(FullSlotWord::ReleaseTo.name(), span) {
                    ring_barrier_op(
                        &mut self.builder,
                        remote_barrier(empty, rank, span),
                        BarrierOp::Arrive,
                        span,
                    );
                }
            }
            FullSlotCall::ReleaseCluster => {
                if self.in_a_cluster(FullSlotWord::ReleaseCluster.name(), span) {
                    let blocks = cluster_blocks(&self.instance, span);
                    self.for_each_below(blocks, "rank", span, |cx, rank| {
                        ring_barrier_op(
                            &mut cx.builder,
                            remote_barrier(empty, rank, span),
                            BarrierOp::Arrive,
                            span,
                        );
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
        let (stage, parity) = (state(self.sink, stage, span)?, state(self.sink, parity, span)?);
        let (taken, slot_stage) = self.builder.temporary("stage", Scalar::U32, span);
        let now = self.builder.read(stage, span);
        self.builder.assign(taken, now);
        let wait = BarrierOp::Wait { parity: self.builder.read(parity, span) };
        ring_barrier_op(&mut self.builder, of_stage(awaited(&parts), &slot_stage, span), wait, span);
        self.next_stage(stage, parity, ring.stages, span);
        Some(join_parts(parts, [slot_stage]))
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
            ring_barrier_op(&mut cx.builder, of_stage(&parts.empty, &read_stage, span), wait, span);
            cx.next_stage(at_stage, at_parity, ring.stages, span);
        });
    }

    /// Advances the state by this number of steps without waiting.
    fn skip(&mut self, ring: &Ring, parts: &Parts, steps: Expr, span: Span) -> Option<()> {
        let [stage, parity] = &parts.state[..] else { return None };
        let (stage, parity) = (state(self.sink, stage, span)?, state(self.sink, parity, span)?);
        let all = number(ring.stages, span);
        let (next, next_value) = self.builder.temporary("next", Scalar::U32, span);
        let now = self.builder.read(stage, span);
        let sum = apply(&mut self.typing(), BinaryOp::Add, now, steps, span);
        self.builder.assign(next, sum);
        let turns = apply(&mut self.typing(), BinaryOp::Div, next_value.clone(), all.clone(), span);
        let odd = apply(&mut self.typing(), BinaryOp::And, turns, number(1, span), span);
        let before = self.builder.read(parity, span);
        let after = apply(&mut self.typing(), BinaryOp::Xor, before, odd, span);
        self.builder.assign(parity, after);
        let index = apply(&mut self.typing(), BinaryOp::Rem, next_value, all, span);
        self.builder.assign(stage, index);
        Some(())
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

pub(super) fn empty_slot_method(
    builder: &mut Builder,
    tiles: &[TileType],
    parts: Vec<Expr>,
    call: EmptySlotCall,
    span: Span,
) -> Option<Expr> {
    match call {
        EmptySlotCall::Stage => slot_stage(split_parts(parts, tiles.len())?, span),
        EmptySlotCall::Announce => Some(announce(builder, tiles, parts, span)),
    }
}

pub(super) fn loading_slot_method(
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

/// Announces the bytes of all tiles to the full barrier of the slot with these `parts`, and
/// arrives there.
fn announce(builder: &mut Builder, tiles: &[TileType], parts: Vec<Expr>, span: Span) -> Expr {
    let bytes = tiles.iter().map(TileType::bytes).fold(0, u64::saturating_add);
    let bytes = number(u32::try_from(bytes).unwrap_or(u32::MAX), span);
    if let Some(Parts { full, state, .. }) = split_parts(parts.clone(), tiles.len())
        && let [stage] = &state[..]
    {
        ring_barrier_op(builder, of_stage(&full, stage, span), BarrierOp::ArriveExpectTx { bytes }, span);
    }
    compound(Compound::LoadingSlot(tiles.to_vec()), parts, span)
}

/// Returns whether the state's wait at `barriers` would return at once.
fn is_ready(builder: &mut Builder, barriers: &Expr, state: &[Expr], span: Span) -> Option<Expr> {
    let [stage, parity] = state else { return None };
    let (dest, ready) = builder.temporary("ready", Scalar::Bool, span);
    let op = BarrierOp::TestWait { dest, parity: parity.clone() };
    ring_barrier_op(builder, of_stage(barriers, stage, span), op, span);
    Some(ready)
}

/// Resolves `slot.0`, a tile of a slot.
pub(in crate::parse) fn slot_tile(
    sink: &mut Sink,
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
    sink.error(Name::SlotField { of: compound.clone(), name: field.to_owned() }, span);
    Expr::error(span)
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
