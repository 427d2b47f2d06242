//! Kernels of the repository with one step of synchronisation left out or changed.
//!
//! Not every mutant is wrong: some steps are redundant. How many are refused is compared with what
//! it was, so that a change of the checker that misses more is noticed.

use std::collections::BTreeMap;
use std::fs;

use tma_codegen::check::protocol::{Budget, Verdict, judge};
use tma_codegen::check::{CheckedKernel, check};
use tma_codegen::diag::Sink;
use tma_codegen::ir::{
    BarrierOp, BinaryOp, Block, Const, Expr, ExprKind, Kernel, Scalar, Stmt, StmtId, StmtKind, visit,
};

use crate::tree::{root, sources};

const FOLDERS: [&str; 2] = ["examples/src", "tests/src/kernels"];

/// What is done to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Removed,
    /// A count, or bytes, by so much more.
    More(i128),
    /// The other parity.
    Flipped,
}

/// The step, by its kind.
fn name(kind: &StmtKind) -> Option<&'static str> {
    Some(match kind {
        StmtKind::Fence(_) => "fence",
        StmtKind::Sync(_) => "meeting",
        StmtKind::NamedBarrierSync { .. } | StmtKind::NamedBarrierArrive { .. } => "named barrier",
        StmtKind::BulkCommitGroup => "commit",
        StmtKind::BulkWaitGroup { .. } => "wait for stores",
        StmtKind::Barrier { op, .. } => match op {
            BarrierOp::Init { .. } => "init",
            BarrierOp::Arrive
            | BarrierOp::ArriveMany { .. }
            | BarrierOp::ArriveToken { .. }
            | BarrierOp::ArriveDrop => "arrival",
            BarrierOp::ArriveExpectTx { .. } | BarrierOp::ExpectTx { .. } => "announcement",
            BarrierOp::Wait { .. } => "wait",
            BarrierOp::Invalidate
            | BarrierOp::WaitToken { .. }
            | BarrierOp::TestWait { .. }
            | BarrierOp::TryWait { .. }
            | BarrierOp::TryWaitFor { .. } => return None,
        },
        _ => return None,
    })
}

fn changes(kind: &StmtKind) -> Vec<Change> {
    match kind {
        StmtKind::Barrier { op: BarrierOp::Wait { .. }, .. } => vec![Change::Removed, Change::Flipped],
        StmtKind::Barrier { op: BarrierOp::Init { .. }, .. } => {
            vec![Change::Removed, Change::More(1)]
        }
        StmtKind::Barrier { op: BarrierOp::ArriveExpectTx { .. } | BarrierOp::ExpectTx { .. }, .. } => {
            vec![Change::Removed, Change::More(16), Change::More(-16)]
        }
        _ => vec![Change::Removed],
    }
}

/// Changes the statement `id`.
fn change(block: &mut Block, id: StmtId, how: Change) {
    if how == Change::Removed {
        block.stmts.retain(|stmt| stmt.id != id);
    }
    for stmt in &mut block.stmts {
        if stmt.id == id {
            change_operand(stmt, how);
        }
        visit::blocks_mut(&mut stmt.kind).into_iter().for_each(|inner| change(inner, id, how));
    }
}

fn change_operand(stmt: &mut Stmt, how: Change) {
    let StmtKind::Barrier { op, .. } = &mut stmt.kind else { return };
    let (operand, by, with) = match (op, how) {
        (BarrierOp::Wait { parity: operand }, Change::Flipped) => (operand, 1, BinaryOp::Xor),
        (
            BarrierOp::Init { count: operand }
            | BarrierOp::ArriveExpectTx { bytes: operand }
            | BarrierOp::ExpectTx { bytes: operand },
            Change::More(by),
        ) => (operand, by.rem_euclid(1 << 32), BinaryOp::Add),
        _ => return,
    };
    let old = operand.clone();
    let by = Expr::constant(Const::Int(by), Scalar::U32, old.span);
    operand.kind = ExprKind::Binary(with, Box::new(old), Box::new(by));
}

/// All mutants of a kernel: the step and the change, and the kernel if the other rules accept it.
fn mutants(kernel: &Kernel) -> Vec<(String, Option<Box<CheckedKernel>>)> {
    let mut steps = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let Some(name) = name(&stmt.kind) {
            steps.extend(changes(&stmt.kind).into_iter().map(|change| (stmt.id, name, change)));
        }
    });
    let mutant = |(id, name, how): (StmtId, &str, Change)| {
        let mut mutant = kernel.clone();
        change(&mut mutant.body, id, how);
        (format!("{name} {how:?}"), check(mutant, &mut Sink::default()).ok())
    };
    steps.into_iter().map(mutant).collect()
}

#[derive(Default)]
struct Tally {
    refused: u32,
    undecided: u32,
    passed: u32,
}

#[test]
fn most_mutants_are_refused() {
    let mut table: BTreeMap<String, Tally> = BTreeMap::new();
    let mut passed = vec![];
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
            for (step, mutant) in mutants(kernel) {
                let Some(mutant) = mutant else { continue };
                let tally = table.entry(step.clone()).or_default();
                match judge(&mutant, Budget::MACRO).verdict {
                    Verdict::Broken(_) => tally.refused += 1,
                    Verdict::NotDecided(_) => tally.undecided += 1,
                    Verdict::Proved | Verdict::CheckedUpTo(_) => {
                        tally.passed += 1;
                        passed.push(format!("{}: {step}", kernel.path()));
                    }
                }
            }
        }
    }
    let (mut refused, mut all) = (0, 0);
    for (step, Tally { refused: found, undecided, passed }) in &table {
        println!("{step:>28}: {found} refused, {undecided} not decided, {passed} passed");
        (refused, all) = (refused + found, all + found + undecided + passed);
    }
    println!("{refused} of {all} are refused; passed:\n{}", passed.join("\n"));
    assert!(all > 1000, "{all} mutants were made");
    assert!(refused * 100 > all * 70, "{refused} of {all} mutants are refused");
}
