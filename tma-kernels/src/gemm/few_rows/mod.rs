//! GEMMs of few rows, which memory limits: which of them the kernel computes, and its arguments.

mod choose;
pub mod kernel;

use super::choose::{Choice, Problem, k_shift_of_stream, nanoseconds};
use super::edge::flat;
use super::instances::FullKernels;
use super::launch::Operands;
use super::{GemmError, GemmOptions, Sums};
use crate::dependent::dependent;
use choose::FewRows;
use kernel::streamed::{BN, PANEL, multiply};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar};

/// Steps of B that a block fetches into the L2 cache while the previous kernel still runs.
const FETCHED: u32 = 5;

/// An instance of the kernel.
#[derive(Debug)]
pub(super) struct Instance<AB, C> {
    kernel: multiply::Launcher<'static, AB, C>,
}

impl<AB: Scalar, C: Scalar> Instance<AB, C> {
    /// Returns the instance for a GEMM, if there is one that should take less time than the
    /// `other` choice.
    pub(super) fn find(problem: &Problem, other: Option<Choice>, multiprocessors: u32) -> Option<Self> {
        let few = FewRows::of(problem, multiprocessors)?;
        let kernel = multiply::find(multiply::Key { bm: few.rows })?;
        let is_faster = |other| few.nanoseconds <= nanoseconds(problem, other, multiprocessors);
        other.is_none_or(is_faster).then_some(Self { kernel })
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
        let [m, n, k] = problem.extents.map(|extent| extent as u32);
        let [_, c_row, _] = c.strides();
        let c = flat(on.device(), c)?;
        let blocks = n.div_ceil(BN).min(on.device().multiprocessors());
        Ok(self.kernel.launch(
            dependent(on),
            Grid::x(blocks),
            panels(a)?.l2_promotion(L2Promotion::B256),
            panels(b)?.l2_promotion(L2Promotion::B256),
            c,
            m,
            n,
            k / PANEL,
            k_shift_of_stream(problem),
            options.constant_b,
            FETCHED,
            c_row as u64,
            options.alpha,
            options.beta,
            options.residual,
            options.bias,
            options.activation as u32,
        )?)
    }
}

/// Returns a matrix as panels of its columns: panels × rows × columns.
fn panels<T: Scalar>(matrix: TensorView<'_, T, 3>) -> Result<TensorView<'_, T, 3>, Error> {
    let ([_, rows, k], [_, row, _], panel) = (matrix.shape(), matrix.strides(), PANEL as usize);
    matrix.with_strides([k / panel, rows, panel], [panel, row, 1])
}

/// Returns whether the kernel supports the layouts and options of a GEMM: a single one, of matrices
/// that have whole panels along their rows, by the library's own functions, and without a choice.
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
    let is_in_panels =
        |shape: [usize; 3], strides: [usize; 3]| strides[2] == 1 && shape[2].is_multiple_of(PANEL as usize);
    let is_contiguous = n == 1 || step == 1; // threads store single elements
    is_own
        && is_contiguous
        && batches == 1
        && !options.transpose_a
        && options.transpose_b
        && is_in_panels(operands.a.shape(), operands.a.strides())
        && is_in_panels(operands.b.shape(), operands.b.strides())
        && options.sums == Sums::Exact
        && options.choice.is_none()
}
