//! Gradients of attention with windows, soft caps, sinks, packed sequences and all depths, and in a
//! fixed order, on the simulator, compared with plain Rust in f64.
#![cfg(feature = "llvm")]

#[path = "plain/case.rs"]
mod case;
#[path = "plain/elements.rs"]
mod elements;

use case::{Case, plain_case};
use elements::{Element, numbers, values};
use tma_kernels::attention::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, Sinks,
    attention_backward,
};
use tma_kernels::{AttentionElement, AttentionError, AttentionOptions, attention};
use tma_runtime::prelude::*;
use tma_runtime::testing::under_seeds;

/// Gradients of queries, keys, values and sinks, in f64, or the sums of the magnitudes of what they
/// consist of.
#[derive(Clone, Debug)]
struct Gradients([Vec<f64>; 4]);

/// The tensors of a problem in f64: queries, keys, values, the gradient of the result, and sinks.
struct Plain<'a> {
    case: &'a Case,
    scale: f64,
    all: [Vec<f64>; 4],
    sinks: Option<Vec<f64>>,
}

/// A row of the softmax.
struct Softmax {
    /// The weight of each key that the query sees.
    weights: Vec<f64>,
    /// The derivative of each limited score by the score.
    slopes: Vec<f64>,
    /// The weight of the sink.
    of_sink: f64,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn magnitudes(all: &[f64]) -> Vec<f64> {
    all.iter().map(|x| x.abs()).collect()
}

impl Plain<'_> {
    fn row(&self, of: usize, row: usize) -> &[f64] {
        &self.all[of][row * self.case.depth..][..self.case.depth]
    }

    fn softmax(&self, head: usize, query: usize, keys: &[usize]) -> Softmax {
        let scores: Vec<f64> =
            keys.iter().map(|&key| dot(self.row(0, query), self.row(1, key)) * self.scale).collect();
        let cap = self.case.soft_cap.map(f64::from);
        let limit = |score: &f64| cap.map_or(*score, |cap| cap * (score / cap).tanh());
        let slope = |score: &f64| cap.map_or(1.0, |cap| 1.0 - (score / cap).tanh().powi(2));
        let exponentials: Vec<f64> = scores.iter().map(|score| limit(score).exp()).collect();
        let of_sink = self.sinks.as_ref().map_or(0.0, |sinks| sinks[head].exp());
        let total = exponentials.iter().sum::<f64>() + of_sink;
        Softmax {
            weights: exponentials.iter().map(|exponential| exponential / total).collect(),
            slopes: scores.iter().map(slope).collect(),
            of_sink: of_sink / total,
        }
    }

    /// Calls `visit` with each head, query row and the rows of keys that the query sees.
    fn each(&self, mut visit: impl FnMut(usize, usize, &[usize])) {
        let case = self.case;
        for (sequence, &lengths) in case.sequences.iter().enumerate() {
            for (head, query) in
                (0..case.heads).flat_map(|head| (0..lengths[0]).map(move |query| (head, query)))
            {
                let of_keys = head / (case.heads / case.groups);
                let keys: Vec<usize> =
                    case.seen(query, lengths).map(|key| case.row(1, sequence, of_keys, key)).collect();
                visit(head, case.row(0, sequence, head, query), &keys);
            }
        }
    }

    /// Returns the sum of the result's elements, each times its gradient: the function whose
    /// gradients are computed.
    fn value(&self) -> f64 {
        let mut sum = 0.0;
        self.each(|head, query, keys| {
            let softmax = self.softmax(head, query, keys);
            for (weight, &key) in softmax.weights.iter().zip(keys) {
                sum += weight * dot(self.row(2, key), self.row(3, query));
            }
        });
        sum
    }

    /// Returns the gradients, and the sums of the magnitudes of what they consist of.
    fn gradients(&self) -> [Gradients; 2] {
        let depth = self.case.depth;
        let lens = [self.all[0].len(), self.all[1].len(), self.all[2].len(), self.case.heads];
        let (mut all, mut sizes) = (lens.map(|len| vec![0.0; len]), lens.map(|len| vec![0.0; len]));
        self.each(|head, query, keys| {
            let softmax = self.softmax(head, query, keys);
            let products: Vec<f64> =
                keys.iter().map(|&key| dot(self.row(2, key), self.row(3, query))).collect();
            let delta = dot(&softmax.weights, &products);
            all[3][head] -= softmax.of_sink * delta;
            sizes[3][head] += softmax.of_sink * dot(&softmax.weights, &magnitudes(&products));
            for (i, &key) in keys.iter().enumerate() {
                let weight = softmax.weights[i];
                let factor = weight * softmax.slopes[i] * self.scale;
                let of_score = factor * (products[i] - delta);
                let size = weight * self.scale * (products[i].abs() + delta.abs());
                for column in 0..depth {
                    let [q, k, d_o] =
                        [(0, query), (1, key), (3, query)].map(|(of, row)| self.row(of, row)[column]);
                    for (of, row, gradient, size) in [
                        (0, query, of_score * k, size * k),
                        (1, key, of_score * q, size * q),
                        (2, key, weight * d_o, weight * d_o),
                    ] {
                        all[of][row * depth + column] += gradient;
                        sizes[of][row * depth + column] += size.abs();
                    }
                }
            }
        });
        [Gradients(all), Gradients(sizes)]
    }
}

/// The elements of queries, keys, values and the gradient of the result.
fn inputs<T: Element>(case: &Case) -> [Vec<T>; 4] {
    let [of_queries, of_keys] = [0, 1].map(|of| case.shape(of).iter().product());
    // The scores vary widely, so that some weights are close to 1 and others to 0.
    [(1, of_queries, 4.0), (2, of_keys, 2.0), (3, of_keys, 1.0), (4, of_queries, 1.0)]
        .map(|(seed, len, size)| numbers::<T>(seed, len, size))
}

fn plain<'a, T: Element>(case: &'a Case, inputs: &[Vec<T>; 4]) -> Plain<'a> {
    let sinks = case.sinks.as_ref().map(|sinks| sinks.iter().copied().map(f64::from).collect());
    let scale = 1.0 / (case.depth as f64).sqrt();
    Plain { case, scale, all: inputs.each_ref().map(|all| values(all)), sinks }
}

/// Computes the gradients of queries, keys, values and sinks with the kernels, from a forward pass
/// with them.
fn computed<T: AttentionElement + Element>(
    device: &Device,
    case: &Case,
    deterministic: bool,
    [q, k, v, d_o]: &[Vec<T>; 4],
) -> Result<([Vec<T>; 3], Vec<f32>), AttentionError> {
    let &Case { causal, window, window_after, soft_cap, .. } = case;
    let (of_queries, of_keys) = (case.shape(0), case.shape(1));
    let (q, d_o) = (device.tensor(q, of_queries)?, device.tensor(d_o, of_queries)?);
    let (k, v) = (device.tensor(k, of_keys)?, device.tensor(v, of_keys)?);
    let mut o = device.filled_bytes::<T, 4>(of_queries, 0xff)?;
    let [batch, heads, queries, _] = of_queries;
    let mut lse = device.filled_bytes([batch, heads, queries], 0xff)?;
    let starts = [case.starts_on(device, 0)?, case.starts_on(device, 1)?];
    let (lengths, sinks) = (case.lengths(&starts), case.sinks_on(device)?);
    let options = AttentionOptions {
        causal,
        window,
        window_after,
        soft_cap,
        sinks: sinks.as_ref().map(DeviceTensor::view),
        lengths,
        lse: Some(lse.view_mut()),
        ..Default::default()
    };
    attention(device, &q, &k, &v, &mut o, options)?;

    let mut dq = device.filled_bytes::<T, 4>(of_queries, 0xff)?;
    let [mut dk, mut dv] = [device.filled_bytes::<T, 4>(of_keys, 0xff)?, device.filled_bytes(of_keys, 0xff)?];
    let mut of_sinks = device.filled_bytes::<f32, 1>([heads], 0xff)?;
    let forward = AttentionForward {
        q: q.view(),
        k: k.view(),
        v: v.view(),
        o: o.view(),
        d_o: d_o.view(),
        lse: lse.view(),
    };
    let gradients = AttentionGradients { dq: dq.view_mut(), dk: dk.view_mut(), dv: dv.view_mut() };
    // What an earlier call left in the workspace has no effect.
    let bytes = match case.is_packed {
        true => AttentionWorkspace::bytes_of_packed(of_queries, case.sequences.len())?,
        false => AttentionWorkspace::bytes(of_queries)?,
    };
    let memory = device.filled_bytes::<u8, 1>([bytes], 0xff)?;
    // SAFETY: the memory outlives the workspace, and is used for nothing else.
    let mut workspace = unsafe { AttentionWorkspace::from_raw(device, memory.as_ptr(), bytes)? };
    let options = AttentionBackwardOptions {
        causal,
        window,
        window_after,
        scale: None,
        soft_cap,
        sinks: sinks.as_ref().map(|sinks| Sinks { sinks: sinks.view(), gradient: of_sinks.view_mut() }),
        lengths,
        deterministic,
        workspace: Some(&mut workspace),
    };
    attention_backward(device, forward, gradients, options)?;
    Ok(([dq.to_vec()?, dk.to_vec()?, dv.to_vec()?], of_sinks.to_vec()?))
}

/// Checks a case under some seeds of the simulator.
///
/// The bound is that of `attention_backward.rs`. With a soft cap, the derivative of the limit comes
/// from the rounded weight: a relative error of that is `1 / cap` times as large in the hyperbolic
/// tangent, and twice that in the derivative.
#[track_caller]
fn compare<T: AttentionElement + Element>(case: &Case, deterministic: bool, seeds: u64) {
    let inputs = inputs::<T>(case);
    let [wanted, sizes] = plain(case, &inputs).gradients();
    let of_cap = case.soft_cap.map_or(0.0, |cap| 2.0 * T::ROUNDING / f64::from(cap));
    let check = |name: &str, found: &[f64], of: usize| {
        let size = sizes.0[of].iter().copied().fold(0.0, f64::max);
        let bound = size * (4.0 * T::ROUNDING + of_cap + 2f64.powi(-12)) + T::LEAST * 1024.0;
        assert_eq!(found.len(), wanted.0[of].len());
        for (i, (found, wanted)) in found.iter().zip(&wanted.0[of]).enumerate() {
            let error = (found - wanted).abs();
            assert!(
                error <= bound,
                "{case:?}: element {i} of {name} is {found:?}, not {wanted}: wrong by {error:.1e} of {bound:.1e}"
            );
        }
    };
    let run = |device: &Device| {
        computed::<T>(device, case, deterministic, &inputs).map(|(found, of_sinks)| {
            for (of, name) in ["dq", "dk", "dv"].iter().enumerate() {
                check(name, &values(&found[of]), of);
            }
            if case.sinks.is_some() {
                check(
                    "the gradient of sinks",
                    &of_sinks.iter().copied().map(f64::from).collect::<Vec<_>>(),
                    3,
                );
            }
        })
    };
    under_seeds(seeds, run).unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

#[track_caller]
fn checks<T: AttentionElement + Element>(case: &Case, seeds: u64) {
    compare::<T>(case, false, seeds);
}

/// Checks a case whose sums have a fixed order.
#[track_caller]
fn checks_in_order<T: AttentionElement + Element>(case: &Case, seeds: u64) {
    compare::<T>(case, true, seeds);
}

/// The formulas in f64 are the derivatives of the function in f64.
#[test]
fn numerical_differentiation_agrees() {
    let case = Case {
        sequences: vec![[4, 6], [1, 3]],
        is_packed: true,
        heads: 2,
        depth: 3,
        window: Some(2),
        window_after: Some(1),
        soft_cap: Some(1.5),
        sinks: Some(vec![0.3, -0.7]),
        ..plain_case()
    };
    let plain = || plain(&case, &inputs::<f16>(&case));
    let [Gradients(gradients), _] = plain().gradients();
    let (step, mut compared) = (1e-5, 0);
    for (of, gradient) in gradients.iter().enumerate() {
        for (i, gradient) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut plain = plain();
                match (of, &mut plain.sinks) {
                    (3, Some(sinks)) => sinks[i] += by,
                    (of, _) => plain.all[of][i] += by,
                }
                plain.value()
            };
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((slope - gradient).abs() < 1e-7, "input {of}, element {i}: {gradient}, not {slope}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2 * 5 * 3 + 2 * 9 * 3 + 2);
}

fn every_instance<T: AttentionElement + Element>() {
    for depth in [64, 128] {
        let case = Case {
            depth,
            causal: true,
            window: Some(70),
            soft_cap: Some(3.0),
            sinks: Some(vec![1.0, -2.0]),
            ..plain_case()
        };
        checks::<T>(&case, 1);
        let packed = Case { is_packed: true, sequences: vec![[70, 90], [0, 5], [130, 160]], ..case };
        checks::<T>(&packed, 1);
        checks_in_order::<T>(&packed, 1);
    }
}

#[test]
fn every_instance_of_bf16() {
    every_instance::<bf16>();
}

#[test]
fn every_instance_of_f16() {
    every_instance::<f16>();
}

/// Windows that begin and end in all parts of blocks of keys and queries.
#[test]
fn windows_of_all_sizes() {
    let sides = [None, Some(0), Some(63), Some(200)];
    for (window, window_after) in sides.iter().flat_map(|&left| sides.map(|right| (left, right))) {
        let case = Case { heads: 1, sequences: vec![[140, 300]], window, window_after, ..plain_case() };
        compare::<bf16>(&case, window_after.is_some(), 1);
    }
    let more_queries = Case { heads: 1, sequences: vec![[300, 140]], depth: 128, ..plain_case() };
    checks::<bf16>(&Case { window: Some(30), window_after: Some(5), ..more_queries.clone() }, 1);
    checks_in_order::<bf16>(&Case { window: Some(30), causal: true, ..more_queries }, 1);
}

#[test]
fn depths_between_those_of_instances() {
    for depth in [8, 40, 72, 96, 120] {
        checks::<bf16>(&Case { depth, causal: depth == 96, groups: 2, ..plain_case() }, 1);
    }
    let packed = Case { is_packed: true, sequences: vec![[70, 90], [33, 40]], ..plain_case() };
    checks::<f16>(&Case { depth: 80, ..packed }, 1);
}

#[test]
fn packed_sequences_of_all_lengths() {
    let sequences = vec![[1, 1], [0, 0], [64, 64], [129, 7], [0, 30], [5, 0], [127, 129]];
    let case = Case { sequences, is_packed: true, heads: 2, groups: 2, ..plain_case() };
    checks::<bf16>(&case, 2);
    checks::<bf16>(&Case { causal: true, depth: 128, ..case.clone() }, 2);
    checks_in_order::<bf16>(&Case { causal: true, depth: 128, ..case }, 4);
}

/// Rows that follow a sequence along the tensors have no effect on its gradients, even if they are
/// not numbers.
#[test]
fn sequences_do_not_mix() -> Result<(), AttentionError> {
    for depth in [64, 128] {
        let case =
            Case { sequences: vec![[70, 90], [50, 60]], is_packed: true, depth, heads: 1, ..plain_case() };
        let mut inputs = inputs::<bf16>(&case);
        let (wanted, _) = computed(&Device::simulator(), &case, false, &inputs)?;
        for (of, rows) in [(0, 70), (1, 90), (2, 90), (3, 70)] {
            inputs[of][rows * depth..].fill(bf16::from_f32(f32::NAN));
        }
        let (found, _) = computed(&Device::simulator(), &case, false, &inputs)?;
        for (of, rows) in [(0, 70), (1, 90), (2, 90)] {
            assert_eq!(found[of][..rows * depth], wanted[of][..rows * depth], "tensor {of}, depth {depth}");
            assert!(found[of][rows * depth..].iter().all(|x| x.value().is_nan()));
        }
    }
    Ok(())
}

/// In a fixed order, all gradients have the same bits, whichever block is the fastest.
#[test]
fn a_fixed_order_of_sums() -> Result<(), AttentionError> {
    for (depth, causal, window, groups) in [
        (64, false, None, 1),
        (128, false, None, 2),
        (64, true, None, 2),
        (128, true, None, 1),
        (64, true, Some(90), 1),
    ] {
        let sequences = vec![[200, 300]];
        let case = Case { sequences, depth, causal, window, groups, ..plain_case() };
        let inputs = inputs::<bf16>(&case);
        let mut first = None;
        for seed in 0..4 {
            let (found, _) = computed(&Device::simulator().seed(seed), &case, true, &inputs)?;
            let wanted = first.get_or_insert_with(|| found.clone());
            assert!(found == *wanted, "{case:?}: other bits with seed {seed}");
        }
        checks_in_order::<bf16>(&case, 1);
    }
    Ok(())
}
