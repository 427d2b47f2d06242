//! Each rule as a flipped pair: kept, and broken in one place.

use ptx_sim::{Arg, Checks, FindingKind, GlobalMemory, LaunchConfig, Module, launch};

use crate::pairs::block;

/// The threads write 4096 bytes of f16 ones. A is at `dyn` and B 2048 bytes after it, both K-major
/// and not swizzled. `%d4` and `%d5` are their descriptors, and D is `%f0` to `%f3`.
const FILL: &str = "mov.u32 %r6, dyn; shl.b32 %r5, %r1, 2; add.u32 %r5, %r5, %r6; mov.u32 %r7, 0x3c003c00;\n\
    st.shared.u32 [%r5], %r7; st.shared.u32 [%r5+512], %r7; st.shared.u32 [%r5+1024], %r7; st.shared.u32 [%r5+1536], %r7;\n\
    st.shared.u32 [%r5+2048], %r7; st.shared.u32 [%r5+2560], %r7; st.shared.u32 [%r5+3072], %r7; st.shared.u32 [%r5+3584], %r7;\n";
/// Makes the operands ready to be multiplied.
const READY: &str = "fence.proxy.async.shared::cta; bar.sync 0;\n";
const DESCRIPTORS: &str = "shr.u32 %r8, %r6, 4; cvt.u64.u32 %d6, %r8; or.b64 %d4, %d6, 0x0000000800400000;\n\
    add.u64 %d5, %d6, 128; or.b64 %d5, %d5, 0x0000000800080000;\n\
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n";
const MMA: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d4, %d5, 1, 1, 1, 0, 0;\n";
const FENCE: &str = "wgmma.fence.sync.aligned;\n";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";
const WAIT: &str = "wgmma.wait_group.sync.aligned 0;\n";
const RESULT: &str = "cvt.rni.u32.f32 %r9, %f0;\n";

fn kernel(parts: &[&str]) -> String {
    parts.concat()
}

/// Checks that the right body outputs 16 times `products` in each thread of a warpgroup, and that
/// the wrong one is found.
#[track_caller]
fn pair(parts: &[&str], products: u32, kind: FindingKind) -> String {
    let body = kernel(parts);
    let kernel = block(128, &body);
    kernel.returns(|_, _| 16 * products);
    kernel.lacks(kind)
}

#[test]
fn written_operands_are_fenced_and_met_for() {
    let end = kernel(&[DESCRIPTORS, FENCE, MMA, COMMIT, WAIT, RESULT]);
    let text = pair(
        &[FILL, "[[fence.proxy.async.shared::cta;]] bar.sync 0;\n", &end],
        1,
        FindingKind::MissingProxyFence,
    );
    assert!(text.contains("the multiplication may not see the write"), "{text}");
    pair(&[FILL, "fence.proxy.async.shared::cta; [[bar.sync 0;]]\n", &end], 1, FindingKind::Race);
}

#[test]
fn operands_are_initialised() {
    let fill = FILL.replace("st.shared.u32 [%r5+1536], %r7;", "[[st.shared.u32 [%r5+1536], %r7;]]");
    pair(&[&fill, READY, DESCRIPTORS, FENCE, MMA, COMMIT, WAIT, RESULT], 1, FindingKind::Uninitialised);
}

#[test]
fn a_fence_must_precede_the_first_multiplication() {
    let text = pair(
        &[FILL, READY, DESCRIPTORS, "[[wgmma.fence.sync.aligned;]]\n", MMA, COMMIT, WAIT, RESULT],
        1,
        FindingKind::MissingRegisterFence,
    );
    assert!(text.contains("with no `wgmma.fence`"), "{text}");
}

#[test]
fn a_fence_must_follow_uses_of_accumulators() {
    let touched = "add.rn.f32 %f0, %f0, %f0; add.rn.f32 %f1, %f1, %f1;\n[[wgmma.fence.sync.aligned;]]\n";
    // (1 + 0) · 2 + 1
    pair(
        &[FILL, READY, DESCRIPTORS, FENCE, MMA, COMMIT, WAIT, touched, MMA, COMMIT, WAIT, RESULT],
        3,
        FindingKind::MissingRegisterFence,
    );
    // A read counts as a use as well.
    let read = "mov.b32 %r9, %f2;\n[[wgmma.fence.sync.aligned;]]\n";
    pair(
        &[FILL, READY, DESCRIPTORS, FENCE, MMA, COMMIT, WAIT, read, MMA, COMMIT, WAIT, RESULT],
        2,
        FindingKind::MissingRegisterFence,
    );
}

#[test]
fn multiplications_of_one_shape_need_no_fence_between_them() {
    let other =
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, %d4, %d5, 0, 1, 1;\n";
    let body =
        kernel(&[FILL, READY, DESCRIPTORS, FENCE, MMA, MMA, COMMIT, WAIT, MMA, MMA, COMMIT, WAIT, RESULT]);
    block(128, &body).returns(|_, _| 64);
    let between = format!("[[wgmma.fence.sync.aligned;]]\n{MMA}");
    let body = kernel(&[FILL, READY, DESCRIPTORS, FENCE, other, &between, COMMIT, WAIT]);
    let kernel = block(128, &body);
    kernel.returns(|_, _| 0);
    kernel.lacks(FindingKind::MissingRegisterFence);
}

#[test]
fn accumulators_are_used_after_the_wait() {
    let multiply = kernel(&[FILL, READY, DESCRIPTORS, FENCE, MMA]);
    for end in [
        "wgmma.commit_group.sync.aligned; [[wgmma.wait_group.sync.aligned 0;]]\n",
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned [[0||1]];\n",
        "[[wgmma.commit_group.sync.aligned;]] wgmma.wait_group.sync.aligned 0;\n",
    ] {
        let text = pair(&[&multiply, end, RESULT], 1, FindingKind::RegisterInFlight);
        assert!(text.contains("multiplication not waited for"), "{text}");
    }
}

#[test]
fn the_newest_groups_may_be_left() {
    let two =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, %d4, %d5, 0, 1, 1, 0, 0;\n";
    let wait = "wgmma.wait_group.sync.aligned 1;\n";
    let result = "cvt.rni.u32.f32 %r9, [[%f0||%f4]]; wgmma.wait_group.sync.aligned 0;\n";
    pair(
        &[FILL, READY, DESCRIPTORS, FENCE, MMA, COMMIT, two, COMMIT, wait, result],
        1,
        FindingKind::RegisterInFlight,
    );
}

#[test]
fn groups_are_waited_for_before_the_end() {
    let multiply = kernel(&[FILL, READY, DESCRIPTORS, FENCE, MMA]);
    let body =
        kernel(&[&multiply, "wgmma.commit_group.sync.aligned; [[wgmma.wait_group.sync.aligned 0;]]\n"]);
    let kernel = block(128, &body);
    kernel.returns(|_, _| 0);
    kernel.lacks(FindingKind::UnwaitedMultiplication);
}

#[test]
fn operands_are_not_overwritten_before_the_wait() {
    let multiply = kernel(&[FILL, READY, DESCRIPTORS, FENCE, MMA, COMMIT]);
    let write = "[[wgmma.wait_group.sync.aligned 0; bar.sync 0;]] st.shared.u32 [%r5+2048], %r1; wgmma.wait_group.sync.aligned 0;\n";
    let text = pair(&[&multiply, write, RESULT], 1, FindingKind::InFlight);
    assert!(text.contains("is written while a multiplication may still read it"), "{text}");
}

/// Loads B, of 256 bytes. The mbarrier is at `dyn + 3072`.
fn load(wait_first: &str, wait_after: &str) -> String {
    format!(
        "add.u32 %r10, %r6, 3072; setp.ne.u32 %p1, %r1, 0; bar.sync 0; @%p1 bra go;\n\
         mbarrier.init.shared.b64 [%r10], 1; fence.mbarrier_init.release.cluster;\ngo: bar.sync 0;\n{wait_first}\n\
         @%p1 bra loaded; mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 256; add.u32 %r11, %r6, 2048;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%d2], 256, [%r10];\nloaded:\n{wait_after}\n"
    )
}

const LOADED: &str = "wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r10], 0; @!%p2 bra wait;";

#[test]
fn loads_are_waited_for() {
    let fill = FILL.replace("st.shared.u32 [%r5+3072], %r7; st.shared.u32 [%r5+3584], %r7;", "");
    let body = kernel(&[
        &fill,
        READY,
        DESCRIPTORS,
        &load("", &format!("[[{LOADED}]]")),
        FENCE,
        MMA,
        COMMIT,
        WAIT,
        &format!("[[||{LOADED}]]"),
    ]);
    let kernel = block(128, &body);
    kernel.returns(|_, _| 0);
    let text = kernel.lacks(FindingKind::ReadBeforeWait);
    assert!(text.contains("is multiplied, but the load that fills it"), "{text}");
}

#[test]
fn loads_must_follow_the_wait() {
    let fill = FILL.replace("st.shared.u32 [%r5+3072], %r7; st.shared.u32 [%r5+3584], %r7;", "");
    let body = kernel(&[
        &fill,
        READY,
        DESCRIPTORS,
        FENCE,
        MMA,
        COMMIT,
        &load("[[wgmma.wait_group.sync.aligned 0; bar.sync 0;]]", LOADED),
        WAIT,
        RESULT,
    ]);
    let kernel = block(128, &body);
    kernel.returns(|_, _| 16);
    let text = kernel.lacks(FindingKind::InFlight);
    assert!(text.contains("is loaded into while a multiplication may still read it"), "{text}");
}

#[test]
fn all_warps_of_a_warpgroup_take_part() {
    let multiply = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    let skip = format!("setp.lt.u32 %p1, %r1, 96; [[||@!%p1 bra gone;]] {multiply} gone:\n");
    let body = kernel(&[FILL, READY, DESCRIPTORS, &skip]);
    let kernel = block(128, &body);
    kernel.returns(|_, _| 16);
    kernel.lacks_one_of(&[FindingKind::DivergentMultiplication]);
    // A block without a whole warpgroup.
    let few = kernel_of_ones();
    let text = block(96, &few).lacks(FindingKind::DivergentMultiplication);
    assert!(text.contains("not in a complete warpgroup"), "{text}");
}

fn kernel_of_ones() -> String {
    // 96 threads fill less, which does not matter here.
    kernel(&[FILL, READY, DESCRIPTORS, FENCE, MMA, COMMIT, WAIT, RESULT])
}

#[test]
fn warps_issue_the_same_instructions_with_the_same_operands() {
    let end = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    // Descriptors that differ between warps, or between lanes.
    for shift in [5, 1] {
        let differ = format!(
            "shr.u32 %r10, %r1, {shift}; cvt.u64.u32 %d7, %r10; and.b64 %d7, %d7, [[0||1]]; add.u64 %d5, %d5, %d7;\n"
        );
        pair(&[FILL, READY, DESCRIPTORS, &differ, &end], 1, FindingKind::DivergentMultiplication);
    }
    // The predicate for accumulation holds in some threads, or in all.
    for bound in [64, 16] {
        let predicate = format!("setp.lt.u32 %p1, %r1, [[128||{bound}]];\n");
        let mma = MMA.replace("%d5, 1, 1", "%d5, %p1, 1");
        pair(
            &[FILL, READY, DESCRIPTORS, &predicate, FENCE, &mma, COMMIT, WAIT, RESULT],
            1,
            FindingKind::DivergentMultiplication,
        );
    }
    // Another instruction with the same operands.
    let other =
        format!("setp.lt.u32 %p1, %r1, [[0||64]]; @%p1 bra other; {MMA} bra.uni both; other: {MMA} both:\n");
    pair(
        &[FILL, READY, DESCRIPTORS, FENCE, &other, COMMIT, WAIT, RESULT],
        1,
        FindingKind::DivergentMultiplication,
    );
}

#[test]
fn descriptors_lead_to_shared_memory() {
    let end = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    // An LBO of 1024 or of 4096, or a start near the end.
    for change in ["or.b64 %d4, %d4, [[0||0x1000000]];", "add.u64 %d4, %d4, [[0||0x90]];"] {
        let text = pair(&[FILL, READY, DESCRIPTORS, change, &end], 1, FindingKind::OutOfBounds);
        assert!(text.contains("the descriptor of A leads"), "{text}");
    }
}

/// Within shared memory, but in the variable after A.
#[test]
fn descriptors_lead_to_the_variable_that_they_start_in() {
    let end = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    let body = kernel(&[FILL, READY, DESCRIPTORS, "or.b64 %d4, %d4, [[0||0x800000]];", &end]);
    let names = "// shared 0..2048 a: Tile<f16, Shape2<64, 16>>\n// shared 2048..4096 b: Tile<f16, Shape2<64, 16>>\n\n";
    let found = |names: &str, right: bool| {
        let module = Module::load(&format!("{names}{}", block(128, &body).text(right))).expect("it loads");
        let mut memory = GlobalMemory::default();
        let out = memory.allocate(512, true).expect("there is room");
        let config = LaunchConfig {
            grid: [1; 3],
            block: [128, 1, 1],
            cluster: [1; 3],
            dynamic_shared_bytes: 4096,
            checks: Checks::ALL,
            ..LaunchConfig::default()
        };
        let args = [Arg::Address(out), Arg::Address(out)];
        let report = launch(&module, &mut memory, "k", &config, &args).expect("it starts");
        report.findings.render(&module.sources(|_| None))
    };
    assert_eq!(found(names, true), "");
    assert_eq!(found("", false), "");
    let text = found(names, false);
    assert!(
        text.contains("the descriptor of A leads from 0x400 (`a`) to 0x1000 (byte 1024 of `b`)"),
        "{text}"
    );
}

#[test]
fn descriptors_have_only_their_fields() {
    let end = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    let change = "or.b64 %d5, %d5, [[0||0x4000]];";
    pair(&[FILL, READY, DESCRIPTORS, change, &end], 1, FindingKind::IllegalMultiplication);
}

/// An SBO of 128 bytes, or of 64, with which groups of 8 rows overlap. An SBO of 0 repeats rows on
/// purpose.
#[test]
fn chunks_of_an_operand_are_different_bytes() {
    let end = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    let change = "xor.b64 %d4, %d4, [[0||0x0000000c00000000]];";
    let text = pair(&[FILL, READY, DESCRIPTORS, change, &end], 1, FindingKind::IllegalMultiplication);
    assert!(text.contains("more than once, with an LBO of 1024 bytes and an SBO of 64"), "{text}");
    let repeats = "xor.b64 %d4, %d4, 0x0000000800000000;";
    block(128, &kernel(&[FILL, READY, DESCRIPTORS, repeats, &end])).returns(|_, _| 16);
}

/// On an H200, the pattern starts 128 bytes later for each unit of the base offset.
#[test]
fn the_base_offset_gives_the_start_of_the_pattern() {
    let end = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    // 32-byte swizzle: 8 rows of 32 bytes, SBO 256. B starts 128 bytes after the pattern does.
    let descriptors = "shr.u32 %r8, %r6, 4; cvt.u64.u32 %d6, %r8; or.b64 %d6, %d6, 0xc000001000010000;\n\
        mov.b64 %d4, %d6; add.u64 %d5, %d6, 136; or.b64 %d5, %d5, [[0x0002000000000000||0]];\n\
        mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n";
    let text = pair(&[FILL, READY, descriptors, &end], 1, FindingKind::Misaligned);
    assert!(text.contains("starts 128 bytes into the swizzle's pattern"), "{text}");
    assert!(text.contains("has the base offset 0"), "{text}");
}

/// The first two elements of each group of four, or in one group the first element twice.
#[test]
fn metadata_names_different_elements() {
    let sparse = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d4, %d5, %r20, 0, 1, 1, 1, 0, 0;\n";
    let metadata = "mov.u32 %r20, [[0x44444444||0x44044444]];\n";
    let body = [FILL, READY, DESCRIPTORS, metadata, FENCE, sparse, COMMIT, WAIT, RESULT];
    let text = pair(&body, 1, FindingKind::IllegalMultiplication);
    assert!(text.contains("has 0b0000 in bits 20 to 23, for row 8 and group 1"), "{text}");
}

#[test]
fn swizzled_operands_start_where_the_pattern_does() {
    let end = kernel(&[FENCE, MMA, COMMIT, WAIT, RESULT]);
    // 32-byte swizzle: 8 rows of 32 bytes, SBO 256. B starts one row later.
    let descriptors = "shr.u32 %r8, %r6, 4; cvt.u64.u32 %d6, %r8; or.b64 %d6, %d6, 0xc000001000010000;\n\
        mov.b64 %d4, %d6; add.u64 %d5, %d6, [[128||130]];\n\
        mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n";
    let text = pair(&[FILL, READY, descriptors, &end], 1, FindingKind::Misaligned);
    assert!(text.contains("starts 32 bytes into the swizzle's pattern"), "{text}");
}

/// A in registers, all ones.
const LEFT: &str = "mov.u32 %r20, 0x3c003c00; mov.u32 %r21, %r20; mov.u32 %r22, %r20; mov.u32 %r23, %r20;\n";
const MMA_OF_REGISTERS: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r20, %r21, %r22, %r23}, \
                                %d5, 1, 1, 1, 0;\n";

#[test]
fn registers_of_a_are_left_alone_until_the_wait() {
    let multiply = kernel(&[FILL, READY, DESCRIPTORS, LEFT, FENCE, MMA_OF_REGISTERS, COMMIT]);
    let written =
        "[[wgmma.wait_group.sync.aligned 0;]] mov.u32 %r21, %r1; wgmma.wait_group.sync.aligned 0;\n";
    pair(&[&multiply, written, RESULT], 1, FindingKind::RegisterInFlight);
    let read =
        "[[wgmma.wait_group.sync.aligned 0;]] add.u32 %r10, %r23, 1; wgmma.wait_group.sync.aligned 0;\n";
    pair(&[&multiply, read, RESULT], 1, FindingKind::RegisterInFlight);
    // Two multiplications may read them.
    let body = kernel(&[
        FILL,
        READY,
        DESCRIPTORS,
        LEFT,
        FENCE,
        MMA_OF_REGISTERS,
        MMA_OF_REGISTERS,
        COMMIT,
        WAIT,
        RESULT,
    ]);
    block(128, &body).returns(|_, _| 32);
}

#[test]
fn a_fence_must_follow_writes_of_a() {
    let again = "mov.u32 %r21, %r20;\n[[wgmma.fence.sync.aligned;]]\n";
    pair(
        &[
            FILL,
            READY,
            DESCRIPTORS,
            LEFT,
            FENCE,
            MMA_OF_REGISTERS,
            COMMIT,
            WAIT,
            again,
            MMA_OF_REGISTERS,
            COMMIT,
            WAIT,
            RESULT,
        ],
        2,
        FindingKind::MissingRegisterFence,
    );
}

#[test]
fn accumulators_are_no_operands_in_flight() {
    let as_left = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, {%f0, %f1, %f2, %f3}, %d5, 0, 1, 1, 0;\n";
    let between =
        "[[wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; wgmma.fence.sync.aligned;]]\n";
    let body = kernel(&[FILL, READY, DESCRIPTORS, FENCE, MMA, between, as_left, COMMIT, WAIT, RESULT]);
    let kernel = block(128, &body);
    kernel.returns(|_, _| 16);
    kernel.lacks(FindingKind::RegisterInFlight);
}

/// The product is that of the operands at the time of issue, whenever they are read: they are
/// refilled immediately after the wait.
#[test]
fn a_ring_of_operands_is_refilled() {
    let round = kernel(&[FENCE, MMA, COMMIT, WAIT]);
    let refill = "bar.sync 0; add.u32 %r7, %r7, %r20; st.shared.u32 [%r5+2048], %r7; fence.proxy.async.shared::cta; bar.sync 0;\n";
    // B consists of ones, then of twos (0x4000); threes would be 0x4200.
    let body =
        kernel(&[FILL, READY, DESCRIPTORS, "mov.u32 %r20, 0x04000400;\n", &round, refill, &round, RESULT]);
    block(128, &body).returns(|_, _| 16 + 32);
}

/// The first thread of a warp signals that the warp is done, although its lanes have not
/// synchronised since they waited. The wait itself guarantees that all lanes have issued the
/// multiplication.
#[test]
fn one_thread_may_release_for_its_warp_after_the_wait() {
    let arrive = "@!%p3 bra told; mbarrier.arrive.shared.b64 _, [%r11]; told:\n";
    let (after, before) = (format!("[[{arrive}]]"), format!("[[||{arrive}]]"));
    let wait = |name: &str, barrier: &str, parity: u32| {
        format!("{name}: mbarrier.try_wait.parity.shared.b64 %p4, [{barrier}], {parity}; @!%p4 bra {name};\n")
    };
    let body = kernel(&[
        "mov.u32 %r6, dyn; add.u32 %r10, %r6, 3072; add.u32 %r11, %r6, 3080; setp.ne.u32 %p1, %r1, 0;\n\
         and.b32 %r12, %r1, 31; setp.eq.u32 %p3, %r12, 0; setp.ge.u32 %p2, %r1, 128; @%p1 bra met;\n\
         mbarrier.init.shared.b64 [%r10], 1; mbarrier.init.shared.b64 [%r11], 4;\nmet: bar.sync 0;\n",
        "@%p2 bra produce;\n",
        &FILL.replace("st.shared.u32 [%r5+3072], %r7; st.shared.u32 [%r5+3584], %r7;", ""),
        "fence.proxy.async.shared::cta; bar.sync 1, 128;\n",
        DESCRIPTORS,
        &wait("full", "%r10", 0),
        &before,
        FENCE,
        MMA,
        COMMIT,
        WAIT,
        &after,
        &wait("again", "%r10", 1),
        RESULT,
        "bra.uni end;\nproduce: @!%p3 bra end; mbarrier.arrive.shared.b64 _, [%r10];\n",
        &wait("empty", "%r11", 0),
        "mbarrier.arrive.shared.b64 _, [%r10];\nend:\n",
    ]);
    let kernel = block(160, &body);
    kernel.returns(|_, thread| if thread < 128 { 16 } else { 0 });
    kernel.lacks(FindingKind::Overrun);
}
