//! Facts that a kernel asks the checker to trust: assumptions, and trusted statements.

use tma_codegen::diag::Code;
use tma_codegen::protocol::{UndecidedReason, Verdict};

use crate::verdict;

/// Returns the code of the error.
fn code(source: &str) -> Option<Code> {
    match verdict(source) {
        Verdict::Broken(diagnostic) => Some(diagnostic.code()),
        Verdict::Proved | Verdict::CheckedUpTo(_) | Verdict::NotDecided(_) => None,
    }
}

/// Returns a kernel with a load in the first iteration of a loop, and a wait after the loop.
fn first_turn(assumes: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32, more: u32) {{
            let tile: Tile<f32, Shape2<32, 32>> = shared();
            let full: Barrier = shared();
            {assumes}
            if thread_idx().x == 0 {{ full.init(1); fence_barrier_init(); }}
            sync_threads();
            for k in 0..tiles {{
                if thread_idx().x == 0 && k == 0 {{
                    full.arrive_expect_tx(tile.bytes());
                    src.load(tile, [0, 0], full);
                }}
            }}
            full.wait(0);
            out.set(thread_idx().x, tile.get([0, lane_idx()]));
        }}"
    )
}

#[test]
fn launches_that_are_assumed_away_are_not_looked_at() {
    for assumed in [
        "assume(tiles > 0);",
        "assume(0 < tiles && tiles < 9);",
        "assume(tiles > more);",
        "assume(tiles != 0);",
    ] {
        let found = verdict(&first_turn(assumed));
        assert!(matches!(found, Verdict::Proved | Verdict::CheckedUpTo(_)), "{assumed}: {found:?}");
    }
    for assumed in ["", "assume(tiles < 9);", "assume(more > 0);"] {
        let found = verdict(&first_turn(assumed));
        assert!(matches!(found, Verdict::NotDecided(_)), "{assumed}: {found:?}");
    }
    // No launch that satisfies this assumption is right.
    assert_eq!(code(&first_turn("assume(tiles == 0);")), Some(Code::Deadlock));
}

/// Bounds by an assumption are used: in at most two iterations, the ring is not reused.
#[test]
fn bounds_of_assumptions_are_used() {
    let source = |assumed: &str| {
        format!(
            "#[tma_kernel(threads = 64)]
            fn k(out: Global<u32>, turns: u32) {{
                let row: Stages<SharedArray<u32, 64>, 2> = shared();
                {assumed}
                for turn in 0..turns {{
                    row[turn % 2].set(thread_idx().x, turn);
                }}
                sync_threads();
                out.set(thread_idx().x, row[0].get(63 - thread_idx().x));
                if turns > 2 {{ row[0].set(thread_idx().x, 0); }}
            }}"
        )
    };
    assert_eq!(code(&source("")), Some(Code::SharedRace));
    assert!(matches!(verdict(&source("assume(turns <= 2);")), Verdict::Proved | Verdict::NotDecided(_)));
}

/// Returns two unordered accesses, at statements with these attributes.
fn race(write: &str, read: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]
        fn k(out: Global<u32>) {{
            let row: SharedArray<u32, 64> = shared();
            {write}
            row.set(thread_idx().x, 1);
            {read}
            out.set(thread_idx().x, row.get(63 - thread_idx().x));
        }}"
    )
}

#[test]
fn a_trusted_statement_is_not_judged_and_others_are() {
    let trusted = "#[trusted = \"either value will do\"]";
    assert_eq!(code(&race("", "")), Some(Code::SharedRace));
    assert_eq!(code(&race("", trusted)), None);
    assert_eq!(code(&race(trusted, "")), None);
    // The attribute covers everything inside of the statement.
    let inside = race("", trusted)
        .replace("out.set(", "if lane_idx() < 9 { out.set(")
        .replace(";\n        }", "; }\n        }");
    assert_eq!(code(&inside), None);
    let elsewhere = race("", "").replace("}}", "}").replace(
        "let row: SharedArray",
        &format!("{trusted}\n            out.set(0, 1);\n            let row: SharedArray"),
    );
    assert_eq!(code(&elsewhere), Some(Code::SharedRace));
}

#[test]
fn what_is_trusted_and_cannot_be_left_out_is_not_decided() {
    let source = "#[tma_kernel(threads = 64)]
        fn k(out: Global<u32>) {
            let met: Barrier = shared();
            if thread_idx().x == 0 { met.init(65); }
            sync_threads();
            met.arrive();
            #[trusted = \"another kernel arrives\"]
            met.wait(0);
            out.set(thread_idx().x, 1);
        }";
    let Verdict::NotDecided(undecided) = verdict(source) else { panic!("{:?}", verdict(source)) };
    assert!(
        undecided.iter().any(|case| case.reason == UndecidedReason::Trusted && case.span.start().line == 8),
        "{undecided:?}"
    );
}
