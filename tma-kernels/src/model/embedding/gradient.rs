//! The kernels of the gradient of embeddings.
//!
//! Positions are sorted by token, and those of a token stay in their order, by
//! [`sort`](super::order::positions::sort). [`add_rows`](tokens::add_rows) then adds up the rows of each token, a
//! chunk of sorted positions at a time, so that a frequent token does not keep a block busy for
//! long. Sums of tokens whose rows are in several chunks are added by [`join`](tokens::join).

use tma_runtime::tma_module;

/// Sums of the rows of tokens.
#[tma_module]
pub mod tokens {
    use tma_runtime::prelude::*;

    use crate::model::embedding::order::positions::NONE;
    use crate::model::vectors::of_rows::{Part, fetch, part, shifted};

    /// Sorted positions of a chunk.
    pub const CHUNK: u32 = 32;

    /// Rows that a thread loads at a time.
    const ROWS: u32 = 4;

    /// Chunks of a token whose sums a thread loads at a time.
    const AHEAD: u32 = 8;

    /// Threads of a block that adds up rows, and a position of a chunk for each.
    pub const THREADS: u32 = 256;

    /// Returns the index of what `join` needs of a chunk, in the second half of the order: the
    /// token whose rows begin in the chunk and continue after it, or `NONE`, and then whether the
    /// chunk only has rows of a token that began in an earlier one and continues after it.
    #[tma_device]
    pub fn note_of(count: u32, chunk: u32) -> u32 {
        count + 2 * chunk
    }

    /// Returns the token of a sorted position, or `NONE`.
    #[tma_device]
    pub fn token_of(tokens: Global<u32>, position: u32, token_step: u64) -> u32 {
        let mut token = NONE;
        if position != NONE {
            token = tokens.get(position as u64 * token_step);
        }
        token
    }

    /// Returns the position at this index of the order, or `NONE` after its end.
    #[tma_device]
    pub fn position_at(order: Global<u32>, i: u32, count: u32) -> u32 {
        let mut position = NONE;
        if i < count {
            position = order.get(i);
        }
        position
    }

    /// Loads elements of the table. Vectors of it have `GV` elements.
    #[tma_device]
    pub fn load_table<G: TileElement + Number, const V: usize, const GV: usize>(
        table: Global<G>,
        start: u64,
    ) -> [f32; V] {
        let mut old = [0.0f32; V];
        if start < table.len().saturating_sub(V as u64 - 1) {
            if V == 1 {
                old[0] = cast::<f32>(table.get(start));
            } else {
                for part in unroll(0..V / GV) {
                    let vector = table.get_vec::<GV>(start + (part * GV) as u64);
                    for k in unroll(0..GV) {
                        old[part * GV + k] = cast::<f32>(vector[k]);
                    }
                }
            }
        }
        old
    }

    /// Replaces elements of the table by their sum with `scale` times a vector of sums.
    #[tma_device]
    pub fn add_to_table<G: TileElement + Number, const V: usize, const GV: usize>(
        table: Global<G>,
        start: u64,
        old: [f32; V],
        sum: [f32; V],
        scale: f32,
    ) {
        if V == 1 {
            table.set(start, cast::<G>(fma(scale, sum[0], old[0])));
        } else {
            for part in unroll(0..V / GV) {
                let mut vector = [cast::<G>(0.0f32); GV];
                for k in unroll(0..GV) {
                    vector[k] = cast::<G>(fma(scale, sum[part * GV + k], old[part * GV + k]));
                }
                table.set_vec(start + (part * GV) as u64, vector);
            }
        }
    }

    /// Stores a vector of sums.
    #[tma_device]
    pub fn leave<const V: usize>(parts: Global<f32>, start: u64, sum: [f32; V]) {
        if V == 1 {
            parts.set(start, sum[0]);
        } else {
            for quarter in unroll(0..V / 4) {
                let mut vector = [0.0f32; 4];
                for k in unroll(0..4usize) {
                    vector[k] = sum[4 * quarter + k];
                }
                parts.set_vec(start + 4 * quarter as u64, vector);
            }
        }
    }

    /// Adds up the rows of each token of a chunk, in the order of positions. `width` threads have a
    /// chunk: whole warps, of which each thread has a vector of columns. `parts` has two rows for
    /// each chunk: the sum of a token whose rows began in an earlier chunk, and that of one whose
    /// rows continue in the next.
    ///
    /// Each lane of a warp first loads a position of the chunk, and its token, so that loads of
    /// rows wait for nothing.
    #[tma_kernel(threads = THREADS, min_blocks = 2, unchecked, instances(
        T in [bf16, f16, f32],
        G in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * (16 / size_of::<T>() - 1),
        let W = V + (1 - WIDE),
        let GV = if 16 / size_of::<G>() < V { 16 / size_of::<G>() } else { W },
    ))]
    pub fn add_rows<T, G, const WIDE: usize, const V: usize, const W: usize, const GV: usize>(
        dy: Global<T>,
        tokens: Global<u32>,
        order: Global<u32>,
        table: Global<G>,
        parts: Global<f32>,
        count: u32,
        columns: u32,
        width: u32,
        scale: f32,
        token_step: u64,
        dy_row: u64,
        table_row: u64,
    ) where
        T: TileElement + Number,
        G: TileElement + Number,
    {
        let positions_of_lanes: SharedArray<u32, THREADS> = shared();
        let tokens_of_lanes: SharedArray<u32, THREADS> = shared();
        grid_dependency_launch();
        grid_dependency_wait();
        let whole = part(THREADS, width, V as u32, count.div_ceil(CHUNK));
        let mine = shifted(whole, block_idx().y * whole.step);
        let chunk = mine.row;
        let first = chunk * CHUNK;
        let of_lane = position_at(order, first + lane_idx(), count);
        let before = if chunk > 0 { position_at(order, first - 1, count) } else { NONE };
        let following = position_at(order, first + CHUNK, count);
        positions_of_lanes.set(thread_idx().x, of_lane);
        tokens_of_lanes.set(thread_idx().x, token_of(tokens, of_lane, token_step));
        let mut of_sum = token_of(tokens, before, token_step);
        let of_next = token_of(tokens, following, token_step);
        sync_warp();
        if !mine.exists || mine.column >= columns {
            return;
        }
        let column = mine.column as u64;
        let start = chunk as u64 * 2 * columns as u64 + column;
        let mut sum = [0.0f32; V];
        let mut begins_here = false;
        let mut old = [0.0f32; V];
        for some in (0..CHUNK).step_by(ROWS as usize) {
            let of_warp = (thread_idx().x & !31) + some;
            let positions = positions_of_lanes.get_vec::<4>(of_warp);
            let of_rows = tokens_of_lanes.get_vec::<4>(of_warp);
            let mut vectors = [[cast::<T>(0.0f32); W]; 4];
            // Without a position, the first row is loaded, and added to a sum that is not stored.
            // All indices are compared before the first load, as for norms.
            let mut starts = [0u64; 4];
            for i in unroll(0..ROWS as usize) {
                let position = positions[i];
                starts[i] = if position == NONE { 0 } else { position as u64 } * dy_row + column;
                if starts[i] >= dy.len().saturating_sub(V as u64 - 1) {
                    return;
                }
            }
            for i in unroll(0..ROWS as usize) {
                if V == 1 {
                    vectors[i][0] = dy.get(starts[i]);
                } else {
                    vectors[i] = dy.get_vec::<W>(starts[i]);
                }
            }
            // The rows of the table that sums will be added to: each has its sum in one chunk, unless
            // it is left to `join`.
            let mut olds = [[0.0f32; V]; 4];
            for i in unroll(0..ROWS) {
                let before = if i == 0 { of_sum } else { of_rows[(max(i, 1) - 1) as usize] };
                let token = of_rows[i as usize];
                if token != NONE && token != before {
                    olds[i as usize] = load_table::<G, V, GV>(table, token as u64 * table_row + column);
                }
            }
            for i in unroll(0..ROWS) {
                let token = of_rows[i as usize];
                if token != of_sum {
                    if of_sum != NONE {
                        if begins_here {
                            let start = of_sum as u64 * table_row + column;
                            add_to_table::<G, V, GV>(table, start, old, sum, scale);
                        } else if some + i > 0 {
                            leave::<V>(parts, start, sum);
                        }
                    }
                    for k in unroll(0..V) {
                        sum[k] = 0.0;
                    }
                    of_sum = token;
                    begins_here = true;
                    old = olds[i as usize];
                }
                for k in unroll(0..V) {
                    sum[k] += cast::<f32>(vectors[i as usize][k]);
                }
            }
        }
        let continues = of_sum != NONE && of_next == of_sum;
        if column == 0 && count > CHUNK {
            order.set(note_of(count, chunk), if continues && begins_here { of_sum } else { NONE });
            order.set(note_of(count, chunk) + 1, if continues && !begins_here { 1 } else { 0 });
        }
        if of_sum != NONE {
            if !begins_here {
                leave::<V>(parts, start, sum);
            } else if continues {
                leave::<V>(parts, start + columns as u64, sum);
            } else {
                add_to_table::<G, V, GV>(table, of_sum as u64 * table_row + column, old, sum, scale);
            }
        }
    }

    /// Adds up the sums of tokens whose rows are in several chunks, in the order of chunks. `width`
    /// threads have the chunk in which a token's rows begin.
    #[tma_kernel(threads = 256, min_blocks = 4, unchecked, instances(
        G in [bf16, f16, f32],
        WIDE in [wide = 1, odd = 0],
        let V = 1 + WIDE * 3,
        let W = V + (1 - WIDE),
    ))]
    pub fn join<G, const WIDE: usize, const V: usize, const W: usize>(
        order: Global<u32>,
        table: Global<G>,
        parts: Global<f32>,
        count: u32,
        columns: u32,
        width: u32,
        scale: f32,
        table_row: u64,
    ) where
        G: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let chunks = count.div_ceil(CHUNK);
        let whole = part(256, width, V as u32, chunks);
        let mine = shifted(whole, block_idx().y * whole.step);
        if !mine.exists || mine.column >= columns {
            return;
        }
        let token = order.get(note_of(count, mine.row));
        if token == NONE {
            return;
        }
        let mut start = (mine.row as u64 * 2 + 1) * columns as u64 + mine.column as u64;
        let part = Part { row: 0, exists: true, column: 0, step: 1 };
        let mut sum = [0.0f32; V];
        let tail = fetch::<f32, 1, V, W>(parts, start, part, 1)[0];
        for k in unroll(0..V) {
            sum[k] = tail[k];
        }
        let at = token as u64 * table_row + mine.column as u64;
        let old = load_table::<G, V, W>(table, at);
        let mut chunk = mine.row + 1;
        let mut continues = true;
        while continues {
            // Loads do not wait for each other, and those beyond the token's last chunk are not
            // used.
            let mut passes = [0u32; 8];
            let mut heads = [[0.0f32; W]; 8];
            for i in unroll(0..AHEAD) {
                if chunk + i < chunks {
                    passes[i as usize] = order.get(note_of(count, chunk + i) + 1);
                }
                // The first row of the chunk.
                let of_chunk = start + (2 * i as u64 + 1) * columns as u64;
                heads[i as usize] = fetch::<f32, 1, V, W>(parts, of_chunk, part, 1)[0];
            }
            for i in unroll(0..AHEAD as usize) {
                if continues {
                    for k in unroll(0..V) {
                        sum[k] += heads[i][k];
                    }
                }
                continues = continues && passes[i] == 1;
            }
            start += 2 * AHEAD as u64 * columns as u64;
            chunk += AHEAD;
        }
        add_to_table::<G, V, W>(table, at, old, sum, scale);
    }
}
