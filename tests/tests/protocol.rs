//! The protocol checker against the simulator. Kernels that it calls wrong go wrong, with the
//! launch that it names; kernels that it calls right run without a finding; and it refuses most of
//! the mutants that the simulator finds wrong.
//!
//! The results for the mutants are in `lab/protocol-mutants.md`, which explains how to run all of
//! them. By default every [`NTH`] is judged.
#![cfg(feature = "llvm")]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ptx_sim::{FindingKind, Findings};
use tma_codegen::check::{CheckedKernel, check};
use tma_codegen::diag::{Code, Counterexample, Diagnostic, LaunchInput, Sink};
use tma_codegen::ir::{Axis, ParamKind, Scalar};
use tma_codegen::protocol::{Budget, Verdict, judge};
use tma_tests::mutation::ir::mutants;
use tma_tests::mutation::judgement::{MutantJudgement, judge_all, lines, lines_of};
use tma_tests::mutation::judgement_table::{Tally, accepted_and_wrong, table_of_kernels, tables};
use tma_tests::mutation::subjects::{first_instances, library_subjects, subjects};
use tma_tests::page;
use tma_tests::replay::Replay;
use tma_tests::sources;

/// The page with the results for mutants.
const PAGE: &str = "lab/protocol-mutants.md";
/// One in this many mutants is judged by default.
const NTH: usize = 60;
/// The number of seeds of a mutant.
const SEEDS: u64 = 4;
/// The number of seeds under which the simulator must find the error in wrong kernels, and finds
/// nothing in right ones.
const REPLAYS: u64 = 8;

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn kernels(path: &Path) -> anyhow::Result<Vec<CheckedKernel>> {
    let source = fs::read_to_string(path)?;
    let accepted =
        tma_codegen::check("kernels.rs", &source).map_err(|failure| anyhow::anyhow!("{failure}"))?;
    Ok(accepted.kernels.into_iter().map(|checked| checked.kernel).collect())
}

/// Returns the kernels of all files in a folder.
fn kernels_below(path: &str) -> anyhow::Result<Vec<CheckedKernel>> {
    let mut paths: Vec<_> = fs::read_dir(folder(path))?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let all: anyhow::Result<Vec<_>> = paths.iter().map(|path| kernels(path)).collect();
    Ok(all?.into_iter().flatten().collect())
}

/// Returns the findings of the simulator under some seeds: the violated rules, and their lines.
fn found_in(replay: &Replay, seeds: Range<u64>) -> anyhow::Result<Vec<String>> {
    let mut all = vec![];
    for seed in seeds {
        let found = replay.run(seed)?;
        let kinds: Vec<_> = found.iter().map(|finding| (finding.kind, lines_of(finding))).collect();
        if !kinds.is_empty() {
            all.push(format!("seed {seed}: {kinds:?}"));
        }
    }
    Ok(all)
}

/// Whether a finding of the simulator may be due to the violation that the compiler names.
fn is_same(code: Code, kind: FindingKind) -> bool {
    code.rule().zip(kind.rule()).is_some_and(|(broken, found)| broken.may_show_as(found))
}

/// Whether the simulator finds the error: the same rule, at one of the lines.
fn finds(findings: &Findings, diagnostic: &Diagnostic) -> bool {
    let named = lines(diagnostic);
    findings.iter().any(|finding| {
        is_same(diagnostic.code(), finding.kind) && lines_of(finding).iter().any(|line| named.contains(line))
    })
}

/// Checks that a launch with the numbers of the counterexample goes wrong as the diagnostic says.
fn replays(kernel: CheckedKernel, diagnostic: &Diagnostic) -> Result<(), String> {
    let name = kernel.kernel().path();
    let example = diagnostic.counterexample().cloned().unwrap_or_default();
    let replay = Replay::new("kernels.rs", kernel, &example).map_err(|error| format!("{name}: {error}"))?;
    let mut seen = String::new();
    for seed in 0..REPLAYS {
        let found = replay.run(seed).map_err(|error| format!("{name}: {error}"))?;
        if finds(&found, diagnostic) {
            return Ok(());
        }
        for finding in &found {
            seen += &format!("\n    seed {seed}: {} in lines {:?}", finding.kind, lines_of(finding));
        }
    }
    let named = lines(diagnostic);
    Err(format!(
        "{name}: not found is {} in lines {named:?}, but{seen}\n{}",
        diagnostic.code(),
        diagnostic.text()
    ))
}

/// The number of seeds that must show that a kernel is wrong which the checker does not decide.
const SEEDS_OF_WRONG: u64 = 64;

/// Returns a launch of several blocks, with nonzero elements in memory.
fn some_launch() -> Counterexample {
    let numbers = [("blocks", 1), ("tiles", 4), ("turns", 2), ("n", 4)];
    let params = numbers.map(|(name, number)| (LaunchInput::Param(name.to_owned()), number));
    let places = [(LaunchInput::GridDim(Axis::X), 3), (LaunchInput::Element("counts".to_owned(), 0), 1)];
    Counterexample { numbers: params.into_iter().chain(places).collect(), cluster: [1; 3] }
}

/// The kernels that must never be proved: the simulator shows that each of them is wrong.
#[test]
fn every_wrong_kernel_goes_wrong() -> anyhow::Result<()> {
    let mut right = vec![];
    let files = [
        "aligned",
        "counters",
        "global",
        "elements",
        "grids",
        "mbarriers",
        "memory",
        "named",
        "stores",
        "warps",
    ];
    for file in files {
        for kernel in kernels(&folder(&format!("codegen/back/tests/protocol/wrong_kernels/{file}.rs")))? {
            let name = kernel.kernel().path();
            let example = match judge(&kernel, Budget::MACRO).verdict {
                Verdict::Broken(diagnostic) => {
                    diagnostic.counterexample().cloned().unwrap_or_else(some_launch)
                }
                _ => some_launch(),
            };
            let replay = match Replay::new("kernels.rs", kernel, &example) {
                Ok(replay) => replay.with_global_order(),
                Err(error) => {
                    right.push(format!("{file}: {name}: {error}"));
                    continue;
                }
            };
            let is_wrong = |seed| replay.run(seed).map_or(true, |found| found.iter().next().is_some());
            if !(0..SEEDS_OF_WRONG).any(is_wrong) {
                right.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(right.is_empty(), "the simulator finds nothing in\n{}", right.join("\n"));
    Ok(())
}

#[test]
fn every_counterexample_goes_wrong_as_it_says() -> anyhow::Result<()> {
    let (mut wrong, mut all) = (vec![], 0);
    for file in ["protocol_waits", "protocol_memory", "protocol_pipelines", "protocol_reasons"] {
        let path = folder(&format!("codegen/back/tests/diagnostics/{file}.rs"));
        for kernel in kernels(&path)? {
            let Verdict::Broken(diagnostic) = judge(&kernel, Budget::MACRO).verdict else {
                wrong.push(format!("{file}: {} is not refused", kernel.kernel().name));
                continue;
            };
            all += 1;
            wrong.extend(replays(kernel, &diagnostic).err());
        }
    }
    assert!(wrong.is_empty(), "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all > 30, "{all} kernels");
    Ok(())
}

/// Some mutants, at most one of each kernel. Tensors and slices are those of a replay instead of
/// those of the kernel's test, so a few mutants go wrong earlier, or not at all.
#[test]
fn counterexamples_of_mutants_go_wrong_as_they_say() {
    let (mut wrong, mut all) = (vec![], 0);
    for source in sources::examples().iter().chain(sources::corpus()) {
        let Ok(accepted) = tma_codegen::check("kernels.rs", source.text) else { continue };
        for checked in accepted.kernels.iter().step_by(4) {
            // The same mutant in each run, whichever other kernels there are.
            let skipped = checked.kernel.kernel().path().bytes().map(usize::from).sum::<usize>() % 7;
            let mut refused = mutants(checked.kernel.kernel()).skip(skipped).filter_map(|mutant| {
                let kernel = check(mutant.kernel, &mut Sink::default()).ok()?;
                match judge(&kernel, Budget::MACRO).verdict {
                    Verdict::Broken(diagnostic) => Some((*kernel, diagnostic)),
                    Verdict::Proved | Verdict::CheckedUpTo(_) | Verdict::NotDecided(_) => None,
                }
            });
            // Some kernels take arguments that a replay cannot make.
            let runs = |kernel: &CheckedKernel| {
                let replay = Replay::new("kernels.rs", kernel.clone(), &Counterexample::default());
                replay.is_ok_and(|replay| replay.run(0).is_ok())
            };
            if let Some((kernel, diagnostic)) = refused.next()
                && runs(&kernel)
            {
                all += 1;
                wrong.extend(replays(kernel, &diagnostic).err());
            }
        }
    }
    println!("{} of {all} are not replayed:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all > 40, "{all} mutants");
    assert!(wrong.len() * 10 <= all, "{} of {all} are not replayed:\n{}", wrong.len(), wrong.join("\n"));
}

/// The unusual kernels that are right: each with several iteration counts.
#[test]
fn what_is_right_runs_quiet() -> anyhow::Result<()> {
    let (mut wrong, mut all) = (vec![], 0);
    let by_orders = kernels_below("codegen/back/tests/protocol/right_by_orders")?;
    for kernel in kernels_below("codegen/back/tests/protocol/right")?.into_iter().chain(by_orders) {
        all += 1;
        let name = kernel.kernel().path();
        for number in [0, 1, 2, 5] {
            let replay = Replay::new("kernels.rs", kernel.clone(), &all_are(&kernel, number))?;
            // The kernel's assumptions have to hold.
            if number == 0 && ["at_least_one", "count_from_the_launch"].contains(&name.as_str()) {
                continue;
            }
            let found = found_in(&replay, 0..2)?;
            wrong.extend(found.iter().map(|found| format!("{name} with {number}, {found}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all >= 145, "{all} kernels");
    Ok(())
}

/// The right kernels that communicate through global memory: in grids of two and of four blocks,
/// one block after the other if the runtime would launch them so, and all at once.
#[test]
fn what_blocks_tell_each_other_runs_quiet() -> anyhow::Result<()> {
    let (mut wrong, mut all) = (vec![], 0);
    for kernel in kernels_below("codegen/back/tests/protocol/right_between_blocks")? {
        all += 1;
        let name = kernel.kernel().path();
        for (blocks, number) in [(2, 1), (4, 3)] {
            let mut example = all_are(&kernel, number);
            example.numbers.push((LaunchInput::GridDim(Axis::X), blocks));
            let replay = Replay::new("kernels.rs", kernel.clone(), &example)?.with_global_order();
            let found = found_in(&replay, 0..REPLAYS)?;
            wrong.extend(found.iter().map(|found| format!("{name}, {blocks} blocks, {found}")));
            let found = found_in(&replay.with_all_blocks_at_once(), 0..REPLAYS)?;
            wrong.extend(found.iter().map(|found| format!("{name}, {blocks} blocks at once, {found}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all >= 75, "{all} kernels");
    Ok(())
}

/// Returns a launch in which every scalar has this value.
fn all_are(kernel: &CheckedKernel, number: i128) -> Counterexample {
    let scalar = |param: &tma_codegen::ir::Param| match param.kind() {
        Some(ParamKind::Scalar(Scalar::Bool)) => Some((LaunchInput::Param(param.name.clone()), number % 2)),
        Some(ParamKind::Scalar(_)) => Some((LaunchInput::Param(param.name.clone()), number)),
        _ => None,
    };
    let numbers = kernel.kernel().params.iter().filter_map(scalar).collect();
    Counterexample { numbers, cluster: [2, 1, 1] }
}

#[test]
fn mutants_that_are_wrong_are_refused() -> anyhow::Result<()> {
    // `all`, or a number: one in this many.
    let wanted = std::env::var("TMA_MUTATIONS").ok();
    let nth = match wanted.as_deref() {
        Some("all") => 1,
        Some(number) => number.parse()?,
        None => NTH,
    };
    let judged = judge_all(&first_instances(&subjects()?, 1), nth, SEEDS)?;
    expect_none_accepted(&judged);
    if wanted.is_some() {
        let library = judge_all(&first_instances(&library_subjects()?, 1), nth, SEEDS)?;
        expect_none_accepted(&library);
        page::ends_with(PAGE, &(tables(&judged, nth) + &table_of_kernels(&library)))?;
        let is_shared = |judged: &&MutantJudgement| !judged.is_of_global_memory();
        let tree = Tally::of(judged.iter().filter(is_shared));
        let tally = Tally::of(judged.iter().chain(&library).filter(is_shared));
        assert!(tree.rejected * 10 >= tree.wrong * 9, "{} of {} are refused", tree.rejected, tree.wrong);
        // The library's kernels branch on tickets, on loaded ends of groups, and on whether a work
        // unit is half of a tile, which the checker does not follow. Attention exceeds the macro's
        // budget.
        assert!(tally.rejected * 100 >= tally.wrong * 80, "{} of {}", tally.rejected, tally.wrong);
        assert!(tally.right_line * 100 >= tally.rejected * 95, "{} of {}", tally.right_line, tally.rejected);
    }
    Ok(())
}

/// Checks that no mutant is both accepted and wrong.
fn expect_none_accepted(judged: &[MutantJudgement]) {
    let wrong = accepted_and_wrong(judged);
    assert!(wrong.is_empty(), "accepted, and found wrong:\n{}", wrong.join("\n"));
}
