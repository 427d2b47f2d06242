//! Stores: fences, groups, what they read and write.

use super::*;

/// Fills a tile and stores it, with the step `left_out` left out.
fn filled_and_stored(lab: &mut Lab, left_out: &str) {
    lab.fill(0);
    if left_out != "fence" {
        all().for_each(|who| lab.fence(who, FenceKind::ProxyAsync));
    }
    if left_out != "sync" {
        lab.sync();
    }
    lab.store(thread(0), 0);
    if left_out != "commit" {
        lab.commit(thread(0));
    }
    if left_out != "wait" {
        lab.wait_groups(thread(0), 0, true);
    }
    if left_out != "second sync" {
        lab.sync();
    }
    lab.write(thread(9), 36, 1.0);
}

#[test]
fn a_fence_comes_between_writes_and_a_store_of_them() {
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
fn who_writes_a_stored_tile_knows_of_the_wait() {
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
            lab.fence(thread(0), FenceKind::ProxyAsync);
        }
        lab.store(thread(0), 0);
        lab.commit(thread(0));
        lab.wait_groups(thread(0), 0, true);
    });
}

#[test]
fn a_fence_is_of_the_right_space() {
    flipped(FindingKind::MissingProxyFence, |lab, right| {
        lab.fill(0);
        let kind = if right { FenceKind::ProxyAsync } else { FenceKind::ProxyAsyncGlobal };
        all().for_each(|who| lab.fence(who, kind));
        lab.sync();
        lab.store(thread(0), 0);
        lab.commit(thread(0));
        lab.wait_groups(thread(0), 0, true);
    });
}

#[test]
fn what_is_stored_was_written() {
    flipped(FindingKind::Uninitialised, |lab, fill| {
        if fill {
            lab.fill(0);
        }
        all().for_each(|who| lab.fence(who, FenceKind::ProxyAsync));
        lab.sync();
        lab.store(thread(0), 0);
        lab.commit(thread(0));
        lab.wait_groups(thread(0), 0, true);
    });
}

#[test]
fn what_was_loaded_is_stored_without_a_fence_but_after_a_wait() {
    flipped(FindingKind::ReadBeforeWait, |lab, wait| {
        lab.barrier();
        lab.arrive(thread(0), FULL, Some(TILE));
        lab.load(thread(0), 0);
        if wait {
            lab.wait(thread(0), FULL, false);
        }
        lab.store(thread(0), 0);
        lab.commit(thread(0));
        lab.wait_groups(thread(0), 0, true);
        lab.wait(thread(0), FULL, false);
    });
}

#[test]
fn a_tile_is_refilled_when_its_store_has_read_it() {
    flipped(FindingKind::InFlight, |lab, wait| {
        lab.barrier();
        lab.arrive(thread(0), FULL, Some(TILE));
        lab.load(thread(0), 0);
        lab.wait(thread(0), FULL, false);
        lab.store(thread(0), 0);
        lab.commit(thread(0));
        lab.wait_groups(thread(0), if wait { 0 } else { 1 }, true);
        lab.arrive(thread(0), FULL, Some(TILE));
        lab.load(thread(0), 0);
        lab.wait(thread(0), FULL, true);
        lab.wait_groups(thread(0), 0, true);
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
        lab.wait_groups(thread(0), 0, false);
        lab.global.read(lab.tensor + 256 + 4, &mut bytes).unwrap();
        assert_eq!(f32::from_le_bytes(bytes), 17.0);
        changed_early += u32::from(!lab.machine.engine.is_idle());
    }
    assert_eq!(changed_early, 0);
}

#[test]
fn a_store_that_is_not_waited_for_stores_what_comes_later() {
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
