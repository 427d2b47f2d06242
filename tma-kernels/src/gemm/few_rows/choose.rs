//! Selection of the kernel for few rows, and the division of sums among blocks: a model of the
//! running time.

use super::exchange::shares::MOST_PARTS;
use super::kernel::exchanged::BN;
use crate::gemm::choose::{LAUNCH, Problem};

/// The most rows of A.
const MOST_ROWS: usize = 64;

// Estimates for an H200, in nanoseconds and bytes per nanosecond.

/// The latency of the first load, the last step and the store.
const FIXED: f64 = 1500.0;

/// The exchange of sums between blocks, and its increase with each part.
const EXCHANGE: [f64; 2] = [300.0, 50.0];

/// Bytes of B that memory delivers.
const MEMORY: f64 = 4300.0;

/// Bytes that the L2 cache delivers: with B, each block reads all of A for its part of K.
const CACHE: f64 = 5500.0;

/// Bytes that a multiprocessor receives.
const MULTIPROCESSOR: f64 = 55.0;

/// Blocks that share a multiprocessor.
const BLOCKS_EACH: usize = 2;

/// The tile of a GEMM of few rows, and its division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FewRows {
    /// Rows of A of a tile.
    pub(super) rows: u32,
    /// The parts of a sum along K: the blocks of a cluster.
    pub(super) parts: u32,
    /// The expected duration in nanoseconds.
    pub(super) nanoseconds: f64,
}

impl FewRows {
    /// Returns the tile and the division that should be the fastest, if the kernel has such a tile.
    pub(super) fn of(problem: &Problem, multiprocessors: u32) -> Option<Self> {
        let rows = match problem.extents[0] {
            0..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            33..=MOST_ROWS => 64,
            _ => return None,
        };
        let divided =
            |parts| Self { rows, parts, nanoseconds: duration(problem, rows, parts, multiprocessors) };
        let all = (1..).map(|exponent| 1 << exponent).take_while(|&parts| parts <= MOST_PARTS);
        let all = all.filter(|&parts| parts as usize <= problem.steps()).map(divided);
        Some(
            all.fold(
                divided(1),
                |best, other| if other.nanoseconds < best.nanoseconds { other } else { best },
            ),
        )
    }
}

/// Returns the expected duration in nanoseconds with tiles of `rows` rows, and as many `parts`.
fn duration(problem: &Problem, rows: u32, parts: u32, multiprocessors: u32) -> f64 {
    let blocks = problem.extents[1].div_ceil(BN as usize) * parts as usize;
    let of_block = problem.bytes_of_b() * (1.0 + f64::from(rows) / f64::from(BN)) / blocks as f64;
    let multiprocessors = multiprocessors.max(1) as usize;
    // Blocks that a multiprocessor has one after the other, or in turns.
    let most = match blocks {
        few if few <= multiprocessors => 1,
        many => BLOCKS_EACH * many.div_ceil(BLOCKS_EACH * multiprocessors),
    };
    let read = (problem.bytes_of_b() / MEMORY)
        .max(of_block * blocks as f64 / CACHE)
        .max(of_block * most as f64 / MULTIPROCESSOR);
    let exchange = if parts > 1 { EXCHANGE[0] + EXCHANGE[1] * f64::from(parts) } else { 0.0 };
    LAUNCH + FIXED + read + exchange
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of([m, n, k]: [usize; 3]) -> Option<FewRows> {
        FewRows::of(&Problem { extents: [m, n, k], batches: 1, bytes: [2, 2] }, 132)
    }

    #[test]
    fn tiles_have_room_for_the_rows() {
        for (m, rows) in [(1, 8), (8, 8), (9, 16), (16, 16), (17, 32), (32, 32), (33, 64), (64, 64)] {
            assert_eq!(of([m, 4096, 4096]).map(|few| few.rows), Some(rows), "{m} rows");
        }
        assert_eq!(of([65, 4096, 4096]), None);
    }

    #[test]
    fn sums_are_divided_until_multiprocessors_read_at_the_speed_of_memory() {
        let parts = |n, k| of([1, n, k]).map(|few| few.parts);
        assert_eq!(parts(6144, 4096), Some(2));
        assert_eq!(parts(4096, 4096), Some(4));
        assert_eq!(parts(28672, 4096), Some(1));
        assert_eq!(parts(4096, 14336), Some(4));
        assert_eq!(parts(1024, 4096), Some(8));
        assert_eq!(parts(128, 64), Some(1), "one step is not divided");
        assert_eq!(parts(128, 5 * 64), Some(1), "the exchange takes longer");
    }
}
