//! A server with the completions interface of OpenAI.
//!
//! | request | response |
//! | --- | --- |
//! | `POST /v1/completions` | a completion, or its pieces as server-sent events with `"stream": true` |
//! | `GET /v1/models` | the name of the model |
//! | `GET /status` | the numbers of requests and pages |
//!
//! Errors are JSON. A client that leaves frees its row of the batch before the next step.

mod api;
mod logprobs;
mod stops;
mod worker;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::Uri;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tma_models::engine::{Engine, EngineOptions, EngineStatus, Request};
use tma_models::text::{Text, TextStream};

use self::api::{Body, Piece, Prompt, Refusal, completion};
use self::logprobs::Logprobs;
use self::stops::Stops;
use self::worker::{Tokens, Worker};
use crate::load::Model;

/// State that all handlers share.
struct Shared {
    model: String,
    text: Text,
    /// The tokens that end a text.
    ends: Vec<u32>,
    worker: Worker,
    requests: AtomicU64,
}

/// Returns the routes of a server for a model.
///
/// # Errors
///
/// Errors of the device.
pub fn router(model: Model, options: EngineOptions) -> Result<Router> {
    let Model { name, decoder, text } = model;
    let ends = decoder.config().ends.clone();
    let worker = Worker::start(Engine::new(decoder, options)?, options.queue);
    let shared = Shared { model: name, text, ends, worker, requests: AtomicU64::new(0) };
    Ok(Router::new()
        .route("/v1/completions", post(complete))
        .route("/v1/models", get(models))
        .route("/status", get(status))
        .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
        .fallback(|uri: Uri| async move { Refusal::not_found(uri.path()) })
        .with_state(Arc::new(shared)))
}

/// Serves clients at an address until the process is interrupted.
///
/// # Errors
///
/// Errors of the device and of the network.
pub fn run(model: Model, options: EngineOptions, address: SocketAddr) -> Result<()> {
    let name = model.name.clone();
    let router = router(model, options)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen at {address}"))?;
        eprintln!("{name} at http://{}/v1/completions", listener.local_addr()?);
        let interrupted = async {
            // Without the handler, an interrupt ends the process at once, as the second one does.
            if tokio::signal::ctrl_c().await.is_ok() {
                eprintln!("no new clients; interrupt again to leave the others");
                tokio::spawn(async {
                    let _ = tokio::signal::ctrl_c().await;
                    std::process::exit(130);
                });
            }
        };
        axum::serve(listener, router).with_graceful_shutdown(interrupted).await.context("the server failed")
    })
}

async fn models(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(
        json!({ "object": "list", "data": [{ "id": shared.model, "object": "model", "owned_by": "local" }] }),
    )
}

async fn status(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let EngineStatus { waiting, running, free_pages, pages } = shared.worker.status();
    Json(json!({ "waiting": waiting, "running": running, "free_pages": free_pages, "pages": pages }))
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let body = Body::parse(&body.map_err(|error| Refusal::unreadable(&error))?)?;
    let (sampling, stops) = (body.sampling(), Stops::new(body.stops()));
    let (limit, is_stream, log_probabilities) = (body.max_tokens(), body.is_stream(), body.logprobs());
    let prompt = match body.prompt {
        Prompt::Tokens(tokens) => tokens,
        Prompt::Text(text) => encoded(&shared, text).await?,
    };
    let prompt_tokens = prompt.len();
    let received = TextStream::after(&prompt);
    let request = Request { prompt, limit, sampling, ends: shared.ends.clone(), log_probabilities };
    let tokens =
        shared.worker.submit(request).await.ok_or_else(|| Refusal::failed("the device has failed"))??;
    let id = format!("cmpl-{}", shared.requests.fetch_add(1, Ordering::Relaxed));
    let model = shared.model.clone();
    let logprobs = log_probabilities.map(|_| Logprobs::default());
    let mut whole = Piece { logprobs: logprobs.as_ref().map(|_| vec![]), ..Piece::default() };
    let pieces = pieces(Open { shared, tokens, stops, received, logprobs, count: 0 });
    if is_stream {
        let events = pieces.map(move |piece| {
            let data = match piece {
                Ok((piece, _)) => completion(&id, &model, &piece),
                Err(refusal) => refusal.json(),
            };
            Ok::<_, Infallible>(sse::Event::default().data(data.to_string()))
        });
        let done = stream::iter([Ok(sse::Event::default().data("[DONE]"))]);
        return Ok(Sse::new(events.chain(done)).into_response());
    }
    let mut count = 0;
    let mut pieces = std::pin::pin!(pieces);
    while let Some(piece) = pieces.next().await {
        let (piece, tokens) = piece?;
        whole.text.push_str(&piece.text);
        if let (Some(all), Some(more)) = (&mut whole.logprobs, piece.logprobs) {
            all.extend(more);
        }
        whole.reason = piece.reason;
        count = tokens;
    }
    let mut response = completion(&id, &model, &whole);
    response["usage"] = json!({
        "prompt_tokens": prompt_tokens, "completion_tokens": count, "total_tokens": prompt_tokens + count,
    });
    Ok(Json(response).into_response())
}

/// Returns the tokens of a text. A long one takes milliseconds, in which others are served.
async fn encoded(shared: &Arc<Shared>, text: String) -> Result<Vec<u32>, Refusal> {
    let shared = shared.clone();
    let tokens = tokio::task::spawn_blocking(move || shared.text.encode(&text)).await;
    match tokens {
        Ok(tokens) => tokens.map_err(|error| Refusal::invalid(error.to_string())),
        Err(error) => Err(Refusal::failed(error.to_string())),
    }
}

/// A text that has not ended.
struct Open {
    shared: Arc<Shared>,
    tokens: Tokens,
    stops: Stops,
    received: TextStream,
    /// The log-probabilities, if they are wanted.
    logprobs: Option<Logprobs>,
    /// The tokens so far.
    count: usize,
}

/// Returns the pieces of a text, each with the number of tokens so far. When the stream is dropped,
/// so are the tokens, which cancels the request.
fn pieces(open: Open) -> impl Stream<Item = Result<(Piece, usize), Refusal>> + Send {
    stream::unfold(Some(open), |open| async {
        let mut open = open?;
        let failed = |message: String| Some((Err(Refusal::failed(message)), None));
        let event = match open.tokens.recv().await {
            None => return failed("the device has failed".into()),
            Some(Err(message)) => return failed(message),
            Some(Ok(event)) => event,
        };
        let mut new = String::new();
        if let Some(token) = event.token {
            open.count += 1;
            match open.received.push(&open.shared.text, token) {
                Ok(text) => new = text,
                Err(error) => return failed(error.to_string()),
            }
            if let (Some(logprobs), Some(found)) = (&mut open.logprobs, &event.log_probabilities)
                && let Err(error) = logprobs.push(&open.shared.text, token, &new, found)
            {
                return failed(error.to_string());
            }
        }
        if event.end.is_some() {
            match open.received.finish(&open.shared.text) {
                Ok(text) => new.push_str(&text),
                Err(error) => return failed(error.to_string()),
            }
        }
        let count = open.count;
        if let Some(logprobs) = &mut open.logprobs {
            logprobs.receive(&new);
        }
        let (text, is_stopped) = open.stops.push(&new, event.end.is_some());
        let reason = if is_stopped { Some("stop") } else { event.end.map(api::reason) };
        let is_all = reason.is_some() && !is_stopped;
        let logprobs = open.logprobs.as_mut().map(|logprobs| logprobs.send(&text, is_all));
        let piece = Piece { text, reason, logprobs };
        Some((Ok((piece, count)), if reason.is_some() { None } else { Some(open) }))
    })
}
