//! Random requests, with the answers that they have alone.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::LoadOptions;
use crate::client::Response;

/// The part of an answer that must not depend on other clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) reason: Value,
    /// Log-probabilities, or `null`.
    pub(crate) logprobs: Value,
    /// The tokens of prompt and text; `null` in streams.
    pub(crate) usage: Value,
}

impl Answer {
    /// Reads the body of a whole answer.
    pub(crate) fn parse(body: &str) -> Result<Self> {
        let mut body: Value = serde_json::from_str(body)?;
        let choice = &mut body["choices"][0];
        let text = choice["text"].as_str().unwrap_or_default().to_owned();
        let reason = choice["finish_reason"].take();
        ensure!(reason.is_string(), "an answer without finish_reason: {body}");
        let logprobs = choice["logprobs"].take();
        Ok(Self { text, reason, logprobs, usage: body["usage"].take() })
    }
}

/// A request, and its answer alone.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) body: Value,
    pub(crate) answer: Answer,
}

impl Known {
    /// Sends a request that must be served.
    pub(crate) async fn answered(address: SocketAddr, body: Value) -> Result<Self> {
        let response = Response::post(address, body.to_string()).await?;
        let (status, text) = (response.status, response.text().await?);
        ensure!(status == 200, "{body}: status {status}, {text}");
        Ok(Self { body, answer: Answer::parse(&text)? })
    }

    /// Checks that an answer is the same.
    pub(crate) fn compare(&self, found: &Answer) -> Result<()> {
        ensure!(*found == self.answer, "{}:\nalone {:?}\nfound {found:?}", self.body, self.answer);
        Ok(())
    }
}

/// The letters of texts.
const LETTERS: [char; 10] = ['e', 't', 'a', 'o', 'i', 'n', ' ', 'é', '日', '.'];

/// The tokens that prompts consist of.
#[derive(Clone, Copy)]
pub(crate) struct Vocabulary {
    pub(crate) tokens: u32,
}

impl Vocabulary {
    /// Returns a random request that must be served.
    pub(crate) fn request(self, random: &mut Rng, options: &LoadOptions) -> Value {
        let longest = options.engine.context.saturating_sub(1).max(1);
        // Short prompts are the most frequent ones.
        let most = random.usize(1..=longest);
        let length = random.usize(1..=most);
        let prompt = match random.bool() {
            true => json!((0..length).map(|_| random.u32(0..self.tokens)).collect::<Vec<_>>()),
            false => {
                // A character has up to three tokens.
                let letters = (0..length.div_ceil(3)).map(|_| random.choice(LETTERS).unwrap_or('e'));
                json!(letters.collect::<String>())
            }
        };
        let mut body = json!({
            "prompt": prompt, "max_tokens": random.usize(1..=options.most_tokens.max(1)), "temperature": 0,
        });
        if random.bool() {
            body["temperature"] = json!(random.f32() * 1.5);
            body["seed"] = json!(random.u32(..));
            if random.bool() {
                body["top_k"] = json!(random.u32(1..50));
            }
            if random.bool() {
                body["top_p"] = json!(0.5 + random.f32() / 2.0);
            }
        }
        if random.bool() {
            body["logprobs"] = json!(random.u8(0..=5));
        }
        if random.u8(0..4) == 0 {
            body["stop"] = json!([random.alphabetic().to_string(), "the"]);
        }
        body
    }
}

/// Returns a random body that must be refused, and the status of the refusal.
pub(crate) fn refused(random: &mut Rng, context: usize) -> (String, u16) {
    let with = |name: &str, value: Value| {
        let mut body = json!({ "prompt": "The", "max_tokens": 4 });
        body[name] = value;
        body.to_string()
    };
    match random.u8(0..8) {
        0 => ("{".into(), 400),
        1 => (with("prompt", json!("")), 400),
        2 => (with("prompt", json!(vec![1; context])), 400),
        3 => (with("prompt", json!([u32::MAX])), 400),
        4 => (with("temperature", json!(-1)), 400),
        5 => (with("max_tokens", json!(0)), 400),
        6 => (with("unknown", json!(true)), 400),
        _ => (" ".repeat((2 << 20) + 1), 413), // no more, so that all of it is sent before the answer
    }
}
