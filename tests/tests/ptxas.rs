//! NVIDIA's own assembler on all PTX: accepted without a warning, without spills, without local
//! memory.
#![cfg(feature = "llvm")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tma_codegen::{Ptx, Target, compile};
use tma_tests::sources::{BOOK, benchmarks, code_blocks, conformance, corpus, examples, is_for};

/// The kernels that have local memory, but for those that print and hand over there what they
/// print: a register array has to lie in memory if its index is not known.
const LOCAL_MEMORY: [&str; 2] = ["fault_index", "value_arrays"];

/// What a load into several blocks of a cluster has.
const MULTICAST: &str = ".multicast::cluster";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The assembler that `TMA_PTXAS` names, or the one that the set-up has unpacked.
fn ptxas() -> PathBuf {
    let path = env::var_os("TMA_PTXAS").map_or_else(|| root().join("target/tools/ptxas"), PathBuf::from);
    assert!(path.is_file(), "there is no ptxas at {}: run `cargo xtask setup`", path.display());
    path
}

fn compiled(path: &str, text: &str, target: Target) -> Vec<Ptx> {
    match compile(path, text, target) {
        Ok(compiled) => compiled.kernels,
        Err(failure) => panic!("{path}, for {target}:\n{failure}"),
    }
}

/// Every kernel of the examples, the corpus, the benchmarks, the book and the conformance table.
fn kernels(target: Target) -> Vec<Ptx> {
    let sources = examples().iter().chain(corpus()).chain(benchmarks());
    let sources = sources.filter(|source| source.is_for(target.name()));
    let mut kernels: Vec<_> = sources.flat_map(|source| compiled(source.path, source.text, target)).collect();
    for name in BOOK {
        let page = fs::read_to_string(root().join(name)).expect("the page is there");
        let blocks = code_blocks(&page).into_iter().filter(|block| block.info == "rust,kernel");
        let blocks: Vec<_> = blocks.collect();
        assert!(!blocks.is_empty(), "{name} has no kernel");
        for block in blocks.iter().filter(|block| is_for(&block.code, target.name())) {
            kernels.extend(compiled(&format!("{name}, line {}", block.line), &block.code, target));
        }
    }
    // Of the many instances that differ but in types, those of one target are enough.
    if target == Target::default() {
        kernels.extend(conformance().iter().flat_map(|source| compiled(source.path, source.text, target)));
    }
    kernels
}

/// What the assembler has against a kernel.
fn judge(ptxas: &Path, file: &Path, ptx: &Ptx, target: Target) -> Option<String> {
    fs::write(file, &ptx.text).expect("the folder for temporary files can be written to");
    let mut command = Command::new(ptxas);
    command.args(["-arch", target.name(), "-v", "-o", "/dev/null"]).arg(file);
    let output = command.output().expect("ptxas can be started");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();

    // For these targets ptxas advises against multicast loads, and for the second it makes a call
    // of each.
    let slow_multicast = matches!(target, Target::Sm90 | Target::Sm120a) && ptx.text.contains(MULTICAST);
    let may_use_local_memory = LOCAL_MEMORY.contains(&ptx.name.as_str())
        || ptx.text.contains("vprintf")
        || (slow_multicast && target == Target::Sm120a);
    let bad_line = |line: &&str| {
        let line = line.to_ascii_lowercase();
        let spills =
            line.contains("bytes spill") && !line.contains("0 bytes spill stores, 0 bytes spill loads");
        let local =
            line.contains("bytes stack frame") && !line.trim_start().starts_with("0 bytes stack frame");
        let advice = slow_multicast && line.contains("advisory") && line.contains(MULTICAST);
        // Notes on what it changes in multiplications, and so makes slow: no warnings, though
        // nobody would want them. C7510 is one: "Potential Performance Loss".
        let note = line.contains("(c7") || line.contains("performance loss");
        (line.contains("warning") && !advice)
            || line.contains("error")
            || note
            || spills
            || (local && !may_use_local_memory)
    };
    let bad: Vec<_> = said.lines().filter(bad_line).collect();
    let reported = said.contains("bytes stack frame");
    if output.status.success() && bad.is_empty() && reported {
        return None;
    }
    Some(format!(
        "{} for {target}: {}\n{}",
        ptx.name,
        output.status,
        if bad.is_empty() { said } else { bad.join("\n") }
    ))
}

fn accepts(target: Target) {
    let ptxas = ptxas();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}.ptx"));
    let kernels = kernels(target);
    for ptx in &kernels {
        assert!(ptx.text.contains(&format!(".target {target}\n")), "{} for {target}", ptx.name);
        assert!(ptx.text.contains(&format!(".entry {}(", ptx.entry)), "{} for {target}", ptx.name);
    }
    let problems: Vec<_> = kernels.iter().filter_map(|ptx| judge(&ptxas, &file, ptx, target)).collect();
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

/// That the judgement can fail: a spill, a stack frame and a warning are each seen.
#[test]
fn sees_what_is_wrong() {
    let header = ".version 8.0\n.target sm_90a\n.address_size 64\n";
    let local = ".visible .entry k(.param .u64 p) {\n.local .b32 a[64];\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n\
                 ld.param.u64 %d1, [p];\ncvt.u32.u64 %r1, %d1;\nmov.u32 %r2, a;\nadd.u32 %r2, %r2, %r1;\n\
                 st.local.u32 [%r2], %r1;\nld.local.u32 %r1, [%r2+4];\nst.global.u32 [%d1], %r1;\nret;\n}\n";
    let ptx = |text: &str| Ptx { name: "k".into(), entry: "k".into(), text: format!("{header}{text}") };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.ptx");
    let judged = |text: &str| judge(&ptxas(), &file, &ptx(text), Target::Sm90a);
    assert_eq!(judged(".visible .entry k() {\nret;\n}\n"), None);
    assert!(judged(local).is_some_and(|problem| problem.contains("stack frame")));
    assert!(judged(".visible .entry k() {\nrte;\n}\n").is_some());
    // What tensor cores still write is read: ptxas says in passing that it waits before.
    let multiplied = |wait: &str| {
        judged(&format!(
            ".visible .entry k(.param .u64 p) {{\n.reg .f32 %f<5>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [p];\n\
             mov.b64 %d2, 0;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 \
             {{%f1, %f2, %f3, %f4}}, %d2, %d2, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n{wait}\n\
             st.global.f32 [%d1], %f1;\nret;\n}}\n"
        ))
    };
    assert_eq!(multiplied("wgmma.wait_group.sync.aligned 0;"), None);
    assert!(multiplied("").is_some_and(|problem| problem.contains("(C7517)")));
}
