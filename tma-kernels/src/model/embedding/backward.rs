//! The gradient of a table of embeddings.

use tma_runtime::Error;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::gradient::tokens::{CHUNK, add_rows, join};
use super::order::positions::{DIGIT_BITS, sort};
use crate::dependent::dependent;
use crate::model::rows::{Division, Rows, Strides, Tile, fits, flat, flat_mut, without_instance};
use crate::model::{GradientWorkspace, ModelElement, ModelError};

/// The tokens that a block sorts if there are enough of them.
const TOKENS_OF_BLOCK: u32 = 256;

/// The greatest number of blocks that sort. Each reads all tokens.
const MOST_BLOCKS: u32 = 64;

/// Options of [`embedding_backward`].
#[derive(Debug)]
pub struct EmbeddingBackwardOptions<'a> {
    /// The scale of the embeddings: 1 by default.
    pub scale: f32,
    /// Memory for the order of tokens and for sums. Without it, a call allocates its own, and waits
    /// when that is freed.
    pub workspace: Option<&'a mut GradientWorkspace>,
}

impl Default for EmbeddingBackwardOptions<'_> {
    fn default() -> Self {
        Self { scale: 1.0, workspace: None }
    }
}

impl GradientWorkspace {
    /// Allocates the memory for the gradient of embeddings of this shape, tokens × columns. A call
    /// with more lets it grow.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn for_embedding(device: &Device, shape: [usize; 2]) -> Result<Self, Error> {
        let [tokens, columns] = shape;
        let mut workspace = Self::new(device)?;
        workspace.grow(device, sums(tokens, columns), tokens.saturating_mul(2))?;
        Ok(workspace)
    }
}

/// Returns the number of sums of so many tokens: two rows for each chunk.
fn sums(tokens: usize, columns: usize) -> usize {
    tokens.div_ceil(CHUNK as usize).saturating_mul(2).saturating_mul(columns)
}

/// Queues `dtable[tokens[i]] += scale · dy[i]`, the gradient of [`embedding`](super::embedding())
/// from the gradient `dy` of its result.
///
/// `dy` is tokens × columns, and `dtable`, which may have another type, is vocabulary × columns. The
/// elements of rows must be adjacent. The gradient is added to what the table has: fill it with
/// zeros for the first call. Rows of tokens that do not occur are neither read nor written. A token
/// that the vocabulary does not have is left out.
///
/// The rows of a token are added in `f32`, in the order of positions. Where the positions of all
/// tokens, sorted by token, cross a multiple of 32, another sum begins. The scaled sum is added to the
/// table's row and rounded once. The same tokens and rows therefore produce the same bits each time.
/// A call queues up to three kernels, does not wait, and with a large enough workspace allocates
/// nothing. Tokens are read when the kernels run.
///
/// ```
/// use tma_kernels::model::{EmbeddingBackwardOptions, embedding_backward};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let rows: Vec<bf16> = (0..3 * 8).map(|i| bf16::from_f32((i / 8 + 1) as f32)).collect();
/// let dy = device.tensor(&rows, [3, 8])?;
/// let tokens = device.tensor(&[2, 0, 2], [3])?;
/// let mut dtable = device.zeros::<f32, 2>([4, 8])?;
/// embedding_backward(&device, &dy, &tokens, &mut dtable, EmbeddingBackwardOptions::default())?;
/// let first: Vec<f32> = dtable.to_vec()?.into_iter().step_by(8).collect();
/// assert_eq!(first, [2.0, 0.0, 4.0, 0.0]); // the rows 1 and 3 have the same token
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn embedding_backward<T: ModelElement, G: ModelElement>(
    on: &impl LaunchOn,
    dy: impl MapArg<T, 2>,
    tokens: impl MapArg<u32, 1>,
    mut dtable: impl MapArgMut<G, 2>,
    options: EmbeddingBackwardOptions<'_>,
) -> Result<(), ModelError> {
    let (dy, tokens, dtable) = (dy.view(), tokens.view(), dtable.view_mut());
    let ([count], [vocabulary, columns]) = (tokens.shape(), dtable.shape());
    let shape = dy.shape();
    fits("dy", &shape, &[count, columns])?;
    let rows = Rows::of(&shape)?;
    let of_rows = Rows::of(&dtable.shape())?;
    let of_dy = Strides::of("dy", &shape, &dy.strides())?;
    let of_table = Strides::of("dtable", &dtable.shape(), &dtable.strides())?;
    if rows.is_empty() || vocabulary == 0 {
        return Ok(());
    }
    let mut own = None;
    let workspace = match options.workspace {
        Some(given) => given,
        None => own.insert(GradientWorkspace::new(on.device())?),
    };
    workspace.grow(on.device(), sums(count, columns), count.saturating_mul(2))?;
    let [step] = tokens.strides();
    let tokens = tokens.with_strides([(count - 1) * step + 1], [1])?;
    let sorting = Sorting::of(rows.count, of_rows.count);
    sort::launch(
        dependent(on),
        Grid::x(1 << sorting.bits),
        tokens,
        &mut workspace.order,
        rows.count,
        of_rows.count,
        sorting.bits,
        sorting.passes,
        step as u64,
    )?;
    let chunks = Rows { count: rows.count.div_ceil(CHUNK), ..rows };
    let tile = Tile::of_elements::<T>(rows, &[of_dy, of_table], 1);
    // A chunk has at least a warp, with a lane for each of its positions.
    let width = Division::of::<T>(tile, chunks).width.max(CHUNK);
    let division = Division::with_width::<T>(tile, chunks, width);
    division.check(&shape)?;
    let mut dtable = flat_mut(dtable)?;
    add_rows::find::<T, G>(add_rows::Key { wide: tile.wide })
        .ok_or_else(|| without_instance(&shape))?
        .launch(
            dependent(on),
            Grid::new(division.blocks, division.parts, 1),
            flat(dy)?,
            tokens,
            &mut workspace.order,
            dtable.reborrow(),
            &mut workspace.sums,
            rows.count,
            rows.columns,
            division.width,
            options.scale,
            step as u64,
            of_dy.inner,
            of_table.inner,
        )?;
    if chunks.count == 1 {
        return Ok(());
    }
    // Sums are vectors of `f32`.
    let division = Division::of::<f32>(tile, chunks);
    division.check(&shape)?;
    let key = join::Key { wide: tile.wide };
    join::find::<G>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, division.parts, 1),
        &workspace.order,
        dtable,
        &workspace.sums,
        rows.count,
        rows.columns,
        division.width,
        options.scale,
        of_table.inner,
    )?;
    Ok(())
}

/// How tokens are sorted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sorting {
    /// The lowest bits of tokens, by which blocks divide them.
    bits: u32,
    /// The digits of the other bits.
    passes: u32,
}

impl Sorting {
    /// Returns the sorting of so many tokens, which are below the vocabulary.
    fn of(tokens: u32, vocabulary: u32) -> Self {
        let of_token = u32::BITS - vocabulary.saturating_sub(1).leading_zeros();
        let blocks = (tokens / TOKENS_OF_BLOCK).clamp(1, MOST_BLOCKS);
        let bits = blocks.ilog2().min(of_token);
        Self { bits, passes: (of_token - bits).div_ceil(DIGIT_BITS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_have_all_bits_of_tokens() {
        assert_eq!(Sorting::of(16384, 128_256), Sorting { bits: 6, passes: 3 });
        assert_eq!(Sorting::of(1000, 128_256), Sorting { bits: 1, passes: 4 });
        assert_eq!(Sorting::of(16384, 20), Sorting { bits: 5, passes: 0 });
        assert_eq!(Sorting::of(3, 1), Sorting { bits: 0, passes: 0 });
        assert_eq!(Sorting::of(3, 1 << 31), Sorting { bits: 0, passes: 8 });
    }
}
