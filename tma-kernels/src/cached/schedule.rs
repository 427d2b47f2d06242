//! The division of keys among blocks, and the keys that a query sees.

use tma_runtime::tma_module;

/// Work units and positions.
#[tma_module]
pub mod work {
    use tma_runtime::prelude::*;

    /// Parts of a head begin at multiples of so many keys: those that a block multiplies at a time.
    const ALIGNMENT: u32 = 64;

    /// Sequences of a launch: their first work units are held in shared memory.
    pub const MOST_SEQUENCES: u32 = 4096;

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
        /// Rows of a work unit: queries of the heads that share a head of keys, and padding.
        pub tile_rows: u32,
        /// The exponent of the rows of a page, or 0 without pages.
        pub page_shift: u32,
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
        /// The first row of queries.
        pub row: u32,
        /// The keys of the sequence.
        pub keys: u32,
        /// The part's keys.
        pub span: Span,
        /// The number of parts. 0 stands for no unit.
        pub parts: u32,
        /// The number of the first part's unit.
        pub first_unit: u32,
        /// The unit's own number.
        pub unit: u32,
    }

    /// Returns what stands for no unit: there are no more.
    #[tma_device]
    pub fn no_unit() -> WorkUnit {
        let span = Span { first: 0, end: 0 };
        WorkUnit { sequence: 0, head: 0, row: 0, keys: 0, span, parts: 0, first_unit: 0, unit: 0 }
    }

    /// The words in which one warp tells the others its work unit.
    pub type UnitWords = SharedArray<u32, 9>;

    /// Writes a work unit to shared memory.
    #[tma_device]
    pub fn announce(to: UnitWords, work: WorkUnit) {
        to.set(0, work.sequence);
        to.set(1, work.head);
        to.set(2, work.row);
        to.set(3, work.keys);
        to.set(4, work.span.first);
        to.set(5, work.span.end);
        to.set(6, work.parts);
        to.set(7, work.first_unit);
        to.set(8, work.unit);
    }

    /// Reads a work unit from shared memory.
    #[tma_device]
    pub fn announced(from: UnitWords) -> WorkUnit {
        WorkUnit {
            sequence: from.get(0),
            head: from.get(1),
            row: from.get(2),
            keys: from.get(3),
            span: Span { first: from.get(4), end: from.get(5) },
            parts: from.get(6),
            first_unit: from.get(7),
            unit: from.get(8),
        }
    }

    /// Returns the number of keys of a sequence whose last page has `last_keys` keys, and whose
    /// pages are those from its entry of `page_starts` to the next. There are at most `most_pages`
    /// of them.
    #[tma_device]
    pub fn length_in_pages(
        page_starts: Global<u32>,
        last_keys: u32,
        sequence: u32,
        page_shift: u32,
        most_pages: u32,
    ) -> u32 {
        let pages = page_starts.get(sequence + 1).saturating_sub(page_starts.get(sequence));
        let pages = min(pages, most_pages);
        if pages == 0 { 0 } else { ((pages - 1) << page_shift) + min(last_keys, 1 << page_shift) }
    }

    /// Returns the number of keys of a sequence without `page_starts`.
    #[tma_device]
    pub fn dense_length(problem: Problem, lengths: Option<Global<u32>>, sequence: u32) -> u32 {
        if let Some(lengths) = lengths { min(lengths.get(sequence), problem.keys) } else { problem.keys }
    }

    /// Returns the number of keys of a sequence. With `page_starts`, `lengths` are those of last
    /// pages.
    #[tma_device]
    pub fn length(
        problem: Problem,
        page_starts: Option<Global<u32>>,
        lengths: Option<Global<u32>>,
        sequence: u32,
    ) -> u32 {
        let mut keys = dense_length(problem, lengths, sequence);
        if let Some(page_starts) = page_starts {
            let most_pages = problem.keys >> problem.page_shift;
            keys = length_in_pages(page_starts, keys, sequence, problem.page_shift, most_pages);
        }
        keys
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

    /// The keys that rows of a tile see.
    #[derive(Clone, Copy)]
    pub struct Sight {
        /// The first key that each of a lane's two rows sees.
        pub first: [u32; 2],
        /// The key after the last one that each of them sees.
        pub end: [u32; 2],
        /// The keys that all rows of the tile see.
        pub of_all: Span,
    }

    /// Returns what `rows` rows from `first_row` on see. A lane has the row `own` of them, and the
    /// one 8 further. Rows beyond the last one are computed like it.
    #[tma_device]
    pub fn sight(problem: Problem, keys: u32, first_row: u32, rows: u32, own: u32) -> Sight {
        let last_row = min(first_row + rows, problem.queries * problem.group) - 1;
        let mut first = [0; 2];
        let mut end = [0; 2];
        for r in unroll(0..2usize) {
            let row = min(first_row + own + 8 * r as u32, last_row);
            let seen = visible(problem, keys, row / problem.group);
            first[r] = seen.first;
            end[r] = seen.end;
        }
        let of_last = visible(problem, keys, last_row / problem.group);
        let of_first = visible(problem, keys, min(first_row, last_row) / problem.group);
        Sight { first, end, of_all: Span { first: of_last.first, end: of_first.end } }
    }

    /// Returns whether one of a lane's two rows does not see a key.
    #[tma_device]
    pub fn is_hidden(sight: &Sight, row: usize, key: u32) -> bool {
        key < sight.first[row] || key >= sight.end[row]
    }

    /// Returns the keys that any query of a sequence sees, from a multiple of the alignment on.
    #[tma_device]
    pub fn seen(problem: Problem, keys: u32) -> Span {
        let first = visible(problem, keys, 0).first / ALIGNMENT * ALIGNMENT;
        let end = visible(problem, keys, problem.queries - 1).end;
        Span { first, end: max(first, end) }
    }

    /// Returns whether a plan keeps the lengths of all sequences: one for few rows if it has room
    /// for them. It then reads each once, so that a block stays within its memory even if another
    /// kernel changes them in the meantime. A plan for many rows is made when no other kernel is
    /// running, and has no registers to spare. Lengths in pages are always kept, since they take
    /// more loads; the host limits the number of sequences.
    #[tma_device]
    pub fn keeps_lengths(problem: Problem, page_starts: Option<Global<u32>>) -> bool {
        page_starts.is_some() || problem.tile_rows <= 16 && 2 * problem.sequences <= MOST_SEQUENCES
    }

    /// Returns the number of keys of a sequence, after [`plan`] has read it.
    #[tma_device]
    pub fn planned_length(
        problem: Problem,
        page_starts: Option<Global<u32>>,
        lengths: Option<Global<u32>>,
        starts: SharedArray<u32, { MOST_SEQUENCES }>,
        sequence: u32,
    ) -> u32 {
        if keeps_lengths(problem, page_starts) {
            starts.get(problem.sequences + sequence)
        } else {
            dense_length(problem, lengths, sequence)
        }
    }

    /// Returns into how many parts the keys of a head are divided, so that each has about
    /// `unit_keys`.
    #[tma_device]
    pub fn parts(span: Span, unit_keys: u32) -> u32 {
        max((span.end - span.first + unit_keys / 2) / unit_keys, 1)
    }

    /// Returns into how many tiles the rows of a head of keys are divided.
    #[tma_device]
    pub fn tiles(problem: Problem) -> u32 {
        (problem.queries * problem.group).div_ceil(problem.tile_rows)
    }

    /// Divides the keys of all heads into about `target` units, and writes the number of each
    /// sequence's first unit to `starts`, and then the lengths, if there is room. Returns about how
    /// many keys a unit has, and the number of units. All lanes of a warp call it together.
    #[tma_device]
    pub fn plan(
        problem: Problem,
        page_starts: Option<Global<u32>>,
        lengths: Option<Global<u32>>,
        starts: SharedArray<u32, { MOST_SEQUENCES }>,
        target: u32,
        least: u32,
    ) -> [u32; 2] {
        let mut all = 0u64;
        for first in (0..problem.sequences).step_by(32) {
            let sequence = first + lane_idx();
            if sequence < problem.sequences {
                let keys = length(problem, page_starts, lengths, sequence);
                if keeps_lengths(problem, page_starts) {
                    starts.set(problem.sequences + sequence, keys);
                }
                let span = seen(problem, keys);
                all += (span.end - span.first) as u64;
            }
        }
        for bit in unroll(0..5u32) {
            all += shuffle_xor(all, 1 << bit);
        }
        let each = (all * (problem.key_heads * tiles(problem)) as u64).div_ceil(target as u64);
        let unit_keys = max(min(each, 1 << 30) as u32, least).next_multiple_of(ALIGNMENT);
        let mut units = 0;
        for first in (0..problem.sequences).step_by(32) {
            let sequence = first + lane_idx();
            let mut own = 0;
            if sequence < problem.sequences {
                let keys = planned_length(problem, page_starts, lengths, starts, sequence);
                let span = seen(problem, keys);
                own = parts(span, unit_keys) * problem.key_heads * tiles(problem);
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

    /// Writes the first unit of each sequence, and then about how many keys a unit has. All lanes of
    /// a warp call it together in each block, and those of the first one write.
    #[tma_device]
    pub fn store_plan(
        to: Global<u32>,
        starts: SharedArray<u32, { MOST_SEQUENCES }>,
        sequences: u32,
        unit_keys: u32,
    ) {
        if block_idx().x == 0 {
            for sequence in (lane_idx()..sequences).step_by(32) {
                to.set(sequence, starts.get(sequence));
            }
            if lane_idx() == 0 {
                to.set(sequences, unit_keys);
            }
        }
    }

    /// Returns a work unit by its number. Parts of a head are adjacent.
    #[tma_device]
    pub fn work_unit(
        problem: Problem,
        page_starts: Option<Global<u32>>,
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
        let keys = planned_length(problem, page_starts, lengths, starts, sequence);
        let span = seen(problem, keys);
        let parts = parts(span, unit_keys);
        let number = unit - starts.get(sequence);
        let tiles = tiles(problem);
        let part_keys = (span.end - span.first).div_ceil(parts).next_multiple_of(ALIGNMENT);
        let first = span.first + number % parts * part_keys;
        WorkUnit {
            sequence,
            head: number / parts / tiles,
            row: number / parts % tiles * problem.tile_rows,
            keys,
            span: Span { first: min(first, span.end), end: min(first + part_keys, span.end) },
            parts,
            first_unit: unit - number % parts,
            unit,
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

    /// Returns the row number `row` of a work unit's head of keys.
    #[tma_device]
    pub fn row_of(problem: Problem, work: WorkUnit, row: u32) -> QueryRow {
        query_row(problem, work.sequence, work.head, work.keys, row)
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
