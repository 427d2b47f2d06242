//! Convolutions of images, by a kernel that `docs/convolution.md` explains.

mod choose;
mod error;
pub mod kernel;
mod launch;
mod shape;

pub use choose::ConvTile;
pub use error::ConvError;
pub use launch::ConvElement;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

/// Options of [`conv2d`].
#[derive(Clone, Copy, Debug)]
pub struct ConvOptions<'a, T> {
    /// The rows and columns by which a filter moves: 1 to 8.
    pub stride: [usize; 2],
    /// Rows of zeros above and below an image, and columns of zeros on either side of it.
    pub padding: [usize; 2],
    /// The distance between adjacent taps in rows and columns, at least 1.
    pub dilation: [usize; 2],
    /// A number per filter, which is added to the result.
    pub bias: Option<TensorView<'a, T, 1>>,
    /// Whether negative results are replaced by zeros.
    pub relu: bool,
    /// The pixels and filters of a block's tile. The default is the fastest according to a model
    /// fitted to measurements.
    pub tile: Option<ConvTile>,
}

impl<T> Default for ConvOptions<'_, T> {
    fn default() -> Self {
        Self { stride: [1; 2], padding: [0; 2], dilation: [1; 2], bias: None, relu: false, tile: None }
    }
}

/// Queues `output = images * filters + bias`.
///
/// `images` is images × rows × columns × channels (NHWC), `filters` is filters × rows × columns ×
/// channels (KRSC), and `output` images × rows × columns × filters, with (extent + 2 · padding −
/// dilation · (taps − 1) − 1) / stride + 1 rows and columns, rounded down; none if the filter is
/// larger than the padded image. As everywhere in neural networks, filters are not flipped.
///
/// Sums are accumulated in `f32` and rounded once. Extents are arbitrary if the pixels begin at
/// multiples of 16 bytes: if the number of channels is not a multiple of 8, pass views of padded
/// tensors. Views need not be contiguous, so the output may be the interior of a padded tensor. If
/// the output has no elements, nothing is done. Images without channels produce the bias.
///
/// # Errors
///
/// `TMA0559` if the tensors do not match or are too large, `TMA0563` for a stride, a padding, a
/// dilation or taps that no kernel supports, and the errors of
/// [`launch`](tma_runtime::launch::launch).
///
/// ```
/// use tma_kernels::conv::{ConvOptions, conv2d};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let images = device.tensor(&[bf16::from_f32(1.0); 2 * 6 * 5 * 8], [2, 6, 5, 8])?;
/// let filters = device.tensor(&[bf16::from_f32(0.5); 16 * 3 * 3 * 8], [16, 3, 3, 8])?;
/// let mut output = device.zeros::<bf16, 4>([2, 3, 3, 16])?;
/// let options = ConvOptions { stride: [2; 2], padding: [1; 2], ..ConvOptions::default() };
/// conv2d(&device, &images, &filters, &mut output, options)?;
/// let output = output.to_vec()?;
/// assert_eq!(output[0].to_f32(), 0.5 * 8.0 * 4.0); // in the corner there are 2 × 2 taps
/// # Ok(())
/// # }
/// ```
pub fn conv2d<T: ConvElement>(
    on: &impl LaunchOn,
    images: impl MapArg<T, 4>,
    filters: impl MapArg<T, 4>,
    mut output: impl MapArgMut<T, 4>,
    options: ConvOptions<'_, T>,
) -> Result<(), ConvError> {
    launch::queue(on, images.view(), filters.view(), output.view_mut(), options)
}
