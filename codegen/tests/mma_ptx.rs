//! How many groups of multiplications each wait leaves open.
#![cfg(feature = "llvm")]

use tma_codegen::{Target, compile};

/// The numbers of the waits of a kernel with two accumulators and `n`.
fn waits(body: &str) -> Vec<u32> {
    let source = format!(
        "#[tma_kernel(threads = 128)]\nfn k(n: u32, out: Global<f32>) {{\n\
         let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();\n\
         let mut sum = Accumulator::<f32, 64, 64>::zero();\nlet mut other = Accumulator::<f32, 64, 64>::zero();\n\
         {body}\nout.set(0, sum[0] + other[0]);\n}}"
    );
    let compiled =
        compile("waits.rs", &source, Target::default()).unwrap_or_else(|failure| panic!("{failure}"));
    let lines = compiled.kernels[0].text.lines();
    let waits = lines.filter_map(|line| line.trim().strip_prefix("wgmma.wait_group.sync.aligned "));
    waits.map(|rest| rest.trim_end_matches(';').parse().expect("a number")).collect()
}

#[test]
fn a_wait_leaves_what_is_younger() {
    assert_eq!(waits("let f = sum.mma(a, a, ()); let g = other.mma(a, a, ()); f.wait(); g.wait();"), [1, 0]);
    assert_eq!(waits("let f = sum.mma(a, a, ()); let g = other.mma(a, a, ()); g.wait(); f.wait();"), [0, 0]);
    assert_eq!(waits("let mut f = sum.mma(a, a, ()); f.mma(a, a, ()); f.wait();"), [1, 0]);
    assert_eq!(
        waits(
            "let mut f = sum.mma(a, a, ()); let g = other.mma(a, a, ()); f.mma(a, a, ()); f.wait(); g.wait();"
        ),
        [2, 0, 0]
    );
}

/// ptxas does not count groups over the turns of a loop (its C7514, C7518).
#[test]
fn an_accumulator_is_touched_after_a_loop_when_nothing_is_left() {
    let turns = "let mut f = sum.mma(a, a, ()); for _ in 0..n { f.mma(a, a, ()); }";
    let after = format!("{turns} let g = other.mma(a, a, ()); f.wait(); sum[0] += 1.0; g.wait();");
    assert_eq!(waits(&after), [1, 0, 0]);
    // Without the loop, the younger one may go on.
    let without =
        "let f = sum.mma(a, a, ()); let g = other.mma(a, a, ()); f.wait(); sum[0] += 1.0; g.wait();";
    assert_eq!(waits(without), [1, 0]);
}

/// An accumulator of `f16` has two elements in a register. Whatever takes one of them apart while a
/// multiplication writes it reads what is not there yet, and ptxas serialises (its C7518).
#[test]
fn halves_are_not_taken_apart_between_multiplications() {
    let source = "#[tma_kernel(threads = 128)]\nfn k(n: u32, out: Global<f16>) {
        let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
        let mut sum = Accumulator::<f16, 64, 64>::zero();
        let mut f = sum.mma(a, a, ());
        for _ in 0..n { f.mma(a, a, ()); }
        f.wait();
        out.set(0, sum[1]);
    }";
    let compiled =
        compile("halves.rs", source, Target::default()).unwrap_or_else(|failure| panic!("{failure}"));
    let lines: Vec<_> = compiled.kernels[0].text.lines().map(str::trim).collect();
    let first = lines.iter().position(|line| line.starts_with("wgmma.mma_async")).expect("it multiplies");
    let last = lines.iter().rposition(|line| line.starts_with("wgmma.wait_group")).expect("it waits");
    let (_, sums) = lines[first].split_once('{').expect("its registers");
    let sums: Vec<_> = sums.split_once('}').expect("their end").0.split(", ").collect();
    for line in &lines[first..last] {
        let is_moved = line.starts_with("wgmma.") || line.starts_with("mov.b32");
        let operands = line.split(['{', '}', ' ', '\t', ',', ';']);
        assert!(is_moved || !operands.into_iter().any(|operand| sums.contains(&operand)), "{line}");
    }
}
