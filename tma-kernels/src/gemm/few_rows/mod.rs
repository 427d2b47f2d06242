//! GEMMs of few rows, which memory limits: which of them the kernel computes, and its arguments.

mod choose;
pub mod exchange;
pub mod kernel;

use super::choose::{Choice, Problem, k_shift_of_stream, nanoseconds};
use super::edge::flat;
use super::instances::FullKernels;
use super::launch::Operands;
use super::{GemmError, GemmOptions, Sums};
use crate::dependent::dependent;
use choose::FewRows;
use kernel::exchanged::{BN, multiply};
use tma_runtime::Scalar;
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

/// An instance of the kernel, and the division of its sums.
#[derive(Debug)]
pub(super) struct Instance<AB, C> {
    kernel: multiply::Launcher<'static, AB, C>,
    few: FewRows,
}

impl<AB: Scalar, C: Scalar> Instance<AB, C> {
    /// Returns the instance for a GEMM, if there is one that should take less time than the
    /// `other` choice.
    pub(super) fn find(problem: &Problem, other: Option<Choice>, multiprocessors: u32) -> Option<Self> {
        let few = FewRows::of(problem, multiprocessors)?;
        let kernel = multiply::find(multiply::Key { bm: few.rows })?;
        let is_faster = |other| few.nanoseconds <= nanoseconds(problem, other, multiprocessors);
        other.is_none_or(is_faster).then_some(Self { kernel, few })
    }

    /// Queues a GEMM of these extents, of operands and options that are [supported](supports).
    pub(super) fn queue<const N: usize>(
        self,
        on: &impl LaunchOn,
        problem: &Problem,
        operands: Operands<'_, AB, C>,
        options: GemmOptions<'_, C, N>,
    ) -> Result<(), GemmError> {
        let Operands { a, b, c } = operands;
        let FewRows { parts, .. } = self.few;
        let [m, n, k] = problem.extents.map(|extent| extent as u32);
        let [_, c_row, _] = c.strides();
        let c = flat(on.device(), c)?;
        Ok(self.kernel.launch(
            dependent(on).cluster([parts, 1, 1]),
            Grid::x(n.div_ceil(BN) * parts),
            a.l2_promotion(L2Promotion::B256),
            b.l2_promotion(L2Promotion::B256),
            c,
            m,
            n,
            k,
            k_shift_of_stream(problem),
            c_row as u64,
            options.alpha,
            options.beta,
            options.residual,
            options.bias,
            options.activation as u32,
        )?)
    }
}

/// Returns whether the kernel supports the layouts and options of a GEMM: a single one, of matrices
/// that have K along their rows, by the library's own functions, and without a choice.
pub(super) fn supports<AB: Scalar, C: Scalar, const N: usize>(
    operands: &Operands<'_, AB, C>,
    full: &FullKernels<'_>,
    options: &GemmOptions<'_, C, N>,
) -> bool {
    let ([batches, _, n], [_, _, step]) = (operands.c.shape(), operands.c.strides());
    let is_own = match full {
        FullKernels::Own(_) => true,
        FullKernels::Epilogue(_) | FullKernels::Picked(_) => false,
    };
    let is_contiguous = n == 1 || step == 1; // threads store single elements
    is_own
        && is_contiguous
        && batches == 1
        && !options.transpose_a
        && options.transpose_b
        && options.sums == Sums::Exact
        && options.choice.is_none()
}
