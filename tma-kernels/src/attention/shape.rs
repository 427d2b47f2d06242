//! Checks of the tensors' shapes, and the division of the work.

use super::mask::{Mask, Scores};
use super::{AttentionError, AttentionOptions};

/// Queries per tile, as in the kernel.
const QUERIES: usize = 128;

/// The number of rows that coordinates of tensor maps can address: 2^31. Source: CUDA driver API,
/// `cuTensorMapEncodeTiled`, `globalDim`; coordinates are signed.
pub(crate) const MOST: usize = 1 << 31;

/// Checks the shape of a tensor.
pub(super) fn fits(tensor: &'static str, found: &[usize], wanted: &[usize]) -> Result<(), AttentionError> {
    match found == wanted {
        true => Ok(()),
        false => Err(AttentionError::Shape { tensor, found: found.into(), wanted: wanted.into() }),
    }
}

/// Returns how many heads of queries share a head of keys: 0 if there are none.
pub(super) fn group(of_queries: usize, of_keys: usize) -> Result<usize, AttentionError> {
    match of_queries {
        0 => Ok(0),
        _ if of_keys > 0 && of_queries.is_multiple_of(of_keys) => Ok(of_queries / of_keys),
        _ => Err(AttentionError::Heads { queries: of_queries, keys: of_keys }),
    }
}

/// Returns the number of elements from the first to the last one of a view, which has some.
pub(crate) fn reach<const RANK: usize>(shape: [usize; RANK], strides: [usize; RANK]) -> usize {
    let steps = shape.iter().zip(strides).map(|(extent, stride)| extent.saturating_sub(1) * stride);
    steps.sum::<usize>() + 1
}

/// The extents of a launch, derived from its tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) depth: usize,
    /// The depth of values and results, at most that of queries and keys.
    pub(super) value_depth: usize,
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
    pub(super) mask: Mask,
    pub(super) scores: Scores,
    /// Whether the general kernel computes it: for what the others have no instances.
    pub(super) is_general: bool,
}

/// The depths for which kernels are compiled.
pub(super) const DEPTHS: [usize; 3] = [64, 128, 256];

/// The number of which a depth is a multiple: rows begin at multiples of 16 bytes. Source: CUDA
/// driver API, `cuTensorMapEncodeTiled`, `globalStrides`.
pub(super) const DEPTH_MULTIPLE: usize = 8;

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
        if depth == 0 || depth > 256 || !depth.is_multiple_of(DEPTH_MULTIPLE) {
            return Err(AttentionError::Depth { depth });
        }
        fits("k", &k, &[batch, k[1], k[2], depth])?;
        let value_depth = v[3];
        if value_depth == 0 || value_depth > depth || !value_depth.is_multiple_of(DEPTH_MULTIPLE) {
            return Err(AttentionError::ValueDepth { depth: value_depth, most: depth });
        }
        fits("v", &v, &[batch, k[1], k[2], value_depth])?;
        fits("o", &o, &[batch, heads, queries, value_depth])?;
        if let Some(lse) = &options.lse {
            fits("lse", &lse.shape(), &[batch, heads, queries])?;
        }
        let group = group(heads, k[1])?;
        if let Some(sinks) = &options.sinks {
            fits("sinks", &sinks.shape(), &[heads])?;
        }
        let scores = Scores::of(options.scale, options.soft_cap, depth)?;
        let mask = Mask::of(options.causal, options.window, options.window_after, [queries, k[2]]);
        let (sequences, longest) = match &options.lengths {
            None => (batch, queries),
            Some(lengths) => (lengths.sequences(batch)?, lengths.longest.min(queries)),
        };
        let tiles = longest.div_ceil(QUERIES);
        let of_head = if mask.has_pairs() { tiles.div_ceil(2) } else { tiles };
        let units = sequences.checked_mul(heads).and_then(|all| all.checked_mul(of_head));
        let units = units.filter(|&units| units < MOST && queries < MOST && k[2] < MOST);
        let units = units.ok_or(AttentionError::TooLarge { queries, keys: k[2], heads, sequences })?;
        // Threads of the other kernels store rows of the compiled depth.
        let is_partial = options.lengths.is_some() && value_depth != kernel_depth(depth);
        let is_window = matches!(mask, Mask::Window { .. });
        let is_general = is_window || is_partial || options.soft_cap.is_some() || options.sinks.is_some();
        Ok(Self {
            depth,
            value_depth,
            heads,
            group,
            queries,
            keys: k[2],
            tiles,
            units,
            mask,
            scores,
            is_general,
        })
    }

    /// Returns the depth of the kernel that computes this one: loads fill the columns beyond with
    /// zeros, and stores omit them.
    pub(super) fn kernel_depth(&self) -> usize {
        kernel_depth(self.depth)
    }
}

/// Returns the least depth of a kernel that computes heads of this one.
fn kernel_depth(depth: usize) -> usize {
    DEPTHS.into_iter().find(|&of_kernel| depth <= of_kernel).unwrap_or(256)
}
