//! Windows, soft caps, sinks and depths of attention on the simulator, compared with plain Rust in
//! f64.
#![cfg(feature = "llvm")]

#[path = "plain/case.rs"]
mod case;
mod plain;

use case::{Case, plain_case};
use plain::{Element, Row, Softmax, numbers, values};
use tma_kernels::{AttentionElement, AttentionError, AttentionOptions, attention};
use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;

/// Checks a case under some seeds of the simulator.
#[track_caller]
fn checks<T: AttentionElement + Element>(case: &Case, seeds: u64) {
    under_seeds(seeds, |device| run::<T>(device, case))
        .unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

/// Runs a case, and compares all rows with plain Rust. Without packing, sequences are a batch of
/// equal lengths.
fn run<T: AttentionElement + Element>(device: &Device, case: &Case) -> Result<(), AttentionError> {
    let &Case { heads, groups, depth, causal, window, window_after, soft_cap, .. } = case;
    let [of_queries, of_keys] = [0, 1].map(|of| case.shape(of));
    let [batch, _, queries, _] = of_queries;
    // The scores vary widely, so that maxima rise in later blocks too.
    let q = numbers::<T>(1, of_queries.iter().product(), 4.0);
    let k = numbers::<T>(2, of_keys.iter().product(), 2.0);
    let v = numbers::<T>(3, of_keys.iter().product(), 1.0);
    let on_q = device.tensor(&q, of_queries)?;
    let (on_k, on_v) = (device.tensor(&k, of_keys)?, device.tensor(&v, of_keys)?);
    let mut o = device.filled_bytes::<T, 4>(of_queries, 0xff)?;
    let mut lse = device.filled_bytes([batch, heads, queries], 0xff)?;
    let starts = [case.starts_on(device, 0)?, case.starts_on(device, 1)?];
    let (lengths, sinks) = (case.lengths(&starts), case.sinks_on(device)?);
    // Two blocks, each of which processes several tiles.
    let options = AttentionOptions {
        causal,
        window,
        window_after,
        soft_cap,
        sinks: sinks.as_ref().map(DeviceTensor::view),
        lengths,
        blocks: Some(2),
        lse: Some(lse.view_mut()),
        ..Default::default()
    };
    attention(device, &on_q, &on_k, &on_v, &mut o, options)?;

    let (o, lse) = (o.to_vec()?, lse.to_vec()?);
    let [q, k, v] = [q, k, v].map(|all| values(&all));
    let scale = 1.0 / (depth as f64).sqrt();
    for (sequence, &lengths) in case.sequences.iter().enumerate() {
        for (head, query) in (0..heads).flat_map(|head| (0..lengths[0]).map(move |query| (head, query))) {
            let row = case.row(0, sequence, head, query);
            let seen = case.seen(query, lengths);
            let of_keys = case.row(1, sequence, head / (heads / groups), seen.start) * depth;
            let found = &o[row * depth..][..depth];
            let sink = case.sinks.as_ref().map(|sinks| f64::from(sinks[head]));
            if let (true, Some(sink)) = (seen.is_empty(), sink) {
                assert!(found.iter().all(|x| x.value() == 0.0), "row {row} sees no key, and is {found:?}");
                let error = (f64::from(lse[row]) - sink).abs();
                assert!(error <= sink.abs() * 1e-6, "row {row}: {} and a sink of {sink}", lse[row]);
                continue;
            }
            let row_of_case = Row {
                q: &q[row * depth..][..depth],
                k: &k[of_keys..][..seen.len() * depth],
                v: &v[of_keys..][..seen.len() * depth],
                additions: &[],
            };
            let softmax = Softmax { cap: soft_cap.map(f64::from), sink, ..Softmax::scaled(scale) };
            row_of_case.check(found, lse[row], softmax);
        }
    }
    Ok(())
}

#[test]
fn every_instance_of_bf16() {
    every_instance::<bf16>();
}

#[test]
fn every_instance_of_f16() {
    every_instance::<f16>();
}

fn every_instance<T: AttentionElement + Element>() {
    for depth in [64, 128, 256] {
        let case = Case {
            depth,
            causal: true,
            window: Some(70),
            soft_cap: Some(3.0),
            sinks: Some(vec![1.0, -2.0]),
            ..plain_case()
        };
        checks::<T>(&case, 1);
        checks::<T>(&Case { is_packed: true, sequences: vec![[70, 90], [0, 5], [130, 160]], ..case }, 1);
    }
}

/// Windows that begin and end in all parts of a block of 128 keys.
#[test]
fn windows_of_all_sizes() {
    let sides = [None, Some(0), Some(1), Some(63), Some(128), Some(200), Some(usize::MAX)];
    for (window, window_after) in sides.iter().flat_map(|&left| sides.map(|right| (left, right))) {
        let case = Case { heads: 1, sequences: vec![[140, 300]], window, window_after, ..plain_case() };
        checks::<bf16>(&case, 1);
    }
}

/// Blocks of keys that no query of a tile sees are not read: a NaN in their values has no effect.
#[test]
fn hidden_blocks_are_skipped() -> Result<(), AttentionError> {
    let (device, [queries, keys, depth]) = (Device::simulator(), [1024, 1024, 64]);
    let q = device.tensor(&numbers::<bf16>(1, queries * depth, 1.0), [1, 1, queries, depth])?;
    let k = device.tensor(&numbers::<bf16>(2, keys * depth, 1.0), [1, 1, keys, depth])?;
    let mut values = numbers::<bf16>(3, keys * depth, 1.0);
    values[..300 * depth].fill(bf16::from_f32(f32::NAN)); // before the windows of queries from 512 on
    values[900 * depth..].fill(bf16::from_f32(f32::NAN)); // after those of queries before 768
    let v = device.tensor(&values, k.shape())?;
    let mut o = device.zeros(q.shape())?;
    let options = AttentionOptions { window: Some(200), window_after: Some(3), ..Default::default() };
    attention(&device, &q, &k, &v, &mut o, options)?;
    let o = o.to_vec()?;
    assert!(o[512 * depth..768 * depth].iter().all(|x| x.is_finite()));
    assert!(o[..256 * depth].iter().chain(&o[900 * depth..]).all(|x| x.is_nan()));
    Ok(())
}

/// With more queries than keys, the first queries see none. A window can leave none of them any.
#[test]
fn queries_without_keys() {
    for sinks in [None, Some(vec![0.5, -60.0])] {
        let case = Case { sinks, causal: true, ..plain_case() };
        checks::<bf16>(&Case { sequences: vec![[300, 100]], window: Some(20), ..case.clone() }, 1);
        checks::<f16>(
            &Case { sequences: vec![[200, 3]], depth: 256, soft_cap: Some(5.0), ..case.clone() },
            1,
        );
        let after = Case { causal: false, window_after: Some(5), window: Some(2), ..case.clone() };
        checks::<bf16>(&Case { sequences: vec![[190, 60]; 2], ..after }, 1);
        let none = Case { causal: false, window: Some(3), sequences: vec![[70, 0]], ..case.clone() };
        checks::<bf16>(&none, 1);
        let packed = vec![[70, 0], [40, 90], [140, 3], [0, 4], [1, 1]];
        checks::<bf16>(&Case { is_packed: true, window: Some(9), sequences: packed, ..case }, 1);
    }
}

/// Results of fewer columns of values are the first columns of those of all, bit for bit: the same
/// kernel computes them.
#[track_caller]
fn checks_narrower<T: AttentionElement + Element>(case: &Case, value_depth: usize) {
    let narrower = |device: &Device| {
        let [of_queries, of_keys] = [0, 1].map(|of| case.shape(of));
        let q = device.tensor(&numbers::<T>(1, of_queries.iter().product(), 4.0), of_queries)?;
        let [k, v] =
            [2, 3].map(|seed| device.tensor(&numbers::<T>(seed, of_keys.iter().product(), 1.0), of_keys));
        let (k, v) = (k?, v?);
        let starts = [case.starts_on(device, 0)?, case.starts_on(device, 1)?];
        let run = |columns: usize| {
            let [batch, heads, keys, _] = of_keys;
            let mut o =
                device.filled_bytes::<T, 4>([of_queries[0], of_queries[1], of_queries[2], columns], 0xff)?;
            let v = v.view().slice([0..batch, 0..heads, 0..keys, 0..columns])?;
            let options = AttentionOptions {
                causal: case.causal,
                window: case.window,
                soft_cap: case.soft_cap,
                lengths: case.lengths(&starts),
                ..Default::default()
            };
            attention(device, &q, &k, v, &mut o, options)?;
            Ok::<_, AttentionError>(o.to_vec()?)
        };
        let (all, found) = (run(case.depth)?, run(value_depth)?);
        for (all, found) in all.chunks(case.depth).zip(found.chunks(value_depth)) {
            let is_same = |(a, b): (&T, &T)| a.value().to_bits() == b.value().to_bits();
            assert!(all.iter().zip(found).all(is_same), "{found:?}, not {all:?}");
        }
        Ok::<_, AttentionError>(())
    };
    under_seeds(1, narrower).unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

#[test]
fn values_narrower_than_keys() {
    for (depth, value_depth) in [(192, 128), (128, 40), (256, 248)] {
        let case = Case { depth, causal: true, window: Some(60), sequences: vec![[70, 90]], ..plain_case() };
        checks_narrower::<bf16>(&case, value_depth);
        let packed = Case { is_packed: true, sequences: vec![[5, 20], [65, 70]], ..case };
        checks_narrower::<f16>(&Case { soft_cap: Some(3.0), ..packed }, value_depth);
    }
}

/// All multiples of 8. Packed sequences are stored by threads, which omit columns beyond the depth.
#[test]
fn all_depths() {
    for depth in (8..=256).step_by(8) {
        let case = Case { depth, heads: 1, sequences: vec![[70, 90]], ..plain_case() };
        checks::<bf16>(&Case { causal: depth % 16 == 0, ..case.clone() }, 1);
        checks::<f16>(
            &Case { is_packed: true, causal: depth % 16 != 0, sequences: vec![[5, 20], [65, 70]], ..case },
            1,
        );
    }
}

/// Sinks far below and far above the scores, also of rows whose exponents are beyond 2^20.
#[test]
fn sinks_of_all_sizes() -> Result<(), AttentionError> {
    for sink in [-1e30, -300.0, -20.0, 0.0, 20.0, 300.0, 1e30] {
        checks::<bf16>(&Case { sinks: Some(vec![sink, -sink]), ..plain_case() }, 1);
    }
    // Two keys with scores of 4e6, and a sink that is as large: weights of 1/3 each. Their exponents
    // are rounded to multiples of 1/2.
    let device = Device::simulator();
    let q = device.tensor(&[bf16::from_f32(250.0); 64], [1, 1, 1, 64])?;
    let k = device.tensor(&[bf16::from_f32(250.0); 128], [1, 1, 2, 64])?;
    let v = device.tensor(&[bf16::from_f32(3.0); 128], k.shape())?;
    for (sink, wanted) in [(4e6, 2.0), (4e6 - 100.0, 3.0), (4e6 + 100.0, 0.0)] {
        let sinks = device.tensor(&[sink], [1])?;
        let (mut o, mut lse) = (device.zeros(q.shape())?, device.zeros([1, 1, 1])?);
        let options = AttentionOptions {
            scale: Some(1.0),
            sinks: Some(sinks.view()),
            lse: Some(lse.view_mut()),
            ..Default::default()
        };
        attention(&device, &q, &k, &v, &mut o, options)?;
        assert!(o.to_vec()?.iter().all(|x| (x.to_f64() - wanted).abs() < 0.2), "{sink}: {:?}", o.to_vec()?);
        assert!((lse.to_vec()?[0] - sink.max(4e6)).abs() <= 2.0, "{sink}: {:?}", lse.to_vec()?);
    }
    Ok(())
}

/// Capped scores are between plus and minus the cap, however large the products are.
#[test]
fn caps_of_all_sizes() {
    for cap in [0.01, 1.0, 50.0] {
        checks::<bf16>(&Case { soft_cap: Some(cap), ..plain_case() }, 1);
        checks::<f16>(&Case { soft_cap: Some(cap), causal: true, depth: 128, ..plain_case() }, 1);
    }
}

/// Options, lengths and depths at random.
#[test]
fn random_cases() {
    let mut state = 7_u64;
    let mut below = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    for round in 0..40 {
        let groups = 1 + below(2);
        let heads = groups * (1 + below(2));
        let is_packed = below(2) == 0;
        let lengths = [1 + below(260), 1 + below(400)];
        let sequences = match is_packed {
            true => (0..1 + below(4)).map(|_| [below(180), below(220)]).collect(),
            false => vec![lengths; 1 + below(2)],
        };
        let mut side = || (below(3) > 0).then(|| below(150));
        let (window, window_after) = (side(), side());
        let case = Case {
            sequences,
            is_packed,
            heads,
            groups,
            depth: 8 * (1 + below(if round % 4 == 0 { 32 } else { 16 })),
            causal: below(2) == 0,
            window,
            window_after,
            soft_cap: (below(3) == 0).then(|| 0.5 + below(8) as f32),
            sinks: (below(3) == 0).then(|| (0..heads).map(|_| below(13) as f32 - 6.0).collect()),
        };
        match round % 2 {
            0 => checks::<bf16>(&case, 1),
            _ => checks::<f16>(&case, 1),
        }
    }
}

#[test]
fn many_seeds() {
    let case = Case { window: Some(40), causal: true, sinks: Some(vec![0.0, 1.0]), ..plain_case() };
    checks::<bf16>(&Case { sequences: vec![[150, 200]; 2], ..case.clone() }, 4);
    checks::<bf16>(&Case { is_packed: true, sequences: vec![[70, 90], [130, 40]], ..case }, 4);
}

/// The error code of invalid options.
#[test]
fn invalid_options_are_rejected() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let q = device.zeros::<bf16, 4>([1, 4, 5, 64])?;
    let mut o = device.zeros(q.shape())?;
    let mut code = |options: AttentionOptions<'_>| {
        attention(&device, &q, &q, &q, &mut o, options).map_or_else(|error| error.code(), |()| "accepted")
    };
    let plain = AttentionOptions::default;
    for cap in [0.0, -1.0, f32::NAN, f32::INFINITY, 2.4e38, 1e-40] {
        assert_eq!(code(AttentionOptions { soft_cap: Some(cap), ..plain() }), "TMA0552", "{cap}");
    }
    assert_eq!(code(AttentionOptions { soft_cap: Some(30.0), ..plain() }), "accepted");
    let (sinks, short) = (device.zeros([4])?, device.zeros([3])?);
    assert_eq!(code(AttentionOptions { sinks: Some(sinks.view()), ..plain() }), "accepted");
    assert_eq!(code(AttentionOptions { sinks: Some(short.view()), ..plain() }), "TMA0551");
    Ok(())
}
