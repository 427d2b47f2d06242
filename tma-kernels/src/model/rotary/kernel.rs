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

    /// Rotates the columns of a thread, or copies them. All is read before anything is written, so
    /// that `to` may be `from`. Loads and stores have conditions instead of checks: with branches
    /// in between, loads would wait for each other.
    #[tma_device]
    pub fn turn_heads<T: TileElement + Number, const PAIRS: bool>(
        from: Global<T>,
        of_from: Heads,
        to: Global<T>,
        of_to: Heads,
        columns: Columns,
        angles: &Angles,
        inverse: bool,
    ) {
        let mut first = [[cast::<T>(0.0f32); 8]; 2];
        let mut second = [[cast::<T>(0.0f32); 8]; 2];
        let end = from.len().saturating_sub(7);
        for h in unroll(0..HEADS) {
            let head = columns.head + h;
            let start = of_from.start + head as u64 * of_from.step;
            let i = start + columns.first as u64;
            if head < columns.heads && i < end {
                first[h as usize] = from.get_vec::<8>(i);
            }
            let j = start + columns.second as u64;
            if head < columns.heads && columns.has_second && j < end {
                second[h as usize] = from.get_vec::<8>(j);
            }
        }
        // After the loads of heads, which would otherwise wait for the angles.
        let mut turned = Angles { cos: angles.cos, sin: angles.sin };
        if inverse {
            for k in unroll(0..8usize) {
                turned.sin[k] = -angles.sin[k];
            }
        }
        let end = to.len().saturating_sub(7);
        for h in unroll(0..HEADS) {
            let mut of_first = first[h as usize];
            let mut of_second = second[h as usize];
            if columns.is_rotated {
                if PAIRS {
                    of_first = turned_pairs::<T, T, false>(of_first, &turned, 1.0);
                } else {
                    [of_first, of_second] = turned_halves::<T, T, false>(of_first, of_second, &turned, 1.0);
                }
            }
            let head = columns.head + h;
            let start = of_to.start + head as u64 * of_to.step;
            let i = start + columns.first as u64;
            if head < columns.heads && i < end {
                to.set_vec(i, of_first);
            }
            let j = start + columns.second as u64;
            if head < columns.heads && columns.has_second && j < end {
                to.set_vec(j, of_second);
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
        if position >= known {
            return;
        }
        // A slot has one vector of adjacent pairs, or two of halves. The last ones are copied.
        let rotating = rotating_slots::<PAIRS>(rotated);
        let is_rotated = slot < rotating;
        let first = if is_rotated { slot * VECTOR } else { rotated + (slot - rotating) * VECTOR };
        let second = first + rotated / 2;
        let has_second = is_rotated && !PAIRS;
        let columns = Columns { head, heads, first, second, has_second, is_rotated };
        let mut angles = Angles { cos: [0.0; 8], sin: [0.0; 8] };
        if is_rotated {
            angles.cos = angles_of::<PAIRS>(cos, position as u64 * cos_position, first);
            angles.sin = angles_of::<PAIRS>(sin, position as u64 * sin_position, first);
        }
        let of_out = Heads { start: token as u64 * out_token, step: out_head };
        if let Some(x) = x {
            let of_x = Heads { start: token as u64 * x_token, step: x_head };
            turn_heads::<T, PAIRS>(x, of_x, out, of_out, columns, &angles, inverse);
        } else {
            turn_heads::<T, PAIRS>(out, of_out, out, of_out, columns, &angles, inverse);
        }
    }
}
