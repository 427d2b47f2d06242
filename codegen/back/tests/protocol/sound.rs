//! Wrong kernels that must never be *proved*, nor *checked up to* a number of iterations.
//!
//! `wrong_kernels` has the kernels that the checker once proved by mistake, a file per kind of
//! mistake.

use std::fs;

use tma_codegen::protocol::{Budget, Verdict, judge};

use crate::tree::{root, sources};

/// `TMA_WRONG=name` prints the verdicts on the kernels whose names begin with `name`.
#[test]
fn no_wrong_kernel_is_proved() {
    let wanted = std::env::var("TMA_WRONG").ok();
    let (mut passed, mut refused, mut all) = (vec![], 0, 0);
    for path in sources(&root().join("codegen/back/tests/protocol/wrong_kernels")) {
        let name = path.display().to_string();
        let source = fs::read_to_string(&path).expect("a source file");
        let accepted = tma_codegen::check(&name, &source).unwrap_or_else(|failure| panic!("{failure}"));
        for checked in accepted.kernels {
            let kernel = checked.kernel.kernel();
            for budget in [Budget::MACRO, Budget::REPORT] {
                let verdict = judge(&checked.kernel, budget).verdict;
                if wanted.as_ref().is_some_and(|wanted| kernel.name.starts_with(wanted)) {
                    println!("{}: {verdict:?}", kernel.name);
                }
                all += 1;
                match verdict {
                    Verdict::Broken(_) => refused += 1,
                    Verdict::NotDecided(_) => {}
                    Verdict::Proved | Verdict::CheckedUpTo(_) => {
                        passed.push(format!("{name}: {}, {budget:?}: {verdict:?}", kernel.name));
                    }
                }
            }
        }
    }
    println!("{refused} of {all} are refused");
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}
