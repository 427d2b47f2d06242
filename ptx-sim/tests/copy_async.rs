//! `cp.async` without `.bulk`: asynchronous, in the generic proxy, and tracked by groups or
//! mbarriers.

use crate::pairs::{accepted, block, input, refused};
use ptx_sim::FindingKind;

/// `%r5` is the address of each thread's word of shared memory, `%d4` that of its word of the
/// input.
const ADDRESSES: &str = "mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d2, %d4;\n\
    mov.u32 %r5, dyn; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6; mov.u32 %r8, dyn;\n";

fn with_addresses(body: &str) -> String {
    format!("{ADDRESSES}{body}")
}

#[test]
fn the_thread_itself_has_to_wait() {
    for wait in [
        "cp.async.wait_all;",
        "cp.async.commit_group; cp.async.wait_group 0;",
        "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;",
    ] {
        let body = with_addresses(&format!(
            "cp.async.ca.shared.global [%r5], [%d4], 4; [[{wait}]] ld.shared.u32 %r9, [%r5]; cp.async.wait_all;"
        ));
        let kernel = block(64, &body);
        kernel.returns(|_, thread| input(thread));
        let text = kernel.lacks(FindingKind::ReadBeforeWait);
        assert!(text.contains("cp.async.wait_group"), "the help names the instruction: {text}");
    }
}

#[test]
fn a_wait_for_all_but_one_group_is_not_for_the_last() {
    let body = with_addresses(
        "cp.async.ca.shared.global [%r5], [%d4], 4; cp.async.commit_group;\n\
         cp.async.ca.shared.global [%r5+512], [%d4+256], 4; cp.async.commit_group;\n\
         cp.async.wait_group 1; ld.shared.u32 %r9, [%r5]; [[cp.async.wait_group 0;]]\n\
         ld.shared.u32 %r10, [%r5+512]; add.u32 %r9, %r9, %r10; cp.async.wait_all;",
    );
    let kernel = block(64, &body);
    kernel.returns(|_, thread| input(thread).wrapping_add(input(thread + 64)));
    kernel.lacks(FindingKind::ReadBeforeWait);
}

#[test]
fn other_threads_need_a_barrier_too() {
    let body = with_addresses(
        "cp.async.ca.shared.global [%r5], [%d4], 4; cp.async.wait_all; [[bar.sync 0;]]\n\
         xor.b32 %r6, %r6, 124; add.u32 %r6, %r6, %r8; ld.shared.u32 %r9, [%r6];",
    );
    let kernel = block(64, &body);
    kernel.returns(|_, thread| input(thread ^ 31));
    kernel.lacks(FindingKind::ReadBeforeWait);
    let late = body.replace("cp.async.wait_all; [[bar.sync 0;]]", "[[cp.async.wait_all;]] bar.sync 0;");
    let late = format!("{late} cp.async.wait_all;");
    let kernel = block(64, &late);
    kernel.returns(|_, thread| input(thread ^ 31));
    kernel.lacks(FindingKind::ReadBeforeWait);
}

#[test]
fn sizes_and_zero_fill() {
    let wide = "mul.wide.u32 %d4, %r1, 16; add.u64 %d4, %d2, %d4; shl.b32 %r6, %r1, 4; mov.u32 %r5, dyn;\n\
        add.u32 %r5, %r5, %r6;\n";
    let body = format!(
        "{wide} cp.async.cg.shared::cta.global.L2::128B [%r5], [%d4], 16; cp.async.wait_all;\n\
         ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [%r5]; xor.b32 %r9, %r10, %r13; xor.b32 %r9, %r9, %r11;"
    );
    block(64, &body).returns(|_, t| input(t * 4) ^ input(t * 4 + 3) ^ input(t * 4 + 1));
    let body = format!(
        "{wide} mov.u32 %r7, 6; cp.async.ca.shared.global [%r5], [%d4], 8, %r7; cp.async.wait_all;\n\
         ld.shared.v2.u32 {{%r10, %r11}}, [%r5]; shl.b32 %r11, %r11, 16; xor.b32 %r9, %r10, %r11;"
    );
    block(64, &body).returns(|_, t| input(t * 4) ^ input(t * 4 + 1) << 16);
    // A source that is not read may have any address.
    let body = format!(
        "{wide} setp.lt.u32 %p1, %r1, 7; @%p1 mov.u64 %d4, 0; mov.u64 %d5, 0;\n\
         cp.async.cg.shared.global.L2::cache_hint [%r5], [%d4], 16, %p1, %d5; cp.async.wait_all; ld.shared.u32 %r9, [%r5];"
    );
    block(64, &body).returns(|_, t| if t < 7 { 0 } else { input(t * 4) });
}

#[test]
fn an_mbarrier_tracks_the_copies() {
    let body = |arrive: &str, count: u32, last: &str| {
        with_addresses(&format!(
            "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [dyn+1024], {count}; bar.sync 0;\n\
             cp.async.ca.shared.global [%r5], [%d4], 4; cp.async.mbarrier.arrive{arrive}.shared.b64 [dyn+1024]; {last}\n\
             xor.b32 %r6, %r6, 124; add.u32 %r6, %r6, %r8; mov.u32 %r10, dyn;\n\
             [[wait: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 0; @!%p2 bra wait;]] ld.shared.u32 %r9, [%r6];\n\
             again: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 0; @!%p2 bra again;"
        ))
    };
    // Without `.noinc` the arrival increments the expected count itself, so the threads' own
    // arrivals complete the phase.
    let own = "mbarrier.arrive.shared.b64 %d5, [dyn+1024];";
    for body in [body(".noinc", 64, ""), body("", 64, own), body(".noinc", 128, own)] {
        let kernel = block(64, &body);
        kernel.returns(|_, thread| input(thread ^ 31));
        kernel.lacks(FindingKind::ReadBeforeWait);
    }
    let text = block(64, &body("[[.noinc]]", 64, "")).lacks(FindingKind::Deadlock);
    assert!(text.contains("64 of 64 arrivals pending"), "{text}");
}

#[test]
fn the_arrival_releases_only_the_copies() {
    let body = with_addresses(
        "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [dyn+1024], 128; bar.sync 0;\n\
         st.shared.u32 [%r5+512], %r1; cp.async.ca.shared.global [%r5], [%d4], 4;\n\
         cp.async.mbarrier.arrive.noinc.shared.b64 [dyn+1024];\n\
         mbarrier.arrive[[||.relaxed.cta]].shared.b64 %d5, [dyn+1024];\n\
         wait: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 0; @!%p2 bra wait;\n\
         xor.b32 %r6, %r6, 124; add.u32 %r6, %r6, %r8; ld.shared.u32 %r9, [%r6+512];",
    );
    let kernel = block(64, &body);
    kernel.returns(|_, thread| thread ^ 31);
    kernel.lacks(FindingKind::Race);
}

#[test]
fn copies_in_flight_must_not_be_touched() {
    // The destination, written by a thread or by another copy.
    for write in ["st.shared.u32 [%r5], %r1;", "cp.async.ca.shared.global [%r5], [%d4+64], 4;"] {
        let body = with_addresses(&format!(
            "cp.async.ca.shared.global [%r5], [%d4], 4; [[cp.async.wait_all;]] {write} cp.async.wait_all;"
        ));
        let kernel = block(32, &body);
        kernel.returns(|_, _| 0);
        kernel.lacks(FindingKind::InFlight);
    }
    // Memory that others still read.
    let body = with_addresses(
        "st.shared.u32 [%r5], %r1; bar.sync 0; xor.b32 %r6, %r6, 124; add.u32 %r6, %r6, %r8;\n\
         ld.shared.u32 %r9, [%r6]; [[bar.sync 0;]] cp.async.ca.shared.global [%r5], [%d4], 4; cp.async.wait_all;",
    );
    let kernel = block(64, &body);
    kernel.returns(|_, thread| thread ^ 31);
    kernel.lacks(FindingKind::RefillBeforeRelease);
}

#[test]
fn a_source_that_changes_is_found_where_the_copy_is_late_enough() {
    let body = with_addresses(
        "cp.async.ca.shared.global [%r5], [%d4], 4; [[cp.async.wait_all;]] st.global.u32 [%d4], 7; cp.async.wait_all;",
    );
    let kernel = block(32, &body);
    kernel.returns(|_, _| 0);
    let found = (0..16)
        .filter(|&seed| {
            kernel.run(false, seed).0.findings.iter().any(|finding| finding.kind == FindingKind::InFlight)
        })
        .count();
    assert!(found >= 12, "under {found} of 16 seeds");
}

#[test]
fn a_store_of_the_asynchronous_proxy_wants_a_fence() {
    let body = with_addresses(
        "cp.async.ca.shared.global [%r5], [%d4], 4; cp.async.wait_all; [[fence.proxy.async.shared::cta;]] bar.sync 0;\n\
         setp.eq.u32 %p1, %r1, 0; @!%p1 bra done;\n\
         cp.async.bulk.global.shared::cta.bulk_group [%d2+1024], [dyn], 256; cp.async.bulk.commit_group;\n\
         cp.async.bulk.wait_group 0; ld.global.u32 %r9, [%d2+1024+252]; done:",
    );
    let kernel = block(64, &body);
    kernel.returns(|_, thread| if thread == 0 { input(63) } else { 0 });
    kernel.lacks(FindingKind::MissingProxyFence);
}

#[test]
fn unfinished_copies_are_reported() {
    let body = with_addresses("cp.async.ca.shared.global [%r5], [%d4], 4; [[cp.async.wait_all;]]");
    let kernel = block(32, &body);
    kernel.returns(|_, _| 0);
    kernel.lacks(FindingKind::Leak);
}

#[test]
fn addresses_and_sizes_are_validated() {
    for (body, kind) in [
        ("cp.async.ca.shared.global [dyn[[||+2]]], [%d2], 4;", FindingKind::Misaligned),
        ("cp.async.cg.shared.global [dyn], [%d2[[||+8]]], 16;", FindingKind::Misaligned),
        ("cp.async.ca.shared.global [dyn+[[0||4096]]], [%d2], 4;", FindingKind::OutOfBounds),
        ("cp.async.ca.shared.global [dyn], [%d2[[||+4096]]], 4;", FindingKind::OutOfBounds),
        ("mov.u32 %r5, [[4||5]]; cp.async.ca.shared.global [dyn], [%d2], 4, %r5;", FindingKind::IllegalCopy),
    ] {
        let body = format!("{body} cp.async.wait_all;");
        let kernel = block(1, &body);
        kernel.returns(|_, _| 0);
        kernel.lacks(kind);
    }
}

#[test]
fn forms() {
    accepted(&[
        "cp.async.ca.shared.global.L2::64B [dyn], [%d2], 8, 4;",
        "cp.async.ca.shared::cta.global [%r5], [%d2+8], 8, !%p1;",
        "cp.async.mbarrier.arrive.b64 [%d2];",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r5];",
    ]);
    refused(&[
        ("cp.async.shared.global [dyn], [%d2], 4;", "not supported"),
        ("cp.async.cg.shared.global [dyn], [%d2], 8;", "16 bytes"),
        ("cp.async.ca.shared.global [dyn], [%d2], 12;", "4, 8 or 16"),
        ("cp.async.ca.shared.global [dyn], [%d2], %r5;", "a number"),
        ("cp.async.ca.shared.global [dyn], [%d2], 4, %d3;", "has 64"),
        ("cp.async.ca.shared.global.L2::cache_hint [dyn], [%d2], 4;", "operands"),
        ("cp.async.wait_group;", "operands"),
        ("cp.async.wait_all 1;", "operands"),
        ("cp.async.commit_group 1;", "operands"),
        ("cp.async.mbarrier.arrive.shared::cluster.b64 [%r5];", "not supported"),
        ("cp.async.mbarrier.arrive.shared.b32 [%r5];", "not supported"),
    ]);
}
