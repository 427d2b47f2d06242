//! The pages of sequences, as a table or as indices.

use tma_runtime::prelude::*;

/// The pages of all sequences, one after the other: FlashInfer's `kv_indptr`, `kv_indices` and
/// `kv_last_page_len`. They are read on the device, when the kernel runs.
///
/// Whatever their values are, no memory but the cache is accessed: an index that is too large
/// stands for a page of zeros, a place beyond the indices for the last of them, a start that is
/// after the next one for no pages, and a length beyond a page for all of its rows.
/// [`append`](super::append()) does not write tokens whose place is beyond the indices, or whose
/// page number is too large.
#[derive(Clone, Copy, Debug)]
pub struct PageIndices<'a> {
    /// The place of each sequence's first page among `indices`, and then the number of those used:
    /// batch + 1.
    pub indptr: TensorView<'a, u32, 1>,
    /// The numbers of the pages. There may be more than are used.
    pub indices: TensorView<'a, u32, 1>,
    /// The number of keys in the last page of each sequence that has pages, at least 1.
    pub last_page_len: TensorView<'a, u32, 1>,
}

/// The pages of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pages<'a> {
    /// The cache is not in pages.
    None,
    /// Batch × pages of the longest sequence.
    Table(TensorView<'a, u32, 2>),
    /// One sequence after the other.
    Indices(PageIndices<'a>),
}

/// Pages and lengths as kernels take them.
pub(super) struct PageArguments<'a> {
    /// Numbers of pages.
    pub(super) table: Option<TensorView<'a, u32, 2>>,
    /// The place of each sequence's first page in the table, if rows differ in length.
    pub(super) page_starts: Option<TensorView<'a, u32, 1>>,
    /// The lengths of sequences or, with starts, of their last pages.
    pub(super) lengths: Option<TensorView<'a, u32, 1>>,
}

impl<'a> Pages<'a> {
    /// Returns whether the cache is in pages.
    pub(super) const fn are_there(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns the pages of a row of the table.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::None | Self::Indices(_) => 0,
            Self::Table(table) => table.shape()[1],
        }
    }

    /// Returns how many pages a sequence can have.
    pub(super) fn most(&self) -> usize {
        match self {
            Self::None | Self::Table(_) => self.width(),
            Self::Indices(pages) => pages.indices.shape()[0],
        }
    }

    /// Checks the shapes for so many sequences by `fits`, which takes a name, a shape and the one
    /// that is wanted.
    pub(super) fn check<E>(
        &self,
        sequences: usize,
        lengths: Option<TensorView<'_, u32, 1>>,
        fits: impl Fn(&'static str, &[usize], &[usize]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::None => {}
            Self::Table(table) => fits("table", &table.shape(), &[sequences, table.shape()[1]])?,
            Self::Indices(PageIndices { indptr, indices: _, last_page_len }) => {
                fits("indptr", &indptr.shape(), &[sequences.saturating_add(1)])?;
                fits("last_page_len", &last_page_len.shape(), &[sequences])?;
                // Indices have the lengths.
                return lengths.map_or(Ok(()), |lengths| fits("lengths", &lengths.shape(), &[]));
            }
        }
        lengths.map_or(Ok(()), |lengths| fits("lengths", &lengths.shape(), &[sequences]))
    }

    /// Returns the arguments of a kernel, for a cache with such lengths.
    ///
    /// # Errors
    ///
    /// [`Error::View`] for indices that overlap.
    pub(super) fn arguments(
        self,
        lengths: Option<TensorView<'a, u32, 1>>,
    ) -> Result<PageArguments<'a>, Error> {
        Ok(match self {
            Self::None => PageArguments { table: None, page_starts: None, lengths },
            Self::Table(table) => PageArguments { table: Some(table), page_starts: None, lengths },
            Self::Indices(PageIndices { indptr, indices, last_page_len }) => {
                let ([count], [stride]) = (indices.shape(), indices.strides());
                let row = indices.with_strides([1, count], [count.saturating_mul(stride), stride])?;
                let (page_starts, lengths) = (Some(indptr), Some(last_page_len));
                PageArguments { table: Some(row), page_starts, lengths }
            }
        })
    }
}
