//! Checks of the shapes of new keys, the cache and the rotary embedding.

use super::{AppendOptions, KeyValueCacheMut, Rotary, RotaryLayout, RotaryQueries};
use crate::attention::shape::MOST;
use crate::cached::problem::{LEAST_ROWS, VECTOR, most_keys, page_rows};
use crate::cached::{AttentionElement, CacheElement, CachedAttentionError};

/// The extents of a call, derived from its tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) sequences: usize,
    pub(super) key_heads: usize,
    /// Heads of queries to rotate.
    pub(super) query_heads: usize,
    pub(super) tokens: usize,
    pub(super) depth: usize,
    /// The columns that are rotated.
    pub(super) rotated: usize,
    /// The positions that have cosines, or more than any position if nothing is rotated.
    pub(super) positions: u32,
    /// The first extent of the cache: sequences or pages.
    pub(super) batch: usize,
    /// The greatest number of keys of a sequence.
    pub(super) most_keys: usize,
    /// The rows of a page, if there are pages.
    pub(super) page_rows: Option<usize>,
    /// The pages of a row of the table.
    pub(super) table_width: usize,
    /// Vectors of all rows, each with a thread of its own.
    pub(super) items: usize,
}

impl Problem {
    /// Returns the problem for keys and values of these shapes.
    ///
    /// # Errors
    ///
    /// [`CachedAttentionError`] if the tensors do not match.
    pub(super) fn of<T: AttentionElement, C: CacheElement<T>>(
        [k, v]: [[usize; 4]; 2],
        cache: &KeyValueCacheMut<'_, C>,
        options: &AppendOptions<'_, T>,
    ) -> Result<Self, CachedAttentionError> {
        let [sequences, key_heads, tokens, depth] = k;
        if depth == 0 || depth > 256 || !depth.is_multiple_of(VECTOR) {
            return Err(CachedAttentionError::NewDepth { depth });
        }
        let keys = cache.keys.shape();
        let batch = if cache.pages.are_there() { keys[0] } else { sequences };
        let rows = keys[2];
        fits("v", &v, &k)?;
        fits("keys", &keys, &[batch, key_heads, rows, depth])?;
        fits("values", &cache.values.shape(), &keys)?;
        if let Some(scales) = &cache.scales {
            scales.check(batch, key_heads, fits)?;
        }
        if let Some(counts) = &options.counts {
            fits("counts", &counts.shape(), &[sequences])?;
        }
        if let Some(new_lengths) = &options.new_lengths {
            fits("new_lengths", &new_lengths.shape(), &[sequences])?;
        }
        cache.pages.check(sequences, cache.lengths, fits)?;
        let page_rows = page_rows(cache.pages.are_there(), rows, LEAST_ROWS)?;
        let Rotated { columns, positions, query_heads } = match &options.rotary {
            None => Rotated { columns: 0, positions: u32::MAX, query_heads: 0 },
            Some(rotary) => Rotated::of(rotary, k)?,
        };
        let most_keys = most_keys(page_rows, rows, cache.pages.most());
        let heads = key_heads.checked_mul(2).and_then(|heads| heads.checked_add(query_heads));
        let vectors = heads.and_then(|heads| heads.checked_mul(depth / VECTOR));
        let items =
            vectors.and_then(|all| all.checked_mul(tokens)).and_then(|all| all.checked_mul(sequences));
        let is_small = |number: &usize| *number < MOST;
        let extents = most_keys.filter(is_small).zip(items.filter(is_small));
        let are_small = [sequences, key_heads, query_heads, tokens, batch].iter().all(is_small);
        let Some((most_keys, items)) = extents.filter(|_| are_small) else {
            return Err(CachedAttentionError::TooManyNew { shape: k, cache: keys });
        };
        Ok(Self {
            sequences,
            key_heads,
            query_heads,
            tokens,
            depth,
            rotated: columns,
            positions,
            batch,
            most_keys,
            page_rows,
            table_width: cache.pages.width(),
            items,
        })
    }
}

/// The extents of a rotary embedding.
struct Rotated {
    columns: usize,
    positions: u32,
    query_heads: usize,
}

impl Rotated {
    /// Returns the extents of the embedding of keys of shape `k`.
    fn of<T: AttentionElement>(rotary: &Rotary<'_, T>, k: [usize; 4]) -> Result<Self, CachedAttentionError> {
        let [sequences, _, tokens, depth] = k;
        let [positions, half] = rotary.cos.shape();
        fits("sin", &rotary.sin.shape(), &[positions, half])?;
        let multiple = match rotary.layout {
            RotaryLayout::Halves => 2 * VECTOR,
            RotaryLayout::Pairs => VECTOR,
        };
        let columns = half.saturating_mul(2);
        if columns > depth || !columns.is_multiple_of(multiple) {
            return Err(CachedAttentionError::Rotated { columns, depth, multiple });
        }
        let query_heads = match &rotary.queries {
            None => 0,
            Some(RotaryQueries::InPlace(q)) => queries("q", q.shape(), [sequences, tokens, depth])?,
            Some(RotaryQueries::To { q, rotated }) => {
                fits("rotated", &rotated.shape(), &q.shape())?;
                queries("q", q.shape(), [sequences, tokens, depth])?
            }
        };
        Ok(Self { columns, positions: u32::try_from(positions).unwrap_or(u32::MAX), query_heads })
    }
}

/// Returns the heads of queries of these sequences, tokens and depth.
fn queries(
    tensor: &'static str,
    found: [usize; 4],
    [sequences, tokens, depth]: [usize; 3],
) -> Result<usize, CachedAttentionError> {
    fits(tensor, &found, &[sequences, found[1], tokens, depth])?;
    Ok(found[1])
}

fn fits(tensor: &'static str, found: &[usize], wanted: &[usize]) -> Result<(), CachedAttentionError> {
    match found == wanted {
        true => Ok(()),
        false => Err(CachedAttentionError::NewShape { tensor, found: found.into(), wanted: wanted.into() }),
    }
}
