//! Selection of the kernel: the fastest according to a model of the running time, which is fitted
//! to measurements. `lab/gemm.md` tells how they were measured.

pub(super) mod chosen;

use super::divide::{Division, Units};
use super::tile::{Facts, Tile, TileKernel};

/// The way in which matrices are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The tile.
    pub tile: Tile,
    /// The division of tiles among clusters.
    pub division: Division,
}

/// The extents of a GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// M, N and K.
    pub extents: [usize; 3],
    /// The number of GEMMs in the batch.
    pub batches: usize,
    /// Size in bytes of an element of A and B, and of one of C.
    pub bytes: [usize; 2],
}

impl Problem {
    /// Returns the number of steps of 128 bytes along K.
    pub(crate) fn steps(&self) -> usize {
        (self.extents[2] * self.bytes[0]).div_ceil(128)
    }

    /// Returns the size of all matrices of B in bytes.
    pub(crate) fn bytes_of_b(&self) -> f64 {
        let [_, n, k] = self.extents.map(|extent| extent as f64);
        n * k * (self.bytes[0] * self.batches) as f64
    }

    /// Returns whether the L2 cache holds A and B, or nearly so.
    pub(crate) fn fits_l2(&self) -> bool {
        self.bytes_read() <= CACHED_RATIO * L2
    }

    /// Returns the size of all matrices of A and B in bytes.
    fn bytes_read(&self) -> f64 {
        let [m, _, k] = self.extents.map(|extent| extent as f64);
        m * k * (self.bytes[0] * self.batches) as f64 + self.bytes_of_b()
    }

    /// Returns the number of clusters' tiles of all GEMMs.
    pub(crate) fn tiles(&self, facts: &Facts) -> usize {
        let [rows, columns] = facts.extents();
        self.extents[0].div_ceil(rows) * self.extents[1].div_ceil(columns) * self.batches
    }
}

/// Factor by which reads slow down if several clusters read the same part of matrices that do not
/// fit in the L2 cache.
const REREAD_SLOWDOWN: f64 = 1.35;

/// Factor by which reads slow down for a tile with at least half of its rows outside of A.
const HALF_OUTSIDE: f64 = 2.0;

/// Size of the L2 cache in bytes.
const L2: f64 = 50e6;

/// Duration of one launch after another, in nanoseconds.
pub(crate) const LAUNCH: f64 = 1000.0;

/// Duration of a GEMM, in nanoseconds, from which on it gains if all blocks begin together, in the
/// order that `first_unit` in the kernel expects.
const SIMULTANEOUS_START: f64 = 150_000.0;

/// Rows of clusters' tiles that form a band, so that the L2 cache holds the parts that they share.
/// `first_unit` in the kernel expects the same number.
const BAND: usize = 8;

/// The size of A and B, relative to the L2 cache, up to which they are mostly read from it.
const CACHED_RATIO: f64 = 1.2;

/// The maximum number of parts of a tile. More were never faster.
const MOST_PARTS: usize = 8;

/// Nanoseconds for the exchange of sums of 128 × 256 elements if clusters share steps evenly.
const EVEN_EXCHANGE: f64 = 8000.0;

/// Factor by which shared steps are slower in that case if the L2 cache does not hold A and B:
/// clusters are at different positions along K, and share no reads.
const UNSHARED_SLOWDOWN: f64 = 1.12;

/// Factor on the estimate of [`nanoseconds`] for an even division, where the model errs most.
const EVEN_MARGIN: f64 = 1.05;

/// Nanoseconds by which the kernel that divides sums takes longer per tile of 128 × 256 elements.
const EVEN_TILE_OVERHEAD: f64 = 2000.0;

/// Returns the expected duration of a choice in nanoseconds, on this many multiprocessors. The GEMM
/// is assumed to follow many others, so that power may be the limit rather than the work of each
/// cluster.
pub fn nanoseconds(problem: &Problem, choice: Choice, multiprocessors: u32) -> f64 {
    let facts = choice.tile.facts();
    let [m, n, _] = problem.extents.map(|extent| extent as f64);
    let clusters = (multiprocessors / facts.blocks()).max(1) as usize;
    let steps = problem.steps().div_ceil(facts.parts as usize);
    let tiles = problem.tiles(&facts);
    let units = Units::of(tiles, steps, choice.division, clusters);
    let [whole, halves, shared] =
        [units.whole, units.halves, units.sharing].map(|units| units.div_ceil(clusters) as f64);
    let read = problem.bytes_read();
    let [rests, exchanged, slowdown] = match choice.division {
        _ if units.sharing == 0 => [whole + halves, 0.0, 1.0],
        Division::Whole | Division::Halved | Division::Parts(_) => {
            [whole + shared, shared * facts.split, 1.0]
        }
        Division::Even => {
            // A unit that begins and ends within tiles stores twice.
            let rests = whole + 2.0 * shared;
            let part = f64::from(facts.warpgroups * facts.columns) / 512.0;
            [
                rests,
                (EVEN_EXCHANGE + rests * EVEN_TILE_OVERHEAD) * part,
                if read > L2 { UNSHARED_SLOWDOWN } else { 1.0 },
            ]
        }
    };
    let written = m * n * (problem.bytes[1] * problem.batches) as f64;
    let is_shared = problem.extents[0] > facts.extents()[0] && read > L2;
    let is_half_outside = facts.extents()[0] > 64 && 2 * problem.extents[0] <= facts.extents()[0];
    let moved = (read + written) / (facts.stream * 1000.0)
        * if is_shared { REREAD_SLOWDOWN } else { 1.0 }
        * if is_half_outside { HALF_OUTSIDE } else { 1.0 };
    let half = halves * facts.half_step(units.halves as f64 / clusters as f64);
    let sequential_steps = (whole + half) * steps as f64 + shared * units.share as f64 * slowdown;
    let multiplied = (sequential_steps * facts.step).max(moved);
    let cool = LAUNCH + rests * facts.rest + facts.last + exchanged + multiplied;
    let warm = (tiles * steps) as f64 / clusters as f64 * facts.hot * slowdown;
    (cool.powi(4) + warm.powi(4)).sqrt().sqrt()
}

/// Returns the number of steps along K by which each cluster starts after the previous one. It is
/// only above 0 if each part of B is read by one cluster alone.
pub(crate) fn k_shift(problem: &Problem, tile: Tile) -> u32 {
    if problem.extents[0] <= tile.facts().extents()[0] { k_shift_of_stream(problem) } else { 0 }
}

/// Returns the same for a GEMM that reads each part of B once. If the L2 cache does not hold B, this
/// spreads the reads over the memory channels.
pub(crate) fn k_shift_of_stream(problem: &Problem) -> u32 {
    const STEPS: u32 = 37;
    if problem.bytes_of_b() > L2 { STEPS } else { 0 }
}

/// Returns how many rows of clusters' tiles form a band.
pub(crate) fn band(problem: &Problem, choice: Choice) -> usize {
    let down = problem.extents[0].div_ceil(choice.tile.facts().extents()[0]);
    band_of(down, is_by_rows(problem, choice))
}

/// Returns the same for `down` rows of tiles, which may be processed one by one.
pub(crate) fn band_of(down: usize, is_by_rows: bool) -> usize {
    if is_by_rows { 1 } else { BAND.min(down) }
}

/// Returns whether consecutive clusters take adjacent tiles of a row. The L2 cache then has to hold
/// A and B in any order (docs/gemm-kernel.md, "Tile order").
fn is_by_rows(problem: &Problem, Choice { tile, division }: Choice) -> bool {
    let is_whole = matches!(division, Division::Whole | Division::Halved);
    tile.facts().by_rows && problem.fits_l2() && is_whole
}

/// Returns whether a GEMM may begin while the previous one still runs (docs/gemm-kernel.md,
/// "Overlapping launches"). This saves a microsecond, but blocks then begin one after the other.
///
/// Long GEMMs are faster if all their blocks begin together, each next to blocks on the chip that
/// have the same rows of A. So are blocks without clusters if they read each part of B once and B
/// is much larger than the L2 cache: they are then spread evenly over the chip.
pub(crate) fn begins_early(problem: &Problem, choice: Choice, multiprocessors: u32) -> bool {
    let facts = choice.tile.facts();
    let streams =
        facts.blocks() == 1 && problem.extents[0] <= facts.extents()[0] && problem.bytes_of_b() > 2.0 * L2;
    !streams && nanoseconds(problem, choice, multiprocessors) < SIMULTANEOUS_START
}

/// Returns the fastest choice by [`nanoseconds`] among those for which there is an instance, or
/// `None` if there is none. Tiles are split into parts only if all parts run at the same time, and
/// halved only after a round of whole tiles.
pub fn choose(problem: &Problem, multiprocessors: u32, has: impl Fn(Choice) -> bool) -> Option<Choice> {
    let mut best: Option<(f64, Choice)> = None;
    for tile in Tile::ALL {
        let facts = tile.facts();
        let (clusters, tiles) = ((multiprocessors / facts.blocks()) as usize, problem.tiles(&facts));
        // With one tile per block, the warpgroups have nothing to alternate.
        if tile.kernel() == TileKernel::PingPong && tiles <= clusters {
            continue;
        }
        let most = (clusters / tiles.max(1)).min(problem.steps()).min(MOST_PARTS) as u32;
        let parts = (2..=most).map(Division::Parts);
        let even = (most < 2).then_some(Division::Even);
        let halved = (facts.half.is_some() && tiles > clusters).then_some(Division::Halved);
        for division in [Division::Whole].into_iter().chain(halved).chain(parts).chain(even) {
            let choice = Choice { tile, division };
            let margin = if division == Division::Even { EVEN_MARGIN } else { 1.0 };
            let time = margin * nanoseconds(problem, choice, multiprocessors);
            if best.is_none_or(|(least, _)| time < least) && has(choice) {
                best = Some((time, choice));
            }
        }
    }
    best.map(|(_, choice)| choice)
}

#[cfg(test)]
mod tests {
    use super::Division::Whole;
    use super::*;

    #[track_caller]
    fn chosen(extents: [usize; 3], tile: Tile, division: Division) {
        let problem = Problem { extents, batches: 1, bytes: [2, 2] };
        assert_eq!(choose(&problem, 132, |_| true), Some(Choice { tile, division }), "{extents:?}");
    }

    /// The fastest tiles measured (lab/gemm.md, "The choice").
    #[test]
    fn the_fastest_is_chosen() {
        chosen([8192, 8192, 8192], Tile::T128x256Cluster2x1, Whole);
        chosen([8192, 8192, 1024], Tile::PingPong128x176, Whole);
        chosen([3072, 3072, 3072], Tile::T128x192Cluster2x1, Whole);
        chosen([1536, 1536, 1536], Tile::T128x192Cluster2x1, Whole);
        chosen([2048, 2048, 2048], Tile::T128x256Cluster2x1, Whole);
        chosen([2048, 2048, 8192], Tile::T128x256Cluster2x1, Whole);
        chosen([1024, 4096, 4096], Tile::T128x256Cluster2x1, Whole);
        chosen([2048, 4096, 4096], Tile::T128x256Cluster2x1, Whole);
        chosen([2304, 2304, 2304], Tile::PingPong128x176, Whole);
        chosen([1024, 2048, 4096], Tile::T128x128Cluster2x1, Whole);
        chosen([1024, 1024, 8192], Tile::SplitK128x128, Whole);
        chosen([512, 2048, 4096], Tile::SplitK128x128, Whole);
        chosen([256, 4096, 4096], Tile::SplitK128x128, Whole);
        chosen([256, 8192, 8192], Tile::T128x128Cluster2x1, Whole);
        chosen([4096, 4096, 16384], Tile::T128x256Cluster2x1, Whole);
        chosen([64, 14336, 4096], Tile::T64x128Cluster1x4, Whole);
        chosen([16, 14336, 4096], Tile::T64x128Cluster1x4, Whole);
        chosen([64, 28672, 8192], Tile::T64x128Cluster1x4, Whole);
        chosen([64, 8192, 8192], Tile::SplitK64x128, Whole);
        chosen([32, 8192, 8192], Tile::SplitK64x128, Whole);
        chosen([16, 4096, 14336], Tile::SplitK64x128, Whole);
        chosen([1024, 1024, 1024], Tile::T64x128, Whole);
        chosen([128, 8192, 8192], Tile::T64x128Cluster2x1, Whole);
        chosen([128, 4096, 4096], Tile::SplitK64x128, Whole);
        chosen([256, 256, 256], Tile::T64x64, Whole);
    }

    #[test]
    fn warpgroups_alternate_where_that_is_faster() {
        let of = |extents, tile| {
            let problem = Problem { extents, batches: 1, bytes: [1, 2] };
            let choice = choose(&problem, 132, |choice| {
                choice.tile != Tile::T128x192Cluster2x1 && choice.division == Whole
            });
            assert_eq!(choice, Some(Choice { tile, division: Whole }), "{extents:?}");
        };
        of([8192, 8192, 1024], Tile::PingPong128x176);
        of([4096, 14336, 4096], Tile::PingPong128x176);
        of([2048, 2048, 2048], Tile::T128x256Cluster2x1);
        of([3072, 3072, 3072], Tile::PingPong128x128);
        of([4096, 4096, 4096], Tile::T128x256Cluster2x1);
        of([8192, 4096, 4096], Tile::T128x256Cluster2x1);
        of([8192, 8192, 2048], Tile::PingPong128x176);
        of([8192, 8192, 8192], Tile::T128x256Cluster2x1);
        of([8192, 28672, 8192], Tile::T128x256Cluster2x1);
        of([16384, 2048, 8192], Tile::T128x256Cluster2x1);
        of([4096, 4096, 16384], Tile::T128x256Cluster2x1);
    }

    #[test]
    fn small_tiles_are_taken_by_rows_if_the_cache_holds_a_and_b() {
        let band = |extents, tile, division| {
            band(&Problem { extents, batches: 1, bytes: [2, 2] }, Choice { tile, division })
        };
        assert_eq!(band([2048, 2048, 2048], Tile::PingPong128x128, Whole), 1);
        assert_eq!(band([8192, 8192, 1024], Tile::PingPong128x176, Whole), 1);
        assert_eq!(band([8192, 8192, 8192], Tile::PingPong128x176, Whole), BAND, "more than the cache holds");
        assert_eq!(
            band([2048, 2048, 2048], Tile::T128x128Cluster2x1, Division::Even),
            BAND,
            "nothing is loaded together"
        );
        assert_eq!(band([2048, 2048, 2048], Tile::T128x256Cluster2x1, Whole), BAND);
        assert_eq!(band([512, 2048, 2048], Tile::T128x256Cluster2x1, Whole), 2, "there are no more");
    }

    #[test]
    fn tiles_are_split_only_among_resident_blocks() {
        let problem = Problem { extents: [128, 128, 1 << 20], batches: 1, bytes: [2, 2] };
        let choice = choose(&problem, 4, |_| true).expect("a choice");
        let facts = choice.tile.facts();
        let Division::Parts(parts) = choice.division else { panic!("{choice:?} divides nothing") };
        assert!(problem.tiles(&facts) as u32 * parts * facts.blocks() <= 4, "{choice:?}");
        let alone = choose(&problem, 132, |choice| choice.division == Whole).expect("a choice");
        assert_eq!(alone.division, Whole);
    }

    #[test]
    fn long_products_and_streams_do_not_begin_early() {
        let early = |extents, tile| {
            let problem = Problem { extents, batches: 1, bytes: [2, 2] };
            begins_early(&problem, Choice { tile, division: Whole }, 132)
        };
        assert!(!early([64, 14336, 4096], Tile::T64x128) && !early([16, 8192, 8192], Tile::T64x64));
        assert!(early([64, 4096, 4096], Tile::T64x64), "the L2 cache holds most of B");
        assert!(early([65, 14336, 4096], Tile::T64x128), "rows of two tiles share B");
        assert!(early([64, 14336, 4096], Tile::T128x64Cluster1x2), "clusters were no faster so");
        assert!(
            early([2048, 2048, 2048], Tile::T128x256Cluster2x1)
                && early([3072, 3072, 3072], Tile::T128x192Cluster2x1)
        );
        assert!(
            !early([4096, 4096, 4096], Tile::T128x256Cluster2x1)
                && !early([8192, 8192, 1024], Tile::PingPong128x176)
        );
    }

    #[test]
    fn clusters_begin_at_different_steps_of_uncached_operands() {
        let k_shift = |extents, tile| k_shift(&Problem { extents, batches: 1, bytes: [2, 2] }, tile);
        assert!(
            k_shift([64, 8192, 8192], Tile::SplitK64x128) > 0
                && k_shift([128, 8192, 8192], Tile::T128x64Cluster1x2) > 0
        );
        assert_eq!(k_shift([64, 4096, 4096], Tile::SplitK64x128), 0, "the L2 cache holds B");
        assert_eq!(k_shift([65, 8192, 8192], Tile::SplitK64x128), 0, "rows of two tiles share B");
    }

    #[test]
    fn clusters_share_steps_where_that_is_faster() {
        let of = |bytes, extents, tile, division| {
            let problem = Problem { extents, batches: 1, bytes: [bytes, 2] };
            // The tiles of kernels with options.
            let has = |Choice { tile, division }| {
                matches!(
                    tile,
                    Tile::T128x256Cluster2x1
                        | Tile::T128x128Cluster2x1
                        | Tile::T128x64Cluster1x2
                        | Tile::T64x64
                ) && division != Division::Halved
            };
            let choice = choose(&problem, 132, has);
            assert_eq!(choice, Some(Choice { tile, division }), "{extents:?}");
        };
        of(2, [2560, 2560, 2560], Tile::T128x256Cluster2x1, Whole);
        of(2, [5120, 5120, 5120], Tile::T128x256Cluster2x1, Whole);
        of(2, [1280, 5120, 8192], Tile::T128x256Cluster2x1, Whole);
        of(1, [1536, 1536, 16384], Tile::T128x128Cluster2x1, Division::Even);
        of(1, [2560, 2560, 16384], Tile::T128x256Cluster2x1, Whole);
        of(2, [2816, 2816, 2816], Tile::T128x256Cluster2x1, Whole);
        of(2, [3584, 3584, 3584], Tile::T128x256Cluster2x1, Whole);
        of(2, [8192, 4096, 4096], Tile::T128x256Cluster2x1, Whole);
    }

    /// The last round is at most half full.
    #[test]
    fn tiles_of_a_last_round_are_halved_where_that_is_faster() {
        chosen([1792, 1792, 1792], Tile::T128x128Cluster2x1, Division::Halved);
        chosen([2560, 2560, 2560], Tile::T128x128Cluster2x1, Division::Halved);
        chosen([4864, 4864, 4864], Tile::T128x256Cluster2x1, Division::Halved);
        chosen([2048, 5120, 5120], Tile::T128x256Cluster2x1, Division::Halved);
        chosen([2048, 11008, 4096], Tile::T128x256Cluster2x1, Division::Halved);
        chosen([4096, 11008, 4096], Tile::T128x256Cluster2x1, Division::Halved);
    }

    #[test]
    fn without_instances_there_is_no_choice() {
        let problem = Problem { extents: [64, 64, 64], batches: 1, bytes: [2, 2] };
        assert_eq!(choose(&problem, 132, |_| false), None);
    }
}
