//! Checks of the tensors' shapes, and the division of the work.

use super::{AttentionBackwardOptions, AttentionForward, AttentionGradients, Sinks};
use crate::attention::mask::{Mask, Scores};
use crate::attention::shape::{DEPTH_MULTIPLE, MOST, fits, group};
use crate::attention::{AttentionElement, AttentionError};

/// Keys per block, as in the kernel.
const KEYS: usize = 128;

/// Queries of all sequences, and how they are divided among blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QueryBlocks {
    /// The depth of the instance: loads fill the columns beyond that of the tensors with zeros, and
    /// stores omit them.
    pub(super) depth: usize,
    /// Queries that a block multiplies at a time.
    pub(super) queries: usize,
    /// Heads whose blocks follow each other: those of the whole batch.
    pub(super) heads: usize,
    /// Blocks of a head: if sequences are packed, those of all of them.
    pub(super) of_head: usize,
}

impl QueryBlocks {
    /// Returns the division for queries of batch × heads × queries × depth, if `packed` in so many
    /// sequences. Each of these begins a block of its own.
    pub(super) fn of(shape: [usize; 4], packed: Option<usize>) -> Result<Self, AttentionError> {
        let [batch, heads, queries, depth] = shape;
        let (of_kernel, of_block) = match depth {
            8..=64 if depth.is_multiple_of(DEPTH_MULTIPLE) => (64, 128),
            65..=128 if depth.is_multiple_of(DEPTH_MULTIPLE) => (128, 64),
            _ => return Err(AttentionError::BackwardDepth { depth }),
        };
        let of_head = match packed {
            None => queries.div_ceil(of_block),
            Some(sequences) => (queries / of_block).saturating_add(sequences),
        };
        Ok(Self { depth: of_kernel, queries: of_block, heads: batch.saturating_mul(heads), of_head })
    }

    /// Returns the number of blocks.
    pub(super) fn count(&self) -> usize {
        self.heads.saturating_mul(self.of_head)
    }

    /// Returns the rows of all blocks, with those beyond the end of a sequence.
    pub(super) fn rows(&self) -> usize {
        self.count().saturating_mul(self.queries)
    }
}

/// The extents of a launch, derived from its tensors.
#[derive(Debug)]
pub(super) struct Problem {
    /// The depth of the tensors.
    pub(super) depth: usize,
    pub(super) sequences: usize,
    pub(super) heads: usize,
    /// Heads of keys.
    pub(super) key_heads: usize,
    /// Heads of queries that share one head of keys; 0 if there are none.
    pub(super) group: usize,
    /// Extent along the tensor; the total of all sequences if there are several.
    pub(super) queries: usize,
    pub(super) keys: usize,
    /// Queries of the longest sequence.
    pub(super) longest: usize,
    /// Keys of the longest sequence.
    pub(super) longest_keys: usize,
    /// Blocks of keys per head of the longest sequence.
    pub(super) key_blocks: usize,
    pub(super) mask: Mask,
    pub(super) scores: Scores,
    pub(super) blocks: QueryBlocks,
    /// Whether the general kernels compute it: for what the others have no instances.
    pub(super) is_general: bool,
}

impl Problem {
    pub(super) fn of<T: AttentionElement>(
        forward: &AttentionForward<'_, T>,
        gradients: &AttentionGradients<'_, T>,
        options: &AttentionBackwardOptions<'_>,
    ) -> Result<Self, AttentionError> {
        let (q, k) = (forward.q.shape(), forward.k.shape());
        let [batch, heads, queries, depth] = q;
        let [_, key_heads, keys, _] = k;
        let (packed, longest, longest_keys) = match &options.lengths {
            None => (None, queries, keys),
            Some(lengths) => {
                let sequences = lengths.sequences(batch)?;
                (Some(sequences), lengths.longest.min(queries), lengths.longest_keys.min(keys))
            }
        };
        let blocks = QueryBlocks::of(q, packed)?;
        fits("k", &k, &[batch, key_heads, keys, depth])?;
        fits("v", &forward.v.shape(), &k)?;
        fits("o", &forward.o.shape(), &q)?;
        fits("d_o", &forward.d_o.shape(), &q)?;
        fits("lse", &forward.lse.shape(), &q[..3])?;
        fits("dq", &gradients.dq.shape(), &q)?;
        fits("dk", &gradients.dk.shape(), &k)?;
        fits("dv", &gradients.dv.shape(), &k)?;
        if let Some(Sinks { sinks, gradient }) = &options.sinks {
            fits("sinks", &sinks.shape(), &[heads])?;
            fits("the gradient of sinks", &gradient.shape(), &[heads])?;
        }
        let group = group(heads, key_heads)?;
        let scores = Scores::of(options.scale, options.soft_cap, depth)?;
        let mask = Mask::of(options.causal, options.window, options.window_after, [queries, keys]);
        let sequences = packed.unwrap_or(batch);
        let key_blocks = longest_keys.div_ceil(KEYS);
        let of_keys = sequences.saturating_mul(key_heads).saturating_mul(key_blocks);
        let of_queries = sequences.saturating_mul(heads).saturating_mul(longest.div_ceil(blocks.queries));
        if blocks.rows().max(of_keys).max(of_queries).max(queries).max(keys) >= MOST {
            return Err(AttentionError::TooLarge { queries, keys, heads, sequences });
        }
        let is_window = matches!(mask, Mask::Window { .. });
        let is_general = is_window || packed.is_some() || scores.soft_cap.is_some() || depth != blocks.depth;
        Ok(Self {
            depth,
            sequences,
            heads,
            key_heads,
            group,
            queries,
            keys,
            longest,
            longest_keys,
            key_blocks,
            mask,
            scores,
            blocks,
            is_general,
        })
    }

    /// Returns whether the kernels are instances with a mask.
    pub(super) fn is_causal(&self) -> bool {
        self.is_general || self.mask == Mask::Causal
    }

    /// Returns how many heads of keys begin with their first blocks, or with their last ones: as
    /// many as run at the same time. Without a mask all blocks take equally long, so that it only
    /// matters `in_order`: blocks that wait for those that start before them should not start at the
    /// same time.
    pub(super) fn heads_together(&self, in_order: bool, multiprocessors: u32) -> u32 {
        match self.is_causal() || in_order {
            true => (multiprocessors / (self.key_blocks as u32).max(1)).max(1),
            false => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each sequence's blocks end before those of the next one begin.
    #[test]
    fn packed_sequences_have_blocks_of_their_own() {
        for (lengths, depth) in [(&[64, 1, 0, 63, 200][..], 128), (&[127, 1, 1, 128], 64), (&[], 64)] {
            let total = lengths.iter().sum();
            let blocks =
                QueryBlocks::of([1, 2, total, depth], Some(lengths.len())).expect("the depth is known");
            let (mut start, mut end) = (0, 0);
            for (index, length) in lengths.iter().enumerate() {
                let first = start / blocks.queries + index;
                assert!(first >= end, "{lengths:?}");
                (start, end) = (start + length, first + length.div_ceil(blocks.queries));
            }
            assert!(end <= blocks.of_head, "{lengths:?}");
            assert_eq!(blocks.count(), 2 * blocks.of_head);
        }
    }
}
