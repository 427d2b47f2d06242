//! Checks of the tensors' shapes, and the division of the work.

use std::f32::consts::LOG2_E;

use super::{AttentionError, AttentionOptions};

/// Queries per tile, as in the kernel.
const QUERIES: usize = 128;

/// The number of rows that coordinates of tensor maps can address: 2^31. Source: CUDA driver API,
/// `cuTensorMapEncodeTiled`, `globalDim`; coordinates are signed.
pub(crate) const MOST: usize = 1 << 31;

/// The extents of a launch, derived from its tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) depth: usize,
    pub(super) heads: usize,
    /// Heads of queries that share one head of keys.
    pub(super) group: usize,
    /// Extent along the tensor; the total of all sequences if there are several.
    pub(super) queries: usize,
    pub(super) keys: usize,
    /// Tiles of queries per head, for the longest sequence.
    pub(super) tiles: usize,
    /// Work units of blocks: tiles, or pairs of them with a causal mask.
    pub(super) units: usize,
    pub(super) scale: f32,
}

impl Problem {
    /// Returns the problem for tensors of these shapes: `q`, `k`, `v` and `o`.
    ///
    /// # Errors
    ///
    /// [`AttentionError`] if they do not match.
    pub(super) fn of(
        [q, k, v, o]: [[usize; 4]; 4],
        options: &AttentionOptions<'_>,
    ) -> Result<Self, AttentionError> {
        let [batch, heads, queries, depth] = q;
        if ![64, 128, 256].contains(&depth) {
            return Err(AttentionError::Depth { depth });
        }
        let shape = |tensor, found: &[usize], wanted: &[usize]| match found == wanted {
            true => Ok(()),
            false => Err(AttentionError::Shape { tensor, found: found.into(), wanted: wanted.into() }),
        };
        shape("k", &k, &[batch, k[1], k[2], depth])?;
        shape("v", &v, &k)?;
        shape("o", &o, &q)?;
        if let Some(lse) = &options.lse {
            shape("lse", &lse.shape(), &[batch, heads, queries])?;
        }
        if heads > 0 && (k[1] == 0 || !heads.is_multiple_of(k[1])) {
            return Err(AttentionError::Heads { queries: heads, keys: k[1] });
        }
        let scale = options.scale.unwrap_or(1.0 / (depth as f32).sqrt());
        if !(scale > 0.0 && (scale * LOG2_E).is_finite()) {
            return Err(AttentionError::Scale { scale });
        }
        let (sequences, longest) = match &options.lengths {
            None => (batch, queries),
            Some(lengths) => {
                let [of_queries, of_keys] = [lengths.queries, lengths.keys].map(|starts| starts.shape()[0]);
                if batch != 1 || of_queries == 0 || of_queries != of_keys {
                    return Err(AttentionError::Lengths { batch, starts: [of_queries, of_keys] });
                }
                (of_queries - 1, lengths.longest.min(queries))
            }
        };
        let tiles = longest.div_ceil(QUERIES);
        let of_head = if options.causal { tiles.div_ceil(2) } else { tiles };
        let units = sequences.checked_mul(heads).and_then(|all| all.checked_mul(of_head));
        let units = units.filter(|&units| units < MOST && queries < MOST && k[2] < MOST);
        let units = units.ok_or(AttentionError::TooLarge { queries, keys: k[2], heads, sequences })?;
        let group = if heads == 0 { 1 } else { heads / k[1] };
        Ok(Self { depth, heads, group, queries, keys: k[2], tiles, units, scale })
    }
}
