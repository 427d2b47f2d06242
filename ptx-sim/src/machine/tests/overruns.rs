//! A wait for a phase must happen before the next phase completes.

use super::*;

/// All threads wait for phase 0, and `next` completes phase 1.
fn all_wait(lab: &mut Lab, next: impl Fn(&mut Lab)) {
    lab.barrier();
    lab.arrive(thread(0), FULL, None);
    all().for_each(|who| assert!(lab.wait(who, FULL, false)));
    next(lab);
    all().for_each(|who| assert!(lab.wait(who, FULL, true)));
}

#[test]
fn threads_meet_before_the_next_phase_ends() {
    flipped(FindingKind::Overrun, |lab, meet| {
        all_wait(lab, |lab| {
            if meet {
                lab.sync();
            }
            lab.arrive(thread(0), FULL, None);
        });
    });
}

#[test]
fn each_thread_that_waits_arrives_before_the_next_phase_ends() {
    flipped(FindingKind::Overrun, |lab, each| {
        lab.init(thread(0), EMPTY, if each { THREADS } else { THREADS - 1 });
        all_wait(lab, |lab| {
            for who in all().filter(|who| each || who.thread.0 != 9) {
                lab.arrive(who, EMPTY, None);
            }
            lab.wait(thread(0), EMPTY, false);
            lab.arrive(thread(0), FULL, None);
        });
    });
}

#[test]
fn a_wait_that_comes_too_late_is_one_too() {
    flipped(FindingKind::Overrun, |lab, in_time| {
        lab.barrier();
        lab.arrive(thread(0), FULL, None);
        lab.wait(thread(0), FULL, false);
        if in_time {
            lab.wait(thread(5), FULL, false);
            lab.sync();
        }
        lab.arrive(thread(0), FULL, None);
        lab.wait(thread(0), FULL, true);
        if in_time {
            lab.wait(thread(5), FULL, true);
        } else {
            // Phase 0 is complete, but so is phase 1: the mbarrier has the parity of the start
            // again.
            let site = lab.site();
            let phase = Phase::Parity(false);
            let complete = lab.machine.mbarrier_test_wait(
                Actor { who: thread(5), site },
                Pointer::new(Space::Shared, FULL),
                PhaseWait { phase, semantics: Semantics::ACQUIRE },
            );
            assert_eq!(complete, Ok(false));
        }
    });
}

#[test]
fn a_state_names_its_phase() {
    flipped(FindingKind::Overrun, |lab, meet| {
        lab.barrier();
        let site = lab.site();
        let state = lab
            .machine
            .mbarrier_arrive(Actor { who: thread(0), site }, Pointer::new(Space::Shared, FULL), Arrive::ONE)
            .unwrap();
        let site = lab.site();
        let wait = |lab: &mut Lab, who| {
            let phase = Phase::State(state);
            lab.machine.mbarrier_test_wait(
                Actor { who, site },
                Pointer::new(Space::Shared, FULL),
                PhaseWait { phase, semantics: Semantics::ACQUIRE },
            )
        };
        all().for_each(|who| assert_eq!(wait(lab, who), Ok(true)));
        if meet {
            lab.sync();
        }
        lab.arrive(thread(0), FULL, None);
    });
}

#[test]
fn a_fresh_mbarrier_is_asked_before_its_first_phase_ends() {
    flipped(FindingKind::Overrun, |lab, in_time| {
        lab.barrier();
        if in_time {
            assert!(lab.wait(thread(5), FULL, true));
        }
        if in_time {
            lab.sync();
        }
        lab.arrive(thread(0), FULL, None);
        lab.wait(thread(0), FULL, false);
        if !in_time {
            let (site, phase) = (lab.site(), Phase::Parity(true));
            let _ = lab.machine.mbarrier_test_wait(
                Actor { who: thread(5), site },
                Pointer::new(Space::Shared, FULL),
                PhaseWait { phase, semantics: Semantics::ACQUIRE },
            );
        }
    });
}

/// Thread 0 arms the next phase, and the copy that completes it is issued by a thread that knows of
/// all waits.
#[test]
fn a_copy_tells_what_was_over_when_it_was_issued() {
    flipped(FindingKind::Overrun, |lab, knows| {
        lab.init(thread(0), EMPTY, 1);
        lab.barrier();
        lab.arrive(thread(0), FULL, None);
        lab.wait(thread(0), FULL, false);
        lab.arrive(thread(0), FULL, Some(TILE));
        lab.wait(thread(5), FULL, false);
        if knows {
            lab.arrive(thread(5), EMPTY, None);
            lab.wait(thread(9), EMPTY, false);
        }
        lab.load(thread(9), 0);
        lab.wait(thread(0), FULL, true);
    });
}

/// Copies complete the phases of two mbarriers alternately, and nothing else orders the waits.
#[test]
fn copies_tell_on_what_copies_have_told() {
    flipped(FindingKind::Overrun, |lab, knows| {
        let load = |tile: u64, barrier: u64| TensorAction::Load {
            space: Space::Shared,
            tile,
            barrier,
            multicast: None,
        };
        lab.init(thread(0), EMPTY, 1);
        lab.barrier();
        lab.arrive(thread(0), FULL, None);
        lab.wait(thread(0), FULL, false);
        lab.arrive(thread(0), FULL, Some(TILE));
        lab.arrive(thread(0), EMPTY, Some(TILE));
        lab.wait(thread(5), FULL, false);
        let who = if knows { thread(5) } else { thread(0) };
        lab.copy(who, [0; 5], load(0, EMPTY)).unwrap();
        lab.wait(thread(9), EMPTY, false);
        lab.copy(thread(9), [0; 5], load(1024, FULL)).unwrap();
        lab.wait(thread(0), FULL, true);
    });
}

#[test]
fn a_thread_may_wait_and_complete_the_next_phase_by_itself() {
    let mut lab = Lab::new(0, 1);
    lab.barrier();
    for parity in [false, true, false, true] {
        lab.arrive(thread(0), FULL, Some(TILE));
        lab.load(thread(0), 0);
        lab.wait(thread(0), FULL, parity);
    }
    let findings = lab.end();
    assert!(findings.is_empty(), "{}", findings.render(&Default::default()));
}
