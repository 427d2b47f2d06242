//! Order between threads on shared memory.

use super::*;

#[test]
fn a_barrier_orders_write_and_read() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread(0), 0, 1.0);
        if sync {
            lab.sync();
        }
        lab.read(thread(1), 0);
    });
}

#[test]
fn a_barrier_orders_read_and_write() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread(0), 0, 1.0);
        lab.sync();
        // Two readers without order, so that both are remembered.
        lab.read(thread(1), 0);
        lab.read(thread(40), 0);
        if sync {
            lab.sync();
        }
        lab.write(thread(1), 0, 2.0);
    });
}

#[test]
fn a_barrier_orders_two_writes() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread(0), 0, 1.0);
        if sync {
            lab.sync();
        }
        lab.write(thread(33), 0, 2.0);
    });
}

#[test]
fn neighbours_in_a_word_do_not_race() {
    flipped(FindingKind::Race, |lab, apart| {
        for who in all() {
            let (site, at) = (lab.site(), if apart { who.thread } else { who.thread / 2 });
            let byte = who.thread as u8;
            lab.machine.store(who, Space::Shared, at.into(), &[byte], Order::Weak, site).unwrap();
        }
    });
}

#[test]
fn two_threads_may_write_the_same() {
    flipped(FindingKind::Race, |lab, same| {
        lab.write(thread(0), 0, 1.0);
        lab.write(thread(33), 0, if same { 1.0 } else { 2.0 });
        lab.sync();
        lab.read(thread(40), 0);
    });
}

#[test]
fn splitting_cells_keeps_what_they_know() {
    flipped(FindingKind::Race, |lab, sync| {
        lab.write(thread(0), 0, 1.0);
        lab.sync();
        lab.read(thread(1), 0);
        lab.read(thread(2), 0);
        if sync {
            lab.sync();
        }
        let site = lab.site();
        lab.machine.store(thread(3), Space::Shared, 3, &[1], Order::Weak, site).unwrap();
    });
}

#[test]
fn a_warp_is_ordered_by_its_own_barrier() {
    flipped(FindingKind::Race, |lab, whole| {
        lab.write(thread(0), 0, 1.0);
        lab.machine.warp_sync(0, 0, if whole { u32::MAX } else { !2 });
        lab.read(thread(1), 0);
    });
    flipped(FindingKind::Race, |lab, same_warp| {
        lab.write(thread(0), 0, 1.0);
        lab.machine.warp_sync(0, 0, u32::MAX);
        lab.read(thread(if same_warp { 31 } else { 32 }), 0);
    });
}

#[test]
fn atomics_do_not_race_with_each_other() {
    flipped(FindingKind::Race, |lab, atomic| {
        lab.write(thread(0), 0, 0.0);
        lab.sync();
        for who in all() {
            let site = lab.site();
            if atomic || who.thread != 20 {
                let change = &mut |old: u64| old + 1;
                lab.machine.atomic(who, Space::Shared, 0, 4, Order::Relaxed, change, site).unwrap();
            } else {
                lab.write(who, 0, 1.0);
            }
        }
        lab.sync();
        lab.read(thread(0), 0);
    });
}

#[test]
fn a_flag_orders_with_release_and_acquire() {
    flipped(FindingKind::Race, |lab, acquire| {
        let (flag, site) = (64, lab.site());
        lab.write(thread(0), 0, 1.0);
        let one = 1u32.to_le_bytes();
        lab.machine.store(thread(0), Space::Shared, flag, &one, Order::Release, site).unwrap();
        let order = if acquire { Order::Acquire } else { Order::Relaxed };
        lab.machine.load(thread(40), Space::Shared, flag, &mut [0; 4], order, site).unwrap();
        lab.read(thread(40), 0);
    });
}

#[test]
fn fences_order_around_relaxed_accesses() {
    flipped(FindingKind::Race, |lab, fence| {
        let (flag, site) = (64, lab.site());
        lab.write(thread(0), 0, 1.0);
        if fence {
            lab.fence(thread(0), FenceKind::Memory);
        }
        let one = 1u32.to_le_bytes();
        lab.machine.store(thread(0), Space::Shared, flag, &one, Order::Relaxed, site).unwrap();
        lab.machine.load(thread(40), Space::Shared, flag, &mut [0; 4], Order::Relaxed, site).unwrap();
        lab.fence(thread(40), FenceKind::Memory);
        lab.read(thread(40), 0);
    });
}

#[test]
fn what_is_read_was_written() {
    flipped(FindingKind::Uninitialised, |lab, write| {
        if write {
            lab.write(thread(0), 0, 1.0);
        }
        lab.read(thread(0), 0);
    });
}
