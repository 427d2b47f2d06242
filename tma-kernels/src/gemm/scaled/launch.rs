//! The arguments of the kernel for few rows.

use tma_runtime::Error;
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use super::super::GemmError;
use super::super::edge::flat;
use super::Promoted;
use super::choose::FewRows;
use super::few_rows::exchanged::promoted;
use crate::dependent::dependent;

/// The scales of groups of matrices.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinedUp<'a> {
    a: TensorView<'a, f32, 3>,
    /// Strides of A's scales: of groups, rows and blocks of K.
    strides: [u32; 3],
    b: TensorView<'a, f32, 3>,
}

impl<'a> LinedUp<'a> {
    /// Returns scales of A whose rows or columns are contiguous, and scales of B, as the kernel
    /// reads them.
    pub(super) fn of(a: TensorView<'a, f32, 3>, b: TensorView<'a, f32, 3>) -> Result<Self, Error> {
        let ([groups, rows, columns], strides) = (a.shape(), a.strides());
        let of_group = rows * columns;
        let is_by_columns =
            strides[1..] == [1, rows] && columns > 1 && (groups == 1 || strides[0] == of_group);
        let (a, strides) = match is_by_columns {
            true => (a.with_strides([groups, columns, rows], [of_group, rows, 1])?, [of_group, 1, rows]),
            false => (a, [of_group, columns, 1]),
        };
        Ok(Self { a, strides: strides.map(|stride| stride as u32), b })
    }
}

/// Groups of matrices, whose extents match.
pub(super) struct Groups<'a, C: Scalar> {
    pub(super) a: TensorView<'a, e4m3, 3>,
    pub(super) b: TensorView<'a, e4m3, 3>,
    pub(super) scales: Option<LinedUp<'a>>,
    /// The rows of each group, if they are not all of A's.
    pub(super) counts: Option<TensorView<'a, u32, 1>>,
    pub(super) c: TensorViewMut<'a, C, 3>,
    pub(super) k: usize,
}

/// Queues the kernel. Columns of C must be contiguous.
pub(super) fn queue<C: Promoted>(
    on: &impl LaunchOn,
    groups: Groups<'_, C>,
    few: FewRows,
) -> Result<(), GemmError> {
    let Groups { a, b, scales, counts, c, k } = groups;
    let ([count, m, n], [c_group, c_row, _]) = (c.shape(), c.strides());
    let key = promoted::Key { bm: few.rows, warpgroups: few.warpgroups };
    let Some(kernel) = promoted::find::<C>(key) else {
        unreachable!("`Promoted` is implemented for the types of the instances, which have {key:?}")
    };
    let FewRows { rows, warpgroups, parts, .. } = few;
    // Extents are below 2^31, and tiles few enough, which the caller has checked.
    let across = n.div_ceil(64 * warpgroups as usize) as u32;
    let grid = Grid::new(across * parts, m.div_ceil(rows as usize) as u32, count as u32);
    let [a_group, a_row, a_step] = scales.map_or([0; 3], |scales| scales.strides);
    let c = flat(on.device(), c)?;
    Ok(kernel.launch(
        dependent(on).cluster([parts, 1, 1]),
        grid,
        a.l2_promotion(L2Promotion::B256),
        b.l2_promotion(L2Promotion::B256),
        c,
        scales.map(|scales| scales.a),
        scales.map(|scales| scales.b),
        counts,
        m as u32,
        n as u32,
        k as u32,
        a_group,
        a_row,
        a_step,
        c_group as u64,
        c_row as u64,
    )?)
}
