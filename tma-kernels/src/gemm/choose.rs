//! Which kernel multiplies: the one that a model of its time, made of measured numbers, finds
//! fastest. `docs/gemm.md` tells how they were measured.

use super::divide::{Division, Units};
use super::tile::{Facts, Tile};

/// How matrices are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The tile.
    pub tile: Tile,
    /// How tiles are divided among clusters.
    pub division: Division,
}

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// M, N and K.
    pub extents: [usize; 3],
    /// How many products.
    pub batches: usize,
    /// Bytes of an element of A and B, and of one of C.
    pub bytes: [usize; 2],
}

impl Problem {
    /// Steps of 128 bytes along K.
    pub(crate) fn steps(&self) -> usize {
        (self.extents[2] * self.bytes[0]).div_ceil(128)
    }

    /// Bytes of all matrices of B.
    fn bytes_of_b(&self) -> f64 {
        let [_, n, k] = self.extents.map(|extent| extent as f64);
        n * k * (self.bytes[0] * self.batches) as f64
    }

    /// Whether the L2 cache holds A and B, or nearly.
    pub(crate) fn is_held(&self) -> bool {
        self.bytes_read() <= HELD * L2
    }

    /// Bytes of all matrices of A and B.
    fn bytes_read(&self) -> f64 {
        let [m, _, k] = self.extents.map(|extent| extent as f64);
        m * k * (self.bytes[0] * self.batches) as f64 + self.bytes_of_b()
    }

    /// Clusters' tiles of all products.
    pub(crate) fn tiles(&self, facts: &Facts) -> usize {
        let [rows, columns] = facts.extents();
        self.extents[0].div_ceil(rows) * self.extents[1].div_ceil(columns) * self.batches
    }
}

/// How much more is read where several clusters read the same part of a B that the L2 cache does
/// not hold.
const AGAIN: f64 = 1.35;

/// How much longer it takes to read what a tile needs of which half of the rows are outside of A.
const HALF_OUTSIDE: f64 = 2.0;

/// Bytes of the L2 cache.
const L2: f64 = 50e6;

/// Nanoseconds of a launch after another.
const LAUNCH: f64 = 1000.0;

/// Nanoseconds of a product from which on it gains if all blocks begin together, in the order that
/// `seat` in the kernel counts on.
const TOGETHER: f64 = 150_000.0;

/// Rows of clusters' tiles that are taken together, so that the L2 cache holds what they share.
/// `seat` in the kernel counts on as many.
const BAND: usize = 8;

/// A and B of so many times the L2 cache's bytes are still read from it for the most part.
const HELD: f64 = 1.2;

/// More parts of a tile than these were never faster.
const MOST_PARTS: usize = 8;

/// Nanoseconds that it takes to exchange sums of 128 × 256 elements where clusters share steps
/// evenly.
const EVEN: f64 = 8000.0;

/// How much longer shared steps take then if the L2 cache does not hold A and B: clusters are at
/// different places along K, and read nothing together.
const APART: f64 = 1.12;

/// How much slower than [`nanoseconds`] says such a choice is taken to be, which errs most there.
const DOUBT: f64 = 1.05;

/// Nanoseconds by which the kernel that divides sums takes longer for a tile of 128 × 256 elements.
const FULL: f64 = 2000.0;

/// The nanoseconds that a choice is expected to take on so many multiprocessors, of a product that
/// follows many others: so power may be the limit, and not what clusters do one after the other.
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
    let [rests, exchanged, apart] = match choice.division {
        _ if units.sharing == 0 => [whole + halves, 0.0, 1.0],
        Division::Whole | Division::Halved | Division::Parts(_) => {
            [whole + shared, shared * facts.split, 1.0]
        }
        Division::Even => {
            // A unit that begins and ends within tiles stores twice.
            let rests = whole + 2.0 * shared;
            let part = f64::from(facts.warpgroups * facts.columns) / 512.0;
            [rests, (EVEN + rests * FULL) * part, if read > L2 { APART } else { 1.0 }]
        }
    };
    let written = m * n * (problem.bytes[1] * problem.batches) as f64;
    let is_shared = problem.extents[0] > facts.extents()[0] && read > L2;
    let is_half_outside = facts.extents()[0] > 64 && 2 * problem.extents[0] <= facts.extents()[0];
    let moved = (read + written) / (facts.stream * 1000.0)
        * if is_shared { AGAIN } else { 1.0 }
        * if is_half_outside { HALF_OUTSIDE } else { 1.0 };
    let half = halves * facts.half_step(units.halves as f64 / clusters as f64);
    let steps_in_turn = (whole + half) * steps as f64 + shared * units.share as f64 * apart;
    let multiplied = (steps_in_turn * facts.step).max(moved);
    let cool = LAUNCH + rests * facts.rest + facts.last + exchanged + multiplied;
    let warm = (tiles * steps) as f64 / clusters as f64 * facts.hot * apart;
    (cool.powi(4) + warm.powi(4)).sqrt().sqrt()
}

/// By how many steps along K a cluster begins after the one before it, if each part of a B that the
/// L2 cache does not hold is read by one alone: so that memory's channels share what is read.
pub(crate) fn stagger(problem: &Problem, tile: Tile) -> u32 {
    const STEPS: u32 = 37;
    let of_b = problem.bytes_of_b();
    if problem.extents[0] <= tile.facts().extents()[0] && of_b > L2 { STEPS } else { 0 }
}

/// Rows of clusters' tiles that are taken together.
pub(crate) fn band(problem: &Problem, choice: Choice) -> usize {
    let down = problem.extents[0].div_ceil(choice.tile.facts().extents()[0]);
    band_of(down, is_by_rows(problem, choice))
}

/// The same, of so many rows, which may be taken one after the other.
pub(crate) fn band_of(down: usize, is_by_rows: bool) -> usize {
    if is_by_rows { 1 } else { BAND.min(down) }
}

/// Whether clusters that follow each other take tiles side by side: the L2 cache then has to hold A
/// and B in any order (docs/gemm.md, "An order of tiles").
fn is_by_rows(problem: &Problem, Choice { tile, division }: Choice) -> bool {
    let is_whole = matches!(division, Division::Whole | Division::Halved);
    tile.facts().by_rows && problem.is_held() && is_whole
}

/// Whether a product may begin while the one before still runs (docs/gemm.md, "The next launch
/// begins early"): it saves a microsecond, but blocks then begin one after the other.
///
/// Long products are faster if all their blocks begin together, each where its neighbours on the
/// chip have the same rows of A. So are blocks without clusters that read each part of a B once
/// that is much larger than the L2 cache: they are then spread evenly over the chip.
pub(crate) fn begins_early(problem: &Problem, choice: Choice, multiprocessors: u32) -> bool {
    let facts = choice.tile.facts();
    let streams =
        facts.blocks() == 1 && problem.extents[0] <= facts.extents()[0] && problem.bytes_of_b() > 2.0 * L2;
    !streams && nanoseconds(problem, choice, multiprocessors) < TOGETHER
}

/// The fastest choice by [`nanoseconds`] among those for which there is an instance; `None` if there
/// is none. Tiles are cut into parts only if all parts run at the same time, and halved only after a
/// round of whole ones.
pub fn choose(problem: &Problem, multiprocessors: u32, has: impl Fn(Choice) -> bool) -> Option<Choice> {
    let mut best: Option<(f64, Choice)> = None;
    for tile in Tile::ALL {
        let facts = tile.facts();
        let (clusters, tiles) = ((multiprocessors / facts.blocks()) as usize, problem.tiles(&facts));
        // With one tile for each block, nobody takes turns.
        if tile.takes_turns() && tiles <= clusters {
            continue;
        }
        let most = (clusters / tiles.max(1)).min(problem.steps()).min(MOST_PARTS) as u32;
        let parts = (2..=most).map(Division::Parts);
        let even = (most < 2).then_some(Division::Even);
        let halved = (facts.half.is_some() && tiles > clusters).then_some(Division::Halved);
        for division in [Division::Whole].into_iter().chain(halved).chain(parts).chain(even) {
            let choice = Choice { tile, division };
            if !has(choice) {
                continue;
            }
            let doubt = if division == Division::Even { DOUBT } else { 1.0 };
            let time = doubt * nanoseconds(problem, choice, multiprocessors);
            if best.is_none_or(|(least, _)| time < least) {
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

    /// The fastest of those measured (docs/gemm.md, "The choice").
    #[test]
    fn the_fastest_is_chosen() {
        chosen([8192, 8192, 8192], Tile::Pair, Whole);
        chosen([8192, 8192, 1024], Tile::Turns176, Whole);
        chosen([3072, 3072, 3072], Tile::Middle, Whole);
        chosen([1536, 1536, 1536], Tile::Middle, Whole);
        chosen([2048, 2048, 2048], Tile::Pair, Whole);
        chosen([2048, 2048, 8192], Tile::Pair, Whole);
        chosen([1024, 4096, 4096], Tile::Pair, Whole);
        chosen([2048, 4096, 4096], Tile::Pair, Whole);
        chosen([2304, 2304, 2304], Tile::Turns176, Whole);
        chosen([1024, 2048, 4096], Tile::Square, Whole);
        chosen([1024, 1024, 8192], Tile::Folded, Whole);
        chosen([512, 2048, 4096], Tile::Folded, Whole);
        chosen([256, 4096, 4096], Tile::Folded, Whole);
        chosen([256, 8192, 8192], Tile::Square, Whole);
        chosen([4096, 4096, 16384], Tile::Pair, Whole);
        chosen([64, 14336, 4096], Tile::Quad, Whole);
        chosen([16, 14336, 4096], Tile::Quad, Whole);
        chosen([64, 28672, 8192], Tile::Quad, Whole);
        chosen([64, 8192, 8192], Tile::Folded64, Whole);
        chosen([32, 8192, 8192], Tile::Folded64, Whole);
        chosen([16, 4096, 14336], Tile::Folded64, Whole);
        chosen([1024, 1024, 1024], Tile::Low128, Whole);
        chosen([128, 8192, 8192], Tile::Stacked, Whole);
        chosen([128, 4096, 4096], Tile::Folded64, Whole);
        chosen([256, 256, 256], Tile::Low64, Whole);
    }

    #[test]
    fn warpgroups_take_turns_where_that_is_faster() {
        let of = |extents, tile| {
            let problem = Problem { extents, batches: 1, bytes: [1, 2] };
            let choice =
                choose(&problem, 132, |choice| choice.tile != Tile::Middle && choice.division == Whole);
            assert_eq!(choice, Some(Choice { tile, division: Whole }), "{extents:?}");
        };
        of([8192, 8192, 1024], Tile::Turns176);
        of([4096, 14336, 4096], Tile::Turns176);
        of([2048, 2048, 2048], Tile::Pair);
        of([3072, 3072, 3072], Tile::Turns128);
        of([4096, 4096, 4096], Tile::Pair);
        of([8192, 4096, 4096], Tile::Pair);
        of([8192, 8192, 2048], Tile::Turns176);
        of([8192, 8192, 8192], Tile::Pair);
        of([8192, 28672, 8192], Tile::Pair);
        of([16384, 2048, 8192], Tile::Pair);
        of([4096, 4096, 16384], Tile::Pair);
    }

    #[test]
    fn small_tiles_are_taken_by_rows_if_the_cache_holds_a_and_b() {
        let band = |extents, tile, division| {
            band(&Problem { extents, batches: 1, bytes: [2, 2] }, Choice { tile, division })
        };
        assert_eq!(band([2048, 2048, 2048], Tile::Turns128, Whole), 1);
        assert_eq!(band([8192, 8192, 1024], Tile::Turns176, Whole), 1);
        assert_eq!(band([8192, 8192, 8192], Tile::Turns176, Whole), BAND, "more than the cache holds");
        assert_eq!(
            band([2048, 2048, 2048], Tile::Square, Division::Even),
            BAND,
            "nothing is loaded together"
        );
        assert_eq!(band([2048, 2048, 2048], Tile::Pair, Whole), BAND);
        assert_eq!(band([512, 2048, 2048], Tile::Pair, Whole), 2, "there are no more");
    }

    #[test]
    fn tiles_are_cut_only_for_blocks_that_run_together() {
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
        assert!(!early([64, 14336, 4096], Tile::Low128) && !early([16, 8192, 8192], Tile::Low64));
        assert!(early([64, 4096, 4096], Tile::Low64), "the L2 cache holds most of B");
        assert!(early([65, 14336, 4096], Tile::Low128), "rows of two tiles share B");
        assert!(early([64, 14336, 4096], Tile::Narrow), "clusters were no faster so");
        assert!(early([2048, 2048, 2048], Tile::Pair) && early([3072, 3072, 3072], Tile::Middle));
        assert!(!early([4096, 4096, 4096], Tile::Pair) && !early([8192, 8192, 1024], Tile::Turns176));
    }

    #[test]
    fn what_the_cache_does_not_hold_is_read_apart() {
        let stagger = |extents, tile| stagger(&Problem { extents, batches: 1, bytes: [2, 2] }, tile);
        assert!(
            stagger([64, 8192, 8192], Tile::Folded64) > 0 && stagger([128, 8192, 8192], Tile::Narrow) > 0
        );
        assert_eq!(stagger([64, 4096, 4096], Tile::Folded64), 0, "the L2 cache holds B");
        assert_eq!(stagger([65, 8192, 8192], Tile::Folded64), 0, "rows of two tiles share B");
    }

    #[test]
    fn clusters_share_steps_where_that_is_faster() {
        let of = |bytes, extents, tile, division| {
            let problem = Problem { extents, batches: 1, bytes: [bytes, 2] };
            // As with options.
            let has = |Choice { tile, division }| {
                matches!(tile, Tile::Pair | Tile::Square | Tile::Narrow | Tile::Low64)
                    && division != Division::Halved
            };
            let choice = choose(&problem, 132, has);
            assert_eq!(choice, Some(Choice { tile, division }), "{extents:?}");
        };
        of(2, [2560, 2560, 2560], Tile::Pair, Whole);
        of(2, [5120, 5120, 5120], Tile::Pair, Whole);
        of(2, [1280, 5120, 8192], Tile::Pair, Whole);
        of(1, [1536, 1536, 16384], Tile::Square, Division::Even);
        of(1, [2560, 2560, 16384], Tile::Pair, Whole);
        of(2, [2816, 2816, 2816], Tile::Pair, Whole);
        of(2, [3584, 3584, 3584], Tile::Pair, Whole);
        of(2, [8192, 4096, 4096], Tile::Pair, Whole);
    }

    /// Where the last round is at most half full.
    #[test]
    fn tiles_of_a_last_round_are_halved_where_that_is_faster() {
        chosen([1792, 1792, 1792], Tile::Square, Division::Halved);
        chosen([2560, 2560, 2560], Tile::Square, Division::Halved);
        chosen([4864, 4864, 4864], Tile::Pair, Division::Halved);
        chosen([2048, 5120, 5120], Tile::Pair, Division::Halved);
        chosen([2048, 11008, 4096], Tile::Pair, Division::Halved);
        chosen([4096, 11008, 4096], Tile::Pair, Division::Halved);
    }

    #[test]
    fn without_instances_there_is_no_choice() {
        let problem = Problem { extents: [64, 64, 64], batches: 1, bytes: [2, 2] };
        assert_eq!(choose(&problem, 132, |_| false), None);
    }
}
