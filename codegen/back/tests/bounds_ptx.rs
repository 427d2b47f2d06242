//! The comparisons and branches in the PTX of indices that are proved in bounds: those of the
//! source, and none besides. Kernels without checks, as in a release build.
#![cfg(feature = "llvm")]

use tma_codegen::{Target, compile};

/// The cost of an access, besides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    /// Comparisons.
    comparisons: usize,
    /// Conditional branches.
    branches: usize,
    /// Places that stop the grid.
    failures: usize,
}

const fn cost(comparisons: usize, branches: usize, failures: usize) -> Cost {
    Cost { comparisons, branches, failures }
}

fn found(body: &str) -> (Cost, String) {
    let source = format!(
        "#[tma_kernel(threads = 256, unchecked)]\n\
         fn k(n: u32, x: Global<f32>, y: Global<f32>) {{\n{body}\n}}"
    );
    let text: String = match compile("src/kernel.rs", &source, Target::default()) {
        Ok(compiled) => compiled.kernels.into_iter().map(|kernel| kernel.text).collect(),
        Err(failure) => panic!("{body}:\n{failure}"),
    };
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let count = |is: &dyn Fn(&str) -> bool| lines.iter().filter(|line| is(line)).count();
    let found = Cost {
        comparisons: count(&|line| line.starts_with("setp.")),
        branches: count(&|line| line.starts_with('@') && line.contains("bra")),
        failures: count(&|line| line.starts_with("call.uni __assertfail")),
    };
    (found, text)
}

#[track_caller]
fn costs(wanted: Cost, body: &str) {
    let (found, text) = found(body);
    assert_eq!(found, wanted, "{body}:\n{text}");
}

const WIDE: &str = "block_idx().x as u64 * 256 + thread_idx().x as u64";
const NARROW: &str = "block_idx().x * 256 + thread_idx().x";

/// The condition alone is compared.
#[test]
fn an_index_under_a_condition() {
    let one = cost(1, 1, 0);
    costs(one, &format!("let i = {WIDE}; if i < x.len() {{ x.set(i, x.get(i) * 2.0); }}"));
    costs(one, &format!("let i = {WIDE}; if i >= x.len() {{ return; }} x.set(i, x.get(i) * 2.0);"));
    costs(one, &format!("let i = {NARROW}; if (i as u64) < x.len() {{ x.set(i, x.get(i) * 2.0); }}"));
}

/// An assertion is one comparison, and says all that follows from it.
#[test]
fn an_index_after_an_assertion() {
    let two = cost(2, 2, 1);
    let scales = format!("let i = {WIDE}; if i < x.len() {{ y.set(i, x.get(i) * 2.0); }}");
    costs(two, &format!("assert!(y.len() >= x.len()); {scales}"));
    costs(two, &format!("assert!(x.len() == y.len()); {scales}"));
    costs(
        two,
        &format!("assert!(n as u64 <= x.len()); let i = {NARROW}; if i < n {{ x.set(i, x.get(i) * 2.0); }}"),
    );
    // Without the assertion, the second slice is compared itself.
    costs(two, &scales);
}

/// A loop compares before its first iteration and after each.
#[test]
fn an_index_in_a_loop() {
    let strides = |condition: &str, access: &str| {
        format!("let mut i = {WIDE}; while {condition} {{ {access} i += grid_dim().x as u64 * 256; }}")
    };
    costs(cost(2, 2, 0), &strides("i < x.len()", "x.set(i, x.get(i) * 2.0);"));
    let both = strides("i < x.len()", "y.set(i, x.get(i) * 2.0);");
    costs(cost(3, 3, 1), &format!("assert!(y.len() >= x.len()); {both}"));
}

/// Nothing in a loop over a range can fail, so that LLVM unrolls it.
#[test]
fn an_index_that_a_range_counts() {
    for (failures, body) in [
        (0, "for i in thread_idx().x as u64..x.len() { x.set(i, x.get(i) * 2.0); }"),
        (0, "for i in (thread_idx().x as u64..x.len()).step_by(256) { x.set(i, x.get(i) * 2.0); }"),
        (1, "assert!(x.len() >= n as u64); for i in thread_idx().x..n { x.set(i, x.get(i) * 2.0); }"),
        (1, "assert!(x.len() > n as u64); for i in thread_idx().x..=n { x.set(i, x.get(i) * 2.0); }"),
        (
            1,
            "assert!(x.len() >= n as u64); for i in (thread_idx().x..n).step_by(256) { x.set(i, x.get(i) * 2.0); }",
        ),
    ] {
        let (found, text) = found(body);
        assert_eq!(found.failures, failures, "{body}:\n{text}");
    }
}

/// An index that is a parameter is compared with each slice.
#[test]
fn an_index_that_nothing_proves() {
    costs(cost(1, 1, 1), "x.set(n, x.get(n) * 2.0);");
    costs(cost(2, 2, 2), "y.set(n, x.get(n));");
}
