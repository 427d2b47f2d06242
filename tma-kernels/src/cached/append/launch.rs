//! Arguments of the kernel.

use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use super::kernel::rows::{THREADS, append as kernel};
use super::problem::Problem;
use super::{AppendOptions, KeyValueCacheMut, Rotary, RotaryLayout, RotaryQueries};
use crate::cached::launch::check_rows;
use crate::cached::pages::PageArguments;
use crate::cached::problem::VECTOR;
use crate::cached::{AttentionElement, CacheElement, CacheScales, CachedAttentionError};
use crate::dependent::dependent;

/// The cosines or sines of a vector.
const ANGLES: usize = 4;

/// Queues the kernel, unless there is nothing to write.
pub(super) fn queue<T: AttentionElement, C: CacheElement<T>>(
    on: &impl LaunchOn,
    [k, v]: [TensorView<'_, T, 4>; 2],
    cache: KeyValueCacheMut<'_, C>,
    options: AppendOptions<'_, T>,
) -> Result<(), CachedAttentionError> {
    let problem = Problem::of([k.shape(), v.shape()], &cache, &options)?;
    let AppendOptions { counts, new_lengths, rotary, constant_positions } = options;
    let KeyValueCacheMut { keys, values, pages, lengths, scales } = cache;
    let [last_page, of_page, of_head] = CacheScales::steps(scales);
    let PageArguments { table, page_starts, lengths } = pages.arguments(lengths)?;
    let layout = rotary.as_ref().map_or(RotaryLayout::Halves, |rotary| rotary.layout);
    let rotation = rotary.map_or_else(|| Ok(Rotation::NONE), Rotation::of)?;
    let [of_k, of_v, of_keys, of_values] = [k.strides(), v.strides(), keys.strides(), values.strides()];
    check_rows("k", k.shape(), of_k, VECTOR)?;
    check_rows("v", v.shape(), of_v, VECTOR)?;
    check_rows("keys", keys.shape(), of_keys, VECTOR)?;
    check_rows("values", values.shape(), of_values, VECTOR)?;

    // SAFETY: the kernel finds the elements by these strides.
    let (k, v, keys, values) = unsafe { (k.span()?, v.span()?, keys.span()?, values.span()?) };

    let threads = problem.items.max(if new_lengths.is_some() { problem.sequences } else { 0 });
    if threads == 0 {
        return Ok(());
    }
    // Extents are below 2^31, which the problem has checked.
    let count = |value: usize| value as u32;
    let key = kernel_key(layout, C::BYTES);
    let is_unknown = || CachedAttentionError::NewDepth { depth: problem.depth };
    kernel::find::<T, C>(key).ok_or_else(is_unknown)?.launch(
        dependent(on),
        Grid::x(count(threads.div_ceil(THREADS as usize))),
        k,
        v,
        keys,
        values,
        table,
        page_starts,
        lengths,
        counts,
        new_lengths,
        rotation.cos,
        rotation.sin,
        rotation.q,
        rotation.rotated_q,
        count(problem.items),
        count(problem.sequences),
        count(problem.key_heads),
        count(problem.query_heads),
        count(problem.tokens),
        count(problem.depth),
        count(problem.rotated),
        problem.positions,
        count(problem.batch),
        count(problem.most_keys),
        problem.page_rows.map_or(0, usize::ilog2),
        count(problem.table_width),
        rotation.cos_position,
        rotation.sin_position,
        of_k[0] as u64,
        of_k[1] as u64,
        of_k[2] as u64,
        of_v[0] as u64,
        of_v[1] as u64,
        of_v[2] as u64,
        of_keys[0] as u64,
        of_keys[1] as u64,
        of_keys[2] as u64,
        of_values[0] as u64,
        of_values[1] as u64,
        of_values[2] as u64,
        rotation.of_q[0] as u64,
        rotation.of_q[1] as u64,
        rotation.of_q[2] as u64,
        rotation.of_rotated_q[0] as u64,
        rotation.of_rotated_q[1] as u64,
        rotation.of_rotated_q[2] as u64,
        constant_positions,
        scales.map(|scales| scales.keys),
        scales.map(|scales| scales.values),
        last_page,
        of_page,
        of_head,
    )?;
    Ok(())
}

/// Returns the key of the instance for a layout, and a cache of elements of so many bytes.
fn kernel_key(layout: RotaryLayout, bytes: usize) -> kernel::Key {
    let pairs = match layout {
        RotaryLayout::Halves => false,
        RotaryLayout::Pairs => true,
    };
    kernel::Key { bytes: bytes as u32, pairs }
}

/// The tensors of a rotary embedding, as the kernel takes them, and their strides.
struct Rotation<'a, T> {
    cos: Option<TensorView<'a, f32, 1>>,
    sin: Option<TensorView<'a, f32, 1>>,
    cos_position: u64,
    sin_position: u64,
    q: Option<TensorView<'a, T, 1>>,
    rotated_q: Option<TensorViewMut<'a, T, 1>>,
    of_q: [usize; 4],
    of_rotated_q: [usize; 4],
}

impl<'a, T: AttentionElement> Rotation<'a, T> {
    /// No embedding.
    const NONE: Self = Self {
        cos: None,
        sin: None,
        cos_position: 0,
        sin_position: 0,
        q: None,
        rotated_q: None,
        of_q: [0; 4],
        of_rotated_q: [0; 4],
    };

    /// Returns the tensors of an embedding, of which each is one span of memory.
    fn of(rotary: Rotary<'a, T>) -> Result<Self, CachedAttentionError> {
        let Rotary { cos, sin, layout: _, queries } = rotary;
        let (of_cos, of_sin) = (cos.strides(), sin.strides());
        check_rows("cos", cos.shape(), of_cos, ANGLES)?;
        check_rows("sin", sin.shape(), of_sin, ANGLES)?;
        // SAFETY: the kernel finds the elements by these strides.
        let (cos, sin) = unsafe { (cos.span()?, sin.span()?) };
        let mut rotation = Self {
            cos: Some(cos),
            sin: Some(sin),
            cos_position: of_cos[0] as u64,
            sin_position: of_sin[0] as u64,
            ..Self::NONE
        };
        let to = match queries {
            None => return Ok(rotation),
            Some(RotaryQueries::InPlace(q)) => q,
            Some(RotaryQueries::To { q, rotated }) => {
                rotation.of_q = q.strides();
                check_rows("q", q.shape(), rotation.of_q, VECTOR)?;
                // SAFETY: as above.
                rotation.q = Some(unsafe { q.span()? });
                rotated
            }
        };
        rotation.of_rotated_q = to.strides();
        let tensor = if rotation.q.is_some() { "rotated" } else { "q" };
        check_rows(tensor, to.shape(), rotation.of_rotated_q, VECTOR)?;
        // SAFETY: as above.
        rotation.rotated_q = Some(unsafe { to.span()? });
        Ok(rotation)
    }
}
