//! Clusters: their barrier, shared memory of other blocks, multicast.

use super::*;

const OTHER: ThreadId = ThreadId::new(1, 0);

/// Synchronises all threads of two blocks.
pub(super) fn cluster_sync(lab: &mut Lab) {
    let site = lab.site();
    let everybody = || (0..2).flat_map(|block| (0..THREADS).map(move |thread| ThreadId::new(block, thread)));
    everybody()
        .for_each(|thread| lab.machine.cluster_arrive(Actor { thread, site }, Order::Release, true).unwrap());
    for thread in everybody() {
        assert_eq!(lab.machine.cluster_wait(Actor { thread, site }, Order::Acquire), Ok(Poll::Ready));
    }
}

#[test]
fn the_cluster_barrier_orders_blocks() {
    flipped_in(2, FindingKind::Race, |lab, sync| {
        lab.write(thread_id(0), 0, 3.0);
        if sync {
            cluster_sync(lab);
        }
        let (mut bytes, site) = ([0; 4], lab.site());
        let at = address::map_to_rank(0, 0).into();
        lab.machine
            .load(
                Actor { thread: OTHER, site },
                Pointer::new(Space::SharedCluster, at),
                &mut bytes,
                Order::Weak,
            )
            .unwrap();
        assert_eq!(f32::from_le_bytes(bytes), 3.0);
        cluster_sync(lab);
    });
}

#[test]
fn a_block_must_outlive_remote_accesses() {
    flipped_in(2, FindingKind::BlockGone, |lab, remains| {
        lab.write(thread_id(0), 0, 3.0);
        cluster_sync(lab);
        let site = lab.site();
        if !remains {
            all().for_each(|thread| lab.machine.exit(Actor { thread, site }));
        }
        let at = address::map_to_rank(0, 0).into();
        lab.machine
            .load(
                Actor { thread: OTHER, site },
                Pointer::new(Space::SharedCluster, at),
                &mut [0; 4],
                Order::Weak,
            )
            .unwrap();
        if remains {
            cluster_sync(lab);
        }
    });
}

#[test]
fn a_multicast_arrives_in_each_block() {
    flipped_in(2, FindingKind::ReadBeforeWait, |lab, wait| {
        for thread in [thread_id(0), OTHER] {
            lab.init(thread, FULL, 1);
            lab.fence(thread, Fence::MbarrierInit);
        }
        cluster_sync(lab);
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.arrive(OTHER, FULL, Some(TILE));
        let action =
            TensorAction::Load { space: Space::SharedCluster, tile: 0, barrier: FULL, multicast: Some(3) };
        lab.copy(thread_id(0), [0; 5], action).unwrap();
        lab.wait(thread_id(0), FULL, false);
        assert_eq!(lab.read(thread_id(0), 68), 65.0);
        if wait {
            lab.wait(OTHER, FULL, false);
            assert_eq!(lab.read(OTHER, 68), 65.0);
        }
        lab.read(OTHER, 68);
        lab.wait(OTHER, FULL, false);
    });
}

#[test]
fn bytes_are_copied_between_blocks() {
    flipped_in(2, FindingKind::MissingProxyFence, |lab, fence| {
        lab.init(OTHER, FULL, 1);
        lab.fence(OTHER, Fence::MbarrierInit);
        lab.write(thread_id(0), 64, 9.0);
        lab.write(thread_id(0), 68, 9.0);
        lab.write(thread_id(0), 72, 9.0);
        lab.write(thread_id(0), 76, 9.0);
        if fence {
            lab.fence(thread_id(0), Fence::ProxyAsync(FencedMemory::All));
        }
        cluster_sync(lab);
        lab.arrive(OTHER, FULL, Some(16));
        let there = |at: u32| u64::from(address::map_to_rank(at, 1));
        let action =
            BulkAction::ToCluster { from: 64, to: there(128), barrier: there(FULL as u32), reduce: None };
        let site = lab.site();
        lab.machine.bulk_copy(Actor { thread: thread_id(0), site }, &BulkCopy { bytes: 16, action }).unwrap();
        assert!(lab.wait(OTHER, FULL, false));
        assert_eq!(lab.read(OTHER, 132), 9.0);
        cluster_sync(lab);
    });
}

#[test]
fn a_block_must_outlive_copies_out_of_it() {
    flipped_in(2, FindingKind::Leak, |lab, remains| {
        lab.init(OTHER, FULL, 1);
        lab.fence(OTHER, Fence::MbarrierInit);
        lab.fill(0);
        all().for_each(|thread| lab.fence(thread, Fence::ProxyAsync(FencedMemory::All)));
        cluster_sync(lab);
        lab.arrive(OTHER, FULL, Some(16));
        let there = |at: u32| u64::from(address::map_to_rank(at, 1));
        let action =
            BulkAction::ToCluster { from: 64, to: there(128), barrier: there(FULL as u32), reduce: None };
        let site = lab.site();
        lab.machine.bulk_copy(Actor { thread: thread_id(0), site }, &BulkCopy { bytes: 16, action }).unwrap();
        assert!(lab.wait(OTHER, FULL, false));
        if remains {
            cluster_sync(lab);
        }
    });
}

#[test]
fn a_thread_may_arrive_and_end() {
    let mut lab = Lab::new(0, 2);
    let site = lab.site();
    for thread in all() {
        lab.machine.cluster_arrive(Actor { thread, site }, Order::Release, true).unwrap();
        lab.machine.exit(Actor { thread, site });
    }
    let others = || all().map(|thread| ThreadId { block: BlockRank(1), ..thread });
    for thread in others() {
        assert_eq!(lab.machine.barriers.cluster.round, 0);
        lab.machine.cluster_arrive(Actor { thread, site }, Order::Release, true).unwrap();
    }
    for thread in others() {
        assert_eq!(lab.machine.cluster_wait(Actor { thread, site }, Order::Acquire), Ok(Poll::Ready));
    }
    assert!(lab.end().is_empty());
}
