//! Copies by tensor maps: which boxes are refused, and what else is.

use super::{ir, refused};

/// A kernel that has `items` and stores a tile of f16, of which 8 are 16 bytes, at `[0, at]`.
fn storing(statements: &str, at: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]\nfn k(dst: TensorMap<Tile<f16, Shape2<8, 64>>>, n: u32, i: i32) {{\n\
         let t: Tile<f16, Shape2<8, 64>> = shared();\n{statements}\ndst.store([0, {at}], t);\n}}"
    )
}

#[track_caller]
fn starts_wrong(statements: &str, at: &str, why: &str) {
    let found = refused(&storing(statements, at));
    assert!(found.contains("TMA0221") && found.contains(why), "{why:?} is not in\n{found}");
}

#[track_caller]
fn may_start(statements: &str, at: &str) {
    ir(&storing(statements, at));
}

#[test]
fn the_low_bits_of_a_coordinate_are_known_through_arithmetic() {
    starts_wrong("", "n * 8 + 1", "1 more than a multiple of 8");
    starts_wrong("", "n * 2 + 1", "1 more than a multiple of 2");
    starts_wrong("", "(n << 4) - 4", "4 more than a multiple of 8");
    starts_wrong("", "n * 24 + 12", "4 more than a multiple of 8");
    starts_wrong("", "(n & !7) ^ 3", "3 more than a multiple of 8");
    starts_wrong("", "(n * 64 | 6) as i32", "6 more than a multiple of 8");
    starts_wrong("", "-(i * 16 + 4) + 64", "4 more than a multiple of 8");
    starts_wrong("", "(n * 64 + 16) >> 2", "4 more than a multiple of 8");
    starts_wrong("", "(n * 4 + 2) * (n * 4 + 2)", "4 more than a multiple of 8");
    starts_wrong("", "!(n * 8)", "7 more than a multiple of 8");
    starts_wrong("", "8 * 8 - 4", "the innermost coordinate 60 is 120 bytes into a row");
    for at in [
        "n",
        "n * 3",
        "n * 4 + 4",
        "(n * 64 + 16) >> 1",
        "n / 3 * 8",
        "block_idx().x * 64",
        "n & 12",
        "n << n",
    ] {
        may_start("", at);
    }
}

#[test]
fn variables_that_are_assigned_once_are_seen_through() {
    starts_wrong("let x = n * 8 + 4; let at = [0, x];", "at[1]", "4 more than a multiple of 8");
    starts_wrong("let x = [n * 8 + 2; 3]; let y = x;", "y[2]", "2 more than a multiple of 8");
    may_start("let mut x = 4; if n > 3 { x = 8; }", "x");
    may_start("let mut at = [4, 4]; at[1] = n;", "at[1]");
    may_start("let x = if n > 3 { 4 } else { 8 };", "x");
}

#[test]
fn the_steps_of_a_loop_are_seen_through() {
    let looping = |range: &str| {
        format!(
            "#[tma_kernel(threads = 64)]\nfn k(dst: TensorMap<Tile<f16, Shape2<8, 64>>>, n: u32) {{\n\
             let t: Tile<f16, Shape2<8, 64>> = shared();\nfor at in {range} {{ dst.store([0, at], t); }}\n}}"
        )
    };
    assert!(refused(&looping("(4..n).step_by(64)")).contains("4 more than a multiple of 8"));
    assert!(refused(&looping("(n * 8 + 1..n).step_by(2)")).contains("1 more than a multiple of 2"));
    ir(&looping("(0..n).step_by(64)"));
    ir(&looping("4..n"));
}

#[test]
fn what_writes_does_not_start_before_the_tensor() {
    let writing = |statement: &str| {
        format!(
            "#[tma_kernel(threads = 64)]\nfn k(m: TensorMap<Tile<u32, Shape2<8, 64>>>, i: i32) {{\n\
             let t: Tile<u32, Shape2<8, 64>> = shared();\nlet b: Barrier = shared();\n{statement}\n}}"
        )
    };
    for statement in [
        "m.store([-8, 0], t);",
        "m.store([0, -64], t);",
        "m.reduce_or([i, 4 - 8], t);",
        "let row = 0u32; m.store([row - 8, 0], t);",
    ] {
        assert!(refused(&writing(statement)).contains("TMA0222"), "{statement}");
    }
    for statement in ["m.load(t, [-8, -64], b);", "m.prefetch([-8, 0]);", "m.store([i, 0], t);"] {
        ir(&writing(statement));
    }
}

#[test]
fn a_hint_is_a_policy_and_one_only() {
    let hinting = |statement: &str| {
        refused(&format!(
            "#[tma_kernel(threads = 64)]\nfn k(m: TensorMap<Tile<u32, Shape1<64>>>) {{\n\
             let p = l2_evict_last(1.0);\n{statement}\n}}"
        ))
    };
    assert!(hinting("m.hint(p).hint(p).prefetch([0]);").contains("TMA0002: this has a hint already"));
    assert!(hinting("m.hint(p).prefetch_descriptor();").contains("TMA0002: the prefetch of a descriptor"));
    assert!(hinting("m.hint(0.5f32).prefetch([0]);").contains("this is `f32`, but `CachePolicy` is wanted"));
    assert!(hinting("m.hint(l2_evict_last(2)).prefetch([0]);").contains("`f32` is wanted"));
    assert!(hinting("m.hint(l2_evict_last(0.0)).prefetch([0]);").contains("TMA0224"));
    assert!(hinting("m.reduce_sum([0], m);").contains("has no method `reduce_sum`"));
}

#[test]
fn policies_go_through_device_functions() {
    let text = ir("#[tma_module]\nmod m {\n#[tma_device]\nfn pick(keep: bool) -> CachePolicy {\n\
                   if keep { return l2_evict_last(1.0); }\nl2_evict_first(1.0)\n}\n\
                   #[tma_device]\nfn fetch(m: TensorMap<Tile<u32, Shape1<64>>>) {\nm.prefetch([64]);\n}\n\
                   #[tma_kernel(threads = 32)]\nfn k(m: TensorMap<Tile<u32, Shape1<64>>>, keep: bool) {\n\
                   fetch(m.hint(pick(keep)));\n}\n}");
    assert!(
        text.contains("= l2_evict_last(1.0f32)") && text.contains("tma.prefetch p0 [64i32] hint v"),
        "{text}"
    );
}

#[test]
fn checked_is_an_option_without_value() {
    for option in ["checked", "unchecked"] {
        let text = ir(&format!("#[tma_kernel(threads = 32, {option})]\nfn k() {{}}"));
        assert!(text.starts_with(&format!("kernel k threads [32, 1, 1] {option}\n")), "{text}");
    }
    assert!(ir("#[tma_kernel(threads = 32)]\nfn k() {}").starts_with("kernel k threads [32, 1, 1]\n"));
    assert!(
        refused("#[tma_kernel(checked, threads = 32, unchecked)]\nfn k() {}")
            .contains("a kernel cannot be both `checked` and `unchecked`")
    );
    assert!(
        refused("#[tma_kernel(checked, threads = 32, checked)]\nfn k() {}")
            .contains("`checked` is given twice")
    );
}
