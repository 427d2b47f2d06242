//! `setmaxnreg`: registers that one warpgroup releases and another one requests.

use ptx_sim::{Checks, FindingKind, GlobalMemory, LaunchConfig, Module, Report, launch};

/// Runs a kernel of two warpgroups, each with a body of its own. `directive` states the number of
/// registers at the start.
fn run(directive: &str, [first, second]: [&str; 2], seed: u64) -> (Report, String) {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{directive}\n{{\n\
         .reg .pred %p<4>; .reg .b32 %r<4>;\nmov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 128; setp.ge.u32 %p2, %r1, 32;\n\
         @%p1 bra second;\n{first}\nbra.uni end;\nsecond:\n{second}\nend: ret;\n}}\n"
    );
    let module = Module::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let config = LaunchConfig {
        grid: [1; 3],
        block: [256, 1, 1],
        cluster: [1; 3],
        seed,
        checks: Checks::ALL,
        ..LaunchConfig::default()
    };
    let report = launch(&module, &mut GlobalMemory::default(), "k", &config, &[]).expect("it starts");
    let found = report.findings.render(&module.sources(|_| None));
    (report, found)
}

const KNOWN: &str = ".maxnreg 128";
const DEC: &str = "setmaxnreg.dec.sync.aligned.u32 24;";
const INC: &str = "setmaxnreg.inc.sync.aligned.u32 232;";

#[track_caller]
fn returns(directive: &str, bodies: [&str; 2]) {
    for seed in 0..16 {
        let (report, found) = run(directive, bodies, seed);
        assert!(report.findings.is_empty(), "seed {seed}:\n{found}");
    }
}

#[track_caller]
fn lacks(directive: &str, bodies: [&str; 2], kind: FindingKind) -> String {
    let mut text = String::new();
    for seed in 0..16 {
        let (report, found) = run(directive, bodies, seed);
        assert!(report.findings.iter().any(|finding| finding.kind == kind), "seed {seed}:\n{found}");
        text = found;
    }
    text
}

#[test]
fn released_registers_are_available_to_other_warpgroups() {
    for known in [KNOWN, ".reqntid 256\n.minnctapersm 2"] {
        returns(known, [DEC, INC]);
        let text = lacks(known, ["", INC], FindingKind::Deadlock);
        assert!(text.contains("for 232 registers each, while the block has 0 free"), "{text}");
        lacks(known, [DEC, "setmaxnreg.inc.sync.aligned.u32 240;"], FindingKind::Deadlock);
    }
    // 65536 / 256 registers for each thread, which is more than a thread may have: none need to be
    // released.
    returns(".reqntid 256\n.minnctapersm 1", ["", "setmaxnreg.inc.sync.aligned.u32 248;"]);
}

#[test]
fn nothing_is_known_without_a_number() {
    returns(".reqntid 256", ["", INC]);
}

#[test]
fn all_warps_of_a_warpgroup_change_their_registers() {
    let some = format!("@%p2 bra end; {DEC}");
    let text = lacks(KNOWN, [&some, ""], FindingKind::DivergentMultiplication);
    assert!(text.contains("`setmaxnreg` that warp"), "{text}");
}

#[test]
fn setmaxnreg_requires_the_right_direction() {
    let text = lacks(KNOWN, ["setmaxnreg.dec.sync.aligned.u32 160;", ""], FindingKind::Execution);
    assert!(text.contains("more than the 128 that the warp has"), "{text}");
    lacks(KNOWN, ["setmaxnreg.inc.sync.aligned.u32 40;", ""], FindingKind::Execution);
}
