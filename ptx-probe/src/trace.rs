//! The records of a launch, as intervals of time.

use std::collections::{BTreeMap, VecDeque};

use tma_model::shared_name::SharedName;
use tma_model::span::SpanEdge;
pub use tma_model::timeline::Row;

use crate::clock::Clock;
use crate::instrument::Instrumented;
use crate::ring::{HEADER_BYTES, Header, Layout, RECORD_BYTES, Record};
use crate::site::{Awaited, Direction, Site, SiteKind};

/// The records of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The name of the kernel, as the user knows it.
    pub kernel: String,
    /// Blocks of the grid along x, y and z.
    pub grid: [u32; 3],
    /// The instructions with probes.
    pub sites: Vec<Site>,
    /// The variables in shared memory.
    pub names: Vec<SharedName>,
    /// The traced warps, by block and number.
    pub warps: Vec<Warp>,
    /// The intervals, by block.
    pub intervals: Vec<Interval>,
    /// The records that were replaced by later ones.
    pub lost: u64,
    /// The time of the launch by the driver's events, in nanoseconds, if it was measured.
    pub launch: Option<f64>,
}

/// A traced warp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp {
    /// The block's number in the grid, counted along x first.
    pub block: u32,
    /// The warp's number in the block.
    pub number: u32,
    /// The multiprocessor that it ran on.
    pub multiprocessor: u32,
    /// When it began, in nanoseconds after the first warp of the launch.
    pub begin: f64,
    /// When it ended.
    pub end: f64,
}

/// An interval of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The number of the block.
    pub block: u32,
    /// The row of the block's timeline.
    pub row: Row,
    /// The index of the instruction among the sites: the one that waited, or that issued the copy
    /// or the multiplications. For a span it is the mark at its beginning.
    pub site: usize,
    /// An mbarrier's or a source's offset in the block's dynamic shared memory, or a barrier's
    /// number.
    pub operand: u32,
    /// When it began, in nanoseconds after the first warp of the launch.
    pub begin: f64,
    /// When it ended. A copy or a multiplication has ended when a warp has seen that it has.
    pub end: f64,
    /// Whether no warp has seen the end.
    pub unfinished: bool,
}

/// The bits of an address in the window of a cluster's shared memory that are the offset in one
/// block. Source: observed on an H100; the upper bits are the rank.
const OFFSET_BITS: u32 = 24;

impl Trace {
    /// Reads the buffer of a launch of `kernel` with this grid.
    pub fn read(
        kernel: &str,
        instrumented: Instrumented,
        grid: [u32; 3],
        layout: Layout,
        buffer: &[u8],
    ) -> Self {
        let Instrumented { sites, names, .. } = instrumented;
        let rings: Vec<Ring> = (0..layout.blocks)
            .flat_map(|block| (0..layout.warps).map(move |warp| (block, warp)))
            .filter_map(|(block, warp)| Ring::decode(buffer, layout, block, warp))
            .collect();
        let clock = Clock::fit(rings.iter().map(|ring| &ring.header));
        let time = |ring: &Ring, cycles| clock.at(ring.header.multiprocessor, cycles);
        let zero =
            rings.iter().map(|ring| time(ring, ring.header.begin.cycles)).fold(f64::INFINITY, f64::min);
        let mut trace = Self {
            kernel: kernel.to_owned(),
            grid,
            sites,
            names,
            warps: Vec::with_capacity(rings.len()),
            intervals: Vec::new(),
            lost: rings.iter().map(|ring| ring.lost).sum(),
            launch: None,
        };
        for rings in rings.chunk_by(|a, b| a.block == b.block) {
            for ring in rings {
                let (begin, end) =
                    (ring.header.begin.cycles, ring.header.end.cycles.max(ring.header.begin.cycles));
                trace.warps.push(Warp {
                    block: ring.block,
                    number: ring.warp,
                    multiprocessor: ring.header.multiprocessor,
                    begin: time(ring, begin) - zero,
                    end: time(ring, end) - zero,
                });
            }
            let moments = rings.iter().flat_map(|ring| {
                ring.records.iter().map(|(record, end)| {
                    let end = time(ring, *end) - zero;
                    let begin = end - f64::from(record.cycles) * clock.cycle;
                    Moment { warp: ring.warp, record: *record, shared: ring.header.shared, begin, end }
                })
            });
            let block = rings[0].block;
            intervals(block, &trace.sites, &moments.collect::<Vec<_>>(), &mut trace.intervals);
        }
        trace
    }

    /// Returns the time from the beginning of the first warp to the end of the last one, in
    /// nanoseconds.
    pub fn span(&self) -> f64 {
        self.warps.iter().map(|warp| warp.end).fold(0.0, f64::max)
    }

    /// Returns the index in the grid of a block's number.
    pub fn block_index(&self, block: u32) -> [u32; 3] {
        let [x, y, _] = self.grid.map(|extent| extent.max(1));
        [block % x, block / x % y, block / x / y]
    }
}

/// The ring of a warp.
struct Ring {
    block: u32,
    warp: u32,
    header: Header,
    /// The records in the order in which they were written, each with its end as full 64 bits.
    records: Vec<(Record, u64)>,
    lost: u64,
}

impl Ring {
    fn decode(buffer: &[u8], layout: Layout, block: u32, warp: u32) -> Option<Self> {
        let number = u64::from(block) * u64::from(layout.warps) + u64::from(warp);
        let start = usize::try_from(number * layout.ring_bytes()).ok()?;
        let bytes = buffer.get(start..start + layout.ring_bytes() as usize)?;
        let header = Header::decode(bytes)?;
        let kept = header.count.min(layout.records);
        let records = (header.count - kept..header.count).filter_map(|index| {
            let at = HEADER_BYTES + (index & (layout.records - 1)) * RECORD_BYTES;
            Record::decode(bytes.get(at as usize..)?)
        });
        let lost = header.count - kept;
        let records = with_full_ends(records.collect(), &header, lost > 0);
        Some(Self { block, warp, header, records, lost: lost.into() })
    }
}

/// Extends the ends of records to 64 bits. Between two records of a warp less than 2³¹ cycles pass,
/// a second. If the first records are `missing`, the end of the warp is the known moment, else its
/// beginning.
fn with_full_ends(records: Vec<Record>, header: &Header, missing: bool) -> Vec<(Record, u64)> {
    let mut known = if missing { header.end.cycles } else { header.begin.cycles };
    let extend = |record: Record| {
        let passed = record.end.wrapping_sub(known as u32).cast_signed();
        known = known.wrapping_add_signed(passed.into());
        (record, known)
    };
    if missing {
        let mut backwards: Vec<_> = records.into_iter().rev().map(extend).collect();
        backwards.reverse();
        backwards
    } else {
        records.into_iter().map(extend).collect()
    }
}

/// A record with its times.
#[derive(Clone, Copy)]
struct Moment {
    warp: u32,
    record: Record,
    /// The address of the block's dynamic shared memory.
    shared: u32,
    begin: f64,
    end: f64,
}

impl Moment {
    /// Returns the offset in the block's shared memory of an address.
    fn offset(&self) -> u32 {
        self.record.operand.wrapping_sub(self.shared) & ((1 << OFFSET_BITS) - 1)
    }
}

/// Appends the intervals of a block.
fn intervals(block: u32, sites: &[Site], moments: &[Moment], out: &mut Vec<Interval>) {
    let kind = |moment: &Moment| sites.get(moment.record.site as usize).map(|site| site.kind);
    // A copy has landed when the first warp that waits for its mbarrier goes on.
    let mut completions: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for moment in moments {
        if kind(moment) == Some(SiteKind::Wait(Awaited::Mbarrier)) {
            completions.entry(moment.offset()).or_default().push(moment.end);
        }
    }
    for times in completions.values_mut() {
        times.sort_by(f64::total_cmp);
    }
    let completion = |mbarrier: u32, issued: f64| {
        let times = completions.get(&mbarrier)?;
        times.get(times.partition_point(|&time| time < issued)).copied()
    };
    for moments in moments.chunk_by(|a, b| a.warp == b.warp) {
        let mut stores = Groups::default();
        let mut products = Groups::default();
        let mut spans: Vec<Interval> = Vec::new();
        for moment in moments {
            let Some(kind) = kind(moment) else { continue };
            let (begin, end, site) = (moment.begin, moment.end, moment.record.site as usize);
            let interval =
                |row, operand| Interval { block, row, site, operand, begin, end, unfinished: false };
            match kind {
                SiteKind::Wait(awaited) => {
                    let mut operand = moment.record.operand;
                    match awaited {
                        Awaited::Mbarrier => operand = moment.offset(),
                        Awaited::BulkGroups { pending, read: _ } => stores.complete(pending, end, out),
                        Awaited::MultiplyGroups(pending) => products.complete(pending, end, out),
                        Awaited::Barrier
                        | Awaited::Cluster
                        | Awaited::Memory
                        | Awaited::Registers
                        | Awaited::Grids => {}
                    }
                    out.push(interval(Row::Warp(moment.warp), operand));
                }
                SiteKind::Copy(direction @ (Direction::Load | Direction::BetweenBlocks)) => {
                    let row = if direction == Direction::Load { Row::Loads } else { Row::BetweenBlocks };
                    let mbarrier = moment.offset();
                    let landed = completion(mbarrier, end);
                    let unfinished = landed.is_none();
                    out.push(Interval { end: landed.unwrap_or(end), unfinished, ..interval(row, mbarrier) });
                }
                SiteKind::Copy(Direction::Store) => stores.open.push(interval(Row::Stores, moment.offset())),
                SiteKind::Copy(Direction::Reduction) => {
                    stores.open.push(interval(Row::Reductions, moment.offset()));
                }
                SiteKind::Copy(Direction::Prefetch) => out.push(interval(Row::Prefetches, 0)),
                SiteKind::CommitCopies => stores.commit(),
                SiteKind::CommitMultiplications => {
                    products.open.push(interval(Row::Multiplications(moment.warp), 0));
                    products.commit();
                }
                SiteKind::Span(SpanEdge::Begin) => spans.push(interval(Row::Spans(moment.warp), 0)),
                // The record of the beginning may have been replaced.
                SiteKind::Span(SpanEdge::End) => {
                    let name = sites[site].span();
                    if let Some(index) = spans.iter().rposition(|open| sites[open.site].span() == name) {
                        out.push(Interval { end, ..spans.remove(index) });
                    }
                }
            }
        }
        stores.give_up(out);
        products.give_up(out);
        let last = moments.last().map_or(0.0, |moment| moment.end);
        out.extend(spans.into_iter().map(|span| Interval { end: last, unfinished: true, ..span }));
    }
}

/// Groups of a warp's copies or multiplications, in the order in which they were closed.
#[derive(Default)]
struct Groups {
    open: Vec<Interval>,
    closed: VecDeque<Vec<Interval>>,
}

impl Groups {
    fn commit(&mut self) {
        self.closed.push_back(std::mem::take(&mut self.open));
    }

    /// Completes all groups but the last `pending`.
    fn complete(&mut self, pending: u32, end: f64, out: &mut Vec<Interval>) {
        while self.closed.len() > pending as usize {
            let group = self.closed.pop_front().unwrap_or_default();
            out.extend(group.into_iter().map(|interval| Interval { end, ..interval }));
        }
    }

    /// Appends what nobody has waited for.
    fn give_up(self, out: &mut Vec<Interval>) {
        let rest = self.closed.into_iter().flatten().chain(self.open);
        out.extend(rest.map(|interval| Interval { unfinished: true, ..interval }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Stamp;
    use tma_model::span::SpanMark;

    fn site(kind: SiteKind) -> Site {
        Site { kind, ptx_line: 1, instruction: String::new(), source: None }
    }

    fn moment(warp: u32, site: u32, operand: u32, begin: f64, end: f64) -> Moment {
        let record = Record { site, operand, cycles: 0, end: 0 };
        Moment { warp, record, shared: 1024, begin, end }
    }

    #[test]
    fn clocks_are_extended_from_either_end() {
        let stamp = |cycles| Stamp { cycles, nanoseconds: 0 };
        let (begin, end) = (stamp((7 << 32) - 10), stamp((7 << 32) + 100));
        let header = Header { begin, end, multiprocessor: 0, count: 2, shared: 0 };
        let records = [u32::MAX - 4, 20].map(|end| Record { end, cycles: 0, site: 0, operand: 0 });
        for missing in [false, true] {
            let ends = with_full_ends(records.to_vec(), &header, missing).into_iter().map(|(_, end)| end);
            assert_eq!(ends.collect::<Vec<_>>(), [(7 << 32) - 5, (7 << 32) + 20]);
        }
    }

    #[test]
    fn loads_end_when_a_wait_for_their_mbarrier_does() {
        let sites = [site(SiteKind::Copy(Direction::Load)), site(SiteKind::Wait(Awaited::Mbarrier))];
        let moments = [
            moment(0, 0, 1024, 10.0, 10.0),
            moment(0, 0, 1032, 20.0, 20.0),
            moment(0, 0, 1024, 60.0, 60.0),
            moment(0, 0, 1040, 70.0, 70.0),
            moment(1, 1, 1024, 5.0, 50.0),
            moment(1, 1, 1032, 50.0, 51.0),
            moment(1, 1, 1024, 52.0, 80.0),
        ];
        let mut found = Vec::new();
        intervals(0, &sites, &moments, &mut found);
        let loads = found.iter().filter(|interval| interval.row == Row::Loads);
        let loads: Vec<_> = loads.map(|load| (load.operand, load.begin, load.end, load.unfinished)).collect();
        assert_eq!(
            loads,
            [(0, 10.0, 50.0, false), (8, 20.0, 51.0, false), (0, 60.0, 80.0, false), (16, 70.0, 70.0, true)]
        );
    }

    #[test]
    fn groups_end_when_a_wait_leaves_fewer_pending() {
        let sites = [
            site(SiteKind::CommitMultiplications),
            site(SiteKind::Wait(Awaited::MultiplyGroups(1))),
            site(SiteKind::Wait(Awaited::MultiplyGroups(0))),
        ];
        let moments = [(0, 1.0), (0, 2.0), (1, 3.0), (0, 4.0), (2, 5.0), (0, 6.0)];
        let moments = moments.map(|(site, time)| moment(0, site, 0, time, time));
        let mut found = Vec::new();
        intervals(0, &sites, &moments, &mut found);
        let products = found.iter().filter(|interval| matches!(interval.row, Row::Multiplications(_)));
        let products: Vec<_> = products.map(|each| (each.begin, each.end, each.unfinished)).collect();
        assert_eq!(products, [(1.0, 3.0, false), (2.0, 5.0, false), (4.0, 5.0, false), (6.0, 6.0, true)]);
    }

    #[test]
    fn spans_end_at_the_mark_of_their_name() {
        let mark = |edge, name| {
            let instruction = SpanMark { edge, name }.to_string();
            Site { instruction, ..site(SiteKind::Span(edge)) }
        };
        let sites = [
            mark(SpanEdge::Begin, "a"),
            mark(SpanEdge::End, "a"),
            mark(SpanEdge::Begin, "b"),
            mark(SpanEdge::End, "b"),
        ];
        // The record of the beginning of the first `b` was replaced, and the last `a` has no end.
        let marks =
            [(3, 1.0), (0, 2.0), (2, 3.0), (0, 4.0), (1, 5.0), (3, 6.0), (1, 7.0), (0, 8.0), (2, 9.0)];
        let moments = marks.map(|(site, time)| moment(1, site, 0, time, time));
        let mut found = Vec::new();
        intervals(0, &sites, &moments, &mut found);
        let spans: Vec<_> = found.iter().map(|span| (span.site, span.begin, span.end)).collect();
        assert_eq!(spans, [(0, 4.0, 5.0), (2, 3.0, 6.0), (0, 2.0, 7.0), (0, 8.0, 9.0), (2, 9.0, 9.0)]);
        assert!(found.iter().all(|span| span.row == Row::Spans(1) && span.unfinished == (span.begin >= 8.0)));
    }
}
