//! The windows of a text that steps read.
//!
//! A window has the tokens of a sequence and the one after it, the last label. Where it begins
//! depends on the seed, the step and its index in the step alone: there is no state of a generator
//! to save, and a run that resumes draws the same windows.

use std::ops::Range;

use tma_models::random::mixed;

use crate::error::TrainError;
use crate::stream::TokenFile;

/// The parts of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The tokens that steps draw windows from.
    pub training: Range<usize>,
    /// The tokens that are held out.
    pub validation: Range<usize>,
}

/// Splits a text of `tokens` tokens: its last `share` is held out.
///
/// # Errors
///
/// [`TrainError::TextTooShort`] if a part is shorter than a window. No text may be held out.
pub fn split(tokens: usize, share: f64, window: usize) -> Result<Parts, TrainError> {
    let held_out = (tokens as f64 * share).round() as usize;
    let parts = Parts { training: 0..tokens - held_out, validation: tokens - held_out..tokens };
    if parts.training.len() < window {
        let fix = "Lower --length, or give a longer --text";
        return Err(too_short("to train on", parts.training.len(), window, fix));
    }
    if share > 0.0 && held_out < window {
        let fix = "Lower --length, or raise --validation, or give --validation 0";
        return Err(too_short("that --validation holds out", held_out, window, fix));
    }
    Ok(parts)
}

fn too_short(part: &'static str, tokens: usize, window: usize, fix: &'static str) -> TrainError {
    TrainError::TextTooShort { part, tokens, window, fix }
}

/// Returns the windows of a step, one after the other.
pub fn draw(
    text: &TokenFile,
    part: &Range<usize>,
    seed: u64,
    step: u32,
    windows: usize,
    window: usize,
) -> Vec<u32> {
    let starts = (part.len() + 1).saturating_sub(window) as u64;
    let mut tokens = Vec::with_capacity(windows * window);
    for index in 0..windows as u64 {
        let start = part.start + drawn(seed, step, index, starts) as usize;
        text.append(start, window, &mut tokens);
    }
    tokens
}

/// Returns `windows` windows that are evenly spaced over a part, from its first token to its last.
pub fn spaced(text: &TokenFile, part: &Range<usize>, windows: usize, window: usize) -> Vec<u32> {
    let last = part.len().saturating_sub(window);
    let mut tokens = Vec::with_capacity(windows * window);
    for index in 0..windows {
        text.append(part.start + last * index / windows.saturating_sub(1).max(1), window, &mut tokens);
    }
    tokens
}

/// Returns a number below `limit`, which follows from the other numbers alone.
fn drawn(seed: u64, step: u32, index: u64, limit: u64) -> u64 {
    let word = mixed(mixed(mixed(seed) ^ u64::from(step)) ^ index);
    ((u128::from(word) * u128::from(limit)) >> 64) as u64
}
