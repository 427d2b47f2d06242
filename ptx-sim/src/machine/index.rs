//! Typed indices, so that blocks, threads, barriers and copies of a cluster cannot be confused.

use std::ops::{Index, IndexMut};

use tma_model::sync::{Component, Epoch};

use crate::isa::indices;

indices! {
    /// A block, by its rank in the cluster.
    pub BlockRank;
    /// A thread, by its number in its block. x varies fastest.
    pub ThreadIndex;
    /// A warp, by its number in its block.
    pub WarpIndex;
    /// A barrier of a block, as named by `bar` and `barrier`.
    pub BarrierId;
    /// A tensor map that copies have used.
    pub MapId;
    /// An asynchronous operation, numbered from 1 in the order of issue.
    pub OperationId;
}

/// A thread of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    /// The block.
    pub block: BlockRank,
    /// The number of the thread in the block.
    pub index: ThreadIndex,
}

impl ThreadId {
    /// Returns thread `thread` of block `block`.
    #[inline]
    pub const fn new(block: u32, thread: u32) -> Self {
        Self { block: BlockRank(block), index: ThreadIndex(thread) }
    }
}

/// The number of blocks of a cluster, and of threads of each block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) blocks: u32,
    pub(super) threads: u32,
}

impl Shape {
    /// Returns the number of threads of the cluster.
    pub(super) fn all(self) -> u32 {
        self.blocks * self.threads
    }

    /// Returns the ranks of all blocks.
    pub(super) fn ranks(self) -> impl Iterator<Item = BlockRank> {
        (0..self.blocks).map(BlockRank)
    }

    /// Returns the number of warps of a block.
    pub(super) fn warps(self) -> u32 {
        self.threads.div_ceil(tma_model::limits::WARP_THREADS)
    }

    /// Returns the clock component of a thread. Threads have the first components.
    #[inline]
    pub(super) fn component(self, thread: ThreadId) -> Component {
        debug_assert!(
            thread.block.0 < self.blocks && thread.index.0 < self.threads,
            "a thread of the cluster"
        );
        Component::new(thread.block.0 * self.threads + thread.index.0)
    }

    /// Returns the thread that took a step, if the step belongs to a thread.
    pub(super) fn thread(self, step: Epoch) -> Option<ThreadId> {
        let number = step.component().number();
        let threads = self.threads.max(1);
        (number < self.all()).then(|| ThreadId::new(number / threads, number % threads))
    }
}

/// A value for each block of a cluster.
#[derive(Debug)]
pub(super) struct PerBlock<T>(Vec<T>);

impl<T> PerBlock<T> {
    pub(super) fn new(shape: Shape, value: impl FnMut() -> T) -> Self {
        Self(std::iter::repeat_with(value).take(shape.blocks as usize).collect())
    }

    pub(super) fn get(&self, rank: BlockRank) -> Option<&T> {
        self.0.get(rank.index())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (BlockRank, &T)> {
        (0..).map(BlockRank).zip(&self.0)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

impl<T> Index<BlockRank> for PerBlock<T> {
    type Output = T;

    #[inline]
    fn index(&self, rank: BlockRank) -> &T {
        &self.0[rank.index()]
    }
}

impl<T> IndexMut<BlockRank> for PerBlock<T> {
    #[inline]
    fn index_mut(&mut self, rank: BlockRank) -> &mut T {
        &mut self.0[rank.index()]
    }
}

/// A value for each thread of a cluster, block by block.
#[derive(Debug)]
pub(super) struct PerThread<T> {
    shape: Shape,
    all: Vec<T>,
}

impl<T> PerThread<T> {
    /// Creates the value of each thread from its clock component.
    pub(super) fn new(shape: Shape, value: impl FnMut(Component) -> T) -> Self {
        let all = (0..shape.all()).map(Component::new).map(value).collect();
        Self { shape, all }
    }

    #[inline]
    fn index(&self, thread: ThreadId) -> usize {
        self.shape.component(thread).number() as usize
    }

    /// Returns the range of values that belong to the threads of a warp.
    fn range_of_warp(&self, block: BlockRank, warp: WarpIndex) -> std::ops::Range<usize> {
        let lanes = tma_model::limits::WARP_THREADS as usize;
        let (first, end) = (warp.index() * lanes, (warp.index() + 1) * lanes);
        let per_block = self.shape.threads as usize;
        let block = block.index() * per_block;
        block + first..block + end.min(per_block)
    }

    /// Returns the values of the threads of a warp.
    pub(super) fn lanes(&self, block: BlockRank, warp: WarpIndex) -> &[T] {
        self.all.get(self.range_of_warp(block, warp)).unwrap_or_default()
    }

    /// Returns the values of the threads of a warp, mutably.
    pub(super) fn of_warp(&mut self, block: BlockRank, warp: WarpIndex) -> &mut [T] {
        let range = self.range_of_warp(block, warp);
        self.all.get_mut(range).unwrap_or_default()
    }
}

impl<T> Index<ThreadId> for PerThread<T> {
    type Output = T;

    #[inline]
    fn index(&self, thread: ThreadId) -> &T {
        &self.all[self.index(thread)]
    }
}

impl<T> IndexMut<ThreadId> for PerThread<T> {
    #[inline]
    fn index_mut(&mut self, thread: ThreadId) -> &mut T {
        let index = self.index(thread);
        &mut self.all[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_components_are_the_same_in_another_form() {
        let shape = Shape { blocks: 2, threads: 40 };
        let mut table = PerThread::new(shape, Component::number);
        for thread in [ThreadId::new(0, 0), ThreadId::new(0, 39), ThreadId::new(1, 0), ThreadId::new(1, 39)] {
            let component = shape.component(thread);
            assert_eq!(shape.thread(Epoch::new(component, 7)), Some(thread));
            assert_eq!(table[thread], component.number());
        }
        assert_eq!(shape.thread(Epoch::new(Component::new(80), 1)), None);
        assert_eq!(table.of_warp(BlockRank(1), WarpIndex(1)), [72, 73, 74, 75, 76, 77, 78, 79]);
    }
}
