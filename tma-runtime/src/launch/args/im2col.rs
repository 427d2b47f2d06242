//! Tensors as arguments of `Im2colMap` parameters: images, and the selection of pixels that form
//! columns.

use crate::launch::args::{MapArg, MapArgMut};
use crate::map::options::{Corners, Fill, L2Promotion, MapOptions};
use crate::scalar::Scalar;
use crate::tensor::DeviceTensor;
use crate::tensor::view::{TensorView, TensorViewMut};

/// The selection of a tensor's pixels that form columns, in `N` spatial dimensions, outermost
/// first: depth, height, width.
///
/// A convolution with filters of `R × S` taps, padding `p` and stride `s` has `lower: [-p; 2]`,
/// `upper: [p - (R - 1), p - (S - 1)]` and `strides: [s; 2]`: the bounding box holds the positions
/// of the first tap, and a load's offsets select the tap.
///
/// Source: CUDA driver API, `cuTensorMapEncodeIm2col`; PTX ISA, "Im2col mode".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Im2col<const N: usize> {
    /// The bounding box's first pixel, counted from the tensor's first. It is negative before that
    /// pixel. The range is -2^15 to 2^15 - 1 with one spatial dimension, -128 to 127 with two, and
    /// -16 to 15 with three.
    pub lower: [i32; N],
    /// The bounding box's last pixel, counted from the tensor's last. It is negative before that
    /// pixel. The same ranges apply.
    pub upper: [i32; N],
    /// The distance between adjacent pixels of a column, 1 to 8.
    pub strides: [u32; N],
}

impl<const N: usize> Default for Im2col<N> {
    /// Selects all pixels of the tensor.
    fn default() -> Self {
        Self { lower: [0; N], upper: [0; N], strides: [1; N] }
    }
}

/// A tensor as the argument of an `Im2colMap` parameter, made by [`Im2colExt::im2col`].
#[derive(Clone, Copy, Debug)]
pub struct WithColumns<A> {
    tensor: A,
    options: MapOptions,
}

impl<A> WithColumns<A> {
    /// Makes out-of-bounds elements read as NaN instead of zero.
    #[must_use]
    pub fn nan_fill(mut self) -> Self {
        self.options.fill = Fill::Nan;
        self
    }

    /// Sets how many bytes are fetched into L2 at a time. The default is 128.
    #[must_use]
    pub fn l2_promotion(mut self, promotion: L2Promotion) -> Self {
        self.options.l2_promotion = promotion;
        self
    }
}

/// Passes a tensor of images to an `Im2colMap` parameter: images, `N` spatial dimensions, channels,
/// outermost first.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn main() -> Result<(), tma_runtime::Error> {
/// # let device = Device::simulator();
/// // 2 images of 16 × 16 pixels of 32 channels; 3 × 3 taps with padding 1.
/// let images: DeviceTensor<f16, 4> = device.zeros([2, 16, 16, 32])?;
/// let argument = images.im2col(Im2col { lower: [-1, -1], upper: [-1, -1], ..Im2col::default() });
/// # let _ = argument;
/// # Ok(())
/// # }
/// ```
///
/// For a tensor that the kernel writes, use `tensor.view_mut()`.
pub trait Im2colExt<const N: usize>: Sized {
    /// The type of the tensor itself.
    type Tensor;

    /// Selects the pixels that form columns.
    fn im2col(self, columns: Im2col<N>) -> WithColumns<Self::Tensor>;
}

fn with_columns<A, const N: usize>(tensor: A, columns: Im2col<N>) -> WithColumns<A> {
    let mut options = MapOptions::default();
    let mut corners = Corners::default();
    for dimension in 0..N {
        corners.lower[dimension] = columns.lower[dimension];
        corners.upper[dimension] = columns.upper[dimension];
        // The first dimension is the images, which have no element stride.
        options.element_strides[dimension + 1] = columns.strides[dimension];
    }
    options.corners = Some(corners);
    WithColumns { tensor, options }
}

macro_rules! tensors {
    ($($pixels:literal: $Tensor:ty;)+) => { $(
        impl<'a, T: Scalar> Im2colExt<$pixels> for $Tensor {
            type Tensor = Self;

            fn im2col(self, columns: Im2col<$pixels>) -> WithColumns<Self> {
                with_columns(self, columns)
            }
        }
    )+ };
}

tensors! {
    1: &'a DeviceTensor<T, 3>;
    1: TensorView<'a, T, 3>;
    1: TensorViewMut<'a, T, 3>;
    2: &'a DeviceTensor<T, 4>;
    2: TensorView<'a, T, 4>;
    2: TensorViewMut<'a, T, 4>;
    3: &'a DeviceTensor<T, 5>;
    3: TensorView<'a, T, 5>;
    3: TensorViewMut<'a, T, 5>;
}

macro_rules! argument {
    ($(#[$doc:meta])* $Arg:ident of $Map:ident, fn $view:ident($($this:tt)+) -> $View:ident) => {
        $(#[$doc])*
        pub trait $Arg<T: Scalar, const N: usize> {
            /// Returns the tensor's address, shape and strides.
            fn $view($($this)+ self) -> $View<'_, T, N>;

            /// Returns the options of the tensor's map.
            fn options(&self) -> MapOptions;
        }

        impl<A: $Map<T, N>, T: Scalar, const N: usize> $Arg<T, N> for WithColumns<A> {
            fn $view($($this)+ self) -> $View<'_, T, N> {
                self.tensor.$view()
            }

            fn options(&self) -> MapOptions {
                self.options
            }
        }
    };
}

argument! {
    /// A tensor of `N` dimensions with elements of `T` that a kernel reads in columns of pixels.
    #[diagnostic::on_unimplemented(
        message = "this parameter takes the im2col columns of a tensor of {N} dimensions with elements of `{T}`, not \
                   `{Self}`",
        label = "pass `tensor.im2col(Im2col {{ lower, upper, strides }})`"
    )]
    Im2colArg of MapArg, fn view(&) -> TensorView
}

argument! {
    /// A tensor of `N` dimensions with elements of `T` that a kernel writes in columns of pixels.
    /// Any other argument is the error `TMA0301`.
    #[diagnostic::on_unimplemented(
        message = "TMA0301: the kernel writes columns of this tensor of {N} dimensions with elements of `{T}`, so it \
                   cannot be passed as `{Self}`",
        label = "pass `tensor.view_mut().im2col(Im2col {{ lower, upper, strides }})`"
    )]
    Im2colArgMut of MapArgMut, fn view_mut(&mut) -> TensorViewMut
}
