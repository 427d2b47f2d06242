//! Matrices moved by warps, vector atomics, 128-bit operations, and instructions that only need to
//! be accepted: `setmaxnreg`, `griddepcontrol`, `nanosleep`.

use crate::pairs::{accepted, block, cluster, input, refused};
use ptx_sim::FindingKind;

/// Copies 256 words of the input to `dyn`. `%r5` is the address of row `%r1` of 16 bytes.
const FILLED: &str = "shl.b32 %r5, %r1, 4; mov.u32 %r6, dyn; add.u32 %r5, %r5, %r6; mul.wide.u32 %d4, %r1, 16; add.u64 %d4, %d2, %d4;\n\
    ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d4]; st.shared.v4.u32 [%r5], {%r10, %r11, %r12, %r13};\n";

/// Returns number `column` of row `row`, where a row has eight 16-bit numbers.
fn number(row: u32, column: u32) -> u32 {
    input(row * 4 + column / 2) >> (column % 2 * 16) & 0xffff
}

fn pair(low: u32, high: u32) -> u32 {
    low | high << 16
}

#[test]
fn matrices_are_loaded() {
    for (form, index) in [("x1", 0), ("x2", 1), ("x4", 3)] {
        let registers = ["{%r20}", "{%r20, %r21}", "", "{%r20, %r21, %r22, %r23}"][index as usize];
        let body = |trans: &str| {
            format!(
                "{FILLED} [[bar.sync 0;]] ldmatrix.sync.aligned.m8n8.{form}{trans}.shared.b16 {registers}, [%r5];\n\
                 mov.u32 %r9, %r2{index};"
            )
        };
        block(32, &body("")).returns(|_, lane| {
            let row = 8 * index + lane / 4;
            pair(number(row, lane % 4 * 2), number(row, lane % 4 * 2 + 1))
        });
        block(32, &body(".trans")).returns(|_, lane| {
            let row = 8 * index + lane % 4 * 2;
            pair(number(row, lane / 4), number(row + 1, lane / 4))
        });
    }
    // Rows that other warps have written require a barrier.
    let body = format!(
        "{FILLED} [[bar.sync 0;]] xor.b32 %r5, %r5, 512; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r5];\n\
         xor.b32 %r9, %r20, %r23;"
    );
    let kernel = block(64, &body);
    kernel.returns(|_, thread| {
        let (first, lane) = (((thread / 32) ^ 1) * 32, thread % 32);
        let held = |row| pair(number(row, lane % 4 * 2), number(row, lane % 4 * 2 + 1));
        held(first + lane / 4) ^ held(first + 24 + lane / 4)
    });
    kernel.lacks_one_of(&[FindingKind::Race, FindingKind::Uninitialised]);
}

#[test]
fn matrices_are_stored_and_transposed() {
    // Stored as loaded, or transposed, at a generic address.
    let body = |trans: &str| {
        format!(
            "{FILLED} bar.sync 0; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%r20, %r21}}, [%r5];\n\
             cvta.shared.u64 %d5, dyn; and.b32 %r7, %r1, 15; mul.wide.u32 %d6, %r7, 16; add.u64 %d5, %d5, %d6;\n\
             stmatrix.sync.aligned.m8n8.x2{trans}.b16 [%d5+1024], {{%r20, %r21}}; bar.sync 0;\n\
             shl.b32 %r7, %r1, 1; add.u32 %r7, %r7, %r6; ld.shared.u16 %h1, [%r7+1024+128]; cvt.u32.u16 %r9, %h1;"
        )
    };
    block(32, &body("")).returns(|_, lane| number(8 + lane / 8, lane % 8));
    block(32, &body(".trans")).returns(|_, lane| number(8 + lane % 8, lane / 8));
    let body = "mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d2, %d4; ld.global.u32 %r20, [%d4];\n\
        movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r20;";
    block(32, body)
        .returns(|_, lane| pair(number(lane % 4 * 2, lane / 4), number(lane % 4 * 2 + 1, lane / 4)));
}

#[test]
fn matrix_moves_require_whole_warps() {
    let load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r5";
    for (body, kind) in [
        (format!("{FILLED} bar.sync 0; {load}+[[0||8]]];"), FindingKind::Misaligned),
        (format!("{FILLED} bar.sync 0; {load}+[[0||4096]]];"), FindingKind::OutOfBounds),
        (
            format!(
                "{FILLED} bar.sync 0; setp.lt.u32 %p1, %r1, 16; [[||@%p1 bra skip;]] {load}]; skip: bar.warp.sync -1;"
            ),
            FindingKind::Deadlock,
        ),
        (
            format!("{FILLED} bar.sync 0; setp.lt.u32 %p1, %r1, 16; [[||@%p1 exit;]] {load}];"),
            FindingKind::Execution,
        ),
        (
            format!(
                "{FILLED} bar.sync 0; cvta.shared.u64 %d5, dyn; ldmatrix.sync.aligned.m8n8.x1.b16 {{%r20}}, [%d[[5||2]]];"
            ),
            FindingKind::OutOfBounds,
        ),
    ] {
        let kernel = block(32, &body);
        kernel.returns(|_, _| 0);
        kernel.lacks(kind);
    }
}

#[test]
fn vectors_are_changed_element_by_element() {
    // 64 threads add 1.0 and 2.0 to zeros.
    let body = "setp.eq.u32 %p1, %r1, 0; mov.f32 %f1, 0f00000000; @%p1 st.global.v4.f32 [%d2], {%f1, %f1, %f1, %f1}; bar.sync 0;\n\
        mov.f32 %f2, 0f3F800000; mov.f32 %f3, 0f40000000; red.global.add.v4.f32 [%d2[[||+8]]], {%f2, %f3, %f2, %f3}; bar.sync 0;\n\
        ld.relaxed.gpu.global.f32 %f4, [%d2+12]; cvt.rzi.u32.f32 %r9, %f4;";
    let kernel = block(64, body);
    kernel.returns(|_, _| 128);
    kernel.lacks(FindingKind::Misaligned);
    let body = "mov.u32 %r10, 0x3c003c00; mov.u32 %r11, 0x40004000; st.global.v2.u32 [%d2], {%r10, %r11};\n\
        atom.global.add.noftz.v2.f16x2 {%r12, %r13}, [%d2], {%r11, %r10}; ld.global.v2.u32 {%r14, %r15}, [%d2];\n\
        xor.b32 %r9, %r12, %r10; xor.b32 %r16, %r13, %r11; or.b32 %r9, %r9, %r16; xor.b32 %r16, %r14, %r15; or.b32 %r9, %r9, %r16;\n\
        add.u32 %r9, %r9, %r14;";
    block(1, body).returns(|_, _| 0x4200_4200);
    let body = "mov.u32 %r10, 0x40003c00; st.global.u32 [%d2], %r10; mov.b16 %h1, 0x4000; mov.b16 %h2, 0x3c00;\n\
        red.global.max.noftz.v2.f16 [%d2], {%h1, %h2}; ld.global.u32 %r9, [%d2];";
    block(1, body).returns(|_, _| 0x4000_4000);
}

#[test]
fn registers_of_128_bits() {
    let body = ".reg .b128 %q<4>; mov.b128 %q1, {%d1, %d2}; mov.b128 %q2, %q1; mov.b128 {%r10, %r11, %r12, %r13}, %q2;\n\
        mov.b128 {%d5, %d6}, %q2; sub.u64 %d6, %d6, %d2; cvt.u32.u64 %r9, %d6; cvt.u32.u64 %r14, %d1; sub.u32 %r14, %r14, %r10;\n\
        add.u32 %r9, %r9, %r14; ld.global.b128 %q3, [%d2+16]; st.global.b128 [%d2], %q3; ld.global.u32 %r15, [%d2+[[12||10]]];\n\
        add.u32 %r9, %r9, %r15;";
    let kernel = block(1, body);
    kernel.returns(|_, _| input(7));
    kernel.lacks(FindingKind::Misaligned);
    // 64 threads add 1 to the upper half and 3 to the lower half of 128 bits, in shared and in
    // global memory.
    for (space, first) in [
        ("shared", "st.shared.v4.u32 [dyn], {%r9, %r9, %r9, %r9}"),
        ("global", "st.global.v4.u32 [%d2], {%r9, %r9, %r9, %r9}"),
    ] {
        let at = if space == "shared" { "dyn" } else { "%d2" };
        let body = format!(
            ".reg .b128 %q<4>; setp.eq.u32 %p1, %r1, 0; @%p1 {first}; bar.sync 0; mov.u64 %d5, 0; mov.u64 %d6, 0;\n\
             again: mov.b128 %q1, {{%d5, %d6}}; add.u64 %d7, %d5, 3; add.u64 %d8, %d6, 1; mov.b128 %q2, {{%d7, %d8}};\n\
             atom.{space}.cas.b128 %q3, [{at}], %q1, %q2; mov.b128 {{%d7, %d8}}, %q3; setp.ne.u64 %p2, %d7, %d5;\n\
             mov.u64 %d5, %d7; mov.u64 %d6, %d8; @%p2 bra again; bar.sync 0; mov.b128 %q1, {{%d5, %d6}};\n\
             ld.relaxed.cta.{space}.u32 %r9, [{at}+[[8||12]]]; ld.relaxed.cta.{space}.u32 %r10, [{at}]; mad.lo.u32 %r9, %r9, 1000, %r10;"
        );
        let kernel = block(64, &body);
        kernel.returns(|_, _| 64_192);
    }
    let body = ".reg .b128 %q<4>; mov.b128 %q1, {%d2, %d2}; atom.global.exch.b128 %q2, [%d2], %q1; mov.b128 {%r10, %r11, %r12, %r13}, %q2;\n\
        mov.u32 %r9, %r12; ld.global.u64 %d5, [%d2+8]; setp.ne.u64 %p1, %d5, %d2; @%p1 mov.u32 %r9, 0;";
    block(1, body).returns(|_, _| input(2));
}

#[test]
fn hints_change_nothing() {
    let body = "setmaxnreg.inc.sync.aligned.u32 232; griddepcontrol.wait; griddepcontrol.launch_dependents; nanosleep.u32 20;\n\
        nanosleep.u32 %r1; mov.u32 %r9, %r1;";
    cluster(1, 128, body).returns(|_, thread| thread);
}

#[test]
fn forms() {
    accepted(&[
        "ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%r1}, [dyn];",
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r5], {%r1, %r2, %r3, %r4};",
        "atom.global.v4.f32.add {%f1, %f2, %f3, %f4}, [%d1], {%f1, %f2, %f3, %f4};",
        "red.global.add.noftz.v8.bf16 [%d1], {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8};",
        "red.relaxed.gpu.global.min.noftz.v4.bf16x2 [%d1], {%r1, %r2, %r3, %r4};",
        ".reg .b128 %q<3>; atom.global.exch.b128 %q1, [%d1], %q2;",
        "setmaxnreg.dec.sync.aligned.u32 24;",
    ]);
    refused(&[
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [dyn];", "braces"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [dyn];", "braces"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [dyn];", "m8n8"),
        ("ldmatrix.aligned.m8n8.x1.shared.b16 {%r1}, [dyn];", "sync"),
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [dyn], {%r1};", "m8n8"),
        ("movmatrix.sync.aligned.m8n8.b16 %r1, %r2;", "trans"),
        ("red.shared.add.v2.f32 [dyn], {%f1, %f2};", "global"),
        ("red.global.min.v2.bf16x2 [%d1], {%r1, %r2};", "noftz"),
        ("red.global.add.v8.f32 [%d1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};", "at most 4"),
        ("red.global.add.v2.u32 [%d1], {%r1, %r2};", "no vectors"),
        (".reg .b128 %q<3>; mov.b128 %q1, {%r1, %r2};", "has 32"),
        (".reg .b128 %q<3>; red.global.exch.b128 [%d1], %q2;", "not supported"),
        (".reg .b128 %q<3>; add.u64 %d1, %q1, %d2;", "has 128"),
        ("setmaxnreg.inc.sync.aligned.u32 65;", "multiple of 8"),
        ("setmaxnreg.dec.sync.aligned.u32 264;", "24 to 256"),
        ("setmaxnreg.inc.u32 64;", "not supported"),
        ("griddepcontrol.frob;", "not supported"),
        ("nanosleep.u32;", "operands"),
    ]);
}

/// `elect.sync` guarantees the same lane for the same mask, but not which one.
#[test]
fn whoever_takes_the_elected_lane_for_lane_0_is_found() {
    let kernel = block(
        32,
        "elect.sync %r5|%p1, -1; @%p1 st.shared.u32 [dyn], 7; [[bar.warp.sync -1;]]\n\
         setp.eq.u32 %p2, %r1, 0; @%p2 ld.shared.u32 %r9, [dyn];",
    );
    kernel.returns(|_, lane| if lane == 0 { 7 } else { 0 });
    let wrong = (0..16).filter(|&seed| !kernel.run(false, seed).0.findings.is_empty());
    assert!(wrong.count() >= 8, "under most seeds another lane is elected");
}

#[test]
fn the_elected_lane_depends_on_seed_warp_and_mask() {
    let leaders = |body: &str, seed| block(64, body).run(true, seed).2;
    let (of_all, of_half) = (
        "elect.sync %r9|%p1, -1;",
        "and.b32 %r5, %r1, 16; shl.b32 %r6, 0xffff, %r5; elect.sync %r9|%p1, %r6;",
    );
    let firsts: std::collections::BTreeSet<u32> = (0..32).map(|seed| leaders(of_all, seed)[0]).collect();
    assert!(firsts.len() > 8, "{firsts:?}");
    assert!((0..8).any(|seed| leaders(of_all, seed)[0] != leaders(of_all, seed)[32]), "of each warp its own");
    for seed in 0..8 {
        let leaders = leaders(of_half, seed);
        for (thread, &leader) in leaders.iter().enumerate() {
            assert_eq!(leader / 16, thread as u32 % 32 / 16, "one of its own mask");
            assert_eq!(leader, leaders[thread / 16 * 16], "one for all");
        }
    }
}
