//! Losses, gradients and steps against the same models in `f64`.

mod models;
mod plain;

use anyhow::Result;
use plain::{Plain, PlainTrainer, Tensors};
use tma_kernels::optimizer::AdamWOptions;
use tma_models::config::Config;
use tma_training::{Gradient, State, Trainer, TrainingOptions};

use models::{LENGTH, OPTIONS, SEQUENCES, gpt2, llama, noise, spread, tokens};

/// The greatest error of a tensor's gradient, relative to its norm. Results between kernels are
/// rounded to `bf16`, each with an error of up to 2^-9 of its size, and a gradient in the first
/// layer has passed some twenty of them: 2^-9 · √20 is 2^-6.8.
const BOUND: f64 = 1.0 / 64.0;

/// Returns the greatest error of a tensor. The gradient of a score is a difference of numbers that
/// were rounded before, and that of a bias of keys would be 0 if they were not rotated.
fn bound_of(name: &str) -> f64 {
    let of_scores = ["q_proj", "k_proj", "c_attn queries", "c_attn keys"];
    if of_scores.iter().any(|part| name.contains(part)) { 2.0 * BOUND } else { BOUND }
}

/// A gradient, or a part of it, that is judged alone.
struct Part {
    name: String,
    found: Vec<f32>,
    wanted: Vec<f64>,
}

/// Returns the gradient of a tensor, or those of queries, keys and values if it has all three. The
/// gradient of GPT-2's bias of keys is left out: it would be 0, since a term that all keys share
/// changes no softmax.
fn parts(gradient: Gradient, wanted: &[f64]) -> Vec<Part> {
    let Gradient { name, shape, values } = gradient;
    if !name.contains("c_attn") {
        return vec![Part { name, found: values, wanted: wanted.into() }];
    }
    let columns = *shape.last().unwrap();
    let range = |part: usize| part * columns / 3..(part + 1) * columns / 3;
    let part = |(index, part): (usize, &str)| Part {
        name: name.replace("c_attn", &format!("c_attn {part}")),
        found: values.chunks(columns).flat_map(|row| row[range(index)].to_vec()).collect(),
        wanted: wanted.chunks(columns).flat_map(|row| row[range(index)].to_vec()).collect(),
    };
    let all = ["queries", "keys", "values"].into_iter().enumerate().map(part);
    all.filter(|part| part.name.contains("weight") || !part.name.contains("keys")).collect()
}

fn difference(found: &[f32], wanted: &[f64]) -> f64 {
    found.iter().zip(wanted).map(|(x, y)| (f64::from(*x) - y).powi(2)).sum::<f64>().sqrt()
}

fn norm(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn rows(tokens: &[u32]) -> Vec<&[u32]> {
    tokens.chunks(LENGTH + 1).collect()
}

/// Begins with weights that are larger than initial ones, so that no part of the model is nearly
/// linear, and no bias is 0.
fn trainer(config: &Config, options: TrainingOptions) -> Result<(Trainer, State)> {
    let mut trainer = Trainer::new(&models::device()?, config, options, 7)?;
    let state = spread(trainer.state()?);
    trainer.restore(&state)?;
    Ok((trainer, state))
}

/// The gradients of all tensors after a step.
fn check_gradients(config: &Config, options: TrainingOptions) -> Result<()> {
    let (mut trainer, state) = trainer(config, options)?;
    let tokens = tokens(config, options.micro_batches * SEQUENCES);
    let (wanted_loss, wanted) = PlainTrainer::new(config, options, &state).model().gradients(&rows(&tokens));
    let report = trainer.step(&tokens, 0.0)?;
    assert!((f64::from(report.loss) - wanted_loss).abs() < 1e-3 * wanted_loss, "{report:?}, {wanted_loss}");
    let found = trainer.gradients()?;
    assert_eq!(found.len(), wanted.len());
    for gradient in found {
        let of_tensor = &wanted[&gradient.name];
        for Part { name, found, wanted } in parts(gradient, of_tensor) {
            let error = difference(&found, &wanted) / norm(&wanted);
            println!("{name}: {error:.5}");
            assert!(error < bound_of(&name), "{name}: {error}");
        }
    }
    let all = wanted.values().map(|numbers| norm(numbers).powi(2)).sum::<f64>().sqrt();
    let error = (f64::from(report.gradient_norm) - all).abs();
    assert!(error < BOUND * all, "{}, {all}", report.gradient_norm);
    Ok(())
}

#[test]
fn gradients_of_llama() -> Result<()> {
    check_gradients(&llama(false)?, OPTIONS)
}

/// Biases, a tied head, the additions to the loss, and logits in three pieces, of which the last is
/// shorter.
#[test]
fn gradients_of_llama_with_options() -> Result<()> {
    let options = TrainingOptions { label_smoothing: 0.1, z_loss: 0.01, micro_batches: 1, ..OPTIONS };
    check_gradients(&llama(true)?, TrainingOptions { logit_rows: 20, ..options })
}

/// Heads of 128 elements, of which three share one of keys, in rows that are no power of two.
#[test]
fn gradients_of_llama_with_larger_heads() -> Result<()> {
    let config = llama(false)?;
    let config = Config { width: 72, depth: 128, heads: 3, windows: vec![None], ..config };
    let config = Config { score_scale: 1.0 / 128_f32.sqrt(), ..config };
    check_gradients(&config, TrainingOptions { micro_batches: 1, ..OPTIONS })
}

#[test]
fn gradients_of_gpt2() -> Result<()> {
    check_gradients(&gpt2()?, TrainingOptions { logit_rows: 20, ..OPTIONS })
}

/// Three steps, in which the limit of the norm and the weight decay matter. The greater the ε of AdamW, the less the size of an update depends on the sign of a
/// gradient alone, which for gradients near 0 is that of the rounding.
fn check_steps(config: &Config) -> Result<()> {
    let adamw = AdamWOptions { epsilon: 5e-4, ..OPTIONS.adamw };
    let options = TrainingOptions { adamw, max_norm: 0.1, weight_decay: 2.0, micro_batches: 1, ..OPTIONS };
    let (mut trainer, state) = trainer(config, options)?;
    let mut plain = PlainTrainer::new(config, options, &state);
    let tokens = tokens(config, options.micro_batches * SEQUENCES);
    let mut losses = vec![];
    for rate in [0.02_f32, 0.03, 0.01] {
        let report = trainer.step(&tokens, rate)?;
        let (loss, norm) = plain.step(&rows(&tokens), f64::from(rate));
        println!("{report:?} {loss} {norm}");
        assert!((f64::from(report.loss) - loss).abs() < 2e-3 * loss, "{report:?}, {loss}");
        assert!((f64::from(report.gradient_norm) - norm).abs() < BOUND * norm, "{report:?}, {norm}");
        assert!(norm > f64::from(options.max_norm), "{norm}");
        assert!(!report.skipped);
        losses.push(loss);
    }
    assert!(losses[2] < losses[0] - 0.5, "{losses:?}");
    let found = trainer.state()?;
    assert_eq!(found.steps, 3);
    for (tensor, before) in found.tensors.iter().zip(&state.tensors) {
        let wanted = &plain.tensors[0][&tensor.name];
        let change = difference(&before.master, wanted);
        let error = difference(&tensor.master, wanted) / change;
        println!("{}: {error:.5}", tensor.name);
        // A tensor's change is a sum of gradients over their deviation, with an error like theirs.
        assert!(error < bound_of(&tensor.name), "{}: {error}", tensor.name);
    }
    Ok(())
}

#[test]
fn steps_of_llama() -> Result<()> {
    check_steps(&llama(false)?)
}

#[test]
fn steps_of_gpt2() -> Result<()> {
    check_steps(&gpt2()?)
}

/// The gradients in `f64` are those of the loss: differences along a direction of each tensor.
fn check_differences(config: &Config) {
    let shapes = Trainer::new(&models::device().unwrap(), config, OPTIONS, 7).unwrap();
    let state = spread(shapes.state().unwrap());
    let options = TrainingOptions { label_smoothing: 0.1, z_loss: 0.01, ..OPTIONS };
    let model = PlainTrainer::new(config, options, &state).model();
    let tokens = tokens(config, 1);
    let row = &tokens[..6];
    let (_, gradients) = model.gradients(&[row]);
    let mut directions = noise(5);
    for (name, gradient) in &gradients {
        let direction: Vec<f64> = gradient.iter().map(|_| f64::from(directions())).collect();
        let along: f64 = gradient.iter().zip(&direction).map(|(x, y)| x * y).sum();
        let step = 1e-4 / norm(&direction);
        let [more, less] = [step, -step].map(|step| {
            let mut parameters: Tensors = model.parameters.clone();
            let numbers = parameters.get_mut(name).unwrap();
            numbers.iter_mut().zip(&direction).for_each(|(x, y)| *x += step * y);
            Plain { config, parameters, ..model }.gradients(&[row]).0
        });
        let found = (more - less) / (2.0 * step);
        let error = (found - along).abs() / norm(gradient) / norm(&direction);
        assert!(error < 1e-6, "{name}: {found}, {along}");
    }
}

#[test]
fn gradients_in_f64_are_those_of_the_loss() -> Result<()> {
    check_differences(&models::small(llama(true)?));
    check_differences(&models::small(gpt2()?));
    Ok(())
}
