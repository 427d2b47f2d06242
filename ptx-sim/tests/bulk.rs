//! Bulk copies and reductions without tensor maps, cache hints and policies, `discard`.

use crate::pairs::{accepted, block, input, refused};
use ptx_sim::FindingKind;

/// Threads write 16 bytes each at `dyn`, from `%r10` to `%r13`. Thread 0 then continues alone, up
/// to `done`.
const STORED: &str = "shl.b32 %r5, %r1, 4; mov.u32 %r6, dyn; add.u32 %r5, %r5, %r6;\n\
    st.shared.v4.u32 [%r5], {%r10, %r11, %r12, %r13}; fence.proxy.async.shared::cta; bar.sync 0;\n\
    setp.ne.u32 %p1, %r1, 0; @%p1 bra done;\n";
const DONE: &str = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; done:";

/// Returns the result of reducing `words` into four words of the input, word by word.
fn reduced(op: &str, words: [u32; 4]) -> [u32; 4] {
    let mut result = [0; 4];
    for (index, element) in result.iter_mut().enumerate() {
        let [a, b, c, d] = words;
        let body = format!(
            "mov.u32 %r10, {a}; mov.u32 %r11, {b}; mov.u32 %r12, {c}; mov.u32 %r13, {d}; {STORED}\n\
             cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%d2], [dyn], 16; {DONE} ld.global.u32 %r9, [%d2+{}];",
            4 * index
        );
        let (report, module, words) = block(1, &body).run(true, 5);
        assert!(report.findings.is_empty(), "{}", report.findings.render(&module.sources(|_| None)));
        *element = words[0];
    }
    result
}

/// Joins four words into two of 64 bits.
fn wide(words: [u32; 4]) -> [u64; 2] {
    [0, 2].map(|i| u64::from(words[i]) | u64::from(words[i + 1]) << 32)
}

#[test]
fn words_are_reduced() {
    let old: [u32; 4] = [0, 1, 2, 3].map(input);
    let new = [1, 0x8000_0000, 0xffff_ffff, 12];
    let words = |change: fn(u32, u32) -> u32| std::array::from_fn(|i| change(old[i], new[i]));
    assert_eq!(reduced("add.u32", new), words(u32::wrapping_add));
    assert_eq!(reduced("add.s32", new), words(u32::wrapping_add));
    assert_eq!(reduced("min.u32", new), words(u32::min));
    assert_eq!(reduced("max.s32", new), words(|a, b| (a as i32).max(b as i32) as u32));
    assert_eq!(reduced("inc.u32", new), words(|a, b| if a >= b { 0 } else { a + 1 }));
    assert_eq!(reduced("dec.u32", new), words(|a, b| if a == 0 || a > b { b } else { a - 1 }));
    assert_eq!(reduced("and.b32", new), words(|a, b| a & b));
    assert_eq!(reduced("or.b32", new), words(|a, b| a | b));
    assert_eq!(reduced("xor.b64", new), words(|a, b| a ^ b));
    let longs = |change: fn(u64, u64) -> u64| {
        let (old, new) = (wide(old), wide(new));
        [change(old[0], new[0]), change(old[1], new[1])]
    };
    assert_eq!(wide(reduced("add.u64", new)), longs(u64::wrapping_add));
    assert_eq!(wide(reduced("min.s64", new)), longs(|a, b| (a as i64).min(b as i64) as u64));
    assert_eq!(wide(reduced("max.u64", new)), longs(u64::max));
}

/// Returns the result like [`reduced`], with `first` stored in place of the input.
fn reduced_from(op: &str, first: [u32; 4], words: [u32; 4]) -> [u32; 4] {
    let moved = |[a, b, c, d]: [u32; 4]| {
        format!("mov.u32 %r10, {a}; mov.u32 %r11, {b}; mov.u32 %r12, {c}; mov.u32 %r13, {d};")
    };
    std::array::from_fn(|index| {
        let body = format!(
            "{} st.global.v4.u32 [%d2], {{%r10, %r11, %r12, %r13}}; {} {STORED}\n\
             cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%d2], [dyn], 16; {DONE} ld.global.u32 %r9, [%d2+{}];",
            moved(first),
            moved(words),
            4 * index
        );
        block(1, &body).run(true, 9).2[0]
    })
}

#[test]
fn floats_are_reduced() {
    let bits = |values: [f32; 4]| values.map(f32::to_bits);
    let sum = reduced_from("add.f32", bits([1.5, -2.0, 1e-40, 3e38]), bits([2.25, 2.0, 1e-40, 3e38]));
    // Subnormals are flushed to zero in sums of singles.
    assert_eq!(sum, bits([3.75, 0.0, 0.0, f32::INFINITY]));
    // Halves: 1 + 2; 65504 + 65504; twice the least subnormal, which is not flushed; and -1 + 0.5.
    let first = [0x7bff_3c00, 0xbc00_0001, 0, 0];
    let sum = reduced_from("add.noftz.f16", first, [0x7bff_4000, 0x3800_0001, 0, 0]);
    assert_eq!(sum[..2], [0x7c00_4200, 0xb800_0002]);
    assert_eq!(
        reduced_from("min.f16", first, [0x7bff_4000, 0x3800_0001, 0, 0])[..2],
        [0x7bff_3c00, 0xbc00_0001]
    );
    assert_eq!(reduced_from("max.bf16", [0x3f80_bf80, 0, 0, 0], [0x4000_c000, 0, 0, 0])[0], 0x4000_bf80);
    assert_eq!(
        reduced_from("add.noftz.bf16", [0x3f80_bf80, 0, 0, 0], [0x4000_c000, 0, 0, 0])[0],
        0x4040_c040
    );
    let (a, b) = (1.25_f64.to_bits(), (-4.0_f64).to_bits());
    let halves = |bits: u64| [bits as u32, (bits >> 32) as u32, 0, 0];
    assert_eq!(wide(reduced_from("add.f64", halves(a), halves(b)))[0], (-2.75_f64).to_bits());
}

#[test]
fn a_reduction_reads_its_source_late() {
    let body = format!(
        "mov.u32 %r10, 7; mov.u32 %r11, 7; mov.u32 %r12, 7; mov.u32 %r13, 7; {STORED}\n\
         cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.u32 [%d2], [dyn], 256, %d5;\n\
         cp.async.bulk.commit_group; [[cp.async.bulk.wait_group.read 0;]] st.shared.u32 [dyn+64], 1;\n\
         cp.async.bulk.wait_group 0; ld.global.u32 %r9, [%d2+64]; done:"
    );
    let body = format!("createpolicy.fractional.L2::evict_first.b64 %d5, 0.5; {body}");
    let kernel = block(32, &body);
    kernel.returns(|_, thread| if thread == 0 { input(16).wrapping_add(7) } else { 0 });
    kernel.lacks(FindingKind::InFlight);
}

#[test]
fn sizes_and_addresses_are_multiples_of_16() {
    for (copy, kind) in [
        ("cp.async.bulk.global.shared::cta.bulk_group [%d2], [dyn], [[64||60]];", FindingKind::IllegalCopy),
        ("cp.async.bulk.global.shared::cta.bulk_group [%d2+[[0||8]]], [dyn], 64;", FindingKind::Misaligned),
        ("cp.async.bulk.global.shared::cta.bulk_group [%d2], [dyn+[[0||8]]], 64;", FindingKind::Misaligned),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [%d2], [dyn+[[0||4064]]], 64;",
            FindingKind::OutOfBounds,
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [%d2+[[0||4064]]], [dyn], 64;",
            FindingKind::OutOfBounds,
        ),
        ("cp.async.bulk.prefetch.L2.global [%d2+[[0||4]]], 32;", FindingKind::Misaligned),
        ("cp.async.bulk.prefetch.L2.global [%d2], [[32||40]];", FindingKind::IllegalCopy),
        ("discard.global.L2 [%d2+[[0||64]]], 128;", FindingKind::Misaligned),
        ("applypriority.global.L2::evict_normal [%d2+[[0||32]]], 128;", FindingKind::Misaligned),
    ] {
        let body = format!("{STORED} {copy} {DONE}");
        let kernel = block(32, &body);
        kernel.returns(|_, _| 0);
        kernel.lacks(kind);
    }
}

#[test]
fn discarded_lines_are_uninitialised() {
    let body = "discard.global.L2 [%d2], 128; ld.global.u32 %r9, [%d2+124]; ld.global.u32 %r10, [%d2+128];\n\
        st.global.L2::cache_hint.u32 [%d2+4], 5, %d4; ld.global.L2::cache_hint.u32 %r11, [%d2+4], %d4; xor.b32 %r9, %r9, %r10;\n\
        xor.b32 %r9, %r9, %r11;";
    block(1, body).returns(|_, _| !0 ^ input(32) ^ 5);
}

#[test]
fn forms() {
    accepted(&[
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [dyn], [%d1], 16, [dyn+64], %d2;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [dyn], [%d1], 16, [dyn+64], %h1, %d2;",
        "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%d1], 16, %d2;",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.s32 [dyn], [dyn+128], 16, [dyn+64];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [dyn], [dyn+128], 16, [dyn+64];",
        "prefetch.global.L2 [%d1]; prefetch.L1 [%d1]; prefetch.global.L2::evict_last [%d1]; prefetchu.L1 [%d1];",
        "prefetch.tensormap [%d1]; prefetch.param.tensormap [in];",
        "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d2, 0.25;",
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d2, [%d1], 4096, 8192;",
        "createpolicy.cvt.L2.b64 %d2, %d3;",
        "red.global.add.L2::cache_hint.u32 [%d1], %r1, %d2;",
    ]);
    refused(&[
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [dyn], [%d1], 16, [dyn+64], %h1;",
            "multicast",
        ),
        (
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.L2::cache_hint [dyn], [dyn+128], 16, [dyn+64], %d2;",
            "cache_hint",
        ),
        ("cp.async.bulk.global.shared.bulk_group [%d1], [dyn], 16;", "not supported"),
        ("cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%d1], [dyn], 16;", "bulk_group"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%d1], [dyn];", "operands"),
        ("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%d1], [dyn], 16, %r1;", "has 32"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%d1], [dyn], 16;", "noftz"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [%d1], [dyn], 16;", "noftz"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%d1], [dyn], 16;", "no such type"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.s32 [%d1], [dyn], 16;", "no such type"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f32 [%d1], [dyn], 16;", "no such type"),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [dyn], [dyn+128], 16, [dyn+64];",
            "no such type",
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.or.b64 [dyn], [dyn+128], 16, [dyn+64];",
            "no such type",
        ),
        ("prefetch.shared.L1 [dyn];", "not supported"),
        ("prefetch.global.tensormap [%d1];", "not supported"),
        ("discard.L2 [%d1], 64;", "128"),
        ("applypriority.L2::evict_last [%d1], 128;", "not supported"),
        ("createpolicy.fractional.L2::evict_last.L2::evict_last.b64 %d2, 0.5;", "secondary"),
        ("createpolicy.frob.L2::evict_last.b64 %d2;", "not supported"),
        ("ld.shared.L2::cache_hint.u32 %r1, [dyn], %d2;", "cache_hint"),
    ]);
}
