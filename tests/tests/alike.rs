//! One mistake in three texts: the compiler's error, the finding of the simulator, and the report
//! of a launch on a GPU whose waits are limited. All end with the same rule and its page.
//!
//! `BLESS=1 cargo test -p tma-tests --test alike` accepts new texts.
#![cfg(feature = "llvm")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ptx_probe::watch::{Report, WORDS, Watched, describe, watch};
use ptx_sim::tensor_map::{DataType, Fill, Interleave, Mode, Swizzle, TensorMap};
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module};
use tma_codegen::{Target, check_protocol, compile};
use tma_model::rule::Rule;
use tma_runtime::{DeadlockReport, Error};

/// Kernels of the simulator's tests, each with a mistake, the rule that it breaks, and whether its
/// threads wait forever.
const MISTAKES: [(&str, Rule, bool); 5] = [
    ("deadlock.rs", Rule::Deadlock, true),
    ("wrong_bytes.rs", Rule::Bytes, true),
    ("divergence.rs", Rule::Divergence, true),
    ("overrun_wait.rs", Rule::Overrun, false),
    ("missing_fence.rs", Rule::Fence, false),
];

/// A limit in nanoseconds: longer than any wait of these kernels that ends.
const LIMIT: u64 = 20_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The memory of a launch, and its arguments: maps of 64 rows of 128 columns, and a buffer.
fn arguments(memory: &mut GlobalMemory) -> Vec<Arg> {
    let mut map = || {
        let address = memory.allocate(4 * 64 * 128, false).expect("there is room");
        Arg::Map(TensorMap {
            element: DataType::U32,
            address,
            extents: vec![128, 64],
            byte_strides: vec![4 * 128],
            mode: Mode::Tiled { box_extents: vec![32, 32] },
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            fill: Fill::Zeros,
        })
    };
    let maps = [map(), map()];
    let out = memory.allocate(4 * 1024, false).expect("there is room");
    let rest = [Arg::Address(out), Arg::Bytes(1024_u64.to_le_bytes().into())];
    maps.into_iter().chain(rest).collect()
}

/// Runs PTX on the simulator, and returns the text of its findings.
fn simulate(ptx: &str, entry: &str, source: &str, shared: u32, memory: &mut GlobalMemory) -> String {
    let module = Module::load(ptx).expect("it loads");
    let args = arguments(memory);
    let threads = module.kernel(entry).and_then(|kernel| kernel.required_threads()).expect("a kernel");
    let config = LaunchConfig {
        grid: [1; 3],
        block: threads,
        dynamic_shared_bytes: shared,
        instruction_limit: 1 << 22,
        ..LaunchConfig::default()
    };
    let report = ptx_sim::launch(&module, memory, entry, &config, &args).expect("it starts");
    report.findings.render(&module.sources(|_| Some(source.to_owned())))
}

/// Returns the error of a launch with limited waits, which are simulated.
fn limited(ptx: &str, entry: &str, source: &str) -> Option<String> {
    let mut memory = GlobalMemory::default();
    let address = memory.allocate(4 * WORDS as u64, false).expect("there is room");
    let watched: Watched = watch(ptx, entry, 16 << 10, address, LIMIT).expect("the compiler's PTX");
    // The simulator resumes a `try_wait` when its phase is complete, and stops when none can be. A GPU
    // gives up after some time, as a `test_wait` does at once.
    let polling = watched.ptx.replace("mbarrier.try_wait", "mbarrier.test_wait");
    simulate(&polling, entry, source, watched.shared_bytes, &mut memory);
    let mut bytes = vec![0; 4 * WORDS];
    memory.read(address, &mut bytes).expect("the reports");
    let words: Vec<u32> = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let reports = Report::read(&words);
    if reports.is_empty() {
        return None;
    }
    let waiting = describe(&watched, &reports, |_, line| {
        source.lines().nth(line as usize - 1).map(|line| line.trim().to_owned())
    });
    let replay = "TMA_DEVICE=sim target/debug/program --rows 20".to_owned();
    let report = DeadlockReport { waiting, warps: reports.len(), replay };
    Some(Error::Deadlock { kernel: "k", limit: Duration::from_nanos(LIMIT), report }.to_string() + "\n")
}

#[test]
fn three_texts_of_a_mistake_have_its_rule_and_page() {
    let mut all = String::new();
    for (file, rule, hangs) in MISTAKES {
        let path = root().join("ptx-sim/tests/findings").join(file);
        let source = fs::read_to_string(path).expect("the kernel is there");
        let error = check_protocol(file, &source).expect_err("the mistake is certain").to_string();
        let ptx = compile(file, &source, Target::default()).expect("it compiles").kernels.remove(0);
        let finding = simulate(&ptx.text, &ptx.entry, &source, 16 << 10, &mut GlobalMemory::default());
        let report = hangs.then(|| limited(&ptx.text, &ptx.entry, &source).expect("a wait is too long"));
        assert!(error.contains(&rule.reference()), "{file}: {error}");
        assert!(finding.contains(&rule.reference()), "{file}: {finding}");
        // Only the barrier's counts show what is wrong: to the report, each of these is a deadlock.
        let reported = Rule::Deadlock.reference();
        assert!(
            report.as_ref().is_none_or(|report| report.ends_with(&format!("{reported}\n"))),
            "{report:?}"
        );
        all += &format!("=== {file}: the compiler\n{error}\n\n=== {file}: the simulator\n{finding}\n");
        all.extend(report.map(|report| format!("=== {file}: a GPU with limited waits\n{report}\n")));
    }
    tma_golden::assert_all([(root().join("tests/tests/alike.txt"), all)]);
}

/// All threads poll a flag that nobody sets.
#[test]
fn loops_that_poll_have_limits() {
    let source = "\
use tma_runtime::prelude::*;
#[tma_kernel(threads = 64)]
fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    flags: Global<u32>,
) {
    if thread_idx().x == 0 {
        flags.store(1, 7, Order::Relaxed, Scope::Device);
    }
    sync_threads();
    while flags.load(1, Order::Acquire, Scope::Device) < 8 {}
}
";
    let ptx = compile("poll.rs", source, Target::default()).expect("it compiles").kernels.remove(0);
    let report = limited(&ptx.text, &ptx.entry, source).expect("a wait is too long");
    let wanted =
        "of block 0 waits for a value in global memory other than 7\n    from poll.rs:12: while flags.load";
    assert!(report.contains(wanted), "{report}");
}

/// All threads poll an mbarrier at which a thread is missing. The optimiser repeats the first loop,
/// which counts.
#[test]
fn loops_that_poll_mbarriers_have_limits() {
    let loops = [
        "let mut tries = 0u32;
    while !met.try_wait(0) {
        tries += 1;
        assert!(tries < 100_000_000, \"a thread never came\");
    }",
        "while !met.test_wait(0) {}",
    ];
    for polling in loops {
        let source = format!(
            "\
use tma_runtime::prelude::*;
#[tma_kernel(threads = 64)]
fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    flags: Global<u32>,
) {{
    let met: Barrier = shared();
    if thread_idx().x == 0 {{
        met.init(2);
    }}
    sync_threads();
    if thread_idx().x == 0 {{
        met.arrive();
    }}
    {polling}
}}
"
        );
        let ptx = compile("poll.rs", &source, Target::default()).expect("it compiles").kernels.remove(0);
        let report = limited(&ptx.text, &ptx.entry, &source).expect("a wait is too long");
        let wanted = "of block 0 waits for the phase with parity 0 of the mbarrier `met`, where 1 arrival is \
                      pending\n    from poll.rs:";
        assert!(report.contains(wanted), "{report}");
    }
}

#[test]
fn the_page_of_a_rule_begins_with_its_sentence() {
    for rule in Rule::ALL {
        let page =
            fs::read_to_string(root().join(format!("docs/errors/{}.md", rule.code()))).expect("a page");
        let text = page.lines().skip(2).take(3).collect::<Vec<_>>().join(" ").to_lowercase();
        assert!(text.starts_with(&rule.sentence().to_lowercase()), "{rule:?}: {text}");
    }
}
