//! Blocks that end within a warpgroup: which warps reach the operations of a warpgroup.

use super::super::{ir, refused};

/// Returns a kernel of such a block, with tiles `t`, an accumulator `sum`, `n` and `out`.
fn block(threads: &str, body: &str) -> String {
    format!(
        "#[tma_kernel(threads = {threads})]\nfn k(n: u32, out: Global<f32>) {{\n\
         let t: Stages<Tile<f16, Shape2<64, 64>, Swizzle128>, 4> = shared();\n\
         let mut sum = Accumulator::<f32, 64, 64>::zero();\n{body}\n}}"
    )
}

#[track_caller]
fn reached(threads: &str, body: &str) -> String {
    let text = refused(&block(threads, body));
    assert_eq!(text.matches("TMA0").count(), 1, "{body}: {text}");
    assert!(text.starts_with("TMA0257"), "{body}: {text}");
    text
}

#[test]
fn warps_that_are_kept_away() {
    for (threads, broken, kept) in [
        ("128 + 32", "true", "warpgroup_idx() < 1"),
        ("160", "warpgroup_idx() <= 1", "warpgroup_idx() == 0"),
        ("160", "warpgroup_idx() == 1", "warpgroup_idx() != 1"),
        ("160", "warp_idx() == 4", "warp_idx() != 4"),
        ("160", "thread_idx().x >= 128", "thread_idx().x < 128"),
        ("160", "warp_idx() < 5", "warp_idx() < 4"),
        ("160", "warp_idx() / 4 == 1", "warp_idx() / 4 == 0"),
        ("160", "n > 3", "n > 3 && warpgroup_idx() == 0"),
        ("160", "n > 3 || warp_idx() < 4", "warp_idx() < 4 && n > 3"),
        ("160", "out.len() > 3", "out.len() > 3 && warp_idx() < 4"),
        ("288", "warpgroup_idx() > 0", "warpgroup_idx() == 1"),
        ("256 + 32", "warp_idx() == 8", "warp_idx() < 8"),
        ("256 + 64", "warp_idx() >= 4", "thread_idx().x / 128 < 2"),
        ("[32, 5]", "thread_idx().y == 4", "thread_idx().y < 4"),
        ("[32, 9]", "thread_idx().y >= 4", "thread_idx().y / 4 == 1"),
    ] {
        let of = |condition: &str| format!("if {condition} {{ sync_warpgroup(); }}");
        reached(threads, &of(broken));
        ir(&block(threads, &of(kept)));
    }
}

#[test]
fn roles_of_any_form() {
    for role in [
        "if warp_idx() == 4 { return; } sync_warpgroup();",
        "let me = warp_idx(); let copies = me == 4; if !copies { sync_warpgroup(); }",
        "match warp_idx() { 4 => {} _ => sync_warpgroup() }",
        "match warp_idx() { 0..=3 => sync_warpgroup(), _ => {} }",
        "match warpgroup_idx() { 0 => sync_warpgroup(), _ => {} }",
        "for w in unroll(0..1u32) { if warpgroup_idx() == w { sync_warpgroup(); } }",
        "for _ in 0..n { if warpgroup_idx() == 0 { sync_warpgroup(); } }",
        "if warp_idx() == 4 { if elect_one() { out.set(0, 1.0); } } else { sync_warpgroup(); }",
        "loop { if warp_idx() == 4 { break; } sync_warpgroup(); if n > 3 { break; } }",
    ] {
        ir(&block("160", role));
    }
    for role in [
        "if warp_idx() == 4 && n > 3 { return; } sync_warpgroup();",
        "let mut copies = warp_idx() == 4; if n > 3 { copies = false; } if !copies { sync_warpgroup(); }",
        "match warp_idx() { 5 => {} _ => sync_warpgroup() }",
        "loop { if warp_idx() == 4 { break; } if n > 3 { break; } } sync_warpgroup();",
    ] {
        reached("160", role);
    }
    // Two warps that are not a warpgroup: one of them alone has the same role as the other.
    let two = "if warp_idx() == 4 { return; } if warpgroup_idx() == 0 { sync_warpgroup(); }";
    let text = refused(&block("192", two));
    assert!(text.starts_with("TMA0264"), "{text}");
    ir(&block(
        "192",
        "if warp_idx() == 4 { out.set(0, 1.0); } if warpgroup_idx() == 0 { sync_warpgroup(); }",
    ));
}

#[test]
fn every_operation_of_a_warpgroup() {
    for (declared, word) in [
        ("", "sum.mma(t[0], t[1], ()).wait();"),
        ("let to: Tile<f32, Shape2<64, 64>> = shared();", "sum.store(to);"),
        ("", "sum.store_to(out.matrix(0, [64, 64], 64), [0, 0]);"),
        ("", "let x = Fragment::<f16, 64, 64>::load(t[0], [0, 0]);"),
        ("", "setmaxnreg_dec::<40>();"),
        ("", "sync_warpgroup();"),
    ] {
        let name = word.split(['(', ':']).next().unwrap_or_default().rsplit('.').next().unwrap_or_default();
        let name = if word.contains("::load") { "load" } else { name.trim_end_matches("_to") };
        let text = reached("160", &format!("{declared} {word}"));
        assert!(
            text.contains(&format!("`{name}` must be executed by all 128 threads of a warpgroup")),
            "{text}"
        );
        ir(&block("160", &format!("{declared} if warpgroup_idx() < 1 {{ {word} }}")));
    }
    // The last warps do everything else.
    for word in [
        "let rows = sum.row_sum();",
        "sync_threads();",
        "named_barrier_sync(1, 160);",
        "let mut x = WarpLeft::<f16, 16, 64>::load(t[0], [0, 0]);",
        "let all = vote_all(n > 3);",
    ] {
        ir(&block("160", word));
    }
}

#[test]
fn a_mistake_is_one_error_with_its_fix() {
    let text = reached("256 + 32", "sum.mma(t[0], t[1], ()).wait();\nsync_warpgroup();");
    assert!(text.contains("the last 32 threads of the block reach it, too"), "{text}");
    assert!(text.contains("288 threads: 2 warpgroups, and 32 threads"), "{text}");
    assert!(text.contains("execute it only `if warpgroup_idx() < 2`"), "{text}");
    let text = reached("96", "if warpgroup_idx() < 1 { sync_warpgroup(); }");
    assert!(text.contains("the block has only 96 threads"), "{text}");
    assert!(text.contains("help: use a multiple of 128 threads"), "{text}");
}

/// A block gets registers for whole warpgroups, and the last warps neither give nor take any.
#[test]
fn registers_beside_other_warps() {
    let roles = |fewer: u32, more: u32| {
        format!(
            "match warpgroup_idx() {{ 0 => setmaxnreg_dec::<{fewer}>(), 1 => setmaxnreg_inc::<{more}>(), _ => {{}} }}"
        )
    };
    let text = refused(&block("288", &roles(96, 248)));
    assert!(text.starts_with("TMA0265") && text.contains("start with 2 × 168 = 336"), "{text}");
    ir(&block("288", &roles(96, 240)));
    ir(&block("160", "if warpgroup_idx() == 0 { setmaxnreg_dec::<240>(); }"));
    let of = |threads: u32, registers: u32| {
        format!("#[tma_kernel(threads = {threads}, max_registers = {registers})]\nfn k(n: u32) {{}}")
    };
    let text = refused(&of(288, 176));
    assert!(text.contains("384 threads with 176 registers need 67584"), "{text}");
    assert!(text.contains("a block of 288 threads is allocated the registers of whole warpgroups"), "{text}");
    ir(&of(288, 168));
    ir(&of(160, 255));
}
