//! Stores: fences, groups, and the memory that they read and write.

use super::*;

/// Fills a tile and stores it, without the step `left_out`.
fn filled_and_stored(lab: &mut Lab, left_out: &str) {
    lab.fill(0);
    if left_out != "fence" {
        all().for_each(|thread| lab.fence(thread, Fence::ProxyAsync(FencedMemory::All)));
    }
    if left_out != "sync" {
        lab.sync();
    }
    lab.store(thread_id(0), 0);
    if left_out != "commit" {
        lab.commit(thread_id(0));
    }
    if left_out != "wait" {
        lab.wait_groups(thread_id(0), 0, true);
    }
    if left_out != "second sync" {
        lab.sync();
    }
    lab.write(thread_id(9), 36, 1.0);
}

#[test]
fn a_store_of_written_bytes_requires_a_proxy_fence() {
    flipped(FindingKind::MissingProxyFence, |lab, with| {
        filled_and_stored(lab, if with { "" } else { "fence" });
    });
}

#[test]
fn writers_and_store_are_ordered() {
    flipped(FindingKind::Race, |lab, with| filled_and_stored(lab, if with { "" } else { "sync" }));
}

#[test]
fn a_store_is_committed_before_it_is_waited_for() {
    flipped(FindingKind::InFlight, |lab, with| filled_and_stored(lab, if with { "" } else { "commit" }));
}

#[test]
fn a_store_is_waited_for_before_its_tile_is_written() {
    flipped(FindingKind::InFlight, |lab, with| filled_and_stored(lab, if with { "" } else { "wait" }));
}

#[test]
fn the_writer_of_a_stored_tile_must_know_of_the_wait() {
    flipped(FindingKind::InFlight, |lab, with| filled_and_stored(lab, if with { "" } else { "second sync" }));
}

#[test]
fn a_store_is_waited_for_before_the_end() {
    flipped(FindingKind::Leak, |lab, with| filled_and_stored(lab, if with { "" } else { "wait" }));
}

#[test]
fn a_fence_after_the_barrier_does_as_well() {
    flipped(FindingKind::MissingProxyFence, |lab, fence| {
        lab.fill(0);
        lab.sync();
        if fence {
            lab.fence(thread_id(0), Fence::ProxyAsync(FencedMemory::All));
        }
        lab.store(thread_id(0), 0);
        lab.commit(thread_id(0));
        lab.wait_groups(thread_id(0), 0, true);
    });
}

#[test]
fn a_fence_is_of_the_right_space() {
    flipped(FindingKind::MissingProxyFence, |lab, right| {
        lab.fill(0);
        let kind = if right {
            Fence::ProxyAsync(FencedMemory::All)
        } else {
            Fence::ProxyAsync(FencedMemory::Global)
        };
        all().for_each(|thread| lab.fence(thread, kind));
        lab.sync();
        lab.store(thread_id(0), 0);
        lab.commit(thread_id(0));
        lab.wait_groups(thread_id(0), 0, true);
    });
}

#[test]
fn stores_require_earlier_writes() {
    flipped(FindingKind::Uninitialised, |lab, fill| {
        if fill {
            lab.fill(0);
        }
        all().for_each(|thread| lab.fence(thread, Fence::ProxyAsync(FencedMemory::All)));
        lab.sync();
        lab.store(thread_id(0), 0);
        lab.commit(thread_id(0));
        lab.wait_groups(thread_id(0), 0, true);
    });
}

#[test]
fn storing_a_loaded_tile_requires_a_wait_but_no_fence() {
    flipped(FindingKind::ReadBeforeWait, |lab, wait| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        if wait {
            lab.wait(thread_id(0), FULL, false);
        }
        lab.store(thread_id(0), 0);
        lab.commit(thread_id(0));
        lab.wait_groups(thread_id(0), 0, true);
        lab.wait(thread_id(0), FULL, false);
    });
}

#[test]
fn a_tile_is_refilled_when_its_store_has_read_it() {
    flipped(FindingKind::InFlight, |lab, wait| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        lab.wait(thread_id(0), FULL, false);
        lab.store(thread_id(0), 0);
        lab.commit(thread_id(0));
        lab.wait_groups(thread_id(0), if wait { 0 } else { 1 }, true);
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        lab.wait(thread_id(0), FULL, true);
        lab.wait_groups(thread_id(0), 0, true);
    });
}

#[test]
fn a_store_writes_the_tile_late() {
    let mut changed_early = 0;
    for seed in 0..32 {
        let mut lab = Lab::new(seed, 1);
        filled_and_stored(&mut lab, "");
        let mut bytes = [0; 4];
        lab.global.read(lab.tensor + 4, &mut bytes).unwrap();
        lab.wait_groups(thread_id(0), 0, false);
        lab.global.read(lab.tensor + 256 + 4, &mut bytes).unwrap();
        assert_eq!(f32::from_le_bytes(bytes), 17.0);
        changed_early += u32::from(!lab.machine.engines.is_idle());
    }
    assert_eq!(changed_early, 0);
}

#[test]
fn a_store_without_a_wait_may_store_later_values() {
    let late = (0..32).any(|seed| {
        let mut lab = Lab::new(seed, 1);
        filled_and_stored(&mut lab, "wait");
        let (global, tensor) = (Arc::clone(&lab.global), lab.tensor);
        lab.end();
        let mut bytes = [0; 4];
        global.read(tensor + 36, &mut bytes).unwrap();
        f32::from_le_bytes(bytes) == 1.0
    });
    assert!(late);
}

/// Stores a tile, waits until it has been written or only until it has been read, and accesses the
/// stored data.
fn stored_and_touched(touch: fn(&mut Lab, u64)) {
    flipped(FindingKind::InFlight, |lab, correct| {
        filled_and_stored(lab, "");
        lab.wait_groups(thread_id(0), 0, !correct);
        let tensor = lab.tensor;
        touch(lab, tensor + 256);
        lab.wait_groups(thread_id(0), 0, false);
    });
}

#[test]
fn stored_bytes_are_read_after_they_are_written() {
    stored_and_touched(|lab, at| {
        lab.barrier();
        let (mut bytes, site) = ([0; 4], lab.site());
        let _ = lab.machine.load(
            Actor { thread: thread_id(9), site },
            Pointer::new(Space::Global, at),
            &mut bytes,
            Order::Weak,
        );
    });
}

#[test]
fn stored_bytes_are_overwritten_after_they_are_written() {
    stored_and_touched(|lab, at| {
        let site = lab.site();
        let _ = lab.machine.store(
            Actor { thread: thread_id(0), site },
            Pointer::new(Space::Global, at + 60),
            &[1; 4],
            Order::Weak,
        );
    });
}

#[test]
fn stored_bytes_are_loaded_after_they_are_written() {
    stored_and_touched(|lab, _| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, Some(TILE));
        let action = TensorAction::Load { space: Space::Shared, tile: 2048, barrier: FULL, multicast: None };
        let _ = lab.copy(thread_id(0), [12, 12, 0, 0, 0], action);
        lab.wait(thread_id(0), FULL, false);
    });
}

#[test]
fn a_wait_for_earlier_groups_says_nothing_of_later_ones() {
    flipped(FindingKind::InFlight, |lab, correct| {
        filled_and_stored(lab, "");
        let (pending, tensor) = (u32::from(!correct), lab.tensor);
        lab.wait_groups(thread_id(0), pending, false);
        let (mut bytes, site) = ([0; 4], lab.site());
        let _ = lab.machine.load(
            Actor { thread: thread_id(0), site },
            Pointer::new(Space::Global, tensor),
            &mut bytes,
            Order::Weak,
        );
    });
}

#[test]
fn bytes_beside_a_stored_box_are_free() {
    for seed in 0..32 {
        let mut lab = Lab::new(seed, 1);
        filled_and_stored(&mut lab, "");
        let (mut bytes, tensor) = ([0; 4], lab.tensor);
        for beside in [64, 252, 256 + 64, 16 * 256] {
            let site = lab.site();
            let _ = lab.machine.load(
                Actor { thread: thread_id(0), site },
                Pointer::new(Space::Global, tensor + beside),
                &mut bytes,
                Order::Weak,
            );
        }
        let findings = lab.end();
        assert!(findings.is_empty(), "{}", findings.render(&Default::default()));
    }
}

/// Copies a tile out twice to the same place. In between it waits until the first copy is
/// `written`, or only until its tile has been read.
fn copied_out_twice(lab: &mut Lab, first: TensorAction, second: TensorAction, written: bool) {
    lab.fill(0);
    all().for_each(|thread| lab.fence(thread, Fence::ProxyAsync(FencedMemory::All)));
    lab.sync();
    for (action, read) in [(first, !written), (second, false)] {
        let _ = lab.copy(thread_id(0), [0; 5], action);
        lab.commit(thread_id(0));
        lab.wait_groups(thread_id(0), 0, read);
    }
}

const fn reduce(with: Reduction) -> TensorAction {
    TensorAction::Reduce { tile: 0, with }
}

#[test]
fn a_store_to_the_same_location_waits_for_the_first() {
    let store = TensorAction::Store { tile: 0 };
    for (first, second) in [(store, store), (store, reduce(Reduction::Add)), (reduce(Reduction::Add), store)]
    {
        flipped(FindingKind::InFlight, |lab, written| copied_out_twice(lab, first, second, written));
    }
}

#[test]
fn equal_reductions_commute() {
    for seed in 0..32 {
        let mut lab = Lab::new(seed, 1);
        copied_out_twice(&mut lab, reduce(Reduction::Add), reduce(Reduction::Add), false);
        let findings = lab.end();
        assert!(findings.is_empty(), "{}", findings.render(&Default::default()));
    }
}

#[test]
fn a_map_must_not_change_while_copies_use_it() {
    for loads in [true, false] {
        flipped(FindingKind::InFlight, |lab, waits| {
            lab.fill(0);
            all().for_each(|thread| lab.fence(thread, Fence::ProxyAsync(FencedMemory::All)));
            lab.barrier();
            let (at, site) = (lab.tensor, lab.site());
            let action = if loads {
                lab.arrive(thread_id(0), FULL, Some(TILE));
                TensorAction::Load { space: Space::Shared, tile: 0, barrier: FULL, multicast: None }
            } else {
                TensorAction::Store { tile: 0 }
            };
            let copy = lab.named(Some(at), [0; 5], action);
            lab.machine.tensor_copy(Actor { thread: thread_id(0), site }, &copy).unwrap();
            let changes = |lab: &mut Lab| {
                lab.machine
                    .map_changed(Actor { thread: thread_id(0), site }, Pointer::new(Space::Global, at));
            };
            if !waits {
                changes(lab);
            }
            if loads {
                lab.wait(thread_id(0), FULL, false);
            } else {
                lab.commit(thread_id(0));
                lab.wait_groups(thread_id(0), 0, true);
            }
            changes(lab);
        });
    }
}
