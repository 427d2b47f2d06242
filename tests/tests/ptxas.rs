//! NVIDIA's own assembler on the PTX of all kernels: accepted without a warning, without spills,
//! without local memory. For targets other than `sm_90a` one file in five is compiled and
//! assembled, or all of them with `TMA_TESTS=all`.
#![cfg(feature = "llvm")]

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ptx_probe::print;
use tma_codegen::{Ptx, Target, compile};
use tma_setup::program::PTXAS;
use tma_setup::ptxas;
use tma_tests::is_all;
use tma_tests::parallel::on_all_cores;
use tma_tests::sources::{BOOK, benchmarks, code_blocks, conformance, corpus, examples, is_for};

/// The kernels that use local memory, besides those that print, which pass their arguments in it: a
/// register array must be in memory if its index is unknown.
const LOCAL_MEMORY: [&str; 2] = ["fault_index", "value_arrays"];

/// The mark of a load into several blocks of a cluster.
const MULTICAST: &str = ".multicast::cluster";

/// One file in this many is compiled for the targets other than the default.
const ONE_IN: usize = 5;

/// The assembler that `TMA_PTXAS` names, or the one that the set-up has fetched.
static ASSEMBLER: LazyLock<PathBuf> = LazyLock::new(|| {
    let found = PTXAS.require(&root().join("target/tools"), "cargo xtask setup");
    found.unwrap_or_else(|error| panic!("{error}")).path
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The path and the text of a file with kernels.
type Text = (String, String);

/// Returns the kernels of the examples, the corpus, the benchmarks, the book and the conformance
/// table.
fn texts() -> Vec<Text> {
    let sources = examples().iter().chain(corpus()).chain(benchmarks()).chain(conformance());
    let mut texts: Vec<_> = sources.map(|source| (source.path.to_owned(), source.text.to_owned())).collect();
    for name in BOOK {
        let page = fs::read_to_string(root().join(name)).expect("the page is there");
        let blocks = code_blocks(&page).into_iter().filter(|block| block.info == "rust,kernel");
        let before = texts.len();
        texts.extend(blocks.map(|block| (format!("{name}, line {}", block.line), block.code)));
        assert!(texts.len() > before, "{name} has no kernel");
    }
    texts
}

/// Returns the texts that are compiled for a target.
fn texts_for(target: Target) -> Vec<Text> {
    let all = texts().into_iter().filter(|(_, text)| is_for(text, target.name()));
    let every = target == Target::default() || is_all();
    all.step_by(if every { 1 } else { ONE_IN }).collect()
}

fn compiled((path, text): &Text, target: Target) -> Vec<Ptx> {
    match compile(path, text, target) {
        Ok(compiled) => compiled.kernels,
        Err(failure) => panic!("{path}, for {target}:\n{failure}"),
    }
}

/// Returns the text that the runtime loads on a GPU.
fn loaded(ptx: &Ptx) -> Cow<'_, str> {
    if !print::is_needed(&ptx.text) {
        return Cow::Borrowed(&ptx.text);
    }
    let printing = print::without_calls(&ptx.text, 1 << 32, 1 << 19);
    printing.unwrap_or_else(|why| panic!("{}: {why}", ptx.name)).ptx.into()
}

/// Returns the assembler's complaints about a kernel.
fn problem(ptx: &Ptx, target: Target) -> Option<String> {
    let loaded = loaded(ptx);
    let report = match ptxas::assemble(&ASSEMBLER, target.name(), &loaded) {
        Ok(report) => report,
        Err(error) => return Some(format!("{} for {target}: {error}", ptx.name)),
    };
    // For these targets ptxas advises against multicast loads, and for the second it compiles them
    // to calls.
    let slow_multicast = matches!(target, Target::Sm90 | Target::Sm120a) && ptx.text.contains(MULTICAST);
    let may_use_local_memory = LOCAL_MEMORY.contains(&ptx.name.as_str())
        || ptx.text.contains("vprintf")
        || (slow_multicast && target == Target::Sm120a);
    let is_advice = |line: &String| {
        slow_multicast && line.to_ascii_lowercase().contains("advisory") && line.contains(MULTICAST)
    };
    let is_right = report.kernels == 1
        && report.spills == [0, 0]
        && (report.stack == 0 || may_use_local_memory)
        && report.warnings.iter().all(is_advice);
    (!is_right).then(|| format!("{} for {target}: {report:#?}", ptx.name))
}

fn accepts(target: Target) {
    let problems = on_all_cores(texts_for(target), |text| {
        let kernels = compiled(&text, target);
        for ptx in &kernels {
            assert!(ptx.text.contains(&format!(".target {target}\n")), "{} for {target}", ptx.name);
            assert!(ptx.text.contains(&format!(".entry {}(", ptx.entry)), "{} for {target}", ptx.name);
        }
        kernels.iter().filter_map(|ptx| problem(ptx, target)).collect::<Vec<_>>()
    });
    let problems = problems.concat();
    assert!(problems.is_empty(), "{} kernels:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn accepts_all_for_sm_90() {
    accepts(Target::Sm90);
}

#[test]
fn accepts_all_for_sm_90a() {
    accepts(Target::Sm90a);
}

#[test]
fn accepts_all_for_sm_100a() {
    accepts(Target::Sm100a);
}

#[test]
fn accepts_all_for_sm_120a() {
    accepts(Target::Sm120a);
}

/// The judgement can fail: a spill, a stack frame and a warning are each detected.
#[test]
fn sees_what_is_wrong() {
    let header = ".version 8.0\n.target sm_90a\n.address_size 64\n";
    let local = ".visible .entry k(.param .u64 p) {\n.local .b32 a[64];\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n\
                 ld.param.u64 %d1, [p];\ncvt.u32.u64 %r1, %d1;\nmov.u32 %r2, a;\nadd.u32 %r2, %r2, %r1;\n\
                 st.local.u32 [%r2], %r1;\nld.local.u32 %r1, [%r2+4];\nst.global.u32 [%d1], %r1;\nret;\n}\n";
    let ptx = |text: &str| Ptx { name: "k".into(), entry: "k".into(), text: format!("{header}{text}") };
    let problem_of = |text: &str| problem(&ptx(text), Target::Sm90a);
    assert_eq!(problem_of(".visible .entry k() {\nret;\n}\n"), None);
    assert!(problem_of(local).is_some_and(|problem| problem.contains("stack: 256")));
    assert!(problem_of(".visible .entry k() {\nrte;\n}\n").is_some());
    // An accumulator is read while tensor cores still write it: ptxas only notes that it adds a
    // wait.
    let multiplied = |wait: &str| {
        problem_of(&format!(
            ".visible .entry k(.param .u64 p) {{\n.reg .f32 %f<5>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [p];\n\
             mov.b64 %d2, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 \
             {{%f1, %f2, %f3, %f4}}, %d2, %d2, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n{wait}\n\
             st.global.f32 [%d1], %f1;\nret;\n}}\n"
        ))
    };
    assert_eq!(multiplied("wgmma.wait_group.sync.aligned 0;"), None);
    assert!(multiplied("").is_some_and(|problem| problem.contains("(C7517)")));
}
