//! The kernels of the repository with one synchronisation step left out, changed or moved.
//!
//! Not every mutant is wrong: some steps are redundant. The number of refused mutants is compared
//! with the previous one, so that a change by which the checker misses more is noticed.
//! `tests/tests/protocol.rs` finds which of them the simulator finds wrong, and
//! `lab/protocol-mutants.md` has the results.

use std::collections::BTreeMap;
use std::fs;

use tma_codegen::check::check;
use tma_codegen::diag::Sink;
use tma_codegen::protocol::{Budget, Verdict, judge};

use crate::operators::{Mutant, mutants};
use crate::tree::{root, sources};

const FOLDERS: [&str; 2] = ["examples/src", "tests/src/kernels"];

/// Of each kernel, one in this many mutants is judged.
const NTH: usize = 3;

#[derive(Default)]
struct Tally {
    refused: u32,
    undecided: u32,
    passed: u32,
}

/// `TMA_MUTANTS=name` prints the verdict on every mutant of the kernels whose names begin with
/// `name`.
#[test]
fn most_mutants_are_refused() {
    let wanted = std::env::var("TMA_MUTANTS").ok();
    let mut table: BTreeMap<String, Tally> = BTreeMap::new();
    for path in FOLDERS.iter().flat_map(|folder| sources(&root().join(folder))) {
        let source = fs::read_to_string(&path).expect("a source file");
        let Ok(accepted) = tma_codegen::check("kernels.rs", &source) else { continue };
        let mut last = String::new();
        for checked in accepted.kernels {
            let kernel = checked.kernel.kernel();
            // Instances differ in types more than in order.
            if std::mem::replace(&mut last, kernel.name.clone()) == kernel.name {
                continue;
            }
            if wanted.as_ref().is_some_and(|wanted| !kernel.name.starts_with(wanted)) {
                continue;
            }
            for mutant in mutants(kernel).step_by(if wanted.is_some() { 1 } else { NTH }) {
                let Mutant { step, change, span, kernel } = mutant;
                let name = kernel.path();
                let Ok(mutant) = check(kernel, &mut Sink::default()) else { continue };
                let tally = table.entry(format!("{step} {change}")).or_default();
                let verdict = judge(&mutant, Budget::MACRO).verdict;
                if wanted.is_some() {
                    println!("{name}:{}: {step} {change}: {}", span.start().line, shown(&verdict));
                }
                match verdict {
                    Verdict::Broken(_) => tally.refused += 1,
                    Verdict::NotDecided(_) => tally.undecided += 1,
                    Verdict::Proved | Verdict::CheckedUpTo(_) => tally.passed += 1,
                }
            }
        }
    }
    let (mut refused, mut all) = (0, 0);
    for (step, Tally { refused: found, undecided, passed }) in &table {
        println!("{step:>40}: {found} refused, {undecided} not decided, {passed} passed");
        (refused, all) = (refused + found, all + found + undecided + passed);
    }
    println!("{refused} of {all} are refused");
    if wanted.is_none() {
        assert!(all > 1000, "{all} mutants were made");
        assert!(refused * 100 > all * 60, "{refused} of {all} mutants are refused");
    }
}

fn shown(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Broken(diagnostic) => {
            format!("refused in line {}: {}", diagnostic.span.start().line, diagnostic.text())
        }
        Verdict::NotDecided(undecided) => {
            let undecided = undecided
                .iter()
                .map(|case| format!("\n    line {}: {}", case.span.start().line, case.reason));
            format!("not decided{}", undecided.collect::<String>())
        }
        Verdict::Proved => "proved".to_owned(),
        Verdict::CheckedUpTo(iterations) => format!("checked up to {iterations} iterations"),
    }
}
