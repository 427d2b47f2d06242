//! Choices that a thread has made before. The model estimates the time of some fifty choices, which
//! takes as long as all else that the host does for a launch.

use std::any::TypeId;
use std::cell::RefCell;

use super::{Choice, Problem};
use crate::gemm::instances::Layout;

/// The number of slots, as a power of two.
const SLOT_BITS: u32 = 6;

/// A key and its choice; `None` in an unused slot.
type Slot = Option<(ChoiceKey, Option<Choice>)>;

/// All that a choice among the library's own kernels depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gemm) struct ChoiceKey {
    pub(in crate::gemm) problem: Problem,
    pub(in crate::gemm) multiprocessors: u32,
    /// The types of A and B, of sums and of C, as a tuple.
    pub(in crate::gemm) types: TypeId,
    pub(in crate::gemm) layout: Layout,
    /// Whether there are operations between the sums and C, or rows of C that threads store.
    pub(in crate::gemm) has_options: bool,
    /// Whether threads store a part of C's rows.
    pub(in crate::gemm) by_threads: bool,
    /// Whether there may be memory for sums that are split.
    pub(in crate::gemm) may_allocate: bool,
}

impl ChoiceKey {
    /// Returns the slot of the key: the high bits of a multiplicative hash of the extents.
    fn slot(&self) -> usize {
        // 2^64 divided by the golden ratio, as in Fibonacci hashing (Knuth, volume 3, section 6.4).
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let extents = self.problem.extents.iter().chain([&self.problem.batches]);
        let hash = extents.fold(0u64, |hash, extent| (hash ^ *extent as u64).wrapping_mul(FACTOR));
        (hash >> (u64::BITS - SLOT_BITS)) as usize
    }
}

/// Returns the choice that this thread has cached for `key`, or makes it by `choose`. A key replaces
/// any other in its slot, so the memory is bounded.
pub(in crate::gemm) fn chosen(key: ChoiceKey, choose: impl FnOnce() -> Option<Choice>) -> Option<Choice> {
    thread_local! {
        static SLOTS: RefCell<[Slot; 1 << SLOT_BITS]> = const { RefCell::new([None; 1 << SLOT_BITS]) };
    }
    let slot = key.slot();
    let known = SLOTS.with_borrow(|slots| slots.get(slot).copied().flatten());
    if let Some((_, choice)) = known.filter(|(cached, _)| *cached == key) {
        return choice;
    }
    let choice = choose();
    SLOTS.with_borrow_mut(|slots| {
        if let Some(slot) = slots.get_mut(slot) {
            *slot = Some((key, choice));
        }
    });
    choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::divide::Division;
    use crate::gemm::tile::Tile;

    fn key(n: usize) -> ChoiceKey {
        ChoiceKey {
            problem: Problem { extents: [64, n, 64], batches: 1, bytes: [2, 2] },
            multiprocessors: 132,
            types: TypeId::of::<(u8, u8)>(),
            layout: Layout { transpose_a: false, transpose_b: false },
            has_options: false,
            by_threads: false,
            may_allocate: true,
        }
    }

    #[test]
    fn each_choice_is_made_once() {
        let choice = Some(Choice { tile: Tile::T64x64, division: Division::Whole });
        assert_eq!(chosen(key(1), || choice), choice);
        assert_eq!(chosen(key(1), || None), choice, "it is cached");
        assert_eq!(chosen(key(2), || None), None);
        for other in [
            ChoiceKey { may_allocate: false, ..key(1) },
            ChoiceKey { types: TypeId::of::<(u8, u16)>(), ..key(1) },
            ChoiceKey { layout: Layout { transpose_a: true, transpose_b: false }, ..key(1) },
        ] {
            assert_eq!(chosen(other, || None), None, "{other:?} is another one");
        }
    }

    #[test]
    fn a_key_replaces_another_in_its_slot() {
        let same = (2..).map(key).find(|other| other.slot() == key(1).slot()).expect("a slot");
        let choice = Some(Choice { tile: Tile::T64x128, division: Division::Whole });
        assert_eq!(chosen(key(1), || None), None);
        assert_eq!(chosen(same, || choice), choice);
        assert_eq!(chosen(key(1), || choice), choice, "the choice was replaced");
    }
}
