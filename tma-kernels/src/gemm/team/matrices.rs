//! The matrices of a GEMM on a team: A, B and C of each rank.

use super::TeamElement;
use crate::gemm::{GemmError, GemmOptions, gemm};
use tma_runtime::launch::{MapOptions, WithOptions};
use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar, TeamError};

/// The matrices of all ranks, which have `N` dimensions.
pub(super) struct Matrices<'a, T: Scalar, const N: usize> {
    pub(super) a: Vec<TensorView<'a, T, N>>,
    pub(super) b: Vec<TensorView<'a, T, N>>,
    pub(super) c: Vec<TensorViewMut<'a, T, N>>,
}

impl<'a, T: TeamElement> Matrices<'a, T, 2> {
    /// Takes the views of arguments, without the options of their maps: one for each rank.
    pub(super) fn of(
        team: &Team,
        a: Vec<(TensorView<'a, T, 2>, MapOptions)>,
        b: Vec<(TensorView<'a, T, 2>, MapOptions)>,
        c: Vec<(TensorViewMut<'a, T, 2>, MapOptions)>,
    ) -> Result<Self, Error> {
        let (a, b, c) =
            (views(a, "matrices A", team)?, views(b, "matrices B", team)?, views(c, "matrices C", team)?);
        Ok(Self { a, b, c })
    }

    /// Checks that the matrices of all ranks have these shapes. B has the columns of C, and a row for
    /// each column of A, or the reverse.
    pub(super) fn have_shapes(
        &self,
        of_a: [usize; 2],
        of_c: [usize; 2],
        transpose_b: bool,
    ) -> Result<(), GemmError> {
        let [n, k] = [of_c[1], of_a[1]];
        have_shape("A", self.a.iter().map(TensorView::shape), of_a)?;
        have_shape("B", self.b.iter().map(TensorView::shape), if transpose_b { [n, k] } else { [k, n] })?;
        have_shape("C", self.c.iter().map(TensorViewMut::shape), of_c)
    }

    /// Returns the rows of A and of C as batches with a matrix for each of so many parts.
    pub(super) fn in_parts(self, of_a: usize, of_c: usize) -> Result<Matrices<'a, T, 3>, Error> {
        let as_batches = |views: Vec<TensorView<'a, T, 2>>, parts| {
            let views = views.into_iter().map(|view| {
                let (shape, strides) = layout(view.shape(), view.strides(), parts);
                view.with_strides(shape, strides)
            });
            views.collect::<Result<_, _>>()
        };
        let c = self.c.into_iter().map(|view| {
            let (shape, strides) = layout(view.shape(), view.strides(), of_c);
            view.with_strides(shape, strides)
        });
        Ok(Matrices {
            a: as_batches(self.a, of_a)?,
            b: as_batches(self.b, 1)?,
            c: c.collect::<Result<_, _>>()?,
        })
    }

    /// Queues the GEMM of each rank for a K of 0, which makes C zero.
    pub(super) fn multiply_nothing(self, team: &Team, transpose_b: bool) -> Result<(), GemmError> {
        for (rank, ((a, b), c)) in self.a.into_iter().zip(self.b).zip(self.c).enumerate() {
            let a = a.with_strides([c.shape()[0], 0], [1, 1])?;
            gemm(team.stream(rank)?, a, b, c, GemmOptions { transpose_b, ..GemmOptions::default() })?;
        }
        Ok(())
    }
}

/// Adds the option of operands' maps: the L2 cache reads 256 bytes at a time.
pub(super) fn promoted<T: Scalar>(
    views: Vec<TensorView<'_, T, 3>>,
) -> Vec<WithOptions<TensorView<'_, T, 3>>> {
    views.into_iter().map(|view| view.l2_promotion(L2Promotion::B256)).collect()
}

fn views<V>(of_ranks: Vec<(V, MapOptions)>, what: &'static str, team: &Team) -> Result<Vec<V>, Error> {
    let (found, ranks) = (of_ranks.len(), team.ranks());
    match found == ranks {
        true => Ok(of_ranks.into_iter().map(|(view, _)| view).collect()),
        false => Err(TeamError::Count { what, found, ranks }.into()),
    }
}

fn have_shape(
    matrix: &'static str,
    shapes: impl IntoIterator<Item = [usize; 2]>,
    wanted: [usize; 2],
) -> Result<(), GemmError> {
    for (rank, found) in shapes.into_iter().enumerate() {
        if found != wanted {
            return Err(GemmError::Team { matrix, rank, found, wanted });
        }
    }
    Ok(())
}

fn layout(shape: [usize; 2], strides: [usize; 2], parts: usize) -> ([usize; 3], [usize; 3]) {
    let ([rows, columns], [row, column]) = (shape, strides);
    let m = rows / parts;
    ([parts, m, columns], [m.saturating_mul(row), row, column])
}
