//! The decisions of a world.

use crate::ir::StmtId;
use crate::quick::QuickSet;

/// Numbers of turns of loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    pub(super) inner: u32,
    /// Of loops with others inside.
    pub(super) outer: u32,
    /// Of loops in which nothing synchronises.
    pub(super) silent: u32,
}

impl Turns {
    /// The same number of each loop.
    pub(super) fn of_all(turns: u32) -> Self {
        Self { inner: turns, outer: turns, silent: turns }
    }
}

/// The decisions of a world, in order.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// Those that it has to begin with: whether each is another than the first that is tried.
    pub(super) path: Vec<bool>,
    pub(super) taken: Vec<bool>,
    /// How many turns it takes of each loop whose end is free, beyond its path.
    pub(super) turns: Turns,
    /// The most turns after which it decided freely.
    pub(super) most_turns: u32,
    /// The fewest turns after which it decided freely that a loop ends.
    pub(super) fewest_turns: Option<u32>,
    /// Which decisions depend on data.
    pub(super) data: OnData,
    /// Whether whoever runs it decides, each condition when it comes.
    pub(super) forks: bool,
    /// Then the loops whose ends depend on the launch or on data.
    pub(super) free: QuickSet<StmtId>,
}

/// Who decides by data, of which only the host knows how they are related.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OnData {
    #[default]
    Nobody,
    /// One group, whether one of its loops goes on: with any number of turns there is a launch.
    Loop(usize, StmtId),
    /// Several groups, or one in another way: not all that they decide may go together.
    More,
}

impl Choices {
    /// Whether a launch may not be one, of which a world decided so many loaded numbers: only the host
    /// knows which of these go together.
    pub(super) fn may_not_go_together(&self, data: usize) -> bool {
        // Where all loops take the same number of turns, their counts do.
        let is_typical = self.path.is_empty();
        match self.data {
            OnData::Nobody => false,
            OnData::Loop(..) => !is_typical,
            OnData::More => !is_typical || data > 1,
        }
    }
}

impl OnData {
    /// With one more decision, by this group, of whether this loop goes on or of anything else.
    pub(super) fn and(self, group: usize, of_loop: Option<StmtId>) -> Self {
        match (self, of_loop.map(|of| Self::Loop(group, of))) {
            (Self::Nobody, Some(decision)) => decision,
            (Self::Loop(..), Some(decision)) if self == decision => self,
            (Self::Nobody | Self::Loop(..) | Self::More, Some(_) | None) => Self::More,
        }
    }
}
