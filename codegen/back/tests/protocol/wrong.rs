//! Wrong kernels, such as others have written, and found to be wrong later.

use std::fs;

use tma_codegen::check::CheckedKernel;
use tma_codegen::diag::Code;
use tma_codegen::protocol::{Budget, Verdict, judge, with_missing_step};

use crate::tree::root;
use crate::verdict;

/// The files with wrong kernels, whose messages are in `.stderr` files. Some are from other
/// projects: FlashKDA's fence before a loop, DeepEP's wait for one group too few, flash-attention's
/// flipped phase, and TileLang's bytes without an arrival.
const FILES: [&str; 3] = ["protocol_waits", "protocol_memory", "protocol_pipelines"];

/// Wrong kernels whose messages need more text, since often no single step makes them right.
const OTHERS: &str = "protocol_reasons";

/// The error of each is in the line that has its mark.
#[test]
fn each_wrong_kernel_is_refused_in_its_line() {
    let (mut wrong, mut all) = (vec![], 0);
    for file in FILES.into_iter().chain([OTHERS]) {
        let path = root().join(format!("codegen/back/tests/diagnostics/{file}.rs"));
        let source = fs::read_to_string(&path).expect("a source file");
        let marks = source.lines().enumerate().filter_map(|(index, line)| {
            line.split_once("//~ ").map(|(_, code)| (index + 1, code.trim().to_owned()))
        });
        let marks: Vec<_> = marks.collect();
        let accepted = tma_codegen::check(file, &source).unwrap_or_else(|failure| panic!("{failure}"));
        all += accepted.kernels.len();
        let found: Vec<_> = accepted.kernels.iter().map(|checked| found(&checked.kernel)).collect();
        for (kernel, mark) in found.iter().zip(&marks).filter(|(kernel, mark)| kernel != mark) {
            wrong.push(format!("{file}: found {kernel:?}, marked {mark:?}"));
        }
        assert_eq!(found.len(), marks.len(), "{file}: a mark for each kernel");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all > 30, "{all} kernels");
}

/// Returns the line and the code of the error.
fn found(kernel: &CheckedKernel) -> (usize, String) {
    match judge(kernel, Budget::MACRO).verdict {
        Verdict::Broken(diagnostic) => {
            // A repair may show that another line is to blame.
            let diagnostic = with_missing_step(kernel, diagnostic, Budget::MACRO);
            (diagnostic.span.start().line, diagnostic.code().to_string())
        }
        other => (0, format!("{}: {other:?}", kernel.kernel().name)),
    }
}

/// Errors only in launches that a kernel may not be made for are not certain.
#[test]
fn launches_that_may_never_be_are_no_error() {
    let source = "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
            let tile: Tile<f32, Shape2<32, 32>> = shared();
            let full: Barrier = shared();
            if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
            sync_threads();
            for k in 0..tiles {
                if thread_idx().x == 0 && k == 0 {
                    full.arrive_expect_tx(tile.bytes());
                    src.load(tile, [0, 0], full);
                }
            }
            full.wait(0);
            out.set(thread_idx().x, tile.get([0, lane_idx()]));
        }";
    assert!(matches!(verdict(source), Verdict::NotDecided(_)), "{:?}", verdict(source));
}

/// An access to a vector is an access to each element, not only to the first.
#[test]
fn a_race_for_a_later_element_of_a_vector() {
    for (one, other) in [
        ("words.set_vec(thread * 4, [thread; 4]);", "words.get(thread / 4 * 4 + 1)"),
        ("if thread % 4 == 3 { words.set(thread, thread); }", "words.get_vec::<4>(thread / 4 * 4)[3]"),
    ] {
        let source = format!(
            "#[tma_kernel(threads = 32)]
            fn k(out: Global<u32>) {{
                let words: SharedArray<u32, 128> = shared();
                let thread = thread_idx().x;
                {one}
                out.set(thread, {other});
            }}"
        );
        let verdict = verdict(&source);
        let race = matches!(&verdict, Verdict::Broken(found) if found.code() == Code::SharedRace);
        assert!(race, "{verdict:?}\n{source}");
    }
}

/// Returns the source with the inserted step of a help, if the help says to insert one.
fn with_step(source: &str, help: &str) -> Option<String> {
    let (words, place) = help.strip_prefix("insert `")?.split_once("` ")?;
    let place = place.split(';').next()?;
    let number: usize = place.rsplit(' ').next()?.parse().ok()?;
    let mut lines: Vec<&str> = source.lines().collect();
    if place.starts_with("before line") {
        lines.insert(number - 1, words);
    } else if place.starts_with("after line") {
        lines.insert(number, words);
    } else {
        return None;
    }
    Some(lines.join("\n"))
}

/// A help is no guess: a kernel that follows it is accepted.
#[test]
fn a_step_that_is_said_to_be_missing_is() {
    let (mut said, mut inserted, mut all) = (0, 0, 0);
    for file in FILES {
        let path = root().join(format!("codegen/back/tests/diagnostics/{file}.rs"));
        let source = fs::read_to_string(&path).expect("a source file");
        let accepted = tma_codegen::check(file, &source).unwrap_or_else(|failure| panic!("{failure}"));
        for (index, checked) in accepted.kernels.iter().enumerate() {
            let Verdict::Broken(found) = judge(&checked.kernel, Budget::MACRO).verdict else { continue };
            let found = with_missing_step(&checked.kernel, found, Budget::MACRO);
            let help = found.help().unwrap_or_default();
            all += 1;
            said += u32::from(help.contains("the kernel is then accepted"));
            let Some(changed) = with_step(&source, &help) else { continue };
            inserted += 1;
            let accepted =
                tma_codegen::check(file, &changed).unwrap_or_else(|failure| panic!("{help}\n{failure}"));
            let verdict = judge(&accepted.kernels[index].kernel, Budget::MACRO).verdict;
            assert!(!matches!(verdict, Verdict::Broken(_)), "{help}\n{verdict:?}");
        }
    }
    assert!(said * 10 >= all * 7, "a step for {said} of {all}");
    assert!(inserted >= 12, "{inserted} steps are inserted");
}

/// Two lanes read an element in a loop, and the checker remembers both: the lane that read it last
/// overwrites it, next to the other's read.
#[test]
fn a_race_for_an_element_that_several_threads_have_read() {
    let kernel = |between: &str| {
        format!(
            "#[tma_kernel(threads = 32)]
        fn k(out: Global<u32>) {{
            let numbers: SharedArray<u32, 64> = shared();
            numbers.set(lane_idx(), 0);
            numbers.set(lane_idx() + 32, 0);
            sync_threads();
            let mut sum = 0u32;
            for half in unroll(0..2) {{
                for part in 0..2 {{
                    sum += numbers.get(lane_idx() / 2 + part * 16);
                }}
            }}
            {between}
            numbers.set(lane_idx() / 2 + (1 - lane_idx() % 2) * 32, sum);
            out.set(lane_idx(), sum);
        }}"
        )
    };
    let (apart, together) = (verdict(&kernel("sync_threads();")), verdict(&kernel("")));
    assert!(matches!(apart, Verdict::Proved), "{apart:?}");
    assert!(matches!(together, Verdict::Broken(_)), "{together:?}");
}

/// Blocks that reach another barrier of the grid by their index alone, in a launch of two blocks.
#[test]
fn blocks_that_diverge_at_grid_barriers_are_refused() {
    let of = |body: &str| {
        let kernel = "#[tma_kernel(threads = 32)] fn k(c: Global<u32>, d: Global<u32>, n: u32)";
        verdict(&format!("{kernel} {{ {body} }}"))
    };
    for body in [
        "if block_idx().x == 0 { sync_grid(c); }",
        "if block_idx().x == 1 { return; } sync_grid(c);",
        "sync_grid(c); if block_idx().x % 2 == 1 { sync_grid(c); }",
        "if block_idx().y % 2 == 0 { sync_grid(c); } else { sync_grid(d); }",
        "if block_idx().x + 1 == grid_dim().x { sync_grid(c); }",
        "for turn in 0..n { if block_idx().x == 0 { sync_grid(c); } }",
    ] {
        let Verdict::Broken(diagnostic) = of(body) else { panic!("{body}: {:?}", of(body)) };
        assert_eq!(diagnostic.code(), Code::Deadlock, "{body}");
    }
    // In a launch with another number all blocks reach the same one.
    let by_number =
        "if block_idx().x == 0 { if n == 1 { sync_grid(c); } } else { if n == 2 { sync_grid(c); } }";
    assert!(!matches!(of(by_number), Verdict::Broken(_)), "{:?}", of(by_number));
    // A host may launch as many blocks as the parameter says.
    for body in
        ["if block_idx().x < n { sync_grid(c); }", "if block_idx().x < grid_dim().x { sync_grid(c); }"]
    {
        assert!(matches!(of(body), Verdict::NotDecided(_)), "{body}: {:?}", of(body));
    }
    let both = "if block_idx().x == 0 { sync_grid(c); } else { sync_grid(c); }";
    assert!(!matches!(of(both), Verdict::Broken(_)), "{:?}", of(both));
}

/// Blocks that communicate, with an order or without.
#[test]
fn blocks_whose_accesses_nothing_orders_are_refused() {
    let of = |body: &str| {
        verdict(&format!(
            "#[tma_kernel(threads = 32)]
            fn k(data: Global<u32>, flag: Global<u32>, out: Global<u32>) {{
                let is_last: SharedArray<bool, 1> = shared();
                let t = thread_idx().x;
                {body}
            }}"
        ))
    };
    let message = |store: &str, load: &str| {
        format!(
            "if block_idx().x == 0 {{ data.set(t, 7); sync_warp(); if t == 0 {{ {store} }} }}
            else {{ {load} out.set(t, data.get(t)); }}"
        )
    };
    let last = |count: &str| {
        format!(
            "data.set(block_idx().x * 32 + t, t);
            sync_warp();
            if t == 0 {{ let before = {count}; is_last.set(0, before == grid_dim().x - 1); }}
            sync_warp();
            if is_last.get(0) {{
                let mut sum = 0;
                for block in 0..grid_dim().x {{ sum += data.get(block * 32 + t); }}
                out.set(t, sum);
            }}"
        )
    };
    let last_reads = |read: &str| {
        format!(
            "data.set(block_idx().x * 32 + t, t);
            sync_warp();
            if t == 0 {{
                is_last.set(0, flag.fetch_add(0, 1, Order::Relaxed, Scope::Device) == grid_dim().x - 1);
            }}
            sync_warp();
            if is_last.get(0) {{ out.set(t, {read}); }}"
        )
    };
    let (store, load) = ("flag.store(0, 1, Order::", "while flag.load(0, Order::");
    let counted = |order: &str| format!("flag.fetch_add(0, 1, Order::{order})");
    let (device, until) = ("Scope::Device);", "Scope::Device) == 0 {}");
    let wrong = [
        message(&format!("{store}Relaxed, {device}"), &format!("{load}Acquire, {until}")),
        message(&format!("{store}Release, {device}"), &format!("{load}Relaxed, {until}")),
        message(&format!("{store}Relaxed, {device}"), &format!("{load}Relaxed, {until}")),
        message(&format!("{store}Release, Scope::Block);"), &format!("{load}Acquire, {until}")),
        message(&format!("{store}Release, Scope::Cluster);"), &format!("{load}Acquire, {until}")),
        message(&format!("{store}Release, {device}"), &format!("{load}Acquire, Scope::Block) == 0 {{}}")),
        message("", ""),
        last(&counted("Relaxed, Scope::Device")),
        last(&counted("Release, Scope::Device")),
        last(&counted("Acquire, Scope::Device")),
        last(&counted("AcqRel, Scope::Block")),
        "if t == 0 {
            data.set(block_idx().x, 1);
            if flag.fetch_add(0, 1, Order::Relaxed, Scope::Device) + 1 == grid_dim().x {
                for i in 0..grid_dim().x { out.set(i, data.get(i)); }
            }
        }"
        .to_owned(),
    ];
    for body in &wrong {
        let Verdict::Broken(diagnostic) = of(body) else { panic!("{body}: {:?}", of(body)) };
        assert_eq!(diagnostic.code(), Code::UnorderedBlocks, "{body}");
    }
    let right = [
        message(&format!("{store}Release, {device}"), &format!("{load}Acquire, {until}")),
        message(&format!("fence(); {store}Relaxed, {device}"), &format!("{load}Relaxed, {until} fence();")),
        message(&format!("{store}Release, Scope::System);"), &format!("{load}Acquire, {until}")),
        "if block_idx().x == 0 { data.set(t, 7); } sync_grid(flag); if block_idx().x == 0 {} else { out.set(t, data.get(t)); }".to_owned(),
        // The halves of a slice; each block reads the initial contents.
        "if block_idx().x == 0 { data.set(t, 7); } else { out.set(t, data.get(t + 32)); }".to_owned(),
        "if block_idx().x == 0 { if t < 16 { data.set(t, 7); } } else { if t >= 16 { out.set(t, data.get(t)); } }".to_owned(),
        "data.set(block_idx().x * 32 + t, data.get(block_idx().x * 32 + t) + 1);".to_owned(),
        last(&counted("AcqRel, Scope::Device")),
        last(&format!("{{ fence(); let before = {}; fence(); before }}", counted("Relaxed, Scope::Device"))),
        // A count that is kept in shared memory, and depends on its old value.
        "let was = is_last.get(0); sync_warp(); if t == 0 { is_last.set(0, was == false); } sync_warp();
        if is_last.get(0) == true { out.set(t, data.get(t)); }"
            .to_owned(),
        // The launch decides which of the two is executed.
        "if flag.len() > 4 { if block_idx().x == 0 { data.set(0, 7); } }
        else { if block_idx().x == 0 {} else { out.set(t, data.get(0)); } }"
            .to_owned(),
        // The last block reads elements that no block has written, or its own.
        last_reads("data.get(grid_dim().x * 32 + block_idx().x)"),
        last_reads("data.get(t + block_idx().x * 32)"),
        // Tickets, and the first block: neither waits for others.
        "let tile = flag.fetch_add(0, 1, Order::Relaxed, Scope::Device); if tile < 64 { data.set(tile, out.get(tile)); }".to_owned(),
        "data.set(block_idx().x * 32 + t, 1);
        if flag.fetch_add(0, 1, Order::Relaxed, Scope::Device) == 0 { out.set(0, data.get(4096)); }"
            .to_owned(),
    ];
    for body in &right {
        assert!(!matches!(of(body), Verdict::Broken(_)), "{body}: {:?}", of(body));
    }
}
