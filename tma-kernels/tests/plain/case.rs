//! Cases of attention: sequences, and options.

use std::ops::Range;

use tma_kernels::Lengths;
use tma_runtime::Error;
use tma_runtime::prelude::*;

/// A problem: sequences of queries and keys, packed if they differ in length, and options.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The numbers of queries and keys of each sequence.
    pub(crate) sequences: Vec<[usize; 2]>,
    pub(crate) is_packed: bool,
    pub(crate) heads: usize,
    /// Heads of keys and values.
    pub(crate) groups: usize,
    pub(crate) depth: usize,
    pub(crate) causal: bool,
    pub(crate) window: Option<usize>,
    pub(crate) window_after: Option<usize>,
    pub(crate) soft_cap: Option<f32>,
    pub(crate) sinks: Option<Vec<f32>>,
}

/// One sequence without options.
pub(crate) fn plain_case() -> Case {
    Case {
        sequences: vec![[150, 200]],
        is_packed: false,
        heads: 2,
        groups: 1,
        depth: 64,
        causal: false,
        window: None,
        window_after: None,
        soft_cap: None,
        sinks: None,
    }
}

impl Case {
    /// Returns the keys that a query sees.
    pub(crate) fn seen(&self, query: usize, [queries, keys]: [usize; 2]) -> Range<usize> {
        let right = if self.causal { Some(0) } else { self.window_after };
        let end = right.map_or(keys, |right| (query + keys + right.min(queries) + 1).saturating_sub(queries));
        let first = self.window.map_or(0, |left| (query + keys).saturating_sub(queries + left.min(keys)));
        first.min(end.min(keys))..end.min(keys)
    }

    /// Returns the starts of the sequences' queries (0) or keys (1) along the packed tensors, and the
    /// end of the last one.
    fn starts(&self, of: usize) -> Vec<usize> {
        let ends = self.sequences.iter().scan(0, |sum, lengths| {
            *sum += lengths[of];
            Some(*sum)
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// Returns the starts on a device.
    pub(crate) fn starts_on(&self, device: &Device, of: usize) -> Result<DeviceTensor<u32, 1>, Error> {
        let starts: Vec<u32> = self.starts(of).into_iter().map(|start| start as u32).collect();
        device.tensor(&starts, [starts.len()])
    }

    /// Returns the lengths for a kernel, from the starts of queries and keys, if they are packed.
    pub(crate) fn lengths<'a>(&self, starts: &'a [DeviceTensor<u32, 1>; 2]) -> Option<Lengths<'a>> {
        let [queries, keys] = starts.each_ref().map(DeviceTensor::view);
        let [longest, longest_keys] = [0, 1].map(|of| self.longest(of));
        self.is_packed.then_some(Lengths { queries, keys, longest, longest_keys })
    }

    /// Returns the sinks on a device.
    pub(crate) fn sinks_on(&self, device: &Device) -> Result<Option<DeviceTensor<f32, 1>>, Error> {
        self.sinks.as_ref().map(|sinks| device.tensor(sinks, [self.heads])).transpose()
    }

    /// Returns the number of queries (0) or keys (1) of the longest sequence.
    fn longest(&self, of: usize) -> usize {
        self.sequences.iter().map(|lengths| lengths[of]).max().unwrap_or(0)
    }

    fn batch(&self) -> usize {
        if self.is_packed { 1 } else { self.sequences.len() }
    }

    /// Returns the shape of tensors of queries (0) or keys (1).
    pub(crate) fn shape(&self, of: usize) -> [usize; 4] {
        let rows = self.starts(of)[self.sequences.len()] / self.batch();
        [self.batch(), [self.heads, self.groups][of], rows, self.depth]
    }

    /// Returns the row of a query or key of a head, counted through the tensor.
    pub(crate) fn row(&self, of: usize, sequence: usize, head: usize, index: usize) -> usize {
        let [_, heads, rows, _] = self.shape(of);
        match self.is_packed {
            true => head * rows + self.starts(of)[sequence] + index,
            false => (sequence * heads + head) * rows + index,
        }
    }
}
