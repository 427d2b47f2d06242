//! Losses and gradients that are not finite.

use std::cell::Cell;
use std::fs;

use anyhow::Result;
use tma_train::TrainError;
use tma_train::checkpoint::Disk;
use tma_train::losses::{self, Line};
use tma_train::train::Outcome;

use crate::fixture::{Fixture, Quadratic, names};

#[test]
fn too_many_steps_without_gradients_end_the_run() -> Result<()> {
    let fixture = Fixture::new()?;
    let model = Quadratic { skipped: vec![2, 3, 7, 9, 10, 11, 12], ..Quadratic::new() };
    let end = fixture.finish(model)?;
    let error = end.result.expect_err("three steps in a row are skipped");
    let TrainError::Diverged { since, count, .. } = error else { panic!("{error}") };
    assert_eq!((since, count, end.position.step), (9, 3, 11));
    let kept = fixture.output.join("checkpoint-000008");
    assert_eq!(
        error.to_string(),
        format!(
            "no finite loss and gradients in 3 steps, since step 9: lower --learning-rate or --clip, or \
             lengthen --warmup, and add --restart. The last good checkpoint is kept: {}",
            kept.display()
        )
    );
    let Some(Line::Step(last)) = losses::read(&fixture.output)?.pop() else {
        panic!("the last line is a step's")
    };
    assert_eq!((last.step, last.loss, last.gradient_norm, last.skipped), (11, None, None, true));
    Ok(())
}

#[test]
fn a_checkpoint_waits_for_a_step_that_was_not_skipped() -> Result<()> {
    let fixture = Fixture::new()?;
    let model = Quadratic { skipped: vec![3, 4, 12], ..Quadratic::new() };
    let seen = Cell::new(vec![]);
    let interrupted = || {
        let mut all = seen.take();
        all.push(
            names(&fixture.output).unwrap_or_default().iter().filter(|x| x.starts_with("check")).count(),
        );
        seen.set(all);
        false
    };
    let end = fixture.run(model, &mut Disk, &interrupted)?;
    assert_eq!(end.result?, Outcome::Finished);
    assert_eq!((end.model.calls, end.model.state.steps), (20, 17));
    // After steps 5, 8 and 13 instead of 4, 8 and 12, as the question after the next step shows.
    assert_eq!(seen.take()[..15], [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]);
    assert_eq!(names(&fixture.output)?[..2], ["checkpoint-000016", "checkpoint-000020"]);
    Ok(())
}

#[test]
fn a_run_that_ends_with_skipped_steps_is_no_success() -> Result<()> {
    let fixture = Fixture::new()?;
    let end = fixture.finish(Quadratic { skipped: vec![19, 20], ..Quadratic::new() })?;
    let text = end.result.expect_err("the last steps were skipped").to_string();
    assert!(text.starts_with("no finite loss and gradients in 2 steps, since step 19: "), "{text}");
    assert!(text.ends_with("checkpoint-000016"), "{text}");
    Ok(())
}

#[test]
fn parameters_that_are_not_finite_are_not_saved() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut model = Quadratic::new();
    // The loss is computed from other numbers than this one.
    model.state.tensors[1].second[3] = f32::INFINITY;
    let end = fixture.finish(model)?;
    let text = end.result.expect_err("a moment is infinite").to_string();
    assert_eq!(
        text,
        "tensor `layers.0.bias` is not finite after step 4: it is not saved. No checkpoint has been written \
         before"
    );
    assert_eq!(names(&fixture.output)?, ["losses.jsonl", "tokens.bin"]);
    Ok(())
}

#[test]
fn a_kept_checkpoint_is_not_touched() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut model = Quadratic { fails_at: Some(7), ..Quadratic::new() };
    fixture.finish(model.clone())?;
    let kept = fixture.output.join("checkpoint-000004");
    let before: Vec<_> =
        names(&kept)?.iter().map(|name| fs::read(kept.join(name))).collect::<Result<_, _>>()?;
    model = Quadratic { skipped: (5..=20).collect(), ..Quadratic::new() };
    let end = fixture.finish(model)?;
    assert!(matches!(end.result, Err(TrainError::Diverged { since: 5, count: 3, .. })));
    let after: Vec<_> =
        names(&kept)?.iter().map(|name| fs::read(kept.join(name))).collect::<Result<_, _>>()?;
    assert_eq!(before, after);
    assert_eq!(names(&fixture.output)?[0], "checkpoint-000004");
    Ok(())
}
