//! Search for the missing step: of the changes that a user might make to a wrong kernel, the first
//! that makes it right.
//!
//! Nothing is guessed. Each candidate is applied to a copy of the kernel, which is then checked and
//! judged like the kernel itself. Only wrong kernels are searched, within a budget of steps.

mod candidates;
mod edit;
mod moves;
mod openings;

use tma_front::check::{CheckedKernel, check};
use tma_front::diag::mistake::{Protocol, Repair};
use tma_front::diag::{Diagnostic, Sink};
use tma_front::ir::Kernel;
use tma_model::rule::Rule;

use self::candidates::{Candidate, candidates};
use super::explore::{Budget, Judgement, Verdict, judge};
use super::finding::UndecidedReason;

/// The most changes that are tried.
const MAX_CANDIDATES: usize = 48;
/// The budget for all of them, as a multiple of the kernel's own.
const BUDGETS: u64 = 6;

/// Adds the missing step to a violation of a kernel, if the search finds one.
pub fn with_missing_step(kernel: &CheckedKernel, found: Box<Diagnostic>, budget: Budget) -> Box<Diagnostic> {
    let Some(protocol) = found.protocol() else { return found };
    match search(kernel.kernel(), protocol, budget) {
        Some(repair) => {
            // An overrun because of a wait with the wrong parity is reported at that wait.
            let at = repair.wrong_parity().filter(|_| protocol.rule == Rule::Overrun);
            let protocol = Protocol { repair: Some(repair), ..protocol.clone() };
            Box::new(Diagnostic::new(protocol, at.unwrap_or(found.span)))
        }
        None => found,
    }
}

fn search(kernel: &Kernel, found: &Protocol, budget: Budget) -> Option<Repair> {
    let mut left = budget.0.saturating_mul(BUDGETS);
    let all = candidates(kernel, found).into_iter().take(MAX_CANDIDATES);
    let mut second = None;
    for Candidate { edit, repair } in all {
        let Ok(changed) = check(edit::applied(kernel, &edit), &mut Sink::default()) else { continue };
        let Judgement { verdict, steps, .. } = judge(&changed, Budget(budget.0.min(left)));
        left = left.saturating_sub(steps);
        match verdict {
            Verdict::Proved | Verdict::CheckedUpTo(_) => return Some(repair),
            // This is as right as the checker can tell.
            Verdict::NotDecided(undecided) if undecided.iter().all(|case| is_harmless(case.reason)) => {
                second = second.or(Some(repair));
            }
            Verdict::NotDecided(_) | Verdict::Broken(_) => {}
        }
        if left == 0 {
            break;
        }
    }
    second
}

/// Whether a reason undecided says nothing about the violation.
fn is_harmless(reason: UndecidedReason) -> bool {
    match reason {
        UndecidedReason::Counting
        | UndecidedReason::Poll
        | UndecidedReason::Peers
        | UndecidedReason::Maps
        | UndecidedReason::Unwritten
        | UndecidedReason::SameBytes
        | UndecidedReason::Divergence
        | UndecidedReason::Round
        | UndecidedReason::Grid
        | UndecidedReason::GridCounter
        | UndecidedReason::Elected
        | UndecidedReason::Global
        | UndecidedReason::OtherBlocks
        | UndecidedReason::Registers => true,
        UndecidedReason::Operand
        | UndecidedReason::Condition
        | UndecidedReason::Address
        | UndecidedReason::Data
        | UndecidedReason::Infeasible
        | UndecidedReason::Launch
        | UndecidedReason::Budget
        | UndecidedReason::Size
        | UndecidedReason::Cluster
        | UndecidedReason::Undefined
        | UndecidedReason::Ptx
        | UndecidedReason::NoEnd
        | UndecidedReason::Atomics
        | UndecidedReason::WaitLoop
        | UndecidedReason::Trusted => false,
    }
}
