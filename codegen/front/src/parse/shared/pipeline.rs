//! Pipelines: their types, their shared memory, and how a state advances from stage to stage.

use syn::GenericArgument;

use crate::diag::mistake;
use crate::ir::{
    BarrierOp, BinaryOp, Block, Compound, Const, Expr, ExprKind, LocalId, Pipeline, Ring, Scalar, Scope,
    SharedId, Span, StmtKind, Strictness, TileType, Type,
};
use crate::limits::{self, count};
use crate::parse::compound::compound;
use crate::parse::cx::{Builder, Cx, Declared};

/// The parts of a pipeline, or of a state or slot of one.
pub(in crate::parse) struct Parts {
    /// The `Stages` of each tile.
    pub(in crate::parse) tiles: Vec<Expr>,
    /// The `Stages` of barriers that complete when a stage has been filled.
    pub(in crate::parse) full: Expr,
    /// The `Stages` of barriers that complete when a stage has been released.
    pub(in crate::parse) empty: Expr,
    /// The further parts of a state or a slot.
    pub(in crate::parse) state: Vec<Expr>,
}

/// Splits parts that begin with those of a pipeline of `tiles` tiles per stage.
pub(in crate::parse) fn split_parts(parts: Vec<Expr>, tiles: usize) -> Option<Parts> {
    let mut rest = parts.into_iter();
    let tiles: Vec<_> = rest.by_ref().take(tiles).collect();
    Some(Parts { tiles, full: rest.next()?, empty: rest.next()?, state: rest.collect() })
}

/// Joins the parts of a pipeline with those of a state.
pub(in crate::parse) fn join_parts(parts: Parts, state: impl IntoIterator<Item = Expr>) -> Vec<Expr> {
    let Parts { mut tiles, full, empty, .. } = parts;
    tiles.extend([full, empty]);
    tiles.extend(state);
    tiles
}

impl Cx<'_> {
    /// Resolves `Pipeline<(A, B), 4>`, `Producer<..>` and `Consumer<..>`.
    pub(in crate::parse) fn ring_type(
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

    /// Resolves `EmptySlot<(A, B)>`, `LoadingSlot<(A, B)>` and `FullSlot<(A, B)>`.
    pub(in crate::parse) fn slot_type(
        &mut self,
        generics: &[&GenericArgument],
        compound: fn(Vec<TileType>) -> Compound,
    ) -> Type {
        let [tuple] = *generics else { return Type::Error };
        self.tile_tuple(tuple).map_or(Type::Error, |tiles| Type::Compound(compound(tiles)))
    }

    /// Resolves the tuple of a stage's tiles, which may also be a generic or an alias.
    fn tile_tuple(&mut self, argument: &GenericArgument) -> Option<Vec<TileType>> {
        let elements: Vec<(Type, Span)> = match argument {
            GenericArgument::Type(syn::Type::Tuple(tuple)) => {
                tuple.elems.iter().map(|element| (self.ty(element), Span::of(element))).collect()
            }
            _ => match self.type_argument(argument)? {
                Type::Compound(Compound::Tuple(elements)) => {
                    elements.into_iter().map(|element| (element, Span::of(argument))).collect()
                }
                Type::Error => return None,
                other => {
                    let found = self.infer.partial(&other);
                    self.error(mistake::Pipeline::NoTuple(found), Span::of(argument));
                    return None;
                }
            },
        };
        if !(1..=limits::PIPELINE_TILES).contains(&elements.len()) {
            self.error(mistake::Pipeline::TileCount(elements.len()), Span::of(argument));
            return None;
        }
        let tiles: Vec<_> = elements.into_iter().map(|(ty, span)| self.tile_of_stage(ty, span)).collect();
        tiles.into_iter().collect()
    }

    fn tile_of_stage(&mut self, ty: Type, span: Span) -> Option<TileType> {
        match ty {
            Type::Tile(tile) => Some(tile),
            Type::Error => None,
            other => {
                self.error(mistake::Pipeline::NoTile(self.infer.partial(&other)), span);
                None
            }
        }
    }

    /// Advances `stage` to the next stage. After the last stage comes the first, with the opposite
    /// parity. A comparison takes the place of a remainder by the number of stages.
    pub(in crate::parse) fn next_stage(&mut self, stage: LocalId, parity: LocalId, stages: u32, span: Span) {
        if stages > 1 {
            let one = number(1, span);
            let next = binary(BinaryOp::Add, self.builder.read(stage, span), one);
            self.builder.assign(stage, next);
        }
        let (wrap, ()) = self.block(|cx| {
            if stages > 1 {
                cx.builder.assign(stage, number(0, span));
            }
            flip(&mut cx.builder, parity, span);
        });
        if stages == 1 {
            return self.builder.append(wrap);
        }
        let condition = Expr {
            ty: Scalar::Bool.into(),
            ..binary(BinaryOp::Eq, self.builder.read(stage, span), number(stages, span))
        };
        self.builder.emit(StmtKind::If { condition, then: wrap, otherwise: Block::default() }, span);
    }
}

/// Allocates a pipeline's tiles and barriers in shared memory.
pub(in crate::parse) fn shared_pipeline(declared: &mut Declared, name: &str, ring: Ring, span: Span) -> Expr {
    let stages = |thing| Type::Stages(Box::new(thing), ring.stages);
    let mut parts = vec![];
    let first = declared.next_shared();
    for (i, tile) in ring.tiles.iter().enumerate() {
        parts.push(declared.shared_var(format!("{name}.{i}"), stages(Type::Tile(tile.clone())), span));
    }
    for barriers in ["full", "empty"] {
        parts.push(declared.shared_var(format!("{name}.{barriers}"), stages(Type::Barrier), span));
    }
    let [full, empty] = [0, 1].map(|after| SharedId(first.0 + count(ring.tiles.len() + after)));
    declared.pipeline(Pipeline {
        name: name.to_owned(),
        tiles: (first.0..full.0).map(SharedId).collect(),
        full,
        empty,
        stages: ring.stages,
        span,
    });
    compound(Compound::Pipeline(ring), parts, span)
}

/// Flips the parity, for the next phase.
pub(in crate::parse) fn flip(builder: &mut Builder, parity: LocalId, span: Span) {
    let flipped = binary(BinaryOp::Xor, builder.read(parity, span), number(1, span));
    builder.assign(parity, flipped);
}

/// Emits an operation of a pipeline on one of its barriers. The pipeline hands over slots that
/// copies fill and threads read. It does not publish writes of threads, so the scope is the
/// block.
pub(in crate::parse) fn ring_barrier_op(builder: &mut Builder, barrier: Expr, op: BarrierOp, span: Span) {
    builder.emit(StmtKind::Barrier { barrier, op, scope: Scope::Block }, span);
}

/// Selects one of `Stages`.
pub(in crate::parse) fn of_stage(stages: &Expr, stage: &Expr, span: Span) -> Expr {
    match &stages.ty {
        Type::Stages(thing, _) => {
            let kind = ExprKind::Stage(Box::new(stages.clone()), Box::new(stage.clone()));
            Expr { kind, ty: (**thing).clone(), span }
        }
        _ => Expr::error(span),
    }
}

/// Creates a `u32` constant.
pub(in crate::parse) fn number(value: u32, span: Span) -> Expr {
    Expr::constant(Const::Int(i128::from(value)), Scalar::U32, span)
}

/// Creates an operation on two values of the same type, which is also the type of the result.
pub(in crate::parse) fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let (ty, span) = (left.ty.clone(), left.span);
    let kind = ExprKind::Binary(op, Box::new(left), Box::new(right), Strictness::Wrapping);
    Expr { kind, ty, span }
}
