//! Kernels that wait forever in some launch, under a condition that seems impossible: none of them
//! is proved. Each was, once.

use tma_codegen::protocol::Verdict;

use crate::verdict;

/// Returns a kernel of two warps, and a barrier `never` without arrivals.
fn kernel(parameters: &str, body: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]
fn k({parameters}) {{
    let never: Barrier = shared();
    let full: Barrier = shared();
    let row: SharedArray<u32, 32> = shared();
    if thread_idx().x == 0 {{
        never.init(1);
        full.init(32);
    }}
    sync_threads();
    {body}
}}
"
    )
}

#[track_caller]
fn is_not_proved(source: &str) {
    assert!(!matches!(verdict(source), Verdict::Proved), "{source}");
}

/// The comments have a launch in which the condition holds.
#[test]
fn numbers_that_wrap_or_have_a_sign() {
    let in_turns_of_n = [
        // n = 3, 8: a remainder has the sign of the dividend.
        "(k as i32 - 5) % 4 == -3",
        "k > 6 && (k as i32 - 100) % 4 < 0",
        "k > 3 && (k as i32 + -3) % 4 == 1",
        "(k as i32 + -3) / 4 != (k as i32 + 1) / 4 - 1",
        // n = 300_000, 5
        "k * 16384 % 3 != k % 3 * 16384 % 3",
        "(k + 4294967295) % 3 == 2",
        "k + 4294967295 < 5",
    ];
    for condition in in_turns_of_n {
        let condition = condition.replace(" && ", " { if ");
        let ends = if condition.contains('{') { "} " } else { "" };
        is_not_proved(&kernel(
            "n: u32",
            &format!("for k in 0..n {{ if {condition} {{ never.wait(0); }} {ends}}}"),
        ));
    }
    // n = -3, 3: a counter that begins below zero.
    is_not_proved(&kernel("n: i32", "for k in -5..n { if k % 4 == -3 { never.wait(0); } }"));
    is_not_proved(&kernel("n: i32", "for k in -5..n { if k / 4 == 0 && k < 0 { never.wait(0); } }"));
    let others = [
        // n = 71584
        ("n: u32", "let mut c: u32 = 0; for k in 0..n { if c % 3 != 0 { never.wait(0); } c += 60000; }"),
        // n = 2^33: the cast wraps, and k does not.
        ("n: u64", "for k in (0..n).step_by(60000) { if (k as u32) % 3 != 0 { never.wait(0); } }"),
        ("n: usize", "for k in (0..n).step_by(60000) { if (k as u32) % 3 != 0 { never.wait(0); } }"),
        (
            "n: u64",
            "for k in (0..n).step_by(60000) { let low = k as u32; if low % 3 != 0 { never.wait(0); } }",
        ),
        ("n: u64", "for k in 0..n { let low = k as u32; if k > 9 && low == 0 { never.wait(0); } }"),
        // start = 1_073_741_823, n = 500_000
        (
            "n: u32, start: i32",
            "let mut c = start; for k in 0..n { if c >= 1500000000 { never.wait(0); } c += 1000; }",
        ),
        // tiles = 0, n = 5
        ("tiles: u32, n: u32", "let last = tiles - 1; if last + 1 < n { if last >= n { never.wait(0); } }"),
        // a = 65537, b = 65535, n = 5
        ("a: u32, b: u32, n: u32", "let x = a * b; if x + 1 < n { if x >= n { never.wait(0); } }"),
    ];
    for (parameters, body) in others {
        is_not_proved(&kernel(parameters, body));
    }
}

/// Any seed, after some iterations.
#[test]
fn variables_that_change_in_iterations_and_do_not_count() {
    let next = ["x * 1664525 + 1013904223", "x ^ (x << 13)", "x - 3", "x - n"];
    for next in next {
        for condition in ["(x as i32) < 0", "x + 7 < 7"] {
            let turn = format!("if k > 0 {{ if {condition} {{ never.wait(0); }} }} x = {next};");
            is_not_proved(&kernel(
                "n: u32, seed: u32",
                &format!("let mut x = seed; for k in 0..n {{ {turn} }}"),
            ));
        }
    }
}

#[test]
fn loops_that_ask_and_do_not_wait() {
    let loops = [
        "loop { let ok = full.test_wait(0); break; }",
        "let mut done = false; while !done { let ok = full.test_wait(0); done = true; }",
        "let mut tries: u32 = 0; let mut ok = false;
        while !ok { ok = full.test_wait(0); tries += 1; if tries == 100 { ok = true; } }",
    ];
    for asks in loops {
        let reads = "out.set(lane_idx(), row.get(31 - lane_idx()));";
        let fills = "row.set(lane_idx(), 1); full.arrive();";
        let body = format!("if warp_idx() == 0 {{ {fills} }} else {{ {asks} {reads} }}");
        is_not_proved(&kernel("out: Global<u32>", &body));
    }
    let counts = "let mut tries: u32 = 0; loop { if full.test_wait(0) { break; } tries += 1; }";
    let body = format!(
        "if warp_idx() == 0 {{ full.arrive(); }} else {{ {counts} if tries > 3 {{ never.wait(0); }} }}"
    );
    is_not_proved(&kernel("out: Global<u32>", &body));
}

/// A result that is not used is a free decision too.
#[test]
fn both_answers_to_a_question() {
    let asks = [
        "let ok = full.test_wait(0); never.wait(0);",
        "if x != 5 { let ok = full.test_wait(0); never.wait(0); }",
        "if x != 5 { let ok = full.test_wait(0); if !ok { never.wait(0); } }",
        "if x == 5 { full.wait(0); } let ok = full.test_wait(0); never.wait(0);",
    ];
    for asks in asks {
        let queue = format!("let x = queue.atomic_add(0, 1); {asks}");
        let body = format!("if warp_idx() == 0 {{ full.arrive(); }} if thread_idx().x == 32 {{ {queue} }}");
        is_not_proved(&kernel("queue: Global<u32>", &body));
    }
}

#[test]
fn numbers_that_others_write() {
    is_not_proved(
        "#[tma_kernel(threads = 32, cluster = 2)]
fn k() {
    let mine: SharedArray<u32, 128> = shared();
    let given: SharedArray<u32, 128> = shared();
    let full: Barrier = shared();
    let never: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        never.init(1);
        fence_barrier_init();
    }
    for i in 0..4 {
        mine.set(i * 32 + lane_idx(), 1);
        given.set(i * 32 + lane_idx(), 0);
    }
    fence_proxy_async();
    sync_cluster();
    if lane_idx() == 0 {
        full.arrive_expect_tx(512);
        mine.bulk_copy_to(remote(given, 1 - cluster_rank()), 0, 128, remote(full, 1 - cluster_rank()));
    }
    full.wait(0);
    if given.get(0) == 1 {
        never.wait(0);
    }
    sync_cluster();
}
",
    );
    let trusted = "if thread_idx().x == 0 { row.set(0, 0); } sync_threads();
    if thread_idx().x == 0 { #[trusted = \"late\"] row.set(0, 1); }
    if thread_idx().x == 32 { #[trusted = \"an old number will do\"] let v = row.get(0); if v == 0 { never.wait(0); } }";
    is_not_proved(&kernel("", trusted));
}

/// The last warp of 48 threads elects its last lane.
#[test]
fn the_elected_lane_of_a_partial_warp() {
    let text = kernel("", "if warp_idx() == 1 { if elect_one() { never.wait(0); } }");
    is_not_proved(&text.replace("threads = 64", "threads = 48"));
}

/// Sums of launch parameters, and numbers that double: they would exceed any stack and any time.
#[test]
fn numbers_of_many_operations() {
    let turns = [
        "sum += ends.get(group);",
        "sum = sum ^ (sum << 13); sum = sum ^ (sum >> 17);",
        "sum = sum * sum + unit;",
    ];
    for turn in turns {
        let body = format!(
            "let mut sum = unit; for group in 0..100000u32 {{ {turn} }}
            if sum == 5 {{ never.wait(0); }}"
        );
        is_not_proved(&kernel("ends: Global<u32>, unit: u32", &body));
    }
    is_not_proved(&kernel(
        "first: u32, step: u32, end: u32",
        "for unit in (first..end).step_by(step as usize) { if unit == 77 { never.wait(0); } }",
    ));
}

/// The block whose memory is read may be the first to exit.
#[test]
fn memory_of_a_block_that_ended() {
    for reader in 0..2 {
        for read in ["total += theirs.get(0);", "for i in 0..3 { total += theirs.get(i); }"] {
            is_not_proved(&format!(
                "#[tma_kernel(threads = 32, cluster = 2)]
fn k(out: Global<u32>) {{
    let parts: SharedArray<u32, 32> = shared();
    parts.set(lane_idx(), lane_idx());
    sync_cluster();
    if cluster_rank() == {reader} {{
        let theirs = remote(parts, {});
        let mut total = 0;
        {read}
        out.set(lane_idx(), total);
    }}
}}
",
                1 - reader
            ));
        }
    }
}

/// One more arrival than the count: any of them may count for the next phase.
#[test]
fn an_arrival_too_many() {
    let rounds = "let mut phase = Phase::new(); for k in 0..n { met.arrive(); met.wait_next(&mut phase); }";
    is_not_proved(&kernel("n: u32", rounds).replace("full.init(32)", "full.init(63)").replace("met", "full"));
}

/// An index that wraps for one thread, out of bounds of shared memory.
#[test]
fn indices_that_wrap() {
    for (things, at) in [
        ("SharedArray<u32, 32>", "thread_idx().x - 1"),
        ("Tile<u32, Shape3<2, 4, 8>>", "[1, thread_idx().x - 1, 0]"),
    ] {
        is_not_proved(&format!(
            "#[tma_kernel(threads = 32)]
fn k() {{
    let things: {things} = shared();
    things.set({at}, 0);
    sync_threads();
    things.set({at}, 1);
}}
"
        ));
    }
}

/// The checker does not follow the order of accesses in this kernel: it neither proves an unordered
/// access, nor refuses one that may be ordered.
#[test]
fn orders_of_accesses() {
    let flag = |waits: &str| {
        format!(
            "#[tma_kernel(threads = 64)]
fn k(out: Global<u32>) {{
    let row: SharedArray<u32, 32> = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 {{ flag.set(0, 0); }}
    sync_threads();
    if warp_idx() == 0 {{
        row.set(lane_idx(), 1);
        sync_warp();
        if lane_idx() == 0 {{ flag.store(0, 1, Order::Release, Scope::Block); }}
    }} else {{
        {waits}
        out.set(lane_idx(), row.get(lane_idx()));
    }}
}}
"
        )
    };
    let acquires = verdict(&flag("while flag.load(0, Order::Acquire, Scope::Block) == 0 {}"));
    assert!(matches!(acquires, Verdict::NotDecided(_)), "{acquires:?}");
    let does_not = verdict(&flag("while flag.load(0, Order::Relaxed, Scope::Block) == 0 {}"));
    assert!(matches!(does_not, Verdict::Broken(_)), "{does_not:?}");
}

/// A plain access and a strong one are a race, whichever comes last.
#[test]
fn plain_accesses_beside_strong_ones() {
    let together = |one: &str, other: &str| {
        let source = format!(
            "#[tma_kernel(threads = 64)]
fn k(out: Global<u32>) {{
    let count: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 {{ count.set(0, 0); }}
    sync_threads();
    if thread_idx().x == 0 {{ {one} }}
    if thread_idx().x == 32 {{ {other} }}
}}
"
        );
        verdict(&source)
    };
    let strong = [
        "count.fetch_add(0, 1, Order::Relaxed, Scope::Block);",
        "count.store(0, 1, Order::Relaxed, Scope::Block);",
        "out.set(thread_idx().x, count.load(0, Order::Relaxed, Scope::Block));",
    ];
    for one in strong {
        for other in strong {
            let found = together(one, other);
            assert!(matches!(found, Verdict::Proved), "{one} {other}: {found:?}");
        }
        for plain in ["count.set(0, 2);", "out.set(0, count.get(0));"] {
            if one.contains("load") && plain.contains("get") {
                continue;
            }
            for found in [together(one, plain), together(plain, one)] {
                assert!(matches!(found, Verdict::Broken(_)), "{one} {plain}: {found:?}");
            }
        }
    }
}

/// Launches with small numbers, from which others with a sign or a wrap-around are computed.
#[test]
fn casts_and_products_of_counters() {
    let in_turns_of_n = [
        // n = 257, 129, 65537, 254
        "let b = (k as u8) as u32; if b != k { never.wait(0); }",
        "if (k as i8) < 0 { never.wait(0); }",
        "if (k as u16) as u32 != k { never.wait(0); }",
        "if k > 2 { if (k as u8) + 3 < 3 { never.wait(0); } }",
        // n = 42949674, 21474837
        "if k > 2 { if k * 200 < 100 { never.wait(0); } }",
        "if k * 200 % 3 != k % 3 * 200 % 3 { never.wait(0); }",
    ];
    for turn in in_turns_of_n {
        is_not_proved(&kernel("n: u32", &format!("for k in 0..n {{ {turn} }}")));
    }
    let grown = [
        // a = 1073741822, n = 3
        ("a: u32", "x * 4 < 4"),
        ("a: u32", "(x as i32) * 4 < 0"),
        // a = -10
        ("a: i32", "x < 0"),
        ("a: i32", "x % 4 < 0"),
        // a[0] = 2^31
        ("a: Global<u32>", "(x as i32) < 0"),
    ];
    for (parameter, condition) in grown {
        let first = if parameter.contains("Global") { "a.get(0)" } else { "a" };
        let body = format!(
            "let mut x = {first}; for k in 0..n {{ if k > 1 {{ if {condition} {{ never.wait(0); }} }} x += 1; }}"
        );
        is_not_proved(&kernel(&format!("n: u32, {parameter}"), &body));
    }
}

/// Writes to one stage say nothing about another.
#[test]
fn stages_that_nobody_wrote() {
    let fill = "for r in 0..4u32 { tiles[0].set([r * 2 + thread_idx().x / 32, lane_idx()], 1); }";
    is_not_proved(&format!(
        "#[tma_kernel(threads = 64)]
fn k(n: u32, dst: TensorMap<Tile<u32, Shape2<8, 32>>>) {{
    let tiles: Stages<Tile<u32, Shape2<8, 32>>, 4> = shared();
    {fill}
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {{
        dst.store([0, 0], tiles[n % 4]);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }}
}}
"
    ));
}

/// `tensormap.cp_fenceproxy` is for the whole warp, and a map is changed after it has been copied.
#[test]
fn maps_that_some_lanes_publish() {
    let edits = ["map.copy_from(template);", ""];
    let publishes = ["if thread_idx().x == 0 { map.publish(maps, 0); }", "map.publish(maps, 0);"];
    for (edit, publish) in edits.iter().flat_map(|edit| publishes.map(|publish| (edit, publish))) {
        if *edit == edits[0] && publish == publishes[1] {
            continue;
        }
        is_not_proved(&format!(
            "#[tma_kernel(threads = 32)]
fn k(
    template: TensorMap<Tile<f32, Shape2<8, 32>>>,
    data: Global<f32>,
    maps: Maps<Tile<f32, Shape2<8, 32>>>,
) {{
    let map: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();
    if thread_idx().x == 0 {{ {edit} map.set_address(data, 0); }}
    sync_warp();
    {publish}
}}
"
        ));
    }
}

/// The copy may overwrite the element before anything uses the value that was read.
#[test]
fn reads_that_are_used_too_late() {
    for (before, behind) in [
        ("", "other.set(lane_idx(), r);"),
        ("if n == 7 { other.set(lane_idx(), r); }", ""),
        ("other.set(lane_idx(), r * 0);", ""),
        ("other.set(lane_idx(), (r >> 31) >> 1);", ""),
        ("other.set(lane_idx(), r); other.set(lane_idx(), 2);", ""),
        ("for _ in 0..1 { if n == 7 { break; } other.set(lane_idx(), r); }", ""),
    ] {
        is_not_proved(&format!(
            "#[tma_kernel(threads = 32)]
fn k(x: Global<u32>, out: Global<u32>, n: u32) {{
    let row: SharedArray<u32, 32> = shared();
    let other: SharedArray<u32, 32> = shared();
    let first = block_idx().x * 32;
    row.set(lane_idx(), 1);
    fence_proxy_async();
    sync_warp();
    let r = x.get(first + lane_idx());
    {before}
    sync_warp();
    if lane_idx() == 0 {{ x.bulk_store(first, row, 0, 32); bulk_commit_group(); bulk_wait_group::<0>(); }}
    {behind}
    out.set(first + lane_idx(), r);
}}
"
        ));
    }
}

/// Waits for copies that are not made, not committed, or another thread's.
#[test]
fn waits_that_say_nothing_of_a_copy() {
    let copies = [
        "if t == 0 { x.bulk_store(0, row, 0, 32); bulk_commit_group(); }
         for _ in 0..n { if t == 0 { bulk_wait_group::<0>(); } }",
        "if t == 0 { x.bulk_store(0, row, 0, 32); bulk_wait_group::<0>(); bulk_commit_group(); }",
        "match n { 0 => { if t == 0 { x.bulk_store(0, row, 0, 32); bulk_commit_group(); } } _ => {} }
         match n { 1 => { if t == 0 { bulk_wait_group::<0>(); } } _ => {} }",
    ];
    for copy in copies {
        is_not_proved(&format!(
            "#[tma_kernel(threads = 32)]
fn k(x: Global<u32>, out: Global<u32>, counter: Global<u32>, n: u32) {{
    let row: SharedArray<u32, 32> = shared();
    let t = thread_idx().x;
    row.set(t, 1);
    fence_proxy_async();
    sync_threads();
    if block_idx().x == 0 {{
        {copy}
        if t == 0 {{ bulk_wait_group_read::<0>(); }}
    }}
    sync_grid(counter);
    if block_idx().x == 1 {{ out.set(t, x.get(t)); }}
}}
"
        ));
    }
}
