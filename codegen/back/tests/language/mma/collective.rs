//! Operations of all threads of a warpgroup: the conditions and operands that are uniform among
//! them.

use super::super::{ir, refused};

/// Returns a kernel of such a block, with tiles `t`, an accumulator `sum`, `n`, `out` and memory.
fn block(threads: &str, body: &str) -> String {
    format!(
        "#[tma_kernel(threads = {threads})]\nfn k(n: u32, out: Global<u32>, maps: Global<f32>) {{\n\
         let t: Stages<Tile<f16, Shape2<64, 64>, Swizzle128>, 4> = shared();\n\
         let next: SharedArray<u32, 8> = shared();\nlet full: Barrier = shared();\n\
         let mut sum = Accumulator::<f32, 64, 64>::zero();\n{body}\n}}"
    )
}

/// Returns the only error of the kernel, which has the line where the threads diverge.
#[track_caller]
fn parts(threads: &str, body: &str) -> String {
    let text = refused(&block(threads, body));
    assert_eq!(text.matches("TMA0").count(), 1, "{body}: {text}");
    assert!(text.starts_with("TMA0264"), "{body}: {text}");
    text
}

#[track_caller]
fn fits(threads: &str, body: &str) {
    ir(&block(threads, body));
}

#[test]
fn conditions_that_part_threads() {
    for (condition, why) in [
        ("lane_idx() == 0", "each lane has its own index"),
        ("thread_idx().x == 0", "the value differs between threads"),
        ("thread_idx().x < 64", "the value differs between threads"),
        ("thread_idx().x / 64 == 0", "the value differs between threads"),
        ("warp_idx() == 0", "each warp has its own index"),
        ("warp_idx() < 3", "each warp has its own index"),
        ("warp_idx() % 4 == 0", "each warp has its own index"),
        ("elect_one()", "the value is true in one thread of each warp"),
        ("out.get(thread_idx().x) > n", "the value differs between threads"),
        ("next.get(lane_idx() % 8) > n", "each lane has its own index"),
        ("out.atomic_add(0, 1) == 0", "each thread gets the value before its own access"),
        ("out.load(0, Order::Relaxed, Scope::Device) == 0", "each thread polls at a different time"),
        ("sum[0] > 1.0", "each thread holds its own elements"),
        ("sum.row_sum()[0] > 1.0", "each thread holds its own elements"),
        ("vote_any(thread_idx().x == n)", "each warp has its own result"),
        ("shuffle_xor(thread_idx().x, 1) > n", "the value differs between threads"),
        ("full.try_wait(0)", "each thread polls at a different time"),
    ] {
        let text = parts("256", &format!("if {condition} {{ sync_warpgroup(); }}"));
        assert!(text.contains(&format!("they diverge here: {why}")), "{condition}: {text}");
    }
}

#[test]
fn conditions_that_hold_for_all() {
    for condition in [
        "warpgroup_idx() == 0",
        "thread_idx().x < 128",
        "thread_idx().x >= 128",
        "128 > thread_idx().x",
        "thread_idx().x <= 127",
        "thread_idx().x / 128 == 1",
        "thread_idx().x >> 7 == 1",
        "warp_idx() / 4 == 1",
        "warp_idx() < 4",
        "block_idx().x == n",
        "n > 3",
        "out.get(n) > 3",
        "out.get(warpgroup_idx()) > 3",
        "next.get(0) > n",
        "thread_idx().y == 0",
        "vote_any(n > 3)",
        "shuffle_idx(n, 0) == 3",
    ] {
        fits("256", &format!("if {condition} {{ sync_warpgroup(); }}"));
    }
    // Blocks with several axes, in parts of whole warpgroups.
    fits("[128, 2]", "if thread_idx().y == 1 { sync_warpgroup(); }");
    fits("[64, 4]", "if thread_idx().y / 2 == 1 { sync_warpgroup(); }");
    parts("[64, 4]", "if thread_idx().y == 1 { sync_warpgroup(); }");
    parts("[64, 4]", "if thread_idx().x < 32 { sync_warpgroup(); }");
    // Warps reduce rows.
    fits("256", "if warp_idx() == 0 { let rows = sum.row_sum(); }");
    parts("256", "if elect_one() { let rows = sum.row_sum(); }");
}

#[test]
fn every_collective_word_is_checked() {
    for word in [
        "sum.mma(t[0], t[1], ()).wait();",
        "let to: Tile<f32, Shape2<64, 64>> = shared(); sum.store(to);",
        "setmaxnreg_inc::<240>();",
        "setmaxnreg_dec::<40>();",
        "sync_warpgroup();",
        "let rows = sum.row_max();",
    ] {
        let (declared, word) = match word.split_once("shared(); ") {
            Some((declared, word)) => (format!("{declared}shared();"), word),
            None => (String::new(), word),
        };
        parts("128", &format!("{declared} if lane_idx() < n {{ {word} }}"));
        fits("128", &format!("{declared} if n > 3 {{ {word} }}"));
    }
}

#[test]
fn operands_are_the_same_for_all() {
    for (broken, kept) in [
        ("sum.mma(t[lane_idx() % 4], t[1], ()).wait();", "sum.mma(t[n % 4], t[1], ()).wait();"),
        (
            "sum.mma(t[0], t[warp_idx() % 4].t(), ()).wait();",
            "sum.mma(t[0], t[warpgroup_idx()].t(), ()).wait();",
        ),
        (
            "let which = out.get(thread_idx().x); sum.mma(t[0], t[which], ()).wait();",
            "let which = out.get(n); sum.mma(t[0], t[which], ()).wait();",
        ),
        (
            "let mut which = 0; if lane_idx() == 1 { which = 1; } sum.mma(t[0], t[which], ()).wait();",
            "let mut which = 0; if n == 1 { which = 1; } sum.mma(t[0], t[which], ()).wait();",
        ),
        (
            "let mut which = 0; while which < lane_idx() { which += 1; } sum.mma(t[0], t[which], ()).wait();",
            "let mut which = 0; while which < n { which += 1; } sum.mma(t[0], t[which], ()).wait();",
        ),
        (
            "let mut which = 0; loop { which += 1; if lane_idx() < which { break; } } sum.mma(t[0], t[which], ()).wait();",
            "let mut which = lane_idx(); which = 3; sum.mma(t[0], t[which], ()).wait();",
        ),
    ] {
        let text = parts("256", broken);
        assert!(
            text.contains("must be the same in all threads") && text.contains("they differ here"),
            "{text}"
        );
        fits("256", kept);
    }
}

#[test]
fn threads_that_have_left() {
    for (broken, kept) in [
        ("if lane_idx() == 3 { return; } sync_warpgroup();", "if n == 3 { return; } sync_warpgroup();"),
        (
            "for _ in 0..n { if lane_idx() == 3 { break; } sync_warpgroup(); }",
            "for _ in 0..n { if lane_idx() == 3 { break; } } sync_warpgroup();",
        ),
        // The threads are missing in the next iteration.
        (
            "for i in 0..n { sync_warpgroup(); if lane_idx() == i { break; } }",
            "for i in 0..n { sync_warpgroup(); if lane_idx() == i { continue; } sync_threads(); }",
        ),
        (
            "for _ in 0..n { if lane_idx() == 3 { continue; } sync_warpgroup(); }",
            "for _ in 0..n { sync_warpgroup(); if lane_idx() == 3 { continue; } }",
        ),
        (
            "for _ in 0..n { sync_warpgroup(); if lane_idx() == 3 { return; } }",
            "for _ in 0..n { sync_warpgroup(); } if lane_idx() == 3 { return; }",
        ),
        (
            "for i in (thread_idx().x..n).step_by(128) { sync_warpgroup(); }",
            "for i in (block_idx().x..n).step_by(128) { sync_warpgroup(); }",
        ),
        ("while !full.try_wait(0) { sync_warpgroup(); }", "while !full.try_wait(0) {} sync_warpgroup();"),
        // A value that an iteration assigns is used in the next one.
        (
            "let mut mine = n; for _ in 0..n { if mine == 3 { sync_warpgroup(); } mine = lane_idx(); }",
            "let mut mine = n; for _ in 0..n { if mine == 3 { sync_warpgroup(); } mine = warpgroup_idx(); }",
        ),
    ] {
        parts("256", broken);
        fits("256", kept);
    }
}

/// A thread that returns from a function is back in its caller.
#[test]
fn threads_that_have_left_a_function_come_back() {
    let of = |body: &str| {
        format!(
            "#[tma_module]\nmod m {{\n#[tma_device]\nfn one(n: u32) -> u32 {{ if lane_idx() == n {{ return 1; }} 2 }}\n\
             #[tma_device]\nfn meet(n: u32) {{ if n == 3 {{ return; }} sync_warpgroup(); }}\n\
             #[tma_kernel(threads = 256)]\nfn k(n: u32) {{ {body} }}\n}}"
        )
    };
    ir(&of("let x = one(n); sync_warpgroup();"));
    ir(&of("meet(n); sync_warpgroup();"));
    for broken in ["if one(n) == 1 { sync_warpgroup(); }", "meet(lane_idx());"] {
        let text = refused(&of(broken));
        assert!(text.starts_with("TMA0264"), "{broken}: {text}");
    }
}

/// One mistake is one error, with both locations.
#[test]
fn a_divergence_is_reported_once() {
    let text = parts(
        "128",
        "if lane_idx() == 3 {\nlet flight = sum.mma(t[0], t[1], ());\nflight.wait();\nsync_warpgroup();\n}",
    );
    assert!(text.contains("`mma` must be reached by all threads of a warpgroup"), "{text}");
    assert!(text.contains("note: they diverge here: each lane has its own index: line 7"), "{text}");
}
