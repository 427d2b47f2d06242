//! The division of keys among blocks, and the keys that a query sees.

use tma_runtime::tma_module;

/// Work units and positions.
#[tma_module]
pub mod work {
    use tma_runtime::prelude::*;

    /// Rows of a multiplication: the queries of the heads that share a head of keys, and padding.
    pub const ROWS: u32 = 16;

    /// Keys of a stage: the rows of the smallest page.
    pub const KEYS: u32 = 16;

    /// Warps of a block that multiply. Each takes the keys of every fourth stage.
    pub const WARPS: u32 = 4;

    /// Sequences of a launch: their first work units are held in shared memory.
    pub const MOST_SEQUENCES: u32 = 1024;

    /// The extents and options that all sequences share.
    #[derive(Clone, Copy)]
    pub struct Problem {
        /// Sequences.
        pub sequences: u32,
        /// Heads of keys and values.
        pub key_heads: u32,
        /// Heads of queries that share one head of keys.
        pub group: u32,
        /// Queries of a sequence.
        pub queries: u32,
        /// Keys of a sequence, or the most it can have if there are lengths.
        pub keys: u32,
        /// The number of keys before its own position that a query sees.
        pub left: u32,
        /// The number of keys after its own position that a query sees.
        pub right: u32,
    }

    /// A range of the keys of a sequence.
    #[derive(Clone, Copy)]
    pub struct Span {
        /// The first key.
        pub first: u32,
        /// The key after the last one.
        pub end: u32,
    }

    /// The part of a head's keys that a block processes at a time.
    #[derive(Clone, Copy)]
    pub struct WorkUnit {
        /// The sequence.
        pub sequence: u32,
        /// The head of keys.
        pub head: u32,
        /// The first of 16 rows of queries.
        pub row: u32,
        /// The keys of the sequence.
        pub keys: u32,
        /// The part's keys.
        pub span: Span,
        /// The number of parts.
        pub parts: u32,
        /// The number of the first part's unit.
        pub first_unit: u32,
    }

    /// Returns the number of keys of a sequence.
    #[tma_device]
    pub fn length(problem: Problem, lengths: Option<Global<u32>>, sequence: u32) -> u32 {
        if let Some(lengths) = lengths { min(lengths.get(sequence), problem.keys) } else { problem.keys }
    }

    /// Returns the keys that the query `query` of a sequence sees. The last query is at the position
    /// of the last key.
    #[tma_device]
    pub fn visible(problem: Problem, keys: u32, query: u32) -> Span {
        // The position after the query's, plus the number of queries: it may be before the first key.
        let after = keys + query + 1;
        let next = after - min(after, problem.queries);
        let last = after + min(problem.right, keys + problem.queries);
        Span {
            first: next - min(next, problem.left.saturating_add(1)),
            end: min(keys, last - min(last, problem.queries)),
        }
    }

    /// Returns the keys that any query of a sequence sees, from the start of a stage on.
    #[tma_device]
    pub fn seen(problem: Problem, keys: u32) -> Span {
        let first = visible(problem, keys, 0).first / KEYS * KEYS;
        let end = visible(problem, keys, problem.queries - 1).end;
        Span { first, end: max(first, end) }
    }

    /// Returns the same for a sequence by its number.
    #[tma_device]
    pub fn seen_of(problem: Problem, lengths: Option<Global<u32>>, sequence: u32) -> Span {
        seen(problem, length(problem, lengths, sequence))
    }

    /// Returns into how many parts the keys of a head are divided, so that each has about
    /// `unit_keys`.
    #[tma_device]
    pub fn parts(span: Span, unit_keys: u32) -> u32 {
        max((span.end - span.first + unit_keys / 2) / unit_keys, 1)
    }

    /// Returns how many heads of keys, times tiles of 16 rows of queries, a sequence has.
    #[tma_device]
    pub fn heads(problem: Problem) -> u32 {
        problem.key_heads * (problem.queries * problem.group).div_ceil(ROWS)
    }

    /// Divides the keys of all heads into about `target` units, and writes the number of each
    /// sequence's first unit to `starts`. Returns about how many keys a unit has, and the number of
    /// units. All lanes of a warp call it together.
    #[tma_device]
    pub fn plan(
        problem: Problem,
        lengths: Option<Global<u32>>,
        starts: SharedArray<u32, { MOST_SEQUENCES }>,
        target: u32,
        least: u32,
    ) -> [u32; 2] {
        let mut all = 0u64;
        for first in (0..problem.sequences).step_by(32) {
            let sequence = first + lane_idx();
            if sequence < problem.sequences {
                let span = seen_of(problem, lengths, sequence);
                all += (span.end - span.first) as u64;
            }
        }
        for bit in unroll(0..5u32) {
            all += shuffle_xor(all, 1 << bit);
        }
        let each = (all * heads(problem) as u64).div_ceil(target as u64);
        let unit_keys = max(min(each, 1 << 30) as u32, least).next_multiple_of(WARPS * KEYS);
        let mut units = 0;
        for first in (0..problem.sequences).step_by(32) {
            let sequence = first + lane_idx();
            let mut own = 0;
            if sequence < problem.sequences {
                let span = seen_of(problem, lengths, sequence);
                own = parts(span, unit_keys) * heads(problem);
            }
            let mut upto = own;
            for bit in unroll(0..5u32) {
                let below = shuffle_up(upto, 1 << bit);
                if lane_idx() >= 1 << bit {
                    upto += below;
                }
            }
            if sequence < problem.sequences {
                starts.set(sequence, units + upto - own);
            }
            units += shuffle_idx(upto, 31);
        }
        sync_warp();
        [unit_keys, units]
    }

    /// Returns a work unit by its number. Parts of a head are adjacent.
    #[tma_device]
    pub fn work_unit(
        problem: Problem,
        lengths: Option<Global<u32>>,
        starts: SharedArray<u32, { MOST_SEQUENCES }>,
        unit_keys: u32,
        unit: u32,
    ) -> WorkUnit {
        let mut sequence = 0;
        let mut beyond = problem.sequences;
        while beyond - sequence > 1 {
            let middle = (sequence + beyond) / 2;
            if starts.get(middle) <= unit {
                sequence = middle;
            } else {
                beyond = middle;
            }
        }
        let keys = length(problem, lengths, sequence);
        let span = seen(problem, keys);
        let parts = parts(span, unit_keys);
        let number = unit - starts.get(sequence);
        let tiles = (problem.queries * problem.group).div_ceil(ROWS);
        let part_keys = (span.end - span.first).div_ceil(parts).next_multiple_of(WARPS * KEYS);
        let first = span.first + number % parts * part_keys;
        WorkUnit {
            sequence,
            head: number / parts / tiles,
            row: number / parts % tiles * ROWS,
            keys,
            span: Span { first: min(first, span.end), end: min(first + part_keys, span.end) },
            parts,
            first_unit: unit - number % parts,
        }
    }

    /// A row of queries.
    #[derive(Clone, Copy)]
    pub struct QueryRow {
        /// The sequence.
        pub sequence: u32,
        /// The head of queries.
        pub head: u32,
        /// The query.
        pub query: u32,
        /// Whether the query sees a key.
        pub sees_keys: bool,
    }

    /// Returns the row number `row` of a head of keys.
    #[tma_device]
    pub fn query_row(problem: Problem, sequence: u32, head: u32, keys: u32, row: u32) -> QueryRow {
        let query = row / problem.group;
        let seen = visible(problem, keys, query);
        QueryRow {
            sequence,
            head: head * problem.group + row % problem.group,
            query,
            sees_keys: seen.first < seen.end,
        }
    }

    /// The distances between sequences, heads and queries in memory, in elements.
    #[derive(Clone, Copy)]
    pub struct Strides {
        /// Between sequences.
        pub sequence: u64,
        /// Between heads.
        pub head: u64,
        /// Between queries.
        pub query: u64,
    }

    /// Returns the index of a row's first element.
    #[tma_device]
    pub fn row_start(strides: Strides, row: QueryRow) -> u64 {
        row.sequence as u64 * strides.sequence
            + row.head as u64 * strides.head
            + row.query as u64 * strides.query
    }
}
