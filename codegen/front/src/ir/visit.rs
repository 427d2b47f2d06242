//! Traversals of a kernel.

use super::{
    Arm, Atomic, AtomicAccess, AtomicMemory, BarrierOp, Block, BulkCopy, CopyKind, Expr, ExprKind, For,
    FragmentLoad, GlobalMatrix, GlobalRef, LeftOperand, LocalId, MapEdit, MapRef, MatrixStore, Mma,
    Multicast, Ptx, PtxAccess, RemoteCopy, SharedId, SharedOperand, SharedRange, Stmt, StmtId, StmtKind,
    TileCopy, WarpOp, WarpStore,
};

/// Numbers the statements of a kernel's body in pre-order.
pub fn number(body: &mut Block) {
    fn count_on(block: &mut Block, next: &mut u32) {
        for stmt in &mut block.stmts {
            stmt.id = StmtId(*next);
            *next += 1;
            blocks_mut(&mut stmt.kind).into_iter().for_each(|inner| count_on(inner, next));
        }
    }
    count_on(body, &mut 0);
}

/// Calls `f` for every statement in `block`, in pre-order.
pub fn for_each_stmt<'a>(block: &'a Block, f: &mut impl FnMut(&'a Stmt)) {
    for stmt in &block.stmts {
        f(stmt);
        for inner in blocks(&stmt.kind) {
            for_each_stmt(inner, f);
        }
    }
}

/// Calls `f` for every expression in `block`, operands before the expression that uses them.
pub fn for_each_expr<'a>(block: &'a Block, f: &mut impl FnMut(&'a Expr)) {
    for_each_stmt(block, &mut |stmt| {
        for expr in operands(&stmt.kind) {
            within(expr, f);
        }
    });
}

/// Calls `f` for `expr` and all its subexpressions, operands first.
pub fn within<'a>(expr: &'a Expr, f: &mut impl FnMut(&'a Expr)) {
    for operand in expr_operands(&expr.kind) {
        within(operand, f);
    }
    f(expr);
}

/// Calls `f` for each local that `expr` reads.
pub fn each_local(expr: &Expr, f: &mut impl FnMut(LocalId)) {
    within(expr, &mut |part| {
        if let ExprKind::Local(local) = part.kind {
            f(local);
        }
    });
}

/// Calls `f` for each shared variable that `expr` names.
pub fn each_shared(expr: &Expr, f: &mut impl FnMut(SharedId)) {
    within(expr, &mut |part| {
        if let ExprKind::Shared(id) = part.kind {
            f(id);
        }
    });
}

/// Like [`within`], with unique borrows.
pub fn within_mut(expr: &mut Expr, f: &mut impl FnMut(&mut Expr)) {
    for operand in expr_operands_mut(&mut expr.kind) {
        within_mut(operand, f);
    }
    f(expr);
}

// Shared and unique borrows need the same tables. The macros are generic over the borrow.

macro_rules! expr_operands {
    ($kind:expr, $as_ref:ident) => {
        match $kind {
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::Shared(_)
            | ExprKind::Param(_)
            | ExprKind::GlobalLen(_)
            | ExprKind::Special(_)
            | ExprKind::Choice(_)
            | ExprKind::ZeroAccumulator
            | ExprKind::Unit
            | ExprKind::Error => vec![],
            ExprKind::Unary(_, a)
            | ExprKind::Cast(a)
            | ExprKind::Bits(a)
            | ExprKind::Repeat(a)
            | ExprKind::CachePolicy(_, a)
            | ExprKind::Member(_, a) => vec![a.$as_ref()],
            ExprKind::Binary(_, a, b, _)
            | ExprKind::Index(a, b)
            | ExprKind::Stage(a, b)
            | ExprKind::Remote(a, b)
            | ExprKind::Hinted(a, b) => vec![a.$as_ref(), b.$as_ref()],
            ExprKind::Math(_, all)
            | ExprKind::Integer(_, all)
            | ExprKind::Array(all)
            | ExprKind::Compound(all) => all.into_iter().collect(),
        }
    };
}

macro_rules! copy_operands {
    ($kind:expr, $location:ident) => {
        match $kind {
            CopyKind::Load { to, barrier, multicast } => {
                let mask = match multicast {
                    Some(Multicast::Mask(mask)) => Some(unboxed!(mask)),
                    Some(Multicast::Sliced(_)) | None => None,
                };
                $location!(to).into_iter().chain([barrier]).chain(mask).collect()
            }
            CopyKind::Store { from } | CopyKind::Reduce { from, op: _ } => Vec::from($location!(from)),
            CopyKind::Prefetch => vec![],
        }
    };
}

macro_rules! tile {
    ($tile:ident) => {
        [$tile]
    };
}

macro_rules! shared_range {
    ($range:ident) => {{
        let SharedRange { array, at } = $range;
        [array, at]
    }};
}

/// The direct constituents of a statement.
struct Parts<E, B> {
    /// The operands of the statement itself, such as a loop's condition or range. Expressions in
    /// inner blocks are not included.
    operands: Vec<E>,
    /// The inner blocks, in order.
    blocks: Vec<B>,
}

impl<E, B> Parts<E, B> {
    fn read(operands: Vec<E>) -> Self {
        Self { operands, blocks: vec![] }
    }

    fn run(operands: Vec<E>, blocks: Vec<B>) -> Self {
        Self { operands, blocks }
    }
}

macro_rules! parts {
    ($kind:expr) => {
        match $kind {
            StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Leave(_)
            | StmtKind::Return
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::ElectOne { .. }
            | StmtKind::MmaWait { .. }
            | StmtKind::Pack { .. }
            | StmtKind::Unpack { .. }
            | StmtKind::ReduceRows { .. }
            | StmtKind::MmaSync(_)
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::TraceSpan { .. }
            | StmtKind::Trap => Parts::read(vec![]),
            StmtKind::If { condition, then, otherwise } => Parts::run(vec![condition], vec![then, otherwise]),
            StmtKind::Match { value, arms, otherwise } => {
                let bodies = arms.into_iter().map(|Arm { ranges: _, body }| body);
                Parts::run(vec![value], bodies.chain([otherwise]).collect())
            }
            StmtKind::Loop { label: _, body } | StmtKind::Labelled { label: _, body } => {
                Parts::run(vec![], vec![body])
            }
            StmtKind::While { label: _, header, condition, body } => {
                Parts::run(vec![condition], vec![header, body])
            }
            StmtKind::For(inner) => {
                let For { start, end, step, body, label: _, variable: _, inclusive: _, unroll: _ } =
                    unboxed!(inner);
                Parts::run(vec![start, end, step], vec![body])
            }
            StmtKind::Assign { index, value, .. } => Parts::read(index.into_iter().chain([value]).collect()),
            StmtKind::Assert { condition, .. } => Parts::read(vec![condition]),
            StmtKind::TileGet { tile, at, .. } => Parts::read([tile].into_iter().chain(at).collect()),
            StmtKind::TileSet { tile, at, value } => {
                Parts::read([tile].into_iter().chain(at).chain([value]).collect())
            }
            StmtKind::SharedGet { array, index, .. } => Parts::read(vec![array, index]),
            StmtKind::SharedSet { array, index, value } => Parts::read(vec![array, index, value]),
            StmtKind::GlobalGet { dest: _, global: GlobalRef { param: _, rank }, index, path: _, hint } => {
                let others = rank.into_iter().chain(hint).map(|other| unboxed!(other));
                Parts::read([index].into_iter().chain(others).collect())
            }
            StmtKind::GlobalSet { global: GlobalRef { param: _, rank }, index, value, hint } => {
                let others = rank.into_iter().chain(hint).map(|other| unboxed!(other));
                Parts::read([index, value].into_iter().chain(others).collect())
            }
            StmtKind::Atomic(atomic) => {
                let Atomic { memory, index, access, order: _, scope: _ } = unboxed!(atomic);
                let array = match memory {
                    AtomicMemory::Global(GlobalRef { param: _, rank: None }) => None,
                    AtomicMemory::Global(GlobalRef { param: _, rank: Some(rank) }) => Some(unboxed!(rank)),
                    AtomicMemory::Shared(array) => Some(array),
                };
                let values = match access {
                    AtomicAccess::Load { dest: _ } => vec![],
                    AtomicAccess::Store { value }
                    | AtomicAccess::Update { value, .. }
                    | AtomicAccess::AddVector { value } => vec![value],
                    AtomicAccess::CompareExchange { current, new, dest: _ } => vec![current, new],
                };
                Parts::read(array.into_iter().chain([index]).chain(values).collect())
            }
            StmtKind::Barrier { barrier, op, scope: _ } => Parts::read(match op {
                BarrierOp::Invalidate
                | BarrierOp::Arrive
                | BarrierOp::ArriveToken { .. }
                | BarrierOp::ArriveDrop => vec![barrier],
                BarrierOp::Init { count: operand }
                | BarrierOp::ArriveMany { count: operand }
                | BarrierOp::ArriveExpectTx { bytes: operand }
                | BarrierOp::ExpectTx { bytes: operand }
                | BarrierOp::Wait { parity: operand }
                | BarrierOp::WaitToken { token: operand }
                | BarrierOp::TestWait { parity: operand, .. }
                | BarrierOp::TryWait { parity: operand, .. } => vec![barrier, operand],
                BarrierOp::TryWaitFor { parity, nanoseconds, .. } => vec![barrier, parity, nanoseconds],
            }),
            StmtKind::TileCopy(copy) => {
                let TileCopy { map: MapRef { param: _, index }, at, offsets, hint, kind } = unboxed!(copy);
                let shared: Vec<_> = copy_operands!(kind, tile);
                Parts::read(index.into_iter().chain(at).chain(offsets).chain(shared).chain(hint).collect())
            }
            StmtKind::BulkCopy(copy) => {
                let BulkCopy { global: GlobalRef { param: _, rank }, index, count, hint, kind } =
                    unboxed!(copy);
                let rank = rank.into_iter().map(|rank| unboxed!(rank));
                let shared: Vec<_> = copy_operands!(kind, shared_range);
                Parts::read([index, count].into_iter().chain(rank).chain(shared).chain(hint).collect())
            }
            StmtKind::RemoteCopy(copy) => {
                let RemoteCopy { op: _, from, to, at, count, barrier } = unboxed!(copy);
                Parts::read(vec![from, at, count, to, barrier])
            }
            StmtKind::PrefetchMap(MapRef { param: _, index }) => Parts::read(index.into_iter().collect()),
            StmtKind::EditMap { map, edit } => Parts::read(match edit {
                MapEdit::CopyFrom { .. } => vec![map],
                MapEdit::Address { index: operand, .. }
                | MapEdit::Extent { extent: operand, .. }
                | MapEdit::Stride { bytes: operand, .. }
                | MapEdit::Publish { index: operand, .. } => vec![map, operand],
            }),
            StmtKind::AcquireMap { index, .. } => Parts::read(vec![index]),
            StmtKind::Mma(mma) => {
                let Mma {
                    op: _,
                    accumulator: _,
                    left,
                    metadata: _,
                    right: SharedOperand { tile: right, ty: _ },
                } = unboxed!(mma);
                let left = match left {
                    LeftOperand::Shared(SharedOperand { tile, ty: _ }) => Some(tile),
                    LeftOperand::Registers(_) => None,
                };
                Parts::read(left.into_iter().chain([right]).collect())
            }
            StmtKind::StoreAccumulator { accumulator: _, first, tile } => Parts::read(vec![first, tile]),
            StmtKind::LoadFragment(load) => {
                let FragmentLoad { dest: _, from: SharedOperand { tile, ty: _ }, at, widens: _ } =
                    unboxed!(load);
                Parts::read([tile].into_iter().chain(at).collect())
            }
            StmtKind::StoreWarp(store) => {
                let WarpStore { accumulator: _, tile, at } = unboxed!(store);
                Parts::read([tile].into_iter().chain(at).collect())
            }
            StmtKind::CheckMatrix(matrix) => {
                let GlobalMatrix { global: _, first, extents, stride } = unboxed!(matrix);
                Parts::read([first].into_iter().chain(extents).chain([stride]).collect())
            }
            StmtKind::StoreMatrix(store) => {
                let MatrixStore { accumulator: _, first, columns: _, matrix, at } = unboxed!(store);
                let GlobalMatrix { global: _, first: start, extents, stride } = matrix;
                Parts::read([first, start].into_iter().chain(extents).chain([stride]).chain(at).collect())
            }
            StmtKind::NamedBarrierSync { id, threads } | StmtKind::NamedBarrierArrive { id, threads } => {
                Parts::read(vec![id, threads])
            }
            StmtKind::Warp { value, op, dest: _ } => Parts::read(match op {
                WarpOp::Shuffle { op: _, by } => vec![value, by],
                WarpOp::Vote(_) | WarpOp::Match(_) | WarpOp::Reduce(_) => vec![value],
            }),
            StmtKind::Ptx(ptx) => {
                let Ptx { pieces: _, outputs: _, inputs, accesses, volatile: _ } = unboxed!(ptx);
                let objects = accesses.into_iter().map(|PtxAccess { object, writes: _ }| object);
                Parts::read(inputs.into_iter().chain(objects).collect())
            }
            StmtKind::Printf { args, .. } => Parts::read(args.into_iter().collect()),
            StmtKind::PrintTile { tile } => Parts::read(vec![tile]),
        }
    };
}

fn parts(kind: &StmtKind) -> Parts<&Expr, &Block> {
    macro_rules! unboxed {
        ($inner:ident) => {
            &**$inner
        };
    }
    parts!(kind)
}

fn parts_mut(kind: &mut StmtKind) -> Parts<&mut Expr, &mut Block> {
    macro_rules! unboxed {
        ($inner:ident) => {
            &mut **$inner
        };
    }
    parts!(kind)
}

/// Returns the operands of the statement itself, such as a loop's condition or range. Expressions
/// in inner blocks are not included.
pub fn operands(kind: &StmtKind) -> Vec<&Expr> {
    parts(kind).operands
}

/// Like [`operands`], with unique borrows.
pub fn operands_mut(kind: &mut StmtKind) -> Vec<&mut Expr> {
    parts_mut(kind).operands
}

/// Returns the blocks inside `kind`, in order.
pub fn blocks(kind: &StmtKind) -> Vec<&Block> {
    parts(kind).blocks
}

/// Like [`blocks`], with unique borrows.
pub fn blocks_mut(kind: &mut StmtKind) -> Vec<&mut Block> {
    parts_mut(kind).blocks
}

/// Returns the direct operands of `expr`.
pub fn operands_of(expr: &Expr) -> Vec<&Expr> {
    expr_operands(&expr.kind)
}

fn expr_operands(kind: &ExprKind) -> Vec<&Expr> {
    expr_operands!(kind, as_ref)
}

fn expr_operands_mut(kind: &mut ExprKind) -> Vec<&mut Expr> {
    expr_operands!(kind, as_mut)
}
