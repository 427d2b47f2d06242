//! Metadata of a sparse A: the index along K of each stored element.
//!
//! A row of a sparse A is divided into *groups* of four elements along K, of which two are stored.
//! For tf32 a group has two elements, of which one is stored. Four bits of metadata describe each
//! group: the indices of its two stored elements, from the low bits up. For tf32 they are the
//! indices of the two halves of the stored element, as if the halves were 16-bit elements.
//!
//! The PTX ISA leaves other bits undefined. On an H200, two equal indices place both elements there
//! and add both; two indices in descending order work like ascending ones; halves of a tf32 that
//! are not neighbours go where the indices say, and form other numbers
//! (`conformance/corpus/metadata.txt`).
//!
//! Sources: PTX ISA, "Sparse matrix storage" of `wgmma.mma_async.sp`; CUTLASS,
//! `cute/atom/mma_traits_sm90_gmma_sparse.hpp`, `ELayout_64x*`.

use super::element::Operand;

/// The location of the four bits of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MetadataLocation {
    /// Index of the thread in the warpgroup, 0 to 127.
    pub thread: u32,
    /// Index of the lowest of the four bits in its register.
    pub bit: u32,
}

/// Bits of metadata for each group.
pub const GROUP_BITS: u32 = 4;

impl Operand {
    /// Returns the number of elements in a group along K, including those that are omitted.
    pub const fn group(self) -> u32 {
        match self {
            Self::Tf32 => 2,
            Self::F16 | Self::Bf16 | Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 | Self::B1 => 4,
        }
    }

    /// Returns the number of valid sparsity selectors, which count from 0. For 8-bit types all of
    /// each four threads hold metadata. For wider types the selector picks the first two or the
    /// last two.
    pub const fn selectors(self) -> u32 {
        if self.bits() > 8 { 2 } else { 1 }
    }

    /// Returns the location of the metadata for a group in a row of A.
    pub const fn metadata(self, selector: u32, row: u32, group: u32) -> MetadataLocation {
        let below = row / 8 % 2;
        let (quarter, nibble) = if self.bits() > 8 {
            (2 * selector + group / 4, 4 * below + group % 4)
        } else {
            (below + 2 * (group / 8), group % 8)
        };
        MetadataLocation { thread: row / 16 * 32 + row % 8 * 4 + quarter, bit: GROUP_BITS * nibble }
    }

    /// Returns the index within its group that the metadata `bits` assign to stored element `slot`,
    /// or `None` if the bits are invalid.
    pub const fn position(self, bits: u32, slot: u32) -> Option<u32> {
        let (first, second) = (bits & 3, bits >> 2 & 3);
        match self {
            Self::Tf32 => match (first, second) {
                (0, 1) => Some(0),
                (2, 3) => Some(1),
                _ => None,
            },
            Self::F16 | Self::Bf16 | Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 | Self::B1 => {
                if first == second {
                    return None;
                }
                Some(if slot == 0 { first } else { second })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::{Accumulator, Form, ROWS};
    use super::*;

    fn sparse_types() -> impl Iterator<Item = Operand> {
        Operand::ALL.into_iter().filter(|operand| operand.is_sparse())
    }

    #[test]
    fn every_group_has_bits_of_its_own() {
        for a in sparse_types() {
            let form = Form { d: Accumulator::F32, a, b: a, n: 8, sparse: true };
            let groups = form.k() / a.group();
            for selector in 0..a.selectors() {
                let mut locations = HashSet::new();
                for (row, group) in (0..ROWS).flat_map(|row| (0..groups).map(move |group| (row, group))) {
                    let location = a.metadata(selector, row, group);
                    assert!(location.thread < 128 && location.bit < 32, "{a}: {location:?}");
                    assert!(locations.insert(location), "{a}: {location:?}");
                }
                assert_eq!(locations.len() as u32, ROWS * groups);
            }
        }
    }

    #[test]
    fn known_groups_are_where_they_are_drawn() {
        let location = |thread, bit| MetadataLocation { thread, bit };
        assert_eq!(Operand::F16.metadata(0, 0, 5), location(1, 4));
        assert_eq!(Operand::F16.metadata(1, 8, 0), location(2, 16));
        assert_eq!(Operand::Tf32.metadata(1, 63, 7), location(127, 28));
        assert_eq!(Operand::E4m3.metadata(0, 17, 9), location(38, 4));
        assert_eq!(Operand::S8.metadata(0, 9, 15), location(7, 28));
    }

    #[test]
    fn bits_name_two_elements_or_one_of_32_bits() {
        assert_eq!([0, 1].map(|slot| Operand::F16.position(0b1101, slot)), [Some(1), Some(3)]);
        for bits in [0b0000, 0b0101, 0b1010, 0b1111] {
            assert_eq!(Operand::U8.position(bits, 0), None);
        }
        let valid: Vec<u32> = (0..16).filter(|bits| Operand::Tf32.position(*bits, 0).is_some()).collect();
        assert_eq!(valid, [0b0100, 0b1110]);
        assert_eq!(Operand::Tf32.position(0b1110, 0), Some(1));
    }
}
