//! The completions interface of OpenAI: requests, responses and errors as JSON.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tma_models::RequestError;
use tma_models::engine::{End, Sampling};

use super::logprobs::{self, Scored};

/// The body of a request for a completion. `null` stands for the default.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    pub(super) prompt: Prompt,
    max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<u32>,
    seed: Option<u64>,
    stream: Option<bool>,
    stop: Option<Stop>,
    logprobs: Option<usize>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The tokens of a completion whose request does not say how many.
const DEFAULT_TOKENS: usize = 16;

/// The greatest number of texts that end a completion, and the greatest length of each.
const MOST_STOPS: usize = 4;
const LONGEST_STOP: usize = 256;

/// The most log-probabilities at each token, besides the token's own.
const MOST_LOGPROBS: usize = 5;

/// A prompt as text or as tokens.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Prompt {
    Text(String),
    Tokens(Vec<u32>),
}

/// A text that ends a completion, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// Options that are not supported, or do not matter, with the values that change nothing; without
/// any, all values do not.
const HARMLESS: [(&str, &[&str]); 9] = [
    ("model", &[]),
    ("user", &[]),
    ("n", &["1"]),
    ("best_of", &["1"]),
    ("echo", &["false"]),
    ("suffix", &["\"\""]),
    ("presence_penalty", &["0", "0.0"]),
    ("frequency_penalty", &["0", "0.0"]),
    ("logit_bias", &["{}"]),
];

impl Body {
    /// Reads a body.
    ///
    /// # Errors
    ///
    /// A body that is not JSON, lacks the prompt, or has an option that is not supported.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let body: Self =
            serde_json::from_slice(bytes).map_err(|error| Refusal::invalid(format!("the body: {error}")))?;
        let is_harmless = |name: &str, value: &Value| {
            let known = HARMLESS.iter().find(|(known, _)| *known == name);
            let values = known.map(|(_, values)| *values);
            value.is_null() || values.is_some_and(|all| all.is_empty() || all.contains(&&*value.to_string()))
        };
        if let Some((name, value)) = body.rest.iter().find(|(name, value)| !is_harmless(name, value)) {
            return Err(Refusal::invalid(format!("`{name}` is {value}: leave it out, it is not supported")));
        }
        let stops = body.stops();
        if stops.len() > MOST_STOPS || stops.iter().any(|stop| stop.len() > LONGEST_STOP) {
            return Err(Refusal::invalid("`stop` has more than 4 texts, or one of more than 256 bytes"));
        }
        if let Some(count) = body.logprobs.filter(|count| *count > MOST_LOGPROBS) {
            return Err(Refusal::invalid(format!("`logprobs` is {count}, wanted up to {MOST_LOGPROBS}")));
        }
        Ok(body)
    }

    /// Returns the number of the greatest log-probabilities that are wanted at each token, besides
    /// the token's own.
    pub(super) fn logprobs(&self) -> Option<usize> {
        self.logprobs
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens.unwrap_or(DEFAULT_TOKENS)
    }

    pub(super) fn is_stream(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// Returns how tokens are chosen. Without a seed, it is a random one.
    pub(super) fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(1.0),
            top_k: self.top_k.unwrap_or(0),
            top_p: self.top_p.unwrap_or(1.0),
            // The keys of a hasher are random.
            seed: self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
        }
    }

    /// Returns the texts that end the completion.
    pub(super) fn stops(&self) -> Vec<String> {
        let all = match &self.stop {
            None => vec![],
            Some(Stop::One(text)) => vec![text.clone()],
            Some(Stop::Several(texts)) => texts.clone(),
        };
        all.into_iter().filter(|text| !text.is_empty()).collect()
    }
}

/// The response to a request that is not served.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    kind: &'static str,
    message: String,
}

impl Refusal {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, kind: "invalid_request_error", message: message.into() }
    }

    pub(super) fn not_found(path: &str) -> Self {
        let message = format!("there is no {path}: use /v1/completions, /v1/models or /status");
        Self { status: StatusCode::NOT_FOUND, kind: "invalid_request_error", message }
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "use POST for /v1/completions, and GET for /v1/models and /status".into();
        Self { status: StatusCode::METHOD_NOT_ALLOWED, kind: "invalid_request_error", message }
    }

    pub(super) fn unreadable(error: &BytesRejection) -> Self {
        Self { status: error.status(), kind: "invalid_request_error", message: error.body_text() }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, kind: "server_error", message: message.into() }
    }

    /// Returns the body of the response.
    pub(super) fn json(&self) -> Value {
        json!({ "error": { "message": self.message, "type": self.kind, "code": self.status.as_u16() } })
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::QueueFull { .. } => Self {
                status: StatusCode::TOO_MANY_REQUESTS,
                kind: "rate_limit_error",
                message: error.to_string(),
            },
            other => Self::invalid(other.to_string()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, axum::Json(self.json())).into_response()
    }
}

/// A completion, or a part of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    /// Why the text ended, if it did.
    pub(super) reason: Option<&'static str>,
    /// The log-probabilities of its tokens, if they are wanted.
    pub(super) logprobs: Option<Vec<Scored>>,
}

/// Returns the name of the reason why a text ended.
pub(super) fn reason(end: End) -> &'static str {
    match end {
        End::Token => "stop",
        End::Limit | End::Context => "length",
    }
}

/// Returns the JSON of a piece.
pub(super) fn completion(id: &str, model: &str, piece: &Piece) -> Value {
    let logprobs = piece.logprobs.as_ref().map_or(Value::Null, |all| logprobs::json(all));
    json!({
        "id": id,
        "object": "text_completion",
        "created": created(),
        "model": model,
        "choices": [{ "index": 0, "text": piece.text, "logprobs": logprobs, "finish_reason": piece.reason }],
    })
}

/// Returns the seconds since 1970.
fn created() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
