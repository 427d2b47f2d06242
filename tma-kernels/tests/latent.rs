//! Attention over latents on the simulator, compared with plain Rust in f64.
#![cfg(feature = "llvm")]

mod plain;

use plain::{Element, Row, Softmax, numbers, values};
use tma_kernels::AttentionElement;
use tma_kernels::cached::{
    CacheWorkspace, CachedAttentionError, Division, LatentCache, MlaAttentionOptions, PageIndices,
    mla_attention,
};
use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;

/// Columns of latents, which are keys and values.
const LATENTS: usize = 512;
/// Columns of keys and queries.
const DEPTH: usize = 576;
/// The scale of DeepSeek-V2: heads have 128 columns and 64 that are rotated.
const SCALE: f32 = 0.072_168_78;

/// The shape of a problem, and how it is stored and divided.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The keys of each sequence.
    lengths: &'static [u32],
    heads: usize,
    queries: usize,
    /// The rows of a page; 0 for a contiguous cache.
    page: usize,
    causal: bool,
    scale: Option<f32>,
    /// The least number of work units.
    units: usize,
}

const PLAIN: Case =
    Case { lengths: &[70], heads: 16, queries: 1, page: 0, causal: false, scale: None, units: 1 };

/// Checks a case under some seeds of the simulator.
#[track_caller]
fn checks<T: AttentionElement + Element>(case: Case, seeds: u64) {
    under_seeds(seeds, |device| run::<T>(device, case))
        .unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

fn run<T: AttentionElement + Element>(device: &Device, case: Case) -> Result<(), CachedAttentionError> {
    let Case { lengths, heads, queries, page, causal, scale, units } = case;
    let (batch, most) = (lengths.len(), lengths.iter().copied().max().unwrap_or(0) as usize);
    let q = numbers::<T>(1, batch * heads * queries * DEPTH, 2.0);
    let keys = numbers::<T>(2, batch * most * DEPTH, 1.0);
    let of_q = device.tensor(&q, [batch, heads, queries, DEPTH])?;
    let mut o = device.filled_bytes::<T, 4>([batch, heads, queries, LATENTS], 0xff)?;
    let mut lse = device.filled_bytes([batch, heads, queries], 0xff)?;

    // What is beyond the end of a sequence is a NaN. Pages are in no order, and one has no
    // sequence.
    let width = if page > 0 { most.div_ceil(page) + 1 } else { 1 };
    let rows = if page > 0 { page } else { most };
    let pages = batch * width;
    let table: Vec<u32> = (0..pages).map(|i| ((pages - i + 1) % pages) as u32).collect();
    let mut stored = vec![T::of(f64::NAN); pages * rows * DEPTH];
    for (i, number) in table.iter().enumerate() {
        let (sequence, first) = (i / width, i % width * rows);
        let number = if page > 0 { *number as usize } else { sequence };
        for row in 0..rows.min((lengths[sequence] as usize).saturating_sub(first)) {
            let from = (sequence * most + first + row) * DEPTH;
            stored[(number * rows + row) * DEPTH..][..DEPTH].copy_from_slice(&keys[from..][..DEPTH]);
        }
    }
    let cache = device.tensor(&stored, [pages, 1, rows, DEPTH])?;
    let latents = cache.view().slice([0..pages, 0..1, 0..rows, 0..LATENTS])?;
    let rotated = cache.view().slice([0..pages, 0..1, 0..rows, LATENTS..DEPTH])?;
    let of_table = device.tensor(&table, [batch, width])?;
    let of_lengths = device.tensor(lengths, [batch])?;

    // The same pages as indices.
    let pages_of = |i: usize| lengths[i].div_ceil(page.max(1) as u32) as usize;
    let (mut indices, mut indptr) = (vec![], vec![0]);
    for i in 0..batch {
        indices.extend(&table[i * width..][..pages_of(i).min(width)]);
        indptr.push(indices.len() as u32);
    }
    indices.push(u32::MAX);
    let last: Vec<u32> =
        (0..batch).map(|i| lengths[i] - (pages_of(i).max(1) - 1) as u32 * page as u32).collect();
    let of_indptr = device.tensor(&indptr, [batch + 1])?;
    let of_indices = device.tensor(&indices, [indices.len()])?;
    let of_last = device.tensor(&last, [batch])?;
    let page_indices =
        PageIndices { indptr: of_indptr.view(), indices: of_indices.view(), last_page_len: of_last.view() };

    let mut caches = vec![match page {
        0 => LatentCache::contiguous(latents, rotated).with_lengths(of_lengths.view()),
        _ => LatentCache::paged(latents, rotated, of_table.view()).with_lengths(of_lengths.view()),
    }];
    if page > 0 {
        caches.push(LatentCache::indexed(latents, rotated, page_indices));
    }
    let mut workspace = CacheWorkspace::new(device)?;
    let (q, keys) = (values(&q), values(&keys));
    for cache in caches {
        o.fill_bytes(0xff)?;
        lse.fill_bytes(0xff)?;
        let options = MlaAttentionOptions {
            causal,
            scale,
            lse: Some(lse.view_mut()),
            workspace: Some(&mut workspace),
            division: Some(Division { blocks: 3, units, least_keys: 16 }),
        };
        mla_attention(device, &of_q, cache, &mut o, options)?;
        // In as much memory as the call is said to need, the same results.
        let (first, division) = (o.to_vec()?, Some(Division { blocks: 3, units, least_keys: 16 }));
        let bytes = CacheWorkspace::bytes_of_latents(device, &of_q, cache, division)?;
        let memory = device.zeros::<u8, 1>([bytes])?;
        // SAFETY: the memory outlives the workspace, and is used for nothing else.
        let mut given = unsafe { CacheWorkspace::from_raw(device, memory.as_ptr(), bytes)? };
        let options = MlaAttentionOptions {
            causal,
            scale,
            workspace: Some(&mut given),
            division,
            ..Default::default()
        };
        mla_attention(device, &of_q, cache, &mut o, options)?;
        let bits = |all: &[T]| all.iter().map(|x| x.value().to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&o.to_vec()?), bits(&first), "the caller's memory");
        drop(given);
        let found_lse = lse.to_vec()?;
        for (row, found) in o.to_vec()?.chunks(LATENTS).enumerate() {
            let (sequence, query) = (row / queries / heads, row % queries);
            let length = lengths[sequence] as usize;
            let seen = if causal { (length + query + 1).saturating_sub(queries) } else { length };
            let k = &keys[sequence * most * DEPTH..][..seen * DEPTH];
            let v: Vec<f64> = k.chunks(DEPTH).flat_map(|key| key[..LATENTS].to_vec()).collect();
            let row_of = Row { q: &q[row * DEPTH..][..DEPTH], k, v: &v, additions: &[] };
            row_of.check(found, found_lse[row], Softmax::scaled(f64::from(scale.unwrap_or(SCALE))));
        }
    }
    Ok(())
}

/// Lengths of 0 and 1, and those that end within a stage or fill it, whole or in parts.
#[test]
fn lengths_of_every_kind() {
    let lengths = &[0, 1, 31, 32, 33, 64, 100];
    for (page, units) in [(0, 1), (32, 12), (64, 12)] {
        checks::<bf16>(Case { lengths, page, units, ..PLAIN }, 1);
    }
}

/// Rows that fill a tile of 64, or several of them, with masks.
#[test]
fn rows_of_every_number() {
    for (heads, queries, causal) in
        [(1, 1, true), (64, 1, false), (16, 3, true), (128, 1, false), (24, 3, true)]
    {
        checks::<bf16>(Case { heads, queries, causal, units: 3, ..PLAIN }, 1);
    }
    checks::<f16>(Case { heads: 24, queries: 2, causal: true, page: 128, scale: Some(0.1), ..PLAIN }, 1);
}

#[test]
fn many_seeds() {
    checks::<bf16>(Case { lengths: &[90, 20], page: 64, queries: 2, causal: true, units: 4, ..PLAIN }, 6);
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), CachedAttentionError> {
    let device = Device::simulator();
    let code = |q: [usize; 4], cache: [usize; 4], columns: usize, paged: bool, scale: Option<f32>| {
        let cache = device.zeros::<bf16, 4>(cache)?;
        let part = |columns| {
            let [batch, heads, rows, _] = cache.shape();
            cache.view().slice([0..batch, 0..heads, 0..rows, columns])
        };
        let (latents, rotated) = (part(0..columns)?, part(columns..columns + 64)?);
        let table = device.zeros::<u32, 2>([q[0], 2])?;
        let cache = match paged {
            false => LatentCache::contiguous(latents, rotated),
            true => LatentCache::paged(latents, rotated, table.view()),
        };
        let q = device.zeros::<bf16, 4>(q)?;
        let mut o = device.zeros([q.shape()[0], q.shape()[1], q.shape()[2], LATENTS])?;
        let options = MlaAttentionOptions { scale, ..Default::default() };
        Ok::<_, Error>(match mla_attention(&device, &q, cache, &mut o, options) {
            Ok(()) => "none",
            Err(error) => error.code(),
        })
    };
    assert_eq!(code([1, 4, 1, 576], [1, 1, 8, 576], 512, false, None)?, "none");
    assert_eq!(code([0, 4, 1, 576], [0, 1, 8, 576], 512, false, None)?, "none");
    assert_eq!(code([1, 4, 1, 576], [2, 1, 8, 576], 512, false, None)?, "TMA0551");
    assert_eq!(code([1, 4, 1, 512], [1, 1, 8, 576], 512, false, None)?, "TMA0551");
    assert_eq!(code([1, 4, 1, 576], [1, 1, 8, 576], 448, false, None)?, "TMA0551");
    assert_eq!(code([1, 4, 1, 576], [1, 2, 8, 576], 512, false, None)?, "TMA0551");
    assert_eq!(code([1, 4, 1, 576], [1, 1, 8, 576], 512, false, Some(0.0))?, "TMA0552");
    assert_eq!(code([1, 4, 1, 576], [2, 1, 16, 576], 512, true, None)?, "TMA0568");
    Ok(())
}
