//! Instructions on mbarriers: each form, and the mistakes that are refused at load time or found at
//! run time.

use crate::pairs::{accepted, block, refused};
use ptx_sim::FindingKind;

/// Wraps the body so that thread 0 creates an mbarrier with this count.
fn with_barrier(count: &str, body: &str) -> String {
    format!(
        "setp.eq.u32 %p1, %r1, 0; shl.b32 %r5, %r1, 2; mov.u32 %r6, dyn; add.u32 %r5, %r5, %r6;\n\
         @%p1 mbarrier.init.shared::cta.b64 [dyn+1024], {count}; bar.sync 0; {body}"
    )
}

#[test]
fn a_state_is_of_the_phase_before_its_arrival() {
    let body = with_barrier(
        "64",
        "st.shared.u32 [%r5], %r1; mbarrier.arrive.shared.b64 %d4, [dyn+1024];\n\
         mbarrier.pending_count.b64 %r7, %d4; setp.gt.u32 %p3, %r7, 64; @%p3 trap; setp.eq.u32 %p3, %r7, 0; @%p3 trap;\n\
         wait: mbarrier.test_wait.shared.b64 %p2, [dyn+1024], %d4; @!%p2 bra wait;\n\
         xor.b32 %r8, %r5, 124; ld.shared.u32 %r9, [%r8];",
    );
    block(64, &body).returns(|_, thread| thread ^ 31);
    let unordered = with_barrier(
        "64",
        "st.shared.u32 [%r5], %r1; mbarrier.arrive[[||.relaxed.cta]].shared.b64 %d4, [dyn+1024];\n\
         wait: mbarrier.try_wait[[||.relaxed.cta]].shared.b64 %p2, [dyn+1024], %d4, 1000; @!%p2 bra wait;\n\
         xor.b32 %r8, %r5, 252; ld.shared.u32 %r9, [%r8];",
    );
    let kernel = block(64, &unordered);
    kernel.returns(|_, thread| thread ^ 63);
    kernel.lacks(FindingKind::Race);
}

#[test]
fn an_old_state_is_found() {
    let phase =
        "mbarrier.test_wait.shared.b64 %p2, [dyn+1024], %d5; mbarrier.arrive.shared.b64 %d5, [dyn+1024];\n";
    let body = with_barrier(
        "1",
        &format!(
            "mbarrier.arrive.shared.b64 %d4, [dyn+1024]; mov.u64 %d5, %d4; [[||{phase}]] {phase} mbarrier.test_wait.shared.b64 %p2, [dyn+1024],\n\
             [[%d5||%d4]]; selp.u32 %r9, 1, 0, %p2;"
        ),
    );
    let kernel = block(1, &body);
    kernel.returns(|_, _| 1);
    kernel.lacks(FindingKind::BarrierMisuse);
}

#[test]
fn a_state_is_of_the_same_mbarrier() {
    let body = with_barrier(
        "1",
        "mbarrier.init.shared.b64 [dyn+1032], 1; mbarrier.arrive.shared.b64 %d4, [dyn+[[1024||1032]]];\n\
         mbarrier.test_wait.shared.b64 %p2, [dyn+1024], %d4; selp.u32 %r9, 1, 0, %p2;",
    );
    let kernel = block(1, &body);
    kernel.returns(|_, _| 1);
    kernel.lacks(FindingKind::BarrierMisuse);
}

#[test]
fn a_phase_is_seen_complete_before_anybody_arrives_in_the_next() {
    let body = with_barrier(
        "1",
        "mbarrier.arrive.shared.b64 _, [dyn+1024];\n\
         [[mbarrier.test_wait.parity.shared.b64 %p2, [dyn+1024], 0;]] mbarrier.arrive.shared.b64 _, [dyn+1024];",
    );
    let kernel = block(1, &body);
    kernel.returns(|_, _| 0);
    kernel.lacks(FindingKind::BarrierMisuse);
}

#[test]
fn somebody_is_left_to_arrive() {
    let body = with_barrier("2", "mbarrier.arrive_drop.shared.b64 _, [dyn+1024], [[1||2]];");
    let kernel = block(1, &body);
    kernel.returns(|_, _| 0);
    assert!(kernel.lacks(FindingKind::BarrierMisuse).contains("after which no arrival is expected"));
}

#[test]
fn counts_are_in_their_ranges() {
    for (body, kind) in [
        (with_barrier("[[1||0]]", ""), FindingKind::BarrierMisuse),
        (with_barrier("[[1048575||1048576]]", ""), FindingKind::BarrierMisuse),
        (
            with_barrier("3", "mbarrier.arrive.shared.b64 _, [dyn+1024], [[3||4]];"),
            FindingKind::BarrierMisuse,
        ),
        (
            with_barrier("3", "mov.u32 %r7, [[3||0]]; mbarrier.arrive.shared.b64 _, [dyn+1024], %r7;"),
            FindingKind::BarrierMisuse,
        ),
        (
            with_barrier("3", "mbarrier.arrive.noComplete.release.cta.shared.b64 %d4, [dyn+1024], [[2||3]];"),
            FindingKind::BarrierMisuse,
        ),
        (
            with_barrier(
                "1",
                "mbarrier.expect_tx.relaxed.cta.shared.b64 [dyn+1024], [[1048575||1048576]];\n\
                 mbarrier.complete_tx.shared.b64 [dyn+1024], 1048575;",
            ),
            FindingKind::TransactionBytes,
        ),
        (with_barrier("1", "[[||mbarrier.init.shared.b64 [dyn+1024], 1;]]"), FindingKind::BarrierMisuse),
        (
            with_barrier(
                "1",
                "mbarrier.inval.shared.b64 [dyn+1024]; [[||mbarrier.arrive.shared.b64 _, [dyn+1024];]]",
            ),
            FindingKind::BarrierMisuse,
        ),
        (with_barrier("1", "mbarrier.arrive.shared.b64 _, [dyn+[[1024||1028]]];"), FindingKind::Misaligned),
        (
            with_barrier("1", "cvta.shared.u64 %d6, dyn; mbarrier.arrive.b64 _, [%d[[6||1]]+1024];"),
            FindingKind::OutOfBounds,
        ),
    ] {
        let kernel = block(1, &body);
        kernel.returns(|_, _| 0);
        kernel.lacks(kind);
    }
}

#[test]
fn memory_is_reusable_after_inval() {
    let body = with_barrier(
        "1",
        "[[mbarrier.inval.shared.b64 [dyn+1024];]] st.shared.u32 [dyn+1024], 5; ld.shared.u32 %r9, [dyn+1024];",
    );
    let kernel = block(1, &body);
    kernel.returns(|_, _| 5);
    kernel.lacks(FindingKind::OpaqueAccess);
    let again = with_barrier(
        "1",
        "mbarrier.inval.shared.b64 [dyn+1024]; mbarrier.init.shared.b64 [dyn+1024], 2; mbarrier.arrive.shared.b64 %d4, [dyn+1024], 2;\n\
         mbarrier.test_wait.shared.b64 %p2, [dyn+1024], %d4; selp.u32 %r9, 1, 0, %p2;",
    );
    block(1, &again).returns(|_, _| 1);
}

#[test]
fn dropped_arrivals_are_no_longer_expected() {
    // Warp 1 takes part in the first phase only.
    let body = with_barrier(
        "64",
        "setp.ge.u32 %p3, %r1, 32; @%p3 mbarrier.arrive[[_drop||]].shared.b64 _, [dyn+1024]; @%p3 bra done;\n\
         mbarrier.arrive.shared.b64 _, [dyn+1024];\n\
         first: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 0; @!%p2 bra first;\n\
         mbarrier.arrive.shared.b64 _, [dyn+1024];\n\
         second: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 1; @!%p2 bra second; mov.u32 %r9, 1; done:",
    );
    let kernel = block(64, &body);
    kernel.returns(|_, thread| u32::from(thread < 32));
    kernel.lacks(FindingKind::Deadlock);
    let body = with_barrier(
        "2",
        "mbarrier.arrive_drop.expect_tx.shared.b64 _, [dyn+1024], 16; mbarrier.arrive.shared.b64 %d4, [dyn+1024];\n\
         mbarrier.complete_tx.shared.b64 [dyn+1024], [[16||8]];\n\
         wait: mbarrier.try_wait.shared.b64 %p2, [dyn+1024], %d4; @!%p2 bra wait;\n\
         mbarrier.arrive.shared.b64 %d4, [dyn+1024]; mbarrier.test_wait.shared.b64 %p2, [dyn+1024], %d4; selp.u32 %r9, 1, 0, %p2;",
    );
    let kernel = block(1, &body);
    kernel.returns(|_, _| 1);
    kernel.lacks(FindingKind::TransactionBytes);
}

#[test]
fn forms() {
    accepted(&[
        "mbarrier.init.b64 [%d1], 3; mbarrier.inval.b64 [%d1];",
        "mbarrier.arrive.b64 %d4, [%d1]; mbarrier.arrive.shared.b64 _, [dyn], %r1;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5], 2;",
        "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r5], 16;",
        "mbarrier.arrive_drop.noComplete.shared.b64 %d4, [dyn], 1;",
        "mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 %d4, [dyn], 16;",
        "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r5], 16; mbarrier.complete_tx.b64 [%d1], 16;",
        "mbarrier.test_wait.parity.acquire.cluster.shared.b64 %p1, [dyn], %r1;",
        "mbarrier.try_wait.relaxed.cta.shared::cta.b64 %p1, [dyn], %d4, %r1;",
        "mbarrier.pending_count.b64 %r1, %d4;",
    ]);
    refused(&[
        ("mbarrier.arrive.shared::cluster.b64 %d1, [dyn];", "sink"),
        ("mbarrier.arrive.shared.b64 [dyn];", "operands"),
        ("mbarrier.arrive.noComplete.shared.b64 %d1, [dyn];", "operands"),
        ("mbarrier.arrive.expect_tx.noComplete.shared.b64 %d1, [dyn], 1;", "cannot be combined"),
        ("mbarrier.arrive.expect_tx.shared.b64 _, [dyn];", "operands"),
        ("mbarrier.arrive.acquire.cta.shared.b64 %d1, [dyn];", "release"),
        ("mbarrier.arrive.release.gpu.shared.b64 %d1, [dyn];", "scope"),
        ("mbarrier.arrive.release.shared.b64 %d1, [dyn];", "scope"),
        ("mbarrier.test_wait.release.cta.shared.b64 %p1, [dyn], %d2;", "acquire"),
        ("mbarrier.test_wait.shared::cluster.b64 %p1, [dyn], %d2;", "own block"),
        ("mbarrier.test_wait.shared.b64 %p1, [dyn], %d2, 5;", "operands"),
        ("mbarrier.test_wait.parity.shared.b64 %p1, [dyn], %d2;", "has 64"),
        ("mbarrier.init.shared::cluster.b64 [dyn], 1;", "own block"),
        ("mbarrier.inval.shared::cluster.b64 [dyn];", "own block"),
        ("mbarrier.init.shared.b32 [dyn], 1;", "not supported"),
        ("mbarrier.pending_count.shared.b64 %r1, %d2;", "shared"),
    ]);
}

/// Returns a loop that waits for the phase with this parity.
fn wait(label: &str, order: &str, parity: u32) -> String {
    format!(
        "{label}: mbarrier.try_wait.parity{order}.shared.b64 %p2, [dyn+1024], {parity}; @!%p2 bra {label};\n"
    )
}

#[test]
fn a_wait_must_precede_the_end_of_the_next_phase() {
    let (first, second) = (wait("first", "", 0), wait("second", "", 1));
    let arrive = "@%p1 mbarrier.arrive.shared.b64 _, [dyn+1024];";
    let body =
        with_barrier("1", &format!("{arrive} {first} [[bar.sync 0;]] {arrive} {second} mov.u32 %r9, 5;"));
    let kernel = block(64, &body);
    kernel.returns(|_, _| 5);
    kernel.lacks(FindingKind::Overrun);
}

/// Relaxed arrivals and waits order no memory accesses, but they are ordered among themselves.
#[test]
fn relaxed_arrivals_order_waits() {
    let (first, second) = (wait("first", ".relaxed.cta", 0), wait("second", ".relaxed.cta", 1));
    let arrive = "@%p1 mbarrier.arrive.relaxed.cta.shared.b64 _, [dyn+1024];";
    let all = "mbarrier.arrive.relaxed.cta.shared.b64 _, [dyn+1032];";
    let observed = wait("told", ".relaxed.cta", 0).replace("dyn+1024", "dyn+1032");
    let body = with_barrier(
        "1",
        &format!(
            "@%p1 mbarrier.init.shared.b64 [dyn+1032], 64; bar.sync 0; {arrive} {first} [[{all} {observed}]] {arrive} {second} mov.u32 %r9, 5;"
        ),
    );
    let kernel = block(64, &body);
    kernel.returns(|_, _| 5);
    kernel.lacks(FindingKind::Overrun);
}
