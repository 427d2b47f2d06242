//! Search for the missing step: of the changes that a user might make to a wrong kernel, the first
//! that makes it right.
//!
//! Nothing is guessed. Each candidate is applied to a copy of the kernel, which is then checked and
//! judged like the kernel itself. Only wrong kernels are searched, within a budget of steps.

mod candidates;
mod edit;
mod moves;
mod places;

use self::candidates::{Candidate, candidates};
use super::explore::{Budget, Judgement, Verdict, judge};
use super::finding::Why;
use crate::check::{CheckedKernel, check};
use crate::diag::mistake::{Protocol, Repair};
use crate::diag::{Diagnostic, Sink};
use crate::ir::Kernel;

/// The most changes that are tried.
const MOST_CANDIDATES: usize = 48;
/// The budget for all of them, as a multiple of the kernel's own.
const BUDGETS: u64 = 6;

/// Adds the missing step to a violation of a kernel, if the search finds one.
pub fn with_missing_step(kernel: &CheckedKernel, found: Box<Diagnostic>, budget: Budget) -> Box<Diagnostic> {
    let Some(protocol) = found.protocol() else { return found };
    match search(kernel.kernel(), protocol, budget) {
        Some(repair) => {
            let protocol = Protocol { repair: Some(repair), ..protocol.clone() };
            Box::new(Diagnostic::new(protocol, found.span))
        }
        None => found,
    }
}

fn search(kernel: &Kernel, found: &Protocol, budget: Budget) -> Option<Repair> {
    let mut left = budget.0.saturating_mul(BUDGETS);
    let all = candidates(kernel, found).into_iter().take(MOST_CANDIDATES);
    let mut second = None;
    for Candidate { edit, repair } in all {
        let Ok(changed) = check(edit::applied(kernel, &edit), &mut Sink::default()) else { continue };
        let Judgement { verdict, steps, .. } = judge(&changed, Budget(budget.0.min(left)));
        left = left.saturating_sub(steps);
        match verdict {
            Verdict::Proved | Verdict::CheckedUpTo(_) => return Some(repair),
            // This is as right as the checker can tell.
            Verdict::NotDecided(doubts) if doubts.iter().all(|doubt| is_harmless(doubt.why)) => {
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
fn is_harmless(why: Why) -> bool {
    match why {
        Why::Counting
        | Why::Poll
        | Why::Maps
        | Why::Unwritten
        | Why::Together
        | Why::Cut
        | Why::Round
        | Why::Grid
        | Why::GridCounter
        | Why::Elected
        | Why::Global
        | Why::Blocks
        | Why::Registers => true,
        Why::Operand
        | Why::Condition
        | Why::Address
        | Why::Data
        | Why::Infeasible
        | Why::Launch
        | Why::Budget
        | Why::Size
        | Why::Cluster
        | Why::Undefined
        | Why::NoEnd
        | Why::Atomics
        | Why::Waits
        | Why::Trusted => false,
    }
}
