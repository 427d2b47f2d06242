//! Log-probabilities of chosen tokens, and of the most probable ones.

use tma_kernels::model::{embedding, log_probability};
use tma_runtime::prelude::*;

use super::LogProbabilities;
use crate::ModelError;
use crate::views::first_mut;

/// Memory for log-probabilities.
#[derive(Debug)]
pub(super) struct Scores {
    device: Device,
    /// The log-probability of each row's token.
    of_tokens: DeviceTensor<f32, 1>,
    row: Option<RowOnDevice>,
}

/// The log-probabilities that a row wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The chosen token.
    pub(super) token: u32,
    /// The number of the greatest log-probabilities. With `None`, that of the token is not wanted
    /// either.
    pub(super) count: Option<usize>,
}

/// The logits of a row, of which the greatest are found on the host.
///
/// A kernel would have to read the row once for each, or sort it. Few requests want them, and a row
/// of 128 thousand logits is half a megabyte, which takes less time to copy and search than a step.
#[derive(Debug)]
struct RowOnDevice {
    index: DeviceTensor<u32, 1>,
    logits: DeviceTensor<f32, 2>,
    on_host: Vec<f32>,
}

impl Scores {
    pub(super) fn new(device: &Device, rows: usize) -> Result<Self, ModelError> {
        Ok(Self { device: device.clone(), of_tokens: device.zeros([rows])?, row: None })
    }

    /// Computes the log-probabilities of rows, whose tokens were chosen from `logits`, and waits.
    /// If no row wants any, nothing is done.
    pub(super) fn of(
        &mut self,
        stream: &Stream,
        logits: TensorView<'_, f32, 2>,
        tokens: TensorView<'_, u32, 1>,
        wanted: &[Wanted],
    ) -> Result<Vec<Option<LogProbabilities>>, ModelError> {
        if wanted.iter().all(|wanted| wanted.count.is_none()) {
            return Ok(vec![None; wanted.len()]);
        }
        let [rows, _] = logits.shape();
        log_probability(stream, logits, tokens, first_mut(&mut self.of_tokens, rows)?)?;
        let of_tokens = self.of_tokens.to_vec()?;
        let mut found = vec![];
        for (row, (wanted, token)) in wanted.iter().zip(of_tokens).enumerate() {
            let Some(count) = wanted.count else {
                found.push(None);
                continue;
            };
            let mut top = if count == 0 { vec![] } else { self.top(stream, logits, row, count)? };
            // One number for one token: the host's sum differs from the kernel's in rounding.
            top.iter_mut()
                .filter(|(other, _)| *other == wanted.token)
                .for_each(|(_, of_token)| *of_token = token);
            found.push(Some(LogProbabilities { token, top }));
        }
        Ok(found)
    }

    /// Returns the greatest log-probabilities of a row.
    fn top(
        &mut self,
        stream: &Stream,
        logits: TensorView<'_, f32, 2>,
        row: usize,
        count: usize,
    ) -> Result<Vec<(u32, f32)>, ModelError> {
        let [_, vocabulary] = logits.shape();
        let memory = match &mut self.row {
            Some(row) => row,
            empty => empty.insert(RowOnDevice {
                index: self.device.zeros([1])?,
                logits: self.device.zeros([1, vocabulary])?,
                on_host: vec![0.0; vocabulary],
            }),
        };
        memory.index.copy_from(&[row as u32])?;
        // A copy of the row: with a factor of 1, it keeps all numbers.
        embedding(stream, logits, &memory.index, &mut memory.logits, 1.0)?;
        memory.logits.copy_to(&mut memory.on_host)?;
        Ok(greatest(&memory.on_host, count))
    }
}

/// Returns the greatest log-probabilities of logits.
fn greatest(logits: &[f32], count: usize) -> Vec<(u32, f32)> {
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    // Of equal logits, the first one comes first; NaN comes before all numbers, as in `arg_max`.
    let greater = |x: &u32, y: &u32| {
        let of = |token: &u32| logits[*token as usize];
        of(y).total_cmp(&of(x)).then(x.cmp(y))
    };
    if count < order.len() {
        order.select_nth_unstable_by(count, greater);
        order.truncate(count);
    }
    order.sort_unstable_by(greater);
    let most = logits.iter().fold(f64::NEG_INFINITY, |most, x| most.max(f64::from(*x)));
    let sum: f64 = logits.iter().map(|x| (f64::from(*x) - most).exp()).sum();
    let of = |token: u32| (f64::from(logits[token as usize]) - most - sum.ln()) as f32;
    order.into_iter().map(|token| (token, of(token))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_come_first() {
        let found = greatest(&[1.0, 3.0, 2.0, 3.0, f32::NEG_INFINITY], 3);
        let tokens: Vec<u32> = found.iter().map(|(token, _)| *token).collect();
        assert_eq!(tokens, [1, 3, 2]);
        // ln(e^3 / (2 e^3 + e^2 + e))
        assert!((found[0].1 - -0.917_576).abs() < 1e-5, "{found:?}");
        assert!((found[2].1 - (found[0].1 - 1.0)).abs() < 1e-6, "{found:?}");
        assert_eq!(greatest(&[0.0], 5), [(0, 0.0)]);
        assert_eq!(greatest(&[], 5), []);
    }
}
