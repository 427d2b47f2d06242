//! Flags between ranks: scopes, releases, reuse, and copies into the memory of a peer.

use super::{END, PROLOGUE, SIGNAL, SUM, WAIT, WRITE, clean, found, kernel, sum};
use ptx_sim::FindingKind::{Deadlock, MissingProxyFence, Race, ScopeTooNarrow};

const NARROW: &str = "device scope does not reach from rank";

#[test]
fn ranks_reduce_after_a_flag_of_system_scope() {
    for ranks in 2..=4 {
        let text = kernel(&[WRITE, SIGNAL, WAIT, SUM]);
        clean(&text, ranks, 1, |thread| sum(ranks, thread));
        clean(&text, ranks, 3, |thread| sum(ranks, thread));
    }
}

#[test]
fn device_scope_is_enough_in_a_team_of_one() {
    let text = kernel(&[WRITE, SIGNAL, WAIT, SUM]).replace(".sys.", ".gpu.");
    clean(&text, 1, 2, |thread| sum(1, thread));
}

#[test]
fn device_scope_does_not_reach_another_rank() {
    let right = [WRITE, SIGNAL, WAIT, SUM];
    let signals = SIGNAL.replace(".sys.", ".gpu.");
    let waits = WAIT.replace(".sys.", ".gpu.");
    for parts in [[WRITE, &signals, &waits, SUM], [WRITE, &signals, WAIT, SUM], [WRITE, SIGNAL, &waits, SUM]]
    {
        let text = found(&kernel(&parts), 2, ScopeTooNarrow);
        assert!(text.contains(NARROW) && text.contains("use system scope"), "{text}");
        assert!(text.contains("of rank 0") && text.contains("of rank 1"), "{text}");
    }
    clean(&kernel(&right), 2, 1, |thread| sum(2, thread));
}

#[test]
fn fences_of_device_scope_do_not_reach_another_rank() {
    let parts = |scope: &str| {
        let fence = format!("fence.acq_rel.{scope};");
        let signal = SIGNAL.replace("red.release.sys", &format!("{fence} red.relaxed.sys"));
        let wait = WAIT.replace("acquire", "relaxed").replace("ARRIVED$:", &format!("{fence} ARRIVED$:"));
        kernel(&[WRITE, &signal, &wait, SUM])
    };
    clean(&parts("sys"), 3, 1, |thread| sum(3, thread));
    let text = found(&parts("gpu"), 2, ScopeTooNarrow);
    assert!(text.contains(NARROW), "{text}");
}

#[test]
fn flags_need_a_release_and_an_acquire() {
    let signal = SIGNAL.replace("release", "relaxed");
    let text = found(&kernel(&[WRITE, &signal, WAIT, SUM]), 2, Race);
    assert!(text.contains("nothing else orders accesses of different ranks"), "{text}");
    let wait = WAIT.replace("acquire", "relaxed");
    found(&kernel(&[WRITE, SIGNAL, &wait, SUM]), 2, Race);
}

#[test]
fn data_is_reused_after_all_ranks_have_read_it() {
    let twice =
        WAIT.replace("setp.lt.u32 %p2, %r1, %ranks", "mul.lo.u32 %r4, %ranks, 2; setp.lt.u32 %p2, %r1, %r4");
    let again = "add.u32 %r3, %r3, 1; st.global.u32 [%data], %r3;";
    clean(&kernel(&[WRITE, SIGNAL, WAIT, SUM, SIGNAL, &twice, again]), 3, 1, |thread| sum(3, thread));
    let text = found(&kernel(&[WRITE, SIGNAL, WAIT, SUM, again]), 2, Race);
    assert!(text.contains("may still"), "{text}");
}

#[test]
fn a_rank_that_ends_early_is_named() {
    let early = "setp.eq.u32 %p3, %rank, 1; @%p3 bra END;";
    let text = found(&kernel(&[early, WRITE, SIGNAL, WAIT, SUM]), 3, Deadlock);
    assert!(
        text.contains("all blocks of rank 1 have ended") && !text.contains("rank 0 have ended"),
        "{text}"
    );
    assert!(text.contains("of rank 0 waits"), "{text}");
}

#[test]
fn ranks_that_wait_for_each_other_are_deadlocked() {
    let text = found(&kernel(&[WRITE, WAIT, SIGNAL, SUM]), 2, Deadlock);
    assert!(!text.contains("have ended") && text.contains("before it waits itself"), "{text}");
}

/// Each rank copies 128 bytes from shared memory into the data of the next rank, and then signals.
fn copying(wait: &str, fence: &str) -> String {
    let copy = format!(
        "mad.lo.u32 %r3, %rank, 100, %t; mov.u32 %r4, tile; mad.lo.u32 %r5, %t, 4, %r4; st.shared.u32 [%r5], %r3;
         {fence} bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra COPIED;
         add.u32 %peer, %rank, 1; rem.u32 %peer, %peer, %ranks;
         mad.wide.u32 %theirs, %peer, 16, %table; ld.global.u64 %theirs, [%theirs]; add.u64 %theirs, %theirs, %d2;
         cp.async.bulk.global.shared::cta.bulk_group [%theirs], [%r4], 128;
         cp.async.bulk.commit_group; {wait}
     COPIED:"
    );
    kernel(&[&copy, SIGNAL, WAIT, "ld.global.u32 %r2, [%data]; st.global.u32 [%out], %r2;"])
}

#[test]
fn copies_into_a_peer_are_complete_before_the_flag() {
    let fence = "fence.proxy.async.shared::cta;";
    let text = copying("cp.async.bulk.wait_group 0;", fence);
    for seed in super::SEEDS {
        let mut lab = super::Lab::new(&text, 3, 2);
        let report = lab.run(seed);
        assert!(report.findings.is_empty(), "seed {seed}:\n{}", lab.render(&report));
        for (rank, out) in (0..).zip(&lab.out) {
            let wanted: Vec<u32> = (0..32).map(|thread| (rank + 2) % 3 * 100 + thread).collect();
            assert_eq!(lab.words(*out), wanted.repeat(2), "seed {seed}");
        }
    }
    // `.read` only says that the tile may be overwritten.
    let text = found(&copying("cp.async.bulk.wait_group.read 0;", fence), 2, Race);
    assert!(text.contains("of rank"), "{text}");
}

/// Each rank writes its data, and loads that of the next rank by a copy.
fn loading(fence: &str) -> String {
    let load = format!(
        "mov.u32 %r4, tile; mov.u32 %r5, full; mad.lo.u32 %r6, %t, 4, %r4; setp.ne.u32 %p1, %t, 0; @%p1 bra LOADED$;
         mbarrier.init.shared::cta.b64 [%r5], 1; fence.mbarrier_init.release.cluster; {fence}
         add.u32 %peer, %rank, 1; rem.u32 %peer, %peer, %ranks;
         mad.wide.u32 %theirs, %peer, 16, %table; ld.global.u64 %theirs, [%theirs]; add.u64 %theirs, %theirs, %d2;
         mbarrier.arrive.expect_tx.shared::cta.b64 %d3, [%r5], 128;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%theirs], 128, [%r5];
     LOADED$:
         bar.sync 0;
     LANDED$:
         mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], 0; @!%p3 bra LANDED$;
         ld.shared.u32 %r2, [%r6]; st.global.u32 [%out], %r2;"
    );
    kernel(&[WRITE, SIGNAL, WAIT, &load])
}

#[test]
fn copies_of_a_peers_data_follow_a_proxy_fence() {
    let text = loading("fence.proxy.async.global;");
    for seed in super::SEEDS {
        let mut lab = super::Lab::new(&text, 3, 1);
        let report = lab.run(seed);
        assert!(report.findings.is_empty(), "seed {seed}:\n{}", lab.render(&report));
        for (rank, out) in (0..).zip(&lab.out) {
            assert!(lab.words(*out).into_iter().eq((0..32).map(|thread| (rank + 1) % 3 * 100 + thread)));
        }
    }
    let text = found(&loading(""), 2, MissingProxyFence);
    assert!(text.contains("of rank 0") && text.contains("of rank 1"), "{text}");
}

#[test]
fn kernels_without_strong_accesses_have_unordered_ranks() {
    let text = format!("{PROLOGUE} ld.global.u64 %theirs, [%table]; st.global.u32 [%theirs], %rank; {END}");
    let text = found(&text, 2, Race);
    assert!(text.contains("of rank 0") && text.contains("of rank 1"), "{text}");
}
