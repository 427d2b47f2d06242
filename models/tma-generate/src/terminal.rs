//! A text that is continued in a terminal.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use tma_models::engine::{Engine, EngineOptions, Request, Sampling};
use tma_models::text::TextStream;

use crate::load::Model;

/// The counts and times of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The tokens of the prompt.
    pub prompt: usize,
    /// The tokens that were appended.
    pub tokens: usize,
    /// The time until the first one.
    pub first: Duration,
    /// The time of the others.
    pub others: Duration,
}

impl Summary {
    /// Returns the tokens a second after the first one, if there are any.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let others = self.tokens.checked_sub(1).filter(|others| *others > 0)?;
        Some(others as f64 / self.others.as_secs_f64())
    }
}

/// Continues a prompt, and writes each piece of text as soon as it is complete.
///
/// # Errors
///
/// A prompt that is empty or too long, errors of the device and of `out`.
pub fn generate(
    model: Model,
    prompt: &str,
    limit: usize,
    sampling: Sampling,
    out: &mut impl Write,
) -> Result<Summary> {
    let Model { decoder, text, .. } = model;
    let prompt = text.encode(prompt)?;
    let ends = decoder.config().ends.clone();
    let context = decoder.config().context.min(prompt.len().saturating_add(limit));
    let options = EngineOptions { sequences: 1, context, ..Default::default() };
    let mut engine = Engine::new(decoder, options)?;
    let mut summary =
        Summary { prompt: prompt.len(), tokens: 0, first: Duration::ZERO, others: Duration::ZERO };
    let mut stream = TextStream::after(&prompt);
    engine.submit(Request { prompt, limit, sampling, ends, log_probabilities: None })?;
    let start = Instant::now();
    while !engine.is_idle() {
        for event in engine.step()? {
            if let Some(token) = event.token {
                write!(out, "{}", stream.push(&text, token)?)?;
                out.flush()?;
                summary.tokens += 1;
            }
            if summary.first.is_zero() {
                summary.first = start.elapsed();
            }
        }
    }
    summary.others = start.elapsed() - summary.first;
    writeln!(out, "{}", stream.finish(&text)?)?;
    Ok(summary)
}
