//! Registers that warps release and request with `setmaxnreg`.
//!
//! Source: PTX ISA, "setmaxnreg": released registers go to a pool of the block, and a request waits
//! until the pool has enough.

use tma_model::limits::{WARP_THREADS, WARPGROUP_THREADS};

use super::index::{BlockRank, PerBlock, Shape, WarpIndex};

/// The registers of the blocks of a cluster.
#[derive(Debug)]
pub(super) struct Registers {
    blocks: PerBlock<Pool>,
    /// Whether the number at the start is known. If not, registers are not counted.
    known: bool,
}

/// The registers of a block.
#[derive(Debug)]
struct Pool {
    free: u32,
    warps: Vec<WarpRegisters>,
}

/// The registers of a warp.
#[derive(Clone, Copy, Debug)]
struct WarpRegisters {
    /// Registers of each thread.
    count: u32,
    /// The number of `setmaxnreg` instructions that took effect.
    changes: u32,
}

/// The result of a `setmaxnreg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterChange {
    Done,
    /// The pool has too few registers.
    MustWait,
    /// A `dec` to more registers than the warp has, or an `inc` to fewer.
    WrongDirection {
        count: u32,
    },
}

impl Registers {
    pub(super) fn new(shape: Shape, count: Option<u32>) -> Self {
        let warp_registers = WarpRegisters { count: count.unwrap_or(0), changes: 0 };
        let blocks =
            PerBlock::new(shape, || Pool { free: 0, warps: vec![warp_registers; shape.warps() as usize] });
        Self { blocks, known: count.is_some() }
    }

    /// Returns the number of free registers in a block's pool.
    pub(super) fn free(&self, rank: BlockRank) -> u32 {
        self.blocks[rank].free
    }

    /// Changes the number of registers per thread of a warp to `count`, if the pool allows.
    pub(super) fn change(
        &mut self,
        rank: BlockRank,
        warp: WarpIndex,
        count: u32,
        grows: bool,
    ) -> RegisterChange {
        let pool = &mut self.blocks[rank];
        let Some(warp_registers) = pool.warps.get_mut(warp.index()).filter(|_| self.known) else {
            return RegisterChange::Done;
        };
        if grows && count < warp_registers.count || !grows && count > warp_registers.count {
            return RegisterChange::WrongDirection { count: warp_registers.count };
        }
        if grows {
            let wanted = (count - warp_registers.count) * WARP_THREADS;
            let Some(left) = pool.free.checked_sub(wanted) else { return RegisterChange::MustWait };
            pool.free = left;
        } else {
            pool.free += (warp_registers.count - count) * WARP_THREADS;
        }
        *warp_registers = WarpRegisters { count, changes: warp_registers.changes + 1 };
        RegisterChange::Done
    }

    /// Returns whether growing to `count` registers per thread would not wait.
    pub(super) fn may_grow(&self, rank: BlockRank, warp: WarpIndex, count: u32) -> bool {
        let pool = &self.blocks[rank];
        pool.warps.get(warp.index()).is_none_or(|warp_registers| {
            count.saturating_sub(warp_registers.count) * WARP_THREADS <= pool.free
        })
    }

    /// Finds a warp that has changed its registers more often than another warp of its warpgroup,
    /// and returns both.
    pub(super) fn uneven(&self, rank: BlockRank) -> Option<[WarpIndex; 2]> {
        let warps = (WARPGROUP_THREADS / WARP_THREADS) as usize;
        let mut groups = self.blocks[rank].warps.chunks(warps).zip((0..).step_by(warps));
        groups.find_map(|(group, first)| {
            let by_changes = |warp: &usize| group[*warp].changes;
            let most = (0..group.len()).max_by_key(by_changes)?;
            let least = (0..group.len()).min_by_key(by_changes)?;
            let index = |warp: usize| WarpIndex((first + warp) as u32);
            (group[most].changes != group[least].changes).then(|| [index(most), index(least)])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockRank = BlockRank(0);

    #[test]
    fn released_registers_are_available_to_others() {
        let mut registers = Registers::new(Shape { blocks: 1, threads: 256 }, Some(128));
        let mut change = |warp, count, grows| registers.change(BLOCK, WarpIndex(warp), count, grows);
        assert_eq!(change(4, 232, true), RegisterChange::MustWait);
        for warp in 0..3 {
            assert_eq!(change(warp, 24, false), RegisterChange::Done);
        }
        assert_eq!(change(4, 232, true), RegisterChange::Done);
        assert_eq!(change(5, 232, true), RegisterChange::Done);
        assert_eq!(change(6, 232, true), RegisterChange::Done);
        assert_eq!(change(7, 232, true), RegisterChange::MustWait);
        assert_eq!(change(3, 24, false), RegisterChange::Done);
        assert_eq!(change(7, 232, true), RegisterChange::Done);
        assert_eq!(change(7, 24, true), RegisterChange::WrongDirection { count: 232 });
        assert_eq!(change(7, 240, false), RegisterChange::WrongDirection { count: 232 });
        assert_eq!(registers.free(BLOCK), 0);
        assert_eq!(registers.uneven(BLOCK), None);
    }

    #[test]
    fn a_warpgroup_changes_as_one() {
        let mut registers = Registers::new(Shape { blocks: 1, threads: 256 }, Some(128));
        assert_eq!(registers.change(BLOCK, WarpIndex(6), 24, false), RegisterChange::Done);
        assert_eq!(registers.uneven(BLOCK), Some([WarpIndex(6), WarpIndex(4)]));
    }

    #[test]
    fn unknown_register_counts_are_not_tracked() {
        let mut registers = Registers::new(Shape { blocks: 1, threads: 128 }, None);
        assert_eq!(registers.change(BLOCK, WarpIndex(0), 240, true), RegisterChange::Done);
        assert_eq!(registers.uneven(BLOCK), None);
    }
}
