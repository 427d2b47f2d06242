//! Polling loops: they continue as long as anything can change what they poll, and are reported if
//! nothing can.

use crate::pairs;
use crate::pairs::{block, cluster};
use ptx_sim::{Arg, FindingKind, GlobalMemory, LaunchConfig, Module, Report, launch};

/// Checks that the wrong kernel is found to be a deadlock, before it has run out of instructions.
fn found(kernel: &pairs::Kernel<'_>, wanted: &str) -> String {
    let text = kernel.lacks(FindingKind::Deadlock);
    assert!(text.contains("no thread can continue"), "{text}");
    assert!(text.contains(wanted), "{text}");
    text
}

#[test]
fn questions_to_an_mbarrier() {
    let body = "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [dyn], [[64||65]]; bar.sync 0;\n\
         mbarrier.arrive.shared::cta.b64 _, [dyn];\n\
         wait: mbarrier.test_wait.parity.shared::cta.b64 %p2, [dyn], 0; @!%p2 bra wait;";
    let kernel = block(64, body);
    kernel.returns(|_, _| 0);
    let text = found(&kernel, "threads 0 to 63 wait for the phase with parity 0 of the mbarrier at 0x400");
    assert!(text.contains("1 of 65 arrivals is missing"), "{text}");
    assert!(text.contains("mbarrier.test_wait"), "{text}");
    // A copy in flight completes the phase, however late it is and whatever else waits.
    let body = "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [dyn+1024], 1; @%p1 fence.mbarrier_init.release.cluster;\n\
         bar.sync 0; @!%p1 bra wait; mbarrier.arrive.expect_tx.shared::cta.b64 _, [dyn+1024], [[128||144]];\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dyn], [%d2], 128, [dyn+1024];\n\
         wait: mbarrier.test_wait.parity.shared::cta.b64 %p2, [dyn+1024], 0; nanosleep.u32 20; @!%p2 bra wait;\n\
         mov.u32 %r11, dyn; shl.b32 %r10, %r1, 1; and.b32 %r10, %r10, 124; add.u32 %r10, %r10, %r11; ld.shared.u32 %r9, [%r10];";
    let kernel = block(64, body);
    kernel.returns(|_, thread| pairs::input(thread / 2));
    kernel.lacks(FindingKind::TransactionBytes);
}

#[test]
fn waits_of_many_warps() {
    // Warps that fail to make progress let others try. There are more of them than time slices
    // between two wake-ups.
    let body = "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [dyn], [[1024||1025]]; bar.sync 0;\n\
         mbarrier.arrive.shared::cta.b64 _, [dyn];\n\
         wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [dyn], 0; @!%p2 bra wait;";
    let kernel = block(1024, body);
    kernel.returns(|_, _| 0);
    found(&kernel, "threads 0 to 1023 wait for the phase with parity 0 of the mbarrier at 0x400");
}

#[test]
fn flags_in_shared_memory() {
    // The last warp sets the flag, after a loop that outlasts the patience of the others.
    let body = "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [dyn], 0; bar.sync 0; setp.lt.u32 %p2, %r1, 96; @%p2 bra wait;\n\
         mov.u32 %r10, 0; work: add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 5000; @%p3 bra work;\n\
         setp.eq.u32 %p4, %r1, 97; @%p4 st.release.cta.shared.u32 [dyn], [[7||0]];\n\
         wait: ld.acquire.cta.shared.u32 %r9, [dyn]; setp.eq.u32 %p5, %r9, 0; @%p5 bra wait;";
    let kernel = block(128, body);
    kernel.returns(|_, _| 7);
    found(&kernel, "threads 0 to 127 wait in a loop until shared memory at 0x400");
    // Lanes of one warp.
    let body = "setp.eq.u32 %p1, %r1, 0; @%p1 st.volatile.shared.u32 [dyn], 0; bar.warp.sync -1; setp.eq.u32 %p2, %r1, 31;\n\
         @%p2 bra set; wait: ld.volatile.shared.u32 %r9, [dyn]; setp.ne.u32 %p5, %r9, 7; @%p5 bra wait; bra done;\n\
         set: st.volatile.shared.u32 [dyn], [[7||8]]; mov.u32 %r9, 7; done:";
    let kernel = block(32, body);
    kernel.returns(|_, _| 7);
    found(&kernel, "threads 0 to 30 wait in a loop");
    // Another block of the cluster.
    let body = "mov.u32 %r10, dyn; mapa.shared::cluster.u32 %r11, %r10, 1; setp.eq.u32 %p1, %r1, 0;\n\
         @%p1 st.shared.u32 [dyn], 0; barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p2, %r2, 1; @%p2 bra wait;\n\
         @%p1 st.release.cluster.shared::cluster.u32 [%r11], [[7||0]]; mov.u32 %r9, 7; bra done;\n\
         wait: ld.acquire.cluster.shared.u32 %r9, [dyn]; setp.ne.u32 %p5, %r9, 7; @%p5 bra wait;\n\
         done: barrier.cluster.arrive; barrier.cluster.wait;";
    let kernel = cluster(2, 32, body);
    kernel.returns(|_, _| 7);
    found(&kernel, "threads 0 to 31 of block 1 wait in a loop");
}

#[test]
fn locks_that_are_not_given_back() {
    let body = "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [dyn], 0; @%p1 st.shared.u32 [dyn+4], 0; bar.sync 0; mov.u32 %r12, 0;\n\
         take: setp.eq.u32 %p4, %r12, 1; @%p4 bra done; atom.acquire.cta.shared.cas.b32 %r10, [dyn], 0, 1;\n\
         setp.ne.u32 %p2, %r10, 0; @%p2 bra take;\n\
         ld.shared.u32 %r11, [dyn+4]; add.u32 %r11, %r11, 1; st.shared.u32 [dyn+4], %r11; mov.u32 %r12, 1;\n\
         [[atom.release.cta.shared.exch.b32 %r10, [dyn], 0;]] bra take;\n\
         done: bar.sync 0; ld.shared.u32 %r9, [dyn+4];";
    let kernel = block(64, body);
    kernel.returns(|_, _| 64);
    found(&kernel, "wait in a loop until shared memory at 0x400");
}

#[test]
fn loops_that_read_nothing() {
    let kernel = block(32, "[[mov.u32 %r9, 7;||forever: bra forever;]]");
    kernel.returns(|_, _| 7);
    found(&kernel, "in an endless loop");
}

#[test]
fn loops_that_give_up_are_no_deadlock() {
    let setup = "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [dyn], 1; bar.sync 0; mov.u32 %r10, 0;\n";
    let question = "mbarrier.test_wait.parity.shared::cta.b64 %p2, [dyn], 0; @%p2 bra done;\n";
    let counts = format!(
        "{setup} wait: {question} add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 20000; @%p3 bra wait; mov.u32 %r9, 7; done:"
    );
    block(2, &counts).returns(|_, _| 7);
    let clock = format!(
        "{setup} mov.u32 %r11, %clock; wait: {question} mov.u32 %r10, %clock; sub.u32 %r10, %r10, %r11;\n\
         setp.lt.u32 %p3, %r10, 20000; @%p3 bra wait; mov.u32 %r9, 7; done:"
    );
    block(2, &clock).returns(|_, _| 7);
}

/// Block `i` of `n` waits until block `(i + step) % n` has written, if there is a `step`, and then
/// writes.
const CHAIN: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry chain(.param .u64 flags, .param .u32 from) {
    .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %d<6>;
    ld.param.u64 %d1, [flags];
    ld.param.u32 %r1, [from];
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %d2, %r2, 4;
    add.u64 %d2, %d1, %d2;
    setp.eq.u32 %p1, %r2, %r1;
    @%p1 bra write;
    add.u32 %r3, %r2, 1;
    mov.u32 %r4, %nctaid.x;
    rem.u32 %r3, %r3, %r4;
    mul.wide.u32 %d3, %r3, 4;
    add.u64 %d3, %d1, %d3;
wait:
    ld.acquire.gpu.global.u32 %r5, [%d3];
    setp.eq.u32 %p2, %r5, 0;
    @%p2 bra wait;
write:
    st.release.gpu.global.u32 [%d2], 1;
    ret;
}
";

fn chain(blocks: u32, from: u32, host_threads: usize, cooperative: bool) -> (Report, Module) {
    let module = Module::load(CHAIN).expect("it loads");
    let mut memory = GlobalMemory::default();
    let flags = memory.allocate(u64::from(blocks) * 4, false).expect("there is room");
    let config = LaunchConfig { grid: [blocks, 1, 1], host_threads, cooperative, ..LaunchConfig::default() };
    let args = [Arg::Address(flags), Arg::Bytes(from.to_le_bytes().into())];
    let report = launch(&module, &mut memory, "chain", &config, &args).expect("it starts");
    (report, module)
}

#[test]
fn blocks_that_run_at_a_time_may_wait_for_each_other() {
    for round in 0..20 {
        let (report, _) = chain(4, 3, 4, false);
        assert!(report.findings.is_empty(), "round {round}: {:?}", report.findings);
        let (report, _) = chain(8, 7, 1, true);
        assert!(report.findings.is_empty(), "round {round}: {:?}", report.findings);
    }
}

#[test]
fn waits_for_blocks_that_do_not_run_are_found() {
    // One at a time, the first block waits for the second, which comes after it. In a ring without
    // a start, all blocks wait for ever.
    for (from, host_threads, cooperative) in
        [(3, 0, false), (3, 1, false), (3, 2, false), (9, 4, false), (9, 1, true)]
    {
        for round in 0..5 {
            let (report, module) = chain(4, from, host_threads, cooperative);
            let text = report.findings.render(&module.sources(|_| None));
            let case = format!("from {from}, {host_threads} threads, round {round}:\n{text}");
            assert_eq!(report.findings.len(), 1, "{case}");
            assert!(text.contains("thread 0 waits in a loop until global memory"), "{case}");
            assert!(text.contains("of block (0, 0, 0) waits\n    at PTX line 20: ld.acquire"), "{case}");
            assert!(text.contains("cooperative launch"), "{case}");
        }
    }
}

#[test]
fn independent_clusters_run_on_all_cores() {
    let shares = |text: &str| {
        Module::load(text).expect("it loads").kernels().next().expect("there is one").shares_memory()
    };
    assert!(shares(CHAIN));
    let weak = CHAIN.replace("ld.acquire.gpu", "ld").replace("st.release.gpu", "st");
    assert!(!shares(&weak));
    assert!(shares(&weak.replace("ld.global", "ld.volatile.global")));
    assert!(shares(&weak.replace("ret;", "red.global.add.u32 [%d1], 1; ret;")));
    let of_the_block = weak.replace("ret;", "red.shared.add.u32 [%r1], 1; ret;");
    assert!(!shares(&of_the_block));
}
