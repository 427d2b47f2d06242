//! Which values are known once loops are unrolled and functions inlined.

use std::collections::{HashMap, HashSet};

use crate::ir::{Block, Expr, ExprKind, For, LocalId, Stmt, StmtKind, visit};

/// The locals whose values are known when the kernel is compiled.
#[derive(Default)]
pub(super) struct Statics {
    known: HashSet<LocalId>,
}

impl Statics {
    /// Finds them: variables of unrolled loops, and what is computed of these and of constants.
    pub(super) fn new(body: &Block) -> Self {
        let mut statics = Self::default();
        visit::for_each_stmt(body, &mut |stmt| {
            if let StmtKind::Assign { local, .. } = &stmt.kind {
                statics.known.insert(*local);
            } else if let StmtKind::For(inner) = &stmt.kind
                && inner.unroll
            {
                statics.known.insert(inner.variable);
            }
        });
        // Each turn drops what depends on what the last one dropped.
        loop {
            let before = statics.known.len();
            let mut walk = Walk { statics: &statics, found: HashMap::new(), regions: 0 };
            walk.block(body, 0);
            let found = walk.found.into_iter();
            statics.known = found.filter_map(|(local, region)| region.map(|_| local)).collect();
            if statics.known.len() == before {
                return statics;
            }
        }
    }

    /// Whether the value of `expr` is known when the kernel is compiled.
    pub(super) fn knows(&self, expr: &Expr) -> bool {
        let mut is_known = true;
        visit::within(expr, &mut |node| {
            is_known &= match &node.kind {
                ExprKind::Local(local) => self.known.contains(local),
                ExprKind::Const(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Cast(_)
                | ExprKind::Bits(_)
                | ExprKind::Math(..)
                | ExprKind::Integer(..)
                | ExprKind::Array(_)
                | ExprKind::Repeat(_)
                | ExprKind::Index(..) => true,
                ExprKind::Shared(_)
                | ExprKind::Param(_)
                | ExprKind::GlobalLen(_)
                | ExprKind::Special(_)
                | ExprKind::ZeroAccumulator
                | ExprKind::Stage(..)
                | ExprKind::CachePolicy(..)
                | ExprKind::Hinted(..)
                | ExprKind::Remote(..)
                | ExprKind::ClusterAxis(_)
                | ExprKind::Compound(_)
                | ExprKind::MapAt(..)
                | ExprKind::Unit
                | ExprKind::Error => false,
            };
        });
        is_known
    }
}

/// Finds what locals are given.
///
/// Where it is not known which way a thread takes, what it does there is a region of its own: of a
/// local that has values from several regions it is not known which one it has. One that is given a
/// value at one place has that value wherever it is used.
struct Walk<'s> {
    /// What was found before, or is hoped for.
    statics: &'s Statics,
    /// The region of what a local is given; none if its value is not known.
    found: HashMap<LocalId, Option<u32>>,
    regions: u32,
}

impl Walk<'_> {
    /// Whether some threads may leave `block` before its end.
    fn block(&mut self, block: &Block, mut region: u32) -> bool {
        let mut may_leave = false;
        for stmt in &block.stmts {
            if self.stmt(stmt, region) {
                // Whoever is still here has not done what the others have.
                may_leave = true;
                region = self.region();
            }
        }
        may_leave
    }

    fn region(&mut self) -> u32 {
        self.regions += 1;
        self.regions
    }

    /// Whether some threads may go on elsewhere than after it.
    fn stmt(&mut self, stmt: &Stmt, region: u32) -> bool {
        match &stmt.kind {
            StmtKind::Assign { local, index, value } => {
                let is_known = self.statics.knows(value) && index.iter().all(|i| self.statics.knows(i));
                self.assign(*local, is_known, region);
                false
            }
            StmtKind::For(inner) if inner.unroll => {
                let For { variable, body, .. } = &**inner;
                self.assign(*variable, true, region);
                self.block(body, region)
            }
            StmtKind::If { condition, then, otherwise } => {
                self.choice(condition, [then, otherwise].into_iter(), region)
            }
            StmtKind::Match { value, arms, otherwise } => {
                self.choice(value, arms.iter().map(|arm| &arm.body).chain([otherwise]), region)
            }
            StmtKind::Labelled { body, .. } => self.block(body, region),
            StmtKind::Break(_) | StmtKind::Continue(_) | StmtKind::Leave(_) => false,
            // Nobody has counted their turns.
            StmtKind::For(_) | StmtKind::Loop { .. } | StmtKind::While { .. } => {
                visit::blocks(&stmt.kind).into_iter().fold(false, |may_leave, block| {
                    let turn = self.region();
                    self.block(block, turn) || may_leave
                })
            }
            StmtKind::Return
            | StmtKind::TileGet { .. }
            | StmtKind::TileSet { .. }
            | StmtKind::SharedGet { .. }
            | StmtKind::SharedSet { .. }
            | StmtKind::GlobalGet { .. }
            | StmtKind::GlobalSet { .. }
            | StmtKind::GlobalAtomic { .. }
            | StmtKind::TileCopy(_)
            | StmtKind::BulkCopy(_)
            | StmtKind::RemoteCopy(_)
            | StmtKind::PrefetchMap(_)
            | StmtKind::Barrier { .. }
            | StmtKind::EditMap { .. }
            | StmtKind::AcquireMap { .. }
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::Mma(_)
            | StmtKind::MmaWait { .. }
            | StmtKind::Pack { .. }
            | StmtKind::StoreAccumulator { .. }
            | StmtKind::CheckMatrix(_)
            | StmtKind::StoreMatrix(_)
            | StmtKind::ReduceRows { .. }
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::NamedBarrierSync { .. }
            | StmtKind::NamedBarrierArrive { .. }
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::ElectOne { .. }
            | StmtKind::Warp { .. }
            | StmtKind::Trap
            | StmtKind::Assert { .. }
            | StmtKind::Printf { .. }
            | StmtKind::PrintTile { .. } => false,
        }
    }

    /// Blocks of which each thread takes one.
    fn choice<'a>(&mut self, by: &Expr, blocks: impl Iterator<Item = &'a Block>, region: u32) -> bool {
        let is_known = self.statics.knows(by);
        let mut may_leave = false;
        for block in blocks {
            let inside = if is_known { region } else { self.region() };
            may_leave |= self.block(block, inside) || (!is_known && leaves(block));
        }
        may_leave
    }

    fn assign(&mut self, local: LocalId, is_known: bool, region: u32) {
        let given = is_known.then_some(region);
        let found = self.found.entry(local).or_insert(given);
        if *found != given {
            *found = None;
        }
    }
}

/// Whether control leaves `block` for elsewhere than what comes after it.
fn leaves(block: &Block) -> bool {
    let mut found = false;
    visit::for_each_stmt(block, &mut |stmt| {
        found |= matches!(
            stmt.kind,
            StmtKind::Break(_)
                | StmtKind::Continue(_)
                | StmtKind::Leave(_)
                | StmtKind::Return
                | StmtKind::Trap
        );
    });
    found
}
