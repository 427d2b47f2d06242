//! A tensor that a kernel writes in two ways.

use tma_runtime::prelude::*;

/// Returns a second view of a tensor that a kernel writes: by copies of whole tiles, and by threads
/// where a tile is not stored as a whole.
///
/// # Safety
///
/// Both views are passed to one launch, of a kernel that writes each element through only one of
/// them.
pub(crate) unsafe fn alias_mut<'a, T, const N: usize>(
    view: &TensorViewMut<'a, T, N>,
) -> TensorViewMut<'a, T, N> {
    // SAFETY: a view is an address with a shape and strides, and owns nothing.
    unsafe { std::ptr::read(view) }
}
