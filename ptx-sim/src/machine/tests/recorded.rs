//! The counts and the timeline of one copy of each kind.

use std::collections::BTreeMap;

use super::*;
use crate::trace::{EventKind, Row};

/// A thread of the second block.
const OTHER: ThreadId = ThreadId::new(1, 0);

/// Makes one copy of each kind by thread 0 of the first of two blocks, with a timeline.
fn one_of_each(seed: u64) -> Lab {
    let mut lab = Lab::with(seed, 2, Checks::NONE, matrix);
    lab.machine.record(64);
    lab.init(thread_id(0), FULL, 1);
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
        lab.copy(thread_id(0), [16, 32, 0, 0, 0], action).unwrap();
    }
    for (bytes, action) in [
        (16, BulkAction::Load { global, space, to: 4096, barrier, multicast: None }),
        (32, BulkAction::Load { global, space, to: 4128, barrier, multicast: Some(3) }),
        (48, BulkAction::Store { from: 4224, global, reduce: None }),
        (64, BulkAction::ToCluster { from: 4288, to: there(4352), barrier: there(FULL), reduce: None }),
        (80, BulkAction::Prefetch { global }),
    ] {
        let site = lab.site();
        lab.machine.bulk_copy(Actor { thread: thread_id(0), site }, &BulkCopy { bytes, action }).unwrap();
    }
    lab.machine.drain();
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

#[test]
fn each_engine_has_its_row_in_the_block_whose_memory_it_uses() {
    for seed in 0..8 {
        let trace = one_of_each(seed).machine.take_trace();
        let mut rows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for event in &trace.events {
            let EventKind::Copies(copy) = &event.kind else { continue };
            assert_eq!((copy.issuing_block, copy.issuing_thread), ([0; 3], 0));
            assert!(!event.unfinished && event.begin <= event.end, "seed {seed}: {event:?}");
            let is_tensor = !copy.coordinates.is_empty();
            assert_eq!(copy.coordinates, if is_tensor { vec![16, 32] } else { vec![] });
            rows.entry((event.block[0], event.row)).or_default().push((copy.kind, copy.bytes));
        }
        rows.values_mut().for_each(|copies| copies.sort());
        let tile = u64::from(TILE);
        let multicast = [(CopyKind::TensorMulticast, tile), (CopyKind::BulkMulticast, 32)];
        let [tensor, bulk] = multicast;
        let wanted = [
            ((0, Row::Loads), vec![(CopyKind::TensorLoad, tile), tensor, (CopyKind::BulkLoad, 16), bulk]),
            ((0, Row::Stores), vec![(CopyKind::TensorStore, tile), (CopyKind::BulkStore, 48)]),
            ((0, Row::Reductions), vec![(CopyKind::TensorReduce, tile)]),
            ((0, Row::Prefetches), vec![(CopyKind::TensorPrefetch, tile), (CopyKind::BulkPrefetch, 80)]),
            ((1, Row::Loads), multicast.to_vec()),
            ((1, Row::BetweenBlocks), vec![(CopyKind::BulkBetweenBlocks, 64)]),
        ];
        assert_eq!(rows, BTreeMap::from(wanted), "seed {seed}");
    }
}

#[test]
fn a_phase_ends_when_it_is_complete() {
    let mut lab = Lab::new(0, 1);
    lab.machine.record(64);
    lab.barrier();
    lab.arrive(thread_id(0), FULL, None);
    lab.arrive(thread_id(0), FULL, Some(TILE));
    let phases: Vec<_> = lab.machine.take_trace().events.into_iter().collect();
    let [first, second] = &phases[..] else { panic!("{phases:?}") };
    assert_eq!((&first.kind, first.unfinished), (&EventKind::Phase(0), false));
    assert_eq!((&second.kind, second.unfinished), (&EventKind::Phase(1), true), "its bytes never come");
    assert_eq!([first.row, second.row], [Row::Mbarrier(FULL as u32); 2]);
}
