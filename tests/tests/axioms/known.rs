//! Litmus tests of the literature: outcomes that the axioms must allow, and those that they must
//! forbid.
//!
//! Names as in J. Alglave, L. Maranget, M. Tautschnig, "Herding Cats", TOPLAS 2014. Each thread is
//! in its own block.

use tma_model::sync::{Memory, MemoryScope, Order};

use crate::executions::{Judgement, judge};
use crate::program::{Access, Action, Guard, Operation, Place, Program, Step, Update, Variable};

const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;

use Order::{AcqRel, Acquire, Relaxed, Release, Weak};

fn access(variable: usize, action: Action, order: Order) -> Operation {
    Operation::Access(Access { variable, action, order, scope: MemoryScope::Device })
}

fn read(variable: usize, order: Order) -> Operation {
    access(variable, Action::Load, order)
}

fn write(variable: usize, value: u32, order: Order) -> Operation {
    access(variable, Action::Store(value), order)
}

fn add(variable: usize, order: Order) -> Operation {
    access(variable, Action::Update(Update::Add), order)
}

/// Returns the operation with the scope of the block.
fn narrow(operation: Operation) -> Operation {
    match operation {
        Operation::Access(access) => Operation::Access(Access { scope: MemoryScope::Block, ..access }),
        Operation::Fence => operation,
    }
}

/// Returns the program of these threads, without conditions.
fn program(threads: &[&[Operation]]) -> Program {
    let places = (0..threads.len() as u32).map(|block| Place { block, warp: 0, lane: 0 }).collect();
    let steps = threads.iter().enumerate().flat_map(|(thread, operations)| {
        operations.iter().map(move |&operation| Step::Of { thread, operation, guard: None })
    });
    let variables = vec![Variable { memory: Memory::Global, block: 0 }; 3];
    Program { places, cluster: None, variables, steps: steps.collect() }
}

/// Adds to steps the condition that the step before has read 1.
fn if_one(mut program: Program, guarded: &[usize]) -> Program {
    for &index in guarded {
        if let Step::Of { guard, .. } = &mut program.steps[index] {
            *guard = Some(Guard { step: index - 1, value: 1 });
        }
    }
    program
}

/// Returns whether an outcome with this beginning is consistent with an order in time, or `None` if
/// it is not allowed.
fn allows(judgement: &Judgement, seen: &[u32]) -> Option<bool> {
    let outcomes = judgement.outcomes.iter().filter(|(outcome, _)| outcome.starts_with(seen));
    outcomes.map(|(_, in_time)| *in_time).reduce(|one, other| one || other)
}

/// Judges an outcome of these threads.
fn asked(threads: &[&[Operation]], seen: &[u32]) -> Option<bool> {
    allows(&judge(&program(threads)), seen)
}

const ALLOWED: Option<bool> = Some(true);
const OUT_OF_TIME: Option<bool> = Some(false);
const FORBIDDEN: Option<bool> = None;

#[test]
fn message_passing() {
    let (store, load) = (write(X, 1, Relaxed), read(X, Relaxed));
    let mp = |release: &[Operation], acquire: &[Operation]| {
        asked(&[&[&[store], release].concat(), &[acquire, &[load]].concat()], &[1, 0])
    };
    let fence = Operation::Fence;
    assert_eq!(mp(&[write(Y, 1, Relaxed)], &[read(Y, Relaxed)]), ALLOWED);
    assert_eq!(mp(&[write(Y, 1, Release)], &[read(Y, Acquire)]), FORBIDDEN);
    assert_eq!(mp(&[fence, write(Y, 1, Relaxed)], &[read(Y, Relaxed), fence]), FORBIDDEN);
    assert_eq!(mp(&[write(Y, 1, Relaxed), fence], &[read(Y, Relaxed), fence]), ALLOWED);
    assert_eq!(mp(&[fence, write(Y, 1, Relaxed)], &[fence, read(Y, Relaxed)]), ALLOWED);
    assert_eq!(mp(&[write(Y, 1, Release)], &[narrow(read(Y, Acquire))]), ALLOWED);
}

#[test]
fn buffering() {
    let sb = |store, load| {
        asked(&[&[write(X, 1, store), read(Y, load)], &[write(Y, 1, store), read(X, load)]], &[0, 0])
    };
    assert_eq!(sb(Relaxed, Relaxed), ALLOWED);
    assert_eq!(sb(Release, Acquire), ALLOWED);
    let lb = |load, store| {
        asked(&[&[read(X, load), write(Y, 1, store)], &[read(Y, load), write(X, 1, store)]], &[1, 1])
    };
    assert_eq!(lb(Relaxed, Relaxed), OUT_OF_TIME);
    assert_eq!(lb(Acquire, Release), FORBIDDEN);
    // Each thread writes only if it has read the other's value.
    let threads: [&[Operation]; 2] =
        [&[read(X, Relaxed), write(Y, 1, Relaxed)], &[read(Y, Relaxed), write(X, 1, Relaxed)]];
    assert_eq!(allows(&judge(&if_one(program(&threads), &[1, 3])), &[1, 1]), FORBIDDEN);
    // Both first writes are last in coherence order. There are no registers, so the outcome is X
    // and Y.
    let threads: [&[Operation]; 2] =
        [&[write(X, 1, Relaxed), write(Y, 2, Relaxed)], &[write(Y, 1, Relaxed), write(X, 2, Relaxed)]];
    assert_eq!(asked(&threads, &[1, 1]), OUT_OF_TIME);
}

#[test]
fn coherence() {
    let reads = [read(X, Relaxed), read(X, Relaxed)];
    assert_eq!(asked(&[&[write(X, 1, Relaxed)], &reads], &[1, 0]), FORBIDDEN);
    assert_eq!(asked(&[&[write(X, 1, Relaxed)], &reads], &[0, 1]), ALLOWED);
    assert_eq!(asked(&[&[write(X, 1, Relaxed), read(X, Relaxed)]], &[0]), FORBIDDEN);
    assert_eq!(asked(&[&[add(X, Relaxed)], &[add(X, Relaxed)]], &[0, 0]), FORBIDDEN);
    assert_eq!(asked(&[&[narrow(add(X, Relaxed))], &[add(X, Relaxed)]], &[0, 0]), ALLOWED);
}

#[test]
fn three_and_four_threads() {
    let isa2: [&[Operation]; 3] = [
        &[write(X, 1, Relaxed), write(Y, 1, Release)],
        &[read(Y, Acquire), write(Z, 1, Release)],
        &[read(Z, Acquire), read(X, Relaxed)],
    ];
    assert_eq!(asked(&isa2, &[1, 1, 0]), FORBIDDEN);
    let chain = |order| {
        let first = [write(X, 1, Relaxed), write(Y, 1, Release)];
        asked(&[&first, &[add(Y, order)], &[read(Y, Acquire), read(X, Relaxed)]], &[1, 2, 0])
    };
    assert_eq!(chain(Relaxed), FORBIDDEN);
    assert_eq!(chain(AcqRel), FORBIDDEN);
    let replaced = [&[write(X, 1, Relaxed), write(Y, 1, Release)][..], &[write(Y, 2, Relaxed)]];
    assert_eq!(asked(&[replaced[0], replaced[1], &[read(Y, Acquire), read(X, Relaxed)]], &[2, 0]), ALLOWED);
    let reads = |first, second| [read(first, Acquire), read(second, Acquire)];
    let iriw: [&[Operation]; 4] =
        [&[write(X, 1, Relaxed)], &[write(Y, 1, Relaxed)], &reads(X, Y), &reads(Y, X)];
    assert_eq!(asked(&iriw, &[1, 0, 1, 0]), ALLOWED);
}

#[test]
fn races() {
    let mp = |release, acquire, last| {
        let threads: [&[Operation]; 2] =
            [&[write(X, 1, Weak), write(Y, 1, release)], &[read(Y, acquire), last]];
        judge(&if_one(program(&threads), &[3])).races()
    };
    assert_eq!(mp(Release, Acquire, read(X, Weak)), [[0; 2]; 0]);
    assert_eq!(mp(Relaxed, Acquire, read(X, Weak)), [[0, 3]]);
    assert_eq!(mp(Release, Relaxed, write(X, 2, Weak)), [[0, 3]]);
    // An observed operation precedes operations on its own variable.
    assert_eq!(mp(Relaxed, Relaxed, write(Y, 2, Weak)), [[0; 2]; 0]);
    let narrow = program(&[&[narrow(add(X, AcqRel))], &[add(X, AcqRel)]]);
    assert!(judge(&narrow).always_races());
}
