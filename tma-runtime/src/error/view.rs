//! Rules for views of a part of a tensor, or of its memory with another shape.

/// Why a view cannot be made from another one. Displays the rule; [`Error`](super::Error) adds the
/// code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A range begins or ends outside of the view.
    #[error(
        "a slice lies within the view, but along dimension {dimension} it is {start}..{end} of \
         {extent} elements: {}",
        if .start > .end { "let it begin before it ends" } else { "let it end there, and launch a smaller grid" }
    )]
    Slice {
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The first element.
        start: usize,
        /// The element after the last.
        end: usize,
        /// Elements of the view along it.
        extent: usize,
    },

    /// A permutation leaves dimensions out.
    #[error(
        "a permutation has each of the dimensions 0 to {} once, but this is {order:?}: for a \
         transposed matrix write `[1, 0]`", .order.len().saturating_sub(1)
    )]
    Permutation {
        /// The dimensions in the given order.
        order: Vec<usize>,
    },

    /// A shape and strides reach beyond the tensor's memory.
    #[error(
        "a view reaches no further than the memory it is of, but {shape:?} elements with strides \
         {strides:?} reach {} elements, and from the first one on there are {available}: give \
         smaller extents or strides", .reached
    )]
    Reach {
        /// The extents, outermost first.
        shape: Vec<usize>,
        /// The strides in elements, outermost first.
        strides: Vec<usize>,
        /// Elements from the first to the last, inclusive.
        reached: u128,
        /// Elements of the memory.
        available: u64,
    },

    /// The elements of a mutable view would share memory.
    #[error(
        "elements of a view to write lie apart, but with extents {shape:?} and strides {strides:?} \
         dimension {dimension} steps {} elements and those within it reach {reached}: give it a \
         stride of {reached} or more, or make a view to read, of which rows may overlap", .strides.get(*.dimension).copied().unwrap_or_default()
    )]
    Overlap {
        /// The extents, outermost first.
        shape: Vec<usize>,
        /// The strides in elements, outermost first.
        strides: Vec<usize>,
        /// The dimension whose stride is too short.
        dimension: usize,
        /// Elements that the dimensions with shorter strides reach.
        reached: u128,
    },

    /// New strides for a view with gaps that was made from an address, so that the extent of its
    /// memory is unknown.
    #[error(
        "the memory of a view from an address ends where its elements do, and of this one they \
         have gaps: give `from_raw` the shape and strides that are wanted, or all of the memory \
         without gaps"
    )]
    UnknownMemory,
}
