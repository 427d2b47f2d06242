//! Loops in both directions and over arrays, and code that `break` gives a value.

use super::{means, refused};

#[track_caller]
fn refuses(body: &str, message: &str) {
    let text = refused(&format!("#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>) {{ {body} }}"));
    assert!(text.contains(message), "{text}");
}

#[test]
fn ranges_in_reverse() {
    means(
        "for i in (0..n).rev() { out.set(i, 1); }",
        "v1 = (0u32 + (p0 - 1u32))\nl0: for v2 in 0u32..p0 step 1usize\n  v0 = (v1 - v2)\n  global.set p1 v0 1u32",
    );
    means(
        "for i in (2..=9u32).rev().step_by(3) { out.set(i, 1); }",
        "l0: for v1 in 2u32..=9u32 step 3usize\n  v0 = (11u32 - v1)\n  global.set p1 v0 1u32",
    );
    means(
        "for i in (0..10u32).step_by(4).rev() { out.set(i, 1); }",
        "l0: for v1 in 0u32..10u32 step 4usize\n  v0 = (8u32 - v1)\n  global.set p1 v0 1u32",
    );
    // Twice reversed is not reversed.
    means(
        "for i in (0..n).rev().rev() { out.set(i, 1); }",
        "l0: for v0 in 0u32..p0 step 1usize\n  global.set p1 v0 1u32",
    );
}

#[test]
fn arrays() {
    means(
        "for x in [n, 5] { out.set(x, 1); }",
        "v1 = [p0, 5u32]\nl0: for v2 in 0usize..2usize step 1usize unrolled\n  v0 = v1[v2]\n  global.set p1 v0 1u32",
    );
    // The loop iterates over a copy.
    means(
        "let mut a = [n; 2]; for x in a { a[1] = x; }",
        "v0 = repeat(p0, [u32; 2])\nv2 = v0\nl0: for v3 in 0usize..2usize step 1usize unrolled\n  v1 = v2[v3]\n  v0[1usize] = v1",
    );
}

#[test]
fn values_of_breaks() {
    means(
        "let a = loop { if n == 1 { break 5; } break n; }; out.set(0, a);",
        "l0: loop\n  if (p0 == 1u32)\n    v0 = 5u32\n    break l0\n  v0 = p0\n  break l0\nv1 = v0\nglobal.set p1 0i32 v1",
    );
    means(
        "let a = 'a: { if n == 1 { break 'a 5; } n }; out.set(0, a);",
        "l0:\n  if (p0 == 1u32)\n    v0 = 5u32\n    leave l0\n  v0 = p0\nv1 = v0\nglobal.set p1 0i32 v1",
    );
    means("'a: { loop { break 'a; } }", "l0:\n  l1: loop\n    leave l0");
}

#[test]
fn what_loops_refuse() {
    refuses("for i in (0..n).rev().step_by(2).rev() { }", "a range has one `step_by`");
    refuses("for i in n { }", "`for` must iterate over a range or a register array");
    refuses("for i in [n].iter() { }", "`for` must iterate over a range or a register array");
    refuses("for i in 0.. { }", "`for` must iterate over a range or a register array");
    refuses("while n > 0 { break 3; }", "only `loop` and labelled blocks have a value");
    refuses("let a = loop { if n > 0 { break 3; } break 1.0; };", "mismatched types");
    refuses("let a: u32 = loop { if n > 0 { break; } break 1; };", "mismatched types");
    refuses("let a = loop { break out; };", "cannot be selected at run time");
    refuses("'a: { continue 'a; }", "`'a` is the label of a block");
    refuses("'a: { break; }", "`break` outside of a loop");
}
