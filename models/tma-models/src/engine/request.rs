//! Requests for text, and the events of their generation.

use crate::RequestError;

/// The way in which tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it. With 0, the most probable token is chosen.
    pub temperature: f32,
    /// Only so many of the most probable tokens are chosen from; 0 stands for all of them.
    pub top_k: u32,
    /// Only the most probable tokens that have this probability together are chosen from.
    pub top_p: f32,
    /// The seed: the same seed leads to the same random numbers, whatever else the engine does.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 }
    }
}

impl Sampling {
    pub(super) fn check(&self) -> Result<(), RequestError> {
        let refused = |option, found: f32, wanted| {
            Err(RequestError::Sampling { option, found: found.to_string(), wanted })
        };
        match self {
            Self { temperature, .. } if !(*temperature >= 0.0 && temperature.is_finite()) => {
                refused("temperature", *temperature, "a number from 0 on")
            }
            Self { top_p, .. } if !(*top_p > 0.0 && *top_p <= 1.0) => {
                refused("top_p", *top_p, "a number above 0 and up to 1")
            }
            Self { .. } => Ok(()),
        }
    }
}

/// A text to continue.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The tokens of the prompt.
    pub prompt: Vec<u32>,
    /// The greatest number of tokens to append.
    pub limit: usize,
    /// The way in which tokens are chosen.
    pub sampling: Sampling,
    /// Tokens that end the text. They are not part of it.
    pub ends: Vec<u32>,
    /// Whether log-probabilities are computed: that of each token, and so many of the greatest.
    pub log_probabilities: Option<usize>,
}

/// The number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(super) u64);

/// The reason why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// One of the tokens that end it was chosen.
    Token,
    /// It has as many tokens as requested.
    Limit,
    /// The sequence has no room for another token.
    Context,
}

/// The logarithms of probabilities at a token: the softmax of logits, without temperature and
/// limits.
#[derive(Clone, Debug, PartialEq)]
pub struct LogProbabilities {
    /// That of the token.
    pub token: f32,
    /// The tokens with the greatest ones, from the greatest on. Of equal ones, the first comes
    /// first.
    pub top: Vec<(u32, f32)>,
}

/// A token of a request, or its end, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The request.
    pub request: RequestId,
    /// The token; `None` for the one that ended the text.
    pub token: Option<u32>,
    /// The log-probabilities at the token, if the request wants them.
    pub log_probabilities: Option<LogProbabilities>,
    /// Whether the text ended with it.
    pub end: Option<End>,
}
