//! The instruction forms that exist.

use crate::pairs::{accepted, block, refused};
use ptx_sim::Module;

const D4: &str = "{%f0, %f1, %f2, %f3}";

#[test]
fn forms_that_are_not_there_are_refused() {
    let mma = "wgmma.mma_async.sync.aligned";
    let sparse = "wgmma.mma_async.sp.sync.aligned";
    let cases = [
        (
            format!("{mma}.m64n8k16.f32.f16.bf16 {D4}, %d4, %d5, 1, 1, 1, 0, 0;"),
            "f16 cannot be multiplied by bf16",
        ),
        (
            format!("{mma}.m64n8k16.s32.f16.f16 {{%r4, %r5, %r6, %r7}}, %d4, %d5, 1, 1, 1, 0, 0;"),
            "cannot be accumulated in s32",
        ),
        (format!("{mma}.m64n12k16.f32.f16.f16 {D4}, %d4, %d5, 1, 1, 1, 0, 0;"), "N must be a multiple of 8"),
        (format!("{mma}.m64n40k32.s32.s8.s8 {D4}, %d4, %d5, 1;"), "8, 16, 24, 32 or a multiple of 16"),
        (format!("{mma}.m64n8k8.f32.f16.f16 {D4}, %d4, %d5, 1, 1, 1, 0, 0;"), "expected k16"),
        (format!("{mma}.m64n8k16.f32.f16.f16 {{%f0, %f1}}, %d4, %d5, 1, 1, 1, 0, 0;"), "4 registers of D"),
        (format!("{mma}.m64n8k16.f32.f16.f16 {D4}, {{%r4, %r5}}, %d5, 1, 1, 1, 0;"), "4 registers of A"),
        (format!("{mma}.m64n8k16.f32.f16.f16 {D4}, %d4, %d5, 1, 1, 2, 0, 0;"), "`imm-scale` is 1 or -1"),
        (format!("{mma}.m64n8k16.f32.f16.f16 {D4}, %d4, %d5, 1, 1, 1, 0, 2;"), "`imm-trans` is 0 or 1"),
        // A in registers cannot be transposed, and neither can 8-bit types.
        (format!("{mma}.m64n8k16.f32.f16.f16 {D4}, {{%r4, %r5, %r6, %r7}}, %d5, 1, 1, 1, 0, 0;"), "operands"),
        (format!("{mma}.m64n8k32.f32.e4m3.e4m3 {D4}, %d4, %d5, 1, 1, 1, 0, 0;"), "operands"),
        (format!("{mma}.m64n8k32.s32.s8.s8 {{%r4, %r5, %r6, %r7}}, %d4, %d5, 1, 1, 1;"), "operands"),
        (format!("{mma}.m64n8k8.f32.tf32.tf32.satfinite {D4}, %d4, %d5, 1, 1, 1;"), "`.satfinite`"),
        (
            format!("{mma}.m64n8k256.s32.b1.b1.xor.popc {{%r4, %r5, %r6, %r7}}, %d4, %d5, 1;"),
            "expected `.and.popc`",
        ),
        (
            format!("{mma}.m64n8k256.s32.b1.b1.and.popc {{%r4, %r5, %r6, %r7}}, %d4, %d5, %r8, 0, 1;"),
            "`%r8` is not a predicate",
        ),
        (
            format!("{sparse}.m64n8k256.s32.b1.b1.and.popc {{%r4, %r5, %r6, %r7}}, %d4, %d5, %r8, 0, 1;"),
            "b1 cannot be sparse",
        ),
        (format!("{sparse}.m64n8k16.f32.f16.f16 {D4}, %d4, %d5, %r8, 0, 1, 1, 1, 0, 0;"), "expected k32"),
        (
            format!("{sparse}.m64n8k32.f32.f16.f16 {D4}, %d4, %d5, %r8, 2, 1, 1, 1, 0, 0;"),
            "selector of f16 is 0 or 1",
        ),
        (
            format!("{sparse}.m64n8k64.f32.e4m3.e4m3 {D4}, %d4, %d5, %r8, 1, 1, 1, 1;"),
            "selector of e4m3 is 0",
        ),
        (format!("{sparse}.m64n8k32.f32.f16.f16 {D4}, %d4, %d5, %d6, 0, 1, 1, 1, 0, 0;"), "32"),
        ("wgmma.fence.aligned;".to_owned(), "`.sync.aligned`"),
        ("setmaxnreg.inc.sync.aligned.u32 16;".to_owned(), "a multiple of 8 registers from 24 to 256"),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(body, wanted)| (body.as_str(), *wanted)).collect();
    refused(&cases);
}

#[test]
fn forms_that_are_there_load() {
    let registers = "{%r4, %r5, %r6, %r7}";
    let mma = "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned";
    let sparse = "wgmma.fence.sync.aligned; wgmma.mma_async.sp.sync.aligned";
    let end = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";
    let cases = [
        format!("{mma}.m64n8k16.f32.f16.f16 {D4}, %d4, %d5, %p1, 1, -1, 0, 1; {end}"),
        format!("{mma}.m64n8k16.f16.f16.f16 {{%r8, %r10}}, {registers}, %d5, 0, 1, 1, 1; {end}"),
        format!("{mma}.m64n8k32.f16.e4m3.e5m2 {{%r8, %r10}}, %d4, %d5, 0, 1, 1; {end}"),
        format!("{mma}.m64n8k8.f32.tf32.tf32 {D4}, {registers}, %d5, 1, -1, -1; {end}"),
        format!("{mma}.m64n8k32.s32.u8.s8.satfinite {{%r10, %r11, %r12, %r13}}, %d4, %d5, %p1; {end}"),
        format!("{mma}.m64n8k256.s32.b1.b1.and.popc {{%r10, %r11, %r12, %r13}}, %d4, %d5, 1; {end}"),
        format!("{sparse}.m64n8k32.f32.f16.f16 {D4}, %d4, %d5, %r8, 1, %p1, 1, -1, 0, 1; {end}"),
        format!("{sparse}.m64n8k16.f32.tf32.tf32 {D4}, {registers}, %d5, %r8, 0, 1, -1, -1; {end}"),
        format!("{sparse}.m64n8k64.f16.e4m3.e5m2 {{%r9, %r10}}, %d4, %d5, %r8, 0, 0, 1, 1; {end}"),
        format!(
            "{sparse}.m64n8k64.s32.u8.s8.satfinite {{%r10, %r11, %r12, %r13}}, %d4, %d5, %r8, 0, 1; {end}"
        ),
    ];
    accepted(&cases.each_ref().map(String::as_str));
}

/// ptxas accepts one register for two elements of D, with unclear semantics. Here it is an error.
#[test]
fn each_register_of_d_is_there_once() {
    let body =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f1, %f2}, %d4, %d5, 1, 1, 1, 0, 0;";
    let error = Module::load(&block(1, body).text(true)).expect_err("a register is there twice");
    assert!(error.message.contains("must be distinct"), "{error}");
}
