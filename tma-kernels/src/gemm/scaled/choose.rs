//! Selection of the kernel, and the division of sums among blocks.

use super::exchange::shares::MOST_PARTS;
use super::few_rows::exchanged::blocks_each;
use crate::gemm::choose::LAUNCH;

/// The number of columns of K, and of rows of B, that share a scale.
pub(super) const BLOCK: usize = 128;

/// The most rows of A of a tile of few rows.
pub(super) const MOST_ROWS: usize = 128;

/// The duration of a step in nanoseconds on an H200.
const STEP: f64 = 500.0;

// The model counts in steps: the time in which all multiprocessors read 128 × 128 elements of B
// each. Its constants are estimates, not measurements.

/// The part of a step that blocks take which leave most multiprocessors idle. Each then reads
/// faster, up to the speed of its tensor cores (`step` of the tiles in `gemm/tile.rs`) or of the
/// bytes that it has in flight.
const LEAST_STEP: f64 = 0.65;

/// A round of blocks: the latency of the first load, and the store.
const ROUND: f64 = 2.0;

/// The exchange of sums between blocks, and its increase with each part.
const EXCHANGE: [f64; 2] = [0.8, 0.1];

/// The factors by which tiles of one warpgroup, and of two, are slower than those of the kernel for
/// many rows, which multiplies while it adds. With them the choice is right for the shapes of
/// `docs/gemm-variants.md` on an H200, cold.
const SLOWER: [f64; 2] = [1.1, 1.3];

/// The tile of a GEMM of few rows, and its division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FewRows {
    /// Rows of A of a tile.
    pub(super) rows: u32,
    /// Warpgroups that multiply, 64 rows of B each.
    pub(super) warpgroups: u32,
    /// The parts of a sum along K: the blocks of a cluster.
    pub(super) parts: u32,
    /// The expected duration in steps.
    steps: f64,
}

impl FewRows {
    /// Returns the tile for `expected` rows of A, and the division for `groups` groups of these
    /// extents: M, N and K.
    pub(super) fn of(expected: usize, extents: [usize; 3], groups: usize, multiprocessors: u32) -> Self {
        let [m, n, k] = extents;
        let (rows, warpgroups) = match expected {
            0..=8 => (8, 1),
            9..=16 => (16, 1),
            17..=32 => (32, 1),
            33..=64 => (64, 2),
            _ => (128, 2),
        };
        let tiles = m.div_ceil(rows as usize) * n.div_ceil(64 * warpgroups as usize) * groups;
        let slots = (multiprocessors * blocks_each(warpgroups)) as usize;
        let steps = k.div_ceil(BLOCK);
        let factor = SLOWER[usize::from(warpgroups == 2)];
        let divided = |parts: u32| {
            let each = steps.div_ceil(parts as usize);
            let exchange = if parts > 1 { EXCHANGE[0] + EXCHANGE[1] * f64::from(parts) } else { 0.0 };
            let steps = factor * duration(tiles * parts as usize, each, slots) + exchange;
            Self { rows, warpgroups, parts, steps }
        };
        let all = (1..).map(|exponent| 1 << exponent).take_while(|&parts| parts <= MOST_PARTS);
        let all = all.filter(|&parts| parts as usize <= steps).map(divided);
        all.fold(divided(1), |best, other| if other.steps < best.steps { other } else { best })
    }

    /// Returns the expected duration in nanoseconds.
    pub(super) fn nanoseconds(&self) -> f64 {
        LAUNCH + STEP * self.steps
    }

    /// Returns whether the kernel for many rows, of `clusters` clusters, would take longer.
    pub(super) fn is_faster(&self, clusters: usize, k: usize, multiprocessors: u32) -> bool {
        self.steps <= duration(2 * clusters, k.div_ceil(BLOCK), multiprocessors as usize)
    }
}

/// Returns the expected duration of `blocks` blocks that read so many steps each, if `slots` of
/// them run at a time.
fn duration(blocks: usize, steps: usize, slots: usize) -> f64 {
    let slots = slots.max(1);
    let (full, rest) = ((blocks / slots) as f64, (blocks % slots) as f64 / slots as f64);
    let last = if rest > 0.0 { steps as f64 * rest.max(LEAST_STEP) + ROUND } else { 0.0 };
    full * (steps as f64 + ROUND) + last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(m: usize, n: usize, k: usize) -> FewRows {
        FewRows::of(m, [m, n, k], 1, 132)
    }

    #[test]
    fn tiles_have_room_for_the_rows() {
        for (m, rows, warpgroups) in [
            (0, 8, 1),
            (1, 8, 1),
            (8, 8, 1),
            (9, 16, 1),
            (17, 32, 1),
            (33, 64, 2),
            (65, 128, 2),
            (300, 128, 2),
        ] {
            let found = of(m, 4096, 4096);
            assert_eq!((found.rows, found.warpgroups), (rows, warpgroups), "{m} rows");
        }
    }

    #[test]
    fn sums_are_divided_until_all_multiprocessors_read() {
        for (n, k) in [(7168, 2048), (4096, 7168), (7168, 16384), (2112, 7168), (512, 7168)] {
            for m in [1, 64, 128] {
                let FewRows { warpgroups, parts, .. } = of(m, n, k);
                let blocks = n.div_ceil(64 * warpgroups as usize) * parts as usize;
                let slots = 132 * blocks_each(warpgroups) as usize;
                assert!(parts == MOST_PARTS || 2 * blocks > slots, "{m} × {n} × {k}: {blocks} blocks");
            }
        }
        assert_eq!(of(1, 1 << 20, 4096).parts, 1);
        assert_eq!(of(1, 64, 128).parts, 1, "one step is not divided");
        assert_eq!(of(1, 64, 5 * 128).parts, 4, "each part has a step");
    }

    #[test]
    fn the_kernel_for_many_rows_is_for_many_rows() {
        // 7168 columns are 28 of its clusters, which leave multiprocessors idle.
        assert!(of(16, 7168, 2048).is_faster(28, 2048, 132));
        assert!(!of(128, 7168, 2048).is_faster(28, 2048, 132), "the exchange takes too long");
        assert!(of(64, 4096, 7168).is_faster(16, 7168, 132));
        assert!(of(128, 7168, 16384).is_faster(28, 16384, 132));
        // 192 blocks, with nothing to gain from a division.
        assert!(!of(8, 24576, 1536).is_faster(96, 1536, 132));
        assert!(!of(64, 24576, 1536).is_faster(96, 1536, 132));
        assert!(!of(128, 132 * 256, 4096).is_faster(132, 4096, 132));
    }
}
