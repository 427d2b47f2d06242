//! The buffer of a traced launch: one ring of records for each warp, behind a header.
//!
//! All numbers are little-endian. The buffer begins as zeros.

use crate::ProbeError;

/// Bytes of a ring's header.
pub const HEADER_BYTES: u32 = 64;

/// Bytes of a record.
pub const RECORD_BYTES: u32 = 16;

/// Bytes of shared memory that the probes of a warp need.
pub const SHARED_BYTES: u32 = 16;

/// The most bytes of a buffer, unless a single block needs more.
const MOST_BYTES: u64 = 256 << 20;

/// The least and the most records of a ring. Both are powers of two.
const RECORDS: (u32, u32) = (1 << 8, 1 << 16);

/// The layout of the buffer of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Warps of a block.
    pub warps: u32,
    /// Blocks with rings of their own: the first ones. The others share one set of rings, which is
    /// not read.
    pub blocks: u32,
    /// Records of a ring, a power of two. Later ones replace the oldest.
    pub records: u32,
}

impl Layout {
    /// Returns the layout for a grid of `blocks` blocks with `threads` threads each.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Empty`] if there are no threads.
    pub fn of(blocks: u64, threads: u32) -> Result<Self, ProbeError> {
        let warps = threads.div_ceil(32);
        if warps == 0 || blocks == 0 {
            return Err(ProbeError::Empty);
        }
        let bytes = |records: u32| u64::from(warps) * ring_bytes(records);
        let fitting = (MOST_BYTES / bytes(RECORDS.0)).max(2) - 1;
        let blocks = blocks.min(fitting);
        let mut records = RECORDS.0;
        while records < RECORDS.1 && bytes(2 * records) * (blocks + 1) <= MOST_BYTES {
            records *= 2;
        }
        Ok(Self { warps, blocks: blocks as u32, records })
    }

    /// Returns the size of the buffer in bytes.
    pub fn bytes(&self) -> u64 {
        ring_bytes(self.records) * u64::from(self.warps) * (u64::from(self.blocks) + 1)
    }

    /// Returns the bytes from one ring to the next.
    pub(crate) fn ring_bytes(&self) -> u64 {
        ring_bytes(self.records)
    }
}

fn ring_bytes(records: u32) -> u64 {
    u64::from(HEADER_BYTES) + u64::from(records) * u64::from(RECORD_BYTES)
}

/// A moment, by two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// `%clock64`, in cycles of the multiprocessor.
    pub cycles: u64,
    /// `%globaltimer`, in nanoseconds. It ticks in steps that are much longer than a cycle.
    pub nanoseconds: u64,
}

/// The header of a ring. The first thread of a warp writes it at the beginning, and the last one
/// that ends completes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When the warp began.
    pub begin: Stamp,
    /// When the last of its threads ended; zeros if it did not.
    pub end: Stamp,
    /// The multiprocessor.
    pub multiprocessor: u32,
    /// The number of records written, also of those that were replaced.
    pub count: u32,
    /// The address of the block's dynamic shared memory.
    pub shared: u32,
}

impl Header {
    /// Decodes a header. Returns `None` if no warp has begun there.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let stamp = |at| Some(Stamp { cycles: long(bytes, at)?, nanoseconds: long(bytes, at + 8)? });
        let began = word(bytes, 44)? != 0;
        let header = Self {
            begin: stamp(0)?,
            end: stamp(16)?,
            multiprocessor: word(bytes, 32)?,
            count: word(bytes, 36)?,
            shared: word(bytes, 40)?,
        };
        began.then_some(header)
    }
}

/// The record of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The lower 32 bits of the clock at the end.
    pub end: u32,
    /// The cycles that a wait took, or the issue of multiplications; 0 for an instant.
    pub cycles: u32,
    /// The index of the probe's site.
    pub site: u32,
    /// The operand: the address of an mbarrier or of a copy's source, or a barrier's number.
    pub operand: u32,
}

impl Record {
    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [end, cycles, site, operand] = [0, 4, 8, 12].map(|at| word(bytes, at));
        Some(Self { end: end?, cycles: cycles?, site: site?, operand: operand? })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_fit_their_bound_and_hold_at_least_one_block() {
        for (blocks, threads) in [(1, 32), (132, 384), (10_000, 128), (1 << 31, 1024), (7, 33)] {
            let layout = Layout::of(blocks, threads).unwrap();
            assert!(layout.bytes() <= MOST_BYTES, "{layout:?}");
            assert!(layout.records.is_power_of_two() && layout.blocks >= 1, "{layout:?}");
            assert_eq!(layout.warps, threads.div_ceil(32));
        }
        assert_eq!(Layout::of(132, 384), Ok(Layout { warps: 12, blocks: 132, records: 8192 }));
        assert_eq!(Layout::of(132, 0), Err(ProbeError::Empty));
    }

    #[test]
    fn records_and_headers_are_decoded() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let record = Record { end: 5, cycles: 90, site: 7, operand: 0x408 };
        assert_eq!(Record::decode(&words(&[5, 90, 7, 0x408])), Some(record));
        assert_eq!(Record::decode(&words(&[7, 0])), None);
        let begun = words(&[1, 0, 2, 0, 3, 0, 4, 0, 9, 2, 1024, 1, 0, 0, 0, 0]);
        let [begin, end] = [(1, 2), (3, 4)].map(|(cycles, nanoseconds)| Stamp { cycles, nanoseconds });
        let header = Header { begin, end, multiprocessor: 9, count: 2, shared: 1024 };
        assert_eq!(Header::decode(&begun), Some(header));
        assert_eq!(Header::decode(&[0; 64]), None);
    }
}
