//! A warp that copies, beside warpgroups that multiply.

use std::fs;

use tma_codegen::protocol::{Budget, Verdict, judge};

use crate::tree::root;

/// Returns the file with the kernels that the simulator runs.
fn source() -> String {
    let path = root().join("tests/src/kernels/mma/producers.rs");
    fs::read_to_string(path).expect("a source file")
}

/// Returns the code of the error in the first kernel that has one.
fn code(source: &str) -> Option<String> {
    let accepted = match tma_codegen::check("producers.rs", source) {
        Ok(accepted) => accepted,
        Err(failure) => {
            let text = failure.to_string();
            let codes = text.split("error[").nth(1).and_then(|rest| rest.split(']').next());
            return Some(codes.unwrap_or(&text).to_owned());
        }
    };
    accepted.kernels.iter().find_map(|checked| match judge(&checked.kernel, Budget::REPORT).verdict {
        Verdict::Broken(diagnostic) => Some(diagnostic.code().to_string()),
        Verdict::Proved | Verdict::CheckedUpTo(_) | Verdict::NotDecided(_) => None,
    })
}

#[test]
fn kernels_with_a_producer_warp_are_proved() {
    let accepted =
        tma_codegen::check("producers.rs", &source()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(accepted.kernels.len(), 3);
    for checked in &accepted.kernels {
        let found = judge(&checked.kernel, Budget::REPORT).verdict;
        assert!(matches!(found, Verdict::Proved), "{}: {found:?}", checked.kernel.kernel().name);
    }
}

#[test]
fn wrong_guards_are_refused() {
    let (right, mut wrong) = (source(), vec![]);
    for (kept, broken, wanted) in [
        // Nothing copies, and the last warp multiplies.
        ("if warp_idx() == 4 {", "if warp_idx() == 5 {", "TMA0257"),
        ("if warp_idx() == 4 {", "if steps == 4 {", "TMA0257"),
        ("if me < 2 {", "if me <= 2 {", "TMA0257"),
        // A warp of the warpgroup copies.
        ("if warp_idx() == 4 {", "if warp_idx() == 3 {", "TMA0264"),
        ("if warp_idx() == 4 {", "if warp_idx() >= 3 {", "TMA0264"),
        // The warpgroup copies.
        ("if warp_idx() == 4 {", "if warp_idx() != 4 {", "TMA0257"),
        // All lanes copy.
        (
            "        if elect_one() {\n            for k",
            "        if steps > 0 {\n            for k",
            "TMA0703",
        ),
        // Each warp frees the stage.
        (
            "if thread_idx().x == 0 {\n                empty",
            "if lane_idx() == 0 {\n                empty",
            "TMA0703",
        ),
        // The first wait for the stage to be empty is skipped twice.
        ("if round > 0 {", "if round > 1 {", "TMA0703"),
    ] {
        assert_eq!(right.matches(kept).count(), 1, "{kept}");
        let found = code(&right.replace(kept, broken));
        if found.as_deref() != Some(wanted) {
            wrong.push(format!("{broken}: {found:?}, and not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
