//! Options, states, errors and exports of a trainer.

mod models;
#[path = "../../tma-models/tests/passes/mod.rs"]
mod passes;

use std::collections::BTreeMap;

use anyhow::Result;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use tma_models::Source;
use tma_models::checkpoint::Checkpoint;
use tma_models::config::Config;
use tma_models::decoder::Decoder;
use tma_runtime::prelude::*;
use tma_training::{State, StepReport, Trainer, TrainingError, TrainingOptions};

use models::{LENGTH, OPTIONS, gpt2, llama, spread, tokens};

const SINGLE: TrainingOptions = TrainingOptions { sequences: 1, micro_batches: 1, ..OPTIONS };

/// Returns a model of one layer with few numbers.
fn smallest(config: Config) -> Config {
    let config = Config { vocabulary: 40, width: 64, mlp_width: 64, ..config };
    Config { heads: 1, key_heads: 1, windows: vec![None], ..config }
}

fn tiny() -> Result<Config> {
    Ok(smallest(llama(false)?))
}

fn trainer(config: &Config, options: TrainingOptions) -> Result<Trainer> {
    Ok(Trainer::new(&models::device()?, config, options, 7)?)
}

/// Returns a trainer for a comparison of bits. Those of a GPU depend on the order in which blocks
/// add to the gradients of queries.
fn simulated(config: &Config, options: TrainingOptions) -> Result<Trainer> {
    Ok(Trainer::new(&Device::simulator(), config, options, 7)?)
}

/// Returns the reports of two steps, and the state after.
fn two_steps(trainer: &mut Trainer, tokens: &[u32]) -> Result<(Vec<StepReport>, State)> {
    let reports = [0.01, 0.02].map(|rate| trainer.step(tokens, rate));
    Ok((reports.into_iter().collect::<Result<_, _>>()?, trainer.state()?))
}

#[test]
fn recomputing_changes_no_bit() -> Result<()> {
    for config in [tiny()?, smallest(gpt2()?)] {
        let config = Config { windows: vec![None; 3], ..config };
        let tokens = tokens(&config, 2);
        let after_step = |recompute| -> Result<_> {
            let options = TrainingOptions { recompute, micro_batches: 2, ..SINGLE };
            let mut trainer = simulated(&config, options)?;
            let report = trainer.step(&tokens, 0.01)?;
            let loss = trainer.evaluate(&tokens[..LENGTH + 1])?;
            Ok((report, loss, trainer.gradients()?, trainer.state()?))
        };
        let (kept, again) = (after_step(false)?, after_step(true)?);
        assert!(kept == again, "{:?}, {:?}", kept.0, again.0);
        assert!(kept.1 < kept.0.loss, "{}, {:?}", kept.1, kept.0);
    }
    Ok(())
}

/// Gradients of micro-batches are summed in `f32`, so only the order of sums differs, and the
/// rounding of the losses' gradients does not.
#[test]
fn micro_batches_are_parts_of_one() -> Result<()> {
    let config = tiny()?;
    let tokens = tokens(&config, 2);
    let mut parts = trainer(&config, TrainingOptions { micro_batches: 2, ..SINGLE })?;
    let mut whole = trainer(&config, TrainingOptions { sequences: 2, ..SINGLE })?;
    let (of_parts, of_whole) = (parts.step(&tokens, 0.01)?, whole.step(&tokens, 0.01)?);
    let near = |x: f32, y: f32| (x - y).abs() < 1e-5 * y.abs();
    assert!(near(of_parts.loss, of_whole.loss), "{of_parts:?}, {of_whole:?}");
    assert!(near(of_parts.gradient_norm, of_whole.gradient_norm), "{of_parts:?}, {of_whole:?}");
    for (x, y) in parts.gradients()?.iter().zip(&whole.gradients()?) {
        let norm = |all: &mut dyn Iterator<Item = f32>| all.map(|x| x * x).sum::<f32>().sqrt();
        let error = norm(&mut x.values.iter().zip(&y.values).map(|(x, y)| x - y));
        assert!(error < 1e-5 * norm(&mut y.values.iter().copied()), "{}: {error}", x.name);
    }
    Ok(())
}

#[test]
fn a_restored_trainer_takes_the_same_steps() -> Result<()> {
    let config = tiny()?;
    let tokens = tokens(&config, 1);
    let mut first = simulated(&config, SINGLE)?;
    first.step(&tokens, 0.01)?;
    let mut state = first.state()?;
    assert_eq!(state.steps, 1);
    let wanted = two_steps(&mut first, &tokens)?;
    assert_eq!(wanted.1.steps, 3);

    // Another seed, whose weights are replaced after steps, and tensors in another order.
    let mut second = Trainer::new(&Device::simulator(), &config, SINGLE, 8)?;
    let other = second.step(&tokens, 0.01)?;
    state.tensors.reverse();
    second.restore(&state)?;
    assert!(two_steps(&mut second, &tokens)? == wanted);
    let mut third = Trainer::from_state(&Device::simulator(), &config, SINGLE, &state)?;
    assert!(third.state()?.tensors.iter().rev().eq(&state.tensors));
    assert!(two_steps(&mut third, &tokens)? == wanted);
    assert_ne!(other.loss, wanted.0[0].loss);
    Ok(())
}

#[test]
fn evaluation_is_the_loss_and_changes_nothing() -> Result<()> {
    let config = tiny()?;
    let all = tokens(&config, 2);
    let options = TrainingOptions { micro_batches: 2, ..SINGLE };
    let mut evaluated = simulated(&config, options)?;
    let losses = all.chunks(LENGTH + 1).map(|part| evaluated.evaluate(part));
    let losses: Vec<f32> = losses.collect::<Result<_, _>>()?;
    let report = evaluated.step(&all, 0.01)?;
    assert!((report.loss - (losses[0] + losses[1]) / 2.0).abs() < 1e-6, "{report:?}, {losses:?}");
    assert_eq!(report, simulated(&config, options)?.step(&all, 0.01)?);
    // Logits in pieces have the same losses.
    let mut pieces = simulated(&config, TrainingOptions { logit_rows: 10, ..options })?;
    assert_eq!(pieces.evaluate(&all[..LENGTH + 1])?, losses[0]);
    // Additions to the loss of a step are left out.
    let mut smoothed = simulated(&config, TrainingOptions { label_smoothing: 0.5, z_loss: 0.1, ..options })?;
    assert_eq!(smoothed.evaluate(&all[..LENGTH + 1])?, losses[0]);
    assert!(smoothed.step(&all, 0.01)?.loss > report.loss + 0.1);
    Ok(())
}

#[test]
fn a_step_without_finite_gradients_is_skipped() -> Result<()> {
    let config = tiny()?;
    let tokens = tokens(&config, 1);
    let mut trainer = trainer(&config, SINGLE)?;
    let good = trainer.state()?;
    let mut bad = good.clone();
    bad.tensors[1].master[0] = f32::INFINITY;
    trainer.restore(&bad)?;
    let report = trainer.step(&tokens, 0.01)?;
    assert!(report.skipped && report.loss.is_nan(), "{report:?}");
    assert!(trainer.state()? == bad);
    trainer.restore(&good)?;
    let report = trainer.step(&tokens, 0.01)?;
    assert!(!report.skipped && report.loss.is_finite(), "{report:?}");
    assert!(trainer.state()? != good);
    Ok(())
}

#[test]
fn initial_values() -> Result<()> {
    let config = gpt2()?;
    let state = trainer(&config, SINGLE)?.state()?;
    let deviation = |name: &str| {
        let tensor = state.tensors.iter().find(|tensor| tensor.name == name).unwrap();
        let square: f32 = tensor.master.iter().map(|x| x * x).sum();
        (square / tensor.master.len() as f32).sqrt()
    };
    // Within four deviations: 0.02 / √(2 · n) for n numbers, of which there are 16384.
    assert!((deviation("transformer.h.1.attn.c_attn.weight") - 0.02).abs() < 0.0005);
    assert!((deviation("transformer.h.1.attn.c_proj.weight") - 0.01).abs() < 0.0003);
    assert!((deviation("transformer.h.1.mlp.c_proj.weight") - 0.01).abs() < 0.0003);
    for tensor in &state.tensors {
        let is_norm = tensor.name.contains("ln_") && tensor.name.ends_with("weight");
        if tensor.shape.len() == 1 {
            let wanted = if is_norm { 1.0 } else { 0.0 };
            assert!(tensor.master.iter().all(|x| *x == wanted), "{}", tensor.name);
        }
        assert!(tensor.first.iter().chain(&tensor.second).all(|x| *x == 0.0));
    }
    Ok(())
}

/// The weights, written as safetensors, are those of a decoder of `tma-models` with the same
/// losses.
fn check_export(config: Config, json: Value) -> Result<()> {
    let mut trainer = trainer(&config, SINGLE)?;
    let state = spread(trainer.state()?);
    trainer.restore(&state)?;
    let tokens = tokens(&config, 1);
    let loss = f64::from(trainer.evaluate(&tokens)?);

    let folder = tempfile::tempdir()?;
    let bytes: Vec<Vec<u8>> =
        state.tensors.iter().map(|t| t.master.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let views: BTreeMap<&str, TensorView<'_>> = state
        .tensors
        .iter()
        .zip(&bytes)
        .map(|(t, bytes)| Ok((&t.name[..], TensorView::new(Dtype::F32, t.shape.clone(), bytes)?)))
        .collect::<Result<_>>()?;
    safetensors::serialize_to_file(views, None, &folder.path().join("model.safetensors"))?;
    std::fs::write(folder.path().join("config.json"), json.to_string())?;
    let checkpoint = Checkpoint::open(folder.path())?;
    let config = Config::open(folder.path())?;
    let vocabulary = config.vocabulary;
    let decoder = Decoder::load(&models::device()?, config, Source::Checkpoint(&checkpoint), &mut |_| {})?;
    let found = passes::log_probabilities(&decoder, &tokens[..LENGTH])?;
    let losses =
        found.chunks(vocabulary).zip(&tokens[1..]).map(|(row, label)| -f64::from(row[*label as usize]));
    let mean = losses.sum::<f64>() / LENGTH as f64;
    // Logits are rounded to `bf16` in training: by 2^-9 of their size.
    assert!((mean - loss).abs() < loss / 512.0, "{mean}, {loss}");
    Ok(())
}

#[test]
fn exported_llama() -> Result<()> {
    check_export(llama(true)?, models::llama_json(true))
}

#[test]
fn exported_gpt2() -> Result<()> {
    check_export(gpt2()?, models::gpt2_json())
}

#[test]
fn counts() -> Result<()> {
    let tied = trainer(&llama(true)?, SINGLE)?;
    let untied = trainer(&llama(false)?, SINGLE)?;
    let table = 260 * 128;
    let matrices = 128 * 256 + 128 * 128 + 3 * 128 * 192;
    let (norms, biases) = (2 * 128, 256 + 128 + 2 * 192 + 128);
    assert_eq!(untied.parameters(), 2 * table + 2 * (matrices + norms) + 128);
    assert_eq!(tied.parameters(), table + 2 * (matrices + norms + biases) + 128);
    let attention = (12 * 2 * 128 * LENGTH / 2) as f64;
    assert_eq!(untied.flops_per_token(), 6.0 * (untied.parameters() - table) as f64 + attention);
    assert_eq!(tied.flops_per_token(), 6.0 * tied.parameters() as f64 + attention);
    let gpt2 = trainer(&gpt2()?, SINGLE)?;
    assert_eq!(gpt2.flops_per_token(), 6.0 * (gpt2.parameters() - 32 * 128) as f64 + attention);
    Ok(())
}

/// Returns the error's message.
fn refused<T>(result: Result<T, TrainingError>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn models_that_are_refused() -> Result<()> {
    let with = |settings: Value| -> Result<String> {
        let mut json = models::llama_json(false);
        json.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let config = Config::from_json(json)?;
        Ok(refused(Trainer::new(&models::device()?, &config, SINGLE, 7)))
    };
    let experts = json!({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2});
    assert!(with(experts)?.starts_with("unsupported model: experts 4; training supports none"));
    let window = with(json!({"model_type": "mistral", "sliding_window": 8}))?;
    assert!(window.starts_with("unsupported model: sliding window of 7 keys; training supports"), "{window}");
    let norms = with(json!({"model_type": "qwen3"}))?;
    assert!(norms.starts_with("unsupported model: norm of queries and keys;"), "{norms}");
    let gemma = with(json!({"model_type": "gemma2", "final_logit_softcapping": 30.0}))?;
    assert!(gemma.starts_with("unsupported model: logit soft cap 30; training supports none"), "{gemma}");
    let depth = with(json!({"head_dim": 32}))?;
    assert_eq!(depth, "unsupported model: head size 32; training supports 64 and 128");
    let odd = with(json!({"mlp_bias": true, "intermediate_size": 200}))?;
    let of_config =
        |config| -> Result<_> { Ok(refused(Trainer::new(&models::device()?, &config, SINGLE, 7))) };
    let layers = of_config(Config { windows: vec![], ..llama(false)? })?;
    assert_eq!(layers, "unsupported num_hidden_layers in config.json: found 0, wanted at least 1");
    let heads = of_config(Config { heads: 3, key_heads: 2, ..llama(false)? })?;
    assert!(heads.starts_with("unsupported num_key_value_heads in config.json: found 2"), "{heads}");
    assert!(odd.starts_with("unsupported model: MLP size 200; training supports multiples of 64"), "{odd}");
    Ok(())
}

#[test]
fn options_that_are_refused() -> Result<()> {
    let config = tiny()?;
    let device = models::device()?;
    let with = |options| refused(Trainer::new(&device, &config, options, 7));
    let length = with(TrainingOptions { length: 33, ..SINGLE });
    let wanted =
        "the option `length` is out of its range: found 33, expected at most the model's 32 positions";
    assert_eq!(length, wanted);
    let sequences = with(TrainingOptions { sequences: 0, ..SINGLE });
    assert_eq!(sequences, "the option `sequences` is out of its range: found 0, expected at least 1");
    let rows = with(TrainingOptions { sequences: 1 << 30, micro_batches: 1 << 30, ..SINGLE });
    let wanted = "the option `micro_batches × sequences × length` is out of its range: found 1073741824 × \
                  1073741824 × 24, expected fewer than 2^31 tokens in a step";
    assert_eq!(rows, wanted);
    let max_norm = with(TrainingOptions { max_norm: f32::NAN, ..SINGLE });
    assert_eq!(max_norm, "the option `max_norm` is out of its range: found NaN, expected above 0");
    let smoothing = with(TrainingOptions { label_smoothing: 1.5, ..SINGLE });
    assert!(smoothing.ends_with("found 1.5, expected from 0 to 1"), "{smoothing}");
    let adamw = tma_kernels::optimizer::AdamWOptions { beta1: 1.0, ..SINGLE.adamw };
    assert!(with(TrainingOptions { adamw, ..SINGLE }).contains("beta1"));
    Ok(())
}

#[test]
fn tokens_and_states_that_are_refused() -> Result<()> {
    let config = tiny()?;
    let mut tokens = tokens(&config, 1);
    let mut trainer = trainer(&config, SINGLE)?;
    let before = trainer.state()?;
    assert_eq!(
        refused(trainer.step(&tokens[1..], 0.01)),
        "wrong number of tokens: found 24, expected 25 (micro-batches × sequences × (length + 1))"
    );
    assert!(
        refused(trainer.evaluate(&[])).starts_with("wrong number of tokens: found 0, expected 25 (sequences")
    );
    assert!(refused(trainer.step(&tokens, f32::NAN)).contains("learning_rate"));
    tokens[LENGTH] = 40;
    let unknown = "token 40 at index 24 is not part of the vocabulary of 40 tokens";
    assert_eq!(refused(trainer.step(&tokens, 0.01)), unknown);
    assert_eq!(refused(trainer.evaluate(&tokens)), unknown);

    let mut refused_state = |change: &dyn Fn(&mut State)| {
        let mut state = before.clone();
        change(&mut state);
        refused(trainer.restore(&state))
    };
    let missing = refused_state(&|state| drop(state.tensors.pop()));
    assert!(missing.starts_with("the state lacks the tensor `lm_head.weight`"), "{missing}");
    let extra = refused_state(&|state| state.tensors.push(state.tensors[0].clone()));
    assert!(extra.starts_with("the state has two tensors `model.embed_tokens.weight`"), "{extra}");
    let unknown = refused_state(&|state| {
        let mut tensor = state.tensors[0].clone();
        tensor.name = "other".into();
        state.tensors.push(tensor);
    });
    assert!(unknown.starts_with("the model has no tensor `other`"), "{unknown}");
    let shape = refused_state(&|state| state.tensors[0].shape.reverse());
    assert!(shape.ends_with("has the shape [64, 40], wanted [40, 64]"), "{shape}");
    let length = refused_state(&|state| state.tensors[0].second.truncate(2559));
    let wanted = "`second` of the state's tensor `model.embed_tokens.weight` has 2559 numbers, its shape \
                  says 2560";
    assert_eq!(length, wanted);
    assert!(trainer.state()? == before);
    Ok(())
}
