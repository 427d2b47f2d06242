//! The conformance table on the simulator, and the page of the book that shows it. A case runs
//! under one of three seeds, in alternation, or under each with `TMA_TESTS=all`.
#![cfg(feature = "llvm")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tma_model::{ReduceOp, Scalar};
use tma_runtime::prelude::*;
use tma_tests::conformance::{Case, Columns, Operation, cases, table};
use tma_tests::{is_all, page};

/// The number of seeds of the cases.
const SEEDS: u64 = 3;

/// Runs the cases for which `is_meant` holds, and checks that there are at least `least`.
fn run_all(least: usize, is_meant: impl Fn(&Case) -> bool) {
    let cases: Vec<_> = cases().into_iter().filter(is_meant).collect();
    assert!(cases.len() >= least, "{} cases", cases.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(vec![]));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let devices: Vec<_> = (0..SEEDS).map(|seed| Device::simulator().seed(seed)).collect();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let one = index % devices.len();
                    let some = if is_all() { &devices[..] } else { &devices[one..=one] };
                    let failed = some.iter().find_map(|device| case.run(device).err());
                    if let Some(error) = failed {
                        failures.lock().expect("no case panics").push(format!("{case}: {error:#}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no case panics");
    let first: Vec<_> = failures.iter().take(5).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), cases.len(), first.join("\n"));
}

#[test]
fn every_case_gives_what_plain_rust_gives() {
    run_all(600, |case| !matches!(case.operation, Operation::Columns(_)));
}

#[test]
fn every_case_of_columns_gives_what_plain_rust_gives() {
    run_all(500, |case| matches!(case.operation, Operation::Columns(_)));
}

/// Every rank has all reductions of `u32`, and rank 2 those of every element type.
#[test]
fn every_reduction_has_its_cases() {
    let all = cases();
    let has = |operation, rank, element| {
        let is_meant = |case: &&Case| case.operation == operation && case.rank() == rank;
        all.iter().filter(is_meant).any(|case| case.element() == element)
    };
    for op in ReduceOp::ALL {
        let (tiles, columns) = (Operation::Reduce(op), [Columns::Reduce(op), Columns::HintedReduce(op)]);
        for element in Scalar::ALL.into_iter().filter(|&element| op.takes_mapped(element)) {
            assert!(has(tiles, 2, element), "{tiles} of `{element}` has no case");
        }
        for rank in 1..=5 {
            assert!(has(tiles, rank, Scalar::U32), "{tiles} of rank {rank} has no case");
        }
        for rank in 3..=5 {
            for operation in columns.map(Operation::Columns) {
                assert!(has(operation, rank, Scalar::U32), "{operation} of rank {rank} has no case");
            }
        }
    }
}

#[test]
fn the_page_has_every_case() -> anyhow::Result<()> {
    page::ends_with("lab/conformance.md", &table(&cases()))
}
