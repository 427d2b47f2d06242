//! Rules for views of a part of a tensor, or of its memory with another shape.

/// Returns the name of the elements along a dimension: the rows or columns of a matrix, also in a
/// batch of matrices.
pub(super) fn along(dimension: usize, rank: usize) -> String {
    match (rank, rank.saturating_sub(dimension)) {
        (1, _) => "elements".to_owned(),
        (2 | 3, 1) => "columns".to_owned(),
        (2 | 3, 2) => "rows".to_owned(),
        _ => format!("elements along dimension {dimension}"),
    }
}

/// The reason why a view cannot be derived from another one. Displays the rule;
/// [`Error`](super::Error) adds the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A range begins or ends outside of the view.
    #[error(
        "a slice must be within the view: this one is {start}..{end}, but the view has {extent} {}; {}",
        along(*.dimension, *.rank),
        if .start > .end {
            "make it begin before it ends"
        } else {
            "make it end within the view, and launch a smaller grid"
        }
    )]
    Slice {
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The view's rank.
        rank: usize,
        /// The first element.
        start: usize,
        /// The element after the last.
        end: usize,
        /// The extent of the view along the dimension.
        extent: usize,
    },

    /// A permutation omits dimensions.
    #[error(
        "a permutation must name each of the dimensions 0 to {} once: this one is {order:?}{}",
        .order.len().saturating_sub(1),
        if .order.len() == 2 { "; write `[1, 0]` to transpose a matrix" } else { "" }
    )]
    Permutation {
        /// The dimensions in the given order.
        order: Vec<usize>,
    },

    /// A shape and strides extend beyond the tensor's memory.
    #[error(
        "a view must stay within its memory: {shape:?} elements with strides {strides:?} span {reached} \
         elements, but {available} are left from the first one; use smaller extents or strides"
    )]
    Reach {
        /// The extents, outermost first.
        shape: Vec<usize>,
        /// The strides in elements, outermost first.
        strides: Vec<usize>,
        /// The number of elements from the first to the last, inclusive.
        reached: u128,
        /// The number of elements of the memory.
        available: u64,
    },

    /// The elements of a mutable view would share memory.
    #[error(
        "elements of a mutable view must not overlap: with extents {shape:?} and strides {strides:?}, \
         dimension {dimension} has stride {}, but the dimensions within it span {reached} elements; use a \
         stride of {reached} or more, or an immutable view, whose rows may overlap",
        .strides.get(*.dimension).copied().unwrap_or_default()
    )]
    Overlap {
        /// The extents, outermost first.
        shape: Vec<usize>,
        /// The strides in elements, outermost first.
        strides: Vec<usize>,
        /// The dimension whose stride is too short.
        dimension: usize,
        /// The number of elements that the dimensions with shorter strides span.
        reached: u128,
    },

    /// New strides for a view with gaps that was made from an address, or by `split_at`. The memory
    /// between the elements of such a view is unknown, or belongs to another one.
    #[error(
        "the memory between the elements of this view is not known to be its own: the view was made from an \
         address, or by `split_at`, and has gaps; pass the final shape and strides to `from_raw`, or all of \
         the memory without gaps; before a split, call `with_strides` first"
    )]
    UnknownMemory,
}
