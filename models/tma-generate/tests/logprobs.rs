//! Log-probabilities are those of transformers, and belong to the text.

mod common;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tma_models_reference::{POSITIONS, deviation, log_softmax};

use common::{Server, greedy, post, server, small};

fn numbers(of: &Value) -> Result<Vec<f64>> {
    let all = of.as_array().context("no array")?;
    all.iter().map(|x| x.as_f64().context("no number")).collect()
}

/// The tokenizer has a token for each byte, so that each prefix of tokens is one of the text.
#[tokio::test]
async fn the_greatest_are_those_of_transformers() -> Result<()> {
    let Server { router, reference, text, .. } = server(small())?;
    let positions = POSITIONS.into_iter().chain([reference.tokens.len() - 1]);
    for (position, logits) in positions.zip(&reference.logits) {
        let wanted = log_softmax(logits);
        let bound = 1.3 * reference.bf16_error * deviation(&wanted);
        let mut request = greedy("", 1);
        request["prompt"] = json!(reference.tokens[..=position]);
        request["logprobs"] = json!(5);
        let (_, body) = post(&router, &request).await?;
        let body: Value = serde_json::from_str(&body)?;
        let found = &body["choices"][0]["logprobs"];
        let top = found["top_logprobs"][0].as_object().context("no top_logprobs")?;
        assert_eq!(top.len(), 5, "{top:?}");
        let mut sorted = wanted.clone();
        sorted.sort_by(|x, y| y.total_cmp(x));
        let tokens = 0..wanted.len() as u32;
        let names = tokens.map(|token| text.of_token(token)).collect::<Result<Vec<_>, _>>()?;
        for (name, found) in top {
            let token = names.iter().position(|other| other == name).context("an unknown token")?;
            let found = found.as_f64().context("no number")?;
            assert!((found - wanted[token]).abs() <= bound, "{name}: {found}, {}", wanted[token]);
            assert!(wanted[token] >= sorted[4] - 2.0 * bound, "{name} is not one of the greatest");
        }
        let chosen = found["token_logprobs"][0].as_f64().context("no token_logprobs")?;
        assert!((chosen - sorted[0]).abs() <= bound, "{chosen}, {}", sorted[0]);
        assert_eq!(top[found["tokens"][0].as_str().context("no tokens")?], json!(chosen));
    }
    Ok(())
}

#[tokio::test]
async fn tokens_and_offsets_belong_to_the_text() -> Result<()> {
    let Server { router, reference, .. } = server(small())?;
    let mut request = greedy(&reference.prompt, 12);
    request["logprobs"] = json!(0);
    let (_, body) = post(&router, &request).await?;
    let whole: Value = serde_json::from_str(&body)?;
    let choice = &whole["choices"][0];
    let (text, found) = (choice["text"].as_str().context("no text")?, &choice["logprobs"]);
    let offsets = numbers(&found["text_offset"])?;
    assert_eq!((offsets.len(), offsets[0]), (12, 0.0));
    assert!(offsets.is_sorted() && offsets[11] < text.chars().count() as f64, "{offsets:?}");
    assert!(numbers(&found["token_logprobs"])?.iter().all(|x| *x < 0.0), "{found}");
    for (token, offset) in found["tokens"].as_array().context("no tokens")?.iter().zip(&offsets) {
        let (token, at) = (token.as_str().context("no text")?, *offset as usize);
        let rest: String = text.chars().skip(at).collect();
        // A token that is no text, such as a part of a character, has the name of the vocabulary.
        let is_name = !token.is_ascii() || token.starts_with("<|");
        assert!(rest.starts_with(token) || is_name, "{token:?} at {at} of {text:?}");
    }

    // The pieces of a stream have the same.
    request["stream"] = json!(true);
    let (_, body) = post(&router, &request).await?;
    let mut all = [vec![], vec![]];
    for event in body.split("\n\n").filter_map(|event| event.strip_prefix("data: {")) {
        let event: Value = serde_json::from_str(&format!("{{{event}"))?;
        for (all, name) in all.iter_mut().zip(["text_offset", "token_logprobs"]) {
            all.extend(numbers(&event["choices"][0]["logprobs"][name])?);
        }
    }
    assert_eq!(all, [offsets.clone(), numbers(&found["token_logprobs"])?]);

    // Tokens after a stop are left out.
    let at = 5;
    request["stream"] = json!(false);
    request["stop"] = json!(text.chars().nth(at).context("a longer text")?.to_string());
    let (_, body) = post(&router, &request).await?;
    let stopped: Value = serde_json::from_str(&body)?;
    let length = stopped["choices"][0]["text"].as_str().context("no text")?.chars().count();
    let found = numbers(&stopped["choices"][0]["logprobs"]["text_offset"])?;
    let wanted: Vec<f64> = offsets.into_iter().filter(|offset| *offset < length as f64).collect();
    assert_eq!((found, length <= at), (wanted, true));
    Ok(())
}

#[tokio::test]
async fn more_than_five_are_refused() -> Result<()> {
    let Server { router, .. } = server(small())?;
    let mut request = greedy("The", 1);
    request["logprobs"] = json!(6);
    let (status, body) = post(&router, &request).await?;
    assert_eq!(status.as_u16(), 400);
    assert!(body.contains("`logprobs` is 6, wanted up to 5"), "{body}");
    Ok(())
}
