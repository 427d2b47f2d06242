//! An oracle for programs of a few threads: the axioms of PTX's memory model, by brute force.
//!
//! Each random program has two to four threads of at most five steps: accesses with orders and
//! scopes, atomic operations, fences, conditions on values that were read, loops that wait for a
//! flag, and barriers of warps, pairs of warps, blocks and clusters. The axioms yield all of its
//! executions: every choice of the write that each read reads from, and of the coherence order of
//! each variable. The program is also a kernel, which the checker judges and the simulator runs.
//! The results agree if
//!
//! * every *proved* program has no race, and does not always wait forever;
//! * every refused program has a race, or waits for a flag;
//! * for every program without a race in any execution, the simulator finds nothing, and its
//!   outcomes are outcomes of executions: the values of the reads, and the last values in global
//!   memory;
//! * the simulator finds nearly all of the programs with two accesses that race in every execution
//!   in which both occur.
//!
//! `TMA_PROGRAMS=5000` draws this many programs, and `TMA_PROGRAM=7` prints the program of that
//! number with all results.
//!
//! # Limits
//!
//! * The simulator shows outcomes in an order of time, in which program order, reads-from and
//!   coherence have no cycle: no load buffering, and no 2+2W. Shared memory holds one value. The
//!   test prints how many of the other outcomes the seeds have shown.
//! * The race that is found is not compared with those of the axioms: a program with a race may do
//!   anything.
//! * Executions in which a loop waits forever are left out. Its failed loads read anything: they
//!   may race, and acquire nothing.
//! * The language has no `fence.sc`. Copies, and with them the other proxies, are not generated;
//!   `ptx-sim/tests/litmus` has programs with them. The model does not cover accesses of different
//!   sizes.
#![cfg(feature = "llvm")]

mod axioms;
mod comparison;
mod events;
mod executions;
mod generator;
mod known;
mod program;
mod relation;
mod simulated;
mod source;

use comparison::{Compared, Tally, compare};
use tma_tests::parallel::on_all_cores;

/// The number of programs for each commit.
const PROGRAMS: u64 = 500;
/// The number of seeds under which each runs on the simulator.
const SEEDS: u64 = 32;

#[test]
fn axioms_checker_and_simulator_agree() -> anyhow::Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("TMA_PROGRAM") {
        let Compared { text, judgement, runs, tally, disagreements } =
            compare(&generator::program(seed), SEEDS)?;
        println!("{text}{judgement:#?}\n{runs:#?}\n{tally}\n{disagreements:#?}");
        return Ok(());
    }
    let seeds = (0..number("TMA_PROGRAMS").unwrap_or(PROGRAMS)).collect();
    let all = on_all_cores(seeds, |seed| (seed, compare(&generator::program(seed), SEEDS)));
    let (mut tally, mut wrong, mut missed) = (Tally::default(), vec![], vec![]);
    for (seed, compared) in all {
        let compared = compared.map_err(|error| error.context(format!("program {seed}")))?;
        tally.add(&compared.tally);
        if compared.tally.racing > compared.tally.racing_found {
            missed.push(seed);
        }
        if !compared.disagreements.is_empty() {
            wrong.push(format!("program {seed}: {}\n{}", compared.disagreements.join("\n"), compared.text));
        }
    }
    println!("{tally}\nprograms whose race was not found: {missed:?}");
    assert!(wrong.is_empty(), "{}\n{} of {}", wrong.join("\n"), wrong.len(), tally.programs);
    assert!(tally.proved * 50 > tally.programs, "few are proved: {tally}");
    assert!(tally.racing_found * 10 > tally.racing * 9, "few races are found: {tally}");
    Ok(())
}
