//! Proxy fences where slots of pipelines are released.
//!
//! Threads read tiles through the generic proxy, and the copies that refill them write through the
//! async proxy. A `fence.proxy.async` is required between the two (PTX ISA, "Proxies" and "Async
//! proxy"). A release therefore begins with one if threads have read the slot's tiles. The fence
//! covers the block's own shared memory (`.shared::cta`), where the tiles are, also in a kernel
//! with clusters. Stores and other copies read through the async proxy: a slot that only they read
//! needs no fence.
//!
//! Only a release arrives at a pipeline's empty barriers; that identifies releases here. The slot
//! of an access or a release is identified by the local that holds its stage. Locals that are
//! assigned to each other count as one. The stage of a consumer is not among them: it starts from a
//! number and is incremented, and each slot has a copy of it from when the slot was acquired.

use crate::ir::{
    BarrierOp, Block, Expr, ExprKind, Fence, FencedMemory, LocalId, Pipeline, Scope, Stmt, StmtKind, visit,
};
use crate::quick::{QuickMap, QuickSet};

/// Inserts a fence before each release of a slot that threads have read.
pub(super) fn fence_reads(rings: &[Pipeline], body: &mut Block) {
    if rings.is_empty() {
        return;
    }
    let flow = Flow::of(body);
    let fenced: Vec<_> = rings.iter().map(|ring| Fenced::of(ring, body, &flow)).collect();
    let is_fenced = |stmt: &Stmt| {
        let is = |(ring, fenced): (&Pipeline, &Fenced)| {
            released(stmt, ring).is_some_and(|slot| fenced.has(slot.map(|stage| flow.root(stage))))
        };
        rings.iter().zip(&fenced).any(is)
    };
    insert(body, &is_fenced);
}

fn insert(block: &mut Block, is_fenced: &impl Fn(&Stmt) -> bool) {
    for mut stmt in std::mem::take(&mut block.stmts) {
        if is_fenced(&stmt) {
            // The slot's tiles are in the block's own shared memory.
            let fence = Fence::ProxyAsync(FencedMemory::Shared(Scope::Block));
            block.stmts.push(Stmt::new(StmtKind::Fence(fence), stmt.origin));
        } else {
            visit::blocks_mut(&mut stmt.kind).into_iter().for_each(|inner| insert(inner, is_fenced));
        }
        block.stmts.push(stmt);
    }
}

/// A slot, by the local that holds its stage; `None` if it may be any slot.
type Slot = Option<LocalId>;

/// The slots of a ring whose releases begin with a fence.
enum Fenced {
    All,
    These(QuickSet<LocalId>),
}

impl Fenced {
    /// Collects the slots that threads read. If it is unknown which slot is read, or a slot that is
    /// read is not released under its own local, any release may be the one that matters: then all
    /// are fenced.
    fn of(ring: &Pipeline, body: &Block, flow: &Flow) -> Self {
        let (mut read, mut released_slots) = (QuickSet::default(), QuickSet::default());
        visit::for_each_stmt(body, &mut |stmt| {
            if let StmtKind::TileGet { tile, .. } | StmtKind::PrintTile { tile } = &stmt.kind {
                read.extend(flow.slots(tile, ring));
            } else if let StmtKind::LoadFragment(load) = &stmt.kind {
                read.extend(flow.slots(&load.from.tile, ring));
            }
            released_slots.extend(released(stmt, ring));
        });
        let root = |slot: Slot| slot.map(|stage| flow.root(stage));
        let released_slots: QuickSet<Slot> = released_slots.into_iter().map(root).collect();
        let read: Option<QuickSet<LocalId>> = read.into_iter().map(root).collect();
        match read {
            Some(read) if read.iter().all(|&slot| released_slots.contains(&Some(slot))) => Self::These(read),
            Some(_) | None => Self::All,
        }
    }

    fn has(&self, slot: Slot) -> bool {
        match (self, slot) {
            (Self::All, _) => true,
            (Self::These(read), Some(slot)) => read.contains(&slot),
            (Self::These(read), None) => !read.is_empty(),
        }
    }
}

/// Returns the slot that a statement releases, if that is all it does: to its own block, to
/// another, or to several in a loop.
fn released(stmt: &Stmt, ring: &Pipeline) -> Option<Slot> {
    if let StmtKind::For(inner) = &stmt.kind
        && let [stmt] = &inner.body.stmts[..]
    {
        return released(stmt, ring);
    }
    let StmtKind::Barrier { barrier, op: BarrierOp::Arrive, .. } = &stmt.kind else { return None };
    let own = if let ExprKind::Remote(own, _) = &barrier.kind { own } else { barrier };
    let ExprKind::Stage(stages, stage) = &own.kind else { return None };
    matches!(stages.kind, ExprKind::Shared(id) if id == ring.empty).then(|| slot_of(stage))
}

fn slot_of(stage: &Expr) -> Slot {
    if let ExprKind::Local(stage) = stage.kind { Some(stage) } else { None }
}

/// The flow of values between locals.
struct Flow {
    /// Every value assigned to each local.
    values: QuickMap<LocalId, Vec<Expr>>,
    /// A union-find forest over locals that are assigned to each other: the root represents all
    /// locals of its tree.
    parents: QuickMap<LocalId, LocalId>,
}

impl Flow {
    fn of(body: &Block) -> Self {
        let mut flow = Self { values: QuickMap::default(), parents: QuickMap::default() };
        let mut copies = vec![];
        visit::for_each_stmt(body, &mut |stmt| {
            if let StmtKind::Assign { local, value, .. } = &stmt.kind {
                flow.values.entry(*local).or_default().push(value.clone());
                if let ExprKind::Local(from) = value.kind {
                    copies.push((*local, from));
                }
            }
        });
        for (local, from) in copies {
            let (one, other) = (flow.root(local), flow.root(from));
            if !flow.is_counted(from) && one != other {
                flow.parents.insert(one, other);
            }
        }
        flow
    }

    /// Whether a local is assigned anything but other locals.
    fn is_counted(&self, local: LocalId) -> bool {
        let mut values = self.values.get(&local).into_iter().flatten();
        values.any(|value| !matches!(value.kind, ExprKind::Local(_)))
    }

    /// Returns the representative of this local.
    fn root(&self, mut local: LocalId) -> LocalId {
        while let Some(&parent) = self.parents.get(&local) {
            local = parent;
        }
        local
    }

    /// Returns the slots of `ring` that `tile` may belong to.
    fn slots(&self, tile: &Expr, ring: &Pipeline) -> Vec<Slot> {
        let is_tile = |expr: &Expr| matches!(expr.kind, ExprKind::Shared(id) if ring.tiles.contains(&id));
        let (mut slots, mut known, mut open) = (vec![], QuickSet::default(), vec![tile]);
        while let Some(tile) = open.pop() {
            if let ExprKind::Stage(stages, stage) = &tile.kind
                && is_tile(stages)
            {
                slots.push(slot_of(stage));
            } else if is_tile(tile) {
                slots.push(None);
            } else if let ExprKind::Remote(inner, _) | ExprKind::Stage(inner, _) = &tile.kind {
                open.push(inner);
            } else if let ExprKind::Local(local) = tile.kind
                && known.insert(local)
            {
                open.extend(self.values.get(&local).into_iter().flatten());
            }
        }
        slots
    }
}
