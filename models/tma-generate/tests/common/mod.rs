//! A server of a small model, and requests.

#![allow(dead_code, reason = "each test uses a part of it")]

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tma_generate::{load, server};
use tma_models::engine::EngineOptions;
use tma_models::text::Text;
use tma_models_reference::Reference;
use tma_runtime::Device;
use tower::ServiceExt;

/// A server of a small model on the simulator.
pub(crate) struct Server {
    pub(crate) router: Router,
    pub(crate) reference: Reference,
    pub(crate) text: Text,
    /// The text that the model appends to the prompt.
    pub(crate) continuation: String,
}

pub(crate) fn server(options: EngineOptions) -> Result<Server> {
    let reference = Reference::open("llama3")?;
    let folder = tempfile::tempdir()?;
    reference.write(folder.path())?;
    let text = Text::open(folder.path())?;
    let continuation = text.decode(&reference.greedy)?;
    let model = load::model(folder.path(), &Device::simulator(), None)?;
    Ok(Server { router: server::router(model, options)?, reference, text, continuation })
}

pub(crate) fn small() -> EngineOptions {
    EngineOptions { sequences: 4, context: 100, queue: 8, ..Default::default() }
}

pub(crate) async fn post(router: &Router, body: &Value) -> Result<(StatusCode, String)> {
    raw_post(router, body.to_string()).await
}

pub(crate) async fn raw_post(router: &Router, body: String) -> Result<(StatusCode, String)> {
    let request = Request::post("/v1/completions").body(Body::from(body))?;
    let response = router.clone().oneshot(request).await?;
    let status = response.status();
    Ok((status, String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec())?))
}

pub(crate) fn greedy(prompt: &str, tokens: usize) -> Value {
    json!({ "prompt": prompt, "max_tokens": tokens, "temperature": 0 })
}
