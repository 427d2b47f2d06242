//! Order between threads on shared memory.

use super::*;

#[test]
fn a_barrier_orders_write_and_read() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread_id(0), 0, 1.0);
        if sync {
            lab.sync();
        }
        lab.read(thread_id(1), 0);
    });
}

#[test]
fn a_barrier_orders_read_and_write() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread_id(0), 0, 1.0);
        lab.sync();
        // Two unordered readers, so that both are remembered.
        lab.read(thread_id(1), 0);
        lab.read(thread_id(40), 0);
        if sync {
            lab.sync();
        }
        lab.write(thread_id(1), 0, 2.0);
    });
}

#[test]
fn a_barrier_orders_two_writes() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread_id(0), 0, 1.0);
        if sync {
            lab.sync();
        }
        lab.write(thread_id(33), 0, 2.0);
    });
}

#[test]
fn neighbours_in_a_word_do_not_race() {
    flipped(FindingKind::Race, |lab, apart| {
        for thread in all() {
            let (site, at) = (lab.site(), if apart { thread.index.0 } else { thread.index.0 / 2 });
            let byte = thread.index.0 as u8;
            lab.machine
                .store(Actor { thread, site }, Pointer::new(Space::Shared, at.into()), &[byte], Order::Weak)
                .unwrap();
        }
    });
}

#[test]
fn two_threads_may_write_the_same() {
    flipped(FindingKind::Race, |lab, same| {
        lab.write(thread_id(0), 0, 1.0);
        lab.write(thread_id(33), 0, if same { 1.0 } else { 2.0 });
        lab.sync();
        lab.read(thread_id(40), 0);
    });
}

#[test]
fn splitting_cells_preserves_their_state() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread_id(0), 0, 1.0);
        lab.sync();
        lab.read(thread_id(1), 0);
        lab.read(thread_id(2), 0);
        if sync {
            lab.sync();
        }
        let site = lab.site();
        lab.machine
            .store(Actor { thread: thread_id(3), site }, Pointer::new(Space::Shared, 3), &[1], Order::Weak)
            .unwrap();
    });
}

#[test]
fn a_warp_is_ordered_by_its_own_barrier() {
    flipped(FindingKind::Race, |lab, whole| {
        lab.write(thread_id(0), 0, 1.0);
        lab.machine.warp_sync(BlockRank(0), WarpIndex(0), if whole { u32::MAX } else { !2 });
        lab.read(thread_id(1), 0);
    });
    flipped(FindingKind::Race, |lab, same_warp| {
        lab.write(thread_id(0), 0, 1.0);
        lab.machine.warp_sync(BlockRank(0), WarpIndex(0), u32::MAX);
        lab.read(thread_id(if same_warp { 31 } else { 32 }), 0);
    });
}

#[test]
fn atomics_do_not_race_with_each_other() {
    flipped(FindingKind::Race, |lab, atomic| {
        lab.write(thread_id(0), 0, 0.0);
        lab.sync();
        for thread in all() {
            let site = lab.site();
            if atomic || thread.index.0 != 20 {
                let change = &mut |old: u64| old + 1;
                lab.machine
                    .atomic(
                        Actor { thread, site },
                        Pointer::new(Space::Shared, 0),
                        Width::scalar(4),
                        Order::Relaxed,
                        change,
                    )
                    .unwrap();
            } else {
                lab.write(thread, 0, 1.0);
            }
        }
        lab.sync();
        lab.read(thread_id(0), 0);
    });
}

#[test]
fn a_flag_orders_with_release_and_acquire() {
    flipped(FindingKind::Race, |lab, acquire| {
        let (flag, site) = (64, lab.site());
        lab.write(thread_id(0), 0, 1.0);
        let one = 1u32.to_le_bytes();
        lab.machine
            .store(
                Actor { thread: thread_id(0), site },
                Pointer::new(Space::Shared, flag),
                &one,
                Order::Release,
            )
            .unwrap();
        let order = if acquire { Order::Acquire } else { Order::Relaxed };
        lab.machine
            .load(
                Actor { thread: thread_id(40), site },
                Pointer::new(Space::Shared, flag),
                &mut [0; 4],
                order,
            )
            .unwrap();
        lab.read(thread_id(40), 0);
    });
}

/// A write that a thread has observed is ordered before the thread's own write, but reads of that
/// write need not be.
#[test]
fn an_observed_write_hides_no_reader() {
    flipped(FindingKind::Race, |lab, sync| {
        let (site, one) = (lab.site(), 1u32.to_le_bytes());
        let (location, flag) = (Pointer::new(Space::Shared, 0), Pointer::new(Space::Shared, 64));
        let [writer, reader, observer] = [0, 33, 40].map(|number| Actor { thread: thread_id(number), site });
        lab.machine.store(writer, location, &one, Order::Relaxed).unwrap();
        lab.machine.store(writer, flag, &one, Order::Release).unwrap();
        lab.machine.load(reader, flag, &mut [0; 4], Order::Acquire).unwrap();
        lab.read(reader.thread, 0);
        lab.machine.load(observer, location, &mut [0; 4], Order::Relaxed).unwrap();
        if sync {
            lab.sync();
        }
        lab.write(observer.thread, 0, 2.0);
    });
}

/// Each element of a vector that a thread writes weakly must have been observed individually.
#[test]
fn elements_of_a_vector_are_observed_one_by_one() {
    flipped(FindingKind::Race, |lab, both| {
        let (site, one) = (lab.site(), 1u32.to_le_bytes());
        let [writer, observer] = [0, 40].map(|number| Actor { thread: thread_id(number), site });
        for at in [0, 4] {
            lab.machine.store(writer, Pointer::new(Space::Shared, at), &one, Order::Relaxed).unwrap();
        }
        for at in [0, 4].into_iter().take(if both { 2 } else { 1 }) {
            let location = Pointer::new(Space::Shared, at);
            lab.machine.load(observer, location, &mut [0; 4], Order::Relaxed).unwrap();
        }
        lab.machine.store(observer, Pointer::new(Space::Shared, 0), &[2; 8], Order::Weak).unwrap();
    });
}

#[test]
fn fences_order_around_relaxed_accesses() {
    flipped(FindingKind::Race, |lab, fence| {
        let (flag, site) = (64, lab.site());
        lab.write(thread_id(0), 0, 1.0);
        if fence {
            lab.fence(thread_id(0), Fence::Memory);
        }
        let one = 1u32.to_le_bytes();
        lab.machine
            .store(
                Actor { thread: thread_id(0), site },
                Pointer::new(Space::Shared, flag),
                &one,
                Order::Relaxed,
            )
            .unwrap();
        lab.machine
            .load(
                Actor { thread: thread_id(40), site },
                Pointer::new(Space::Shared, flag),
                &mut [0; 4],
                Order::Relaxed,
            )
            .unwrap();
        lab.fence(thread_id(40), Fence::Memory);
        lab.read(thread_id(40), 0);
    });
}

/// A fence that only releases acquires nothing for its own thread.
#[test]
fn a_fence_has_an_order() {
    flipped(FindingKind::Race, |lab, acquires| {
        let (flag, site) = (Pointer::new(Space::Shared, 64), lab.site());
        lab.write(thread_id(0), 0, 1.0);
        lab.machine.memory_fence(thread_id(0), Order::Release);
        let one = 1u32.to_le_bytes();
        lab.machine.store(Actor { thread: thread_id(0), site }, flag, &one, Order::Relaxed).unwrap();
        let reader = Actor { thread: thread_id(40), site };
        lab.machine.load(reader, flag, &mut [0; 4], Order::Relaxed).unwrap();
        let order = if acquires { Order::Acquire } else { Order::Release };
        lab.machine.memory_fence(thread_id(40), order);
        lab.read(thread_id(40), 0);
    });
}

#[test]
fn reads_require_earlier_writes() {
    flipped(FindingKind::Uninitialised, |lab, write| {
        if write {
            lab.write(thread_id(0), 0, 1.0);
        }
        lab.read(thread_id(0), 0);
    });
}
