//! Views of a part of a tensor, or of its memory with another shape. No such view extends beyond
//! its tensor, and a mutable view is consumed by the one made from it, so nothing here is unsafe.

use super::{RawView, TensorView, TensorViewMut};
use crate::error::{Error, ViewError};
use crate::scalar::Scalar;
use std::marker::PhantomData;
use std::ops::Range;

macro_rules! parts {
    ($View:ident, $checked:expr, $strides_doc:literal) => {
        impl<'a, T: Scalar, const N: usize> $View<'a, T, N> {
            /// Returns the elements in `ranges`, one range per dimension, outermost first: a box
            /// within the tensor, with the same strides.
            ///
            /// A tensor map still requires the first element's address to be a multiple of 16
            /// bytes, and a `Global` requires contiguous elements, such as whole rows. The launch
            /// checks both.
            ///
            /// ```
            /// # use tma_runtime::prelude::*;
            /// # fn main() -> Result<(), Error> {
            /// # let device = Device::simulator();
            /// let mut matrix = device.zeros::<f32, 2>([64, 32])?;
            /// let lower = matrix.view_mut().slice([32..64, 0..32])?;
            /// assert_eq!((lower.shape(), lower.strides()), ([32, 32], [32, 1]));
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            ///
            /// [`ViewError::Slice`] if a range begins or ends outside of the view.
            pub fn slice(self, ranges: [Range<usize>; N]) -> Result<Self, Error> {
                let raw = RawView { available: self.available(), ..self.raw };
                Ok(Self { raw: raw.sliced(ranges, size_of::<T>())?, elements: PhantomData })
            }

            /// Returns the same elements with their dimensions in another order: dimension `i` of
            /// the result is dimension `order[i]` of this view.
            ///
            /// A tensor map requires the innermost dimension to be contiguous, and a `Global`
            /// requires this of all dimensions. The launch checks it.
            ///
            /// ```
            /// # use tma_runtime::prelude::*;
            /// # fn main() -> Result<(), Error> {
            /// # let device = Device::simulator();
            /// let images = device.zeros::<f32, 3>([4, 8, 16])?;
            /// let turned = images.view().permute([1, 0, 2])?;
            /// assert_eq!((turned.shape(), turned.strides()), ([8, 4, 16], [16, 128, 1]));
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            ///
            /// [`ViewError::Permutation`] if `order` does not name each dimension once.
            pub fn permute(self, order: [usize; N]) -> Result<Self, Error> {
                let raw = RawView { available: self.available(), ..self.raw };
                Ok(Self { raw: raw.permuted(order)?, elements: PhantomData })
            }

            /// Returns the memory from this view's first element on, with another shape and
            /// strides, in elements, outermost first.
            ///
            /// The result must stay within the memory of the underlying
            /// [`DeviceTensor`](crate::DeviceTensor). If a view was made from an address
            /// ([`from_raw`](Self::from_raw)), the result must stay within that view, which must be
            /// contiguous unless the result has the same elements in the same dimensions, except
            /// for those of extent 1.
            ///
            #[doc = $strides_doc]
            ///
            /// # Errors
            ///
            /// [`ViewError::Reach`] if the result would extend further,
            /// [`ViewError::UnknownMemory`] if it comes from an address whose view had gaps, or from a
            /// split with gaps, and [`ViewError::Overlap`] if it is mutable and two elements might share memory.
            pub fn with_strides<const M: usize>(
                self,
                shape: [usize; M],
                strides: [usize; M],
            ) -> Result<$View<'a, T, M>, Error> {
                // The same elements, or none, are there in any case.
                let is_known = shape.contains(&0)
                    || dimensions(&shape, &strides).eq(dimensions(&self.raw.shape, &self.raw.strides));
                let available = self.available();
                let limit = if is_known { u64::MAX } else { available.ok_or(ViewError::UnknownMemory)? };
                let raw = self.raw.strided(shape, strides, limit)?;
                // The limit is kept even if the new view has gaps.
                let raw = RawView { available, ..raw };
                let check: fn([usize; M], [usize; M]) -> Result<(), ViewError> = $checked;
                check(shape, strides)?;
                Ok($View { raw, elements: PhantomData })
            }

            /// Returns the memory from this view's first element to its last one, for a kernel that
            /// finds the elements by their strides. Unlike [`with_strides`](Self::with_strides), it
            /// takes views with gaps of another crate's memory.
            ///
            /// ```
            /// # use tma_runtime::prelude::*;
            /// # fn main() -> Result<(), Error> {
            /// # let device = Device::simulator();
            /// let tensor = device.zeros::<f32, 2>([4, 8])?;
            /// // SAFETY: the tensor outlives the view.
            /// let columns = unsafe { TensorView::<f32, 2>::from_raw(&device, tensor.as_ptr(), [4, 2], [8, 1]) };
            /// // SAFETY: nothing accesses the memory.
            /// assert_eq!(unsafe { columns.span()? }.shape(), [3 * 8 + 2]);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Safety
            ///
            /// Whatever uses the result accesses only elements of this view. The memory between
            /// them may belong to others, or to nobody.
            ///
            /// # Errors
            ///
            /// [`ViewError::Reach`] if the last element is beyond the address space.
            pub unsafe fn span(self) -> Result<$View<'a, T, 1>, Error> {
                let RawView { shape, strides, .. } = self.raw;
                let steps = shape
                    .iter()
                    .zip(strides)
                    .map(|(extent, stride)| extent.saturating_sub(1).saturating_mul(stride));
                let last = steps.fold(0_usize, usize::saturating_add);
                let len = if shape.contains(&0) { 0 } else { last.saturating_add(1) };
                let raw = self.raw.strided([len], [1], u64::MAX)?;
                Ok($View { raw, elements: PhantomData })
            }

            /// Checks that elements of a mutable view do not overlap.
            pub(super) fn check_disjoint(&self) -> Result<(), ViewError> {
                let check: fn([usize; N], [usize; N]) -> Result<(), ViewError> = $checked;
                check(self.raw.shape, self.raw.strides)
            }

            /// Returns the number of elements of the memory from the view's first one on.
            fn available(&self) -> Option<u64> {
                match self.raw.memory {
                    _ if self.raw.is_split => self.layout().contiguous_len(),
                    Some(memory) => {
                        let before = self.raw.address.saturating_sub(memory.address);
                        Some(memory.bytes.saturating_sub(before) / size_of::<T>() as u64)
                    }
                    None => self.raw.available.or_else(|| self.layout().contiguous_len()),
                }
            }
        }
    };
}

parts!(
    TensorView,
    |_, _| Ok(()),
    "Rows may overlap. Windows of 64 samples, 32 apart:\n\n\
     ```\n\
     # use tma_runtime::prelude::*;\n\
     # fn main() -> Result<(), Error> {\n\
     # let device = Device::simulator();\n\
     let signal = device.zeros::<f32, 1>([1024])?;\n\
     let windows = signal.view().with_strides([31, 64], [32, 1])?;\n\
     assert_eq!(windows.shape(), [31, 64]);\n\
     assert!(signal.view().with_strides([32, 64], [32, 1]).is_err());\n\
     # Ok(())\n\
     # }\n\
     ```"
);

parts!(
    TensorViewMut,
    check_disjoint,
    "Its elements do not overlap: each stride is at least the reach of the dimensions with shorter \
     strides. Two dimensions merged into one:\n\n\
     ```\n\
     # use tma_runtime::prelude::*;\n\
     # fn main() -> Result<(), Error> {\n\
     # let device = Device::simulator();\n\
     let mut batch = device.zeros::<f32, 3>([4, 8, 16])?;\n\
     let rows = batch.view_mut().with_strides([4 * 8, 16], [16, 1])?;\n\
     assert_eq!(rows.shape(), [32, 16]);\n\
     # Ok(())\n\
     # }\n\
     ```\n\n\
     The tensor stays borrowed for as long as the view is used:\n\n\
     ```compile_fail,E0499\n\
     # use tma_runtime::prelude::*;\n\
     # fn launch(a: TensorViewMut<'_, f32, 1>, b: TensorViewMut<'_, f32, 1>) {}\n\
     # fn twice(tensor: &mut DeviceTensor<f32, 1>) -> Result<(), Error> {\n\
     let first = tensor.view_mut().slice([0..8])?;\n\
     let second = tensor.view_mut().with_strides([8], [1])?;\n\
     launch(first, second);\n\
     # Ok(())\n\
     # }\n\
     ```"
);

impl<T: Scalar, const N: usize> TensorViewMut<'_, T, N> {
    /// Splits the view in two along a dimension, such as the columns of a matrix: the elements
    /// before `index`, and the others. Both may be written at the same time.
    ///
    /// If a part has gaps, the other one may be within them, and
    /// [`with_strides`](Self::with_strides) refuses the part. Change shape and strides before the
    /// split.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// # let device = Device::simulator();
    /// let mut rows = device.zeros::<f32, 2>([64, 32])?;
    /// let [left, right] = rows.view_mut().split_at(1, 8)?;
    /// assert_eq!((left.shape(), right.shape()), ([64, 8], [64, 24]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Slice`] if there is no such dimension, or the index is beyond its extent.
    pub fn split_at(self, dimension: usize, index: usize) -> Result<[Self; 2], Error> {
        let Some(&extent) = self.raw.shape.get(dimension) else {
            return Err(ViewError::Slice { dimension, rank: N, start: 0, end: index, extent: 0 }.into());
        };
        let available = self.available();
        let part = |range: Range<usize>| -> Result<Self, Error> {
            let mut ranges = self.raw.shape.map(|extent| 0..extent);
            ranges[dimension] = range;
            let raw = RawView { available, is_split: true, ..self.raw }.sliced(ranges, size_of::<T>())?;
            Ok(Self { raw, elements: PhantomData })
        };
        Ok([part(0..index)?, part(index..extent)?])
    }
}

impl<const N: usize> RawView<'_, N> {
    fn sliced(mut self, ranges: [Range<usize>; N], bytes: usize) -> Result<Self, ViewError> {
        let mut first = 0usize;
        for (dimension, Range { start, end }) in ranges.into_iter().enumerate() {
            let extent = self.shape[dimension];
            if start > end || end > extent {
                return Err(ViewError::Slice { dimension, rank: N, start, end, extent });
            }
            self.shape[dimension] = end - start;
            first = first.wrapping_add(start.wrapping_mul(self.strides[dimension]));
        }
        // An empty slice keeps the address, since that of its start might be past the tensor's end.
        if self.shape.iter().all(|&extent| extent > 0) {
            self.address = self.address.wrapping_add(first.wrapping_mul(bytes) as u64);
            self.available = self.available.map(|all| all.saturating_sub(first as u64));
        }
        Ok(self)
    }

    fn permuted(self, order: [usize; N]) -> Result<Self, ViewError> {
        let mut taken = [false; N];
        for &dimension in &order {
            if dimension >= N || std::mem::replace(&mut taken[dimension], true) {
                return Err(ViewError::Permutation { order: order.to_vec() });
            }
        }
        let (shape, strides) = (order.map(|from| self.shape[from]), order.map(|from| self.strides[from]));
        Ok(Self { shape, strides, ..self })
    }
}

impl<'a, const N: usize> RawView<'a, N> {
    fn strided<const M: usize>(
        self,
        shape: [usize; M],
        strides: [usize; M],
        available: u64,
    ) -> Result<RawView<'a, M>, ViewError> {
        let Self { device, address, memory, available: of_self, is_split, .. } = self;
        let reached = if shape.contains(&0) { 0 } else { reach(shape.into_iter().zip(strides)) };
        if reached > u128::from(available) {
            let (shape, strides) = (shape.to_vec(), strides.to_vec());
            return Err(ViewError::Reach { shape, strides, reached, available });
        }
        Ok(RawView { device, address, shape, strides, memory, available: of_self, is_split })
    }
}

/// Returns extent and stride of each dimension in which there is more than one element.
fn dimensions(shape: &[usize], strides: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    shape.iter().copied().zip(strides.iter().copied()).filter(|(extent, _)| *extent != 1)
}

/// Returns the distance in elements from the first element to one past the last. The extents must
/// be greater than zero.
pub(super) fn reach(dimensions: impl Iterator<Item = (usize, usize)>) -> u128 {
    let steps = dimensions.map(|(extent, stride)| (extent as u128 - 1).saturating_mul(stride as u128));
    steps.fold(1, u128::saturating_add)
}

/// Checks that no two elements share memory. Each stride must be at least the reach of the
/// dimensions with shorter strides.
fn check_disjoint<const N: usize>(shape: [usize; N], strides: [usize; N]) -> Result<(), ViewError> {
    if shape.contains(&0) {
        return Ok(());
    }
    let mut order: Vec<usize> = (0..N).filter(|&dimension| shape[dimension] > 1).collect();
    order.sort_by_key(|&dimension| strides[dimension]);
    for (within, &dimension) in order.iter().enumerate() {
        let reached = reach(order[..within].iter().map(|&inner| (shape[inner], strides[inner])));
        if (strides[dimension] as u128) < reached {
            let (shape, strides) = (shape.to_vec(), strides.to_vec());
            return Err(ViewError::Overlap { shape, strides, dimension, reached });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
