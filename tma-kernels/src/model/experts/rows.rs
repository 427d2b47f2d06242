//! Rows of tokens in the order of experts, and their sums.

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::moves::rows::{COPIED, collect, distribute};
use crate::dependent::dependent;
use crate::model::rows::{Division, Rows, Strides, Tile, fits, flat, flat_mut, without_instance};
use crate::model::{ModelElement, ModelError};

/// Queues copies of each token's row of `x` for its choices: `out[rows[token, choice]] = x[token]`.
///
/// `x` is tokens × columns, `rows` is tokens × choices, as [`route`](super::route) computes it, and
/// `out` has a row for each choice. The elements of rows must be adjacent. A row that `out` does
/// not have is left out. Rows that begin and end at multiples of 16 bytes are faster. A call
/// allocates nothing and does not wait, and `rows` is read when the kernel runs.
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn gather<T: ModelElement>(
    on: &impl LaunchOn,
    x: impl MapArg<T, 2>,
    rows: impl MapArg<u32, 2>,
    mut out: impl MapArgMut<T, 2>,
) -> Result<(), ModelError> {
    let (x, rows, out) = (x.view(), rows.view(), out.view_mut());
    let moved = Moved::of(x.shape(), rows, "out", out.shape())?;
    let of_x = Strides::of("x", &x.shape(), &x.strides())?;
    let [out_rows, _] = out.shape();
    let of_out = Strides::of("out", &out.shape(), &out.strides())?;
    if moved.is_empty() {
        return Ok(());
    }
    let tile = Tile::of_elements::<T>(moved.tokens, &[of_x, of_out], COPIED);
    let division = Division::of::<T>(tile, moved.tokens);
    division.check(&x.shape())?;
    let shape = x.shape();
    let key = distribute::Key { wide: tile.wide };
    distribute::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, division.parts, 1),
        flat(x)?,
        flat(rows)?,
        flat_mut(out)?,
        moved.tokens.count,
        moved.tokens.columns,
        moved.choices,
        division.width,
        of_x.inner,
        moved.of_rows.inner,
        distance(out_rows, of_out, moved.tokens),
    )?;
    Ok(())
}

/// Queues the weighted sum of the rows of each token's choices:
/// `out[token] = Σ weights[token, choice] · y[rows[token, choice]]`.
///
/// `y` has a row for each choice, `rows` and `weights` are tokens × choices, as
/// [`route`](super::route) computes them, and `out` is tokens × columns. The elements of rows must
/// be adjacent. A row that `y` does not have counts as zeros. The sum begins with 0, takes the
/// choices in their order by fused multiplications and additions in `f32`, and is rounded once.
/// Rows that begin and end at multiples of 16 bytes are faster. A call allocates nothing and does
/// not wait.
///
/// # Errors
///
/// Those of [`gather`].
pub fn combine<T: ModelElement>(
    on: &impl LaunchOn,
    y: impl MapArg<T, 2>,
    rows: impl MapArg<u32, 2>,
    weights: impl MapArg<f32, 2>,
    mut out: impl MapArgMut<T, 2>,
) -> Result<(), ModelError> {
    let (y, rows, weights, out) = (y.view(), rows.view(), weights.view(), out.view_mut());
    fits("weights", &weights.shape(), &rows.shape())?;
    let moved = Moved::of(out.shape(), rows, "y", y.shape())?;
    let [y_rows, _] = y.shape();
    let of_y = Strides::of("y", &y.shape(), &y.strides())?;
    let of_weights = Strides::of("weights", &weights.shape(), &weights.strides())?;
    let of_out = Strides::of("out", &out.shape(), &out.strides())?;
    if moved.is_empty() {
        return Ok(());
    }
    let tile = Tile::of_elements::<T>(moved.tokens, &[of_y, of_out], 1);
    let division = Division::of::<T>(tile, moved.tokens);
    division.check(&out.shape())?;
    let shape = out.shape();
    let key = collect::Key { wide: tile.wide };
    collect::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, division.parts, 1),
        flat(y)?,
        flat(rows)?,
        flat(weights)?,
        flat_mut(out)?,
        moved.tokens.count,
        moved.tokens.columns,
        moved.choices,
        division.width,
        distance(y_rows, of_y, moved.tokens),
        moved.of_rows.inner,
        of_weights.inner,
        of_out.inner,
    )?;
    Ok(())
}

/// Returns the elements from a row to the next one. A single row has one, too, so that a number of
/// another row is past its end.
fn distance(rows: usize, strides: Strides, of_tokens: Rows) -> u64 {
    if rows > 1 { strides.inner } else { u64::from(of_tokens.columns) }
}

/// Rows of tokens, and the rows of their choices.
struct Moved {
    tokens: Rows,
    choices: u32,
    of_rows: Strides,
}

impl Moved {
    /// Returns the extents of tokens × columns, after checking the tensor that has a row for each
    /// choice.
    fn of(
        shape: [usize; 2],
        rows: TensorView<'_, u32, 2>,
        name: &'static str,
        grouped: [usize; 2],
    ) -> Result<Self, ModelError> {
        let ([tokens, columns], [_, choices]) = (shape, rows.shape());
        fits("rows", &rows.shape(), &[tokens, choices])?;
        fits(name, &grouped, &[tokens.saturating_mul(choices), columns])?;
        Rows::of(&grouped)?;
        let of_rows = Strides::of("rows", &rows.shape(), &rows.strides())?;
        Ok(Self { tokens: Rows::of(&shape)?, choices: choices as u32, of_rows })
    }

    /// Returns whether nothing is moved.
    fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}
