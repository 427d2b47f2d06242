//! Copies by tensor maps: coordinates that may be multiples of 16 bytes, and policies.

use super::ir;

/// Returns a kernel with `statements` that stores a tile of f16 (8 are 16 bytes) at `[0, at]`.
fn storing(statements: &str, at: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]\nfn k(dst: TensorMap<Tile<f16, Shape2<8, 64>>>, n: u32, i: i32) {{\n\
         let t: Tile<f16, Shape2<8, 64>> = shared();\n{statements}\ndst.store([0, {at}], t);\n}}"
    )
}

#[track_caller]
fn may_start(statements: &str, at: &str) {
    ir(&storing(statements, at));
}

#[test]
fn the_low_bits_of_a_coordinate_are_known_through_arithmetic() {
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
    for statement in ["m.load(t, [-8, -64], b);", "m.prefetch([-8, 0]);", "m.store([i, 0], t);"] {
        ir(&writing(statement));
    }
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
}
