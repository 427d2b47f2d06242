//! Checks of the tensors' shapes and of the options.

use std::f32::consts::LOG2_E;

use super::latent::kernel::warpgroups as latent;
use super::latent::kernel::warpgroups::{LATENTS, ROTATED};
use super::pages::Pages;
use super::schedule::work::MOST_SEQUENCES;
use super::{
    AttentionElement, CacheElement, CachedAttentionError, CachedAttentionOptions, Division, KeyValueCache,
    blocks,
};
use crate::attention::shape::MOST;
use tma_runtime::Device;

/// The greatest depth for which there is a kernel.
const MOST_DEPTH: usize = 256;

/// The rows of the smallest page of keys and values.
pub(super) const LEAST_ROWS: usize = 16;

/// The elements of 16 bytes.
pub(super) const VECTOR: usize = 8;

/// The tensors that have the columns of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Keys have a tensor of their own.
    Separate,
    /// The first columns of keys are values. The keys' tensor has those after them.
    Latent,
}

/// The extents of a call, derived from its tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) layout: Layout,
    pub(super) sequences: usize,
    pub(super) key_heads: usize,
    /// Heads of queries that share one head of keys.
    pub(super) group: usize,
    pub(super) queries: usize,
    pub(super) depth: usize,
    /// The depth of values, at most that of keys.
    pub(super) value_depth: usize,
    /// The greatest number of keys of a sequence.
    pub(super) keys: usize,
    /// About how many keys of each sequence the work is divided for.
    pub(super) usual_keys: usize,
    /// The rows of a page, if there are pages.
    pub(super) page_rows: Option<usize>,
    /// The pages of a row of the table.
    pub(super) table_width: usize,
    /// The number of keys before a query's position that it sees.
    pub(super) left: usize,
    /// The number of keys after it.
    pub(super) right: usize,
    /// The factor of scores in exponents of 2.
    pub(super) scale: f32,
    /// The factor of scores in the hyperbolic tangent that limits them, or 0.
    pub(super) cap_scale: f32,
    /// The factor of what is added to scores after their scale and limit.
    pub(super) bias_factor: f32,
    /// Whether something is added to scores after their scale and limit.
    pub(super) has_additions: bool,
    /// Bytes of an element of the cache.
    pub(super) bytes: usize,
}

impl Problem {
    /// Returns the problem for tensors `q`, the cache of this layout, and `o`.
    ///
    /// # Errors
    ///
    /// [`CachedAttentionError`] if they do not match.
    pub(super) fn of<T: AttentionElement, C: CacheElement<T>>(
        layout: Layout,
        [q, o]: [[usize; 4]; 2],
        cache: &KeyValueCache<'_, C>,
        options: &CachedAttentionOptions<'_, T>,
    ) -> Result<Self, CachedAttentionError> {
        let [sequences, heads, queries, depth] = q;
        let k = cache.keys.shape();
        let [_, key_heads, rows, _] = k;
        let batch = if cache.pages.are_there() { k[0] } else { sequences };
        let value_depth = match layout {
            Layout::Separate => {
                let value_depth = cache.values.shape()[3];
                let multiple = 16 / C::BYTES;
                let fit = |depth: usize, most| depth > 0 && depth <= most && depth.is_multiple_of(multiple);
                if !fit(depth, MOST_DEPTH) {
                    return Err(CachedAttentionError::Depth { depth, multiple });
                }
                if !fit(value_depth, depth) {
                    return Err(CachedAttentionError::ValueDepth {
                        depth: value_depth,
                        most: depth,
                        multiple,
                    });
                }
                fits("k", &k, &[batch, key_heads, rows, depth])?;
                fits("v", &cache.values.shape(), &[batch, key_heads, rows, value_depth])?;
                value_depth
            }
            Layout::Latent => {
                fits("q", &q, &[sequences, heads, queries, (LATENTS + ROTATED) as usize])?;
                fits("rotated", &k, &[batch, 1, rows, ROTATED as usize])?;
                fits("latents", &cache.values.shape(), &[batch, 1, rows, LATENTS as usize])?;
                LATENTS as usize
            }
        };
        fits("o", &o, &[sequences, heads, queries, value_depth])?;
        cache.pages.check(sequences, cache.lengths, fits)?;
        let most_pages = cache.pages.most();
        let least_rows = match layout {
            Layout::Separate => LEAST_ROWS,
            Layout::Latent => latent::KEYS as usize,
        };
        let page_rows = page_rows(cache.pages.are_there(), rows, least_rows)?;
        if let Some(scales) = &cache.scales {
            scales.check(batch, key_heads, fits)?;
        }
        if let Some(sinks) = &options.sinks {
            fits("sinks", &sinks.shape(), &[heads])?;
        }
        if let Some(slopes) = &options.slopes {
            fits("slopes", &slopes.shape(), &[heads])?;
        }
        if let Some(bias) = &options.bias {
            let keys = most_keys(page_rows, rows, most_pages).unwrap_or(usize::MAX);
            let all = [sequences, heads, queries, keys];
            let shared = std::array::from_fn(|i| if bias.shape()[i] == 1 { 1 } else { all[i] });
            fits("bias", &bias.shape(), &shared as &[usize; 4])?;
        }
        if let Some(lse) = &options.lse {
            fits("lse", &lse.shape(), &[sequences, heads, queries])?;
        }
        if heads > 0 && (key_heads == 0 || !heads.is_multiple_of(key_heads)) {
            return Err(CachedAttentionError::Heads { queries: heads, keys: key_heads });
        }
        let scale = positive("scale", options.scale.unwrap_or(1.0 / (depth as f32).sqrt()))?;
        let (scale, cap_scale) = match options.soft_cap {
            None => (scale, 0.0),
            Some(cap) => (positive("soft_cap", cap)?, positive("scale / soft_cap", scale / cap)?),
        };
        let keys =
            most_keys(page_rows, rows, most_pages).filter(|&keys| keys < MOST && queries < MOST - keys);
        let usual_keys = match cache.pages {
            Pages::Indices(_) => most_pages.div_ceil(sequences.max(1)).saturating_mul(rows).min(MOST),
            Pages::None | Pages::Table(_) => keys.unwrap_or(MOST),
        };
        let group = if heads == 0 { 1 } else { heads / key_heads };
        let problem = Self {
            layout,
            sequences,
            key_heads,
            group,
            queries,
            depth,
            value_depth,
            keys: keys.unwrap_or(MOST),
            usual_keys,
            page_rows,
            table_width: cache.pages.width(),
            left: options.window.unwrap_or(MOST).min(MOST),
            right: if options.causal { 0 } else { options.window_after.unwrap_or(MOST).min(MOST) },
            scale: scale * LOG2_E,
            cap_scale,
            bias_factor: scale.recip(),
            has_additions: options.slopes.is_some() || options.bias.is_some(),
            bytes: C::BYTES,
        };
        let units = problem.heads_and_tiles().checked_mul(problem.sequences);
        let outputs = sequences.checked_mul(heads).and_then(|all| all.checked_mul(queries));
        let is_small = |number: Option<usize>| number.is_some_and(|number| number < MOST / 2);
        let most_sequences = match cache.pages {
            Pages::Indices(_) => MOST_SEQUENCES / 2, // the kernels keep their lengths
            Pages::None | Pages::Table(_) => MOST_SEQUENCES,
        };
        let is_few = sequences <= most_sequences as usize;
        if keys.is_none() || !is_few || !is_small(units) || !is_small(outputs) {
            return Err(CachedAttentionError::TooLarge { shape: q, keys: keys.unwrap_or(usize::MAX) });
        }
        Ok(problem)
    }

    /// Returns the division of keys among blocks if the caller asks for none.
    pub(super) fn division(&self, device: &Device) -> Division {
        let heads = self.sequences * self.key_heads;
        let tile = self.tile_rows();
        let blocks = blocks(device, tile, self.kernel_depth());
        Division::of_tiles(blocks, heads, self.usual_keys, self.rows(), tile)
    }

    /// Returns the rows of queries of a head of keys.
    pub(super) fn rows(&self) -> usize {
        self.queries.saturating_mul(self.group)
    }

    /// Returns how many rows of a head of keys a block multiplies at a time.
    pub(super) fn tile_rows(&self) -> usize {
        // Beside so many columns, kernels for more rows have no registers for additions, and
        // neither for stages of 16 keys.
        let needs_small_stages = self.has_additions || self.page_rows == Some(16);
        let is_few = self.bytes == 1 || self.kernel_depth() > 128 && needs_small_stages;
        match self.layout {
            Layout::Latent => 64,
            Layout::Separate if is_few => 16,
            Layout::Separate => super::tile_rows(self.rows()),
        }
    }

    /// Returns the number of keys of a stage, which are in one page.
    pub(super) fn stage_keys(&self) -> usize {
        // Only the smaller stages have registers for additions.
        let most = if self.has_additions { 16 } else { self.page_rows.unwrap_or(64) };
        match most {
            0..32 => 16,
            32.. if self.tile_rows() > 16 && self.kernel_depth() > 128 => 32,
            32..64 => 16,
            64.. => 64,
        }
    }

    /// Returns how many heads of keys, times tiles of rows, a sequence has.
    pub(super) fn heads_and_tiles(&self) -> usize {
        self.key_heads.saturating_mul(self.rows().div_ceil(self.tile_rows()))
    }

    /// Returns the depth of the values of the kernel that computes this one: loads fill the columns
    /// beyond with zeros.
    pub(super) fn kernel_depth(&self) -> usize {
        match (self.layout, self.depth) {
            (Layout::Latent, _) => LATENTS as usize,
            (Layout::Separate, 0..=64) if self.bytes > 1 => 64,
            (Layout::Separate, 0..=128) => 128,
            (Layout::Separate, _) => MOST_DEPTH,
        }
    }
}

/// Returns the rows of a page, if a cache is in pages, or an error if there is no kernel for them,
/// which are `least` or more.
pub(super) fn page_rows(
    is_paged: bool,
    rows: usize,
    least: usize,
) -> Result<Option<usize>, CachedAttentionError> {
    match (is_paged, rows) {
        (false, _) => Ok(None),
        (true, 16 | 32 | 64 | 128 | 256) if rows >= least => Ok(Some(rows)),
        (true, _) => Err(CachedAttentionError::Page { rows, least }),
    }
}

/// Returns how many keys a sequence can have in a cache of so many rows per sequence or page, if the
/// number can be represented.
pub(super) fn most_keys(page_rows: Option<usize>, rows: usize, table_width: usize) -> Option<usize> {
    page_rows.map_or(Some(rows), |rows| rows.checked_mul(table_width))
}

fn fits(tensor: &'static str, found: &[usize], wanted: &[usize]) -> Result<(), CachedAttentionError> {
    match found == wanted {
        true => Ok(()),
        false => Err(CachedAttentionError::Shape { tensor, found: found.into(), wanted: wanted.into() }),
    }
}

/// Returns the number if it is above zero, and small enough for exponents of 2.
fn positive(option: &'static str, number: f32) -> Result<f32, CachedAttentionError> {
    match number > 0.0 && (number * LOG2_E).is_finite() {
        true => Ok(number),
        false => Err(CachedAttentionError::Factor { option, number }),
    }
}
