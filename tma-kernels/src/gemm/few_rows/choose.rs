//! Selection of the kernel for few rows: a model of the running time.

use super::kernel::streamed::BN;
use crate::gemm::choose::{LAUNCH, Problem};

/// The most rows of A.
const MOST_ROWS: usize = 16;

// Estimates for an H200, in nanoseconds and bytes per nanosecond.

/// The latency of the first load, the last step and the store.
const FIXED: f64 = 1500.0;

/// Bytes of B that memory delivers.
const MEMORY: f64 = 4200.0;

/// Bytes that a multiprocessor receives.
const MULTIPROCESSOR: f64 = 72.0;

/// Bytes that the L2 cache delivers: with each unit of B, a block reads all of A.
const CACHE: f64 = 8600.0;

/// The tile of a GEMM of few rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FewRows {
    /// Rows of A of the instructions.
    pub(super) rows: u32,
    /// The expected duration in nanoseconds.
    pub(super) nanoseconds: f64,
}

impl FewRows {
    /// Returns the tile that should be the fastest, if the kernel has one for so many rows.
    pub(super) fn of(problem: &Problem, multiprocessors: u32) -> Option<Self> {
        let rows = instruction_rows(problem.extents[0])?;
        let nanoseconds = nanoseconds(problem.extents, [problem.bytes[0]; 2], multiprocessors);
        Some(Self { rows, nanoseconds })
    }
}

/// Returns the number of rows of A in an instruction, or `None` if M is too large.
pub(super) fn instruction_rows(m: usize) -> Option<u32> {
    match m {
        0..=1 => Some(1),
        2..=8 => Some(8),
        9..=MOST_ROWS => Some(16),
        _ => None,
    }
}

/// Returns the expected duration of a kernel that streams B, if elements of A and B have so many
/// `bytes`.
pub(super) fn nanoseconds(extents: [usize; 3], bytes: [usize; 2], multiprocessors: u32) -> f64 {
    let [m, n, k] = extents.map(|extent| extent as f64);
    let [of_a, of_b] = bytes.map(|bytes| bytes as f64);
    // A unit reads all of A from the L2 cache.
    let units = extents[1].div_ceil(BN as usize).max(1);
    let (of_a, of_b) = (units as f64 * m * k * of_a, n * k * of_b);
    // The block with the most units.
    let most = units.div_ceil(multiprocessors.max(1) as usize);
    let of_block = (of_b + of_a) * most as f64 / units as f64;
    let read = (of_b / MEMORY).max((of_b + of_a) / CACHE).max(of_block / MULTIPROCESSOR);
    LAUNCH + FIXED + read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_have_room_for_the_rows() {
        let of = |m| {
            let found = FewRows::of(&Problem { extents: [m, 4096, 4096], batches: 1, bytes: [2, 2] }, 132);
            found.map(|few| few.rows)
        };
        for (m, rows) in [(1, 1), (2, 8), (8, 8), (9, 16), (16, 16)] {
            assert_eq!(of(m), Some(rows), "{m} rows");
        }
        assert_eq!(of(17), None);
    }

    #[test]
    fn few_units_leave_multiprocessors_idle() {
        let of = |n| FewRows::of(&Problem { extents: [8, n, 65536], batches: 1, bytes: [2, 2] }, 132);
        let time = |n| of(n).map_or(0.0, |few| few.nanoseconds);
        // 16 blocks read 3 MB each, and so do 66, which are not too many for the memory.
        assert!(time(256) > 0.8 * time(1056), "{} {}", time(256), time(1056));
    }
}
