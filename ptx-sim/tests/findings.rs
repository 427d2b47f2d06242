//! The most usual mistakes, each with all that a run says of it: a kernel in `findings`, and beside
//! it the text.
//!
//! `TMA_FINDINGS=accept cargo test -p ptx-sim --test findings` writes the texts anew.

mod common;

use std::fs;
use std::path::Path;

use common::Matrix;
use ptx_sim::tensor_map::{DataType, Swizzle};
use ptx_sim::{Arg, FindingKind, GlobalMemory, LaunchConfig, Module, Report, launch};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings")
}

/// Runs the kernel of a file on one block, with tensors of 64 rows of 128 columns, and a buffer of
/// 1024 words.
fn run(file: &str) -> (Report, String) {
    let source = fs::read_to_string(folder().join(file)).expect("the kernel is there");
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
    let config = LaunchConfig {
        block: kernel.required_threads().expect("it says how many threads it has"),
        dynamic_shared_bytes: 16 << 10,
        instruction_limit: 1 << 20,
        ..LaunchConfig::default()
    };
    let report = launch(&module, &mut memory, &entry, &config, &args).expect("it starts");
    let sources = module.sources(|_| Some(source.clone()));
    let text = report.findings.render(&sources) + &report.notes.render(&sources);
    (report, text)
}

/// That the first finding of the kernel is of this rule, there are so many in all, and the text is
/// as it was.
#[track_caller]
fn expect(file: &str, kind: FindingKind, count: usize) {
    let (report, text) = run(file);
    let found: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(found.first(), Some(&kind), "{text}");
    assert_eq!(found.len(), count, "{text}");
    compare(file, &text);
}

#[track_caller]
fn compare(file: &str, text: &str) {
    let path = folder().join(format!("{file}.txt"));
    if std::env::var_os("TMA_FINDINGS").is_some_and(|value| value == "accept") {
        fs::write(&path, text).expect("the text can be written");
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == wanted, "{} has\n{wanted}\nbut found was\n{text}", path.display());
}

#[test]
fn a_missing_wait() {
    expect("missing_wait.rs", FindingKind::ReadBeforeWait, 4);
}

#[test]
fn a_missing_wait_in_ptx() {
    expect("missing_wait.ptx", FindingKind::ReadBeforeWait, 2);
    let (_, text) = run("missing_wait.ptx");
    assert!(!text.contains(".wait(") && text.contains("`mbarrier.try_wait`"), "{text}");
}

#[test]
fn a_missing_fence() {
    expect("missing_fence.rs", FindingKind::MissingProxyFence, 1);
}

#[test]
fn wrong_bytes() {
    expect("wrong_bytes.rs", FindingKind::TransactionBytes, 1);
}

#[test]
fn a_missing_commit() {
    expect("missing_commit.rs", FindingKind::Leak, 1);
}

#[test]
fn a_deadlock() {
    expect("deadlock.rs", FindingKind::Deadlock, 1);
}

#[test]
fn a_race() {
    expect("race.rs", FindingKind::Race, 2);
}

#[test]
fn an_access_out_of_bounds() {
    expect("out_of_bounds.ptx", FindingKind::OutOfBounds, 1);
}

#[test]
fn uninitialised_memory() {
    expect("uninitialised.rs", FindingKind::Uninitialised, 1);
}

#[test]
fn a_refill_that_overruns_readers() {
    expect("overrun_refill.rs", FindingKind::RefillBeforeRelease, 2);
}

#[test]
fn a_divergent_barrier() {
    expect("divergence.rs", FindingKind::DivergentBarrier, 1);
}

#[test]
fn a_box_outside_of_the_tensor_is_a_note() {
    let (report, text) = run("box_outside.rs");
    assert!(report.findings.is_empty(), "{text}");
    assert_eq!(report.notes.len(), 1, "{text}");
    compare("box_outside.rs", &text);
}
