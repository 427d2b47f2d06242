//! Control flow of statements, for analyses that follow the threads of a kernel.

use super::{Arm, Block, Expr, For, Label, Stmt, StmtKind};

/// The successors of a statement.
#[derive(Clone, Copy, Debug)]
pub enum Flow<'a> {
    /// The next statement: this one has an effect and no control flow.
    Fallthrough,
    /// One of two blocks.
    If(&'a Expr, [&'a Block; 2]),
    /// The first arm that contains the value, or else the last block.
    Match(&'a Expr, &'a [Arm], &'a Block),
    /// A loop.
    Loop(Loop<'a>),
    /// A block that may be left early.
    Labelled(Label, &'a Block),
    /// The statement after the loop or block with this label.
    After(Label),
    /// The next iteration of this loop.
    NextIteration(Label),
    /// None: the thread ends.
    Return,
    /// None: the grid stops.
    Trap,
}

/// A loop of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Loop<'a> {
    /// The loop's label.
    pub label: Label,
    /// The condition under which it ends.
    pub exit: LoopExit<'a>,
    /// The statements of one iteration.
    pub body: &'a Block,
}

/// The condition that ends a loop, apart from statements that leave it.
#[derive(Clone, Copy, Debug)]
pub enum LoopExit<'a> {
    /// None: `loop`.
    Never,
    /// The loop ends before an iteration if this condition, computed by the block, is false.
    WhenFalse(&'a Block, &'a Expr),
    /// The loop ends after the last value of a range.
    Counted(&'a For),
}

impl<'a> Loop<'a> {
    /// Returns the blocks of one iteration, in order.
    pub fn blocks(self) -> impl Iterator<Item = &'a Block> + Clone {
        let header = match self.exit {
            LoopExit::WhenFalse(header, _) => Some(header),
            LoopExit::Never | LoopExit::Counted(_) => None,
        };
        header.into_iter().chain([self.body])
    }

    /// Whether it may end before its first iteration.
    pub fn may_end(self) -> bool {
        match self.exit {
            LoopExit::Never => false,
            LoopExit::WhenFalse(..) | LoopExit::Counted(_) => true,
        }
    }
}

impl Arm {
    /// Whether the arm's ranges contain this value.
    pub fn holds(&self, value: i128) -> bool {
        self.ranges.iter().any(|&(least, most)| (least..=most).contains(&value))
    }
}

impl Stmt {
    /// Returns the control flow of this statement.
    pub fn flow(&self) -> Flow<'_> {
        match &self.kind {
            StmtKind::If { condition, then, otherwise } => Flow::If(condition, [then, otherwise]),
            StmtKind::Match { value, arms, otherwise } => Flow::Match(value, arms, otherwise),
            StmtKind::Loop { label, body } => Flow::Loop(Loop { label: *label, exit: LoopExit::Never, body }),
            StmtKind::While { label, header, condition, body } => {
                Flow::Loop(Loop { label: *label, exit: LoopExit::WhenFalse(header, condition), body })
            }
            StmtKind::For(inner) => {
                Flow::Loop(Loop { label: inner.label, exit: LoopExit::Counted(inner), body: &inner.body })
            }
            StmtKind::Labelled { label, body } => Flow::Labelled(*label, body),
            StmtKind::Break(label) | StmtKind::Leave(label) => Flow::After(*label),
            StmtKind::Continue(label) => Flow::NextIteration(*label),
            StmtKind::Return => Flow::Return,
            StmtKind::Trap => Flow::Trap,
            StmtKind::Assign { .. }
            | StmtKind::TileGet { .. }
            | StmtKind::TileSet { .. }
            | StmtKind::SharedGet { .. }
            | StmtKind::SharedSet { .. }
            | StmtKind::GlobalGet { .. }
            | StmtKind::GlobalSet { .. }
            | StmtKind::Atomic(_)
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
            | StmtKind::LoadFragment(_)
            | StmtKind::MmaSync(_)
            | StmtKind::StoreWarp(_)
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::NamedBarrierSync { .. }
            | StmtKind::NamedBarrierArrive { .. }
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::ElectOne { .. }
            | StmtKind::Warp { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Printf { .. }
            | StmtKind::PrintTile { .. } => Flow::Fallthrough,
        }
    }
}
