//! Gradients of attention on the simulator, compared with plain Rust in f64: every instance, ragged
//! shapes, shared heads, views, and invalid arguments.
#![cfg(feature = "llvm")]

#[path = "plain/elements.rs"]
mod elements;

use elements::{Element, numbers, values};
use tma_kernels::attention::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, attention_backward,
};
use tma_kernels::{AttentionElement, AttentionError, AttentionOptions, attention};
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
    causal: bool,
}

const EVERY: Case = Case { batch: 1, heads: 2, groups: 1, queries: 150, keys: 200, depth: 64, causal: false };

impl Case {
    fn of_queries(self) -> [usize; 4] {
        [self.batch, self.heads, self.queries, self.depth]
    }

    fn of_keys(self) -> [usize; 4] {
        [self.batch, self.groups, self.keys, self.depth]
    }

    /// Returns how many keys a query sees.
    fn seen(self, query: usize) -> usize {
        match self.causal {
            true => (query + 1 + self.keys).saturating_sub(self.queries).min(self.keys),
            false => self.keys,
        }
    }

    /// Returns the head of keys of a head of queries, both counted through the batch.
    fn key_head(self, head: usize) -> usize {
        head / self.heads * self.groups + head % self.heads / (self.heads / self.groups)
    }
}

/// The tensors of a problem in f64: queries, keys, values, the gradient of the result.
struct Plain {
    case: Case,
    scale: f64,
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    d_o: Vec<f64>,
}

/// Gradients of queries, keys and values.
#[derive(Clone, Debug, PartialEq)]
struct Gradients<T>([Vec<T>; 3]);

impl Plain {
    fn row(all: &[f64], row: usize, depth: usize) -> &[f64] {
        &all[row * depth..][..depth]
    }

    /// Returns the weights of the keys that a query of a head sees.
    fn weights(&self, head: usize, query: usize) -> Vec<f64> {
        let Case { queries, keys, depth, .. } = self.case;
        let q = Self::row(&self.q, head * queries + query, depth);
        let keys = self.case.key_head(head) * keys..;
        let scores = keys.take(self.case.seen(query)).map(|key| {
            let k = Self::row(&self.k, key, depth);
            q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>() * self.scale
        });
        let scores: Vec<f64> = scores.collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    /// Returns the sum of the result's elements, each times its gradient: the function whose
    /// gradients are computed.
    fn value(&self) -> f64 {
        let Case { batch, heads, queries, keys, depth, .. } = self.case;
        let mut sum = 0.0;
        for head in 0..batch * heads {
            for query in 0..queries {
                let d_o = Self::row(&self.d_o, head * queries + query, depth);
                for (key, weight) in self.weights(head, query).into_iter().enumerate() {
                    let v = Self::row(&self.v, self.case.key_head(head) * keys + key, depth);
                    sum += weight * v.iter().zip(d_o).map(|(a, b)| a * b).sum::<f64>();
                }
            }
        }
        sum
    }

    /// Returns the gradients, and for each of the three the greatest sum of the magnitudes of what a
    /// gradient consists of.
    fn gradients(&self) -> (Gradients<f64>, [f64; 3]) {
        let Case { batch, heads, queries, keys, depth, .. } = self.case;
        let mut all = [&self.q, &self.k, &self.v].map(|like| vec![0.0; like.len()]);
        let mut sizes = all.clone();
        for head in 0..batch * heads {
            for query in 0..queries {
                let row = head * queries + query;
                let [q, d_o] = [&self.q, &self.d_o].map(|of| Self::row(of, row, depth));
                let weights = self.weights(head, query);
                let first = self.case.key_head(head) * keys;
                let products: Vec<f64> = (0..weights.len())
                    .map(|key| {
                        let v = Self::row(&self.v, first + key, depth);
                        v.iter().zip(d_o).map(|(a, b)| a * b).sum()
                    })
                    .collect();
                let delta: f64 = weights.iter().zip(&products).map(|(a, b)| a * b).sum();
                for (key, (weight, product)) in weights.iter().zip(&products).enumerate() {
                    let of_score = weight * (product - delta) * self.scale;
                    let size = weight * (product.abs() + delta.abs()) * self.scale;
                    let key = first + key;
                    for column in 0..depth {
                        let (at, to) = (row * depth + column, key * depth + column);
                        all[0][at] += of_score * self.k[to];
                        all[1][to] += of_score * q[column];
                        all[2][to] += weight * d_o[column];
                        sizes[0][at] += size * self.k[to].abs();
                        sizes[1][to] += size * q[column].abs();
                        sizes[2][to] += weight * d_o[column].abs();
                    }
                }
            }
        }
        (Gradients(all), sizes.map(|sizes| sizes.into_iter().fold(0.0, f64::max)))
    }
}

/// A problem of pseudo-random numbers, as tensors' elements.
struct Input<T> {
    case: Case,
    all: [Vec<T>; 4],
}

impl<T: Element> Input<T> {
    /// The scores vary widely, so that some weights are close to 1 and others to 0.
    fn of(case: Case) -> Self {
        let [of_queries, of_keys] = [case.of_queries(), case.of_keys()].map(|shape| shape.iter().product());
        let all = [(1, of_queries, 4.0), (2, of_keys, 2.0), (3, of_keys, 1.0), (4, of_queries, 1.0)];
        Self { case, all: all.map(|(seed, len, size)| numbers::<T>(seed, len, size)) }
    }

    fn plain(&self, scale: f64) -> Plain {
        let [q, k, v, d_o] = self.all.each_ref().map(|all| values(all));
        Plain { case: self.case, scale, q, k, v, d_o }
    }
}

/// Computes the gradients with the kernels, from a forward pass with them.
fn computed<T: AttentionElement + Element>(
    device: &Device,
    input: &Input<T>,
    scale: Option<f32>,
    workspace: Option<&mut AttentionWorkspace>,
) -> Result<Gradients<T>, AttentionError> {
    let case = input.case;
    let [q, k, v, d_o] = &input.all;
    let (q, d_o) = (device.tensor(q, case.of_queries())?, device.tensor(d_o, case.of_queries())?);
    let (k, v) = (device.tensor(k, case.of_keys())?, device.tensor(v, case.of_keys())?);
    let mut o = device.filled_bytes::<T, 4>(q.shape(), 0xff)?;
    let mut lse = device.filled_bytes([case.batch, case.heads, case.queries], 0xff)?;
    let causal = case.causal;
    let options = AttentionOptions { causal, scale, lse: Some(lse.view_mut()), ..Default::default() };
    attention(device, &q, &k, &v, &mut o, options)?;
    let mut dq = device.filled_bytes::<T, 4>(q.shape(), 0xff)?;
    let [mut dk, mut dv] =
        [device.filled_bytes::<T, 4>(k.shape(), 0xff)?, device.filled_bytes(v.shape(), 0xff)?];
    let forward = AttentionForward {
        q: q.view(),
        k: k.view(),
        v: v.view(),
        o: o.view(),
        d_o: d_o.view(),
        lse: lse.view(),
    };
    let gradients = AttentionGradients { dq: dq.view_mut(), dk: dk.view_mut(), dv: dv.view_mut() };
    let options = AttentionBackwardOptions { causal, scale, workspace, ..Default::default() };
    attention_backward(device, forward, gradients, options)?;
    Ok(Gradients([dq.to_vec()?, dk.to_vec()?, dv.to_vec()?]))
}

/// Checks gradients against those in f64.
///
/// Weights and gradients of scores are rounded to `T` before they are multiplied, the result `o` is
/// rounded before its product with the gradient, and so is each gradient: by half a unit in the last
/// place each, relative to at most the sum of the magnitudes of what is added up. Other errors are
/// smaller: those of `ex2.approx`, of the logarithms and of sums in f32.
#[track_caller]
fn check<T: Element>(found: &Gradients<T>, (wanted, sizes): &(Gradients<f64>, [f64; 3])) {
    for ((name, size), (found, wanted)) in
        ["dq", "dk", "dv"].iter().zip(sizes).zip(found.0.iter().zip(&wanted.0))
    {
        let bound = size * (4.0 * T::ROUNDING + 2f64.powi(-12)) + T::LEAST * 1024.0;
        for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let error = (found.value() - wanted).abs();
            assert!(
                error <= bound,
                "element {i} of {name} is {found:?}, not {wanted}: wrong by {error:.1e} of {bound:.1e}"
            );
        }
    }
}

/// Checks a case under some seeds of the simulator.
#[track_caller]
fn checks<T: AttentionElement + Element>(case: Case, seeds: u64) {
    let input = Input::<T>::of(case);
    let wanted = input.plain(1.0 / (case.depth as f64).sqrt()).gradients();
    let run = |device: &Device| computed(device, &input, None, None).map(|found| check(&found, &wanted));
    under_seeds(seeds, run).unwrap_or_else(|failure| panic!("{case:?}: {failure}"));
}

/// The formulas in f64 are the derivatives of the function in f64.
#[test]
fn numerical_differentiation_agrees() {
    let case = Case { heads: 4, groups: 2, queries: 5, keys: 7, depth: 3, causal: true, ..EVERY };
    let plain = || Input::<f16>::of(case).plain(0.7);
    let (Gradients(gradients), _) = plain().gradients();
    let (step, mut compared) = (1e-5, 0);
    for (of, gradient) in gradients.iter().enumerate() {
        for (i, gradient) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut plain = plain();
                [&mut plain.q, &mut plain.k, &mut plain.v][of][i] += by;
                plain.value()
            };
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((slope - gradient).abs() < 1e-7, "input {of}, element {i}: {gradient}, not {slope}");
            compared += 1;
        }
    }
    assert_eq!(compared, 4 * 5 * 3 + 2 * 2 * 7 * 3);
}

#[test]
fn every_instance_of_bf16() {
    for depth in [64, 128] {
        for causal in [false, true] {
            checks::<bf16>(Case { depth, causal, ..EVERY }, 1);
        }
    }
}

#[test]
fn every_instance_of_f16() {
    for depth in [64, 128] {
        for causal in [false, true] {
            checks::<f16>(Case { depth, causal, ..EVERY }, 1);
        }
    }
}

#[test]
fn many_seeds() {
    checks::<bf16>(Case { batch: 2, heads: 1, depth: 128, causal: true, ..EVERY }, 6);
}

#[test]
fn the_least_extents() {
    for (queries, keys) in [(1, 1), (1, 129), (3, 64), (65, 1), (128, 128), (129, 127)] {
        checks::<bf16>(Case { heads: 1, queries, keys, depth: 128, ..EVERY }, 1);
        checks::<f16>(Case { heads: 1, queries, keys, causal: true, ..EVERY }, 1);
    }
}

/// With more queries than keys, the first queries see none: their gradients are zero.
#[test]
fn a_mask_that_leaves_queries_without_keys() {
    checks::<bf16>(Case { queries: 300, keys: 100, depth: 128, causal: true, ..EVERY }, 1);
    checks::<f16>(Case { queries: 200, keys: 3, causal: true, ..EVERY }, 1);
    let case = Case { queries: 300, keys: 100, causal: true, ..EVERY };
    let found = computed(&Device::simulator(), &Input::<bf16>::of(case), None, None).expect("gradients");
    assert!(found.0[0][..200 * 64].iter().all(|x| x.value() == 0.0));
}

#[test]
fn heads_that_share_keys_or_do_not() {
    for groups in [1, 2, 3, 6] {
        checks::<bf16>(Case { batch: 2, heads: 6, groups, queries: 70, keys: 90, ..EVERY }, 1);
    }
}

/// A tensor without elements has no gradient, and what does not depend on it a gradient of zero.
#[test]
fn nothing_to_multiply() -> Result<(), AttentionError> {
    let device = Device::simulator();
    for (queries, keys) in [(0, 130), (130, 0), (0, 0)] {
        for depth in [64, 128] {
            let case = Case { queries, keys, depth, ..EVERY };
            let Gradients(found) = computed(&device, &Input::<bf16>::of(case), None, None)?;
            assert_eq!(found.each_ref().map(Vec::len), [2 * queries, keys, keys].map(|rows| rows * depth));
            assert!(found.iter().flatten().all(|x| x.value() == 0.0), "{case:?}");
        }
    }
    let case = Case { heads: 0, groups: 2, ..EVERY };
    let Gradients(found) = computed(&device, &Input::<bf16>::of(case), None, None)?;
    assert_eq!(found.each_ref().map(Vec::len), [0, 2 * 200 * 64, 2 * 200 * 64]);
    assert!(found.iter().flatten().all(|x| x.value() == 0.0));
    Ok(())
}

/// A workspace that has had larger and smaller problems, whose gradients have the same bits as with
/// one of their own where the order of sums is fixed.
#[test]
fn a_workspace_for_several_calls() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let mut workspace = AttentionWorkspace::new(&device)?;
    for (queries, keys, depth) in [(150, 100, 128), (70, 300, 64), (300, 20, 64)] {
        let case = Case { queries, keys, depth, causal: true, ..EVERY };
        let input = Input::<bf16>::of(case);
        let found = computed(&device, &input, None, Some(&mut workspace))?;
        check(&found, &input.plain(1.0 / (depth as f64).sqrt()).gradients());
        let own = computed(&device, &input, None, None)?;
        assert_eq!(found.0[1..], own.0[1..]);
    }
    Ok(())
}

/// Memory of another library suffices for as many queries as it is for, and for no more.
#[test]
fn a_workspace_in_memory_of_the_caller() -> Result<(), AttentionError> {
    let device = Device::simulator();
    for depth in [64, 128] {
        let case = Case { queries: 70, keys: 100, depth, ..EVERY };
        let bytes = AttentionWorkspace::bytes(case.of_queries())?;
        let memory = device.filled_bytes::<u8, 1>([bytes], 0xff)?;
        // SAFETY: the memory outlives the workspace, and is used for nothing else.
        let mut workspace = unsafe { AttentionWorkspace::from_raw(&device, memory.as_ptr(), bytes)? };
        let input = Input::<bf16>::of(case);
        let found = computed(&device, &input, None, Some(&mut workspace))?;
        check(&found, &input.plain(1.0 / (depth as f64).sqrt()).gradients());
        let more = Input::<bf16>::of(Case { heads: 3, ..case });
        let error = computed(&device, &more, None, Some(&mut workspace)).expect_err("too little memory");
        let wanted = AttentionWorkspace::bytes(more.case.of_queries())?;
        assert!(
            error.to_string().contains(&format!("{bytes} bytes, but this call needs {wanted}")),
            "{error}"
        );
    }
    Ok(())
}

/// Large scores, whose greatest weight is 1 and whose others are 0, and small ones with equal
/// weights.
#[test]
fn scales_of_other_sizes() -> Result<(), AttentionError> {
    let device = Device::simulator();
    for (scale, depth) in [(1e-6, 64), (3.0, 128), (1e-6, 128), (3.0, 64)] {
        let input = Input::<f16>::of(Case { depth, queries: 70, keys: 140, ..EVERY });
        let found = computed(&device, &input, Some(scale), None)?;
        check(&found, &input.plain(f64::from(scale)).gradients());
    }
    Ok(())
}

/// Batch × sequence × heads × depth, as in many libraries, for all tensors.
#[test]
fn views_of_other_layouts() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let case = Case { batch: 2, heads: 4, groups: 2, queries: 100, keys: 140, depth: 64, causal: true };
    let input = Input::<bf16>::of(case);
    let wanted = computed(&device, &input, None, None)?;

    let order = [0, 2, 1, 3];
    let turned = |shape: [usize; 4]| order.map(|dimension| shape[dimension]);
    let moved = |all: &[bf16], [batch, heads, rows, depth]: [usize; 4]| -> Vec<bf16> {
        let of_row = move |row: usize| {
            let (outer, head) = (row / heads, row % heads);
            let from = ((outer / rows * heads + head) * rows + outer % rows) * depth;
            from..from + depth
        };
        (0..batch * rows * heads).flat_map(|row| all[of_row(row)].to_vec()).collect()
    };
    let (of_queries, of_keys) = (case.of_queries(), case.of_keys());
    let tensor = |of: usize, shape| device.tensor(&moved(&input.all[of], shape), turned(shape));
    let [q, k, v, d_o] =
        [tensor(0, of_queries)?, tensor(1, of_keys)?, tensor(2, of_keys)?, tensor(3, of_queries)?];
    let mut o: DeviceTensor<bf16, 4> = device.zeros(q.shape())?;
    // Rows of logarithms that are not adjacent.
    let mut lse: DeviceTensor<f32, 3> = device.zeros([2, 100, 4])?;
    let mut plain_lse = device.zeros([2, 4, 100])?;
    let options = AttentionOptions { causal: true, lse: Some(plain_lse.view_mut()), ..Default::default() };
    let [of_q, of_k, of_v] = [&q, &k, &v].map(|tensor| tensor.view().permute(order));
    attention(&device, of_q?, of_k?, of_v?, o.view_mut().permute(order)?, options)?;
    let logarithms = plain_lse.to_vec()?;
    let transposed: Vec<f32> =
        (0..800).map(|i| logarithms[i / 400 * 400 + i % 4 * 100 + i / 4 % 100]).collect();
    lse.copy_from(&transposed)?;

    let [mut dq, mut dk, mut dv] =
        [device.zeros::<bf16, 4>(q.shape())?, device.zeros(k.shape())?, device.zeros(k.shape())?];
    let forward = AttentionForward {
        q: q.view().permute(order)?,
        k: k.view().permute(order)?,
        v: v.view().permute(order)?,
        o: o.view().permute(order)?,
        d_o: d_o.view().permute(order)?,
        lse: lse.view().permute([0, 2, 1])?,
    };
    let gradients = AttentionGradients {
        dq: dq.view_mut().permute(order)?,
        dk: dk.view_mut().permute(order)?,
        dv: dv.view_mut().permute(order)?,
    };
    let options = AttentionBackwardOptions { causal: true, ..Default::default() };
    attention_backward(&device, forward, gradients, options)?;
    let [of_q, of_k, of_v] = &wanted.0;
    assert_eq!(dk.to_vec()?, moved(of_k, of_keys));
    assert_eq!(dv.to_vec()?, moved(of_v, of_keys));
    let close = |(a, b): (&bf16, &bf16)| (a.value() - b.value()).abs() <= 0.01;
    assert!(dq.to_vec()?.iter().zip(&moved(of_q, of_queries)).all(close));
    Ok(())
}

#[test]
fn tensors_that_do_not_match_are_errors() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let zeros = |shape: [usize; 4]| device.zeros::<bf16, 4>(shape);
    let code =
        |change: &dyn Fn(&mut [[usize; 4]; 8]), lse: [usize; 3], scale| -> Result<String, AttentionError> {
            let mut shapes = [[1, 4, 20, 64]; 8]; // q, k, v, o, d_o, dq, dk, dv
            for of_keys in [1, 2, 6, 7] {
                shapes[of_keys] = [1, 2, 30, 64];
            }
            change(&mut shapes);
            let tensors: Vec<_> = shapes.into_iter().map(zeros).collect::<Result<_, _>>()?;
            let [mut dq, mut dk, mut dv] = [zeros(shapes[5])?, zeros(shapes[6])?, zeros(shapes[7])?];
            let lse = device.zeros(lse)?;
            let forward = AttentionForward {
                q: tensors[0].view(),
                k: tensors[1].view(),
                v: tensors[2].view(),
                o: tensors[3].view(),
                d_o: tensors[4].view(),
                lse: lse.view(),
            };
            let gradients = AttentionGradients { dq: dq.view_mut(), dk: dk.view_mut(), dv: dv.view_mut() };
            let options = AttentionBackwardOptions { scale, ..Default::default() };
            let result = attention_backward(&device, forward, gradients, options);
            Ok(result.err().map_or(String::new(), |error| error.to_string()))
        };
    let rows = [1, 4, 20];
    assert_eq!(code(&|_| (), rows, None)?, "");
    for (tensor, name) in [(2, "v"), (3, "o"), (4, "d_o"), (5, "dq"), (6, "dk"), (7, "dv")] {
        let message = code(&|shapes| shapes[tensor][2] += 1, rows, None)?;
        assert!(message.starts_with("TMA0551") && message.contains(&format!("`{name}` is ")), "{message}");
    }
    assert!(code(&|_| (), [1, 4, 21], None)?.contains("`lse` is [1, 4, 21], but must be [1, 4, 20]"));
    assert!(
        code(&|shapes| shapes.iter_mut().for_each(|shape| shape[3] = 256), rows, None)?
            .starts_with("TMA0550")
    );
    let three_heads =
        |shapes: &mut [[usize; 4]; 8]| [1, 2, 6, 7].into_iter().for_each(|of| shapes[of][1] = 3);
    assert!(code(&three_heads, rows, None)?.starts_with("TMA0551"));
    assert!(code(&|_| (), rows, Some(0.0))?.starts_with("TMA0552"));
    Ok(())
}

#[test]
fn rows_that_threads_cannot_access_are_an_error() -> Result<(), AttentionError> {
    let device = Device::simulator();
    let whole: DeviceTensor<bf16, 4> = device.zeros([1, 2, 20, 64])?;
    let turned: DeviceTensor<bf16, 4> = device.zeros([1, 2, 64, 20])?;
    let lse = device.zeros([1, 2, 20])?;
    let [mut dq, mut dk, mut dv] =
        [device.zeros(whole.shape())?, device.zeros(whole.shape())?, device.zeros(whole.shape())?];
    let forward = AttentionForward {
        q: whole.view(),
        k: whole.view(),
        v: whole.view(),
        o: turned.view().permute([0, 1, 3, 2])?,
        d_o: whole.view(),
        lse: lse.view(),
    };
    let gradients = AttentionGradients { dq: dq.view_mut(), dk: dk.view_mut(), dv: dv.view_mut() };
    let error = attention_backward(&device, forward, gradients, Default::default()).expect_err("an error");
    assert_eq!(error.code(), "TMA0569");
    Ok(())
}
