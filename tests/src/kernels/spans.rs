//! Spans that a kernel names: nested, and left in every way.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;

/// The cases of this module.
pub const CASES: &[Case] = &[Case { name: "spans::counts", run: counts }];

/// The number that each warp begins with.
pub const NUMBERS: [u32; 2] = [6, 1];

#[tma_module]
mod kernels {
    use tma_runtime::prelude::*;

    /// Returns half of an even number.
    #[tma_device]
    fn next_of_even(number: u32) -> u32 {
        trace_span!("even");
        if number == 2 {
            return 1;
        }
        number / 2
    }

    /// Counts the steps of the Collatz sequence from each warp's number to 1.
    #[tma_kernel(threads = 64)]
    pub fn spans(numbers: Global<u32>, counts: Global<u32>) {
        trace_span!("count");
        let mut number = numbers.get(warp_idx());
        let mut count = 0u32;
        loop {
            trace_span!("step");
            if number == 1 {
                break;
            }
            count += 1;
            if number % 2 == 1 {
                trace_span!("odd");
                number = 3 * number + 1;
                continue;
            }
            number = next_of_even(number);
        }
        counts.set(thread_idx().x, count);
        if count == 0 {
            return;
        }
        trace_span!("again");
        counts.set(thread_idx().x, count);
    }
}
pub use kernels::spans;

/// Returns how often each warp has each span: 6, 3, 10, 5, 16, 8, 4, 2, 1; and 1 alone.
pub fn wanted() -> Vec<(u32, &'static str, usize)> {
    let first = [("again", 1), ("count", 1), ("even", 6), ("odd", 2), ("step", 9)];
    let second = [("count", 1), ("step", 1)];
    let all = first.map(|(name, times)| (0, name, times)).into_iter();
    all.chain(second.map(|(name, times)| (1, name, times))).collect()
}

fn counts(device: &Device, _: &Options) -> anyhow::Result<()> {
    let numbers = device.tensor(&NUMBERS, [NUMBERS.len()])?;
    let mut counts = device.zeros::<u32, 1>([64])?;
    spans::launch(device, 1, &numbers, &mut counts)?;
    same("counts", &counts.to_vec()?, &[[8; 32], [0; 32]].concat())
}
