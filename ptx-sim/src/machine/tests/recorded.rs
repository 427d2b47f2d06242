//! Each kind of copy once: how it is counted.

use super::*;

/// A thread of the second block.
const OTHER: ThreadId = ThreadId { block: 1, thread: 0 };

/// One copy of each kind by thread 0 of the first of two blocks.
fn one_of_each(seed: u64) -> Lab {
    let mut lab = Lab::with(seed, 2, Checks::NONE, matrix);
    lab.init(thread(0), FULL, 1);
    lab.init(OTHER, FULL, 1);
    let there = |at: u64| u64::from(address::map_to_rank(at as u32, 1));
    let (space, global, barrier) = (Space::SharedCluster, lab.tensor, FULL);
    for action in [
        TensorAction::Load { space, tile: 0, barrier, multicast: None },
        TensorAction::Load { space, tile: 1024, barrier, multicast: Some(3) },
        TensorAction::Store { tile: 2048 },
        TensorAction::Reduce { tile: 2048, with: Reduction::Add },
        TensorAction::Prefetch,
    ] {
        lab.copy(thread(0), [16, 32, 0, 0, 0], action).unwrap();
    }
    for (bytes, action) in [
        (16, BulkAction::Load { global, space, to: 4096, barrier, multicast: None }),
        (32, BulkAction::Load { global, space, to: 4128, barrier, multicast: Some(3) }),
        (48, BulkAction::Store { from: 4224, global }),
        (64, BulkAction::ToCluster { from: 4288, to: there(4352), barrier: there(FULL) }),
        (80, BulkAction::Prefetch { global }),
    ] {
        let site = lab.site();
        lab.machine.bulk_copy(thread(0), &BulkCopy { bytes, action }, site).unwrap();
    }
    lab
}

#[test]
fn each_kind_of_copy_is_counted_by_itself() {
    let lab = one_of_each(3);
    let tile = u64::from(TILE);
    let wanted = [tile, 2 * tile, tile, tile, tile, 16, 2 * 32, 48, 64, 80];
    for ((kind, moved), bytes) in lab.machine.counters().iter().zip(wanted) {
        assert_eq!(moved, Moved { copies: 1, bytes }, "{kind}");
    }
    let counters = lab.machine.counters();
    assert_eq!(counters.loads(), Moved { copies: 4, bytes: 3 * tile + 16 + 2 * 32 });
    assert_eq!(counters.stores(), Moved { copies: 3, bytes: 2 * tile + 48 });
}
