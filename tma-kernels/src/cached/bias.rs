//! Numbers that are added to scores.

use tma_runtime::tma_module;

/// Slopes of distances (ALiBi), and a bias in memory.
///
/// The numbers of each row are in shared memory: few calls have additions, and registers are scarce.
#[tma_module]
pub mod additions {
    use tma_runtime::prelude::*;

    use crate::cached::schedule::work::{Problem, Strides, WorkUnit, query_row, row_start};

    /// The rows of a tile that have additions: those of a warpgroup.
    const ROWS: u32 = 64;

    /// The slope of each row's head.
    pub type Slopes = SharedArray<f32, { ROWS }>;
    /// The position of each row's query.
    pub type Positions = SharedArray<i32, { ROWS }>;
    /// The index of each row's bias of key 0.
    pub type Starts = SharedArray<u64, { ROWS }>;

    /// Writes the numbers of the rows of a tile from `first` on. Threads below 64 write a row each. Rows
    /// beyond the last one are like it.
    #[tma_device]
    pub fn store_additions(
        to_slopes: Slopes,
        to_positions: Positions,
        to_starts: Starts,
        problem: Problem,
        work: WorkUnit,
        first: u32,
        slopes: Option<Global<f32>>,
        strides: Strides,
        thread: u32,
    ) {
        if thread < ROWS {
            let row = min(first + thread, problem.queries * problem.group - 1);
            let row = query_row(problem, work.sequence, work.head, work.keys, row);
            let mut slope = 0.0;
            if let Some(slopes) = slopes {
                slope = slopes.get(row.head);
            }
            to_slopes.set(thread, slope);
            to_positions.set(thread, (work.keys + row.query) as i32 - problem.queries as i32);
            to_starts.set(thread, row_start(strides, row));
        }
    }

    /// Returns what is added to the score of a row and a key of a sequence of `keys` keys, before its
    /// scale, of which `factor` is the inverse.
    #[tma_device]
    pub fn addition<T: TileElement + Number>(
        slopes: Slopes,
        positions: Positions,
        starts: Starts,
        row: u32,
        key: u32,
        keys: u32,
        bias: Option<Global<T>>,
        key_stride: u64,
        factor: f32,
    ) -> f32 {
        let mut sum = -slopes.get(row) * abs(key as i32 - positions.get(row)) as f32;
        if let Some(bias) = bias {
            let last_key = max(keys, 1) - 1;
            sum += cast::<f32>(bias.get(starts.get(row) + min(key, last_key) as u64 * key_stride));
        }
        sum * factor
    }
}
