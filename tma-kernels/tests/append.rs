//! New keys and values in caches on the simulator, compared with plain Rust in f64.
#![cfg(feature = "llvm")]

mod plain;

use plain::{Element, Row, Softmax, numbers};
use tma_kernels::AttentionElement;
use tma_kernels::cached::{
    AppendOptions, CacheElement, CacheScales, CachedAttentionError, CachedAttentionOptions, KeyValueCache,
    KeyValueCacheMut, Rotary, RotaryLayout, RotaryQueries, append, cached_attention,
};
use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;

/// The shape of a problem, and how it is stored.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The keys that each sequence has before the call.
    lengths: &'static [u32],
    counts: Option<&'static [u32]>,
    tokens: usize,
    heads: usize,
    /// Keys of a sequence in a contiguous cache, or the rows of a page.
    rows: usize,
    /// The numbers of pages: as many for each sequence. Without any, the cache is contiguous.
    table: &'static [u32],
    /// The pages of the cache.
    pages: usize,
    depth: usize,
    layout: Option<RotaryLayout>,
    rotated: usize,
    /// The positions that have cosines.
    positions: usize,
    query_heads: usize,
    in_place: bool,
    /// Whether heads follow each other within a token and within a row of the cache.
    heads_inside: bool,
    /// The scales of a cache of `e4m3`: pages or sequences, and heads, or 1 for either.
    scales: Option<[bool; 2]>,
}

const PLAIN: Case = Case {
    lengths: &[3, 0, 9],
    counts: None,
    tokens: 3,
    heads: 2,
    rows: 12,
    table: &[],
    pages: 0,
    depth: 64,
    layout: None,
    rotated: 0,
    positions: 20,
    query_heads: 0,
    in_place: false,
    heads_inside: false,
    scales: None,
};

const PAGED: Case = Case { lengths: &[30, 0, 15], rows: 16, table: &[4, 1, 2, 5, 0, 3], pages: 6, ..PLAIN };

const ROTATED: Case =
    Case { layout: Some(RotaryLayout::Halves), rotated: 64, query_heads: 4, positions: 40, ..PAGED };

impl Case {
    /// Returns the page and the row of a position, if the cache has it.
    fn row(&self, sequence: usize, position: usize) -> Option<(usize, usize)> {
        if self.table.is_empty() {
            return (position < self.rows).then_some((sequence, position));
        }
        let width = self.table.len() / self.lengths.len();
        let (index, row) = (position / self.rows, position % self.rows);
        let page = (index < width).then(|| self.table[sequence * width + index] as usize)?;
        (page < self.pages).then_some((page, row))
    }

    /// Returns the extents of a tensor, and the order of its dimensions in memory.
    fn stored(&self, [batch, heads, rows]: [usize; 3]) -> [usize; 4] {
        match self.heads_inside {
            false => [batch, heads, rows, self.depth],
            true => [batch, rows, heads, self.depth],
        }
    }

    /// Returns the index of a row's first element in memory.
    fn start(&self, [_, heads, rows]: [usize; 3], [batch, head, row]: [usize; 3]) -> usize {
        match self.heads_inside {
            false => ((batch * heads + head) * rows + row) * self.depth,
            true => ((batch * rows + row) * heads + head) * self.depth,
        }
    }

    /// Returns the order in which dimensions become batch, heads, rows and depth.
    fn order(&self) -> [usize; 4] {
        if self.heads_inside { [0, 2, 1, 3] } else { [0, 1, 2, 3] }
    }

    /// Checks a row at a position against the row before its rotation. Elements of a narrow cache
    /// have a scale.
    #[track_caller]
    fn check_rotated<T: Element, C: Element>(
        &self,
        found: &[C],
        from: &[T],
        angles: [&[f32]; 2],
        scale: Option<f64>,
    ) {
        let half = self.rotated / 2;
        let pair = |column: usize| match self.layout {
            Some(RotaryLayout::Halves) => (column % half, column % half, column % half + half),
            _ => (column / 2, column / 2 * 2, column / 2 * 2 + 1),
        };
        for (column, found) in found.iter().enumerate() {
            let (found, plain) = (found.value(), from[column].value());
            if self.layout.is_none() || column >= self.rotated {
                check_copied(found, plain, scale, column);
                continue;
            }
            let (angle, first, second) = pair(column);
            let (cos, sin) = (f64::from(angles[0][angle]), f64::from(angles[1][angle]));
            let (a, b) = (from[first].value(), from[second].value());
            let wanted = if column == first { a * cos - b * sin } else { b * cos + a * sin };
            // One rounding to `C`, and two of `f32`. A quotient of a scale has two more.
            let of_sum = (a.abs() + b.abs()) * 2f64.powi(-22);
            let Some(scale) = scale else {
                let bound = wanted.abs() * C::ROUNDING + C::LEAST + of_sum;
                let error = (found - wanted).abs();
                assert!(error <= bound, "column {column} is {found}, not {wanted}: wrong by {error:.1e}");
                continue;
            };
            let bound = narrow_bound(wanted, scale) + of_sum;
            let error = (found * scale - limited(wanted, scale)).abs();
            assert!(error <= bound, "column {column} is {found}, not {wanted}: wrong by {error:.1e}");
        }
    }
}

/// Returns a number within what an `e4m3` of this scale can be.
fn limited(number: f64, scale: f64) -> f64 {
    number.clamp(-448.0 * scale.abs(), 448.0 * scale.abs())
}

/// Returns the greatest error of a number that is stored as `e4m3`: half a unit in the last place,
/// and the roundings of the scale's inverse and of the quotient.
fn narrow_bound(number: f64, scale: f64) -> f64 {
    number.abs() * (e4m3::ROUNDING + 2f64.powi(-21)) + scale.abs() * e4m3::LEAST
}

/// Checks an element of a cache that has not been rotated.
#[track_caller]
fn check_copied(found: f64, number: f64, scale: Option<f64>, column: usize) {
    match scale {
        None => assert_eq!(found, number, "column {column} is copied"),
        Some(scale) => {
            let error = (found * scale - limited(number, scale)).abs();
            assert!(
                error <= narrow_bound(number, scale),
                "column {column} is {found} times {scale}, not {number}"
            );
        }
    }
}

/// Checks a case under some seeds of the simulator.
#[track_caller]
fn checks<T: AttentionElement + CacheElement<T> + Element>(case: Case) {
    under_seeds(1, |device| run::<T, T>(device, case, |cache, _| cache))
        .unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

/// Checks a case with a cache of `e4m3`.
#[track_caller]
fn checks_narrow<T: AttentionElement + Element>(case: Case) {
    under_seeds(1, |device| run::<T, e4m3>(device, case, with_scales))
        .unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

/// The scales of keys and of values, if there are any.
type Scales = Option<[DeviceTensor<f32, 2>; 2]>;

/// Adds the scales of keys and values, if there are any.
fn with_scales<'a>(cache: KeyValueCacheMut<'a, e4m3>, scales: &'a Scales) -> KeyValueCacheMut<'a, e4m3> {
    match scales {
        None => cache,
        Some([keys, values]) => cache.with_scales(CacheScales { keys: keys.view(), values: values.view() }),
    }
}

fn run<T: AttentionElement + Element, C: CacheElement<T> + Element>(
    device: &Device,
    case: Case,
    with_scales: for<'a> fn(KeyValueCacheMut<'a, C>, &'a Scales) -> KeyValueCacheMut<'a, C>,
) -> Result<(), CachedAttentionError> {
    let Case { lengths, tokens, heads, rows, depth, rotated, positions, query_heads, .. } = case;
    let batch = lengths.len();
    let new_shape = [batch, heads, tokens];
    let cache_shape = [if case.table.is_empty() { batch } else { case.pages }, heads, rows];
    let query_shape = [batch, query_heads, tokens];
    let k = numbers::<T>(1, batch * heads * tokens * depth, 2.0);
    let v = numbers::<T>(2, k.len(), 2.0);
    let q = numbers::<T>(3, batch * query_heads * tokens * depth, 2.0);
    let angle = |i: usize| (i / (rotated / 2)) as f64 * 0.7f64.powi((i % (rotated / 2)) as i32);
    let cos: Vec<f32> = (0..positions * rotated / 2).map(|i| angle(i).cos() as f32).collect();
    let sin: Vec<f32> = (0..positions * rotated / 2).map(|i| angle(i).sin() as f32).collect();

    let of_k = device.tensor(&k, case.stored(new_shape))?;
    let of_v = device.tensor(&v, case.stored(new_shape))?;
    let mut of_q = device.tensor(&q, case.stored(query_shape))?;
    let mut rotated_q = device.filled_bytes::<T, 4>(of_q.shape(), 0xff)?;
    let mut keys = device.filled_bytes::<C, 4>(case.stored(cache_shape), 0xff)?; // NaNs
    let mut values = device.filled_bytes::<C, 4>(case.stored(cache_shape), 0xff)?;
    // Scales of both signs. Some are so small that numbers are beyond 448 times them.
    let extents = case.scales.map(|[by_page, by_head]| {
        [if by_page { cache_shape[0] } else { 1 }, if by_head { heads } else { 1 }]
    });
    let scale = |of: usize, page: usize, head: usize| {
        let Some([pages, heads]) = extents else { return 1.0f32 };
        let i = (page % pages * heads + head % heads) * 2 + of;
        [0.01, -0.03125, 0.004, 0.02, 0.001, 1.5, 0.3][i % 7_usize]
    };
    let mut of_scales = None;
    if let Some([pages, heads]) = extents {
        let tensor = |of| {
            let places = (0..pages).flat_map(|page| (0..heads).map(move |head| (page, head)));
            device
                .tensor(&places.map(|(page, head)| scale(of, page, head)).collect::<Vec<_>>(), [pages, heads])
        };
        of_scales = Some([tensor(0)?, tensor(1)?]);
    }
    let is_narrow = C::BYTES == 1;
    let of_lengths = device.tensor(lengths, [batch])?;
    let of_counts = case.counts.map(|counts| device.tensor(counts, [batch])).transpose()?;
    let of_table = device.tensor(case.table, [batch, case.table.len() / batch])?;
    let of_cos = device.tensor(&cos, [positions, rotated / 2])?;
    let of_sin = device.tensor(&sin, [positions, rotated / 2])?;
    let mut new_lengths = device.zeros([batch])?;

    let order = case.order();
    let (of_keys, of_values) = (keys.view_mut().permute(order)?, values.view_mut().permute(order)?);
    let cache = match case.table.is_empty() {
        true => KeyValueCacheMut::contiguous(of_keys, of_values),
        false => KeyValueCacheMut::paged(of_keys, of_values, of_table.view()),
    };
    let cache = with_scales(cache, &of_scales);
    let queries = match case.in_place {
        true => RotaryQueries::InPlace(of_q.view_mut().permute(order)?),
        false => RotaryQueries::To {
            q: of_q.view().permute(order)?,
            rotated: rotated_q.view_mut().permute(order)?,
        },
    };
    let queries = (query_heads > 0).then_some(queries);
    let rotary = case.layout.map(|layout| Rotary { cos: of_cos.view(), sin: of_sin.view(), layout, queries });
    let counts = of_counts.as_ref().map(|counts| counts.view());
    let constant_positions = batch > 1; // here they always are
    let options =
        AppendOptions { counts, new_lengths: Some(new_lengths.view_mut()), rotary, constant_positions };
    let (view_k, view_v) = (of_k.view().permute(order)?, of_v.view().permute(order)?);
    append(device, view_k, view_v, cache.with_lengths(of_lengths.view()), options)?;

    let valid = |sequence: usize| case.counts.map_or(tokens, |counts| tokens.min(counts[sequence] as usize));
    let after = (0..batch).map(|i| lengths[i].saturating_add(valid(i) as u32));
    assert_eq!(new_lengths.to_vec()?, after.collect::<Vec<_>>());
    assert_eq!(of_lengths.to_vec()?, lengths);

    // Each row is expected to be written, or to have its NaNs.
    let (keys, values, found_q) =
        (keys.to_vec()?, values.to_vec()?, if case.in_place { of_q.to_vec()? } else { rotated_q.to_vec()? });
    let is_poison = |row: &[C]| row.iter().all(|x| x.value().is_nan());
    let mut is_written = vec![false; keys.len() / depth];
    for (sequence, &length) in lengths.iter().enumerate() {
        for token in 0..tokens {
            let position = length as usize + token;
            let has_angles = case.layout.is_none() || position < positions;
            let is_valid = token < valid(sequence) && has_angles;
            let angles = |all: &'_ [f32]| match is_valid && case.layout.is_some() {
                true => all[position * rotated / 2..][..rotated / 2].to_vec(),
                false => vec![],
            };
            let (cos, sin) = (angles(&cos), angles(&sin));
            if is_valid && let Some((page, row)) = case.row(sequence, position) {
                for head in 0..heads {
                    let from = case.start(new_shape, [sequence, head, token]);
                    let to = case.start(cache_shape, [page, head, row]);
                    is_written[to / depth] = true;
                    let [of_key, of_value] =
                        [0, 1].map(|of| is_narrow.then(|| f64::from(scale(of, page, head))));
                    case.check_rotated(&keys[to..][..depth], &k[from..][..depth], [&cos, &sin], of_key);
                    let (found, wanted) = (&values[to..][..depth], &v[from..][..depth]);
                    for (column, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                        check_copied(found.value(), wanted.value(), of_value, column);
                    }
                }
            }
            for head in (0..query_heads).filter(|_| case.layout.is_some()) {
                let at = case.start(query_shape, [sequence, head, token]);
                let (found, from) = (&found_q[at..][..depth], &q[at..][..depth]);
                if is_valid {
                    case.check_rotated(found, from, [&cos, &sin], None);
                } else if case.in_place {
                    assert!(found.iter().zip(from).all(|(a, b)| a.value() == b.value()), "not rotated");
                } else {
                    assert!(found.iter().all(|x| x.value().is_nan()), "a query that is not written");
                }
            }
        }
    }
    for (row, is_written) in is_written.iter().enumerate() {
        let [key, value] = [&keys, &values].map(|all| is_poison(&all[row * depth..][..depth]));
        assert!(*is_written || key && value, "row {row} is written");
    }
    Ok(())
}

#[test]
fn every_page_size_and_layout() {
    for heads_inside in [false, true] {
        checks::<bf16>(Case { heads_inside, ..PLAIN });
        for rows in [16, 32, 64, 128, 256] {
            checks::<bf16>(Case { rows, heads_inside, ..PAGED });
            checks::<f16>(Case { rows, heads_inside, layout: Some(RotaryLayout::Pairs), ..ROTATED });
        }
    }
}

#[test]
fn every_instance_and_depth() {
    for layout in [RotaryLayout::Halves, RotaryLayout::Pairs] {
        for (depth, rotated) in [(16, 16), (64, 32), (80, 32), (128, 128), (256, 64), (256, 256), (48, 0)] {
            let case = Case { layout: Some(layout), depth, rotated, ..ROTATED };
            checks::<bf16>(Case { in_place: true, ..case });
            checks::<f16>(Case { heads_inside: true, ..case });
        }
    }
    checks::<f16>(Case { layout: Some(RotaryLayout::Pairs), depth: 8, rotated: 8, ..ROTATED });
    checks::<bf16>(Case { depth: 8, ..PLAIN });
}

/// Caches of `e4m3`, whose scales are those of the tensor, of heads, of pages, and of both.
#[test]
fn narrow_caches() {
    for scales in [None, Some([false, false]), Some([false, true]), Some([true, false]), Some([true, true])] {
        checks_narrow::<bf16>(Case { scales, ..PLAIN });
        checks_narrow::<f16>(Case { scales, heads_inside: true, counts: Some(&[2, 0, 7]), ..ROTATED });
        checks_narrow::<bf16>(Case { scales, layout: Some(RotaryLayout::Pairs), rotated: 32, ..ROTATED });
    }
    let table = &[4, 6, u32::MAX, 5, 0, 3];
    let scales = Some([true, true]);
    checks_narrow::<bf16>(Case { table, lengths: &[14, 14, 14], scales, in_place: true, ..ROTATED });
}

#[test]
fn valid_tokens_of_each_sequence() {
    for in_place in [false, true] {
        checks::<bf16>(Case { counts: Some(&[2, 0, 7]), in_place, ..ROTATED });
    }
    checks::<f16>(Case { counts: Some(&[0, 3, 1]), ..PLAIN });
}

/// Positions beyond the cache, the table and the cosines; lengths whose sum overflows.
#[test]
fn positions_beyond_the_end() {
    checks::<bf16>(Case { lengths: &[11, 12, u32::MAX], ..PLAIN });
    checks::<bf16>(Case { lengths: &[31, 32, u32::MAX - 1], in_place: true, ..ROTATED });
    checks::<bf16>(Case { lengths: &[30, 0, 15], positions: 16, ..ROTATED });
    checks::<f16>(Case { lengths: &[15, 1, 2], positions: 16, in_place: true, ..ROTATED });
    checks::<f16>(Case { positions: 0, ..ROTATED });
}

#[test]
fn page_numbers_beyond_the_cache() {
    let table = &[4, 6, u32::MAX, 5, 0, 3];
    checks::<bf16>(Case { table, lengths: &[14, 14, 14], ..PAGED });
    checks::<f16>(Case { table, lengths: &[14, 14, 14], ..ROTATED });
}

#[test]
fn nothing_to_write() {
    checks::<bf16>(Case { tokens: 0, ..PLAIN });
    checks::<bf16>(Case { heads: 0, ..PLAIN });
    checks::<bf16>(Case { heads: 0, ..ROTATED });
    checks::<bf16>(Case { rows: 0, ..PLAIN });
    checks::<bf16>(Case { pages: 0, ..ROTATED });
}

/// Attention over a cache that is filled in two calls equals that over all keys at once. A graph
/// has the second call and the attention, and takes the lengths of the time when it runs.
#[test]
fn attention_over_appended_keys() -> Result<(), CachedAttentionError> {
    const DEPTH: usize = 64;
    let device = Device::simulator();
    let [k, v] = [1, 2].map(|seed| numbers::<bf16>(seed, 2 * 24 * DEPTH, 2.0));
    let q = numbers::<bf16>(3, 2 * DEPTH, 2.0);
    let (of_k, of_v) = (device.tensor(&k, [2, 1, 24, DEPTH])?, device.tensor(&v, [2, 1, 24, DEPTH])?);
    let of_q = device.tensor(&q, [2, 1, 1, DEPTH])?;
    let mut keys = device.filled_bytes::<bf16, 4>([4, 1, 16, DEPTH], 0xff)?;
    let mut values = device.filled_bytes::<bf16, 4>(keys.shape(), 0xff)?;
    let table = device.tensor(&[3, 0, 1, 2], [2, 2])?;
    let counts = device.tensor(&[23, 15], [2])?;
    let mut lengths = device.zeros([2])?;
    let mut after = device.zeros([2])?;
    let mut o = device.zeros(of_q.shape())?;

    let cache = KeyValueCacheMut::paged(keys.view_mut(), values.view_mut(), table.view());
    let options = AppendOptions {
        counts: Some(counts.view()),
        new_lengths: Some(lengths.view_mut()),
        ..Default::default()
    };
    append(&device, &of_k, &of_v, cache, options)?;
    assert_eq!(lengths.to_vec()?, [23, 15]);

    // The next token of each sequence: number 23 of the first one, and 15 of the second.
    let of_next = |all: &[bf16]| [&all[23 * DEPTH..][..DEPTH], &all[(24 + 15) * DEPTH..][..DEPTH]].concat();
    let (next_k, next_v) =
        (device.tensor(&of_next(&k), [2, 1, 1, DEPTH])?, device.tensor(&of_next(&v), [2, 1, 1, DEPTH])?);
    let mut workspace = tma_kernels::cached::CacheWorkspace::new(&device)?;
    let mut lse = device.zeros([2, 1, 1])?;
    let stream = device.stream()?;
    let mut run = |on: &tma_runtime::launch::With<'_>| {
        let cache = KeyValueCacheMut::paged(keys.view_mut(), values.view_mut(), table.view());
        let options = AppendOptions { new_lengths: Some(after.view_mut()), ..Default::default() };
        append(on, &next_k, &next_v, cache.with_lengths(lengths.view()), options)?;
        let cache = KeyValueCache::paged(keys.view(), values.view(), table.view());
        let options = CachedAttentionOptions {
            lse: Some(lse.view_mut()),
            workspace: Some(&mut workspace),
            ..Default::default()
        };
        cached_attention(on, &of_q, cache.with_lengths(after.view()), &mut o, options)
    };
    run(&stream.with())?; // the workspace grows
    let graph = stream.capture(|capture| {
        run(&capture.with()).map_err(|error| match error {
            CachedAttentionError::Runtime(error) => error,
            other => panic!("{other}"),
        })
    })?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(after.to_vec()?, [24, 16]);
    let [q, k, v] = [q, k, v].map(|all| plain::values(&all));
    for (sequence, (found, lse)) in o.to_vec()?.chunks(DEPTH).zip(lse.to_vec()?).enumerate() {
        let seen = |all: &'_ [f64]| all[sequence * 24 * DEPTH..][..(24 - 8 * sequence) * DEPTH].to_vec();
        let (k, v) = (seen(&k), seen(&v));
        let row = Row { q: &q[sequence * DEPTH..][..DEPTH], k: &k, v: &v, additions: &[] };
        row.check(found, lse, Softmax::scaled(1.0 / (DEPTH as f64).sqrt()));
    }
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() -> Result<(), Error> {
    let device = Device::simulator();
    let code = |new: [usize; 4], cache: [usize; 4], table: Option<[usize; 2]>, half: Option<usize>| {
        let (k, mut keys) = (device.zeros::<bf16, 4>(new)?, device.zeros::<bf16, 4>(cache)?);
        let mut values = device.zeros::<bf16, 4>(cache)?;
        let table = table.map(|shape| device.zeros::<u32, 2>(shape)).transpose()?;
        let cos = half.map(|half| device.zeros::<f32, 2>([9, half])).transpose()?;
        let cache = match &table {
            None => KeyValueCacheMut::contiguous(keys.view_mut(), values.view_mut()),
            Some(table) => KeyValueCacheMut::paged(keys.view_mut(), values.view_mut(), table.view()),
        };
        let layout = RotaryLayout::Halves;
        let rotary =
            cos.as_ref().map(|cos| Rotary { cos: cos.view(), sin: cos.view(), layout, queries: None });
        Ok::<_, Error>(match append(&device, &k, &k, cache, AppendOptions { rotary, ..Default::default() }) {
            Ok(()) => "none",
            Err(error) => error.code(),
        })
    };
    assert_eq!(code([2, 2, 1, 64], [2, 2, 30, 64], None, None)?, "none");
    assert_eq!(code([2, 2, 1, 64], [2, 2, 30, 64], None, Some(32))?, "none");
    assert_eq!(code([2, 2, 1, 60], [2, 2, 30, 60], None, None)?, "TMA0550");
    assert_eq!(code([2, 2, 1, 264], [2, 2, 30, 264], None, None)?, "TMA0550");
    assert_eq!(code([2, 2, 1, 64], [3, 2, 30, 64], None, None)?, "TMA0551");
    assert_eq!(code([2, 2, 1, 64], [2, 1, 30, 64], None, None)?, "TMA0551");
    assert_eq!(code([2, 2, 1, 64], [9, 2, 16, 64], Some([3, 2]), None)?, "TMA0551");
    assert_eq!(code([2, 2, 1, 64], [2, 2, 30, 64], None, Some(40))?, "TMA0551");
    assert_eq!(code([2, 2, 1, 64], [2, 2, 30, 64], None, Some(12))?, "TMA0551");
    assert_eq!(code([2, 2, 1, 64], [9, 2, 48, 64], Some([2, 2]), None)?, "TMA0568");

    let k = device.zeros::<bf16, 4>([1, 64, 1, 64])?;
    let (mut keys, mut values) = (device.zeros::<bf16, 4>([1, 64, 8, 64])?, device.zeros([1, 64, 8, 64])?);
    let cache = KeyValueCacheMut::contiguous(keys.view_mut(), values.view_mut());
    let turned = k.view().permute([0, 3, 2, 1])?;
    let error = append(&device, turned, turned, cache, AppendOptions::default());
    assert_eq!(error.expect_err("rows are not contiguous").code(), "TMA0569");
    Ok(())
}
