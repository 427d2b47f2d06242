//! Loops in both directions and over arrays, and code that `break` gives a value.

use super::{means, refused};

#[track_caller]
fn refuses(body: &str, message: &str) {
    let text = refused(&format!("#[tma_kernel(threads = 32)]\nfn k(n: u32, out: Global<u32>) {{ {body} }}"));
    assert!(text.contains(message), "{text}");
}

#[test]
fn ranges_in_reverse() {
    means("for i in (0..n).rev() { out.set(i, 1); }", "");
    means("for i in (2..=9u32).rev().step_by(3) { out.set(i, 1); }", "");
    means("for i in (0..10u32).step_by(4).rev() { out.set(i, 1); }", "");
    // Twice reversed is not reversed.
    means("for i in (0..n).rev().rev() { out.set(i, 1); }", "");
}

#[test]
fn arrays() {
    means("for x in [n, 5] { out.set(x, 1); }", "");
    means("let a = [[n; 2]; 3]; for mut row in a { row[0] = 1; }", "");
}

#[test]
fn values_of_breaks() {
    means("let a = loop { if n == 1 { break 5; } break n; }; out.set(0, a);", "");
    means("let a = 'a: { if n == 1 { break 'a 5; } n }; out.set(0, a);", "");
    means("'a: { loop { break 'a; } }", "");
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
