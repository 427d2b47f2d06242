//! Parts of a decoder in `f64`, and their gradients: matrices are row-major slices.

/// A matrix of weights, and whether it is stored inputs × outputs.
#[derive(Clone, Copy)]
pub(crate) struct Weight<'a> {
    pub(crate) numbers: &'a [f64],
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) inputs_first: bool,
}

impl Weight<'_> {
    fn index(&self, input: usize, output: usize) -> usize {
        if self.inputs_first { input * self.outputs + output } else { output * self.inputs + input }
    }
}

/// Returns `x · weight + bias`.
pub(crate) fn linear(x: &[f64], weight: Weight<'_>, bias: Option<&[f64]>) -> Vec<f64> {
    let mut all = vec![];
    for row in x.chunks(weight.inputs) {
        for output in 0..weight.outputs {
            let mut sum = bias.map_or(0.0, |bias| bias[output]);
            let (mut at, step) = (weight.index(0, output), weight.index(1, 0) - weight.index(0, 0));
            for number in row {
                sum += number * weight.numbers[at];
                at += step;
            }
            all.push(sum);
        }
    }
    all
}

/// Returns the gradient of `x`, and adds those of the weight and the bias.
pub(crate) fn linear_backward(
    x: &[f64],
    dy: &[f64],
    weight: Weight<'_>,
    dweight: &mut [f64],
    dbias: Option<&mut [f64]>,
) -> Vec<f64> {
    let mut dx = vec![0.0; x.len()];
    let step = weight.index(1, 0) - weight.index(0, 0);
    let rows = || x.chunks(weight.inputs).zip(dy.chunks(weight.outputs));
    for ((x, dy), dx) in rows().zip(dx.chunks_mut(weight.inputs)) {
        for (output, dy) in dy.iter().enumerate() {
            let mut at = weight.index(0, output);
            for (x, dx) in x.iter().zip(&mut *dx) {
                *dx += dy * weight.numbers[at];
                dweight[at] += dy * x;
                at += step;
            }
        }
    }
    if let Some(dbias) = dbias {
        for (_, dy) in rows() {
            dbias.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
        }
    }
    dx
}

/// The weight of a norm, and its bias, with which it is LayerNorm.
#[derive(Clone, Copy)]
pub(crate) struct Scale<'a> {
    pub(crate) weight: &'a [f64],
    pub(crate) bias: Option<&'a [f64]>,
    pub(crate) epsilon: f64,
}

fn mean(numbers: impl Iterator<Item = f64>, count: usize) -> f64 {
    numbers.sum::<f64>() / count as f64
}

/// Returns a row less its mean, if the norm is LayerNorm, over its deviation; and the deviation.
fn unscaled(row: &[f64], scale: Scale<'_>) -> (Vec<f64>, f64) {
    let centre = if scale.bias.is_some() { mean(row.iter().copied(), row.len()) } else { 0.0 };
    let square = mean(row.iter().map(|x| (x - centre).powi(2)), row.len());
    let deviation = (square + scale.epsilon).sqrt();
    (row.iter().map(|x| (x - centre) / deviation).collect(), deviation)
}

/// Returns RMSNorm, or LayerNorm.
pub(crate) fn norm(x: &[f64], scale: Scale<'_>) -> Vec<f64> {
    let mut all = vec![];
    for row in x.chunks(scale.weight.len()) {
        let (row, _) = unscaled(row, scale);
        for (column, n) in row.into_iter().enumerate() {
            all.push(n * scale.weight[column] + scale.bias.map_or(0.0, |bias| bias[column]));
        }
    }
    all
}

/// Returns the gradient of `x`, and adds those of the weight and the bias.
pub(crate) fn norm_backward(
    x: &[f64],
    dy: &[f64],
    scale: Scale<'_>,
    dweight: &mut [f64],
    mut dbias: Option<&mut [f64]>,
) -> Vec<f64> {
    let columns = scale.weight.len();
    let mut dx = vec![];
    for (row, dy) in x.chunks(columns).zip(dy.chunks(columns)) {
        let (n, deviation) = unscaled(row, scale);
        let h: Vec<f64> = dy.iter().zip(scale.weight).map(|(dy, weight)| dy * weight).collect();
        let centre = if scale.bias.is_some() { mean(h.iter().copied(), columns) } else { 0.0 };
        let along = mean(h.iter().zip(&n).map(|(h, n)| h * n), columns);
        for column in 0..columns {
            dx.push((h[column] - centre - n[column] * along) / deviation);
            dweight[column] += dy[column] * n[column];
            if let Some(dbias) = &mut dbias {
                dbias[column] += dy[column];
            }
        }
    }
    dx
}

/// Rotates halves of heads by their position, or back.
pub(crate) fn rotate(rows: &mut [f64], columns: usize, depth: usize, base: f64, is_back: bool) {
    let half = depth / 2;
    for (position, row) in rows.chunks_mut(columns).enumerate() {
        for head in row.chunks_mut(depth) {
            for pair in 0..half {
                let angle = position as f64 * base.powf(-2.0 * pair as f64 / depth as f64);
                let (sin, cos) = if is_back { (-angle).sin_cos() } else { angle.sin_cos() };
                let (x, y) = (head[pair], head[pair + half]);
                (head[pair], head[pair + half]) = (x * cos - y * sin, y * cos + x * sin);
            }
        }
    }
}

/// The extents of attention over one sequence.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) depth: usize,
    pub(crate) scale: f64,
}

impl Heads {
    /// Returns the start of a head of keys, which a head of queries shares, in a row.
    fn key_start(self, head: usize) -> usize {
        head * self.keys / self.queries * self.depth
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the weights of the keys that a query sees.
fn weights(q: &[f64], k: &[f64], heads: Heads, position: usize, head: usize) -> Vec<f64> {
    let Heads { queries, keys, depth, scale } = heads;
    let query = &q[(position * queries + head) * depth..][..depth];
    let scores: Vec<f64> = (0..=position)
        .map(|key| scale * inner(query, &k[key * keys * depth + heads.key_start(head)..][..depth]))
        .collect();
    let greatest = scores.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - greatest).exp()).sum();
    scores.iter().map(|score| (score - greatest).exp() / sum).collect()
}

/// Returns causal attention: rows of all heads of queries.
pub(crate) fn attention([q, k, v]: [&[f64]; 3], heads: Heads) -> Vec<f64> {
    let Heads { queries, keys, depth, .. } = heads;
    let mut all = vec![0.0; q.len()];
    for position in 0..q.len() / (queries * depth) {
        for head in 0..queries {
            let weights = weights(q, k, heads, position, head);
            for column in 0..depth {
                let values = (0..=position).map(|key| v[key * keys * depth + heads.key_start(head) + column]);
                all[(position * queries + head) * depth + column] =
                    values.zip(&weights).map(|(value, weight)| value * weight).sum();
            }
        }
    }
    all
}

/// Returns the gradients of queries, keys and values.
pub(crate) fn attention_backward([q, k, v]: [&[f64]; 3], d_o: &[f64], heads: Heads) -> [Vec<f64>; 3] {
    let Heads { queries, keys, depth, scale } = heads;
    let [mut dq, mut dk, mut dv] = [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
    for position in 0..q.len() / (queries * depth) {
        for head in 0..queries {
            let weights = weights(q, k, heads, position, head);
            let of_query = (position * queries + head) * depth;
            let of_keys: Vec<usize> =
                (0..=position).map(|key| key * keys * depth + heads.key_start(head)).collect();
            let d_o = &d_o[of_query..][..depth];
            let dweights: Vec<f64> = of_keys.iter().map(|&key| inner(d_o, &v[key..][..depth])).collect();
            let along = inner(&weights, &dweights);
            for (at, &key) in of_keys.iter().enumerate() {
                let dscore = weights[at] * (dweights[at] - along) * scale;
                for column in 0..depth {
                    dv[key + column] += weights[at] * d_o[column];
                    dq[of_query + column] += dscore * k[key + column];
                    dk[key + column] += dscore * q[of_query + column];
                }
            }
        }
    }
    [dq, dk, dv]
}

/// Returns x · sigmoid(x), and its derivative.
pub(crate) fn silu(x: f64) -> (f64, f64) {
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    (x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid)))
}

/// Returns GELU by `tanh`, and its derivative.
pub(crate) fn gelu(x: f64) -> (f64, f64) {
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let t = (root * (x + 0.044715 * x.powi(3))).tanh();
    let slope = root * (1.0 + 3.0 * 0.044715 * x * x);
    (x / 2.0 * (1.0 + t), (1.0 + t) / 2.0 + x / 2.0 * (1.0 - t * t) * slope)
}

/// Returns the loss of a row of logits, and its gradient.
pub(crate) fn cross_entropy(logits: &[f64], label: u32, smoothing: f64, z_loss: f64) -> (f64, Vec<f64>) {
    let greatest = logits.iter().copied().fold(f64::MIN, f64::max);
    let lse = greatest + logits.iter().map(|x| (x - greatest).exp()).sum::<f64>().ln();
    let (label, count) = (label as usize, logits.len() as f64);
    let even = logits.iter().sum::<f64>() / count;
    let loss = lse - (1.0 - smoothing) * logits[label] - smoothing * even + z_loss * lse * lse;
    let gradient = logits.iter().enumerate().map(|(column, x)| {
        let target = if column == label { 1.0 - smoothing } else { 0.0 };
        (x - lse).exp() * (1.0 + 2.0 * z_loss * lse) - smoothing / count - target
    });
    (loss, gradient.collect())
}
