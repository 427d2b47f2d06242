//! The engine: how texts end, what requests wait for, and what is refused.

use anyhow::Result;
use serde_json::json;
use tma_models::checkpoint::Checkpoint;
use tma_models::config::Config;
use tma_models::decoder::Decoder;
use tma_models::engine::{End, Engine, EngineOptions, Request, RequestId, Sampling};
use tma_models::{RequestError, Source};
use tma_models_reference::Reference;
use tma_runtime::Device;

fn engine(options: EngineOptions) -> Result<(Engine, Reference)> {
    let reference = Reference::open("llama2")?;
    let folder = tempfile::tempdir()?;
    reference.write(folder.path())?;
    let checkpoint = Checkpoint::open(folder.path())?;
    let config = Config::open(folder.path())?;
    let device = Device::simulator();
    let decoder = Decoder::load(&device, config, Source::Checkpoint(&checkpoint), &mut |_| {})?;
    Ok((Engine::new(decoder, options)?, reference))
}

fn small() -> EngineOptions {
    EngineOptions { sequences: 2, context: 100, chunk: 64, ..Default::default() }
}

fn greedy(prompt: &[u32], limit: usize) -> Request {
    Request {
        prompt: prompt.to_vec(),
        limit,
        sampling: Sampling::default(),
        ends: vec![],
        log_probabilities: None,
    }
}

/// Runs the engine until it is idle. Returns the tokens of a request, and how it ended.
fn finish(engine: &mut Engine, id: RequestId) -> Result<(Vec<u32>, Option<End>)> {
    let (mut tokens, mut end) = (vec![], None);
    while !engine.is_idle() {
        for event in engine.step()?.into_iter().filter(|event| event.request == id) {
            tokens.extend(event.token);
            end = event.end;
        }
    }
    Ok((tokens, end))
}

#[test]
fn a_text_ends_by_a_token_a_limit_or_the_context() -> Result<()> {
    let (mut engine, reference) = engine(EngineOptions { context: 36, ..small() })?;
    let wanted = &reference.greedy;
    let request = Request { ends: vec![wanted[3]], ..greedy(&reference.tokens, 10) };
    let id = engine.submit(request)?;
    // An earlier token may be the same.
    let first = wanted.iter().position(|token| *token == wanted[3]).unwrap_or(3);
    assert_eq!(finish(&mut engine, id)?, (wanted[..first].to_vec(), Some(End::Token)));

    let id = engine.submit(greedy(&reference.tokens, 2))?;
    assert_eq!(finish(&mut engine, id)?, (wanted[..2].to_vec(), Some(End::Limit)));

    // 29 tokens of the prompt and 7 more fill the sequence; the last one is not read any more.
    let id = engine.submit(greedy(&reference.tokens, usize::MAX))?;
    assert_eq!(finish(&mut engine, id)?, (wanted[..8].to_vec(), Some(End::Context)));
    Ok(())
}

#[test]
fn a_request_waits_for_pages_and_rows() -> Result<()> {
    // One page of 64 tokens, which each of the requests needs.
    let (mut engine, reference) = engine(EngineOptions { pages: Some(1), ..small() })?;
    let first = engine.submit(greedy(&reference.tokens, 30))?;
    let second = engine.submit(greedy(&reference.tokens, 3))?;
    let events = engine.step()?;
    assert_eq!((events.len(), events[0].request), (1, first));
    assert!(engine.step()?.iter().all(|event| event.request == first), "there is no page for the second");
    engine.cancel(first);
    assert_eq!(finish(&mut engine, second)?, (reference.greedy[..3].to_vec(), Some(End::Limit)));
    engine.cancel(second); // has ended
    assert!(engine.step()?.is_empty());
    Ok(())
}

#[test]
fn chance_depends_on_the_seed_alone() -> Result<()> {
    let (mut engine, reference) = engine(small())?;
    let by_chance = |seed| Request {
        sampling: Sampling { temperature: 1.5, top_k: 40, top_p: 0.9, seed },
        ..greedy(&reference.tokens[..7], 5)
    };
    let id = engine.submit(by_chance(7))?;
    let (alone, _) = finish(&mut engine, id)?;
    engine.submit(greedy(&reference.tokens, 9))?;
    let id = engine.submit(by_chance(7))?;
    assert_eq!(finish(&mut engine, id)?.0, alone);
    let id = engine.submit(by_chance(8))?;
    assert_ne!(finish(&mut engine, id)?.0, alone);
    Ok(())
}

#[test]
fn requests_that_cannot_be_served_are_refused() -> Result<()> {
    let (mut engine, reference) = engine(EngineOptions { queue: 1, ..small() })?;
    let prompt = &reference.tokens[..3];
    let mut refused = |request| engine.submit(request).expect_err("a refusal");
    assert_eq!(refused(greedy(&[], 1)), RequestError::EmptyPrompt);
    assert_eq!(refused(greedy(&[1; 100], 1)), RequestError::PromptTooLong { found: 100, most: 99 });
    assert_eq!(refused(greedy(&[264], 1)), RequestError::UnknownToken { found: 264, vocabulary: 264 });
    assert_eq!(refused(greedy(prompt, 0)), RequestError::NoTokens);
    for sampling in [
        Sampling { temperature: -0.5, ..Default::default() },
        Sampling { temperature: f32::NAN, ..Default::default() },
        Sampling { temperature: f32::INFINITY, ..Default::default() },
        Sampling { top_p: 0.0, ..Default::default() },
        Sampling { top_p: 1.5, ..Default::default() },
    ] {
        let request = Request { sampling, ..greedy(prompt, 1) };
        assert!(matches!(refused(request), RequestError::Sampling { .. }), "{sampling:?}");
    }
    engine.submit(greedy(prompt, 1))?;
    assert_eq!(engine.submit(greedy(prompt, 1)), Err(RequestError::QueueFull { waiting: 1 }));
    Ok(())
}

/// The bits of log-probabilities, which show each difference of rounding. The long text has enough
/// keys to be divided among two blocks.
#[test]
fn a_reproducible_text_does_not_depend_on_others() -> Result<()> {
    let config = json!({
        "model_type": "llama", "vocab_size": 96, "hidden_size": 64, "intermediate_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5,
    });
    let decoder =
        Decoder::load(&Device::simulator(), Config::from_json(config)?, Source::Noise, &mut |_| {})?;
    let options = EngineOptions { sequences: 4, context: 1024, reproducible: true, ..Default::default() };
    let mut engine = Engine::new(decoder, options)?;
    let prompt: Vec<u32> = (0..800).map(|i| i * i % 89).collect();
    let request = Request { log_probabilities: Some(1), ..greedy(&prompt, 4) };
    let bits = |engine: &mut Engine| -> Result<Vec<u32>> {
        let id = engine.submit(request.clone())?;
        let mut bits = vec![];
        while !engine.is_idle() {
            let events = engine.step()?;
            let of_text = events.into_iter().filter(|event| event.request == id);
            bits.extend(of_text.filter_map(|event| Some(event.log_probabilities?.token.to_bits())));
        }
        Ok(bits)
    };
    let alone = bits(&mut engine)?;
    for length in [40, 750] {
        engine.submit(greedy(&prompt[50..50 + length], 9))?;
    }
    assert_eq!((bits(&mut engine)?, alone.len()), (alone, 4));
    Ok(())
}
