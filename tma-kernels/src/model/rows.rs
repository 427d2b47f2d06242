//! Rows of tensors, as the kernels address them.

use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar};

use super::ModelError;

pub(super) mod sealed {
    pub trait Sealed {
        /// The number by which kernels tell `bf16` from `f16`, which have the same size.
        const FORM: u32;
    }
    impl Sealed for tma_runtime::prelude::bf16 {
        const FORM: u32 = 1;
    }
    impl Sealed for tma_runtime::prelude::f16 {
        const FORM: u32 = 0;
    }
    impl Sealed for f32 {
        const FORM: u32 = 0;
    }
}

/// The element types of the kernels over rows: `bf16`, `f16` and `f32`.
#[diagnostic::on_unimplemented(
    message = "kernels over rows need tensors of `bf16`, `f16` or `f32`, not of `{Self}`",
    label = "neither `bf16`, `f16` nor `f32`"
)]
pub trait ModelElement: Scalar + sealed::Sealed {}

impl ModelElement for bf16 {}
impl ModelElement for f16 {}
impl ModelElement for f32 {}

/// The number of rows, and of other extents, that a kernel does not reach.
const MOST: usize = 1 << 31;

/// The extent of a grid along y. Source: CUDA C++ Programming Guide, "Technical Specifications per
/// Compute Capability".
const MOST_PARTS: u32 = 65_535;

/// The bytes of a vector.
pub(super) const VECTOR_BYTES: usize = 16;

/// The vectors that a row has at least if it passes through shared memory: the banks of shorter
/// rows conflict.
const LEAST_VECTORS: usize = 8;

/// Extents of rows that have the same columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rows {
    /// The number of rows.
    pub(super) count: u32,
    /// The extent of the dimension before the columns.
    pub(super) inner: u32,
    pub(super) columns: u32,
}

impl Rows {
    /// Returns the rows of a tensor of this shape, whose last dimension has the columns.
    ///
    /// # Errors
    ///
    /// [`ModelError::TooLarge`].
    pub(super) fn of(shape: &[usize]) -> Result<Self, ModelError> {
        let (columns, outer) = shape.split_last().map_or((1, shape), |(columns, outer)| (*columns, outer));
        let inner = outer.last().copied().unwrap_or(1);
        let is_empty = shape.contains(&0);
        let count =
            outer.iter().try_fold(1_usize, |all, extent| all.checked_mul(*extent).filter(|all| *all < MOST));
        match count {
            _ if is_empty => Ok(Self { count: 0, inner: 1, columns: 0 }),
            Some(count) if columns < MOST / 32 => {
                Ok(Self { count: count as u32, inner: inner as u32, columns: columns as u32 })
            }
            Some(_) | None => Err(ModelError::TooLarge {
                shape: shape.into(),
                wanted: "fewer than 2^31 rows and 2^26 columns",
            }),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.count == 0
    }
}

/// A tensor's rows in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Strides {
    pub(super) outer: u64,
    pub(super) inner: u64,
}

impl Strides {
    /// Returns the distances between the rows of a tensor.
    ///
    /// # Errors
    ///
    /// [`ModelError::Rows`] if the elements of rows are not adjacent, or if the dimensions before the
    /// last two do not follow each other.
    pub(super) fn of(tensor: &'static str, shape: &[usize], strides: &[usize]) -> Result<Self, ModelError> {
        if shape.contains(&0) {
            return Ok(Self { outer: 0, inner: 0 });
        }
        let refused = || ModelError::Rows { tensor, strides: strides.into() };
        let (Some((columns, outer)), Some((step, steps))) = (shape.split_last(), strides.split_last()) else {
            return Err(refused());
        };
        if *step != 1 && *columns > 1 {
            return Err(refused());
        }
        let (extents, inner) = match (outer.split_last(), steps.split_last()) {
            // The distance between rows counts only if there are several.
            (Some((rows, extents)), Some((inner, steps))) => {
                (extents.iter().zip(steps), if *rows > 1 { *inner } else { 0 })
            }
            (None, _) | (_, None) => ([].iter().zip(&[]), 0),
        };
        // Outer dimensions are one if each index of one follows the last index of the next.
        let mut merged: Option<(usize, usize)> = None;
        for (extent, stride) in extents.rev().filter(|(extent, _)| **extent > 1) {
            merged = match merged {
                None => Some((*extent, *stride)),
                Some((all, least)) if *stride == all * least => Some((all * extent, least)),
                Some(_) => return Err(refused()),
            };
        }
        Ok(Self { outer: merged.map_or(0, |(_, stride)| stride as u64), inner: inner as u64 })
    }

    /// Returns whether all rows begin at multiples of so many elements, if the first one does.
    fn is_aligned(self, vector: usize) -> bool {
        self.outer.is_multiple_of(vector as u64) && self.inner.is_multiple_of(vector as u64)
    }
}

impl Strides {
    /// Returns the number of rows that follow each other in memory, among so many: a power of two
    /// that divides them, and the rows of an index of the outer dimension.
    fn run(self, rows: Rows, height: u32) -> u32 {
        if self.inner != u64::from(rows.columns) {
            1
        } else if rows.inner >= rows.count {
            height
        } else {
            height.min(1 << rows.inner.trailing_zeros())
        }
    }
}

/// The threads of a block, and the vectors that each has at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tile {
    pub(super) threads: u32,
    pub(super) vectors: usize,
    /// 1 if vectors have 16 bytes, 0 if they are single elements.
    pub(super) wide: usize,
}

/// The tiles of kernels that keep rows in registers, and of rows that are not aligned.
const SINGLE: Tile = Tile { threads: 512, vectors: 1, wide: 1 };
const SHORT: Tile = Tile { threads: 256, vectors: 2, wide: 1 };
const MEDIUM: Tile = Tile { threads: 512, vectors: 2, wide: 1 };
const LONG: Tile = Tile { threads: 512, vectors: 4, wide: 1 };
const ODD: Tile = Tile { threads: 256, vectors: 4, wide: 0 };

impl Tile {
    /// Returns the tile for rows of which sums are computed: the first one that has room for a row,
    /// or the last.
    pub(super) fn of_rows<T: Scalar>(rows: Rows, all: &[Strides]) -> Self {
        match is_aligned::<T>(rows, all) {
            false => ODD,
            true if rows.columns as usize <= SHORT.columns::<T>(SHORT.threads) => SHORT,
            true => LONG,
        }
    }

    /// Returns the tile for rows that are normalised. A single row gets more threads, of which each
    /// has less to wait for.
    pub(super) fn of_norm<T: Scalar>(rows: Rows, all: &[Strides]) -> Self {
        let tile = Self::of_rows::<T>(rows, all);
        if tile == SHORT && rows.count == 1 { SINGLE } else { tile }
    }

    /// Returns the tile for rows whose columns are summed as well, in registers beside the row: the
    /// first one that has room for a row, if there is one.
    pub(super) fn of_sums<T: Scalar>(rows: Rows, all: &[Strides]) -> Option<Self> {
        let tiles = if is_aligned::<T>(rows, all) { &[SHORT, MEDIUM][..] } else { &[ODD][..] };
        tiles.iter().copied().find(|tile| rows.columns as usize <= tile.columns::<T>(tile.threads))
    }

    /// Returns the tile for rows whose elements do not depend on each other, of which a thread has
    /// so many vectors.
    pub(super) fn of_elements<T: Scalar>(rows: Rows, all: &[Strides], vectors: usize) -> Self {
        Self { threads: 256, vectors, wide: usize::from(is_aligned::<T>(rows, all)) }
    }

    /// Returns the elements of a vector.
    fn vector<T: Scalar>(self) -> usize {
        1 + self.wide * (VECTOR_BYTES / size_of::<T>() - 1)
    }

    /// Returns the columns that so many threads have at a time.
    pub(super) fn columns<T: Scalar>(self, threads: u32) -> usize {
        threads as usize * self.vectors * self.vector::<T>()
    }

    /// Returns the least number of threads that have this many adjacent columns among theirs: in
    /// vectors of several lanes or, if these are single elements, all columns of a warp.
    pub(super) fn lanes<T: Scalar>(self, columns: usize) -> u32 {
        if self.wide == 0 { 32 } else { columns.div_ceil(self.vector::<T>()) as u32 }
    }
}

/// Returns whether all rows begin and end at multiples of a vector, if the first one begins so.
fn is_aligned<T: Scalar>(rows: Rows, all: &[Strides]) -> bool {
    let vector = VECTOR_BYTES / size_of::<T>();
    (rows.columns as usize).is_multiple_of(vector) && all.iter().all(|strides| strides.is_aligned(vector))
}

/// How threads divide rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Division {
    /// The threads of a row.
    pub(super) width: u32,
    /// Blocks for all rows.
    pub(super) blocks: u32,
    /// Parts of a row, each of which `width` threads load at a time.
    pub(super) parts: u32,
}

impl Division {
    /// Returns the division of rows among blocks of this tile. The threads of a row have all of it
    /// at a time if there are enough.
    pub(super) fn of<T: Scalar>(tile: Tile, rows: Rows) -> Self {
        let width = (rows.columns as usize).div_ceil(tile.columns::<T>(1)).next_power_of_two();
        Self::with_width::<T>(tile, rows, width.min(tile.threads as usize) as u32)
    }

    /// Returns the division of rows with this many threads each, a power of two.
    pub(super) fn with_width<T: Scalar>(tile: Tile, rows: Rows, width: u32) -> Self {
        Self {
            width,
            blocks: rows.count.div_ceil(tile.threads / width),
            parts: (rows.columns as usize).div_ceil(tile.columns::<T>(width)) as u32,
        }
    }

    /// Checks that the parts of a row can be an extent of a grid.
    ///
    /// # Errors
    ///
    /// [`ModelError::TooLarge`] for the longest rows that are not aligned.
    pub(super) fn check(self, shape: &[usize]) -> Result<(), ModelError> {
        match self.parts <= MOST_PARTS {
            true => Ok(()),
            false => Err(ModelError::TooLarge {
                shape: shape.into(),
                wanted: "fewer than 2^23 columns if rows do not begin and end at multiples of 16 bytes",
            }),
        }
    }
}

/// The greatest number of copies that a batch of rows may take.
const MOST_COPIES: u32 = 16;

/// How rows pass through shared memory, in batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Staging {
    /// The threads of a block, each of which has some vectors of a batch.
    pub(super) threads: u32,
    /// The blocks, each of which has many batches.
    pub(super) blocks: u32,
    /// The threads of a row.
    pub(super) width: u32,
    /// The rows of a batch.
    pub(super) height: u32,
    /// The rows that follow each other in memory in all tensors.
    pub(super) run: u32,
}

impl Staging {
    /// Returns the staging of rows that the copy engine can move, if there are enough for all
    /// multiprocessors: with fewer, the memory is not busy, and registers have a shorter latency. A
    /// row has at least `least` threads.
    pub(super) fn of<T: Scalar>(
        rows: Rows,
        all: &[Strides],
        least: u32,
        multiprocessors: u32,
    ) -> Option<Self> {
        const TILES: [Tile; 2] = [Tile { threads: 256, ..LONG }, LONG];
        let width = |tile: Tile| {
            (rows.columns as usize).div_ceil(tile.columns::<T>(1)).next_power_of_two().max(least as usize)
        };
        let tile = TILES.into_iter().find(|tile| width(*tile) <= tile.threads as usize)?;
        Self::with::<T>(tile, width(tile) as u32, rows, all, multiprocessors)
    }

    /// Returns the staging of rows whose columns are summed as well, and the tile: the first one that
    /// has room for a row. The longest rows have registers for one kind of sums.
    pub(super) fn of_sums<T: Scalar>(
        rows: Rows,
        all: &[Strides],
        kinds: u32,
        multiprocessors: u32,
    ) -> Option<(Tile, Self)> {
        let tiles = if kinds < 2 { &[SHORT, MEDIUM, LONG][..] } else { &[SHORT, MEDIUM][..] };
        let width = |tile: Tile| (rows.columns as usize).div_ceil(tile.columns::<T>(1)).next_power_of_two();
        let tile = tiles.iter().copied().find(|tile| width(*tile) <= tile.threads as usize)?;
        Some((tile, Self::with::<T>(tile, width(tile) as u32, rows, all, multiprocessors)?))
    }

    /// Returns the staging of rows with this tile and this number of threads for each row.
    fn with<T: Scalar>(
        tile: Tile,
        width: u32,
        rows: Rows,
        all: &[Strides],
        multiprocessors: u32,
    ) -> Option<Self> {
        let vector = VECTOR_BYTES / size_of::<T>();
        if !is_aligned::<T>(rows, all) || (rows.columns as usize) < LEAST_VECTORS * vector {
            return None;
        }
        let threads = tile.threads;
        let height = threads / width;
        let run = all.iter().map(|strides| strides.run(rows, height)).min().unwrap_or(height);
        let batches = rows.count.div_ceil(height);
        let blocks = multiprocessors * (512 / threads);
        (height / run <= MOST_COPIES && batches >= 2 * multiprocessors).then_some(Self {
            threads,
            blocks: batches.min(blocks),
            width,
            height,
            run,
        })
    }
}

/// Returns the memory of a tensor for a kernel of this module, which finds rows by their strides.
pub(super) fn flat<T: Scalar, const N: usize>(
    view: TensorView<'_, T, N>,
) -> Result<TensorView<'_, T, 1>, Error> {
    // SAFETY: the kernels access only the elements of rows.
    unsafe { view.span() }
}

/// Returns the same of a tensor that is written.
pub(super) fn flat_mut<T: Scalar, const N: usize>(
    view: TensorViewMut<'_, T, N>,
) -> Result<TensorViewMut<'_, T, 1>, Error> {
    // SAFETY: as above.
    unsafe { view.span() }
}

/// Checks the shape of a tensor.
pub(crate) fn fits(tensor: &'static str, found: &[usize], wanted: &[usize]) -> Result<(), ModelError> {
    match found == wanted {
        true => Ok(()),
        false => Err(ModelError::Shape { tensor, found: found.into(), wanted: wanted.into() }),
    }
}

/// Returns the error of a type without an instance, which [`ModelElement`] excludes.
pub(crate) fn without_instance(shape: &[usize]) -> ModelError {
    ModelError::TooLarge { shape: shape.into(), wanted: "elements of `bf16`, `f16` or `f32`" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staging(shape: &[usize], strides: &[usize]) -> Result<Option<Staging>, ModelError> {
        let (rows, strides) = (Rows::of(shape)?, Strides::of("x", shape, strides)?);
        Ok(Staging::of::<bf16>(rows, &[strides], 1, 4))
    }

    #[test]
    fn enough_rows_pass_through_shared_memory() -> Result<(), ModelError> {
        let contiguous = Staging { threads: 256, blocks: 8, width: 128, height: 2, run: 2 };
        assert_eq!(staging(&[16, 4096], &[4096, 1])?, Some(contiguous));
        assert_eq!(staging(&[14, 4096], &[4096, 1])?, None);
        assert_eq!(staging(&[16, 4096], &[4104, 1])?, Some(Staging { run: 1, ..contiguous }));
        assert_eq!(staging(&[16, 4096], &[4100, 1])?, None);
        let long = Staging { threads: 512, blocks: 4, width: 512, height: 1, run: 1 };
        assert_eq!(staging(&[8, 16384], &[16384, 1])?, Some(long));
        assert_eq!(staging(&[8, 16392], &[16392, 1])?, None);
        Ok(())
    }

    #[test]
    fn copies_end_where_an_outer_dimension_does() -> Result<(), ModelError> {
        let heads = Staging { threads: 256, blocks: 8, width: 4, height: 64, run: 32 };
        assert_eq!(staging(&[64, 32, 128], &[48 * 128, 128, 1])?, Some(heads));
        assert_eq!(staging(&[64, 12, 128], &[48 * 128, 128, 1])?, Some(Staging { run: 4, ..heads }));
        // A copy for each row is more than a batch may take.
        assert_eq!(staging(&[64, 9, 128], &[48 * 128, 128, 1])?, None);
        Ok(())
    }
}
