//! Log-probabilities of tokens, as the completions interface has them.

use serde_json::{Map, Value, json};
use tma_models::ModelError;
use tma_models::engine::LogProbabilities;
use tma_models::text::Text;

/// A token with its log-probability.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scored {
    token: String,
    log_probability: f32,
    /// The tokens with the greatest ones, and the chosen token.
    top: Map<String, Value>,
    /// The characters of the text before the token.
    offset: usize,
}

/// The tokens whose text is held back, because it may be the beginning of a stop.
#[derive(Debug, Default)]
pub(super) struct Logprobs {
    held: Vec<Scored>,
    /// The characters that were received, and those that were sent.
    received: usize,
    sent: usize,
}

impl Logprobs {
    /// Adds a token, which completes this text.
    pub(super) fn push(
        &mut self,
        text: &Text,
        token: u32,
        completed: &str,
        found: &LogProbabilities,
    ) -> Result<(), ModelError> {
        let name = text.of_token(token)?;
        let mut top = Map::new();
        for (token, log_probability) in &found.top {
            // Of tokens with the same text, the most probable one comes first.
            top.entry(text.of_token(*token)?).or_insert(json!(log_probability));
        }
        top.insert(name.clone(), json!(found.token));
        // Before the token's own text, there may be some that was held back.
        let before = completed.strip_suffix(&name).unwrap_or_default();
        let offset = self.received + before.chars().count();
        let log_probability = found.token;
        self.held.push(Scored { token: name, log_probability, top, offset });
        Ok(())
    }

    /// Notes text that was received with a token.
    pub(super) fn receive(&mut self, text: &str) {
        self.received += text.chars().count();
    }

    /// Notes text that is sent, and returns its tokens. With the last text of all, these are all
    /// that are left, unless a stop follows it.
    pub(super) fn send(&mut self, text: &str, is_all: bool) -> Vec<Scored> {
        self.sent += text.chars().count();
        let sent = self.sent;
        let count = if is_all { self.held.len() } else { self.held.partition_point(|one| one.offset < sent) };
        self.held.drain(..count).collect()
    }
}

/// Returns the JSON of tokens. A log-probability that is not finite is `null`.
pub(super) fn json(all: &[Scored]) -> Value {
    json!({
        "tokens": all.iter().map(|one| &one.token).collect::<Vec<_>>(),
        "token_logprobs": all.iter().map(|one| one.log_probability).collect::<Vec<_>>(),
        "top_logprobs": all.iter().map(|one| &one.top).collect::<Vec<_>>(),
        "text_offset": all.iter().map(|one| one.offset).collect::<Vec<_>>(),
    })
}
