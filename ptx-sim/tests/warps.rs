//! Values that lanes of a warp read from each other when some lanes are absent, and `mma.sync`.

use crate::pairs::{accepted, block, refused};
use ptx_sim::FindingKind;

#[test]
fn lanes_that_are_not_in_the_mask_are_not_read() {
    for lane in ["[[3||20]]", "[[35||52]]"] {
        let body = format!(
            "setp.ge.u32 %p1, %r1, 16; @%p1 bra skip; shfl.sync.idx.b32 %r9, %r1, {lane}, 31, 0xffff; skip: bar.warp.sync -1;"
        );
        let kernel = block(32, &body);
        kernel.returns(|_, lane| if lane < 16 { 3 } else { 0 });
        let found = kernel.lacks(FindingKind::Execution);
        assert!(found.contains("reads the value of lane 20, which is not in the mask 0x0000ffff"), "{found}");
    }
}

#[test]
fn lanes_that_have_exited_are_not_read() {
    let body = "setp.ge.u32 %p1, %r1, 16; [[||@%p1 exit;]] shfl.sync.bfly.b32 %r9, %r1, 16, 31, -1;";
    let kernel = block(32, body);
    kernel.returns(|_, lane| lane ^ 16);
    assert!(kernel.lacks(FindingKind::Execution).contains("which is not active: it has exited"));
    // A clamp keeps each lane from reading them.
    let body = "setp.ge.u32 %p1, %r1, 16; @%p1 exit; shfl.sync.down.b32 %r9, %r1, 4, [[15||31]], -1;";
    let kernel = block(32, body);
    kernel.returns(|_, lane| match lane {
        0..12 => lane + 4,
        12..16 => lane,
        _ => 0,
    });
    kernel.lacks(FindingKind::Execution);
}

#[test]
fn lanes_that_a_block_does_not_have_are_not_read() {
    for (threads, shuffle) in
        [(40, "bfly.b32 %r9, %r1, [[4||8]], 31"), (36, "idx.b32 %r9, %r1, [[3||4]], 31")]
    {
        let body = format!("shfl.sync.{shuffle}, -1;");
        let kernel = block(threads, &body);
        let is_butterfly = threads == 40;
        kernel.returns(|_, thread| if is_butterfly { thread ^ 4 } else { thread / 32 * 32 + 3 });
        assert!(kernel.lacks(FindingKind::Execution).contains("or the block has no such thread"));
    }
}

/// A lane whose source is out of range keeps its own value, and the predicate reports that.
#[test]
fn lanes_out_of_range_keep_their_own_value() {
    let body = "shfl.sync.up.b32 %r9|%p1, %r1, 5, 0, -1; @!%p1 add.u32 %r9, %r9, 100;";
    block(32, body).returns(|_, lane| if lane < 5 { lane + 100 } else { lane - 5 });
    // In segments of 8 lanes.
    let body = "shfl.sync.down.b32 %r9|%p1, %r1, 3, 0x181f, -1; @!%p1 add.u32 %r9, %r9, 100;";
    block(32, body).returns(|_, lane| if lane % 8 < 5 { lane + 3 } else { lane + 100 });
    let body = "shfl.sync.bfly.b32 %r9|%p1, %r1, 12, 0x181f, -1; @!%p1 add.u32 %r9, %r9, 100;";
    block(32, body).returns(|_, lane| if lane ^ 12 <= lane & 24 | 7 { lane ^ 12 } else { lane + 100 });
}

/// Collective operations in a warp that has only 8 lanes.
#[test]
fn lanes_that_are_not_there_count_for_nothing() {
    let lanes = |thread: u32| thread / 32 * 32..(thread / 32 * 32 + 32).min(40);
    block(40, "redux.sync.max.u32 %r9, %r1, -1;").returns(|_, thread| lanes(thread).end - 1);
    block(40, "redux.sync.and.b32 %r9, %r1, -1;").returns(|_, thread| thread / 32 * 32);
    block(40, "setp.ne.u32 %p1, %r1, 99; vote.sync.ballot.b32 %r9, %p1, -1;")
        .returns(|_, thread| if thread < 32 { u32::MAX } else { 0xff });
    block(40, "setp.ne.u32 %p1, %r1, 99; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;")
        .returns(|_, _| 1);
    block(40, "and.b32 %r5, %r1, 3; match.any.sync.b32 %r9, %r5, -1;")
        .returns(|_, thread| (if thread < 32 { 0x1111_1111 } else { 0x11 }) << (thread % 4));
    block(40, "mov.u32 %r5, 7; match.all.sync.b32 %r9|%p1, %r5, -1; @!%p1 mov.u32 %r9, 1;")
        .returns(|_, thread| if thread < 32 { u32::MAX } else { 0xff });
}

#[test]
fn forms() {
    accepted(&[
        "redux.sync.min.s32 %r1, %r2, -1;",
        "match.any.sync.b64 %r1, %d2, -1;",
        "vote.sync.uni.pred %p1, %p2, -1;",
        "shfl.sync.idx.b32 %r1|%p1, %r2, 3, 0x1c1f, 0xff;",
    ]);
    refused(&[
        ("redux.sync.add.u64 %d1, %d2, -1;", "not supported"),
        ("redux.add.u32 %r1, %r2, -1;", "not supported"),
        ("shfl.idx.b32 %r1, %r2, 3, 31;", "not supported"),
        ("shfl.sync.idx.b64 %d1, %d2, 3, 31, -1;", "not supported"),
        ("match.sync.b32 %r1, %r2, -1;", "not supported"),
    ]);
}

/// A consists of ones except for its last row, which consists of twos, and B of ones. D is 8, and
/// 16 in that row.
const PRODUCT: &str = "mov.u32 %r20, 0x3c003c00; mov.u32 %r21, %r20; mov.u32 %r22, %r20; mov.u32 %r23, 0;\n\
    setp.ge.u32 %p1, %r1, 28; @%p1 mov.u32 %r21, 0x40004000; mov.f32 %f0, 0f3f800000;\n";
const MMA: &str = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r20, %r21}, {%r22}, \
                   {%f0, %f0, %f0, %f0};\n";

#[test]
fn a_warp_multiplies() {
    let body = format!("{PRODUCT}{MMA} add.f32 %f1, %f1, %f4; cvt.rni.u32.f32 %r9, %f1;");
    block(32, &body).returns(|_, lane| if lane >= 28 { 9 + 17 } else { 9 + 9 });
}

#[test]
fn all_lanes_of_a_warp_multiply() {
    let body = format!("{PRODUCT} setp.lt.u32 %p2, %r1, 4; [[||@%p2 exit;]] {MMA}");
    let text = block(32, &body).lacks(FindingKind::Execution);
    assert!(text.contains("only lanes 0xfffffff0 move or multiply"), "{text}");
}

#[test]
fn products_of_a_warp_that_are_not_there_are_refused() {
    let mma = "mma.sync.aligned";
    let halves = "{%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2, %r3, %r4};";
    let cases = [
        ("m16n8k32.row.col.f32.f16.f16.f32", "expected k8 or k16"),
        ("m16n8k16.row.col.f32.f16.bf16.f32", "f16 cannot be multiplied by bf16"),
        ("m16n8k16.row.col.f16.bf16.bf16.f16", "bf16 cannot be accumulated in f16"),
        ("m16n8k16.row.col.f16.f16.f16.f32", "C and D must be of one type"),
        ("m16n8k16.row.col.f32.f16.f16.f16", "C and D must be of one type"),
        ("m16n8k16.col.row.f32.f16.f16.f32", "expected `.row.col`"),
        ("m16n8k16.row.f32.f16.f16.f32", "expected `.row.col`"),
        ("m16n8k16.row.col.satfinite.f32.f16.f16.f32", "integers of 8 bits"),
        ("m16n8k32.row.col.s32.s4.s4.s32", "expected supported types"),
        ("m16n8k256.row.col.s32.b1.b1.s32", "expected `.and.popc` or `.xor.popc`"),
        ("m16n8k8.row.col.f32.f16.f16.f32", "2 registers in braces"),
        ("m8n8k4.row.col.f32.f16.f16.f32", "not supported"),
    ];
    let cases = cases.map(|(form, wanted)| (format!("{mma}.{form} {halves}"), wanted));
    refused(&cases.each_ref().map(|(text, wanted)| (text.as_str(), *wanted)));
    refused(&[(
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1}, %r3, 0;",
        "not supported",
    )]);
}
