//! Embeddings of sentences are those of Hugging Face transformers.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use tma_models::sentences::{Pooling, SentenceEncoder, SentenceOptions};
use tma_models::text::Text;
use tma_models::{ModelError, RequestError};
use tma_models_reference::Reference;
use tma_runtime::Device;

fn opened(folder: &Path, model: &str) -> Result<(SentenceEncoder, Reference)> {
    let reference = Reference::open(model)?;
    reference.write(folder)?;
    Ok((SentenceEncoder::open(folder, &Device::simulator())?, reference))
}

fn cosine(x: &[f32], y: &[f32]) -> f64 {
    let dot =
        |x: &[f32], y: &[f32]| -> f64 { x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum() };
    dot(x, y) / (dot(x, x) * dot(y, y)).sqrt()
}

/// The sentences have different lengths, and are computed together. Heads have 16 elements, and 32.
#[test]
fn embeddings_of_transformers() -> Result<()> {
    for model in ["bert", "minilm"] {
        let folder = tempfile::tempdir()?;
        let (mut encoder, reference) = opened(folder.path(), model)?;
        let texts: Vec<&str> = reference.sentences.iter().map(|(text, _)| text.as_str()).collect();
        let found = encoder.embed(&texts)?;
        assert_eq!(found.len(), texts.len());
        for (i, (found, (text, wanted))) in found.iter().zip(&reference.sentences).enumerate() {
            assert_eq!(found.len(), encoder.width());
            let norm: f64 = found.iter().map(|x| f64::from(*x).powi(2)).sum();
            assert!((norm - 1.0).abs() < 1e-5, "{norm}");
            // A relative error of e makes an angle of about e.
            let error = (2.0 * (1.0 - cosine(found, wanted))).sqrt();
            assert!(error <= reference.bf16_error, "{model}, {text}: {error}, {}", reference.bf16_error);
            // Another sentence is further away.
            let other = &reference.sentences[(i + 1) % texts.len()].1;
            assert!(cosine(found, other) < cosine(found, wanted), "{model}, {text}");
        }
    }
    Ok(())
}

#[test]
fn files_of_sentence_transformers_choose_the_pooling() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let (mut encoder, reference) = opened(folder, "minilm")?;
    let text = reference.prompt.as_str();
    let mean = encoder.embed(&[text])?.remove(0);
    assert_eq!(SentenceOptions::open(folder)?, SentenceOptions::default());

    let module = |path: &str, kind: &str| json!({ "path": path, "type": format!("sentence_transformers.models.{kind}") });
    let modules = json!([module("", "Transformer"), module("1_Pooling", "Pooling")]);
    std::fs::write(folder.join("modules.json"), modules.to_string())?;
    std::fs::create_dir(folder.join("1_Pooling"))?;
    let pooling = |settings: serde_json::Value| {
        std::fs::write(folder.join("1_Pooling/config.json"), settings.to_string())
    };
    pooling(json!({ "pooling_mode_mean_tokens": true }))?;
    std::fs::write(folder.join("sentence_bert_config.json"), json!({ "max_seq_length": 5 }).to_string())?;
    let wanted = SentenceOptions { pooling: Pooling::Mean, normalise: false, most_tokens: 5 };
    assert_eq!(SentenceOptions::open(folder)?, wanted);
    // Five tokens of one byte each, and not normalised.
    let cut = SentenceEncoder::open(folder, &Device::simulator())?.embed(&[text, &text[..5]])?;
    assert_eq!(cut[0], cut[1]);
    assert!(cosine(&cut[0], &mean) < 0.999, "the rest of the text matters");
    assert!(cut[0].iter().map(|x| x * x).sum::<f32>() > 1.5);

    pooling(json!({ "pooling_mode_cls_token": true }))?;
    assert_eq!(SentenceOptions::open(folder)?.pooling, Pooling::First);
    let first = SentenceEncoder::open(folder, &Device::simulator())?.embed(&[text])?.remove(0);
    assert!(cosine(&first, &cut[0]) < 0.999);

    for several in [
        json!({ "pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": false }),
        json!({ "pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true }),
    ] {
        pooling(several)?;
        let error = SentenceOptions::open(folder).expect_err("a refusal").to_string();
        assert!(error.contains("wanted either mean_tokens or cls_token"), "{error}");
    }
    // A text of BERT gets a token at each end.
    let path = folder.join("tokenizer.json");
    let mut tokenizer: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let ends =
        json!({ "type": "BertProcessing", "sep": ["<|special1|>", 257], "cls": ["<|special0|>", 256] });
    tokenizer["post_processor"] = ends;
    std::fs::write(&path, tokenizer.to_string())?;
    assert_eq!(Text::open(folder)?.cut_at(3)?.encode("Paris")?.len(), 3);
    let error = Text::open(folder)?.cut_at(2).expect_err("a refusal").to_string();
    assert!(error.contains("2 tokens are no more than a text's ends get"), "{error}");
    std::fs::write(folder.join("modules.json"), json!([module("", "Dense")]).to_string())?;
    let error = SentenceOptions::open(folder).expect_err("a refusal").to_string();
    assert!(error.contains("found sentence_transformers.models.Dense, wanted Transformer"), "{error}");
    Ok(())
}

#[test]
fn texts_that_cannot_be_embedded_are_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (mut encoder, _) = opened(folder.path(), "minilm")?;
    assert!(encoder.embed(&[])?.is_empty());
    let mut refused = |tokens: Vec<u32>| match encoder.embed_tokens(&[vec![1], tokens]) {
        Err(ModelError::Request(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(vec![]), RequestError::EmptyPrompt);
    assert_eq!(refused(vec![1; 129]), RequestError::PromptTooLong { found: 129, most: 128 });
    assert_eq!(refused(vec![264]), RequestError::UnknownToken { found: 264, vocabulary: 264 });
    Ok(())
}
