//! Where control goes: what walks over a kernel need of a statement that follow its threads.

use super::{Arm, Block, Expr, For, Label, Stmt, StmtKind};

/// Where control goes from a statement.
#[derive(Clone, Copy, Debug)]
pub enum Flow<'a> {
    /// To the next one: its effect is all that there is.
    On,
    /// To one of two blocks.
    If(&'a Expr, [&'a Block; 2]),
    /// To the first arm that holds the value, or else to the last block.
    Match(&'a Expr, &'a [Arm], &'a Block),
    /// Through a loop.
    Loop(Loop<'a>),
    /// Through a block that may be left early.
    Labelled(Label, &'a Block),
    /// Behind the loop or block with this label.
    Behind(Label),
    /// To the next turn of this loop.
    Next(Label),
    /// The thread ends.
    End,
    /// The grid ends.
    Trap,
}

/// A loop of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Loop<'a> {
    /// Names it.
    pub label: Label,
    /// When it ends by itself.
    pub until: Until<'a>,
    /// What a turn does.
    pub body: &'a Block,
}

/// When a loop ends that nothing leaves.
#[derive(Clone, Copy, Debug)]
pub enum Until<'a> {
    /// Never: `loop`.
    Never,
    /// Before a turn, if this condition does not hold, which the block computes.
    Fails(&'a Block, &'a Expr),
    /// After the last value of a range.
    Counted(&'a For),
}

impl<'a> Loop<'a> {
    /// The blocks of a turn, in order.
    pub fn blocks(self) -> impl Iterator<Item = &'a Block> + Clone {
        let header = match self.until {
            Until::Fails(header, _) => Some(header),
            Until::Never | Until::Counted(_) => None,
        };
        header.into_iter().chain([self.body])
    }

    /// Whether it may end before its first turn.
    pub fn may_end(self) -> bool {
        match self.until {
            Until::Never => false,
            Until::Fails(..) | Until::Counted(_) => true,
        }
    }
}

impl Arm {
    /// Whether the arm is for this value.
    pub fn holds(&self, value: i128) -> bool {
        self.ranges.iter().any(|&(least, most)| (least..=most).contains(&value))
    }
}

impl Stmt {
    /// Where control goes from here.
    pub fn flow(&self) -> Flow<'_> {
        match &self.kind {
            StmtKind::If { condition, then, otherwise } => Flow::If(condition, [then, otherwise]),
            StmtKind::Match { value, arms, otherwise } => Flow::Match(value, arms, otherwise),
            StmtKind::Loop { label, body } => Flow::Loop(Loop { label: *label, until: Until::Never, body }),
            StmtKind::While { label, header, condition, body } => {
                Flow::Loop(Loop { label: *label, until: Until::Fails(header, condition), body })
            }
            StmtKind::For(inner) => {
                Flow::Loop(Loop { label: inner.label, until: Until::Counted(inner), body: &inner.body })
            }
            StmtKind::Labelled { label, body } => Flow::Labelled(*label, body),
            StmtKind::Break(label) | StmtKind::Leave(label) => Flow::Behind(*label),
            StmtKind::Continue(label) => Flow::Next(*label),
            StmtKind::Return => Flow::End,
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
            | StmtKind::PrintTile { .. } => Flow::On,
        }
    }
}
