//! Pipelines: their types, their shared memory, and how a state goes from stage to stage.

use syn::GenericArgument;

use super::cx::{Cx, count};
use crate::diag::mistake;
use crate::ir::{
    BarrierOp, BinaryOp, Block, Compound, Const, Expr, ExprKind, LocalId, Pipeline, Ring, Scalar, Scope,
    SharedId, Span, StmtKind, TileType, Type,
};
use crate::limits;

/// A pipeline, taken apart.
pub(super) struct Parts {
    /// `Stages` of each tile.
    pub(super) tiles: Vec<Expr>,
    /// `Stages` of barriers that complete when a stage is filled.
    pub(super) full: Expr,
    /// `Stages` of barriers that complete when a stage is released.
    pub(super) empty: Expr,
    /// What a state or a slot has besides.
    pub(super) state: Vec<Expr>,
}

/// Takes apart what a pipeline is the first part of, which has `tiles` tiles a stage.
pub(super) fn take_apart(parts: Vec<Expr>, tiles: usize) -> Option<Parts> {
    let mut rest = parts.into_iter();
    let tiles: Vec<_> = rest.by_ref().take(tiles).collect();
    Some(Parts { tiles, full: rest.next()?, empty: rest.next()?, state: rest.collect() })
}

/// Puts a pipeline together with a state.
pub(super) fn put_together(parts: Parts, state: impl IntoIterator<Item = Expr>) -> Vec<Expr> {
    let Parts { mut tiles, full, empty, .. } = parts;
    tiles.extend([full, empty]);
    tiles.extend(state);
    tiles
}

impl Cx<'_> {
    /// `Pipeline<(A, B), 4>`, `Producer<..>` and `Consumer<..>`.
    pub(super) fn ring_type(
        &mut self,
        generics: &[&GenericArgument],
        compound: fn(Ring) -> Compound,
    ) -> Type {
        let [tuple, stages] = *generics else { return Type::Error };
        let (tiles, count) = (self.tile_tuple(tuple), self.u32_argument(stages));
        let (Some(tiles), Some(count)) = (tiles, count) else { return Type::Error };
        if count == 0 {
            self.error(mistake::Pipeline::NoStages, Span::of(stages));
            return Type::Error;
        }
        Type::Compound(compound(Ring { tiles, stages: count }))
    }

    /// `EmptySlot<(A, B)>`, `LoadingSlot<(A, B)>` and `FullSlot<(A, B)>`.
    pub(super) fn slot_type(
        &mut self,
        generics: &[&GenericArgument],
        compound: fn(Vec<TileType>) -> Compound,
    ) -> Type {
        let [tuple] = *generics else { return Type::Error };
        self.tile_tuple(tuple).map_or(Type::Error, |tiles| Type::Compound(compound(tiles)))
    }

    fn tile_tuple(&mut self, argument: &GenericArgument) -> Option<Vec<TileType>> {
        let GenericArgument::Type(syn::Type::Tuple(tuple)) = argument else {
            self.error(mistake::Pipeline::NoTuple, Span::of(argument));
            return None;
        };
        let count = tuple.elems.len();
        if !(1..=limits::PIPELINE_TILES).contains(&count) {
            self.error(mistake::Pipeline::TileCount(count), Span::of(argument));
            return None;
        }
        let tiles: Vec<_> = tuple.elems.iter().map(|element| self.tile_of_stage(element)).collect();
        tiles.into_iter().collect()
    }

    fn tile_of_stage(&mut self, element: &syn::Type) -> Option<TileType> {
        match self.ty(element) {
            Type::Tile(tile) => Some(tile),
            Type::Error => None,
            other => {
                self.error(mistake::Pipeline::NoTile(self.infer.partial(&other)), Span::of(element));
                None
            }
        }
    }

    /// A pipeline's tiles and barriers in shared memory.
    pub(super) fn shared_pipeline(&mut self, name: &str, ring: Ring, span: Span) -> Expr {
        let stages = |thing| Type::Stages(Box::new(thing), ring.stages);
        let mut parts = vec![];
        let first = SharedId(count(self.shared.len()));
        for (i, tile) in ring.tiles.iter().enumerate() {
            parts.push(self.shared_var(format!("{name}.{i}"), stages(Type::Tile(tile.clone())), span));
        }
        for barriers in ["full", "empty"] {
            parts.push(self.shared_var(format!("{name}.{barriers}"), stages(Type::Barrier), span));
        }
        let [full, empty] = [0, 1].map(|after| SharedId(first.0 + count(ring.tiles.len() + after)));
        self.pipelines.push(Pipeline {
            name: name.to_owned(),
            tiles: (first.0..full.0).map(SharedId).collect(),
            full,
            empty,
            stages: ring.stages,
            span,
        });
        self.compound(Compound::Pipeline(ring), parts, span)
    }

    /// Goes from `stage` to the next: after the last comes the first, in the phase of the other
    /// parity. A comparison does what a division by the number of stages would.
    pub(super) fn next_stage(&mut self, stage: LocalId, parity: LocalId, stages: u32, span: Span) {
        if stages > 1 {
            let one = number(1, span);
            let next = binary(BinaryOp::Add, self.read(stage, span), one);
            self.assign(stage, next);
        }
        let (wrap, ()) = self.block(|cx| {
            if stages > 1 {
                cx.assign(stage, number(0, span));
            }
            cx.flip(parity, span);
        });
        if stages == 1 {
            return self.append(wrap);
        }
        let condition = Expr {
            ty: Scalar::Bool.into(),
            ..binary(BinaryOp::Eq, self.read(stage, span), number(stages, span))
        };
        self.emit(StmtKind::If { condition, then: wrap, otherwise: Block::default() }, span);
    }

    /// Goes to the phase of the other parity.
    pub(super) fn flip(&mut self, parity: LocalId, span: Span) {
        let flipped = binary(BinaryOp::Xor, self.read(parity, span), number(1, span));
        self.assign(parity, flipped);
    }

    /// What a pipeline does at one of its barriers. It hands over slots, which copies fill and
    /// threads read; of what threads wrote it tells nobody.
    pub(super) fn ring_barrier_op(&mut self, barrier: Expr, op: BarrierOp, span: Span) {
        self.emit(StmtKind::Barrier { barrier, op, scope: Scope::Block }, span);
    }
}

/// One of `Stages`.
pub(super) fn of_stage(stages: &Expr, stage: &Expr, span: Span) -> Expr {
    match &stages.ty {
        Type::Stages(thing, _) => {
            let kind = ExprKind::Stage(Box::new(stages.clone()), Box::new(stage.clone()));
            Expr { kind, ty: (**thing).clone(), span }
        }
        _ => Expr::error(span),
    }
}

/// A `u32`.
pub(super) fn number(value: u32, span: Span) -> Expr {
    Expr::constant(Const::Int(i128::from(value)), Scalar::U32, span)
}

/// An operation on two values of one type, which its result has too.
pub(super) fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let (ty, span) = (left.ty.clone(), left.span);
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span }
}
