//! The number of groups of matmuls that each wait leaves open, and the instructions around waits.
#![cfg(feature = "llvm")]

use tma_codegen::{Target, compile};

/// Returns the numbers of the waits of a kernel with two accumulators and `n`.
fn waits(body: &str) -> Vec<u32> {
    let source = format!(
        "#[tma_kernel(threads = 128)]\nfn k(n: u32, out: Global<f32>) {{\n\
         let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();\n\
         let mut sum = Accumulator::<f32, 64, 64>::zero();\nlet mut other = Accumulator::<f32, 64, 64>::zero();\n\
         {body}\nout.set(0, sum[0] + other[0]);\n}}"
    );
    let compiled =
        compile("waits.rs", &source, Target::default()).unwrap_or_else(|failure| panic!("{failure}"));
    let lines: Vec<_> = compiled.kernels[0].text.lines().map(str::trim).collect();
    // A trap is followed by a wait for all groups, whatever the kernel waits for.
    let goes_on = lines.windows(2).filter(|pair| !pair[0].contains("trap;"));
    let waits = goes_on.filter_map(|pair| pair[1].strip_prefix("wgmma.wait_group.sync.aligned "));
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

/// ptxas does not count groups over the iterations of a loop (its C7514, C7518).
#[test]
fn an_accumulator_is_touched_after_a_loop_when_nothing_is_left() {
    let turns = "let mut f = sum.mma(a, a, ()); for _ in 0..n { f.mma(a, a, ()); }";
    let after = format!("{turns} let g = other.mma(a, a, ()); f.wait(); sum[0] += 1.0; g.wait();");
    assert_eq!(waits(&after), [1, 0, 0]);
    // Without the loop, the later matmul may still be in flight.
    let without =
        "let f = sum.mma(a, a, ()); let g = other.mma(a, a, ()); f.wait(); sum[0] += 1.0; g.wait();";
    assert_eq!(waits(without), [1, 0]);
}

/// Returns the PTX of a kernel's text.
fn ptx(source: &str) -> String {
    let compiled = compile("kernel.rs", source, Target::default());
    compiled.unwrap_or_else(|failure| panic!("{failure}")).kernels[0].text.clone()
}

/// Returns a kernel that multiplies, and uses elements of its sums of `element` in `body`.
fn sums(element: &str, body: &str) -> String {
    ptx(&format!(
        "#[tma_kernel(threads = 128)]\nfn k(n: u32, out: Global<{element}>) {{\n\
         let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();\n\
         let mut sum = Accumulator::<{element}, 64, 64>::zero();\n{body}\n}}"
    ))
}

/// ptxas splits the halves before a wait that only its position in the text orders.
#[test]
fn packed_halves_are_split_after_the_wait() {
    let turns = "let mut f = sum.mma(a, a, ()); for _ in 0..n { f.mma(a, a, ()); } f.wait();";
    let used = format!("{turns} for i in unroll(0..sum.len()) {{ out.set(i as u32, sum[i] + sum[i]); }}");
    let text = sums("f16", &used);
    let (turns_of_loop, after) = text.split_once("wgmma.wait_group.sync.aligned 0;").expect("a wait");
    for word in ["shl.b32", "and.b32", "prmt", "mov.b32 \t{"] {
        let loop_body = turns_of_loop.split_once("wgmma.wait_group.sync.aligned 1;").expect("a wait").1;
        let before = turns_of_loop.split("wgmma.commit_group").nth(1).expect("a turn");
        assert!(
            !loop_body.contains(word) && !before.contains(word),
            "`{word}` between multiplications:\n{text}"
        );
    }
    assert_eq!(after.matches("prmt.b32").count(), 16, "{text}");
    // A full register is not split, and neither are halves that stay together.
    assert!(!sums("f32", &used.replace("i as u32, ", "i as u32, 1.0 + ")).contains("prmt"));
    let stored = format!("{turns} let to: Tile<f16, Shape2<64, 64>> = shared(); sum.store(to);");
    assert!(!sums("f16", &stored).contains("prmt"));
}

/// The value of each half is that of its element.
#[test]
fn halves_are_written_one_by_one() {
    let text = sums(
        "f16",
        "sum.mma(a, a, ()).wait(); sum[1] = sum[2]; sum.mma(a, a, ()).wait(); out.set(n, sum[0]);",
    );
    let second = text.split("wgmma.wait_group.sync.aligned 0;").nth(1).expect("two multiplications");
    assert!(second.contains("prmt.b32") || second.contains("shl.b32"), "{text}");
}

/// Matmuls may be in flight on a path that traps.
#[test]
fn threads_that_stop_wait_first() {
    let text = sums(
        "f32",
        "let f = sum.mma(a, a, ()); assert!(n != 3, \"not $3\"); if n == 4 { trap(); } f.wait(); out.set(n, sum[0]);",
    );
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let traps: Vec<_> = (0..lines.len()).filter(|&i| lines[i].starts_with("trap;")).collect();
    assert_eq!(traps.len(), 3, "{text}");
    for &trap in &traps {
        assert_eq!(lines[trap + 1], "wgmma.wait_group.sync.aligned 0;", "{text}");
    }
    let remarks: Vec<_> = traps.iter().filter_map(|&trap| lines[trap].split_once("// ")).collect();
    assert_eq!(remarks.len(), 2, "{text}");
    assert!(remarks.iter().any(|(_, remark)| remark.ends_with("kernel.rs:5:28: not $3")), "{remarks:?}");
    assert!(
        remarks.iter().any(|(_, remark)| remark.ends_with("index out of bounds of `out`")),
        "{remarks:?}"
    );
    assert!(!text.contains("call"), "{text}");
    assert!(text.contains(".visible .global .align 8 .u64 tma_failure;"), "{text}");
}

/// Returns the numbers of the barriers at which threads synchronise, in order.
fn barriers(threads: u32, body: &str) -> Vec<u32> {
    let text = ptx(&format!("#[tma_kernel(threads = {threads})]\nfn k(n: u32) {{ {body} }}"));
    let met = text.lines().filter_map(|line| line.trim().strip_prefix("barrier.sync "));
    let mut numbers: Vec<_> = met.filter_map(|rest| rest.split(',').next()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn warpgroups_synchronise_at_their_own_barriers() {
    assert_eq!(barriers(128, "sync_warpgroup();"), [1]);
    assert_eq!(barriers(384, "sync_warpgroup();"), [1, 2, 3]);
    // A role uses only the barriers of its warpgroups.
    assert_eq!(barriers(256, "if warpgroup_idx() == 1 { sync_warpgroup(); }"), [2]);
    let named = "named_barrier_sync(1, 64); sync_warpgroup(); named_barrier_sync(3, 64);";
    assert_eq!(barriers(256, named), [2, 4]);
    // A computed number may be any except the last ones, which a checked kernel tests.
    let computed = "sync_warpgroup(); named_barrier_sync(n, 64);";
    assert_eq!(barriers(256, computed), [14, 15]);
    let multiplies = "let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared(); \
                      let mut s = Accumulator::<f32, 64, 64>::zero(); s.mma(a, a, ()).wait();";
    let text =
        ptx(&format!("#[tma_kernel(threads = 256, checked)]\nfn k(n: u32) {{ {multiplies} {computed} }}"));
    assert!(text.contains("named barriers are 1 to 13"), "{text}");
}

/// In a cluster the address of shared memory has the block's rank above bit 18 (SASS of ptxas 13).
/// A descriptor has the distance between the panels of a transposed operand there.
#[test]
fn a_descriptor_has_no_rank_of_a_cluster() {
    let descriptors = |option: &str| {
        ptx(&format!(
            "#[tma_kernel(threads = 128{option})]\nfn k(out: Global<f32>) {{\n\
             let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();\n\
             let b: Tile<f16, Shape2<64, 128>, Swizzle128> = shared();\n\
             let mut sum = Accumulator::<f32, 64, 128>::zero();\nsum.mma(a, b.t(), ()).wait();\n\
             out.set(0, sum[0]);\n}}"
        ))
    };
    // 14 bits of an address without its lowest four, two of which are known from the alignment.
    assert_eq!(descriptors(", cluster = 2").matches(", 16320;").count(), 2);
    assert_eq!(descriptors("").matches(", 16320;").count(), 0);
}
