//! No proof is vacuous: in every proved kernel, the checker finds an added race where threads end.
//!
//! A checker that follows no thread to its end would accept anything there. So the first thread of
//! the block writes a word of shared memory before it ends, and the last thread reads it before it
//! ends, with nothing between the two.

use tma_codegen::check::{CheckedKernel, check};
use tma_codegen::diag::{Code, Sink};
use tma_codegen::ir::{Block, ExprKind, Kernel, LocalId, Origin, SharedId, Stmt, StmtKind, visit};
use tma_codegen::protocol::{Budget, Verdict, judge};

use crate::right::{RIGHT, folder_of};
use crate::tree::{FOLDERS, first_instances, kernels, root};

/// Right kernels in which the race is uncertain: an atomic access decides where threads end.
const BY_ATOMICS: &[&str] = &[
    "a_queue_per_warp",
    "vectors_added_by_all",
    "place_of_the_greatest",
    "tickets_of_warps",
    "from_the_other_queue",
    "last_block_acq_rel",
];

/// Such kernels of the repository.
const BY_ATOMICS_OF_REPOSITORY: &[&str] = &[
    "order_integers::u32",
    "order_integers::i32",
    "order_integers::i64",
    "order_floats",
    "order_last_block",
    "fence_last_block",
];

/// Kernels that exhaust the budget with the race. In `join`, tokens in memory decide where threads
/// end.
const BY_BUDGET: &[&str] = &[
    "producer_and_consumer",
    "place_named_barriers",
    "spans",
    "join::bf16_wide",
    "join::bf16_odd",
    "join::f16_wide",
];

/// More than a macro's, so that more is proved; a report's budget would take a minute.
const BUDGET: Budget = Budget(50_000);

/// Of the kernels of the repository, about one in this many is judged: which ones depends on their
/// names alone, so that a new kernel changes nothing for the others.
const NTH: u32 = 3;

#[test]
fn a_race_at_the_end_of_a_right_kernel_is_found() {
    let all = RIGHT.iter().flat_map(|folder| kernels(&folder_of(folder)));
    let tally = Tally::of(all.map(|(_, kernel)| kernel));
    tally.expect(100, BY_ATOMICS);
}

#[test]
fn a_race_at_the_end_of_a_kernel_of_the_repository_is_found() {
    let of_folder = |folder: &&str| first_instances(kernels(&root().join(folder)));
    let is_judged =
        |kernel: &CheckedKernel| kernel.kernel().name.bytes().map(u32::from).sum::<u32>() % NTH == 0;
    let all = FOLDERS.iter().flat_map(of_folder).map(|(_, kernel)| kernel);
    let tally = Tally::of(all.filter(is_judged));
    tally.expect(100, BY_ATOMICS_OF_REPOSITORY);
}

/// The verdicts with the race on kernels that are proved, or checked, without it.
#[derive(Default)]
struct Tally {
    /// The number of errors.
    found: u32,
    /// The undecided kernels, with the reasons.
    undecided: Vec<(String, String)>,
    /// The kernels that are still accepted.
    vacuous: Vec<String>,
    /// The kernels of a single thread, which cannot race.
    left_out: Vec<String>,
}

impl Tally {
    fn of(kernels: impl Iterator<Item = CheckedKernel>) -> Self {
        let mut tally = Self::default();
        for checked in kernels {
            if let Verdict::Broken(_) | Verdict::NotDecided(_) = judge(&checked, BUDGET).verdict {
                continue;
            }
            let kernel = checked.kernel();
            let name = kernel.path();
            if kernel.launch.thread_count() == 1 {
                tally.left_out.push(name);
                continue;
            }
            let racy = check(with_race(kernel), &mut Sink::default())
                .unwrap_or_else(|_| panic!("{name} has no room for the race"));
            match judge(&racy, BUDGET).verdict {
                Verdict::Broken(diagnostic) if is_the_race(diagnostic.code(), &diagnostic.text()) => {
                    tally.found += 1;
                }
                Verdict::Broken(diagnostic) => tally.undecided.push((name, diagnostic.text())),
                Verdict::NotDecided(undecided) => tally.undecided.push((name, format!("{undecided:?}"))),
                Verdict::Proved | Verdict::CheckedUpTo(_) => tally.vacuous.push(name),
            }
        }
        tally
    }

    /// Expects the race in all kernels but these, and in at least `least`.
    fn expect(&self, least: u32, by_atomics: &[&str]) {
        let Self { found, undecided, vacuous, left_out } = self;
        println!("{found} found, {} not certain, {} left out: {left_out:?}", undecided.len(), left_out.len());
        assert!(vacuous.is_empty(), "proved with a race at the end: {vacuous:?}");
        let excused = |name: &str| by_atomics.contains(&name) || BY_BUDGET.contains(&name);
        let wrong: Vec<_> = undecided.iter().filter(|(name, _)| !excused(name)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        let is_known = |name: &&&str| undecided.iter().any(|(undecided, _)| undecided == **name);
        let certain: Vec<_> = by_atomics.iter().filter(|name| !is_known(name)).collect();
        assert!(certain.is_empty(), "certain by now: {certain:?}");
        assert!(*found >= least, "{found} kernels");
    }
}

fn is_the_race(code: Code, text: &str) -> bool {
    code == Code::SharedRace && text.contains("`raced`")
}

/// Returns the kernel with the race wherever its threads end.
fn with_race(kernel: &Kernel) -> Kernel {
    let Kernel { locals, shared, body, .. } = race(kernel);
    let mut stmts = body.stmts;
    let (local, var) = (kernel.locals.len() as u32, kernel.shared.len() as u32);
    stmts.iter_mut().for_each(|stmt| rename(stmt, (local, var), Origin { span: kernel.span, call: None }));
    let mut kernel = kernel.clone();
    kernel.locals.extend(locals);
    kernel.shared.extend(shared);
    before_returns(&mut kernel.body, &stmts);
    kernel.body.stmts.extend(stmts);
    visit::number(&mut kernel.body);
    kernel
}

/// Returns a kernel of the same block size, with nothing but the race.
fn race(kernel: &Kernel) -> Kernel {
    let ([x, y, z], last) = (kernel.launch.threads, kernel.launch.thread_count() - 1);
    let source = format!(
        "#[tma_kernel(threads = [{x}, {y}, {z}])]
        fn race() {{
            let raced: SharedArray<u32, 1> = shared();
            let thread = warp_idx() * 32 + lane_idx();
            if thread == 0 {{ raced.set(0, 7); }}
            if thread == {last} {{ let _seen = raced.get(0); }}
        }}"
    );
    let accepted = tma_codegen::check("race.rs", &source).unwrap_or_else(|failure| panic!("{failure}"));
    let [checked] = accepted.kernels.as_slice() else { panic!("there is one kernel in\n{source}") };
    checked.kernel.kernel().clone()
}

/// Renumbers the variables of a statement from these numbers on.
fn rename(stmt: &mut Stmt, (locals, shared): (u32, u32), origin: Origin) {
    stmt.origin = origin;
    for operand in visit::operands_mut(&mut stmt.kind) {
        visit::within_mut(operand, &mut |part| {
            if let ExprKind::Local(LocalId(local)) = &mut part.kind {
                *local += locals;
            } else if let ExprKind::Shared(SharedId(var)) = &mut part.kind {
                *var += shared;
            }
        });
    }
    if let StmtKind::Assign { local: LocalId(to), .. } | StmtKind::SharedGet { dest: LocalId(to), .. } =
        &mut stmt.kind
    {
        *to += locals;
    }
    let inner = visit::blocks_mut(&mut stmt.kind).into_iter().flat_map(|block| &mut block.stmts);
    inner.for_each(|stmt| rename(stmt, (locals, shared), origin));
}

/// Inserts statements before each end of a thread.
fn before_returns(block: &mut Block, stmts: &[Stmt]) {
    for stmt in std::mem::take(&mut block.stmts) {
        if let StmtKind::Return = stmt.kind {
            block.stmts.extend_from_slice(stmts);
        }
        block.stmts.push(stmt);
        let last = block.stmts.last_mut().into_iter().flat_map(|stmt| visit::blocks_mut(&mut stmt.kind));
        last.for_each(|inner| before_returns(inner, stmts));
    }
}
