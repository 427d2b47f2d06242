//! The division of a GEMM's work among clusters.

/// The division of tiles among clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Division {
    /// One cluster per tile.
    Whole,
    /// Two clusters per tile in the last round, if that round is at most half full. Each cluster
    /// computes the rows of one warpgroup of each block. Only `T128x256Cluster2x1`, `T128x192Cluster2x1` and `T128x128Cluster2x1` can be
    /// halved, and only without options.
    Halved,
    /// The sums of each tile, along K, in this many parts. This is for fewer tiles than half of the
    /// clusters that run at a time.
    Parts(u32),
    /// Whole tiles for each cluster while at least two rounds of them are left. The clusters then
    /// share the steps of the remaining tiles along K evenly, regardless of where tiles begin and
    /// end. Also known as stream-K (Osama et al., arXiv 2301.03598).
    Even,
}

/// The maximum number of parts of a tile. More are ignored, so that all parts can be counted.
const MOST_PARTS: usize = 64;

/// The work units of a GEMM. The first ones are a tile each. The others are halves of the remaining
/// tiles, or share the steps of these along K, concatenated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    /// Number of units that are a whole tile.
    pub(crate) whole: usize,
    /// Number of units that are half of a tile: the rows of one warpgroup of each block.
    pub(crate) halves: usize,
    /// Number of units that share the steps of the remaining tiles.
    pub(crate) sharing: usize,
    /// Steps of a sharing unit. The last one may have fewer.
    pub(crate) share: usize,
    /// Total number of shared steps.
    pub(crate) shared: usize,
    /// Steps reserved for a tile. More than its own if every tile is split into parts of `share`.
    pub(crate) length: usize,
    /// Partial sums that a unit may store for others.
    pub(crate) leaves: usize,
}

impl Units {
    /// Returns the units of `tiles` with `steps` steps each, for `clusters` that run at the same
    /// time. A division that divides nothing, or has too many steps to count, becomes
    /// [`Division::Whole`].
    pub(crate) fn of(tiles: usize, steps: usize, division: Division, clusters: usize) -> Self {
        let (is_divided, whole, share, length, leaves) = match division {
            Division::Whole => return Self::whole(tiles, steps),
            Division::Halved => {
                let last = tiles % clusters; // the kernel of groups computes the same
                let halves = if 2 * last <= clusters { 2 * last } else { 0 };
                return Self { whole: tiles - halves / 2, halves, ..Self::whole(tiles, steps) };
            }
            Division::Parts(parts) => {
                let share = steps.div_ceil((parts as usize).clamp(1, MOST_PARTS));
                (share < steps, 0, share, steps.next_multiple_of(share), 1)
            }
            Division::Even => {
                // At most nearly two rounds. Each tile is therefore in two parts, if there are
                // enough tiles.
                let whole = (tiles / clusters).saturating_sub(1) * clusters;
                let share = ((tiles - whole) * steps).div_ceil(clusters);
                (!tiles.is_multiple_of(clusters), whole, share, steps, 2)
            }
        };
        match (tiles - whole).checked_mul(length) {
            Some(shared) if is_divided && shared < 1 << 31 => {
                let sharing = shared.div_ceil(share);
                Self { whole, halves: 0, sharing, share, shared, length, leaves }
            }
            _ => Self::whole(tiles, steps),
        }
    }

    fn whole(tiles: usize, steps: usize) -> Self {
        Self { whole: tiles, halves: 0, sharing: 0, share: steps, shared: 0, length: steps, leaves: 0 }
    }

    /// Returns the number of units.
    pub(crate) fn len(&self) -> usize {
        self.whole + self.halves + self.sharing
    }

    /// Returns how many clusters compute the units, at most `most`, the number that runs at the
    /// same time. These are as few as possible without more rounds, since idle multiprocessors
    /// leave the others more power. With halves, all of them are used.
    pub(crate) fn clusters(&self, most: usize) -> usize {
        if self.halves > 0 {
            return self.len().min(most);
        }
        self.len().div_ceil(self.len().div_ceil(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps of each tile that the units cover, as the kernel computes them.
    fn steps_of_units(tiles: usize, steps: usize, units: &Units) -> Vec<Vec<usize>> {
        let mut of_tiles = vec![vec![]; tiles];
        for unit in 0..units.len() {
            let (from, until) = if unit < units.whole {
                (unit * steps, (unit + 1) * steps)
            } else {
                let first = units.whole * units.length + (unit - units.whole) * units.share;
                (first, (first + units.share).min(tiles * units.length))
            };
            let length = if unit < units.whole { steps } else { units.length };
            for (tile, of_tile) in
                of_tiles.iter_mut().enumerate().take(until.div_ceil(length)).skip(from / length)
            {
                let begin = from.max(tile * length) - tile * length;
                let end = (until - tile * length).min(steps);
                assert!(begin < end, "unit {unit} has no step of tile {tile}: {units:?}");
                of_tile.extend(begin..end);
            }
        }
        of_tiles
    }

    #[test]
    fn every_step_of_every_tile_is_in_one_unit() {
        for tiles in 1..40 {
            for steps in [1, 2, 7, 12] {
                for clusters in [1, 3, 8, 11] {
                    let divisions = [1, 2, 3, 5, 100].map(Division::Parts);
                    for division in [Division::Whole, Division::Even].into_iter().chain(divisions) {
                        let units = Units::of(tiles, steps, division, clusters);
                        let all: Vec<_> = (0..steps).collect();
                        let found = steps_of_units(tiles, steps, &units);
                        assert!(found.iter().all(|of_tile| *of_tile == all), "{tiles} {steps} {division:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn clusters_have_the_same_number_of_steps() {
        let units = Units::of(100, 256, Division::Even, 66);
        assert_eq!((units.whole, units.sharing, units.share), (0, 66, 388));
        let units = Units::of(150, 256, Division::Even, 66);
        assert_eq!((units.whole, units.sharing, units.share), (66, 66, 326));
        assert_eq!(Units::of(132, 256, Division::Even, 66), Units::of(132, 256, Division::Whole, 66));
    }

    #[test]
    fn every_tile_is_one_unit_or_both_halves() {
        for clusters in 1..12 {
            for tiles in 1..40 {
                let units = Units::of(tiles, 7, Division::Halved, clusters);
                assert_eq!((units.whole + units.halves / 2, units.sharing), (tiles, 0), "{tiles} {clusters}");
                assert!(units.halves <= clusters && units.halves.is_multiple_of(2), "{tiles} {clusters}");
                assert!(units.halves == 0 || units.whole.is_multiple_of(clusters), "{tiles} {clusters}");
            }
        }
    }

    #[test]
    fn a_round_that_is_at_most_half_full_is_halved() {
        let of = |tiles| {
            let units = Units::of(tiles, 7, Division::Halved, 66);
            (units.whole, units.halves, units.len())
        };
        assert_eq!(of(70), (66, 8, 74));
        assert_eq!(of(99), (66, 66, 132));
        assert_eq!((of(100), of(132)), ((100, 0, 100), (132, 0, 132)));
        assert_eq!(of(5), (0, 10, 10));
        let clusters = |tiles, division| Units::of(tiles, 7, division, 66).clusters(66);
        assert_eq!([clusters(70, Division::Whole), clusters(70, Division::Halved)], [35, 66]);
        assert_eq!([clusters(5, Division::Whole), clusters(5, Division::Halved)], [5, 10]);
    }

    #[test]
    fn indivisible_work_is_whole() {
        for (tiles, steps, division) in
            [(1 << 28, 1 << 20, Division::Parts(2)), (3, 1, Division::Parts(2)), (3, 8, Division::Parts(1))]
        {
            let units = Units::of(tiles, steps, division, 66);
            assert_eq!((units.whole, units.sharing), (tiles, 0));
        }
    }
}
