//! Random kernels with matmuls, compiled by ptxas: it must neither serialise a matmul, nor add
//! waits or fences (its C7510 to C7519). There are 120 of them, or `TMA_FLIGHTS`. For each
//! workaround in the compiler, a kernel shows that it is necessary.
#![cfg(feature = "llvm")]

mod generate;
mod workarounds;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tma_codegen::{Target, compile};
use tma_setup::program::PTXAS;
use tma_setup::ptxas;

/// The assembler that `TMA_PTXAS` names, or the one that the set-up has fetched.
static ASSEMBLER: LazyLock<PathBuf> = LazyLock::new(|| {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let found = PTXAS.require(&tools, "cargo xtask setup");
    found.unwrap_or_else(|error| panic!("{error}")).path
});

fn ptx(source: &str) -> String {
    match compile("flights.rs", source, Target::Sm90a) {
        Ok(compiled) => compiled.kernels[0].text.clone(),
        Err(failure) => panic!("{failure}\n{source}"),
    }
}

/// Returns the remarks of ptxas on PTX: notes on matmuls, and spills.
fn remarks(ptx: &str) -> Vec<String> {
    let said = ptxas::assemble(&ASSEMBLER, "sm_90a", ptx).unwrap_or_else(|error| panic!("{error}\n{ptx}"));
    let [stores, loads] = said.spills;
    let spills = (said.spills != [0, 0]).then(|| format!("{stores} bytes spilled, {loads} read back"));
    said.warnings.into_iter().chain(spills).collect()
}

#[test]
fn ptxas_changes_no_multiplication() {
    let count: u64 = env::var("TMA_FLIGHTS").map_or(120, |count| count.parse().expect("a number"));
    let problems: Vec<String> = (0..count)
        .filter_map(|seed| {
            let source = generate::kernel(seed);
            let bad = remarks(&ptx(&source));
            (!bad.is_empty()).then(|| format!("seed {seed}:\n{}\n{source}", bad.join("\n")))
        })
        .collect();
    assert!(problems.is_empty(), "{} of {count}:\n{}", problems.len(), problems.join("\n"));
}

/// Cases for which ptxas had remarks before the compiler handled them.
#[test]
fn what_ptxas_had_to_say_something_of() {
    let cases = [
        // One value in several elements, with another matmul in flight.
        "let f = s.mma(a, b, ()); for i in unroll(0..t.len()) { t[i] *= x; } let g = t.mma(a, b, ()); f.wait(); g.wait();",
        // One element written, the others kept.
        "let f = s.mma(a, b, ()); t.mma(a, b, ()).wait(); t[8] += 1.0; let g = t.mma(a, b, ()); f.wait(); g.wait();",
        // Different registers on two paths.
        "if n > 2 { let g = t.mma(a, b, ()); let f = s.mma(a, b, ()); g.wait(); f.wait(); } \
         else { t.mma(a, b, ()).wait(); } t[20] = x;",
        // Packed, and used afterwards.
        "t.mma(a, b, ()).wait(); s.mma(a, b, ()).wait(); for i in unroll(0..t.len()) { t[i] += x; } \
         s.mma(t.pack::<f16>(), b, ()).wait();",
        // A test that may fail, with a matmul in flight.
        "let f = s.mma(a, b, ()); out.set(n, x); f.wait();",
        // The same in a loop, with a matmul in flight over iterations, or one per iteration.
        "let mut f = s.mma(a, b, ()); for i in 0..n { out.set(i, x); f.mma(a, b, ()); } f.wait();",
        "for i in 0..n { let f = s.mma(a, b, ()); out.set(i, x); f.wait(); }",
        // A trap without a message.
        "let mut f = s.mma(a, b, ()); for i in 0..n { if i == 7 { trap(); } f.mma(a, b, ()); } f.wait();",
    ];
    // Halves that are packed, and some of them used afterwards.
    let of_halves = "t.mma(a, b, ()).wait(); for i in unroll(0..t.len()) { t[i] *= x; } \
                     let f = s.mma(t.pack::<f16>(), b, ()); for i in unroll(0..8usize) { t[i] = x; } f.wait();";
    let sources = cases.into_iter().map(generate::with_body).chain([generate::of_element("f16", of_halves)]);
    for source in sources {
        assert_eq!(remarks(&ptx(&source)), [""; 0], "{source}");
    }
}

/// Values that only one of several matmuls uses, and nothing afterwards, are not copied. Sums that
/// a matmul began stay in their registers.
#[test]
fn what_may_stay_where_it_is_does() {
    let either = "s.mma(a, b, ()).wait(); t.mma(b, a, ()).wait(); \
                  if n > 2 { let f = s.mma(a, b, ()); t.mma(a, b, ()).wait(); f.wait(); } \
                  else { s.mma(b, a, ()).wait(); t.mma(b, a, ()).wait(); }";
    let text = ptx(&generate::with_body(either));
    assert!(!text.contains("prmt"), "{text}");
    let begun = "let f = s.mma(a, b, ()); let g = t.mma(b, a, ()); f.wait(); \
                 for i in unroll(0..s.len()) { s[i] = max(s[i], x); } g.wait();";
    let text = ptx(&generate::with_body(begun));
    assert!(text.contains("wgmma.wait_group.sync.aligned 1;"), "{text}");
    let lines: Vec<_> = text.lines().collect();
    let is_moved = |pair: &[&str]| pair[0].contains("wgmma.wait_group") && pair[1].contains("mov.b32");
    assert!(!lines.windows(2).any(is_moved), "{text}");
}

/// A wait leaves later multiplications in flight if the loops in between are unrolled and write no
/// sums. Beside one that changes, ptxas would serialise all.
#[test]
fn unrolled_loops_that_write_no_sums_leave_groups_in_flight() {
    let waits = |body: &str| {
        let text = ptx(&generate::with_body(body));
        assert_eq!(remarks(&text), [""; 0], "{body}");
        let all = text.lines().filter_map(|line| line.trim().strip_prefix("wgmma.wait_group.sync.aligned "));
        all.map(|pending| pending.trim_end_matches(';').to_owned()).collect::<Vec<_>>()
    };
    let of = |in_loop: &str| {
        format!(
            "let mut y = [0.0f32; 4]; let f = s.mma(a, b, ()); for i in unroll(0..4usize) {{ {in_loop} }} \
             let g = t.mma(a, b, ()); f.wait(); g.wait(); out.set(0, y[0] + y[1] + y[2] + y[3]);"
        )
    };
    assert_eq!(waits(&of("y[i] = x * i as f32;"))[..2], ["1", "0"]);
    assert_eq!(waits(&of("t[i] = x * i as f32;"))[..2], ["0", "0"]);
}
