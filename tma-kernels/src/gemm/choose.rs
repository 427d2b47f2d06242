//! Which kernel multiplies: the one that a model of its time, made of measured numbers, finds
//! fastest. `docs/gemm.md` tells how they were measured.

use super::divide::Units;

/// A tile of C, and how blocks work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tile {
    /// 128 × 256 a block, in clusters of two blocks above each other.
    Pair,
    /// 128 × 192 a block, in clusters of two blocks above each other.
    Middle,
    /// 128 × 128 a block, in clusters of two blocks above each other.
    Square,
    /// 128 × 128 a block, in clusters of two blocks side by side.
    Beside,
    /// 128 × 176 a warpgroup, of two that take turns, in clusters of two blocks above each other.
    Turns176,
    /// 128 × 128, the same.
    Turns128,
    /// 128 × 128 a cluster of two blocks, each of which adds up half of K.
    Folded,
    /// 64 × 128 a cluster of two blocks, each of which adds up half of K.
    Folded64,
    /// 128 × 64 a block, in clusters of two blocks side by side.
    Narrow,
    /// 64 × 128 a block, in clusters of four blocks side by side.
    Quad,
    /// 64 × 128 a block.
    Low128,
    /// 64 × 64 a block.
    Low64,
}

/// How matrices are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The tile.
    pub tile: Tile,
    /// How the sums of a tile are divided among clusters, along K.
    pub division: Division,
}

/// How the sums of a tile are divided among clusters, along K.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Division {
    /// They are not.
    Whole,
    /// Each tile into so many parts: for fewer tiles than half of the clusters that run at a time.
    Parts(u32),
    /// Clusters compute whole tiles while there are at least two rounds of them left, and then
    /// share the steps of the others evenly, wherever tiles begin and end. Also known as stream-K
    /// (Osama et al., arXiv 2301.03598).
    Even,
}

/// A tile's extents, and what it was measured to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// What names of instances have for it.
    pub(crate) name: &'static str,
    /// Blocks of a cluster, along N and M.
    pub(crate) cluster: [u32; 2],
    /// Warpgroups of a block that multiply.
    pub(crate) warpgroups: u32,
    /// Columns of a block's tile.
    pub(crate) columns: u32,
    /// Among how many blocks of a cluster the sums of a tile are divided, along K.
    pub(crate) parts: u32,
    /// Nanoseconds of a step of 128 bytes along K, in short kernels.
    step: f64,
    /// The part by which steps take longer in long kernels, where the chip's power is the limit.
    heat: f64,
    /// The part of its time that a step takes if clusters take tiles row by row, where that is
    /// less: blocks above each other load A each for itself, and clusters side by side load the
    /// same rows of it at the same time. Tiles of 128 × 192 and more load too little for it to
    /// count.
    by_rows: Option<f64>,
    /// Nanoseconds of the rest of a tile: the first load, and what is stored last.
    rest: f64,
    /// Nanoseconds by which each unit of work takes longer if sums are split.
    split: f64,
    /// Bytes per nanosecond that come from global memory, where each is read once.
    stream: f64,
}

impl Tile {
    /// All of them, those with the least traffic first.
    pub const ALL: [Self; 12] = [
        Self::Pair,
        Self::Turns176,
        Self::Turns128,
        Self::Middle,
        Self::Square,
        Self::Beside,
        Self::Folded,
        Self::Folded64,
        Self::Narrow,
        Self::Quad,
        Self::Low128,
        Self::Low64,
    ];

    /// Whether one warpgroup of a block multiplies while the other stores.
    pub(crate) const fn takes_turns(self) -> bool {
        matches!(self, Self::Turns176 | Self::Turns128)
    }

    /// What is known of it. Measured on an H200 with driver 580, in bf16: `docs/gemm.md`, "The
    /// choice".
    #[rustfmt::skip]
    pub(crate) const fn facts(self) -> Facts {
        match self {
            Self::Pair => Facts { name: "pair", cluster: [1, 2], warpgroups: 2, columns: 256, parts: 1, step: 710.0, heat: 0.1, by_rows: None, rest: 1600.0, split: 7500.0, stream: 3.7 },
            Self::Turns176 => Facts { name: "turns176", cluster: [1, 2], warpgroups: 2, columns: 176, parts: 1, step: 505.0, heat: 0.11, by_rows: Some(0.97), rest: 350.0, split: 7500.0, stream: 3.7 },
            Self::Turns128 => Facts { name: "turns128", cluster: [1, 2], warpgroups: 2, columns: 128, parts: 1, step: 370.0, heat: 0.14, by_rows: Some(0.95), rest: 450.0, split: 7500.0, stream: 3.7 },
            Self::Middle => Facts { name: "middle", cluster: [1, 2], warpgroups: 2, columns: 192, parts: 1, step: 520.0, heat: 0.15, by_rows: None, rest: 1400.0, split: 7500.0, stream: 3.7 },
            Self::Square => Facts { name: "square", cluster: [1, 2], warpgroups: 2, columns: 128, parts: 1, step: 355.0, heat: 0.2, by_rows: Some(0.94), rest: 1000.0, split: 8000.0, stream: 3.7 },
            Self::Beside => Facts { name: "beside", cluster: [2, 1], warpgroups: 2, columns: 128, parts: 1, step: 365.0, heat: 0.2, by_rows: None, rest: 1000.0, split: 8000.0, stream: 3.7 },
            Self::Folded => Facts { name: "folded", cluster: [1, 2], warpgroups: 2, columns: 128, parts: 2, step: 360.0, heat: 0.2, by_rows: None, rest: 2200.0, split: 8000.0, stream: 3.6 },
            Self::Folded64 => Facts { name: "folded64", cluster: [1, 2], warpgroups: 1, columns: 128, parts: 2, step: 215.0, heat: 0.2, by_rows: None, rest: 1500.0, split: 8000.0, stream: 3.85 },
            Self::Narrow => Facts { name: "narrow", cluster: [2, 1], warpgroups: 2, columns: 64, parts: 1, step: 228.0, heat: 0.2, by_rows: None, rest: 850.0, split: 5100.0, stream: 3.7 },
            Self::Quad => Facts { name: "quad", cluster: [4, 1], warpgroups: 1, columns: 128, parts: 1, step: 215.0, heat: 0.2, by_rows: None, rest: 1600.0, split: 8000.0, stream: 3.85 },
            Self::Low128 => Facts { name: "low128", cluster: [1, 1], warpgroups: 1, columns: 128, parts: 1, step: 215.0, heat: 0.2, by_rows: None, rest: 800.0, split: 3000.0, stream: 3.7 },
            Self::Low64 => Facts { name: "low64", cluster: [1, 1], warpgroups: 1, columns: 64, parts: 1, step: 140.0, heat: 0.3, by_rows: None, rest: 600.0, split: 2700.0, stream: 3.4 },
        }
    }
}

impl Facts {
    /// Rows and columns of a cluster's tile.
    pub(crate) fn extents(&self) -> [usize; 2] {
        let [wide, tall] = self.cluster.map(|blocks| blocks as usize);
        [tall * self.warpgroups as usize * 64 / self.parts as usize, wide * self.columns as usize]
    }

    /// Blocks of a cluster.
    pub(crate) fn blocks(&self) -> u32 {
        self.cluster[0] * self.cluster[1]
    }
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

/// Nanoseconds of multiplying after which the chip is as slow as it gets.
const LONG: f64 = 150_000.0;

/// Nanoseconds of a product from which on it gains if all blocks begin together.
const TOGETHER: f64 = 350_000.0;

/// Rows of clusters' tiles that are taken together, so that the L2 cache holds what they share.
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

/// The nanoseconds that a choice is expected to take on so many multiprocessors.
pub fn nanoseconds(problem: &Problem, choice: Choice, multiprocessors: u32) -> f64 {
    let facts = choice.tile.facts();
    let [m, n, _] = problem.extents.map(|extent| extent as f64);
    let clusters = (multiprocessors / facts.blocks()).max(1) as usize;
    let steps = problem.steps().div_ceil(facts.parts as usize);
    let units = Units::of(problem.tiles(&facts), steps, choice.division, clusters);
    let [whole, shared] = [units.whole, units.sharing].map(|units| units.div_ceil(clusters) as f64);
    let read = problem.bytes_read();
    let [rests, exchanged, apart] = match choice.division {
        _ if units.sharing == 0 => [whole, 0.0, 1.0],
        Division::Whole | Division::Parts(_) => [whole + shared, shared * facts.split, 1.0],
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
    let step = facts.step * by_rows(problem, choice).unwrap_or(1.0);
    let cool = (whole * steps as f64 + shared * units.share as f64 * apart) * step;
    let multiplied = cool * (1.0 + facts.heat * (cool / LONG).min(1.0));
    LAUNCH + rests * facts.rest + exchanged + multiplied.max(moved)
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
    band_of(down, by_rows(problem, choice).is_some())
}

/// The same, of so many rows, which may be taken one after the other.
pub(crate) fn band_of(down: usize, is_by_rows: bool) -> usize {
    if is_by_rows { 1 } else { BAND.min(down) }
}

/// The part of their time that steps take, where clusters that follow each other take tiles side by
/// side: the L2 cache then has to hold A and B in any order (docs/gemm.md, "An order of tiles").
fn by_rows(problem: &Problem, Choice { tile, division }: Choice) -> Option<f64> {
    tile.facts().by_rows.filter(|_| problem.is_held() && division == Division::Whole)
}

/// Whether a product may begin while the one before still runs (docs/gemm.md, "The next launch
/// begins early"): it saves a microsecond, but blocks then begin one after the other.
///
/// Long products are faster if all their blocks begin together. So are blocks without clusters that
/// read each part of a B once that is much larger than the L2 cache: they are then spread evenly
/// over the chip.
pub(crate) fn begins_early(problem: &Problem, choice: Choice, multiprocessors: u32) -> bool {
    let facts = choice.tile.facts();
    let streams =
        facts.blocks() == 1 && problem.extents[0] <= facts.extents()[0] && problem.bytes_of_b() > 2.0 * L2;
    !streams && nanoseconds(problem, choice, multiprocessors) < TOGETHER
}

/// The fastest choice by [`nanoseconds`] among tiles that `has` an instance, which also is told
/// whether sums are divided; `None` if there is none. Tiles are cut into parts only if all parts
/// run at the same time.
pub fn choose(problem: &Problem, multiprocessors: u32, has: impl Fn(Tile, bool) -> bool) -> Option<Choice> {
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
        let divided = parts.chain(even).filter(|_| has(tile, true));
        for division in has(tile, false).then_some(Division::Whole).into_iter().chain(divided) {
            let choice = Choice { tile, division };
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
        assert_eq!(choose(&problem, 132, |_, _| true), Some(Choice { tile, division }), "{extents:?}");
    }

    /// The fastest of those measured (docs/gemm.md, "The choice").
    #[test]
    fn the_fastest_is_chosen() {
        chosen([8192, 8192, 8192], Tile::Pair, Whole);
        chosen([8192, 8192, 1024], Tile::Turns176, Whole);
        chosen([3072, 3072, 3072], Tile::Middle, Whole);
        chosen([1536, 1536, 1536], Tile::Middle, Whole);
        chosen([2048, 2048, 2048], Tile::Turns128, Whole);
        chosen([2048, 2048, 8192], Tile::Pair, Whole);
        chosen([1024, 4096, 4096], Tile::Square, Whole);
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
        chosen([128, 8192, 8192], Tile::Narrow, Whole);
        chosen([128, 4096, 4096], Tile::Folded64, Whole);
        chosen([256, 256, 256], Tile::Low64, Whole);
    }

    #[test]
    fn warpgroups_take_turns_where_that_is_faster() {
        let of = |extents, tile| {
            let problem = Problem { extents, batches: 1, bytes: [1, 2] };
            let choice = choose(&problem, 132, |tile, _| tile != Tile::Middle);
            assert_eq!(choice, Some(Choice { tile, division: Whole }), "{extents:?}");
        };
        of([8192, 8192, 1024], Tile::Turns176);
        of([4096, 14336, 4096], Tile::Turns176);
        of([2048, 2048, 2048], Tile::Turns128);
        of([3072, 3072, 3072], Tile::Turns128);
        of([4096, 4096, 4096], Tile::Turns128);
        of([8192, 4096, 4096], Tile::Turns128);
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
        let choice = choose(&problem, 4, |_, _| true).expect("a choice");
        let facts = choice.tile.facts();
        let Division::Parts(parts) = choice.division else { panic!("{choice:?} divides nothing") };
        assert!(problem.tiles(&facts) as u32 * parts * facts.blocks() <= 4, "{choice:?}");
        let alone = choose(&problem, 132, |_, is_divided| !is_divided).expect("a choice");
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
        assert!(early([4096, 4096, 4096], Tile::Pair) && early([8192, 8192, 1024], Tile::Turns176));
        assert!(!early([4096, 14336, 4096], Tile::Pair) && !early([4096, 4096, 16384], Tile::Pair));
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
            let is_whole = |tile: Tile| tile.takes_turns() || tile.facts().parts > 1 || tile == Tile::Middle;
            let choice = choose(&problem, 132, |tile, is_divided| !(is_divided && is_whole(tile)));
            assert_eq!(choice, Some(Choice { tile, division }), "{extents:?}");
        };
        of(2, [2560, 2560, 2560], Tile::Square, Division::Even);
        of(2, [5120, 5120, 5120], Tile::Pair, Division::Even);
        of(2, [1280, 5120, 8192], Tile::Square, Division::Even);
        of(1, [1536, 1536, 16384], Tile::Square, Division::Even);
        of(1, [2560, 2560, 16384], Tile::Square, Division::Even);
        of(2, [2816, 2816, 2816], Tile::Turns128, Whole);
        of(2, [3584, 3584, 3584], Tile::Pair, Whole);
        of(2, [8192, 4096, 4096], Tile::Pair, Whole);
    }

    #[test]
    fn without_instances_there_is_no_choice() {
        let problem = Problem { extents: [64, 64, 64], batches: 1, bytes: [2, 2] };
        assert_eq!(choose(&problem, 132, |_, _| false), None);
    }
}
