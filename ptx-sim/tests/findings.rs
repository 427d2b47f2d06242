//! Mistakes with their complete reports: each kernel in `findings`, in Rust or in PTX, has its
//! report beside it.
//!
//! `BLESS=1 cargo test -p ptx-sim --test all findings` accepts new texts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common;
use crate::common::Matrix;
use ptx_sim::tensor_map::{DataType, Swizzle};
use ptx_sim::{Arg, Checks, FindingKind, GlobalMemory, GlobalOrder, LaunchConfig, Module, Report, launch};

/// Maps each rule to a case whose first finding is of that rule. rustc reports missing rules.
macro_rules! rules {
    ($($kind:ident: $case:literal,)+) => {
        const RULES: &[(FindingKind, &str)] = &[$((FindingKind::$kind, $case)),+];

        const _: fn(FindingKind) = |kind| match kind {
            $(FindingKind::$kind => (),)+
            // No kernel provokes this.
            FindingKind::Internal => (),
        };
    };
}

rules! {
    ReadBeforeWait: "missing_wait.rs",
    InFlight: "write_under_a_load.rs",
    RefillBeforeRelease: "overrun_refill.rs",
    MissingProxyFence: "missing_fence.rs",
    UnfencedRefill: "unfenced_refill.rs",
    BarrierNotVisible: "missing_init_fence.rs",
    BarrierMisuse: "barrier_without_init.rs",
    TransactionBytes: "wrong_bytes.rs",
    Overrun: "overrun_wait.rs",
    Deadlock: "deadlock.rs",
    Race: "race.rs",
    ScopeTooNarrow: "scope_of_a_block.ptx",
    MixedProxies: "atomics_beside_reductions.ptx",
    DivergentBarrier: "divergence.rs",
    Uninitialised: "uninitialised.rs",
    OutOfBounds: "out_of_bounds.ptx",
    Misaligned: "misaligned.ptx",
    IllegalCopy: "store_before_the_tensor.rs",
    Leak: "missing_commit.rs",
    BlockGone: "block_gone.rs",
    OpaqueAccess: "barrier_as_data.ptx",
    Trap: "failed_assertion.rs",
    Execution: "shuffle_of_absent_lanes.ptx",
    InstructionLimit: "endless_loop.ptx",
    BoxOutside: "box_outside.rs",
    RegisterInFlight: "accumulator_in_flight.ptx",
    MissingRegisterFence: "accumulator_without_fence.ptx",
    DivergentMultiplication: "multiplication_by_one_warp.ptx",
    IllegalMultiplication: "metadata_of_one_element.ptx",
    SwizzleMismatch: "swizzle_of_another_tile.ptx",
    LayoutMismatch: "rows_as_panels.ptx",
    UnwaitedMultiplication: "multiplication_not_waited_for.ptx",
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings")
}

/// Returns the names of the files in the folder.
fn files() -> BTreeSet<String> {
    let entries = fs::read_dir(folder()).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be read").file_name().into_string().expect("in ASCII")).collect()
}

fn run(file: &str) -> (Report, String) {
    run_text(file, read(file))
}

fn read(file: &str) -> String {
    fs::read_to_string(folder().join(file)).expect("the kernel is there")
}

/// Runs the kernel of a file on one cluster, with tensors of 64 rows of 128 columns, and a buffer
/// of 1024 words.
fn run_text(file: &str, source: String) -> (Report, String) {
    let (entry, ptx) = match file.ends_with(".rs") {
        true => common::compile_text(file, &source).pop().expect("it has a kernel"),
        false => ("k".to_owned(), source.clone()),
    };
    let module = Module::load(&ptx).expect("it loads");
    let mut memory = GlobalMemory::default();
    let bytes = [1; 4 * 64 * 128];
    let [src, dst] = [0, 1].map(|_| {
        Matrix::new(&mut memory, DataType::U32, [64, 128], Some(&bytes)).map([32, 32], Swizzle::None)
    });
    let out = memory.allocate(4 * 1024, false).expect("there is room");
    let args = [Arg::Map(src), Arg::Map(dst), Arg::Address(out), Arg::Bytes(1024_u64.to_le_bytes().into())];
    let kernel = module.kernel(&entry).expect("it has the kernel");
    let cluster = kernel.required_cluster().unwrap_or([1; 3]);
    let config = LaunchConfig {
        grid: cluster,
        cluster,
        block: kernel.required_threads().expect("it says how many threads it has"),
        dynamic_shared_bytes: 16 << 10,
        instruction_limit: 1 << 20,
        checks: Checks { global_order: GlobalOrder::Always, ..LaunchConfig::default().checks },
        ..LaunchConfig::default()
    };
    let report = launch(&module, &mut memory, &entry, &config, &args).expect("it starts");
    let sources = module.sources(|_| Some(source.clone()));
    let text = report.findings.render(&sources) + &report.notes.render(&sources);
    (report, text)
}

#[test]
fn every_mistake_reads_as_it_did() {
    let files = files().into_iter().filter(|file| !file.ends_with(".txt"));
    tma_golden::assert_all(files.map(|file| {
        let (_, found) = run(&file);
        assert!(!found.is_empty(), "nothing is found in {file}");
        (folder().join(format!("{file}.txt")), found)
    }));
}

/// Runs the same kernels with a correct index, and without the comments at the end of the PTX,
/// which other compilers do not write.
#[test]
fn indices_within_a_variable_and_lines_that_say_nothing_are_quiet() {
    for (file, wrong, right) in [
        ("index_past_the_end.rs", "own.set(i + 1, i)", "own.set((i + 1) % 32, i)"),
        ("tile_past_its_end.rs", "0..9", "0..8"),
        ("read_before_the_beginning.rs", "i - 1", "(i + 31) % 32"),
    ] {
        let source = read(file).replace(wrong, right);
        assert_ne!(source, read(file), "{file} has no `{wrong}`");
        let (report, text) = run_text(file, source);
        assert!(report.findings.is_empty(), "{file}:\n{text}");

        let (_, ptx) = common::compile_text(file, &read(file)).pop().expect("it has a kernel");
        let end = ptx.find("// shared line ").expect("the PTX says what lines access");
        let (report, text) = run_text("k.ptx", ptx[..end].to_owned());
        let is_bounds = |finding: &ptx_sim::Finding| finding.kind == FindingKind::OutOfBounds;
        assert!(!report.findings.iter().any(is_bounds), "{file}:\n{text}");
    }
}

#[test]
fn every_rule_has_a_case() {
    for (kind, file) in RULES {
        let (report, text) = run(file);
        let first = report.findings.iter().chain(report.notes.iter()).next().map(|finding| finding.kind);
        assert_eq!(first, Some(*kind), "{file}:\n{text}");
    }
}

#[test]
fn no_text_is_left_without_its_kernel() {
    let files = files();
    let texts = files.iter().filter_map(|file| file.strip_suffix(".txt"));
    let alone: Vec<_> = texts.filter(|kernel| !files.contains(*kernel)).collect();
    assert!(alone.is_empty(), "texts of nothing: {alone:?}");
}
