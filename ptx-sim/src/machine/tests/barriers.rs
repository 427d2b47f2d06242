//! `bar` and `barrier`.

use super::*;

const ALL: BarrierUse =
    BarrierUse { id: BarrierId(0), threads: None, arrive_only: false, aligned: true, vote: false };

#[test]
fn a_warp_arrives_at_one_instruction() {
    flipped(FindingKind::DivergentBarrier, |lab, together| {
        let sites = [lab.site(), lab.site()];
        for thread in all() {
            let site = sites[usize::from(!together && thread.index.0 % 2 == 1)];
            let _ = lab.machine.barrier(Actor { thread, site }, ALL);
        }
    });
}

#[test]
fn a_block_barrier_requires_all_threads() {
    flipped(FindingKind::DivergentBarrier, |lab, complete| {
        let site = lab.site();
        for thread in all().filter(|thread| complete || thread.index.0 < 32) {
            let _ = lab.machine.barrier(Actor { thread, site }, ALL);
        }
    });
}

#[test]
fn barriers_count_whole_warps_and_have_valid_numbers() {
    flipped(FindingKind::DivergentBarrier, |lab, whole| {
        let site = lab.site();
        let with = BarrierUse { id: BarrierId(1), threads: Some(if whole { 32 } else { 33 }), ..ALL };
        let _ = lab.machine.barrier(Actor { thread: thread_id(0), site }, with);
    });
    flipped(FindingKind::DivergentBarrier, |lab, there| {
        let site = lab.site();
        let _ = lab.machine.barrier(
            Actor { thread: thread_id(0), site },
            BarrierUse { id: BarrierId(if there { 15 } else { 16 }), ..ALL },
        );
        for thread in all().skip(1) {
            let _ = lab.machine.barrier(Actor { thread, site }, BarrierUse { id: BarrierId(15), ..ALL });
        }
    });
}

#[test]
fn arriving_threads_agree_on_the_count() {
    flipped(FindingKind::DivergentBarrier, |lab, agree| {
        let site = lab.site();
        for thread in all() {
            let threads = Some(if agree || thread.index.0 < 32 { 64 } else { 32 });
            let _ =
                lab.machine.barrier(Actor { thread, site }, BarrierUse { threads, id: BarrierId(2), ..ALL });
        }
    });
}

#[test]
fn producers_arrive_and_consumers_wait() {
    flipped(FindingKind::Race, |lab, arrive_after| {
        let site = lab.site();
        let with = BarrierUse { id: BarrierId(3), threads: Some(64), ..ALL };
        let (arrive, wait) = (BarrierUse { arrive_only: true, ..with }, with);
        if arrive_after {
            lab.write(thread_id(0), 0, 1.0);
        }
        for thread in all().take(32) {
            assert_eq!(lab.machine.barrier(Actor { thread, site }, arrive), Ok(Poll::Ready));
        }
        if !arrive_after {
            lab.write(thread_id(0), 0, 1.0);
        }
        for thread in all().skip(32) {
            let _ = lab.machine.barrier(Actor { thread, site }, wait);
        }
        assert_eq!(lab.machine.barrier(Actor { thread: thread_id(32), site }, wait), Ok(Poll::Ready));
        lab.read(thread_id(32), 0);
    });
}

#[test]
fn votes_are_counted() {
    let mut lab = Lab::new(0, 1);
    let site = lab.site();
    for thread in all() {
        let _ =
            lab.machine.barrier(Actor { thread, site }, BarrierUse { vote: thread.index.0 % 4 == 0, ..ALL });
    }
    for thread in all().take(63) {
        assert_eq!(lab.machine.barrier(Actor { thread, site }, ALL), Ok(Poll::Ready));
        assert_eq!(lab.machine.barrier_votes(thread), Votes { yes: 16, all: 64 });
    }
    assert!(lab.end().is_empty());
}

#[test]
fn two_barriers_wait_for_each_other() {
    let mut lab = Lab::new(0, 1);
    let site = lab.site();
    let mut waiting = Vec::new();
    for thread in all() {
        let id = BarrierId(thread.index.0 / 32);
        assert_eq!(lab.machine.barrier(Actor { thread, site }, BarrierUse { id, ..ALL }), Ok(Poll::Blocked));
        waiting.push(Waiting { thread, event: WaitingFor::Barrier(id), site });
    }
    assert!(!lab.machine.let_time_pass());
    let _stop = lab.machine.deadlocked(&waiting, &[]);
    let text = lab.machine.finish().render(&Default::default());
    assert!(text.contains("threads 0 to 31 wait at barrier 0, where 32 have arrived"), "{text}");
    assert!(text.contains("threads 32 to 63 wait at barrier 1, where 32 have arrived"), "{text}");
}
