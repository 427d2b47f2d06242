//! The bytes of shared memory that an access touches, and whether two accesses touch the same
//! bytes.

use std::ops::Range;
use std::rc::Rc;

use tma_front::ir::{TileSwizzle, TileType};

use crate::lanes::Lanes;

/// The bytes that an access touches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Region {
    /// All bytes of these ranges, by every thread that accesses.
    All(Rc<[Range<u32>]>),
    /// This many bytes from an address on, for each thread.
    Each(Lanes<u32>, u32),
    /// Elements that many threads touch, each of them one thread.
    Many(Rc<Owners>),
    /// All bytes of these ranges, divided among the threads of a warp or warpgroup. Two accesses to
    /// the same ranges with the same number of rows divide them alike.
    Shared { ranges: Rc<[Range<u32>]>, rows: u32, threads: Range<u32> },
    /// Some bytes of this range.
    Some(Range<u32>),
}

/// Whether two accesses touch the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    No,
    Maybe,
    Yes,
}

/// The elements of a range of memory, each with the thread that touches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owners {
    /// The size of an element, in bytes.
    bytes: u32,
    /// The index of the first element, counted from address 0.
    first: u32,
    /// The owners from the first element to the last one that a thread touches. An owner is one
    /// more than the index of the thread in its group.
    owners: Vec<u32>,
}

/// The owner of elements that no thread touches. It is zero, since new memory is zeroed.
const NOBODY: u32 = 0;
/// The owner of elements that more than one thread touches.
const SEVERAL: u32 = u32::MAX;

impl Owners {
    /// Creates owners for elements of `bytes` bytes, none of which is touched.
    fn new(bytes: u32) -> Self {
        Self { bytes, first: 0, owners: vec![] }
    }

    /// Returns the number of elements from the first to the last.
    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }

    fn hull(&self) -> Range<u32> {
        let last = self.first + self.owners.len() as u32;
        self.first * self.bytes..last * self.bytes
    }

    /// Adds `size` bytes from each of these addresses on, by one thread each. The addresses are
    /// multiples of the size of an element.
    fn extend(&mut self, all: &[u32], size: u32) {
        let hull = hull_of(all, size);
        let (least, end) = (hull.start / self.bytes, hull.end / self.bytes);
        if self.owners.is_empty() {
            self.first = least;
            self.owners = vec![NOBODY; (end - least) as usize];
        }
        if least < self.first {
            let more = (self.first - least) as usize;
            self.owners.splice(..0, std::iter::repeat_n(NOBODY, more));
            self.first = least;
        }
        let len = (end - self.first) as usize;
        if len > self.owners.len() {
            self.owners.resize(len, NOBODY);
        }
        let elements = (size / self.bytes) as usize;
        for (&at, me) in all.iter().zip(1..) {
            let mut position = (at / self.bytes - self.first) as usize;
            let end = position + elements;
            while position < end {
                let owner = self.owners[position];
                self.owners[position] = if owner == NOBODY || owner == me { me } else { SEVERAL };
                position += 1;
            }
        }
    }

    /// Whether any element with bytes in `range` has an owner other than `me`. If `me` is
    /// [`NOBODY`], any owner counts.
    fn has_other(&self, range: &Range<u32>, me: u32) -> bool {
        let position = |number: u32| (number.saturating_sub(self.first) as usize).min(self.owners.len());
        let (start, end) = (position(range.start / self.bytes), position(range.end.div_ceil(self.bytes)));
        let owners = self.owners.get(start..end).unwrap_or_default();
        owners.iter().any(|&owner| owner != NOBODY && (owner != me || owner == SEVERAL))
    }

    /// Returns the elements that are touched, and their owners.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Range<u32>, u32)> {
        let owned = self.owners.iter().zip(self.first..).filter(|(owner, _)| **owner != NOBODY);
        owned.map(|(owner, number)| (number * self.bytes..(number + 1) * self.bytes, *owner))
    }
}

/// The pairs of threads that are compared in two accesses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparedThreads {
    /// All pairs, because the accesses are by different groups.
    All,
    /// Pairs of different threads, because the accesses are by one group.
    Distinct,
}

impl ComparedThreads {
    /// Returns the owner that a thread is not compared with.
    fn excluded_owner(self, me: u32) -> u32 {
        match self {
            Self::All => NOBODY,
            Self::Distinct => me,
        }
    }
}

/// Returns the smallest range that contains `bytes` bytes from each address on.
fn hull_of(all: &[u32], bytes: u32) -> Range<u32> {
    let Some(&first) = all.first() else { return 0..0 };
    let (mut least, mut greatest) = (first, first);
    for &at in all {
        if at < least {
            least = at;
        } else if at > greatest {
            greatest = at;
        }
    }
    least..greatest + bytes
}

/// Whether any of these multiples of `bytes` occurs twice.
fn has_twins(all: &[u32], bytes: u32) -> bool {
    let hull = hull_of(all, bytes);
    let mut seen = vec![false; ((hull.end - hull.start) / bytes) as usize];
    for &at in all {
        let position = ((at - hull.start) / bytes) as usize;
        if seen[position] {
            return true;
        }
        seen[position] = true;
    }
    false
}

pub(crate) fn ranges_overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Compares two accesses that divide the same bytes alike, among these threads. Within one warp or
/// warpgroup each thread has its own bytes, and two of them each have all. A warp does not divide
/// bytes as its warpgroup does.
fn overlap_of_shares(threads: &Range<u32>, others: &Range<u32>) -> Overlap {
    if threads == others {
        Overlap::No
    } else if ranges_overlap(threads, others) {
        Overlap::Maybe
    } else {
        Overlap::Yes
    }
}

fn is_within(part: &Range<u32>, all: &Range<u32>) -> bool {
    all.start <= part.start && part.end <= all.end
}

/// Sorts ranges, and merges those that touch each other.
pub(crate) fn merged(mut all: Vec<Range<u32>>) -> Rc<[Range<u32>]> {
    all.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u32>> = vec![];
    for range in all {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => merged.push(range),
        }
    }
    merged.into()
}

impl Region {
    /// Returns the region of all bytes of a range.
    pub(crate) fn all(range: Range<u32>) -> Self {
        Self::All(Rc::from([range]))
    }

    /// Returns the smallest range that contains the region.
    pub(crate) fn hull(&self) -> Range<u32> {
        match self {
            Self::All(ranges) | Self::Shared { ranges, .. } => {
                let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
                start..ranges.iter().map(|range| range.end).max().unwrap_or(0)
            }
            Self::Each(Lanes::Same(at), bytes) => *at..*at + bytes,
            Self::Each(Lanes::Each(all), bytes) => hull_of(all, *bytes),
            Self::Many(owners) => owners.hull(),
            Self::Some(range) => range.clone(),
        }
    }

    /// Returns the bytes that the access touches, if they are known.
    pub(crate) fn bytes(&self) -> Option<Vec<Range<u32>>> {
        match self {
            Self::All(ranges) | Self::Shared { ranges, .. } => Some(ranges.to_vec()),
            Self::Each(Lanes::Same(_), _) => Some(vec![self.hull()]),
            Self::Each(Lanes::Each(all), bytes) => Some(all.iter().map(|at| *at..at + bytes).collect()),
            Self::Many(owners) => Some(owners.each().map(|(range, _)| range).collect()),
            Self::Some(_) => None,
        }
    }

    /// Returns the bytes that the access touches or may touch.
    pub(crate) fn may_be(&self) -> Vec<Range<u32>> {
        self.bytes().unwrap_or_else(|| vec![self.hull()])
    }

    /// Whether the access touches, or may touch, all bytes of its hull.
    pub(crate) fn is_dense(&self) -> bool {
        match self {
            Self::All(ranges) | Self::Shared { ranges, .. } => ranges.len() == 1,
            Self::Each(Lanes::Same(_), _) | Self::Some(_) => true,
            Self::Each(Lanes::Each(_), _) | Self::Many(_) => false,
        }
    }

    /// Whether every thread that accesses touches all of `range`.
    pub(crate) fn covers(&self, range: &Range<u32>) -> bool {
        match self {
            Self::All(ranges) => ranges.iter().any(|part| part.start <= range.start && range.end <= part.end),
            Self::Each(..) | Self::Many(..) | Self::Shared { .. } | Self::Some(_) => false,
        }
    }

    /// Whether a thread touches bytes that a thread of another group touches in the other access.
    pub(crate) fn overlaps(&self, other: &Self) -> Overlap {
        if !ranges_overlap(&self.hull(), &other.hull()) {
            return Overlap::No;
        }
        match (self, other) {
            (
                Self::Shared { ranges, rows, threads },
                Self::Shared { ranges: same, rows: alike, threads: others },
            ) if ranges == same && rows == alike => overlap_of_shares(threads, others),
            // Each part lies within the other access, whichever thread it belongs to.
            (Self::Shared { ranges: shared, .. }, Self::All(ranges))
            | (Self::All(ranges), Self::Shared { ranges: shared, .. })
                if shared.iter().any(|one| ranges.iter().any(|all| is_within(one, all))) =>
            {
                Overlap::Yes
            }
            (Self::Shared { .. } | Self::Some(_), _) | (_, Self::Shared { .. } | Self::Some(_)) => {
                self.may_overlap(other)
            }
            (Self::Many(owners), other) | (other, Self::Many(owners)) => {
                other.touches(owners, ComparedThreads::All)
            }
            (Self::All(_) | Self::Each(..), Self::All(_) | Self::Each(..)) => {
                self.overlaps_known(other, ComparedThreads::All)
            }
        }
    }

    /// Whether the bytes that the two accesses may touch overlap.
    fn may_overlap(&self, other: &Self) -> Overlap {
        let (all, others) = (self.may_be(), other.may_be());
        let any = all.iter().any(|one| others.iter().any(|two| ranges_overlap(one, two)));
        if any { Overlap::Maybe } else { Overlap::No }
    }

    /// Whether a thread of a group touches bytes that another thread of the group touches in the
    /// other access.
    pub(crate) fn overlaps_among(&self, threads: usize, other: &Self) -> Overlap {
        if threads < 2 || !ranges_overlap(&self.hull(), &other.hull()) {
            return Overlap::No;
        }
        match (self, other) {
            (
                Self::Shared { ranges, rows, threads: own },
                Self::Shared { ranges: same, rows: alike, threads: others },
            ) if ranges == same && rows == alike => overlap_of_shares(own, others),
            (Self::Shared { .. } | Self::Some(_), _) | (_, Self::Shared { .. } | Self::Some(_)) => {
                self.may_overlap(other)
            }
            (Self::Many(owners), other) | (other, Self::Many(owners)) => {
                other.touches(owners, ComparedThreads::Distinct)
            }
            (Self::All(_) | Self::Each(..), Self::All(_) | Self::Each(..)) => {
                self.overlaps_known(other, ComparedThreads::Distinct)
            }
        }
    }

    /// Whether two threads of a group touch the same bytes in one access.
    pub(crate) fn overlaps_itself(&self, threads: usize) -> bool {
        if let Self::Each(Lanes::Each(all), bytes) = self
            && all.iter().all(|at| at.is_multiple_of(*bytes))
        {
            return has_twins(all, *bytes);
        }
        self.overlaps_among(threads, self) != Overlap::No
    }

    /// Whether a thread touches an element that another one owns.
    fn touches(&self, owners: &Owners, compared: ComparedThreads) -> Overlap {
        let found = match self {
            Self::All(ranges) => ranges.iter().any(|range| owners.has_other(range, NOBODY)),
            Self::Each(Lanes::Same(at), size) => owners.has_other(&(*at..*at + size), NOBODY),
            Self::Each(Lanes::Each(all), size) => all
                .iter()
                .zip(1..)
                .any(|(at, me)| owners.has_other(&(*at..*at + size), compared.excluded_owner(me))),
            Self::Many(others) => {
                others.each().any(|(range, me)| owners.has_other(&range, compared.excluded_owner(me)))
            }
            Self::Shared { .. } | Self::Some(_) => return Overlap::Maybe,
        };
        if found { Overlap::Yes } else { Overlap::No }
    }

    /// Adds further addresses of the same threads. Returns the region unchanged as an error if the
    /// two have to stay apart.
    pub(crate) fn joined(self, more: &Self) -> Result<Self, Self> {
        let Self::Each(Lanes::Each(all), bytes) = more else { return Err(self) };
        let is_aligned = |all: &[u32]| all.iter().all(|at| at.is_multiple_of(*bytes));
        if !is_aligned(all) {
            return Err(self);
        }
        let mut owners = match self {
            Self::Many(owners) if owners.bytes == *bytes => owners,
            Self::Each(Lanes::Each(first), same) if same == *bytes && is_aligned(&first) => {
                let mut owners = Owners::new(*bytes);
                owners.extend(&first, *bytes);
                Rc::new(owners)
            }
            Self::Many(..) | Self::Each(..) | Self::All(_) | Self::Shared { .. } | Self::Some(_) => {
                return Err(self);
            }
        };
        Rc::make_mut(&mut owners).extend(all, *bytes);
        Ok(Self::Many(owners))
    }

    /// Whether two threads touch the same bytes, in accesses whose bytes are known for each thread.
    fn overlaps_known(&self, other: &Self, compared: ComparedThreads) -> Overlap {
        if let (Self::Each(Lanes::Each(all), bytes), one) | (one, Self::Each(Lanes::Each(all), bytes)) =
            (self, other)
        {
            let is_aligned = all.iter().all(|at| at.is_multiple_of(*bytes));
            let mut owners = Owners::new(if is_aligned { *bytes } else { 1 });
            owners.extend(all, *bytes);
            return one.touches(&owners, compared);
        }
        // In each access, all threads touch the same bytes.
        let (mine, theirs) = (self.ranges(), other.ranges());
        let found = mine.iter().any(|one| theirs.iter().any(|two| ranges_overlap(one, two)));
        if found { Overlap::Yes } else { Overlap::No }
    }

    fn ranges(&self) -> Vec<Range<u32>> {
        if let Self::All(ranges) = self { ranges.to_vec() } else { vec![self.hull()] }
    }
}

/// Returns the offsets of elements in a tile, in bytes, as `lower/tile.rs` computes them. All
/// dimensions but the innermost count as rows.
pub(crate) fn element_offsets(tile: &TileType, at: &[Lanes<u32>]) -> Option<Lanes<u32>> {
    let ((column, outer), (width, extents)) = (at.split_last()?, tile.extents.split_last()?);
    if outer.len() != extents.len() {
        return None;
    }
    let mut row = Lanes::Same(0);
    for (at, extent) in outer.iter().zip(extents) {
        row = row.zip(at, |row, at| (at < *extent).then(|| row * extent + at))?;
    }
    let pitch = u32::try_from(tile.row_pitch()).ok()?;
    let panel = u32::try_from(tile.panel_bytes()).ok()?;
    let (bytes, is_one_panel) = (tile.element.bytes(), tile.panels() == 1);
    row.zip(column, |row, column| {
        if column >= *width {
            return None;
        }
        let (row, column) = (row * pitch, column * bytes);
        Some(if is_one_panel {
            swizzled(tile.swizzle, row, column)
        } else {
            column / pitch * panel + swizzled(tile.swizzle, row, column % pitch)
        })
    })
}

fn swizzled(swizzle: TileSwizzle, row: u32, column: u32) -> u32 {
    let pattern = |of: u32| of >> 3 & swizzle.chunk_bits();
    match swizzle {
        TileSwizzle::B32 | TileSwizzle::B64 | TileSwizzle::B128 => row + (column ^ pattern(row)),
        TileSwizzle::None | TileSwizzle::Panels16 | TileSwizzle::Interleave16 => row + column,
        TileSwizzle::Interleave32 => (row + column) ^ pattern(row + column),
    }
}
