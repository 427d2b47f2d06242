//! Embeddings of tokens.

mod backward;
pub mod gradient;
pub mod kernel;
pub mod order;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

pub use self::backward::{EmbeddingBackwardOptions, embedding_backward};
use self::kernel::rows::look_up;
use super::rows::{Division, Rows, Strides, Tile, fits, flat, flat_mut, without_instance};
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// Queues `out[i] = table[tokens[i]] · scale`.
///
/// `table` is vocabulary × columns, and `out` is tokens × columns. The elements of rows must be
/// adjacent. A token that the vocabulary does not have produces a row of zeros, and no access
/// outside the table: a slice of a vocabulary that is divided among GPUs is looked up by tokens
/// from which its beginning was subtracted, wrapping, and the results of all GPUs are added.
///
/// The product with `scale`, such as Gemma's square root of the columns, is computed in `f32` and
/// rounded once: a scale of 1 keeps each number. A call allocates nothing and does not wait, and
/// tokens are read when the kernel runs.
///
/// ```
/// use tma_kernels::model::embedding;
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let rows: Vec<bf16> = (0..3 * 8).map(|i| bf16::from_f32((i / 8 + 1) as f32)).collect();
/// let table = device.tensor(&rows, [3, 8])?;
/// let tokens = device.tensor(&[2, 0, 3], [3])?;
/// let mut out = device.zeros::<bf16, 2>([3, 8])?;
/// embedding(&device, &table, &tokens, &mut out, 1.0)?;
/// let first: Vec<f32> = out.to_vec()?.iter().step_by(8).map(|x| x.to_f32()).collect();
/// assert_eq!(first, [3.0, 1.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn embedding<T: ModelElement>(
    on: &impl LaunchOn,
    table: impl MapArg<T, 2>,
    tokens: impl MapArg<u32, 1>,
    mut out: impl MapArgMut<T, 2>,
    scale: f32,
) -> Result<(), ModelError> {
    let (table, tokens, out) = (table.view(), tokens.view(), out.view_mut());
    let ([count], [vocabulary, columns]) = (tokens.shape(), table.shape());
    let shape = out.shape();
    fits("out", &shape, &[count, columns])?;
    let rows = Rows::of(&shape)?;
    let of_rows = Rows::of(&table.shape())?;
    let of_table = Strides::of("table", &table.shape(), &table.strides())?;
    let of_out = Strides::of("out", &shape, &out.strides())?;
    if rows.is_empty() {
        return Ok(());
    }
    let [step] = tokens.strides();
    let all_tokens = tokens.with_strides([(count - 1) * step + 1], [1])?;
    let all = if vocabulary == 0 { vec![of_out] } else { vec![of_table, of_out] };
    let tile = Tile::of_elements::<T>(rows, &all, 2);
    let division = Division::of::<T>(tile, rows);
    division.check(&shape)?;
    look_up::find::<T>(look_up::Key { wide: tile.wide }).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, division.parts, 1),
        flat(table)?,
        all_tokens,
        flat_mut(out)?,
        rows.count,
        rows.columns,
        of_rows.count,
        division.width,
        scale,
        of_table.inner,
        step as u64,
        of_out.inner,
    )?;
    Ok(())
}
