//! Generic reads before an asynchronous write of the same bytes: a proxy fence of shared memory
//! must come between them.

use super::clusters::cluster_sync;
use super::*;

/// Loads a tile, lets `read` use it and arrive at `EMPTY`, and loads again after `count` arrivals.
fn refilled(lab: &mut Lab, count: u32, read: impl Fn(&mut Lab)) {
    refilled_after(lab, count, read, |_| {});
}

fn refilled_after(lab: &mut Lab, count: u32, read: impl Fn(&mut Lab), before: impl Fn(&mut Lab)) {
    lab.init(thread_id(0), EMPTY, count);
    lab.barrier();
    lab.arrive(thread_id(0), FULL, Some(TILE));
    lab.load(thread_id(0), 0);
    read(lab);
    lab.wait(thread_id(0), EMPTY, false);
    before(lab);
    lab.arrive(thread_id(0), FULL, Some(TILE));
    lab.load(thread_id(0), 0);
    lab.wait(thread_id(0), FULL, true);
}

#[test]
fn the_fence_is_of_the_reader() {
    flipped(FindingKind::UnfencedRefill, |lab, fenced| {
        refilled(lab, 1, |lab| {
            lab.wait(thread_id(7), FULL, false);
            lab.read(thread_id(7), 0);
            if fenced {
                lab.fence(thread_id(7), Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)));
            }
            lab.arrive(thread_id(7), EMPTY, None);
        });
    });
}

#[test]
fn the_fence_must_follow_the_read() {
    flipped(FindingKind::UnfencedRefill, |lab, after| {
        refilled(lab, 1, |lab| {
            lab.wait(thread_id(7), FULL, false);
            let fence = |lab: &mut Lab| lab.fence(thread_id(7), Fence::ProxyAsync(FencedMemory::All));
            if !after {
                fence(lab);
            }
            lab.read(thread_id(7), 0);
            if after {
                fence(lab);
            }
            lab.arrive(thread_id(7), EMPTY, None);
        });
    });
}

#[test]
fn the_fence_is_of_shared_memory() {
    flipped(FindingKind::UnfencedRefill, |lab, shared| {
        refilled(lab, 1, |lab| {
            lab.wait(thread_id(7), FULL, false);
            lab.read(thread_id(7), 0);
            let kind = if shared {
                Fence::ProxyAsync(FencedMemory::Shared(Scope::Block))
            } else {
                Fence::ProxyAsync(FencedMemory::Global)
            };
            lab.fence(thread_id(7), kind);
            lab.arrive(thread_id(7), EMPTY, None);
        });
    });
}

#[test]
fn one_that_releases_for_others_fences_for_them() {
    flipped(FindingKind::UnfencedRefill, |lab, fenced| {
        refilled(lab, 1, |lab| {
            for lane in (0..32).map(thread_id) {
                lab.wait(lane, FULL, false);
                lab.read(lane, u64::from(lane.index.0) * 4);
            }
            lab.machine.warp_sync(BlockRank(0), WarpIndex(0), u32::MAX);
            if fenced {
                lab.fence(thread_id(3), Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)));
            }
            lab.arrive(thread_id(3), EMPTY, None);
        });
    });
}

#[test]
fn the_issuer_of_the_load_may_fence() {
    flipped(FindingKind::UnfencedRefill, |lab, fenced| {
        let read = |lab: &mut Lab| {
            lab.wait(thread_id(7), FULL, false);
            lab.read(thread_id(7), 0);
            lab.arrive(thread_id(7), EMPTY, None);
        };
        refilled_after(lab, 1, read, |lab| {
            if fenced {
                lab.fence(thread_id(0), Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)));
            }
        });
    });
}

#[test]
fn a_store_reads_through_the_asynchronous_proxy() {
    flipped(FindingKind::UnfencedRefill, |lab, only_stored| {
        refilled(lab, 1, |lab| {
            lab.wait(thread_id(7), FULL, false);
            // A read before the store is not forgotten because of the store.
            if !only_stored {
                lab.read(thread_id(7), 16);
            }
            lab.store(thread_id(7), 0);
            lab.commit(thread_id(7));
            lab.wait_groups(thread_id(7), 0, true);
            lab.arrive(thread_id(7), EMPTY, None);
        });
    });
}

#[test]
fn a_fence_before_a_store_is_enough() {
    flipped(FindingKind::UnfencedRefill, |lab, fenced| {
        refilled(lab, 1, |lab| {
            lab.wait(thread_id(7), FULL, false);
            lab.read(thread_id(7), 16);
            if fenced {
                lab.fence(thread_id(7), Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)));
            }
            lab.store(thread_id(7), 0);
            lab.commit(thread_id(7));
            lab.wait_groups(thread_id(7), 0, true);
            lab.arrive(thread_id(7), EMPTY, None);
        });
    });
}

/// A block-scoped release to another block tells it that reads are over, and that they are fenced.
#[test]
fn another_block_learns_of_the_fence() {
    flipped_in(2, FindingKind::UnfencedRefill, |lab, fenced| {
        let (reader, producer) = (ThreadId::new(1, 7), thread_id(0));
        lab.barrier();
        lab.init(producer, EMPTY, 1);
        let far = |offset: u64| u64::from(address::map_to_rank(offset as u32, 1));
        let site = lab.site();
        let _ =
            lab.machine.mbarrier_init(Actor { thread: reader, site }, Pointer::new(Space::Shared, FULL), 1);
        lab.fence(reader, Fence::MbarrierInit);
        cluster_sync(lab);
        let action = TensorAction::Load {
            space: Space::SharedCluster,
            tile: far(0),
            barrier: far(FULL),
            multicast: None,
        };
        lab.arrive(reader, FULL, Some(TILE));
        let _ = lab.copy(producer, [0; 5], action);
        lab.wait(reader, FULL, false);
        lab.read(reader, 0);
        if fenced {
            lab.fence(reader, Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)));
        }
        lab.arrive(reader, FULL, Some(TILE));
        let site = lab.site();
        let empty = address::map_to_rank(EMPTY as u32, 0).into();
        let _ = lab.machine.mbarrier_arrive(
            Actor { thread: reader, site },
            Pointer::new(Space::SharedCluster, empty),
            Arrive::ONE,
        );
        lab.wait(producer, EMPTY, false);
        let _ = lab.copy(producer, [0; 5], action);
        lab.wait(reader, FULL, true);
        cluster_sync(lab);
    });
}
