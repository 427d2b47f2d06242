//! Checks of the tensors' shapes, and of the limits of the copy engine.

use tma_runtime::Scalar;

use super::{ConvError, ConvOptions};

/// The number of rows that coordinates of tensor maps can address: 2^31. Source: CUDA driver API,
/// `cuTensorMapEncodeTiled`, `globalDim`; coordinates are signed.
const MOST: usize = 1 << 31;

/// The range of strides of pixels. Source: CUDA driver API, `cuTensorMapEncodeIm2col`,
/// `elementStrides`.
const STRIDES: [i64; 2] = [1, 8];

/// The range of offsets of taps, in tensors of four dimensions. Source: PTX ISA, "Im2col mode".
const OFFSETS: [i64; 2] = [0, 255];

/// The range of corners of the bounding box in which filters begin, in tensors of four dimensions.
/// Source: CUDA driver API, `cuTensorMapEncodeIm2col`, `pixelBoxLowerCorner`.
const CORNERS: [i64; 2] = [-128, 127];

/// The extents of a launch, derived from its tensors. Rows come before columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) images: usize,
    /// Rows and columns of the output.
    pub(super) extents: [usize; 2],
    pub(super) filters: usize,
    pub(super) channels: usize,
    pub(super) taps: [usize; 2],
    pub(super) stride: [usize; 2],
    pub(super) padding: [usize; 2],
    pub(super) dilation: [usize; 2],
    /// Whether there is nothing to sum, since images or filters have no elements.
    pub(super) is_empty: bool,
}

impl Problem {
    /// Returns the problem for tensors of these shapes: images, filters and output.
    ///
    /// # Errors
    ///
    /// [`ConvError`] if they do not match, or if the filter is not supported.
    pub(super) fn of<T: Scalar>(
        shapes: [[usize; 4]; 3],
        options: &ConvOptions<'_, T>,
    ) -> Result<Self, ConvError> {
        let [images, filters, output] = shapes;
        let &ConvOptions { stride, padding, dilation, .. } = options;
        let [count, height, width, channels] = images;
        let taps = [filters[1], filters[2]];
        for axis in 0..2 {
            let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
            window(["rows", "columns"][axis], [taps, stride, padding, dilation].map(|of| number(of[axis])))?;
        }
        let shape = |tensor, found: &[usize], wanted: &[usize]| match found == wanted {
            true => Ok(()),
            false => Err(ConvError::Shape { tensor, found: found.into(), wanted: wanted.into() }),
        };
        shape("filters", &filters, &[filters[0], taps[0], taps[1], channels])?;
        let extents = [0, 1].map(|axis| {
            let padded = [height, width][axis].saturating_add(2 * padding[axis]);
            padded.saturating_sub(dilation[axis] * (taps[axis] - 1)).div_ceil(stride[axis])
        });
        shape("output", &output, &[count, extents[0], extents[1], filters[0]])?;
        if let Some(bias) = &options.bias {
            shape("bias", &bias.shape(), &[filters[0]])?;
        }
        let product = |of: &[usize]| of.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent));
        // One tile more than the pixels, since blocks count in whole tiles.
        let pixels = product(&[count, extents[0], extents[1], 2]);
        let sums = product(&[taps[0], taps[1], channels]);
        let is_too_large = |extent: Option<usize>| extent.is_none_or(|extent| extent >= MOST);
        if is_too_large(pixels)
            || is_too_large(sums)
            || [height, width, filters[0]].iter().any(|&e| e >= MOST)
        {
            return Err(ConvError::TooLarge { shapes });
        }
        let is_empty = images.contains(&0) || filters.contains(&0);
        Ok(Self {
            images: count,
            extents,
            filters: filters[0],
            channels,
            taps,
            stride,
            padding,
            dilation,
            is_empty,
        })
    }

    /// Returns the number of pixels of the output.
    pub(super) fn pixels(&self) -> usize {
        self.images * self.extents[0] * self.extents[1]
    }

    /// Returns the number of steps of 64 channels of a tap.
    pub(super) fn steps(&self) -> usize {
        self.taps[0] * self.taps[1] * self.channels.div_ceil(64)
    }

    /// Returns the first and the last position of a filter's first tap along an axis, counted from
    /// an image's first and last pixel. [`Problem::of`] has checked that they are within
    /// [`CORNERS`].
    pub(super) fn corners(&self, axis: usize) -> [i32; 2] {
        let padding = self.padding[axis] as i32;
        [-padding, padding - (self.dilation[axis] * (self.taps[axis] - 1)) as i32]
    }
}

/// Checks that the copy engine supports a filter along an axis: taps, stride, padding and dilation.
fn window(axis: &'static str, [taps, stride, padding, dilation]: [i64; 4]) -> Result<(), ConvError> {
    let within = |rows, columns, found: i64, bounds: [i64; 2], instead| {
        let what = if axis == "rows" { rows } else { columns };
        match (bounds[0]..=bounds[1]).contains(&found) {
            true => Ok(()),
            false => Err(ConvError::Window { what, found, bounds, instead }),
        }
    };
    within(
        "the number of a filter's rows",
        "the number of a filter's columns",
        taps,
        [1, 256],
        "use 1 to 256 taps, or split the filter into several, and add up the results",
    )?;
    within(
        "the stride of rows",
        "the stride of columns",
        stride,
        STRIDES,
        "use a stride of 1 to 8, or, for filters of one tap, a view of every nth pixel",
    )?;
    within(
        "the dilation of rows",
        "the dilation of columns",
        dilation,
        [1, 255],
        "use 1 for taps without gaps",
    )?;
    let (reach, split) = (dilation * (taps - 1), "split the filter into several, and add up the results");
    within(
        "the distance between a filter's first and last row",
        "the distance between a filter's first and last column",
        reach,
        OFFSETS,
        split,
    )?;
    let padded = "copy the images into larger ones of zeros";
    within("the padding of rows", "the padding of columns", padding, [0, -CORNERS[0]], padded)?;
    within(
        "the padding of rows minus the distance between a filter's first and last row",
        "the padding of columns minus the distance between a filter's first and last column",
        padding - reach,
        CORNERS,
        if padding < reach { split } else { padded },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shapes: [[usize; 4]; 3], options: ConvOptions<'_, f32>) -> Result<Problem, ConvError> {
        Problem::of(shapes, &options)
    }

    #[test]
    fn extents_of_the_output_follow_from_the_window() -> Result<(), ConvError> {
        for (extent, taps, stride, padding, dilation, wanted) in [
            (56, 3, 1, 1, 1, 56),
            (56, 3, 2, 1, 1, 28),
            (7, 7, 1, 0, 1, 1),
            (224, 7, 2, 3, 1, 112),
            (20, 3, 1, 2, 2, 20),
            (9, 2, 8, 0, 3, 1),
            (2, 5, 1, 1, 1, 0),
            (0, 1, 1, 1, 1, 2),
        ] {
            let options = ConvOptions {
                stride: [stride; 2],
                padding: [padding; 2],
                dilation: [dilation; 2],
                ..ConvOptions::default()
            };
            let shapes = [[2, extent, extent, 8], [16, taps, taps, 8], [2, wanted, wanted, 16]];
            assert_eq!(of(shapes, options)?.extents, [wanted; 2]);
            let wrong = of([shapes[0], shapes[1], [2, wanted + 1, wanted, 16]], options);
            assert!(wrong.is_err_and(|error| error.code() == "TMA0559"));
        }
        Ok(())
    }

    #[test]
    fn windows_that_the_copy_engine_cannot_follow_are_refused() {
        let plain = ConvOptions::<f32>::default();
        let refused = |taps, options: ConvOptions<'_, f32>| {
            let shapes = [[1, 300, 300, 8], [8, taps, 1, 8], [0; 4]];
            of(shapes, options).err().map(|error| (error.code(), error.to_string()))
        };
        for (taps, options, wanted) in [
            (0, plain, "the number of a filter's rows must be 1 to 256: it is 0"),
            (1, ConvOptions { stride: [0, 1], ..plain }, "the stride of rows must be 1 to 8: it is 0"),
            (1, ConvOptions { stride: [1, 9], ..plain }, "the stride of columns must be 1 to 8: it is 9"),
            (1, ConvOptions { dilation: [0, 1], ..plain }, "the dilation of rows must be 1 to 255: it is 0"),
            (3, ConvOptions { dilation: [128, 1], ..plain }, "last row must be 0 to 255: it is 256"),
            (
                1,
                ConvOptions { padding: [0, 129], ..plain },
                "the padding of columns must be 0 to 128: it is 129",
            ),
            (200, plain, "last row must be -128 to 127: it is -199"),
        ] {
            let (code, text) = refused(taps, options).expect("an error");
            assert!(code == "TMA0563" && text.contains(wanted), "{text}");
        }
        // Values at the bounds pass: the error is that of the output's shape.
        for (taps, options) in [
            (129, plain),
            (2, ConvOptions { dilation: [255, 1], padding: [127, 0], ..plain }),
            (2, ConvOptions { stride: [8, 8], padding: [128, 127], ..plain }),
        ] {
            assert_eq!(refused(taps, options).map(|(code, _)| code), Some("TMA0559"));
        }
    }
}
