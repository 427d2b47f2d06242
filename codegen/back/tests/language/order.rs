//! The order of evaluation is Rust's.

use super::{means, module};

#[test]
fn an_operand_is_read_before_the_next_one_changes_its_variable() {
    means("let mut a = n; let b = a + { a += 1; a };", "v0 = p0\nv1 = v0\nv0 = (v0 + 1u32)\nv2 = (v1 + v0)");
    means("let mut a = n; out.set(a, { a = 2; 3 });", "v0 = p0\nv1 = v0\nv0 = 2u32\nglobal.set p1 v1 3u32");
    means("let mut a = n; let b = [a, { a = 4; a }];", "v0 = p0\nv1 = v0\nv0 = 4u32\nv2 = [v1, v0]");
    means(
        "let mut a = n; for i in a..({ a += 9; a }) {}",
        "v0 = p0\nv1 = v0\nv0 = (v0 + 9u32)\nl0: for v2 in v1..v0 step 1usize",
    );
    means(
        "let s: Stages<Barrier, 4> = shared(); let mut a = n; s[a].init({ a += 1; a });",
        "v0 = p0\nv1 = s0[v0]\nv0 = (v0 + 1u32)\nbarrier.init v1 v0",
    );
}

#[test]
fn what_does_not_change_is_not_copied() {
    means(
        "let mut a = n; let mut b = n; let c = a + { b += 1; b };",
        "v0 = p0\nv1 = p0\nv1 = (v1 + 1u32)\nv2 = (v0 + v1)",
    );
}

#[test]
fn an_assignment_takes_its_value_first() {
    means(
        "let mut i = 0; let mut a = [0u32; 4]; a[i] = { i += 1; 7 };",
        "v0 = 0usize\nv1 = repeat(0u32, [u32; 4])\nv0 = (v0 + 1usize)\nv1[v0] = 7u32",
    );
    means(
        "let mut i = 0; let mut a = [0; 4]; a[{ i += 1; i }] = i;",
        "v0 = 0usize\nv1 = repeat(0usize, [usize; 4])\nv2 = v0\nv0 = (v0 + 1usize)\nv1[v0] = v2",
    );
}

#[test]
fn a_compound_assignment_does_so_for_primitives_only() {
    means(
        "let mut i = 0; let mut a = [0u32; 4]; a[i] += { i += 1; 7 };",
        "v0 = 0usize\nv1 = repeat(0u32, [u32; 4])\nv0 = (v0 + 1usize)\nv1[v0] = (v1[v0] + 7u32)",
    );
    means(
        "let mut i = 0; let mut a = [f16::ZERO; 4]; a[i] += { i += 1; f16::ONE };",
        "v0 = 0usize\nv1 = repeat(0.0f16, [f16; 4])\nv2 = v0\nv0 = (v0 + 1usize)\nv1[v2] = (v1[v2] + 1.0f16)",
    );
}

#[test]
fn an_array_is_a_place_that_is_read_last() {
    means(
        "let mut a = [n; 4]; let b = a[{ a[0] = 5; 0 }];",
        "v0 = repeat(p0, [u32; 4])\nv0[0usize] = 5u32\nv1 = v0[0usize]",
    );
}

#[test]
fn arguments_are_read_before_the_next_one_changes_them() {
    let text = module(
        "#[tma_device] fn inc(x: &mut u32) -> u32 { *x += 1; *x }
         #[tma_device] fn add(a: u32, b: u32) -> u32 { a + b }",
        "let mut a = n; out.set(0, add(a, inc(&mut a)));",
    );
    assert!(
        text.contains("  v0 = p0\n  v2 = v0\n  l0:\n    v0 = (v0 + 1u32)\n    v1 = v0\n  v3 = v2\n"),
        "{text}"
    );
}

#[test]
fn the_right_side_of_a_short_circuit_runs_only_if_wanted() {
    means(
        "if n > 0 && out.get(n) > 3 { trap(); }",
        "v1 = (p0 > 0u32)\nif v1\n  v0 = global.get p1 p0\n  v1 = (v0 > 3u32)\nif v1\n  trap",
    );
    means("if n > 0 || n / n == 1 { }", "v0 = (p0 > 0u32)\nif v0\nelse\n  v0 = ((p0 / p0) == 1u32)\nif v0");
    means("if n > 0 && n < 4 { }", "if ((p0 > 0u32) & (p0 < 4u32))");
}

#[test]
fn a_condition_is_computed_before_every_iteration() {
    means(
        "let mut i = 0; while { i += 1; out.get(i) > 0 } { out.set(i, 0); }",
        "v0 = 0i32\nl0: while\n    v0 = (v0 + 1i32)\n    v1 = global.get p1 v0\n  (v1 > 0u32) do\n  global.set p1 v0 0u32",
    );
}
