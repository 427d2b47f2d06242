//! Runs NVIDIA's own assembler on all forms of `wgmma`, and of `mma.sync` with a dense A. It must
//! accept them without a note about changes, without spills and without local memory.
//!
//! `TMA_FORMS=all` tests every choice of immediates at every width. Without it, every choice is
//! tested at the smallest width, and one of them, in rotation, at the others.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tma_conformance::{double, forms, warp};
use tma_model::mma::DoubleForm;
use tma_setup::program::PTXAS;
use tma_setup::ptxas;

/// The assembler that `TMA_PTXAS` names, or the one that the setup has fetched.
static ASSEMBLER: LazyLock<PathBuf> = LazyLock::new(|| {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools");
    let found = PTXAS.require(&tools, "cargo xtask setup");
    found.unwrap_or_else(|error| panic!("{error}")).path
});

/// Returns the assembler's objections to a module.
fn problem(name: &str, text: &str) -> Option<String> {
    let all = text.matches(".entry").count();
    match ptxas::assemble(&ASSEMBLER, "sm_90a", text) {
        Ok(report) if report.is_clean() && report.stack == 0 && report.kernels == all => None,
        Ok(report) => Some(format!("{name}, of {all} kernels: {report:#?}")),
        Err(error) => Some(format!("{name}: {error}")),
    }
}

/// Assembles the lines of the list that are sparse or dense, each as a module.
fn assembles(sparse: bool) {
    let with_all = env::var_os("TMA_FORMS").is_some_and(|value| value == "all");
    let lines = forms::listed().into_iter().enumerate();
    let some: Vec<_> = lines.filter(|(_, forms)| forms[0].contains(".sp.") == sparse).collect();
    assert!(some.len() >= 20, "{}", some.len());
    let problems: Vec<_> = some
        .iter()
        .filter_map(|(number, forms)| problem(&format!("wgmma{number}"), &forms::module(forms, with_all)))
        .collect();
    assert!(problems.is_empty(), "{} modules:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_dense_form_is_assembled_as_it_is() {
    assembles(false);
}

#[test]
fn every_sparse_form_is_assembled_as_it_is() {
    assembles(true);
}

#[test]
fn every_product_of_a_warp_is_assembled_as_it_is() {
    let of_doubles = DoubleForm::ALL
        .map(|form| problem(&format!("{form}.f64"), &double::text(form)))
        .into_iter()
        .flatten();
    let problems: Vec<_> = warp::all()
        .into_iter()
        .filter_map(|warp| problem(&warp.to_string(), &warp.text()))
        .chain(of_doubles)
        .collect();
    assert!(problems.is_empty(), "{} kernels:\n{}", problems.len(), problems.join("\n"));
}

/// The judgement can fail: it detects a mistake, a stack frame, and serialisation.
#[test]
fn detects_wrong_instructions() {
    let lines = forms::listed();
    let good = forms::module(&lines[0], false);
    let without = |step: &str| problem("wrong", &good.replace(step, ""));
    let fence = without("wgmma.fence.sync.aligned;\n").unwrap_or_default();
    assert!(fence.contains("(C7519)"), "{fence}");
    let wait = without("wgmma.wait_group.sync.aligned 0;\n").unwrap_or_default();
    assert!(wait.contains("(C75"), "{wait}");
    let wrong = problem("wrong", &good.replace("f32.f16.f16", "f32.f16.bf16")).unwrap_or_default();
    assert!(wrong.contains("error"), "{wrong}");
    let local = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.local .b32 a[64];\n\
                 .reg .b32 %r<3>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [p];\ncvt.u32.u64 %r1, %d1;\nmov.u32 %r2, a;\n\
                 add.u32 %r2, %r2, %r1;\nst.local.u32 [%r2], %r1;\nld.local.u32 %r1, [%r2+4];\nst.global.u32 [%d1], %r1;\n\
                 ret;\n}\n";
    let stack = problem("wrong", local).unwrap_or_default();
    assert!(stack.contains("stack: 256"), "{stack}");
}
