//! Loads: waits, refills, fences.

use super::*;

#[test]
fn a_read_requires_a_wait() {
    flipped(FindingKind::ReadBeforeWait, |lab, wait| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        if wait {
            assert!(lab.wait(thread_id(5), FULL, false));
        }
        let value = lab.read(thread_id(5), 4);
        assert!(!wait || value == 16.0 * 64.0 + 17.0);
        lab.wait(thread_id(0), FULL, false);
    });
}

#[test]
fn a_wait_is_for_the_right_phase() {
    flipped(FindingKind::ReadBeforeWait, |lab, right| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        lab.wait(thread_id(5), FULL, !right);
        lab.read(thread_id(5), 0);
        lab.wait(thread_id(0), FULL, false);
    });
}

#[test]
fn the_thread_that_waits_is_the_one_that_reads() {
    flipped(FindingKind::ReadBeforeWait, |lab, sync| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        lab.wait(thread_id(0), FULL, false);
        if sync {
            lab.sync();
        }
        lab.read(thread_id(9), 0);
    });
}

#[test]
fn readers_release_before_a_refill() {
    flipped(FindingKind::RefillBeforeRelease, |lab, release| {
        lab.init(thread_id(0), EMPTY, if release { THREADS } else { THREADS - 1 });
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        for thread in all() {
            lab.wait(thread, FULL, false);
            lab.read(thread, u64::from(thread.index.0) * 4);
            lab.fence(thread, Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)));
            if release || thread.index.0 != 3 {
                lab.arrive(thread, EMPTY, None);
            }
        }
        lab.wait(thread_id(0), EMPTY, false);
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        lab.wait(thread_id(0), FULL, true);
    });
}

#[test]
fn a_load_is_complete_before_the_next_into_its_tile() {
    flipped(FindingKind::InFlight, |lab, wait| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        if wait {
            lab.wait(thread_id(0), FULL, false);
        }
        lab.load(thread_id(0), 0);
        if wait {
            lab.arrive(thread_id(0), FULL, Some(TILE));
        }
        lab.wait(thread_id(0), FULL, wait);
    });
}

#[test]
fn nobody_writes_where_a_load_lands() {
    flipped(FindingKind::InFlight, |lab, wait| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        if wait {
            lab.wait(thread_id(7), FULL, false);
        }
        lab.write(thread_id(7), 12, 1.0);
        lab.wait(thread_id(0), FULL, false);
    });
}

#[test]
fn a_load_over_written_bytes_requires_a_proxy_fence() {
    flipped(FindingKind::MissingProxyFence, |lab, fence| {
        lab.fill(0);
        if fence {
            all().for_each(|thread| lab.fence(thread, Fence::ProxyAsync(FencedMemory::All)));
        }
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        lab.wait(thread_id(0), FULL, false);
    });
}

#[test]
fn the_target_is_poison_until_the_load_lands() {
    for seed in 0..32 {
        let mut lab = Lab::with(seed, 1, Checks::NONE, matrix);
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        assert!(lab.read(thread_id(0), 0).is_nan());
        assert!(lab.wait(thread_id(0), FULL, false));
        for word in 0..TILE / 4 {
            let (row, column) = (word / 16, word % 16);
            let wanted = ((16 + row) * 64 + 16 + column) as f32;
            assert_eq!(lab.read(thread_id(0), u64::from(word) * 4), wanted);
        }
    }
}

#[test]
fn pieces_land_independently() {
    let seen = (0..64).any(|seed| {
        let mut lab = Lab::with(seed, 1, Checks::NONE, matrix);
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        while lab.machine.let_time_pass() {
            let landed = (0..64).filter(|unit| !lab.read(thread_id(0), unit * 16).is_nan()).count();
            if (1..64).contains(&landed) {
                return true;
            }
        }
        false
    });
    assert!(seen);
}

#[test]
fn a_load_is_waited_for_before_the_end() {
    flipped(FindingKind::Leak, |lab, wait| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        if wait {
            lab.wait(thread_id(0), FULL, false);
        }
    });
}

/// One thread writes global memory that another one then loads, with or without a fence by either
/// thread.
fn written_and_loaded(lab: &mut Lab, fence: Option<(u32, Fence)>) {
    lab.barrier();
    let (site, tensor) = (lab.site(), lab.tensor);
    let location = tensor + (16 * 64 + 17) * 4;
    let _ = lab.machine.store(
        Actor { thread: thread_id(7), site },
        Pointer::new(Space::Global, location),
        &1.5f32.to_le_bytes(),
        Order::Weak,
    );
    let by = |lab: &mut Lab, number: u32| {
        if let Some((thread, kind)) = fence
            && thread == number
        {
            lab.fence(thread_id(thread), kind);
        }
    };
    by(lab, 7);
    lab.sync();
    by(lab, 0);
    lab.arrive(thread_id(0), FULL, Some(TILE));
    lab.load(thread_id(0), 0);
    lab.wait(thread_id(0), FULL, false);
}

#[test]
fn a_load_of_bytes_written_in_global_memory_requires_a_proxy_fence() {
    for right in [
        (7, Fence::ProxyAsync(FencedMemory::Global)),
        (7, Fence::ProxyAsync(FencedMemory::All)),
        (0, Fence::ProxyAsync(FencedMemory::Global)),
    ] {
        for wrong in [
            None,
            Some((7, Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)))),
            Some((1, Fence::ProxyAsync(FencedMemory::Global))),
        ] {
            flipped(FindingKind::MissingProxyFence, |lab, correct| {
                written_and_loaded(lab, if correct { Some(right) } else { wrong });
            });
        }
    }
}
