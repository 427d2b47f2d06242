//! Internal errors, provoked by hand: they must be reported, and never pass for a clean end.

use std::sync::Arc;

use super::*;
use crate::exec::splits::Splits;
use crate::isa::Pc;
use crate::machine::{Checks, GlobalMemory};
use crate::module::Module;

const PTX: &str =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n  bar.sync 0;\n  ret;\n}\n";

/// Returns the findings of a cluster of 32 threads that `run` brings to its end.
fn findings(run: impl FnOnce(&mut Cluster<'_>) -> Result<(), Stop>) -> Vec<Finding> {
    let module = Module::load(PTX).expect("it loads");
    let kernel = module.kernel("k").expect("it has the kernel");
    let context = Context {
        program: kernel.program,
        constants: vec![[0; 32]; kernel.program.constants.len()],
        const_ranges: Vec::new(),
        params: Vec::new(),
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: [1; 3],
        dynamic_shared_bytes: 0,
        profile: false,
    };
    let machine = MachineConfig {
        thread_registers: None,
        blocks: vec![[0; 3]],
        threads: 32,
        shared: 0..0,
        seed: 0,
        checks: Checks::ALL,
        global: Arc::new(GlobalMemory::default()),
        copies: true,
        used_immediately: None,
        cluster: 0,
        clusters: 1,
        ranks: 1,
        grid: None,
        names: Arc::new([]),
        lines: module.lines(),
    };
    let mut cluster = Cluster::new(&context, machine, 1000, None);
    let end = run(&mut cluster);
    let outcome = cluster.outcome(end);
    assert!(!outcome.stopped || !outcome.findings.is_empty());
    outcome.findings.iter().cloned().collect()
}

fn to_its_end(cluster: &mut Cluster<'_>) -> Result<(), Stop> {
    while cluster.run_slice()? != ClusterState::Ended {}
    Ok(())
}

/// Expects a single finding, an internal error with this message.
#[track_caller]
fn expect_internal(findings: &[Finding], wanted: &str) {
    let [finding] = findings else { panic!("{findings:#?}") };
    assert_eq!(finding.kind, FindingKind::Internal);
    assert!(finding.message.contains(wanted), "{finding:#?}");
}

#[test]
fn a_cluster_that_runs_is_at_its_end() {
    assert_eq!(findings(to_its_end), []);
}

#[test]
fn a_cluster_with_threads_left_is_not() {
    let found = findings(|_| Ok(()));
    expect_internal(&found, "a cluster has ended before all of its threads");
}

#[test]
fn lanes_that_are_lost_are_missed() {
    let found = findings(|cluster| {
        cluster.warps[0].splits = Splits::new(Pc(0), 0);
        let _ = cluster.warps[0].splits.join(Pc(0));
        to_its_end(cluster)
    });
    expect_internal(&found, "a cluster has ended before all of its threads");
}

#[test]
fn a_warp_beyond_its_code_is_an_internal_error_with_a_line() {
    let found = findings(|cluster| {
        cluster.warps[0].splits = Splits::new(Pc(1000), u32::MAX);
        to_its_end(cluster)
    });
    expect_internal(&found, "a warp has run past the end of its code");
    assert_eq!(found[0].parties[0].site.ptx_line, 6);
}
