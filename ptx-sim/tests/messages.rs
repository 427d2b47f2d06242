//! What findings say of kernels of the language: names of shared variables, and what is to be done.

mod common;

use ptx_sim::tensor_map::{DataType, Swizzle};
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};

/// What a block of `threads` finds wrong with a kernel of a tile of 32 by 32, a barrier and these statements.
fn findings(threads: u32, shared: &str, body: &str) -> String {
    let source = format!(
        "#[tma_kernel(threads = {threads})]\nfn k(src: TensorMap<Tile<u32, Shape2<32, 32>>>, out: Global<u32>) {{\n\
         let tile: Tile<u32, Shape2<32, 32>> = shared();\n{shared}\nlet leader = thread_idx().x == 0;\n{body}\n}}\n"
    );
    let kernels = common::compile_text("kernel.rs", &source);
    let module = Module::load(&kernels[0].1).expect("it loads");
    let mut memory = GlobalMemory::default();
    let matrix = common::Matrix::new(&mut memory, DataType::U32, [32, 32], Some(&[1; 4096]));
    let out = memory.allocate(4096, false).expect("there is room");
    let map = Arg::Map(matrix.map([32, 32], Swizzle::None));
    let args = [map, Arg::Address(out), Arg::Bytes(1024u64.to_le_bytes().into())];
    let config =
        LaunchConfig { block: [threads, 1, 1], dynamic_shared_bytes: 16384, ..LaunchConfig::default() };
    let report = launch(&module, &mut memory, &kernels[0].0, &config, &args).expect("it starts");
    let text = report.findings.render(&module.sources(|_| Some(source.clone())));
    assert!(!text.contains("of the cluster"), "there is none: {text}");
    text
}

/// `text` has all of these.
fn says(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
    }
}

const BARRIER: &str = "let full: Barrier = shared();";
const LOAD: &str = "if leader { full.init(1); fence_barrier_init(); }\nsync_threads();\n\
                    if leader { full.arrive_expect_tx(tile.bytes()); src.load(tile, [0, 0], full); }\n";
const READ: &str = "out.set(thread_idx().x, tile.get([1, thread_idx().x]));";

#[test]
fn shared_variables_have_names() {
    let text = findings(32, BARRIER, &format!("{LOAD}{READ} full.wait(0);"));
    says(&text, &["read before the wait: shared memory at 0x80 (byte 128 of `tile`) is read"]);
    let stages = "let full: Stages<Barrier, 3> = shared();";
    let text = findings(
        32,
        stages,
        "if leader { full[0].init(1); full[1].init(1); }\nsync_threads(); full[2].wait(0);",
    );
    says(&text, &["there is no mbarrier at 0x1010 (`full[2]`)"]);
    let text = findings(32, stages, "if leader { full[1].init(1); }\nsync_threads(); full[1].wait(0);");
    says(&text, &["threads 0 to 31 wait for the phase of parity 0 of the mbarrier at 0x1008 (`full[1]`)"]);
    says(&text, &["\n  mbarrier at 0x1008 (`full[1]`): phase 0", "1 of 1 arrival is missing"]);
}

#[test]
fn a_wait_for_the_other_phase_is_shown() {
    let text = findings(32, BARRIER, &format!("{LOAD}full.wait(1);\n{READ}\nfull.wait(0);"));
    says(
        &text,
        &[
            "read before the wait",
            "waited, for a phase before\n",
            ": full.wait(1);",
            "that wait, with parity 1, was over before the load",
            "the mbarrier at 0x1000 (`full`) for a later phase; wait for parity 0, with `wait(0)`",
        ],
    );
    // One that was for the right phase of something else is not.
    let two = "let full: Barrier = shared(); let other: Barrier = shared();";
    let load = LOAD.replace("full.init(1);", "full.init(1); other.init(1); other.arrive();");
    let text = findings(32, two, &format!("{load}other.wait(0);\n{READ}\nfull.wait(0);"));
    says(
        &text,
        &[
            "read before the wait",
            "wait for the phase of the mbarrier that the load's bytes count for: `full.wait(..)` (`mbarrier.try_wait`)",
        ],
    );
    assert!(!text.contains("for a phase before"), "{text}");
}

#[test]
fn more_arrivals_than_are_counted_are_shown() {
    let two = "let full: Barrier = shared(); let empty: Barrier = shared();";
    let body = "if leader { full.init(1); empty.init(COUNT); }\nsync_threads();\n\
                if thread_idx().x < 32 { empty.arrive(); } else { full.wait(0); }";
    let text = findings(64, two, &body.replace("COUNT", "4"));
    says(
        &text,
        &[
            "deadlock",
            "threads 32 to 63 wait for the phase of parity 0 of the mbarrier at 0x1000 (`full`)",
            "the mbarrier at 0x1008 (`empty`) gets an arrival in phase 1, but no wait has seen phase 0 complete",
            "is its count of 4, given to `init(4)` (`mbarrier.init`), less than what arrives in a phase?",
        ],
    );
    let text = findings(64, two, &body.replace("COUNT", "32"));
    says(&text, &["deadlock", "help: 1 of 1 arrival is missing"]);
}

#[test]
fn an_mbarrier_has_to_be_made_once_and_before_its_use() {
    let text = findings(64, BARRIER, "full.wait(0);");
    says(
        &text,
        &[
            "there is no mbarrier at 0x1000 (`full`)",
            "help: let one thread initialise it",
            "that every thread comes to",
        ],
    );
    let text = findings(64, BARRIER, &format!("full.init(1);\n{LOAD}full.wait(0);"));
    says(
        &text,
        &[
            "the mbarrier at 0x1000 (`full`) is initialised again",
            "help: one thread initialises an mbarrier, once",
        ],
    );
}
