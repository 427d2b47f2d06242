//! Columns of pixels in plain Rust.

use tma_runtime::prelude::*;

use crate::random::Sample;

/// The position of a column, outermost dimension first.
pub(crate) struct Column<const N: usize, const RANK: usize> {
    pub(crate) shape: [usize; RANK],
    pub(crate) columns: Im2col<N>,
    pub(crate) at: [i32; RANK],
    pub(crate) offsets: [u32; N],
}

impl<const N: usize, const RANK: usize> Column<N, RANK> {
    /// Returns the index in the tensor of each element of a tile of `pixels` by `channels`, or
    /// `None` for an element outside of it.
    pub(crate) fn indices(&self, pixels: usize, channels: usize) -> Vec<Option<usize>> {
        let Im2col { lower, upper, strides } = self.columns;
        let last: [i32; N] = std::array::from_fn(|i| self.shape[i + 1] as i32 - 1 + upper[i]);
        let mut image = self.at[0];
        let mut pixel: [i32; N] = std::array::from_fn(|i| self.at[i + 1]);
        let mut indices = vec![];
        for _ in 0..pixels {
            for channel in 0..channels {
                let mut at = vec![image];
                at.extend(pixel.iter().zip(self.offsets).map(|(&pixel, offset)| pixel + offset as i32));
                at.push(self.at[RANK - 1] + channel as i32);
                let inside = at.iter().zip(self.shape).all(|(&at, extent)| (0..extent as i32).contains(&at));
                let index = at
                    .iter()
                    .zip(self.shape)
                    .fold(0, |index, (&at, extent)| index * extent as i64 + i64::from(at));
                indices.push(inside.then_some(index as usize));
            }
            let mut next = N;
            loop {
                if next == 0 {
                    image += 1;
                    break;
                }
                next -= 1;
                pixel[next] += strides[next] as i32;
                if pixel[next] <= last[next] {
                    break;
                }
                pixel[next] = lower[next];
            }
        }
        indices
    }

    /// Returns the tile that a load produces.
    pub(crate) fn loaded<T: Sample>(&self, source: &[T], pixels: usize, channels: usize) -> Vec<T> {
        let indices = self.indices(pixels, channels).into_iter();
        indices.map(|index| index.map_or(T::default(), |index| source[index])).collect()
    }

    /// Returns the number of elements of the tensor.
    pub(crate) fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}
