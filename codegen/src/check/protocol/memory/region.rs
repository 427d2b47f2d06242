//! Bytes of shared memory that an access touches, and whether two accesses touch the same.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use crate::check::protocol::lanes::Lanes;
use crate::ir::{TileSwizzle, TileType};

/// The bytes that an access touches.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::check::protocol) enum Region {
    /// All of these, by every thread that accesses.
    All(Rc<[Range<u32>]>),
    /// So many bytes from an address of each thread on.
    Each(Lanes<u32>, u32),
    /// So many bytes from each of these addresses on, which are multiples of the bytes: each by one
    /// thread, whose number in its group is beside it.
    Many(Rc<BTreeMap<u32, usize>>, u32, Range<u32>),
    /// Each thread of this warpgroup its own part, together all of these. Two accesses to the same
    /// bytes with the same number of rows share them out alike.
    Shared { range: Range<u32>, rows: u32, warpgroup: u32 },
    /// Some of these.
    Some(Range<u32>),
}

/// Whether two accesses touch the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check::protocol) enum Overlap {
    No,
    Maybe,
    Yes,
}

fn meet(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Region {
    /// All of one range.
    pub(in crate::check::protocol) fn all(range: Range<u32>) -> Self {
        Self::All(Rc::from([range]))
    }

    /// What it lies in.
    pub(in crate::check::protocol) fn hull(&self) -> Range<u32> {
        match self {
            Self::All(ranges) => {
                let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
                start..ranges.iter().map(|range| range.end).max().unwrap_or(0)
            }
            Self::Each(Lanes::Same(at), bytes) => *at..*at + bytes,
            Self::Each(Lanes::Each(all), bytes) => {
                let start = all.iter().copied().min().unwrap_or(0);
                start..all.iter().copied().max().unwrap_or(0) + bytes
            }
            Self::Many(_, _, range) | Self::Shared { range, .. } | Self::Some(range) => range.clone(),
        }
    }

    /// The ranges that a thread certainly touches; none where that is not known.
    fn of_lane(&self, lane: usize) -> Option<Vec<Range<u32>>> {
        match self {
            Self::All(ranges) => Some(ranges.to_vec()),
            Self::Each(at, bytes) => at.get(lane).map(|at| {
                let range = at..at + bytes;
                Vec::from([range])
            }),
            Self::Many(..) | Self::Shared { .. } | Self::Some(_) => None,
        }
    }

    /// How many differ in what they touch.
    fn lanes(&self, threads: usize) -> usize {
        match self {
            Self::All(_) | Self::Each(Lanes::Same(_), _) => threads.min(2),
            Self::Each(Lanes::Each(all), _) => all.len(),
            Self::Many(..) | Self::Shared { .. } | Self::Some(_) => threads,
        }
    }

    /// Whether it covers all of `range`, with all threads that access.
    pub(in crate::check::protocol) fn covers(&self, range: &Range<u32>) -> bool {
        match self {
            Self::All(ranges) => ranges.iter().any(|part| part.start <= range.start && range.end <= part.end),
            Self::Each(..) | Self::Many(..) | Self::Shared { .. } | Self::Some(_) => false,
        }
    }

    /// Whether this, of so many threads, touches bytes that the other, of others, touches.
    pub(in crate::check::protocol) fn overlaps(
        &self,
        threads: usize,
        other: &Self,
        others: usize,
    ) -> Overlap {
        if !meet(&self.hull(), &other.hull()) {
            return Overlap::No;
        }
        match (self, other) {
            (Self::Shared { range, rows, .. }, Self::Shared { range: same, rows: alike, .. })
                if range == same && rows == alike =>
            {
                self.shares_alike(other)
            }
            // Whatever part is whose, it is within all.
            (Self::Shared { range, .. }, Self::All(ranges))
            | (Self::All(ranges), Self::Shared { range, .. }) => {
                if ranges.iter().any(|part| part.start <= range.start && range.end <= part.end) {
                    Overlap::Yes
                } else if ranges.iter().any(|part| meet(part, range)) {
                    Overlap::Maybe
                } else {
                    Overlap::No
                }
            }
            (Self::Shared { .. } | Self::Some(_), _) | (_, Self::Shared { .. } | Self::Some(_)) => {
                Overlap::Maybe
            }
            (Self::Many(owners, bytes, _), other) | (other, Self::Many(owners, bytes, _)) => {
                other.touches(owners, *bytes, |_, _| true)
            }
            (Self::All(_) | Self::Each(..), Self::All(_) | Self::Each(..)) => {
                let (mine, theirs) = (self.lanes(threads), other.lanes(others));
                let pairs = (0..mine).flat_map(|a| (0..theirs).map(move |b| (a, b)));
                self.any(other, pairs)
            }
        }
    }

    /// What is shared out alike: within a warpgroup each thread has its own, and of two warpgroups
    /// each has all.
    fn shares_alike(&self, other: &Self) -> Overlap {
        match (self, other) {
            (Self::Shared { warpgroup, .. }, Self::Shared { warpgroup: same, .. }) if warpgroup == same => {
                Overlap::No
            }
            _ => Overlap::Yes,
        }
    }

    /// Whether a thread of a group touches bytes that another one of the same group touches in the
    /// other access.
    pub(in crate::check::protocol) fn overlaps_among(&self, threads: usize, other: &Self) -> Overlap {
        if threads < 2 || !meet(&self.hull(), &other.hull()) {
            return Overlap::No;
        }
        match (self, other) {
            (Self::Shared { range, rows, .. }, Self::Shared { range: same, rows: alike, .. })
                if range == same && rows == alike =>
            {
                self.shares_alike(other)
            }
            (Self::Shared { .. } | Self::Some(_), _) | (_, Self::Shared { .. } | Self::Some(_)) => {
                Overlap::Maybe
            }
            (Self::Many(owners, bytes, _), other) | (other, Self::Many(owners, bytes, _)) => {
                other.touches(owners, *bytes, |one, two| one != two)
            }
            (Self::All(_) | Self::Each(..), Self::All(_) | Self::Each(..)) => {
                let pairs = (0..threads).flat_map(|a| (0..threads).map(move |b| (a, b)));
                self.any(other, pairs.filter(|(a, b)| a != b))
            }
        }
    }

    /// Whether a thread touches what another one owns, of those pairs of threads that count.
    fn touches(
        &self,
        owners: &BTreeMap<u32, usize>,
        bytes: u32,
        counts: impl Fn(Option<usize>, Option<usize>) -> bool,
    ) -> Overlap {
        let owned = |start: u32, end: u32, lane: Option<usize>| {
            let first = start / bytes * bytes;
            let mut starts = (first..end).step_by(bytes.max(1) as usize);
            starts.any(|start| owners.get(&start).is_some_and(|owner| counts(lane, Some(*owner))))
        };
        let found = match self {
            Self::All(ranges) => ranges.iter().any(|range| owned(range.start, range.end, None)),
            Self::Each(Lanes::Same(at), size) => owned(*at, at + size, None),
            Self::Each(Lanes::Each(all), size) => {
                all.iter().enumerate().any(|(lane, at)| owned(*at, at + size, Some(lane)))
            }
            Self::Many(others, size, _) => others.iter().any(|(at, lane)| owned(*at, at + size, Some(*lane))),
            Self::Shared { .. } | Self::Some(_) => return Overlap::Maybe,
        };
        if found { Overlap::Yes } else { Overlap::No }
    }

    /// This and further addresses of a group's threads together; none if they have to stay apart.
    pub(in crate::check::protocol) fn joined(&self, more: &Self) -> Option<Self> {
        let Self::Each(Lanes::Each(all), bytes) = more else { return None };
        if all.iter().any(|at| !at.is_multiple_of(*bytes)) {
            return None;
        }
        let mut owners = match self {
            Self::Many(owners, same, _) if same == bytes => Rc::clone(owners),
            Self::Each(Lanes::Each(first), same)
                if same == bytes && first.iter().all(|at| at.is_multiple_of(*bytes)) =>
            {
                Rc::new(first.iter().copied().zip(0..).collect())
            }
            Self::Many(..) | Self::Each(..) | Self::All(_) | Self::Shared { .. } | Self::Some(_) => {
                return None;
            }
        };
        let (one, two) = (self.hull(), more.hull());
        Rc::make_mut(&mut owners).extend(all.iter().copied().zip(0..));
        Some(Self::Many(owners, *bytes, one.start.min(two.start)..one.end.max(two.end)))
    }

    fn any(&self, other: &Self, mut pairs: impl Iterator<Item = (usize, usize)>) -> Overlap {
        if let (Self::Each(Lanes::Each(mine), size), Self::Each(Lanes::Each(theirs), other_size)) =
            (self, other)
        {
            return any_of_sorted((mine, *size), (theirs, *other_size), pairs);
        }
        let found = pairs.any(|(a, b)| {
            let (Some(mine), Some(theirs)) = (self.of_lane(a), other.of_lane(b)) else { return false };
            mine.iter().any(|one| theirs.iter().any(|two| meet(one, two)))
        });
        if found { Overlap::Yes } else { Overlap::No }
    }
}

/// Whether two of many addresses are as near as this. Where no two are, which is the rule, a search
/// in order finds out without a look at every pair.
fn any_of_sorted(
    (mine, size): (&[u32], u32),
    (theirs, other_size): (&[u32], u32),
    mut pairs: impl Iterator<Item = (usize, usize)>,
) -> Overlap {
    let mut sorted: Vec<(u32, usize)> = theirs.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let near = |(a, &at): (usize, &u32)| {
        let first = sorted.partition_point(|(other, _)| other + other_size <= at);
        let near = sorted[first..].iter().take_while(|(other, _)| *other < at + size);
        near.filter(|(_, b)| *b != a).count() > 0
    };
    if !mine.iter().enumerate().any(near) {
        // Only threads that meet themselves are left.
        let same = mine
            .iter()
            .zip(theirs)
            .enumerate()
            .find(|(_, (a, b))| meet(&(**a..**a + size), &(**b..**b + other_size)));
        let Some((lane, _)) = same else { return Overlap::No };
        return if pairs.any(|pair| pair == (lane, lane)) { Overlap::Yes } else { Overlap::No };
    }
    let found = pairs.any(|(a, b)| match (mine.get(a), theirs.get(b)) {
        (Some(a), Some(b)) => meet(&(*a..*a + size), &(*b..*b + other_size)),
        (Some(_) | None, _) => false,
    });
    if found { Overlap::Yes } else { Overlap::No }
}

/// Where an element of a tile lies in it, in bytes: all dimensions but the innermost taken as rows.
/// As `lower/tile.rs` computes it.
pub(in crate::check::protocol) fn element_offset(tile: &TileType, at: &[u32]) -> Option<u32> {
    let (&column, outer) = at.split_last()?;
    let inside = at.iter().zip(&tile.extents).all(|(at, extent)| at < extent);
    if !inside || at.len() != tile.extents.len() {
        return None;
    }
    let row = outer.iter().zip(&tile.extents).fold(0, |row, (at, extent)| row * extent + at);
    let pitch = u32::try_from(tile.row_pitch()).ok()?;
    let (row, column) = (row * pitch, column * tile.element.bytes());
    if tile.panels() == 1 {
        return Some(swizzled(tile.swizzle, row, column));
    }
    let panel = u32::try_from(tile.panel_bytes()).ok()?;
    Some(column / pitch * panel + swizzled(tile.swizzle, row, column % pitch))
}

fn swizzled(swizzle: TileSwizzle, row: u32, column: u32) -> u32 {
    let pattern = |of: u32| of >> 3 & swizzle.chunk_bits();
    match swizzle {
        TileSwizzle::B32 | TileSwizzle::B64 | TileSwizzle::B128 => row + (column ^ pattern(row)),
        TileSwizzle::None | TileSwizzle::Panels16 | TileSwizzle::Interleave16 => row + column,
        TileSwizzle::Interleave32 => (row + column) ^ pattern(row + column),
    }
}
