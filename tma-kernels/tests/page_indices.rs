//! Page indices of caches, on the simulator or on the device that `TMA_DEVICE` names.
#![cfg(feature = "llvm")]

#[allow(dead_code, reason = "it is shared with tests that compute attention")]
mod plain;

use plain::{Element, numbers};
use tma_kernels::AttentionElement;
use tma_kernels::cached::{
    AppendOptions, CachedAttentionError, CachedAttentionOptions, KeyValueCache, KeyValueCacheMut,
    PageIndices, Rotary, RotaryLayout, RotaryQueries, append, cached_attention,
};
use tma_runtime::prelude::*;

/// Whatever page indices are, the results have some elements, and no other memory is read.
#[test]
fn attention_with_page_indices_of_any_values() -> Result<(), CachedAttentionError> {
    const MAX: u32 = u32::MAX;
    for queries in [1, 3, 20] {
        let device = Device::open()?;
        let ones = device.tensor(&[bf16::ONE; 4 * 16 * 64], [4, 1, 16, 64])?;
        let q = device.zeros::<bf16, 4>([2, 1, queries, 64])?;
        let mut o = device.zeros(q.shape())?;
        let mut run = |indptr: [u32; 3], indices: &[u32], last_page_len: [u32; 2], is_constant| {
            let indptr = device.tensor(&indptr, [3])?;
            let indices = device.tensor(indices, [indices.len()])?;
            let last_page_len = device.tensor(&last_page_len, [2])?;
            let pages = PageIndices {
                indptr: indptr.view(),
                indices: indices.view(),
                last_page_len: last_page_len.view(),
            };
            let cache = KeyValueCache::indexed(ones.view(), ones.view(), pages);
            let options = CachedAttentionOptions { constant_cache: is_constant, ..Default::default() };
            cached_attention(&device, &q, cache, &mut o, options)?;
            Ok::<_, CachedAttentionError>(
                o.to_vec()?.iter().step_by(queries * 64).map(|x| x.to_f32()).collect::<Vec<_>>(),
            )
        };
        for is_constant in [false, true] {
            assert_eq!(run([0, 2, 3], &[3, 1, 0], [4, 3], is_constant)?, [1.0, 1.0]);
            // A length beyond a page stands for all of its rows: half of the keys are of a page of
            // zeros.
            assert_eq!(run([0, 2, 2], &[3, MAX, 0], [MAX, 3], is_constant)?, [0.5, 0.0]);
            // The second sequence begins after it ends, and the first one has all indices and no
            // more.
            assert_eq!(
                run([0, MAX, 1], &[3, 1, MAX], [16, 16], is_constant)?,
                [bf16::from_f32(2.0 / 3.0).to_f32(), 0.0]
            );
            // No index is there: the last one is in its place.
            assert_eq!(run([7, 9, MAX], &[3, 1, 0], [1, 1], is_constant)?, [1.0, 1.0]);
            assert_eq!(run([0, 1, MAX], &[], [1, 1], is_constant)?, [0.0, 0.0]);
            // The last page has no keys.
            assert_eq!(run([0, 2, 3], &[3, MAX, 0], [0, 0], is_constant)?, [1.0, 0.0]);
        }
    }
    Ok(())
}

#[test]
fn page_indices_that_do_not_fit_are_errors() -> Result<(), CachedAttentionError> {
    let device = Device::open()?;
    let keys = device.zeros::<bf16, 4>([4, 1, 16, 64])?;
    let q = device.zeros::<bf16, 4>([2, 1, 1, 64])?;
    let mut o = device.zeros(q.shape())?;
    let lengths = device.zeros([2])?;
    let mut code = |indptr: usize, last_page_len: usize, lengths: Option<TensorView<'_, u32, 1>>| {
        let (indptr, indices) = (device.zeros([indptr])?, device.zeros([3])?);
        let last_page_len = device.zeros([last_page_len])?;
        let pages = PageIndices {
            indptr: indptr.view(),
            indices: indices.view(),
            last_page_len: last_page_len.view(),
        };
        let mut cache = KeyValueCache::indexed(keys.view(), keys.view(), pages);
        if let Some(lengths) = lengths {
            cache = cache.with_lengths(lengths);
        }
        let called = cached_attention(&device, &q, cache, &mut o, CachedAttentionOptions::default());
        Ok::<_, Error>(called.err().map(|error| error.code()))
    };
    assert_eq!(code(3, 2, None)?, None);
    assert_eq!(code(2, 2, None)?, Some("TMA0551"));
    assert_eq!(code(3, 3, None)?, Some("TMA0551"));
    assert_eq!(code(3, 2, Some(lengths.view()))?, Some("TMA0551"));
    Ok(())
}

/// Numbers of a tensor as the bits of `f64`, for comparisons with NaNs.
fn bits<T: AttentionElement + Element>(tensor: &DeviceTensor<T, 4>) -> Result<Vec<u64>, Error> {
    Ok(tensor.to_vec()?.iter().map(|x| x.value().to_bits()).collect())
}

/// Page indices with the lengths after a call write what a table with those before it does.
fn indices_write_the_same<T: AttentionElement + Element>(
    layout: RotaryLayout,
    [lengths, counts]: [[u32; 3]; 2],
    rows: usize,
) -> Result<(), CachedAttentionError> {
    let device = Device::open()?;
    let [depth, tokens, heads] = [64, 3, 2];
    let table = [4_u32, 1, 2, 5, 0, 3]; // two pages of each sequence
    let numbers = |seed, heads| numbers::<T>(seed, 3 * heads * tokens * depth, 2.0);
    let (k, v) = (device.tensor(&numbers(1, heads), [3, heads, tokens, depth])?, numbers(2, heads));
    let (v, q) = (device.tensor(&v, k.shape())?, numbers(3, 4));
    let cos = device.tensor(&plain_angles(), [40, 32])?;
    let of_counts = device.tensor(&counts, [3])?;

    let after = [0, 1, 2].map(|i| lengths[i] + counts[i].min(tokens as u32));
    let pages = after.map(|after| after.div_ceil(rows as u32));
    let (mut indices, mut indptr) = (vec![], vec![0]);
    for (row, &pages) in table.chunks(2).zip(&pages) {
        indices.extend(&row[..pages as usize]);
        indptr.push(indices.len() as u32);
    }
    let last_page_len: Vec<u32> =
        (0..3).map(|i| after[i] - pages[i].saturating_sub(1) * rows as u32).collect();
    let (indptr, indices) = (device.tensor(&indptr, [4])?, device.tensor(&indices, [indices.len()])?);
    let last_page_len = device.tensor(&last_page_len, [3])?;
    let (table, lengths) = (device.tensor(&table, [3, 2])?, device.tensor(&lengths, [3])?);
    let mut results = vec![];
    for is_indexed in [false, true] {
        let mut keys = device.filled_bytes::<T, 4>([6, heads, rows, depth], 0xff)?;
        let mut values = device.filled_bytes::<T, 4>(keys.shape(), 0xff)?;
        let (mut q, mut new_lengths) = (device.tensor(&q, [3, 4, tokens, depth])?, device.zeros([3])?);
        let (of_keys, of_values) = (keys.view_mut(), values.view_mut());
        let cache = if is_indexed {
            let pages = PageIndices {
                indptr: indptr.view(),
                indices: indices.view(),
                last_page_len: last_page_len.view(),
            };
            KeyValueCacheMut::indexed(of_keys, of_values, pages)
        } else {
            KeyValueCacheMut::paged(of_keys, of_values, table.view()).with_lengths(lengths.view())
        };
        let queries = Some(RotaryQueries::InPlace(q.view_mut()));
        let options = AppendOptions {
            counts: Some(of_counts.view()),
            new_lengths: Some(new_lengths.view_mut()),
            rotary: Some(Rotary { cos: cos.view(), sin: cos.view(), layout, queries }),
            constant_positions: is_indexed,
        };
        append(&device, &k, &v, cache, options)?;
        assert_eq!(new_lengths.to_vec()?, after);
        results.push([bits(&keys)?, bits(&values)?, bits(&q)?]);
    }
    assert!(results[0] == results[1], "{layout:?}, {rows} rows");
    Ok(())
}

/// Numbers that are no angles, but whose places matter.
fn plain_angles() -> Vec<f32> {
    (0..40 * 32).map(|i| (i % 61) as f32 / 32.0 - 1.0).collect()
}

#[test]
fn page_indices_write_what_a_table_does() -> Result<(), CachedAttentionError> {
    for rows in [16, 64, 256] {
        for layout in [RotaryLayout::Halves, RotaryLayout::Pairs] {
            indices_write_the_same::<bf16>(layout, [[15, 0, 9], [3; 3]], rows)?;
            indices_write_the_same::<f16>(layout, [[30, 0, 13], [2, 0, 7]], rows)?;
        }
    }
    Ok(())
}

/// Whatever page indices are, only the cache is written.
#[test]
fn append_with_page_indices_of_any_values() -> Result<(), CachedAttentionError> {
    const MAX: u32 = u32::MAX;
    let device = Device::open()?;
    let new = device.tensor(&[bf16::ONE; 2 * 3 * 8], [2, 1, 3, 8])?;
    let run = |indptr: [u32; 3], indices: &[u32], last_page_len: [u32; 2]| {
        let mut keys = device.zeros::<bf16, 4>([4, 1, 16, 8])?;
        let mut values = device.zeros::<bf16, 4>([4, 1, 16, 8])?;
        let mut new_lengths = device.zeros([2])?;
        let indptr = device.tensor(&indptr, [3])?;
        let indices = device.tensor(indices, [indices.len()])?;
        let last_page_len = device.tensor(&last_page_len, [2])?;
        let pages = PageIndices {
            indptr: indptr.view(),
            indices: indices.view(),
            last_page_len: last_page_len.view(),
        };
        let cache = KeyValueCacheMut::indexed(keys.view_mut(), values.view_mut(), pages);
        let options = AppendOptions { new_lengths: Some(new_lengths.view_mut()), ..Default::default() };
        append(&device, &new, &new, cache, options)?;
        let keys = keys.to_vec()?;
        assert_eq!(keys, values.to_vec()?);
        let is_written = |row: &usize| keys[row * 8..][..8] == [bf16::ONE; 8];
        Ok::<_, CachedAttentionError>((
            (0..4 * 16).filter(is_written).collect::<Vec<_>>(),
            new_lengths.to_vec()?,
        ))
    };
    assert_eq!(run([0, 2, 3], &[3, 1, 0], [1, 4])?, (vec![1, 2, 3, 16, 62, 63], vec![17, 4]));
    // Fewer keys than tokens: the first tokens are its keys.
    assert_eq!(run([0, 1, 1], &[3, 1, 0], [2, 9])?, (vec![48, 49], vec![2, 0]));
    // Pages and indices beyond the end, starts that decrease, lengths beyond a page.
    assert_eq!(run([0, 1, 2], &[4, MAX], [9, 9])?, (vec![], vec![9, 9]));
    assert_eq!(run([0, MAX, 1], &[3, 1], [MAX, 5])?, (vec![29, 30, 31], vec![32, 0]));
    assert_eq!(run([MAX, 9, MAX], &[3, 1], [5, 5])?, (vec![], vec![0, 21]));
    assert_eq!(run([0, 1, 2], &[], [5, 5])?, (vec![], vec![0, 0]));
    Ok(())
}
