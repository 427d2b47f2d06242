//! Clusters: their registers and barrier, shared memory of other blocks, remote arrivals, copies
//! and reductions across blocks, multicast.

use crate::pairs::{accepted, cluster, input, refused};
use ptx_sim::FindingKind;

const SYNC: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

/// `%r4` is the address of the thread's word of shared memory, `%r5` that of the same word in the
/// other block, and `%p1` holds in thread 0.
const ADDRESSES: &str = "mov.u32 %r10, dyn; shl.b32 %r11, %r1, 2; add.u32 %r4, %r10, %r11; xor.b32 %r12, %r2, 1;\n\
    mapa.shared::cluster.u32 %r5, %r4, %r12; mapa.shared::cluster.u32 %r13, %r10, %r12; setp.eq.u32 %p1, %r1, 0;\n";

fn two(body: &str) -> String {
    format!("{ADDRESSES}{}", body.replace("SYNC", SYNC))
}

#[test]
fn special_registers_have_the_cluster_position() {
    let body = "mov.u32 %r5, %cluster_ctaid.x; mov.u32 %r6, %cluster_nctaid.x; mov.u32 %r7, %clusterid.x;\n\
        mov.u32 %r8, %nclusterid.x; mov.u32 %r10, %cluster_nctarank; mov.pred %p1, %is_explicit_cluster;\n\
        selp.b32 %r11, 1, 0, %p1; mad.lo.u32 %r9, %r5, 10, %r6; mad.lo.u32 %r9, %r9, 10, %r7;\n\
        mad.lo.u32 %r9, %r9, 10, %r8; mad.lo.u32 %r9, %r9, 10, %r10; mad.lo.u32 %r9, %r9, 10, %r11;";
    cluster(4, 32, body).returns(|block, _| block * 100_000 + 40_141);
}

#[test]
fn addresses_are_mapped_and_back() {
    let body = "mov.u32 %r10, dyn; mapa.shared::cluster.u32 %r5, %r10, 2; getctarank.shared::cluster.u32 %r6, %r5;\n\
        getctarank.shared::cluster.u32 %r7, %r10; cvta.shared.u64 %d4, dyn; mapa.u64 %d5, %d4, 3;\n\
        getctarank.u64 %r8, %d5; mad.lo.u32 %r9, %r6, 10, %r7; mad.lo.u32 %r9, %r9, 10, %r8;\n\
        isspacep.shared::cluster %p1, %d5; isspacep.shared::cta %p2, %d5; @!%p1 mov.u32 %r9, 0;\n\
        setp.eq.u32 %p3, %r2, 3; xor.pred %p4, %p2, %p3; @%p4 mov.u32 %r9, 1;";
    cluster(4, 32, body).returns(|block, _| 203 + block * 10);
}

#[test]
fn another_block_is_read_after_the_barrier_of_the_cluster() {
    let body = two(
        "add.u32 %r6, %r1, 100; st.shared.u32 [%r4], %r6; [[SYNC]] ld.shared::cluster.u32 %r9, [%r5]; SYNC",
    );
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| thread + 100);
    // A thread that reads too early may find memory uninitialised.
    kernel.lacks_one_of(&[FindingKind::Race, FindingKind::Uninitialised]);
    let relaxed = two(
        "st.shared.u32 [%r4], %r1; barrier.cluster.arrive[[||.relaxed]].aligned; barrier.cluster.wait.acquire.aligned;\n\
         ld.shared::cluster.u32 %r9, [%r5]; SYNC",
    );
    let kernel = cluster(2, 64, &relaxed);
    kernel.returns(|_, thread| thread);
    kernel.lacks(FindingKind::Race);
    let apart = two(
        "st.shared.u32 [%r4], %r1; barrier.cluster.arrive.release; mov.u32 %r20, 7; [[barrier.cluster.wait.acquire;]]\n\
         ld.shared::cluster.u32 %r9, [%r5]; [[||barrier.cluster.wait.acquire;]] SYNC",
    );
    let kernel = cluster(2, 64, &apart);
    kernel.returns(|_, thread| thread);
    kernel.lacks_one_of(&[FindingKind::Race, FindingKind::Uninitialised]);
}

#[test]
fn another_block_is_written() {
    let body = two("st.shared::cluster.u32 [%r5], %r2; [[SYNC]] ld.shared.u32 %r9, [%r4]; SYNC");
    let kernel = cluster(2, 64, &body);
    kernel.returns(|block, _| block ^ 1);
    kernel.lacks_one_of(&[FindingKind::Race, FindingKind::Uninitialised]);
    // Through a generic address.
    let body = two(
        "cvta.shared.u64 %d4, dyn; mapa.u64 %d5, %d4, %r12; cvt.u64.u32 %d6, %r11; add.u64 %d5, %d5, %d6;\n\
         st.u32 [%d5], %r2; [[SYNC]] ld.shared.u32 %r9, [%r4]; SYNC",
    );
    let kernel = cluster(2, 64, &body);
    kernel.returns(|block, _| block ^ 1);
    kernel.lacks_one_of(&[FindingKind::Race, FindingKind::Uninitialised]);
}

#[test]
fn a_block_must_outlive_accesses_of_others() {
    let body = two("st.shared.u32 [%r4], %r1; SYNC ld.shared::cluster.u32 %r9, [%r5]; [[SYNC]]");
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| thread);
    kernel.lacks(FindingKind::BlockGone);
    // A single thread that waits keeps the block alive.
    let body =
        two("st.shared.u32 [%r4], %r1; SYNC ld.shared::cluster.u32 %r9, [%r5]; barrier.cluster.arrive;\n\
         [[@%p1 barrier.cluster.wait;]]");
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| thread);
    kernel.lacks(FindingKind::BlockGone);
}

#[test]
fn blocks_count_in_the_memory_of_one() {
    let body = "mov.u32 %r10, dyn; mapa.shared::cluster.u32 %r5, %r10, 0; setp.eq.u32 %p1, %r1, 0;\n\
        setp.eq.and.u32 %p2, %r2, 0, %p1; @%p2 st.shared.u32 [dyn], 5; [[SYNC]]\n\
        setp.ne.u32 %p3, %r2, 0; @%p3 atom.shared::cluster.add.u32 %r6, [%r5], 1; SYNC ld.shared::cluster.u32 %r9, [%r5]; SYNC"
        .replace("SYNC", SYNC);
    let kernel = cluster(4, 64, &body);
    kernel.returns(|_, _| 5 + 3 * 64);
    kernel.lacks_one_of(&[FindingKind::Race, FindingKind::Uninitialised]);
}

#[test]
fn a_thread_arrives_at_the_mbarrier_of_another_block() {
    let body = two(
        "@%p1 mbarrier.init.shared::cta.b64 [dyn+1024], 64; [[SYNC||bar.sync 0;]] st.shared::cluster.u32 [%r5], %r1;\n\
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13+1024];\n\
         wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [dyn+1024], 0; @!%p2 bra wait;\n\
         ld.shared.u32 %r9, [%r4]; SYNC",
    );
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| thread);
    kernel.lacks_one_of(&[FindingKind::BarrierNotVisible, FindingKind::BarrierMisuse]);
    for weaker in [
        body.replace(".arrive.release.cluster", ".arrive[[.release||.relaxed]].cluster"),
        body.replace(".acquire.cluster", "[[.acquire||.relaxed]].cluster"),
    ] {
        let weaker = weaker
            .replace("[[barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;||bar.sync 0;]]", SYNC);
        let kernel = cluster(2, 64, &weaker);
        kernel.returns(|_, thread| thread);
        kernel.lacks(FindingKind::Race);
    }
}

#[test]
fn block_scope_does_not_order_other_blocks() {
    let kernel = |arrive: &str, wait: &str| {
        let body = format!(
            "@%p1 mbarrier.init.shared::cta.b64 [dyn+1024], 64; SYNC st.shared::cluster.u32 [%r5], %r1;\n\
             mbarrier.arrive{arrive}.shared::cluster.b64 _, [%r13+1024];\n\
             wait: mbarrier.try_wait.parity{wait}.shared::cta.b64 %p2, [dyn+1024], 0; @!%p2 bra wait;\n\
             ld.shared.u32 %r9, [%r4]; SYNC"
        );
        two(&body)
    };
    for body in [
        kernel("[[.release.cluster||]]", ".acquire.cluster"),
        kernel("[[.release.cluster||.release.cta]]", ".acquire.cluster"),
        kernel(".release.cluster", "[[.acquire.cluster||]]"),
    ] {
        let kernel = cluster(2, 64, &body);
        kernel.returns(|_, thread| thread);
        let text = kernel.lacks(FindingKind::Race);
        assert!(text.contains("another block may not see the write"), "{text}");
        assert!(text.contains("`mbarrier.arrive.release.cluster`"), "{text}");
    }
}

#[test]
fn block_scope_suffices_to_hand_over_memory_for_refilling() {
    // Block 0 loads for both blocks, waits until all threads have read, and loads again.
    let body = with_barriers(
        256,
        "setp.eq.u32 %p5, %r2, 0; and.pred %p4, %p1, %p5; mov.u16 %h1, 3; mapa.shared::cluster.u32 %r14, %r10, 0;\n\
         @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster\n\
         [dyn], [%d2], 256, [dyn+1024], %h1;\n\
         one: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 0; @!%p2 bra one; ld.shared.u32 %r15, [%r4];\n\
         fence.proxy.async.shared::cta; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [dyn+1024], 256;\n\
         [[mbarrier.arrive.shared::cluster.b64 _, [%r14+1032];]] @!%p4 bra two;\n\
         [[all: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1032], 0; @!%p2 bra all;]]\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster\n\
         [dyn], [%d2+512], 256, [dyn+1024], %h1;\n\
         two: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 1; @!%p2 bra two; ld.shared.u32 %r9, [%r4]; SYNC",
    );
    let init = "@%p1 mbarrier.init.shared.b64 [dyn+1024], 1;";
    let body = body.replace(init, &format!("{init} @%p1 mbarrier.init.shared.b64 [dyn+1032], 128;"));
    let body = body.replace("SYNC", SYNC);
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| input(128 + thread));
    kernel.lacks(FindingKind::RefillBeforeRelease);
    // The fence after the reads is known to the other block too.
    let unfenced = body.replace("[[", "").replace("]]", "");
    let unfenced = unfenced.replace("fence.proxy.async.shared::cta;", "[[fence.proxy.async.shared::cta;]]");
    let kernel = cluster(2, 64, &unfenced);
    kernel.returns(|_, thread| input(128 + thread));
    kernel.lacks(FindingKind::UnfencedRefill);
    // The writes of those threads are not known to it.
    let written = body
        .replace("fence.proxy.async.shared::cta;", "")
        .replace("ld.shared.u32 %r15, [%r4];", "st.shared.u32 [%r4], 1; fence.proxy.async;")
        .replace("[[mbarrier.arrive", "mbarrier.arrive[[.release.cluster||]]")
        .replace("[%r14+1032];]]", "[%r14+1032];")
        .replace("[[all: mbarrier.try_wait.parity.", "all: mbarrier.try_wait.parity.acquire.cluster.")
        .replace("bra all;]]", "bra all;");
    let kernel = cluster(2, 64, &written);
    kernel.returns(|_, thread| input(128 + thread));
    kernel.lacks(FindingKind::Race);
}

/// Wraps the body so that each block has an mbarrier of count 1 at `dyn+1024`, which expects
/// `bytes`.
fn with_barriers(bytes: u32, body: &str) -> String {
    two(&format!(
        "@%p1 mbarrier.init.shared.b64 [dyn+1024], 1; @%p1 fence.mbarrier_init.release.cluster; SYNC\n\
         @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [dyn+1024], {bytes}; {body}"
    ))
}

const WAIT: &str = "wait: mbarrier.try_wait.parity.shared.b64 %p2, [dyn+1024], 0; @!%p2 bra wait;";
/// Waits after a read that came too early, so that there is no other mistake.
const LATE: &str = "late: mbarrier.try_wait.parity.shared.b64 %p3, [dyn+1024], 0; @!%p3 bra late;";

#[test]
fn a_multicast_brings_the_bytes_to_each_block() {
    let body = with_barriers(
        256,
        &format!(
            "setp.eq.u32 %p5, %r2, 0; and.pred %p4, %p1, %p5; mov.u16 %h1, [[3||1]];\n\
             @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster\n\
             [dyn], [%d2+512], 256, [dyn+1024], %h1; {WAIT} ld.shared.u32 %r9, [%r4]; SYNC"
        ),
    );
    let body = body.replace("SYNC", SYNC);
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| input(128 + thread));
    let text = kernel.lacks(FindingKind::TransactionBytes);
    assert!(text.contains("block 1"), "{text}");
    let beyond = body.replace("[[3||1]]", "[[3||7]]");
    assert!(cluster(2, 64, &beyond).lacks(FindingKind::IllegalCopy).contains("but the cluster has 2"));
    let early = body
        .replace("[[3||1]]", "3")
        .replace(WAIT, &format!("[[{WAIT}]]"))
        .replace("ld.shared.u32 %r9, [%r4];", &format!("ld.shared.u32 %r9, [%r4]; {LATE}"));
    cluster(2, 64, &early).lacks(FindingKind::ReadBeforeWait);
}

#[test]
fn bytes_are_copied_to_another_block() {
    let body = with_barriers(
        256,
        &format!(
            "add.u32 %r6, %r1, 7; st.shared.u32 [%r4], %r6; FENCE bar.sync 0;\n\
             @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r13+512], [dyn], 256, [%r13+1024];\n\
             WAITS ld.shared.u32 %r9, [%r4+512]; {LATE} SYNC"
        ),
    )
    .replace("SYNC", SYNC);
    let fence = "fence.proxy.async.shared::cta;";
    let run = |fence: &str, wait: &str| body.replace("FENCE", fence).replace("WAITS", wait);
    let no_fence = run(&format!("[[{fence}]]"), WAIT);
    cluster(2, 64, &no_fence).returns(|_, thread| thread + 7);
    cluster(2, 64, &no_fence).lacks(FindingKind::MissingProxyFence);
    cluster(2, 64, &run(fence, &format!("[[{WAIT}]]"))).lacks(FindingKind::ReadBeforeWait);
    let wrong_barrier = run(fence, WAIT).replace("256, [%r13+1024]", "256, [%r[[13||10]]+1024]");
    cluster(2, 64, &wrong_barrier).lacks(FindingKind::IllegalCopy);
    // The destination must be in another block.
    let itself = run(fence, WAIT)
        .replace("@%p1 cp.async", "[[||mapa.shared::cluster.u32 %r13, %r10, %r2;]] @%p1 cp.async");
    assert!(cluster(2, 64, &itself).lacks(FindingKind::IllegalCopy).contains("stays in block"));
    // The source must not change before its bytes have arrived.
    let changed = run(fence, WAIT).replace(WAIT, &format!("[[||st.shared.u32 [%r4], 1;]] {WAIT}"));
    cluster(2, 64, &changed).lacks(FindingKind::InFlight);
}

#[test]
fn blocks_add_into_one() {
    // Both blocks add their words to those of block 0, in either order.
    let body = two(&format!(
        "setp.eq.u32 %p5, %r2, 0; and.pred %p4, %p1, %p5; mapa.shared::cluster.u32 %r14, %r10, 0;\n\
         @%p1 mbarrier.init.shared.b64 [dyn+1024], 1; @%p1 fence.mbarrier_init.release.cluster;\n\
         st.shared.u32 [%r4], %r1; mov.u32 %r6, 1000; @%p5 st.shared.u32 [%r4+512], %r6;\n\
         [[fence.proxy.async;]] SYNC @%p4 mbarrier.arrive.expect_tx.shared.b64 _, [dyn+1024], 512;\n\
         @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32\n\
         [%r14+512], [dyn], 256, [%r14+1024];\n\
         @!%p5 bra done; {WAIT} ld.shared.u32 %r9, [%r4+512]; done: SYNC"
    ));
    let kernel = cluster(2, 64, &body);
    kernel.returns(|block, thread| if block == 0 { 1000 + 2 * thread } else { 0 });
    kernel.lacks(FindingKind::MissingProxyFence);
}

#[test]
fn stores_and_reductions_of_threads_arrive_late() {
    let body = with_barriers(
        256,
        &format!(
            "add.u32 %r6, %r1, 9; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r6, [%r13+1024];\n\
             [[{WAIT}]] ld.shared.u32 %r9, [%r4]; {LATE} SYNC"
        ),
    )
    .replace("SYNC", SYNC);
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| thread + 9);
    kernel.lacks(FindingKind::ReadBeforeWait);
    // The block that receives the bytes waits for them, so nothing else has to keep it alive.
    let ends = body.strip_suffix(SYNC).expect("it ends so");
    cluster(2, 64, &ends.replace("[[", "").replace("]]", "")).returns(|_, thread| thread + 9);
    // All threads of a block add to one word of the other block.
    let body = with_barriers(
        256,
        &format!(
            "@%p1 st.shared.u32 [dyn+512], %r2; SYNC red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r13+512], %r1, [%r13+1024];\n\
             [[{WAIT}]] ld.shared.u32 %r9, [dyn+512]; {LATE} SYNC"
        ),
    )
    .replace("SYNC", SYNC);
    let kernel = cluster(2, 64, &body);
    kernel.returns(|block, _| block + 63 * 32);
    kernel.lacks(FindingKind::ReadBeforeWait);
}

#[test]
fn vectors_of_16_bytes_are_stored() {
    let body = with_barriers(
        1024,
        &format!(
            "shl.b32 %r14, %r1, 4; add.u32 %r14, %r13, %r14;\n\
             st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r14+[[2048||2056]]], {{%r1, %r2, %r1, %r2}}, [%r13+1024];\n\
             {WAIT} shl.b32 %r15, %r1, 4; add.u32 %r15, %r15, %r10; ld.shared.v4.u32 {{%r16, %r17, %r18, %r19}}, [%r15+2048];\n\
             mad.lo.u32 %r9, %r17, 1000, %r18; SYNC"
        ),
    )
    .replace("SYNC", SYNC);
    let kernel = cluster(2, 64, &body);
    kernel.returns(|block, thread| (block ^ 1) * 1000 + thread);
    kernel.lacks(FindingKind::Misaligned);
}

#[test]
fn st_async_uses_the_generic_proxy() {
    let body = with_barriers(
        256,
        &format!(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r1, [%r13+1024]; {WAIT}\n\
             [[fence.proxy.async;]] bar.sync 0;\n\
             mad.wide.u32 %d4, %r2, 256, %d2;\n\
             @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d4+1024], [dyn], 256; @%p1 cp.async.bulk.commit_group;\n\
             @%p1 cp.async.bulk.wait_group 0; SYNC"
        ),
    )
    .replace("SYNC", SYNC);
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, _| 0);
    kernel.lacks(FindingKind::MissingProxyFence);
}

#[test]
fn ranks_are_those_of_the_cluster() {
    let body = two(
        "st.shared.u32 [%r4], %r1; SYNC mapa.shared::cluster.u32 %r5, %r4, [[1||2]]; ld.shared::cluster.u32 %r9, [%r5]; SYNC",
    );
    let kernel = cluster(2, 64, &body);
    kernel.returns(|_, thread| thread);
    kernel.lacks(FindingKind::OutOfBounds);
    // This includes ranks whose low bits are those of a block, with an address of either kind, in
    // every use.
    for rank in [3, 254, 255, 256, 257, 0x7fff_ffff, 0xffff_fffe, u32::MAX] {
        let body = body.replace("[[1||2]]", &format!("[[1||{rank}]]"));
        let text = cluster(2, 64, &body).lacks(FindingKind::OutOfBounds);
        assert!(text.contains("in a cluster of 2 blocks"), "{text}");
        let generic = two(&format!(
            "st.shared.u32 [%r4], %r1; SYNC cvta.shared.u64 %d4, dyn; mapa.u64 %d5, %d4, [[1||{rank}]]; ld.u32 %r9, [%d5]; SYNC"
        ));
        cluster(2, 64, &generic).lacks(FindingKind::OutOfBounds);
        let arrival = two(&format!(
            "@%p1 mbarrier.init.shared::cta.b64 [dyn+1024], 64; SYNC mapa.shared::cluster.u32 %r13, %r10, [[%r12||{rank}]];\n\
             mbarrier.arrive.shared::cluster.b64 _, [%r13+1024];\n\
             wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [dyn+1024], 0; @!%p2 bra wait; SYNC"
        ));
        let kernel = cluster(2, 64, &arrival);
        kernel.returns(|_, _| 0);
        kernel.lacks(FindingKind::OutOfBounds);
    }
}

#[test]
fn a_rank_that_nobody_uses_is_no_mistake() {
    let body =
        two("mapa.shared::cluster.u32 %r5, %r4, 4294967295; getctarank.shared::cluster.u32 %r6, %r5;\n\
         setp.lt.u32 %p2, %r6, 2; selp.b32 %r9, 1, 0, %p2;");
    cluster(2, 32, &body).returns(|_, _| 0);
}

#[test]
fn arrivals_and_waits_alternate() {
    let body = two(
        "barrier.cluster.arrive; [[barrier.cluster.wait;]] barrier.cluster.arrive; barrier.cluster.wait;",
    );
    let kernel = cluster(2, 32, &body);
    kernel.returns(|_, _| 0);
    kernel.lacks(FindingKind::DivergentBarrier);
    let body = two("[[barrier.cluster.arrive;]] barrier.cluster.wait;");
    cluster(2, 32, &body).returns(|_, _| 0);
    cluster(2, 32, &body).lacks(FindingKind::DivergentBarrier);
    // `.aligned`: the lanes of a warp must arrive at the same instruction.
    let body = two(
        "and.b32 %r6, %r1, 1; setp.eq.u32 %p5, %r6, 0; @%p5 bra even; barrier.cluster.arrive[[||.aligned]];\n\
         bra after; even: barrier.cluster.arrive[[||.aligned]]; after: barrier.cluster.wait;",
    );
    cluster(2, 64, &body).returns(|_, _| 0);
    cluster(2, 64, &body).lacks(FindingKind::DivergentBarrier);
    // The barrier does not wait for a block that has ended.
    let body = two("setp.eq.u32 %p5, %r2, 0; @%p5 bra skip; SYNC skip:");
    cluster(2, 32, &body).returns(|_, _| 0);
}

#[test]
fn forms() {
    accepted(&[
        "barrier.cluster.arrive; barrier.cluster.wait;",
        "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;",
        "mapa.shared::cluster.u64 %d4, %d5, %r1; mapa.u64 %d4, %d5, 1;",
        "st.async.mbarrier::complete_tx::bytes.v2.b64 [%d4], {%d5, %d6}, [%d7];",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [dyn], %f1, [dyn+8];",
        "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.xor.b32 [%d4], %r1, [%d5];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [dyn], %d4, [dyn+8];",
    ]);
    refused(&[
        ("barrier.cluster.sync;", "not supported"),
        ("barrier.cluster.arrive.acquire;", "release"),
        ("barrier.cluster.wait.release;", "acquire"),
        ("barrier.cluster.arrive 0;", "operands"),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [dyn], {%d1,%d2,%d3,%d4}, [dyn+8];",
            "16 bytes",
        ),
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [dyn], %h1, [dyn+8];", "32 or 64"),
        ("st.async.release.gpu.global.b32 [%d1], %r1;", "complete_tx"),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [dyn], {%r1}, [dyn+8];",
            "2 registers",
        ),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64 [dyn], %d1, [dyn+8];",
            "no such type",
        ),
        ("red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [dyn], %r1, [dyn+8];", "relaxed"),
        ("red.async.relaxed.cluster.shared::cluster.add.u32 [dyn], %r1, [dyn+8];", "complete_tx"),
    ]);
}
