//! GEMMs of few rows, which memory limits: which of them the kernel computes, and its arguments.

mod choose;
pub mod kernel;
pub mod row_by_e4m3;

use super::choose::{Choice, Problem, k_shift_of_stream, nanoseconds};
use super::edge::flat;
use super::extents::{batch, batch_mut};
use super::instances::FullKernels;
use super::launch::Operands;
use super::{GemmError, GemmOptions, Sums};
use crate::dependent::dependent;
use crate::model::Gate;
use choose::{FewRows, instruction_rows};
use kernel::streamed::{BN, PANEL, multiply};
use row_by_e4m3::split::{self, WIDE_PANEL};
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
        let kernel = multiply::find(key_of(few.rows, 1))?;
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
            matrices_in_panels(b)?.l2_promotion(L2Promotion::B256),
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

/// Returns the key of the kernel for so many rows of A, and matrices of B.
fn key_of(rows: u32, matrices: u32) -> multiply::Key {
    multiply::Key { bm: rows, matrices }
}

/// Few rows of A by two matrices, one of which is a gate: A is M × K, B is 2 × N × K.
#[derive(Debug)]
pub(super) struct GatedRows<'a, T: Scalar> {
    pub(super) a: TensorView<'a, T, 2>,
    pub(super) b: TensorView<'a, T, 3>,
    pub(super) c: TensorViewMut<'a, T, 2>,
    pub(super) gate: Gate,
}

impl<T: Scalar> GatedRows<'_, T> {
    /// Returns whether the kernel supports A and B. Columns of C are contiguous, since threads
    /// store single elements.
    pub(super) fn is_supported(&self) -> bool {
        let [m, k] = self.a.shape();
        let Ok(a) = batch(self.a) else { return false };
        k > 0
            && instruction_rows(m).is_some()
            && is_in_panels(&a, PANEL)
            && is_in_panels(&self.b, PANEL)
            && matrices_in_panels(self.b).is_ok() // not of foreign memory with gaps
            && panels_of_rows(a).is_ok()
    }

    /// Queues the kernel.
    pub(super) fn queue(self, on: &impl LaunchOn, constant_b: bool) -> Result<(), GemmError> {
        let Self { a, b, c, gate } = self;
        let ([m, k], [_, n, _], [c_row, _]) = (a.shape(), b.shape(), c.strides());
        let kernel = instruction_rows(m).and_then(|rows| multiply::find::<T, T>(key_of(rows, 2)));
        let Some(kernel) = kernel else {
            unreachable!("`Product<T>` is implemented for the types of the instances")
        };
        let problem = Problem { extents: [m, 2 * n, k], batches: 1, bytes: [size_of::<T>(); 2] };
        let c = flat(on.device(), batch_mut(c)?)?;
        Ok(kernel.launch(
            dependent(on),
            Grid::x((n as u32).div_ceil(BN / 2).min(on.device().multiprocessors())),
            panels_of_rows(batch(a)?)?.l2_promotion(L2Promotion::B256),
            matrices_in_panels(b)?.l2_promotion(L2Promotion::B256),
            c,
            m as u32,
            n as u32,
            k as u32 / PANEL,
            k_shift_of_stream(&problem),
            constant_b,
            FETCHED,
            c_row as u64,
            1.0,
            0.0,
            None::<TensorView<'_, T, 1>>,
            None::<TensorView<'_, T, 1>>,
            gate.form(),
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
            && key_of_row(k).is_some()
            && is_in_panels(&self.a, WIDE_PANEL)
            && is_in_panels(&self.b, WIDE_PANEL)
            && panels(self.b, WIDE_PANEL).is_ok()
            && elements(self.b).is_ok() // not of foreign memory with gaps
            && self.a.as_ptr().is_multiple_of(16) // a bulk copy loads it
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
        let ([_, n, k], [_, row, _]) = (b.shape(), b.strides());
        let Some(kernel) = key_of_row(k).and_then(split::multiply::find::<C>) else {
            unreachable!("`Promoted` is implemented for the types of the instances")
        };
        let problem = Problem { extents: [1, n, k], batches: 1, bytes: [1, size_of::<C>()] };
        Ok(kernel.launch(
            dependent(on),
            Grid::x((n as u32).div_ceil(BN).min(on.device().multiprocessors())),
            a.with_strides([k], [1])?,
            panels(b, WIDE_PANEL)?.l2_promotion(L2Promotion::B256),
            elements(b)?,
            row as u64,
            c,
            scales,
            n as u32,
            k as u32,
            k_shift_of_stream(&problem),
            constant_b,
        )?)
    }
}

/// Returns the key of the kernel that multiplies a row of so many elements by `e4m3`, if there is
/// one.
fn key_of_row(k: usize) -> Option<split::multiply::Key> {
    match k {
        0 => None,
        1..=4096 => Some(split::multiply::Key { panels_a: 32, stages: 7 }),
        4097..=16384 => Some(split::multiply::Key { panels_a: 128, stages: 5 }),
        _ => None,
    }
}

/// Returns a matrix as panels of so many of its columns: panels × rows × columns.
fn panels<T: Scalar>(matrix: TensorView<'_, T, 3>, columns: u32) -> Result<TensorView<'_, T, 3>, Error> {
    let ([_, rows, k], [_, row, _], columns) = (matrix.shape(), matrix.strides(), columns as usize);
    matrix.with_strides([k / columns, rows, columns], [columns, row, 1])
}

/// Returns a matrix as its memory, from the first element to the last.
fn elements<T: Scalar>(matrix: TensorView<'_, T, 3>) -> Result<TensorView<'_, T, 1>, Error> {
    let ([_, rows, k], [_, row, _]) = (matrix.shape(), matrix.strides());
    matrix.with_strides([rows.saturating_sub(1) * row + k], [1])
}

/// Returns matrices of B as panels of their columns: panels × matrices × rows × columns.
fn matrices_in_panels<T: Scalar>(b: TensorView<'_, T, 3>) -> Result<TensorView<'_, T, 4>, Error> {
    let ([matrices, rows, k], [matrix, row, _], columns) = (b.shape(), b.strides(), PANEL as usize);
    b.with_strides([k / columns, matrices, rows, columns], [columns, matrix, row, 1])
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
        && matrices_in_panels(operands.b).is_ok() // not of foreign memory with gaps
        && panels_of_rows(operands.a).is_ok()
        && options.sums == Sums::Exact
        && options.choice.is_none()
}
