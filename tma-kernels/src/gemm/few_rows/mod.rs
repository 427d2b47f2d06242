//! GEMMs of few rows, which memory limits: which of them the kernel computes, and its arguments.

mod choose;
pub mod kernel;
pub mod widened;

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
use widened::converted::{self, MOST_COLUMNS, WIDE_PANEL};

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
            panels_of_rows(a)?.l2_promotion(L2Promotion::B256),
            panels(b, PANEL)?.l2_promotion(L2Promotion::B256),
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

/// A row of `bf16` by weights of `e4m3`: A is 1 × 1 × K, B is 1 × N × K.
#[derive(Debug)]
pub(super) struct RowByE4m3<'a, C: Scalar> {
    pub(super) a: TensorView<'a, bf16, 3>,
    pub(super) b: TensorView<'a, e4m3, 3>,
    pub(super) scales: Option<TensorView<'a, f32, 2>>,
    pub(super) c: TensorViewMut<'a, C, 1>,
}

impl<C: Scalar> RowByE4m3<'_, C> {
    /// Returns whether the kernel supports the operands.
    pub(super) fn is_supported(&self) -> bool {
        let [_, m, k] = self.a.shape();
        m == 1
            && (1..=MOST_COLUMNS as usize).contains(&k)
            && is_in_panels(&self.a, WIDE_PANEL)
            && is_in_panels(&self.b, WIDE_PANEL)
            && panels(self.b, WIDE_PANEL).is_ok() // not of foreign memory with gaps
            && self.a.as_ptr().is_multiple_of(16) // threads load eight elements at a time
    }

    /// Returns the expected duration in nanoseconds.
    pub(super) fn nanoseconds(&self, multiprocessors: u32) -> f64 {
        let [_, n, k] = self.b.shape();
        // A is not read again for each unit.
        choose::nanoseconds([1, n, k], [0, 1], multiprocessors)
    }

    /// Queues the kernel.
    pub(super) fn queue(self, on: &impl LaunchOn, constant_b: bool) -> Result<(), GemmError> {
        let Self { a, b, scales, c } = self;
        let [_, n, k] = b.shape();
        let Some(kernel) = converted::multiply::find::<C>(converted::multiply::Key {}) else {
            unreachable!("`Promoted` is implemented for the types of the instances")
        };
        let problem = Problem { extents: [1, n, k], batches: 1, bytes: [1, size_of::<C>()] };
        Ok(kernel.launch(
            dependent(on),
            Grid::x((n as u32).div_ceil(BN).min(on.device().multiprocessors())),
            a.with_strides([k], [1])?,
            panels(b, WIDE_PANEL)?.l2_promotion(L2Promotion::B256),
            c,
            scales,
            n as u32,
            k as u32,
            k_shift_of_stream(&problem),
            constant_b,
        )?)
    }
}

/// Returns a matrix as panels of so many of its columns: panels × rows × columns.
fn panels<T: Scalar>(matrix: TensorView<'_, T, 3>, columns: u32) -> Result<TensorView<'_, T, 3>, Error> {
    let ([_, rows, k], [_, row, _], columns) = (matrix.shape(), matrix.strides(), columns as usize);
    matrix.with_strides([k / columns, rows, columns], [columns, row, 1])
}

/// Returns A as panels of its columns. A single row is one panel, with a row for each of its own.
fn panels_of_rows<T: Scalar>(a: TensorView<'_, T, 3>) -> Result<TensorView<'_, T, 3>, Error> {
    let ([_, m, k], columns) = (a.shape(), PANEL as usize);
    if m == 1 { a.with_strides([1, k / columns, columns], [k, columns, 1]) } else { panels(a, PANEL) }
}

/// Returns whether rows are whole panels of so many columns.
fn is_in_panels<T: Scalar>(matrix: &TensorView<'_, T, 3>, columns: u32) -> bool {
    matrix.strides()[2] == 1 && matrix.shape()[2].is_multiple_of(columns as usize)
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
    let is_contiguous = n == 1 || step == 1; // threads store single elements
    is_own
        && is_contiguous
        && batches == 1
        && !options.transpose_a
        && options.transpose_b
        && is_in_panels(&operands.a, PANEL)
        && is_in_panels(&operands.b, PANEL)
        && panels(operands.b, PANEL).is_ok() // not of foreign memory with gaps
        && panels_of_rows(operands.a).is_ok()
        && options.sums == Sums::Exact
        && options.choice.is_none()
}
