//! Attention on the simulator, compared with plain Rust in f64: every instance, ragged shapes,
//! shared heads, views, sequences of several lengths, and invalid arguments.
#![cfg(feature = "llvm")]

mod plain;

use plain::{Element, Row, Softmax, numbers, values};
use tma_kernels::{AttentionElement, AttentionError, AttentionOptions, Lengths, attention};
use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;

/// The shape of a problem.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    heads: usize,
    /// Heads of keys and values.
    groups: usize,
    queries: usize,
    keys: usize,
    depth: usize,
    /// The columns by which values are narrower than keys.
    narrower: usize,
    causal: bool,
}

/// Checks a case under some seeds of the simulator.
#[track_caller]
fn checks<T: AttentionElement + Element>(case: Case, seeds: u64) {
    under_seeds(seeds, |device| run::<T>(device, case))
        .unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

fn run<T: AttentionElement + Element>(device: &Device, case: Case) -> Result<(), AttentionError> {
    let Case { batch, heads, groups, queries, keys, depth, narrower, causal } = case;
    let value_depth = depth - narrower;
    // The scores vary widely, so that maxima rise in later blocks too.
    let q = numbers::<T>(1, batch * heads * queries * depth, 4.0);
    let k = numbers::<T>(2, batch * groups * keys * depth, 2.0);
    let v = numbers::<T>(3, batch * groups * keys * value_depth, 1.0);
    let of_q = device.tensor(&q, [batch, heads, queries, depth])?;
    let of_k = device.tensor(&k, [batch, groups, keys, depth])?;
    let of_v = device.tensor(&v, [batch, groups, keys, value_depth])?;
    let mut o = device.filled_bytes::<T, 4>([batch, heads, queries, value_depth], 0xff)?;
    let mut lse = device.filled_bytes([batch, heads, queries], 0xff)?;
    // Two blocks, each of which processes several tiles.
    let options =
        AttentionOptions { causal, blocks: Some(2), lse: Some(lse.view_mut()), ..Default::default() };
    attention(device, &of_q, &of_k, &of_v, &mut o, options)?;

    let (o, lse) = (o.to_vec()?, lse.to_vec()?);
    let [q, k, v] = [q, k, v].map(|all| values(&all));
    for (row, found) in o.chunks(value_depth).enumerate() {
        let (head, query) = (row / queries, row % queries);
        let of_keys = (head / heads * groups + head % heads / (heads / groups)) * keys;
        let seen = if causal { (query + 1 + keys).saturating_sub(queries).min(keys) } else { keys };
        let row = Row {
            q: &q[row * depth..][..depth],
            k: &k[of_keys * depth..][..seen * depth],
            v: &v[of_keys * value_depth..][..seen * value_depth],
            additions: &[],
        };
        row.check(found, lse[head * queries + query], Softmax::scaled(1.0 / (depth as f64).sqrt()));
    }
    Ok(())
}

const EVERY: Case =
    Case { batch: 1, heads: 2, groups: 1, queries: 150, keys: 200, depth: 64, narrower: 0, causal: false };

#[test]
fn every_instance_of_bf16() {
    for depth in [64, 128, 256] {
        for causal in [false, true] {
            checks::<bf16>(Case { depth, causal, ..EVERY }, 1);
        }
    }
}

#[test]
fn every_instance_of_f16() {
    for depth in [64, 128, 256] {
        for causal in [false, true] {
            checks::<f16>(Case { depth, causal, ..EVERY }, 1);
        }
    }
}

/// Heads of 192 columns with values of 128, as of DeepSeek-V3, and others.
#[test]
fn values_narrower_than_keys() {
    for (depth, narrower) in [(192, 64), (128, 120), (256, 8)] {
        for causal in [false, true] {
            checks::<bf16>(Case { depth, narrower, causal, ..EVERY }, 1);
        }
    }
    checks::<f16>(Case { depth: 64, narrower: 24, keys: 0, ..EVERY }, 1);
}

#[test]
fn many_seeds() {
    checks::<bf16>(Case { batch: 2, heads: 1, causal: true, ..EVERY }, 8);
}

#[test]
fn the_least_extents() {
    for (queries, keys) in [(1, 1), (1, 129), (3, 64), (64, 1), (128, 128), (129, 127)] {
        checks::<bf16>(Case { heads: 1, queries, keys, depth: 128, ..EVERY }, 1);
    }
}

/// Exponents of every size, from below the rounding of weights to beyond an `f32`, which grow or
/// shrink from block to block. Maxima become far in a later block, or are so from the first one.
/// Scores are integers below 2^24, which are exact.
#[test]
fn exponents_of_every_size() -> Result<(), AttentionError> {
    every_size::<bf16>([70, 400, 64])?;
    every_size::<f16>([70, 300, 128])?;
    every_size::<bf16>([70, 200, 256])
}

fn every_size<T: AttentionElement + Element>(
    [queries, keys, depth]: [usize; 3],
) -> Result<(), AttentionError> {
    let device = Device::simulator();
    let whole = |x: &T| T::of((x.value() * 4.0).round());
    let q: Vec<T> = numbers::<T>(11, queries * depth, 2.0).iter().map(whole).collect();
    let v = numbers::<T>(12, keys * depth, 1.0);
    let of_v = device.tensor(&v, [1, 1, keys, depth])?;
    for grows in [true, false] {
        let size = |key: usize| 2f64.powi(if grows { key / 100 } else { 3 - key / 100 } as i32 * 2);
        let k = numbers::<T>(13, keys * depth, 1.0);
        let k = k.iter().map(whole).enumerate();
        let k: Vec<T> = k.map(|(i, x)| T::of(x.value() * size(i / depth))).collect();
        let (of_q, of_k) =
            (device.tensor(&q, [1, 1, queries, depth])?, device.tensor(&k, [1, 1, keys, depth])?);
        for (scale, causal) in
            [(1e-4, false), (0.01, true), (50.0, false), (3e3, true), (1e6, false), (1e32, true)]
        {
            let mut o = device.filled_bytes::<T, 4>(of_q.shape(), 0xff)?;
            let mut lse = device.filled_bytes([1, 1, queries], 0xff)?;
            let options = AttentionOptions {
                causal,
                scale: Some(scale),
                lse: Some(lse.view_mut()),
                ..Default::default()
            };
            attention(&device, &of_q, &of_k, &of_v, &mut o, options)?;
            let (o, lse) = (o.to_vec()?, lse.to_vec()?);
            let [q, k, v] = [&q, &k, &v].map(|all| values(all));
            for query in 0..queries {
                let seen = if causal { query + 1 + keys - queries } else { keys } * depth;
                let row =
                    Row { q: &q[query * depth..][..depth], k: &k[..seen], v: &v[..seen], additions: &[] };
                row.check(&o[query * depth..][..depth], lse[query], Softmax::scaled(f64::from(scale)));
            }
        }
    }
    Ok(())
}

/// With more queries than keys, the first queries see none.
#[test]
fn a_mask_that_leaves_queries_without_keys() {
    checks::<bf16>(Case { queries: 300, keys: 100, causal: true, ..EVERY }, 1);
    checks::<f16>(Case { queries: 200, keys: 3, depth: 256, causal: true, ..EVERY }, 1);
}

#[test]
fn heads_that_share_keys_or_do_not() {
    for groups in [1, 2, 3, 6] {
        checks::<bf16>(Case { heads: 6, groups, queries: 20, keys: 90, ..EVERY }, 1);
    }
}

/// Batch × sequence × heads × depth, as in many libraries, and a custom scale.
#[test]
fn views_of_other_layouts() -> Result<(), AttentionError> {
    let (device, [queries, keys, heads, depth]) = (Device::simulator(), [100, 140, 3, 64]);
    let q = numbers::<bf16>(4, 2 * queries * heads * depth, 4.0);
    let [k, v] = [5, 6].map(|seed| numbers::<bf16>(seed, 2 * keys * heads * depth, 1.0));
    let of_q = device.tensor(&q, [2, queries, heads, depth])?;
    let [of_k, of_v] = [&k, &v].map(|all| device.tensor(all, [2, keys, heads, depth]));
    let [of_k, of_v] = [of_k?, of_v?];
    let mut o = device.filled_bytes::<bf16, 4>(of_q.shape(), 0xff)?;
    let order = [0, 2, 1, 3];
    let [q_view, k_view, v_view] = [&of_q, &of_k, &of_v].map(|tensor| tensor.view().permute(order));
    let options = AttentionOptions { scale: Some(0.25), ..Default::default() };
    attention(&device, q_view?, k_view?, v_view?, o.view_mut().permute(order)?, options)?;

    let found = o.to_vec()?;
    let [q, k, v] = [q, k, v].map(|all| values(&all));
    let of_head = |all: &[f64], batch: usize, head: usize| -> Vec<f64> {
        let rows = all.chunks(heads * depth).skip(batch * keys).take(keys);
        rows.flat_map(|row| &row[head * depth..][..depth]).copied().collect()
    };
    for batch in 0..2 {
        for head in 0..heads {
            let [k, v] = [&k, &v].map(|all| of_head(all, batch, head));
            for query in 0..queries {
                let at = ((batch * queries + query) * heads + head) * depth;
                Row { q: &q[at..][..depth], k: &k, v: &v, additions: &[] }
                    .check_values(&found[at..][..depth], Softmax::scaled(0.25));
            }
        }
    }
    Ok(())
}

/// Packed sequences, some of them empty. Data after a sequence, including infinities, does not
/// affect it.
#[test]
fn sequences_of_several_lengths() {
    for depth in [64, 128, 256] {
        for causal in [false, true] {
            let check = |device: &Device| ragged::<bf16>(device, depth, causal);
            under_seeds(1, check).unwrap_or_else(|failure| panic!("{depth} {causal}: {failure}"));
        }
    }
    under_seeds(3, |device| ragged::<f16>(device, 128, true)).unwrap_or_else(|failure| panic!("{failure}"));
}

fn ragged<T: AttentionElement + Element>(
    device: &Device,
    depth: usize,
    causal: bool,
) -> Result<(), AttentionError> {
    let starts = |lengths: &[usize]| -> Vec<usize> {
        let ends = lengths.iter().scan(0, |sum, length| {
            *sum += length;
            Some(*sum)
        });
        std::iter::once(0).chain(ends).collect()
    };
    let of_queries = starts(&[70, 0, 200, 5, 64, 1]);
    let of_keys = starts(&[100, 30, 40, 200, 0, 130]);
    let [queries, keys, heads] = [340, 500, 2];
    let q = numbers::<T>(7, heads * queries * depth, 4.0);
    let k = numbers::<T>(8, keys * depth, 2.0);
    let mut v = numbers::<T>(9, keys * depth, 1.0);
    v[170 * depth..][..depth].fill(T::of(f64::INFINITY)); // the first key of the fourth sequence
    let of_q = device.tensor(&q, [1, heads, queries, depth])?;
    let of_k = device.tensor(&k, [1, 1, keys, depth])?;
    let of_v = device.tensor(&v, [1, 1, keys, depth])?;
    let mut o = device.filled_bytes::<T, 4>(of_q.shape(), 0xff)?;
    let mut lse = device.filled_bytes([1, heads, queries], 0xff)?;
    let [on_queries, on_keys] = [&of_queries, &of_keys].map(|starts| {
        let starts: Vec<u32> = starts.iter().map(|&start| start as u32).collect();
        device.tensor(&starts, [starts.len()])
    });
    let (on_queries, on_keys) = (on_queries?, on_keys?);
    let lengths =
        Some(Lengths { queries: on_queries.view(), keys: on_keys.view(), longest: 200, longest_keys: 200 });
    let [q, k, v] = [q, k, v].map(|all| values(&all));
    for blocks in [None, Some(3)] {
        let options =
            AttentionOptions { causal, lengths, blocks, lse: Some(lse.view_mut()), ..Default::default() };
        attention(device, &of_q, &of_k, &of_v, &mut o, options)?;
        let (found, sums) = (o.to_vec()?, lse.to_vec()?);
        for (sequence, (of_q, of_k)) in of_queries.windows(2).zip(of_keys.windows(2)).enumerate() {
            if sequence == 3 {
                continue; // the sequence with infinities
            }
            let all = of_k[1] - of_k[0];
            for at in (0..heads).flat_map(|head| (of_q[0]..of_q[1]).map(move |query| head * queries + query))
            {
                let query = at % queries - of_q[0];
                let hidden = (of_q[1] - of_q[0]).saturating_sub(query + 1);
                let seen = if causal { all.saturating_sub(hidden) } else { all } * depth;
                let [k, v] = [&k, &v].map(|all| &all[of_k[0] * depth..][..seen]);
                let row = Row { q: &q[at * depth..][..depth], k, v, additions: &[] };
                row.check(
                    &found[at * depth..][..depth],
                    sums[at],
                    Softmax::scaled(1.0 / (depth as f64).sqrt()),
                );
            }
        }
    }
    Ok(())
}

#[test]
fn tensors_without_elements() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let tensor = |shape| device.filled_bytes::<bf16, 4>(shape, 0);
    for shape in [[0, 2, 5, 64], [1, 0, 5, 64], [1, 2, 0, 64]] {
        let [batch, heads, _, depth] = shape;
        let k = tensor([batch, heads, 7, depth])?;
        attention(&device, &tensor(shape)?, &k, &k, &mut tensor(shape)?, AttentionOptions::default())?;
    }
    // Without keys the result of each query is zero.
    let (q, k) = (tensor([2, 2, 70, 128])?, tensor([2, 1, 0, 128])?);
    let mut o = device.filled_bytes::<bf16, 4>(q.shape(), 0xff)?;
    let mut lse = device.filled_bytes([2, 2, 70], 0xff)?;
    for causal in [false, true] {
        let options = AttentionOptions { causal, lse: Some(lse.view_mut()), ..Default::default() };
        attention(&device, &q, &k, &k, &mut o, options)?;
        assert!(o.to_vec()?.iter().all(|x| x.to_bits() == 0));
        assert!(lse.to_vec()?.iter().all(|&x| x == f32::NEG_INFINITY));
    }
    Ok(())
}

#[test]
fn launches_are_captured() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let q = device.tensor(&numbers::<f16>(1, 10 * 64, 1.0), [1, 1, 10, 64])?;
    let mut o = device.filled_bytes::<f16, 4>(q.shape(), 0xff)?;
    let starts = device.tensor(&[0, 4, 10], [3])?;
    let lengths = Some(Lengths { queries: starts.view(), keys: starts.view(), longest: 6, longest_keys: 6 });
    let stream = device.stream()?;
    let mut refused = None;
    let graph = stream.capture(|capture| {
        let options = AttentionOptions { lengths, ..Default::default() };
        match attention(capture, &q, &q, &q, &mut o, options) {
            Err(AttentionError::Runtime(error)) => return Err(error),
            Err(error) => refused = Some(error),
            Ok(()) => {}
        }
        Ok(())
    })?;
    assert!(refused.is_none(), "{refused:?}");
    assert!(o.to_vec()?.iter().all(|x| x.is_nan()));
    graph.launch(&stream)?;
    assert!(o.to_vec()?.iter().all(|x| x.is_finite()));
    Ok(())
}

/// The error code of invalid arguments. Each case differs in one property from a valid one.
#[test]
fn invalid_arguments_are_rejected() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let refused =
        |shapes: [[usize; 4]; 4], options: AttentionOptions<'_>| -> Result<&'static str, AttentionError> {
            let [q, k, v, o] = shapes.map(|shape| device.zeros::<bf16, 4>(shape));
            Ok(attention(&device, &q?, &k?, &v?, &mut o?, options)
                .map_or_else(|error| error.code(), |()| "accepted"))
        };
    let (q, k) = ([1, 6, 5, 64], [1, 3, 7, 64]);
    let plain = AttentionOptions::default;
    assert_eq!(refused([q, k, k, q], plain())?, "accepted");
    let deep = |[a, b, c, _]: [usize; 4], depth| [a, b, c, depth];
    for depth in [4, 12, 100, 264, 512] {
        assert_eq!(refused([q, k, k, q].map(|shape| deep(shape, depth)), plain())?, "TMA0550");
    }
    for shapes in [
        [q, [2, 3, 7, 64], [2, 3, 7, 64], q],
        [q, deep(k, 128), deep(k, 128), q],
        [q, k, [1, 3, 8, 64], q],
        [q, k, [1, 6, 7, 64], q],
        [q, k, k, [1, 6, 4, 64]],
        [q, [1, 4, 7, 64], [1, 4, 7, 64], q],
        [q, [1, 0, 7, 64], [1, 0, 7, 64], q],
    ] {
        assert_eq!(refused(shapes, plain())?, "TMA0551", "{shapes:?}");
    }
    let mut lse = device.zeros([1, 6, 4])?;
    assert_eq!(refused([q, k, k, q], AttentionOptions { lse: Some(lse.view_mut()), ..plain() })?, "TMA0551");
    assert_eq!(refused([q, k, k, q], AttentionOptions { scale: Some(2.3e38), ..plain() })?, "accepted");
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 2.4e38] {
        assert_eq!(refused([q, k, k, q], AttentionOptions { scale: Some(scale), ..plain() })?, "TMA0552");
    }

    let starts = |lengths: &[u32]| device.tensor(lengths, [lengths.len()]);
    let (two, three, none) = (starts(&[0, 5])?, starts(&[0, 2, 5])?, starts(&[])?);
    fn with<'a>(
        queries: &'a DeviceTensor<u32, 1>,
        keys: &'a DeviceTensor<u32, 1>,
        longest: usize,
    ) -> AttentionOptions<'a> {
        let lengths =
            Some(Lengths { queries: queries.view(), keys: keys.view(), longest, longest_keys: longest });
        AttentionOptions { lengths, ..Default::default() }
    }
    assert_eq!(refused([q, k, k, q], with(&two, &two, 5))?, "accepted");
    assert_eq!(refused([q, k, k, q], with(&two, &three, 5))?, "TMA0553");
    assert_eq!(refused([q, k, k, q], with(&none, &none, 5))?, "TMA0553");
    assert_eq!(refused([q, k, k, q], with(&two, &two, 6))?, "accepted"); // "or more"
    let twice = |[_, b, c, d]: [usize; 4]| [2, b, c, d];
    assert_eq!(refused([q, k, k, q].map(twice), with(&two, &two, 5))?, "TMA0553");
    Ok(())
}
