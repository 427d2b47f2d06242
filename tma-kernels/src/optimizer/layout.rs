//! How parameters lie in one tensor.

use std::ops::Range;

use tma_runtime::Device;
use tma_runtime::prelude::*;

use super::kernel::flat::{CHUNK, UNIT};
use super::not_negative;
use crate::model::ModelError;

/// Words of the table for each chunk.
const WORDS: usize = 4;

/// The number of elements that all parameters together do not reach.
const MOST: usize = 1 << 38;

/// A parameter of a model: a tensor that an optimiser updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The number of its elements.
    pub len: usize,
    /// The share of the parameter, times the learning rate, that each step subtracts from it: 0 by
    /// default.
    pub weight_decay: f32,
    /// The factor of the learning rate: 1 by default.
    pub rate_factor: f32,
}

impl Parameter {
    /// Returns a parameter without weight decay.
    pub const fn new(len: usize) -> Self {
        Self { len, weight_decay: 0.0, rate_factor: 1.0 }
    }
}

/// The positions of parameters that follow each other in one tensor, with their options on the
/// device.
///
/// Each parameter begins at the next multiple of 64 elements, so that vectors and tensor maps of it
/// are aligned. The elements in between are neither read nor written.
#[derive(Debug)]
pub struct ParameterLayout {
    ranges: Vec<Range<usize>>,
    len: usize,
    chunks: usize,
    table: DeviceTensor<u32, 1>,
}

impl ParameterLayout {
    /// Makes the layout of these parameters, in order.
    ///
    /// # Errors
    ///
    /// `TMA0577` for 2^38 or more elements, and `TMA0578` for a weight decay or a factor that is
    /// negative or not finite. Also [`Error::OutOfMemory`], [`Error::KernelFault`] and
    /// [`Error::Driver`].
    pub fn new(device: &Device, parameters: &[Parameter]) -> Result<Self, ModelError> {
        let mut ranges = Vec::with_capacity(parameters.len());
        let mut len = 0_usize;
        for parameter in parameters {
            let start = len.next_multiple_of(UNIT as usize);
            let end = start.checked_add(parameter.len).filter(|end| *end < MOST);
            len = end.ok_or_else(|| ModelError::TooLarge {
                shape: parameters.iter().map(|parameter| parameter.len).collect(),
                wanted: "fewer than 2^38 elements of parameters",
            })?;
            ranges.push(start..len);
        }
        let mut table = vec![];
        for (parameter, range) in parameters.iter().zip(&ranges) {
            let weight_decay = not_negative("weight_decay", parameter.weight_decay)?;
            let rate_factor = not_negative("rate_factor", parameter.rate_factor)?;
            for start in range.clone().step_by(CHUNK as usize) {
                let count = (range.end - start).min(CHUNK as usize);
                let unit = start / UNIT as usize;
                table.extend([unit as u32, count as u32, weight_decay.to_bits(), rate_factor.to_bits()]);
            }
        }
        let chunks = table.len() / WORDS;
        Ok(Self { ranges, len, chunks, table: device.tensor(&table, [chunks * WORDS])? })
    }

    /// Returns the elements of the tensor: up to the last one of the last parameter.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    /// Returns the range of each parameter in the tensor.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Returns the number of sums that [`sum_squares`](super::sum_squares) writes.
    pub fn sums(&self) -> usize {
        self.chunks
    }

    /// Returns the table on the device.
    pub(super) fn table(&self) -> &DeviceTensor<u32, 1> {
        &self.table
    }

    /// Returns a block for each chunk. There is at least one.
    pub(super) fn grid(&self) -> Grid {
        Grid::x(self.chunks as u32)
    }
}
