//! A tensor that a kernel writes in two ways.

use tma_runtime::prelude::*;

/// A second view of what a kernel writes: by copies of whole tiles, and by threads where a tile is
/// not stored as a whole.
///
/// # Safety
///
/// Both views go to one launch, of a kernel that writes each element through one of them.
pub(crate) unsafe fn again<'a, T, const N: usize>(view: &TensorViewMut<'a, T, N>) -> TensorViewMut<'a, T, N> {
    // SAFETY: a view is an address with a shape and strides, and owns nothing.
    unsafe { std::ptr::read(view) }
}
