//! The kernel that writes new keys and values to a cache.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// New rows of a cache, and rotated queries.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::cached::loads::stream::{ScaleStrides, scales_of};
    use crate::cached::schedule::work::{QueryRow, Strides, length_in_pages, row_start};

    /// Threads of a block.
    pub const THREADS: u32 = 128;

    /// Elements of a vector.
    pub const VECTOR: u32 = 8;

    /// The rotation of a vector of adjacent pairs, of which there are four, or of two vectors of
    /// halves, of which there are eight.
    #[derive(Clone, Copy)]
    pub struct Angles {
        /// The cosine of each pair.
        pub cos: [f32; 8],
        /// The sine of each pair.
        pub sin: [f32; 8],
    }

    /// Returns a number as an element of a cache: if that is narrow, its product with the inverse
    /// of the scale.
    #[tma_device]
    pub fn stored<C: TileElement + Number, const IS_NARROW: bool>(x: f32, inverse: f32) -> C {
        cast::<C>(if IS_NARROW { x * inverse } else { x })
    }

    /// Copies one vector of a row.
    #[tma_device]
    pub fn copy_vector<T: TileElement + Number, C: TileElement + Number, const IS_NARROW: bool>(
        from: Global<T>,
        from_start: u64,
        to: Global<C>,
        to_start: u64,
        column: u32,
        inverse: f32,
    ) {
        let x = from.get_vec::<8>(from_start + column as u64);
        let mut y = [cast::<C>(0.0f32); 8];
        for i in unroll(0..8usize) {
            y[i] =
                if IS_NARROW { stored::<C, IS_NARROW>(cast::<f32>(x[i]), inverse) } else { cast::<C>(x[i]) };
        }
        to.set_vec(to_start + column as u64, y);
    }

    /// Returns the cosines or sines of a thread's columns: of 4 adjacent pairs, or of 8 pairs in
    /// two vectors.
    #[tma_device]
    pub fn angles_of<const PAIRS: bool>(table: Global<f32>, start: u64, column: u32) -> [f32; 8] {
        let mut angles = [0.0f32; 8];
        for part in unroll(0..2u32) {
            let i = start + if PAIRS { column / 2 } else { column + 4 * part } as u64;
            if i < table.len().saturating_sub(3) {
                let vector = table.get_vec::<4>(i);
                for k in unroll(0..4usize) {
                    angles[4 * part as usize + k] = vector[k];
                }
            }
        }
        angles
    }

    /// Returns adjacent pairs, rotated.
    #[tma_device]
    pub fn turned_pairs<T: TileElement + Number, C: TileElement + Number, const IS_NARROW: bool>(
        x: [T; 8],
        angles: &Angles,
        inverse: f32,
    ) -> [C; 8] {
        let mut y = [cast::<C>(0.0f32); 8];
        for i in unroll(0..4usize) {
            let a = cast::<f32>(x[2 * i]);
            let b = cast::<f32>(x[2 * i + 1]);
            y[2 * i] = stored::<C, IS_NARROW>(fma(a, angles.cos[i], -(b * angles.sin[i])), inverse);
            y[2 * i + 1] = stored::<C, IS_NARROW>(fma(b, angles.cos[i], a * angles.sin[i]), inverse);
        }
        y
    }

    /// Returns two vectors of halves, rotated.
    #[tma_device]
    pub fn turned_halves<T: TileElement + Number, C: TileElement + Number, const IS_NARROW: bool>(
        first: [T; 8],
        second: [T; 8],
        angles: &Angles,
        inverse: f32,
    ) -> [[C; 8]; 2] {
        let mut y = [[cast::<C>(0.0f32); 8]; 2];
        for i in unroll(0..8usize) {
            let a = cast::<f32>(first[i]);
            let b = cast::<f32>(second[i]);
            y[0][i] = stored::<C, IS_NARROW>(fma(a, angles.cos[i], -(b * angles.sin[i])), inverse);
            y[1][i] = stored::<C, IS_NARROW>(fma(b, angles.cos[i], a * angles.sin[i]), inverse);
        }
        y
    }

    /// Returns how many slots of a row rotate: one vector of adjacent pairs each, or two of halves.
    #[tma_device]
    pub fn rotating_slots<const PAIRS: bool>(rotated: u32) -> u32 {
        if PAIRS { rotated / VECTOR } else { rotated / (2 * VECTOR) }
    }

    /// Rotates the first `rotated` columns of a row, and copies the others. Each thread of a row
    /// calls it with its own `slot`, which is below `depth / VECTOR`, and reads all that it
    /// replaces first, so that both rows may be the same.
    #[tma_device]
    pub fn rotate<
        T: TileElement + Number,
        C: TileElement + Number,
        const PAIRS: bool,
        const IS_NARROW: bool,
    >(
        from: Global<T>,
        from_start: u64,
        to: Global<C>,
        to_start: u64,
        slot: u32,
        depth: u32,
        rotated: u32,
        angles: &Angles,
        inverse: f32,
    ) {
        let rotating = rotating_slots::<PAIRS>(rotated);
        let column = (slot * VECTOR) as u64;
        if slot >= rotating {
            // Those that rotate two vectors leave fewer slots for the others.
            let column = rotated + (slot - rotating) * VECTOR;
            if column < depth {
                copy_vector::<T, C, IS_NARROW>(from, from_start, to, to_start, column, inverse);
            }
        } else if PAIRS {
            let x = from.get_vec::<8>(from_start + column);
            to.set_vec(to_start + column, turned_pairs::<T, C, IS_NARROW>(x, angles, inverse));
        } else {
            let half = (rotated / 2) as u64;
            let first = from.get_vec::<8>(from_start + column);
            let second = from.get_vec::<8>(from_start + column + half);
            let [first, second] = turned_halves::<T, C, IS_NARROW>(first, second, angles, inverse);
            to.set_vec(to_start + column, first);
            to.set_vec(to_start + column + half, second);
        }
    }

    /// Returns how many tokens of a sequence are valid.
    #[tma_device]
    pub fn valid_tokens(counts: Option<Global<u32>>, tokens: u32, sequence: u32) -> u32 {
        if let Some(counts) = counts { min(counts.get(sequence), tokens) } else { tokens }
    }

    /// The number of keys that a sequence has.
    #[derive(Clone, Copy)]
    pub struct Length {
        /// The position of its first new key.
        pub before: u32,
        /// The length after the launch.
        pub after: u32,
    }

    /// Returns the lengths of a sequence with so many new keys. With `page_starts`, `lengths` are
    /// those of last pages, after the launch, of at most `most_pages`.
    #[tma_device]
    pub fn new_length(
        page_starts: Option<Global<u32>>,
        lengths: Option<Global<u32>>,
        sequence: u32,
        valid: u32,
        page_shift: u32,
        most_pages: u32,
    ) -> Length {
        let mut length = Length { before: 0, after: valid };
        if let Some(lengths) = lengths {
            length.before = lengths.get(sequence);
            length.after = length.before.saturating_add(valid);
            if let Some(page_starts) = page_starts {
                length.after = length_in_pages(page_starts, length.before, sequence, page_shift, most_pages);
                length.before = length.after.saturating_sub(valid);
            }
        }
        length
    }

    /// Writes new keys and values to a cache, and rotates keys and queries if there are angles.
    ///
    /// The cache is sequences × heads × rows × depth or, with a `table` of the pages of each
    /// sequence, pages × heads × rows × depth with 2^`page_shift` rows. `batch` is its first
    /// extent, and `most_keys` is how many keys a sequence can have. Strides are in elements. With
    /// `page_starts`, the pages of sequences follow each other in the table, and `lengths` are
    /// those of last pages, after the launch.
    ///
    /// Each thread writes a vector of a row, or two vectors if the elements that are rotated
    /// together are in two. There are `items` of them: sequences × tokens × heads × vectors, with
    /// the heads of keys first, then those of values, then those of queries. Without `q`, queries
    /// are rotated in place.
    ///
    /// A cache of elements of one byte has scales, whose strides are `last_scale`, `page_scale` and
    /// `head_scale` ([`ScaleStrides`]): an element times its scale is the number.
    ///
    /// If `is_constant`, places and angles are read before the previous kernel has ended.
    #[tma_kernel(threads = THREADS, unchecked, instances(
        (T, C, BYTES) in [
            bf16 = (bf16, bf16, 2),
            f16 = (f16, f16, 2),
            bf16_e4m3 = (bf16, e4m3, 1),
            f16_e4m3 = (f16, e4m3, 1),
        ],
        PAIRS in [halves = false, pairs = true],
        let IS_NARROW = BYTES == 1,
    ))]
    pub fn append<T, C, const BYTES: u32, const PAIRS: bool, const IS_NARROW: bool>(
        k: Global<T>,
        v: Global<T>,
        keys: Global<C>,
        values: Global<C>,
        table: Option<Global<u32>>,
        page_starts: Option<Global<u32>>,
        lengths: Option<Global<u32>>,
        counts: Option<Global<u32>>,
        new_lengths: Option<Global<u32>>,
        cos: Option<Global<f32>>,
        sin: Option<Global<f32>>,
        q: Option<Global<T>>,
        rotated_q: Option<Global<T>>,
        items: u32,
        sequences: u32,
        key_heads: u32,
        query_heads: u32,
        tokens: u32,
        depth: u32,
        rotated: u32,
        positions: u32,
        batch: u32,
        most_keys: u32,
        page_shift: u32,
        table_width: u32,
        cos_position: u64,
        sin_position: u64,
        k_sequence: u64,
        k_head: u64,
        k_token: u64,
        v_sequence: u64,
        v_head: u64,
        v_token: u64,
        keys_batch: u64,
        keys_head: u64,
        keys_row: u64,
        values_batch: u64,
        values_head: u64,
        values_row: u64,
        q_sequence: u64,
        q_head: u64,
        q_token: u64,
        rotated_q_sequence: u64,
        rotated_q_head: u64,
        rotated_q_token: u64,
        is_constant: bool,
        key_scales: Option<Global<f32>>,
        value_scales: Option<Global<f32>>,
        last_scale: u32,
        page_scale: u32,
        head_scale: u32,
    ) where
        T: TileElement + Number,
        C: TileElement + Number,
    {
        grid_dependency_launch();
        if !is_constant {
            grid_dependency_wait();
        }
        let slots = depth / VECTOR;
        let heads = 2 * key_heads + query_heads;
        let item = block_idx().x * THREADS + thread_idx().x;
        let mut slot = 0u32;
        let mut head = 0u32;
        let mut of_new = QueryRow { sequence: 0, head: 0, query: 0, sees_keys: true };
        let mut of_cache = of_new;
        let mut is_valid = false; // the token
        let mut is_in_cache = false; // its row
        let mut angles = Angles { cos: [0.0; 8], sin: [0.0; 8] };
        if item < items {
            slot = item % slots;
            head = item / slots % heads;
            let token = item / slots / heads % tokens;
            let sequence = item / slots / heads / tokens;
            let valid = valid_tokens(counts, tokens, sequence);
            let most_pages = most_keys >> page_shift;
            let length = new_length(page_starts, lengths, sequence, valid, page_shift, most_pages);
            let position = length.before.saturating_add(token);
            is_valid = token < valid && position < positions;
            let is_value = head >= key_heads && head < 2 * key_heads;
            of_new = QueryRow { sequence, head: head % key_heads, query: token, sees_keys: true };
            of_cache = QueryRow { sequence, head: head % key_heads, query: position, sees_keys: true };
            if is_valid && head < 2 * key_heads {
                is_in_cache = position < min(length.after, most_keys);
                if let Some(table) = table {
                    let mut at = sequence as u64 * table_width as u64 + (position >> page_shift) as u64;
                    if let Some(page_starts) = page_starts {
                        at = page_starts.get(sequence) as u64 + (position >> page_shift) as u64;
                        is_in_cache = is_in_cache && at < table.len(); // starts may have any values
                    }
                    if is_in_cache {
                        of_cache.sequence = table.get(at);
                        of_cache.query = position & ((1 << page_shift) - 1);
                        is_in_cache = of_cache.sequence < batch;
                    }
                }
            }
            if is_valid && !is_value && slot < rotating_slots::<PAIRS>(rotated) {
                if let Some(cos) = cos {
                    angles.cos = angles_of::<PAIRS>(cos, position as u64 * cos_position, slot * VECTOR);
                }
                if let Some(sin) = sin {
                    angles.sin = angles_of::<PAIRS>(sin, position as u64 * sin_position, slot * VECTOR);
                }
            }
        }

        grid_dependency_wait();
        if let Some(new_lengths) = new_lengths {
            let is_sequence = item < sequences;
            if is_sequence {
                let valid = valid_tokens(counts, tokens, item);
                let most_pages = most_keys >> page_shift;
                let length = new_length(page_starts, lengths, item, valid, page_shift, most_pages);
                new_lengths.set(item, length.after);
            }
        }
        if head >= 2 * key_heads {
            if is_valid {
                if let Some(rotated_q) = rotated_q {
                    of_new.head = head - 2 * key_heads;
                    let of_rotated = Strides {
                        sequence: rotated_q_sequence,
                        head: rotated_q_head,
                        query: rotated_q_token,
                    };
                    let to = row_start(of_rotated, of_new);
                    if let Some(q) = q {
                        let of_q = Strides { sequence: q_sequence, head: q_head, query: q_token };
                        let from = row_start(of_q, of_new);
                        rotate::<T, T, PAIRS, false>(
                            q, from, rotated_q, to, slot, depth, rotated, &angles, 1.0,
                        );
                    } else {
                        rotate::<T, T, PAIRS, false>(
                            rotated_q, to, rotated_q, to, slot, depth, rotated, &angles, 1.0,
                        );
                    }
                }
            }
        } else if is_in_cache {
            let mut inverses = [1.0; 2];
            if IS_NARROW {
                let strides = ScaleStrides { last_page: last_scale, page: page_scale, head: head_scale };
                let scales = scales_of(key_scales, value_scales, strides, of_cache.sequence, of_new.head);
                inverses = [recip(scales[0]), recip(scales[1])];
            }
            if head < key_heads {
                let of_k = Strides { sequence: k_sequence, head: k_head, query: k_token };
                let of_keys = Strides { sequence: keys_batch, head: keys_head, query: keys_row };
                let (from, to) = (row_start(of_k, of_new), row_start(of_keys, of_cache));
                if cos.is_some() {
                    rotate::<T, C, PAIRS, IS_NARROW>(
                        k,
                        from,
                        keys,
                        to,
                        slot,
                        depth,
                        rotated,
                        &angles,
                        inverses[0],
                    );
                } else {
                    copy_vector::<T, C, IS_NARROW>(k, from, keys, to, slot * VECTOR, inverses[0]);
                }
            } else {
                let of_v = Strides { sequence: v_sequence, head: v_head, query: v_token };
                let of_values = Strides { sequence: values_batch, head: values_head, query: values_row };
                let (from, to) = (row_start(of_v, of_new), row_start(of_values, of_cache));
                copy_vector::<T, C, IS_NARROW>(v, from, values, to, slot * VECTOR, inverses[1]);
            }
        }
    }
}
