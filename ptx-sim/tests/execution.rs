//! Warps, calls and memory: small kernels of one block, in which each thread writes one word.

use ptx_sim::{Arg, FindingKind, GlobalMemory, LaunchConfig, Module, Report, launch};

/// Runs a body in one block. `%r1` holds the thread's number, `%d1` the address of the first output
/// word, and each thread outputs `%r9`. `outside` is inserted before the kernel.
fn run(outside: &str, threads: u32, seed: u64, body: &str) -> (Report, Vec<u32>) {
    let ptx = format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n{outside}\n\
         .visible .entry k(.param .u64 out) {{\n\
         .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>;\n\
         mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out];\n{body}\n\
         mul.wide.u32 %d18, %r1, 4; add.u64 %d19, %d1, %d18; st.global.u32 [%d19], %r9; ret;\n}}\n"
    );
    let module = Module::load(&ptx).unwrap_or_else(|error| panic!("{error}\n{body}"));
    let mut memory = GlobalMemory::default();
    let out = memory.allocate(u64::from(threads) * 4, false).expect("there is room");
    let config = LaunchConfig {
        block: [threads, 1, 1],
        seed,
        instruction_limit: 10_000_000,
        dynamic_shared_bytes: 256,
        ..LaunchConfig::default()
    };
    let report = launch(&module, &mut memory, "k", &config, &[Arg::Address(out)]).expect("it starts");
    let mut bytes = vec![0; threads as usize * 4];
    memory.read(out, &mut bytes).expect("it is there");
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    (report, words.collect())
}

/// Runs under several seeds. Nothing may be found, and the word of each thread must be `wanted` of
/// its number.
fn check(outside: &str, threads: u32, body: &str, wanted: impl Fn(u32) -> u32) {
    for seed in 0..8 {
        let (report, words) = run(outside, threads, seed, body);
        assert!(report.findings.is_empty(), "{body}: {:?}", report.findings);
        let all: Vec<u32> = (0..threads).map(&wanted).collect();
        assert_eq!(words, all, "seed {seed}: {body}");
    }
}

/// Returns the only finding of a run.
fn finding(threads: u32, body: &str) -> FindingKind {
    let (report, _) = run(".extern .shared .align 16 .b8 dyn[];", threads, 1, body);
    let mut kinds = report.findings.iter().map(|finding| finding.kind);
    kinds.next().unwrap_or_else(|| panic!("nothing was found: {body}"))
}

#[test]
fn shuffles() {
    check("", 32, "shfl.sync.down.b32 %r9, %r1, 1, 31, -1;", |lane| (lane + 1).min(31));
    check("", 32, "shfl.sync.up.b32 %r9, %r1, 2, 0, -1;", |lane| if lane < 2 { lane } else { lane - 2 });
    check("", 32, "shfl.sync.bfly.b32 %r9, %r1, 5, 31, -1;", |lane| lane ^ 5);
    check("", 32, "shfl.sync.idx.b32 %r9, %r1, 3, 0x181f, -1;", |lane| lane & 0x18 | 3);
    check("", 32, "shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, -1; selp.b32 %r9, 1, 0, %p1;", |lane| {
        u32::from(lane < 28)
    });
}

#[test]
fn votes_matches_and_reductions() {
    let odd = "and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;";
    check("", 32, &format!("{odd} vote.sync.ballot.b32 %r9, %p1, -1;"), |_| 0xaaaa_aaaa);
    check("", 32, &format!("{odd} vote.sync.any.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;"), |_| 1);
    check("", 32, &format!("{odd} vote.sync.all.pred %p2, !%p1, -1; selp.b32 %r9, 1, 0, %p2;"), |_| 0);
    check("", 32, "shr.u32 %r2, %r1, 3; match.any.sync.b32 %r9, %r2, -1;", |lane| 0xff << (lane / 8 * 8));
    check("", 32, "mov.u32 %r2, 7; match.all.sync.b32 %r9|%p1, %r2, -1;", |_| u32::MAX);
    check("", 32, "redux.sync.add.s32 %r9, %r1, -1;", |_| 496);
    check("", 32, "sub.s32 %r2, %r1, 16; redux.sync.min.s32 %r9, %r2, -1;", |_| -16_i32 as u32);
    check("", 20, "activemask.b32 %r9;", |_| 0xf_ffff);
    let one_and_the_same = "elect.sync %r2|%p1, -1; vote.sync.ballot.b32 %r3, %p1, -1; shl.b32 %r4, 1, %r2;\n\
        setp.eq.u32 %p2, %r3, %r4; elect.sync %r5|%p3, -1; setp.eq.and.u32 %p2, %r2, %r5, %p2; selp.b32 %r9, 1, 0, %p2;";
    check("", 64, one_and_the_same, |_| 1);
}

#[test]
fn lanes_diverge_and_reconverge() {
    let body = "mov.u32 %r9, 0; mov.u32 %r2, 0;\n\
        loop: setp.ge.u32 %p1, %r2, %r1; @%p1 bra done; add.u32 %r9, %r9, %r2; add.u32 %r2, %r2, 1; bra loop;\n\
        done: activemask.b32 %r3; setp.ne.u32 %p2, %r3, -1; @%p2 mov.u32 %r9, 12345;";
    check("", 32, body, |lane| lane * lane.saturating_sub(1) / 2);
    let indexed = "and.b32 %r2, %r1, 3;\n targets: .branchtargets a, b, c, d;\n brx.idx %r2, targets;\n\
        a: mov.u32 %r9, 10; bra end;\n b: mov.u32 %r9, 11; bra end;\n c: mov.u32 %r9, 12; bra end;\n\
        d: mov.u32 %r9, 13;\n end:";
    check("", 32, indexed, |lane| 10 + (lane & 3));
}

#[test]
fn a_lane_that_spins_does_not_starve_the_one_it_waits_for() {
    // Lane 0 polls at the lower pc, and lane 1 releases it from the higher one.
    let body = "mov.u32 %r9, 7; mov.u32 %r4, dyn; setp.ne.u32 %p1, %r1, 0;\n\
        @!%p1 st.shared.u32 [%r4], 0; bar.warp.sync 3; @%p1 bra other;\n\
        spin: ld.acquire.cta.shared.u32 %r2, [%r4]; setp.eq.u32 %p2, %r2, 0; @%p2 bra spin; bra end;\n\
        other: st.release.cta.shared.u32 [%r4], 1;\n end:";
    check(".extern .shared .align 16 .b8 dyn[];", 2, body, |_| 7);
}

#[test]
fn threads_synchronise_at_barriers() {
    let body = "mov.u32 %r4, buffer; shl.b32 %r5, %r1, 2; add.u32 %r5, %r4, %r5; st.shared.u32 [%r5], %r1;\n\
        bar.sync 0; sub.u32 %r6, 95, %r1; shl.b32 %r6, %r6, 2; add.u32 %r6, %r4, %r6; ld.shared.u32 %r9, [%r6];";
    check(".shared .align 4 .b8 buffer[384];", 96, body, |thread| 95 - thread);
    let votes = "setp.lt.u32 %p1, %r1, 40; barrier.sync.aligned 1, 64; bar.red.popc.u32 %r9, 0, %p1;";
    check("", 64, votes, |_| 40);
}

#[test]
fn atomics() {
    let counter = ".global .align 4 .u32 counter = 5;";
    let body = "mov.u64 %d2, counter; bar.sync 0; atom.global.add.u32 %r2, [%d2], 1; bar.sync 0;\n\
        ld.relaxed.gpu.global.u32 %r9, [%d2];";
    check(counter, 64, body, |_| 69);
    let body = "mov.u64 %d2, counter; atom.global.max.s32 %r2, [%d2], %r1; bar.sync 0;\n\
        ld.relaxed.gpu.global.u32 %r9, [%d2];";
    check(counter, 64, body, |_| 63);
    let body = "mov.u32 %r4, dyn; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r4], 0; bar.sync 0;\n\
        again: ld.relaxed.cta.shared.u32 %r2, [%r4]; add.u32 %r3, %r2, 2;\n\
        atom.shared.cas.b32 %r5, [%r4], %r2, %r3; setp.ne.u32 %p2, %r5, %r2; @%p2 bra again;\n\
        bar.sync 0; ld.relaxed.cta.shared.u32 %r9, [%r4];";
    check(".extern .shared .align 16 .b8 dyn[];", 64, body, |_| 128);
}

#[test]
fn functions_have_parameters_results_and_local_memory() {
    let outside = ".func (.param .b32 result) square(.param .b32 x) {\n\
        .local .align 4 .b8 scratch[8]; .reg .b32 %r<5>; .reg .b64 %d<3>;\n\
        ld.param.u32 %r1, [x]; st.local.u32 [scratch+4], %r1; mov.u64 %d1, scratch; cvta.local.u64 %d2, %d1;\n\
        ld.u32 %r2, [%d2+4]; mul.lo.u32 %r3, %r1, %r2; st.param.b32 [result], %r3; ret;\n}\n\
        .func (.reg .b32 %sum) plus(.reg .b32 %a, .reg .b32 %b) { add.u32 %sum, %a, %b; ret; }\n";
    let body = "and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0; mov.u32 %r9, %r1; @%p1 bra skip;\n\
        { .param .b32 in; .param .b32 back; st.param.b32 [in], %r1; call.uni (back), square, (in);\n\
        ld.param.b32 %r9, [back]; }\n skip: call (%r9), plus, (%r9, 100);";
    check(outside, 32, body, |lane| if lane % 2 == 0 { lane * lane + 100 } else { lane + 100 });
}

#[test]
fn variables_have_their_initial_values() {
    let outside = ".const .align 4 .f32 table[3] = {0f3F800000, 2.0, -3.5};\n\
        .global .align 8 .u64 pointer = generic(table)+4;\n.global .align 2 .s16 small[2] = {-1, 0x7f};\n";
    let body = "ld.global.u64 %d2, [pointer]; ld.f32 %r2, [%d2]; cvt.rzi.s32.f32 %r2, %r2;\n\
        ld.const.f32 %r3, [table+8]; cvt.rzi.s32.f32 %r3, %r3; ld.global.s16 %r4, [small];\n\
        add.s32 %r9, %r2, %r3; add.s32 %r9, %r9, %r4;";
    check(outside, 1, body, |_| (2 - 3 - 1_i32) as u32);
}

#[test]
fn constant_memory_is_known_by_its_addresses() {
    let outside = ".const .align 4 .b8 c[8]; .global .align 4 .b8 g[8];";
    let asked = |variable: &str, space: &str| {
        format!(
            "mov.u64 %d2, {variable}; cvta.{0}.u64 %d2, %d2; isspacep.{space} %p1, %d2; selp.u32 %r9, 1, 0, %p1;",
            if variable == "c" { "const" } else { "global" }
        )
    };
    check(outside, 1, &asked("c", "const"), |_| 1);
    check(outside, 1, &asked("c", "global"), |_| 0);
    check(outside, 1, &asked("g", "const"), |_| 0);
    check(outside, 1, &asked("g", "global"), |_| 1);
    check(outside, 1, "add.u32 %r9, WARP_SZ, 1;", |_| 33);
}

#[test]
fn printf_output() {
    let text = |text: &str| text.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    let outside = format!(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
         .global .align 1 .b8 format[20] = {{{}}};\n",
        text("thread %d: %5.2f\n")
    );
    let body = "{ .local .align 8 .b8 args[16]; .param .b64 f; .param .b64 a; .param .b32 r;\n\
        st.local.u32 [args], %r1; cvt.rn.f64.u32 %d2, %r1; st.local.f64 [args+8], %d2;\n\
        mov.u64 %d3, format; cvta.global.u64 %d3, %d3; st.param.b64 [f], %d3;\n\
        mov.u64 %d4, args; cvta.local.u64 %d4, %d4; st.param.b64 [a], %d4;\n\
        call.uni (r), vprintf, (f, a); ld.param.b32 %r9, [r]; }";
    let (report, words) = run(&outside, 2, 0, body);
    assert_eq!(report.printed, "thread 0:  0.00\nthread 1:  1.00\n");
    assert_eq!(words, [2, 2]);
}

#[test]
fn errors_are_found() {
    assert_eq!(finding(1, "trap;"), FindingKind::Trap);
    assert_eq!(finding(1, "ld.global.u32 %r9, [%d1+4];"), FindingKind::OutOfBounds);
    assert_eq!(finding(1, "ld.global.u32 %r9, [%d1+1];"), FindingKind::Misaligned);
    assert_eq!(finding(1, "ld.shared.u32 %r9, [dyn+256];"), FindingKind::OutOfBounds);
    assert_eq!(finding(1, "ld.shared.u32 %r9, [dyn];"), FindingKind::Uninitialised);
    assert_eq!(finding(64, "st.shared.u32 [dyn], %r1;"), FindingKind::Race);
    assert_eq!(finding(1, "ld.local.u32 %r9, [0];"), FindingKind::OutOfBounds);
    assert_eq!(
        finding(
            2,
            "setp.eq.u32 %p1, %r1, 0; @%p1 bar.warp.sync 1; @%p1 shfl.sync.idx.b32 %r9, %r1, 0, 31, 3; @!%p1 bra x; x: @!%p1 shfl.sync.idx.b32 %r9, %r1, 0, 31, 3;"
        ),
        FindingKind::Deadlock
    );
    assert_eq!(finding(1, "spin: bra spin;"), FindingKind::Deadlock);
    assert_eq!(finding(1, "shfl.sync.idx.b32 %r9, %r1, 0, 31, 2;"), FindingKind::Execution);
}
