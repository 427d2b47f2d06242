//! The server: completions, streams, errors, several clients at once, and clients that leave.

mod common;

use std::time::Duration;

use anyhow::{Context, Result};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tma_models::engine::EngineOptions;
use tower::ServiceExt;

use common::{Server, greedy, post, raw_post, server, small};

#[tokio::test]
async fn a_completion_is_the_text_of_transformers() -> Result<()> {
    let Server { router, reference, continuation, .. } = server(small())?;
    let (status, body) = post(&router, &greedy(&reference.prompt, 12)).await?;
    let body: Value = serde_json::from_str(&body)?;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["choices"][0]["text"], json!(continuation));
    assert_eq!(body["choices"][0]["finish_reason"], json!("length"));
    let counts = json!({ "prompt_tokens": 29, "completion_tokens": 12, "total_tokens": 41 });
    assert_eq!(body["usage"], counts);

    // Tokens instead of text.
    let mut of_tokens = greedy("", 12);
    of_tokens["prompt"] = json!(reference.tokens);
    let (_, body) = post(&router, &of_tokens).await?;
    assert_eq!(serde_json::from_str::<Value>(&body)?["choices"][0]["text"], json!(continuation));
    Ok(())
}

#[tokio::test]
async fn the_pieces_of_a_stream_are_the_same_text() -> Result<()> {
    let Server { router, reference, continuation, .. } = server(small())?;
    let mut request = greedy(&reference.prompt, 12);
    request["stream"] = json!(true);
    let (status, body) = post(&router, &request).await?;
    assert_eq!(status, StatusCode::OK);
    let mut events: Vec<&str> = body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    assert_eq!(events.pop(), Some("[DONE]"));
    let events = events.into_iter().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let text: String = events.iter().filter_map(|event| event["choices"][0]["text"].as_str()).collect();
    assert_eq!((events.len(), text), (12, continuation));
    assert_eq!(events[11]["choices"][0]["finish_reason"], json!("length"));
    assert!(events[..11].iter().all(|event| event["choices"][0]["finish_reason"].is_null()));
    Ok(())
}

#[tokio::test]
async fn a_stop_ends_the_text_before_it() -> Result<()> {
    let Server { router, reference, continuation, .. } = server(small())?;
    let at = continuation.char_indices().nth(4).context("a longer text")?.0;
    let mut request = greedy(&reference.prompt, 12);
    request["stop"] =
        json!([&continuation[at..at + continuation[at..].chars().next().map_or(1, char::len_utf8)]]);
    let (_, body) = post(&router, &request).await?;
    let body: Value = serde_json::from_str(&body)?;
    assert_eq!(body["choices"][0]["finish_reason"], json!("stop"));
    let text = body["choices"][0]["text"].as_str().context("no text")?;
    assert!(continuation.starts_with(text) && text.len() <= at, "{text}");
    Ok(())
}

#[tokio::test]
async fn clients_at_once_get_what_each_gets_alone() -> Result<()> {
    let Server { router, reference, .. } = server(small())?;
    let prompts: Vec<&str> = (1..=6).map(|i| &reference.prompt[..4 * i]).collect();
    let mut alone = vec![];
    for prompt in &prompts {
        alone.push(post(&router, &greedy(prompt, 6)).await?);
    }
    // Six clients for four rows.
    let together: Vec<_> = prompts
        .iter()
        .map(|prompt| {
            let (router, request) = (router.clone(), greedy(prompt, 6));
            tokio::spawn(async move { post(&router, &request).await })
        })
        .collect();
    for (task, (_, wanted)) in together.into_iter().zip(alone) {
        let (status, found) = task.await??;
        let [found, wanted]: [Value; 2] = [serde_json::from_str(&found)?, serde_json::from_str(&wanted)?];
        assert_eq!(status, StatusCode::OK);
        assert_eq!(found["choices"], wanted["choices"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_client_that_leaves_makes_room() -> Result<()> {
    let options = EngineOptions { sequences: 1, ..small() };
    let Server { router, reference, .. } = server(options)?;
    let mut long = greedy(&reference.prompt, 70);
    long["stream"] = json!(true);
    let request = Request::post("/v1/completions").body(Body::from(long.to_string()))?;
    let mut response = router.clone().oneshot(request).await?.into_body();
    response.frame().await.context("no first piece")??;
    drop(response);
    // Only the row and the pages of the first client are left for the second one.
    let second = tokio::time::timeout(Duration::from_secs(60), post(&router, &greedy("The", 2))).await??;
    assert_eq!(second.0, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn errors_are_json_with_a_reason() -> Result<()> {
    let Server { router, reference, .. } = server(small())?;
    let too_long = reference.prompt.repeat(4);
    let mut cold = greedy("The", 4);
    cold["temperature"] = json!(-1);
    let mut many = greedy("The", 4);
    many["n"] = json!(2);
    let mut strange = greedy("The", 4);
    strange["response_format"] = json!("json");
    let mut stops = greedy("The", 4);
    stops["stop"] = json!(["a", "b", "c", "d", "e"]);
    let mut unknown = greedy("", 4);
    unknown["prompt"] = json!([5, 264]);
    let refused = [
        (greedy("", 4).to_string(), 400, "the prompt is empty: give it at least one token"),
        (greedy(&too_long, 4).to_string(), 400, "the prompt has 116 tokens, and may have 99"),
        (greedy("The", 0).to_string(), 400, "no tokens are requested: the limit is 0"),
        (cold.to_string(), 400, "temperature is -1, wanted a number from 0 on"),
        (many.to_string(), 400, "`n` is 2: leave it out, it is not supported"),
        (strange.to_string(), 400, "`response_format` is \"json\": leave it out, it is not supported"),
        (stops.to_string(), 400, "`stop` has more than 4 texts, or one of more than 256 bytes"),
        (unknown.to_string(), 400, "token 264 is not part of the vocabulary of 264 tokens"),
        ("{".to_owned(), 400, "the body: EOF while parsing an object"),
        ("{}".to_owned(), 400, "the body: missing field `prompt`"),
    ];
    for (body, status, wanted) in refused {
        let (found, text) = raw_post(&router, body).await?;
        let error = serde_json::from_str::<Value>(&text)?["error"].clone();
        let message = error["message"].as_str().context("no message")?;
        assert!(message.contains(wanted), "{message}");
        assert_eq!((found.as_u16(), &error["code"]), (status, &json!(status)));
    }
    let response = router.clone().oneshot(Request::get("/v1/nothing").body(Body::empty())?).await?;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let response = router.clone().oneshot(Request::get("/v1/completions").body(Body::empty())?).await?;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    let (status, _) = raw_post(&router, " ".repeat(3 << 20)).await?;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    // `null` stands for the default, and names do not matter.
    let defaults =
        json!({ "prompt": "The", "max_tokens": 2, "seed": null, "model": "any", "logprobs": null });
    assert_eq!(post(&router, &defaults).await?.0, StatusCode::OK);
    // The others go on.
    assert_eq!(post(&router, &greedy("The", 2)).await?.0, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn a_full_queue_refuses_the_next_client() -> Result<()> {
    let options = EngineOptions { sequences: 1, queue: 1, ..small() };
    let Server { router, reference, .. } = server(options)?;
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (router, request) = (router.clone(), greedy(&reference.prompt, 8));
            tokio::spawn(async move { post(&router, &request).await })
        })
        .collect();
    let mut statuses = vec![];
    for client in clients {
        statuses.push(client.await??.0);
    }
    assert!(statuses.contains(&StatusCode::OK), "{statuses:?}");
    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    Ok(())
}
