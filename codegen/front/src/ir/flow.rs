//! Control flow of statements, for analyses that follow the threads of a kernel.

use super::{Arm, Block, Expr, For, Label};

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
    /// The target of a jump.
    Jump(JumpTarget),
    /// None: the grid stops.
    Trap,
}

/// The target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JumpTarget {
    /// The statement after the loop or block with this label.
    After(Label),
    /// The next iteration of this loop.
    NextIteration(Label),
    /// The end of the thread.
    Return,
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

    /// Whether its iterations follow each other in the PTX, without a loop.
    pub fn is_unrolled(self) -> bool {
        match self.exit {
            LoopExit::Never | LoopExit::WhenFalse(..) => false,
            LoopExit::Counted(range) => range.unroll,
        }
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
