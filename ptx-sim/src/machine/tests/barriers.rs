//! `bar` and `barrier`.

use super::*;

const ALL: BarrierUse =
    BarrierUse { id: BarrierId(0), threads: None, arrive_only: false, aligned: true, vote: false };

#[test]
fn a_warp_comes_to_one_instruction() {
    flipped(FindingKind::DivergentBarrier, |lab, together| {
        let sites = [lab.site(), lab.site()];
        for who in all() {
            let site = sites[usize::from(!together && who.thread.0 % 2 == 1)];
            let _ = lab.machine.barrier(Actor { who, site }, ALL);
        }
    });
}

#[test]
fn all_threads_come_to_a_barrier_for_all() {
    flipped(FindingKind::DivergentBarrier, |lab, complete| {
        let site = lab.site();
        for who in all().filter(|who| complete || who.thread.0 < 32) {
            let _ = lab.machine.barrier(Actor { who, site }, ALL);
        }
    });
}

#[test]
fn a_barrier_is_of_whole_warps_and_has_a_number() {
    flipped(FindingKind::DivergentBarrier, |lab, whole| {
        let site = lab.site();
        let with = BarrierUse { id: BarrierId(1), threads: Some(if whole { 32 } else { 33 }), ..ALL };
        let _ = lab.machine.barrier(Actor { who: thread(0), site }, with);
    });
    flipped(FindingKind::DivergentBarrier, |lab, there| {
        let site = lab.site();
        let _ = lab.machine.barrier(
            Actor { who: thread(0), site },
            BarrierUse { id: BarrierId(if there { 15 } else { 16 }), ..ALL },
        );
        for who in all().skip(1) {
            let _ = lab.machine.barrier(Actor { who, site }, BarrierUse { id: BarrierId(15), ..ALL });
        }
    });
}

#[test]
fn those_who_come_agree_on_their_number() {
    flipped(FindingKind::DivergentBarrier, |lab, agree| {
        let site = lab.site();
        for who in all() {
            let threads = Some(if agree || who.thread.0 < 32 { 64 } else { 32 });
            let _ = lab.machine.barrier(Actor { who, site }, BarrierUse { threads, id: BarrierId(2), ..ALL });
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
            lab.write(thread(0), 0, 1.0);
        }
        for who in all().take(32) {
            assert_eq!(lab.machine.barrier(Actor { who, site }, arrive), Ok(Poll::Ready));
        }
        if !arrive_after {
            lab.write(thread(0), 0, 1.0);
        }
        for who in all().skip(32) {
            let _ = lab.machine.barrier(Actor { who, site }, wait);
        }
        assert_eq!(lab.machine.barrier(Actor { who: thread(32), site }, wait), Ok(Poll::Ready));
        lab.read(thread(32), 0);
    });
}

#[test]
fn votes_are_counted() {
    let mut lab = Lab::new(0, 1);
    let site = lab.site();
    for who in all() {
        let _ = lab.machine.barrier(Actor { who, site }, BarrierUse { vote: who.thread.0 % 4 == 0, ..ALL });
    }
    for who in all().take(63) {
        assert_eq!(lab.machine.barrier(Actor { who, site }, ALL), Ok(Poll::Ready));
        assert_eq!(lab.machine.barrier_votes(who), Votes { yes: 16, all: 64 });
    }
    assert!(lab.end().is_empty());
}

#[test]
fn two_barriers_wait_for_each_other() {
    let mut lab = Lab::new(0, 1);
    let site = lab.site();
    let mut waiting = Vec::new();
    for who in all() {
        let id = BarrierId(who.thread.0 / 32);
        assert_eq!(lab.machine.barrier(Actor { who, site }, BarrierUse { id, ..ALL }), Ok(Poll::Blocked));
        waiting.push(Waiting { who, what: WaitingFor::Barrier(id), site });
    }
    assert!(!lab.machine.let_time_pass());
    let _stop = lab.machine.deadlocked(&waiting);
    let text = lab.machine.finish().render(&Default::default());
    assert!(text.contains("threads 0 to 31 wait at barrier 0, where 32 have arrived"), "{text}");
    assert!(text.contains("threads 32 to 63 wait at barrier 1, where 32 have arrived"), "{text}");
}
