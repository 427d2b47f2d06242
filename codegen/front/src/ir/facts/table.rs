//! The properties of each kind of statement.

use super::{
    Accessor, DefinedValue, Definition, Effect, Elements, Facts, Group, MemoryAccess, MemoryObject,
    Synchronization, Wait,
};
use crate::ir::{
    Atomic, AtomicAccess, AtomicMemory, BarrierOp, BulkCopy, CopyKind, Expr, Flow, For, JumpTarget,
    LeftOperand, Loop, LoopExit, MapEdit, Multicast, ParamId, Ptx, RemoteCopy, RowOp, SharedRange, StmtKind,
    Sync, TileCopy, Type, WarpOp,
};
use crate::target::Feature;

impl StmtKind {
    /// Returns the properties of a statement of this kind.
    pub fn facts(&self) -> Facts<'_> {
        use MemoryObject::{Global, Shared};
        match self {
            Self::Assign { local, index, value } => {
                let defines = vec![Definition { local: *local, index, value: DefinedValue::Expr(value) }];
                let controls = index.iter().chain([value]).collect();
                Facts { defines, effect: Effect::Local, ..Facts::visible() }.controls(controls)
            }
            Self::If { condition, then, otherwise } => {
                Facts::flow(Flow::If(condition, [then, otherwise])).controls(vec![condition])
            }
            Self::Match { value, arms, otherwise } => {
                Facts::flow(Flow::Match(value, arms, otherwise)).controls(vec![value])
            }
            Self::Loop { label, body } => {
                Facts::flow(Flow::Loop(Loop { label: *label, exit: LoopExit::Never, body }))
            }
            Self::While { label, header, condition, body } => {
                let exit = LoopExit::WhenFalse(header, condition);
                Facts::flow(Flow::Loop(Loop { label: *label, exit, body })).controls(vec![condition])
            }
            Self::For(inner) => {
                let For { label, variable, start, end, step, body, .. } = &**inner;
                Facts::flow(Flow::Loop(Loop { label: *label, exit: LoopExit::Counted(inner), body }))
                    .defines(*variable, DefinedValue::Range(inner))
                    .controls(vec![start, end, step])
            }
            Self::Labelled { label, body } => Facts::flow(Flow::Labelled(*label, body)),
            Self::Break(label) | Self::Leave(label) => Facts::flow(Flow::Jump(JumpTarget::After(*label))),
            Self::Continue(label) => Facts::flow(Flow::Jump(JumpTarget::NextIteration(*label))),
            Self::Return => Facts::flow(Flow::Jump(JumpTarget::Return)),
            Self::Trap => Facts::flow(Flow::Trap),
            Self::Assert { condition, .. } => Facts::flow(Flow::Fallthrough).controls(vec![condition]),
            // Nothing in a launch depends on it.
            Self::TraceSpan { .. } => Facts::flow(Flow::Fallthrough),

            Self::TileGet { dest, tile, at } => Facts::load(*dest, Shared(tile), at.iter().collect()),
            Self::TileSet { tile, at, value } => Facts::store(Shared(tile), at.iter().collect(), value),
            Self::SharedGet { dest, array, index } => Facts::load(*dest, Shared(array), vec![index]),
            Self::SharedSet { array, index, value } => Facts::store(Shared(array), vec![index], value),
            Self::GlobalGet { dest, global, index, path: _, hint: _ } => {
                Facts::load(*dest, Global(global.param), global.at(index))
            }
            Self::GlobalSet { global, index, value, hint: _ } => {
                Facts::store(Global(global.param), global.at(index), value)
            }
            Self::Atomic(access) => atomic(access),

            Self::TileCopy(copy) => tile_copy(copy),
            Self::BulkCopy(copy) => bulk_copy(copy),
            Self::RemoteCopy(copy) => {
                let RemoteCopy { op: _, from, to, at, count, barrier } = &**copy;
                let side = |array, writes| {
                    let access = MemoryAccess::new(Shared(array), Accessor::Copy, writes);
                    access.of(vec![at], Elements::Counted(count))
                };
                let accesses = vec![side(from, false), side(to, true), MemoryAccess::mbarrier(barrier)];
                Facts { accesses, ..Facts::signals() }.controls(vec![count])
            }
            Self::PrefetchMap(_) | Self::CheckMatrix(_) | Self::Printf { .. } => Facts::visible(),
            Self::Barrier { barrier, op, scope: _ } => {
                Facts { accesses: vec![MemoryAccess::mbarrier(barrier)], ..mbarrier(op) }
            }
            Self::EditMap { map, edit } => edit_map(map, edit),
            Self::AcquireMap { .. } | Self::BulkCommitGroup => Facts::signals(),
            Self::BulkWaitGroup { .. } => Facts::waits(Wait::BulkGroups),

            Self::Mma(mma) => {
                let left = match &mma.left {
                    LeftOperand::Shared(left) => Some(left),
                    LeftOperand::Registers(_) => None,
                };
                let read = |tile| MemoryAccess::new(Shared(tile), Accessor::Other, false);
                let accesses = left.into_iter().chain([&mma.right]).map(|side| read(&side.tile)).collect();
                Facts { accesses, ..Facts::signals() }
                    .defines(mma.accumulator, DefinedValue::Matrix)
                    .uniform(Group::Warpgroup, "mma")
                    .needs(Feature::Wgmma, "mma")
            }
            // The multiplication that is waited for needs the feature itself.
            Self::MmaWait { .. } => Facts::waits(Wait::Multiplications).uniform(Group::Warpgroup, "wait"),
            Self::Pack { dest, accumulator: _ } | Self::Unpack { dest, fragment: _ } => {
                Facts::visible().defines(*dest, DefinedValue::Matrix)
            }
            Self::StoreAccumulator { tile, .. } => {
                Facts::whole(Shared(tile), true).uniform(Group::Warpgroup, "store")
            }
            // Each thread stores its own elements.
            Self::StoreMatrix(store) => Facts::whole(Global(store.matrix.global), true),
            Self::ReduceRows { dest, op, accumulator: _ } => {
                let word = match op {
                    RowOp::Max => "row_max",
                    RowOp::Sum => "row_sum",
                };
                Facts::visible().defines(*dest, DefinedValue::Matrix).uniform(Group::Warp, word)
            }
            // Every chip has `ldmatrix` and `mma.sync`.
            Self::LoadFragment(load) => Facts::whole(Shared(&load.from.tile), false)
                .defines(load.dest, DefinedValue::Matrix)
                .uniform(Group::TeamOf(load.dest), "load"),
            Self::MmaSync(mma) => Facts::visible()
                .defines(mma.accumulator, DefinedValue::Matrix)
                .uniform(Group::Warp, mma.op.name()),
            Self::StoreWarp(store) => Facts::whole(Shared(&store.tile), true)
                .uniform(Group::Warp, "store")
                .controls(store.at.iter().collect()),
            Self::SetMaxRegisters { increase, registers: _ } => {
                let word = if *increase { "setmaxnreg_inc" } else { "setmaxnreg_dec" };
                Facts::waits(Wait::Registers)
                    .uniform(Group::Warpgroup, word)
                    .needs(Feature::SetMaxRegisters, word)
            }

            Self::Fence(_) => Facts { effect: Effect::Orders, ..Facts::signals() },
            Self::Sync(sync) => match sync {
                Sync::Threads => Facts::waits(Wait::Threads).together(Group::Block),
                Sync::Warp => {
                    Facts { effect: Effect::Orders, ..Facts::waits(Wait::Threads) }.together(Group::Warp)
                }
                Sync::Warpgroup => Facts::waits(Wait::Threads).uniform(Group::Warpgroup, "sync_warpgroup"),
                Sync::Cluster => Facts::waits(Wait::Threads).together(Group::Cluster),
                Sync::ClusterArrive => Facts::signals().together(Group::Cluster),
                Sync::ClusterWait => Facts::waits(Wait::Threads).together(Group::Cluster),
            },
            Self::NamedBarrierSync { id, threads } => {
                Facts::waits(Wait::Threads).together(Group::Named).controls(vec![id, threads])
            }
            Self::NamedBarrierArrive { id, threads } => {
                Facts::signals().together(Group::Named).controls(vec![id, threads])
            }
            Self::SyncGrid { counter: _ } => Facts::waits(Wait::Threads).together(Group::Grid),
            Self::GridDependency(_) => {
                Facts { synchronization: Synchronization::Grids, ..Facts::visible() }.together(Group::Grid)
            }
            Self::ElectOne { dest } => Facts { effect: Effect::Exchanges, ..Facts::visible() }
                .defines(*dest, DefinedValue::Election)
                .together(Group::Warp),
            Self::Warp { dest, value, op } => {
                let by = match op {
                    WarpOp::Shuffle { op: _, by } => Some(by),
                    WarpOp::Vote(_) | WarpOp::Match(_) | WarpOp::Reduce(_) => None,
                };
                Facts { effect: Effect::Exchanges, ..Facts::waits(Wait::Lanes) }
                    .defines(*dest, DefinedValue::Lanes(value, op))
                    .together(Group::Warp)
                    .controls([value].into_iter().chain(by).collect())
            }
            Self::Ptx(inner) => ptx(inner),
            Self::PrintTile { tile } => Facts::whole(Shared(tile), false),
        }
    }
}

fn ptx(ptx: &Ptx) -> Facts<'_> {
    let defines = ptx.outputs.iter().map(|output| {
        let value = DefinedValue::Ptx(ptx);
        Definition { local: output.dest, index: &[], value }
    });
    let accesses = ptx.accesses.iter().map(|access| {
        let object = match (access.global(), access.object.ty.local()) {
            (Some(param), _) => MemoryObject::Global(param),
            (None, Type::Barrier) => MemoryObject::Mbarrier(&access.object),
            (None, _) => MemoryObject::Shared(&access.object),
        };
        MemoryAccess::new(object, Accessor::Other, access.writes)
    });
    let effect = if ptx.has_effects() { Effect::Visible } else { Effect::Local };
    Facts { defines: defines.collect(), accesses: accesses.collect(), effect, ..Facts::visible() }
}

fn atomic(access: &Atomic) -> Facts<'_> {
    let (object, at) = match &access.memory {
        AtomicMemory::Global(global) => (MemoryObject::Global(global.param), global.at(&access.index)),
        AtomicMemory::Shared(array) => (MemoryObject::Shared(array), vec![&access.index]),
    };
    let elements = match &access.access {
        AtomicAccess::AddVector { value } => Elements::Stored(&value.ty),
        AtomicAccess::Load { .. }
        | AtomicAccess::Store { .. }
        | AtomicAccess::Update { .. }
        | AtomicAccess::CompareExchange { .. } => Elements::One,
    };
    let made = MemoryAccess::new(object, Accessor::Threads, access.writes()).of(at, elements);
    let facts = Facts::accesses(vec![MemoryAccess { is_strong: true, ..made }]);
    let facts = Facts { effect: Effect::Strong, ..facts };
    match access.dest() {
        Some(dest) => facts.defines(dest, DefinedValue::Atomic(access)),
        None => facts,
    }
}

fn tile_copy(TileCopy { map, at, kind, .. }: &TileCopy) -> Facts<'_> {
    let at = map.index.iter().chain(at).collect();
    copy(map.param, at, Elements::Unknown, kind, |tile| (tile, vec![]))
}

fn bulk_copy(BulkCopy { global, index, count, kind, .. }: &BulkCopy) -> Facts<'_> {
    let elements = Elements::Counted(count);
    let mut facts =
        copy(global.param, global.at(index), elements, kind, |SharedRange { array, at }| (array, vec![at]));
    facts.controls.push(count);
    facts
}

/// A copy between global memory, of which an element is `from`, and shared memory.
fn copy<'k, S>(
    param: ParamId,
    at: Vec<&'k Expr>,
    elements: Elements<'k>,
    kind: &'k CopyKind<S>,
    shared: impl Fn(&'k S) -> (&'k Expr, Vec<&'k Expr>),
) -> Facts<'k> {
    let Some((object, first)) = kind.shared().map(shared) else { return Facts::visible() };
    let side = |object, writes| MemoryAccess::new(object, Accessor::Copy, writes);
    let global = side(MemoryObject::Global(param), kind.writes()).of(at, elements);
    let shared = side(MemoryObject::Shared(object), !kind.writes()).of(first, elements);
    let mut facts = Facts { accesses: vec![global, shared], ..Facts::signals() };
    if let CopyKind::Load { barrier, multicast, .. } = kind {
        facts.accesses.push(MemoryAccess::mbarrier(barrier));
        if let Some(Multicast::Mask(mask)) = multicast {
            facts.controls.push(mask);
        }
    }
    facts
}

fn mbarrier(op: &BarrierOp) -> Facts<'_> {
    match op {
        BarrierOp::Invalidate | BarrierOp::Arrive | BarrierOp::ArriveDrop => Facts::signals(),
        BarrierOp::ArriveToken { dest } => Facts::signals().defines(*dest, DefinedValue::Phase),
        BarrierOp::Init { count: number }
        | BarrierOp::ArriveMany { count: number }
        | BarrierOp::ArriveExpectTx { bytes: number }
        | BarrierOp::ExpectTx { bytes: number } => Facts::signals().controls(vec![number]),
        BarrierOp::Wait { parity } => Facts::waits(Wait::Phase).controls(vec![parity]),
        BarrierOp::WaitToken { token } => Facts::waits(Wait::Token).controls(vec![token]),
        BarrierOp::TestWait { dest, parity }
        | BarrierOp::TryWait { dest, parity }
        | BarrierOp::TryWaitFor { dest, parity, nanoseconds: _ } => {
            Facts::waits(Wait::Phase).controls(vec![parity]).defines(*dest, DefinedValue::Phase)
        }
    }
}

fn edit_map<'k>(map: &'k Expr, edit: &'k MapEdit) -> Facts<'k> {
    let edited = |by, writes| MemoryAccess::new(MemoryObject::Map(map), by, writes);
    let replaced = |word| {
        let accesses = vec![edited(Accessor::Other, true)];
        Facts::accesses(accesses).needs(Feature::ReplaceTensorMap, word)
    };
    match edit {
        MapEdit::CopyFrom { .. } => Facts::accesses(vec![edited(Accessor::Threads, true)]),
        MapEdit::Address { .. } => replaced("set_address"),
        MapEdit::Extent { .. } => replaced("set_extent"),
        MapEdit::Stride { .. } => replaced("set_stride"),
        MapEdit::Publish { maps, index } => {
            let published = MemoryAccess::new(MemoryObject::Global(*maps), Accessor::Other, true);
            let published = published.of(vec![index], Elements::Unknown);
            Facts::accesses(vec![edited(Accessor::Other, false), published]).together(Group::Warp)
        }
    }
}
