//! Attention over caches on the simulator, compared with plain Rust in f64.
#![cfg(feature = "llvm")]

mod calls;
#[path = "../plain/mod.rs"]
mod plain;

use plain::{Element, Row, Softmax, numbers, values};
use tma_kernels::AttentionElement;
use tma_kernels::cached::{
    CacheElement, CacheScales, CacheWorkspace, CachedAttentionError, CachedAttentionOptions, Division,
    KeyValueCache, PageIndices, cached_attention,
};
use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;

/// The shape of a problem, and how it is stored and divided.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The keys of each sequence.
    lengths: &'static [u32],
    heads: usize,
    key_heads: usize,
    queries: usize,
    depth: usize,
    /// The columns by which values are narrower than keys.
    narrower: usize,
    /// The rows of a page; 0 for a contiguous cache.
    page: usize,
    causal: bool,
    window: Option<usize>,
    window_after: Option<usize>,
    slopes: bool,
    /// The extents of a bias that are not 1.
    bias: Option<[bool; 4]>,
    soft_cap: Option<f32>,
    sinks: bool,
    /// The least number of work units.
    units: usize,
    /// The scales of a cache of `e4m3`: pages or sequences, and heads, or 1 for either.
    scales: Option<[bool; 2]>,
}

const PLAIN: Case = Case {
    lengths: &[200, 200],
    heads: 8,
    key_heads: 2,
    queries: 1,
    depth: 128,
    narrower: 0,
    page: 0,
    causal: false,
    window: None,
    window_after: None,
    slopes: false,
    bias: None,
    soft_cap: None,
    sinks: false,
    units: 6,
    scales: None,
};

/// Checks a case under some seeds of the simulator.
#[track_caller]
fn checks<T: AttentionElement + CacheElement<T> + Element>(case: Case, seeds: u64) {
    under_seeds(seeds, |device| run::<T, T>(device, case, |cache, _| cache))
        .unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

/// Checks a case with a cache of `e4m3`.
#[track_caller]
fn checks_narrow<T: AttentionElement + CacheElement<T> + Element>(case: Case, seeds: u64) {
    under_seeds(seeds, |device| run::<T, e4m3>(device, case, with_scales))
        .unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

/// The scales of keys and of values, if there are any.
type Scales = Option<[DeviceTensor<f32, 2>; 2]>;

/// Adds the scales of keys and values, if there are any.
fn with_scales<'a>(cache: KeyValueCache<'a, e4m3>, scales: &'a Scales) -> KeyValueCache<'a, e4m3> {
    match scales {
        None => cache,
        Some([keys, values]) => cache.with_scales(CacheScales { keys: keys.view(), values: values.view() }),
    }
}

/// Returns the numbers of a bias of this shape.
fn numbers_of<T: Element>(shape: Option<[usize; 4]>) -> Vec<T> {
    numbers(4, shape.map_or(0, |shape| shape.iter().product()), 3.0)
}

/// The numbers of the sequences' pages, none of them twice.
fn table(case: &Case, width: usize) -> Vec<u32> {
    let pages = case.lengths.len() * width;
    (0..pages).rev().map(|i| ((i + 3) % pages) as u32).collect()
}

fn run<T: AttentionElement + Element, C: CacheElement<T> + Element>(
    device: &Device,
    case: Case,
    with_scales: for<'a> fn(KeyValueCache<'a, C>, &'a Scales) -> KeyValueCache<'a, C>,
) -> Result<(), CachedAttentionError> {
    let Case { lengths, heads, key_heads, queries, depth, page, .. } = case;
    let value_depth = depth - case.narrower;
    let (batch, most) = (lengths.len(), lengths.iter().copied().max().unwrap_or(0) as usize);
    // The scores vary widely, so that maxima rise in later stages too.
    let q = numbers::<T>(1, batch * heads * queries * depth, 4.0);
    let k = numbers::<C>(2, batch * key_heads * most * depth, 2.0);
    let v = numbers::<C>(3, batch * key_heads * most * value_depth, 1.0);
    let of_q = device.tensor(&q, [batch, heads, queries, depth])?;
    let mut o = device.filled_bytes::<T, 4>([batch, heads, queries, value_depth], 0xff)?;
    let mut lse = device.filled_bytes([batch, heads, queries], 0xff)?;
    // One sink is so far above the scores that its weight is beyond an `f32`.
    let sinks: Vec<f32> = (0..heads).map(|head| if head == 1 { 300.0 } else { head as f32 - 2.0 }).collect();
    let of_sinks = device.tensor(&sinks, [heads])?;
    let of_lengths = device.tensor(lengths, [batch])?;

    // What is beyond the end of a sequence is a NaN.
    let width = if page > 0 { most.div_ceil(page) + 1 } else { 1 };
    let rows = if page > 0 { page } else { most };
    let numbers = table(&case, width);
    let stored = |from: &[C], depth: usize| -> Vec<C> {
        let mut to = vec![C::of(f64::NAN); batch * width * key_heads * rows * depth];
        for (i, number) in numbers.iter().enumerate() {
            let (sequence, first) = (i / width, i % width * rows);
            let number = if page > 0 { *number as usize } else { sequence };
            for head in 0..key_heads {
                for row in 0..rows.min((lengths[sequence] as usize).saturating_sub(first)) {
                    let source = ((sequence * key_heads + head) * most + first + row) * depth;
                    let target = ((number * key_heads + head) * rows + row) * depth;
                    to[target..][..depth].copy_from_slice(&from[source..][..depth]);
                }
            }
        }
        to
    };
    let shape = [batch * width, key_heads, rows];
    let in_memory =
        |from: &[C], depth: usize| device.tensor(&stored(from, depth), [shape[0], shape[1], shape[2], depth]);
    let (of_k, of_v) = (in_memory(&k, depth)?, in_memory(&v, value_depth)?);
    let of_table = device.tensor(&numbers, [batch, width])?;
    let cache = match page {
        0 => KeyValueCache::contiguous(of_k.view(), of_v.view()),
        _ => KeyValueCache::paged(of_k.view(), of_v.view(), of_table.view()),
    };
    // Scales of both signs, whose sizes differ by powers of two and more.
    let extents = case
        .scales
        .map(|[by_page, by_head]| [if by_page { shape[0] } else { 1 }, if by_head { key_heads } else { 1 }]);
    let scale = |of: usize, page: usize, head: usize| {
        let Some([pages, heads]) = extents else { return 1.0 };
        let i = (page % pages * heads + head % heads) * 2 + of;
        [1.25, -0.5, 0.75, 2.0, 0.0625, 1.5, 0.3][i % 7_usize]
    };
    let of_scales = extents.map(|[pages, heads]| {
        [0, 1].map(|of| {
            let all: Vec<f32> = (0..pages)
                .flat_map(|page| (0..heads).map(move |head| (page, head)))
                .map(|(page, head)| scale(of, page, head))
                .collect();
            device.tensor(&all, [pages, heads])
        })
    });
    let of_scales = match of_scales {
        None => None,
        Some([keys, values]) => Some([keys?, values?]),
    };
    let cache = with_scales(cache, &of_scales);
    let scaled = |all: &[C], depth: usize, of: usize| -> Vec<f64> {
        let factor = |i: usize| {
            let (row, head, sequence) =
                (i / depth % most, i / depth / most % key_heads, i / depth / most / key_heads);
            let page = if page > 0 { numbers[sequence * width + row / rows] as usize } else { sequence };
            f64::from(scale(of, page, head))
        };
        values(all).into_iter().enumerate().map(|(i, x)| x * factor(i)).collect()
    };
    let slopes: Vec<f32> = (0..heads).map(|head| 0.5 / (1 + head) as f32).collect();
    let of_slopes = device.tensor(&slopes, [heads])?;
    let bias_shape = case.bias.map(|all| {
        let extents = [batch, heads, queries, if page > 0 { width * rows } else { most }];
        [0, 1, 2, 3].map(|i| if all[i] { extents[i] } else { 1 })
    });
    let bias: Vec<T> = numbers_of(bias_shape);
    let of_bias = match bias_shape {
        None => None,
        Some(shape) => Some(device.tensor(&bias, shape)?),
    };
    // What is added to a score.
    let addition = |at: [usize; 4], position: i64| {
        let slope = if case.slopes { f64::from(slopes[at[1]]) } else { 0.0 };
        let of_bias = bias_shape.map_or(0.0, |shape| {
            let index = (0..4).fold(0, |index, i| index * shape[i] + at[i] % shape[i]);
            bias[index].value()
        });
        of_bias - slope * (at[3] as i64 - position).abs() as f64
    };
    let mut workspace = CacheWorkspace::new(device)?;
    let (q, k, v) = (values(&q), scaled(&k, depth, 0), scaled(&v, value_depth, 1));
    // The same pages as indices, between others that no sequence has.
    let pages_of = |i: usize| lengths[i].div_ceil(page.max(1) as u32) as usize;
    let (mut indices, mut indptr) = (vec![u32::MAX], vec![1]);
    for i in 0..batch {
        indices.extend(&numbers[i * width..][..pages_of(i).min(width)]);
        indptr.push(indices.len() as u32);
    }
    indices.push(u32::MAX);
    let last_page_len: Vec<u32> =
        (0..batch).map(|i| lengths[i] - (pages_of(i).max(1) - 1) as u32 * page as u32).collect();
    let of_indptr = device.tensor(&indptr, [batch + 1])?;
    let of_indices = device.tensor(&indices, [indices.len()])?;
    let of_last_page_len = device.tensor(&last_page_len, [batch])?;
    let pages = PageIndices {
        indptr: of_indptr.view(),
        indices: of_indices.view(),
        last_page_len: of_last_page_len.view(),
    };
    let indexed = with_scales(KeyValueCache::indexed(of_k.view(), of_v.view(), pages), &of_scales);
    // A bias for each key would need more of them.
    let has_indices = page > 0 && !case.bias.is_some_and(|all| all[3]);
    let (mut other_o, mut other_lse) = (device.zeros::<T, 4>(o.shape())?, device.zeros(lse.shape())?);
    for constant_cache in [false, true] {
        o.fill_bytes(0xff)?;
        let options = || CachedAttentionOptions {
            causal: case.causal,
            window: case.window,
            window_after: case.window_after,
            slopes: case.slopes.then(|| of_slopes.view()),
            bias: of_bias.as_ref().map(|bias| bias.view()),
            soft_cap: case.soft_cap,
            sinks: case.sinks.then(|| of_sinks.view()),
            division: Some(Division { blocks: 3, units: case.units, least_keys: 16 }),
            constant_cache,
            ..Default::default()
        };
        let dense = cache.with_lengths(of_lengths.view());
        let with_lse = CachedAttentionOptions {
            lse: Some(lse.view_mut()),
            workspace: Some(&mut workspace),
            ..options()
        };
        cached_attention(device, &of_q, dense, &mut o, with_lse)?;
        let (found, found_lse) = (o.to_vec()?, lse.to_vec()?);
        if has_indices {
            other_o.fill_bytes(0xff)?;
            other_lse.fill_bytes(0xff)?;
            let with_lse = CachedAttentionOptions {
                lse: Some(other_lse.view_mut()),
                workspace: Some(&mut workspace),
                ..options()
            };
            cached_attention(device, &of_q, indexed, &mut other_o, with_lse)?;
            let bits = |all: &[T]| all.iter().map(|x| x.value().to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&other_o.to_vec()?), bits(&found), "page indices");
            assert!(other_lse.to_vec()?.iter().zip(&found_lse).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        for (row, found) in found.chunks(value_depth).enumerate() {
            let (head, query) = (row / queries, row % queries);
            let keys = lengths[head / heads] as usize;
            let of_keys = head / heads * key_heads + head % heads / (heads / key_heads);
            let next = (keys + query + 1).saturating_sub(queries);
            let after = if case.causal { Some(0) } else { case.window_after };
            let end =
                after.map_or(keys, |after| (keys + query + 1 + after).saturating_sub(queries).min(keys));
            let first = case.window.map_or(0, |window| next.saturating_sub(window + 1)).min(end);
            let position = (keys + query) as i64 - queries as i64;
            let additions: Vec<f64> = (first..end)
                .map(|key| addition([head / heads, head % heads, query, key], position))
                .collect();
            let seen = |all: &'_ [f64], depth: usize| {
                all[(of_keys * most + first) * depth..][..(end - first) * depth].to_vec()
            };
            let (k, v) = (seen(&k, depth), seen(&v, value_depth));
            let row = Row { q: &q[row * depth..][..depth], k: &k, v: &v, additions: &additions };
            let softmax = Softmax {
                cap: case.soft_cap.map(f64::from),
                sink: case.sinks.then(|| f64::from(sinks[head % heads])),
                ..Softmax::scaled(1.0 / (depth as f64).sqrt())
            };
            row.check(found, found_lse[head * queries + query], softmax);
        }
    }
    Ok(())
}

#[test]
fn every_instance() {
    // With one row, 48 and 96 per head of keys; with pages below and above 64 rows.
    for (heads, queries) in [(2, 1), (24, 2), (24, 4)] {
        for (depth, page) in [(64, 0), (128, 16), (256, 0), (256, 16), (192, 32)] {
            let case = Case { heads, key_heads: 1, queries, lengths: &[200], units: 2, ..PLAIN };
            checks::<bf16>(Case { depth, page, ..case }, 1);
            checks::<f16>(
                Case { depth: if depth > 128 { 448 - depth } else { 192 - depth }, page, ..case },
                1,
            );
        }
    }
}

/// Caches of `e4m3`, whose scales are those of the tensor, of heads, of pages, and of both.
#[test]
fn narrow_caches() {
    let lengths = &[200, 0, 65, 17];
    for (page, scales) in [
        (0, None),
        (0, Some([true, true])),
        (16, Some([true, true])),
        (64, Some([false, false])),
        (128, Some([false, true])),
        (256, Some([true, false])),
    ] {
        let case = Case { lengths, page, scales, ..PLAIN };
        checks_narrow::<bf16>(Case { causal: true, queries: 2, ..case }, 1);
        checks_narrow::<f16>(Case { depth: 64, units: 20, sinks: true, ..case }, 1);
        checks_narrow::<bf16>(Case { depth: 112, soft_cap: Some(4.0), key_heads: 1, ..case }, 1);
    }
    // More than a tile of rows, and more than the blocks merge.
    for (heads, queries) in [(2, 5), (20, 1), (4, 16)] {
        checks_narrow::<bf16>(Case { heads, queries, window: Some(40), lengths: &[130], ..PLAIN }, 1);
    }
    checks_narrow::<bf16>(Case { lengths: &[100, 30, 7], page: 16, scales: Some([true, true]), ..PLAIN }, 8);
}

#[test]
fn depths_between_those_of_kernels() {
    for (depth, page) in [(32, 32), (80, 64), (96, 0), (112, 256), (8, 16), (136, 64), (248, 0)] {
        checks::<bf16>(Case { depth, page, ..PLAIN }, 1);
    }
}

/// More than 128 columns: lengths of every kind, few and many rows, masks and options.
#[test]
fn wide_heads() {
    let lengths = &[0, 1, 16, 63, 65, 300];
    for page in [0, 16, 64] {
        let case = Case { lengths, page, depth: 256, units: 20, causal: true, ..PLAIN };
        checks::<bf16>(Case { queries: 2, window: Some(40), ..case }, 1);
        checks::<f16>(Case { queries: 7, sinks: true, depth: 192, soft_cap: Some(3.0), ..case }, 1);
        checks::<bf16>(Case { queries: 20, window: Some(70), ..case }, 1);
    }
    let case = Case { lengths: &[90, 0, 200], depth: 256, ..PLAIN };
    for queries in [1, 6] {
        checks::<bf16>(Case { queries, slopes: true, page: 64, ..case }, 1);
        checks::<f16>(Case { queries, bias: Some([true, false, true, true]), ..case }, 1);
    }
    checks::<bf16>(Case { page: 16, units: 30, ..case }, 8);
    checks::<bf16>(Case { queries: 8, units: 30, heads: 16, ..case }, 4);
}

#[test]
fn wide_narrow_caches() {
    let lengths = &[200, 0, 65, 17];
    for (depth, page, scales) in
        [(256, 0, None), (192, 16, Some([true, true])), (240, 64, Some([true, false]))]
    {
        let case = Case { lengths, depth, page, scales, causal: true, ..PLAIN };
        checks_narrow::<bf16>(Case { queries: 2, soft_cap: Some(4.0), ..case }, 1);
        checks_narrow::<f16>(Case { units: 20, sinks: true, ..case }, 1);
        checks_narrow::<bf16>(Case { queries: 5, narrower: 64, ..case }, 1);
    }
    let case = Case { lengths: &[100, 30, 7], depth: 256, page: 64, ..PLAIN };
    checks_narrow::<bf16>(Case { scales: Some([true, true]), ..case }, 8);
}

/// Values narrower than keys, in kernels for few and many rows, with parts that are merged by both.
#[test]
fn values_narrower_than_keys() {
    let case = Case { lengths: &[200, 0, 65], units: 20, causal: true, ..PLAIN };
    for (depth, narrower, page) in [(192, 64, 64), (128, 64, 0), (192, 184, 16), (64, 8, 32)] {
        for (queries, key_heads) in [(1, 8), (1, 2), (3, 1), (20, 1)] {
            checks::<bf16>(Case { depth, narrower, page, queries, key_heads, ..case }, 1);
        }
        checks::<f16>(Case { depth, narrower, page, sinks: true, ..case }, 1);
    }
}

/// Lengths of 0 and 1, and those that end within a stage or fill a page; more parts than stages.
#[test]
fn lengths_of_every_kind() {
    let lengths = &[0, 1, 16, 17, 63, 64, 255, 256, 300];
    for page in [0, 16, 32, 64, 128, 256] {
        checks::<bf16>(Case { lengths, page, key_heads: 4, units: 40, ..PLAIN }, 1);
        checks::<f16>(Case { lengths, page, key_heads: 8, units: 1, depth: 64, ..PLAIN }, 1);
    }
}

/// Rows that fill a tile of 16, 64 or 128, or more than one; a single sequence; many queries.
#[test]
fn rows_of_every_number() {
    let few = [(1, 1, 1), (16, 1, 1), (4, 2, 5)];
    let many = [(20, 1, 1), (6, 2, 16), (1, 1, 64), (8, 1, 9), (2, 2, 130), (3, 1, 60)];
    for (heads, key_heads, queries) in few.into_iter().chain(many) {
        for causal in [false, true] {
            checks::<bf16>(Case { heads, key_heads, queries, causal, lengths: &[70], ..PLAIN }, 1);
        }
    }
}

/// Parts of tiles of 64 and of 128 rows, in pages of each kind, under masks.
#[test]
fn many_rows_over_many_keys() {
    let lengths = &[0, 1, 63, 64, 65, 200, 450];
    for (queries, page, window) in [(5, 0, None), (12, 16, Some(70)), (7, 64, None), (17, 32, Some(20))] {
        let case = Case { lengths, queries, page, window, units: 24, ..PLAIN };
        checks::<bf16>(Case { causal: true, ..case }, 1);
        checks::<f16>(Case { depth: 64, sinks: true, soft_cap: Some(3.0), ..case }, 1);
    }
}

#[test]
fn windows_and_masks() {
    for (window, causal) in [(Some(0), true), (Some(33), true), (Some(100), false), (Some(1000), true)] {
        checks::<bf16>(Case { window, causal, queries: 3, page: 16, lengths: &[190, 2, 90], ..PLAIN }, 1);
    }
}

/// Keys after the query's, slopes, and a bias of each kind of shape.
#[test]
fn biases() {
    let case = Case { lengths: &[90, 0, 200], queries: 3, ..PLAIN };
    checks::<bf16>(Case { window_after: Some(1), window: Some(40), ..case }, 1);
    checks::<f16>(Case { window_after: Some(0), page: 16, queries: 7, ..case }, 1);
    checks::<bf16>(Case { slopes: true, causal: true, page: 64, ..case }, 1);
    checks::<f16>(Case { slopes: true, queries: 8, heads: 16, sinks: true, ..case }, 1);
    for (bias, queries) in [
        ([true; 4], 3),
        ([false, true, true, true], 2),
        ([true, false, false, true], 8),
        ([false, false, true, false], 40),
    ] {
        let bias = Some(bias);
        checks::<bf16>(Case { bias, queries, slopes: true, soft_cap: Some(3.0), ..case }, 1);
        checks::<f16>(Case { bias, queries, page: 32, causal: true, ..case }, 1);
        checks_narrow::<bf16>(Case { bias, queries, page: 16, ..case }, 1);
    }
}

#[test]
fn caps_and_sinks() {
    checks::<bf16>(Case { soft_cap: Some(2.0), ..PLAIN }, 1);
    checks::<f16>(Case { sinks: true, lengths: &[0, 40], ..PLAIN }, 1);
    checks::<bf16>(Case { soft_cap: Some(5.0), sinks: true, queries: 2, causal: true, ..PLAIN }, 1);
}

#[test]
fn many_seeds() {
    checks::<bf16>(Case { lengths: &[100, 30, 7], page: 16, queries: 2, causal: true, ..PLAIN }, 8);
}
