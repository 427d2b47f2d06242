//! The kernel of rotary embeddings.

use tma_runtime::tma_module;

/// Rotated heads of tokens.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::cached::append::kernel::rows::{
        Angles, VECTOR, angles_of, rotating_slots, turned_halves, turned_pairs,
    };

    /// Threads of a block.
    pub const THREADS: u32 = 128;

    /// Heads of a thread, which have the same angles.
    pub const HEADS: u32 = 2;

    /// The part of a token's heads that a thread has.
    #[derive(Clone, Copy)]
    pub struct Columns {
        /// The first head.
        pub head: u32,
        /// The number of heads.
        pub heads: u32,
        /// The first column of the first vector.
        pub first: u32,
        /// The first column of the second vector, which is rotated with the first.
        pub second: u32,
        /// Whether there is a second vector.
        pub has_second: bool,
        /// Whether the columns are rotated.
        pub is_rotated: bool,
    }

    /// The place of a token's heads.
    #[derive(Clone, Copy)]
    pub struct Heads {
        /// The first element of the token.
        pub start: u64,
        /// The distance between heads.
        pub step: u64,
    }

    /// The angles of a token.
    #[derive(Clone, Copy)]
    pub struct Turn {
        /// The token's position.
        pub position: u32,
        /// The number of positions that have angles.
        pub known: u32,
        /// The distance between the cosines of positions.
        pub cos_step: u64,
        /// The distance between the sines of positions.
        pub sin_step: u64,
        /// Whether columns are rotated by the opposite angles.
        pub inverse: bool,
    }

    /// Rotates the columns of a thread, or copies them. All is read before anything is written, so
    /// that `to` may be `from`.
    ///
    /// Heads are loaded before anything waits for the position, and by loads without conditions: the
    /// elements of a vector that may not be loaded are merged with zeros, which waits for the load
    /// before the next one. A thread that has fewer heads or vectors loads one of them again.
    #[tma_device]
    pub fn turn_heads<T: TileElement + Number, const PAIRS: bool>(
        from: Global<T>,
        of_from: Heads,
        to: Global<T>,
        of_to: Heads,
        columns: Columns,
        cos: Global<f32>,
        sin: Global<f32>,
        turn: Turn,
    ) {
        let second = if columns.has_second { columns.second } else { columns.first };
        let end = from.len().saturating_sub(7);
        let mut starts = [0u64; 2];
        for h in unroll(0..HEADS) {
            let head = min(columns.head + h, columns.heads - 1);
            let start = of_from.start + head as u64 * of_from.step;
            if start + columns.first as u64 >= end || start + second as u64 >= end {
                return;
            }
            starts[h as usize] = start;
        }
        let mut firsts = [[cast::<T>(0.0f32); 8]; 2];
        let mut seconds = [[cast::<T>(0.0f32); 8]; 2];
        for h in unroll(0..HEADS as usize) {
            firsts[h] = from.get_vec::<8>(starts[h] + columns.first as u64);
            seconds[h] = from.get_vec::<8>(starts[h] + second as u64);
        }
        sync_warp(); // the compiler would move the loads behind the next condition
        if turn.position >= turn.known {
            return;
        }
        let mut angles = Angles { cos: [0.0; 8], sin: [0.0; 8] };
        if columns.is_rotated {
            let position = turn.position as u64;
            angles.cos = angles_of::<PAIRS>(cos, position * turn.cos_step, columns.first);
            angles.sin = angles_of::<PAIRS>(sin, position * turn.sin_step, columns.first);
        }
        if turn.inverse {
            for k in unroll(0..8usize) {
                angles.sin[k] = -angles.sin[k];
            }
        }
        let end = to.len().saturating_sub(7);
        for h in unroll(0..HEADS) {
            let mut first = firsts[h as usize];
            let mut second = seconds[h as usize];
            if columns.is_rotated {
                if PAIRS {
                    first = turned_pairs(first, &angles);
                } else {
                    [first, second] = turned_halves(first, second, &angles);
                }
            }
            let head = columns.head + h;
            let start = of_to.start + head as u64 * of_to.step;
            let i = start + columns.first as u64;
            if head < columns.heads && i < end {
                to.set_vec(i, first);
            }
            let j = start + columns.second as u64;
            if head < columns.heads && columns.has_second && j < end {
                to.set_vec(j, second);
            }
        }
    }

    /// Rotates the first `rotated` columns of each head of each token, and copies the others. A
    /// thread has one vector of adjacent pairs, or two vectors of halves, of several heads. There
    /// are `items` of them: tokens × groups of heads × `slots`. Without `x`, `out` is rotated in
    /// place. Tokens whose position is beyond the angles are not written. If `inverse`, columns are
    /// rotated by the opposite angles.
    #[tma_kernel(threads = THREADS, min_blocks = 7, unchecked, instances(
        T in [bf16, f16],
        PAIRS in [halves = false, pairs = true],
    ))]
    pub fn turn<T, const PAIRS: bool>(
        x: Option<Global<T>>,
        out: Global<T>,
        positions: Global<u32>,
        cos: Global<f32>,
        sin: Global<f32>,
        items: u32,
        slots: u32,
        heads: u32,
        rotated: u32,
        known: u32,
        inverse: bool,
        position_step: u64,
        cos_position: u64,
        sin_position: u64,
        x_token: u64,
        x_head: u64,
        out_token: u64,
        out_head: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let item = block_idx().x * THREADS + thread_idx().x;
        if item >= items {
            return;
        }
        let groups = heads.div_ceil(HEADS);
        let row = item / slots;
        let slot = item - row * slots;
        let token = row / groups;
        let head = (row - token * groups) * HEADS;
        let position = positions.get(token as u64 * position_step);
        // A slot has one vector of adjacent pairs, or two of halves. The last ones are copied.
        let rotating = rotating_slots::<PAIRS>(rotated);
        let is_rotated = slot < rotating;
        let first = if is_rotated { slot * VECTOR } else { rotated + (slot - rotating) * VECTOR };
        let second = first + rotated / 2;
        let has_second = is_rotated && !PAIRS;
        let columns = Columns { head, heads, first, second, has_second, is_rotated };
        let turn = Turn { position, known, cos_step: cos_position, sin_step: sin_position, inverse };
        let of_out = Heads { start: token as u64 * out_token, step: out_head };
        if let Some(x) = x {
            let of_x = Heads { start: token as u64 * x_token, step: x_head };
            turn_heads::<T, PAIRS>(x, of_x, out, of_out, columns, cos, sin, turn);
        } else {
            turn_heads::<T, PAIRS>(out, of_out, out, of_out, columns, cos, sin, turn);
        }
    }
}
