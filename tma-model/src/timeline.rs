//! The rows of a timeline, which the simulator and traces of GPUs name alike, so that both can be
//! compared.

use std::fmt;

/// A row of a block's timeline. Displays its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Row {
    /// A warp, by its number in the block.
    Warp(u32),
    /// The spans of a warp that the kernel names.
    Spans(u32),
    /// Tensor and bulk copies from global memory into the block's shared memory.
    Loads,
    /// Copies from the block's shared memory to global memory.
    Stores,
    /// Reductions from the block's shared memory into global memory.
    Reductions,
    /// Copies into the block's shared memory from that of another block. A GPU's trace has them in
    /// the block that issued them.
    BetweenBlocks,
    /// Prefetches into the L2 cache that threads of the block asked for.
    Prefetches,
    /// An mbarrier, by its offset in the block's shared memory. Only the simulator sees it.
    Mbarrier(u32),
    /// The multiplications that a warp's warpgroup has in flight. Only a GPU's trace has them.
    Multiplications(u32),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warp(warp) => write!(f, "warp {warp}"),
            Self::Spans(warp) => write!(f, "spans of warp {warp}"),
            Self::Loads => f.write_str("loads"),
            Self::Stores => f.write_str("stores"),
            Self::Reductions => f.write_str("reductions"),
            Self::BetweenBlocks => f.write_str("copies in the cluster"),
            Self::Prefetches => f.write_str("prefetches"),
            Self::Mbarrier(at) => write!(f, "mbarrier {at:#x}"),
            Self::Multiplications(warp) => write!(f, "multiplications of warp {warp}"),
        }
    }
}

/// Spreads the events of a row, sorted by their beginning, over as few levels as possible so that
/// none overlap. `span` returns the beginning and the end of an event, or `None` for an instant,
/// which stays on the first level.
pub fn levels<'e, E, T: Copy + PartialOrd>(
    events: &[&'e E],
    span: impl Fn(&E) -> Option<(T, T)>,
) -> Vec<Vec<&'e E>> {
    // The end of each level; the first level may have instants alone.
    let mut levels: Vec<(Option<T>, Vec<&E>)> = Vec::new();
    for &event in events {
        let span = span(event);
        let is_free = |end: &Option<T>| match (span, end) {
            (None, _) | (_, None) => true,
            (Some((begin, _)), Some(end)) => *end <= begin,
        };
        let level = levels.iter().position(|(end, _)| is_free(end)).unwrap_or(levels.len());
        if level == levels.len() {
            levels.push((None, Vec::new()));
        }
        let (end, kept) = &mut levels[level];
        *end = span.map(|(_, end)| end).or(*end);
        kept.push(event);
    }
    levels.into_iter().map(|(_, events)| events).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_overlap_are_on_levels_of_their_own() {
        let events = [(0, 5), (1, 1), (2, 4), (4, 9), (5, 6)];
        let events: Vec<_> = events.iter().collect();
        // Those without a length are instants.
        let found = levels(&events, |&(begin, end)| (begin < end).then_some((begin, end)));
        assert_eq!(found, [vec![&(0, 5), &(1, 1), &(5, 6)], vec![&(2, 4), &(4, 9)]]);
        assert!(levels(&[], |&(begin, end): &(u64, u64)| Some((begin, end))).is_empty());
    }
}
