//! The protocol of barriers: right kernels are not refused, and wrong ones are.

mod assumptions;
mod banks;
mod interleavings;
mod loops;
mod mutants;
#[allow(unreachable_pub, reason = "a module of another package, which is public there")]
#[path = "../../../../tests/src/mutation/ir/mod.rs"]
mod operators;
mod outlines;
mod producer_warps;
mod right;
mod sound;
mod statements;
mod teams;
mod tree;
mod undecided;
mod unproved;
mod vacuous;
mod wrong;

use tma_codegen::protocol::{Budget, Verdict, judge};

/// Returns the verdict on the only kernel of a text.
fn verdict(source: &str) -> Verdict {
    let accepted =
        tma_codegen::check("kernel.rs", source).unwrap_or_else(|failure| panic!("{failure}\n{source}"));
    let [checked] = accepted.kernels.as_slice() else { panic!("there is one kernel in\n{source}") };
    judge(&checked.kernel, Budget::REPORT).verdict
}
