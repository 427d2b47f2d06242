//! A wait for a phase must happen before the next phase completes.

use super::*;

/// All threads wait for phase 0, and `next` completes phase 1.
fn all_wait(lab: &mut Lab, next: impl Fn(&mut Lab)) {
    lab.barrier();
    lab.arrive(thread_id(0), FULL, None);
    all().for_each(|thread| assert!(lab.wait(thread, FULL, false)));
    next(lab);
    all().for_each(|thread| assert!(lab.wait(thread, FULL, true)));
}

#[test]
fn threads_synchronise_before_the_next_phase_ends() {
    flipped(FindingKind::Overrun, |lab, intersects| {
        all_wait(lab, |lab| {
            if intersects {
                lab.sync();
            }
            lab.arrive(thread_id(0), FULL, None);
        });
    });
}

#[test]
fn each_thread_that_waits_arrives_before_the_next_phase_ends() {
    flipped(FindingKind::Overrun, |lab, each| {
        lab.init(thread_id(0), EMPTY, if each { THREADS } else { THREADS - 1 });
        all_wait(lab, |lab| {
            for thread in all().filter(|thread| each || thread.index.0 != 9) {
                lab.arrive(thread, EMPTY, None);
            }
            lab.wait(thread_id(0), EMPTY, false);
            lab.arrive(thread_id(0), FULL, None);
        });
    });
}

#[test]
fn a_late_wait_is_an_overrun() {
    flipped(FindingKind::Overrun, |lab, in_time| {
        lab.barrier();
        lab.arrive(thread_id(0), FULL, None);
        lab.wait(thread_id(0), FULL, false);
        if in_time {
            lab.wait(thread_id(5), FULL, false);
            lab.sync();
        }
        lab.arrive(thread_id(0), FULL, None);
        lab.wait(thread_id(0), FULL, true);
        if in_time {
            lab.wait(thread_id(5), FULL, true);
        } else {
            // Phase 0 is complete, but so is phase 1: the mbarrier has the parity of the start
            // again.
            let site = lab.site();
            let phase = Phase::Parity(false);
            let complete = lab.machine.mbarrier_test_wait(
                Actor { thread: thread_id(5), site },
                Pointer::new(Space::Shared, FULL),
                PhaseWait { phase, semantics: Semantics::ACQUIRE },
            );
            assert_eq!(complete, Ok(false));
        }
    });
}

#[test]
fn a_state_names_its_phase() {
    flipped(FindingKind::Overrun, |lab, intersects| {
        lab.barrier();
        let site = lab.site();
        let state = lab
            .machine
            .mbarrier_arrive(
                Actor { thread: thread_id(0), site },
                Pointer::new(Space::Shared, FULL),
                Arrive::ONE,
            )
            .unwrap();
        let site = lab.site();
        let wait = |lab: &mut Lab, thread| {
            let phase = Phase::State(state);
            lab.machine.mbarrier_test_wait(
                Actor { thread, site },
                Pointer::new(Space::Shared, FULL),
                PhaseWait { phase, semantics: Semantics::ACQUIRE },
            )
        };
        all().for_each(|thread| assert_eq!(wait(lab, thread), Ok(true)));
        if intersects {
            lab.sync();
        }
        lab.arrive(thread_id(0), FULL, None);
    });
}

#[test]
fn a_new_mbarrier_is_polled_before_its_first_phase_ends() {
    flipped(FindingKind::Overrun, |lab, in_time| {
        lab.barrier();
        if in_time {
            assert!(lab.wait(thread_id(5), FULL, true));
        }
        if in_time {
            lab.sync();
        }
        lab.arrive(thread_id(0), FULL, None);
        lab.wait(thread_id(0), FULL, false);
        if !in_time {
            let (site, phase) = (lab.site(), Phase::Parity(true));
            let _ = lab.machine.mbarrier_test_wait(
                Actor { thread: thread_id(5), site },
                Pointer::new(Space::Shared, FULL),
                PhaseWait { phase, semantics: Semantics::ACQUIRE },
            );
        }
    });
}

/// Thread 0 arms the next phase, and the copy that completes it is issued by a thread that knows of
/// all waits.
#[test]
fn a_copy_orders_steps_complete_at_its_issue() {
    flipped(FindingKind::Overrun, |lab, knows| {
        lab.init(thread_id(0), EMPTY, 1);
        lab.barrier();
        lab.arrive(thread_id(0), FULL, None);
        lab.wait(thread_id(0), FULL, false);
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.wait(thread_id(5), FULL, false);
        if knows {
            lab.arrive(thread_id(5), EMPTY, None);
            lab.wait(thread_id(9), EMPTY, false);
        }
        lab.load(thread_id(9), 0);
        lab.wait(thread_id(0), FULL, true);
    });
}

/// Copies complete the phases of two mbarriers alternately, and nothing else orders the waits.
#[test]
fn copies_pass_on_knowledge_transitively() {
    flipped(FindingKind::Overrun, |lab, knows| {
        let load = |tile: u64, barrier: u64| TensorAction::Load {
            space: Space::Shared,
            tile,
            barrier,
            multicast: None,
        };
        lab.init(thread_id(0), EMPTY, 1);
        lab.barrier();
        lab.arrive(thread_id(0), FULL, None);
        lab.wait(thread_id(0), FULL, false);
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.arrive(thread_id(0), EMPTY, Some(TILE));
        lab.wait(thread_id(5), FULL, false);
        let thread = if knows { thread_id(5) } else { thread_id(0) };
        lab.copy(thread, [0; 5], load(0, EMPTY)).unwrap();
        lab.wait(thread_id(9), EMPTY, false);
        lab.copy(thread_id(9), [0; 5], load(1024, FULL)).unwrap();
        lab.wait(thread_id(0), FULL, true);
    });
}

#[test]
fn a_thread_may_wait_and_complete_the_next_phase_by_itself() {
    let mut lab = Lab::new(0, 1);
    lab.barrier();
    for parity in [false, true, false, true] {
        lab.arrive(thread_id(0), FULL, Some(TILE));
        lab.load(thread_id(0), 0);
        lab.wait(thread_id(0), FULL, parity);
    }
    let findings = lab.end();
    assert!(findings.is_empty(), "{}", findings.render(&Default::default()));
}
