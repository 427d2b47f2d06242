//! Matrix descriptors: the 64 bits that describe an operand in shared memory.
//!
//! | bits | field |
//! | --- | --- |
//! | 0–13 | start address, without its 4 low bits |
//! | 16–29 | leading-dimension byte offset (LBO), without its 4 low bits |
//! | 32–45 | stride-dimension byte offset (SBO), without its 4 low bits |
//! | 49–51 | base offset |
//! | 62–63 | swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes |
//!
//! Sources: PTX ISA, "Matrix Descriptor Format"; CUTLASS, `cute/arch/mma_sm90_desc.hpp`.

use super::element::Operand;
use super::layout::Major;
use super::{CHUNK_BYTES, CORE_ROWS};
use crate::swizzle::Swizzle;

/// Mask of the address bits in shared memory that a descriptor can represent, and of its offsets.
const ADDRESS_BITS: u32 = 0x3_ffff;

/// Bytes per unit of the base offset. Source: PTX ISA, "Matrix Descriptor Format".
const BASE_BYTES: u32 = 128;

/// The bits that belong to no field.
const RESERVED: u64 = !(0x3fff | 0x3fff << 16 | 0x3fff << 32 | 0x7 << 49 | 0x3 << 62);

/// A descriptor's fields, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Address of the operand's first chunk in the block's shared memory.
    pub start: u32,
    /// LBO. Its meaning depends on the swizzle and on which dimension is contiguous.
    pub leading: u32,
    /// SBO.
    pub stride: u32,
    /// Start of the swizzle's pattern: this many times 128 bytes after a multiple of 1024.
    pub base_offset: u32,
    /// Permutation of the chunks.
    pub swizzle: Swizzle,
}

/// A rule that a descriptor breaks. Source: PTX ISA, "Matrix Descriptor Format".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorFault {
    /// The start address is not a multiple of 16.
    StartAlignment,
    /// The start address does not fit in 18 bits.
    StartRange,
    /// LBO or SBO is not a multiple of 16.
    OffsetAlignment,
    /// LBO or SBO does not fit in 18 bits.
    OffsetRange,
    /// The base offset is more than 7.
    BaseOffset,
    /// A bit is set that belongs to no field.
    Reserved,
}

const fn field(bytes: u32) -> u64 {
    ((bytes & ADDRESS_BITS) >> 4) as u64
}

const fn bytes(field: u64) -> u32 {
    ((field & 0x3fff) as u32) << 4
}

const fn code_of(swizzle: Swizzle) -> u64 {
    match swizzle {
        Swizzle::None => 0,
        Swizzle::B128 => 1,
        Swizzle::B64 => 2,
        Swizzle::B32 => 3,
    }
}

impl Descriptor {
    /// Returns all rules that the fields break.
    pub fn faults(self) -> Vec<DescriptorFault> {
        let offsets = [self.leading, self.stride];
        let rules = [
            (!self.start.is_multiple_of(CHUNK_BYTES), DescriptorFault::StartAlignment),
            (self.start > ADDRESS_BITS, DescriptorFault::StartRange),
            (
                offsets.iter().any(|bytes| !bytes.is_multiple_of(CHUNK_BYTES)),
                DescriptorFault::OffsetAlignment,
            ),
            (offsets.iter().any(|&bytes| bytes > ADDRESS_BITS), DescriptorFault::OffsetRange),
            (self.base_offset > 7, DescriptorFault::BaseOffset),
        ];
        rules.into_iter().filter_map(|(broken, fault)| broken.then_some(fault)).collect()
    }

    /// Encodes the fields. Values that do not fit their field are truncated;
    /// [`faults`](Self::faults) reports them.
    pub const fn encode(self) -> u64 {
        field(self.start)
            | field(self.leading) << 16
            | field(self.stride) << 32
            | ((self.base_offset & 7) as u64) << 49
            | code_of(self.swizzle) << 62
    }

    /// Decodes the fields from 64 bits.
    ///
    /// # Errors
    ///
    /// [`DescriptorFault::Reserved`] if a bit is set that belongs to no field.
    pub const fn decode(bits: u64) -> Result<Self, DescriptorFault> {
        if bits & RESERVED != 0 {
            return Err(DescriptorFault::Reserved);
        }
        Ok(Self {
            start: bytes(bits),
            leading: bytes(bits >> 16),
            stride: bytes(bits >> 32),
            base_offset: (bits >> 49 & 7) as u32,
            swizzle: match bits >> 62 {
                0 => Swizzle::None,
                1 => Swizzle::B128,
                2 => Swizzle::B64,
                _ => Swizzle::B32,
            },
        })
    }

    /// Returns the address from which the tensor core reads a 16-byte chunk.
    ///
    /// K-major, `line` counts rows of A or columns of B, and `chunk` counts along K. MN-major,
    /// `line` counts along K, and `chunk` counts along rows or columns. The swizzle works on
    /// addresses, so a start may be moved within the pattern. A base offset moves the pattern:
    /// chunks are permuted by their addresses minus that offset.
    ///
    /// Source: CUTLASS, `cute/atom/mma_traits_sm90_gmma.hpp`, the canonical layouts. An H200 read
    /// 584 descriptors this way, with every swizzle and base offset (`conformance/src/layout.rs`).
    #[inline]
    pub const fn chunk(self, major: Major, line: u32, chunk: u32) -> u32 {
        let (core, row) = (line / CORE_ROWS, line % CORE_ROWS);
        let at = match (major, self.swizzle.span()) {
            (Major::K, None) => row * CHUNK_BYTES + core * self.stride + chunk * self.leading,
            // B of a sparse instruction has 64 bytes along K: two panels of the 32-byte swizzle.
            (Major::K, Some(span)) => {
                let each = span / CHUNK_BYTES;
                row * span + core * self.stride + chunk / each * self.leading + chunk % each * CHUNK_BYTES
            }
            (Major::Mn, None) => row * CHUNK_BYTES + core * self.leading + chunk * self.stride,
            (Major::Mn, Some(span)) => {
                let each = span / CHUNK_BYTES;
                row * span + core * self.stride + chunk / each * self.leading + chunk % each * CHUNK_BYTES
            }
        };
        let at = (self.start + at) & ADDRESS_BITS;
        // The pattern depends on the address relative to the pattern's start.
        let in_pattern = at.wrapping_sub(self.pattern_start());
        at ^ in_pattern ^ self.swizzle.permute(in_pattern)
    }

    /// Returns the distances in bytes between groups of 8 lines and between panels. Source: as for
    /// [`chunk`](Self::chunk).
    pub const fn steps(self, major: Major) -> [u32; 2] {
        match (major, self.swizzle.span()) {
            (Major::Mn, None) => [self.leading, self.stride],
            (Major::K | Major::Mn, _) => [self.stride, self.leading],
        }
    }

    /// Returns the start of the pattern, modulo 1024 bytes.
    const fn pattern_start(self) -> u32 {
        self.base_offset * BASE_BYTES
    }

    /// Returns how far into its swizzle's pattern the operand starts, in bytes, rounded down to
    /// whole rows of the pattern. An operand may start within a row, which is a step along K.
    pub const fn into_pattern(self) -> u32 {
        match self.swizzle.span() {
            Some(span) => self.start.wrapping_sub(self.pattern_start()) % (CORE_ROWS * span) / span * span,
            None => 0,
        }
    }

    /// Returns the first chunk address that occurs more than once among `lines` lines of `chunks`
    /// chunks. Returns `None` if LBO or SBO is zero, because zero repeats lines on purpose.
    pub fn repeated(self, major: Major, lines: u32, chunks: u32) -> Option<u32> {
        if self.leading == 0 || self.stride == 0 {
            return None;
        }
        let mut seen = [0_u64; (ADDRESS_BITS / CHUNK_BYTES / 64 + 1) as usize];
        let places = (0..lines).flat_map(|line| (0..chunks).map(move |chunk| (line, chunk)));
        places.map(|(line, chunk)| self.chunk(major, line, chunk)).find(|at| {
            let number = at / CHUNK_BYTES;
            let (word, bit) = (&mut seen[(number / 64) as usize], 1 << (number % 64));
            let was_seen = *word & bit != 0;
            *word |= bit;
            was_seen
        })
    }

    /// Returns the address of the byte that contains element (`i`, `k`), where `i` is a row of A or
    /// a column of B.
    pub const fn address(self, major: Major, element: Operand, i: u32, k: u32) -> u32 {
        let (line, along) = match major {
            Major::K => (i, k),
            Major::Mn => (k, i),
        };
        let each = element.per_chunk();
        self.chunk(major, line, along / each) + along % each * element.bits() / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_isa_has_them() {
        let descriptor =
            Descriptor { start: 0x1_2340, leading: 16, stride: 1024, base_offset: 0, swizzle: Swizzle::B128 };
        assert_eq!(descriptor.encode(), 0x4000_0040_0001_1234);
        assert_eq!(Descriptor::decode(0x4000_0040_0001_1234), Ok(descriptor));
        assert_eq!(Descriptor::decode(0xc000_0000_0000_0000).map(|d| d.swizzle), Ok(Swizzle::B32));
        assert_eq!(Descriptor::decode(5 << 49).map(|d| d.base_offset), Ok(5));
    }

    #[test]
    fn bits_of_no_field_are_refused() {
        for bit in (0..64).filter(|bit| RESERVED >> bit & 1 == 1) {
            assert_eq!(Descriptor::decode(1 << bit), Err(DescriptorFault::Reserved), "{bit}");
        }
        assert_eq!(RESERVED.count_ones(), 64 - 3 * 14 - 3 - 2);
    }

    #[test]
    fn the_pattern_starts_where_the_base_offset_says() {
        let swizzle = Swizzle::B128;
        let aligned = Descriptor { start: 2048, leading: 16, stride: 1024, swizzle, ..Descriptor::default() };
        let moved = Descriptor { start: 2048 + 3 * 128, base_offset: 3, ..aligned };
        for (row, chunk) in (0..64).flat_map(|row| (0..2).map(move |chunk| (row, chunk))) {
            assert_eq!(moved.chunk(Major::K, row, chunk), aligned.chunk(Major::K, row, chunk) + 3 * 128);
        }
        assert_eq!((aligned.into_pattern(), moved.into_pattern()), (0, 0));
        assert_eq!(Descriptor { start: 2048 + 32, ..aligned }.into_pattern(), 0);
        assert_eq!(Descriptor { base_offset: 0, ..moved }.into_pattern(), 3 * 128);
        assert_eq!(Descriptor { start: 2048, ..moved }.into_pattern(), 5 * 128);
        assert_eq!(Descriptor { swizzle: Swizzle::None, ..moved }.into_pattern(), 0);
    }

    #[test]
    fn strides_that_are_too_short_repeat_chunks() {
        let good = Descriptor { start: 0, leading: 1024, stride: 128, ..Descriptor::default() };
        assert_eq!(good.repeated(Major::K, 64, 2), None);
        assert_eq!(Descriptor { stride: 64, ..good }.repeated(Major::K, 64, 2), Some(64));
        assert_eq!(Descriptor { stride: 64, ..good }.repeated(Major::K, 8, 2), None);
        assert_eq!(Descriptor { leading: 128, ..good }.repeated(Major::K, 64, 2), Some(128));
        assert_eq!(Descriptor { stride: 0, ..good }.repeated(Major::K, 64, 2), None);
        let swizzled = Descriptor { leading: 16, stride: 512, swizzle: Swizzle::B128, ..good };
        assert!(swizzled.repeated(Major::K, 64, 2).is_some());
    }

    #[test]
    fn each_rule_is_reported() {
        let good = Descriptor { start: 1024, leading: 16, stride: 1024, ..Descriptor::default() };
        assert_eq!(good.faults(), []);
        let bad = [
            (Descriptor { start: 1032, ..good }, DescriptorFault::StartAlignment),
            (Descriptor { start: 1 << 18, ..good }, DescriptorFault::StartRange),
            (Descriptor { leading: 8, ..good }, DescriptorFault::OffsetAlignment),
            (Descriptor { stride: 1 << 18, ..good }, DescriptorFault::OffsetRange),
            (Descriptor { base_offset: 8, ..good }, DescriptorFault::BaseOffset),
        ];
        for (descriptor, fault) in bad {
            assert_eq!(descriptor.faults(), [fault]);
        }
    }
}
