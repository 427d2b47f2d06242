//! The threads that repeated a finding after the first one.

use std::fmt;

use tma_model::limits::TEAM_RANKS;

/// The most threads of a block.
const THREADS: u32 = 1024;
/// The number of ranges of threads that are listed.
const MAX_RANGES: usize = 4;

/// The threads that repeated a finding: their numbers within the block, the range of their blocks,
/// and their ranks in a team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    threads: [u64; (THREADS / 64) as usize],
    /// The first and the last block, in the order in which x varies fastest.
    blocks: Option<([u32; 3], [u32; 3])>,
    /// A bit for each rank; none without a team.
    ranks: u32,
}

const _: () = assert!(TEAM_RANKS <= 32, "a bit for each rank");

/// Returns the sort key of blocks.
fn order(block: [u32; 3]) -> [u32; 3] {
    let [x, y, z] = block;
    [z, y, x]
}

impl Repeats {
    /// Adds a thread.
    pub(super) fn add(&mut self, rank: Option<u32>, block: [u32; 3], thread: u32) {
        self.ranks |= rank.and_then(|rank| 1_u32.checked_shl(rank)).unwrap_or_default();
        if let Some(word) = self.threads.get_mut(thread as usize / 64) {
            *word |= 1 << (thread % 64);
        }
        self.add_blocks(block, block);
    }

    /// Adds the threads of other repeats.
    pub(super) fn merge(&mut self, other: &Self) {
        for (word, other) in self.threads.iter_mut().zip(other.threads) {
            *word |= other;
        }
        self.ranks |= other.ranks;
        if let Some((first, last)) = other.blocks {
            self.add_blocks(first, last);
        }
    }

    fn add_blocks(&mut self, first: [u32; 3], last: [u32; 3]) {
        let (known_first, known_last) = self.blocks.unwrap_or((first, last));
        let first = std::cmp::min_by_key(known_first, first, |block| order(*block));
        let last = std::cmp::max_by_key(known_last, last, |block| order(*block));
        self.blocks = Some((first, last));
    }

    fn contains(&self, thread: u32) -> bool {
        self.threads.get(thread as usize / 64).is_some_and(|word| word >> (thread % 64) & 1 == 1)
    }

    /// Returns the ranges of threads, each as its first and last number.
    fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for thread in (0..THREADS).filter(|thread| self.contains(*thread)) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == thread => *last = thread,
                Some(_) | None => ranges.push((thread, thread)),
            }
        }
        ranges
    }
}

/// Formats the repeats as `, of threads 1 to 31 of block (4, 0, 0)`; empty if there are no threads.
impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.ranges();
        let (Some(&(start, _)), Some(&(_, end)), Some((first, last))) =
            (ranges.first(), ranges.last(), self.blocks)
        else {
            return Ok(());
        };
        f.write_str(if start == end { ", of thread " } else { ", of threads " })?;
        for (number, &(start, end)) in ranges.iter().take(MAX_RANGES).enumerate() {
            let separator = match number {
                0 => "",
                _ if number + 1 == ranges.len() => " and ",
                _ => ", ",
            };
            f.write_str(separator)?;
            if start == end { write!(f, "{start}") } else { write!(f, "{start} to {end}") }?;
        }
        if ranges.len() > MAX_RANGES {
            write!(f, " and more up to {end}")?;
        }
        let block = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        if first == last {
            write!(f, " of block {}", block(first))?;
        } else {
            write!(f, " of blocks from {} to {}", block(first), block(last))?;
        }
        let ranks = (0..TEAM_RANKS).filter(|rank| self.ranks >> rank & 1 == 1).map(|rank| rank.to_string());
        match ranks.collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            [rank] => write!(f, " of rank {rank}"),
            [ranks @ .., last] => write!(f, " of ranks {} and {last}", ranks.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Repeats;

    fn repeats(threads: impl IntoIterator<Item = u32>, blocks: &[[u32; 3]]) -> String {
        let mut repeats = Repeats::default();
        for thread in threads {
            for block in blocks {
                repeats.add(None, *block, thread);
            }
        }
        repeats.to_string()
    }

    #[test]
    fn threads_are_named_in_ranges() {
        assert_eq!(repeats([], &[[0; 3]]), "");
        assert_eq!(repeats([33], &[[4, 0, 0]]), ", of thread 33 of block (4, 0, 0)");
        assert_eq!(repeats(1..32, &[[0; 3]]), ", of threads 1 to 31 of block (0, 0, 0)");
        assert_eq!(repeats([1, 2, 5, 1023], &[[0; 3]]), ", of threads 1 to 2, 5 and 1023 of block (0, 0, 0)");
        assert_eq!(
            repeats((0..128).step_by(2), &[[0; 3]]),
            ", of threads 0, 2, 4, 6 and more up to 126 of block (0, 0, 0)"
        );
    }

    #[test]
    fn blocks_are_from_the_first_to_the_last_of_the_grid() {
        let text = repeats(0..32, &[[3, 1, 0], [8, 0, 0], [0, 2, 0]]);
        assert_eq!(text, ", of threads 0 to 31 of blocks from (8, 0, 0) to (0, 2, 0)");
        let (mut one, mut other) = (Repeats::default(), Repeats::default());
        one.add(Some(1), [1, 0, 0], 0);
        other.add(Some(0), [0, 0, 0], 1);
        one.merge(&other);
        assert_eq!(
            one.to_string(),
            ", of threads 0 to 1 of blocks from (0, 0, 0) to (1, 0, 0) of ranks 0 and 1"
        );
    }
}
