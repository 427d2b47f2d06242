//! The completions interface of OpenAI: requests, responses and errors as JSON.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tma_models::RequestError;
use tma_models::engine::{End, Sampling};

/// The body of a request for a completion.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    pub(super) prompt: Prompt,
    #[serde(default = "default_tokens")]
    pub(super) max_tokens: usize,
    #[serde(default = "one")]
    temperature: f32,
    #[serde(default = "one")]
    top_p: f32,
    #[serde(default)]
    top_k: u32,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    pub(super) stream: bool,
    #[serde(default)]
    stop: Option<Stop>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

fn default_tokens() -> usize {
    16
}

fn one() -> f32 {
    1.0
}

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

/// Options of OpenAI's interface that are not supported, with the values that change nothing.
const UNSUPPORTED: [(&str, &[&str]); 8] = [
    ("n", &["1"]),
    ("best_of", &["1"]),
    ("echo", &["false"]),
    ("logprobs", &[]),
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
        for (name, harmless) in UNSUPPORTED {
            match body.rest.get(name) {
                None | Some(Value::Null) => {}
                Some(value) if harmless.contains(&value.to_string().as_str()) => {}
                Some(value) => {
                    return Err(Refusal::invalid(format!(
                        "`{name}` is {value}: leave it out, it is not supported"
                    )));
                }
            }
        }
        Ok(body)
    }

    pub(super) fn sampling(&self) -> Sampling {
        Sampling { temperature: self.temperature, top_k: self.top_k, top_p: self.top_p, seed: self.seed }
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
        let message = format!("there is no {path}: use /v1/completions or /v1/models");
        Self { status: StatusCode::NOT_FOUND, kind: "invalid_request_error", message }
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
    json!({
        "id": id,
        "object": "text_completion",
        "model": model,
        "choices": [{ "index": 0, "text": piece.text, "logprobs": null, "finish_reason": piece.reason }],
    })
}
