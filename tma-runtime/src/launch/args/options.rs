//! Options of a tensor's map, set where the tensor is passed to a launch.

use crate::launch::args::{MapArg, MapArgMut};
use crate::map::options::{Fill, L2Promotion, MapOptions};
use crate::scalar::Scalar;
use crate::tensor::DeviceTensor;
use crate::tensor::view::{TensorView, TensorViewMut};

/// A tensor as an argument of a launch, with options for its map, made by [`MapArgExt`].
#[derive(Clone, Copy, Debug)]
pub struct WithOptions<A> {
    tensor: A,
    options: MapOptions,
}

/// Options of a tensor's map, set where the tensor is passed to a launch.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn main() -> Result<(), tma_runtime::Error> {
/// # let device = Device::simulator();
/// # let tensor: DeviceTensor<f32, 2> = device.zeros([64, 64])?;
/// // Every second row, with NaN for what lies outside.
/// let argument = tensor.view().element_strides([2, 1]).nan_fill();
/// # let _ = argument;
/// # Ok(())
/// # }
/// ```
///
/// For a tensor that the kernel writes, use `tensor.view_mut()` or `(&mut tensor)`:
/// `tensor.l2_promotion(..)` alone borrows it immutably.
pub trait MapArgExt<const N: usize>: Sized {
    /// Returns the tensor with the options that it already has.
    fn with_options(self) -> WithOptions<Self::Tensor>;

    /// The type of the tensor without options.
    type Tensor;

    /// Sets all options at once.
    fn map_options(self, options: MapOptions) -> WithOptions<Self::Tensor> {
        WithOptions { options, ..self.with_options() }
    }

    /// Makes out-of-bounds elements read as NaN instead of zero.
    fn nan_fill(self) -> WithOptions<Self::Tensor> {
        let mut with = self.with_options();
        with.options.fill = Fill::Nan;
        with
    }

    /// Sets how many bytes are fetched into L2 at a time. The default is 128.
    fn l2_promotion(self, promotion: L2Promotion) -> WithOptions<Self::Tensor> {
        let mut with = self.with_options();
        with.options.l2_promotion = promotion;
        with
    }

    /// Selects every `n`-th element along each dimension, where `strides` holds `n`, outermost
    /// first. Strides are 1 to 8, and 1 along the innermost dimension. In an
    /// [interleaved](crate::lang::Interleave16) layout the innermost stride may also be 1 to 8, and
    /// counts whole pixels. The kernel's coordinates remain those of the tensor: a tile of 64 rows
    /// at row 0 with a stride of 2 holds rows 0, 2, … 126.
    fn element_strides(self, strides: [u32; N]) -> WithOptions<Self::Tensor> {
        let mut with = self.with_options();
        let dimensions = with.options.element_strides.iter_mut().zip(strides);
        dimensions.for_each(|(stride, given)| *stride = given);
        with
    }
}

macro_rules! options {
    ($(<$($life:lifetime)?> $ty:ty;)+) => { $(
        impl<$($life,)? T: Scalar, const N: usize> MapArgExt<N> for $ty {
            type Tensor = Self;

            fn with_options(self) -> WithOptions<Self> {
                WithOptions { tensor: self, options: MapOptions::default() }
            }
        }
    )+ };
}

options! {
    <'a> &'a DeviceTensor<T, N>;
    <'a> &'a mut DeviceTensor<T, N>;
    <'a> TensorView<'a, T, N>;
    <'a> TensorViewMut<'a, T, N>;
}

impl<A: MapArgExt<N>, const N: usize> MapArgExt<N> for WithOptions<A> {
    type Tensor = A;

    fn with_options(self) -> Self {
        self
    }
}

impl<A: MapArg<T, N>, T: Scalar, const N: usize> MapArg<T, N> for WithOptions<A> {
    fn view(&self) -> TensorView<'_, T, N> {
        self.tensor.view()
    }

    fn options(&self) -> MapOptions {
        self.options
    }
}

impl<A: MapArgMut<T, N>, T: Scalar, const N: usize> MapArgMut<T, N> for WithOptions<A> {
    fn view_mut(&mut self) -> TensorViewMut<'_, T, N> {
        self.tensor.view_mut()
    }

    fn options(&self) -> MapOptions {
        self.options
    }
}
